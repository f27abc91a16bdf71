//! Group commit: a thread owns a writing connection, takes the closures that wait, runs one after
//! the other, commits once and only then answers everyone. When a closure fails after it has
//! written, the transaction is rolled back and all of them run again, now each in a savepoint.
//! Whose closures are next is for `queue.rs` to say.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::queue::Queue;
use crate::tx::Carried;
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
    /// Whether nobody else has written to the database since the last transaction of this session; asked when one has
    /// begun.
    fn is_alone(&mut self) -> bool {
        false
    }
    /// How long a caller waits at most for a database that does not answer.
    fn patience(&self) -> Duration {
        PATIENCE
    }
    /// Called between transactions.
    fn rest(&mut self);
}

/// The threads that write, and what waits for them.
pub(crate) struct Writer {
    turns: Arc<Turns>,
}

impl Writer {
    /// Starts a thread for each session.
    pub(crate) fn start<S: Session>(sessions: Vec<S>, limit: usize, stats: &Arc<Stats>) -> Result<Writer> {
        let state = State { queue: Queue::new(limit), closed: false };
        let writer = Writer { turns: Arc::new(Turns { state: Mutex::new(state), came: Condvar::new() }) };
        for mut session in sessions {
            let (turns, stats) = (writer.turns.clone(), stats.clone());
            std::thread::Builder::new()
                .name("writer".into())
                .spawn(move || run(&mut session, &Closing(&turns), &stats))
                .map_err(|error| Error::Unavailable(format!("cannot start a writer thread: {error}")))?;
        }
        Ok(writer)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.turns.lock().queue.waiting()
    }

    pub(crate) fn submit<T, E, F>(&self, key: i64, work: F) -> Result<oneshot::Receiver<Result<T, E>>>
    where
        F: Fn(&mut Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let task = Box::new(Pending { work, result: None, reply });
        self.turns.push(key, Job { queued: Instant::now(), task })?;
        Ok(answer)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.turns.lock().closed = true;
        self.turns.came.notify_all();
    }
}

/// The queue that the threads share.
struct Turns {
    state: Mutex<State>,
    /// There is something to do, or nothing will come any more.
    came: Condvar,
}

struct State {
    queue: Queue<Job>,
    closed: bool,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, key: i64, job: Job) -> Result<()> {
        let mut state = self.lock();
        if state.closed {
            return Err(Error::Unavailable("the writer has stopped".into()));
        }
        let refused = state.queue.push(key, job);
        drop(state);
        self.came.notify_one();
        if let Some(job) = refused {
            job.task.done(Err(Error::Overloaded));
        }
        Ok(())
    }

    /// Waits for the next one; `None` when none will come.
    fn wait(&self) -> Option<(i64, Job)> {
        let mut state = self.lock();
        loop {
            if let Some(next) = state.queue.take(None) {
                return Some(next);
            }
            if state.closed {
                return None;
            }
            state = self.came.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// One of `key` has run for `time`; answers the next one that may join the same transaction, which has `room`.
    fn next(&self, key: i64, time: Duration, room: Duration, mixes: bool) -> Option<(i64, Job)> {
        let mut state = self.lock();
        state.queue.ran(key, time);
        if room.is_zero() {
            return None;
        }
        if mixes {
            state.queue.release(key);
            return state.queue.take(Some(room));
        }
        state.queue.more(key, room).map(|job| (key, job))
    }

    /// Nobody works on `key` any more.
    fn release(&self, key: i64) {
        self.lock().queue.release(key);
        self.came.notify_one();
    }
}

/// What a thread has of the queue. If it dies nobody waits for it in vain.
struct Closing<'t>(&'t Turns);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut state = self.0.lock();
            state.closed = true;
            state.queue.clear();
        }
    }
}

struct Job {
    queued: Instant,
    task: Box<dyn Task>,
}

trait Task: Send {
    /// Runs the closure; answers whether its writes are to be kept.
    fn run(&mut self, tx: &mut Tx) -> bool;
    /// What it wrote cannot be kept after all.
    fn fail(&mut self, error: Error);
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

    fn fail(&mut self, error: Error) {
        self.result = Some(Err(error.into()));
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

fn run<S: Session>(session: &mut S, closing: &Closing, stats: &Stats) {
    let turns = closing.0;
    // Who comes while the database is known to be gone need not wait for it as the first one did.
    let mut patience = PATIENCE;
    let mut carried = Carried::default();
    while let Some((mut key, first)) = turns.wait() {
        if first.queued.elapsed() > QUEUED {
            turns.release(key);
            first.task.done(Err(Error::Overloaded));
            continue;
        }
        let mut next = Some((key, first));
        let mut group = Group::start(session, &mut carried, stats);
        while let Some((own, job)) = next.take() {
            key = own;
            let (time, room) = group.add(job.task);
            next = turns.next(key, time, room, S::MIXES_KEYS);
        }
        let gone = group.finish(patience);
        turns.release(key);
        patience = if gone { Duration::ZERO } else { PATIENCE };
        session.rest();
    }
}

/// Writes that share a transaction.
struct Group<'s, S: Session> {
    session: &'s mut S,
    carried: &'s mut Carried,
    stats: &'s Stats,
    begun: Result<()>,
    /// When its first task came, and when its transaction had begun.
    came: Instant,
    started: Instant,
    tasks: Vec<Box<dyn Task>>,
}

impl<'s, S: Session> Group<'s, S> {
    fn start(session: &'s mut S, carried: &'s mut Carried, stats: &'s Stats) -> Self {
        let came = Instant::now();
        let begun = begin(session, carried);
        Group { session, carried, stats, begun, came, started: Instant::now(), tasks: Vec::new() }
    }

