//! A line of a file as it will be sent.

use std::collections::BTreeMap;

use engine::error::FieldErrors;
use engine::json::Json;

/// A line as it will be sent to the route.
#[derive(Clone, Default)]
pub struct Built {
    /// The fields of the record.
    pub body: Vec<(String, Json)>,
    /// The id of the record in the account that the file was exported from; or empty.
    pub source_id: String,
    /// The id of its parent, in the path; or empty.
    pub parent: String,
    /// What is known of the client of a document.
    pub client: BTreeMap<&'static str, String>,
    /// The name of its original PDF, or empty.
    pub pdf: String,
    /// The day on which an invoice was paid, as YYYY-MM-DD; or empty.
    pub paid_on: String,
    /// The day on which a document was sent, as YYYY-MM-DD; or empty.
    pub sent_on: String,
    /// The amount in cents that was paid of an invoice that is partly paid.
    pub paid_part: Option<i128>,
    /// What the line has beside the fields of its record, by name.
    pub beside: BTreeMap<&'static str, String>,
    /// What is wrong with values that the route does not see.
    pub faults: FieldErrors,
    /// What a new record would lack. A record that exists and is changed has it already.
    pub missing: FieldErrors,
    /// What the caller should know of the line although it can be imported, by field.
    pub doubts: FieldErrors,
    /// What is wrong with the line as a whole; a sentence.
    pub broken: Option<String>,
    /// Why the line is left out although nothing is wrong with it.
    pub left_out: Option<String>,
}
