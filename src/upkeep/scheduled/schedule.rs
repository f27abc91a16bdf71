//! The settings of scheduled backups.

use std::path::PathBuf;

use archive::Recipients;
use engine::clock::Moment;
use engine::config::{Config, is_foreign_url};
use engine::secrets::key_file::KeySource;

use super::retention::Keep;
use crate::upkeep::backup::place::Place;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// When backups are made, where, and how long they are kept.
pub struct Schedule {
    /// A folder, or `s3://bucket/prefix`.
    pub to: String,
    /// When they are made.
    pub at: When,
    /// Which are kept.
    pub keep: Keep,
    /// Who can decrypt them.
    pub recipients: Recipients,
    /// Whether they include the key of the secrets.
    pub with_key: bool,
    /// After how many seconds the newest is checked again.
    pub check: Option<i64>,
    /// The file with the identity that decrypts them for a check.
    pub identity: Option<PathBuf>,
}

/// When something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Every day, this many seconds after midnight UTC.
    Daily(i64),
    /// After this many seconds.
    Every(i64),
}

impl When {
    fn parse(text: &str) -> Option<When> {
        match text.split_once(':') {
            Some((hours, minutes)) if hours.len() <= 2 && minutes.len() == 2 => {
                let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
                let fits = (0..24).contains(&hours) && (0..60).contains(&minutes);
                fits.then_some(When::Daily(hours * HOUR + minutes * MINUTE))
            }
            Some(_) => None,
            None => interval(text).map(When::Every),
        }
    }

    /// Whether it is due again after it was done at `last`; 0 for never.
    pub fn is_due(self, last: Moment, now: Moment) -> bool {
        match self {
            _ if last.0 == 0 || last > now => true,
            When::Daily(seconds) => {
                let latest = (now.0 - seconds * 1000).div_euclid(DAY * 1000) * DAY * 1000 + seconds * 1000;
                last.0 < latest
            }
            When::Every(seconds) => now.0 - last.0 >= seconds * 1000,
        }
    }

    /// The age in seconds at which the last one is too old.
    pub fn patience(self) -> i64 {
        match self {
            When::Daily(_) => 2 * DAY,
            When::Every(seconds) => 2 * seconds + HOUR,
        }
    }
}

/// Reads `backup_recipient`.
pub fn recipients(config: &Config) -> Result<Recipients, String> {
    let listed = config.backup_recipient.split([',', ' ']).filter(|part| !part.is_empty());
    Recipients::parse(listed).map_err(|why| format!("backup_recipient: {why}"))
}

/// Parses `12 hours` or `7 days`, in seconds.
fn interval(text: &str) -> Option<i64> {
    let (number, unit) = text.trim().split_once(' ')?;
    let unit = match unit.trim().trim_end_matches('s') {
        "minute" => MINUTE,
        "hour" => HOUR,
        "day" => DAY,
        "week" => 7 * DAY,
        _ => return None,
    };
    number.parse::<i64>().ok().filter(|number| (1..=1000).contains(number)).map(|number| number * unit)
}

impl Schedule {
    /// Where the backup with this name is.
    pub fn place(&self, name: &str, config: &Config) -> Result<Place, String> {
        match self.to.starts_with("s3://") {
            true => Place::of_new(&format!("{}/{name}", self.to), config),
            false => Ok(Place::File(PathBuf::from(&self.to).join(name))),
        }
    }

    /// Whether the last backup was made in another place than this, if it is known where.
    pub fn has_moved(&self, last: &str) -> bool {
        !last.is_empty() && last != self.to
    }

    /// Reads the settings; `None` if no backups are scheduled.
    pub fn of(config: &Config) -> Result<Option<Schedule>, String> {
        let (read, wrong) = Schedule::read(config);
        match wrong.is_empty() {
            _ if config.backup_to.is_empty() => Ok(None),
            true => Ok(read),
            false => Err(wrong.join("; ")),
        }
    }

    /// Reads the settings, with everything that is wrong with them.
    pub fn read(config: &Config) -> (Option<Schedule>, Vec<String>) {
        let mut wrong = Vec::new();
        if is_foreign_url(&config.backup_to) {
            wrong.push(format!("backup_to: '{}' must be a folder or s3://bucket/prefix", config.backup_to));
        }
        let at = When::parse(&config.backup_at);
        if at.is_none() {
            wrong.push(
                "backup_at: expected a time (UTC) such as \"02:30\", or an interval such as \"6 hours\"".to_string(),
            );
        }
        let keep = Keep::parse(&config.backup_keep);
        if keep.is_none() {
            wrong.push("backup_keep: expected a list such as \"7 days, 4 weeks, 12 months\"".to_string());
        }
        let recipients = recipients(config).map_err(|why| wrong.push(why)).ok();
        let check = Some(config.backup_check.as_str()).filter(|text| !text.is_empty()).map(interval);
        if check == Some(None) {
            wrong.push("backup_check: expected an interval such as \"7 days\"".to_string());
        }
        let identity = Some(&config.backup_identity).filter(|file| !file.is_empty()).map(PathBuf::from);
        let encrypts = config.backup_recipient.split([',', ' ']).any(|part| !part.is_empty());
        let (is_scheduled, with_key) = (!config.backup_to.is_empty(), config.backup_with_key);
        if is_scheduled && check.is_some() && encrypts && identity.is_none() {
            wrong.push("backup_check: encrypted backups can only be checked with backup_identity".to_string());
        }
        if is_scheduled && with_key && !encrypts {
            wrong.push("backup_with_key: the key is only included in encrypted backups; set backup_recipient".into());
        }
        if let (true, true, KeySource::Setting(_)) = (is_scheduled, with_key, KeySource::of(config)) {
            wrong.push("backup_with_key: the key is a setting and not a file; keep a copy of the setting".to_string());
        }
        let (Some(at), Some(keep), Some(recipients)) = (at, keep, recipients) else { return (None, wrong) };
        let to = config.backup_to.trim_end_matches('/').to_string();
        (Some(Schedule { to, at, keep, recipients, with_key, check: check.flatten(), identity }), wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_intervals_are_read() {
        assert_eq!(When::parse("02:30"), Some(When::Daily(9000)));
        assert_eq!(When::parse("6 hours"), Some(When::Every(6 * HOUR)));
        assert_eq!(When::parse("1 day"), Some(When::Every(DAY)));
        for wrong in ["", "24:00", "2:5", "-1:00", "6", "0 hours", "6 years", "x hours", "1:2:3"] {
            assert_eq!(When::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn daily_backups_are_due_once_a_day() {
        let at = |text: &str| Moment::parse(text).unwrap();
        let daily = When::Daily(9000);
        assert!(daily.is_due(Moment(0), at("2026-11-16T00:00:00.000Z")), "there is none yet");
        assert!(!daily.is_due(at("2026-11-15T02:30:05.000Z"), at("2026-11-16T02:29:59.000Z")));
        assert!(daily.is_due(at("2026-11-15T02:30:05.000Z"), at("2026-11-16T02:30:00.000Z")));
        assert!(!daily.is_due(at("2026-11-16T02:30:00.000Z"), at("2026-11-16T23:59:00.000Z")));
        assert!(daily.is_due(at("2027-01-01T00:00:00.000Z"), at("2026-11-16T00:00:00.000Z")), "a wrong clock set it");
        let every = When::Every(6 * HOUR);
        assert!(!every.is_due(at("2026-11-16T00:00:00.000Z"), at("2026-11-16T05:59:00.000Z")));
        assert!(every.is_due(at("2026-11-16T00:00:00.000Z"), at("2026-11-16T06:00:00.000Z")));
    }
}
