//! The OpenAPI document, generated from the registry.

mod components;
mod examples;
pub mod names;
mod responses;
mod schemas;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use self::components::{Components, reference};
pub use self::examples::{event_schema, example_record};
use self::names::operation_id;
use self::responses::{changes_one, error_responses, responses};
use self::schemas::{
    error_schema, feed_schema, input_schema, meta_schema, order_schema, page_schema, record_schema, schema_name,
    total_schema, value_schema, yes_or_no_schema,
};
pub use self::schemas::{example, prose};
use crate::list;
use crate::record::{DETAIL, Rules};
use crate::registry::registry;
use crate::resource::{Method, Part, RequestBody, Resource, Returns, Route};
use crate::text::{CONTROL, pattern};

/// The document.
pub static DOCUMENT: LazyLock<Value> = LazyLock::new(|| examples::described(document()));
/// The document as it is served.
pub static TEXT: LazyLock<String> = LazyLock::new(|| DOCUMENT.to_string());
const ABOUT: &str =
    "Kantoor manages the records of a small business. Requests and responses are JSON. Every response has \
`data` and `meta`; every error has `error` with a code, a message and the invalid fields.

Lists accept `page` and `per_page`, and return `page`, `per_page`, `total` and `pages` in `meta` and a `Link` \
header. Unknown parameters are ignored and listed in `meta.ignored_params`, and values that no record can have in `meta.warnings`; with `Prefer: handling=strict` both are a 422.

A POST with an `Idempotency-Key` can be repeated for 24 hours: it takes effect once and gets the same response, with \
`X-Idempotent-Replay: true`. A record's `ETag` in `If-Match` prevents you from overwriting a concurrent change. \
`Prefer: handling=lenient` turns unknown fields into `meta.warnings`. In a new record, `null` is the same as no value.";

fn document() -> Value {
    let mut paths = Map::new();
    let mut components = Components::default();
    components.add("Error", error_schema());
    components.add("Meta", meta_schema());
    components.add("Page", page_schema());
    components.add("Total", total_schema());
    components.add("Feed", feed_schema());
    components.add("SortOrder", order_schema());
    components.add("YesOrNo", yes_or_no_schema());
    // All records first: their parts have precedence over those of bodies that differ.
    for resource in registry().resources.iter().filter(|resource| has_records(resource)) {
        components.add(&schema_name(resource), record_schema(resource, DETAIL));
    }
    for resource in &registry().resources {
        for route in &resource.routes {
            let path = paths.entry(route.path.clone()).or_insert_with(|| json!({}));
            path[route.method.name().to_lowercase()] = operation(resource, route, &mut components);
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
            "schemas": components.0,
            "responses": error_responses(),
        },
    })
}

/// Whether a response has records of a resource.
pub fn has_records(resource: &Resource) -> bool {
    let shows = |route: &Route| {
        matches!(route.returns, Returns::Page | Returns::All | Returns::Either | Returns::Item(_) | Returns::Made(_))
    };
    resource.is_kept() || resource.routes.iter().any(shows)
}

/// Returns what a reference refers to, or the value itself if it is none.
pub fn resolved(schema: &Value) -> &Value {
    let pointer = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
    pointer.and_then(|pointer| DOCUMENT.pointer(pointer)).unwrap_or(schema)
}

fn operation(resource: &Resource, route: &Route, components: &mut Components) -> Value {
    let (id, record) = (operation_id(resource, route), schema_name(resource));
    let mut parameters = parameters(resource, route);
    for parameter in &mut parameters {
        components.share_parameter(&record, parameter);
    }
    let mut operation = json!({
        "operationId": id,
        "summary": route.summary,
        "tags": [resource.title],
        "x-scope": scopes(route),
        "parameters": parameters,
    });
    if route.extension {
        operation["x-extension"] = json!(true);
    }
    if route.body == RequestBody::File {
        let file = json!({"type": "string", "format": "binary", "description": "25 MiB at most."});
        let name = json!({"type": "string", "description": "File name, instead of the name of the part."});
        let properties = json!({"file": file, "name": name});
        let mut schema =
            json!({"type": "object", "additionalProperties": false, "required": ["file"], "properties": properties});
        components.share_body(&id, &record, &mut schema);
        operation["requestBody"] = json!({"required": true, "content": {"multipart/form-data": {"schema": schema}}});
    } else if route.body != RequestBody::Nothing {
        let mut schema = input_schema(route);
        components.share_body(&id, &record, &mut schema);
        let body = json!({"schema": schema, "example": example(route)});
        let required = route.body != RequestBody::Maybe;
        operation["requestBody"] = json!({"required": required, "content": {"application/json": body}});
    }
    operation["responses"] = responses(resource, route);
    for response in operation["responses"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(schema) = response.pointer_mut("/content/application~1json/schema") {
            components.share_response(&id, &record, schema);
        }
    }
    operation
}

