//! The responses of the OpenAPI document: the success and the errors of each route.

use serde_json::{Map, Value, json};

use super::schemas::{of_table, parts_schema, seen_schema};
use crate::error::Code;
use crate::http::reply;
use crate::record::{CREATED, LIST};
use crate::registry::registry;
use crate::resource::{Method, Part, RequestBody, Resource, Returns, Route};

/// Returns the responses of a route, by status.
pub fn responses(resource: &Resource, route: &Route) -> Value {
    let mut responses = Map::new();
    let (status, response) = success(resource, route);
    responses.insert(status.into(), response);
    for code in errors(resource, route) {
        let status = reply::status(code).as_u16().to_string();
        responses
            .entry(status.clone())
            .or_insert_with(|| json!({"$ref": format!("#/components/responses/{}", response_name(&status))}));
    }
    responses.sort_keys();
    Value::Object(responses)
}

/// Returns the status and the response of a successful request.
fn success(resource: &Resource, route: &Route) -> (&'static str, Value) {
    let (status, description, schema) = contents(resource, route);
    let mut response = json!({"description": description});
    if let Some((data, meta)) = schema {
        let meta = json!({"$ref": if meta.is_empty() { "#/components/schemas/Meta" } else { meta }});
        let schema =
            json!({"type": "object", "required": ["data", "meta"], "properties": {"data": data, "meta": meta}});
        response["content"] = json!({"application/json": {"schema": schema}});
    }
    if route.returns == Returns::Content {
        // Any type, as octets first: generators know no others.
        let octets = json!({"schema": {"type": "string", "format": "binary"}});
        response["content"] = json!({"application/octet-stream": octets, "*/*": octets});
    }
    if matches!(route.returns, Returns::Stream(_)) {
        response["content"] = json!({"text/event-stream": {"schema": {"type": "string"}}});
    }
    let headers = headers(route);
    if !headers.is_null() {
        response["headers"] = headers;
    }
    (status, response)
}

/// Returns the status, the description, and the schemas of `data` and `meta` if the response is JSON.
fn contents(resource: &Resource, route: &Route) -> (&'static str, String, Option<(Value, &'static str)>) {
    let name = resource.shape.name.replace('_', " ");
    match route.returns {
        Returns::All => {
            let list = json!({"type": "array", "items": seen_schema(resource, LIST)});
            (
                "200",
                format!("All {}.", resource.shape.table.replace('_', " ")),
                Some((list, "#/components/schemas/Total")),
            )
        }
        Returns::Page => {
            let item = seen_schema(resource, LIST);
            let page = json!({"type": "array", "items": item});
            (
                "200",
                format!("A page of {}.", resource.shape.table.replace('_', " ")),
                Some((page, "#/components/schemas/Page")),
            )
        }
        Returns::PageOf(table) => {
            let page = json!({"type": "array", "items": seen_schema(of_table(resource, table), LIST)});
            ("200", format!("A page of {}.", table.replace('_', " ")), Some((page, "#/components/schemas/Page")))
        }
        Returns::Either => {
            let list = json!({"type": "array", "items": seen_schema(resource, LIST)});
            let description = "All records, newest first, with only `total` in `meta`; one page of them if `page` or `per_page` is sent. The other parameters apply to pages.";
            ("200", description.to_string(), Some((list, "#/components/schemas/Total")))
        }
        Returns::CreatedParts(parts) => {
            ("201", "The record that was created.".to_string(), Some((parts_schema(parts), "")))
        }
        Returns::StartedParts(parts) => {
            ("202", format!("The {name}, which may go on after the response."), Some((parts_schema(parts), "")))
        }
        Returns::Parts(parts) if route.body == RequestBody::Create => {
            ("201", format!("The new {name}."), Some((parts_schema(parts), "")))
        }
        Returns::Parts(parts) | Returns::Report(parts, _) => {
            ("200", "Details.".to_string(), Some((parts_schema(parts), "")))
        }
        Returns::Found(parts, _) => {
            let list = json!({"type": "array", "items": parts_schema(parts)});
            ("200", "What was found.".to_string(), Some((list, "")))
        }
        Returns::ListOfParts(parts) => {
            let list = json!({"type": "array", "items": parts_schema(parts)});
            ("200", "Details.".to_string(), Some((list, "#/components/schemas/Total")))
        }
        Returns::Feed(parts, _) => {
            let list = json!({"type": "array", "items": event_schema(parts)});
            ("200", "Events in order.".to_string(), Some((list, "#/components/schemas/Feed")))
        }
        Returns::PageOfEvents(parts, _) => {
            let list = json!({"type": "array", "items": event_schema(parts)});
            ("200", "A page of events, newest first.".to_string(), Some((list, "#/components/schemas/Page")))
        }
        Returns::Stream(_) => ("200", "Server-sent events, until the client disconnects.".to_string(), None),
        Returns::Made(view) => {
            ("201", "The record that was created.".to_string(), Some((seen_schema(resource, view), "")))
        }
        Returns::CreatedOf(table) => (
            "201",
            "The record that was created.".to_string(),
            Some((seen_schema(of_table(resource, table), CREATED), "")),
        ),
        Returns::Content => ("200", format!("The content of the {name}."), None),
        Returns::Item(CREATED) if matches!(route.body, RequestBody::Create | RequestBody::File) => {
            ("201", format!("The new {name}."), Some((seen_schema(resource, CREATED), "")))
        }
        Returns::Item(view) => ("200", format!("The {name}."), Some((seen_schema(resource, view), ""))),
        Returns::Nothing => ("204", format!("The {name} was deleted."), None),
    }
}

