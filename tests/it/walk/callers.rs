//! Who may call what: every route of the registry, with every kind of caller.

use engine::accounts::{self, NewKey};
use engine::clock::Moment;
use engine::resource::{Method, Returns, Route};
use kantoor::registry::{self, REGISTRY};

use super::{make, routes};
use crate::on_both;
use crate::people::{Browser, owner};
use crate::support::{Client, Db, Office, Reply, Server};

/// Every key and user may read these settings.
const OPEN: &[&str] = &[
    "/v1/settings",
    "/v1/settings/usage",
    "/v1/tax-rates",
    "/v1/tax-rates/{id}",
    "/v1/corporate-identities",
    "/v1/corporate-identities/{id}",
    "/v1/custom-fields",
    "/v1/custom-fields/{id}",
    "/v1/email-domains",
    "/v1/email-domains/{id}",
    "/v1/mail-templates",
    "/v1/mail-templates/{id}",
    "/v1/events/types",
    "/v1/test-clock",
];

/// These only show what the caller has the scopes to read.
const LIMITED: &[&str] = &["/v1/search", "/v1/overview"];

/// A new route needs a scope; one for everybody is listed above, or concerns only its caller.
#[test]
fn every_route_declares_its_scope() {
    registry::install();
    let known = accounts::scopes();
    for (_, route) in routes() {
        let what = format!("{} {}", route.method.name(), route.path);
        let is_own = route.path == "/v1/me" || route.path.starts_with("/v1/me/");
        let open = OPEN.iter().chain(LIMITED);
        let is_open = route.method == Method::Get && open.into_iter().any(|path| *path == route.path);
        assert_eq!(route.scope.is_empty(), is_own || is_open, "{what} requires '{}'", route.scope);
        let kind = if route.method == Method::Get { ".read" } else { ".write" };
        assert!(route.scope.is_empty() || route.scope.ends_with(kind), "{what} requires '{}'", route.scope);
        let acts = route.acts_with.map(|(_, scope)| scope);
        let unknown: Vec<&str> =
            route.scopes().chain(acts).filter(|scope| !known.contains(&scope.to_string())).collect();
        assert!(unknown.is_empty(), "{what}: {unknown:?}");
    }
    let there = |path: &str| routes().any(|(_, route)| route.path == path);
    assert!(OPEN.iter().all(|path| there(path)), "a path in the list no longer exists");
}

on_both![
    without_valid_credentials_nothing_answers,
    a_key_opens_the_routes_of_its_scopes_only,
    forged_requests_are_refused_on_every_route,
    no_get_writes,
];

fn unlimited(db: Db) -> Server {
    Server::with(db, |config| config.public_limit_per_minute = 0)
}

/// The path of a route without real ids: scopes are checked before anything is looked up.
fn nowhere(route: &Route) -> String {
    route.path.replace(['{', '}'], "")
}

fn is_stream(route: &Route) -> bool {
    matches!(route.returns, Returns::Stream(_))
}

fn key(server: &Office, client: &Client, scopes: &[&str], expires_at: Option<Moment>) -> (Client, String) {
    let scopes = scopes.iter().map(ToString::to_string).collect();
    let (secret, id) = server.add_key(client, NewKey { name: "walk".to_string(), scopes, expires_at });
    (Client { key: secret, ..client.clone() }, id)
}

fn without_valid_credentials_nothing_answers(db: Db) {
    let server = unlimited(db);
    let client = server.client();
    let (expired, _) = key(&server, &client, &["*"], Some(Moment(1)));
    let (revoked, id) = key(&server, &client, &["*"], None);
    server.execute(&format!("UPDATE keys SET revoked_at = 1 WHERE id = '{id}'"));
    let session = owner(&server, &client, "olga@a.example");
    let ended = owner(&server, &server.client(), "ella@a.example");
    ended.send("POST", "/console/sign-out", "").expect(204);
    let nobody = Browser::new(&client);
    let nowhere_else = [("/v1/nowhere".to_string(), "GET"), ("/v1/nowhere".to_string(), "POST")];
    for (path, method) in routes().map(|(_, route)| (nowhere(route), route.method.name())).chain(nowhere_else) {
        for (who, caller) in [("an expired key", &expired), ("a revoked key", &revoked)] {
            let reply = caller.send(method, &path, &[], "");
            assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"), "{method} {path} with {who}");
        }
        for (who, browser) in [("nothing", &nobody), ("a session", &session), ("an ended session", &ended)] {
            let reply = browser.send(method, &path, "");
            assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"), "{method} {path} with {who}");
        }
        let inside = format!("/console{path}");
        for (who, browser) in [("nothing", &nobody), ("an ended session", &ended)] {
            assert_eq!(browser.send(method, &inside, "").status, 401, "{method} {inside} with {who}");
        }
        let reply = client.send(method, &inside, &[("sec-fetch-site", "same-origin")], "");
        assert_eq!(reply.status, 401, "{method} {inside} with a key");
    }
}

