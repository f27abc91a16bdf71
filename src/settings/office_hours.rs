//! The hours in which automatic mail leaves.

use engine::error::{FieldCode, FieldErrors, violation};
use engine::record::Texts;
use engine::text::unknown_value;
use jiff::civil::Weekday;

use super::Settings;

/// The names of the days of the week, Monday first.
pub const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// The hours of the days on which there are any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfficeHours {
    /// The first minute of the day.
    pub from: i64,
    /// The minute of the day at which they are over.
    pub until: i64,
    days: Vec<String>,
}

impl OfficeHours {
    /// Whether there are office hours on this day of the week.
    pub fn includes(&self, day: Weekday) -> bool {
        let place = usize::try_from(day.to_monday_zero_offset()).unwrap_or_default();
        self.days.iter().any(|own| own == DAYS[place])
    }
}

impl Settings {
    /// Returns the office hours.
    pub fn office_hours(&self) -> OfficeHours {
        OfficeHours {
            from: minute(&self.mail_hours_from).unwrap_or(0),
            until: minute(&self.mail_hours_until).unwrap_or(24 * 60),
            days: self.mail_days.0.clone(),
        }
    }

    /// Checks the office hours.
    pub(super) fn check_hours(&self, faults: &mut FieldErrors) {
        let (from, until) = (minute(&self.mail_hours_from), minute(&self.mail_hours_until));
        for (field, time) in [("mail_hours_from", from), ("mail_hours_until", until)] {
            if time.is_none() {
                faults.add(field, violation(FieldCode::InvalidFormat, "must be a time of day such as 08:30"));
            }
        }
        if let (Some(from), Some(until)) = (from, until)
            && until <= from
        {
            faults.add("mail_hours_until", violation(FieldCode::OutOfRange, "must be after mail_hours_from"));
        }
        check_days(&self.mail_days, faults);
    }
}

fn check_days(days: &Texts, faults: &mut FieldErrors) {
    if days.0.is_empty() {
        faults.add("mail_days", violation(FieldCode::Required, "must name at least one day"));
    }
    for odd in days.0.iter().filter(|day| !DAYS.contains(&day.as_str())) {
        faults.add("mail_days", unknown_value(odd, DAYS.into_iter()));
    }
}

/// Reads a time of day, from 00:00 to 24:00; returns the minute of the day.
fn minute(text: &str) -> Option<i64> {
    let (hours, minutes) = text.split_once(':')?;
    let is_two = |digits: &str| digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
    let two = |digits: &str| digits.parse::<i64>().ok().filter(|_| is_two(digits));
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    let minute = hours * 60 + minutes;
    (minutes < 60 && minute <= 24 * 60).then_some(minute)
}

#[cfg(test)]
mod tests {
    use super::minute;

    #[test]
    fn times_of_day_are_read() {
        for (text, read) in [("00:00", Some(0)), ("08:30", Some(510)), ("24:00", Some(1440)), ("24:01", None)] {
            assert_eq!(minute(text), read, "{text}");
        }
        for wrong in ["8:30", "08.30", "12:60", "", "ab:cd", "+1:00"] {
            assert_eq!(minute(wrong), None, "{wrong}");
        }
    }
}
