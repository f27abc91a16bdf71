//! Threads for slow reads. There are as many as processors: more would not be faster, and each thread keeps some
//! megabytes of memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::{Error, Result};

type Job = Box<dyn FnOnce() + Send>;

pub(crate) struct SlowReads {
    queue: Sender<Job>,
}

impl SlowReads {
    pub(crate) fn start() -> Result<SlowReads> {
        let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
        let (queue, jobs) = channel::<Job>();
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..threads {
            let jobs = jobs.clone();
            let take = move || jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            std::thread::Builder::new()
                .name("reader".into())
                .spawn(move || {
                    while let Ok(job) = take() {
                        job();
                    }
                })
                .map_err(|error| Error::Unavailable(format!("cannot start a reader thread: {error}")))?;
        }
        Ok(SlowReads { queue })
    }

    /// Runs `work` when a thread is free, unless its caller has given up by then.
    pub(crate) async fn run<T, E>(&self, work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = move || {
            if !reply.is_closed() {
                let done = catch_unwind(AssertUnwindSafe(work));
                // The caller may have disconnected in the meantime.
                let _ = reply.send(done.unwrap_or_else(|panic| Err(Error::from_panic(panic).into())));
            }
        };
        let stopped = || Err(Error::Unavailable("the readers have stopped".into()).into());
        match self.queue.send(Box::new(job)) {
            Ok(()) => answer.await.unwrap_or_else(|_| stopped()),
            Err(_) => stopped(),
        }
    }
}
