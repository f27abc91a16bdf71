//! Copies all tables from one database to another, of either kind, and compares them afterwards.
//!
//! Rows are copied in the order of their primary keys, in batches that are committed one by one. So a copy that was killed
//! goes on after the last row that arrived. The tables and their columns come from the schema of the databases.

mod schema;

use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::address::Address;
use crate::copy::must_be_direct;
use crate::migrate::{self, COPYING};
use crate::{Database, Error, Migration, Options, Result, Row, Store, Tx, Value, postgres, sqlite};
use schema::Table;

/// A batch is complete with this many rows or bytes.
const MAX_ROWS: usize = 1000;
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// The most values of a statement.
const MAX_VALUES: usize = 8000;
/// Time limit of a statement; nothing waits for it.
const TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// How long a copy waits for others that write to the source.
const LOCK_SECONDS: u32 = 30;
/// Keeps a second copy away from a PostgreSQL database.
const LOCK: &str = "SELECT CASE WHEN pg_try_advisory_lock(7120563) THEN 1 ELSE 0 END::BIGINT";

/// A table that was copied and compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transferred {
    /// Its name.
    pub table: String,
    /// Its rows.
    pub rows: u64,
    /// The SHA-256 of its rows, which is the same in both databases.
    pub sha256: [u8; 32],
}

/// What a copy is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferStep<'s> {
    /// Copying a table: its name, and how many rows have arrived.
    Copying(&'s str, u64),
    /// Comparing a table: its name, and how many rows have been read.
    Comparing(&'s str, u64),
}

/// A copy from one database to another.
pub struct Transfer<'t> {
    /// Where the rows are. Nobody can write to it meanwhile.
    pub from: &'t Database,
    /// Where they go: nothing, or what an earlier attempt left.
    pub to: &'t Database,
    /// The schema of both.
    pub migrations: &'t [Migration],
    /// Identifies the content of the source: an attempt goes on only if it is the same as before.
    pub source: &'t str,
}

/// A connection to either database.
enum Side {
    Sqlite(rusqlite::Connection),
    Postgres(Box<postgres::Connection>),
}

impl Side {
    fn open(database: &Database) -> Result<Side> {
        match database {
            Database::Sqlite(path) => Ok(Side::Sqlite(sqlite::open(path)?)),
            Database::Postgres(url) => {
                let address = Address::parse(url)?;
                must_be_direct(&address, "kantoor copy")?;
                let conn = postgres::Connection::open(&address, TIMEOUT, TIMEOUT)?;
                Ok(Side::Postgres(Box::new(conn)))
            }
        }
    }

    fn tx(&mut self) -> Tx<'_> {
        match self {
            Side::Sqlite(conn) => Tx::sqlite(conn),
            Side::Postgres(conn) => Tx::postgres(conn),
        }
    }

    /// Begins a snapshot, and keeps everybody from writing until it ends: a later write would be acknowledged and not copied.
    fn begin_snapshot(&mut self) -> Result<()> {
        let tables = schema::names(&mut self.tx())?;
        let (locked, who) = match self {
            Side::Sqlite(conn) => {
                let begun = conn.execute_batch("BEGIN IMMEDIATE");
                (begun.and_then(|()| conn.pragma_update(None, "query_only", true)).map_err(Error::from), "")
            }
            Side::Postgres(_) if tables.is_empty() => return Ok(()),
            Side::Postgres(conn) => {
                let listed: Vec<String> = tables.iter().map(|table| format!("\"{table}\"")).collect();
                // The first query fixes what the transaction sees, so the lock comes before it.
                let locked = conn.script(&format!(
                    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
                     SET LOCAL lock_timeout = '{LOCK_SECONDS}s';
                     LOCK TABLE {} IN SHARE MODE",
                    listed.join(", ")
                ));
                (locked, " as a user who may write to its tables; a standby cannot be the source")
            }
        };
        locked.map_err(|error| {
            Error::Copy(format!(
                "the source cannot be locked against writes: {error}; stop everything that uses it, and copy again{who}"
            ))
        })
    }

    /// Prepares a target: tables are filled one by one, so references are checked at the end.
    fn prepare_target(&mut self) -> Result<()> {
        match self {
            Side::Sqlite(conn) => {
                conn.pragma_update(None, "foreign_keys", false)?;
                Ok(conn.pragma_update(None, "synchronous", "full")?)
            }
            Side::Postgres(_) => match self.tx().int(LOCK, &[])? {
                1 => Ok(()),
                _ => Err(Error::Copy("another copy to this database is in progress".to_string())),
            },
        }
    }
}

