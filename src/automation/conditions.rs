//! Conditions: a field, a comparison and a value. All of them must hold.

use std::cmp::Ordering;

use engine::clock::Moment;
use engine::error::{FieldCode, FieldErrors, violation};
use engine::input::did_you_mean;
use serde_json::Value;

use super::template;

/// How a field is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Gte,
    /// Less.
    Lt,
    /// Less or equal.
    Lte,
    /// The string contains the value, or the list has it as an item.
    Contains,
    /// The string starts with the value.
    StartsWith,
    /// The value is in the list.
    In,
    /// Whether the field has a value.
    Exists,
}

impl Op {
    /// Returns the kind of value that it takes.
    pub fn takes(self) -> &'static str {
        match self {
            Op::Eq | Op::Ne | Op::Contains => "any",
            Op::Gt | Op::Gte | Op::Lt | Op::Lte => "number or string",
            Op::StartsWith => "string",
            Op::In => "array",
            Op::Exists => "boolean",
        }
    }
}

/// The comparisons by name.
pub const OPS: &[(&str, Op)] = &[
    ("eq", Op::Eq),
    ("ne", Op::Ne),
    ("gt", Op::Gt),
    ("gte", Op::Gte),
    ("lt", Op::Lt),
    ("lte", Op::Lte),
    ("contains", Op::Contains),
    ("starts_with", Op::StartsWith),
    ("in", Op::In),
    ("exists", Op::Exists),
];

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Path of the field: `data.rows[0].name`.
    pub field: String,
    /// The comparison.
    pub op: Op,
    /// The value to compare with.
    pub value: Value,
}

/// Maximum number of conditions in a list.
pub const MAX_CONDITIONS: usize = 50;

/// Reads a list of conditions and reports errors under `path`. A field must start with one of `roots`.
pub fn read(json: &Value, path: &str, roots: &[&str], faults: &mut FieldErrors) -> Vec<Condition> {
    let Value::Array(items) = json else {
        faults.add(path, violation(FieldCode::WrongType, "must be an array of conditions"));
        return Vec::new();
    };
    if items.len() > MAX_CONDITIONS {
        faults.add(path, violation(FieldCode::TooLong, format!("may have at most {MAX_CONDITIONS} conditions")));
        return Vec::new();
    }
    let read = items.iter().enumerate();
    read.filter_map(|(place, item)| parse_condition(item, &format!("{path}[{place}]"), roots, faults)).collect()
}

fn parse_condition(json: &Value, path: &str, roots: &[&str], faults: &mut FieldErrors) -> Option<Condition> {
    let Value::Object(members) = json else {
        faults.add(path, violation(FieldCode::WrongType, "must be an object with field, op and value"));
        return None;
    };
    let before = faults.0.len();
    for name in members.keys().filter(|name| !["field", "op", "value"].contains(&name.as_str())) {
        let hint = did_you_mean(name, ["field", "op", "value"].into_iter());
        faults.add(format!("{path}.{name}"), violation(FieldCode::UnknownField, format!("is not a known field{hint}")));
    }
    let field = text(members.get("field"), &format!("{path}.field"), faults).unwrap_or_default();
    let root = field.split(['.', '[']).next().unwrap_or_default();
    if !field.is_empty() && (!roots.contains(&root) || steps_of(&field).is_none()) {
        let hint = if roots.contains(&root) { String::new() } else { did_you_mean(root, roots.iter().copied()) };
        let message = format!("must be a path that starts with one of: {}{hint}", roots.join(", "));
        faults.add(format!("{path}.field"), violation(FieldCode::InvalidFormat, message));
    }
    let name = text(members.get("op"), &format!("{path}.op"), faults).unwrap_or_default();
    let op = OPS.iter().find(|(own, _)| *own == name).map(|(_, op)| *op);
    if op.is_none() && !name.is_empty() {
        let names: Vec<&str> = OPS.iter().map(|(name, _)| *name).collect();
        let hint = did_you_mean(&name, names.iter().copied());
        let message = format!("must be one of: {}{hint}", names.join(", "));
        faults.add(format!("{path}.op"), violation(FieldCode::InvalidChoice, message));
    }
    let value = members.get("value").cloned();
    // The conditions of a trigger have no placeholders: before a run there is nothing to fill them with.
    let is_filled = roots.contains(&"steps");
    let fits = match (op, &value) {
        (Some(_), Some(value)) if !is_filled && has_holes(value) => {
            Err((FieldCode::InvalidFormat, "cannot contain placeholders here; only the conditions of a step can"))
        }
        (Some(Op::Exists), None | Some(Value::Bool(_))) => Ok(()),
        (Some(Op::Exists), _) => Err((FieldCode::WrongType, "must be true or false")),
        (Some(_), None) => Err((FieldCode::Required, "is required")),
        (Some(Op::In), Some(Value::Array(_))) => Ok(()),
        (Some(Op::In), Some(Value::String(text))) if text.contains("{{") => Ok(()),
        (Some(Op::In), _) => Err((FieldCode::WrongType, "must be an array of values")),
        (Some(Op::Gt | Op::Gte | Op::Lt | Op::Lte), Some(Value::Number(_) | Value::String(_))) => Ok(()),
        (Some(Op::Gt | Op::Gte | Op::Lt | Op::Lte), _) => Err((FieldCode::WrongType, "must be a number or a string")),
        (Some(Op::StartsWith), Some(Value::String(_))) => Ok(()),
        (Some(Op::StartsWith), _) => Err((FieldCode::WrongType, "must be a string")),
        _ => Ok(()),
    };
    if let Err((code, message)) = fits {
        faults.add(format!("{path}.value"), violation(code, message));
    }
    let op = op.filter(|_| faults.0.len() == before)?;
    Some(Condition { field, op, value: value.unwrap_or(Value::Bool(true)) })
}

