//! Where documents are made. The memory that a press has used stays with it for a while, so there are few, however many
//! ask.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Nobody waits long for a page behind so many.
const MAX_PRESSES: usize = 8;

/// A pool of workers, threads or processes, each of which makes one document at a time.
pub(crate) struct TypesetPool<T> {
    idle: Mutex<Vec<T>>,
    freed: Condvar,
    /// For large documents: a thousand rows take 100 MB, which are kept for the next.
    large: Mutex<T>,
}

/// How many documents are made at the same time: one a core.
pub fn presses() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_PRESSES))
}

impl<T> TypesetPool<T> {
    /// So many, and one for large documents, so that no page need wait for a thousand rows.
    pub(crate) fn new<E>(many: usize, press: impl Fn() -> Result<T, E>) -> Result<TypesetPool<T>, E> {
        let idle = (0..many).map(|_| press()).collect::<Result<_, _>>()?;
        Ok(TypesetPool { idle: Mutex::new(idle), freed: Condvar::new(), large: Mutex::new(press()?) })
    }

    /// Works on one of them, as soon as one is free.
    pub(crate) fn run<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut press = self.take();
        // After a panic too the press is free again.
        let done = catch_unwind(AssertUnwindSafe(|| work(&mut press)));
        held(&self.idle).push(press);
        self.freed.notify_one();
        done.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// The same for a large document, when the one before it is done.
    pub(crate) fn run_large<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut held(&self.large))
    }

    fn take(&self) -> T {
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
