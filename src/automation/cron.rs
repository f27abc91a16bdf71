//! Cron expressions of five fields: minute, hour, day of the month, month, day of the week. An expression with specific
//! hours follows the local clock: each local time occurs once, also in the hour that is repeated when the clocks go
//! back, and a skipped time occurs right after the gap. An expression for every hour, or every n hours, follows elapsed
//! time: it occurs in both passes of a repeated hour and not in a skipped one.

use engine::clock::Moment;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};

/// A cron expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// When both the day of the month and the day of the week are given, either matches.
    either_day: bool,
    /// Whether the hour is a wildcard, so that the expression follows elapsed time.
    any_hour: bool,
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The set of all hours, however it is written.
const EVERY_HOUR: u64 = (1 << 24) - 1;

/// The longest distance to the next matching day: 29 February on a given day of the week.
const FURTHEST_DAYS: i64 = 366 * 41;

impl Cron {
    /// Parses `minute hour day month weekday`, or `@daily` and the like; `Err` says what is wrong.
    pub fn parse(text: &str) -> Result<Cron, String> {
        let text = match text.trim() {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            text => text,
        };
        let parts: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = parts[..] else {
            return Err("must be a cron expression of five fields, such as '30 8 * * mon-fri'".to_string());
        };
        let weekdays = field(weekday, 0, 7, WEEKDAYS, 0, "day of the week")?;
        let hours = field(hour, 0, 23, &[], 0, "hour")?;
        let cron = Cron {
            minutes: field(minute, 0, 59, &[], 0, "minute")?,
            hours,
            days: field(day, 1, 31, &[], 0, "day of the month")?,
            months: field(month, 1, 12, MONTHS, 1, "month")?,
            // 7 is also Sunday.
            weekdays: (weekdays | weekdays >> 7) & 0x7f,
            either_day: !day.starts_with('*') && !weekday.starts_with('*'),
            any_hour: hour.starts_with('*') || hours == EVERY_HOUR,
        };
        let some_day = Date::constant(2024, 1, 1);
        cron.day_from(some_day).map(|_| cron).ok_or_else(|| "matches no existing date".to_string())
    }

    /// Returns the first time after `after`.
    pub fn next(&self, after: Moment, zone: &TimeZone) -> Option<Moment> {
        if self.any_hour { self.next_to_pass(after, zone) } else { self.next_on_the_wall(after, zone) }
    }

    /// Between two clock changes the local time has a fixed offset, so the search restarts after each change.
    fn next_to_pass(&self, after: Moment, zone: &TimeZone) -> Option<Moment> {
        let mut from = Timestamp::from_millisecond(after.0.checked_add(1)?).ok()?;
        loop {
            let offset = zone.to_offset(from);
            // Starts just before, so that `from` itself is included.
            let local = offset.to_datetime(from).checked_sub(1.nanosecond()).ok()?;
            let found = offset.to_timestamp(self.next_local(local)?).ok()?;
            let change = zone.following(from).next().map(|change| change.timestamp());
            match change.filter(|change| *change <= found) {
                // For a distant time, skips the clock changes on the way: no earlier local time matches, also when
                // clocks show it twice.
                Some(change) => from = change.max(found.checked_sub(48.hours()).ok()?),
                None => return Some(Moment(found.as_millisecond())),
            }
        }
    }

    fn next_on_the_wall(&self, after: Moment, zone: &TimeZone) -> Option<Moment> {
        let mut local = after.datetime(zone);
        loop {
            local = self.next_local(local)?;
            let moment = on_the_wall(local, zone)?;
            // The second pass of a repeated hour finds times that have already occurred.
            if moment > after {
                return Some(moment);
            }
        }
    }

    /// Returns the last time from `first` up to and including `now`, where `first` is itself a matching time.
    pub fn latest(&self, first: Moment, now: Moment, zone: &TimeZone) -> Moment {
        // Starts nearby, so that it does not step through a year of minutes.
        for seconds in [3600, 86_400, 32 * 86_400, 400 * 86_400] {
            let near = now.plus_seconds(-seconds);
            if near > first && self.next(near, zone).is_some_and(|next| next <= now) {
                return self.walk(near, now, zone).unwrap_or(first);
            }
        }
        self.walk(first, now, zone).unwrap_or(first)
    }