impl Transfer<'_> {
    /// Copies what has not been copied yet, and compares everything.
    pub fn run(&self, progress: &mut dyn FnMut(TransferStep)) -> Result<Vec<Transferred>> {
        must_exist(self.from)?;
        let mut from = Side::open(self.from)?;
        from.begin_snapshot()?;
        self.check_source(&mut from)?;
        self.prepare()?;
        let mut to = Side::open(self.to)?;
        to.prepare_target()?;
        let tables = schema::shared(&mut from.tx(), &mut to.tx())?;
        for table in &tables {
            copy(table, &mut from, &mut to, progress)?;
        }
        let mut compared = Vec::new();
        for table in &tables {
            let theirs = digest(table, &mut from, progress)?;
            let ours = digest(table, &mut to, progress)?;
            if theirs != ours {
                return Err(Error::Copy(format!(
                    "the table {} differs: {} rows in the source, {} in the target; empty the target and copy again",
                    table.name, theirs.rows, ours.rows
                )));
            }
            compared.push(ours);
        }
        finish(&tables, &mut to)?;
        Ok(compared)
    }

    fn check_source(&self, from: &mut Side) -> Result<()> {
        let mut tx = from.tx();
        let has = |tx: &mut Tx, table: &str| {
            let sql = tx.dialect().has_table();
            Ok::<_, Error>(tx.int(sql, &[table.into()])? > 0)
        };
        if has(&mut tx, COPYING)? {
            return Err(Error::Copy("the source is itself the target of a copy that has not finished".to_string()));
        }
        if !has(&mut tx, "schema_migrations")? {
            return Err(Error::Copy("the source contains no data of Kantoor".to_string()));
        }
        let (database, program) = (migrate::version(&mut tx)?, migrate::newest(self.migrations));
        match database.cmp(&program) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => Err(Error::NewerSchema { database, program }),
            std::cmp::Ordering::Less => Err(Error::Copy(format!(
                "the source has schema {database}, and this program {program}; run `kantoor migrate` on the source first"
            ))),
        }
    }

    /// Creates the tables of the target, or checks that they are those of an earlier attempt.
    fn prepare(&self) -> Result<()> {
        let mut options = Options::new(self.to.clone());
        (options.writers, options.readers) = (1, 1);
        let store = Store::open(&options)?;
        let tables = store.read_now(schema::names)?;
        if tables.is_empty() {
            let source = self.source.to_string();
            store.write_now(0, move |tx: &mut Tx| {
                let sql = format!("CREATE TABLE {COPYING} (name TEXT PRIMARY KEY, state TEXT NOT NULL)");
                tx.script(&sql)?;
                let sql = format!("INSERT INTO {COPYING} (name, state) VALUES ('', $1)");
                tx.execute(&sql, &[(&source).into()]).map(drop)
            })?;
        } else if !tables.iter().any(|table| table == COPYING) {
            return Err(Error::Copy("the target is not empty; copy to a new database".to_string()));
        }
        let began = store.read_now(|tx: &mut Tx| state(tx, ""))?;
        if began.as_deref() != Some(self.source) {
            return Err(Error::Copy(
                "the target has a part of another copy, or the source has changed since; empty the target and copy again"
                    .to_string(),
            ));
        }
        migrate::apply_while_copying(&store, self.migrations).map(drop)
    }
}

fn must_exist(database: &Database) -> Result<()> {
    match database {
        Database::Sqlite(path) if !Path::is_file(path) => {
            Err(Error::Unavailable(format!("the file {} does not exist", path.display())))
        }
        _ => Ok(()),
    }
}

