//! The target of a restore: nothing is there before, and nothing is left there if it fails.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use blobs::Blobs;
use engine::config::Config;
use engine::error::Error;
use engine::open::{database, open_blobs};
use engine::private;
use engine::secrets::key_file::{self, KeySource};
use engine::takeover::{self, Alone};
use futures_util::StreamExt;
use store::{Database, Options, Store};
use tokio::runtime::Handle;

use super::unpacking::Unpacked;
use crate::upkeep::backup::manifest::FILES;
use crate::upkeep::backup::{UNFINISHED, must_have_parent, plain, sync_parent};

/// The folder inside another file store in which contents are unpacked.
const BESIDE: &str = "restore";

/// What the name of the key of a backup ends with if another key is in its place.
const RESTORED: &str = ".restored";

/// The configured database and file store.
pub struct Target<'t> {
    config: &'t Config,
    runtime: &'t Handle,
    /// Keeps servers away from a data folder.
    _alone: Option<Alone>,
    /// Whether the data folder did not exist.
    made_folder: bool,
    /// Where contents are unpacked, if they are in a folder.
    staged_files: Option<PathBuf>,
    /// The key that was written next to another one.
    beside: Option<PathBuf>,
    /// Whether the dump is in the database.
    is_loaded: bool,
    is_placed: bool,
}

impl<'t> Target<'t> {
    /// Rejects a target that is in use or not empty.
    pub fn claim(config: &'t Config, runtime: &'t Handle) -> Result<Target<'t>, String> {
        let (made_folder, data) = (!config.data.exists(), config.data.display());
        if !made_folder && !config.data.is_dir() {
            return Err(format!("{data} is a file; restore to a folder with --data"));
        }
        must_have_parent(&config.data)?;
        match database(config) {
            Database::Sqlite(path) if path.exists() => {
                // A server that runs on it is the better reason.
                claim_folder(config)?;
                return Err(format!(
                    "there is a database in {data} already; restore to another folder with --data, or move that one away"
                ));
            }
            Database::Sqlite(_) => {}
            Database::Postgres(_) => must_be_empty(config)?,
        }
        if has_contents(config, runtime)? {
            let place = config.files_folder();
            let place = place.display();
            return Err(format!("there are files in {place} already; restore to an empty place, or move them away"));
        }
        private::create_folder(&config.data).map_err(|error| format!("{data}: {}", plain(&error)))?;
        let alone = if config.database_url.is_empty() { Some(claim_folder(config)?) } else { None };
        let (staged_files, beside, is_loaded, is_placed) = (None, None, false, false);
        Ok(Target { config, runtime, _alone: alone, made_folder, staged_files, beside, is_loaded, is_placed })
    }

    /// The folder in which the database is prepared.
    pub fn workplace(&self) -> &Path {
        &self.config.data
    }

    /// The place for contents: in `scratch`, or inside the file store if that is elsewhere. An S3 store gets them directly.
    pub fn contents(&mut self, scratch: &Path) -> Result<Blobs, String> {
        let folder = match self.config.files.as_str() {
            "" => scratch.join(FILES),
            files if files.starts_with("s3://") => {
                return open_blobs(self.config).map_err(|error| error.internal.unwrap_or(error.message));
            }
            files => Path::new(files).join(format!("{BESIDE}{UNFINISHED}")),
        };
        let _ = std::fs::remove_dir_all(&folder);
        let opened = Blobs::in_folder(&folder).map_err(|error| error.to_string());
        self.staged_files = Some(folder);
        opened
    }

    /// Records that the dump is in the database.
    pub fn loaded(&mut self) {
        self.is_loaded = true;
    }

    /// Moves what was unpacked to its place, a SQLite database last: without it, nothing was restored. Returns what the
    /// operator should know.
    pub fn place(&mut self, unpacked: &Unpacked, has_other_key: bool) -> Result<Option<String>, String> {
        let told = |error: io::Error| format!("{}: {}", self.config.data.display(), plain(&error));
        let note = match unpacked.key.as_deref().filter(|_| has_other_key) {
            Some(key) => {
                let (path, is_new) = keep_beside(self.config, key)?;
                let note = about_key(&KeySource::of(self.config), &path);
                self.beside = Some(path).filter(|_| is_new);
                Some(note)
            }
            None => None,
        };
        if let Some(staged) = self.staged_files.take() {
            let folder = self.config.files_folder();
            private::create_folder(&folder).map_err(told)?;
            for entry in std::fs::read_dir(&staged).map_err(told)? {
                let entry = entry.map_err(told)?;
                std::fs::rename(entry.path(), folder.join(entry.file_name())).map_err(told)?;
            }
            let _ = std::fs::remove_dir(&staged);
            File::open(&folder).and_then(|folder| folder.sync_all()).map_err(told)?;
        }
        if let (KeySource::File(path), Some(key)) = (KeySource::of(self.config), &unpacked.key)
            && !path.exists()
        {
            std::fs::copy(key, &path).map_err(told)?;
            File::open(&path).and_then(|file| file.sync_all()).map_err(told)?;
            sync_parent(&path).map_err(told)?;
        }
        if self.config.database_url.is_empty() {
            let path = self.config.data.join(store::SQLITE_COPY);
            std::fs::rename(&unpacked.database, &path).map_err(told)?;
            sync_parent(&path).map_err(told)?;
        }
        self.is_placed = true;
        Ok(note)
    }
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        if self.is_placed {
            return;
        }
        if let Some(staged) = &self.staged_files {
            let _ = std::fs::remove_dir_all(staged);
        } else if self.config.files.starts_with("s3://") {
            self.remove_objects();
        }
        if let Some(key) = &self.beside {
            let _ = std::fs::remove_file(key);
        }
        if self.is_loaded
            && let Err(error) = store::empty(&self.config.database_url)
        {
            tracing::warn!(cause = %error, "The database could not be emptied again.");
        }
        if self.made_folder {
            // Only what this process put there.
            let _ = std::fs::remove_dir_all(&self.config.data);
        }
    }
}

