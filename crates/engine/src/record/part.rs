//! Members of responses that are not records, described for the OpenAPI document.

/// A member of a response: its name, its JSON type and its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part(pub &'static str, pub &'static str, pub &'static str);
