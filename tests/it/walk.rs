//! Rules that hold for every route of the registry.

mod authors;
mod callers;
mod emptied;
mod foreign;
mod values;

use std::sync::atomic::{AtomicU32, Ordering};

use engine::accounts;
use engine::http::openapi;
use engine::record::FieldInfo;
use engine::resource::{List, Method, RequestBody, Resource, Returns, Route};
use kantoor::registry::REGISTRY;
use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Db, Reply, Server, Shared};

/// Every route with its resource.
pub fn routes() -> impl Iterator<Item = (&'static Resource, &'static Route)> {
    REGISTRY.resources.iter().flat_map(|resource| resource.routes.iter().map(move |route| (resource, route)))
}

fn create_route(resource: &Resource) -> Option<&Route> {
    resource.routes.iter().find(|route| matches!(route.body, RequestBody::Create | RequestBody::File))
}

/// Whether a request can create one without preparation: settings exist, and a batch requires payments.
pub fn can_be_made(resource: &Resource) -> bool {
    create_route(resource).is_some() || resource.shape.table == "runs"
}

/// Whether a route requires a user who has signed in: keys have no preferences and no screens.
fn concerns_a_user(route: &Route) -> bool {
    let changes = ["/v1/me", "/v1/me/here"].contains(&route.path.as_str()) && route.method == Method::Patch;
    changes || route.path == "/v1/me/sessions/end-others"
}

/// Returns a unique number, for values that must differ.
pub fn next_number() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

fn of_table(table: &str) -> &'static Resource {
    REGISTRY.resources.iter().find(|resource| resource.shape.table == table).unwrap()
}

/// A record and its parent.
pub struct Made {
    parent: String,
    pub id: String,
}

impl Made {
    /// Returns the path of a route to it.
    pub fn path(&self, resource: &Resource, route: &Route) -> String {
        self.with_id(resource, route, &self.id)
    }

    /// Returns the path of a route to another id next to it.
    fn with_id(&self, resource: &Resource, route: &Route, id: &str) -> String {
        let own = format!("{{{}_id}}", resource.shape.name);
        if self.parent.is_empty() {
            route.path.replace("{id}", id)
        } else {
            route.path.replace("{id}", &self.parent).replace(&own, id)
        }
    }
}

/// Creates a record of the resource from the examples of its fields.
pub fn make(client: &Client, resource: &Resource) -> Made {
    let parent = resource.fields.iter().find(|field| field.name == resource.shape.parent);
    let parent = parent.map_or(String::new(), |field| make(client, of_table(field.rules.refers)).id);
    make_in(client, resource, parent)
}

/// Creates a run by firing an event.
fn make_run(client: &Client) -> String {
    let key = format!("walk.{}", next_number());
    let flow = json!({"name": "Walk", "trigger_type": "custom", "trigger_key": key, "steps": [{"type": "approval"}]});
    client.post("/v1/automation/flows", flow).expect(201);
    let fired = client.post("/v1/automation/trigger", json!({"event": key})).expect(200).data();
    fired["runs"][0]["run_id"].as_str().unwrap().to_string()
}

fn make_in(client: &Client, resource: &Resource, parent: String) -> Made {
    if resource.shape.table == "runs" {
        return Made { parent, id: make_run(client) };
    }
    let Some(route) = create_route(resource) else { return Made { parent, id: "none".to_string() } };
    let path = route.path.replace("{id}", &parent);
    let reply = match route.body {
        RequestBody::File => client.upload("example.txt", b"some words"),
        _ => client.post(&path, good_body(client, route)),
    };
    let id = reply.expect(201).id();
    Made { parent, id }
}

/// Returns a body from the examples, with the ids of records that it must refer to.
pub fn good_body(client: &Client, route: &Route) -> Value {
    renamed(named_body(client, route), route)
}

/// Returns a valid body, before unique values are filled in.
fn named_body(client: &Client, route: &Route) -> Value {
    let mut body = openapi::example(route);
    for field in route.fields.iter().filter(|field| field.rules.required && !field.rules.refers.is_empty()) {
        body[field.name] = json!(make(client, of_table(field.rules.refers)).id);
    }
    // A company is linked to a person, and the example of a client is a company.
    if route.path.ends_with("/links") {
        body["client_id"] =
            json!(client.post("/v1/clients", json!({"type": "private", "lastname": "Smit"})).expect(201).id());
    }
    body
}