fn event_schema(parts: &[Part]) -> Value {
    let mut schema = parts_schema(parts);
    schema["title"] = json!("Event");
    schema
}

/// Returns the headers of a response, except those that every response has.
fn headers(route: &Route) -> Value {
    match route.returns {
        Returns::Page | Returns::PageOf(_) | Returns::PageOfEvents(..) | Returns::Either => {
            json!({"Link": header("First, previous, next and last page.")})
        }
        Returns::Item(CREATED) if matches!(route.body, RequestBody::Create | RequestBody::File) => {
            json!({"Location": header("The path of the record."), "ETag": header("The version of the record.")})
        }
        Returns::Item(_) => json!({"ETag": header("The version of the record.")}),
        Returns::Made(_) | Returns::CreatedOf(_) | Returns::CreatedParts(_) => {
            json!({"Location": header("The path of the record."), "ETag": header("The version of the record.")})
        }
        Returns::Nothing | Returns::All | Returns::Content | Returns::Parts(_) | Returns::ListOfParts(_) => Value::Null,
        Returns::StartedParts(_)
        | Returns::Found(..)
        | Returns::Report(..)
        | Returns::Feed(..)
        | Returns::Stream(_) => Value::Null,
    }
}

fn header(description: &str) -> Value {
    json!({"description": description, "schema": {"type": "string"}})
}

/// Returns the errors of a route.
fn errors(resource: &Resource, route: &Route) -> Vec<Code> {
    let mut codes = vec![Code::Unauthorized, Code::Forbidden, Code::TooManyRequests, Code::Overloaded];
    if route.path.contains('{') {
        codes.push(Code::NotFound);
    }
    let asks = matches!(route.returns, Returns::Stream(_) | Returns::Found(..) | Returns::Report(..));
    if route.lists() || !route.reads() || asks || !route.query.is_empty() {
        codes.push(Code::ValidationFailed);
    }
    if changes_one(resource, route) {
        codes.extend([Code::PreconditionFailed, Code::InvalidHeader]);
    }
    if route.method == Method::Post {
        codes.push(Code::IdempotencyInFlight);
    }
    let is_needed = registry().holders.iter().any(|holder| holder.table == resource.shape.table);
    if route.method == Method::Delete && is_needed {
        codes.push(Code::InUse);
    }
    if !route.reads() {
        // Another record has the same value, or the state of this one does not allow it.
        codes.push(Code::InvalidTransition);
    }
    if !route.reads() && route.method != Method::Delete {
        codes.extend([Code::MalformedJson, Code::BodyTooLarge, Code::UnsupportedMediaType]);
    }
    codes
}

/// Whether a route changes an existing record.
pub fn changes_one(resource: &Resource, route: &Route) -> bool {
    !route.reads() && route.path.len() > resource.path.len()
}

/// Returns the error responses, each described once.
pub fn error_responses() -> Value {
    let mut responses = Map::new();
    for code in registry().error_codes() {
        let status = reply::status(code).as_u16().to_string();
        let meaning = format!("`{}`: {}", code.wire(), code.meaning());
        let response = responses.entry(response_name(&status)).or_insert_with(|| {
            json!({
                "description": "",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            })
        });
        let so_far = response["description"].as_str().unwrap_or_default();
        let joined = if so_far.is_empty() { meaning } else { format!("{so_far} {meaning}") };
        response["description"] = json!(joined);
    }
    Value::Object(responses)
}

fn response_name(status: &str) -> String {
    let name = match status {
        "400" => "BadRequest",
        "401" => "Unauthorized",
        "403" => "Forbidden",
        "404" => "NotFound",
        "405" => "MethodNotAllowed",
        "408" => "RequestTimeout",
        "409" => "Conflict",
        "412" => "PreconditionFailed",
        "413" => "BodyTooLarge",
        "415" => "UnsupportedMediaType",
        "422" => "Invalid",
        "429" => "TooManyRequests",
        "500" => "InternalError",
        "503" => "Unavailable",
        other => return format!("Status{other}"),
    };
    name.to_string()
}
