//! Dates are calendar days, not instants: polling at odd times in a zone with clock changes finds every date once.
#![expect(clippy::unwrap_used, reason = "tests")]

use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use schedule::{Frequency, Schedule};

/// Returns the dates found by polling every forty minutes for what became due since the day before.
fn collected(schedule: Schedule, zone: &str, from: Date, until: Date) -> Vec<(u32, Date)> {
    let zone = TimeZone::get(zone).unwrap();
    let today = |now: Timestamp| now.to_zoned(zone.clone()).date();
    let mut now = from.to_zoned(zone.clone()).unwrap().timestamp();
    let (mut found, mut next) = (Vec::new(), from);
    while today(now) <= until {
        if today(now) >= next {
            found.extend(schedule.between(next, today(now)));
            next = today(now).tomorrow().unwrap();
        }
        now += SignedDuration::from_mins(40);
    }
    found
}

#[test]
fn changing_clocks_neither_skip_nor_repeat_a_date() {
    let years = [
        // The clocks change on Sunday mornings.
        ("Europe/Amsterdam", 2026),
        // Clock changes at midnight: a Sunday started at one o'clock, and a Saturday had its last hour twice.
        ("America/Sao_Paulo", 2018),
        // 30 December 2011 was skipped; its due dates are found on the 31st.
        ("Pacific/Apia", 2011),
        ("Asia/Kolkata", 2026),
    ];
    for (zone, year) in years {
        let (from, until) = (date(year, 1, 1), date(year, 12, 31));
        for (frequency, day_of_month, day_of_week) in [
            (Frequency::Weekly, None, Some(7)),
            (Frequency::Weekly, None, Some(5)),
            (Frequency::Monthly, Some(31), None),
            (Frequency::Monthly, Some(30), None),
        ] {
            let schedule = Schedule::new(frequency, from, None, day_of_month, day_of_week);
            let all: Vec<_> = schedule.between(from, until).collect();
            assert!(all.len() >= 12);
            assert_eq!(collected(schedule, zone, from, until), all, "{zone}");
        }
    }
}

#[test]
fn a_day_begins_at_midnight_of_its_zone() {
    let monthly = Schedule::new(Frequency::Monthly, date(2026, 1, 1), None, Some(1), None);
    let due = |instant: &str, zone: &str| {
        let today = instant.parse::<Timestamp>().unwrap().in_tz(zone).unwrap().date();
        monthly.between(today, today).count()
    };
    // In summer, the first of July starts two hours earlier than in Greenwich.
    assert_eq!(due("2026-06-30T21:59:59Z", "Europe/Amsterdam"), 0);
    assert_eq!(due("2026-06-30T22:00:00Z", "Europe/Amsterdam"), 1);
    assert_eq!(due("2026-06-30T22:00:00Z", "UTC"), 0);
}
