//! Threads for slow reads. An account has as many as there are processors: more would not be faster, and each thread keeps some
//! megabytes of memory. There are more for other accounts, and accounts that have to wait take turns.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::parcel::{Parcel, Work};
use crate::places::Places;
use crate::{Error, Result};

type Job = Box<dyn FnOnce() + Send>;

pub(crate) struct SlowReads {
    places: Arc<Places>,
    queue: Arc<Queue>,
}

/// Jobs that have a place each, so that a thread is free for them.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    stopped: bool,
}

impl SlowReads {
    /// Starts the threads. An account has `share` of them at most.
    pub(crate) fn start(share: usize) -> Result<SlowReads> {
        let reads = SlowReads { places: Places::with_share("slow reads", share), queue: Arc::default() };
        for _ in 0..reads.places.most() {
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

    pub(crate) fn places(&self) -> &Arc<Places> {
        &self.places
    }

    /// Runs `work` when it is the turn of the account `key`, unless its caller has given up by then.
    pub(crate) async fn run(&self, key: i64, work: Work) -> Result<Parcel> {
        let place = self.places.take(key).await;
        let (reply, answer) = oneshot::channel();
        let job = move || {
            if !reply.is_closed() {
                let done = catch_unwind(AssertUnwindSafe(work));
                drop(place);
                // The caller may have disconnected in the meantime.
                let _ = reply.send(done.map_err(Error::from_panic));
            }
        };
        self.queue.waiting().jobs.push_back(Box::new(job));
        self.queue.changed.notify_one();
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
    /// Waits for the next job; `None` after the end.
    fn next(&self) -> Option<Job> {
        let mut waiting = self.waiting();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
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
