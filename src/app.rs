//! The running program: what every part of it shares.

use std::sync::Arc;
use std::time::Instant;

use store::{Database, Options, Store, Tx};
use tokio::sync::Semaphore;

use crate::accounts::{self, Account, Key, NewKey};
use crate::clock::{Clock, Ids, Moment};
use crate::config::Config;
use crate::context::Caller;
use crate::error::Result;
use crate::http::keys::KeyRing;
use crate::http::metrics::Metrics;
use crate::http::pages::Readiness;
use crate::jobs::SHARED;
use crate::resources;

/// What every part of the program shares.
pub struct App {
    /// The settings in force.
    pub config: Config,
    /// The database.
    pub store: Store,
    /// Where "now" comes from.
    pub clock: Clock,
    /// Where ids come from.
    pub ids: Ids,
    /// Keys seen lately.
    pub keys: KeyRing,
    /// Counters.
    pub metrics: Metrics,
    /// The last answer of `/ready`.
    pub readiness: Readiness,
    /// Seats for reads that may take long: each has a thread and a connection with its cache.
    pub slow_reads: Semaphore,
    started: Instant,
}

impl App {
    /// Opens the database of `config` and migrates it.
    pub fn open(config: Config) -> Result<Arc<App>> {
        let store = open_store(&config)?;
        store.migrate(&resources::migrations())?;
        Ok(Arc::new(App {
            store,
            clock: Clock::System,
            ids: Ids::SYSTEM,
            keys: KeyRing::default(),
            metrics: Metrics::new(),
            readiness: Readiness::default(),
            slow_reads: Semaphore::new(std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2))),
            started: Instant::now(),
            config,
        }))
    }

    /// Microseconds since the start, which no change of the clock disturbs.
    pub fn microseconds(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    /// Makes an account with a key that may do everything; answers the key too.
    pub fn create_account(&self, name: &str, test_clock: Option<Moment>) -> Result<(Account, String)> {
        let (now, ids, name) = (self.clock.now(), self.ids, name.to_string());
        let secret = accounts::new_secret()?;
        let key = secret.clone();
        let account = self.store.write_now(SHARED, move |tx| open_account(tx, &name, test_clock, &secret, now, ids))?;
        Ok((account, key))
    }

    /// Makes the first account when there is none. Of several nodes that start together one does.
    pub fn create_first_account(&self) -> Result<Option<(Account, String)>> {
        let (now, ids) = (self.clock.now(), self.ids);
        let secret = accounts::new_secret()?;
        let key = secret.clone();
        let account = self.store.write_now(SHARED, move |tx| {
            tx.hold_all()?;
            if tx.int("SELECT count(*) FROM accounts", &[])? > 0 {
                return Ok(None);
            }
            open_account(tx, "My company", None, &secret, now, ids).map(Some)
        })?;
        Ok(account.map(|account| (account, key)))
    }
}

/// An account with its first key and all that a new one starts with.
fn open_account(
    tx: &mut Tx,
    name: &str,
    test_clock: Option<Moment>,
    secret: &str,
    now: Moment,
    ids: Ids,
) -> Result<Account> {
    let account = Account::create(tx, name, test_clock, now, &ids)?;
    Key::create(tx, account.number, secret, &first_key(), now, &ids)?;
    let caller = Caller {
        account: Arc::new(account.clone()),
        actor: "kantoor".into(),
        request_id: "new account".into(),
        if_match: None,
        clock: Clock::Fixed(now),
        ids,
    };
    let ctx = caller.writing(tx)?;
    resources::defaults(tx, &ctx)?;
    Ok(account)
}

fn first_key() -> NewKey {
    NewKey { name: "first key".to_string(), scopes: vec!["*".to_string()], expires_at: None }
}

/// Opens the database that the settings name.
pub fn open_store(config: &Config) -> Result<Store> {
    let database = if config.database_url.is_empty() {
        std::fs::create_dir_all(&config.data).map_err(|error| {
            store::Error::Unavailable(format!("the folder {} cannot be made: {error}", config.data.display()))
        })?;
        Database::Sqlite(config.data.join("kantoor.db"))
    } else {
        Database::Postgres(config.database_url.clone())
    };
    let mut options = Options::new(database);
    options.readers = config.database_readers;
    options.writers = config.database_writers;
    options.queue = config.write_queue;
    Ok(Store::open(&options)?)
}