    /// Runs a task in the transaction; answers how long it took and how long the next one may take: nobody waits for
    /// a dear closure of somebody else because their commits are shared.
    fn add(&mut self, mut task: Box<dyn Task>) -> (Duration, Duration) {
        let started = Instant::now();
        if self.begun.is_ok() {
            self.begun = part(self.session, self.carried, task.as_mut(), false);
        }
        let time = started.elapsed();
        self.stats.closure_ran(time);
        self.tasks.push(task);
        let full = self.begun.is_err() || self.tasks.len() >= BATCH;
        let room = if full { Duration::ZERO } else { BATCH_TIME.saturating_sub(self.started.elapsed()) };
        (time, room)
    }

    /// Commits and answers everyone; answers whether the database is gone.
    fn finish(self, patience: Duration) -> bool {
        let Group { session, carried, stats, begun, mut tasks, came, started } = self;
        let mut outcome = begun.and_then(|()| commit(session, carried));
        stats.writes.fetch_add(tasks.len() as u64, Ordering::Relaxed);
        stats.commits.fetch_add(1, Ordering::Relaxed);
        if outcome == Err(Error::Undo) {
            session.rollback();
            outcome = carefully(session, carried, &mut tasks);
        }
        // A database that was silent for so long, or that is known to be gone, would be tried in vain once more.
        let late = patience.is_zero() || came.elapsed() >= session.patience();
        let given_up = late && matches!(outcome, Err(Error::Disconnected(_)));
        if outcome.as_ref().is_err_and(Error::is_retryable) && !given_up {
            stats.retries.fetch_add(tasks.len() as u64, Ordering::Relaxed);
            outcome = again(session, carried, &mut tasks, patience);
        }
        if let Err(error) = &outcome {
            session.rollback();
            stop_on_io(error);
        }
        stats.transaction_held(started.elapsed());
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

fn begin<S: Session>(session: &mut S, carried: &mut Carried) -> Result<()> {
    session.begin()?;
    carried.begin(session.is_alone());
    Ok(())
}

/// One task of a transaction, which must leave nothing when it fails.
fn part<S: Session>(session: &mut S, carried: &mut Carried, task: &mut dyn Task, careful: bool) -> Result<()> {
    let mut tx = session.tx()?.careful(careful).carrying(std::mem::take(carried));
    let _ = tx.savepoint(|tx| {
        if !task.run(tx) {
            return Err(Error::Undo);
        }
        // Rows that cannot be written are told to whoever gathered them.
        let written = if careful { tx.flush() } else { Ok(()) };
        written.inspect_err(|error| task.fail(error.clone()))
    });
    let trouble = tx.trouble();
    *carried = tx.into_carried();
    match trouble {
        Some(trouble) => Err(trouble),
        None => Ok(()),
    }
}

/// All tasks again in one transaction, each in a savepoint.
fn carefully<S: Session>(session: &mut S, carried: &mut Carried, tasks: &mut [Box<dyn Task>]) -> Result<()> {
    begin(session, carried)?;
    for task in tasks {
        part(session, carried, task.as_mut(), true)?;
    }
    commit(session, carried)
}

/// Writes what was gathered and commits. When it cannot be written, all tasks run again and each writes its own.
fn commit<S: Session>(session: &mut S, carried: &mut Carried) -> Result<()> {
    if carried.has_rows() {
        let mut tx = session.tx()?.careful(false).carrying(std::mem::take(carried)).closing();
        let written = tx.flush();
        let trouble = tx.trouble();
        *carried = tx.into_carried();
        trouble.map_or(written, Err)?;
    }
    faults::here();
    session.commit()?;
    carried.committed();
    faults::here();
    Ok(())
}

/// All tasks until they are through or patience ends: a lost race, or a connection that has to be
/// made again.
fn again<S: Session>(
    session: &mut S,
    carried: &mut Carried,
    tasks: &mut [Box<dyn Task>],
    patience: Duration,
) -> Result<()> {
    let started = Instant::now();
    let mut wait = Duration::from_millis(10);
    loop {
        session.rollback();
        std::thread::sleep(wait);
        wait *= 3;
        match carefully(session, carried, tasks) {
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
        tracing::error!(error = %what, "Writing to the database failed. Kantoor exits to protect your data; check the disk, then start it again.");
        // The log is written by a thread of its own.
        std::thread::sleep(Duration::from_millis(300));
        std::process::exit(74);
    }
}
