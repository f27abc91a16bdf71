//! Time and ids: the only module that takes either from the machine.

pub(crate) mod machine;
pub mod shared;

use std::fmt;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use store::Store;

use self::shared::SharedTime;

/// A moment, in milliseconds; formatted as RFC 3339 in UTC with three decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub i64);

impl Moment {
    /// Parses RFC 3339, with any offset.
    pub fn parse(text: &str) -> Option<Moment> {
        text.parse::<jiff::Timestamp>().ok().map(|moment| Moment(moment.as_millisecond()))
    }

    /// Reads a stored moment.
    pub fn from_db(row: &store::Row, column: usize) -> store::Result<Moment> {
        let stored = row.int(column)?;
        match jiff::Timestamp::from_millisecond(stored) {
            Ok(_) => Ok(Moment(stored)),
            Err(_) => Err(store::Error::unreadable("the moment is beyond the year 9999")),
        }
    }

    /// Returns the moment `seconds` later.
    pub fn plus_seconds(self, seconds: i64) -> Moment {
        Moment(self.0.saturating_add(seconds.saturating_mul(1000)))
    }

    /// Returns the calendar date in `zone`.
    pub fn date(self, zone: &TimeZone) -> Date {
        zone.to_datetime(self.timestamp()).date()
    }

    /// Returns the date and time in `zone`.
    pub fn datetime(self, zone: &TimeZone) -> jiff::civil::DateTime {
        zone.to_datetime(self.timestamp())
    }

    /// Returns the first moment of `date` in `zone`.
    pub fn start_of(date: Date, zone: &TimeZone) -> Moment {
        match date.to_zoned(zone.clone()) {
            Ok(zoned) => Moment(zoned.timestamp().as_millisecond()),
            Err(_) => Moment(i64::MAX),
        }
    }

    fn timestamp(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::MAX)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = Offset::UTC.to_datetime(self.timestamp());
        if moment.year() < 0 {
            return write!(f, "{:.3}", self.timestamp());
        }
        // Lists and events show many moments: writing the digits here takes a tenth of the time of the general formatter.
        let mut text = *b"0000-00-00T00:00:00.000Z";
        for (place, length, number) in [
            (0, 4, moment.year()),
            (5, 2, moment.month().into()),
            (8, 2, moment.day().into()),
            (11, 2, moment.hour().into()),
            (14, 2, moment.minute().into()),
            (17, 2, moment.second().into()),
            (20, 3, moment.millisecond()),
        ] {
            write_digits(&mut text[place..place + length], number);
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// Returns a date as `YYYY-MM-DD`.
pub fn date_text(date: Date) -> String {
    if date.year() < 0 {
        return date.to_string();
    }
    let mut text = *b"0000-00-00";
    for (place, length, number) in [(0, 4, date.year()), (5, 2, date.month().into()), (8, 2, date.day().into())] {
        write_digits(&mut text[place..place + length], number);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Fills `places` with the last digits of a number.
fn write_digits(places: &mut [u8], number: i16) {
    let mut rest = number.unsigned_abs();
    for place in places.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// The source of the current time for accounts without a test clock.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The machine's clock.
    #[default]
    System,
    /// The clock of a database that several machines share.
    Shared(Arc<SharedTime>),
    /// A fixed time, for tests.
    Fixed(Moment),
}

impl Clock {
    /// Returns the clock of the processes that use this database: all of them have the same one.
    pub fn of(store: &Store) -> store::Result<Clock> {
        Ok(SharedTime::of(store)?.map_or(Clock::System, |time| Clock::Shared(Arc::new(time))))
    }

    /// Returns the current time.
    pub fn now(&self) -> Moment {
        match self {
            Clock::System => Moment(machine::wall()),
            Clock::Shared(time) => Moment(time.now()),
            Clock::Fixed(moment) => *moment,
        }
    }

    /// Returns the time that is compared with the database's, if it is.
    pub fn shared(&self) -> Option<&Arc<SharedTime>> {
        match self {
            Clock::Shared(time) => Some(time),
            Clock::System | Clock::Fixed(_) => None,
        }
    }
}

/// The source of ids.
#[derive(Clone, Copy, Debug)]
pub struct Ids(fn() -> String);

impl Ids {
    /// UUIDv7 in lower case, increasing within a process.
    #[expect(clippy::disallowed_methods, reason = "the one place that makes ids")]
    pub const SYSTEM: Ids = Ids(|| uuid::Uuid::now_v7().to_string());

    /// Returns a new id.
    pub fn next(&self) -> String {
        (self.0)()
    }

    /// Returns unguessable letters and digits: 122 random bits.
    #[expect(clippy::disallowed_methods, reason = "the one place that makes ids")]
    pub fn token(&self) -> String {
        uuid::Uuid::new_v4().simple().to_string()
    }

    /// Returns a token of a record: eight digits of the time in its id, then 90 random bits. Tokens of new records are next to
    /// each other in their index, so that a commit writes few pages of it.
    pub fn token_for(&self, id: &str) -> String {
        let time = [id.get(4..8), id.get(9..13)].map(Option::unwrap_or_default).concat();
        let token = self.token();
        format!("{time}{}", token.get(time.len()..).unwrap_or(&token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_with_a_fixed_width() {
        assert_eq!(Moment(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Moment::parse("2026-05-04T11:30:00+02:00").unwrap().to_string(), "2026-05-04T09:30:00.000Z");
    }

    #[test]
    fn moments_and_dates_are_written_as_the_general_formatter_does() {
        let ends = [
            jiff::Timestamp::MIN.as_millisecond(),
            -62_167_219_200_001,
            -62_167_219_200_000,
            -1,
            0,
            999,
            951_782_400_000,
        ];
        let ends = ends.into_iter().chain([jiff::Timestamp::MAX.as_millisecond()]);
        for moment in ends.chain((0..10_000).map(|n| n * 25_340_230_079)).map(Moment) {
            let Ok(timestamp) = jiff::Timestamp::from_millisecond(moment.0) else { continue };
            assert_eq!(moment.to_string(), format!("{timestamp:.3}"));
            let date = moment.date(&TimeZone::UTC);
            assert_eq!(date_text(date), date.to_string());
        }
    }

    #[test]
    fn days_follow_the_zone() {
        let zone = TimeZone::get("Europe/Amsterdam").unwrap();
        let late = Moment::parse("2026-05-03T22:30:00Z").unwrap();
        assert_eq!(late.date(&zone).to_string(), "2026-05-04");
        let summer = jiff::civil::date(2026, 3, 30);
        assert_eq!(Moment::start_of(summer, &zone).to_string(), "2026-03-29T22:00:00.000Z");
    }
}