/// Makes unique fields unique.
pub fn renamed(mut body: Value, route: &Route) -> Value {
    for field in route.fields.iter().filter(|field| field.rules.unique.is_some()) {
        if let Some(text) = body[field.name].as_str().filter(|text| !text.is_empty()) {
            // At the start, where it is valid in both a code and a domain.
            body[field.name] = json!(format!("x{}{text}", next_number()));
        }
    }
    body
}

fn call(client: &Client, path: &str, route: &Route, owner: &Client) -> Reply {
    send(client, path, route, owner, &[])
}

/// Sends a valid request; the records that it refers to belong to the owner.
pub fn send(client: &Client, path: &str, route: &Route, owner: &Client, headers: &[(&str, &str)]) -> Reply {
    let body = match route.body {
        RequestBody::File => return client.upload_with(headers, "example.txt", b"some words"),
        RequestBody::Nothing => String::new(),
        _ => good_body(owner, route).to_string(),
    };
    client.send(route.method.name(), path, headers, &body)
}

/// Returns a body with one invalid field.
fn spoiled(client: &Client, route: &Route, field: &str, value: &Value) -> Value {
    let mut body = good_body(client, route);
    body[field] = value.clone();
    body
}

on_both![
    keys_and_scopes_are_checked_first,
    hides_the_records_of_other_accounts,
    rejects_invalid_bodies,
    lists_have_pages_filters_sorts_and_totals,
    a_post_with_a_key_is_idempotent,
    wrong_methods_get_an_allow_header,
    etags_guard_changes,
];

fn keys_and_scopes_are_checked_first(db: Db) {
    let server = Server::with(db, |config| config.public_limit_per_minute = 0);
    let client = server.client();
    let bogus = accounts::new_secret().unwrap();
    for (resource, route) in routes() {
        let made = make(&client, resource);
        let path = made.path(resource, route);
        let what = format!("{} {path}", route.method.name());
        for header in ["", "Bearer", "Bearer x", "Basic abc", &format!("Bearer {bogus}")] {
            // Even invalid JSON at an unknown path gets 401 first.
            let reply = client.send(route.method.name(), &path, &[("authorization", header)], "{");
            assert_eq!(reply.status, 401, "{what} with '{header}'");
            assert_eq!(reply.code(), "unauthorized");
            assert!(reply.header("www-authenticate").starts_with("Bearer"));
        }
        let enough = |scope: &String| *scope == route.scope || route.instead.is_some_and(|other| scope == other);
        let others = accounts::scopes().iter().filter(|scope| *scope != "*" && !enough(scope));
        let others: Vec<&str> = others.map(String::as_str).collect();
        let reply = call(&server.with_scopes(&client, &others), &path, route, &client);
        if concerns_a_user(route) {
            assert_eq!(reply.status, 403, "{what} with a key");
            continue;
        }
        if route.scope.is_empty() {
            let missing = reply.status == 404 && route.path.contains('{') && !can_be_made(resource);
            assert!(reply.status < 300 || missing, "{what} is for everybody: {reply:?}");
            continue;
        }
        assert_eq!(reply.status, 403, "{what} without its scope");
        assert!(reply.text.contains(&route.scope), "{}", reply.text);
        // A stream never ends.
        if matches!(route.returns, Returns::Stream(_)) {
            continue;
        }
        // A role can only be given by a key that has all of its scopes.
        let mut scopes = vec![if resource.shape.table == "users" { "*" } else { route.scope.as_str() }];
        if let Some(other) = route.also_needs {
            let reply = call(&server.with_scopes(&client, &scopes), &path, route, &client);
            assert!(reply.status == 403 && reply.text.contains(other), "{what} without {other}: {reply:?}");
            scopes.push(other);
        }
        let mut reply = call(&server.with_scopes(&client, &scopes), &path, route, &client);
        // What a flow does may require more scopes, which the response names.
        if reply.status == 403 {
            let named = accounts::scopes().iter().filter(|scope| reply.text.contains(&format!("'{scope}'")));
            scopes.extend(named.map(String::as_str));
            reply = call(&server.with_scopes(&client, &scopes), &path, route, &client);
        }
        // 409: an action that a new record does not allow.
        let missing = reply.status == 404 && !can_be_made(resource);
        assert!(reply.status < 300 || reply.status == 409 || missing, "{what} with its scope: {reply:?}");
    }
    assert_eq!(client.send("GET", "/v1/nowhere", &[("authorization", "")], "").status, 401);
    assert_eq!(client.get("/v1/nowhere").code(), "not_found");
}

