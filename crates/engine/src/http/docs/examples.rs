//! The examples of the reference: commands that run as they are, and responses. Ids in them are looked up by the command
//! itself, so that they exist.

use serde_json::{Map, Value, json};

use crate::http::openapi::{self, DOCUMENT, resolved};
use crate::registry::registry;
use crate::resource::{Method, RequestBody, Resource, Returns, Route};

/// Returns the parts of a command: the variables with the lists that they are found in, the path, and the body as text in
/// single quotes.
pub fn request(resource: &Resource, route: &Route) -> Value {
    let mut variables = Vec::new();
    let path = with_variables(&route.path, &mut variables);
    let body = match route.body {
        RequestBody::Nothing | RequestBody::File | RequestBody::Maybe => String::new(),
        _ => body(resource, route, &mut variables),
    };
    let operation = openapi::names::operation_id(resource, route);
    let (needed, note) = (needed(&operation), note(&operation));
    let is_needed = |variable: &Value| needed.iter().any(|own| own["name"] == variable["name"]);
    variables.retain(|variable| !is_needed(variable));
    let variables: Vec<Value> = needed.iter().cloned().chain(variables).collect();
    json!({
        "note": note,
        "variables": variables,
        "method": if route.method == Method::Get { "" } else { route.method.name() },
        "path": path,
        "body": body,
        "uploads": route.body == RequestBody::File,
        "downloads": route.returns == Returns::Content,
        "streams": matches!(route.returns, Returns::Stream(_)),
    })
}

/// Returns the variables for what an operation needs.
fn needed(operation: &str) -> Vec<Value> {
    let own = registry().needed.iter().find(|needed| needed.operations.contains(&operation));
    let lookups = own.map_or(&[][..], |needed| needed.lookups);
    let names: Vec<String> = lookups.iter().map(|lookup| lookup.name.to_string()).collect();
    let shown = lookups.iter().map(|lookup| {
        json!({
            "name": lookup.name, "list": lookup.path, "method": lookup.method, "body": quoted(lookup.body, &names),
            "table": lookup.table, "key": lookup.key,
        })
    });
    shown.collect()
}

/// Returns what callers must know before the example.
fn note(operation: &str) -> &'static str {
    let note = registry().notes.iter().find(|(operations, _)| operations.contains(&operation));
    note.map_or("", |(_, note)| note)
}

/// Returns a body for single quotes of the shell, with these variables in it.
fn quoted(body: &str, names: &[String]) -> String {
    let mut text = body.replace('\'', "'\\''");
    for name in names {
        text = text.replace(&format!("\"${name}\""), &format!("\"'\"${name}\"'\""));
    }
    text
}

/// Replaces the placeholders of a path by shell variables.
fn with_variables(path: &str, variables: &mut Vec<Value>) -> String {
    let mut done = String::new();
    for segment in path.split('/').skip(1) {
        if let Some(name) = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            let name = name.to_uppercase();
            // The first id of the list before it.
            let is_list = DOCUMENT["paths"][before(path, segment)]["get"].is_object();
            variables.push(json!({"name": name, "list": if is_list { done.as_str() } else { "" }}));
            done.push_str(&format!("/${name}"));
        } else {
            done.push_str(&format!("/{segment}"));
        }
    }
    done
}

/// Returns the part of a path before a segment.
fn before<'p>(path: &'p str, segment: &str) -> &'p str {
    path.find(segment).map_or(path, |place| path[..place].trim_end_matches('/'))
}

/// Returns the example of a body. Required references are looked up.
fn body(resource: &Resource, route: &Route, variables: &mut Vec<Value>) -> String {
    let mut body = openapi::example(route);
    let mut names = Vec::new();
    for field in route.fields.iter().filter(|field| field.rules.required && !field.rules.refers.is_empty()) {
        let list = registry().of_table(field.rules.refers).map_or("", |other| other.path.as_str());
        let mut name = field.name.to_uppercase();
        if list == resource.path {
            name = format!("OTHER_{name}");
        }
        variables.push(json!({"name": name, "list": if list.contains('{') { "" } else { list }}));
        body[field.name] = json!(format!("${name}"));
        names.push(name);
    }
    quoted(&serde_json::to_string_pretty(&body).unwrap_or_default(), &names)
}

/// Returns an example of the values of a schema, for a property of this name.
pub fn value(schema: &Value, name: &str) -> Value {
    example(schema, name, 0)
}

fn example(schema: &Value, name: &str, depth: usize) -> Value {
    let own = resolved(schema);
    let one = |key: &str| own[key].as_array().and_then(|all| all.first());
    if let Some(example) = one("examples").or_else(|| one("enum")).or_else(|| own.get("const")) {
        return example.clone();
    }
    if let Some(part) = one("allOf").or_else(|| one("anyOf")).or_else(|| one("oneOf")) {
        return example(part, name, depth);
    }
    let kind = own["type"].as_str().or_else(|| own["type"][0].as_str()).unwrap_or_default();
    match (kind, own["format"].as_str().unwrap_or_default()) {
        // Deeper ones do not help.
        ("object", _) if depth > 3 => json!({}),
        ("object", _) => {
            let properties = own["properties"].as_object().into_iter().flatten();
            let shown = properties.filter(|(name, _)| name.as_str() != "warnings");
            Value::Object(
                shown.map(|(name, part)| (name.clone(), example(part, name, depth + 1))).collect::<Map<_, _>>(),
            )
        }
        ("array", _) if depth > 3 => json!([]),
        ("array", _) => match example(&own["items"], name, depth + 1) {
            Value::Null => json!([]),
            item => json!([item]),
        },
        ("integer", _) => json!(1),
        ("number", _) => json!(12.5),
        ("boolean", _) => json!(false),
        ("string", "date") => json!("2026-05-04"),
        ("string", "date-time") => json!("2026-05-04T09:30:00.000Z"),
        ("string", _) if name == "id" => json!("01a1dd45-f924-76b0-846f-7f8a31cb89aa"),
        ("string", _) => json!(""),
        _ => Value::Null,
    }
}
