//! The OpenAPI document and its page, drawn from the registry.

mod responses;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use self::responses::{error_responses, responses};
use crate::error::{Code, FieldCode};
use crate::list;
use crate::record::{DETAIL, FieldInfo, Rules, Shape, Views};
use crate::registry::registry;
use crate::resource::{Method, Part, RequestBody, Resource, Returns, Route};

/// The document.
pub static DOCUMENT: LazyLock<Value> = LazyLock::new(document);
/// The document as it is served.
pub static TEXT: LazyLock<String> = LazyLock::new(|| DOCUMENT.to_string());
/// The page as it is served.
pub static PAGE: LazyLock<String> = LazyLock::new(|| match page() {
    Ok(page) => page,
    Err(error) => format!("The page cannot be rendered: {error}"),
});

const ABOUT: &str =
    "Kantoor manages the records of a small business. Requests and responses are JSON. Every response has \
`data` and `meta`; every error has `error` with a code, a message and the invalid fields.

Lists accept `page` and `per_page`, and return `page`, `per_page`, `total` and `pages` in `meta` and a `Link` \
header. Unknown parameters are ignored and listed in `meta.ignored_params`.

A POST with an `Idempotency-Key` can be repeated for 24 hours: it takes effect once and gets the same response, with \
`X-Idempotent-Replay: true`. A record's `ETag` in `If-Match` prevents you from overwriting a concurrent change. \
`Prefer: handling=lenient` turns unknown fields into `meta.warnings`.";

/// Draws the page of the document.
fn page() -> Result<String, minijinja::Error> {
    let mut templates = minijinja::Environment::new();
    templates.add_filter("json", |value: minijinja::Value| serde_json::to_string_pretty(&value).unwrap_or_default());
    templates.add_template("docs.html", include_str!("docs.html"))?;
    let spec = minijinja::Value::from(minijinja::value::Serde(&*DOCUMENT));
    templates.get_template("docs.html")?.render(minijinja::context! { spec })
}

fn document() -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    schemas.insert("Error".into(), error_schema());
    schemas.insert("Page".into(), page_schema());
    schemas.insert("Total".into(), total_schema());
    schemas.insert("Feed".into(), feed_schema());
    for resource in &registry().resources {
        schemas.insert(schema_name(resource), record_schema(resource, DETAIL));
        for route in &resource.routes {
            let path = paths.entry(route.path.clone()).or_insert_with(|| json!({}));
            path[route.method.name().to_lowercase()] = operation(resource, route);
        }
    }
    let tags: Vec<Value> = registry()
        .resources
        .iter()
        .map(|resource| json!({"name": resource.title, "description": prose(resource.shape.doc)}))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Kantoor",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": {"name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT"},
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "tags": tags,
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "An API key created with `kantoor key create`."},
            },
            "schemas": schemas,
            "responses": error_responses(),
        },
    })
}

fn operation(resource: &Resource, route: &Route) -> Value {
    let mut operation = json!({
        "operationId": operation_id(resource, route),
        "summary": route.summary,
        "tags": [resource.title],
        "x-scope": scopes(route),
        "parameters": parameters(resource, route),
    });
    if route.extension {
        operation["x-extension"] = json!(true);
    }
    if route.takes == RequestBody::File {
        let file =
            json!({"type": "string", "contentMediaType": "application/octet-stream", "description": "25 MiB at most."});
        let name = json!({"type": "string", "description": "File name, instead of the name of the part."});
        let schema = json!({"type": "object", "required": ["file"], "properties": {"file": file, "name": name}});
        operation["requestBody"] = json!({"required": true, "content": {"multipart/form-data": {"schema": schema}}});
    } else if route.takes != RequestBody::Nothing {
        let body = json!({"schema": input_schema(route), "example": example(route)});
        let required = route.takes != RequestBody::Maybe;
        operation["requestBody"] = json!({"required": required, "content": {"application/json": body}});
    }
    operation["responses"] = responses(resource, route);
    operation
}

/// What a key needs, in words.
fn scopes(route: &Route) -> String {
    match (route.scope.as_str(), route.also_needs) {
        ("", _) => "any key".to_string(),
        (own, Some(other)) => format!("{own}, {other}"),
        (own, _) => own.to_string(),
    }
}

