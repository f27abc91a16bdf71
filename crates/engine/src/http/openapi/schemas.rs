//! The schemas of the OpenAPI document: records, request bodies, and the envelope.

use serde_json::{Map, Value, json};

use crate::error::{Code, FieldCode};
use crate::record::{DETAIL, FieldInfo, Rules, Shape, Views};
use crate::registry::registry;
use crate::resource::{Part, RequestBody, Resource, Route};

pub fn error_schema() -> Value {
    let codes: Vec<&str> = registry().error_codes().into_iter().map(Code::wire).collect();
    let field_codes: Vec<&str> = FieldCode::ALL.iter().map(|code| code.wire()).collect();
    json!({
        "type": "object",
        "description": "An error response.",
        "required": ["error", "data", "meta"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message", "details"],
                "properties": {
                    "code": {"type": "string", "enum": codes, "description": "Error code, for programs."},
                    "message": {"type": "string", "description": "Error message, for people."},
                    "details": {
                        "type": "array",
                        "description": "The invalid fields.",
                        "items": {
                            "type": "object",
                            "required": ["field", "code", "message"],
                            "properties": {
                                "field": {"type": "string", "description": "The path of the field, such as `rows[2].quantity`."},
                                "code": {"type": "string", "enum": field_codes},
                                "message": {"type": "string"},
                            },
                        },
                    },
                },
            },
            "data": {"type": "object"},
            "meta": {"type": "object", "properties": {"request_id": {"type": "string"}}},
        },
    })
}

pub fn page_schema() -> Value {
    json!({
        "type": "object",
        "description": "Pagination of a list.",
        "required": ["page", "per_page", "total", "pages"],
        "properties": {
            "page": {"type": "integer", "description": "The page number, starting at 1."},
            "per_page": {"type": "integer", "description": "Records per page."},
            "total": {"type": "integer", "description": "Total number of records."},
            "pages": {"type": "integer", "description": "Total number of pages."},
            "ignored_params": {
                "type": "array", "items": {"type": "string"}, "description": "Unknown parameters, which were ignored.",
            },
        },
    })
}

pub fn total_schema() -> Value {
    let total = json!({"type": "integer", "description": "Total number of records."});
    json!({"type": "object", "description": "Length of a list.", "required": ["total"], "properties": {"total": total}})
}

pub fn feed_schema() -> Value {
    json!({
        "type": "object",
        "description": "Position in a feed.",
        "required": ["last_seq", "has_more"],
        "properties": {
            "last_seq": {"type": "integer", "description": "Send it as `after` to continue."},
            "has_more": {"type": "boolean", "description": "Whether more events are available."},
        },
    })
}

/// `Product`
pub fn schema_name(resource: &Resource) -> String {
    let words = resource.shape.name.split('_');
    words
        .map(|word| {
            let (first, rest) = word.split_at(1);
            format!("{}{rest}", first.to_uppercase())
        })
        .collect()
}

/// Returns the resource of a table.
pub fn of_table<'r>(resource: &'r Resource, table: &str) -> &'r Resource {
    registry().of_table(table).unwrap_or(resource)
}

/// Returns the schema of a view: the component if it is the whole record.
pub fn seen_schema(resource: &Resource, view: Views) -> Value {
    let own = record_schema(resource, view);
    if own["properties"] == record_schema(resource, DETAIL)["properties"] {
        return json!({"$ref": format!("#/components/schemas/{}", schema_name(resource))});
    }
    own
}

pub fn record_schema(resource: &Resource, view: Views) -> Value {
    let shape: &Shape = resource.shape;
    let mut properties = Map::new();
    properties.insert("id".into(), json!({"type": "string", "format": "uuid", "description": "Its id."}));
    for field in resource.fields.iter().filter(|field| field.rules.views.includes(view)) {
        properties.insert(field.name.into(), shown_property(field));
    }
    for address in shape.addresses.iter().filter(|address| address.views.includes(view)) {
        let schema = json!({"type": "string", "format": "uri", "description": address.doc});
        properties.insert(address.name.into(), schema);
    }
    for Part(name, kind, about) in shape.parts {
        properties.insert(name.to_string(), json!({"type": kind, "description": about}));
    }
    let moment = |description: &str| json!({"type": "string", "format": "date-time", "description": description});
    if shape.created_at.includes(view) {
        properties.insert("created_at".into(), moment("When the record was created."));
    }
    if shape.updated_at.includes(view) {
        properties.insert("updated_at".into(), moment("When the record was last changed."));
    }
    if shape.meta.includes(view) {
        let mut meta = Map::new();
        meta.insert("created_at".into(), moment("When the record was created."));
        meta.insert("updated_at".into(), moment("When the record was last changed."));
        meta.insert("version".into(), json!({"type": "integer", "description": "Incremented with every change."}));
        for field in resource.fields.iter().filter(|field| field.rules.in_meta) {
            meta.insert(field.name.into(), shown_property(field));
        }
        properties.insert("meta".into(), json!({"type": "object", "properties": meta}));
    }
    let required: Vec<&String> = properties.keys().collect();
    json!({"type": "object", "description": prose(shape.doc), "required": required, "properties": properties})
}

pub fn input_schema(route: &Route) -> Value {
    let rules =
        |field: &FieldInfo| if route.body == RequestBody::Patch { field.rules } else { field.rules.for_create() };
    let properties: Map<String, Value> =
        route.fields.iter().map(|field| (field.name.to_string(), property(field, &rules(field)))).collect();
    let mut schema = json!({"type": "object", "additionalProperties": false, "properties": properties});
    if route.body == RequestBody::Patch {
        schema["minProperties"] = json!(1);
    } else {
        let required = route.fields.iter().filter(|field| field.rules.required);
        schema["required"] = json!(required.map(|field| field.name).collect::<Vec<_>>());
    }
    schema
}

/// Returns the schema of a field in responses, with what a program needs to show it: its kind (`x-kind`), the table of the
/// record whose id it is (`x-refers`), and whether people know the record by it (`x-names`).
fn shown_property(field: &FieldInfo) -> Value {
    let mut schema = property(field, &field.rules.for_answers());
    schema["x-kind"] = json!(if field.rules.percent { "percent" } else { field.kind });
    if !field.rules.refers.is_empty() {
        schema["x-refers"] = json!(field.rules.refers);
    }
    if field.rules.names {
        schema["x-names"] = json!(true);
    }
    schema
}

fn property(field: &FieldInfo, rules: &Rules) -> Value {
    let mut schema = (field.schema)(rules);
    schema["description"] = json!(prose(field.doc));
    if let Some(example) = parsed(rules.example) {
        schema["examples"] = json!([example]);
    }
    if let Some(default) = parsed(rules.default) {
        schema["default"] = default;
    }
    schema
}

/// Returns a valid body for a route, from the examples of its fields.
pub fn example(route: &Route) -> Value {
    let pairs = route.fields.iter().filter_map(|field| Some((field.name.to_string(), parsed(field.rules.example)?)));
    Value::Object(pairs.collect())
}

fn parsed(json: &str) -> Option<Value> {
    serde_json::from_str(json).ok()
}

/// Joins the lines of a doc comment.
pub fn prose(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    lines.join(" ")
}

pub fn parts_schema(parts: &[Part]) -> Value {
    let properties: Map<String, Value> = parts
        .iter()
        .map(|Part(name, kind, about)| (name.to_string(), json!({"type": kind, "description": about})))
        .collect();
    let required: Vec<&str> = parts.iter().map(|Part(name, ..)| *name).collect();
    json!({"type": "object", "required": required, "properties": properties})
}
