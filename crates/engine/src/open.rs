//! Opens the configured program: its database, its files and its shared state.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blobs::Blobs;
use store::{Database, Options, Store};

use crate::accounts::Key;
use crate::app::{App, Readiness};
use crate::clock::{Clock, Ids};
use crate::config::Config;
use crate::error::{Code, Error, Result};
use crate::http::bodies::Bodies;
use crate::http::keys::KeyRing;
use crate::http::metrics::Metrics;
use crate::http::responses::Responses;
use crate::http::visitors::Visitors;
use crate::jobs::{Claimant, Lane};
use crate::listeners::Listeners;
use crate::loops::Loops;
use crate::registry::registry;
use crate::secrets::key_file::KeySource;
use crate::services::Services;
use crate::site::Site;
use crate::{migrations, precaution, private, secrets, turns};

/// Opens the database of `config` and migrates it.
pub fn open(config: Config) -> Result<Arc<App>> {
    let store = open_store(&config)?;
    precaution::migrate(&store, &config)?;
    let vault = secrets::open(&store, &config)?;
    let key = secrets::signing_key(&store, &vault, registry().secrets)?;
    let site = Arc::new(Site::open(&key, vault.clone(), &config.public_url));
    let blobs = open_blobs(&config)?;
    let web = open_web(&config)?;
    let visitors = Visitors::new(networks("trusted_proxies", &config.trusted_proxies)?, config.public_limit_per_minute);
    let node = Ids::SYSTEM.next();
    let clock = Clock::of(&store)?;
    let mut services = Services::default();
    registry().services.iter().try_for_each(|open| open(&config, &node, &mut services))?;
    Ok(Arc::new(App {
        store,
        site,
        blobs,
        web,
        visitors,
        clock,
        ids: Ids::SYSTEM,
        keys: KeyRing::new(|tx, _, hash| Key::by_hash(tx, hash), vault.clone()),
        sessions: KeyRing::new(registry().sessions.map_or(|_, _, _| Ok(None), |sessions| sessions.find), vault.clone()),
        bodies: Arc::new(Bodies::new(config.max_connections)),
        responses: Responses::new(&config),
        metrics: Metrics::new(registry().counters, registry().histograms),
        listeners: Arc::new(Listeners::new(config.max_streams)),
        readiness: Readiness::default(),
        wakeup: Arc::default(),
        services,
        claimant: Arc::new(Claimant::new(node.clone(), vault)),
        loops: Loops::default(),
        decoding: turns::of_processors("large bodies"),
        workers: Lane::ALL.map(|lane| lane.places(config.workers)),
        node,
        started: Instant::now(),
        config,
    }))
}

/// Opens the configured store of file contents.
pub fn open_blobs(config: &Config) -> Result<Blobs> {
    open_blobs_at(config, &config.files_folder().to_string_lossy())
}

/// Opens a store of contents: a folder, or `s3://bucket/prefix` with the settings for S3.
pub fn open_blobs_at(config: &Config, place: &str) -> Result<Blobs> {
    if let (true, Some((setting, why))) = (place.starts_with("s3://"), missing_keys(config)) {
        return Err(Error::new(Code::Unavailable, format!("{place} cannot be used: {setting}: {why}.")));
    }
    let opened = match place.strip_prefix("s3://") {
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
        None => Blobs::in_folder(Path::new(place)),
    };
    opened.map_err(|error| Error::new(Code::Unavailable, format!("Cannot open the file storage: {error}.")))
}

/// Returns the setting that an S3-compatible store lacks, and why; a phrase. Only a machine at AWS may have a role instead of
/// keys: anywhere else the store would be asked for a role that nobody has.
pub fn missing_keys(config: &Config) -> Option<(&'static str, &'static str)> {
    let is_elsewhere = !config.s3_endpoint.is_empty() && !config.s3_endpoint.contains(".amazonaws.com");
    match (config.s3_access_key.is_empty(), config.s3_secret_key.is_empty()) {
        (true, true) if is_elsewhere => {
            Some(("s3_access_key", "is not set, nor is s3_secret_key; the store at s3_endpoint needs both"))
        }
        (true, false) => Some(("s3_access_key", "is not set, but s3_secret_key is")),
        (false, true) => Some(("s3_secret_key", "is not set, but s3_access_key is")),
        _ => None,
    }
}

/// Creates the client for outgoing calls, which only calls public addresses unless the settings allow others.
pub fn open_web(config: &Config) -> Result<web::Client> {
    let allowed = networks("allow_private_addresses", &config.allow_private_addresses)?;
    let settings = web::Settings { allowed, ..web::Settings::default() };
    web::Client::new(settings).map_err(|why| Error::new(Code::Unavailable, format!("allow_private_addresses: {why}.")))
}

/// Adds what is wrong with the settings that are used when the program is opened.
pub fn check_settings(config: &Config, wrong: &mut Vec<String>) {
    let lists =
        [("trusted_proxies", &config.trusted_proxies), ("allow_private_addresses", &config.allow_private_addresses)];
    for (setting, listed) in lists {
        for part in listed.split([',', ' ']).filter(|part| !part.is_empty()) {
            wrong.extend(part.parse::<web::Network>().err().map(|why| format!("{setting}: {why}")));
        }
    }
    for (setting, address) in [("listen", &config.listen), ("metrics_listen", &config.metrics_listen)] {
        let parts = address.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        let port = parts.and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none() && (setting == "listen" || !address.is_empty()) {
            wrong.push(format!("{setting}: '{address}' is not an address with a port, such as 127.0.0.1:8080"));
        }
    }
    if let source @ KeySource::Setting(_) = KeySource::of(config)
        && source.read().is_err()
    {
        // The text may be a key with a typing error, so it is not quoted.
        wrong.push("secret_key: must be keys of 64 hexadecimal digits, separated by commas".to_string());
    }
}

