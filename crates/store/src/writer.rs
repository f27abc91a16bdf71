//! Group commit: a thread owns a writing connection, takes the closures that wait, runs one after
//! the other, commits once and only then answers everyone. When a closure fails after it has
//! written, the transaction is rolled back and all of them run again, now each in a savepoint.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::{Error, Result, Stats, Tx, faults};

/// Enough to share a sync well, few enough that the first in a batch does not wait long.
const BATCH: usize = 256;
const BATCH_TIME: Duration = Duration::from_millis(20);

/// How long writes are tried again after a lost race or connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a write may wait for its turn: whoever sent it has given up by then.
const QUEUED: Duration = Duration::from_secs(15);

/// A connection that can hold a transaction.
pub(crate) trait Session: Send + 'static {
    /// Whether writes of different keys may share a commit.
    const MIXES_KEYS: bool;
    fn begin(&mut self) -> Result<()>;
    fn tx(&mut self) -> Result<Tx<'_>>;
    fn commit(&mut self) -> Result<()>;
    fn rollback(&mut self);
    /// Called between transactions.
    fn rest(&mut self);
}

pub(crate) struct Writer {
    queue: SyncSender<Job>,
    waiting: Arc<AtomicUsize>,
}

impl Writer {
    pub(crate) fn start<S: Session>(mut session: S, queue: usize, stats: Arc<Stats>) -> Result<Writer> {
        let (sender, receiver) = sync_channel::<Job>(queue);
        let waiting = Arc::new(AtomicUsize::new(0));
        let counter = waiting.clone();
        std::thread::Builder::new()
            .name("writer".into())
            .spawn(move || run(&mut session, &receiver, &counter, &stats))
            .map_err(|error| Error::Unavailable(format!("no thread for writing: {error}")))?;
        Ok(Writer { queue: sender, waiting })
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn submit<T, E, F>(&self, key: i64, work: F) -> Result<oneshot::Receiver<Result<T, E>>>
    where
        F: Fn(&mut Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let task = Box::new(Pending { work, result: None, reply });
        self.waiting.fetch_add(1, Ordering::Relaxed);
        match self.queue.try_send(Job { key, queued: Instant::now(), task }) {
            Ok(()) => Ok(answer),
            Err(refused) => {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                Err(match refused {
                    TrySendError::Full(_) => Error::Overloaded,
                    TrySendError::Disconnected(_) => Error::Unavailable("the writer has stopped".into()),
                })
            }
        }
    }
}

struct Job {
    key: i64,
    queued: Instant,
    task: Box<dyn Task>,
}

trait Task: Send {
    /// Runs the closure; answers whether its writes are to be kept.
    fn run(&mut self, tx: &mut Tx) -> bool;
    /// Answers the caller.
    fn done(self: Box<Self>, outcome: Result<()>);
}

struct Pending<T, E, F> {
    work: F,
    result: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<T, E, F> Task for Pending<T, E, F>
where
    F: Fn(&mut Tx) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn run(&mut self, tx: &mut Tx) -> bool {
        self.result = None;
        let done = catch_unwind(AssertUnwindSafe(|| (self.work)(tx)))
            .unwrap_or_else(|panic| Err(Error::from_panic(panic).into()));
        let keep = done.is_ok();
        self.result = Some(done);
        keep
    }

    fn done(self: Box<Self>, outcome: Result<()>) {
        let answer = match (outcome, self.result) {
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => Err(Error::Unavailable("the write was not run".into()).into()),
            (Err(error), _) => Err(error.into()),
        };
        // Whoever asked may have gone away; the write stands.
        let _ = self.reply.send(answer);
    }
}

fn run<S: Session>(session: &mut S, queue: &Receiver<Job>, waiting: &AtomicUsize, stats: &Stats) {
    let mut held: Option<Job> = None;
    // Who comes while the database is known to be gone need not wait for it as the first one did.
    let mut patience = PATIENCE;
    loop {
        let first = match held.take() {
            Some(job) => job,
            None => match queue.recv() {
                Ok(job) => job,
                Err(_) => return,
            },
        };
        if first.queued.elapsed() > QUEUED {
            waiting.fetch_sub(1, Ordering::Relaxed);
            first.task.done(Err(Error::Overloaded));
            continue;
        }
        let key = first.key;
        let mut next = Some(first);
        let mut group = Group::start(session, stats);
        while let Some(job) = next.take() {
            waiting.fetch_sub(1, Ordering::Relaxed);
            if !group.add(job.task) {
                break;
            }
            match queue.try_recv() {
                Ok(job) if S::MIXES_KEYS || job.key == key => next = Some(job),
                Ok(job) => held = Some(job),
                Err(_) => {}
            }
        }
        let gone = group.finish(patience);
        patience = if gone { Duration::ZERO } else { PATIENCE };
        session.rest();
    }
}

/// Writes that share a transaction.
struct Group<'s, S: Session> {
    session: &'s mut S,
    stats: &'s Stats,
    begun: Result<()>,
    started: Instant,
    tasks: Vec<Box<dyn Task>>,
}