/// Returns what is recorded about a table.
fn state(tx: &mut Tx, table: &str) -> Result<Option<String>> {
    let sql = format!("SELECT state FROM {COPYING} WHERE name = $1");
    tx.first(&sql, &[table.into()], |row| Ok(row.text(0)?.to_string()))
}

fn record(tx: &mut Tx, table: &str, state: &str) -> Result<()> {
    let sql = format!(
        "INSERT INTO {COPYING} (name, state) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET state = excluded.state"
    );
    tx.execute(&sql, &[table.into(), state.into()]).map(drop)
}

/// Copies the rows of a table that are not there yet.
fn copy(table: &Table, from: &mut Side, to: &mut Side, progress: &mut dyn FnMut(TransferStep)) -> Result<()> {
    let state = state(&mut to.tx(), &table.name)?;
    if state.as_deref() == Some("done") {
        return Ok(());
    }
    let (mut after, mut count) = (None, 0);
    if state.is_none() {
        // Migrations may have left rows.
        in_transaction(to, |tx| {
            tx.execute(&format!("DELETE FROM \"{}\"", table.name), &[])?;
            record(tx, &table.name, "begun")
        })?;
    } else {
        after = last_key(table, &mut to.tx())?;
        let sql = format!("SELECT count(*) FROM \"{}\"", table.name);
        count = to.tx().int(&sql, &[])?.unsigned_abs();
    }
    loop {
        progress(TransferStep::Copying(&table.name, count));
        let batch = read(table, &mut from.tx(), after.as_deref(), MAX_ROWS)?;
        let Some(last) = batch.last() else { break };
        after = Some(table.key_of(last));
        count += batch.len() as u64;
        in_transaction(to, |tx| insert(table, tx, &batch))?;
    }
    in_transaction(to, |tx| record(tx, &table.name, "done"))
}

fn in_transaction(side: &mut Side, work: impl FnOnce(&mut Tx) -> Result<()>) -> Result<()> {
    let mut tx = side.tx();
    tx.script("BEGIN")?;
    match work(&mut tx).and_then(|()| tx.script("COMMIT")) {
        Ok(()) => Ok(()),
        Err(error) => {
            let _ = tx.script("ROLLBACK");
            Err(error)
        }
    }
}

/// The key of the last row of a table.
fn last_key(table: &Table, tx: &mut Tx) -> Result<Option<Vec<Value<'static>>>> {
    let order: Vec<String> = table.key.iter().map(|at| format!("\"{}\" DESC", table.columns[*at])).collect();
    let sql = format!("SELECT {} FROM \"{}\" ORDER BY {} LIMIT 1", table.listed(), table.name, order.join(", "));
    Ok(tx.first(&sql, &[], |row| values(table, row))?.map(|row| table.key_of(&row)))
}

/// Reads rows after a key, in the order of keys: up to `most`, or fewer if they are large.
fn read(table: &Table, tx: &mut Tx, after: Option<&[Value]>, most: usize) -> Result<Vec<Vec<Value<'static>>>> {
    let sql = table.select(after.is_some(), most);
    let (mut rows, mut bytes, mut failed) = (Vec::new(), 0, Ok(()));
    tx.rows(&sql, after.unwrap_or_default(), &mut |row| match values(table, row) {
        Ok(row) => {
            bytes += row.iter().map(size).sum::<usize>();
            rows.push(row);
            bytes < MAX_BYTES
        }
        Err(error) => {
            failed = Err(error);
            false
        }
    })?;
    failed.map(|()| rows)
}

fn values(table: &Table, row: &Row) -> Result<Vec<Value<'static>>> {
    let columns = table.columns.iter().enumerate();
    columns.map(|(at, column)| row.value(at).map_err(|error| error.at(&table.name, "", column))).collect()
}

fn size(value: &Value) -> usize {
    match value {
        Value::Int(_) => 8,
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
    }
}