/// `listProducts`, `completeTask`
fn operation_id(resource: &Resource, route: &Route) -> String {
    let name = schema_name(resource);
    let action = route.path.rsplit_once("_id}/").or_else(|| route.path.rsplit_once("{id}/")).map(|(_, action)| action);
    let action = action.filter(|_| route.path.len() > resource.path.len());
    match (route.returns, route.takes, route.method, action) {
        (Returns::PageOf(_), _, _, Some(action)) => format!("list{name}_{action}"),
        _ if route.lists() => format!("list{name}s"),
        (Returns::Stream(_), ..) => format!("stream{name}s"),
        (_, _, _, Some(action)) if !action.contains('{') => format!("{action}{name}"),
        (_, RequestBody::Create, ..) if route.path.len() > resource.path.len() => {
            format!("create{name}{}", route.path[resource.path.len() + 1..].replace('/', "_"))
        }
        (_, RequestBody::Create | RequestBody::File, ..) => format!("create{name}"),
        (_, RequestBody::Patch, ..) => format!("update{name}"),
        (_, _, Method::Delete, _) => format!("delete{name}"),
        (_, _, Method::Put, _) => format!("replace{name}"),
        (_, _, Method::Post, _) if route.path.len() > resource.path.len() => {
            format!("{}{name}", route.path[resource.path.len() + 1..].replace('/', "_"))
        }
        (_, _, Method::Post, _) => format!("create{name}"),
        (Returns::Parts(_), _, _, None) if route.path.len() > resource.path.len() => {
            format!("get{name}_{}", route.path[resource.path.len() + 1..].replace('/', "_"))
        }
        _ => format!("get{name}"),
    }
}

fn parameters(resource: &Resource, route: &Route) -> Vec<Value> {
    let mut parameters: Vec<Value> = placeholders(&route.path)
        .map(|name| {
            let own = if name == "id" && !resource.shape.parent.is_empty() {
                resource.shape.parent.trim_end_matches("_id")
            } else {
                resource.shape.name
            };
            let description = format!("The id of the {}.", own.replace('_', " "));
            json!({"name": name, "in": "path", "required": true, "description": description, "schema": {"type": "string"}})
        })
        .collect();
    match route.returns {
        Returns::Page | Returns::Either => {
            parameters.extend(common_parameters(resource).into_iter().chain(list_parameters(resource)));
        }
        Returns::All => parameters.extend(list_parameters(resource)),
        Returns::Feed(_, query) | Returns::Stream(query) => {
            let own =
                query.iter().map(|Part(name, kind, about)| in_query(name, about.to_string(), json!({"type": kind})));
            parameters.extend(own);
        }
        _ => {}
    }
    if let Some((name, scope)) = route.acts_with {
        let description = format!("Also performs the action; this requires the scope `{scope}`.");
        parameters.push(in_query(name, description, json!({"type": "string"})));
    }
    if route.method == Method::Post {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header",
            "description": "1 to 255 visible ASCII characters of your choice; repeated requests with the same key take effect once.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255},
        }));
    }
    if changes_one(resource, route) {
        parameters.push(json!({
            "name": "If-Match", "in": "header", "description": "The `ETag` that the record must have.",
            "schema": {"type": "string"},
        }));
    }
    parameters
}

/// The names between braces in a path.
fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split('}').next())
}

fn changes_one(resource: &Resource, route: &Route) -> bool {
    !route.reads() && route.path.len() > resource.path.len()
}

fn in_query(name: &str, description: String, schema: Value) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": schema})
}

/// The parameters of every list in pages.
fn common_parameters(resource: &Resource) -> Vec<Value> {
    let sorts = resource.list.as_ref().map(|list| list.sorts.clone()).unwrap_or_default();
    let mut parameters: Vec<Value> = list::COMMON
        .iter()
        .map(|(name, description)| {
            let schema = match *name {
                "page" => json!({"type": "integer", "minimum": 1, "default": 1}),
                "per_page" => json!({"type": "integer", "minimum": 1, "maximum": 100, "default": 25}),
                "sort" => json!({"type": "string", "enum": sorts, "default": "created_at"}),
                "order" => json!({"type": "string", "enum": ["asc", "desc"], "default": "desc"}),
                "created_from" | "created_to" => json!({"type": "string", "format": "date"}),
                _ => json!({"type": "string"}),
            };
            in_query(name, description.to_string(), schema)
        })
        .collect();
    if resource.list.as_ref().is_some_and(|list| list.searches) {
        let fields: Vec<&str> =
            resource.fields.iter().filter(|field| field.rules.search).map(|field| field.name).collect();
        let description = format!("Text to search for in {}, ignoring case and accents.", fields.join(", "));
        parameters.push(in_query("search", description, json!({"type": "string"})));
    }
    parameters
}

