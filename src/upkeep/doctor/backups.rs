use std::path::Path;
use std::time::Duration;

use engine::clock::{Clock, Moment};
use engine::config::Config;
use engine::error::Error;
use engine::open::database;
use store::{Options, Store};

use super::Finding;
use crate::upkeep::scheduled::schedule::Schedule;
use crate::upkeep::scheduled::state::{State, Task};

const TOPIC: &str = "backups";
const HOUR_MS: i64 = 3_600_000;

/// Looks at the scheduled backups: whether they are made, and proven.
pub fn examine(config: &Config) -> Vec<Finding> {
    let schedule = match Schedule::of(config) {
        Ok(Some(schedule)) => schedule,
        Ok(None) => return Vec::new(),
        Err(why) => return vec![Finding::problem(TOPIC, format!("{why}."), "Correct the setting.")],
    };
    let mut found = Vec::new();
    if let Some(file) = &schedule.identity
        && let Err(why) = archive::Identities::read(file)
    {
        let remedy = "Correct backup_identity, or its permissions.";
        found.push(Finding::problem(TOPIC, format!("backup_identity: {why}."), remedy));
    }
    if !schedule.to.starts_with("s3://") && !Path::new(&schedule.to).is_dir() {
        let what = format!("The folder {} does not exist yet.", schedule.to);
        found.push(Finding::advice(TOPIC, what, "The first scheduled backup creates it; check that it is mounted."));
    }
    let mut options = Options::new(database(config));
    options.timeout = Duration::from_secs(10);
    let read = Store::open_to_read(&options).map_err(Error::from).and_then(|store| {
        store.read_now(|tx| Ok::<_, Error>((State::of(tx, Task::Make)?, State::of(tx, Task::Check)?)))
    });
    // An unreachable database has a finding of its own.
    let Ok((made, proven)) = read else { return found };
    let now = Clock::System.now();
    found.push(about_made(&schedule, &made, now));
    found.extend(about_proven(&schedule, &proven, now));
    found
}

fn age(moment: Moment, now: Moment) -> i64 {
    (now.0 - moment.0) / HOUR_MS
}

fn about_made(schedule: &Schedule, made: &State, now: Moment) -> Finding {
    let remedy = "Check that `kantoor serve` runs, and look for \"scheduled backup\" in its log.";
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

fn about_proven(schedule: &Schedule, proven: &State, now: Moment) -> Option<Finding> {
    let every = schedule.check?;
    let remedy = "Run `kantoor restore --check` on the newest backup to see why.";
    Some(if !proven.last_error.is_empty() {
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
