//! One transaction type over SQLite and PostgreSQL.
//!
//! Callers pass synchronous closures: [`Store::read`] runs one on a consistent snapshot, [`Store::write`] in a
//! transaction. Concurrent writes share one commit (see `writer.rs`), and callers get their result after that commit is
//! on disk. Closures are `Fn`, since a conflict or a lost connection runs them again: they only use the `Tx`.
//!
//! One SQL text serves both databases. What differs between them is in `dialect.rs`.

mod address;
mod apart;
mod carried;
mod catalogue;
mod checkpoint;
mod client;
mod copy;
mod dialect;
mod error;
mod faults;
mod load;
mod marks;
mod memory;
mod migrate;
mod named;
mod parcel;
mod pending;
mod places;
mod postgres;
mod queue;
#[cfg(not(feature = "faults"))]
mod seen;
#[cfg(feature = "faults")]
pub mod seen;
mod soundness;
mod sqlite;
mod standby;
mod stats;
mod tls;
mod transfer;
mod tx;
mod value;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use address::{check_standby_url, check_url};
pub use catalogue::{IndexDigest, Stranger, TableDigest};
pub use copy::{POSTGRES_COPY, SQLITE_COPY};
pub use dialect::{Dialect, like_all, placed};
pub use error::{Error, Result};
pub use load::{TemporaryDatabase, clear, empty, load_dump};
pub use migrate::Migration;
pub use pending::{Gathered, Merge};
pub use places::{Full, Place, Places};
pub use soundness::Unsound;
pub use stats::{HOLDS, Stats};
pub use transfer::{Transfer, TransferStep, Transferred};
pub use tx::Tx;
pub use value::{Row, Value};

use tokio::sync::oneshot;
use tracing::{Instrument as _, Level, Span};

use address::Address;
use apart::SlowReads;
use parcel::{Parcel, Work, opened};
use standby::Servers;
use writer::Writer;

/// Which database to open.
#[derive(Clone, Debug)]
pub enum Database {
    /// A file, created if it does not exist.
    Sqlite(PathBuf),
    /// A `postgres://…` URL; its `sslmode` determines how connections are protected.
    Postgres(String),
}

/// How to open it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which database.
    pub database: Database,
    /// Connections kept for reading.
    pub readers: usize,
    /// Writing connections on PostgreSQL; SQLite has one writer by nature.
    pub writers: usize,
    /// Maximum number of queued writes; further ones are rejected.
    pub queue: usize,
    /// How long PostgreSQL may take for a statement, and how long it may be silent.
    pub timeout: Duration,
    /// The URL of a standby that reads may go to; empty for none.
    pub standby: String,
}

impl Options {
    /// Sensible sizes for `database`.
    pub fn new(database: Database) -> Options {
        Options {
            database,
            readers: 8,
            writers: 4,
            queue: 4096,
            timeout: Duration::from_secs(15),
            standby: String::new(),
        }
    }

    /// How many slow reads of an account run at a time: as many as there are processors, or a quarter of the connections.
    fn slow_reads(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
        match self.database {
            Database::Sqlite(_) => processors,
            Database::Postgres(_) => processors.min((self.readers / 4).max(1)),
        }
    }

    fn standby(&self) -> Result<Option<Address>> {
        Some(self.standby.as_str()).filter(|url| !url.is_empty()).map(Address::parse_standby).transpose()
    }
}

/// A database that is open. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    readers: Readers,
    apart: SlowReads,
    /// None where the database is open for reading alone.
    writer: Option<Writer>,
    /// On PostgreSQL, a connection for what cannot wait behind other writes.
    urgent: Option<Writer>,
    stats: Arc<Stats>,
}

enum Readers {
    Sqlite(sqlite::Pool),
    Postgres(Box<Servers>),
}

