//! Types with several values: lists of strings, and custom field values.

use serde_json::{Value as Schema, json};
use store::{Row, Value};

use super::kinds::{Kind, clean_text, wrong_type};
use super::rules::Rules;
use crate::error::{FieldCode, Violation, violation};
use crate::json::{Json, write_key, write_text};
use crate::text::{CONTROL, CONTROL_AND_BREAKS, filled_pattern, pattern};

/// A list of strings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts(pub Vec<String>);

/// Maximum number of items.
const MAX_ITEMS: usize = 200;

impl Kind for Texts {
    const NAME: &'static str = "texts";

    fn to_db(&self) -> Value<'_> {
        // A string contains no line break.
        self.0.join("\n").into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        match row.text(column)? {
            "" => Ok(Texts::default()),
            text if text.split('\n').all(|one| !one.is_empty()) => {
                Ok(Texts(text.split('\n').map(str::to_string).collect()))
            }
            _ => Err(store::Error::unreadable("it has an empty line")),
        }
    }

    fn from_json(json: &Json, _: &Rules) -> Result<Self, Violation> {
        let Json::List(items) = json else { return Err(wrong_type("an array of strings", json)) };
        if items.len() > MAX_ITEMS {
            return Err(violation(FieldCode::TooLong, format!("may have at most {MAX_ITEMS} strings")));
        }
        let mut texts: Vec<String> = Vec::new();
        for item in items {
            let text = clean_text(item, 255)?.trim();
            if text.is_empty() || text.contains(['\n', '\r']) {
                return Err(violation(FieldCode::InvalidFormat, "must contain non-empty strings of one line"));
            }
            if texts.iter().any(|other| other == text) {
                return Err(violation(FieldCode::GivenTwice, "contains the same string twice"));
            }
            texts.push(text.to_string());
        }
        Ok(Texts(texts))
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        out.push(b'[');
        for text in &self.0 {
            if out.last() != Some(&b'[') {
                out.push(b',');
            }
            write_text(out, text);
        }
        out.push(b']');
    }

    fn schema(_: &Rules) -> Schema {
        let pattern = filled_pattern(CONTROL_AND_BREAKS);
        let item = json!({"type": "string", "minLength": 1, "maxLength": 255, "pattern": pattern});
        json!({"type": "array", "items": item, "maxItems": MAX_ITEMS, "uniqueItems": true})
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The values of custom fields, by key. The account's custom fields determine which are valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Custom(pub Vec<(String, CustomValue)>);

/// Maximum number of characters of a value.
const LONGEST_VALUE: usize = 4096;

/// A value of a custom field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CustomValue {
    /// A string, or one of the options.
    Text(String),
    /// Whether a checkbox is checked.
    Checked(bool),
    /// The value is to be removed.
    Nothing,
}

impl CustomValue {
    fn from_json(json: &Json) -> Result<CustomValue, Violation> {
        match json {
            Json::Null => Ok(CustomValue::Nothing),
            Json::Bool(checked) => Ok(CustomValue::Checked(*checked)),
            Json::Text(_) | Json::BrokenText => Ok(CustomValue::Text(clean_text(json, LONGEST_VALUE)?.to_string())),
            other => Err(wrong_type("a string, true, false or null", other)),
        }
    }
}

impl Kind for Custom {
    const NAME: &'static str = "custom";

