//! Members of responses that are not records, described for the OpenAPI document.

/// A member of a response, or a parameter: its name, its JSON type and its description. A `?` after the type
/// says that the member may be absent. The type of a parameter can be followed by its limits, as in `integer 1 100` or `string 255`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part(pub &'static str, pub &'static str, pub &'static str);
