//! Example records, and what the business code adds to the document.

use serde_json::{Map, Value, json};

use super::schemas::{record_schema, schema_name};
use crate::record::{DETAIL, FieldInfo};
use crate::registry::registry;
use crate::resource::Resource;

/// The id in examples.
const ID: &str = "019a3c5e-7d10-7c3e-9a52-4f6b1c2d3e4f";
/// The time in examples.
const TIME: &str = "2026-05-04T10:00:00.000Z";

/// Returns the document with what the registry adds to it.
pub fn described(mut document: Value) -> Value {
    for add in registry().described {
        add(&mut document);
    }
    document
}

/// Returns the schema of a record in events: a reference to its component, unless responses have more members.
pub fn event_schema(resource: &Resource) -> Value {
    if resource.shape.parts.is_empty() {
        return json!({"$ref": format!("#/components/schemas/{}", schema_name(resource))});
    }
    without_parts(resource)
}

/// Returns the schema of a record without the members that only its responses have.
fn without_parts(resource: &Resource) -> Value {
    let mut schema = record_schema(resource, DETAIL);
    let is_part = |name: &str| resource.shape.parts.iter().any(|part| part.0 == name);
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.retain(|name, _| !is_part(name));
    }
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| !name.as_str().is_some_and(is_part));
    }
    schema
}

/// Returns a record as its events show it, from the examples of its fields.
pub fn example_record(resource: &Resource) -> Value {
    let schema = without_parts(resource);
    let mut record = members(resource, &schema);
    if let Some(meta) = schema["properties"].get("meta") {
        record.insert("meta".into(), Value::Object(members(resource, meta)));
    }
    Value::Object(record)
}

fn members(resource: &Resource, schema: &Value) -> Map<String, Value> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .map(|(name, schema)| {
            let field = resource.fields.iter().find(|field| field.name == name);
            (name.clone(), value(field, schema))
        })
        .collect()
}

/// Returns the example of a field; without one, a value of its type.
fn value(field: Option<&FieldInfo>, schema: &Value) -> Value {
    let text = |text: &str| Value::String(text.to_string());
    if let Some(example) = schema["examples"].get(0) {
        return example.clone();
    }
    if let Some(choices) = schema["enum"].as_array() {
        return choices.iter().find(|choice| choice.as_str() != Some("")).cloned().unwrap_or_default();
    }
    let may_be_null = schema["type"].as_array().is_some_and(|kinds| kinds.contains(&json!("null")));
    if may_be_null {
        return Value::Null;
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str).unwrap_or_default(),
        kind => kind.as_str().unwrap_or_default(),
    };
    match (kind, schema["format"].as_str().unwrap_or_default()) {
        ("string", "date-time") => text(TIME),
        ("string", "date") => text(&TIME[..10]),
        ("string", "uuid") => text(ID),
        ("string", "uri") => text("https://example.com/d/x"),
        ("string", _) if field.is_some_and(FieldInfo::is_date) => text(&TIME[..10]),
        ("integer", _) => json!(1),
        ("number", _) => json!(0),
        ("boolean", _) => json!(false),
        ("array", _) => json!([]),
        ("object", _) => json!({}),
        _ => text(""),
    }
}
