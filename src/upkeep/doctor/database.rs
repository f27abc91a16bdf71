use std::sync::atomic::Ordering;
use std::time::Duration;

use engine::accounts::{Account, SHARED};
use engine::clock::Clock;
use engine::config::Config;
use engine::jobs;
use engine::migrations;
use engine::open::{database, unusable};
use engine::registry::registry;
use engine::secrets;
use engine::secrets::columns;
use engine::secrets::vault::Vault;
use store::{Database, Error, Options, Result, Store, Tx};

use super::Finding;
use crate::upkeep::backup::manifest::newest_schema;

/// How far the clocks of the program and of the database may differ.
const SKEW_MS: i64 = 2000;
/// How old the oldest queued job may be.
const LATE_MS: i64 = 10 * 60 * 1000;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Looks at the database, and through it at the clock and the queue.
pub fn examine(config: &Config) -> Vec<Finding> {
    let wanted = database(config);
    if let Some(why) = unusable(config) {
        return vec![Finding::problem("database", why, "")];
    }
    if let Database::Sqlite(path) = &wanted
        && !path.is_file()
    {
        let found = format!("There is no database at {} yet.", path.display());
        return vec![Finding::advice("database", found, "`kantoor serve` creates it.")];
    }
    let mut options = Options::new(wanted);
    options.timeout = TIMEOUT;
    let opened = Store::open_to_read(&options).and_then(|store| {
        // Its schema and its rows say nothing yet.
        let is_current = if store.is_being_copied()? { None } else { Some(store.is_migrated(&migrations::all())?) };
        Ok((is_current, store))
    });
    let (is_current, store) = match opened {
        Ok((Some(is_current), store)) => (is_current, store),
        Ok((None, _)) => return vec![copied_in_part(config)],
        Err(error) => return vec![unreachable(config, &error)],
    };
    let mut found = Vec::new();
    match store.read_now(|tx| about(tx, config)) {
        Ok(about) => found.extend(about),
        Err(error) => found.push(unreachable(config, &error)),
    }
    if !is_current {
        found.push(of_another_version(&store));
        return found;
    }
    found.extend(standby(config));
    found.extend(clock_and_queue(&store));
    found.extend(unreadable_secrets(&store, config));
    found
}

/// Looks whether a read goes to the standby: the server says nothing about one that is lost, since the primary answers.
fn standby(config: &Config) -> Option<Finding> {
    if config.database_standby.is_empty() || config.database_url.is_empty() {
        return None;
    }
    let mut options = Options::new(database(config));
    (options.timeout, options.standby) = (TIMEOUT, config.database_standby.clone());
    let store = Store::open_to_read(&options).ok()?;
    store.read_now(|tx| tx.int("SELECT 1", &[])).ok()?;
    if store.stats().standby_reads.load(Ordering::Relaxed) > 0 {
        return Some(Finding::fine("database", "The standby answers reads."));
    }
    let remedy = "Check database_standby, that it is a standby of this database and receives its log; until then, the primary answers.";
    Some(Finding::problem("database", "The standby does not answer reads, or is behind.", remedy))
}

/// The target of a copy that was interrupted, or is still running.
fn copied_in_part(config: &Config) -> Finding {
    let empty = match config.database_url.is_empty() {
        true => format!("delete kantoor.db, kantoor.db-wal and kantoor.db-shm in {}", config.data.display()),
        false => "drop this database, create it again".to_string(),
    };
    Finding::problem(
        "database",
        "A copy of another database to this one has not finished: only a part of the rows is here, and no server starts on it.",
        format!("Run the same `kantoor copy` again, which continues; to start anew, {empty} and run `kantoor copy`."),
    )
}

fn of_another_version(store: &Store) -> Finding {
    let (own, newest) = (store.schema().unwrap_or_default(), newest_schema());
    if own > newest {
        let what = format!("The database is of a newer version (schema {own}) than this program (schema {newest}).");
        return Finding::problem(
            "database",
            what,
            "Use the newer version of the program: this one refuses the database.",
        );
    }
    let what = format!("The database is of an earlier version (schema {own}) than this program (schema {newest}).");
    let remedy =
        "Run `kantoor migrate`, which copies the database before it changes it; `kantoor serve` does the same.";
    Finding::advice("database", what, remedy)
}

/// Whether the database has secrets, and the settings have no key for them.
pub fn needs_key(config: &Config) -> bool {
    let wanted = database(config);
    if matches!(&wanted, Database::Sqlite(path) if !path.is_file()) {
        return false;
    }
    let mut options = Options::new(wanted);
    options.timeout = TIMEOUT;
    Store::open_to_read(&options).is_ok_and(|store| {
        // The secrets of an earlier version are not looked at.
        store.is_migrated(&migrations::all()).is_ok_and(|is_current| is_current)
            && secrets::for_database(&store, config).is_err()
    })
}

