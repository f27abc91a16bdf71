//! The types of events. The registry declares all of them; an event that it does not declare fails the tests.

use std::sync::OnceLock;

use serde_json::{Map, Value};

/// A type of event.
#[derive(Clone, Debug)]
pub struct EventType {
    /// `product.created`
    pub name: String,
    /// What happened, as a sentence.
    pub meaning: String,
    /// When it is emitted, as a sentence.
    pub when: &'static str,
    /// The types of record that it may be about; none for events without a record.
    pub about: &'static [&'static str],
    /// The members that its data has beside the fields of the record, as a JSON object with examples; empty for none.
    pub members: &'static str,
    /// Fields of the record in the example, as a JSON object; empty for those of any record.
    pub example: &'static str,
    /// Where it comes from.
    pub origin: Origin,
    /// Whether its data have the fields of the record that it is about; otherwise they have only the members.
    pub shows_record: bool,
}

/// Where events come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The program writes them to the log.
    Program,
    /// Only callers fire them.
    Callers,
    /// They are only delivered, to try it, and never in the log.
    Trial,
}

impl EventType {
    /// Returns the members that its data has beside the fields of the record, with examples.
    pub fn members(&self) -> Map<String, Value> {
        serde_json::from_str(self.members).unwrap_or_default()
    }
}

static DECLARED: OnceLock<&'static [EventType]> = OnceLock::new();

/// Says which types there are, sorted by name.
pub fn declare(types: &'static [EventType]) {
    let _ = DECLARED.set(types);
}

/// Whether the log may have events of this name. A registry without types allows all.
pub(super) fn is_declared(name: &str) -> bool {
    let Some(types) = DECLARED.get().filter(|types| !types.is_empty()) else { return true };
    let found = types.binary_search_by(|own| own.name.as_str().cmp(name));
    found.is_ok_and(|at| types.get(at).is_some_and(|own| own.origin == Origin::Program))
}
