//! The `webhooks` of the OpenAPI document: what an endpoint receives for each type of event. `GET /v1/events/types` has the
//! examples.

use std::collections::BTreeMap;

use engine::clock::Moment;
use engine::http::openapi::event_schema;
use engine::log::{EventType, Origin};
use engine::registry::registry;
use serde_json::{Map, Value, json};

/// The headers of every webhook: the name of the parameter in the document, the header, and its description.
const HEADERS: [(&str, &str, &str); 3] = [
    ("WebhookId", "webhook-id", "The id of the delivery, the same for every attempt."),
    ("WebhookTimestamp", "webhook-timestamp", "When the attempt was signed, in seconds since 1970."),
    (
        "WebhookSignature",
        "webhook-signature",
        "One or more signatures according to Standard Webhooks 1.0, separated by spaces.",
    ),
];

/// The types of actors; see `docs/events.md`.
const ACTORS: [&str; 6] = ["user", "key", "flow", "job", "visitor", "operator"];

/// Adds the webhooks and the schemas of their bodies.
pub(crate) fn describe(document: &mut Value) {
    let sent = || registry().events.iter().filter(|event| event.origin != Origin::Callers);
    // Events of the same record have the same schema.
    let mut names: BTreeMap<String, Vec<&EventType>> = BTreeMap::new();
    for event in sent() {
        names.entry(schema_name(event)).or_default().push(event);
    }
    let webhooks: Map<String, Value> =
        sent().map(|event| (event.name.clone(), json!({"post": operation(event)}))).collect();
    document["webhooks"] = Value::Object(webhooks);
    for (name, events) in names {
        document["components"]["schemas"][name] = schema(&events);
    }
    for (name, header, about) in HEADERS {
        document["components"]["parameters"][name] = json!({"name": header, "in": "header", "required": true, "description": about, "schema": {"type": "string"}});
    }
}

fn operation(event: &EventType) -> Value {
    let headers = HEADERS.map(|(name, ..)| json!({"$ref": format!("#/components/parameters/{name}")}));
    let schema = json!({"$ref": format!("#/components/schemas/{}", schema_name(event))});
    json!({
        "operationId": format!("on{}", joined(&event.name)),
        "summary": event.meaning,
        "description": event.when,
        "tags": ["Webhooks"],
        "parameters": headers,
        "requestBody": {"required": true, "content": {"application/json": {"schema": schema}}},
        "responses": {
            "2XX": {"description": "The webhook is accepted. Any other response is a failure, and the webhook is sent again later."},
            "410": {"description": "The receiver no longer exists: the endpoint is disabled."},
        },
    })
}

/// `InvoiceEvent`; `TicketMessageEvent` for an event that has members of its own; `ErasedEvent` for those that show no record,
/// whichever it is.
fn schema_name(event: &EventType) -> String {
    match event.about {
        [_] if !event.shows_record => {
            let what = event.name.split_once('.').map_or(event.name.as_str(), |(_, what)| what);
            format!("{}Event", joined(what))
        }
        [kind] if event.members.is_empty() => format!("{}Event", joined(kind)),
        _ => format!("{}Event", joined(&event.name)),
    }
}

/// `InvoicePaid` of `invoice.paid`.
fn joined(name: &str) -> String {
    let words = name.split(['.', '_']).map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        format!("{}{rest}", first.to_uppercase())
    });
    words.collect()
}

fn schema(events: &[&EventType]) -> Value {
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    let mut properties = json!({
        "type": {"type": "string", "enum": names, "description": "The type of event."},
        "timestamp": {"type": "string", "format": "date-time", "description": "When it happened, on the account's clock."},
        "data": events.first().map(|event| data(event)).unwrap_or_default(),
        "seq": {"type": "integer", "description": "The sequence number: per account, starting at 1, without gaps."},
    });
    // A test has no actor.
    if events.iter().all(|event| event.origin == Origin::Program) {
        properties["actor"] = json!({"type": "string", "description": "Who did it: an id, or a name of the program."});
        properties["actor_type"] = json!({"type": "string", "enum": ACTORS, "description": "The type of the actor."});
        properties["actor_name"] = json!({"type": "string", "description": "The name of the actor at that moment."});
    }
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(|all| all.keys()).collect();
    json!({"type": "object", "description": "What an endpoint receives.", "required": required, "properties": properties})
}

/// Returns the schema of the data: the record, and the members beside its fields.
fn data(event: &EventType) -> Value {
    let shown: &[&str] = if event.shows_record { event.about } else { &[] };
    let records: Vec<Value> = shown.iter().filter_map(|kind| registry().named(kind)).map(event_schema).collect();
    let record = match records.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        _ => Some(json!({"anyOf": records})),
    };
    let members = event.members();
    match (record, members.is_empty()) {
        (Some(record), true) => record,
        (Some(record), false) => json!({"allOf": [record, shape_of(&Value::Object(members))]}),
        (None, _) => shape_of(&Value::Object(members)),
    }
}

/// Adds the choices of its fields to the schema of a member that is a record, such as `message`.
fn with_choices(name: &str, mut schema: Value) -> Value {
    for field in registry().named(name).into_iter().flat_map(|resource| resource.fields.iter()) {
        let choices = (field.schema)(&field.rules)["enum"].clone();
        let properties = schema.get_mut("properties");
        let member = properties.and_then(|properties| properties.get_mut(field.name));
        if let Some(member) = member.filter(|_| choices.is_array()) {
            member["enum"] = choices;
        }
    }
    schema
}

/// Returns the schema of values such as this one. The data of a fired event may have any members.
fn shape_of(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let properties: Map<String, Value> = members
                .iter()
                .map(|(name, value)| {
                    let any = name == "data";
                    let schema = match any {
                        true => json!({"type": "object", "additionalProperties": true}),
                        false => with_choices(name, shape_of(value)),
                    };
                    (name.clone(), schema)
                })
                .collect();
            let required: Vec<&String> = members.keys().collect();
            json!({"type": "object", "required": required, "properties": properties})
        }
        Value::Array(_) => json!({"type": "array"}),
        Value::String(text) if Moment::parse(text).is_some() => json!({"type": "string", "format": "date-time"}),
        Value::String(_) => json!({"type": "string"}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(number) if number.is_i64() => json!({"type": "integer"}),
        Value::Number(_) => json!({"type": "number"}),
        Value::Null => json!({}),
    }
}
