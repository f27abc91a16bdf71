//! Converts the values of a table to those that the API takes.

use engine::error::{FieldCode, Violation, violation};
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
        return digits(cell, decimal).map_or_else(as_text, Json::Number);
    }
    if let (Cell::Percent(digits), RATE) = (cell, field.name) {
        return Json::Text(digits.clone());
    }
    if let Some(choice) = field.choices.iter().find(|choice| choice.eq_ignore_ascii_case(trimmed)) {
        return Json::Text((*choice).to_string());
    }
    as_text()
}

/// The field that is a percentage of VAT.
const RATE: &str = "vat_rate";

/// Returns the digits of a number; `None` if it is not one.
pub fn digits(cell: &Cell, decimal: Decimal) -> Option<String> {
    match cell {
        Cell::Number(digits) | Cell::Percent(digits) => Some(digits.clone()),
        _ => sheets::number(cell.text().trim(), decimal),
    }
}

/// Rejects an amount in another currency.
pub fn in_euros(cell: &Cell) -> Result<(), Violation> {
    match cell {
        Cell::Text(text) => match sheets::foreign_currency(text) {
            Some(sign) => Err(violation(
                FieldCode::InvalidChoice,
                format!("is in {sign}, but all amounts are in EUR: leave the line out, or convert the amount"),
            )),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Rejects a rate that is a part of one, such as the 0.21 that a spreadsheet may show as 21%.
pub fn is_rate(field: &FieldInfo, cell: &Cell, value: &Json) -> Result<(), Violation> {
    let (RATE, Json::Text(digits) | Json::Number(digits)) = (field.name, value) else { return Ok(()) };
    let is_part = digits.parse::<f64>().is_ok_and(|rate| rate > 0.0 && rate < 1.0);
    if !is_part || matches!(cell, Cell::Percent(_)) {
        return Ok(());
    }
    let message = format!("is {digits}, but a VAT rate is a percentage, such as 21");
    Err(violation(FieldCode::OutOfRange, message))
}

/// Whether the field is a number, and no text that may look like one.
pub fn is_number(field: &FieldInfo) -> bool {
    !field.is("string") && (field.is("number") || field.is("integer"))
}

fn is_nested(field: &FieldInfo) -> bool {
    field.is("array") || field.is("object")
}
