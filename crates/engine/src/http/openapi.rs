//! The OpenAPI document and its page, generated from the registry.

mod responses;
mod schemas;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use self::responses::{changes_one, error_responses, responses};
pub use self::schemas::example;
use self::schemas::{
    error_schema, feed_schema, input_schema, page_schema, prose, record_schema, schema_name, total_schema,
};
use crate::list;
use crate::record::DETAIL;
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

/// Renders the page of the document.
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
    if route.body == RequestBody::File {
        let file =
            json!({"type": "string", "contentMediaType": "application/octet-stream", "description": "25 MiB at most."});
        let name = json!({"type": "string", "description": "File name, instead of the name of the part."});
        let schema = json!({"type": "object", "required": ["file"], "properties": {"file": file, "name": name}});
        operation["requestBody"] = json!({"required": true, "content": {"multipart/form-data": {"schema": schema}}});
    } else if route.body != RequestBody::Nothing {
        let body = json!({"schema": input_schema(route), "example": example(route)});
        let required = route.body != RequestBody::Maybe;
        operation["requestBody"] = json!({"required": required, "content": {"application/json": body}});
    }
    operation["responses"] = responses(resource, route);
    operation
}

/// Returns the required scopes as text.
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
    match (route.returns, route.body, route.method, action) {
        (Returns::PageOf(_) | Returns::PageOfEvents(..), _, _, Some(action)) => format!("list{name}_{action}"),
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
        Returns::Feed(_, query) | Returns::PageOfEvents(_, query) | Returns::Stream(query) => {
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

/// Returns the placeholders of a path.
fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split('}').next())
}

fn in_query(name: &str, description: String, schema: Value) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": schema})
}

/// Returns the parameters of every paginated list.
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

/// Returns the filters and ranges of a list.
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
