//! Copies the whole database as a consistent snapshot, while writes continue.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::address::Address;
use crate::postgres;
use crate::{Database, Error, Options, Readers, Result, Store, Tx, sqlite};

/// Pages copied at a time: 8 MB.
const PAGES: i32 = 2048;

/// Timeout of a statement while PostgreSQL is copied: nothing waits for it.
const COPY_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// The name of the copy of a SQLite database: the one that is served.
pub const SQLITE_COPY: &str = "kantoor.db";
/// The name of the copy of a PostgreSQL: what `pg_restore` reads.
pub const POSTGRES_COPY: &str = "kantoor.dump";

impl Store {
    /// Copies the database into `folder`, then runs `work` on the same snapshot. The copy is on disk when `work`
    /// starts. `progress` receives the number of pages copied, and the total.
    pub fn copy_into<T, E: From<Error>>(
        &self,
        folder: &Path,
        progress: &mut dyn FnMut(u64, u64),
        work: impl Fn(&mut Tx) -> Result<T, E>,
    ) -> Result<(PathBuf, T), E> {
        match &self.inner.readers {
            Readers::Sqlite(pool) => {
                let copy = folder.join(SQLITE_COPY);
                copy_sqlite(pool.path(), &copy, progress)?;
                let store = Store::open_to_read(&Options::new(Database::Sqlite(copy.clone())))?;
                Ok((copy, store.read_now(work)?))
            }
            Readers::Postgres(pool) => {
                let copy = folder.join(POSTGRES_COPY);
                let done = dump(pool.primary.address(), &copy, work)?;
                Ok((copy, done))
            }
        }
    }
}

/// Copies all pages in one read transaction: writes continue, and are not in the copy.
fn copy_sqlite(path: &Path, copy: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
    let source = sqlite::open(path)?;
    source.pragma_update(None, "query_only", true)?;
    // Without a transaction, each write of another connection would restart the copy.
    source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema;")?;
    let mut target = Connection::open(copy)?;
    // It is not visible to others before it is complete and synced.
    target.pragma_update(None, "journal_mode", "off")?;
    target.pragma_update(None, "synchronous", "off")?;
    let backup = Backup::new(&source, &mut target)?;
    loop {
        let step = backup.step(PAGES)?;
        let state = backup.progress();
        let count = |pages: i32| u64::try_from(pages).unwrap_or_default();
        progress(count(state.pagecount - state.remaining), count(state.pagecount));
        match step {
            StepResult::Done => break,
            StepResult::More => {}
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    drop(backup);
    drop(target);
    File::open(copy).and_then(|file| file.sync_all()).map_err(|error| failed(&error))
}

fn failed(error: &std::io::Error) -> Error {
    if error.kind() == ErrorKind::StorageFull { Error::DiskFull } else { Error::Copy(error.to_string()) }
}

/// `pg_dump`, on a snapshot that `work` sees too.
fn dump<T, E: From<Error>>(address: &Address, copy: &Path, work: impl Fn(&mut Tx) -> Result<T, E>) -> Result<T, E> {
    let mut conn = postgres::Connection::open(address, COPY_TIMEOUT, COPY_TIMEOUT)?;
    conn.script(
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
         SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0",
    )?;
    let exported = conn.query("SELECT pg_export_snapshot()", &[])?;
    let snapshot: String = exported.first().map(|row| row.get(0)).unwrap_or_default();
    let mut dump = Command::new("pg_dump");
    dump.args(["--format=custom", "--no-owner", "--no-privileges", "--snapshot", &snapshot, "--file"]).arg(copy);
    run(&mut dump, "pg_dump", address)?;
    // Reads the dump to its end, to check that it is complete.
    let mut read = Command::new("pg_restore");
    run(read.arg("--file=/dev/null").arg(copy), "pg_restore", address)?;
    let done = work(&mut Tx::postgres(&mut conn))?;
    conn.script("COMMIT")?;
    Ok(done)
}

/// Rejects a pooler for what changes the state of its session, which the pooler would give to others.
pub(crate) fn must_be_direct(address: &Address, name: &str) -> Result<()> {
    if address.is_pooled() {
        let what = "does not work with pool_mode=transaction; use the address of PostgreSQL itself for this command";
        return Err(Error::Copy(format!("{name} {what}")));
    }
    Ok(())
}

pub(crate) fn run(command: &mut Command, name: &str, address: &Address) -> Result<()> {
    must_be_direct(address, name)?;
    // Certificates and passwords are looked for there, and a folder that may not be entered is an error. Without it, the home
    // is that of the user: root takes on the owner of the data folder, but not the environment.
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".postgresql").metadata());
    if home.is_some_and(|found| found.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)) {
        command.env_remove("HOME");
    }
    let done = command.envs(address.environment()).stdin(Stdio::null()).output();
    let done = done.map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::Copy(format!(
            "{name} is not installed; it is part of PostgreSQL's client programs (postgresql-client)"
        )),
        _ => Error::Copy(format!("{name} cannot be run: {error}")),
    })?;
    if done.status.success() {
        return Ok(());
    }
    Err(Error::Copy(format!("{name} failed: {}", String::from_utf8_lossy(&done.stderr).trim())))
}
