//! Work that a process had under way when it was killed. Others take it over when its leases run out; but who
//! serves a SQLite file alone knows at its start that nobody works on anything, and need not wait for that. On PostgreSQL a
//! node that misses its heartbeats loses them (`nodes.rs`).

use std::fs::{File, TryLockError};

use store::{Dialect, Tx};

use crate::app::App;
use crate::error::{Code, Error, Result};
use crate::jobs::SHARED;

/// The file beside the database that is locked while somebody serves it.
const LOCK: &str = "kantoor.lock";

/// Ends all leases, unless others may serve this database too. Who serves alone does so while the answer lives.
pub fn take_over(app: &App) -> Result<Option<File>> {
    if app.store.dialect() != Dialect::Sqlite {
        return Ok(None);
    }
    let path = app.config.data.join(LOCK);
    let unusable = |error: std::io::Error| {
        Error::new(Code::Unavailable, format!("Cannot create the file {}: {error}.", path.display()))
    };
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {
            app.store.write_now(SHARED, end_all)?;
            Ok(Some(file))
        }
        // Another process, or a disk that has no locks.
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => Ok(None),
    }
}

/// Ends the leases of a node that is gone.
pub fn end_of(tx: &mut Tx, node: &str) -> Result<()> {
    let own = [node.into()];
    tx.execute("UPDATE jobs SET lease_until = 0 WHERE state = 'running' AND node = $1", &own)?;
    tx.execute("UPDATE runs SET lease_until = 1 WHERE lease_until > 0 AND node = $1", &own)?;
    tx.execute("UPDATE webhook_deliveries SET due_at = 1 WHERE due_at > 0 AND status = 'sending' AND node = $1", &own)?;
    Ok(())
}

/// The claims stay: whoever should come back after all changes nothing.
fn end_all(tx: &mut Tx) -> Result<()> {
    tx.execute("UPDATE jobs SET lease_until = 0 WHERE state = 'running'", &[])?;
    tx.execute("UPDATE runs SET lease_until = 1 WHERE lease_until > 0", &[])?;
    tx.execute("UPDATE webhook_deliveries SET due_at = 1 WHERE due_at > 0 AND status = 'sending'", &[])?;
    Ok(())
}
