//! Work that a process had under way when it was killed. Whoever serves a SQLite file alone knows at its start that nobody works on
//! anything, and need not wait for the leases to expire.

use std::fs::{File, TryLockError};

use crate::accounts::SHARED;
use crate::app::App;
use crate::error::{Code, Error, Result};
use crate::registry::registry;

/// The file beside the database that is locked while somebody serves it.
const LOCK: &str = "kantoor.lock";

/// Ends all leases, unless others may serve this database too. Who serves alone does so while the answer lives.
pub fn take_over(app: &App) -> Result<Option<File>> {
    if app.store.is_shared() {
        return Ok(None);
    }
    let path = app.config.data.join(LOCK);
    let unusable = |error: std::io::Error| {
        Error::new(Code::Unavailable, format!("Cannot create the file {}: {error}.", path.display()))
    };
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {
            let tables = registry().leases;
            app.store.write_now(SHARED, move |tx| tables.iter().try_for_each(|table| table.end_all(tx)))?;
            Ok(Some(file))
        }
        // Another process, or a disk that has no locks.
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => Ok(None),
    }
}
