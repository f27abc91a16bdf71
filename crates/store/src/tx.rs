use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::carried::{Care, Carried};
use crate::dialect::Dialect;
use crate::named::Tables;
use crate::pending::Gathered;
use crate::postgres::Connection;
use crate::seen::{self, Tally};
use crate::stats::statement_ran;
use crate::{Error, Result, Row, Value};

/// A transaction in progress, or a snapshot for reading.
pub struct Tx<'c> {
    session: Session<'c>,
    /// The most severe error of a statement. The closure may have converted it, so the writer uses this to decide
    /// between rollback, retry and exit.
    trouble: Option<Error>,
    /// Whether savepoints are set. Without them, a failure after a write rolls back everything and runs it again with
    /// them: failing writes are rare, and a savepoint makes SQLite's search index flush (measured: half of the
    /// throughput).
    careful: bool,
    /// Whether a closure of the same key failed recently.
    wary: bool,
    /// Whether there is anything to roll back.
    touched: bool,
    /// How many savepoints are open.
    depth: u32,
    /// The amount of work, for tests.
    tally: Tally,
    /// What its closures share.
    carried: Carried,
    /// Whether rows may be gathered, because they are written at the end.
    gathers: bool,
}

enum Session<'c> {
    Sqlite(&'c rusqlite::Connection),
    Postgres(&'c mut Connection),
}

impl<'c> Tx<'c> {
    pub(crate) fn sqlite(conn: &'c rusqlite::Connection) -> Tx<'c> {
        Tx::new(Session::Sqlite(conn))
    }

    pub(crate) fn postgres(conn: &'c mut Connection) -> Tx<'c> {
        Tx::new(Session::Postgres(conn))
    }

    fn new(session: Session<'c>) -> Tx<'c> {
        Tx {
            session,
            trouble: None,
            careful: true,
            wary: true,
            touched: false,
            depth: 0,
            tally: Tally::start(),
            carried: Carried::default(),
            gathers: false,
        }
    }

    /// Sets how the next closure of the transaction runs.
    pub(crate) fn with(self, care: Care) -> Tx<'c> {
        Tx { careful: care.savepoint, wary: care.wary, ..self }
    }

    /// Whether a closure should look up conflicts before it writes. Usually it just writes: if a unique index rejects the
    /// row, the closure runs again, and then this is true.
    pub fn asks_first(&self) -> bool {
        self.wary
    }

    /// Continues with the cache and the gathered rows of the closures before.
    pub(crate) fn carrying(self, carried: Carried) -> Tx<'c> {
        Tx { carried, gathers: true, ..self }
    }

    /// Marks the end of the transaction: further work is counted as that of its last closure.
    pub(crate) fn closing(self) -> Tx<'c> {
        Tx { tally: self.tally.added(), ..self }
    }

    /// Returns the state for the next closure of the transaction.
    pub(crate) fn into_carried(self) -> Carried {
        self.carried
    }

    /// Returns which of the two databases this is.
    pub fn dialect(&self) -> Dialect {
        match self.session {
            Session::Sqlite(_) => Dialect::Sqlite,
            Session::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Returns the value of type `M` that is cached for a table and an account, or its default. It is discarded when a
    /// statement writes to the table, when a savepoint is rolled back, and at the end of the transaction. Code that gathers
    /// rows must keep it correct. Without the lock of the account nothing is cached, since others may write meanwhile.
    pub fn memory<M: Default + Any + Send>(&mut self, table: &'static str, account: i64) -> &mut M {
        let nobody_else = !self.gathers || self.dialect() == Dialect::Sqlite || self.holds(account);
        let Carried { memory, named, scratch, .. } = &mut self.carried;
        let table = named.bit(table);
        if nobody_else {
            return memory.of(table, account);
        }
        scratch.clear();
        scratch.of(table, account)
    }

    /// Whether the transaction has locked the account.
    pub(crate) fn holds(&self, account: i64) -> bool {
        self.carried.held.contains(&account)
    }

    /// Records that the transaction has locked the account.
    pub(crate) fn held(&mut self, account: i64) {
        if !self.holds(account) {
            self.carried.held.push(account);
        }
    }

    /// Adds a row that is written together with others, at the end of the transaction at the latest. Statements that name
    /// the table see it.
    pub fn gather(&mut self, gathered: &'static Gathered, row: &[Value]) -> Result<()> {
        if !self.gathers {
            return self.execute(&gathered.insert(1), row).map(drop);
        }
        self.touched = true;
        self.tally.wrote();
        let table = self.carried.named.bit(gathered.table);
        if !self.carried.pending.add(gathered, table, row) {
            self.write_gathered(table)?;
            self.carried.pending.add(gathered, table, row);
        }
        if self.carried.pending.is_full() { self.flush() } else { Ok(()) }
    }

    /// Writes all gathered rows.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.write_gathered(Tables::MAX)
    }

    fn write_gathered(&mut self, tables: Tables) -> Result<()> {
        if !self.carried.pending.has(tables) {
            return Ok(());
        }
        for batch in self.carried.pending.take(tables) {
            let written = match self.waits() {
                true => self.run(&batch.sql, &batch.values).map(drop),
                false => self.run_unwatched(&batch.sql, &batch.values),
            };
            if let Err(error) = written {
                // The rows may be those of another closure, which gets the error when each writes its own rows.
                if !self.careful {
                    self.trouble.get_or_insert(Error::Undo);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Called before a statement: writes the rows that it may read, and discards cached values that it may change.
    fn prepare_for(&mut self, sql: &str, writes: bool) -> Result<()> {
        let Carried { memory, pending, named, .. } = &mut self.carried;
        let matters = pending.has(Tables::MAX) || (writes && memory.has(Tables::MAX));
        if !matters {
            return Ok(());
        }
        let tables = named.by(sql);
        if writes {
            memory.forget(tables);
        }
        self.write_gathered(tables)
    }

    /// Runs a statement; returns the number of affected rows.
    pub fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64> {
        self.prepare_for(sql, true)?;
        self.touched = true;
        self.tally.wrote();
        self.run(sql, values)
    }

    fn run(&mut self, sql: &str, values: &[Value]) -> Result<u64> {
        debug_assert!(in_order(sql), "placeholders out of order: {sql}");
        self.begin(sql, values);
        let done = match &mut self.session {
            Session::Sqlite(conn) => conn
                .prepare_cached(sql)
                .and_then(|mut statement| statement.execute(rusqlite::params_from_iter(values)))
                .map(|rows| rows as u64)
                .map_err(Error::from),
            Session::Postgres(conn) => conn.execute(sql, values),
        };
        self.tally.rows(done.as_ref().map_or(0, |rows| *rows));
        self.note(done)
    }

    /// Runs a statement whose result the closure does not need. PostgreSQL executes it while the closure continues. If it
    /// fails, a later statement or the commit reports it, and all closures of the transaction run again, one by one: then
    /// this call itself fails, as [`Tx::execute`] does.
    pub fn send(&mut self, sql: &str, values: &[Value]) -> Result<()> {
        let writes = !sql.starts_with("SELECT");
        if self.waits() {
            return if writes { self.execute(sql, values).map(drop) } else { self.each(sql, values, |_| Ok(())) };
        }
        self.prepare_for(sql, writes)?;
        self.touched |= writes;
        if writes {
            self.tally.wrote();
        }
        self.run_unwatched(sql, values)
    }

    /// Whether each statement waits for its result.
    fn waits(&self) -> bool {
        self.careful || self.dialect() == Dialect::Sqlite
    }

    fn run_unwatched(&mut self, sql: &str, values: &[Value]) -> Result<()> {
        debug_assert!(in_order(sql), "placeholders out of order: {sql}");
        statement_ran();
        seen::statement(self.dialect(), sql, values);
        self.tally.statement(values);
        let done = match &mut self.session {
            Session::Sqlite(_) => Ok(()),
            Session::Postgres(conn) => conn.send(sql, values),
        };
        self.note(done)
    }

    /// Calls `take` for every row of the result.
    pub fn each<E: From<Error>>(
        &mut self,
        sql: &str,
        values: &[Value],
        mut take: impl FnMut(&Row) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut refused = Ok(());
        self.rows(sql, values, &mut |row| {
            refused = take(row);
            refused.is_ok()
        })?;
        refused
    }

    /// Returns all rows, as read by `take`.
    pub fn all<T, E: From<Error>>(
        &mut self,
        sql: &str,
        values: &[Value],
        mut take: impl FnMut(&Row) -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        let mut found = Vec::new();
        self.each(sql, values, |row| {
            found.push(take(row)?);
            Ok::<(), E>(())
        })?;
        Ok(found)
    }

    /// Returns the first row, if any.
    pub fn first<T, E: From<Error>>(
        &mut self,
        sql: &str,
        values: &[Value],
        mut take: impl FnMut(&Row) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        let mut found = None;
        self.each(sql, values, |row| {
            if found.is_none() {
                found = Some(take(row)?);
            }
            Ok::<(), E>(())
        })?;
        Ok(found)
    }

    /// Calls `take` for every row until it returns false. Compiled once: a copy of it and of the driver for every closure
    /// took a quarter of the build.
    pub(crate) fn rows(&mut self, sql: &str, values: &[Value], take: &mut dyn FnMut(&Row) -> bool) -> Result<()> {
        debug_assert!(in_order(sql), "placeholders out of order: {sql}");
        let writes = !sql.starts_with("SELECT");
        self.prepare_for(sql, writes)?;
        self.touched |= writes;
        self.begin(sql, values);
        match &mut self.session {
            Session::Sqlite(conn) => {
                let conn = *conn;
                let statement = conn.prepare_cached(sql).map_err(Error::from);
                let mut statement = self.note(statement)?;
                let rows = statement.query(rusqlite::params_from_iter(values)).map_err(Error::from);
                let mut rows = self.note(rows)?;
                loop {
                    let row = rows.next().map_err(Error::from);
                    let Some(row) = self.note(row)? else { return Ok(()) };
                    self.tally.rows(1);
                    if !take(&Row::Sqlite(row)) {
                        return Ok(());
                    }
                }
            }
            Session::Postgres(conn) => {
                let mut count = 0;
                let done = conn.each(sql, values, &mut |row| {
                    count += 1;
                    take(&Row::Postgres(row))
                });
                self.tally.rows(count);
                self.note(done)
            }
        }
    }

    /// Returns the integer in the first column of the first row; 0 without a row.
    pub fn int(&mut self, sql: &str, values: &[Value]) -> Result<i64> {
        Ok(self.first(sql, values, |row| row.int(0))?.unwrap_or(0))
    }

    /// Runs `work`; if it fails, its writes are rolled back and the transaction continues.
    pub fn savepoint<T, E: From<Error>>(&mut self, work: impl FnOnce(&mut Tx) -> Result<T, E>) -> Result<T, E> {
        let before = std::mem::replace(&mut self.touched, false);
        let name = format!("part_{}", self.depth);
        if self.careful {
            // Rows that are gathered from here on belong to this closure alone.
            self.flush()?;
            self.control(&format!("SAVEPOINT {name}"))?;
        }
        self.depth += 1;
        // A panic in here must leave the same state as an error.
        let done = catch_unwind(AssertUnwindSafe(|| work(self)));
        self.depth -= 1;
        let failed = !matches!(done, Ok(Ok(_)));
        let undone = match (self.careful, failed) {
            (true, true) => {
                self.carried.clear();
                self.control(&format!("ROLLBACK TO SAVEPOINT {name}"))
            }
            (false, true) if self.touched => {
                self.trouble.get_or_insert(Error::Undo);
                Ok(())
            }
            _ => Ok(()),
        };
        let released = if self.careful { self.control(&format!("RELEASE SAVEPOINT {name}")) } else { Ok(()) };
        self.touched |= before;
        match done {
            Err(panic) => resume_unwind(panic),
            Ok(done) => {
                undone?;
                released?;
                done
            }
        }
    }

    /// Runs a control statement. If it fails, the state of the transaction is unknown.
    fn control(&mut self, sql: &str) -> Result<()> {
        let done = self.run_script(sql);
        if let Err(error) = &done {
            self.trouble.get_or_insert(error.clone());
        }
        done
    }

    /// Runs statements without parameters: control statements, and migrations.
    pub(crate) fn script(&mut self, sql: &str) -> Result<()> {
        self.flush()?;
        self.carried.memory.clear();
        self.run_script(sql)
    }

    fn run_script(&mut self, sql: &str) -> Result<()> {
        statement_ran();
        let done = match &mut self.session {
            Session::Sqlite(conn) if sql.contains(';') => conn.execute_batch(sql).map_err(Error::from),
            // One control word, thousands of times a second: worth a cached statement.
            Session::Sqlite(conn) => {
                conn.prepare_cached(sql).and_then(|mut statement| statement.execute([])).map(drop).map_err(Error::from)
            }
            Session::Postgres(conn) => conn.script(sql),
        };
        self.note(done)
    }

    /// Whether the transaction has locked this row and still holds it: rolling back a savepoint would release it.
    pub(crate) fn has_held(&mut self, table: &'static str, id: i64) -> bool {
        match &mut self.session {
            Session::Postgres(conn) if !self.careful => !conn.hold(table, id),
            _ => false,
        }
    }

    /// Removes our own deadline for a statement, until the end of the transaction.
    pub(crate) fn take_time(&mut self) {
        if let Session::Postgres(conn) = &mut self.session {
            conn.take_time();
        }
    }

    pub(crate) fn trouble(&mut self) -> Option<Error> {
        self.trouble.take()
    }

    fn begin(&mut self, sql: &str, values: &[Value]) {
        statement_ran();
        seen::statement(self.dialect(), sql, values);
        self.tally.statement(values);
        self.tally.waited();
    }

    fn note<T>(&mut self, done: Result<T>) -> Result<T> {
        if let Err(error) = &done {
            // PostgreSQL takes no further statement after one that failed.
            self.touched = true;
            let grave = error.is_retryable()
                || matches!(error, Error::Undo | Error::Io(_) | Error::DiskFull | Error::Unavailable(_));
            if grave && self.trouble.is_none() {
                self.trouble = Some(error.clone());
            }
        }
        done
    }
}

/// To SQLite `$2` is a name, and names are numbered in order of first use: only placeholders in order mean the same on
/// both databases.
fn in_order(sql: &str) -> bool {
    let mut highest = 0;
    sql.split('$').skip(1).all(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let number = digits.parse().unwrap_or(0);
        let fits = number <= highest + 1;
        highest = highest.max(number);
        fits
    })
}
