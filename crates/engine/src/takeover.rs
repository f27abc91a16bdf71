//! Takes over the work of a process that was killed. A process that owns a SQLite file knows at its start that no other
//! worker exists, and need not wait for leases to expire.

use std::fs::{File, TryLockError};

use crate::accounts::SHARED;
use crate::app::App;
use crate::error::{Code, Error, Result};
use crate::registry::registry;

/// The file next to the database that is locked while a process serves it.
const LOCK: &str = "kantoor.lock";

/// Ends all leases, unless other processes may serve this database. The lock is held as long as the returned file
/// exists.
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
        // Another process, or a file system without locks.
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => Ok(None),
    }
}
