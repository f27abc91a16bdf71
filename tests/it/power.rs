//! Every route, with a key that has only one scope: flows, backtests, triggers and webhooks give it no more than that.

use engine::resource::Returns;
use kantoor::registry::REGISTRY;
use kantoor::webhooks;
use serde_json::{Value, json};
use web::scripted::{Reply as Answer, Scripted};

use crate::on_both;
use crate::support::{Client, Db, Office, Server};
use crate::walk::{self, can_be_made, make, routes};

on_both![automation_alone_reads_nothing_and_mails_nobody, webhooks_alone_receive_nothing, any_key_reads_the_settings];

/// What only the owner may see.
const SECRET: &str = "Geheim";

fn server(db: Db) -> Server {
    let server = Server::with(db, |config| {
        config.allow_private_addresses = "127.0.0.1".to_string();
        config.trigger_limit_per_minute = 0;
    });
    server.block_on(async { webhooks::start(&server.app) });
    server
}

fn count(server: &Server, sql: &'static str) -> i64 {
    server.app.store.read_now(move |tx| tx.int(sql, &[])).unwrap()
}

/// Every event that a record can have, and those that have another name.
fn events() -> Vec<String> {
    let others = ["sales.document_sent", "document.draft", "mail.unanswered", "automation.triggered"];
    let kept = REGISTRY.resources.iter().filter(|resource| resource.is_kept());
    let of_records =
        kept.flat_map(|resource| ["created", "updated"].map(|verb| format!("{}.{verb}", resource.shape.events)));
    of_records.chain(others.map(str::to_string)).collect()
}

/// Sends a valid request to every route, and returns what the key reads there.
fn walked(owner: &Client, key: &Client) -> Vec<(String, u16, String)> {
    let mut seen = Vec::new();
    for (resource, route) in routes().filter(|(_, route)| !matches!(route.returns, Returns::Stream(_))) {
        let made = make(owner, resource);
        let path = made.path(resource, route);
        let reply = walk::send(key, &path, route, owner, &[]);
        seen.push((format!("{} {path}", route.method.name()), reply.status, reply.text));
    }
    seen
}

fn step(kind: &str) -> Value {
    match kind {
        "send_email" => json!({"type": kind, "to": "thief@example.com", "subject": "x", "body": "{{ data }}"}),
        "create_task" => json!({"type": kind, "title": "{{ data }}"}),
        "create_deal" => json!({"type": kind, "title": "{{ data }}", "client_id": "{{ data.id }}"}),
        "create_note" => json!({"type": kind, "body": "{{ data }}", "client_id": "{{ data.id }}"}),
        "add_ticket_message" => json!({"type": kind, "body": "{{ data }}"}),
        "create_ticket" => json!({"type": kind, "subject": "{{ data }}"}),
        "create_invoice" => json!({"type": kind, "title": "x", "client_id": "{{ data.id }}", "rows": [{"name": "x"}]}),
        "http" => json!({"type": kind, "url": "http://127.0.0.1:9/", "body": "{{ data }}"}),
        "update" => json!({"type": kind, "entity_type": "corporate_identity", "id": "x", "fields": {"name": "x"}}),
        _ => json!({"type": kind}),
    }
}

fn automation_alone_reads_nothing_and_mails_nobody(db: Db) {
    let server = server(db);
    let owner = server.client();
    let firm = json!({"company_name": SECRET, "email": "anna@ster.example"});
    let firm = owner.post("/v1/clients", firm).expect(201).id();
    let body = json!({"title": SECRET, "client_id": firm, "generation_mode": "final", "rows": [{"name": SECRET, "unit_price": 100}]});
    let invoice = owner.post("/v1/invoices", body).expect(201).id();
    let own = json!({"name": "Own", "trigger_type": "event", "trigger_key": "invoice.created", "steps": [{"type": "trigger", "event": "x", "data": {"title": "{{ data.title }}"}}]});
    let own = owner.post("/v1/automation/flows", own).expect(201).id();
    let mails = count(&server, "SELECT count(*) FROM mails");
    let scopes = ["automation.write"];
    let key = server.with_scopes(&owner, &scopes);
    let flow = |event: &str, steps: Value| {
        key.post(
            "/v1/automation/flows",
            json!({"name": "x", "trigger_type": "custom", "trigger_key": event, "steps": steps}),
        )
    };

    // No flow listens to records, whatever it does with them, and none acts.
    for event in events() {
        let reply = flow(&event, json!([{"type": "approval", "message": "{{ data }}"}])).expect(403);
        assert!(reply.text.contains(".read' (trigger)"), "{event}: {}", reply.text);
        let fired = key.post("/v1/automation/trigger", json!({"event": event, "data": {"id": invoice}}));
        let automation = fired.status == 200
            && event.split('.').next().is_some_and(|kind| ["flow", "run", "automation"].contains(&kind));
        assert!(fired.status == 403 || automation, "{event}: {fired:?}");
    }
    let kinds = [
        "send_email",
        "create_task",
        "create_note",
        "create_ticket",
        "create_deal",
        "create_invoice",
        "add_ticket_message",
        "update",
        "send_document",
        "http",
    ];
    for kind in kinds {
        flow("x.y", json!([step(kind)])).expect(403);
    }
    // Nor does one that finds out about a record in a run, or that somebody else made.
    let reads = json!([{"type": "approval", "message": "{{ record.title }} {{ data.title }}"}]);
    flow("x.y", reads).expect(201);
    for (kind, id) in [("invoice", &invoice), ("client", &firm)] {
        key.post("/v1/automation/trigger", json!({"event": "x.y", "entity_type": kind, "data": {"id": id}}))
            .expect(403);
        owner
            .post("/v1/automation/trigger", json!({"event": "x.y", "entity_type": kind, "data": {"id": id}}))
            .expect(200);
    }
    let late = json!([{"type": "update", "entity_type": "{{ data.kind }}", "id": "{{ data.of }}", "fields": {"title": "mine"}}]);
    flow("x.z", late).expect(201);
    let data = json!({"kind": "invoice", "of": invoice});
    key.post("/v1/automation/trigger", json!({"event": "x.z", "data": data})).expect(200);
    let period = json!({"from": "2026-05-01T00:00:00Z", "to": "2026-05-30T00:00:00Z"});
    key.post(&format!("/v1/automation/flows/{own}/backtest"), period).expect(403);
    for library in owner.get("/v1/automation/flows?active=false").data().as_array().unwrap() {
        let path = format!("/v1/automation/flows/{}", library["id"].as_str().unwrap());
        key.patch(&path, json!({"active": true})).expect(403);
        key.act(&format!("{path}/adopt")).expect(403);
    }
    owner.post("/v1/test-clock/advance", json!({"to": "2026-05-04T10:01:00Z"})).expect(200);
    let title = owner.get(&format!("/v1/invoices/{invoice}")).data()["title"].clone();
    assert_eq!(title, SECRET);

    readers_of_runs_see_no_records(&server, &owner, &own);
    // Every other route asks for its own scope; settings and one's own sessions are for every key.
    assert_eq!(count(&server, "SELECT count(*) FROM mails"), mails);
    for (what, status, text) in walked(&owner, &key) {
        let (method, path) = what.split_once(' ').unwrap();
        let open = path.starts_with("/v1/automation/") || path.starts_with("/v1/me/") || method == "GET";
        assert!(status == 403 || open, "{what}: {status} {text}");
        assert!(!text.contains(SECRET), "{what}: {text}");
    }
}

