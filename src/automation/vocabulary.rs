//! `GET /v1/automation/vocabulary`: what a flow can be made of, for editors of flows.

use std::sync::LazyLock;

use engine::call::{Answer, Call};
use engine::log::{EventType, Origin};
use engine::record::{DETAIL, FieldInfo, Shape};
use engine::records::Work;
use engine::registry::registry;
use engine::resource::{Method, Part, Resource, Returns};
use engine::tables::Logged;
use serde_json::{Map, Value, json};

use super::conditions::OPS;
use super::definition::{Accepts, Action, STEP_ROOTS, TRIGGER_ROOTS, TYPES, create_fields};
use super::needs;

static SHAPE: Shape = Shape::new("vocabulary", "vocabularies", &["What a flow can be made of."]);

const MEMBERS: &[Part] = &[
    Part(
        "events",
        "array",
        "The events that start a flow: `event`, `entity_types`, the types of record that it may be about, and `fields` with `path` and `type`, what its data has beside the record. Other words of these records are accepted too, with a warning.",
    ),
    Part(
        "records",
        "object",
        "The fields of each type of record: `path` in the data of its events, `type`, `choices`, `description`, and whether a step of type `update` may change it (`changeable`).",
    ),
    Part(
        "steps",
        "array",
        "The types of step: `type`, `scopes` that the author needs, and `fields` with `name`, `required`, `type`, `choices` and `description`.",
    ),
    Part("operators", "array", "The comparisons of conditions: `op`, and the `value` that each takes."),
    Part(
        "roots",
        "object",
        "The first words of paths in the conditions of a trigger, and in those of a step and its placeholders.",
    ),
];

/// The route of the vocabulary.
pub(crate) fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Automation vocabulary", "automation", &[])
        .at("/v1/automation/vocabulary")
        .route(Method::Get, "", "Retrieve what a flow can be made of", get)
        .returns(Returns::Parts(MEMBERS))
        .extension()
}

/// `GET /v1/automation/vocabulary`
fn get(_: Call) -> engine::error::Result<Work> {
    static VOCABULARY: LazyLock<Value> = LazyLock::new(vocabulary);
    Ok(Box::new(|_, _| Ok(Answer::json(&VOCABULARY))))
}

fn vocabulary() -> Value {
    let records: Map<String, Value> = logged().map(|resource| (resource.shape.name.into(), record(resource))).collect();
    let steps: Vec<Value> = TYPES.iter().map(|(name, action, fields)| step(name, *action, fields)).collect();
    let operators = OPS.iter().map(|(name, op)| json!({"op": name, "value": op.takes()}));
    json!({
        "events": all_events(),
        "records": records,
        "steps": steps,
        "operators": operators.collect::<Vec<_>>(),
        "roots": {"trigger": TRIGGER_ROOTS, "step": STEP_ROOTS},
    })
}

/// Returns the resources whose changes are events.
fn logged() -> impl Iterator<Item = &'static Resource> {
    registry().resources.iter().filter(|resource| resource.is_kept() && matches!(resource.logged, Logged::Except(_)))
}

/// Returns the events that can start a flow, except those of records whose fields are not described, such as runs.
fn all_events() -> Vec<Value> {
    let has_fields = |kind: &&str| logged().any(|resource| resource.shape.name == *kind);
    let starts = |event: &&EventType| event.origin != Origin::Trial && event.about.iter().all(has_fields);
    let all = registry().events.iter().filter(starts);
    all.map(|event| json!({"event": event.name, "entity_types": event.about, "fields": beside(event)})).collect()
}

/// Describes what the data of an event has beside the fields of the record.
fn beside(event: &EventType) -> Vec<Value> {
    let mut fields = Vec::new();
    // What callers fire has data of their own.
    for (name, example) in event.members().iter().filter(|(name, _)| *name != "data") {
        add_fields(&format!("data.{name}"), example, &mut fields);
    }
    fields
}

fn add_fields(path: &str, example: &Value, fields: &mut Vec<Value>) {
    let kind = match example {
        Value::Object(members) => {
            return members.iter().for_each(|(name, inside)| add_fields(&format!("{path}.{name}"), inside, fields));
        }
        Value::Array(_) => "array",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) | Value::Null => "string",
    };
    fields.push(json!({"path": path, "type": kind}));
}

/// Describes the fields of a record in the data of its events.
fn record(resource: &Resource) -> Value {
    let changeable = super::definition::patch_fields(resource.shape.name);
    let fields = resource.fields.iter().filter_map(|field| {
        let path = match field {
            _ if field.rules.views.includes(DETAIL) => format!("data.{}", field.name),
            _ if field.rules.in_meta && resource.shape.meta.includes(DETAIL) => format!("data.meta.{}", field.name),
            _ => return None,
        };
        let mut described = described(field);
        described["path"] = path.into();
        described["changeable"] = changeable.iter().any(|other| other.name == field.name).into();
        Some(described)
    });
    Value::Array(fields.collect())
}

/// Describes a field of a record, without its place.
fn described(field: &FieldInfo) -> Value {
    let schema = (field.schema)(&field.rules.for_answers());
    let description: Vec<&str> = field.doc.iter().map(|line| line.trim()).collect();
    let mut described = json!({"type": schema["type"], "description": description.join(" ")});
    if let Some(choices) = schema.get("enum") {
        described["choices"] = choices.clone();
    }
    if !field.rules.refers.is_empty() {
        described["refers"] = field.rules.refers.into();
    }
    described
}

fn step(name: &str, action: Action, fields: &[(&str, bool, Accepts)]) -> Value {
    let mut all: Vec<Value> = fields
        .iter()
        .map(|(name, required, accepts)| {
            let (kind, choices) = accepts.described();
            let mut field = json!({"name": name, "required": required, "type": kind});
            if !choices.is_empty() {
                field["choices"] = json!(choices);
            }
            field
        })
        .collect();
    if let Action::Create(path) = action {
        all.extend(create_fields(path).iter().map(|field| {
            let mut shown = described(field);
            shown["name"] = field.name.into();
            shown["required"] = field.rules.required.into();
            shown
        }));
    }
    json!({"type": name, "scopes": needs::of_type(name, action), "fields": all})
}
