//! `null` in every field of every PATCH: it is rejected, or leaves a valid value.

use std::sync::atomic::{AtomicUsize, Ordering};

use engine::record::FieldInfo;
use engine::resource::{Method, RequestBody, Resource, Route};
use serde_json::{Value, json};

use super::values::is_of;
use super::{make, routes};
use crate::on_both;
use crate::support::{Client, Shared};

on_both![a_patch_with_null_clears_or_rejects,];

fn a_patch_with_null_clears_or_rejects(server: Shared) {
    let mut patches: Vec<_> = routes().filter(|(_, route)| route.body == RequestBody::Patch).collect();
    patches.sort_by_key(|(_, route)| std::cmp::Reverse(route.fields.len()));
    assert!(patches.len() > 20, "{}", patches.len());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((resource, route)) = patches.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let client = server.client();
                    for field in &route.fields {
                        for nothing in [json!(null), json!("")] {
                            send_nothing(&client, resource, route, field, &nothing);
                        }
                    }
                }
            });
        }
    });
}

fn send_nothing(client: &Client, resource: &Resource, route: &Route, field: &FieldInfo, nothing: &Value) {
    let path = make(client, resource).path(resource, route);
    let what = format!("PATCH {} {{\"{}\": {nothing}}}", route.path, field.name);
    let reply = client.patch(&path, json!({field.name: nothing}));
    if reply.status == 422 {
        let faults = reply.faults();
        assert!(!faults.is_empty() && faults.iter().all(|fault| is_of(fault, field)), "{what}: {reply:?}");
        return;
    }
    let data = reply.expect(200).data();
    assert!(!field.rules.required && !field.rules.kept, "{what}: {data}");
    // `null` must not turn an enumeration, a boolean or a number into another value. By the contract, an unknown
    // priority becomes the default.
    let settles =
        field.rules.resets || field.rules.nullable || (resource.shape.name, field.name) == ("ticket", "priority");
    assert!(can_be_empty(field) || settles, "{what}: {data}");
    // The response to a payment also has its invoice.
    let shown = data.get(resource.shape.name).filter(|own| own.is_object()).unwrap_or(&data);
    if let Some(own) = [shown, &shown["meta"]].iter().find_map(|part| part.get(field.name)) {
        assert!(is_valid(own, field), "{what}: {own}");
    }
    if resource.routes.iter().any(|other| other.method == Method::Get && other.path == route.path) {
        same_as(shown, &client.get(&path).expect(200).data(), &what);
    }
}

/// Whether a field can be empty: a string, a date, a list or an object.
fn can_be_empty(field: &FieldInfo) -> bool {
    let closed = (field.schema)(&field.rules).get("enum").is_some();
    !closed && ["string", "array", "object"].iter().any(|kind| field.is(kind))
}

/// Whether a value is valid for a field.
fn is_valid(value: &Value, field: &FieldInfo) -> bool {
    let schema = (field.schema)(&field.rules);
    let range = field.rules.min..=field.rules.max;
    match value {
        _ if schema.get("enum").is_some() => schema["enum"].as_array().unwrap().contains(value),
        Value::Bool(_) => field.is("boolean"),
        Value::Number(number) if field.is("integer") => number.as_i64().is_some_and(|number| range.contains(&number)),
        Value::Number(_) => field.is("number"),
        Value::String(text) if field.is_date() => text.is_empty() || text.parse::<jiff::civil::Date>().is_ok(),
        Value::String(_) => field.is("string"),
        Value::Array(_) => field.is("array"),
        Value::Object(_) => field.is("object"),
        Value::Null => field.rules.nullable,
    }
}

/// The response to a PATCH equals the stored record. Signed URLs change over time.
fn same_as(shown: &Value, got: &Value, what: &str) {
    for (key, own) in shown.as_object().unwrap().iter().filter(|(key, _)| !key.ends_with("url")) {
        match own {
            Value::Object(_) if key == "meta" => same_as(own, &got["meta"], what),
            own => assert_eq!(*own, got[key], "{what}: {key}"),
        }
    }
}