/// Reading automation as well shows what happened, without the records.
fn readers_of_runs_see_no_records(server: &Office, owner: &Client, flow: &str) {
    let reader = server.with_scopes(owner, &["automation.write", "automation.read"]);
    let runs = reader.get("/v1/automation/runs?per_page=100").expect(200);
    assert!(!runs.text.contains(SECRET), "{}", runs.text);
    for run in runs.data().as_array().unwrap() {
        let steps = reader.get(&format!("/v1/automation/runs/{}/steps", run["id"].as_str().unwrap())).expect(200);
        assert!(!steps.text.contains(SECRET), "{}", steps.text);
    }
    let period = json!({"from": "2026-05-01T00:00:00Z", "to": "2026-05-30T00:00:00Z"});
    reader.post(&format!("/v1/automation/flows/{flow}/backtest"), period).expect(403);
}

fn webhooks_alone_receive_nothing(db: Db) {
    let server = server(db);
    server.leaves_jobs();
    let owner = server.client();
    let receiver = Scripted::start(|_| Answer::new(204)).unwrap();
    let key = server.with_scopes(&owner, &["webhooks.write"]);
    let endpoint = |client: &Client, path: &str, events: Value| {
        client.post("/v1/webhook-endpoints", json!({"url": receiver.url(path), "events": events}))
    };
    endpoint(&key, "/thief", json!(["*"])).expect(201);
    for event in events() {
        endpoint(&key, "/thief", json!([event])).expect(403);
        endpoint(&key, "/thief", json!([format!("{}.*", event.split('.').next().unwrap())])).expect(403);
        key.post("/v1/webhooks/trigger", json!({"event": event})).expect(if event.starts_with("webhook_") {
            200
        } else {
            403
        });
    }
    let taken = endpoint(&owner, "/owner", json!(["*"])).expect(201).id();
    key.patch(&format!("/v1/webhook-endpoints/{taken}"), json!({"url": receiver.url("/thief")})).expect(200);
    endpoint(&owner, "/owner", json!(["*"])).expect(201);
    for resource in REGISTRY.resources.iter().filter(|resource| can_be_made(resource)) {
        make(&owner, resource);
    }
    key.post("/v1/webhooks/trigger", json!({"event": "order.shipped", "data": {"a": 1}})).expect(200);
    let started = std::time::Instant::now();
    let behind = "SELECT count(*) FROM webhook_cursors WHERE sent_seq <
                  (SELECT max(seq) FROM log WHERE log.account_id = webhook_cursors.account_id)";
    while count(&server, behind) + count(&server, "SELECT count(*) FROM webhook_deliveries WHERE due_at > 0") > 0 {
        assert!(started.elapsed().as_secs() < 60, "the webhooks do not end");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let all = receiver.received();
    let to = |path: &str| all.iter().filter(|one| one.path == path).count();
    assert!(to("/owner") > 30, "{}", to("/owner"));
    assert_eq!(to("/thief"), 0);
}

/// As the contract has it; but not who changed them.
fn any_key_reads_the_settings(db: Db) {
    let server = server(db);
    let owner = server.client();
    let key = server.with_scopes(&owner, &["webhooks.write"]);
    for path in ["settings", "settings/usage", "tax-rates", "mail-templates", "custom-fields", "email-domains"] {
        key.get(&format!("/v1/{path}")).expect(200);
    }
    let identity = key.get("/v1/corporate-identities").expect(200).data()[0]["id"].as_str().unwrap().to_string();
    let path = format!("/v1/corporate-identities/{identity}");
    assert!(key.get(&path).expect(200).data()["meta"].get("iban").is_some());
    key.patch(&path, json!({"city": "Goes"})).expect(403);
    key.get(&format!("{path}/history")).expect(403);
    key.get("/v1/account").expect(403);
}
