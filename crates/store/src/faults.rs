//! Places where a test lets the process die: before each commit and after it. With the feature `faults` only.

/// While the file that `KANTOOR_DIE_AT` names is there it holds a number; the process dies, as if killed,
/// when it comes here for that many times.
#[cfg(feature = "faults")]
pub(crate) fn here() {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static FILE: LazyLock<Option<std::ffi::OsString>> = LazyLock::new(|| std::env::var_os("KANTOOR_DIE_AT"));
    static PASSED: AtomicU32 = AtomicU32::new(0);

    let Some(text) = FILE.as_ref().and_then(|file| std::fs::read_to_string(file).ok()) else { return };
    let passed = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
    if text.trim().parse() == Ok(passed) {
        std::process::abort();
    }
}

/// Nothing happens.
#[cfg(not(feature = "faults"))]
pub(crate) fn here() {}
