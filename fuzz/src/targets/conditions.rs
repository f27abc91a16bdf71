//! Conditions: an input is JSON with the conditions and their data.

use engine::error::FieldErrors;
use kantoor::automation::conditions::{self, Op};
use serde_json::Value;

pub const WORDS: &[&str] = &[
    "\"eq\"",
    "\"ne\"",
    "\"gt\"",
    "\"gte\"",
    "\"lt\"",
    "\"lte\"",
    "\"contains\"",
    "\"starts_with\"",
    "\"in\"",
    "\"exists\"",
    "\"field\":",
    "\"op\":",
    "\"value\":",
    "data.a",
    "data.rows[0].name",
    "data[",
    "data..",
    "[9999999999999999999999]",
    "{\"field\":\"data.a\",\"op\":\"eq\",\"value\":",
    "2026-05-04",
    "\"2026-05-04T10:00:00Z\"",
    "\"2026-05-04T12:00:00+02:00\"",
    "1e999999999",
    "-0.0",
    "\"1.0\"",
    "null",
    "[]",
    "{}",
    "\"{{ data.b }}\"",
];

const OPS: [Op; 10] =
    [Op::Eq, Op::Ne, Op::Gt, Op::Gte, Op::Lt, Op::Lte, Op::Contains, Op::StartsWith, Op::In, Op::Exists];

pub fn run(input: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(input) else { return };
    let data = &value["data"];
    let find = |path: &str| conditions::follow(&value, &conditions::steps_of(path)?).cloned();
    for roots in [&["data"][..], &["data", "steps"]] {
        let mut faults = FieldErrors::default();
        let read = conditions::read(&value["conditions"], "conditions", roots, &mut faults);
        for condition in &read {
            condition.holds(&find);
            agree(find(&condition.field).as_ref(), &condition.value);
        }
        assert!(!faults.0.is_empty() || read.len() == value["conditions"].as_array().map_or(0, Vec::len));
    }
    agree(Some(data), &value["conditions"]);
}

/// The comparisons of two values are consistent.
fn agree(found: Option<&Value>, wanted: &Value) {
    let holds = OPS.map(|op| conditions::compare(op, found, wanted));
    let [eq, ne, gt, gte, lt, lte, ..] = holds;
    assert_ne!(eq, ne);
    let more_or_less = [(gt, gte, lte), (lt, lte, gte)];
    let agrees = more_or_less.iter().all(|(holds, also, never)| !holds || (*also && !never));
    assert!(agrees, "{found:?} {wanted}: {holds:?}");
    if let Some(found) = found {
        assert_eq!(conditions::compare(Op::Lt, Some(wanted), found), gt, "{found} {wanted}");
        assert_eq!(conditions::compare(Op::Eq, Some(wanted), found), eq, "{found} {wanted}");
    }
}