/// Returns the required scopes as text.
fn scopes(route: &Route) -> String {
    match (route.scope.as_str(), route.also_needs) {
        ("", _) => "any key".to_string(),
        (own, Some(other)) => format!("{own}, {other}"),
        (own, None) => route.instead.map_or(own.to_string(), |other| format!("{own} or {other}")),
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
        Returns::Found(_, query)
        | Returns::Report(_, query)
        | Returns::Feed(_, query)
        | Returns::PageOfEvents(_, query)
        | Returns::Stream(query) => {
            parameters.extend(query.iter().map(asked));
        }
        _ => parameters.extend(route.query.iter().map(asked)),
    }
    if let Some((name, scope)) = route.acts_with {
        let description = format!("Also performs the action; this requires the scope `{scope}`.");
        parameters.push(in_query(name, description, json!({"type": "string"})));
    }
    if route.method == Method::Post {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header",
            "description": "1 to 255 visible ASCII characters of your choice; repeated requests with the same key take effect once.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
        }));
    }
    if changes_one(resource, route) {
        parameters.push(json!({
            "name": "If-Match", "in": "header", "description": "The `ETag` that the record must have.",
            "schema": {"type": "string", "pattern": "^[ -~]*$"},
        }));
    }
    parameters
}

/// Returns the placeholders of a path.
fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split('}').next())
}

/// Returns the parameter that a part describes: a type, then the least and the greatest number, or the greatest length.
fn asked(Part(name, kind, about): &Part) -> Value {
    let mut words = kind.split(' ');
    let kind = words.next().unwrap_or_default();
    let mut schema = match kind {
        "date" => json!({"type": "string", "format": "date"}),
        kind => json!({"type": kind}),
    };
    let keys = if kind == "integer" { ["minimum", "maximum"] } else { ["maxLength", ""] };
    for (key, limit) in keys.into_iter().zip(words.filter_map(|word| word.parse::<i64>().ok())) {
        schema[key] = json!(limit);
    }
    if *name == "order" {
        schema = json!({"$ref": reference("SortOrder")});
    }
    in_query(name, about.to_string(), schema)
}

fn in_query(name: &str, description: String, mut schema: Value) -> Value {
    let is_limited = ["pattern", "enum", "format"].iter().any(|key| schema.get(key).is_some());
    if schema["type"] == "string" && !is_limited {
        schema["pattern"] = json!(pattern("\\u0000"));
    }
    json!({"name": name, "in": "query", "description": description, "schema": schema})
}

/// Returns the parameters of every paginated list.
fn common_parameters(resource: &Resource) -> Vec<Value> {
    let sorts = resource.list.as_ref().map(|list| list.sorts.clone()).unwrap_or_default();
    let mut parameters: Vec<Value> = list::COMMON
        .iter()
        .map(|(name, description)| {
            let schema = match *name {
                // Without defaults, which generated clients would send: `page` alone turns some lists into pages.
                "page" => json!({"type": "integer", "minimum": 1}),
                // More than the maximum is not refused.
                "per_page" => json!({"type": "integer", "minimum": 1}),
                "sort" => json!({"type": "string", "enum": sorts}),
                "order" => json!({"$ref": reference("SortOrder")}),
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
        parameters.push(in_query("search", description, json!({"type": "string", "maxLength": list::MAX_SEARCH})));
    }
    let sums = resource.list.as_ref().map(|list| list.sums.join(", ")).filter(|sums| !sums.is_empty());
    if let Some(sums) = sums {
        let description = format!("Fields to add up over all pages, in `meta.sums`, separated by commas: {sums}.");
        parameters.push(in_query("sums", description, json!({"type": "string"})));
    }
    parameters
}

/// Returns the filters and ranges of a list.
fn list_parameters(resource: &Resource) -> Vec<Value> {
    let mut parameters = Vec::new();
    for field in &resource.fields {
        let own = if field.rules.filter { field.name } else { "" };
        let names = [own, field.rules.filter_as, field.rules.filter_also];
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            let several = if field.takes_several() { " Several values are separated by commas." } else { "" };
            let mut description = format!("Filter by this field. {}{several}", prose(field.doc));
            // The limits of what is sent hold for values that the server sets as well. What no record has matches nothing.
            let rules = Rules { create: true, nullable: false, refused: CONTROL, ..field.rules.for_answers() };
            let mut schema = value_schema(field, &rules);
            // An address that nobody can have matches nothing.
            if field.is_address() {
                schema = json!({"type": "string"});
            }
            if schema["type"] == "boolean" {
                schema = json!({"$ref": reference("YesOrNo")});
            }
            let values = schema.get_mut("enum").and_then(Value::as_array_mut);
            if let (false, Some(values)) = (field.rules.any.is_empty(), values) {
                values.push(json!(field.rules.any));
            }
            if !field.rules.assumed.is_empty() {
                description.push_str(&format!(" `{}` by default.", field.rules.assumed));
            }
            parameters.push(in_query(name, description, schema));
        }
        if !field.rules.filter_filled.is_empty() {
            let description = format!("Whether `{}` has a value.", field.name);
            parameters.push(in_query(field.rules.filter_filled, description, json!({"$ref": reference("YesOrNo")})));
        }
        let when = field.rules.filter_when;
        if !when.parameter.is_empty() {
            parameters.push(in_query(when.parameter, when.doc.to_string(), json!({"$ref": reference("YesOrNo")})));
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
