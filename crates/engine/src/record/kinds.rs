//! The types of field values. No column is NULL: a missing value is `''`, 0 or the default of the type, so that both
//! databases sort and compare it in the same way.

use std::borrow::Cow;

use jiff::civil::Date;
use money::Decimal;
use serde_json::{Value as Schema, json};
use store::{Row, Value};

use super::rules::{INPUT, Rules};
use crate::clock::{self, Moment};
use crate::error::{FieldCode, Violation, violation};
use crate::json::{Json, write_text};
use crate::text::{not_allowed, pattern};

/// A type of value: how it is stored, parsed, written and described.
pub trait Kind: Sized + Clone + Default {
    /// Its name in descriptions of records: which control a form has for it, and how a list shows it.
    const NAME: &'static str;
    /// Its values, if it is an enumeration.
    const CHOICES: &'static [&'static str] = &[];

    /// Converts the value for the database.
    fn to_db(&self) -> Value<'_>;
    /// Reads a value from the database. An invalid value is [`store::Error::unreadable`], never a default.
    fn from_db(row: &Row, column: usize) -> store::Result<Self>;
    /// Reads a value from a body; `null` has already been handled.
    fn from_json(json: &Json, rules: &Rules) -> Result<Self, Violation>;
    /// Writes the value to a response.
    fn to_json(&self, rules: &Rules, out: &mut Vec<u8>);
    /// Returns the JSON schema.
    fn schema(rules: &Rules) -> Schema;

    /// Whether it is empty, for required fields.
    fn is_empty(&self) -> bool {
        false
    }

    /// Converts a query parameter to the corresponding JSON.
    fn from_query(text: &str) -> Json {
        Json::Text(text.to_string())
    }

    /// Whether it has a value that stands for none. Strings, dates, links and lists can be empty. A number, an enumeration
    /// or a boolean cannot: `null` would turn it into a value that was not sent.
    fn can_be_none() -> bool {
        Self::default().is_empty()
    }

    /// Reads a value from a body, including `null` and the rules of every type.
    fn read(json: &Json, rules: &Rules) -> Result<Self, Violation> {
        let can_be_none = Self::can_be_none() || rules.nullable || rules.resets;
        let value = match json {
            Json::Null if rules.required || !can_be_none => return Err(must_have_a_value()),
            Json::Text(text) if rules.required && text.trim().is_empty() => return Err(must_have_a_value()),
            Json::Null => return Self::unset(rules),
            json => Self::from_json(json, rules)?,
        };
        match json {
            _ if !value.is_empty() => Ok(value),
            _ if rules.required => Err(must_have_a_value()),
            Json::Text(_) if !rules.default.is_empty() => Self::unset(rules),
            _ => Ok(value),
        }
    }

    /// Returns the value of a field that is not set.
    fn unset(rules: &Rules) -> Result<Self, Violation> {
        if rules.default.is_empty() {
            return Ok(Self::default());
        }
        let default = Json::parse(rules.default.as_bytes()).unwrap_or(Json::Null);
        Self::from_json(&default, rules)
    }

    /// Reads the value of a filter.
    fn filter(text: &str, rules: &Rules) -> Result<Value<'static>, Violation> {
        let value = Self::from_json(&Self::from_query(text), rules)?;
        Ok(match value.to_db() {
            Value::Int(value) => Value::Int(value),
            Value::Text(value) => Value::Text(Cow::Owned(value.into_owned())),
            Value::Bytes(value) => Value::Bytes(Cow::Owned(value.into_owned())),
        })
    }
}

fn must_have_a_value() -> Violation {
    violation(FieldCode::Required, "must have a value")
}

/// Creates an error for a value of the wrong type, with the expected one.
pub fn wrong_type(must_be: &str, json: &Json) -> Violation {
    violation(FieldCode::WrongType, format!("must be {must_be}, not {}", json.kind()))
}

/// Returns text that both databases, mail and PDF support.
pub fn clean_text(json: &Json, max_length: usize) -> Result<&str, Violation> {
    let text = match json {
        Json::Text(text) => text,
        Json::BrokenText => {
            return Err(violation(FieldCode::InvalidCharacters, "contains an unpaired surrogate"));
        }
        other => return Err(wrong_type("a string", other)),
    };
    if let Some(bad) = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        let message = format!("contains the control character U+{:04X}", u32::from(bad));
        return Err(violation(FieldCode::InvalidCharacters, message));
    }
    // Characters are only counted if the bytes could exceed the limit.
    if text.len() > max_length && text.chars().count() > max_length {
        return Err(violation(FieldCode::TooLong, format!("may have at most {max_length} characters")));
    }
    Ok(text)
}