impl Store {
    /// Opens the database; it is not migrated yet.
    pub fn open(options: &Options) -> Result<Store> {
        let stats = Arc::new(Stats::default());
        let (readers, writer, urgent) = match &options.database {
            Database::Sqlite(path) => {
                let session = sqlite::Writing::open(path)?;
                let writer = Writer::start(vec![session], options.queue, &stats)?;
                (Readers::Sqlite(sqlite::Pool::new(path)), writer, None)
            }
            Database::Postgres(url) => {
                let address = Address::parse(url)?;
                let sessions = (0..options.writers.max(1))
                    .map(|_| postgres::Writing::open(address.clone(), options.timeout, &stats))
                    .collect::<Result<Vec<_>>>()?;
                let writer = Writer::start(sessions, options.queue, &stats)?;
                let urgent = postgres::Writing::open(address.clone(), options.timeout, &stats)?;
                let urgent = Writer::start(vec![urgent], options.queue, &stats)?;
                let pool = postgres::Pool::new(address, options.readers, options.timeout, &stats);
                let pool = Servers::new(pool, options.standby()?);
                (Readers::Postgres(Box::new(pool)), writer, Some(urgent))
            }
        };
        let apart = SlowReads::start(options.slow_reads())?;
        let inner = Inner { readers, apart, writer: Some(writer), urgent, stats };
        Ok(Store { inner: Arc::new(inner) })
    }

    /// Opens an existing database read-only: nothing is created, migrated or changed, and writes are rejected.
    pub fn open_to_read(options: &Options) -> Result<Store> {
        let stats = Arc::<Stats>::default();
        let readers = match &options.database {
            Database::Sqlite(path) if !path.is_file() => {
                return Err(Error::Unavailable(format!("the file {} does not exist", path.display())));
            }
            Database::Sqlite(path) => Readers::Sqlite(sqlite::Pool::new(path)),
            Database::Postgres(url) => {
                let address = Address::parse(url)?;
                let pool = postgres::Pool::new(address, options.readers, options.timeout, &stats);
                Readers::Postgres(Box::new(Servers::new(pool, options.standby()?)))
            }
        };
        let apart = SlowReads::start(options.slow_reads())?;
        let inner = Inner { readers, apart, writer: None, urgent: None, stats };
        Ok(Store { inner: Arc::new(inner) })
    }

    /// Whether other processes may serve the same database: a PostgreSQL, but not a SQLite file.
    pub fn is_shared(&self) -> bool {
        self.dialect().is_shared()
    }

