//! The examples of events: what happens in one fictitious business, so that ids, names and amounts fit together.

use std::sync::LazyLock;

use engine::http::openapi;
use engine::log::{EventType, Origin};
use engine::registry::registry;
use serde_json::{Value, json};

use crate::automation::events::TRIGGERED;

/// The records, what differs in single events, and who causes those that nobody in the business does.
static FACTS: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(include_str!("facts.json")).unwrap_or_default());

/// When most events of the examples happen.
const TIME: &str = "2026-05-04T10:00:00.000Z";

/// Returns an example of what an endpoint receives.
pub fn example(event: &EventType) -> Value {
    let own = &FACTS["events"][&event.name];
    let time = own["timestamp"].as_str().unwrap_or(TIME);
    let (name, data) = match event.origin {
        // Fired events have their own line in the log.
        Origin::Callers => {
            (TRIGGERED, json!({"event": event.name, "entity_type": "", "data": FACTS["fired"][&event.name]}))
        }
        _ => (event.name.as_str(), data(event, time)),
    };
    let mut payload = json!({"type": name, "timestamp": time, "data": data});
    if event.origin == Origin::Trial {
        payload["seq"] = json!(0);
        return payload;
    }
    let (kind, actor, actor_name) = actor(event, name);
    payload["seq"] = json!(1042);
    payload["actor"] = json!(actor);
    payload["actor_type"] = json!(kind);
    payload["actor_name"] = json!(actor_name);
    payload
}

/// Returns the record of the event, with the members beside its fields.
fn data(event: &EventType, time: &str) -> Value {
    let about = event.about.first().and_then(|kind| registry().named(kind));
    if !event.shows_record {
        let mut data = Value::Object(event.members());
        let id = about.map(|resource| &FACTS["records"][resource.shape.name]["id"]);
        write(&mut data, &json!({"id": id}));
        return data;
    }
    let mut data = about.map(openapi::example_record).unwrap_or_else(|| json!({}));
    if let Some(resource) = about {
        write(&mut data, &FACTS["records"][resource.shape.name]);
    }
    let is_new = ["created", "credit_created", "draft"].iter().any(|what| event.name.ends_with(&format!(".{what}")));
    write(&mut data, &json!({"updated_at": time, "version": if is_new { 1 } else { 2 }}));
    write(&mut data, &serde_json::from_str(event.example).unwrap_or_default());
    if let Value::Object(data) = &mut data {
        data.extend(event.members());
    }
    write(&mut data, &FACTS["events"][&event.name]);
    data
}

/// Writes values into a record: each wherever the record shows it.
fn write(data: &mut Value, values: &Value) {
    for (name, value) in values.as_object().into_iter().flatten() {
        for place in ["/", "/meta/"] {
            if let Some(member) = data.pointer_mut(&format!("{place}{name}")) {
                *member = value.clone();
            }
        }
    }
}

/// Returns the type, the id and the name of who causes an event that the log has under this name.
fn actor(event: &EventType, name: &str) -> (String, String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    // Only a command on the server erases.
    if !event.shows_record {
        return ("operator".to_string(), "operator".to_string(), "operator".to_string());
    }
    match &FACTS["actors"][name] {
        Value::Null => ("user".to_string(), text(&FACTS["user"]["id"]), text(&FACTS["user"]["name"])),
        actor => {
            let (kind, name) = (text(&actor[0]), text(&actor[1]));
            let id = FACTS["keys"][&name].as_str().map_or_else(|| name.clone(), str::to_string);
            (kind, id, name)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns all values of members with these endings, with their names.
    fn found<'v>(value: &'v Value, name: &'v str, ends: &str, all: &mut Vec<(&'v str, &'v Value)>) {
        if name.ends_with(ends) {
            all.push((name, value));
        }
        match value {
            Value::Object(members) => members.iter().for_each(|(name, value)| found(value, name, ends, all)),
            Value::Array(items) => items.iter().for_each(|item| found(item, "", ends, all)),
            _ => {}
        }
    }

    #[test]
    fn facts_are_of_fields_and_events_that_exist() {
        crate::registry::install();
        for (kind, values) in FACTS["records"].as_object().unwrap() {
            let resource = registry().named(kind).unwrap_or_else(|| panic!("{kind}"));
            let record = openapi::example_record(resource);
            for name in values.as_object().unwrap().keys() {
                let is_shown = record.get(name).is_some() || record["meta"].get(name).is_some();
                assert!(is_shown, "{kind} has no {name}");
            }
        }
        for table in ["events", "actors", "fired"] {
            for name in FACTS[table].as_object().unwrap().keys() {
                assert!(registry().event(name).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn examples_fit_together() {
        crate::registry::install();
        let records = FACTS["records"].as_object().unwrap();
        let known: BTreeSet<&str> = records.values().filter_map(|record| record["id"].as_str()).collect();
        for event in &registry().events {
            let example = example(event);
            if let Some(kind) = event.about.first().filter(|_| event.origin != Origin::Callers) {
                assert!(records.contains_key(*kind), "there is no example of {kind}");
                assert!(example["data"]["id"].as_str().is_some_and(|id| id.len() == 36), "{}", event.name);
            }
            if event.origin == Origin::Callers {
                assert!(example["data"]["data"].as_object().is_some_and(|sent| !sent.is_empty()), "{}", event.name);
            }
            // Nobody creates, invites or deletes themselves.
            if ["user.created", "user.invited", "user.deleted"].contains(&event.name.as_str()) {
                assert_ne!(example["actor"], example["data"]["id"], "{}", event.name);
            }
            let mut links = Vec::new();
            found(&example["data"], "", "_id", &mut links);
            for (name, id) in links.into_iter().filter(|(_, id)| id.as_str().is_some_and(|id| id.len() == 36)) {
                let is_other = ["merged_id", "file_id", "logo_file_id"].contains(&name);
                let is_person = event.name.starts_with("link.");
                assert!(is_other || is_person || known.contains(id.as_str().unwrap()), "{} {name}", event.name);
            }
            let mut texts = Vec::new();
            found(&example, "", "vat_number", &mut texts);
            assert!(texts.iter().all(|(_, number)| number.as_str().unwrap().starts_with("NL")), "{}", event.name);
            sums_up(&event.name, &example["data"]);
        }
    }

    /// Reads an amount.
    fn cents(value: &Value) -> i64 {
        let text = value.to_string();
        let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
        format!("{whole}{part:0<2}").parse().unwrap()
    }

    fn sums_up(event: &str, data: &Value) {
        if data["total_incl_vat"].is_null() {
            return;
        }
        let rows = data["rows"].as_array().or_else(|| data["lines"].as_array()).unwrap();
        let excl: i64 = rows.iter().map(|row| cents(&row["total_excl_vat"])).sum();
        let (total, vat) = (cents(&data["total_excl_vat"]), cents(&data["vat_amount"]));
        assert_eq!((excl, cents(&data["total_incl_vat"])), (total, total + vat), "{event}");
        assert_eq!((total.abs() * 21 + 50) / 100, vat.abs(), "{event}");
        let meta = &data["meta"];
        if meta["open_amount"].is_number() && data["number"].as_str().unwrap().starts_with('F') {
            let left = cents(&data["total_incl_vat"]) - cents(&meta["paid_amount"]) - cents(&meta["credited_amount"]);
            assert_eq!(cents(&meta["open_amount"]), left, "{event}");
            assert_eq!(data["paid_at"].is_string(), data["payment_status"] == "paid", "{event}");
        }
    }
}
