use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::address::Address;
use crate::client::{Client, Failure, Prepared};
use crate::marks::Mark;
use crate::stats::statement_ran;
use crate::writer::Session;
use crate::{Error, Result, Stats, Tx, Value};

const STATEMENTS: usize = 256;

/// Maximum idle time of a transaction. A node that is paused or disconnected locks accounts on all nodes until
/// PostgreSQL ends its transaction.
const IDLE: Duration = Duration::from_secs(3);
/// How long a write waits for a locked row: longer than an idle node can lock it.
const LOCKED: Duration = Duration::from_secs(5);
/// A reader locks nothing.
const READER_IDLE: Duration = Duration::from_secs(60);
/// How much longer than PostgreSQL's own statement timeout we wait for its response.
const GRACE: Duration = Duration::from_secs(2);
/// Time limit of a migration, and of waiting for one.
const MIGRATION: Duration = Duration::from_secs(60 * 60);
/// After how many transactions statements are first planned again, and the factor by which this number grows: at twice the
/// size of a table, another plan may be better.
const PLANNED: u64 = 64;
const GROWTH: u64 = 2;
/// How long the outcome of a commit is looked up. The caller waits, and so do all queued writes.
const FATE: Duration = Duration::from_secs(10);

/// How PostgreSQL notices that this node is gone; a pooler has its own settings.
const SOCKET: &str = "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 2;
    SET tcp_user_timeout = 5000";

/// A connection with its prepared statements.
pub(crate) struct Connection {
    client: Client,
    statements: HashMap<String, Prepared>,
    /// The rows that the transaction has locked.
    held: Vec<(&'static str, i64)>,
    /// How many transactions it has had.
    transactions: u64,
    /// The number of writes at which its statements are planned again.
    planned_until: u64,
    /// Settings that every transaction begins with, because the session may be another each time; otherwise empty.
    settings: String,
}

impl Connection {
    /// `limit` is the timeout of a statement, `idle` that of an idle transaction.
    pub(crate) fn open(address: &Address, limit: Duration, idle: Duration) -> Result<Connection> {
        let mut client = address.connect()?;
        let set = if address.is_pooled() { "SET LOCAL" } else { "SET" };
        let mut settings = format!(
            "{set} TIME ZONE 'UTC'; {set} lock_timeout = {}; {set} statement_timeout = {};
             {set} idle_in_transaction_session_timeout = {}; {set} client_min_messages = 'warning';",
            LOCKED.as_millis(),
            limit.as_millis(),
            idle.as_millis()
        );
        if !address.is_pooled() {
            client.script(&format!("{settings} {SOCKET}"))?;
            settings.clear();
        }
        client.set_deadline(limit + GRACE);
        let (statements, held) = (HashMap::new(), Vec::new());
        Ok(Connection { client, statements, held, transactions: 0, planned_until: PLANNED, settings })
    }

    /// Makes PostgreSQL plan statements again when the database may have grown; `writes` is the number of writes of this
    /// process. A plan is made once per connection. A plan for an empty table may scan all rows of an account, because all
    /// indexes looked equally good, and is kept until PostgreSQL has analyzed the table: a minute or more.
    fn keep_plans_fresh(&mut self, writes: u64) -> Result<(), Failure> {
        self.transactions += 1;
        let done = writes + self.transactions;
        if done < self.planned_until {
            return Ok(());
        }
        self.planned_until = done * GROWTH;
        self.client.send_script("DISCARD PLANS", false)
    }

    /// Begins a transaction that only reads, without waiting for the result.
    fn begin_reading(&mut self, writes: u64) -> Result<(), Failure> {
        let begin = format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {}", self.settings);
        self.client.send_script(begin, false)?;
        self.keep_plans_fresh(writes)
    }

    /// Returns the number that a statement outside a transaction returns, if any.
    pub(crate) fn ask_number(&mut self, sql: &str, deadline: Duration) -> Result<Option<u64>> {
        let usual = self.client.set_deadline(deadline);
        let said = self.client.ask(sql);
        self.client.set_deadline(usual);
        Ok(said?.and_then(|text| text.parse().ok()))
    }

    /// Records that the transaction has locked a row; returns whether that is new.
    pub(crate) fn hold(&mut self, table: &'static str, id: i64) -> bool {
        let new = !self.held.contains(&(table, id));
        if new {
            self.held.push((table, id));
        }
        new
    }

