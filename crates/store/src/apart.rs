//! Threads for slow reads. There are as many as processors: more would not be faster, and each thread keeps some
//! megabytes of memory. Accounts take turns, so an account with many reads delays another one by a single read.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::parcel::{Parcel, Work};
use crate::{Error, Result};

type Job = Box<dyn FnOnce() + Send>;

pub(crate) struct SlowReads {
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// The accounts with jobs, in the order of their turns.
    turns: VecDeque<i64>,
    jobs: HashMap<i64, VecDeque<Job>>,
    stopped: bool,
}

impl SlowReads {
    pub(crate) fn start() -> Result<SlowReads> {
        let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
        let reads = SlowReads { queue: Arc::default() };
        for _ in 0..threads {
            let queue = reads.queue.clone();
            std::thread::Builder::new()
                .name("reader".into())
                .spawn(move || {
                    while let Some(job) = queue.next() {
                        job();
                    }
                })
                .map_err(|error| Error::Unavailable(format!("cannot start a reader thread: {error}")))?;
        }
        Ok(reads)
    }

    /// Runs `work` when it is the turn of the account `key`, unless its caller has given up by then.
    pub(crate) async fn run(&self, key: i64, work: Work) -> Result<Parcel> {
        let (reply, answer) = oneshot::channel();
        let job = move || {
            if !reply.is_closed() {
                let done = catch_unwind(AssertUnwindSafe(work));
                // The caller may have disconnected in the meantime.
                let _ = reply.send(done.map_err(Error::from_panic));
            }
        };
        self.queue.add(key, Box::new(job));
        answer.await.unwrap_or_else(|_| Err(Error::Unavailable("the readers have stopped".into())))
    }
}

impl Drop for SlowReads {
    fn drop(&mut self) {
        self.queue.waiting().stopped = true;
        self.queue.changed.notify_all();
    }
}

impl Queue {
    fn add(&self, key: i64, job: Job) {
        let mut waiting = self.waiting();
        let jobs = waiting.jobs.entry(key).or_default();
        jobs.push_back(job);
        if jobs.len() == 1 {
            waiting.turns.push_back(key);
        }
        drop(waiting);
        self.changed.notify_one();
    }

    /// Waits for the next job; `None` after the end.
    fn next(&self) -> Option<Job> {
        let mut waiting = self.waiting();
        loop {
            if let Some(job) = waiting.take() {
                return Some(job);
            }
            if waiting.stopped {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Takes the oldest job of the account whose turn it is, which then goes to the end of the line.
    fn take(&mut self) -> Option<Job> {
        let key = self.turns.pop_front()?;
        let jobs = self.jobs.get_mut(&key)?;
        let job = jobs.pop_front();
        if jobs.is_empty() {
            self.jobs.remove(&key);
        } else {
            self.turns.push_back(key);
        }
        job
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_take_turns() {
        let queue = Queue::default();
        let done = Arc::new(Mutex::new(Vec::new()));
        for key in [1, 1, 1, 2, 3, 2] {
            let done = done.clone();
            queue.add(key, Box::new(move || done.lock().unwrap().push(key)));
        }
        queue.waiting().stopped = true;
        while let Some(job) = queue.next() {
            job();
        }
        assert_eq!(*done.lock().unwrap(), [1, 2, 3, 1, 2, 1]);
        assert!(queue.waiting().jobs.is_empty());
    }
}