fn has_holes(value: &Value) -> bool {
    match value {
        Value::String(text) => template::is_template(text),
        Value::Array(items) => items.iter().any(has_holes),
        _ => false,
    }
}

fn text(json: Option<&Value>, path: &str, faults: &mut FieldErrors) -> Option<String> {
    match json {
        Some(Value::String(text)) if !text.is_empty() && text.chars().count() <= 255 => return Some(text.clone()),
        None | Some(Value::Null) => faults.add(path, violation(FieldCode::Required, "is required")),
        Some(Value::String(text)) if text.is_empty() => faults.add(path, violation(FieldCode::Required, "is required")),
        _ => faults.add(path, violation(FieldCode::WrongType, "must be a string of at most 255 characters")),
    }
    None
}

impl Condition {
    /// Estimates how many bytes comparing a value goes through, at most.
    pub fn effort(&self, found: Option<&Value>) -> usize {
        let of = |value: &Value| 64 + value.as_str().map_or(0, str::len);
        let size = match found {
            Some(Value::Array(items)) => items.iter().map(of).sum(),
            Some(value) => of(value),
            None => 64,
        };
        match (self.op, &self.value) {
            (Op::Exists | Op::StartsWith, _) => 64,
            (Op::In, Value::Array(items)) => size.saturating_mul(items.len()),
            _ => size,
        }
    }

    /// Whether the condition holds for the value that `find` returns for its field.
    pub fn holds(&self, find: &dyn Fn(&str) -> Option<Value>) -> bool {
        compare(self.op, find(&self.field).as_ref(), &self.value)
    }
}

/// Whether the comparison of a value, if there is one, with the wanted value is true.
pub fn compare(op: Op, found: Option<&Value>, wanted: &Value) -> bool {
    let has_value = !matches!(found, None | Some(Value::Null)) && found != Some(&Value::String(String::new()));
    if op == Op::Exists {
        return has_value == wanted.as_bool().unwrap_or(true);
    }
    // A missing value compares as null.
    let found = found.unwrap_or(&Value::Null);
    match op {
        Op::Eq => same(found, wanted),
        Op::Ne => !same(found, wanted),
        Op::Gt => order(found, wanted) == Some(Ordering::Greater),
        Op::Gte => matches!(order(found, wanted), Some(Ordering::Greater | Ordering::Equal)),
        Op::Lt => order(found, wanted) == Some(Ordering::Less),
        Op::Lte => matches!(order(found, wanted), Some(Ordering::Less | Ordering::Equal)),
        Op::Contains => match found {
            Value::String(text) => words(wanted).is_some_and(|part| text.contains(&part)),
            Value::Array(items) => items.iter().any(|item| same(item, wanted)),
            _ => false,
        },
        Op::StartsWith => found.as_str().zip(words(wanted)).is_some_and(|(text, start)| text.starts_with(&start)),
        Op::In => wanted.as_array().is_some_and(|items| items.iter().any(|item| same(found, item))),
        Op::Exists => has_value,
    }
}

/// Whether two values are equal; a number equals its text, and two notations of the same moment are equal.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(_), _) | (_, Value::Number(_)) => order(a, b) == Some(Ordering::Equal),
        (Value::String(one), Value::String(other)) => one == other || in_time(one, other) == Some(Ordering::Equal),
        _ => a == b,
    }
}

/// A string, or the digits of a number.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// Compares numbers by value, also when one of them is a string, and strings by character, which is correct for dates
/// too.
fn order(a: &Value, b: &Value) -> Option<Ordering> {
    let texts = (words(a)?, words(b)?);
    match (in_size(&texts.0, &texts.1), a, b) {
        (Some(order), ..) => Some(order),
        (None, Value::String(a), Value::String(b)) => Some(in_time(a, b).unwrap_or_else(|| a.cmp(b))),
        _ => None,
    }
}

