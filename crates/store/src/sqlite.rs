use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::checkpoint::Checkpoints;
use crate::writer::Session;
use crate::{Error, Result, Tx, faults};

/// Statements kept per connection: every route has one or two.
const STATEMENTS: usize = 256;
/// The one connection that writes has those of all writes, and several for rows that are written together.
const WRITER_STATEMENTS: usize = 1024;

/// The size of the pages of a new file. A document and its log line have about two kilobytes each: of pages with four half
/// would stay empty. A file that is there already keeps its size.
const PAGE: i64 = 8192;

/// The cache of the one connection that writes, in kilobytes. Each account has its own page of each index, so the writes of 16
/// accounts change more pages in turn than 2 MB hold, and read them again for every commit. More than this would gain little for
/// the memory that it takes.
const WRITER_CACHE: i64 = 4_000;

/// Pages that a transaction changes are kept in memory up to this many bytes.
const SPILL: i64 = 32 * 1024 * 1024;

/// How long another process (a `kantoor key create` beside the server) may hold the file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn open(path: &Path) -> Result<Connection> {
    let mut conn = Connection::open(path)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.busy_handler(Some(|tries: i32| {
        // Short naps: under load the writer leaves only small gaps between its commits.
        std::thread::sleep(Duration::from_micros(250));
        u128::from(tries.unsigned_abs()) * 250 < LOCK_TIMEOUT.as_micros()
    }))?;
    conn.pragma_update(None, "foreign_keys", true)?;
    // Plans do not depend on the values that are bound. Otherwise SQLite parses and plans a statement anew whenever it gets
    // other values, which took a seventh of the time of a write and a quarter of that of a list.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // 2 MB a connection hold the upper levels of the trees; more made no difference to reads of a
    // million records, where the time goes into the leaves.
    conn.pragma_update(None, "cache_size", -2_000)?;
    // A commit of many accounts changes more pages than that. Without this, they would be written to the log before the
    // commit, and again whenever another request of the same commit changes them.
    conn.pragma_update(None, "cache_spill", SPILL / PAGE)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    Ok(conn)
}

/// Connections for reading. A reader runs on the thread that asks, so there are never more than
/// there are threads.
pub(crate) struct Pool {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub(crate) fn new(path: &Path) -> Pool {
        Pool { path: path.to_path_buf(), idle: Mutex::new(Vec::new()) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` in a transaction that only reads.
    pub(crate) fn read(&self, work: &mut dyn FnMut(&mut Tx)) -> Result<()> {
        let conn = self.take()?;
        let mut tx = Tx::sqlite(&conn);
        tx.script("BEGIN")?;
        // A panic drops the connection, and with it the snapshot.
        work(&mut tx);
        if tx.script("COMMIT").is_ok() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
        }
        Ok(())
    }

    fn take(&self) -> Result<Connection> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(conn) => Ok(conn),
            None => {
                let conn = open(&self.path)?;
                conn.pragma_update(None, "query_only", true)?;
                Ok(conn)
            }
        }
    }
}

/// Puts the file in WAL mode, where it stays. Two processes that start together on a new file get
/// in each other's way here, and SQLite does not wait by itself.
fn wal_mode(conn: &Connection) -> Result<String> {
    let started = Instant::now();
    loop {
        let mode = conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0));
        match mode.map_err(Error::from) {
            Err(Error::Unavailable(_)) if started.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(5));
            }
            mode => return mode,
        }
    }
}

/// The one connection that writes.
pub(crate) struct Writing {
    /// Ends before the connection does.
    checkpoints: Checkpoints,
    conn: Connection,
    rested: Instant,
    /// Changes when another connection commits.
    version: i64,
}

impl Writing {
    pub(crate) fn open(path: &Path) -> Result<Writing> {
        let conn = open(path)?;
        conn.pragma_update(None, "cache_size", -WRITER_CACHE)?;
        conn.pragma_update(None, "page_size", PAGE)?;
        let mode = wal_mode(&conn)?;
        if mode != "wal" {
            return Err(Error::Unavailable(format!(
                "{} cannot be switched to WAL mode (its mode is '{mode}')",
                path.display()
            )));
        }
        conn.set_prepared_statement_cache_capacity(WRITER_STATEMENTS);
        let level = if faults::is_broken("sync") { "off" } else { "full" };
        conn.pragma_update(None, "synchronous", level)?;
        let checkpoints = Checkpoints::start(open(path)?, &conn)?;
        Ok(Writing { conn, checkpoints, rested: Instant::now(), version: 0 })
    }
}

impl Session for Writing {
    const SHARES_KEYS: bool = false;

    fn begin(&mut self, _careful: bool) -> Result<()> {
        Tx::sqlite(&self.conn).script("BEGIN IMMEDIATE")
    }

    fn tx(&mut self) -> Result<Tx<'_>> {
        Ok(Tx::sqlite(&self.conn))
    }

    fn commit(&mut self) -> Result<()> {
        Tx::sqlite(&self.conn).script("COMMIT")
    }

    fn rollback(&mut self) {
        // SQLite has rolled back by itself after some errors; then there is nothing to do.
        if !self.conn.is_autocommit() {
            let _ = Tx::sqlite(&self.conn).script("ROLLBACK");
        }
    }

    fn is_alone(&mut self) -> bool {
        let version =
            self.conn.prepare_cached("PRAGMA data_version").and_then(|mut asked| asked.query_one([], |row| row.get(0)));
        let before = std::mem::replace(&mut self.version, version.unwrap_or(0));
        self.version != 0 && self.version == before
    }

    fn rest(&mut self) {
        self.checkpoints.committed(&self.conn);
        // Under full load the file would never be free for another process: let one in.
        if self.rested.elapsed() > Duration::from_millis(200) {
            std::thread::sleep(Duration::from_micros(600));
            self.rested = Instant::now();
        }
    }
}