/// The pattern of an optional date.
pub const DAY_PATTERN: &str = "^$|^\\d{4}-\\d{2}-\\d{2}$";

/// Returns the pattern of a decimal number that is sent as text.
pub fn decimal_pattern(places: u32) -> String {
    format!("^-?[0-9]{{1,12}}(\\.[0-9]{{1,{places}}})?$")
}

fn text_schema(rules: &Rules) -> Schema {
    let kind = if rules.nullable { json!(["string", "null"]) } else { json!("string") };
    // Values that the server writes can exceed the limits of input.
    if rules.create || rules.patch {
        json!({"type": kind, "maxLength": rules.max_length, "pattern": pattern(rules.refused)})
    } else {
        json!({"type": kind})
    }
}

fn write_text_or_null(out: &mut Vec<u8>, text: &str, rules: &Rules) {
    if text.is_empty() && rules.nullable {
        out.extend_from_slice(b"null");
    } else {
        write_text(out, text);
    }
}

impl Kind for String {
    const NAME: &'static str = "text";

    fn to_db(&self) -> Value<'_> {
        self.into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        Ok(row.text(column)?.to_string())
    }

    fn from_json(json: &Json, rules: &Rules) -> Result<Self, Violation> {
        clean_text(json, rules.max_length).map(str::to_string)
    }

    fn to_json(&self, rules: &Rules, out: &mut Vec<u8>) {
        write_text_or_null(out, self, rules);
    }

    fn schema(rules: &Rules) -> Schema {
        text_schema(rules)
    }

    fn is_empty(&self) -> bool {
        self.trim().is_empty()
    }
}

impl Kind for bool {
    const NAME: &'static str = "boolean";

    fn to_db(&self) -> Value<'_> {
        (*self).into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        match row.int(column)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(store::Error::unreadable("it is neither 0 nor 1")),
        }
    }

    fn from_json(json: &Json, _: &Rules) -> Result<Self, Violation> {
        match json {
            Json::Bool(value) => Ok(*value),
            other => Err(wrong_type("true or false", other)),
        }
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }

    fn schema(_: &Rules) -> Schema {
        json!({"type": "boolean"})
    }

    fn filter(text: &str, _: &Rules) -> Result<Value<'static>, Violation> {
        yes_or_no(text).map(|value| Value::Int(i64::from(value)))
    }
}

/// Reads a parameter that is true or false.
pub fn yes_or_no(text: &str) -> Result<bool, Violation> {
    match text {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(violation(FieldCode::WrongType, "must be true or false, or 1 or 0")),
    }
}

impl Kind for i64 {
    const NAME: &'static str = "integer";

    fn to_db(&self) -> Value<'_> {
        (*self).into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        row.int(column)
    }

    fn from_json(json: &Json, rules: &Rules) -> Result<Self, Violation> {
        let Json::Number(digits) = json else {
            return Err(wrong_type("an integer", json));
        };
        // Some languages write 5 as 5.0, which is an integer in a JSON schema as well.
        let digits = match digits.split_once('.') {
            Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|digit| digit == b'0') => whole,
            _ => digits,
        };
        if digits.contains(['.', 'e', 'E']) {
            return Err(violation(FieldCode::WrongType, "must be an integer"));
        }
        let value = digits.parse().ok().filter(|value| (rules.min..=rules.max).contains(value));
        value.ok_or_else(|| out_of_range(rules))
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        out.extend_from_slice(self.to_string().as_bytes());
    }

    fn schema(rules: &Rules) -> Schema {
        json!({"type": "integer", "minimum": rules.min, "maximum": rules.max})
    }

    fn from_query(text: &str) -> Json {
        Json::Number(text.to_string())
    }
}

/// A number of days. `null` means none, and the record determines what that stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Days(pub i64);

impl Default for Days {
    fn default() -> Self {
        Days(-1)
    }
}

impl Kind for Days {
    const NAME: &'static str = "integer";

    fn to_db(&self) -> Value<'_> {
        self.0.into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        match row.int(column)? {
            days @ -1.. => Ok(Days(days)),
            _ => Err(store::Error::unreadable("it is neither a number of days nor -1")),
        }
    }

    fn from_json(json: &Json, rules: &Rules) -> Result<Self, Violation> {
        i64::from_json(json, rules).map(Days)
    }

    fn to_json(&self, rules: &Rules, out: &mut Vec<u8>) {
        self.0.to_json(rules, out);
    }

    fn schema(rules: &Rules) -> Schema {
        i64::schema(rules)
    }

    fn is_empty(&self) -> bool {
        self.0 < 0
    }

    fn from_query(text: &str) -> Json {
        i64::from_query(text)
    }
}