/// Compares moments, with or without milliseconds or an offset.
fn in_time(a: &str, b: &str) -> Option<Ordering> {
    Some(Moment::parse(a)?.cmp(&Moment::parse(b)?))
}

/// Compares two numbers of any size digit by digit, so that nothing is rounded.
fn in_size(a: &str, b: &str) -> Option<Ordering> {
    let (a, b) = (Size::of(a)?, Size::of(b)?);
    Some(match (a.is_negative, b.is_negative) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, false) => a.amount.cmp(&b.amount),
        (true, true) => b.amount.cmp(&a.amount),
    })
}

/// A number as JSON writes it.
struct Size {
    is_negative: bool,
    /// The position of the first digit, and the digits from there without trailing zeros; `None` for 0.
    amount: Option<(i64, String)>,
}

impl Size {
    fn of(text: &str) -> Option<Size> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (base, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
        let (whole, fraction) = base.split_once('.').unwrap_or((base, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) {
            return None;
        }
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0');
        let before = i64::try_from(whole.len()).ok()? - i64::try_from(all.len() - digits.len()).ok()?;
        let place = before.checked_add(exponent.parse().ok()?)?;
        let digits = digits.trim_end_matches('0').to_string();
        Some(Size {
            is_negative: text.starts_with('-') && !digits.is_empty(),
            amount: (!digits.is_empty()).then_some((place, digits)),
        })
    }
}

/// Returns what a path such as `rows[0].name` leads to in `value`.
pub fn follow<'v>(value: &'v Value, steps: &[PathPart]) -> Option<&'v Value> {
    steps.iter().try_fold(value, |value, step| match (step, value) {
        (PathPart::Name(name), Value::Object(members)) => members.get(name),
        (PathPart::Name(name), Value::Array(items)) => items.get(name.parse::<usize>().ok()?),
        (PathPart::Index(place), Value::Array(items)) => items.get(*place),
        _ => None,
    })
}

/// A part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPart {
    /// `.name`
    Name(String),
    /// `[0]`
    Index(usize),
}

