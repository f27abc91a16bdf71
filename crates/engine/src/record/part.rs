//! Parts of answers that are not records, described for the OpenAPI document.

/// A member of an answer that is no record: its name, its JSON type and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part(pub &'static str, pub &'static str, pub &'static str);
