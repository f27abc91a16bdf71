//! The JSON schemas of conditions and steps, from the same tables that validate them.

use engine::record::FieldInfo;
use serde_json::{Map, Value, json};

use super::conditions::OPS;
use super::definition::{Accepts, Action, Fields, LONGEST_CALL, TYPES, create_fields};

/// The schema of a condition.
pub fn condition() -> Value {
    let operators: Vec<&str> = OPS.iter().map(|(name, _)| *name).collect();
    json!({
        "title": "FlowCondition",
        "type": "object",
        "description": "A condition: a field, a comparison and a value.",
        "required": ["field", "op"],
        "properties": {
            "field": {"type": "string", "description": "The path of the field, such as `data.total_incl_vat`."},
            "op": {"type": "string", "enum": operators, "description": "The comparison."},
            "value": {"description": "The value to compare with; may be omitted with `exists`."},
        },
    })
}

/// The schema of a step: one of the types of step, told apart by `type`.
pub fn step() -> Value {
    let names =
        TYPES.iter().map(|(kind, ..)| (kind.to_string(), json!(format!("#/components/schemas/{}", name(kind)))));
    json!({
        "title": "FlowStep",
        "description": "A step: its `type`, and the fields of that type.",
        "oneOf": TYPES.iter().map(|(kind, action, fields)| of_type(kind, *action, fields)).collect::<Vec<_>>(),
        "discriminator": {"propertyName": "type", "mapping": names.collect::<Map<_, _>>()},
    })
}

/// `SendEmailStep`
fn name(kind: &str) -> String {
    let words = kind.split('_').map(|word| format!("{}{}", word[..1].to_uppercase(), &word[1..]));
    format!("{}Step", words.collect::<String>())
}

fn of_type(kind: &str, action: Action, fields: Fields) -> Value {
    let mut properties = Map::new();
    let mut required = vec!["type"];
    properties.insert("type".into(), json!({"type": "string", "const": kind}));
    properties.insert(
        "name".into(),
        json!({"type": "string", "description": "The name under which later steps find its result."}),
    );
    let goes_on = json!({"type": "boolean", "description": "Whether the run continues when the step fails."});
    properties.insert("continue_on_error".into(), goes_on);
    for (name, is_required, accepts) in fields {
        properties.insert((*name).to_string(), value(*accepts));
        required.extend(is_required.then_some(*name));
    }
    if let Action::Create(path) = action {
        for field in create_fields(path) {
            properties.insert(field.name.to_string(), filled(field));
            required.extend(field.rules.required.then_some(field.name));
        }
    }
    json!({
        "title": name(kind),
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}

fn value(accepts: Accepts) -> Value {
    match accepts {
        Accepts::Text => json!({"type": "string"}),
        Accepts::Bool => json!({"type": "boolean"}),
        Accepts::Any => json!({"description": "Any value."}),
        Accepts::Object => json!({"type": "object", "additionalProperties": true}),
        Accepts::Texts => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Accepts::Seconds => json!({"type": "integer", "minimum": 1, "maximum": LONGEST_CALL}),
        Accepts::Conditions => json!({"type": "array", "items": condition()}),
        Accepts::Duration => json!({"type": "string", "description": "A duration such as `P3D` or `PT12H`."}),
        Accepts::Moment => json!({"type": "string", "description": "A timestamp or a date."}),
        Accepts::OneOf(choices) => json!({"type": "string", "enum": choices}),
    }
}

/// A field of the record that a step creates. A placeholder is a string, whatever the type of the field.
fn filled(field: &FieldInfo) -> Value {
    let schema = (field.schema)(&field.rules);
    let description = field.doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    if field.is("string") && schema.get("enum").is_none() && schema["type"].is_string() {
        return json!({"type": "string", "description": description});
    }
    json!({"description": format!("{description} Placeholders are allowed.")})
}
