//! The calendar: what comes with the days, and the test clock that moves them.

pub mod days;
pub(crate) mod test_clock;
