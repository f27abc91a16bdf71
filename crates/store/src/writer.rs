//! Group commit: a thread owns a write connection, takes queued closures, runs them one after the other, commits once
//! and only then responds to all. If a closure fails after it has written, the transaction is rolled back and all of
//! them run again, each in a savepoint. `queue.rs` determines the order.
//!
//! Where there are several writers, on this node or on others, a transaction waits for one key only, its first. Further
//! keys join only if no other transaction holds them, so two transactions never wait for each other.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::carried::{Care, Carried};
use crate::parcel::Parcel;
use crate::queue::Queue;
use crate::{Error, Result, Stats, Tx, faults};

/// Enough to share a sync well, and few enough that the first in a batch does not wait long.
const BATCH: usize = 256;
const BATCH_TIME: Duration = Duration::from_millis(20);
/// A closure that usually takes longer begins a transaction of its own, so that those before it do not wait for it.
const MAX_JOINING: Duration = Duration::from_millis(5);

/// How long writes are retried after a conflict or a lost connection.
const WRITE_RETRY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a write can be queued: its caller has given up by then.
const QUEUED: Duration = Duration::from_secs(15);
/// After a conflict, this many closures of the key look up conflicts before they write.
const WARY: u32 = 100;
/// The maximum number of keys for which this is recorded.
const MAX_WARY: usize = 1024;

/// A connection that can hold a transaction.
pub(crate) trait Session: Send + 'static {
    /// Whether other transactions may run at the same time, so that each key is held by one of them until it ends.
    const SHARES_KEYS: bool;
    /// Begins a transaction. Unless this is `careful`, the next statement may report the failure.
    fn begin(&mut self, careful: bool) -> Result<()>;
    fn tx(&mut self) -> Result<Tx<'_>>;
    fn commit(&mut self) -> Result<()>;
    fn rollback(&mut self);
    /// Whether no one else has written to the database since the last transaction of this session; called when a
    /// transaction has begun.
    fn is_alone(&mut self) -> bool {
        false
    }
    /// Whether closures of another key may join the transaction, because no other transaction holds it.
    fn admits(&mut self, _key: i64) -> Result<bool> {
        Ok(true)
    }
    /// Returns the maximum time that a caller waits for an unresponsive database.
    fn patience(&self) -> Duration {
        WRITE_RETRY_TIMEOUT
    }
    /// Called between transactions.
    fn rest(&mut self);
}

/// The writer threads and their queue.
pub(crate) struct Writer {
    turns: Arc<Turns>,
}