    /// Which of the two databases this is.
    pub fn dialect(&self) -> Dialect {
        match self.inner.readers {
            Readers::Sqlite(_) => Dialect::Sqlite,
            Readers::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Counters since the start.
    pub fn stats(&self) -> &Stats {
        &self.inner.stats
    }

    /// Writes that wait for their turn now.
    pub fn waiting(&self) -> usize {
        self.inner.writer.as_ref().map_or(0, Writer::waiting)
    }

    /// The threads of [`Store::read_apart`].
    pub fn slow_reads(&self) -> &Arc<Places> {
        self.inner.apart.places()
    }

    /// Runs `work` on a consistent snapshot.
    pub async fn read<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: Fn(&mut Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        match &self.inner.readers {
            // A read by an index takes microseconds, less than handing it to another thread.
            // Callers who expect to read much use `read_apart`.
            Readers::Sqlite(_) => self.read_now(work),
            Readers::Postgres(pool) => {
                let store = self.clone();
                let read = read_on(pool, Box::new(move || Box::new(store.read_now(work))));
                opened(read.instrument(self.span("read")).await)
            }
        }
    }

    /// [`Store::read`] for what may take long: on one of a few threads that other requests do not wait for. Reads with
    /// different keys take turns.
    pub async fn read_apart<T, E, F>(&self, key: i64, work: F) -> Result<T, E>
    where
        F: Fn(&mut Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let store = self.clone();
        let read = self.inner.apart.run(key, Box::new(move || Box::new(store.read_now(work))));
        opened(read.instrument(self.span("read")).await)
    }

    /// [`Store::read`] for code that is not async.
    pub fn read_now<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: Fn(&mut Tx) -> Result<T, E>,
        E: From<Error>,
    {
        let _span = self.span("read").entered();
        let mut done = None;
        let mut run = |tx: &mut Tx| done = Some(work(tx));
        match &self.inner.readers {
            Readers::Sqlite(pool) => pool.read(&mut run)?,
            Readers::Postgres(pool) => pool.read(&mut run)?,
        }
        done.unwrap_or_else(|| Err(Error::Unavailable("nothing was read".into()).into()))
    }

    /// Runs `work` in a transaction and returns when it is on disk. Writes with the same `key` are serialized in this
    /// process and may share a commit.
    pub async fn write<T, E, F>(&self, key: i64, work: F) -> Result<T, E>
    where
        F: Fn(&mut Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let asked = self.writer().and_then(|writer| writer.submit(key, work));
        writer::open::<T, E, F>(received(asked).instrument(self.span("write")).await?)
    }

    /// [`Store::write`] for small writes that must not wait behind others: on PostgreSQL they have a connection of their
    /// own. They share no rows with other writes, whose order they do not keep.
    pub async fn write_urgently<T, E, F>(&self, key: i64, work: F) -> Result<T, E>
    where
        F: Fn(&mut Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let writer = self.inner.urgent.as_ref().map_or_else(|| self.writer(), Ok);
        let asked = writer.and_then(|writer| writer.submit(key, work));
        writer::open::<T, E, F>(received(asked).instrument(self.span("write")).await?)
    }

    /// [`Store::write`] for code that is not async.
    pub fn write_now<T, E, F>(&self, key: i64, work: F) -> Result<T, E>
    where
        F: Fn(&mut Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let _span = self.span("write").entered();
        let asked = self.writer().and_then(|writer| writer.submit(key, work))?;
        writer::open::<T, E, F>(asked.blocking_recv().map_err(|_| stopped())?)
    }

    /// Returns the span of a transaction within that of its request or job, with the time that it waits for its turn. The
    /// queries of idle workers have none.
    fn span(&self, name: &'static str) -> Span {
        if !tracing::span_enabled!(target: "kantoor::trace", Level::INFO) || Span::current().is_none() {
            return Span::none();
        }
        let system = match self.dialect() {
            Dialect::Sqlite => "sqlite",
            Dialect::Postgres => "postgresql",
        };
        tracing::info_span!(
            target: "kantoor::trace", "transaction", otel.name = name, otel.kind = "client", db.system.name = system,
        )
    }

    /// Applies the missing migrations, each in its own transaction, or all in one to a new database; returns their numbers. Several
    /// processes can do this concurrently. A database that has them all is not written to.
    pub fn migrate(&self, migrations: &[Migration]) -> Result<Vec<u32>> {
        migrate::apply(self, migrations)
    }

    /// Returns the last migration of the database and of the program, if the database has a schema and lacks migrations.
    pub fn pending_migrations(&self, migrations: &[Migration]) -> Result<Option<(u32, u32)>> {
        migrate::pending(self, migrations)
    }

    /// Whether the database has any tables of its own schema.
    pub fn has_schema(&self) -> Result<bool> {
        migrate::has_ledger(self)
    }

    /// Returns the number of the last migration of the database; 0 without a schema.
    pub fn schema(&self) -> Result<u32> {
        migrate::database(self)
    }

    /// Whether the database has exactly these migrations.
    pub fn is_migrated(&self, migrations: &[Migration]) -> Result<bool> {
        migrate::is_current(self, migrations)
    }

    /// Whether the database is the target of a copy that has not finished: its rows are not complete.
    pub fn is_being_copied(&self) -> Result<bool> {
        migrate::is_copying(self)
    }

    fn writer(&self) -> Result<&Writer> {
        let writer = self.inner.writer.as_ref();
        writer.ok_or_else(|| Error::Unavailable("it is open for reading only".into()))
    }
}

/// Waits for the parcel of a write.
async fn received(asked: Result<oneshot::Receiver<Parcel>>) -> Result<Parcel> {
    asked?.await.map_err(|_| stopped())
}

fn stopped() -> Error {
    Error::Unavailable("the writer has stopped".into())
}

/// Runs a read on a thread that may wait for PostgreSQL.
async fn read_on(servers: &Servers, work: Work) -> Result<Parcel> {
    let turn = servers.primary.turn().await?;
    let read = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(turn);
        done
    });
    read.await.map_err(Error::from_join)
}
