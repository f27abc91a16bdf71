//! The catalogue of events: every event that happens is in it, and every event in it happens.

use std::collections::BTreeSet;
use std::path::PathBuf;

use engine::clock::Moment;
use engine::http::openapi;
use engine::log::{EventType, Origin};
use engine::resource::Method;
use kantoor::registry::REGISTRY;

use super::*;
use crate::support::Office;
use crate::walk;

on_both![
    every_event_happens_and_is_listed,
    the_catalogue_describes_every_event,
    an_endpoint_warns_of_names_that_match_no_event,
    a_client_is_a_customer,
    an_erased_record_is_an_event,
];

/// Does everything that the routes offer, and lets a business run for a year and a half.
fn live(server: &Server) -> Vec<Client> {
    let clock = Moment::parse("2026-05-04T10:00:00Z");
    let (account, key) = kantoor::opening::create_demo_account(&server.app, clock).unwrap();
    let demo = Client::new(server.address, key, account.number);
    demo.post("/v1/test-clock/advance", json!({"to": "2027-05-04T10:00:00Z"})).expect(200);
    let client = server.client();
    for (resource, route) in walk::routes() {
        if route.path.contains("test-clock") || route.path.ends_with("/stream") {
            continue;
        }
        let made = walk::make(&client, resource);
        walk::send(&client, &made.path(resource, route), route, &client, &[]);
    }
    vec![demo, client, rarely(server)]
}

/// What neither the demo nor a single request does.
fn rarely(server: &Office) -> Client {
    let client = server.client();
    let advance = |to: &str| client.post("/v1/test-clock/advance", json!({"to": to})).expect(200);
    let steps = json!([{"type": "wait", "until": "{{ data.until }}"}]);
    let flow = json!({"name": "x", "trigger_type": "custom", "trigger_key": "order.shipped", "steps": steps});
    let flow = format!("/v1/automation/flows/{}", client.post("/v1/automation/flows", flow).expect(201).id());
    client.patch(&flow, json!({"active": false})).expect(200);
    client.patch(&flow, json!({"active": true})).expect(200);
    server.with_scopes(&client, &["*"]).act(&format!("{flow}/adopt")).expect(200);
    let fired = json!({"event": "order.shipped", "data": {"until": "never"}});
    let fired = client.post("/v1/automation/trigger", fired).expect(200).data();
    advance("2026-05-04T10:00:01Z");
    client.act(&format!("/v1/automation/runs/{}/retry", fired["runs"][0]["run_id"].as_str().unwrap())).expect(200);
    crate::people::member(&client, "ina@a.example", "member");
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let subscription = json!({"title": "Hosting", "client_id": firm, "status": "draft", "subscription_start": "2026-06-01",
        "lines": [{"title": "Hosting", "unit_price": 10, "vat_code": "NL21"}]});
    let subscription = client.post("/v1/subscriptions", subscription).expect(201).id();
    client.act(&format!("/v1/subscriptions/{subscription}/activate")).expect(200);
    // Its invoice cannot be made without the client.
    server.execute(&format!("DELETE FROM clients WHERE id = '{firm}'"));
    advance("2026-06-02T10:00:00Z");
    client
}

/// Whether a route of the record always emits this event.
fn is_of_a_route(event: &EventType) -> bool {
    let what = event.name.split('.').nth(1).unwrap();
    let Some((_, method)) = [("created", Method::Post), ("updated", Method::Patch), ("deleted", Method::Delete)]
        .into_iter()
        .find(|own| own.0 == what)
    else {
        return false;
    };
    let record = event.about.first().and_then(|kind| REGISTRY.named(kind));
    record.is_some_and(|record| {
        let own = if method == Method::Post { record.path.clone() } else { format!("{}/{{", record.path) };
        let is_standard =
            |path: &str| path == own || (method != Method::Post && path.starts_with(&own) && path.ends_with('}'));
        record.routes.iter().any(|route| route.method == method && is_standard(&route.path))
    })
}

