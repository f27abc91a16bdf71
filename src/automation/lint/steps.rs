//! Warnings for steps that do not fit the record of the event.

use engine::input::did_you_mean;
use engine::record::{FieldInfo, other_spelling};
use engine::registry::registry;
use engine::text::unknown_value;
use serde_json::{Map, Value};

use super::lists::Lists;
use super::subject::Subject;
use crate::automation::definition::{create_fields, patch_fields, path_of_create};
use crate::automation::events;
use crate::automation::template::is_template;
use crate::documents::mail::{SendType, check_placeholders, first_placeholder};

const DOCUMENTS: &[&str] = &["invoice", "quote", "workorder"];
/// Whether its URL may be called is found out outside the transaction of a step.
const ENDPOINT: &str = "webhook_endpoint";

/// Adds the warnings of the step at `at`.
pub fn lint(subject: &Subject, lists: &Lists, step: &Value, at: &str, warnings: &mut Vec<String>) {
    let Some(members) = step.as_object() else { return };
    let kind = step["type"].as_str().unwrap_or_default();
    if kind == "send_document" {
        let named = step["send_type"].as_str().filter(|name| !is_template(name) && SendType::from_wire(name).is_none());
        warnings.extend(named.map(|name| {
            let hint = did_you_mean(name, SendType::WIRE.iter().copied());
            format!("{at}.send_type: '{name}' is not a type of mail{hint}")
        }));
        for name in ["subject", "message"] {
            let written = without_templates(step[name].as_str().unwrap_or_default());
            let wrong = check_placeholders(&written).err();
            warnings.extend(wrong.map(|wrong| format!("{at}.{name}: {}", wrong.message)));
        }
    }
    if kind == "send_email" {
        for name in ["subject", "body"] {
            let written = without_templates(step[name].as_str().unwrap_or_default());
            let found = first_placeholder(&written);
            warnings.extend(found.map(|found| {
                format!(
                    "{at}.{name}: {found} is sent as it is written; placeholders in flows are written {{{{ data.number }}}}"
                )
            }));
        }
    }
    if let Some(what) = uses_record(kind, step).filter(|_| subject.is_gone()) {
        warnings.push(format!("{at}: {what} the record of the event, but '{}' deletes it", subject.event()));
        return;
    }
    match kind {
        "send_document" if !subject.may_be(DOCUMENTS) => {
            warnings.push(format!("{at}: sends the document of the event, but {}", subject.described()));
        }
        "send_email" if step["attach_pdf"] == true && !subject.may_be(DOCUMENTS) => {
            warnings.push(format!("{at}.attach_pdf: attaches the document of the event, but {}", subject.described()));
        }
        "add_ticket_message" if step["ticket_id"].is_null() && !subject.may_be(&["ticket"]) => {
            warnings.push(format!(
                "{at}.ticket_id: is missing, so that the message is added to the ticket of the event, but {}",
                subject.described()
            ));
        }
        "trigger" => {
            let event = step["event"].as_str().unwrap_or_default().trim();
            if !is_template(event) {
                warnings.extend(events::doubt(event).map(|why| format!("{at}.event: {why}")));
            }
        }
        "update" => update(subject, lists, members, at, warnings),
        _ => {
            if let Some(path) = path_of_create(kind) {
                let made = registry().resources.iter().find(|resource| resource.path == path);
                let made = made.map_or("", |resource| resource.shape.name);
                fields(subject, lists, (made, create_fields(path)), members, at, warnings);
            }
        }
    }
}

/// Returns a text without what the flow itself fills in: `{{ data.number }}`.
fn without_templates(text: &str) -> String {
    let mut rest = text.to_string();
    for (open, close) in [("{{", "}}"), ("{%", "%}")] {
        while let Some(start) = rest.find(open) {
            let end = rest[start..].find(close).map_or(rest.len(), |length| start + length + close.len());
            rest.replace_range(start..end, "");
        }
    }
    rest
}

/// Returns what a step does with the record of the event, if anything.
fn uses_record(kind: &str, step: &Value) -> Option<&'static str> {
    match kind {
        "send_document" => Some("sends"),
        "send_email" if step["attach_pdf"] == true => Some("attaches"),
        "add_ticket_message" if step["ticket_id"].is_null() => Some("adds a message to"),
        "update" if step["id"].is_null() => Some("changes"),
        _ => None,
    }
}

