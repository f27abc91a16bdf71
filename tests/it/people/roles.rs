//! Sessions call the same routes as keys, with the scopes of the role, and nothing else does.

use std::time::{Duration, Instant};

use engine::resource::{Method, Returns};
use kantoor::people::role::Role;
use serde_json::{Value, json};

use super::{Browser, member, owner};
use crate::support::{Client, Db, Server, Shared};
use crate::{on_both, walk};

on_both![
    every_route_knows_every_role,
    a_cookie_opens_only_the_console_and_a_key_only_the_api,
    forged_requests_are_refused,
    a_suspended_user_is_out_within_a_second_on_every_node,
    a_session_is_a_caller_like_a_key,
];

fn every_route_knows_every_role(server: Shared) {
    let (client, stranger) = (server.client(), server.client());
    for role in Role::ALL {
        let (_, browser) = member(&client, &format!("{}@a.example", role.wire()), role.wire());
        let scopes = role.scopes();
        let may = |scope: &str| scope.is_empty() || scopes.iter().any(|own| own == "*" || own == scope);
        for (resource, route) in walk::routes() {
            if matches!(route.returns, Returns::Stream(_)) {
                continue;
            }
            let path = format!("/console{}", route.path.replace(['{', '}'], ""));
            let allowed = route.lacks(may).is_none();
            let reply = browser.send(route.method.name(), &path, "");
            let about = format!("{} {} as {}: {reply:?}", route.method.name(), route.path, role.wire());
            assert_eq!(reply.status == 403 && reply.text.contains("requires the scope"), !allowed, "{about}");
            // Records of another account do not exist.
            if allowed && route.method == Method::Get && route.path.ends_with("/{id}") && walk::can_be_made(resource) {
                let made = walk::make(&stranger, resource);
                browser.get(&format!("/console{}", made.path(resource, route))).expect(404);
            }
        }
    }
    let reads = |role: Role, area: &str| role.scopes().contains(&format!("{area}.read"));
    assert!(!reads(Role::Member, "keys") && !reads(Role::Reader, "webhooks") && reads(Role::Bookkeeper, "keys"));
    assert!(Role::Reader.scopes().iter().all(|scope| scope.ends_with(".read")));
    a_bookkeeper_manages_money(&client);
}

/// What concerns money, and nothing else.
fn a_bookkeeper_manages_money(client: &Client) {
    let (_, browser) = member(client, "ina@b.example", "bookkeeper");
    let send =
        |method: &str, path: &str, body: Value| browser.send(method, &format!("/console{path}"), &body.to_string());
    let rate = send("POST", "/v1/tax-rates", json!({"code": "LU17", "amount": 17})).expect(201).id();
    send("PATCH", &format!("/v1/tax-rates/{rate}"), json!({"label": "Luxembourg"})).expect(200);
    browser.send("DELETE", &format!("/console/v1/tax-rates/{rate}"), "").expect(204);
    send("POST", "/v1/payment-terms", json!({"code": "45", "days": 45})).expect(201);
    let plan =
        json!({"title": "Hosting", "lines": [{"title": "x", "unit_price": 1}], "subscription_start": "2030-01-01"});
    let subscription = send("POST", "/v1/subscriptions", plan).expect(201).id();
    send("PATCH", &format!("/v1/subscriptions/{subscription}"), json!({"title": "Mail"})).expect(200);
    send("POST", &format!("/v1/subscriptions/{subscription}/deactivate"), json!({})).expect(200);
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let path = format!("/v1/clients/{firm}/direct-debit/mandate");
    send("POST", &path, json!({"mandate_id": "M-1"})).expect(201);
    // There is nothing to collect, but that is not the role's fault.
    assert_ne!(send("POST", "/v1/direct-debit/batches", json!({})).status, 403);
    for (method, path) in [
        ("POST", "/v1/clients".to_string()),
        ("PATCH", format!("/v1/clients/{firm}")),
        ("DELETE", format!("/v1/clients/{firm}")),
        ("PATCH", "/v1/settings".to_string()),
        ("POST", "/v1/email-domains".to_string()),
        ("POST", "/v1/email-domains/x/verify".to_string()),
        ("POST", "/v1/custom-fields".to_string()),
        ("POST", "/v1/tasks".to_string()),
    ] {
        send(method, &path, json!({})).expect(403);
    }
    // The 403 names the scope that the contract asks for; either is enough.
    let (_, reader) = member(client, "rik@b.example", "reader");
    let refused = reader.send("POST", "/console/v1/tax-rates", "{}").expect(403);
    assert!(refused.text.contains("settings.write"), "{}", refused.text);
}

fn a_cookie_opens_only_the_console_and_a_key_only_the_api(db: Db) {
    let server = Server::with(db, |config| config.public_limit_per_minute = 0);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    for (_, route) in walk::routes() {
        let path = route.path.replace(['{', '}'], "");
        let method = route.method.name();
        assert_eq!(browser.send(method, &path, "").status, 401, "{method} {path} with a cookie");
        let key = client.send(method, &format!("/console{path}"), &[("sec-fetch-site", "same-origin")], "");
        assert_eq!(key.status, 401, "{method} /console{path} with a key");
    }
    browser.get("/console/v1/products").expect(200);
    browser.get("/console/v1/nowhere").expect(404);
    browser.get("/console/v1").expect(404);
    browser.get("/console/v2/products").expect(404);
    browser.get("/consolev1/products").expect(404);
    let made = client.upload("a.txt", b"words").expect(201).data();
    let signed = made["url"].as_str().unwrap().replacen(&client.base, "", 1);
    let nobody = Browser::new(&client);
    nobody.get(&signed).expect(200);
    nobody.get(&format!("/console{signed}")).expect(401);
}