impl Target<'_> {
    /// The store was empty before.
    fn remove_objects(&self) {
        let Ok(blobs) = open_blobs(self.config) else { return };
        let keys: Vec<String> = self.runtime.block_on(blobs.list().filter_map(|key| async { key.ok() }).collect());
        for key in keys {
            let _ = self.runtime.block_on(blobs.drop(&key));
        }
    }
}

/// Writes the key of a backup next to the key that is there, which may be needed for something else. Returns its file, and
/// whether it is new: an earlier attempt may have written it.
fn keep_beside(config: &Config, key: &Path) -> Result<(PathBuf, bool), String> {
    let mut path = match KeySource::of(config) {
        KeySource::File(path) => path.into_os_string(),
        KeySource::Setting(_) => config.data.join(key_file::NAME).into_os_string(),
    };
    path.push(RESTORED);
    let path = PathBuf::from(path);
    let told = |error: io::Error| format!("{}: {}", path.display(), plain(&error));
    let bytes = std::fs::read(key).map_err(told)?;
    let mut file = match File::options().write(true).create_new(true).mode(0o600).open(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if std::fs::read(&path).map_err(told)? == bytes {
                return Ok((path, false));
            }
            return Err(format!("{} is there already, with the key of another restore; move it away", path.display()));
        }
        opened => opened.map_err(told)?,
    };
    let written = file.write_all(&bytes).and_then(|()| file.sync_all()).and_then(|()| sync_parent(&path));
    if written.is_err() {
        let _ = std::fs::remove_file(&path);
    }
    written.map_err(told)?;
    Ok((path, true))
}

/// Says what to do with a key that was kept next to another one.
fn about_key(source: &KeySource, path: &Path) -> String {
    let path = path.display();
    let remedy = match source {
        KeySource::File(_) => "put it in place of the other one",
        KeySource::Setting(_) => {
            "copy the key in it to the setting secret_key, or remove that setting and name the file in secret_key_file,"
        }
    };
    format!(
        "The backup needs another key than {source}. It includes that key, which is now in {path}: {remedy} before the server starts."
    )
}

fn must_be_empty(config: &Config) -> Result<(), String> {
    let mut options = Options::new(database(config));
    options.readers = 1;
    options.timeout = Duration::from_secs(config.database_timeout_seconds.max(1));
    let store = Store::open_to_read(&options).map_err(|error| error.to_string())?;
    // What a restore that was killed has started goes on, and nobody sees its tables until it has ended.
    let sql =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'pg_restore'";
    let (tables, loads) = store
        .read_now(|tx| Ok::<_, store::Error>((tx.tables()?, tx.int(sql, &[])?)))
        .map_err(|error| error.to_string())?;
    if tables.is_empty() && loads == 0 {
        return Ok(());
    }
    if loads > 0 {
        let what = "pg_restore is filling this database, maybe for a restore that was killed";
        return Err(format!("{what}; wait until it has ended, or end it"));
    }
    let what = match store.has_schema() {
        Ok(true) => "the database contains data of Kantoor, and a server may be using it",
        _ => "the database is not empty",
    };
    Err(format!("{what}; create an empty one (createdb) and restore to that"))
}

/// Keeps servers away from a data folder, unless one uses it.
fn claim_folder(config: &Config) -> Result<Alone, String> {
    let claimed = takeover::try_claim(config).map_err(|error| error.internal.unwrap_or(error.message))?;
    claimed.map_err(|server| {
        format!(
            "a {server} is using the folder {}; restore to another folder with --data, or stop that server and move its folder away",
            config.data.display()
        )
    })
}

/// Whether the configured store has contents.
fn has_contents(config: &Config, runtime: &Handle) -> Result<bool, String> {
    let told = |error: Error| error.internal.unwrap_or(error.message);
    if !config.files.starts_with("s3://") && !config.files_folder().exists() {
        return Ok(false);
    }
    let mut keys = open_blobs(config).map_err(told)?.list();
    match runtime.block_on(keys.next()) {
        None => Ok(false),
        Some(Ok(_)) => Ok(true),
        Some(Err(error)) => Err(format!("{}: {error}", config.files)),
    }
}
