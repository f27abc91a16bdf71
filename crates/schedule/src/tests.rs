use super::Frequency::*;
use super::*;
use jiff::civil::date;
use proptest::prelude::*;

const ALL: [Frequency; 6] = [Weekly, FourWeeks, Monthly, Quarterly, HalfYearly, Yearly];

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

/// The first dates, as text.
fn dates(schedule: Schedule, count: u32) -> Vec<String> {
    (0..count).map(|n| schedule.date(n).unwrap().to_string()).collect()
}

fn from(frequency: Frequency, start: &str) -> Schedule {
    Schedule::new(frequency, day(start), None, None, None)
}

#[test]
fn the_31st_comes_back_after_a_short_month() {
    assert_eq!(
        dates(from(Monthly, "2026-01-31"), 6),
        ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30", "2026-05-31", "2026-06-30"]
    );
    assert_eq!(dates(from(Monthly, "2023-11-30"), 5)[2..], ["2024-01-30", "2024-02-29", "2024-03-30"]);
}

#[test]
fn leap_day_comes_back_every_fourth_year() {
    assert_eq!(
        dates(from(Yearly, "2024-02-29"), 5),
        ["2024-02-29", "2025-02-28", "2026-02-28", "2027-02-28", "2028-02-29"]
    );
    // 2100 is a common year, 2000 was not.
    assert_eq!(from(Yearly, "2096-02-29").date(4), Some(date(2100, 2, 28)));
    assert_eq!(from(Yearly, "1996-02-29").date(4), Some(date(2000, 2, 29)));
}

#[test]
fn quarters_and_halves_end_on_their_last_day() {
    assert_eq!(
        dates(from(Quarterly, "2025-12-31"), 5),
        ["2025-12-31", "2026-03-31", "2026-06-30", "2026-09-30", "2026-12-31"]
    );
    assert_eq!(dates(from(HalfYearly, "2025-08-31"), 3), ["2025-08-31", "2026-02-28", "2026-08-31"]);
}

#[test]
fn the_selected_day_is_the_first_from_the_start() {
    let on = |start, wanted| Schedule::new(Quarterly, day(start), None, Some(wanted), None);
    assert_eq!(dates(on("2026-01-10", 15), 2), ["2026-01-15", "2026-04-15"]);
    assert_eq!(dates(on("2026-01-15", 15), 2), ["2026-01-15", "2026-04-15"]);
    assert_eq!(dates(on("2026-01-16", 15), 2), ["2026-02-15", "2026-05-15"]);
    assert_eq!(dates(on("2025-12-20", 1), 2), ["2026-01-01", "2026-04-01"]);
    // The last day of February counts as the 31st.
    assert_eq!(dates(on("2026-02-28", 31), 2), ["2026-02-28", "2026-05-31"]);
}

#[test]
fn weeks_run_on_over_the_end_of_a_year_and_week_53() {
    // 2026 has a week 53: its Monday is 28 December.
    let mondays = Schedule::new(Weekly, day("2026-12-16"), None, None, Some(1));
    assert_eq!(dates(mondays, 4), ["2026-12-21", "2026-12-28", "2027-01-04", "2027-01-11"]);
    let four = Schedule::new(FourWeeks, day("2026-12-05"), None, None, Some(7));
    assert_eq!(dates(four, 3), ["2026-12-06", "2027-01-03", "2027-01-31"]);
    // Across the leap day.
    assert_eq!(dates(from(Weekly, "2028-02-24"), 3), ["2028-02-24", "2028-03-02", "2028-03-09"]);
}

