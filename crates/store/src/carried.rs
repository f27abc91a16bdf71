//! What a writer hands to the closures of a transaction, and what they leave to each other.

use std::time::{Duration, Instant};

use crate::memory::Memory;
use crate::named::{Named, Tables};
use crate::pending::Pending;

/// How a task is run.
#[derive(Clone, Copy)]
pub(crate) struct Care {
    /// In a savepoint, and waiting for each of its statements.
    pub(crate) savepoint: bool,
    /// Asking in advance what the database would refuse.
    pub(crate) wary: bool,
}

/// What the closures of a transaction share: what is known of the database, and the rows that are not written yet.
#[derive(Default)]
pub(crate) struct Carried {
    pub(crate) memory: Memory,
    pub(crate) pending: Pending,
    pub(crate) named: Named,
    /// The accounts whose rows this transaction holds.
    pub(crate) held: Vec<i64>,
    /// Given to those who hold nothing, and forgotten at once.
    pub(crate) scratch: Memory,
    /// When the memory was last empty; `None` when it must be emptied.
    known_since: Option<Instant>,
    /// Whether the last transaction was kept.
    kept: bool,
}

/// How long something is known across transactions, so that the memory does not grow for ever.
const KNOWN: Duration = Duration::from_secs(1);

impl Carried {
    /// A transaction begins. If nobody else has written since the last one, what was known then is still known.
    pub(crate) fn begin(&mut self, is_alone: bool) {
        let young = self.known_since.is_some_and(|since| since.elapsed() < KNOWN);
        if !(self.kept && is_alone && young) {
            self.clear();
            self.known_since = Some(Instant::now());
        }
        self.kept = false;
    }

    /// The transaction is kept.
    pub(crate) fn committed(&mut self) {
        self.kept = true;
    }

    /// Nothing is known or gathered any more.
    pub(crate) fn clear(&mut self) {
        self.memory.clear();
        self.pending.clear();
        self.held.clear();
    }

    /// Whether rows wait to be written.
    pub(crate) fn has_rows(&self) -> bool {
        self.pending.has(Tables::MAX)
    }
}
