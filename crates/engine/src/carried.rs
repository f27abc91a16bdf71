//! What a start may accept from an earlier version: log ends that nobody signed, secrets in plain text, keys without a log
//! line. Afterwards the same things are tampering. Whoever can write to the database could make it look old, so the database
//! itself does not tell: the key file does, which says up to which schema everything was brought up to date.

use crate::secrets::key_file::KeySource;

/// What this start may accept.
#[derive(Clone, Debug, Default)]
pub struct Carried {
    /// The migrations that this start applied.
    pub applied: Vec<u32>,
    /// Why the database was not copied before, if it was migrated without a copy.
    pub uncopied: Option<String>,
    /// The schema in the key file; `None` if there is none, such as for a key from the environment.
    pub recorded: Option<u32>,
    /// Whether the operator asked for everything to be accepted.
    pub trusts_all: bool,
}

impl Carried {
    /// Whether rows from before this migration are accepted. Without a key file, only the start that applies the migration
    /// accepts them.
    pub fn is_from_before(&self, migration: u32) -> bool {
        self.trusts_all
            || match self.recorded {
                Some(recorded) => recorded < migration,
                None => self.applied.contains(&migration),
            }
    }

    /// Records in the key file that everything is up to date with the newest migration.
    pub fn finish(&self, source: &KeySource, newest: u32) {
        if self.recorded.is_none_or(|recorded| recorded < newest)
            && let Err(error) = source.record(newest)
        {
            // It may be mounted read-only. Then the applied migrations decide.
            tracing::debug!(%error, "The schema is not recorded in the key file.");
        }
    }
}
