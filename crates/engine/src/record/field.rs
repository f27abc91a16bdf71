//! A field of a record or a body, with its accessors.

use store::{Row, Value};

use super::kinds;
use super::rules::Rules;
use crate::error::Violation;
use crate::json::Json;

/// A field without its accessors: what documents and walks need.
#[derive(Clone, Copy)]
pub struct FieldInfo {
    /// Its name in JSON, which is its column.
    pub name: &'static str,
    /// The lines of its doc comment.
    pub doc: &'static [&'static str],
    /// What it may do.
    pub rules: Rules,
    /// Its JSON schema.
    pub schema: fn(&Rules) -> serde_json::Value,
}

impl FieldInfo {
    /// Whether this is among its types in JSON.
    pub fn is(&self, kind: &str) -> bool {
        match &(self.schema)(&self.rules)["type"] {
            serde_json::Value::Array(types) => types.iter().any(|own| own == kind),
            own => own == kind,
        }
    }

    /// Whether it is a day.
    pub fn is_date(&self) -> bool {
        (self.schema)(&self.rules)["pattern"] == kinds::DAY_PATTERN
    }
}

/// A field of `R` with its accessors.
pub struct Field<R> {
    /// What is said about it.
    pub info: FieldInfo,
    /// Its value for the database.
    pub to_db: fn(&R) -> Value<'_>,
    /// Takes its value from a column.
    pub from_db: fn(&mut R, &Row, usize) -> store::Result<()>,
    /// Takes its value from a body.
    pub from_json: fn(&mut R, &Json, &Rules) -> Result<(), Violation>,
    /// Writes its value in an answer.
    pub to_json: fn(&R, &Rules, &mut Vec<u8>),
    /// Copies it from the first to the second.
    pub copy: fn(&R, &mut R),
    /// Whether both have the same.
    pub equal: fn(&R, &R) -> bool,
    /// Reads a filter's text.
    pub from_query: fn(&str, &Rules) -> Result<Value<'static>, Violation>,
}
