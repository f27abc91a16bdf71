//! The running program: what every part of it shares.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blobs::Blobs;
use store::{Database, Options, Store, Tx};

use crate::accounts::{self, Account, Key, NewKey};
use crate::automation::{Bell, Engine};
use crate::clock::{Clock, Ids, Moment};
use crate::config::Config;
use crate::context::Caller;
use crate::days::DueWork;
use crate::demo;
use crate::error::{Code, Error, Result};
use crate::http::bodies::Bodies;
use crate::http::keys::KeyRing;
use crate::http::metrics::Metrics;
use crate::http::pages::Readiness;
use crate::http::visitors::Visitors;
use crate::jobs::{Claimant, JobKind, Purge, SHARED};
use crate::leases::LeaseTable;
use crate::listeners::Listeners;
use crate::loops::Loops;
use crate::quotas::Quotas;
use crate::registry::REGISTRY;
use crate::resources;
use crate::site::Site;
use crate::turns::Turns;
use crate::{outbox, printing};

/// What the parts of the program add to its mechanisms. It is filled in one place: `registry.rs`.
pub struct Registry {
    /// The kinds of job.
    pub jobs: &'static [JobKind],
    /// The tables whose rows are worked on under a lease.
    pub leases: &'static [&'static LeaseTable],
    /// What housekeeping drops when it is old.
    pub purges: &'static [Purge],
    /// What comes with the days.
    pub due_work: &'static [DueWork],
    /// What runs in the background beside the workers.
    pub background: &'static [Start],
    /// Who wants to know at the start that a process died.
    pub on_crash: &'static [OnCrash],
}

/// Starts a loop that runs until the process ends.
pub type Start = fn(&Arc<App>);
/// Takes note that a process may have died before this one started.
pub type OnCrash = fn(&App);

/// What every part of the program shares.
pub struct App {
    /// What the parts of the program add to its mechanisms.
    pub registry: &'static Registry,
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
    /// Who came without a key lately.
    pub visitors: Visitors,
    /// The bodies of requests under way.
    pub bodies: Bodies,
    /// Counters.
    pub metrics: Metrics,
    /// Where this server can be reached.
    pub site: Arc<Site>,
    /// The contents of files.
    pub blobs: Blobs,
    /// Makes PDFs.
    pub typesetter: pdf::Typesetter,
    /// Whose turn it is to have one made.
    pub turns: Turns,
    /// Sends mail.
    pub post: mail::Sender,
    /// Calls others over HTTP.
    pub web: web::Client,
    /// Who waits for something to happen.
    pub listeners: Listeners,
    /// The last answer of `/ready`.
    pub readiness: Readiness,
    /// Rung when a flow has something to do.
    pub bell: Arc<Bell>,
    /// What the runs of flows need.
    pub engine: Arc<Engine>,
    /// What this process is called among the nodes of its database.
    pub node: String,
    /// Who claims jobs here.
    pub claimant: Arc<Claimant>,
    /// The loops in the background.
    pub loops: Loops,
    started: Instant,
}

impl App {
    /// Opens the database of `config` and migrates it.
    pub fn open(config: Config) -> Result<Arc<App>> {
        let store = open_store(&config)?;
        store.migrate(&resources::migrations())?;
        let site = Arc::new(Site::open(&store, &config.public_url)?);
        let blobs = open_blobs(&config)?;
        let typesetter = open_typesetter(&config)?;
        let post = outbox::open(&config)?;
        let web = open_web(&config)?;
        let visitors = Visitors::new(networks("trusted_proxies", &config.trusted_proxies)?);
        let node = Ids::SYSTEM.next();
        Ok(Arc::new(App {
            registry: &REGISTRY,
            store,
            site,
            blobs,
            typesetter,
            turns: Turns::new(),
            post,
            web,
            visitors,
            clock: Clock::System,
            ids: Ids::SYSTEM,
            keys: KeyRing::default(),
            bodies: Bodies::default(),
            metrics: Metrics::new(),
            listeners: Listeners::default(),
            readiness: Readiness::default(),
            bell: Arc::default(),
            engine: Arc::new(Engine::on(&node)),
            claimant: Arc::new(Claimant::new(node.clone())),
            loops: Loops::default(),
            node,
            started: Instant::now(),
            config,
        }))
    }

