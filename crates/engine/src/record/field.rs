//! A field of a record or a body, with its accessors.

use std::any::Any;

use store::{Row, Value};

use super::checked::Email;
use super::kinds::{self, Kind};
use super::rules::Rules;
use crate::error::Violation;
use crate::json::Json;

/// A field without its accessors.
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
    /// Whether its type has a value that stands for none.
    pub can_be_none: fn() -> bool,
    /// Parses the value of a filter.
    pub from_query: fn(&str, &Rules) -> Result<Value<'static>, Violation>,
    /// Returns the default value of its type.
    pub blank: fn() -> Box<dyn AnyKind>,
}

impl FieldInfo {
    /// Whether this is one of its JSON types.
    pub fn is(&self, kind: &str) -> bool {
        match &(self.schema)(&self.rules)["type"] {
            serde_json::Value::Array(types) => types.iter().any(|own| own == kind),
            own => own == kind,
        }
    }

    /// Whether a filter by it takes several values, separated by commas: it has a set of them.
    pub fn takes_several(&self) -> bool {
        self.rules.filter_many || !self.choices.is_empty()
    }

    /// Returns the values of its set in records of this name.
    pub fn choices_of(&self, record: &str) -> &'static [&'static str] {
        (self.rules.choices_of)(record).unwrap_or(self.choices)
    }

    /// Whether it is an enumeration that callers cannot extend, and that filters check.
    pub fn is_closed(&self) -> bool {
        (self.schema)(&self.rules).get("enum").is_some()
    }

    /// Whether it is one e-mail address, which filters compare ignoring case.
    pub fn is_address(&self) -> bool {
        self.kind == Email::NAME
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
    /// Returns its value.
    pub value: fn(&R) -> &dyn AnyKind,
    /// Returns its value, mutably.
    pub value_mut: fn(&mut R) -> &mut dyn AnyKind,
}

impl<R> Field<R> {
    /// Returns its value for the database.
    pub fn to_db<'r>(&self, record: &'r R) -> Value<'r> {
        (self.value)(record).value_to_db()
    }

    /// Reads its value from a column.
    pub fn from_db(&self, record: &mut R, row: &Row, column: usize) -> store::Result<()> {
        (self.value_mut)(record).read_column(row, column)
    }

    /// Reads its value from a body.
    pub fn from_json(&self, record: &mut R, json: &Json, rules: &Rules) -> Result<(), Violation> {
        (self.value_mut)(record).read_json(json, rules)
    }

    /// Writes its value to a response.
    pub fn to_json(&self, record: &R, rules: &Rules, out: &mut Vec<u8>) {
        (self.value)(record).write_json(rules, out);
    }

    /// Copies it from one record to another.
    pub fn copy(&self, from: &R, to: &mut R) {
        (self.value_mut)(to).copy_from((self.value)(from));
    }

    /// Whether both records have the same value.
    pub fn equal(&self, one: &R, other: &R) -> bool {
        (self.value)(one).equals((self.value)(other))
    }
}

/// A value of any [`Kind`]. What a field does with its value is compiled once for each kind: a copy for each of the
/// hundreds of fields took a large part of the build.
pub trait AnyKind: Any {
    /// Returns it for the database.
    fn value_to_db(&self) -> Value<'_>;
    /// Replaces it with the value of a column.
    fn read_column(&mut self, row: &Row, column: usize) -> store::Result<()>;
    /// Replaces it with a value from a body.
    fn read_json(&mut self, json: &Json, rules: &Rules) -> Result<(), Violation>;
    /// Writes it to a response.
    fn write_json(&self, rules: &Rules, out: &mut Vec<u8>);
    /// Replaces it with another value of the same kind.
    fn copy_from(&mut self, other: &dyn AnyKind);
    /// Whether the other is of the same kind and equal.
    fn equals(&self, other: &dyn AnyKind) -> bool;
}

impl<K: Kind + PartialEq + 'static> AnyKind for K {
    fn value_to_db(&self) -> Value<'_> {
        self.to_db()
    }

    fn read_column(&mut self, row: &Row, column: usize) -> store::Result<()> {
        *self = K::from_db(row, column)?;
        Ok(())
    }

    fn read_json(&mut self, json: &Json, rules: &Rules) -> Result<(), Violation> {
        *self = K::read(json, rules)?;
        Ok(())
    }

    fn write_json(&self, rules: &Rules, out: &mut Vec<u8>) {
        self.to_json(rules, out);
    }

    fn copy_from(&mut self, other: &dyn AnyKind) {
        if let Some(other) = (other as &dyn Any).downcast_ref::<K>() {
            self.clone_from(other);
        }
    }

    fn equals(&self, other: &dyn AnyKind) -> bool {
        (other as &dyn Any).downcast_ref::<K>().is_some_and(|other| self == other)
    }
}

/// Returns the default value of a kind.
pub fn blank<K: Kind + PartialEq + Default + 'static>() -> Box<dyn AnyKind> {
    Box::new(K::default())
}