impl Writer {
    /// Starts a thread for each session.
    pub(crate) fn start<S: Session>(sessions: Vec<S>, limit: usize, stats: &Arc<Stats>) -> Result<Writer> {
        let state = State { queue: Queue::new(limit), closed: false, idle: 0, wary: HashMap::new() };
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

    /// Queues a write; its parcel is opened with [`open`].
    pub(crate) fn submit<T, E, F>(&self, key: i64, work: F) -> Result<oneshot::Receiver<Parcel>>
    where
        F: Fn(&mut Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let task = Box::new(Pending { work, result: None, reply: Some(reply) });
        self.turns.push(key, Job { queued: Instant::now(), wary: false, task })?;
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
    /// Signalled when a write is queued, or the queue is closed.
    came: Condvar,
}

struct State {
    queue: Queue<Job>,
    closed: bool,
    /// The number of idle writers.
    idle: usize,
    /// The keys whose closures recently failed after they had written, and for how many more closures this counts.
    wary: HashMap<i64, u32>,
}

impl State {
    /// A job as it is handed out.
    fn handed(&mut self, (key, mut job): (i64, Job)) -> (i64, Job) {
        if let Some(left) = self.wary.get_mut(&key) {
            job.wary = true;
            *left -= 1;
            if *left == 0 {
                self.wary.remove(&key);
            }
        }
        (key, job)
    }
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

    /// Waits for the next write; `None` when the queue is closed.
    fn wait(&self) -> Option<(i64, Job)> {
        let mut state = self.lock();
        loop {
            if let Some(next) = state.queue.take(None) {
                return Some(state.handed(next));
            }
            if state.closed {
                return None;
            }
            state.idle += 1;
            state = self.came.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// Records that a closure of `key` ran for `time`; returns the next one that may join the same transaction, which has
    /// `room` and the keys `keys`.
    fn next(&self, key: i64, time: Duration, room: Duration, keys: &[i64], shares: bool) -> Option<(i64, Job)> {
        let mut state = self.lock();
        state.queue.ran(key, time);
        if room.is_zero() {
            return None;
        }
        let next = if !shares {
            state.queue.release(key);
            state.queue.take(Some(room))
        } else if state.idle == 0 && state.queue.is_turn_of_others(keys) {
            state.queue.take(Some(room))
        } else {
            state.queue.more(keys, room)
        };
        next.map(|next| state.handed(next))
    }

    fn put_back(&self, key: i64, job: Job) {
        self.lock().queue.put_back(key, job);
        self.came.notify_one();
    }

    /// Releases `keys`. Closures of `failed` failed after they had written.
    fn release(&self, keys: &[i64], failed: &[i64]) {
        let mut state = self.lock();
        for key in keys {
            state.queue.release(*key);
        }
        if state.wary.len() > MAX_WARY {
            state.wary.clear();
        }
        state.wary.extend(failed.iter().map(|key| (*key, WARY)));
        drop(state);
        self.came.notify_all();
    }
}

/// Closes the queue if a writer thread dies, so that no caller waits forever.
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
    wary: bool,
    task: Box<dyn Task>,
}

trait Task: Send {
    /// Runs the closure; returns whether its writes are to be kept.
    fn run(&mut self, tx: &mut Tx) -> bool;
    /// Reports that its writes could not be committed.
    fn fail(&mut self, error: Error);
    /// Responds to the caller.
    fn done(self: Box<Self>, outcome: Result<()>);
}

struct Pending<T, E, F> {
    work: F,
    result: Option<Result<T, E>>,
    reply: Option<oneshot::Sender<Parcel>>,
}

/// Opens what came back from a write of this closure. The caller gets the closure back as well: it holds the request, and
/// whoever frees it should not be the thread that all others wait for.
pub(crate) fn open<T, E, F>(parcel: Parcel) -> Result<T, E>
where
    F: Send + 'static,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let done = parcel.downcast::<Pending<T, E, F>>().ok().and_then(|pending| pending.result);
    done.unwrap_or_else(|| Err(Error::Unavailable("the write was not run".into()).into()))
}

impl<T, E, F> Task for Pending<T, E, F>
where
    F: Fn(&mut Tx) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<Error> + Send + 'static,
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

    fn done(mut self: Box<Self>, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.fail(error);
        }
        if let Some(reply) = self.reply.take() {
            // The caller may have disconnected; the write is committed anyway.
            let _ = reply.send(self);
        }
    }
}

fn run<S: Session>(session: &mut S, closing: &Closing, stats: &Stats) {
    let turns = closing.0;
    // While the database is known to be unreachable, further writes do not wait as long as the first.
    let mut patience = WRITE_RETRY_TIMEOUT;
    let mut carried = Carried::default();
    while let Some((key, first)) = turns.wait() {
        let mut keys = vec![key];
        if first.queued.elapsed() > QUEUED {
            turns.release(&keys, &[]);
            first.task.done(Err(Error::Overloaded));
            continue;
        }
        let mut next = Some((key, first));
        let mut group = Group::start(session, &mut carried, stats);
        while let Some((key, job)) = next.take() {
            if !S::SHARES_KEYS {
                // Those before it are free already.
                keys.clear();
                keys.push(key);
            } else if !keys.contains(&key) {
                if !group.admits(key) {
                    turns.put_back(key, job);
                    break;
                }
                keys.push(key);
            }
            let (time, room) = group.add(key, job);
            next = turns.next(key, time, room, &keys, S::SHARES_KEYS);
        }
        let End { gone, failed } = group.finish(patience);
        turns.release(&keys, &failed);
        patience = if gone { Duration::ZERO } else { WRITE_RETRY_TIMEOUT };
        session.rest();
    }
}

