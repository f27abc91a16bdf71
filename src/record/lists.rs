//! Kinds that hold several values: lists of texts, and values for custom fields.

use serde_json::{Value as Schema, json};
use store::{Row, Value};

use super::kinds::{Kind, clean_text, wrong_type};
use super::rules::Rules;
use crate::error::{FieldCode, Wrong, wrong};
use crate::json::{Json, write_key, write_text};

/// Several texts, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts(pub Vec<String>);

/// More than any list that a person keeps.
const MANY: usize = 200;

impl Kind for Texts {
    fn to_db(&self) -> Value<'_> {
        // No text has a line break.
        self.0.join("\n").into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        Ok(Texts(row.text(column)?.lines().map(str::to_string).collect()))
    }

    fn from_json(json: &Json, _: &Rules) -> Result<Self, Wrong> {
        let Json::List(items) = json else { return Err(wrong_type("an array of strings", json)) };
        if items.len() > MANY {
            return Err(wrong(FieldCode::TooLong, format!("may have at most {MANY} strings")));
        }
        let mut texts: Vec<String> = Vec::new();
        for item in items {
            let text = clean_text(item, 255)?.trim();
            if text.is_empty() || text.contains(['\n', '\r']) {
                return Err(wrong(FieldCode::InvalidFormat, "must contain non-empty strings of one line"));
            }
            if texts.iter().any(|other| other == text) {
                return Err(wrong(FieldCode::GivenTwice, "contains the same string twice"));
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
        json!({"type": "array", "items": {"type": "string", "maxLength": 255}, "maxItems": MANY})
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The values of custom fields, by key. What they may be is said by the account's custom fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Custom(pub Vec<(String, CustomValue)>);

/// A value of a custom field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CustomValue {
    /// A text, or one of the options.
    Text(String),
    /// Checked or not.
    Checked(bool),
    /// To be taken away.
    Nothing,
}

impl CustomValue {
    fn from_json(json: &Json) -> Result<CustomValue, Wrong> {
        match json {
            Json::Null => Ok(CustomValue::Nothing),
            Json::Bool(checked) => Ok(CustomValue::Checked(*checked)),
            Json::Text(_) | Json::BrokenText => Ok(CustomValue::Text(clean_text(json, 4096)?.to_string())),
            other => Err(wrong_type("a string, true, false or null", other)),
        }
    }
}

impl Kind for Custom {
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
        let Ok(Json::Object(members)) = Json::parse(text.as_bytes()) else { return Ok(Custom::default()) };
        let values = members.into_iter().filter_map(|(key, json)| Some((key, CustomValue::from_json(&json).ok()?)));
        Ok(Custom(values.collect()))
    }

    fn from_json(json: &Json, _: &Rules) -> Result<Self, Wrong> {
        let Json::Object(members) = json else { return Err(wrong_type("an object", json)) };
        let mut values = Vec::with_capacity(members.len());
        for (key, json) in members {
            let value = CustomValue::from_json(json);
            values.push((
                key.clone(),
                value.map_err(|w| wrong(w.code, format!("contains '{key}', which {}", w.message)))?,
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
        json!({"type": "object", "additionalProperties": {"type": ["string", "boolean", "null"]}})
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Any JSON object, kept as it was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data(pub String);

/// The longest object, as text.
const DATA: usize = 256 * 1024;

impl From<Schema> for Data {
    fn from(value: Schema) -> Data {
        Data(value.to_string())
    }
}

impl Data {
    /// With the members of `more` that have a value.
    pub fn with(&self, more: &Schema) -> Data {
        let mut all: Schema = serde_json::from_str(&self.0).unwrap_or_else(|_| json!({}));
        for (key, value) in more.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
            all[key] = value.clone();
        }
        Data::from(all)
    }
}

impl Kind for Data {
    fn to_db(&self) -> Value<'_> {
        (&self.0).into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        Ok(Data(row.text(column)?.to_string()))
    }

    fn from_json(json: &Json, _: &Rules) -> Result<Self, Wrong> {
        if !matches!(json, Json::Object(_)) {
            return Err(wrong_type("an object", json));
        }
        let mut text = Vec::new();
        json.write(&mut text)?;
        if text.len() > DATA {
            return Err(wrong(FieldCode::TooLong, format!("may have at most {DATA} bytes")));
        }
        Ok(Data(String::from_utf8(text).unwrap_or_default()))
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.0.is_empty() { b"{}" } else { self.0.as_bytes() });
    }

    fn schema(_: &Rules) -> Schema {
        json!({"type": "object", "additionalProperties": true})
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Json {
    /// As text again, with the digits of its numbers; refuses what no text has, and numbers that whoever reads
    /// it later would not have as they are.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Wrong> {
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

fn inner_text(json: &Json) -> Result<&str, Wrong> {
    clean_text(json, DATA)
        .map_err(|wrong| Wrong { message: format!("contains a string that {}", wrong.message), ..wrong })
}

/// Whole numbers are read with 64 bits and others as floating point: beyond these one would be rounded, or make
/// all of the object unreadable.
fn check_number(digits: &str) -> Result<(), Wrong> {
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let fits = match is_whole {
        true => digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok(),
        false => digits.parse::<f64>().is_ok_and(f64::is_finite),
    };
    if fits {
        return Ok(());
    }
    let shown: String = digits.chars().take(50).collect();
    Err(wrong(FieldCode::OutOfRange, format!("contains the number {shown}, which is too large; send it as a string")))
}
