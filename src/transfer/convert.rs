//! Converts the values of a table to those that the API takes.

use engine::json::Json;
use engine::record::FieldInfo;
use sheets::{Cell, Dates, Decimal};

/// The words for true and false in exports of other programs.
const YES: &[&str] = &["true", "yes", "ja", "y", "j", "1", "x", "waar", "on"];
const NO: &[&str] = &["false", "no", "nee", "n", "0", "onwaar", "off"];

/// Converts a value for a field; `None` if it is not a date in the expected order. Anything else that is not of its type is
/// passed as a text, which the field rejects in its own words.
pub fn json(field: &FieldInfo, cell: &Cell, decimal: Decimal, dates: Dates) -> Option<Json> {
    let text = cell.text();
    if field.is_date() {
        return match cell {
            Cell::Date(date) => Some(date.chars().take(10).collect()),
            _ => sheets::date(&text, dates),
        }
        .map(Json::Text);
    }
    Some(other(field, cell, text.trim(), decimal))
}

fn other(field: &FieldInfo, cell: &Cell, trimmed: &str, decimal: Decimal) -> Json {
    let as_text = || Json::Text(trimmed.to_string());
    if is_nested(field) {
        return match cell {
            Cell::Text(_) | Cell::Json(_) => Json::parse(trimmed.as_bytes()).unwrap_or_else(|_| as_text()),
            _ => as_text(),
        };
    }
    if field.is("boolean") {
        let word = trimmed.to_lowercase();
        return match () {
            () if YES.contains(&word.as_str()) => Json::Bool(true),
            () if NO.contains(&word.as_str()) => Json::Bool(false),
            () => as_text(),
        };
    }
    if is_number(field) {
        let digits = match cell {
            Cell::Number(digits) => Some(digits.clone()),
            _ => sheets::number(trimmed, decimal),
        };
        return digits.map_or_else(as_text, Json::Number);
    }
    if let Some(choice) = field.choices.iter().find(|choice| choice.eq_ignore_ascii_case(trimmed)) {
        return Json::Text((*choice).to_string());
    }
    as_text()
}

/// Whether the field is a number, and no text that may look like one.
pub fn is_number(field: &FieldInfo) -> bool {
    !field.is("string") && (field.is("number") || field.is("integer"))
}

fn is_nested(field: &FieldInfo) -> bool {
    field.is("array") || field.is("object")
}