/// Writes that share a transaction.
struct Group<'s, S: Session> {
    session: &'s mut S,
    carried: &'s mut Carried,
    stats: &'s Stats,
    begun: Result<()>,
    /// When its first write arrived, and when its transaction began.
    came: Instant,
    started: Instant,
    tasks: Vec<Member>,
}

/// A task with its key.
type Member = (i64, Box<dyn Task>);

/// How a group has ended.
#[derive(Default)]
struct End {
    /// The database is unreachable.
    gone: bool,
    /// The keys of tasks that failed after everything had to run again.
    failed: Vec<i64>,
}

impl<'s, S: Session> Group<'s, S> {
    fn start(session: &'s mut S, carried: &'s mut Carried, stats: &'s Stats) -> Self {
        let came = Instant::now();
        let begun = begin(session, carried, false);
        Group { session, carried, stats, begun, came, started: Instant::now(), tasks: Vec::new() }
    }

    /// Whether closures of one more key may join.
    fn admits(&mut self, key: i64) -> bool {
        let admitted = match &self.begun {
            Ok(()) => self.session.admits(key),
            Err(_) => Ok(false),
        };
        admitted.unwrap_or_else(|error| {
            // The closures that are already in the transaction did not cause this error.
            self.begun = Err(if error.is_retryable() { error } else { Error::Undo });
            false
        })
    }

    /// Runs a write in the transaction; returns how long it took and how long the next one may take: sharing a commit
    /// must not make a write wait for another's expensive closure.
    fn add(&mut self, key: i64, job: Job) -> (Duration, Duration) {
        let Job { mut task, wary, .. } = job;
        let started = Instant::now();
        if self.begun.is_ok() {
            let care = Care { savepoint: false, wary };
            self.begun = run_task(self.session, self.carried, task.as_mut(), care).map(drop);
        }
        let time = started.elapsed();
        self.stats.closure_ran(time);
        self.tasks.push((key, task));
        let full = self.begun.is_err() || self.tasks.len() >= BATCH;
        let room = if full { Duration::ZERO } else { BATCH_TIME.saturating_sub(self.started.elapsed()) };
        (time, room.min(MAX_JOINING))
    }

    /// Commits and responds to all callers.
    fn finish(self, mut patience: Duration) -> End {
        let Group { session, carried, stats, begun, tasks, came, mut started } = self;
        if begun.is_ok() && faults::is_broken("order") {
            answer(tasks, Ok(()));
            let _ = commit(session, carried);
            return End::default();
        }
        let outcome = begun.and_then(|()| commit(session, carried));
        stats.writes.fetch_add(tasks.len() as u64, Ordering::Relaxed);
        stats.commits.fetch_add(1, Ordering::Relaxed);
        let mut end = End::default();
        for mut tasks in parts::<S>(tasks, &outcome) {
            let mut outcome = outcome.clone();
            if outcome == Err(Error::Undo) {
                session.rollback();
                outcome = carefully(session, carried, &mut tasks).map(|failed| end.failed.extend(failed));
            }
            // A database that was unresponsive for so long, or is known to be unreachable, is not tried again.
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
            if matches!(outcome, Err(Error::Disconnected(_))) {
                end.gone = true;
                patience = Duration::ZERO;
            }
            stats.transaction_held(started.elapsed());
            answer(tasks, outcome);
            // The next part has a transaction of its own.
            started = Instant::now();
        }
        end
    }
}

