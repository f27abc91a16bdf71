use std::any::Any;

use crate::client::ends_connection;

/// What can go wrong below the business code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A unique index refused the row.
    Unique(String),
    /// Another transaction won; running the closure again may succeed.
    Conflict(String),
    /// A closure failed after it had written, in a transaction without savepoints: all of it is
    /// run again with them. Never leaves the store.
    Undo,
    /// The connection is lost.
    Disconnected(String),
    /// The disk is full; nothing was written.
    DiskFull,
    /// The write queue is full.
    Overloaded,
    /// The database cannot be used now.
    Unavailable(String),
    /// The commit was sent, and its outcome could not be determined.
    Unknown(String),
    /// Reading or writing the file failed: the process must not continue writing.
    Io(String),
    /// The database was migrated by a newer program.
    NewerSchema {
        /// Last migration in the database.
        database: u32,
        /// Last migration this program knows.
        program: u32,
    },
    /// The closure panicked; its writes are undone.
    Panic(String),
    /// A copy of the database could not be made; a sentence.
    Copy(String),
    /// A stored value is not valid for its column. It is an error and never a default, which the next save would write
    /// back.
    Unreadable {
        /// The table, or empty while it is not known.
        table: String,
        /// The id of the row.
        id: String,
        /// The column.
        column: String,
        /// What is wrong with the value, without the value itself: it may be private.
        why: String,
    },
    /// Any other error of the database: a mistake in a statement.
    Database(String),
}

/// A result with the store's own error, unless said otherwise.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Whether the same closure may succeed when it is run again.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Conflict(_) | Error::Disconnected(_))
    }

    /// A stored value that cannot be read; [`Error::at`] adds where it is stored.
    pub fn unreadable(why: impl Into<String>) -> Error {
        Error::Unreadable { table: String::new(), id: String::new(), column: String::new(), why: why.into() }
    }

    /// Names the place of a value that could not be read from a row. Errors that are not about the value stay as they
    /// are.
    pub fn at(self, table: &str, id: &str, column: &str) -> Error {
        match self {
            Error::Unreadable { why, .. } | Error::Database(why) => {
                let (table, id, column) = (table.to_string(), id.to_string(), column.to_string());
                Error::Unreadable { table, id, column, why }
            }
            other => other,
        }
    }

    pub(crate) fn from_panic(panic: Box<dyn Any + Send>) -> Error {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| text.to_string())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a panic without words".to_string());
        Error::Panic(text)
    }

    pub(crate) fn from_join(failure: tokio::task::JoinError) -> Error {
        match failure.try_into_panic() {
            Ok(panic) => Error::from_panic(panic),
            Err(failure) => Error::Unavailable(failure.to_string()),
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Unique(what) => write!(f, "already exists: {what}"),
            Error::Conflict(what) => write!(f, "conflict with another write: {what}"),
            Error::Undo => write!(f, "the write is rolled back"),
            Error::Disconnected(what) => write!(f, "lost the connection to the database: {what}"),
            Error::DiskFull => write!(f, "the disk is full"),
            Error::Overloaded => write!(f, "too many writes are waiting"),
            Error::Unavailable(what) => write!(f, "the database is not available: {what}"),
            Error::Unknown(what) => write!(f, "it is unknown whether the write was committed: {what}"),
            Error::Io(what) => write!(f, "reading or writing the database failed: {what}"),
            Error::NewerSchema { database, program } => write!(
                f,
                "the database is at version {database}, but this program only supports versions up to {program}: a newer kantoor has migrated it. Start that version, or restore an older backup."
            ),
            Error::Panic(what) => write!(f, "a panic: {what}"),
            Error::Copy(what) => f.write_str(what),
            Error::Unreadable { table, id, column, why } => {
                write!(f, "column {column} of {table} {id} cannot be read: {why}")
            }
            Error::Database(what) => write!(f, "the database rejected a statement: {what}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Error {
        use rusqlite::ffi;
        let text = error.to_string();
        let Some(code) = error.sqlite_error().map(|e| e.extended_code) else {
            return Error::Database(text);
        };
        match code {
            ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY => Error::Unique(text),
            _ => match code & 0xff {
                ffi::SQLITE_FULL => Error::DiskFull,
                ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => Error::Unavailable(text),
                ffi::SQLITE_IOERR | ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB | ffi::SQLITE_READONLY => Error::Io(text),
                ffi::SQLITE_CANTOPEN => Error::Unavailable(text),
                _ => Error::Database(text),
            },
        }
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Error {
        let text = match error.as_db_error() {
            Some(said) => said.to_string(),
            None => error.to_string(),
        };
        match error.code().map(|state| state.code()) {
            Some("23505") => Error::Unique(text),
            Some(code) if code.starts_with("08") || ends_connection(&error) => Error::Disconnected(text),
            // Serialisation failure, deadlock, plan of an older schema.
            Some("40001" | "40P01" | "0A000") => Error::Conflict(text),
            // Lock timeout; statement timeout; read-only server.
            Some("55P03" | "57014" | "25006" | "55000") => Error::Unavailable(text),
            Some("53100") => Error::DiskFull,
            // The server is shutting down or starting, or has too many connections.
            Some("57P01" | "57P02" | "57P03" | "53300") => Error::Disconnected(text),
            Some(_) => Error::Database(text),
            None if error.is_closed() => Error::Disconnected(text),
            None => match std::error::Error::source(&error) {
                Some(source) if source.is::<std::io::Error>() => Error::Disconnected(format!("{text}: {source}")),
                _ => Error::Database(text),
            },
        }
    }
}
