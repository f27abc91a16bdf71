//! Points where a test can kill the process: before and after each commit; and promises that it can break. Only with the feature `faults`.

/// Kills the process when this point is reached for the n-th time, where n is the number in the file that
/// `KANTOOR_TEST_DIE_AT` names.
#[cfg(feature = "faults")]
pub(crate) fn here() {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static FILE: LazyLock<Option<std::ffi::OsString>> = LazyLock::new(|| std::env::var_os("KANTOOR_TEST_DIE_AT"));
    static PASSED: AtomicU32 = AtomicU32::new(0);

    let Some(text) = FILE.as_ref().and_then(|file| std::fs::read_to_string(file).ok()) else { return };
    // While the file is being written, it is empty.
    let Ok(fatal) = text.trim().parse::<u32>() else { return };
    if PASSED.fetch_add(1, Ordering::SeqCst) + 1 == fatal {
        std::process::abort();
    }
}

/// Does nothing.
#[cfg(not(feature = "faults"))]
pub(crate) fn here() {}

/// Whether `KANTOOR_TEST_BREAK` names this promise, which is then broken on purpose: a proof must notice (docs/proofs.md).
#[cfg(feature = "faults")]
pub(crate) fn is_broken(promise: &str) -> bool {
    use std::sync::LazyLock;

    static BROKEN: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("KANTOOR_TEST_BREAK").ok());
    BROKEN.as_deref() == Some(promise)
}

/// No promise is broken.
#[cfg(not(feature = "faults"))]
pub(crate) fn is_broken(_promise: &str) -> bool {
    false
}
