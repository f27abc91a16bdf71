//! Points where a test can pause the process, just before it does what cannot be undone. Only with the feature `faults`.

/// Stops the process, as if its machine was paused, when it first comes to the point that `KANTOOR_TEST_PAUSE` names.
#[cfg(feature = "faults")]
pub fn pause_before(point: &str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use rustix::process::{Signal, getpid, kill_process};

    static POINT: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("KANTOOR_TEST_PAUSE").ok());
    static IS_OVER: AtomicBool = AtomicBool::new(false);

    if POINT.as_deref() == Some(point) && !IS_OVER.swap(true, Ordering::SeqCst) {
        let _ = kill_process(getpid(), Signal::STOP);
        // Another thread may receive the signal, and this one goes on for an instant.
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Does nothing.
#[cfg(not(feature = "faults"))]
pub fn pause_before(_point: &str) {}
