//! The pool of typesetting workers. A worker keeps the memory that it has used for a while, so there are few, however
//! many requests there are.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number of workers.
const MAX_PRESSES: usize = 8;

/// A pool of workers, threads or processes, each of which typesets one document at a time.
pub(crate) struct TypesetPool<T> {
    idle: Mutex<Vec<T>>,
    freed: Condvar,
    /// For large documents: a thousand rows take 100 MB, which are kept for the next.
    large: Mutex<T>,
}

/// Returns the number of documents to typeset concurrently: one per core.
pub fn presses() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_PRESSES))
}

impl<T> TypesetPool<T> {
    /// Creates a pool with `many` workers, and one for large documents, so that a small document does not wait for a
    /// large one.
    pub(crate) fn new<E>(many: usize, press: impl Fn() -> Result<T, E>) -> Result<TypesetPool<T>, E> {
        let idle = (0..many).map(|_| press()).collect::<Result<_, _>>()?;
        Ok(TypesetPool { idle: Mutex::new(idle), freed: Condvar::new(), large: Mutex::new(press()?) })
    }

    /// Runs the work on a free worker.
    pub(crate) fn run<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut press = self.take();
        // A panic releases the worker too.
        let done = catch_unwind(AssertUnwindSafe(|| work(&mut press)));
        held(&self.idle).push(press);
        self.freed.notify_one();
        done.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Runs the work on the worker for large documents.
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
