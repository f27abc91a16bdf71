//! A flow is a caller, too: it may do what its author may, and nothing in another account.

use engine::accounts;
use engine::http::openapi;
use engine::resource::{Method, RequestBody};
use serde_json::{Value, json};

use super::routes;
use crate::on_both;
use crate::support::{Client, Shared};

on_both![the_steps_of_a_flow_require_the_scopes_of_its_author, the_steps_of_a_flow_stay_in_their_account];

fn flow(steps: &Value) -> Value {
    json!({"name": "Walk", "trigger_type": "custom", "trigger_key": "walk.flow", "steps": steps})
}

/// A step of each type that acts, and the scopes that it requires.
fn steps() -> Vec<(Value, Vec<String>)> {
    let scopes = |method: Method, path: &str| -> Vec<String> {
        let route = routes().find(|(_, route)| route.method == method && route.path == path).unwrap().1;
        route.scopes().map(str::to_string).collect()
    };
    let one = |scope: &str| vec![scope.to_string()];
    let mut steps = vec![
        (json!({"type": "send_email", "to": "a@b.example", "subject": "s", "body": "b"}), one("tickets.write")),
        (json!({"type": "create_task", "title": "t"}), scopes(Method::Post, "/v1/tasks")),
        (json!({"type": "create_note", "body": "b", "client_id": "c"}), scopes(Method::Post, "/v1/notes")),
        (json!({"type": "create_ticket", "subject": "s"}), scopes(Method::Post, "/v1/tickets")),
        (json!({"type": "create_deal", "title": "t", "client_id": "c"}), scopes(Method::Post, "/v1/deals")),
        (
            json!({"type": "create_invoice", "title": "t", "client_id": "c", "rows": [{"name": "x"}]}),
            scopes(Method::Post, "/v1/invoices"),
        ),
        (
            json!({"type": "add_ticket_message", "body": "b", "ticket_id": "t"}),
            scopes(Method::Post, "/v1/tickets/{id}/messages"),
        ),
        (json!({"type": "http", "url": "https://example.com/"}), one("webhooks.write")),
        (json!({"type": "trigger", "event": "invoice.paid"}), one("invoices.write")),
    ];
    for (resource, route) in routes().filter(|(_, route)| route.body == RequestBody::Patch) {
        if route.path.ends_with("/{id}") {
            let step = json!({"type": "update", "entity_type": resource.shape.name, "id": "x", "fields": openapi::example(route)});
            steps.push((step, route.scopes().map(str::to_string).collect()));
        }
    }
    steps
}

fn the_steps_of_a_flow_require_the_scopes_of_its_author(server: Shared) {
    let client = server.client();
    let refused = |author: &Client, step: &Value| {
        let reply = author.post("/v1/automation/flows", flow(&json!([step])));
        (reply.status == 403).then_some(reply.text)
    };
    for (step, required) in steps() {
        for scope in &required {
            let others = accounts::scopes().iter().map(String::as_str).filter(|one| *one != "*" && one != scope);
            let author = server.with_scopes(&client, &others.collect::<Vec<_>>());
            let why = refused(&author, &step).unwrap_or_else(|| panic!("{step} is saved without {scope}"));
            // Nobody saves a flow without this one, whatever its steps.
            let named = if scope == "automation.write" { format!("'{scope}'") } else { format!("'{scope}' (step 1") };
            assert!(why.contains(&named), "{step}: {why}");
        }
        let mut scopes = vec!["automation.write"];
        scopes.extend(required.iter().map(String::as_str));
        let author = server.with_scopes(&client, &scopes);
        assert_eq!(refused(&author, &step), None, "{step} with {scopes:?}");
    }
}

fn the_steps_of_a_flow_stay_in_their_account(server: Shared) {
    let (client, stranger) = (server.client(), server.client());
    let theirs = stranger.post("/v1/products", json!({"name": "Theirs"})).expect(201).id();
    let unknown = "00000000-0000-7000-8000-000000000000";
    let told = [(theirs.as_str(), "10:01"), (unknown, "10:02")].map(|(id, time)| {
        let step = json!({"type": "update", "entity_type": "product", "id": id, "fields": {"name": "Mine"}});
        let made = client.post("/v1/automation/flows", flow(&json!([step]))).expect(201).id();
        let fired = client.post("/v1/automation/trigger", json!({"event": "walk.flow"})).expect(200).data();
        client.post("/v1/test-clock/advance", json!({"to": format!("2026-05-04T{time}:00Z")})).expect(200);
        let run = fired["runs"][0]["run_id"].as_str().unwrap();
        let run = client.get(&format!("/v1/automation/runs/{run}")).expect(200).data();
        assert_eq!(run["status"], "failed", "{run}");
        client.delete(&format!("/v1/automation/flows/{made}")).expect(204);
        run["error"].to_string().replace(id, "…")
    });
    assert_eq!(told[0], told[1]);
    assert_eq!(stranger.get(&format!("/v1/products/{theirs}")).expect(200).data()["name"], "Theirs");
}