    fn to_db(&self) -> Value<'_> {
        let mut text = Vec::new();
        if !self.0.is_empty() {
            self.to_json(&super::rules::INPUT, &mut text);
        }
        String::from_utf8(text).unwrap_or_default().into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        let text = row.text(column)?;
        if text.is_empty() {
            return Ok(Custom::default());
        }
        let Ok(Json::Object(members)) = Json::parse(text.as_bytes()) else { return Err(not_an_object()) };
        let values = members.into_iter().map(|(key, json)| match json {
            Json::Null => Ok((key, CustomValue::Nothing)),
            Json::Bool(checked) => Ok((key, CustomValue::Checked(checked))),
            Json::Text(text) => Ok((key, CustomValue::Text(text))),
            other => Err(store::Error::unreadable(format!("the value of '{key}' is {}", other.kind()))),
        });
        values.collect::<store::Result<_>>().map(Custom)
    }

    fn from_json(json: &Json, _: &Rules) -> Result<Self, Violation> {
        let Json::Object(members) = json else { return Err(wrong_type("an object", json)) };
        let mut values = Vec::with_capacity(members.len());
        for (key, json) in members {
            let value = CustomValue::from_json(json);
            values.push((
                key.clone(),
                value.map_err(|w| violation(w.code, format!("contains '{key}', which {}", w.message)))?,
            ));
        }
        Ok(Custom(values))
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        out.push(b'{');
        for (key, value) in &self.0 {
            write_key(out, key);
            match value {
                CustomValue::Text(text) => write_text(out, text),
                CustomValue::Checked(checked) => out.extend_from_slice(checked.to_string().as_bytes()),
                CustomValue::Nothing => out.extend_from_slice(b"null"),
            }
        }
        out.push(b'}');
    }

    fn schema(_: &Rules) -> Schema {
        let kinds = ["string", "boolean", "null"];
        let value = json!({"type": kinds, "maxLength": LONGEST_VALUE, "pattern": pattern(CONTROL)});
        json!({"title": "CustomValues", "type": "object", "additionalProperties": value})
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Any JSON object, stored as sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data(pub String);

/// Maximum size of an object, in bytes.
const DATA: usize = 256 * 1024;

impl From<Schema> for Data {
    fn from(value: Schema) -> Data {
        Data(value.to_string())
    }
}

impl Data {
    /// Returns it as JSON; an empty object if it is empty.
    pub fn json(&self) -> Schema {
        // Invalid JSON never becomes a `Data`: see `from_db` and `from_json`.
        serde_json::from_str(&self.0).unwrap_or_else(|_| json!({}))
    }

    /// Returns it with the members of `more` that have a value.
    pub fn with(&self, more: &Schema) -> Data {
        let mut all = self.json();
        for (key, value) in more.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
            all[key] = value.clone();
        }
        Data::from(all)
    }
}

impl Kind for Data {
    const NAME: &'static str = "data";

