//! Where documents are made. The memory that a thread has used stays with it for a while, so there are few threads for
//! it, however many ask.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

/// Nobody waits long for a page behind so many.
const MOST: usize = 8;

/// Threads that make one document at a time each.
pub(crate) struct Presses {
    idle: Mutex<Vec<ThreadPool>>,
    freed: Condvar,
    /// For large documents: a thousand rows take 100 MB, which are kept for the next.
    large: Mutex<ThreadPool>,
}

impl Presses {
    /// One a core, and one for large documents, so that no page need wait for a thousand rows.
    pub(crate) fn new() -> Result<Presses, ThreadPoolBuildError> {
        let many = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST));
        // The compiler does its parallel work in the pool that it runs in: here on this one thread.
        let press = || ThreadPoolBuilder::new().num_threads(1).build();
        let idle = (0..many).map(|_| press()).collect::<Result<_, _>>()?;
        Ok(Presses { idle: Mutex::new(idle), freed: Condvar::new(), large: Mutex::new(press()?) })
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

    /// The same for a large document, when the one before it is done.
    pub(crate) fn run_large<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        held(&self.large).install(work)
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