    fn walk(&self, from: Moment, now: Moment, zone: &TimeZone) -> Option<Moment> {
        let times = std::iter::successors(self.next(from, zone), |last| self.next(*last, zone));
        times.take_while(|time| *time <= now).last()
    }

    /// Returns the first local time after `local`.
    fn next_local(&self, local: DateTime) -> Option<DateTime> {
        let today = self.day_fits(local.date()).then(|| self.time_from(local.time(), true)).flatten();
        if let Some(time) = today {
            return Some(local.date().to_datetime(time));
        }
        let day = self.day_from(local.date().tomorrow().ok()?)?;
        Some(day.to_datetime(self.time_from(Time::midnight(), false)?))
    }

    fn day_from(&self, first: Date) -> Option<Date> {
        let mut day = first;
        for _ in 0..FURTHEST_DAYS {
            if self.day_fits(day) {
                return Some(day);
            }
            day = if has(self.months, day.month()) {
                day.tomorrow().ok()?
            } else {
                day.first_of_month().checked_add(1.month()).ok()?
            };
        }
        None
    }

    fn day_fits(&self, day: Date) -> bool {
        let of_month = has(self.days, day.day());
        let of_week = has(self.weekdays, day.weekday().to_sunday_zero_offset());
        has(self.months, day.month()) && if self.either_day { of_month || of_week } else { of_month && of_week }
    }

    fn time_from(&self, time: Time, after: bool) -> Option<Time> {
        let start = i32::from(time.hour()) * 60 + i32::from(time.minute()) + i32::from(after);
        let found = (start..24 * 60).find(|minute| {
            has(self.hours, i8::try_from(minute / 60).unwrap_or(0))
                && has(self.minutes, i8::try_from(minute % 60).unwrap_or(0))
        })?;
        Time::new(i8::try_from(found / 60).ok()?, i8::try_from(found % 60).ok()?, 0, 0).ok()
    }
}

fn has(set: u64, number: i8) -> bool {
    set >> number & 1 == 1
}

/// Returns the moment at which clocks first show this local time, or skip it.
fn on_the_wall(local: DateTime, zone: &TimeZone) -> Option<Moment> {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    let timestamp: Timestamp = match ambiguous.offset() {
        AmbiguousOffset::Gap { before, .. } => {
            let within = before.to_timestamp(local).ok()?;
            // One nanosecond later, so that a change at that exact moment is included.
            zone.preceding(within.checked_add(1.nanosecond()).ok()?).next()?.timestamp()
        }
        _ => ambiguous.earlier().ok()?,
    };
    Some(Moment(timestamp.as_millisecond()))
}