    fn to_db(&self) -> Value<'_> {
        (&self.0).into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        stored_object(row.text(column)?).map(Data)
    }

    fn from_json(json: &Json, _: &Rules) -> Result<Self, Violation> {
        if !matches!(json, Json::Object(_)) {
            return Err(wrong_type("an object", json));
        }
        let mut text = Vec::new();
        json.write(&mut text)?;
        if text.len() > DATA {
            return Err(violation(FieldCode::TooLong, format!("may have at most {DATA} bytes")));
        }
        Ok(Data(String::from_utf8(text).unwrap_or_default()))
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.0.is_empty() { b"{}" } else { self.0.as_bytes() });
    }

    fn schema(rules: &Rules) -> Schema {
        let member = match rules.members {
            [] => json!(true),
            kinds => json!({"type": kinds, "pattern": pattern(CONTROL)}),
        };
        json!({"type": "object", "additionalProperties": member})
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A copy of another record at the time when this one was saved, or nothing. Stored as JSON as in responses, without times
/// and empty fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot(pub String);

impl Snapshot {
    /// The record that is shown as this JSON object.
    pub fn of(shown: &[u8]) -> Snapshot {
        let mut record: Schema = serde_json::from_slice(shown).unwrap_or_default();
        for name in ["created_at", "updated_at"] {
            record[name].take();
            record["meta"][name].take();
        }
        leave_out_empty(&mut record);
        Snapshot(record.to_string())
    }

    /// Returns it as JSON; null if there is none, or if it is not readable.
    pub fn json(&self) -> Schema {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// Whether all of it is readable. Reading a record looks at its two ends alone, since no response shows it.
    pub fn check(&self) -> store::Result<()> {
        stored_object(&self.0).map(drop)
    }
}

/// Drops the members of objects that have no value.
fn leave_out_empty(value: &mut Schema) {
    if let Some(members) = value.as_object_mut() {
        members.values_mut().for_each(leave_out_empty);
        members.retain(|_, value| !(value.is_null() || *value == json!("") || *value == json!({})));
    }
}

impl Kind for Snapshot {
    const NAME: &'static str = "data";

    fn to_db(&self) -> Value<'_> {
        (&self.0).into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        let text = row.text(column)?;
        let is_object = text.is_empty() || (text.starts_with('{') && text.ends_with('}'));
        if is_object { Ok(Snapshot(text.to_string())) } else { Err(not_an_object()) }
    }

    fn from_json(_: &Json, _: &Rules) -> Result<Self, Violation> {
        Err(violation(FieldCode::ReadOnly, "cannot be set here"))
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.0.is_empty() { b"null" } else { self.0.as_bytes() });
    }

    fn schema(_: &Rules) -> Schema {
        json!({"type": ["object", "null"], "additionalProperties": true})
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the text of a stored JSON object, or an empty text.
fn stored_object(text: &str) -> store::Result<String> {
    let is_object = || text.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if text.is_empty() || is_object() { Ok(text.to_string()) } else { Err(not_an_object()) }
}

fn not_an_object() -> store::Error {
    store::Error::unreadable("it is not a JSON object")
}

impl Json {
    /// Serializes the value with the digits of its numbers; rejects invalid strings, and numbers that later readers
    /// cannot represent.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Violation> {
        match self {
            Json::Null => out.extend_from_slice(b"null"),
            Json::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Json::Number(digits) => {
                check_number(digits)?;
                out.extend_from_slice(digits.as_bytes());
            }
            Json::Text(_) | Json::BrokenText => write_text(out, inner_text(self)?),
            Json::List(items) => {
                out.push(b'[');
                for (place, item) in items.iter().enumerate() {
                    if place > 0 {
                        out.push(b',');
                    }
                    item.write(out)?;
                }
                out.push(b']');
            }
            Json::Object(members) => {
                out.push(b'{');
                for (key, value) in members {
                    inner_text(&Json::Text(key.clone()))?;
                    write_key(out, key);
                    value.write(out)?;
                }
                out.push(b'}');
            }
        }
        Ok(())
    }
}

fn inner_text(json: &Json) -> Result<&str, Violation> {
    clean_text(json, DATA)
        .map_err(|wrong| Violation { message: format!("contains a string that {}", wrong.message), ..wrong })
}

/// Integers are read with 64 bits and others as floating point: a number beyond these would be rounded, or make the
/// whole object unreadable.
fn check_number(digits: &str) -> Result<(), Violation> {
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let fits = match is_whole {
        true => digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok(),
        false => digits.parse::<f64>().is_ok_and(f64::is_finite),
    };
    if fits {
        return Ok(());
    }
    let shown: String = digits.chars().take(50).collect();
    Err(violation(
        FieldCode::OutOfRange,
        format!("contains the number {shown}, which is too large; send it as a string"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_keeps_what_is_not_empty() {
        let shown = json!({
            "id": "1", "a": "", "b": ":null", "c": null, "d": {"e": "", "f": {}, "g": 0}, "h": [{"i": ""}, ""], "j": false,
            "updated_at": "2026-11-16T00:00:00.000Z", "meta": {"created_at": "2026-11-16T00:00:00.000Z", "version": 1},
        });
        let kept =
            json!({"id": "1", "b": ":null", "d": {"g": 0}, "h": [{"i": ""}, ""], "j": false, "meta": {"version": 1}});
        assert_eq!(Snapshot::of(shown.to_string().as_bytes()).0, kept.to_string());
    }
}
