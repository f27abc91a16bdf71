//! The calendar: daily work, and the test clock.

pub mod days;
pub(crate) mod test_clock;
