//! Warnings for conditions that can never hold: a field that the event's record does not have, a value that the field
//! never takes. They are warnings and not errors, since a caller can fire an event with any data.

use engine::input::did_you_mean;
use engine::record::{FieldInfo, NOWHERE, parse_date};
use engine::registry::registry;
use engine::resource::Resource;
use serde_json::Value;

use super::conditions::{self, PathPart};
use super::template;

/// The names available in templates.
const KNOWN: &[&str] = &["event", "entity_type", "data", "record", "steps", "account", "now"];

/// The fields that every record has.
const OF_ALL: &[&str] = &["id", "created_at", "updated_at", "version", "meta", "fired"];

/// Returns warnings, each with its path, for the conditions and steps of a flow on events about records of this kind,
/// whose data has the members `beside` in addition to the fields of the record.
pub fn of(conditions: &Value, steps: &Value, kind: &str, beside: &[&str]) -> Vec<String> {
    let Some(resource) = registry().named(kind) else {
        return names(steps);
    };
    let mut lists = vec![("conditions".to_string(), conditions)];
    for (place, step) in steps.as_array().into_iter().flatten().enumerate() {
        lists.push((format!("steps[{place}].conditions"), &step["conditions"]));
    }
    let mut warnings = names(steps);
    for (path, list) in lists {
        for (place, condition) in list.as_array().into_iter().flatten().enumerate() {
            // A hundred warnings are enough, and finding suggestions takes time.
            if warnings.len() < 100 {
                warnings.extend(lint_condition(resource, beside, condition, &format!("{path}[{place}]")));
            }
        }
    }
    warnings.truncate(100);
    warnings
}

/// Returns warnings for undefined names in the templates of steps. They are not errors, since that part of a template
/// may never be rendered.
fn names(steps: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut before: Vec<&str> = Vec::new();
    for (place, step) in steps.as_array().into_iter().flatten().enumerate() {
        for name in template::names_in(step) {
            let (root, rest) = name.split_once('.').unwrap_or((&name, ""));
            let of_step = rest.split('.').next().unwrap_or_default();
            if !KNOWN.contains(&root) {
                warnings.push(format!(
                    "steps[{place}]: '{root}' is not one of the names available in templates: {}",
                    KNOWN.join(", ")
                ));
            } else if root == "steps"
                && !of_step.is_empty()
                && !before.contains(&of_step)
                && of_step.parse::<usize>().is_err()
            {
                warnings.push(format!("steps[{place}]: no earlier step has the name '{of_step}'"));
            }
        }
        before.extend(step["name"].as_str());
    }
    warnings
}

fn lint_condition(resource: &Resource, beside: &[&str], condition: &Value, path: &str) -> Option<String> {
    let parts = conditions::steps_of(condition["field"].as_str()?)?;
    let [PathPart::Name(root), PathPart::Name(name), deeper @ ..] = parts.as_slice() else { return None };
    if !["data", "record"].contains(&root.as_str()) || OF_ALL.contains(&name.as_str()) {
        return None;
    }
    if root == "data" && beside.contains(&name.as_str()) {
        return None;
    }
    let shown = || resource.fields.iter().filter(|field| field.rules.in_meta || field.rules.views != NOWHERE);
    let Some(field) = shown().find(|field| field.name == name) else {
        let hint = did_you_mean(name, shown().map(|field| field.name));
        return Some(format!("{path}.field: a record of type {} has no field '{name}'{hint}", resource.shape.name));
    };
    let why = if deeper.is_empty() { compared(field, condition)? } else { return None };
    Some(format!("{path}.value: '{name}' {why}"))
}

/// Returns why a comparison of the field with the value never holds, if so.
fn compared(field: &FieldInfo, condition: &Value) -> Option<String> {
    let op = condition["op"].as_str()?;
    let values = match (op, &condition["value"]) {
        ("exists" | "contains" | "starts_with", _) => return None,
        (_, Value::Array(values)) => values.as_slice(),
        (_, value) => std::slice::from_ref(value),
    };
    let schema = (field.schema)(&field.rules);
    for value in values {
        let text = value.as_str().unwrap_or_default();
        if value.is_null() || template::is_template(text) || (value.is_string() && text.is_empty()) {
            continue;
        }
        let choices = schema["enum"].as_array().filter(|choices| !choices.contains(value));
        if let Some(choices) = choices {
            let names: Vec<&str> = choices.iter().filter_map(Value::as_str).filter(|name| !name.is_empty()).collect();
            return Some(format!("is never {value}; it is one of: {}", names.join(", ")));
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