fn a_key_opens_the_routes_of_its_scopes_only(db: Db) {
    let server = unlimited(db);
    let client = server.client();
    let all: Vec<&str> = accounts::scopes().iter().map(String::as_str).filter(|scope| *scope != "*").collect();
    let mut keys: Vec<(Vec<&str>, Client)> =
        all.iter().map(|scope| (vec![*scope], server.with_scopes(&client, &[scope]))).collect();
    keys.push((vec!["*"], server.with_scopes(&client, &["*"])));
    keys.push((all.clone(), server.with_scopes(&client, &all)));
    let (none, id) = key(&server, &client, &["*"], None);
    server.execute(&format!("UPDATE keys SET scopes = '' WHERE id = '{id}'"));
    keys.push((vec![], none));
    for (scopes, key) in &keys {
        let may = |scope: &str| scopes.contains(&scope) || scopes.contains(&"*");
        for (_, route) in routes() {
            let missing: Vec<&str> = route.lacks(may).into_iter().collect();
            if missing.is_empty() && is_stream(route) {
                continue;
            }
            let reply = key.send(route.method.name(), &nowhere(route), &[], "");
            let what = format!("{} {} with {scopes:?}: {reply:?}", route.method.name(), route.path);
            let is_refused = reply.status == 403 && reply.text.contains("This request requires the scope");
            assert_eq!(is_refused, !missing.is_empty(), "{what}");
            assert!(!is_refused || missing.iter().any(|scope| reply.text.contains(scope)), "{what}");
            if let Some((parameter, scope)) = route.acts_with.filter(|_| missing.is_empty()) {
                let reply = key.get(&format!("{}?{parameter}=x", nowhere(route)));
                assert_eq!(reply.status == 403 && reply.text.contains(scope), !may(scope), "{what}: {reply:?}");
            }
        }
    }
}

fn forged_requests_are_refused_on_every_route(db: Db) {
    let server = unlimited(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let before = server.last_seq(&client);
    let forged: [&[(&str, &str)]; 5] = [
        &[],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site"), ("origin", client.base.as_str())],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
    ];
    for (_, route) in routes().filter(|(_, route)| !is_stream(route)) {
        let parameter = route.acts_with.map(|(parameter, _)| parameter);
        if route.method == Method::Get && parameter.is_none() {
            continue;
        }
        let query = parameter.map_or(String::new(), |parameter| format!("?{parameter}=x"));
        let path = format!("/console{}{query}", nowhere(route));
        let from_us = |reply: &Reply| !reply.text.contains("does not come from a page of this server");
        for headers in forged {
            let reply = browser.send_with(route.method.name(), &path, headers, "{}");
            assert!(reply.status == 403 && !from_us(&reply), "{} {path} {headers:?}: {reply:?}", route.method.name());
        }
        if route.method == Method::Get {
            assert!(from_us(&browser.get(&path).expect(200)));
        }
    }
    assert_eq!(server.last_seq(&client), before, "nothing happened");
}

/// Another site can cause any GET: none of them changes anything, except the one that also requires our origin.
fn no_get_writes(db: Db) {
    let server = unlimited(db);
    let client = server.client();
    // Before somebody sets the account up, which makes it strict about final documents.
    let made: Vec<_> = REGISTRY.resources.iter().map(|resource| (resource, make(&client, resource))).collect();
    let browser = owner(&server, &client, "olga@a.example");
    let before = server.last_seq(&client);
    for (resource, made) in &made {
        for route in resource.routes.iter().filter(|route| route.method == Method::Get && !is_stream(route)) {
            let path = made.path(resource, route);
            browser.send_with("GET", &format!("/console{path}"), &[("sec-fetch-site", "cross-site")], "");
            client.get(&path);
            let events = server.events(&client, before);
            assert!(events.is_empty(), "GET {} writes {events:?}", route.path);
        }
    }
}
