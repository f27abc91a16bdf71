//! The rows of a chain whose data were erased.

use std::collections::HashMap;

use super::line::Line;
use super::reading::key;
use crate::clock::Moment;

/// What the name of the row ends with that says that a record was erased.
pub(super) const ERASED: &str = ".erased";

/// The erased rows of a chain that no later row explains, by record.
#[derive(Clone, Debug, Default)]
pub(super) struct Erased(HashMap<(u64, u64), (i64, Moment)>);

impl Erased {
    /// Records a row, in the order of the log.
    pub(super) fn note(&mut self, line: &Line) {
        if line.is_erased() {
            self.0.entry(key(&line.entity_type, &line.entity_id)).or_insert((line.seq, Moment(line.at)));
        } else if line.name.ends_with(ERASED) {
            self.0.remove(&key(&line.entity_type, &line.entity_id));
        }
    }

    /// Returns the first row that was emptied in another way.
    pub(super) fn unexplained(&self) -> Option<(i64, Moment)> {
        self.0.values().min_by_key(|(seq, _)| *seq).copied()
    }
}