fn hides_the_records_of_other_accounts(server: Shared) {
    let (owner, stranger) = (server.client(), server.client());
    for (resource, route) in routes() {
        let made = make(&owner, resource);
        // By the contract, this one reports that the client does not exist.
        if route.path.ends_with("/mandate") && route.method == Method::Get {
            let reply = stranger.get(&made.path(resource, route)).expect(200);
            assert_eq!((&reply.data()["client_found"], &reply.data()["mandate_id"]), (&json!(false), &json!("")));
        } else if route.path.contains('{') {
            for id in [made.id.as_str(), "00000000-0000-7000-8000-000000000000", "x", "%00", "%ff", "'"] {
                let reply = call(&stranger, &made.with_id(resource, route, id), route, &stranger);
                assert_eq!((reply.status, reply.code().as_str()), (404, "not_found"), "{} {id}", route.path);
            }
        }
        if resource.list.is_some() && !resource.path.contains('{') {
            let list = stranger.get(&format!("{}?id={}", resource.path, made.id)).expect(200).json();
            let ids: Vec<&Value> = list["data"].as_array().unwrap().iter().map(|item| &item["id"]).collect();
            assert!(!ids.contains(&&json!(made.id)), "{}", resource.path);
        }
    }
    // The requests of the other account left no trace.
    for resource in REGISTRY.resources.iter().filter(|one| can_be_made(one) && !one.path.contains('{')) {
        assert!(owner.get(&resource.path).json()["meta"]["total"].as_i64().unwrap() > 0);
    }
}

fn rejects_invalid_bodies(server: Shared) {
    let client = server.client();
    for (resource, route) in routes().filter(|(_, route)| !matches!(route.method, Method::Get | Method::Delete)) {
        if route.body == RequestBody::File || resource.shape.table == "batches" {
            continue;
        }
        let made = make(&client, resource);
        let path = made.path(resource, route);
        let method = route.method.name();
        let with = |body: &str| client.send(method, &path, &[], body);
        for body in ["{", "{\"a\":1", "not json", "{\"a\":1}}", "\u{0}"] {
            assert_eq!(with(body).expect(400).code(), "malformed_json", "{path} {body}");
        }
        assert_eq!(with("{\"zz\":1,\"zz\":2}").expect(400).code(), "duplicate_key");
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(80), "]".repeat(80));
        assert_eq!(with(&deep).expect(400).code(), "malformed_json");
        for body in ["[]", "1", "null", "\"x\""] {
            assert_eq!(with(body).expect(422).faults(), ["body: wrong_type"], "{path} {body}");
        }
        let reply = with("{\"no_such_field\":1}").expect(422);
        assert!(reply.faults().contains(&"no_such_field: unknown_field".to_string()), "{reply:?}");
        let reply = client.send(method, &path, &[("content-type", "text/plain")], "{}");
        assert_eq!(reply.expect(415).code(), "unsupported_media_type");
        let reply = client.send(method, &path, &[("content-type", "")], "{}");
        assert_eq!(reply.expect(415).code(), "unsupported_media_type");
        let large = format!("{{\"x\":\"{}\"}}", "y".repeat(2 * 1024 * 1024));
        assert_eq!(with(&large).expect(413).code(), "body_too_large");
        if !matches!(route.body, RequestBody::Nothing | RequestBody::Maybe) {
            // No body equals an empty object.
            let (object, none) = (with("{}"), with(""));
            assert_eq!((none.status == 400, none.status == 422), (false, object.status == 422), "{path}: {none:?}");
            let required: Vec<String> = route
                .fields
                .iter()
                .filter(|field| field.rules.required)
                .map(|field| format!("{}: required", field.name))
                .collect();
            if route.body != RequestBody::Patch && object.status == 422 {
                assert_eq!(none.faults(), object.faults(), "{path}");
                assert!(required.iter().all(|fault| none.faults().contains(fault)), "{none:?}");
            }
            let body = spoiled(&client, route, "no_such_field", &json!(1)).to_string();
            let reply = client.send(method, &path, &[("prefer", "handling=lenient")], &body);
            if concerns_a_user(route) {
                assert_eq!(reply.status, 403, "{reply:?}");
                continue;
            }
            assert!(reply.status < 300, "{reply:?}");
            if route.has_meta {
                assert!(reply.json()["meta"]["warnings"][0].as_str().unwrap().contains("no_such_field"));
            } else {
                let reply = client.send(method, &format!("{path}?x=1"), &[("prefer", "handling=lenient")], &body);
                assert_eq!(reply.expect(200).json()["meta"], json!({}));
            }
        }
        if route.body == RequestBody::Patch {
            for empty in ["{}", ""] {
                assert_eq!(with(empty).expect(422).faults(), ["body: no_fields"]);
            }
        }
    }
}