fn out_of_range(rules: &Rules) -> Violation {
    violation(FieldCode::OutOfRange, format!("must be from {} to {}", rules.min, rules.max))
}

impl<const SCALE: u32> Kind for Decimal<SCALE> {
    const NAME: &'static str = if SCALE > 2 { "price" } else { "amount" };

    fn to_db(&self) -> Value<'_> {
        self.scaled().into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        Ok(Decimal::from_scaled(row.int(column)?))
    }

    fn from_json(json: &Json, rules: &Rules) -> Result<Self, Violation> {
        let (Json::Number(digits) | Json::Text(digits)) = json else {
            return Err(wrong_type("a number", json));
        };
        let value: Self = digits.parse().map_err(|fault| match fault {
            money::DecimalError::NotANumber => {
                violation(FieldCode::WrongType, "must be a decimal number such as 12.50")
            }
            money::DecimalError::TooPrecise => {
                violation(FieldCode::TooPrecise, format!("may have at most {SCALE} decimals"))
            }
            money::DecimalError::TooLarge => out_of_range(rules),
        })?;
        // Without a limit, the largest number has decimals too.
        let one = 10_i64.pow(SCALE);
        let is_above = rules.max < INPUT.max && value.scaled() > rules.max * one;
        if is_above || value.scaled() < rules.min * one {
            return Err(out_of_range(rules));
        }
        Ok(value)
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        out.extend_from_slice(self.to_string().as_bytes());
    }

    fn schema(rules: &Rules) -> Schema {
        json!({"type": "number", "minimum": rules.min, "maximum": rules.max})
    }

    fn from_query(text: &str) -> Json {
        Json::Number(text.to_string())
    }
}

/// An optional calendar date.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Day(pub Option<Date>);

/// Parses `YYYY-MM-DD`, from the year 0001 on.
pub fn parse_date(text: &str) -> Result<Date, Violation> {
    let bytes = text.as_bytes();
    let shaped = bytes.len() == 10 && bytes[4] == b'-' && bytes[7] == b'-';
    let date = shaped.then(|| text.parse::<Date>().ok()).flatten().filter(|date| date.year() > 0);
    date.ok_or_else(|| violation(FieldCode::InvalidFormat, "must be a date in the format YYYY-MM-DD"))
}

/// Parses a stored date.
pub fn stored_date(text: &str) -> store::Result<Date> {
    parse_date(text).map_err(|_| store::Error::unreadable("it is not a date of the form YYYY-MM-DD"))
}

impl Day {
    /// Returns the date as `YYYY-MM-DD`, or an empty text.
    pub fn text(&self) -> String {
        self.0.map(clock::date_text).unwrap_or_default()
    }
}

impl Kind for Day {
    const NAME: &'static str = "day";

    fn to_db(&self) -> Value<'_> {
        self.text().into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        match row.text(column)? {
            "" => Ok(Day(None)),
            text => Ok(Day(Some(stored_date(text)?))),
        }
    }

    fn from_json(json: &Json, rules: &Rules) -> Result<Self, Violation> {
        match clean_text(json, rules.max_length)? {
            "" => Ok(Day(None)),
            text => parse_date(text).map(|date| Day(Some(date))),
        }
    }

    fn to_json(&self, rules: &Rules, out: &mut Vec<u8>) {
        write_text_or_null(out, &self.text(), rules);
    }

    fn schema(rules: &Rules) -> Schema {
        let mut schema = text_schema(rules);
        schema["maxLength"] = json!(10);
        schema["pattern"] = json!(DAY_PATTERN);
        schema
    }

    fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// An optional timestamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct When(pub Option<Moment>);

impl Kind for When {
    const NAME: &'static str = "moment";

    fn to_db(&self) -> Value<'_> {
        self.0.map_or(0, |moment| moment.0).into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        let stored = Moment::from_db(row, column)?;
        Ok(When((stored.0 != 0).then_some(stored)))
    }

    fn from_json(json: &Json, rules: &Rules) -> Result<Self, Violation> {
        let moment = Moment::parse(clean_text(json, rules.max_length)?);
        let moment = moment
            .ok_or_else(|| violation(FieldCode::InvalidFormat, "must be a timestamp such as 2026-05-04T09:30:00Z"))?;
        Ok(When(Some(moment)))
    }

    fn to_json(&self, rules: &Rules, out: &mut Vec<u8>) {
        let text = self.0.map(|moment| moment.to_string()).unwrap_or_default();
        write_text_or_null(out, &text, rules);
    }

    fn schema(rules: &Rules) -> Schema {
        if rules.nullable {
            return json!({"type": ["string", "null"], "format": "date-time"});
        }
        json!({"type": "string", "anyOf": [{"format": "date-time"}, {"const": ""}]})
    }

    fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// The id of another record of the account, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link(pub String);

