//! The catalogue of events: every name, what it means, when it is emitted, and an example of what receivers get.

mod entry;
mod facts;
mod table;

use std::sync::LazyLock;

use engine::call::{Answer, Call};
use engine::error::{FieldCode, FieldErrors, violation};
use engine::log::{EventType, Origin};
use engine::record::Shape;
use engine::records::Work;
use engine::registry::registry;
use engine::resource::{Method, Part, Resource, Returns};
use serde_json::{Value, json};

use self::entry::Group;
use super::events;

/// Returns every event, sorted by name.
pub(crate) fn all() -> Vec<EventType> {
    let mut all: Vec<EventType> = table::TABLE.iter().flat_map(Group::types).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

static SHAPE: Shape = Shape::new("event_type", "event_types", &["A type of event."]);

const MEMBERS: &[Part] = &[
    Part("name", "string", "The name, such as `invoice.paid`."),
    Part("meaning", "string", "What happened."),
    Part("when", "string", "When it is emitted."),
    Part("entity_types", "array", "The types of record that it may be about; empty if it is not about a record."),
    Part("fired_only", "boolean", "Whether Kantoor never emits it by itself: only a trigger route or a flow fires it."),
    Part("example", "object", "What an endpoint receives."),
];

const QUERY: &[Part] = &[Part(
    "type",
    "string",
    "Only this event, or those with a prefix such as `invoice.*`; several are separated by commas. `client.*` stands for `customer.*`.",
)];

/// The route of the catalogue.
pub(crate) fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Event types", "audit", &[])
        .at("/v1/events/types")
        .route(Method::Get, "", "List the types of events", get)
        .returns(Returns::Found(MEMBERS, QUERY))
        // It is documentation.
        .with(|route| route.scope = String::new())
        .extension()
}

/// `GET /v1/events/types`
fn get(call: Call) -> engine::error::Result<Work> {
    static DESCRIBED: LazyLock<Vec<(&'static EventType, Value)>> =
        LazyLock::new(|| registry().events.iter().map(|event| (event, described(event))).collect());
    let wanted: Vec<String> =
        call.query.get("type").unwrap_or("*").split(',').map(|one| one.trim().to_string()).collect();
    let is_known = |one: &&String| DESCRIBED.iter().any(|(event, _)| events::matches(one, &event.name));
    let mut faults = FieldErrors::default();
    for odd in wanted.iter().filter(|one| !is_known(one)) {
        let message = format!("has no event '{}'{}", odd.chars().take(100).collect::<String>(), events::hint(odd));
        faults.add("type", violation(FieldCode::InvalidChoice, message));
    }
    faults.into_result()?;
    Ok(Box::new(move |_, _| {
        let is_wanted = |event: &EventType| wanted.iter().any(|one| events::matches(one, &event.name));
        let found = DESCRIBED.iter().filter(|(event, _)| is_wanted(event));
        let found: Vec<&Value> = found.map(|(_, shown)| shown).collect();
        let mut answer = Answer::json(&json!(found));
        answer.meta.push(format!("\"total\":{}", found.len()));
        Ok(answer)
    }))
}

fn described(event: &EventType) -> Value {
    json!({
        "name": event.name, "meaning": event.meaning, "when": event.when, "entity_types": event.about,
        "fired_only": event.origin == Origin::Callers, "example": facts::example(event),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::facts::example;
    use super::*;

    #[test]
    fn every_event_is_listed_once_about_records_that_exist() {
        crate::registry::install();
        let all = all();
        for (one, next) in all.iter().zip(&all[1..]) {
            assert!(one.name < next.name, "{} is listed twice", one.name);
        }
        for event in &all {
            assert!(event.meaning.ends_with('.') && event.when.ends_with('.'), "{}", event.name);
            for kind in event.about {
                assert!(registry().named(kind).is_some_and(Resource::is_kept), "{}: {kind}", event.name);
            }
            for json in [event.members, event.example].into_iter().filter(|json| !json.is_empty()) {
                assert!(serde_json::from_str::<Map<String, Value>>(json).is_ok(), "{}: {json}", event.name);
            }
        }
    }

    #[test]
    fn examples_show_the_fields_of_the_record() {
        crate::registry::install();
        let paid = example(registry().event("invoice.paid").unwrap());
        assert_eq!((&paid["type"], &paid["data"]["payment_status"]), (&json!("invoice.paid"), &json!("paid")));
        assert_eq!(paid["data"]["meta"]["open_amount"], 0, "{paid}");
        for event in &registry().events {
            let (example, record) = (example(event), event.about.first().and_then(|kind| registry().named(kind)));
            let shown: Map<String, Value> = serde_json::from_str(event.example).unwrap_or_default();
            for (name, value) in shown {
                let field = record.and_then(|record| record.fields.iter().find(|field| field.name == name)).unwrap();
                let schema = (field.schema)(&field.rules);
                let choices = schema["enum"].as_array();
                assert!(choices.is_none_or(|choices| choices.contains(&value)), "{}: {name}", event.name);
                assert_eq!(example["data"][&name], value, "{}", event.name);
            }
        }
    }
}
