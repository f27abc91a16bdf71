//! Warnings for what is probably a mistake: a field that the event's record does not have, a value that the field never
//! takes, a step that does not fit the record. They are warnings and not errors, since a caller can fire an event with any
//! data.

mod lists;
pub mod references;
mod steps;
mod subject;

use engine::input::did_you_mean;
use engine::record::{FieldInfo, parse_date};
use serde_json::Value;

pub use self::lists::Lists;
pub use self::subject::Subject;
use super::conditions::{self, PathPart};
use super::template;

/// The names available in templates.
const KNOWN: &[&str] = &["event", "entity_type", "data", "record", "steps", "account", "now"];

/// The most warnings that are returned: finding suggestions takes time.
const MOST: usize = 100;

/// Returns warnings, each with its path, for the conditions and steps of a flow.
pub fn of(subject: &Subject, lists: &Lists, conditions: &Value, steps: &Value) -> Vec<String> {
    let mut warnings = templates(subject, steps);
    let mut all = vec![("conditions".to_string(), conditions, 0)];
    for (place, step) in steps.as_array().into_iter().flatten().enumerate() {
        if warnings.len() < MOST {
            steps::lint(subject, lists, step, &format!("steps[{place}]"), &mut warnings);
        }
        all.push((format!("steps[{place}].conditions"), &step["conditions"], place));
    }
    for (path, list, step) in all {
        for (place, condition) in list.as_array().into_iter().flatten().enumerate() {
            if warnings.len() < MOST {
                let at = format!("{path}[{place}]");
                let later = uses_later_step(condition, step).map(|why| format!("{at}.field: {why}"));
                warnings.extend(later.or_else(|| lint_condition(subject, lists, condition, &at)));
            }
        }
    }
    warnings.truncate(MOST);
    warnings
}

/// Returns warnings for undefined names in the templates of steps. They are not errors, since that part of a template
/// may never be rendered.
fn templates(subject: &Subject, steps: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut before: Vec<&str> = Vec::new();
    for (place, step) in steps.as_array().into_iter().flatten().enumerate() {
        for (field, value) in step.as_object().into_iter().flatten() {
            for name in template::names_in(value) {
                if warnings.len() >= MOST {
                    return warnings;
                }
                let parts: Vec<&str> = name.split('.').collect();
                let why = undefined(&parts, &before).or_else(|| subject.lacks(&parts));
                warnings.extend(why.map(|why| format!("steps[{place}].{field}: {why}")));
            }
            let later = template::places_in(value).into_iter().filter_map(|wanted| not_earlier(wanted, place));
            warnings.extend(later.map(|why| format!("steps[{place}].{field}: {why}")));
            let items = template::items_in(value);
            let why = items.iter().filter_map(|(list, member)| subject.lacks_item(list, member));
            warnings.extend(why.map(|why| format!("steps[{place}].{field}: {why}")));
        }
        before.extend(step["name"].as_str());
    }
    warnings
}

/// Returns why a name is never defined in a step, whatever the event; `before` has the names of the steps before it.
fn undefined(path: &[&str], before: &[&str]) -> Option<String> {
    match path {
        ["steps", step, ..] if !before.contains(step) && step.parse::<usize>().is_err() => {
            let hint = did_you_mean(step, before.iter().copied());
            Some(format!("no earlier step has the name '{step}'{hint}"))
        }
        [root, ..] if !KNOWN.contains(root) => {
            let hint = did_you_mean(root, KNOWN.iter().copied());
            let known = KNOWN.join(", ");
            Some(format!("'{root}' is not one of the names available in templates: {known}{hint}"))
        }
        _ => None,
    }
}

/// Returns why a step has no result of the step at `wanted`, if so. `place` is its own.
fn not_earlier(wanted: usize, place: usize) -> Option<String> {
    (wanted >= place).then(|| match place {
        0 => format!("'steps[{wanted}]' has no result: this is the first step"),
        1 => format!("'steps[{wanted}]' has no result: the only earlier step is steps[0]"),
        _ => format!("'steps[{wanted}]' has no result: the earlier steps are steps[0] to steps[{}]", place - 1),
    })
}

/// Returns why the field of a condition is the result of a step that is not done yet, if so.
fn uses_later_step(condition: &Value, place: usize) -> Option<String> {
    match conditions::steps_of(condition["field"].as_str()?)?.as_slice() {
        [PathPart::Name(root), PathPart::Index(wanted), ..] if root == "steps" => not_earlier(*wanted, place),
        _ => None,
    }
}