impl Kind for Link {
    const NAME: &'static str = "link";

    fn to_db(&self) -> Value<'_> {
        (&self.0).into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        Ok(Link(row.text(column)?.to_string()))
    }

    fn from_json(json: &Json, rules: &Rules) -> Result<Self, Violation> {
        clean_text(json, rules.max_length).map(|text| Link(text.to_string()))
    }

    fn to_json(&self, rules: &Rules, out: &mut Vec<u8>) {
        write_text_or_null(out, &self.0, rules);
    }

    fn schema(rules: &Rules) -> Schema {
        text_schema(rules)
    }

    fn is_empty(&self) -> bool {
        self.0.trim().is_empty()
    }
}

/// A VAT percentage as text: `"21"`, also sent as `"21%"` or `21`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VatRate(pub String);

impl Kind for VatRate {
    const NAME: &'static str = "percent";

    fn to_db(&self) -> Value<'_> {
        (&self.0).into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        match row.text(column)? {
            text if text.is_empty() || text.parse::<Decimal<2>>().is_ok() => Ok(VatRate(text.to_string())),
            _ => Err(store::Error::unreadable("it is not a percentage")),
        }
    }

    fn from_json(json: &Json, _: &Rules) -> Result<Self, Violation> {
        let (Json::Number(digits) | Json::Text(digits)) = json else {
            return Err(wrong_type("a percentage such as \"21\"", json));
        };
        let digits = digits.strip_suffix('%').unwrap_or(digits).trim();
        if digits.is_empty() {
            return Ok(VatRate::default());
        }
        let rate: Decimal<2> =
            digits.parse().map_err(|_| violation(FieldCode::InvalidFormat, "must be a percentage such as \"21\""))?;
        if !(0..=10_000).contains(&rate.scaled()) {
            return Err(violation(FieldCode::OutOfRange, "must be from 0 to 100"));
        }
        Ok(VatRate(rate.to_string()))
    }

    fn to_json(&self, rules: &Rules, out: &mut Vec<u8>) {
        write_text_or_null(out, &self.0, rules);
    }

    fn schema(rules: &Rules) -> Schema {
        let mut schema = json!({"type": ["string", "number"], "description": "A percentage from 0 to 100; always a string in responses."});
        if rules.create || rules.patch {
            schema["minimum"] = json!(0);
            schema["maximum"] = json!(100);
            schema["pattern"] = json!("^([0-9]{1,3}(\\.[0-9]{1,2})?%?)?$");
        }
        schema
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Declares a closed enumeration.
#[macro_export]
macro_rules! choice {
    ($(#[doc = $about:literal])+ $vis:vis enum $name:ident { $( $(#[doc = $doc:literal])+ $(#[$flag:meta])? $variant:ident = $wire:literal, )+ }) => {
        $crate::words! {
            $(#[doc = $about])+
            $vis enum $name { $( $(#[doc = $doc])+ $(#[$flag])? $variant = $wire, )+ }
        }

        impl $crate::record::Kind for $name {
            const NAME: &'static str = "choice";
            const CHOICES: &'static [&'static str] = $name::WIRE;

            fn to_db(&self) -> store::Value<'_> {
                self.wire().into()
            }

            fn from_db(row: &store::Row, column: usize) -> store::Result<Self> {
                let found = $name::from_wire(row.text(column)?);
                found.ok_or_else(|| store::Error::unreadable(format!("it is not one of: {}", $name::WIRE.join(", "))))
            }

            fn from_json(json: &$crate::json::Json, _: &$crate::record::Rules) -> Result<Self, $crate::error::Violation> {
                $crate::record::choose(json, $name::WIRE, $name::from_wire)
            }

            fn to_json(&self, _: &$crate::record::Rules, out: &mut Vec<u8>) {
                $crate::json::write_text(out, self.wire());
            }

            fn schema(_: &$crate::record::Rules) -> serde_json::Value {
                serde_json::json!({"type": "string", "enum": $name::WIRE})
            }
        }
    };
}

/// Returns the alternative spelling of a value: some records are `canceled`, others `cancelled`, and callers can use
/// both.
pub fn other_spelling(text: &str) -> Option<&'static str> {
    match text {
        "canceled" => Some("cancelled"),
        "cancelled" => Some("canceled"),
        _ => None,
    }
}

/// Parses a value of a closed enumeration.
pub fn choose<T>(json: &Json, allowed: &[&str], find: fn(&str) -> Option<T>) -> Result<T, Violation> {
    let text = clean_text(json, 255)?;
    find(text).ok_or_else(|| not_allowed(text, allowed))
}
