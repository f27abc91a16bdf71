//! Validates the steps of a flow against the routes that they use, as far as their values are known in advance. Values
//! with placeholders are left out, and so are errors that may be caused by that.

use axum::http::{HeaderName, HeaderValue};
use engine::error::{FieldCode, FieldErrors, violation};
use engine::input::did_you_mean;
use engine::json::Json;
use engine::perform::prepare;
use engine::record::{Emails, FieldInfo, INPUT, Kind};
use engine::registry::registry;
use jiff::civil::Date;
use serde_json::{Map, Value};

use super::definition::{create_fields, patch_fields, path_of_create};
use super::events::entity;
use super::steps::{fit, path_of};
use super::template::is_template;

/// Any day is suitable for resolving a duration to a deadline.
const TODAY: Date = jiff::civil::date(2026, 1, 1);

/// Adds the validation errors of the steps. `about` is the kind of record of the flow's event, if known.
pub fn check(steps: &Value, about: &str, faults: &mut FieldErrors) {
    for (place, step) in steps.as_array().into_iter().flatten().enumerate() {
        let at = format!("steps[{place}].");
        let Some(members) = step.as_object() else { continue };
        let mut body = members.clone();
        body.retain(|name, _| !["type", "name", "continue_on_error"].contains(&name.as_str()));
        match step["type"].as_str().unwrap_or_default() {
            "update" => update(&body, about, &at, faults),
            "send_email" => letter(&body, &at, faults),
            "http" => headers(&body, &at, faults),
            "trigger" => {
                let event = body.get("event").and_then(Value::as_str).unwrap_or_default();
                if !is_template(event) && event.chars().count() > 255 {
                    faults.add(format!("{at}event"), violation(FieldCode::TooLong, "may have at most 255 characters"));
                }
            }
            "send_document" => {
                if let Some(path) = path_of(about) {
                    show("POST", &format!("{path}/x/send"), body, &at, &[], faults);
                }
            }
            kind => {
                if let Some(path) = path_of_create(kind) {
                    fit(TODAY, create_fields(path), &mut body);
                    show("POST", path, body, &at, create_fields(path), faults);
                }
            }
        }
    }
}

fn update(step: &Map<String, Value>, about: &str, at: &str, faults: &mut FieldErrors) {
    let named = step.get("entity_type").and_then(Value::as_str);
    if named.is_some_and(is_template) {
        return;
    }
    let kind = entity(named.unwrap_or(about));
    let fields = patch_fields(kind);
    let (Some(path), false) = (path_of(kind), fields.is_empty()) else {
        if named.is_some() {
            let names = registry().resources.iter().map(|resource| resource.shape.name);
            let hint = did_you_mean(kind, names.filter(|name| !patch_fields(name).is_empty()));
            let message = format!("is not a type of record that can be changed{hint}");
            faults.add(format!("{at}entity_type"), violation(FieldCode::InvalidChoice, message));
        }
        return;
    };
    if let Some(Value::Object(mut body)) = step.get("fields").cloned() {
        fit(TODAY, fields, &mut body);
        show("PATCH", &format!("{path}/x"), body, &format!("{at}fields."), fields, faults);
    }
}

fn letter(step: &Map<String, Value>, at: &str, faults: &mut FieldErrors) {
    let known = |name: &str| step.get(name).and_then(Value::as_str).filter(|text| !is_template(text));
    for name in ["to", "cc"] {
        if let Some(text) = known(name) {
            faults.take(&format!("{at}{name}"), Emails::read(&Json::Text(text.to_string()), &INPUT.at_most(8192)));
        }
    }
    if known("subject").is_some_and(|text| text.contains(['\r', '\n'])) {
        faults.add(format!("{at}subject"), violation(FieldCode::InvalidCharacters, "must be one line"));
    }
}

/// Headers that Kantoor sets itself.
const OURS: &[&str] = &[
    "connection",
    "content-length",
    "host",
    "idempotency-key",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
];

fn headers(step: &Map<String, Value>, at: &str, faults: &mut FieldErrors) {
    for (name, value) in step.get("headers").and_then(Value::as_object).into_iter().flatten() {
        let text = value.as_str().filter(|text| !is_template(text)).unwrap_or_default();
        let message = match HeaderName::try_from(name) {
            Err(_) => "is not a valid header name",
            Ok(name) if OURS.contains(&name.as_str()) => "is a header that Kantoor sets",
            Ok(_) if HeaderValue::from_str(text).is_err() => "is not a valid header value",
            Ok(_) => continue,
        };
        faults.add(format!("{at}headers.{name}"), violation(FieldCode::InvalidFormat, message));
    }
}

/// Validates a body against a route and adds its errors under `at`.
fn show(method: &str, path: &str, body: Map<String, Value>, at: &str, fields: &[FieldInfo], faults: &mut FieldErrors) {
    let mut open = Vec::new();
    let body = known(&Value::Object(body), "", &mut open).unwrap_or_default();
    let Err(refused) = prepare(method, path, Some(&body)) else { return };
    for fault in refused.faults {
        let root = fault.field.split(['.', '[']).next().unwrap_or_default();
        // A field may be missing because it has placeholders, and other fields may depend on it.
        let is_known = body.get(root).is_some() && !open.iter().any(|open| is_in(open, &fault.field));
        // A flow can also say how long after it runs.
        let is_date = fields.iter().any(|field| field.name == fault.field && field.is_date());
        let wrong = match is_date && fault.wrong.code == FieldCode::InvalidFormat {
            true => violation(
                FieldCode::InvalidFormat,
                "must be a date in the format YYYY-MM-DD, or a duration such as P3D",
            ),
            false => fault.wrong,
        };
        if is_known {
            faults.add(format!("{at}{}", fault.field), wrong);
        }
    }
}

/// Whether one of two paths contains the other.
fn is_in(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns the parts of a value without placeholders; the paths of the others are added to `open`.
fn known(value: &Value, path: &str, open: &mut Vec<String>) -> Option<Value> {
    match value {
        Value::String(text) if is_template(text) => {
            open.push(path.to_string());
            None
        }
        Value::Array(items) => {
            let items: Option<Vec<Value>> =
                items.iter().enumerate().map(|(place, item)| known(item, &format!("{path}[{place}]"), open)).collect();
            if items.is_none() {
                open.push(path.to_string());
            }
            items.map(Value::Array)
        }
        Value::Object(members) => {
            let dot = if path.is_empty() { "" } else { "." };
            let members = members
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), known(value, &format!("{path}{dot}{name}"), open)?)));
            Some(Value::Object(members.collect()))
        }
        other => Some(other.clone()),
    }
}