/// Parses a field into a set of bits.
fn field(text: &str, min: u32, max: u32, names: &[&str], first: u32, what: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "contains '{text}' for the {what}, which must be from {min} to {max}, such as {min}, {min}-{max} or */2"
        )
    };
    let number = |text: &str| -> Result<u32, String> {
        let named = names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let number = match named.and_then(|place| u32::try_from(place).ok()) {
            Some(place) => place + first,
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().map_err(|_| wrong())?,
            None => return Err(wrong()),
        };
        if (min..=max).contains(&number) { Ok(number) } else { Err(wrong()) }
    };
    let mut set = 0_u64;
    for part in text.split(',') {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let step = match step {
            None => 1,
            Some(step) if step.bytes().all(|byte| byte.is_ascii_digit()) => step.parse().map_err(|_| wrong())?,
            Some(_) => return Err(wrong()),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (min, max),
            Some((from, to)) => (number(from)?, number(to)?),
            None if part.contains('/') => (number(range)?, max),
            None => (number(range)?, number(range)?),
        };
        if step == 0 || from > to {
            return Err(wrong());
        }
        for number in (from..=to).step_by(usize::try_from(step).map_err(|_| wrong())?) {
            set |= 1 << number;
        }
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(cron: &str, after: &str, count: usize) -> Vec<String> {
        let zone = TimeZone::get("Europe/Amsterdam").unwrap();
        let cron = Cron::parse(cron).unwrap();
        let mut last = Moment::parse(after).unwrap();
        let mut found = Vec::new();
        for _ in 0..count {
            last = cron.next(last, &zone).unwrap();
            found.push(last.to_string().replace(":00.000Z", ""));
        }
        found
    }

    #[test]
    fn ordinary_days() {
        assert_eq!(times("30 8 * * mon-fri", "2026-05-01T06:30:00Z", 2), ["2026-05-04T06:30", "2026-05-05T06:30"]);
        assert_eq!(
            times("*/20 9-10 * * *", "2026-05-04T07:10:00Z", 4),
            ["2026-05-04T07:20", "2026-05-04T07:40", "2026-05-04T08:00", "2026-05-04T08:20"]
        );
        assert_eq!(times("0 0 29 2 *", "2026-05-04T00:00:00Z", 2), ["2028-02-28T23:00", "2032-02-28T23:00"]);
        assert_eq!(
            times("0 12 13 * 5", "2026-05-04T00:00:00Z", 3),
            ["2026-05-08T10:00", "2026-05-13T10:00", "2026-05-15T10:00"],
            "either day"
        );
        assert_eq!(times("0 12 * * 7", "2026-05-04T00:00:00Z", 1), times("0 12 * * sun", "2026-05-04T00:00:00Z", 1));
        assert_eq!(times("@monthly", "2026-05-04T00:00:00Z", 1), ["2026-05-31T22:00"]);
        assert_eq!(
            times("5/15 * * * *", "2026-05-04T00:00:30Z", 3),
            ["2026-05-04T00:05", "2026-05-04T00:20", "2026-05-04T00:35"]
        );
    }

    #[test]
    fn a_skipped_time_fires_after_the_gap() {
        // On 29 March 2026 the clocks go from 02:00 (01:00 UTC) to 03:00.
        assert_eq!(times("30 2 * * *", "2026-03-28T01:30:00Z", 2), ["2026-03-29T01:00", "2026-03-30T00:30"]);
        assert_eq!(times("0,15,30,45 2 * * *", "2026-03-29T00:00:00Z", 2), ["2026-03-29T01:00", "2026-03-30T00:00"]);
    }

    #[test]
    fn a_wildcard_skips_the_gap() {
        assert_eq!(times("0 * * * *", "2026-03-29T00:00:00Z", 2), ["2026-03-29T01:00", "2026-03-29T02:00"]);
        assert_eq!(times("30 * * * *", "2026-03-29T00:00:00Z", 2), ["2026-03-29T00:30", "2026-03-29T01:30"]);
        // At 02:00 and 04:00, of which there is no first.
        assert_eq!(times("0 */2 * * *", "2026-03-28T23:30:00Z", 2), ["2026-03-29T02:00", "2026-03-29T04:00"]);
    }

    #[test]
    fn a_wildcard_fires_in_both_passes() {
        for cron in ["0 * * * *", "@hourly", "0 0-23 * * *"] {
            assert_eq!(
                times(cron, "2026-10-24T23:30:00Z", 4),
                ["2026-10-25T00:00", "2026-10-25T01:00", "2026-10-25T02:00", "2026-10-25T03:00"]
            );
        }
        assert_eq!(
            times("*/15 * * * *", "2026-10-25T00:40:00Z", 3),
            ["2026-10-25T00:45", "2026-10-25T01:00", "2026-10-25T01:15"]
        );
        // A distant time, with many clock changes on the way.
        assert_eq!(times("59 * 29 2 *", "2026-05-04T00:00:00Z", 1), ["2028-02-28T23:59"]);
    }

    #[test]
    fn a_repeated_time_fires_once() {
        // On 25 October 2026 the clocks go from 03:00 (01:00 UTC) back to 02:00.
        assert_eq!(times("30 2 * * *", "2026-10-24T22:00:00Z", 2), ["2026-10-25T00:30", "2026-10-26T01:30"]);
        assert_eq!(times("*/30 2 * * *", "2026-10-25T00:10:00Z", 2), ["2026-10-25T00:30", "2026-10-26T01:00"]);
        // A schedule created in the second pass waits for the next day.
        assert_eq!(times("30 2 * * *", "2026-10-25T01:10:00Z", 1), ["2026-10-26T01:30"]);
    }

    /// What the clocks show in each minute around a change.
    struct Walk {
        from: Timestamp,
        minutes: Vec<(Moment, DateTime)>,
    }

    fn walk(zone: &TimeZone, change: Timestamp) -> Walk {
        let from = change.checked_sub(50.hours()).unwrap();
        let moments = (0..100 * 60).map(|minute| from.checked_add(minute.minutes()).unwrap());
        Walk { from, minutes: moments.map(|at| (Moment(at.as_millisecond()), zone.to_datetime(at))).collect() }
    }

    impl Walk {
        /// The expected times of a schedule, minute by minute.
        fn wanted(&self, fits: impl Fn(DateTime) -> bool, any_hour: bool) -> Vec<Moment> {
            let mut wanted = Vec::new();
            let mut latest = self.minutes[0].1.checked_sub(1.minute()).unwrap();
            for (moment, local) in &self.minutes {
                let mut skipped =
                    std::iter::successors(latest.checked_add(1.minute()).ok(), |at| at.checked_add(1.minute()).ok())
                        .take_while(|at| at < local);
                let comes =
                    if any_hour { fits(*local) } else { *local > latest && (fits(*local) || skipped.any(&fits)) };
                if comes {
                    wanted.push(*moment);
                }
                latest = latest.max(*local);
            }
            wanted
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn fires_exactly_at_the_expected_times(
            zone in prop::sample::select(vec!["Europe/Amsterdam", "America/New_York", "America/Havana", "Australia/Lord_Howe", "Asia/Beirut", "Africa/Casablanca", "Europe/Dublin"]),
            year in 2000_i16..2037,
            hours in prop::collection::btree_set(0_i8..24, 1..6),
            minutes in prop::collection::btree_set(0_i8..60, 1..4),
            every in 1_i8..12,
        ) {
            let zone = TimeZone::get(zone).unwrap();
            let begin = zone.to_timestamp(Date::constant(year, 1, 1).to_datetime(Time::midnight())).unwrap();
            let list = |set: &std::collections::BTreeSet<i8>| set.iter().map(i8::to_string).collect::<Vec<_>>().join(",");
            for change in zone.following(begin).take(2) {
                let walk = walk(&zone, change.timestamp());
                for (hour, any_hour) in [(list(&hours), false), (format!("*/{every}"), true)] {
                    let fits = |at: DateTime| {
                        minutes.contains(&at.minute()) && if any_hour { at.hour() % every == 0 } else { hours.contains(&at.hour()) }
                    };
                    let cron = Cron::parse(&format!("{} {hour} * * *", list(&minutes))).unwrap();
                    let first = cron.next(Moment(walk.from.as_millisecond() - 1), &zone);
                    let last = walk.minutes.last().unwrap().0;
                    let found: Vec<Moment> =
                        std::iter::successors(first, |at| cron.next(*at, &zone)).take_while(|at| *at <= last).collect();
                    prop_assert_eq!(found, walk.wanted(fits, any_hour), "{} at {}", hour, change.timestamp());
                }
            }
        }
    }

    #[test]
    fn the_latest_of_many() {
        let zone = TimeZone::get("Europe/Amsterdam").unwrap();
        let latest = |cron: &str, first: &str, now: &str| {
            let (first, now) = (Moment::parse(first).unwrap(), Moment::parse(now).unwrap());
            Cron::parse(cron).unwrap().latest(first, now, &zone).to_string()
        };
        assert_eq!(latest("* * * * *", "2020-01-01T00:00:00Z", "2026-05-04T10:00:30Z"), "2026-05-04T10:00:00.000Z");
        assert_eq!(latest("0 9 1 1 *", "2020-01-01T08:00:00Z", "2026-05-04T10:00:30Z"), "2026-01-01T08:00:00.000Z");
        assert_eq!(latest("0 9 29 2 *", "2020-02-29T08:00:00Z", "2027-05-04T10:00:30Z"), "2024-02-29T08:00:00.000Z");
        assert_eq!(latest("0 9 * * *", "2026-05-04T07:00:00Z", "2026-05-04T07:00:00Z"), "2026-05-04T07:00:00.000Z");
    }

    #[test]
    fn rejects_invalid_expressions() {
        for text in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "*/0 * * * *",
            "5-1 * * * *",
            "a * * * *",
            "1,,2 * * * *",
            "+1 * * * *",
            "-1 * * * *",
            "* * 30 2 *",
            "@never",
            "99999999999 * * * *",
        ] {
            assert!(Cron::parse(text).is_err(), "{text}");
        }
    }
}