#[test]
fn the_regular_dates_follow_a_separate_first_date() {
    let monthly = Schedule::new(Monthly, day("2026-01-01"), Some(day("2026-01-20")), Some(1), None);
    assert_eq!(dates(monthly, 3), ["2026-01-20", "2026-02-01", "2026-03-01"]);
    let last_days = Schedule::new(Monthly, day("2026-01-01"), Some(day("2026-01-03")), Some(31), None);
    assert_eq!(dates(last_days, 3), ["2026-01-03", "2026-02-28", "2026-03-31"]);
    let as_first = Schedule::new(Yearly, day("2020-01-01"), Some(day("2024-02-29")), None, None);
    assert_eq!(dates(as_first, 2), ["2024-02-29", "2025-02-28"]);
    // A Thursday, then the Mondays of the weeks after it; or the Sundays.
    let first = Some(day("2026-10-15"));
    let mondays = Schedule::new(Weekly, day("2026-10-01"), first, None, Some(1));
    assert_eq!(dates(mondays, 3), ["2026-10-15", "2026-10-19", "2026-10-26"]);
    let sundays = Schedule::new(FourWeeks, day("2026-10-01"), first, None, Some(7));
    assert_eq!(dates(sundays, 3), ["2026-10-15", "2026-11-15", "2026-12-13"]);
}

#[test]
fn clamps_or_ignores_an_invalid_day() {
    let with = |frequency, month_day, week_day| {
        Schedule::new(frequency, day("2026-01-15"), None, Some(month_day), Some(week_day)).date(0).unwrap().to_string()
    };
    assert_eq!(with(Monthly, 99, 3), "2026-01-31");
    assert_eq!(with(Monthly, i8::MIN, 3), "2026-02-01");
    assert_eq!(with(Weekly, 3, i8::MAX), "2026-01-18");
    assert_eq!(with(Weekly, 3, -4), "2026-01-19");
}

#[test]
fn first_from_finds_the_index_directly() {
    let monthly = from(Monthly, "2026-01-31");
    assert_eq!(monthly.first_from(day("2020-01-01")), Some(0));
    assert_eq!(monthly.first_from(day("2026-01-31")), Some(0));
    assert_eq!(monthly.first_from(day("2026-02-01")), Some(1));
    assert_eq!(monthly.first_from(day("2026-02-28")), Some(1));
    assert_eq!(monthly.first_from(day("2026-03-01")), Some(2));
    assert_eq!(monthly.first_from(day("9999-12-31")), Some(7973 * 12 + 11));
    let found: Vec<_> = monthly.between(day("2026-02-28"), day("2026-04-30")).collect();
    assert_eq!(found, [(1, date(2026, 2, 28)), (2, date(2026, 3, 31)), (3, date(2026, 4, 30))]);
    assert_eq!(monthly.between(day("2026-02-01"), day("2026-02-27")).count(), 0);
}

#[test]
fn the_calendar_has_an_end() {
    for frequency in ALL {
        assert_eq!(from(frequency, "2026-01-31").date(u32::MAX), None);
        assert_eq!(from(frequency, "9999-12-31").date(1), None);
        assert_eq!(from(frequency, "9999-12-31").between(Date::MIN, Date::MAX).count(), 1);
    }
    // The selected day is after it.
    let never = Schedule::new(Monthly, Date::MAX, None, Some(1), None);
    assert_eq!((never.date(0), never.first_from(Date::MIN)), (None, None));
    let once = Schedule::new(Weekly, Date::MAX, Some(Date::MAX), None, Some(7));
    assert_eq!((once.date(0), once.date(1), once.first_from(Date::MAX)), (Some(Date::MAX), None, Some(0)));
    assert_eq!(Schedule::new(Weekly, Date::MIN, Some(Date::MIN), None, Some(1)).first_from(Date::MIN), Some(0));
}

fn any_day() -> impl Strategy<Value = Date> {
    (0_i64..60_000).prop_map(|days| date(1970, 1, 1).checked_add(Span::new().days(days)).unwrap())
}

prop_compose! {
    fn any_schedule()(
        frequency in prop::sample::select(&ALL[..]),
        start in any_day(),
        first in prop::option::of(any_day()),
        day_of_month in prop::option::of(1_i8..=31),
        day_of_week in prop::option::of(1_i8..=7),
    ) -> (Frequency, Date, Option<Date>, Option<i8>, Option<i8>) {
        (frequency, start, first, day_of_month, day_of_week)
    }
}

/// Enough dates for twelve years, whatever the frequency.
fn twelve_years(frequency: Frequency) -> u32 {
    match frequency {
        Weekly => 12 * 53,
        FourWeeks => 12 * 14,
        Monthly => 12 * 12,
        Quarterly => 12 * 4,
        HalfYearly => 12 * 2,
        Yearly => 12,
    }
}

