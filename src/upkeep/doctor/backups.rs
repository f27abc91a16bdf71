use std::path::Path;
use std::time::Duration;

use engine::clock::{Clock, Moment};
use engine::config::Config;
use engine::error::Error;
use engine::open::database;
use store::{Options, Store};

use super::Finding;
use crate::upkeep::backup::must_have_parent;
use crate::upkeep::backup::place::{Place, unreachable};
use crate::upkeep::scheduled::schedule::Schedule;
use crate::upkeep::scheduled::state::{self, State, Task};

const TOPIC: &str = "backups";
const HOUR_MS: i64 = 3_600_000;
/// After this time the alert about checks fires too.
const UNPROVEN_HOURS: i64 = 14 * 24;

/// Looks at the scheduled backups: whether they are made, and proven.
pub fn examine(config: &Config) -> Vec<Finding> {
    let schedule = match Schedule::of(config) {
        Ok(Some(schedule)) => schedule,
        Ok(None) => return Vec::new(),
        // Wrong settings have findings of their own.
        Err(_) => return Vec::new(),
    };
    let mut found = Vec::new();
    if let Some(file) = &schedule.identity
        && let Err(why) = archive::Identities::read(file)
    {
        let remedy = "Correct backup_identity, or its permissions.";
        found.push(Finding::problem(TOPIC, format!("backup_identity: {why}."), remedy));
    }
    if !schedule.to.starts_with("s3://") && !Path::new(&schedule.to).is_dir() {
        found.push(match must_have_parent(Path::new(&schedule.to)) {
            Ok(()) => {
                let what = format!("The folder {} does not exist.", schedule.to);
                Finding::advice(TOPIC, what, "The first scheduled backup creates it; check that its disk is mounted.")
            }
            Err(why) => Finding::problem(TOPIC, format!("{why}."), "Correct backup_to, if that is another folder."),
        });
    }
    let mut options = Options::new(database(config));
    options.timeout = Duration::from_secs(10);
    let read = Store::open_to_read(&options).map_err(Error::from).and_then(|store| {
        store.read_now(|tx| {
            let states = (State::of(tx, Task::Make)?, State::of(tx, Task::Check)?);
            Ok::<_, Error>((states, state::place(tx)?, tx.database_time()?))
        })
    });
    // An unreachable database has a finding of its own.
    let Ok(((made, proven), last_place, time)) = read else { return found };
    let now = time.map_or_else(|| Clock::System.now(), Moment);
    found.push(about_made(&schedule, &made, now));
    found.extend(match schedule.has_moved(&last_place) {
        true => Some(Finding::advice(
            TOPIC,
            format!("The last backup is in {last_place}, and there is none in {} yet.", schedule.to),
            "The server makes one soon after it is restarted; `kantoor backup` makes one now.",
        )),
        false => about_place(config, &schedule, &made),
    });
    found.extend(about_proven(&schedule, &made, &proven, now));
    found
}

fn age(moment: Moment, now: Moment) -> i64 {
    (now.0 - moment.0) / HOUR_MS
}

fn about_made(schedule: &Schedule, made: &State, now: Moment) -> Finding {
    let remedy = "Check that `kantoor serve` runs, and look for \"scheduled backup\" in its log; `kantoor backup` makes one now.";
    if made.done_at.0 == 0 {
        return match made.last_error.as_str() {
            "" => Finding::advice(TOPIC, format!("There is no backup in {} yet.", schedule.to), remedy),
            why => Finding::problem(TOPIC, format!("No backup could be made: {why}."), remedy),
        };
    }
    let hours = age(made.done_at, now);
    match now.0 - made.done_at.0 > schedule.at.patience() * 1000 {
        true => {
            let why = if made.last_error.is_empty() { String::new() } else { format!(": {}", made.last_error) };
            Finding::problem(TOPIC, format!("The last backup is {hours} hours old{why}."), remedy)
        }
        false => Finding::fine(TOPIC, format!("The last backup, {}, is {hours} hours old.", made.name)),
    }
}

/// Looks whether the last backup is still where it was made.
fn about_place(config: &Config, schedule: &Schedule, made: &State) -> Option<Finding> {
    if made.name.is_empty() {
        return None;
    }
    let remedy = "Check backup_to, and that the folder is mounted; make a backup with `kantoor backup`.";
    let place = match schedule.place(&made.name, config) {
        Ok(place) => place,
        Err(why) => return Some(Finding::problem(TOPIC, format!("{why}."), remedy)),
    };
    let is_there = match &place {
        Place::Folder(path) | Place::File(path) => path.try_exists().map_err(|error| error.to_string()),
        Place::Object { blobs, key, .. } => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
            let size = runtime.block_on(blobs.size(key));
            size.map(|size| size.is_some()).map_err(|error| unreachable(&error))
        }
    };
    match is_there {
        Ok(true) => None,
        Ok(false) => Some(Finding::problem(TOPIC, format!("The last backup, {place}, is no longer there."), remedy)),
        Err(why) => Some(Finding::problem(TOPIC, format!("The last backup, {place}, cannot be read: {why}."), remedy)),
    }
}

/// Without `backup_check` somebody has to check them.
fn about_own_checks(proven: &State, now: Moment) -> Finding {
    let remedy = "Set backup_check, or run `kantoor restore --check` on the newest backup.";
    if proven.done_at.0 == 0 {
        return Finding::advice(TOPIC, "No backup has been restored and verified yet.", remedy);
    }
    let hours = age(proven.done_at, now);
    let what = format!("A backup was last restored and verified {hours} hours ago.");
    match hours > UNPROVEN_HOURS {
        true => Finding::advice(TOPIC, what, remedy),
        false => Finding::fine(TOPIC, what),
    }
}

fn about_proven(schedule: &Schedule, made: &State, proven: &State, now: Moment) -> Option<Finding> {
    let Some(every) = schedule.check else { return Some(about_own_checks(proven, now)) };
    let remedy = "Run `kantoor restore --check` on the newest backup to see why.";
    Some(if !proven.last_error.is_empty() && made.done_at > proven.tried_at {
        let what = format!("An earlier backup could not be restored: {}.", proven.last_error);
        Finding::advice(TOPIC, what, "The server checks the newest one soon; look for \"backup\" in its log.")
    } else if !proven.last_error.is_empty() {
        let what = format!("The newest backup could not be restored: {}.", proven.last_error);
        Finding::problem(TOPIC, what, remedy)
    } else if proven.done_at.0 == 0 {
        Finding::advice(
            TOPIC,
            "No backup has been restored and verified yet.",
            "The server does it after the first backup.",
        )
    } else if now.0 - proven.done_at.0 > 2 * every * 1000 {
        let what = format!("A backup was last restored and verified {} hours ago.", age(proven.done_at, now));
        Finding::problem(TOPIC, what, remedy)
    } else {
        Finding::fine(TOPIC, format!("A backup was restored and verified {} hours ago.", age(proven.done_at, now)))
    })
}
