//! One server per SQLite file. A process that owns the file knows at its start that no other worker exists, so it takes over
//! the work of one that was killed at once and need not wait for leases to expire.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt;

use crate::accounts::SHARED;
use crate::app::App;
use crate::config::Config;
use crate::error::{Code, Error, Result};
use crate::private;
use crate::registry::registry;

/// The file next to the database that is locked while a process serves it. It contains the id of that process.
pub const LOCK: &str = "kantoor.lock";

/// The right to be the only server of a SQLite file, which ends with the process, also if it is killed.
pub struct Alone {
    /// None if others may serve the database too, or if the file system has no locks.
    held: Option<File>,
}

/// Claims the database before anything in it is changed; an error if another server has it. Servers share a PostgreSQL.
pub fn claim(config: &Config) -> Result<Alone> {
    try_claim(config)?.map_err(|server| {
        let place = config.data.display();
        let message = format!(
            "Another {server} is using the data folder {place}. Stop it first, or choose another folder with --data. Several servers can share a PostgreSQL database."
        );
        Error::new(Code::Unavailable, message)
    })
}

/// Claims the database, or returns which server has it: `server (process 12)`.
pub fn try_claim(config: &Config) -> Result<std::result::Result<Alone, String>> {
    if !config.database_url.is_empty() {
        return Ok(Ok(Alone { held: None }));
    }
    private::create_folder(&config.data).map_err(|error| {
        store::Error::Unavailable(format!("cannot create the folder {}: {error}", config.data.display()))
    })?;
    let path = config.data.join(LOCK);
    let unusable = |error: std::io::Error| {
        Error::new(Code::Unavailable, format!("Cannot create the file {}: {error}.", path.display()))
    };
    let mut options = File::options();
    let options = options.create(true).truncate(false).read(true).write(true).mode(0o600);
    let mut file = options.open(&path).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {
            // The id is for people; the lock does not depend on it.
            let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
            Ok(Ok(Alone { held: Some(file) }))
        }
        Err(TryLockError::WouldBlock) => Ok(Err(holder(&mut file))),
        Err(TryLockError::Error(cause)) => {
            let file = path.display();
            tracing::warn!(%file, %cause, "The file cannot be locked. Make sure that no other server uses this data folder.");
            Ok(Ok(Alone { held: None }))
        }
    }
}

/// Names the server that has locked the file.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let _ = file.read_to_string(&mut text);
    match text.trim() {
        "" => "server".to_string(),
        id => format!("server (process {id})"),
    }
}

impl Alone {
    /// Ends all leases, unless other processes may serve this database.
    pub fn take_over(&self, app: &App) -> Result<()> {
        if self.held.is_none() || app.store.is_shared() {
            return Ok(());
        }
        let tables = registry().leases;
        app.store.write_now(SHARED, move |tx| tables.iter().try_for_each(|table| table.end_all(tx)))
    }
}
