//! Where documents are made. The memory that a thread has used stays with it for a while, so there are few threads for
//! it, however many ask.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Nobody waits long for a page behind so many.
const MOST: usize = 8;

/// Threads that make one document at a time each.
pub(crate) struct Presses {
    idle: Mutex<Vec<ThreadPool>>,
    freed: Condvar,
    /// Held for a large document.
    large: Mutex<()>,
}

impl Presses {
    /// One a core; two at least, so that a page need not wait for a thousand rows.
    pub(crate) fn new() -> Result<Presses, rayon::ThreadPoolBuildError> {
        let many = std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, MOST));
        // The compiler does its parallel work in the pool that it runs in: here on this one thread.
        let idle = (0..many).map(|_| ThreadPoolBuilder::new().num_threads(1).build()).collect::<Result<_, _>>()?;
        Ok(Presses { idle: Mutex::new(idle), freed: Condvar::new(), large: Mutex::new(()) })
    }

    /// Works on one of the threads, as soon as one is free.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let press = self.take();
        // After a panic too the thread is free again.
        let done = press.install(|| catch_unwind(AssertUnwindSafe(work)));
        held(&self.idle).push(press);
        self.freed.notify_one();
        done.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// The same, while no other large document is made: a thousand rows take 100 MB.
    pub(crate) fn run_large<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let _alone = held(&self.large);
        self.run(work)
    }

    fn take(&self) -> ThreadPool {
        let mut idle = held(&self.idle);
        loop {
            match idle.pop() {
                Some(press) => return press,
                None => idle = self.freed.wait(idle).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
