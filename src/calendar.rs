//! The calendar: what comes with the days, and the test clock that moves them.

pub mod days;
pub mod test_clock;
