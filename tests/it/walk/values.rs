//! Every type of value in every field of every route.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::http::openapi;
use engine::record::FieldInfo;
use engine::resource::{RequestBody, Resource, Route};
use serde_json::{Value, json};

use super::{concerns_a_user, make, named_body, renamed, routes};
use crate::on_both;
use crate::support::{Client, Shared};

on_both![no_value_of_any_field_makes_a_5xx,];

fn no_value_of_any_field_makes_a_5xx(server: Shared) {
    let takes_json =
        |route: &Route| !matches!(route.body, RequestBody::Nothing | RequestBody::File) && !concerns_a_user(route);
    let mut routes: Vec<_> = routes().filter(|(_, route)| takes_json(route)).collect();
    // The slow routes first, so that no thread has one left at the end.
    routes.sort_by_key(|(_, route)| std::cmp::Reverse(route.fields.len()));
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((resource, route)) = routes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // One account each: the outcome must not depend on earlier requests.
                    every_value(&server.client(), resource, route);
                }
            });
        }
    });
}

/// Sends every type of value in every field of a route. Errors name their field, so one request tests all fields; those
/// that accept the value are tested separately.
fn every_value(client: &Client, resource: &Resource, route: &Route) {
    let made = make(client, resource).path(resource, route);
    let send = |path: &str, body: &str| client.send(route.method.name(), path, &[], body);
    let named = named_body(client, route);
    let in_all = |value: &Value| {
        let mut body = renamed(named.clone(), route);
        route.fields.iter().for_each(|field| body[field.name] = fitted(value, field));
        body.to_string()
    };
    let refuses = |value: &Value| {
        let reply = send(&made, &in_all(value));
        assert!(reply.status < 500, "{made} with {value} in all fields: {reply:?}");
        reply.faults()
    };
    let refusals: Vec<Vec<String>> = NASTY.iter().map(refuses).collect();
    for (date, faults) in
        NASTY.iter().zip(&refusals).filter(|(value, _)| [json!("2026-02-30"), json!("0000-12-31")].contains(value))
    {
        for field in route.fields.iter().filter(|field| field.is_date()) {
            assert!(faults.contains(&format!("{}: invalid_format", field.name)), "{made} {} = {date}", field.name);
        }
    }
    refuses_null_as_described(resource, route, &refusals[0]);
    for field in &route.fields {
        // A changed record may not allow the next change.
        let path = match route.body {
            RequestBody::Create => made.clone(),
            _ => make(client, resource).path(resource, route),
        };
        alone(client, &path, route, field, &refusals);
    }
    for (bad, shown) in [("\\u0000", "a NUL"), ("\\ud800", "half a pair")] {
        let reply = send(&made, &in_all(&json!("~hole~")).replace("~hole~", bad)).expect(422);
        for field in route.fields.iter().filter(|field| !takes_anything(resource, field)) {
            let faults: Vec<String> = reply.faults().into_iter().filter(|fault| is_of(fault, field)).collect();
            let text = (field.schema)(&field.rules)["type"] == "string";
            let named = format!("{}: invalid_characters", field.name);
            assert!(!faults.is_empty() && (!text || faults == [named]), "{made} with {shown}: {reply:?}");
        }
    }
    let mut body = renamed(named.clone(), route);
    ["id", "created_at", "meta"].iter().for_each(|name| body[name] = json!("x"));
    let faults = send(&made, &body.to_string()).expect(422).faults();
    assert_eq!(faults, ["id: read_only", "created_at: read_only", "meta: read_only"]);
}

/// The document says which fields can be null. A rule between fields may refuse it nevertheless.
fn refuses_null_as_described(resource: &Resource, route: &Route, faults: &[String]) {
    let operation = &openapi::DOCUMENT["paths"][&route.path][route.method.name().to_lowercase()];
    let body = openapi::resolved(&operation["requestBody"]["content"]["application/json"]["schema"]);
    for field in route.fields.iter().filter(|field| !takes_anything(resource, field)) {
        let schema = &body["properties"][field.name];
        let is_null = |schema: &Value| {
            schema["type"] == "null" || schema["type"].as_array().is_some_and(|all| all.contains(&json!("null")))
        };
        let is_described = is_null(schema) || schema["anyOf"].as_array().is_some_and(|any| any.iter().any(is_null));
        let mut own = faults.iter().filter(|fault| is_of(fault, field));
        let what = format!("{} {}: {schema}, {faults:?}", route.path, field.name);
        assert!(is_described || own.clone().next().is_some(), "{what}");
        assert!(!is_described || own.all(|fault| !fault.ends_with(": wrong_type")), "{what}");
    }
}

/// Sends a field the values that it did not reject, and omits required fields.
fn alone(client: &Client, path: &str, route: &Route, field: &FieldInfo, refusals: &[Vec<String>]) {
    let mut named = named_body(client, route);
    let send = |named: &Value, value: &Value| {
        let mut body = renamed(named.clone(), route);
        body[field.name] = fitted(value, field);
        client.send(route.method.name(), path, &[], &body.to_string())
    };
    let taken = NASTY.iter().zip(refusals).filter(|(_, faults)| !faults.iter().any(|fault| is_of(fault, field)));
    for (value, _) in taken {
        let reply = send(&named, value);
        let what = format!("{path} {} = {}", field.name, value.to_string().chars().take(60).collect::<String>());
        match reply.status {
            // The records that it refers to may be used up. 409: another record already has this external_id.
            200 | 201 | 409 => named = named_body(client, route),
            // Without its only field, a body that requires one is empty.
            422 if value.is_null() && reply.faults() == ["body: no_fields"] => {}
            422 => assert!(reply.faults().iter().any(|fault| is_of(fault, field)), "{what}: {reply:?}"),
            other => panic!("{what}: {other}"),
        }
    }
    for empty in [json!(null), json!(""), json!("  ")].iter().filter(|_| field.rules.required) {
        assert_eq!(send(&named, empty).expect(422).faults(), [format!("{}: required", field.name)]);
    }
}

/// By the contract, an unknown priority of a ticket is `normal`.
fn takes_anything(resource: &Resource, field: &FieldInfo) -> bool {
    (resource.shape.table, field.name) == ("tickets", "priority")
}

/// Returns the value; for the long text, one that is just too long for the field.
fn fitted(value: &Value, field: &FieldInfo) -> Value {
    if value == LONG { json!("x".repeat(field.rules.max_length + 1)) } else { value.clone() }
}

/// Whether an error is on the field, or inside it.
pub fn is_of(fault: &str, field: &FieldInfo) -> bool {
    fault.strip_prefix(field.name).is_some_and(|rest| rest.starts_with([':', '.', '[']))
}

/// Stands for a text that is too long.
const LONG: &str = "~long~";

/// Values that few fields accept, and some that none does.
static NASTY: LazyLock<Vec<Value>> = LazyLock::new(|| {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(99999999999999999999_u128 as f64),
        json!(9223372036854775807_i64),
        json!(""),
        json!("x"),
        json!("\u{0}"),
        json!("a\u{7}b"),
        json!("😀".repeat(300)),
        json!(LONG),
        json!("2026-02-30"),
        json!("2026-1-1"),
        json!("0000-12-31"),
        json!([]),
        json!({}),
        json!(["a"]),
        json!({"a": 1}),
        json!("'; DROP TABLE products; --"),
        json!("%_\\"),
        json!("1e400"),
        json!("NaN"),
    ]
});