impl<'s, S: Session> Group<'s, S> {
    fn start(session: &'s mut S, stats: &'s Stats) -> Self {
        let begun = session.begin();
        Group { session, stats, begun, started: Instant::now(), tasks: Vec::new() }
    }

    /// Runs a task in the transaction; answers whether another one may join.
    fn add(&mut self, mut task: Box<dyn Task>) -> bool {
        if self.begun.is_ok() {
            let started = Instant::now();
            self.begun = part(self.session, task.as_mut(), false);
            self.stats.closure_ran(started.elapsed());
        }
        self.tasks.push(task);
        self.begun.is_ok() && self.tasks.len() < BATCH && self.started.elapsed() < BATCH_TIME
    }

    /// Commits and answers everyone; answers whether the database is gone.
    fn finish(self, patience: Duration) -> bool {
        let Group { session, stats, begun, mut tasks, .. } = self;
        let mut outcome = begun.and_then(|()| commit(session));
        stats.writes.fetch_add(tasks.len() as u64, Ordering::Relaxed);
        stats.commits.fetch_add(1, Ordering::Relaxed);
        if outcome == Err(Error::Undo) {
            session.rollback();
            outcome = carefully(session, &mut tasks);
        }
        if outcome.as_ref().is_err_and(Error::is_retryable) {
            stats.retries.fetch_add(tasks.len() as u64, Ordering::Relaxed);
            outcome = again(session, &mut tasks, patience);
        }
        if let Err(error) = &outcome {
            session.rollback();
            stop_on_io(error);
        }
        let gone = matches!(outcome, Err(Error::Disconnected(_)));
        answer(tasks, outcome);
        gone
    }
}

fn answer(tasks: Vec<Box<dyn Task>>, outcome: Result<()>) {
    for task in tasks {
        task.done(outcome.clone());
    }
}

/// One task of a transaction, which must leave nothing when it fails.
fn part<S: Session>(session: &mut S, task: &mut dyn Task, careful: bool) -> Result<()> {
    let mut tx = session.tx()?.careful(careful);
    let _ = tx.savepoint(|tx| if task.run(tx) { Ok(()) } else { Err(Error::Undo) });
    match tx.trouble() {
        Some(trouble) => Err(trouble),
        None => Ok(()),
    }
}

/// All tasks again in one transaction, each in a savepoint.
fn carefully<S: Session>(session: &mut S, tasks: &mut [Box<dyn Task>]) -> Result<()> {
    session.begin()?;
    for task in tasks {
        part(session, task.as_mut(), true)?;
    }
    commit(session)
}

fn commit<S: Session>(session: &mut S) -> Result<()> {
    faults::here();
    session.commit()?;
    faults::here();
    Ok(())
}

/// All tasks until they are through or patience ends: a lost race, or a connection that has to be
/// made again.
fn again<S: Session>(session: &mut S, tasks: &mut [Box<dyn Task>], patience: Duration) -> Result<()> {
    let started = Instant::now();
    let mut wait = Duration::from_millis(10);
    loop {
        session.rollback();
        std::thread::sleep(wait);
        wait *= 3;
        match carefully(session, tasks) {
            Err(error) if error.is_retryable() && started.elapsed() + wait < patience => {}
            done => return done,
        }
    }
}

/// After a failed write or sync nobody knows what the file holds, and asking again may falsely
/// succeed. The process ends; the next start recovers from the log.
#[expect(clippy::exit, reason = "an I/O error must end the process")]
fn stop_on_io(error: &Error) {
    if let Error::Io(what) = error {
        tracing::error!(error = %what, "Writing to the database failed. Kantoor stops here rather than risk your data; check the disk, then start it again.");
        std::process::exit(74);
    }
}