    /// Somebody who acts in an account on the program's own behalf.
    pub fn acting(&self, account: Account, actor: &str) -> Caller {
        Caller {
            account: Arc::new(account),
            actor: actor.into(),
            request_id: actor.into(),
            if_match: None,
            clock: self.clock,
            ids: self.ids,
            site: self.site.clone(),
            bell: self.bell.clone(),
            quotas: Quotas::of(&self.config),
        }
    }

    /// The same, in the account with this number.
    pub fn acting_in(&self, number: i64, actor: &str) -> Result<Caller> {
        let account = self.store.read_now(move |tx| Account::numbered(tx, number))?;
        Ok(self.acting(account, actor))
    }

    /// Microseconds since the start, which no change of the clock disturbs.
    pub fn microseconds(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    /// Makes an account with a key that may do everything; answers the key too.
    pub fn create_account(&self, name: &str, test_clock: Option<Moment>) -> Result<(Account, String)> {
        self.create_account_in(name, accounts::DEFAULT_ZONE, test_clock)
    }

    /// The same, in a time zone.
    pub fn create_account_in(&self, name: &str, zone: &str, test_clock: Option<Moment>) -> Result<(Account, String)> {
        let opening = self.opening(name, test_clock, false)?;
        self.open_account(Opening { zone: zone.to_string(), ..opening })
    }

    /// The same with a believable business in it, to try things on: there wholly or not at all.
    pub fn create_demo_account(&self, test_clock: Option<Moment>) -> Result<(Account, String)> {
        self.open_account(self.opening(demo::NAME, test_clock, true)?)
    }

    /// Makes the first account when there is none, empty or with the demo. Of several nodes that
    /// start together one does.
    pub fn create_first_account(&self, with_demo: bool) -> Result<Option<(Account, String)>> {
        let opening = self.opening(if with_demo { demo::NAME } else { "My company" }, None, with_demo)?;
        let key = opening.secret.clone();
        let account = self.store.write_now(SHARED, move |tx| {
            tx.hold_all()?;
            if tx.int("SELECT count(*) FROM accounts", &[])? > 0 {
                return Ok(None);
            }
            opening.open(tx).map(Some)
        })?;
        Ok(account.map(|account| (account, key)))
    }

    fn open_account(&self, opening: Opening) -> Result<(Account, String)> {
        let key = opening.secret.clone();
        let account = self.store.write_now(SHARED, move |tx| opening.open(tx))?;
        Ok((account, key))
    }

    fn opening(&self, name: &str, test_clock: Option<Moment>, with_demo: bool) -> Result<Opening> {
        Ok(Opening {
            name: name.to_string(),
            zone: accounts::DEFAULT_ZONE.to_string(),
            test_clock,
            with_demo,
            secret: accounts::new_secret()?,
            now: self.clock.now(),
            ids: self.ids,
            site: self.site.clone(),
            bell: self.bell.clone(),
        })
    }
}

/// An account about to be opened.
struct Opening {
    name: String,
    zone: String,
    test_clock: Option<Moment>,
    with_demo: bool,
    secret: String,
    now: Moment,
    ids: Ids,
    site: Arc<Site>,
    bell: Arc<Bell>,
}

impl Opening {
    /// The account with its first key and all that a new one starts with.
    fn open(&self, tx: &mut Tx) -> Result<Account> {
        let account = Account::create(tx, &self.name, &self.zone, self.test_clock, self.now, &self.ids)?;
        Key::create(tx, account.number, &self.secret, &first_key(), self.now, &self.ids)?;
        let caller = Caller {
            account: Arc::new(account.clone()),
            actor: "kantoor".into(),
            request_id: "new account".into(),
            if_match: None,
            clock: Clock::Fixed(self.now),
            ids: self.ids,
            site: self.site.clone(),
            bell: self.bell.clone(),
            // What a new account starts with is not its own doing.
            quotas: Quotas::default(),
        };
        let mut ctx = caller.writing(tx)?;
        if self.with_demo {
            ctx.now = demo::beginning(&ctx);
        }
        resources::defaults(tx, &ctx, &self.name)?;
        if self.with_demo {
            demo::fill(tx, &caller)?;
        }
        Ok(account)
    }
}

fn first_key() -> NewKey {
    NewKey { name: "first key".to_string(), scopes: vec!["*".to_string()], expires_at: None }
}

/// The template that the settings name, or the one that is compiled in.
fn open_typesetter(config: &Config) -> Result<pdf::Typesetter> {
    let own = match config.template.as_str() {
        "" => printing::TEMPLATE.to_string(),
        path => std::fs::read_to_string(path)
            .map_err(|error| Error::new(Code::Unavailable, format!("The template {path} cannot be read: {error}.")))?,
    };
    let opened = if config.typeset_apart {
        let program = pdf::Program {
            path: own_program(),
            arguments: vec!["typeset-worker".into(), config.typeset_memory_mib.to_string().into()],
            patience: Duration::from_secs(config.typeset_timeout_seconds.max(1)),
        };
        pdf::Typesetter::apart(&own, program)
    } else {
        pdf::Typesetter::new(&own)
    };
    opened.map_err(|error| Error::new(Code::Unavailable, format!("The template for documents is wrong: {error}.")))
}

/// This program, also when another version of it has taken its place on the disk.
fn own_program() -> PathBuf {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() { running } else { std::env::current_exe().unwrap_or(running) }
}

/// Opens the place for the contents of files that the settings name.
fn open_blobs(config: &Config) -> Result<Blobs> {
    let opened = match config.files.strip_prefix("s3://") {
        Some(place) => {
            let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
            Blobs::in_s3(&blobs::S3 {
                bucket: bucket.to_string(),
                prefix: prefix.to_string(),
                endpoint: config.s3_endpoint.clone(),
                region: config.s3_region.clone(),
                access_key: config.s3_access_key.clone(),
                secret_key: config.s3_secret_key.clone(),
            })
        }
        None => Blobs::in_folder(&config.files_folder()),
    };
    opened.map_err(|error| Error::new(Code::Unavailable, format!("The place for files cannot be opened: {error}.")))
}

/// The client for calls to others, which keeps to public addresses unless the settings allow more.
fn open_web(config: &Config) -> Result<web::Client> {
    let allowed = networks("allow_private_addresses", &config.allow_private_addresses)?;
    let settings = web::Settings { allowed, ..web::Settings::default() };
    web::Client::new(settings).map_err(|why| Error::new(Code::Unavailable, format!("allow_private_addresses: {why}.")))
}

/// The addresses and networks that a setting lists.
fn networks(setting: &str, listed: &str) -> Result<Vec<web::Network>> {
    let wrong = |why: String| Error::new(Code::Unavailable, format!("{setting}: {why}."));
    let parts = listed.split([',', ' ']).filter(|part| !part.is_empty());
    parts.map(|part| part.parse::<web::Network>().map_err(wrong)).collect()
}

/// Opens the database that the settings name for reading alone, and the place for files. Nothing is made or migrated.
pub fn open_to_read(config: &Config) -> Result<(Store, Blobs)> {
    let mut options = Options::new(database(config));
    options.readers = config.database_readers;
    // Checks read whole tables, and nobody waits for them.
    options.timeout = Duration::from_secs(3600);
    let store = Store::open_to_read(&options)?;
    must_be_current(&store)?;
    Ok((store, open_blobs(config)?))
}

/// Opens the database and the place for files as they are: what is older than this program is not migrated.
pub fn open_as_it_is(config: &Config) -> Result<(Store, Blobs)> {
    if let Database::Sqlite(path) = database(config)
        && !path.is_file()
    {
        return Err(store::Error::Unavailable(format!("there is no file {}", path.display())).into());
    }
    let store = open_store(config)?;
    must_be_current(&store)?;
    Ok((store, open_blobs(config)?))
}

fn must_be_current(store: &Store) -> Result<()> {
    if store.is_migrated(&resources::migrations())? {
        return Ok(());
    }
    let message = "The database is of another version than this program; run `kantoor migrate`, or the program that \
                   made it.";
    Err(Error::new(Code::Unavailable, message))
}

/// The database that the settings name.
pub fn database(config: &Config) -> Database {
    match config.database_url.as_str() {
        "" => Database::Sqlite(config.data.join(store::SQLITE_COPY)),
        url => Database::Postgres(url.to_string()),
    }
}

/// Opens the database that the settings name.
pub fn open_store(config: &Config) -> Result<Store> {
    if config.database_url.is_empty() {
        std::fs::create_dir_all(&config.data).map_err(|error| {
            store::Error::Unavailable(format!("the folder {} cannot be made: {error}", config.data.display()))
        })?;
    }
    let mut options = Options::new(database(config));
    options.readers = config.database_readers;
    options.writers = config.database_writers;
    options.queue = config.write_queue;
    options.timeout = Duration::from_secs(config.database_timeout_seconds.max(1));
    Ok(Store::open(&options)?)
}