fn lint_condition(subject: &Subject, lists: &Lists, condition: &Value, path: &str) -> Option<String> {
    let parts = conditions::steps_of(condition["field"].as_str()?)?;
    let names = parts.iter().map_while(|part| match part {
        PathPart::Name(name) => Some(name.as_str()),
        PathPart::Index(_) => None,
    });
    let names: Vec<&str> = names.collect();
    if let Some(why) = subject.lacks(&names) {
        return Some(format!("{path}.field: {why}"));
    }
    if let [PathPart::Name(root), PathPart::Name(list), PathPart::Index(_), PathPart::Name(member), ..] =
        parts.as_slice()
        && matches!(root.as_str(), "data" | "record")
        && let Some(why) = subject.lacks_item(list, member)
    {
        return Some(format!("{path}.field: {why}"));
    }
    if let ["data", member, name] = names.as_slice()
        && let Some(field) = subject.field_of_member(member, name)
    {
        return compared(field, condition).map(|why| format!("{path}.value: '{member}.{name}' {why}"));
    }
    let is_whole = names.len() == parts.len();
    let ["data" | "record", name, deeper @ ..] = names.as_slice() else { return None };
    let fields = subject.fields(name);
    let why = |(record, field): &(&engine::resource::Resource, &FieldInfo)| {
        let is_excluded = |value: &Value| lists.exclude(record.shape.name, &names[1..], value.as_str()?, |a, b| a == b);
        let listed = || match (field.schema)(&field.rules)["type"] == "array" {
            true => items(condition).find_map(is_excluded),
            false => values(condition).find_map(is_excluded),
        };
        if !(deeper.is_empty() && is_whole) {
            return listed();
        }
        // A business may use values of its own, which is rarer than a misspelled one.
        let is_unusual = |value: &Value| steps::not_in_set(field.choices_of(record.shape.name), value.as_str()?);
        compared(field, condition).or_else(listed).or_else(|| values(condition).find_map(is_unusual))
    };
    // It may hold for another type of record.
    let reasons: Vec<Option<String>> = fields.iter().map(why).collect();
    let why = reasons.into_iter().collect::<Option<Vec<String>>>()?.into_iter().next()?;
    Some(format!("{path}.value: '{}' {why}", names[1..].join(".")))
}

/// Returns the values that a condition compares a whole field with, without placeholders.
fn values(condition: &Value) -> impl Iterator<Item = &Value> {
    let values: &[Value] = match (condition["op"].as_str(), &condition["value"]) {
        (Some("exists" | "contains" | "starts_with"), _) => &[],
        (_, Value::Array(values)) => values.as_slice(),
        (_, value) => std::slice::from_ref(value),
    };
    values.iter().filter(|value| {
        let text = value.as_str().unwrap_or_default();
        !(value.is_null() || template::is_template(text) || (value.is_string() && text.is_empty()))
    })
}

/// Returns the values that a condition looks for in a list, without placeholders.
fn items(condition: &Value) -> impl Iterator<Item = &Value> {
    let is_searched = condition["op"] == "contains";
    let value = Some(&condition["value"]).filter(|value| is_searched && value.is_string());
    value.into_iter().filter(|value| !template::is_template(value.as_str().unwrap_or_default()))
}

/// Returns why a comparison of the field with the value never holds, if so.
fn compared(field: &FieldInfo, condition: &Value) -> Option<String> {
    let schema = (field.schema)(&field.rules);
    for value in values(condition) {
        let text = value.as_str().unwrap_or_default();
        let choices = schema["enum"].as_array().filter(|choices| !choices.contains(value));
        if let Some(choices) = choices {
            let names: Vec<&str> = choices.iter().filter_map(Value::as_str).filter(|name| !name.is_empty()).collect();
            let hint = did_you_mean(text, names.iter().copied());
            return Some(format!("is never {value}; it is one of: {}{hint}", names.join(", ")));
        }
        if (field.is("number") || field.is("integer")) && !value.is_number() && text.parse::<f64>().is_err() {
            return Some(format!("is a number, and {value} is not"));
        }
        if field.is("boolean") && !value.is_boolean() {
            return Some(format!("is true or false, and never {value}"));
        }
        if field.is_date() && parse_date(text.get(..10).unwrap_or(text)).is_err() {
            return Some(format!("is a date such as 2026-05-04, and {value} is not"));
        }
    }
    None
}
