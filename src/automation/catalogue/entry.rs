//! The rows of the table of events.

use engine::inspect::lines::CHANGED_OUTSIDE;
use engine::log::{EventType, Origin};

/// The events whose names begin in the same way.
pub struct Group {
    /// The first part of their names.
    pub prefix: &'static str,
    /// The types of record that they may be about.
    pub about: &'static [&'static str],
    /// The record, as the subject of a sentence.
    pub one: &'static str,
    /// The events.
    pub events: &'static [Entry],
}

/// An event of a group.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The second part of its name.
    what: &'static str,
    /// What happened; empty for what happens to every record.
    meaning: &'static str,
    when: &'static str,
    /// The types of record, if they are not those of the group.
    about: Option<&'static [&'static str]>,
    members: &'static str,
    example: &'static str,
    origin: Origin,
    shows_record: bool,
}

/// An event that happens to some records.
pub const fn event(what: &'static str, meaning: &'static str, when: &'static str) -> Entry {
    Entry { what, meaning, when, about: None, members: "", example: "", origin: Origin::Program, shows_record: true }
}

/// A record was created.
pub const CREATED: Entry = event("created", "", "On creation, whoever creates it.");
/// A record was changed.
pub const UPDATED: Entry = event("updated", "", "On every change, including those that Kantoor makes itself.");
/// A record was deleted.
pub const DELETED: Entry = event("deleted", "", "On deletion; the record is shown as it was.");
/// The data of a deleted record were erased from the log.
const ERASED: Entry = Entry {
    shows_record: false,
    ..event(
        "erased",
        "",
        "When the operator erases the data of the deleted record from the log, with `kantoor erase`. `data` has only the id and the number of `lines` that were erased.",
    )
    .with(r#"{"id": "019df263-b4af-739d-95b6-5a14849e885a", "lines": 3}"#)
};
/// A record that gives access or says where money goes was changed with SQL.
pub const OUTSIDE: Entry = event(
    CHANGED_OUTSIDE,
    "The record was changed in the database, not by Kantoor.",
    "Immediately before the next event of the record. `difference` says what does not match the log.",
)
.with(r#"{"difference": "Changed outside the log: name is \"Shop\", but the last line of the log says \"Webshop\""}"#);

impl Group {
    /// The types of its events. Every record that is deleted can be erased.
    pub fn types(&self) -> Vec<EventType> {
        let is_deletion = |entry: &Entry| entry.what == DELETED.what && entry.origin == Origin::Program;
        let erased = self.events.iter().any(is_deletion).then_some(ERASED);
        self.events.iter().copied().chain(erased).map(|entry| entry.of(self)).collect()
    }
}

impl Entry {
    /// With members beside the fields of the record.
    pub const fn with(self, members: &'static str) -> Entry {
        Entry { members, ..self }
    }

    /// With fields of the record in the example.
    pub const fn showing(self, example: &'static str) -> Entry {
        Entry { example, ..self }
    }

    /// About other types of record than the rest of its group.
    pub const fn about(self, kinds: &'static [&'static str]) -> Entry {
        Entry { about: Some(kinds), ..self }
    }

    /// Only callers fire it.
    pub const fn fired(self) -> Entry {
        Entry { origin: Origin::Callers, ..self }
    }

    /// It is only delivered, to try an endpoint.
    pub const fn trial(self) -> Entry {
        Entry { origin: Origin::Trial, ..self }
    }

    /// The type of the event.
    fn of(self, group: &Group) -> EventType {
        EventType {
            name: format!("{}.{}", group.prefix, self.what),
            meaning: match self.meaning {
                "" => {
                    format!("{} {} {}.", group.one, if group.one == "The settings" { "were" } else { "was" }, self.what)
                }
                meaning => meaning.to_string(),
            },
            when: self.when,
            about: self.about.unwrap_or(group.about),
            members: self.members,
            example: self.example,
            origin: self.origin,
            shows_record: self.shows_record,
        }
    }
}
