use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use postgres::types::ToSql;
use postgres::{Client, SimpleQueryMessage, Statement};

use crate::address::Address;
use crate::writer::Session;
use crate::{Error, Result, Tx, Value};

const STATEMENTS: usize = 256;

/// A connection with its prepared statements.
pub(crate) struct Connection {
    client: Client,
    statements: HashMap<String, Statement>,
}

impl Connection {
    pub(crate) fn open(address: &Address) -> Result<Connection> {
        let mut client = address.connect()?;
        client.batch_execute(
            "SET TIME ZONE 'UTC'; SET lock_timeout = '5s'; SET statement_timeout = '60s';
             SET idle_in_transaction_session_timeout = '60s'; SET client_min_messages = 'warning'",
        )?;
        Ok(Connection { client, statements: HashMap::new() })
    }

    pub(crate) fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64> {
        let statement = self.prepare(sql)?;
        let done = self.client.execute(&statement, &borrowed(values));
        self.forget_on_error(sql, done)
    }

    pub(crate) fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<postgres::Row>> {
        let statement = self.prepare(sql)?;
        let done = self.client.query(&statement, &borrowed(values));
        self.forget_on_error(sql, done)
    }

    pub(crate) fn script(&mut self, sql: &str) -> Result<()> {
        Ok(self.client.batch_execute(sql)?)
    }

    /// A newer node may have changed the table under a prepared statement.
    fn forget_on_error<T>(&mut self, sql: &str, done: std::result::Result<T, postgres::Error>) -> Result<T> {
        if done.is_err() {
            self.statements.remove(sql);
        }
        Ok(done?)
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql)?;
        if self.statements.len() >= STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(sql.to_string(), statement.clone());
        Ok(statement)
    }
}

fn borrowed<'v>(values: &'v [Value]) -> Vec<&'v (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

/// Connections for reading.
pub(crate) struct Pool {
    address: Address,
    limit: usize,
    state: Mutex<PoolState>,
    returned: Condvar,
}

#[derive(Default)]
struct PoolState {
    idle: Vec<Connection>,
    open: usize,
}

impl Pool {
    pub(crate) fn new(address: Address, limit: usize) -> Pool {
        Pool { address, limit: limit.max(1), state: Mutex::default(), returned: Condvar::new() }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) fn read<T, E: From<Error>>(&self, work: impl Fn(&mut Tx) -> Result<T, E>) -> Result<T, E> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut lease = self.take()?;
            let mut tx = Tx::postgres(lease.connection()?);
            let begun = tx.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
            let done = match begun {
                Ok(()) => work(&mut tx),
                Err(error) => Err(error.into()),
            };
            let trouble = tx.trouble();
            let ended = tx.script("COMMIT");
            let sound = trouble.is_none() && ended.is_ok();
            if !sound {
                lease.spoil();
            }
            match trouble {
                Some(trouble) if trouble.is_retryable() && tries < 3 => {
                    // What died took the others with it, most likely.
                    drop(lease);
                    self.drop_idle();
                }
                _ => return done,
            }
        }
    }

    fn drop_idle(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = std::mem::take(&mut state.idle);
        state.open -= idle.len();
        drop(state);
        drop(idle);
    }

    fn take(&self) -> Result<Lease<'_>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(conn) = state.idle.pop() {
                return Ok(Lease { pool: self, conn: Some(conn) });
            }
            if state.open < self.limit {
                state.open += 1;
                drop(state);
                let mut lease = Lease { pool: self, conn: None };
                lease.conn = Some(Connection::open(&self.address)?);
                return Ok(lease);
            }
            let (next, waited) =
                self.returned.wait_timeout(state, Duration::from_secs(10)).unwrap_or_else(PoisonError::into_inner);
            state = next;
            if waited.timed_out() {
                return Err(Error::Overloaded);
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let idle = std::mem::take(&mut state.idle);
        // A connection says goodbye when it is dropped, which it may not do on a thread of tokio.
        std::thread::spawn(move || drop(idle));
    }
}

/// A connection on loan: it goes back when dropped, unless it is spoiled or the reader panics.
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

/// A connection that writes, opened again when it is lost.
pub(crate) struct Writing {
    address: Address,
    conn: Option<Connection>,
    /// The transaction's number, to ask for its fate when the connection dies in the commit.
    number: i64,
}

impl Writing {
    pub(crate) fn open(address: Address) -> Result<Writing> {
        let conn = Connection::open(&address)?;
        Ok(Writing { address, conn: Some(conn), number: 0 })
    }

    fn connection(&mut self) -> Result<&mut Connection> {
        match &mut self.conn {
            Some(conn) => Ok(conn),
            None => Err(Error::Disconnected("no connection".into())),
        }
    }

    /// Whether the transaction whose commit was under way is on disk.
    fn fate(&mut self, lost: &Error) -> Result<()> {
        for wait in [0, 100, 300, 600, 1_000, 2_000, 3_000, 4_000] {
            std::thread::sleep(Duration::from_millis(wait));
            let Ok(mut conn) = Connection::open(&self.address) else { continue };
            let values = [Value::Int(self.number)];
            let Ok(rows) = conn.query("SELECT coalesce(txid_status($1), '')", &values) else { continue };
            self.conn = Some(conn);
            match rows.first().map(|row| row.get::<_, String>(0)).as_deref() {
                Some("committed") => return Ok(()),
                Some("aborted") => return Err(Error::Disconnected(lost.to_string())),
                _ => {}
            }
        }
        Err(Error::Unknown(lost.to_string()))
    }
}

impl Session for Writing {
    // Two nodes that each hold one account and want the other's would wait for each other.
    const MIXES_KEYS: bool = false;

    fn begin(&mut self) -> Result<()> {
        if self.conn.as_ref().is_none_or(|conn| conn.client.is_closed()) {
            self.conn = None;
            self.conn = Some(Connection::open(&self.address)?);
        }
        // Closures see what was committed while they waited for the account: READ COMMITTED,
        // whatever the server's default is.
        let begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT txid_current()";
        let answer = match self.connection()?.client.simple_query(begin) {
            Ok(answer) => answer,
            Err(error) => {
                self.conn = None;
                return Err(error.into());
            }
        };
        let number = answer.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
            _ => None,
        });
        self.number = number.ok_or_else(|| Error::Database("no transaction number".into()))?;
        Ok(())
    }

    fn tx(&mut self) -> Result<Tx<'_>> {
        Ok(Tx::postgres(self.connection()?))
    }

    fn commit(&mut self) -> Result<()> {
        // In a transaction that has failed, COMMIT would roll back and call it a success; the
        // SELECT before it fails instead.
        match self.connection()?.script("SELECT 1; COMMIT") {
            Err(Error::Disconnected(what)) => {
                self.conn = None;
                self.fate(&Error::Disconnected(what))
            }
            done => done,
        }
    }

    fn rollback(&mut self) {
        if let Some(conn) = &mut self.conn
            && conn.script("ROLLBACK").is_err()
        {
            self.conn = None;
        }
    }

    fn rest(&mut self) {}
}
