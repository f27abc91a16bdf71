//! The report of each step of a run.

use engine::context::Ctx;
use engine::error::Violation;
use engine::json::Json;
use engine::record::{Kind, Rules};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use store::Row;

use super::calls::Outgoing;
use super::status::Status;

/// The report of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Status; `None` before the first attempt.
    #[serde(default, serialize_with = "write_status", deserialize_with = "read_status")]
    pub status: Option<Status>,
    /// When the step was first attempted.
    pub started_at: String,
    /// When the step ended, or empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub finished_at: String,
    /// Number of attempts.
    pub attempts: i64,
    /// Result of the step.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub result: Value,
    /// Why the step failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The call of the step, until it ends: every attempt under one key sends the same request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Outgoing>,
}

impl Report {
    /// Closes the report with a final status.
    pub fn close(&mut self, ctx: &Ctx, status: Status) {
        self.status = Some(status);
        self.call = None;
        self.finished_at = ctx.now.to_string();
    }
}

fn write_status<S: Serializer>(status: &Option<Status>, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(status.map_or("", Status::wire))
}

fn read_status<'d, D: Deserializer<'d>>(input: D) -> Result<Option<Status>, D::Error> {
    let text = String::deserialize(input)?;
    match (text.as_str(), Status::from_wire(&text)) {
        ("", _) => Ok(None),
        (_, None) => Err(D::Error::custom("not a status")),
        (_, found) => Ok(found),
    }
}

/// The reports of the steps so far, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reports(pub Vec<Report>);

impl Reports {
    /// Serializes the reports for storage.
    pub fn to_text(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }
}

impl Kind for Reports {
    const NAME: &'static str = "data";

    fn to_db(&self) -> store::Value<'_> {
        self.to_text().into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        match row.text(column)? {
            "" => Ok(Reports::default()),
            text => serde_json::from_str(text)
                .map(Reports)
                .map_err(|_| store::Error::unreadable("it is not a JSON array of reports")),
        }
    }

    fn from_json(_: &Json, _: &Rules) -> Result<Self, Violation> {
        Ok(Reports::default())
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        out.extend_from_slice(self.to_text().as_bytes());
    }

    fn schema(_: &Rules) -> Value {
        serde_json::json!({"type": "array", "items": {"type": "object"}})
    }
}