/// Returns the text of all other tests: some events need a mail server that refuses, or a person who signs in.
fn other_tests() -> String {
    let mut folders = vec![PathBuf::from("tests/it")];
    let mut all = String::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("events/catalogue.rs") {
                all.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    all
}

/// Tests run with a check that the log gets no other events, so all stories in all tests prove the second half too.
fn every_event_happens_and_is_listed(db: Db) {
    let server = Server::start(db);
    server.leaves_jobs();
    let clients = live(&server);
    let happened: BTreeSet<String> = clients.iter().flat_map(|client| server.events(client, 0)).collect();
    let listed = |name: &str| REGISTRY.event(name).is_some_and(|event| event.origin == Origin::Program);
    let unlisted: Vec<&String> = happened.iter().filter(|name| !listed(name)).collect();
    assert!(unlisted.is_empty(), "not in the catalogue: {unlisted:?}");
    let tests = other_tests();
    let never = REGISTRY.events.iter().filter(|event| {
        let is_named = |(at, name): (usize, &str)| {
            !tests[at + name.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
        };
        let is_tested = || tests.match_indices(event.name.as_str()).any(is_named);
        // What is deleted can be erased: see `an_erased_record_is_an_event`.
        let is_erasure = event.name.ends_with(".erased");
        let is_seen = || happened.contains(&event.name) || is_of_a_route(event) || is_tested();
        event.origin == Origin::Program && !is_erasure && !is_seen()
    });
    let never: Vec<&str> = never.map(|event| event.name.as_str()).collect();
    assert!(never.is_empty(), "in the catalogue, but they do not happen in any test: {never:?}");
    every_payload_fits_its_schema(&clients);
}

/// What was delivered has every member that the OpenAPI document promises.
fn every_payload_fits_its_schema(clients: &[Client]) {
    let mut seen = BTreeSet::new();
    for client in clients {
        let mut after = 0;
        loop {
            let page = client.get(&format!("/v1/changes?after={after}&limit=1000")).expect(200).json();
            for change in page["data"].as_array().unwrap() {
                let name = change["type"].as_str().unwrap();
                let body = &openapi::DOCUMENT["webhooks"][name]["post"]["requestBody"]["content"]["application/json"];
                let missing = lacks(&body["schema"], change);
                assert_eq!(missing, None, "{name}: {change}");
                seen.insert(name.to_string());
            }
            after = page["meta"]["last_seq"].as_i64().unwrap();
            if page["meta"]["has_more"] == false {
                break;
            }
        }
    }
    assert!(seen.len() > 100, "{} types of events", seen.len());
}

/// Returns what a value lacks that the schema requires.
fn lacks(schema: &Value, value: &Value) -> Option<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let component = openapi::DOCUMENT.pointer(reference.trim_start_matches('#'));
        return match component {
            Some(component) => lacks(component, value),
            None => Some(format!("the schema {reference}")),
        };
    }
    if let Some(all) = schema["allOf"].as_array() {
        return all.iter().find_map(|one| lacks(one, value));
    }
    if let Some(any) = schema["anyOf"].as_array().filter(|_| value.is_object()) {
        return any.iter().map(|one| lacks(one, value)).min().flatten();
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let Some(member) = value.get(name) else { return Some(name.to_string()) };
        let names = schema["properties"][name]["enum"].as_array().filter(|_| name == "type");
        if names.is_some_and(|names| !names.contains(member)) {
            return Some(format!("{name} {member}"));
        }
        if name == "data" || name == "message" || name == "mail" {
            let inside = lacks(&schema["properties"][name], member);
            if inside.is_some() {
                return inside;
            }
        }
    }
    None
}

fn the_catalogue_describes_every_event(server: Shared) {
    let client = server.client();
    // It is documentation, so any key may read it.
    let all = server.with_scopes(&client, &["tasks.read"]).get("/v1/events/types").expect(200);
    assert!(all.text.len() < 512 * 1024, "{} bytes", all.text.len());
    let names: Vec<String> =
        all.data().as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_string()).collect();
    assert_eq!(names, REGISTRY.events.iter().map(|event| event.name.clone()).collect::<Vec<_>>());
    assert_eq!(all.json()["meta"]["total"], names.len());
    for one in all.data().as_array().unwrap().iter().filter(|one| one["fired_only"] == false) {
        let webhook = &openapi::DOCUMENT["webhooks"][one["name"].as_str().unwrap()];
        let body = &webhook["post"]["requestBody"]["content"]["application/json"];
        assert_eq!(lacks(&body["schema"], &one["example"]), None, "{}", one["example"]);
    }
    let find = |query: &str| client.get(&format!("/v1/events/types?type={query}")).expect(200).data();
    let paid = find("invoice.paid")[0].clone();
    assert_eq!(
        (&paid["meaning"], &paid["entity_types"], &paid["fired_only"]),
        (&json!("An invoice was paid in full."), &json!(["invoice"]), &json!(false))
    );
    assert_eq!(
        (&paid["example"]["type"], &paid["example"]["data"]["payment_status"]),
        (&json!("invoice.paid"), &json!("paid"))
    );
    assert_eq!(find("client.*"), find("customer.*"));
    assert_eq!(find("client.created")[0]["name"], "customer.created");
    assert_eq!(find("planning.updated")[0]["fired_only"], true);
    let several = find("invoice.paid,%20quote.viewed,phase.*");
    let names: Vec<&str> = several.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["invoice.paid", "phase.created", "phase.deleted", "phase.erased", "phase.updated", "quote.viewed"]
    );
    for (wrong, guess) in [("invoice.payd", "invoice.paid"), ("invoice.paid,invoce.*", "invoice.*"), ("nope.*", "")] {
        let refused = client.get(&format!("/v1/events/types?type={wrong}")).expect(422);
        assert_eq!(refused.faults(), ["type: invalid_choice"]);
        assert!(guess.is_empty() || refused.text.contains(&format!("did you mean '{guess}'?")), "{}", refused.text);
    }
    assert_eq!(find("mail.bounced")[0]["entity_types"], json!(["invoice", "quote", "workorder", "ticket"]));
    assert!(find("ticket.message")[0]["example"]["data"]["message"]["body"].is_string());
}