/// Splits a path into its parts; `None` if it is not a path.
pub fn steps_of(path: &str) -> Option<Vec<PathPart>> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (name, mut rest) = part.split_once('[').map_or((part, ""), |(name, rest)| (name, rest));
        if name.is_empty() || part.ends_with('[') {
            return None;
        }
        steps.push(PathPart::Name(name.to_string()));
        while !rest.is_empty() {
            let (place, after) = rest.split_once(']')?;
            steps.push(PathPart::Index(place.parse().ok()?));
            rest = match after {
                "" => "",
                after => after.strip_prefix('[')?,
            };
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn every_comparison() {
        let data = json!({"data": {"total": 121.5, "text": "Hosting 2026", "amount": "12.50", "day": "2026-05-04", "moment": "2026-05-04T10:00:00.500Z", "none": null,
            "empty": "", "list": ["a", 2], "rows": [{"name": "x"}], "yes": true}});
        let find = |path: &str| follow(&data, &steps_of(path)?).cloned();
        let holds = |field: &str, op: &str, value: Value| {
            let mut faults = FieldErrors::default();
            let read = read(&json!([{"field": field, "op": op, "value": value}]), "conditions", &["data"], &mut faults);
            assert!(faults.0.is_empty(), "{:?}", faults.0);
            read[0].holds(&find)
        };
        for (field, op, value) in [
            ("data.total", "eq", json!(121.50)),
            ("data.total", "eq", json!("121.5")),
            ("data.total", "gte", json!(121.5)),
            ("data.total", "gt", json!(100)),
            ("data.total", "lt", json!(1000)),
            ("data.total", "lte", json!("121.50")),
            ("data.amount", "gt", json!(9)),
            ("data.amount", "gt", json!("9")),
            ("data.day", "lt", json!("2026-05-10")),
            ("data.text", "contains", json!("2026")),
            ("data.text", "contains", json!(2026)),
            ("data.moment", "gt", json!("2026-05-04T10:00:00Z")),
            ("data.moment", "lt", json!("2026-05-04T10:00:01Z")),
            ("data.moment", "lte", json!("2026-05-04T12:00:00.5+02:00")),
            ("data.moment", "gte", json!("2026-05-04")),
            ("data.list", "contains", json!(2)),
            ("data.text", "starts_with", json!("Host")),
            ("data.text", "ne", json!("x")),
            ("data.nope", "ne", json!("x")),
            ("data.list[0]", "in", json!(["b", "a"])),
            ("data.list.1", "in", json!([2])),
            ("data.rows[0].name", "eq", json!("x")),
            ("data.yes", "eq", json!(true)),
            ("data.yes", "exists", json!(true)),
            ("data.none", "exists", json!(false)),
            ("data.empty", "exists", json!(false)),
            ("data.nope", "exists", json!(false)),
            ("data.none", "eq", json!(null)),
            ("data.nope", "eq", json!(null)),
            ("data.nope", "in", json!(["x", null])),
            ("data.none", "ne", json!("x")),
            ("data.text", "ne", json!(null)),
            ("data.empty", "ne", json!(null)),
        ] {
            assert!(holds(field, op, value.clone()), "{field} {op} {value}");
        }
        for (field, op, value) in [
            ("data.total", "gt", json!("x")),
            ("data.text", "gt", json!(5)),
            ("data.nope", "eq", json!("x")),
            ("data.nope", "lt", json!(1)),
            ("data.list", "eq", json!("a")),
            ("data.rows[1].name", "eq", json!("x")),
            ("data.total", "contains", json!("1")),
            ("data.empty", "exists", json!(true)),
            ("data.nope", "ne", json!(null)),
            ("data.none", "ne", json!(null)),
            ("data.nope", "exists", json!(true)),
            ("data.nope", "contains", json!(null)),
            ("data.text", "eq", json!(null)),
        ] {
            assert!(!holds(field, op, value.clone()), "{field} {op} {value}");
        }
    }

    #[test]
    fn moments_compare_in_any_notation() {
        let same = |a: &str, b: &str| compare(Op::Eq, Some(&a.into()), &b.into());
        assert!(same("2026-01-01T00:00:00Z", "2026-01-01T02:00:00.000+02:00"));
        assert!(!same("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.001Z"));
        assert!(!same("2026-01-01", "2026-01-02"));
    }

    #[test]
    fn numbers_compare_by_every_digit() {
        let in_order = [
            "-1e999",
            "-12345678901234567891",
            "-12345678901234567890",
            "-2.5",
            "-2.05",
            "0",
            "1e-400",
            "0.000000123456789012345678",
            "0.000000123456789012345679",
            "9.99",
            "10",
            "12345678901234567890",
            "12345678901234567890.000000001",
            "12345678901234567891",
            "1e999",
        ];
        for (place, a) in in_order.iter().enumerate() {
            for (other, b) in in_order.iter().enumerate() {
                assert_eq!(in_size(a, b), Some(place.cmp(&other)), "{a} {b}");
            }
        }
        for (a, b) in [("1e3", "1000"), ("0.0", "-0"), ("1.50E+1", "15"), ("007", "7"), ("100e-2", "1"), ("0e9", "0")] {
            assert_eq!(in_size(a, b), Some(Ordering::Equal), "{a} {b}");
        }
        for text in ["", "-", "x", "1.", ".5", "1e", "-inf", "NaN", "1_0", "0x1", "--1", "1e99999999999999999999"] {
            assert_eq!(in_size(text, "1"), None, "{text}");
        }
        let (more, less) = (json!(12_345_678_901_234_567_891_u64), json!(12_345_678_901_234_567_890_u64));
        assert!(compare(Op::Gt, Some(&more), &less) && compare(Op::Ne, Some(&more), &less));
        assert!(compare(Op::Gt, Some(&more), &json!("12345678901234567890")));
    }

    proptest! {
        #[test]
        fn numbers_compare_as_decimals_do(a in -1_000_000_i64..1_000_000, b in -1_000_000_i64..1_000_000) {
            let (a, b) = (money::Price::from_scaled(a), money::Price::from_scaled(b));
            prop_assert_eq!(in_size(&a.to_string(), &b.to_string()), Some(a.cmp(&b)));
        }
    }

    #[test]
    fn errors_have_a_path() {
        let mut faults = FieldErrors::default();
        let bad = json!([{"field": "data.a", "op": "is", "value": 1}, {"field": "x.y", "op": "eq", "value": 1}, "x",
            {"field": "data.a", "op": "in", "value": 1}, {"op": "eq", "zz": 1}, {"field": "data..a", "op": "exists"},
            {"field": "data.a", "op": "in", "value": "{{ data.b }}"}, {"field": "data.a", "op": "in", "value": ["x", "{{ data.b }}"]}]);
        read(&bad, "conditions", &["data"], &mut faults);
        let told: Vec<String> =
            faults.0.iter().map(|fault| format!("{}: {}", fault.field, fault.wrong.code.wire())).collect();
        assert_eq!(
            told,
            [
                "conditions[0].op: invalid_choice",
                "conditions[1].field: invalid_format",
                "conditions[2]: wrong_type",
                "conditions[3].value: wrong_type",
                "conditions[4].zz: unknown_field",
                "conditions[4].field: required",
                "conditions[4].value: required",
                "conditions[5].field: invalid_format",
                "conditions[6].value: invalid_format",
                "conditions[7].value: invalid_format"
            ]
        );
    }
}