fn lists_have_pages_filters_sorts_and_totals(server: Shared) {
    let client = server.client();
    for resource in REGISTRY.resources.iter() {
        let Some(list) = resource.list.as_ref().filter(|_| can_be_made(resource)) else { continue };
        // Lists with optional pages have their own tests, and so has that of keys, which has the caller's own.
        if resource.routes.iter().any(|route| route.returns == Returns::Either) || resource.shape.table == "keys" {
            continue;
        }
        // A new account already has flows.
        for flow in client
            .get(&resource.path)
            .data()
            .as_array()
            .into_iter()
            .flatten()
            .filter(|_| resource.shape.table == "flows")
        {
            client.delete(&format!("{}/{}", resource.path, flow["id"].as_str().unwrap())).expect(204);
        }
        let before = client.get(&resource.path).json()["meta"]["total"].as_i64().unwrap_or(0);
        assert_eq!(before, 0, "{} has records already", resource.path);
        let first = make(&client, resource);
        let path = resource.path.replace("{id}", &first.parent);
        let mut made = vec![first.id];
        made.extend((1..30).map(|_| make_in(&client, resource, first.parent.clone()).id));
        let page = |query: &str| client.get(&format!("{path}?{query}"));
        let newest: Vec<String> = made.iter().rev().cloned().collect();

        let first = page("").expect(200);
        assert_eq!(first.json()["meta"], json!({"page": 1, "per_page": 25, "total": 30, "pages": 2}));
        assert_eq!(ids(&first), newest[..25]);
        assert_eq!(
            first.header("link"),
            format!("<{path}?page=1>; rel=\"first\", <{path}?page=2>; rel=\"next\", <{path}?page=2>; rel=\"last\"")
        );
        assert_eq!(ids(&page("page=2")), newest[25..]);
        let past = page("page=99&per_page=7").expect(200).json();
        assert_eq!(
            (&past["data"], &past["meta"]["total"], &past["meta"]["pages"]),
            (&json!([]), &json!(30), &json!(5))
        );
        assert_eq!(page("per_page=1000").json()["meta"]["per_page"], json!(100));
        assert_eq!(page("page=99999999999999999999").expect(200).json()["data"], json!([]));
        rejects_invalid_parameters(&client, &path);
        let both = format!("{},{}", made[3], made[7]);
        assert_eq!(ids(&page(&format!("id={both},nope&order=asc"))), [made[3].clone(), made[7].clone()]);
        assert_eq!(page(&format!("id={}", made[3])).json()["meta"]["total"], json!(1));
        assert_eq!(page("created_from=2026-05-04&created_to=2026-05-04").json()["meta"]["total"], json!(30));
        assert_eq!(page("created_from=2026-05-05").json()["meta"]["total"], json!(0));
        assert_eq!(page("created_to=2026-05-03").json()["meta"]["total"], json!(0));
        assert_eq!(page("zz=1&page=1").json()["meta"]["ignored_params"], json!(["zz"]));

        sorts_filters_and_searches(&client, &path, resource, list);
    }
}

/// Returns the ids of a list.
fn ids(reply: &Reply) -> Vec<String> {
    let data = reply.data();
    data.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_string()).collect()
}

fn rejects_invalid_parameters(client: &Client, path: &str) {
    for bad in [
        "page=0",
        "page=-1",
        "page=x",
        "page=",
        "page=1.5",
        "per_page=0",
        "per_page=abc",
        "sort=nope",
        "order=up",
        "created_from=yesterday",
        "created_to=2026-13-01",
        "created_to=0000-01-01",
        "page=1&page=2",
        "sort=name%00",
        "created_from=",
    ] {
        let reply = client.get(&format!("{path}?{bad}"));
        assert_eq!(reply.status, 422, "{path}?{bad}: {reply:?}");
        let name = bad.split('=').next().unwrap();
        assert!(reply.faults()[0].starts_with(name), "{reply:?}");
    }
}

