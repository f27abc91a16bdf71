//! Copies the database before it is migrated: a migration cannot be undone.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use store::{Migration, Store, Stranger};

use crate::clock::Clock;
use crate::config::{BeforeMigration, Config};
use crate::error::{Code, Error, Result};
use crate::migrations;

/// The folder of the copies in the data folder.
const FOLDER: &str = "backups";
/// The start of their names.
const START: &str = "before-migration-";
/// The end of the name of a folder in which one is made.
const UNFINISHED: &str = ".unfinished";
/// How many are kept, of different schemas.
const KEPT: usize = 3;

/// What migrating the database did.
#[derive(Default)]
pub struct Migrated {
    /// The migrations that were applied.
    pub applied: Vec<u32>,
    /// Why the database was not copied before, if it should have been.
    pub uncopied: Option<String>,
}

/// Migrates the database, and copies it before if there is something in it.
pub fn migrate(store: &Store, config: &Config) -> Result<Migrated> {
    let all = migrations::all();
    must_act_alone(store, &all)?;
    let copied = match store.pending_migrations(&all)? {
        Some((from, to)) if config.backup_before_migration != BeforeMigration::Skip => copy(store, config, from, to)?,
        _ => Copied::Nothing,
    };
    let applied = store.migrate(&all).map_err(|error| copied.named_in(error.into()))?;
    let uncopied = match copied {
        Copied::Failed(why) => Some(why),
        Copied::Nothing | Copied::To(_) => None,
    };
    Ok(Migrated { applied, uncopied })
}

/// Rejects a database in which something acts that no migration made, such as a trigger that copies what is written.
fn must_act_alone(store: &Store, all: &[Migration]) -> Result<()> {
    let Some(Stranger { what, remedy }) = store.strangers(all)?.into_iter().next() else { return Ok(()) };
    let message = format!(
        "The database has {what}, which Kantoor did not make: it can change or copy what is stored. Find out who added it and what it did, remove it ({remedy}), and run `kantoor verify`."
    );
    Err(Error::new(Code::Unavailable, message))
}

/// What became of the copy.
enum Copied {
    /// There is none: the database is empty, or the settings want none.
    Nothing,
    /// The copy.
    To(PathBuf),
    /// It could not be made, which is no reason to stop.
    Failed(String),
}

impl Copied {
    /// Adds to the error of a migration where the copy is to go back to, or that there is none.
    fn named_in(&self, error: Error) -> Error {
        let words = error.internal.as_deref().unwrap_or(&error.message).trim_end_matches('.');
        let words = match self {
            Copied::Nothing => return error,
            Copied::To(copy) => {
                format!("{words}; the database as it was before the migration is in {}", copy.display())
            }
            Copied::Failed(why) => format!("{words}; no backup was made before the migration, because {why}"),
        };
        Error { internal: Some(words), ..error }
    }
}

/// Copies the database.
fn copy(store: &Store, config: &Config, from: u32, to: u32) -> Result<Copied> {
    // An account is the first thing in a database.
    if store.read_now(|tx| tx.int("SELECT count(*) FROM accounts", &[]))? == 0 {
        return Ok(Copied::Nothing);
    }
    let folder = config.data.join(FOLDER);
    match copy_into(store, &folder, from, to) {
        Ok(copy) => {
            tracing::info!(file = %copy.display(), "The database was copied before it is migrated.");
            Ok(Copied::To(copy))
        }
        Err(why) if store.is_shared() && config.backup_before_migration == BeforeMigration::Auto => {
            tracing::warn!(%why, "The database is migrated without a copy. Make one yourself before an upgrade, or set backup_before_migration to \"require\".");
            Ok(Copied::Failed(why))
        }
        Err(why) => Err(Error::new(
            Code::Unavailable,
            format!(
                "The database is not migrated, because it cannot be copied to {} before: {why}. Solve this, or set backup_before_migration to \"skip\".",
                folder.display()
            ),
        )),
    }
}

/// Copies the database to a new file with its final name.
fn copy_into(store: &Store, folder: &Path, from: u32, to: u32) -> std::result::Result<PathBuf, String> {
    let told = |error: std::io::Error| error.to_string();
    let stamp = Clock::System.now().datetime(&TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ").to_string();
    let make = |folder: &Path| DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(told);
    make(folder)?;
    let here = File::open(folder).map_err(told)?;
    // One copy at a time. So what another one has not finished was left by a process that was killed: with a start that is
    // killed each time, such as by a time limit, these would fill the disk. Some file systems have no locks.
    if here.lock().is_ok() {
        delete_unfinished(folder);
    }
    let unfinished = folder.join(format!("{START}{stamp}-{}{UNFINISHED}", std::process::id()));
    make(&unfinished)?;
    let copied = store.copy_into(&unfinished, &mut |_, _| {}, |_| Ok::<_, store::Error>(()));
    let placed = copied.map_err(|error| error.to_string()).and_then(|(file, ())| {
        let end = file.extension().and_then(|end| end.to_str()).unwrap_or_default();
        // The time comes first: names in their order are copies in theirs.
        let copy = folder.join(format!("{START}{stamp}-schema-{from}-to-{to}.{end}"));
        std::fs::rename(&file, &copy).map_err(told)?;
        here.sync_all().map_err(told)?;
        Ok(copy)
    });
    let _ = std::fs::remove_dir_all(&unfinished);
    if placed.is_ok() {
        delete_old(folder);
    }
    placed
}

/// Returns what is in the folder under the name of a copy.
fn found(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(std::io::Result::ok);
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(START)))
}

fn delete_unfinished(folder: &Path) {
    for path in found(folder).filter(|path| path.is_dir() && path.to_string_lossy().ends_with(UNFINISHED)) {
        let _ = std::fs::remove_dir_all(path);
    }
}

fn delete_old(folder: &Path) {
    let mut copies: Vec<PathBuf> = found(folder).filter(|path| path.is_file()).collect();
    // The newest first.
    copies.sort_unstable_by(|a, b| b.cmp(a));
    let mut schemas: Vec<String> = Vec::new();
    for copy in copies {
        let schema = schema_of(&copy);
        // A migration that fails at every start makes a copy each time: it replaces its own.
        if schemas.len() < KEPT && !schemas.contains(&schema) {
            schemas.push(schema);
            continue;
        }
        // A copy too many is no reason to stop.
        let _ = std::fs::remove_file(copy);
    }
}

/// The schema of a copy, which its name tells: `…-schema-126-to-127.db`.
fn schema_of(copy: &Path) -> String {
    let name = copy.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let rest = name.split_once("-schema-").map(|(_, rest)| rest.to_string());
    rest.and_then(|rest| Some(rest.split_once('-')?.0.to_string())).unwrap_or(name)
}
