//! Long work in slices of a few milliseconds, each in its own transaction, so that requests need not wait for the writer.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Approximate maximum duration of a slice.
const TURN: Duration = Duration::from_millis(5);
/// Number of records to look up at a time, which is also the maximum per transaction.
pub const TOGETHER: usize = 100;

/// A part of the work that runs in one transaction: at least one record, so that a slow machine makes progress, and no
/// more after a few milliseconds.
pub struct Slice {
    started: Instant,
    done: Cell<bool>,
    /// Whether the slice has a limit.
    ends: bool,
}

impl Slice {
    /// Starts a slice.
    pub fn start() -> Slice {
        Slice { started: Instant::now(), done: Cell::new(false), ends: true }
    }

    /// Creates a slice without a limit, to do everything in one transaction.
    pub fn endless() -> Slice {
        Slice { ends: false, ..Slice::start() }
    }

    /// Records that a record was processed.
    pub fn did_one(&self) {
        self.done.set(true);
    }

    /// Whether the rest is left for another transaction.
    pub fn is_over(&self) -> bool {
        self.ends && self.done.get() && self.started.elapsed() > TURN
    }
}
