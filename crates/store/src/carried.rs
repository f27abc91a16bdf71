//! The state that the closures of a transaction share.

use std::time::{Duration, Instant};

use crate::memory::Memory;
use crate::named::{Named, Tables};
use crate::pending::Pending;

/// How a task runs.
#[derive(Clone, Copy)]
pub(crate) struct Care {
    /// In a savepoint, and waiting for the result of each statement.
    pub(crate) savepoint: bool,
    /// Looking up conflicts before writing, instead of relying on unique indexes.
    pub(crate) wary: bool,
}

/// The state that the closures of a transaction share: cached reads, and rows that are not written yet.
#[derive(Default)]
pub(crate) struct Carried {
    pub(crate) memory: Memory,
    pub(crate) pending: Pending,
    pub(crate) named: Named,
    /// The accounts that this transaction has locked.
    pub(crate) held: Vec<i64>,
    /// A cache for closures without a lock, discarded after each use.
    pub(crate) scratch: Memory,
    /// When the cache was last emptied; `None` if it has to be emptied.
    known_since: Option<Instant>,
    /// Whether the last transaction was committed.
    kept: bool,
}

/// How long the cache lasts across transactions, so that it does not grow without limit.
const KNOWN: Duration = Duration::from_secs(1);

impl Carried {
    /// Begins a transaction. The cache of the previous one remains valid if no one else has written since.
    pub(crate) fn begin(&mut self, is_alone: bool) {
        let young = self.known_since.is_some_and(|since| since.elapsed() < KNOWN);
        if !(self.kept && is_alone && young) {
            self.clear();
            self.known_since = Some(Instant::now());
        }
        self.kept = false;
    }

    /// Records that the transaction was committed.
    pub(crate) fn committed(&mut self) {
        self.kept = true;
    }

    /// Discards cached values, gathered rows and locks.
    pub(crate) fn clear(&mut self) {
        self.memory.clear();
        self.pending.clear();
        self.held.clear();
    }

    /// Returns whether rows are waiting to be written.
    pub(crate) fn has_rows(&self) -> bool {
        self.pending.has(Tables::MAX)
    }
}