/// Checks a list of thirty records.
fn sorts_filters_and_searches(client: &Client, path: &str, resource: &Resource, list: &List) {
    let page = |query: &str| client.get(&format!("{path}?{query}"));
    for sort in &list.sorts {
        let rising = ids(&page(&format!("sort={sort}&order=asc&per_page=100")).expect(200));
        let falling = ids(&page(&format!("sort={sort}&order=desc&per_page=100")).expect(200));
        assert_eq!(rising.len(), 30);
        assert_eq!(rising, falling.into_iter().rev().collect::<Vec<_>>(), "{path} sort={sort}");
    }
    for field in resource.fields.iter().filter(|field| field.rules.filter) {
        let schema = (field.schema)(&field.rules);
        let nothing = page(&format!("{}=no-such-value", field.name));
        if schema.get("enum").is_some() || schema["type"] == "boolean" {
            assert_eq!(nothing.expect(422).faults()[0].split(':').next(), Some(field.name));
        } else {
            assert_eq!(nothing.expect(200).json()["meta"]["total"], json!(0));
        }
    }
    if list.searches {
        assert_eq!(page("search=zzzz-nothing").json()["meta"]["total"], json!(0));
        assert_eq!(page("search=").json()["meta"]["total"], json!(30));
        assert_eq!(page("search=%25").expect(200).json()["data"].as_array().unwrap().len(), 0);
    } else {
        assert_eq!(page("search=x").json()["meta"]["ignored_params"], json!(["search"]));
    }
}

fn a_post_with_a_key_is_idempotent(server: Shared) {
    let client = server.client();
    for (resource, route) in routes().filter(|(_, route)| route.method == Method::Post) {
        // Records that only the server creates do not exist here.
        let missing = !can_be_made(resource) && route.path.contains('{');
        // Nor does a key have sessions.
        if route.body == RequestBody::File || missing || route.path.starts_with("/v1/me/") {
            continue;
        }
        let made = make(&client, resource);
        let path = made.path(resource, route);
        let list = resource.path.replace("{id}", &made.parent);
        let key = [("idempotency-key", format!("{} {}", route.path, "x").replace(' ', "-"))];
        let key = [(key[0].0, key[0].1.as_str())];
        let total = || client.get(&list).json()["meta"]["total"].as_i64();
        let body =
            if route.body == RequestBody::Nothing { String::new() } else { good_body(&client, route).to_string() };
        let before = total();
        let first = client.send("POST", &path, &key, &body);
        let again = client.send("POST", &path, &key, &body);
        assert!(first.status < 300 || first.status == 409, "{first:?}");
        assert_eq!((first.status, &first.text), (again.status, &again.text));
        assert_eq!((first.header("x-idempotent-replay"), again.header("x-idempotent-replay")), ("", "true"));
        assert_eq!(first.header("location"), again.header("location"));
        if first.status == 201 {
            client.get(first.header("location")).expect(200);
        }
        let new = i64::from(first.header("location").starts_with(&format!("{list}/")));
        let gone = i64::from(route.path.ends_with("/merge"));
        assert_eq!(total(), before.map(|before| before + new - gone), "{}", route.path);
        let other = client.send("POST", &path, &key, "{\"other\":1}");
        assert_eq!(other.expect(422).code(), "idempotency_key_reused");
        let long = "k".repeat(256);
        for bad in [long.as_str(), "a b"] {
            let Ok(reply) = client.try_send("POST", &path, &[("idempotency-key", bad)], "{}") else { continue };
            if route.body == RequestBody::Create {
                assert_eq!(reply.expect(400).code(), "invalid_idempotency_key");
            }
        }
    }
}

fn wrong_methods_get_an_allow_header(server: Shared) {
    let client = server.client();
    for (_, route) in routes() {
        let path = route.path.replace(['{', '}'], "");
        let reply = client.send("PROPFIND", &path, &[], "");
        assert_eq!(reply.expect(405).code(), "method_not_allowed");
        let options = client.send("OPTIONS", &path, &[], "").expect(204);
        assert!(options.header("allow").contains(route.method.name()), "{options:?}");
        assert!(options.header("allow").ends_with("OPTIONS"));
    }
}