/// The filters and ranges of a list.
fn list_parameters(resource: &Resource) -> Vec<Value> {
    let mut parameters = Vec::new();
    for field in &resource.fields {
        if field.rules.filter || !field.rules.filter_as.is_empty() {
            let name = if field.rules.filter { field.name } else { field.rules.filter_as };
            let description = format!("Filter by this field. {}", prose(field.doc));
            let mut schema = (field.schema)(&field.rules.for_answers());
            if schema["type"] == "boolean" {
                schema = json!({"type": "string", "enum": ["1", "0", "true", "false"]});
            }
            let values = schema.get_mut("enum").and_then(Value::as_array_mut);
            if let (false, Some(values)) = (field.rules.any.is_empty(), values) {
                values.push(json!(field.rules.any));
            }
            if !field.rules.assumed.is_empty() {
                schema["default"] = json!(field.rules.assumed);
            }
            parameters.push(in_query(name, description, schema));
        }
        if let Some((from, to)) = field.rules.range {
            for (name, word) in [(from, "later"), (to, "earlier")] {
                let description = format!("`{}` on this date or {word} (YYYY-MM-DD).", field.name);
                parameters.push(in_query(name, description, json!({"type": "string", "format": "date"})));
            }
        }
    }
    parameters
}

fn parts_schema(parts: &[Part]) -> Value {
    let properties: Map<String, Value> = parts
        .iter()
        .map(|Part(name, kind, about)| (name.to_string(), json!({"type": kind, "description": about})))
        .collect();
    let required: Vec<&str> = parts.iter().map(|Part(name, ..)| *name).collect();
    json!({"type": "object", "required": required, "properties": properties})
}

fn error_schema() -> Value {
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

fn page_schema() -> Value {
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

fn total_schema() -> Value {
    let total = json!({"type": "integer", "description": "Total number of records."});
    json!({"type": "object", "description": "Length of a list.", "required": ["total"], "properties": {"total": total}})
}

fn feed_schema() -> Value {
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
fn schema_name(resource: &Resource) -> String {
    let words = resource.shape.name.split('_');
    words
        .map(|word| {
            let (first, rest) = word.split_at(1);
            format!("{}{rest}", first.to_uppercase())
        })
        .collect()
}

/// The resource whose records are in a table.
fn of_table<'r>(resource: &'r Resource, table: &str) -> &'r Resource {
    registry().of_table(table).unwrap_or(resource)
}

/// The schema of what a view shows: the component when it is the whole record.
fn seen_schema(resource: &Resource, view: Views) -> Value {
    let own = record_schema(resource, view);
    if own["properties"] == record_schema(resource, DETAIL)["properties"] {
        return json!({"$ref": format!("#/components/schemas/{}", schema_name(resource))});
    }
    own
}

fn record_schema(resource: &Resource, view: Views) -> Value {
    let shape: &Shape = resource.shape;
    let mut properties = Map::new();
    properties.insert("id".into(), json!({"type": "string", "format": "uuid", "description": "Its id."}));
    for field in resource.fields.iter().filter(|field| field.rules.views.includes(view)) {
        properties.insert(field.name.into(), property(field, &field.rules.for_answers()));
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
            meta.insert(field.name.into(), property(field, &field.rules.for_answers()));
        }
        properties.insert("meta".into(), json!({"type": "object", "properties": meta}));
    }
    let required: Vec<&String> = properties.keys().collect();
    json!({"type": "object", "description": prose(shape.doc), "required": required, "properties": properties})
}

fn input_schema(route: &Route) -> Value {
    let rules =
        |field: &FieldInfo| if route.takes == RequestBody::Patch { field.rules } else { field.rules.for_create() };
    let properties: Map<String, Value> =
        route.fields.iter().map(|field| (field.name.to_string(), property(field, &rules(field)))).collect();
    let mut schema = json!({"type": "object", "additionalProperties": false, "properties": properties});
    if route.takes == RequestBody::Patch {
        schema["minProperties"] = json!(1);
    } else {
        let required = route.fields.iter().filter(|field| field.rules.required);
        schema["required"] = json!(required.map(|field| field.name).collect::<Vec<_>>());
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

/// A good body for a route, from the examples of its fields.
pub fn example(route: &Route) -> Value {
    let pairs = route.fields.iter().filter_map(|field| Some((field.name.to_string(), parsed(field.rules.example)?)));
    Value::Object(pairs.collect())
}

fn parsed(json: &str) -> Option<Value> {
    serde_json::from_str(json).ok()
}

/// The lines of a doc comment as one text.
fn prose(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    lines.join(" ")
}