fn months(frequency: Frequency) -> Option<i64> {
    match frequency {
        Weekly | FourWeeks => None,
        Monthly => Some(1),
        Quarterly => Some(3),
        HalfYearly => Some(6),
        Yearly => Some(12),
    }
}

proptest! {
    #[test]
    fn dates_are_regular_unique_and_on_the_selected_day((frequency, start, first, day_of_month, day_of_week) in any_schedule()) {
        let schedule = Schedule::new(frequency, start, first, day_of_month, day_of_week);
        let all: Vec<Date> = (0..=twelve_years(frequency)).map(|n| schedule.date(n).unwrap()).collect();
        prop_assert!(all.is_sorted_by(|earlier, later| earlier < later));
        match first {
            Some(first) => prop_assert_eq!(all[0], first),
            None => {
                prop_assert!(all[0] >= start);
                // And it is the first such day: less than a month or a week away.
                let reach = if months(frequency).is_some() { 31 } else { 7 };
                prop_assert!(days_since(start, all[0]) < reach);
            }
        }
        let base = first.unwrap_or(start);
        // A separate first date need not be on the selected day.
        let regular = &all[usize::from(first.is_some())..];
        if let Some(every) = months(frequency) {
            let wanted = day_of_month.unwrap_or(base.day());
            for (n, date) in (0_i64..).zip(&all) {
                prop_assert_eq!(month_number(*date), month_number(all[0]) + n * every);
            }
            for date in regular {
                prop_assert_eq!(date.day(), wanted.min(date.days_in_month()));
            }
        } else {
            let every = if frequency == Weekly { 7 } else { 28 };
            let wanted = day_of_week.unwrap_or(base.weekday().to_monday_one_offset());
            for pair in regular.windows(2) {
                prop_assert_eq!(days_since(pair[0], pair[1]), every);
            }
            for date in regular {
                prop_assert_eq!(date.weekday().to_monday_one_offset(), wanted);
            }
            let monday = |date: Date| days_since(Date::ZERO, date) - i64::from(date.weekday().to_monday_zero_offset());
            prop_assert_eq!(monday(all[1]) - monday(all[0]), every);
        }
    }

    #[test]
    fn first_from_is_the_inverse((frequency, start, first, dom, dow) in any_schedule(), asked in any_day()) {
        let schedule = Schedule::new(frequency, start, first, dom, dow);
        let n = schedule.first_from(asked).unwrap();
        prop_assert!(schedule.date(n).unwrap() >= asked);
        if let Some(before) = n.checked_sub(1) {
            prop_assert!(schedule.date(before).unwrap() < asked);
        }
    }

    #[test]
    fn every_date_finds_its_own_number((frequency, start, first, dom, dow) in any_schedule(), n in 0_u32..700) {
        let schedule = Schedule::new(frequency, start, first, dom, dow);
        prop_assert_eq!(schedule.first_from(schedule.date(n).unwrap()), Some(n));
    }

    #[test]
    fn between_is_what_walking_finds((frequency, start, first, dom, dow) in any_schedule(), a in any_day(), b in any_day()) {
        let schedule = Schedule::new(frequency, start, first, dom, dow);
        let walked: Vec<_> = (0..).map(|n| (n, schedule.date(n).unwrap())).take_while(|(_, date)| *date <= b)
            .filter(|(_, date)| *date >= a).collect();
        prop_assert_eq!(schedule.between(a, b).collect::<Vec<_>>(), walked);
    }

    #[test]
    fn nothing_panics(
        frequency in prop::sample::select(&ALL[..]), days in (i16::MIN..i16::MAX, 1_i8..=12, 1_i8..=28),
        first in any::<bool>(), dom in any::<Option<i8>>(), dow in any::<Option<i8>>(), n in any::<u32>(),
    ) {
        let start = date(days.0.clamp(-9999, 9999), days.1, days.2);
        let schedule = Schedule::new(frequency, start, first.then_some(start), dom, dow);
        let _ = (schedule.date(n), schedule.first_from(Date::MIN), schedule.first_from(Date::MAX));
    }
}