fn insert(table: &Table, tx: &mut Tx, batch: &[Vec<Value<'static>>]) -> Result<()> {
    let own = tx.dialect().own_columns();
    let own: Vec<(usize, i64)> = own
        .iter()
        .filter(|(name, _, _)| *name == table.name)
        .filter_map(|(_, column, value)| Some((table.columns.iter().position(|known| known == column)?, *value)))
        .collect();
    for rows in batch.chunks((MAX_VALUES / table.columns.len().max(1)).max(1)) {
        let mut all: Vec<Value> = rows.iter().flatten().cloned().collect();
        for (at, value) in &own {
            all.iter_mut().skip(*at).step_by(table.columns.len()).for_each(|cell| *cell = Value::Int(*value));
        }
        tx.execute(&table.insert(tx.dialect(), rows.len()), &all)?;
    }
    Ok(())
}

/// Counts and hashes the rows of a table, without what databases differ in.
fn digest(table: &Table, side: &mut Side, progress: &mut dyn FnMut(TransferStep)) -> Result<Transferred> {
    let mut tx = side.tx();
    let skipped: Vec<usize> = tx
        .dialect()
        .own_columns()
        .iter()
        .filter(|(name, _, _)| *name == table.name)
        .filter_map(|(_, column, _)| table.columns.iter().position(|known| known == column))
        .collect();
    let (mut hash, mut count, mut failed) = (Sha256::new(), 0, Ok(()));
    tx.rows(&table.select_all(), &[], &mut |row| {
        count += 1;
        if count % 1000 == 0 {
            progress(TransferStep::Comparing(&table.name, count));
        }
        match values(table, row) {
            Ok(row) => {
                let kept = row.iter().enumerate().filter(|(at, _)| !skipped.contains(at));
                kept.for_each(|(_, value)| add(&mut hash, value));
                true
            }
            Err(error) => {
                failed = Err(error);
                false
            }
        }
    })?;
    failed?;
    Ok(Transferred { table: table.name.clone(), rows: count, sha256: hash.finalize().into() })
}

/// Each value is preceded by its type and length, so that different rows are never the same bytes.
fn add(hash: &mut Sha256, value: &Value) {
    let (kind, bytes): (u8, &[u8]) = match value {
        Value::Int(value) => {
            hash.update([0]);
            return hash.update(value.to_be_bytes());
        }
        Value::Text(text) => (1, text.as_bytes()),
        Value::Bytes(bytes) => (2, bytes),
    };
    hash.update([kind]);
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

/// Makes the target a database like any other.
fn finish(tables: &[Table], to: &mut Side) -> Result<()> {
    match to {
        Side::Sqlite(conn) => {
            let broken: i64 = conn.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))?;
            if broken > 0 {
                return Err(Error::Copy(format!("{broken} rows refer to rows that do not exist")));
            }
        }
        Side::Postgres(conn) => {
            for table in tables {
                for column in &table.counted {
                    let name = &table.name;
                    conn.script(&format!(
                        "SELECT setval(pg_get_serial_sequence('\"{name}\"', '{column}'),
                                       coalesce((SELECT max(\"{column}\") FROM \"{name}\"), 0) + 1, false)"
                    ))?;
                }
            }
            // Plans of a full database, from the first request on.
            conn.script("ANALYZE")?;
        }
    }
    to.tx().script(&format!("DROP TABLE {COPYING};"))?;
    if let Side::Sqlite(conn) = to {
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_cannot_be_locked_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.db");
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("CREATE TABLE a (id INTEGER PRIMARY KEY); BEGIN IMMEDIATE").unwrap();
        // A connection of the program would wait for half a minute.
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.busy_timeout(Duration::ZERO).unwrap();
        let mut source = Side::Sqlite(conn);
        let why = source.begin_snapshot().unwrap_err().to_string();
        assert!(why.starts_with("the source cannot be locked against writes: "), "{why}");
        assert!(why.ends_with("; stop everything that uses it, and copy again"), "{why}");
        other.execute_batch("COMMIT").unwrap();
        source.begin_snapshot().unwrap();
    }
}