fn an_endpoint_warns_of_names_that_match_no_event(server: Shared) {
    let client = server.client();
    let events = json!([
        "invoice.payd",
        "invoce.*",
        "invoice.*",
        "order.shipped",
        "planning.updated",
        "client.created",
        "*",
        "planning.*",
        "webhook.test",
        "clients.*",
        "INVOICE.PAID"
    ]);
    let made =
        client.post("/v1/webhook-endpoints", json!({"url": "https://example.com/in", "events": events})).expect(201);
    assert_eq!(
        made.json()["meta"]["warnings"],
        json!([
            "events: 'invoice.payd' matches no event; did you mean 'invoice.paid'?",
            "events: 'invoce.*' matches no event; did you mean 'invoice.*'?",
            "events: 'order.shipped' matches no event; events that are fired are sent as 'automation.triggered'",
            "events: 'planning.updated' never happens by itself; events that are fired are sent as 'automation.triggered'",
            "events: 'planning.*' never happens by itself; events that are fired are sent as 'automation.triggered'",
            "events: 'webhook.test' is only sent by the test of an endpoint, whatever events it lists",
            "events: 'clients.*' matches no event; did you mean 'client.*'?",
            "events: 'INVOICE.PAID' matches no event; did you mean 'invoice.paid'?",
        ])
    );
    let path = format!("/v1/webhook-endpoints/{}", made.id());
    assert_eq!(client.patch(&path, json!({"description": "x"})).expect(200).json()["meta"], json!({}));
    let changed = client.patch(&path, json!({"events": ["qoute.accepted"]})).expect(200).json();
    assert_eq!(
        changed["meta"]["warnings"],
        json!(["events: 'qoute.accepted' matches no event; did you mean 'quote.accepted'?"])
    );
    assert_eq!(client.patch(&path, json!({"events": ["invoice.paid"]})).expect(200).json()["meta"], json!({}));
}

fn a_client_is_a_customer(db: Db) {
    let server = sending(db);
    let client = server.client();
    let receiver = receiver(|_| Reply::new(200));
    let (path, _) = endpoint(&client, &receiver.url("/in"), &["client.*"]);
    let flow = |kind: &str, key: &str| {
        let steps = json!([{"type": "create_note", "body": "{{ event }} {{ data.company_name }}", "client_id": "{{ data.id }}"}]);
        let body = json!({"name": key, "trigger_type": kind, "trigger_key": key, "steps": steps});
        let made = client.post("/v1/automation/flows", body).expect(201);
        assert_eq!(made.json()["meta"], json!({}), "{key}");
        made.id()
    };
    let flows = [flow("event", "client.created"), flow("event", "customer.created"), flow("custom", "client.created")];
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let runs = client.get("/v1/automation/runs").expect(200).data();
    assert_eq!(runs.as_array().unwrap().len(), 3, "{runs}");
    assert_eq!(names(&received(&receiver, 1)), ["customer.created"]);
    assert_eq!(deliveries(&client, &path, "event=client.created").len(), 1);
    for name in ["client.created", "customer.created"] {
        let fired =
            client.post("/v1/automation/trigger", json!({"event": name, "data": {"id": firm}})).expect(200).data();
        assert_eq!((&fired["event"], &fired["matched"]), (&json!(name), &json!(3)));
        let changes = client.get(&format!("/v1/changes?type={name}")).expect(200).data();
        assert_eq!(changes.as_array().unwrap().len(), 1, "{name}");
    }
    let period = json!({"from": "2026-05-01T00:00:00Z", "to": "2026-05-31T00:00:00Z"});
    for id in flows {
        let told = client.post(&format!("/v1/automation/flows/{id}/backtest"), period.clone()).expect(200).data();
        assert_eq!(told["matched"], 3, "{told}");
    }
    // The scopes are those of clients.
    let weak = server.with_scopes(&client, &["webhooks.write"]);
    let refused = weak.post("/v1/webhook-endpoints", json!({"url": "https://example.com/in", "events": ["client.*"]}));
    assert!(refused.expect(403).text.contains("relations.read"));
}

