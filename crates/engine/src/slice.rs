//! Long work in slices of a few milliseconds, each in its own transaction, so that requests need not wait for the writer.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// About how long a slice takes at most.
const TURN: Duration = Duration::from_millis(5);
/// How many things of a kind are looked up at once, and so how many happen in a transaction at most.
pub const TOGETHER: usize = 100;

/// The part of the work that shares a transaction: one thing at least, or a slow machine would never get anywhere, and no
/// more once a few milliseconds are over.
pub struct Slice {
    started: Instant,
    done: Cell<bool>,
    /// Whether it ends at all.
    ends: bool,
}

impl Slice {
    /// It starts now.
    pub fn start() -> Slice {
        Slice { started: Instant::now(), done: Cell::new(false), ends: true }
    }

    /// One that has no end, for who does everything in one transaction.
    pub fn endless() -> Slice {
        Slice { ends: false, ..Slice::start() }
    }

    /// Something was done in it.
    pub fn did_one(&self) {
        self.done.set(true);
    }

    /// Whether the rest is for another transaction.
    pub fn is_over(&self) -> bool {
        self.ends && self.done.get() && self.started.elapsed() > TURN
    }
}
