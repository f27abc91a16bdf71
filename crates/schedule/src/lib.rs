//! The dates of a recurring schedule.
//!
//! Every date is counted from the start, never from the previous date: a schedule that starts on 31 January falls on 28
//! February and on 31 March again, and does not drift.

use jiff::Span;
use jiff::civil::Date;

#[cfg(test)]
mod tests;

/// The interval between two dates of a [`Schedule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frequency {
    /// Every seven days.
    Weekly,
    /// Every 28 days: thirteen times in most years.
    FourWeeks,
    /// Every month.
    Monthly,
    /// Every three months.
    Quarterly,
    /// Every six months.
    HalfYearly,
    /// Every twelve months.
    Yearly,
}

/// An infinite series of increasing dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// A first date that was set separately; the regular dates follow from the second on.
    first: Option<Date>,
    rhythm: Rhythm,
}

/// The dates as plain numbers: a date outside the calendar is detected when it is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rhythm {
    /// The day `day`, or the last day of a shorter month, of the months `month`, `month + every`, ….
    Months { month: i64, every: i64, day: i8 },
    /// The days `offset`, `offset + every`, … counted from `base`.
    Days { base: Date, offset: i64, every: i64 },
}

impl Schedule {
    /// Creates a schedule from `start` on.
    ///
    /// A schedule in months falls on `day_of_month` (1 to 31; by default that of `start`), or on the last day of a
    /// shorter month. A schedule in weeks falls on `day_of_week` (1 is Monday, 7 is Sunday). The day that does not
    /// apply to the frequency is ignored, and one out of range is clamped.
    ///
    /// With `first`, that is the first date, whatever `start` and the selected day. The second date is one interval
    /// after the month or the week of the first, on the selected day.
    pub fn new(
        frequency: Frequency,
        start: Date,
        first: Option<Date>,
        day_of_month: Option<i8>,
        day_of_week: Option<i8>,
    ) -> Schedule {
        let base = first.unwrap_or(start);
        let months = |every| {
            let day = day_of_month.unwrap_or(base.day()).clamp(1, 31);
            let missed = first.is_none() && day.min(base.days_in_month()) < base.day();
            Rhythm::Months { month: month_number(base) + i64::from(missed), every, day }
        };
        let days = |every| {
            let weekday = base.weekday().to_monday_one_offset();
            let offset = i64::from(day_of_week.unwrap_or(weekday).clamp(1, 7) - weekday);
            let offset = if first.is_none() { offset.rem_euclid(7) } else { offset };
            Rhythm::Days { base, offset, every }
        };
        let rhythm = match frequency {
            Frequency::Weekly => days(7),
            Frequency::FourWeeks => days(28),
            Frequency::Monthly => months(1),
            Frequency::Quarterly => months(3),
            Frequency::HalfYearly => months(6),
            Frequency::Yearly => months(12),
        };
        Schedule { first, rhythm }
    }

    /// Returns the date with index `n`, starting at 0; none after the end of the calendar (the year 9999).
    pub fn date(&self, n: u32) -> Option<Date> {
        match self.first {
            Some(first) if n == 0 => Some(first),
            _ => self.rhythm.date(n),
        }
    }

    /// Returns the index of the first date on or after `day`, without iterating over earlier dates.
    pub fn first_from(&self, day: Date) -> Option<u32> {
        if self.first.is_some_and(|first| first >= day) {
            return Some(0);
        }
        let earliest = u32::from(self.first.is_some());
        let n = self.rhythm.at_or_just_before(day).max(earliest);
        let n = if self.date(n)? < day { n + 1 } else { n };
        self.date(n).map(|_| n)
    }

    /// Returns the dates from `from` to `until`, both included, with their indexes.
    pub fn between(&self, from: Date, until: Date) -> impl Iterator<Item = (u32, Date)> + use<> {
        let schedule = *self;
        let numbers = self.first_from(from).into_iter().flat_map(|first| first..);
        numbers.map_while(move |n| Some((n, schedule.date(n)?))).take_while(move |(_, date)| *date <= until)
    }
}

impl Rhythm {
    fn date(self, n: u32) -> Option<Date> {
        match self {
            Rhythm::Months { month, every, day } => {
                let month = month + i64::from(n) * every;
                let year = i16::try_from(month.div_euclid(12)).ok()?;
                let in_year = i8::try_from(month.rem_euclid(12) + 1).ok()?;
                let first_day = Date::new(year, in_year, 1).ok()?;
                Date::new(year, in_year, day.min(first_day.days_in_month())).ok()
            }
            Rhythm::Days { base, offset, every } => {
                let days = Span::new().try_days(offset + i64::from(n) * every).ok()?;
                base.checked_add(days).ok()
            }
        }
    }

    /// Returns the index of the first date from `day` on, or of the one just before: months alone do not determine
    /// which.
    fn at_or_just_before(self, day: Date) -> u32 {
        let steps = match self {
            Rhythm::Months { month, every, .. } => (month_number(day) - month).div_euclid(every),
            Rhythm::Days { base, offset, every } => (days_since(base, day) - offset).div_euclid(every),
        };
        u32::try_from(steps).unwrap_or(0)
    }
}

/// Counts months across years, so that intervals are additions.
fn month_number(date: Date) -> i64 {
    i64::from(date.year()) * 12 + i64::from(date.month()) - 1
}

fn days_since(base: Date, day: Date) -> i64 {
    base.duration_until(day).as_secs().div_euclid(24 * 60 * 60)
}