/// Looks for secrets that cannot be decrypted: they are not used, and what needs them does not work.
fn unreadable_secrets(store: &Store, config: &Config) -> Option<Finding> {
    if Vault::load(config).is_err() {
        // The finding about the settings says why.
        return None;
    }
    let looked = secrets::for_database(store, config).and_then(|vault| {
        let Some(vault) = vault else { return Ok(Vec::new()) };
        store.read_now(|tx| {
            let numbers = Account::all(tx)?.into_iter().map(|account| account.number).chain([SHARED]);
            let mut found = Vec::new();
            for number in numbers {
                found.extend(columns::check(tx, registry().secrets, &vault, number)?);
            }
            Ok::<_, engine::error::Error>(found)
        })
    });
    let found = match looked {
        Ok(found) => found,
        Err(error) => {
            let remedy = "Put secret.key, or the setting secret_key, back from your copy; if it is lost, `kantoor secrets reset` starts over.";
            return Some(Finding::problem("secrets", error.message, remedy));
        }
    };
    let (table, id, what) = found.first()?;
    let others = match found.len() - 1 {
        0 => String::new(),
        more => format!(" So are {more} others.").replace("So are 1 others", "So is 1 other"),
    };
    let remedy = "Set it again, or accept plain text with `kantoor secrets trust`; `kantoor verify` lists all.";
    Some(Finding::problem("secrets", format!("{table} {id}: {what}.{others}"), remedy))
}

fn unreachable(config: &Config, error: &Error) -> Finding {
    let remedy = if config.database_url.is_empty() {
        "Run `kantoor verify`; if the file is damaged, restore a backup."
    } else {
        "Check database_url, that PostgreSQL runs, and that it accepts connections from this machine."
    };
    Finding::problem("database", format!("The database cannot be read: {error}."), remedy)
}

/// What the database says about itself.
fn about(tx: &mut Tx, config: &Config) -> Result<Vec<Finding>> {
    if config.database_url.is_empty() {
        let size = tx.int("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()", &[])?;
        return Ok(vec![Finding::fine("database", format!("SQLite, {} MiB.", size / (1024 * 1024)))]);
    }
    let set = |tx: &mut Tx, name: &str| {
        tx.first("SELECT current_setting($1)", &[name.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))
            .map(Option::unwrap_or_default)
    };
    let mut found = vec![Finding::fine("database", format!("PostgreSQL {}.", set(tx, "server_version")?))];
    for name in ["fsync", "full_page_writes", "synchronous_commit"] {
        if set(tx, name)? == "off" {
            let what = format!("{name} is off: acknowledged changes are lost when PostgreSQL or its machine fails.");
            found.push(Finding::problem("database", what, format!("Set {name} = on in postgresql.conf.")));
        }
    }
    // One more for urgent writes, and one that asks for the end of the log before a read from a standby.
    let others = 1 + usize::from(!config.database_standby.is_empty());
    let (most, own) = (set(tx, "max_connections")?, config.database_readers + config.database_writers + others);
    if most.parse().is_ok_and(|most: usize| most < 2 * own) {
        let what = format!("PostgreSQL accepts {most} connections, and each node uses up to {own}.");
        found.push(Finding::advice("database", what, "Raise max_connections, or lower database_readers."));
    }
    Ok(found)
}

fn clock_and_queue(store: &Store) -> Vec<Finding> {
    let now = Clock::System.now().0;
    let looked = store.read_now(|tx| {
        let theirs = tx.database_time()?.unwrap_or(now);
        Ok::<_, engine::error::Error>((theirs, jobs::state(tx)?))
    });
    let (theirs, queue) = match looked {
        Ok(looked) => looked,
        Err(error) => {
            let why = error.internal.unwrap_or(error.message);
            return vec![Finding::problem(
                "jobs",
                format!("The queue cannot be read: {why}."),
                "Run `kantoor verify`.",
            )];
        }
    };
    let mut found = vec![clock(now, theirs.max(queue.newest.0), theirs)];
    if queue.given_up > 0 {
        let what = format!("{} jobs are not tried any more.", queue.given_up);
        let remedy = "`kantoor jobs list` says why; `kantoor jobs retry` runs them again.";
        found.push(Finding::advice("jobs", what, remedy));
    }
    let late = theirs - queue.oldest_due.0;
    if queue.oldest_due.0 > 0 && late > LATE_MS {
        let what = format!("The oldest job has been due for {} minutes.", late / 60_000);
        found.push(Finding::problem("jobs", what, "Check that `kantoor serve` runs; its log says why jobs wait."));
    }
    found
}

fn clock(now: i64, latest: i64, theirs: i64) -> Finding {
    let remedy = "Synchronize the clock, for example with systemd-timesyncd or chrony.";
    if (now - theirs).abs() > SKEW_MS {
        let what = format!("This machine and PostgreSQL differ by {} s.", (now - theirs).abs() / 1000);
        return Finding::problem("clock", what, remedy);
    }
    if latest - now > SKEW_MS {
        let what =
            format!("The database has work from {} s in the future: the clock was set back.", (latest - now) / 1000);
        return Finding::problem("clock", what, remedy);
    }
    Finding::fine("clock", "The clock agrees with the database.")
}