fn etags_guard_changes(server: Shared) {
    let client = server.client();
    for resource in REGISTRY.resources.iter() {
        let Some(patch) = resource.routes.iter().find(|route| route.body == RequestBody::Patch) else { continue };
        let made = make(&client, resource);
        let path = made.path(resource, patch);
        if !can_be_made(resource) {
            client.patch(&path, openapi::example(patch)).expect(200);
        }
        let got = client.get(&path).expect(200);
        let tag = got.header("etag").to_string();
        assert_eq!(client.send("GET", &path, &[("if-none-match", &tag)], "").expect(304).text, "");
        let mut body = openapi::example(patch);
        for field in patch.fields.iter().filter(|field| field.rules.unique.is_some()) {
            body.as_object_mut().unwrap().remove(field.name);
        }
        for field in patch.fields.iter().filter(|field| !field.rules.changed_example.is_empty()) {
            if let (Some(value), Ok(first)) = (body.get_mut(field.name), serde_json::from_str(field.rules.example)) {
                *value = first;
            }
        }
        let body = body.to_string();
        assert_eq!(
            client.send("PATCH", &path, &[("if-match", "\"99\"")], &body).expect(412).code(),
            "precondition_failed"
        );
        let delete = resource.routes.iter().find(|route| route.method == Method::Delete);
        if delete.is_some() {
            assert_eq!(client.send("DELETE", &path, &[("if-match", "\"99\"")], "").status, 412);
        }
        // The example equals the current value: nothing changes, and neither does the tag.
        let same = client.send("PATCH", &path, &[("if-match", &tag)], &body).expect(200);
        assert_eq!(same.header("etag"), tag);
        let is_text = |field: &&FieldInfo| {
            let schema = (field.schema)(&field.rules);
            // A pattern that only excludes characters takes the new text.
            let shaped = schema["pattern"].as_str().is_some_and(|pattern| !pattern.starts_with("^[^"));
            let formed = shaped || ["enum", "x-form"].iter().any(|key| schema.get(key).is_some());
            let checked = ["default_vat_code", "mail_hours_from", "mail_hours_until", "match_by"];
            schema["type"] == "string" && !formed && field.rules.refers.is_empty() && !checked.contains(&field.name)
        };
        let change = match patch.fields.iter().find(is_text) {
            Some(text) => json!({text.name: "changed"}),
            None if resource.shape.table == "imports" => json!({"decimal_sign": "comma"}),
            None if resource.shape.table == "files" => {
                let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
                json!({"client_id": firm})
            }
            None => json!({patch.fields[0].name: false}),
        };
        let changed = client.patch(&path, change).expect(200);
        assert_ne!(changed.header("etag"), tag);
        assert_eq!(client.send("GET", &path, &[("if-none-match", &tag)], "").status, 200);
        if let Some(delete) = delete {
            let gone = if delete.returns == Returns::Nothing { 204 } else { 200 };
            client.send("DELETE", &path, &[("if-match", "*")], "").expect(gone);
            assert_eq!(client.get(&path).status, 404);
        }
    }
}

#[test]
fn every_route_and_field_is_described() {
    kantoor::registry::install();
    for (resource, route) in routes() {
        assert!(!route.summary.is_empty(), "{}", route.path);
        let known = route.scope.is_empty() || accounts::scopes().contains(&route.scope);
        assert!(known, "{}: no scope {}", route.path, route.scope);
        assert!(!matches!(route.returns, Returns::Page | Returns::Either) || resource.list.is_some());
    }
    for resource in REGISTRY.resources.iter() {
        for field in &resource.fields {
            // A nullable field may conflict with the other examples, such as two days of one schedule.
            let needs_example = field.rules.create && field.rules.refers.is_empty() && !field.rules.nullable;
            assert!(!needs_example || !field.rules.example.is_empty(), "{}.{}", resource.shape.name, field.name);
            assert!(!field.doc.is_empty());
        }
    }
    let numbers: Vec<u32> = engine::migrations::all().iter().map(|migration| migration.number).collect();
    assert_eq!(numbers, (1..=u32::try_from(numbers.len()).unwrap()).collect::<Vec<_>>());
}
