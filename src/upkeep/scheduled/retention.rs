//! Which scheduled backups are kept: the newest of each of the last days, weeks and months. Several databases may have their
//! backups in one place, so a name contains the id of its database, and each deletes only its own.

use engine::clock::Moment;
use engine::contents::hex;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};

/// The format of the time in a name.
const STAMP: &str = "%Y%m%dT%H%M%SZ";
/// The start of the name of a scheduled backup.
const START: &str = "kantoor-";
const END: &str = ".tar.zst";
const ENCRYPTED: &str = ".tar.zst.age";

/// The id of a database in the names of its backups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseId(String);

impl DatabaseId {
    /// Derives the id from the uid of the first account, which a restored or moved database keeps.
    pub fn of(first_account: &str) -> DatabaseId {
        DatabaseId(hex(&Sha256::digest(first_account)[..4]))
    }
}

/// Returns the name of a backup that is made now.
pub fn name(id: &DatabaseId, now: Moment, is_encrypted: bool) -> String {
    let stamp = now.datetime(&TimeZone::UTC).strftime(STAMP);
    format!("{START}{}-{stamp}{}", id.0, if is_encrypted { ENCRYPTED } else { END })
}

/// Returns when a backup with this name was made; none if it is not the name of a scheduled backup of this database.
pub fn made_at(id: &DatabaseId, name: &str) -> Option<DateTime> {
    let rest = name.strip_prefix(START)?.strip_prefix(&id.0)?.strip_prefix('-')?;
    let stamp = rest.strip_suffix(ENCRYPTED).or_else(|| rest.strip_suffix(END))?;
    DateTime::strptime(STAMP, stamp).ok()
}

/// How many hours, days, weeks and months have a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    hours: usize,
    days: usize,
    weeks: usize,
    months: usize,
}

impl Keep {
    /// Parses `7 days, 4 weeks, 12 months`.
    pub fn parse(text: &str) -> Option<Keep> {
        let mut keep = Keep::default();
        for part in text.split(',') {
            let (number, unit) = part.trim().split_once(' ')?;
            let number: usize = number.parse().ok().filter(|number| (1..=1000).contains(number))?;
            let place = match unit.trim().trim_end_matches('s') {
                "hour" => &mut keep.hours,
                "day" => &mut keep.days,
                "week" => &mut keep.weeks,
                "month" => &mut keep.months,
                _ => return None,
            };
            *place = number;
        }
        Some(keep)
    }

    /// Returns the names of backups of this database that are not kept. Other names are ignored, and the newest backup is
    /// always kept, as is the one that was `proven` last: a newer one may turn out to be no good.
    pub fn expired(&self, id: &DatabaseId, names: Vec<String>, proven: &str) -> Vec<String> {
        let mut all: Vec<(DateTime, String)> =
            names.into_iter().filter_map(|name| Some((made_at(id, &name)?, name))).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        let mut kept: Vec<bool> = all.iter().map(|(_, name)| name == proven).collect();
        kept.iter_mut().take(1).for_each(|newest| *newest = true);
        let of_hour = |at: &DateTime| (at.date().year(), at.date().day_of_year(), at.hour());
        let of_day = |at: &DateTime| (at.date().year(), at.date().day_of_year(), 0);
        let of_week = |at: &DateTime| {
            let week = at.date().iso_week_date();
            (week.year(), i16::from(week.week()), 0)
        };
        let of_month = |at: &DateTime| (at.date().year(), i16::from(at.date().month()), 0);
        type Period = fn(&DateTime) -> (i16, i16, i8);
        let periods: [(usize, Period); 4] =
            [(self.hours, of_hour), (self.days, of_day), (self.weeks, of_week), (self.months, of_month)];
        for (most, period) in periods {
            let (mut last, mut count) = (None, 0);
            for ((at, _), kept) in all.iter().zip(&mut kept) {
                let own = Some(period(at));
                if own != last && count < most {
                    (last, count) = (own, count + 1);
                    *kept = true;
                }
            }
        }
        all.into_iter().zip(kept).filter(|(_, kept)| !kept).map(|((_, name), _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_days_weeks_and_months() {
        let keep = Keep::parse("7 days, 4 weeks, 12 months").unwrap();
        let id = DatabaseId::of("a");
        let mut names = Vec::new();
        let start: Moment = Moment::parse("2025-01-01T02:30:00.000Z").unwrap();
        // Every twelve hours for two years, each time followed by what is deleted.
        for half_day in 0..1460 {
            names.push(name(&id, start.plus_seconds(half_day * 43_200), half_day % 2 == 0));
            names.push("notes.txt".to_string());
            let expired = keep.expired(&id, names.clone(), "");
            names.retain(|name| !expired.contains(name) && name != "notes.txt");
        }
        names.sort();
        let mut days: Vec<String> = names.iter().map(|name| made_at(&id, name).unwrap().date().to_string()).collect();
        days.dedup();
        assert_eq!(names.len(), days.len(), "one a day");
        let months = ["01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11"];
        let ends: Vec<String> = days
            .iter()
            .filter(|day| months.iter().any(|month| day.starts_with(&format!("2026-{month}"))))
            .cloned()
            .collect();
        assert_eq!(ends.len(), 11, "{days:?}");
        assert!(ends.iter().all(|day| day[8..] >= *"28"), "the last of each month: {ends:?}");
        assert_eq!(days.iter().filter(|day| day.as_str() >= "2026-12-25").count(), 7, "{days:?}");
        assert!(names.len() <= 7 + 4 + 12, "{days:?}");
    }

    #[test]
    fn never_deletes_the_newest_or_what_it_did_not_make() {
        let keep = Keep::parse("1 months").unwrap();
        let id = DatabaseId::of("a");
        let one = name(&id, Moment::parse("2026-11-16T02:30:00.000Z").unwrap(), true);
        assert_eq!(one, "kantoor-ca978112-20261116T023000Z.tar.zst.age");
        assert!(keep.expired(&id, vec![one, "kantoor.db".into(), "kantoor-old.tar.zst".into()], "").is_empty());
        let earlier = Moment::parse("2026-10-16T02:30:00.000Z").unwrap();
        let both = ["a", "b"].map(DatabaseId::of);
        let mut names: Vec<String> = both.iter().map(|id| name(id, earlier, false)).collect();
        names.push("kantoor-20261016T023000Z.tar.zst".to_string());
        names.push(name(&id, earlier.plus_seconds(1), false));
        let first = "kantoor-ca978112-20261016T023000Z.tar.zst";
        assert_eq!(keep.expired(&id, names.clone(), ""), [first]);
        assert!(keep.expired(&id, names, first).is_empty(), "the newest that is known to be good");
        for wrong in ["", "7", "0 days", "7 years", "7 days 4 weeks", "-1 days"] {
            assert_eq!(Keep::parse(wrong), None, "{wrong}");
        }
    }
}
