//! The clocks of this machine.

/// Returns the milliseconds since 1970 by the machine's clock, which may be wrong and be set at any time.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
pub(super) fn wall() -> i64 {
    jiff::Timestamp::now().as_millisecond() + wrong_by()
}

/// Returns the milliseconds since the machine was started, also while it slept. Nobody can set this clock.
pub(crate) fn running() -> i64 {
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    since.tv_sec * 1000 + since.tv_nsec / 1_000_000
}

/// Returns by how many milliseconds `KANTOOR_TEST_CLOCK` says that the machine's clock is wrong.
#[cfg(feature = "faults")]
fn wrong_by() -> i64 {
    use std::sync::LazyLock;

    static WRONG_BY: LazyLock<i64> = LazyLock::new(|| {
        let seconds = std::env::var("KANTOOR_TEST_CLOCK").ok();
        seconds.and_then(|seconds| seconds.parse::<i64>().ok()).unwrap_or(0) * 1000
    });
    *WRONG_BY
}

/// The machine's clock is as it is.
#[cfg(not(feature = "faults"))]
fn wrong_by() -> i64 {
    0
}
