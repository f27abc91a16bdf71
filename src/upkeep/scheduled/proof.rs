//! Checks that operators make themselves (`kantoor restore --check`) count as those of the server do, so that the metric and
//! its alert know of them.

use engine::accounts::Account;
use engine::clock::{Clock, Moment};
use engine::config::Config;
use engine::error::Error;
use engine::{migrations, open};
use jiff::tz::TimeZone;
use store::{Options, Store};

use super::retention::{self, DatabaseId};
use super::state::{self, State, Task};
use crate::upkeep::backup::manifest::Manifest;

/// The scheduled backups of the configured database, before a check.
pub struct Ledger {
    id: DatabaseId,
    made: State,
}

impl Ledger {
    /// Reads what is known; none if the settings name no database of this version, as on another machine. Read it before the
    /// check: a backup that is made meanwhile is no reason to check again.
    pub fn read(config: &Config) -> Option<Ledger> {
        open::must_have_data(config).ok()?;
        let store = Store::open_to_read(&Options::new(open::database(config))).ok()?;
        if !store.is_migrated(&migrations::all()).ok()? {
            return None;
        }
        let (id, made) = (id_of(&store)?, store.read_now(|tx| State::of(tx, Task::Make)).ok()?);
        Some(Ledger { id, made })
    }

    /// Records that the backup with this description and name was restored and verified; `id` is that of the database in it.
    /// Returns what the operator should know, a sentence; none if the backup is not of this database.
    pub fn record(
        &self,
        config: &Config,
        id: Option<&DatabaseId>,
        manifest: &Manifest,
        name: &str,
    ) -> Result<Option<String>, String> {
        if id != Some(&self.id) {
            return Ok(None);
        }
        let started = Moment::parse(&manifest.started_at).map(|at| at.datetime(&TimeZone::UTC));
        let newest = retention::made_at(&self.id, &self.made.name);
        if newest.is_some() && started < newest {
            let newest = &self.made.name;
            return Ok(Some(format!("It is not recorded, because {newest} is newer: check that one too.")));
        }
        write(config, name)?;
        Ok(Some("The server knows of this check now.".to_string()))
    }

    /// Records a check on another machine of the last scheduled backup, which must have this name.
    pub fn record_elsewhere(&self, config: &Config, name: &str) -> Result<(), String> {
        match self.made.name.as_str() {
            "" => Err("there is no scheduled backup yet".to_string()),
            newest if newest == name => write(config, name),
            newest => Err(format!("the last scheduled backup is {newest}; check that one")),
        }
    }
}

fn write(config: &Config, name: &str) -> Result<(), String> {
    let told = |error: Error| error.internal.unwrap_or(error.message);
    let store = open::open_store(config).map_err(told)?;
    let now = Clock::of(&store).map_err(|error| error.to_string())?.now();
    state::record_check(&store, now, name).map_err(told)
}

/// Returns the id of a database; none if it has no accounts.
pub fn id_of(store: &Store) -> Option<DatabaseId> {
    let accounts = store.read_now(Account::all_to_check).ok()?;
    Some(DatabaseId::of(&accounts.first()?.0.uid))
}
