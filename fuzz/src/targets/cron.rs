//! Schedules: an input is an expression, a time zone and a moment, each on a line.

use engine::clock::Moment;
use jiff::tz::TimeZone;
use kantoor::automation::cron::Cron;

pub const WORDS: &[&str] = &[
    "*",
    "*/",
    "-",
    ",",
    "/",
    " ",
    "mon",
    "sun",
    "jan",
    "feb",
    "29",
    "30",
    "31",
    "23",
    "59",
    "@daily",
    "@hourly",
    "@yearly",
    "\n",
    "UTC",
    "Europe/Amsterdam",
    "Australia/Lord_Howe",
    "America/Havana",
    "Pacific/Apia",
    "2026-10-25T00:59:59.999Z",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z",
    "1900-02-28T23:59:00Z",
];

pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut lines = text.lines();
    let Ok(cron) = Cron::parse(lines.next().unwrap_or_default()) else { return };
    let zone = lines.next().and_then(|name| TimeZone::get(name).ok()).unwrap_or(TimeZone::UTC);
    let now = lines.next().and_then(Moment::parse).unwrap_or(Moment(1_777_888_800_000));
    let mut last = now;
    for _ in 0..5 {
        let Some(next) = cron.next(last, &zone) else { break };
        assert!(next > last, "{next} comes after {last}");
        assert_eq!(next.0 % 1000, 0, "{next} is a whole second");
        last = next;
    }
    if let Some(first) = cron.next(now.plus_seconds(-90_000), &zone).filter(|first| *first <= now) {
        let latest = cron.latest(first, now, &zone);
        assert!(first <= latest && latest <= now, "{first} <= {latest} <= {now}");
        assert!(cron.next(latest, &zone).is_none_or(|next| next > now), "{latest} is the last until {now}");
    }
}