    /// Lifts the deadline until the next transaction, for a migration.
    pub(crate) fn take_time(&mut self) {
        self.client.set_deadline(MIGRATION);
    }

    pub(crate) fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64> {
        let statement = self.prepare(sql)?;
        let done = self.client.execute(&statement, values);
        self.forget_on_error(sql, done)
    }

    /// Sends a statement without waiting for its result. If it fails, the next call that waits fails too, with
    /// [`Error::Undo`] if running everything again can show whose statement failed.
    pub(crate) fn send(&mut self, sql: &str, values: &[Value]) -> Result<()> {
        let statement = self.prepare(sql)?;
        Ok(self.client.send(&statement, values)?)
    }

    pub(crate) fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<tokio_postgres::Row>> {
        let mut rows = Vec::new();
        self.each(sql, values, &mut |row| {
            rows.push(row.clone());
            true
        })?;
        Ok(rows)
    }

    /// Calls `take` for every row as it arrives, until it returns false: a long result is never in memory as a whole.
    pub(crate) fn each(
        &mut self,
        sql: &str,
        values: &[Value],
        take: &mut dyn FnMut(&tokio_postgres::Row) -> bool,
    ) -> Result<()> {
        let statement = self.prepare(sql)?;
        let done = self.client.each(&statement, values, take);
        self.forget_on_error(sql, done)
    }

    pub(crate) fn script(&mut self, sql: &str) -> Result<()> {
        Ok(self.client.script(sql)?)
    }

    /// A newer node may have changed the table under a prepared statement.
    fn forget_on_error<T>(&mut self, sql: &str, done: Result<T, Failure>) -> Result<T> {
        match &done {
            Err(Failure::Earlier(_)) | Ok(_) => {}
            Err(_) => drop(self.statements.remove(sql)),
        }
        Ok(done?)
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql, !self.settings.is_empty())?;
        if self.statements.len() >= STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(sql.to_string(), statement.clone());
        Ok(statement)
    }
}

/// Connections for reading.
pub(crate) struct Pool {
    address: Address,
    limit: usize,
    /// Timeout of a statement, and of waiting for a connection.
    patience: Duration,
    stats: Arc<Stats>,
    state: Mutex<PoolState>,
    returned: Condvar,
    /// As many as connections.
    turns: Arc<Semaphore>,
}

#[derive(Default)]
struct PoolState {
    idle: Vec<Connection>,
    open: usize,
    /// Whether the last attempt to connect failed.
    gone: bool,
    /// Whether a connection attempt is in progress although the last one failed.
    probing: bool,
}

impl Pool {
    pub(crate) fn new(address: Address, limit: usize, patience: Duration, stats: &Arc<Stats>) -> Pool {
        let (stats, state, returned, limit) = (stats.clone(), Mutex::default(), Condvar::new(), limit.max(1));
        let turns = Arc::new(Semaphore::new(limit));
        Pool { address, limit, patience, stats, state, returned, turns }
    }

    /// Returns a pool of the same size for another server.
    pub(crate) fn for_standby(&self, address: Address) -> Pool {
        Pool::new(address, self.limit, self.patience, &self.stats)
    }

    pub(crate) fn stats(&self) -> &Arc<Stats> {
        &self.stats
    }