fn update(subject: &Subject, lists: &Lists, step: &Map<String, Value>, at: &str, warnings: &mut Vec<String>) {
    let text = |name: &str| step.get(name).and_then(Value::as_str).unwrap_or_default();
    let named = events::entity(text("entity_type"));
    if is_template(named) {
        return;
    }
    let kinds: Vec<&str> = match named {
        "" => subject.records.iter().map(|record| record.shape.name).collect(),
        named => vec![named],
    };
    if named.is_empty() && !subject.may_change() {
        let why = match subject.records.is_empty() {
            true => subject.described(),
            false => format!("a record of type {} cannot be changed", subject.kinds()),
        };
        warnings.push(format!("{at}: changes the record of the event, but {why}"));
        return;
    }
    if !named.is_empty() && text("id").is_empty() && !subject.may_be(&[named]) {
        warnings.push(format!(
            "{at}.id: is missing, so that the id of the event's record is used, but {}",
            subject.described()
        ));
    }
    let Some(Value::Object(sent)) = step.get("fields") else { return };
    let at = format!("{at}.fields");
    if text("id").is_empty() && subject.is_final() {
        let locked = |name: &str, kind: &str| {
            patch_fields(kind).iter().any(|field| field.name == name && field.rules.locked_when_final)
        };
        let is_locked = |name: &str| kinds.iter().any(|kind| locked(name, kind));
        for name in sent.keys().filter(|name| is_locked(name)) {
            warnings
                .push(format!("{at}.{name}: cannot be changed, since the document of '{}' is final", subject.event()));
        }
    }
    if kinds.contains(&ENDPOINT) && sent.contains_key("url") {
        warnings.push(format!("{at}.url: cannot be changed by a flow, since a URL is checked outside of a run; send it as a request of its own"));
    }
    // A field that one type of record has and another lacks may be meant.
    let known = |name: &str| kinds.iter().any(|kind| patch_fields(kind).iter().any(|field| field.name == name));
    if kinds.len() > 1 {
        for name in sent.keys().filter(|name| !known(name)) {
            let all = kinds.iter().flat_map(|kind| patch_fields(kind)).map(|field| field.name);
            let hint = did_you_mean(name, all);
            warnings.push(format!("{at}.{name}: a record of type {} has no such field{hint}", subject.kinds()));
        }
    } else if let [kind] = kinds.as_slice() {
        fields(subject, lists, (*kind, patch_fields(kind)), sent, &at, warnings);
    }
}

/// Adds the warnings of the values that are sent for the fields of a type of record.
fn fields(
    subject: &Subject,
    lists: &Lists,
    (kind, fields): (&str, &[FieldInfo]),
    sent: &Map<String, Value>,
    at: &str,
    warnings: &mut Vec<String>,
) {
    for (name, value) in sent {
        let Some(field) = fields.iter().find(|field| field.name == name) else { continue };
        let text = value.as_str().unwrap_or_default();
        if !text.is_empty() && !is_template(text) {
            let why = lists.exclude(kind, &[name.as_str()], text, str::eq_ignore_ascii_case);
            let why = why.or_else(|| not_in_set(field.choices_of(kind), text));
            warnings.extend(why.map(|why| format!("{at}.{name}: '{name}' {why}")));
        }
        for (key, value) in value.as_object().into_iter().flatten() {
            let text = value.as_str().filter(|text| !is_template(text));
            let why = text
                .and_then(|text| lists.exclude(kind, &[name.as_str(), key.as_str()], text, str::eq_ignore_ascii_case));
            warnings.extend(why.map(|why| format!("{at}.{name}.{key}: '{key}' {why}")));
        }
        warnings.extend(other_record(subject, field, text).map(|why| format!("{at}.{name}: {why}")));
    }
}

/// Returns why a value is probably not meant: the set of the field does not have it. Some sets take other values too, and others
/// replace them by a default.
pub fn not_in_set(choices: &[&str], text: &str) -> Option<String> {
    if choices.is_empty() || choices.contains(&text) || other_spelling(text).is_some_and(|one| choices.contains(&one)) {
        return None;
    }
    let choices = choices.iter().copied().filter(|choice| !choice.is_empty());
    Some(unknown_value(text, choices).message)
}

/// Returns why a single placeholder is the id of another type of record than a field refers to, if so.
fn other_record(subject: &Subject, field: &FieldInfo, text: &str) -> Option<String> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?.trim();
    let name = inner.strip_prefix("data.").or_else(|| inner.strip_prefix("record."))?;
    let wanted = Some(field.rules.refers).filter(|table| !table.is_empty())?;
    let tables: Vec<&str> = match name {
        "id" => subject.records.iter().map(|record| record.shape.table).collect(),
        name => subject.fields(name).iter().map(|(_, own)| own.rules.refers).collect(),
    };
    if tables.is_empty() || tables.contains(&wanted) || tables.contains(&"") {
        return None;
    }
    let named =
        |table: &str| registry().of_table(table).map_or("record", |resource| resource.shape.name).replace('_', " ");
    let (wanted, own) = (named(wanted), named(tables[0]));
    Some(format!("takes the id of a record of type {wanted}, and '{inner}' is that of a record of type {own}"))
}
