//! Another account does not exist, whatever is asked about it.

use engine::resource::{Method, RequestBody, Resource, Route};
use kantoor::people::role::Role;
use kantoor::registry::REGISTRY;
use serde_json::{Value, json};

use super::{Made, can_be_made, good_body, make, of_table, routes};
use crate::on_both;
use crate::people::{Browser, member};
use crate::support::{Client, Db, Reply, Server, Shared};

const UNKNOWN: &str = "00000000-0000-7000-8000-000000000000";

on_both![the_ids_of_other_accounts_are_unknown_ids, no_body_refers_to_records_of_another_account];

/// Records of another account look like records that never existed, for keys and for sessions, whatever the method.
fn the_ids_of_other_accounts_are_unknown_ids(db: Db) {
    let server = Server::with(db, |config| config.public_limit_per_minute = 0);
    let (client, stranger) = (server.client(), server.client());
    let users: Vec<(Vec<String>, Browser)> = Role::ALL
        .iter()
        .map(|role| (role.scopes(), member(&client, &format!("{}@a.example", role.wire()), role.wire()).1))
        .collect();
    for resource in REGISTRY.resources.iter().filter(|resource| can_be_made(resource)) {
        let theirs = make(&stranger, resource);
        let told = |reply: &Reply| {
            let json: Value = serde_json::from_str(&reply.text).unwrap_or_default();
            let mut error = json["error"].to_string();
            for id in [&theirs.parent, &theirs.id, UNKNOWN].into_iter().filter(|id| !id.is_empty()) {
                error = error.replace(id, "…");
            }
            (reply.status, error)
        };
        for route in resource.routes.iter().filter(|route| route.path.contains('{') && !tells_by_contract(route)) {
            let body = match route.body {
                RequestBody::File | RequestBody::Nothing => String::new(),
                _ => good_body(&client, route).to_string(),
            };
            let method = route.method.name();
            for (foreign, unknown) in pairs(&client, resource, route, &theirs) {
                let what = format!("{method} {} at {foreign} and {unknown}", route.path);
                let [theirs, none] = [&foreign, &unknown].map(|path| told(&client.send(method, path, &[], &body)));
                assert_eq!((theirs.0, &theirs), (404, &none), "{what}");
                for (scopes, browser) in &users {
                    let [theirs, none] =
                        [&foreign, &unknown].map(|path| told(&browser.send(method, &format!("/console{path}"), &body)));
                    let may = route.lacks(|scope| scopes.iter().any(|own| own == "*" || own == scope)).is_none();
                    assert_eq!((theirs.0, &theirs), (if may { 404 } else { 403 }, &none), "{what}");
                }
            }
        }
    }
}

/// Whether a route reports that the client does not exist, with 200.
fn tells_by_contract(route: &Route) -> bool {
    route.path.ends_with("/mandate") && route.method == Method::Get
}

/// Returns paths to a record of another account, each with a path to an id that does not exist in its place.
fn pairs(client: &Client, resource: &Resource, route: &Route, theirs: &Made) -> Vec<(String, String)> {
    let mut pairs = vec![(theirs.path(resource, route), theirs.with_id(resource, route, UNKNOWN))];
    if !theirs.parent.is_empty() {
        let orphan = Made { parent: UNKNOWN.to_string(), id: theirs.id.clone() };
        pairs.push((theirs.path(resource, route), orphan.path(resource, route)));
        // Below a record of our own.
        let ours = Made { parent: make(client, resource).parent, id: theirs.id.clone() };
        pairs.push((ours.path(resource, route), ours.with_id(resource, route, UNKNOWN)));
    }
    pairs.retain(|(foreign, unknown)| foreign != unknown);
    pairs
}

fn no_body_refers_to_records_of_another_account(server: Shared) {
    let (client, stranger) = (server.client(), server.client());
    let mut count = 0;
    for (resource, route) in routes().filter(|(_, route)| !matches!(route.body, RequestBody::File)) {
        let is_sent = |table: &str| REGISTRY.resources.iter().any(|one| one.shape.table == table && can_be_made(one));
        for field in route.fields.iter().filter(|field| is_sent(field.rules.refers)) {
            let foreign = make(&stranger, of_table(field.rules.refers)).id;
            let path = make(&client, resource).path(resource, route);
            let mut body = good_body(&client, route);
            body[field.name] = json!(foreign);
            let reply = client.send(route.method.name(), &path, &[], &body.to_string());
            let what = format!("{} {} {}: {reply:?}", route.method.name(), route.path, field.name);
            assert_eq!(reply.status, 422, "{what}");
            assert!(reply.faults().contains(&format!("{}: reference_not_found", field.name)), "{what}");
            count += 1;
        }
    }
    assert!(count > 20, "{count} fields");
}