    /// Waits until a connection is most likely free. Requests that wait here, rather than for the connection itself,
    /// occupy no thread: each thread that has read much keeps a megabyte or two of memory.
    pub(crate) async fn turn(&self) -> Result<OwnedSemaphorePermit> {
        let turn = tokio::time::timeout(self.patience, self.turns.clone().acquire_owned()).await;
        turn.ok().and_then(Result::ok).ok_or(Error::Overloaded)
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Runs `work` in a transaction that only reads, again if the connection is lost. What it returned last counts.
    pub(crate) fn read(&self, work: &mut dyn FnMut(&mut Tx)) -> Result<()> {
        let (mut tries, started) = (0, Instant::now());
        loop {
            tries += 1;
            let mut lease = self.take()?;
            let (done, trouble) = self.run(&mut lease, work)?;
            let Some(trouble) = trouble.filter(|trouble| trouble.is_retryable() || *trouble == Error::Undo) else {
                return done;
            };
            // If one connection is lost, the others most likely are too.
            drop(lease);
            let late = started.elapsed() >= self.patience;
            self.drop_idle(late && matches!(trouble, Error::Disconnected(_)));
            if late || tries == 3 {
                return done;
            }
        }
    }

    /// Runs `work` once, on a connection that `fits`; returns whether one did and nothing failed.
    pub(crate) fn read_once(
        &self,
        fits: &mut dyn FnMut(&mut Connection) -> Result<bool>,
        work: &mut dyn FnMut(&mut Tx),
    ) -> Result<bool> {
        let mut lease = self.take()?;
        match fits(lease.connection()?) {
            Ok(true) => {}
            // The next connection may lead to another server.
            fitted => {
                lease.spoil();
                return fitted;
            }
        }
        let (done, trouble) = self.run(&mut lease, work)?;
        Ok(done.is_ok() && trouble.is_none())
    }

    /// Runs `work` in a transaction. Returns whether it ran, and the first error that it met.
    fn run(&self, lease: &mut Lease, work: &mut dyn FnMut(&mut Tx)) -> Result<(Result<()>, Option<Error>)> {
        let conn = lease.connection()?;
        // Both are sent with the statements of the closure, whose results show whether the connection still works.
        let begun = conn.begin_reading(self.stats.writes.load(Ordering::Relaxed));
        let (done, trouble) = match begun.map_err(Error::from) {
            Ok(()) => {
                let mut tx = Tx::postgres(conn);
                work(&mut tx);
                (Ok(()), tx.trouble())
            }
            Err(error) => (Err(error.clone()), Some(error)),
        };
        let ended = conn.client.send_script("COMMIT", true);
        if trouble.is_some() || ended.is_err() {
            lease.spoil();
        }
        Ok((done, trouble))
    }

    fn drop_idle(&self, gone: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = std::mem::take(&mut state.idle);
        state.open -= idle.len();
        state.gone |= gone;
        drop(state);
        drop(idle);
    }

    fn take(&self) -> Result<Lease<'_>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(conn) = state.idle.pop() {
                return Ok(Lease { pool: self, conn: Some(conn) });
            }
            if state.gone && state.probing {
                return Err(Error::Disconnected("PostgreSQL cannot be reached".into()));
            }
            if state.open < self.limit {
                state.open += 1;
                state.probing = state.gone;
                drop(state);
                let mut lease = Lease { pool: self, conn: None };
                let opened = Connection::open(&self.address, self.patience, READER_IDLE);
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                (state.gone, state.probing) = (opened.is_err(), false);
                drop(state);
                lease.conn = Some(opened?);
                return Ok(lease);
            }
            let (next, waited) =
                self.returned.wait_timeout(state, self.patience).unwrap_or_else(PoisonError::into_inner);
            state = next;
            if waited.timed_out() {
                return Err(Error::Overloaded);
            }
        }
    }
}

/// A connection from the pool, returned when it is dropped, unless it is broken or the reader panics.
struct Lease<'p> {
    pool: &'p Pool,
    conn: Option<Connection>,
}

impl Lease<'_> {
    fn connection(&mut self) -> Result<&mut Connection> {
        self.conn.as_mut().ok_or(Error::Overloaded)
    }

    fn spoil(&mut self) {
        self.conn = None;
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock().unwrap_or_else(PoisonError::into_inner);
        match self.conn.take() {
            Some(conn) if !std::thread::panicking() && !conn.client.is_closed() => state.idle.push(conn),
            _ => state.open -= 1,
        }
        drop(state);
        self.pool.returned.notify_one();
    }
}

/// A write connection, reopened when it is lost.
pub(crate) struct Writing {
    address: Address,
    limit: Duration,
    stats: Arc<Stats>,
    conn: Option<Connection>,
    /// The mark of this connection's transactions; `None` before the first one.
    mark: Option<Mark>,
}

impl Writing {
    pub(crate) fn open(address: Address, limit: Duration, stats: &Arc<Stats>) -> Result<Writing> {
        let conn = Connection::open(&address, limit, IDLE)?;
        Ok(Writing { address, limit, stats: stats.clone(), conn: Some(conn), mark: None })
    }

    fn connection(&mut self) -> Result<&mut Connection> {
        match &mut self.conn {
            Some(conn) => Ok(conn),
            None => Err(Error::Disconnected("no connection".into())),
        }
    }