fn an_erased_record_is_an_event(db: Db) {
    let server = sending(db);
    let client = server.client();
    let receiver = receiver(|_| Reply::new(200));
    let body = json!({"url": receiver.url("/in"), "events": ["client.erased", "task.erased"]});
    assert_eq!(client.post("/v1/webhook-endpoints", body).expect(201).json()["meta"]["warnings"], json!(null));
    let flow = |title: &str, active: bool| {
        let steps = json!([{"type": "create_task", "title": title}]);
        let body = json!({"name": "x", "active": active, "trigger_type": "event", "trigger_key": "customer.erased",
            "steps": steps});
        client.post("/v1/automation/flows", body).expect(201).json()["meta"]["warnings"].to_string()
    };
    assert_eq!(flow("Erase {{ data.id }} elsewhere too: {{ data.lines }}", true), "null");
    // The record is not in it.
    let told = flow("{{ data.company_name }}", false);
    assert!(told.contains("has no member 'company_name'"), "{told}");
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let task = client.post("/v1/tasks", json!({"title": "Call"})).expect(201).id();
    client.delete(&format!("/v1/clients/{firm}")).expect(204);
    client.delete(&format!("/v1/tasks/{task}")).expect(204);
    let erased = [("client", &firm), ("task", &task)].map(|(kind, id)| {
        let (caller, id) = (server.app.acting_in(client.account, "operator").unwrap(), id.clone());
        let done = server.app.store.write_now(client.account, move |tx| {
            let ctx = caller.writing(tx)?;
            engine::log::erasing::erase(tx, &ctx, kind, &id)
        });
        done.unwrap()
    });
    assert_eq!(erased[1], 2);
    let sent = received(&receiver, 2);
    let mut names = names(&sent);
    names.sort();
    assert_eq!(names, ["customer.erased", "task.erased"]);
    let changes = client.get("/v1/changes?type=client.erased").expect(200).data();
    assert_eq!(changes[0]["data"], json!({"id": firm, "lines": erased[0]}));
    let body = &openapi::DOCUMENT["webhooks"]["customer.erased"]["post"]["requestBody"]["content"]["application/json"];
    assert_eq!(lacks(&body["schema"], &changes[0]), None);
    let runs = client.get("/v1/automation/runs").expect(200).data();
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs}");
    // Whatever can be deleted can be erased.
    for event in REGISTRY.events.iter().filter(|event| event.origin == Origin::Program) {
        if let Some(record) = event.name.strip_suffix(".deleted") {
            assert!(REGISTRY.event(&format!("{record}.erased")).is_some(), "{record}");
        }
    }
}

/// Returns the list of events in the guide.
fn table() -> String {
    let mut table = "| Event | Record | Meaning | When |\n|---|---|---|---|\n".to_string();
    for event in &REGISTRY.events {
        let records: Vec<String> = event.about.iter().map(|kind| format!("`{kind}`")).collect();
        table.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            event.name,
            records.join(", "),
            event.meaning,
            event.when
        ));
    }
    table
}

/// `make docs-snapshots` writes the list; otherwise it is compared.
#[test]
fn the_guide_lists_every_event() {
    let guide = std::fs::read_to_string("docs/events.md").unwrap();
    let (start, end) = ("<!-- events: written by `make docs-snapshots` -->\n", "<!-- end of events -->");
    let (before, rest) = guide.split_once(start).unwrap();
    let (written, after) = rest.split_once(end).unwrap();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write("docs/events.md", format!("{before}{start}{}{end}{after}", table())).unwrap();
    } else {
        assert_eq!(written, table(), "run make docs-snapshots");
    }
}

#[test]
fn the_openapi_document_has_every_webhook() {
    kantoor::registry::install();
    let webhooks = openapi::DOCUMENT["webhooks"].as_object().unwrap();
    let sent = REGISTRY.events.iter().filter(|event| event.origin != Origin::Callers);
    let sent: Vec<&String> = sent.map(|event| &event.name).collect();
    assert_eq!(webhooks.keys().collect::<BTreeSet<_>>(), sent.into_iter().collect::<BTreeSet<_>>());
    let ids: BTreeSet<&str> = webhooks.values().map(|one| one["post"]["operationId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), webhooks.len(), "operation ids are unique");
}
