//! Copies the database before it is migrated: a migration cannot be undone.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use store::Store;

use crate::clock::Clock;
use crate::config::{BeforeMigration, Config};
use crate::error::{Code, Error, Result};
use crate::migrations;

/// The folder of the copies in the data folder.
const FOLDER: &str = "backups";
/// The start of their names.
const START: &str = "before-migration-";
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
    let uncopied = match store.pending_migrations(&all)? {
        Some((from, to)) if config.backup_before_migration != BeforeMigration::Skip => copy(store, config, from, to)?,
        _ => None,
    };
    let applied = store.migrate(&all).map_err(|error| without_copy(error.into(), uncopied.as_deref()))?;
    Ok(Migrated { applied, uncopied })
}

/// Adds to the error of a migration that there is no copy to go back to.
fn without_copy(error: Error, why: Option<&str>) -> Error {
    let Some(why) = why else { return error };
    let words = error.internal.as_deref().unwrap_or(&error.message).trim_end_matches('.');
    let words = format!("{words}; no backup was made before the migration, because {why}");
    Error { internal: Some(words), ..error }
}

/// Copies the database; returns why it could not, if that is no reason to stop.
fn copy(store: &Store, config: &Config, from: u32, to: u32) -> Result<Option<String>> {
    // An account is the first thing in a database.
    if store.read_now(|tx| tx.int("SELECT count(*) FROM accounts", &[]))? == 0 {
        return Ok(None);
    }
    let folder = config.data.join(FOLDER);
    match copy_into(store, &folder, from, to) {
        Ok(copy) => {
            tracing::info!(file = %copy.display(), "The database was copied before it is migrated.");
            Ok(None)
        }
        Err(why) if store.is_shared() && config.backup_before_migration == BeforeMigration::Auto => {
            tracing::warn!(%why, "The database is migrated without a copy. Make one yourself before an upgrade, or set backup_before_migration to \"require\".");
            Ok(Some(why))
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
    let unfinished = folder.join(format!("{START}{stamp}-{}.unfinished", std::process::id()));
    DirBuilder::new().recursive(true).mode(0o700).create(&unfinished).map_err(told)?;
    let copied = store.copy_into(&unfinished, &mut |_, _| {}, |_| Ok::<_, store::Error>(()));
    let placed = copied.map_err(|error| error.to_string()).and_then(|(file, ())| {
        let end = file.extension().and_then(|end| end.to_str()).unwrap_or_default();
        // The time comes first: names in their order are copies in theirs.
        let copy = folder.join(format!("{START}{stamp}-schema-{from}-to-{to}.{end}"));
        std::fs::rename(&file, &copy).map_err(told)?;
        std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(told)?;
        Ok(copy)
    });
    let _ = std::fs::remove_dir_all(&unfinished);
    if placed.is_ok() {
        delete_old(folder);
    }
    placed
}

fn delete_old(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(std::io::Result::ok);
    let is_copy = |path: &PathBuf| {
        path.is_file() && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(START))
    };
    let mut copies: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_copy).collect();
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
