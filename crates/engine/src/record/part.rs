//! Members of answers that are no records.

/// A member of an answer that is no record: its name, its JSON type and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part(pub &'static str, pub &'static str, pub &'static str);
