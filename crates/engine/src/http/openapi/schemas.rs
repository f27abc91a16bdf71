//! The schemas of the OpenAPI document: records, request bodies, and the envelope.

use serde_json::{Map, Value, json};

use super::components::{TAKES_NULL, reference};
pub use super::names::schema_name;
use crate::error::{Code, FieldCode};
use crate::record::{CREATED, DETAIL, FieldInfo, LIST, Rules, Shape, UPDATED, Views, decimal_pattern};
use crate::registry::registry;
use crate::resource::{Method, Part, RequestBody, Resource, Route};
use crate::text::{filled_pattern, pattern};

pub fn error_schema() -> Value {
    let codes: Vec<&str> = registry().error_codes().into_iter().map(Code::wire).collect();
    let field_codes: Vec<&str> = FieldCode::ALL.iter().map(|code| code.wire()).collect();
    json!({
        "type": "object",
        "description": "An error response.",
        "required": ["error", "data", "meta"],
        "properties": {
            "error": {
                "title": "ErrorBody",
                "type": "object",
                "required": ["code", "message", "details"],
                "properties": {
                    "code": {"type": "string", "enum": codes, "description": "Error code, for programs."},
                    "message": {"type": "string", "description": "Error message, for people."},
                    "details": {
                        "type": "array",
                        "description": "The invalid fields; for `in_use`, the types of records that need the record.",
                        "items": {
                            "title": "FieldError",
                            "type": "object",
                            "required": ["field", "code", "message"],
                            "properties": {
                                "field": {"type": "string", "description": "The path of the field, such as `rows[2].quantity`."},
                                "code": {"type": "string", "enum": field_codes},
                                "message": {"type": "string"},
                                "count": {"type": "integer", "description": "For `in_use`, how many there are; counted up to 1,000."},
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
            "total_is_minimum": minimum_schema(),
            "pages": {"type": "integer", "description": "Total number of pages."},
            "ignored_params": {
                "type": "array", "items": {"type": "string"}, "description": "Unknown parameters, which were ignored.",
            },
            "warnings": warnings_schema(),
        },
    })
}

pub fn total_schema() -> Value {
    let total = json!({"type": "integer", "description": "Total number of records."});
    json!({"type": "object", "description": "Length of a list.", "required": ["total"],
        "properties": {"total": total, "total_is_minimum": minimum_schema(), "warnings": warnings_schema()}})
}

fn minimum_schema() -> Value {
    json!({
        "type": "boolean",
        "description": "`true` if a search has more matches than were counted: `total` and `pages` are those that were. \
                        Absent otherwise.",
    })
}

pub fn feed_schema() -> Value {
    json!({
        "type": "object",
        "description": "Position in a feed.",
        "required": ["last_seq", "has_more"],
        "properties": {
            "last_seq": {"type": "integer", "description": "Send it as `after` to continue."},
            "has_more": {"type": "boolean", "description": "Whether more events are available."},
            "warnings": warnings_schema(),
        },
    })
}

/// What responses say beside their data.
pub fn meta_schema() -> Value {
    json!({
        "type": "object", "description": "Remarks about the request.", "properties": {"warnings": warnings_schema()},
    })
}

fn warnings_schema() -> Value {
    json!({
        "type": "array", "items": {"type": "string"},
        "description": "What was accepted, but is probably not what you meant; absent if there is nothing to warn of.",
    })
}

/// The values of parameters that many lists have.
pub fn order_schema() -> Value {
    json!({"type": "string", "enum": ["asc", "desc"], "description": "Ascending or descending."})
}

/// The values of filters by yes or no.
pub fn yes_or_no_schema() -> Value {
    json!({"type": "string", "enum": ["1", "0", "true", "false"], "description": "Yes or no."})
}

/// Returns the resource of a table.
pub fn of_table<'r>(resource: &'r Resource, table: &str) -> &'r Resource {
    registry().of_table(table).unwrap_or(resource)
}

/// Returns the schema of a view: the component if it is the whole record, else with its name as the title. Views with the
/// same members are the same.
pub fn seen_schema(resource: &Resource, view: Views) -> Value {
    let (mut own, name) = (record_schema(resource, view), schema_name(resource));
    let mut same = [DETAIL, LIST, CREATED, UPDATED]
        .into_iter()
        .filter(|other| record_schema(resource, *other)["properties"] == own["properties"]);
    own["title"] = json!(match same.next() {
        Some(DETAIL) => return json!({"$ref": reference(&name)}),
        Some(LIST) => format!("{name}Summary"),
        Some(CREATED) => format!("Created{name}"),
        Some(UPDATED) => format!("Updated{name}"),
        _ => format!("Changed{name}"),
    });
    own
}

pub fn record_schema(resource: &Resource, view: Views) -> Value {
    let shape: &Shape = resource.shape;
    let mut properties = Map::new();
    properties.insert("id".into(), json!({"type": "string", "description": "Its id."}));
    for field in resource.fields.iter().filter(|field| field.rules.views.includes(view)) {
        properties.insert(field.name.into(), shown_property(field));
    }
    for address in shape.addresses.iter().filter(|address| address.views.includes(view)) {
        let schema = json!({"type": "string", "format": "uri", "description": address.doc});
        properties.insert(address.name.into(), schema);
    }
    properties.extend(shape.parts.iter().map(part_property));
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
    let sent = |field: &FieldInfo| sent_property(field, &rules(field), route.method);
    let properties: Map<String, Value> =
        route.fields.iter().map(|field| (field.name.to_string(), sent(field))).collect();
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
    let mut schema = property(field, &Rules { create: false, patch: false, ..field.rules.for_answers() });
    schema["x-kind"] = json!(if field.rules.percent { "percent" } else { field.kind });
    if !field.rules.refers.is_empty() {
        schema["x-refers"] = json!(field.rules.refers);
    }
    if field.rules.names {
        schema["x-names"] = json!(true);
    }
    schema
}

/// Returns the schema of a field in bodies. Decimals may be sent as strings too, since floating-point numbers of some languages
/// cannot represent them. Defaults are only described: generators make clients send them, and a PATCH would reset what it omits.
fn sent_property(field: &FieldInfo, rules: &Rules, method: Method) -> Value {
    let mut schema = property(field, rules);
    let default = schema.as_object_mut().and_then(|members| members.shift_remove("default"));
    if let (Some(default), Some(about)) = (default.filter(|_| method != Method::Patch), schema["description"].as_str())
    {
        schema["description"] = json!(format!("{about} Default: `{default}`."));
    }
    if let Some(places) = decimal_places(field) {
        schema["type"] = json!(["number", "string"]);
        schema["pattern"] = json!(decimal_pattern(places));
    }
    let is_patch = method == Method::Patch;
    if rules.required || is_patch && rules.kept {
        if schema["pattern"] == pattern(rules.refused) {
            schema["minLength"] = json!(1);
            schema["pattern"] = json!(filled_pattern(rules.refused));
        }
    } else if !is_patch || rules.nullable || rules.resets || (field.can_be_none)() {
        // In a new record, `null` means that the field is not sent.
        schema[TAKES_NULL] = json!(true);
    }
    schema
}

/// Returns how many decimals a field has, if it is a decimal number.
fn decimal_places(field: &FieldInfo) -> Option<u32> {
    match field.kind {
        "amount" => Some(2),
        "price" => Some(6),
        _ => None,
    }
}

fn property(field: &FieldInfo, rules: &Rules) -> Value {
    let mut schema = value_schema(field, rules);
    schema["description"] = json!(prose(field.doc));
    if let Some(places) = decimal_places(field) {
        schema["description"] = json!(format!("{} A decimal number with up to {places} decimals.", prose(field.doc)));
    }
    if let Some(example) = parsed(rules.example) {
        schema["examples"] = json!([example]);
    }
    if let Some(default) = parsed(rules.default) {
        schema["default"] = default;
    }
    schema
}

/// Returns the schema of the values of a field. An optional date is a date or an empty text; responses have null instead of an
/// empty one where they can.
pub fn value_schema(field: &FieldInfo, rules: &Rules) -> Value {
    let mut schema = (field.schema)(rules);
    let format = match field.kind {
        "day" => "date",
        "moment" => "date-time",
        _ => return schema,
    };
    // What is shown of a field that cannot be cleared always has a value.
    let is_sent = rules.create || rules.patch;
    let is_never_empty =
        rules.required || (rules.kept && !is_sent) || (rules.nullable && !(is_sent && format == "date"));
    if let Some(members) = schema.as_object_mut() {
        for key in ["pattern", "maxLength", "anyOf"] {
            members.shift_remove(key);
        }
        if !is_never_empty {
            members.shift_remove("type");
        }
    }
    if is_never_empty {
        schema["format"] = json!(format);
    } else {
        schema["anyOf"] = json!([{"type": "string", "format": format}, {"type": "string", "const": ""}]);
    }
    schema
}

/// Returns a valid body for a route, from the examples of its fields.
pub fn example(route: &Route) -> Value {
    let example = |field: &FieldInfo| match route.body {
        RequestBody::Patch if !field.rules.changed_example.is_empty() => parsed(field.rules.changed_example),
        _ => parsed(field.rules.example),
    };
    let pairs = route.fields.iter().filter_map(|field| Some((field.name.to_string(), example(field)?)));
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
    let properties: Map<String, Value> = parts.iter().map(part_property).collect();
    let required: Vec<&str> =
        parts.iter().filter(|Part(_, kind, _)| !kind.ends_with('?')).map(|Part(name, ..)| *name).collect();
    json!({"type": "object", "required": required, "properties": properties})
}

fn part_property(Part(name, kind, about): &Part) -> (String, Value) {
    let mut schema = match kind.trim_end_matches('?') {
        kind @ ("date" | "date-time") => json!({"type": "string", "format": kind}),
        "date-time or null" => json!({"type": ["string", "null"], "format": "date-time"}),
        kind @ ("date or empty" | "date-time or empty") => {
            let format = kind.trim_end_matches(" or empty");
            json!({"anyOf": [{"type": "string", "format": format}, {"type": "string", "const": ""}]})
        }
        "boolean or null" => json!({"type": ["boolean", "null"]}),
        "string or null" => json!({"type": ["string", "null"]}),
        "object or null" => json!({"type": ["object", "null"]}),
        "array" => json!({"type": "array", "items": {}}),
        kind => json!({"type": kind}),
    };
    schema["description"] = json!(about);
    (name.to_string(), schema)
}