/// Parses the addresses and networks of a setting.
fn networks(setting: &str, listed: &str) -> Result<Vec<web::Network>> {
    let wrong = |why: String| Error::new(Code::Unavailable, format!("{setting}: {why}."));
    let parts = listed.split([',', ' ']).filter(|part| !part.is_empty());
    parts.map(|part| part.parse::<web::Network>().map_err(wrong)).collect()
}

/// Opens the configured database read-only, and the file store. Nothing is created or migrated.
pub fn open_to_read(config: &Config) -> Result<(Store, Blobs)> {
    let mut options = Options::new(database(config));
    options.readers = config.database_readers;
    // Checks read whole tables, without blocking others.
    options.timeout = Duration::from_secs(3600);
    let store = Store::open_to_read(&options)?;
    must_be_current(&store)?;
    Ok((store, open_blobs(config)?))
}

/// What the name of a folder starts and ends with in which a restore unpacks a backup.
const RESTORING: (&str, &str) = ("restore-", ".unfinished");

/// Says why the data folder may not be used as it is, although nothing seems to be wrong; a sentence.
pub fn unusable(config: &Config) -> Option<String> {
    if let Database::Sqlite(path) = database(config) {
        if let Some(why) = private::unreadable(&path) {
            return Some(why);
        }
        // A restore puts the database in its place last.
        if path.exists() {
            return None;
        }
    }
    let entries = std::fs::read_dir(&config.data).into_iter().flatten().filter_map(std::io::Result::ok);
    let left = entries.map(|entry| entry.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(RESTORING.0) && name.ends_with(RESTORING.1)
    })?;
    let (left, data) = (left.display(), config.data.display());
    Some(format!(
        "A restore to {data} was interrupted, or is still running: there is {left}. Run `kantoor restore` again, or remove what it left."
    ))
}

/// Rejects a database that nobody has created yet. Nothing is created.
pub fn must_have_data(config: &Config) -> Result<()> {
    if let Some(why) = unusable(config) {
        return Err(Error::new(Code::Unavailable, why));
    }
    let missing = match database(config) {
        Database::Sqlite(path) if path.is_file() => return Ok(()),
        Database::Sqlite(path) => {
            let place = std::path::absolute(&config.data).unwrap_or_else(|_| config.data.clone());
            let place = place.display();
            let file = path.file_name().unwrap_or_default().display();
            match config.data.is_dir() {
                true => format!("The folder {place} contains no data of Kantoor: there is no {file} in it"),
                false => format!("The data folder {place} does not exist"),
            }
        }
        Database::Postgres(_) => {
            let mut options = Options::new(database(config));
            options.readers = 1;
            options.timeout = Duration::from_secs(config.database_timeout_seconds.max(1));
            if Store::open_to_read(&options)?.has_schema()? {
                return Ok(());
            }
            "The database contains no data of Kantoor".to_string()
        }
    };
    let message = format!("{missing}. Choose another one with --data or --database-url; `kantoor serve` creates it.");
    Err(Error::new(Code::Unavailable, message))
}

/// Opens the database and the file store without migrating them.
pub fn open_as_it_is(config: &Config) -> Result<(Store, Blobs)> {
    let store = open_store(config)?;
    must_be_current(&store)?;
    Ok((store, open_blobs(config)?))
}

fn must_be_current(store: &Store) -> Result<()> {
    if store.is_migrated(&migrations::all())? {
        return Ok(());
    }
    let (database, program) = (store.schema()?, migrations::all().last().map_or(0, |migration| migration.number));
    let message = match database > program {
        true => format!(
            "The database is of a newer version (schema {database}) than this program (schema {program}). Use the newer version of the program."
        ),
        false => format!(
            "The database is of an earlier version (schema {database}) than this program (schema {program}). Run `kantoor migrate`, or use the earlier version of the program."
        ),
    };
    Err(Error::new(Code::Unavailable, message))
}

/// Returns the configured database.
pub fn database(config: &Config) -> Database {
    match config.database_url.as_str() {
        "" => Database::Sqlite(config.data.join(store::SQLITE_COPY)),
        url => Database::Postgres(url.to_string()),
    }
}

/// Opens the configured database.
pub fn open_store(config: &Config) -> Result<Store> {
    if let Some(why) = unusable(config) {
        return Err(Error::new(Code::Unavailable, why));
    }
    if config.database_url.is_empty() {
        private::create_folder(&config.data).map_err(|error| {
            store::Error::Unavailable(format!("cannot create the folder {}: {error}", config.data.display()))
        })?;
    }
    private::tighten(config);
    let mut options = Options::new(database(config));
    options.readers = config.database_readers;
    options.writers = config.database_writers;
    options.standby.clone_from(&config.database_standby);
    options.queue = config.write_queue;
    options.timeout = Duration::from_secs(config.database_timeout_seconds.max(1));
    Ok(Store::open(&options)?)
}