fn forged_requests_are_refused(db: Db) {
    let server = Server::with(db, |config| config.public_limit_per_minute = 0);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let body = json!({"title": "Call"}).to_string();
    let host = client.base.trim_start_matches("http://").to_string();
    let ours = client.base.clone();
    let other_port = format!("http://{}:1", host.split(':').next().unwrap());
    for (headers, status) in [
        (vec![], 403),
        (vec![("sec-fetch-site", "cross-site")], 403),
        (vec![("sec-fetch-site", "same-site")], 403),
        (vec![("sec-fetch-site", "none")], 403),
        (vec![("sec-fetch-site", "cross-site"), ("origin", ours.as_str())], 403),
        (vec![("origin", "https://evil.example")], 403),
        (vec![("origin", other_port.as_str())], 403),
        (vec![("origin", "null")], 403),
        (vec![("origin", ours.as_str())], 201),
        (vec![("sec-fetch-site", "same-origin")], 201),
    ] {
        let reply = browser.send_with("POST", "/console/v1/tasks", &headers, &body);
        assert_eq!(reply.status, status, "{headers:?}: {reply:?}");
        let signed_in = browser.send_with("POST", "/console/sign-in", &headers, "{}");
        assert_eq!(signed_in.status, if status == 403 { 403 } else { 422 }, "{headers:?}: {signed_in:?}");
    }
    assert_eq!(client.get("/v1/tasks").json()["meta"]["total"], 2);
    // Reading is harmless: another site does not see the response. `walk/callers.rs` has every other route.
    browser.send_with("GET", "/console/v1/tasks", &[], "").expect(200);
}

fn a_suspended_user_is_out_within_a_second_on_every_node(db: Db) {
    let config = db.config();
    let server = Server::start(db);
    let client = server.client();
    let (id, browser) = member(&client, "ina@a.example", "member");
    let node = server.another_node(config);
    let mut there = client.clone();
    there.base = format!("http://{node}");
    let elsewhere = Browser { client: there, cookie: browser.cookie.clone() };
    browser.get("/console/v1/tasks").expect(200);
    elsewhere.get("/console/v1/tasks").expect(200);
    client.patch(&format!("/v1/users/{id}"), json!({"role": "reader"})).expect(200);
    std::thread::sleep(Duration::from_millis(1050));
    for one in [&browser, &elsewhere] {
        one.post("/console/v1/tasks", json!({"title": "x"})).expect(403);
    }
    client.patch(&format!("/v1/users/{id}"), json!({"status": "suspended"})).expect(200);
    let suspended = Instant::now();
    for one in [&browser, &elsewhere] {
        while one.get("/console/v1/tasks").status != 401 {
            assert!(suspended.elapsed() < Duration::from_millis(1200), "the session still works");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let wrong = json!({"email": "ina@a.example", "password": super::PASSWORD});
    assert_eq!(browser.post("/console/sign-in", wrong).expect(401).code(), "unauthorized");
    client.patch(&format!("/v1/users/{id}"), json!({"status": "active"})).expect(200);
    browser.get("/console/v1/tasks").expect(401);
    browser.clone().sign_in("ina@a.example");
}

fn a_session_is_a_caller_like_a_key(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (id, browser) = member(&client, "ina@a.example", "member");
    let made = browser.post("/console/v1/tasks", json!({"title": "Call"})).expect(201);
    let path = format!("/console/v1/tasks/{}", made.id());
    let tag = browser.get(&path).expect(200).header("etag").to_string();
    let change = |tag: &str| {
        let headers = [("sec-fetch-site", "same-origin"), ("if-match", tag)];
        browser.send_with("PATCH", &path, &headers, "{\"title\":\"Mail\"}")
    };
    change("\"9\"").expect(412);
    change(&tag).expect(200);
    let headers = [("sec-fetch-site", "same-origin"), ("idempotency-key", "once")];
    let once = || browser.send_with("POST", "/console/v1/tasks", &headers, "{\"title\":\"Once\"}").expect(201);
    assert_eq!(once().id(), once().id());
    // The user is the actor in the log.
    let sql = "SELECT DISTINCT actor FROM log WHERE account_id = $1 AND entity_type = 'task'";
    let account = client.account;
    let actors = server
        .app
        .store
        .read_now(move |tx| tx.all(sql, &[account.into()], |row| Ok::<_, store::Error>(row.text(0)?.to_string())));
    assert_eq!(actors.unwrap().join(" "), id);
    let me = browser.get("/console/v1/me").expect(200).data();
    assert_eq!((&me["user"]["id"], &me["key"], &me["account"]["name"]), (&json!(id), &json!({}), &json!("Test")));
    assert!(me["scopes"].as_array().unwrap().contains(&json!("tasks.write")));
    let key = client.get("/v1/me").expect(200).data();
    assert_eq!((&key["user"], &key["scopes"]), (&json!({}), &json!(["*"])));
    assert_eq!(key["account"]["time_zone"], "Europe/Amsterdam");
    assert_eq!(client.get("/v1/me/sessions").expect(200).json(), json!({"data": [], "meta": {"total": 0}}));
}
