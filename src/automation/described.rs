//! The JSON schemas of conditions and steps, from the same tables that validate them.

use engine::record::{FieldInfo, decimal_pattern};
use engine::text::{CONTROL, CONTROL_AND_BREAKS, pattern};
use serde_json::{Map, Value, json};

use super::conditions::{MAX_CONDITIONS, OPS};
use super::definition::{Accepts, Action, Fields, LONGEST_CALL, TYPES, create_fields};

/// What text with placeholders contains, as a regular expression.
const PLACEHOLDER: &str = "\\{[{%#]";

/// The greatest length in a pattern: programs that read patterns are slow with more, or refuse it.
const LONGEST_IN_PATTERN: u64 = 255;

/// The schema of a condition.
pub fn condition() -> Value {
    let operators: Vec<&str> = OPS.iter().map(|(name, _)| *name).collect();
    json!({
        "title": "FlowCondition",
        "type": "object",
        "additionalProperties": false,
        "description": "A condition: a field, a comparison and a value.",
        "required": ["field", "op"],
        "properties": {
            "field": {
                "type": "string", "minLength": 1, "maxLength": 255, "pattern": pattern(CONTROL),
                "description": "The path of the field, such as `data.total_incl_vat`.",
            },
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
        json!({
            "type": "string", "minLength": 1, "maxLength": 64, "pattern": pattern(CONTROL),
            "description": "The name under which later steps find its result: letters, digits and underscores.",
        }),
    );
    let goes_on = json!({"type": "boolean", "description": "Whether the run continues when the step fails."});
    properties.insert("continue_on_error".into(), goes_on);
    for (name, is_required, accepts) in fields {
        properties.insert((*name).to_string(), value(name, *accepts));
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

fn value(name: &str, accepts: Accepts) -> Value {
    let text = pattern(CONTROL);
    match accepts {
        Accepts::Text if name == "subject" => {
            json!({"type": "string", "pattern": or_filled(&pattern(CONTROL_AND_BREAKS))})
        }
        Accepts::Text if name == "event" => json!({"type": "string", "pattern": or_filled(&text_pattern(255))}),
        Accepts::Text => json!({"type": "string", "pattern": text}),
        Accepts::Bool => json!({"type": "boolean"}),
        Accepts::Any => json!({"description": "Any value."}),
        Accepts::Object => json!({"type": "object", "additionalProperties": true}),
        Accepts::Texts => json!({"type": "object", "additionalProperties": {"type": "string", "pattern": text}}),
        Accepts::Seconds => json!({"type": "integer", "minimum": 1, "maximum": LONGEST_CALL}),
        Accepts::Conditions => json!({"type": "array", "maxItems": MAX_CONDITIONS, "items": condition()}),
        Accepts::Duration => json!({"type": "string", "description": "A duration such as `P3D` or `PT12H`."}),
        Accepts::Moment => json!({"type": "string", "description": "A timestamp or a date."}),
        Accepts::OneOf(choices) => json!({"type": "string", "enum": choices}),
    }
}

/// A field of the record that a step creates. A number and a boolean can be sent for text: they are what a placeholder alone
/// becomes.
fn filled(field: &FieldInfo) -> Value {
    let mut schema = (field.schema)(&field.rules.for_create());
    let places = match field.kind {
        "amount" => Some(2),
        "price" => Some(6),
        _ => None,
    };
    if let Some(places) = places {
        schema["type"] = json!(["number", "string"]);
        schema["pattern"] = json!(decimal_pattern(places));
    }
    if field.is_date() {
        // It may also be a duration.
        schema = json!({"type": schema["type"]});
    }
    allow_placeholders(&mut schema);
    let more: &[&str] = if field.is("string") { &["number", "boolean"] } else { &[] };
    let nothing = if field.rules.required { None } else { Some(&"null") };
    for kind in more.iter().chain(nothing) {
        add_type(&mut schema, kind);
    }
    let description = field.doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    schema["description"] = json!(format!("{description} Placeholders are allowed."));
    schema
}

/// Lets a value also be text with placeholders, whatever its type, and likewise what is inside it. What the text has to be like
/// is known once the placeholders are filled in.
fn allow_placeholders(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    for name in ["items", "additionalProperties"] {
        members.get_mut(name).into_iter().for_each(allow_placeholders);
    }
    let inside = members.get_mut("properties").and_then(Value::as_object_mut);
    inside.into_iter().flat_map(Map::values_mut).for_each(allow_placeholders);
    // A schema with a name of its own is another one now.
    members.shift_remove("title");
    // The validation of the step says which values a set has.
    let is_open = ["enum", "format", "anyOf"].iter().any(|name| members.contains_key(*name));
    for name in ["enum", "format", "anyOf", "minLength"] {
        members.shift_remove(name);
    }
    let longest = members.shift_remove("maxLength").and_then(|most| most.as_u64());
    let own = members.shift_remove("pattern");
    let own = own.as_ref().and_then(Value::as_str);
    let is_string =
        schema["type"] == "string" || schema["type"].as_array().is_some_and(|all| all.contains(&json!("string")));
    let allowed = match (is_string, own) {
        (false, _) => Some(PLACEHOLDER.to_string()),
        (true, _) if is_open => None,
        (true, Some(own)) if own == pattern(CONTROL) => Some(or_filled(&longest.map_or(own.to_string(), text_pattern))),
        (true, own) => own.map(or_filled),
    };
    if let Some(allowed) = allowed {
        schema["pattern"] = json!(allowed);
    }
    add_type(schema, "string");
}

/// Returns the pattern of text of at most this length.
fn text_pattern(longest: u64) -> String {
    if longest > LONGEST_IN_PATTERN { pattern(CONTROL) } else { format!("^[^{CONTROL}]{{0,{longest}}}$") }
}

/// Returns a pattern that text with placeholders matches too.
fn or_filled(pattern: &str) -> String {
    format!("{pattern}|{PLACEHOLDER}")
}

/// Adds a type to those of a schema.
fn add_type(schema: &mut Value, kind: &str) {
    let mut kinds = match schema["type"].take() {
        Value::Array(kinds) => kinds,
        kind => vec![kind],
    };
    if !kinds.iter().any(|own| own == kind) {
        kinds.push(json!(kind));
    }
    schema["type"] = match kinds.as_slice() {
        [one] => one.clone(),
        _ => Value::Array(kinds),
    };
}
