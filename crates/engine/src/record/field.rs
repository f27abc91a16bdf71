//! A field of a record or a body, with its accessors.

use store::{Row, Value};

use super::kinds;
use super::rules::Rules;
use crate::error::Violation;
use crate::json::Json;

/// A field without its accessors, for the documentation and tests.
#[derive(Clone, Copy)]
pub struct FieldInfo {
    /// Its name in JSON, which is also its column.
    pub name: &'static str,
    /// The lines of its doc comment.
    pub doc: &'static [&'static str],
    /// Its rules.
    pub rules: Rules,
    /// The name of its type.
    pub kind: &'static str,
    /// Its values, if it is an enumeration.
    pub choices: &'static [&'static str],
    /// Its JSON schema.
    pub schema: fn(&Rules) -> serde_json::Value,
}

impl FieldInfo {
    /// Whether this is one of its JSON types.
    pub fn is(&self, kind: &str) -> bool {
        match &(self.schema)(&self.rules)["type"] {
            serde_json::Value::Array(types) => types.iter().any(|own| own == kind),
            own => own == kind,
        }
    }

    /// Whether it is a date.
    pub fn is_date(&self) -> bool {
        (self.schema)(&self.rules)["pattern"] == kinds::DAY_PATTERN
    }
}

/// A field of `R` with its accessors.
pub struct Field<R> {
    /// Its description.
    pub info: FieldInfo,
    /// Returns its value for the database.
    pub to_db: fn(&R) -> Value<'_>,
    /// Reads its value from a column.
    pub from_db: fn(&mut R, &Row, usize) -> store::Result<()>,
    /// Reads its value from a body.
    pub from_json: fn(&mut R, &Json, &Rules) -> Result<(), Violation>,
    /// Writes its value to a response.
    pub to_json: fn(&R, &Rules, &mut Vec<u8>),
    /// Copies it from the first record to the second.
    pub copy: fn(&R, &mut R),
    /// Whether both records have the same value.
    pub equal: fn(&R, &R) -> bool,
    /// Parses the value of a filter.
    pub from_query: fn(&str, &Rules) -> Result<Value<'static>, Violation>,
}