/// Groups the tasks that are committed together, given the `outcome` of the first attempt. A transaction that waits for a
/// key must not hold another, so each key gets its own transaction when all of them run again.
fn parts<S: Session>(tasks: Vec<Member>, outcome: &Result<()>) -> Vec<Vec<Member>> {
    let again = matches!(outcome, Err(error) if *error == Error::Undo || error.is_retryable());
    if !again || !S::SHARES_KEYS {
        return vec![tasks];
    }
    let mut parts: Vec<Vec<Member>> = Vec::new();
    for (key, task) in tasks {
        match parts.iter_mut().find(|part| part.first().is_some_and(|(own, _)| *own == key)) {
            Some(part) => part.push((key, task)),
            None => parts.push(vec![(key, task)]),
        }
    }
    parts
}

fn answer(tasks: Vec<Member>, outcome: Result<()>) {
    for (_, task) in tasks {
        task.done(outcome.clone());
    }
}

fn begin<S: Session>(session: &mut S, carried: &mut Carried, careful: bool) -> Result<()> {
    session.begin(careful)?;
    carried.begin(session.is_alone());
    Ok(())
}

/// Runs one task of a transaction and returns whether it succeeded. A task that fails leaves no writes.
fn run_task<S: Session>(session: &mut S, carried: &mut Carried, task: &mut dyn Task, care: Care) -> Result<bool> {
    let mut tx = session.tx()?.with(care).carrying(std::mem::take(carried));
    let kept = tx.savepoint(|tx| {
        if !task.run(tx) {
            return Err(Error::Undo);
        }
        // If rows cannot be written, the task that gathered them gets the error.
        let written = if care.savepoint { tx.flush() } else { Ok(()) };
        written.inspect_err(|error| task.fail(error.clone()))
    });
    let trouble = tx.trouble();
    *carried = tx.into_carried();
    match trouble {
        Some(trouble) => Err(trouble),
        None => Ok(kept.is_ok()),
    }
}

/// Runs all tasks again in one transaction, each in a savepoint; returns the keys of those that failed.
fn carefully<S: Session>(session: &mut S, carried: &mut Carried, tasks: &mut [Member]) -> Result<Vec<i64>> {
    begin(session, carried, true)?;
    let mut failed = Vec::new();
    for (key, task) in tasks {
        if !run_task(session, carried, task.as_mut(), Care { savepoint: true, wary: true })? {
            failed.push(*key);
        }
    }
    commit(session, carried)?;
    Ok(failed)
}

/// Writes the gathered rows and commits. If they cannot be written, all tasks run again and each writes its own rows.
fn commit<S: Session>(session: &mut S, carried: &mut Carried) -> Result<()> {
    if carried.has_rows() {
        let mut tx =
            session.tx()?.with(Care { savepoint: false, wary: false }).carrying(std::mem::take(carried)).closing();
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

/// Runs all writes until they succeed or time out: after a conflict, or a lost connection.
fn again<S: Session>(session: &mut S, carried: &mut Carried, tasks: &mut [Member], patience: Duration) -> Result<()> {
    let started = Instant::now();
    let mut wait = Duration::from_millis(10);
    loop {
        session.rollback();
        std::thread::sleep(wait);
        wait *= 3;
        match carefully(session, carried, tasks) {
            Err(error) if error.is_retryable() && started.elapsed() + wait < patience => {}
            done => return done.map(drop),
        }
    }
}

/// Exits after a failed write or sync: the state of the file is unknown, and a retry may falsely succeed. The next
/// start recovers from the write-ahead log.
#[expect(clippy::exit, reason = "an I/O error must end the process")]
fn stop_on_io(error: &Error) {
    if let Error::Io(what) = error {
        tracing::error!(error = %what, "Writing to the database failed. Kantoor exits to protect your data; check the disk, then start it again.");
        // The log is written by another thread.
        std::thread::sleep(Duration::from_millis(300));
        std::process::exit(74);
    }
}