    fn start(&mut self, careful: bool) -> Result<(), Failure> {
        if self.conn.as_ref().is_none_or(|conn| conn.client.is_closed()) {
            (self.conn, self.mark) = (None, None);
            self.conn = Some(Connection::open(&self.address, self.limit, IDLE).map_err(Failure::Silence)?);
        }
        let limit = self.limit + GRACE;
        let Some(conn) = &mut self.conn else {
            return Err(Failure::Silence(Error::Disconnected("no connection".into())));
        };
        conn.client.set_deadline(limit);
        conn.held.clear();
        let pooled = self.address.is_pooled();
        let mark = match &mut self.mark {
            Some(mark) => mark,
            None => self.mark.insert(Mark::introduce(&mut conn.client, pooled).map_err(Failure::Silence)?),
        };
        statement_ran();
        mark.begin(&mut conn.client, &conn.settings)?;
        conn.keep_plans_fresh(self.stats.writes.load(Ordering::Relaxed))?;
        if careful { conn.client.settle() } else { Ok(()) }
    }

    /// Determines whether an interrupted commit took effect. Returns once the outcome is final and would survive the
    /// loss of this server.
    fn fate(&mut self, lost: Error) -> Result<()> {
        let (mark, started) = (self.mark.take().filter(Mark::is_set), Instant::now());
        self.conn = None;
        let mut wait = Duration::ZERO;
        while let Some(mark) = mark.as_ref().filter(|_| started.elapsed() + wait < FATE) {
            std::thread::sleep(wait);
            wait = (wait * 2).clamp(Duration::from_millis(100), Duration::from_secs(1));
            let Ok(mut conn) = Connection::open(&self.address, self.limit, IDLE) else { continue };
            let Some(kept) = mark.is_kept(&mut conn.client) else { continue };
            self.conn = Some(conn);
            return if kept { Ok(()) } else { Err(lost) };
        }
        Err(Error::Unknown(lost.to_string()))
    }
}

impl Session for Writing {
    const SHARES_KEYS: bool = true;

    fn admits(&mut self, key: i64) -> Result<bool> {
        let conn = self.connection()?;
        // The first closure determines what is locked for a key. If it locked nothing, what others would wait for is unknown.
        let Some((table, _)) = conn.held.first().copied() else { return Ok(false) };
        let sql = format!("SELECT id FROM {table} WHERE id = $1 FOR UPDATE SKIP LOCKED");
        let free = !conn.query(&sql, &[key.into()])?.is_empty();
        if free {
            conn.hold(table, key);
        }
        Ok(free)
    }

    fn begin(&mut self, careful: bool) -> Result<()> {
        let begun = self.start(careful);
        if begun.is_err() {
            self.conn = None;
        }
        match begun {
            // It is known whose failure this was.
            Err(Failure::Earlier(failure)) => Err((*failure).into()),
            begun => Ok(begun?),
        }
    }

    fn tx(&mut self) -> Result<Tx<'_>> {
        Ok(Tx::postgres(self.connection()?))
    }

    fn commit(&mut self) -> Result<()> {
        let known = self.mark.as_ref().is_some_and(Mark::is_known);
        let client = &mut self.connection()?.client;
        if !known {
            client.settle()?;
        }
        client.take_warned();
        statement_ran();
        // In a transaction that has failed, COMMIT would roll back and call it a success; the
        // SELECT before it fails instead.
        let lost = match client.script("SELECT 1; COMMIT") {
            // If the wait for a synchronous standby is cancelled, COMMIT succeeds with a warning: the transaction is on
            // this server and perhaps on no other.
            Ok(()) if client.take_warned() => "PostgreSQL warned while it committed".to_string(),
            Ok(()) => return Ok(()),
            // Also if an earlier pipelined statement was rejected: then the transaction failed, and so did the SELECT.
            Err(failure) if failure.is_refusal() => return Err(failure.into()),
            Err(failure) => Error::from(failure).to_string(),
        };
        self.fate(Error::Disconnected(lost))
    }

    fn rollback(&mut self) {
        let Some(conn) = &mut self.conn else { return };
        conn.client.ignore_sent();
        if conn.script("ROLLBACK").is_err() {
            self.conn = None;
        }
    }

    fn patience(&self) -> Duration {
        self.limit
    }

    fn rest(&mut self) {}
}
