//! Flows from the trigger to the last step: behaviour, and what must not happen twice.

mod authors;
mod backtests;
mod bounds;
mod calls;
mod crashes;
mod failures;
mod figures;
mod marks;
mod messages;
mod runs;
mod vocabulary;
mod warnings;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use engine::accounts::Account;
use kantoor::automation::calls::{LEASE_SECONDS, PendingCall};
use kantoor::automation::{runner, worker};
use serde_json::{Value, json};
use web::scripted::{Reply as Answer, Scripted};

use crate::on_both;
use crate::support::{Client, Db, Office, Server, Shared};

/// Creates a flow with its own key; returns its id.
fn flow(client: &Client, key: &str, steps: Value) -> String {
    flow_with(client, key, steps, json!({}))
}

fn flow_with(client: &Client, key: &str, steps: Value, more: Value) -> String {
    let mut body = json!({"name": format!("On {key}"), "trigger_type": "custom", "trigger_key": key, "steps": steps});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    client.post("/v1/automation/flows", body).expect(201).id()
}

/// Fires an event; returns the runs.
fn fire(client: &Client, event: &str, data: Value) -> Vec<String> {
    let fired = client.post("/v1/automation/trigger", json!({"event": event, "data": data})).expect(200).data();
    fired["runs"].as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap().to_string()).collect()
}

fn account(server: &Server, client: &Client) -> Account {
    let number = client.account;
    server.app.store.read_now(move |tx| Account::numbered(tx, number)).unwrap()
}

/// Makes all pending attempts due.
fn hurry(server: &Office, client: &Client) {
    server.execute(&format!("UPDATE runs SET due_at = 1 WHERE account_id = {} AND due_at > 0", client.account));
    server.automate(client);
}

fn run(client: &Client, id: &str) -> Value {
    client.get(&format!("/v1/automation/runs/{id}")).expect(200).data()
}

fn steps(client: &Client, id: &str) -> Vec<Value> {
    client.get(&format!("/v1/automation/runs/{id}/steps")).expect(200).data().as_array().unwrap().clone()
}

fn status(client: &Client, id: &str) -> String {
    run(client, id)["status"].as_str().unwrap().to_string()
}

fn total(client: &Client, path: &str) -> i64 {
    client.get(path).expect(200).json()["meta"]["total"].as_i64().unwrap()
}

fn advance(client: &Client, to: &str) {
    client.post("/v1/test-clock/advance", json!({"to": to})).expect(200);
}

fn firm(client: &Client) -> String {
    let body = json!({"company_name": "De Ster", "email": "anna@ster.example", "country": "NL"});
    client.post("/v1/clients", body).expect(201).id()
}

fn invoice(client: &Client) -> String {
    let body = json!({"title": "Ketel", "client_id": firm(client), "generation_mode": "final", "rows": [{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]});
    client.post("/v1/invoices", body).expect(201).id()
}

fn task() -> Value {
    json!([{"type": "create_task", "title": "Call {{ data.name }}"}])
}

/// A server that may call the scripted one.
fn with_calls(db: Db) -> Server {
    Server::with(db, |config| config.allow_private_addresses = "127.0.0.1".to_string())
}

/// A receiver that is never reachable.
fn away() -> Scripted {
    Scripted::start(|_| Answer { body: b"try later".to_vec(), ..Answer::new(503) }).unwrap()
}

fn wait_for(done: impl Fn() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(30), "it takes too long");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn jiff_seconds(text: &str) -> i64 {
    engine::clock::Moment::parse(text).unwrap().0 / 1000
}

on_both![
    flows_have_the_shape_of_the_contract,
    rejects_invalid_definitions,
    triggers_have_the_shape_of_the_contract,
    every_step_type_works,
];

fn flows_have_the_shape_of_the_contract(server: Shared) {
    let client = server.client();
    let library = client.get("/v1/automation/flows").expect(200);
    assert_eq!(library.json()["meta"]["total"], 9);
    assert!(
        library
            .data()
            .as_array()
            .unwrap()
            .iter()
            .all(|flow| flow["active"] == false && flow["step_count"].as_i64().unwrap() > 0)
    );
    let id = flow_with(
        &client,
        "order.shipped",
        task(),
        json!({"description": "d", "category": "sales", "max_attempts": 3}),
    );
    let one = client.get(&format!("/v1/automation/flows/{id}")).expect(200).data();
    for (field, value) in [
        ("id", json!(id)),
        ("name", json!("On order.shipped")),
        ("description", json!("d")),
        ("category", json!("sales")),
        ("trigger_type", json!("custom")),
        ("trigger_key", json!("order.shipped")),
        ("active", json!(true)),
        ("step_count", json!(1)),
        ("created_at", json!("2026-05-04T10:00:00.000Z")),
    ] {
        assert_eq!(one[field], value, "{field}");
    }
    assert_eq!(one["meta"]["definition"], json!({"conditions": [], "steps": task()}));
    assert_eq!(one["meta"]["max_attempts"], 3);
    for (query, count) in [
        ("active=1", 1),
        ("active=true", 1),
        ("active=0", 9),
        ("trigger_type=custom", 1),
        ("trigger_type=event", 9),
        ("trigger_type=schedule", 0),
        ("search=order", 1),
    ] {
        assert_eq!(total(&client, &format!("/v1/automation/flows?{query}")), count, "{query}");
    }
    let path = format!("/v1/automation/flows/{id}");
    assert_eq!(client.patch(&path, json!({"active": false})).expect(200).data()["active"], false);
    assert!(fire(&client, "order.shipped", json!({"name": "x"})).is_empty(), "a disabled flow starts nothing");
    assert_eq!(client.patch(&path, json!({"active": "yes"})).expect(422).faults(), ["active: wrong_type"]);
    assert_eq!(client.patch(&path, json!({"name": "x"})).expect(422).faults(), ["name: unknown_field"]);
    let whole = json!({"name": "New", "trigger_type": "event", "trigger_key": "invoice.paid", "steps": [{"type": "approval"}, {"type": "approval"}]});
    let put = client.send("PUT", &path, &[], &whole.to_string()).expect(200).data();
    assert_eq!(
        (&put["name"], &put["step_count"], &put["active"], &put["description"]),
        (&json!("New"), &json!(2), &json!(false), &json!("")),
        "off, as it was"
    );
    client.delete(&path).expect(204);
    assert_eq!(client.get(&path).status, 404);
}

fn rejects_invalid_definitions(server: Shared) {
    let client = server.client();
    let good = json!({"name": "x", "trigger_type": "custom", "trigger_key": "a.b", "steps": task()});
    let fails = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        client.post("/v1/automation/flows", body).expect(422).faults()
    };
    for (field, value, fault) in invalid_steps().into_iter().chain(invalid_fields()) {
        assert_eq!(fails(field, value.clone()), [fault], "{value}");
    }
    let of_event = json!({"name": "x", "trigger_type": "event", "trigger_key": "customer.created", "steps": [{"type": "update", "fields": {"citty": "Goes"}}]});
    assert_eq!(
        client.post("/v1/automation/flows", of_event).expect(422).faults(),
        ["steps[0].fields.citty: unknown_field"]
    );
    let both = json!({"trigger_type": "custom", "steps": [{"type": "nope"}], "zz": 1});
    assert_eq!(
        client.post("/v1/automation/flows", both).expect(422).faults(),
        ["steps[0].type: invalid_choice", "zz: unknown_field", "name: required", "trigger_key: required"]
    );
    warns_about_likely_mistakes(&client);
    let mut calls = good.clone();
    calls["steps"] = json!([{"type": "http", "url": "https://{{ data.host }}/x"}]);
    let key = [("idempotency-key", "calls-out")];
    let made = client.send("POST", "/v1/automation/flows", &key, &calls.to_string()).expect(201);
    let again = client.send("POST", "/v1/automation/flows", &key, &calls.to_string()).expect(201);
    assert_eq!((made.text, again.header("x-idempotent-replay")), (again.text.clone(), "true"));
}

/// A field of a flow, an invalid value, and the error.
type Invalid = (&'static str, Value, &'static str);

fn invalid_steps() -> Vec<Invalid> {
    vec![
        ("steps", json!([{"type": "approval"}, {"type": "nope"}]), "steps[1].type: invalid_choice"),
        ("steps", json!([{"type": "create_task", "title": "x", "titel": "x"}]), "steps[0].titel: unknown_field"),
        ("steps", json!([{"type": "create_task"}]), "steps[0].title: required"),
        ("steps", json!([{"type": "create_task", "title": "{{ data.x"}]), "steps[0].title: invalid_format"),
        ("steps", json!([{"type": "wait", "for": "soon"}]), "steps[0].for: invalid_format"),
        (
            "steps",
            json!([{"type": "approval"}, {"type": "approval"}, {"type": "http", "url": "http://127.0.0.1:9/"}]),
            "steps[2].url: invalid_format",
        ),
        (
            "steps",
            json!([{"type": "http", "url": "http://169.254.169.254/{{ data.x }}"}]),
            "steps[0].url: invalid_format",
        ),
        ("steps", json!([{"type": "http", "url": "ftp://a.example/"}]), "steps[0].url: invalid_format"),
        ("steps", json!([{"type": "http", "url": "https://me:you@a.example/"}]), "steps[0].url: invalid_format"),
        (
            "steps",
            json!([{"type": "update", "entity_type": "task", "id": "x", "fields": {"titel": "x"}}]),
            "steps[0].fields.titel: unknown_field",
        ),
        (
            "steps",
            json!([{"type": "update", "entity_type": "nope", "id": "x", "fields": {"titel": "x"}}]),
            "steps[0].entity_type: invalid_choice",
        ),
        (
            "steps",
            json!([{"type": "create_task", "title": "x", "category": "nope"}]),
            "steps[0].category: invalid_choice",
        ),
        (
            "steps",
            json!([{"type": "create_task", "title": "{{ data.x }}", "deadline": "P2"}]),
            "steps[0].deadline: invalid_format",
        ),
        (
            "steps",
            json!([{"type": "create_invoice", "title": "{{ data.x }}", "rows": [{"name": "{{ data.x }}", "quantity": "abc"}]}]),
            "steps[0].rows[0].quantity: wrong_type",
        ),
        (
            "steps",
            json!([{"type": "create_invoice", "title": "x", "rows": [{"nam": "x"}]}]),
            "steps[0].rows[0].nam: unknown_field",
        ),
    ]
}

fn invalid_fields() -> Vec<Invalid> {
    let many = Value::Array(vec![json!({"type": "approval"}); 51]);
    vec![
        (
            "steps",
            json!([{"type": "update", "entity_type": "client", "id": "{{ data.id }}", "fields": {"country": "Nowhere"}}]),
            "steps[0].fields.country: invalid_format",
        ),
        (
            "steps",
            json!([{"type": "send_email", "to": "x", "subject": "s", "body": "b"}]),
            "steps[0].to: invalid_format",
        ),
        (
            "steps",
            json!([{"type": "send_email", "to": "a@b.example", "subject": "s\nBcc: c@d.example", "body": "b"}]),
            "steps[0].subject: invalid_characters",
        ),
        (
            "steps",
            json!([{"type": "http", "url": "https://a.example", "headers": {"x y": "z"}}]),
            "steps[0].headers.x y: invalid_format",
        ),
        (
            "steps",
            json!([{"type": "http", "url": "https://a.example", "headers": {"Host": "z"}}]),
            "steps[0].headers.Host: invalid_format",
        ),
        (
            "steps",
            json!([{"type": "http", "url": "https://a.example", "headers": {"x": "a\r\nb: c"}}]),
            "steps[0].headers.x: invalid_format",
        ),
        (
            "steps",
            json!([{"type": "create_task", "title": "{{ data.x | nofilter }}"}]),
            "steps[0].title: invalid_format",
        ),
        ("steps", json!([{"type": "trigger", "event": "x".repeat(256)}]), "steps[0].event: too_long"),
        ("conditions", json!([{"field": "data[", "op": "exists"}]), "conditions[0].field: invalid_format"),
        ("steps", many, "steps: too_long"),
        ("steps", json!([]), "steps: required"),
        ("steps", json!("x"), "steps: wrong_type"),
        ("conditions", json!([{"field": "data.a", "op": "like", "value": 1}]), "conditions[0].op: invalid_choice"),
        ("conditions", json!([{"field": "record.a", "op": "eq", "value": 1}]), "conditions[0].field: invalid_format"),
        ("trigger_type", json!("event"), "trigger_key: invalid_choice"),
        ("trigger_type", json!("schedule"), "trigger_key: invalid_format"),
        ("max_attempts", json!(0), "max_attempts: out_of_range"),
        ("steps", json!([{"type": "approval", "message": "a\u{0}b"}]), "steps: invalid_characters"),
    ]
}

fn warns_about_likely_mistakes(client: &Client) {
    let doubtful = json!({"name": "x", "trigger_type": "event", "trigger_key": "invoice.paid",
            "conditions": [{"field": "data.total_incl_vta", "op": "gte", "value": 1}, {"field": "data.payment_status", "op": "in", "value": ["paid", "payed"]},
                {"field": "data.total_incl_vat", "op": "gte", "value": "much"}, {"field": "data.due_date", "op": "lt", "value": "soon"}, {"field": "data.meta.version", "op": "eq", "value": 1},
                {"field": "data.due_date", "op": "gte", "value": "2026-05-04"}, {"field": "data.rows[0].name", "op": "eq", "value": "x"}, {"field": "data.client_id", "op": "exists"}],
            "steps": [{"type": "condition", "conditions": [{"field": "record.titel", "op": "eq", "value": "x"}]}, {"type": "approval", "message": "{{ person }} {{ steps.later.id }} {{ steps[0].id }}"},
                {"type": "create_task", "name": "later", "title": "{{ steps.later.id }} {{ 2 * range(3)[1] }}"}, {"type": "approval", "message": "{{ steps.later.id }}{% for row in data.rows %}{{ row }}{{ loop.index }}{% endfor %}"}]});
    let warned = client.post("/v1/automation/flows", doubtful).expect(201).json()["meta"]["warnings"].clone();
    insta::assert_json_snapshot!("doubts", warned);
}

fn triggers_have_the_shape_of_the_contract(server: Shared) {
    let client = server.client();
    let nobody = client.post("/v1/automation/trigger", json!({"event": "nobody.listens"})).expect(200).json();
    assert_eq!(nobody, json!({"data": {"event": "nobody.listens", "matched": 0, "runs": []}, "meta": {}}));
    let id = flow(&client, "order.shipped", task());
    let body =
        json!({"event": "order.shipped", "data": {"name": "De Ster"}, "entity_type": "order", "legacy_entity_id": 7});
    let key = [("idempotency-key", "once")];
    let first = client.send("POST", "/v1/automation/trigger", &key, &body.to_string()).expect(200);
    let data = first.data();
    assert_eq!((&data["event"], &data["matched"]), (&json!("order.shipped"), &json!(1)));
    let one = data["runs"][0].as_object().unwrap();
    assert_eq!(one.keys().collect::<Vec<_>>(), ["flow_id", "run_id", "status"]);
    assert_eq!((&one["flow_id"], &one["status"]), (&json!(id), &json!("queued")));
    assert!(!first.text.contains("legacy"));
    let again = client.send("POST", "/v1/automation/trigger", &key, &body.to_string()).expect(200);
    assert_eq!(
        (&first.text, first.header("deprecation"), again.header("deprecation"), again.header("x-idempotent-replay")),
        (&again.text, "true", "true", "true")
    );
    assert_eq!(total(&client, "/v1/automation/runs"), 1);
    let hook = client
        .post(
            "/v1/webhooks/trigger",
            json!({"event": "order.shipped", "data": {"name": "x"}, "entity_type": "order", "entity_id": 12}),
        )
        .expect(200)
        .json();
    assert_eq!(hook["meta"], json!({}));
    assert_eq!(
        hook["data"]["runs"][0].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["flow_guid", "run_guid", "status"]
    );
    for (body, fault) in [
        (json!({"data": {}}), "event: required"),
        (json!({"event": "x", "data": []}), "data: wrong_type"),
        (json!({"event": "x", "entity_id": 1}), "entity_id: unknown_field"),
    ] {
        assert_eq!(client.post("/v1/automation/trigger", body).expect(422).faults(), [fault]);
    }
    assert_eq!(
        client.post("/v1/webhooks/trigger", json!({"event": "x", "entity_id": "1"})).expect(422).faults(),
        ["entity_id: wrong_type"]
    );
    server.automate(&client);
    let one = run(&client, data["runs"][0]["run_id"].as_str().unwrap());
    for (field, value) in [
        ("flow_id", json!(id)),
        ("flow_name", json!("On order.shipped")),
        ("status", json!("success")),
        ("trigger_type", json!("custom")),
        ("trigger_key", json!("order.shipped")),
        ("entity_type", json!("order")),
        ("attempts", json!(1)),
        ("max_attempts", json!(5)),
        ("actions_done", json!(1)),
        ("error", json!("")),
        ("next_attempt_at", json!("")),
    ] {
        assert_eq!(one[field], value, "{field}: {one}");
    }
    assert!(one["created_at"].is_string() && one["updated_at"].is_string() && one["meta"].is_object());
    assert!(server.events(&client, 0).contains(&"automation.triggered".to_string()));
}

fn every_step_type_works(server: Shared) {
    let client = server.client();
    let (firm, invoice) = (firm(&client), invoice(&client));
    let ticket = client.post("/v1/tickets", json!({"subject": "Koud", "client_email": "a@b.example"})).expect(201).id();
    flow_with(
        &client,
        "invoice.paid",
        json!([
            {"type": "create_task", "name": "call", "title": "Call {{ data.client_company_name }} about {{ data.total_incl_vat }}", "category": "call", "deadline": "P2D", "client_id": "{{ data.client_id }}"},
            {"type": "create_note", "body": "Task {{ steps.call.id }}, {{ steps[0].title }}", "invoice_id": "{{ data.id }}"},
            {"type": "create_ticket", "name": "ticket", "subject": "About {{ data.number }}"},
            {"type": "create_deal", "title": "{{ data.total_incl_vat }}", "client_id": "{{ data.client_id }}", "amount": "{{ data.total_excl_vat }}"},
            {"type": "create_invoice", "title": "Again", "client_id": "{{ data.client_id }}", "rows": [{"name": "For {{ data.number }}", "unit_price": "{{ data.total_excl_vat }}", "quantity": 2}]},
            {"type": "add_ticket_message", "ticket_id": "{{ steps.ticket.id }}", "body": "Paid on {{ account.today }} at {{ account.name }}", "message_type": "note"},
            {"type": "update", "fields": {"title": "Paid by {{ data.client_company_name }}"}},
            {"type": "update", "entity_type": "customer", "id": "{{ data.client_id }}", "fields": {"city": "Goes"}},
            {"type": "send_document", "to": "b@b.example", "subject": "Paid {{ data.number }}", "message": "Thanks", "send_type": "invoice"},
            {"type": "send_document", "send_type": "invoice_rem1"},
            {"type": "send_email", "to": "{{ data.client_email }}", "cc": "c@b.example", "subject": "{{ event }}", "body": "At {{ now }}", "attach_pdf": true},
            {"type": "trigger", "event": "after.paid", "data": {"id": "{{ data.id }}", "total": "{{ data.total_incl_vat }}"}},
            {"type": "condition", "conditions": [{"field": "record.title", "op": "eq", "value": "Paid by De Ster"}, {"field": "steps.call.id", "op": "exists"}]},
            {"type": "condition", "conditions": [{"field": "record.payment_status", "op": "ne", "value": "{{ record.payment_status }}"}]},
            {"type": "create_note", "body": "never"},
        ]),
        json!({"trigger_type": "event", "conditions": [{"field": "data.total_incl_vat", "op": "gte", "value": 121}]}),
    );
    flow_with(
        &client,
        "after.paid",
        json!([{"type": "add_ticket_message", "body": "x"}]),
        json!({"max_attempts": 1, "conditions": [{"field": "data.total", "op": "eq", "value": 121}]}),
    );
    client.post(&format!("/v1/invoices/{invoice}/payments"), json!({})).expect(201);
    server.automate(&client);
    let runs = client.get("/v1/automation/runs?order=asc").data();
    let first = &runs[0];
    let told = steps(&client, first["id"].as_str().unwrap());
    assert_eq!(
        (&first["status"], &first["actions_done"], &first["entity_type"]),
        (&json!("success"), &json!(14), &json!("invoice")),
        "{told:#?}"
    );
    assert_eq!((&told[13]["result"]["holds"], &told[14]["status"]), (&json!(false), &json!("skipped")));
    created_the_records_of_each_step(&client, &invoice);
    let firms: Vec<Value> = client.get("/v1/clients?search=ster").data().as_array().unwrap().clone();
    assert!(firms.iter().any(|one| one["city"] == "Goes"), "{firm} {firms:?}");
    sent_the_mail_of_each_step(&client, &invoice);
    // The event that the flow fired has the invoice in its own data, and started another flow.
    let second = runs.as_array().unwrap().iter().find(|one| one["trigger_key"] == "after.paid").unwrap();
    assert_eq!((&second["status"], &second["meta"]["depth"]), (&json!("failed"), &json!(2)));
    assert!(second["error"].as_str().unwrap().contains("There is no ticket"), "{second}");
    let log = server.events(&client, 0);
    assert!(log.contains(&"note.created".to_string()) && log.contains(&"sales.document_sent".to_string()));
    // The event's own ticket.
    flow(&client, "look.again", json!([{"type": "add_ticket_message", "body": "Hello", "message_type": "reply"}]));
    client
        .post("/v1/automation/trigger", json!({"event": "look.again", "entity_type": "ticket", "data": {"id": ticket}}))
        .expect(200);
    server.automate(&client);
    assert_eq!(client.get(&format!("/v1/tickets/{ticket}/messages")).data()[0]["body"], "Hello");
}

fn created_the_records_of_each_step(client: &Client, invoice: &str) {
    let task = client.get("/v1/tasks").data()[0].clone();
    assert_eq!(
        (&task["title"], &task["deadline"], &task["category"]),
        (&json!("Call De Ster about 121"), &json!("2026-05-06"), &json!("call"))
    );
    let note = client.get("/v1/notes").data()[0].clone();
    assert_eq!(note["body"], json!(format!("Task {}, Call De Ster about 121", task["id"].as_str().unwrap())));
    assert_eq!(client.get("/v1/deals").data()[0]["title"], "121");
    let made = client.get("/v1/invoices?search=again").data()[0].clone();
    assert_eq!((&made["total_excl_vat"], &made["payment_status"]), (&json!(200), &json!("draft")));
    let tickets = client.get("/v1/tickets?search=about").data();
    let messages = client.get(&format!("/v1/tickets/{}/messages", tickets[0]["id"].as_str().unwrap())).data();
    assert_eq!((&messages[0]["body"], &messages[0]["type"]), (&json!("Paid on 2026-05-04 at Test"), &json!("note")));
    assert_eq!(client.get(&format!("/v1/invoices/{invoice}")).data()["title"], "Paid by De Ster");
}

fn sent_the_mail_of_each_step(client: &Client, invoice: &str) {
    let letters = client.get(&format!("/v1/invoices/{invoice}/deliveries")).data();
    let letters: Vec<(&str, &str)> = letters
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["recipient"].as_str().unwrap(), one["send_type"].as_str().unwrap()))
        .collect();
    assert_eq!(
        letters,
        [
            ("b@b.example", "invoice"),
            ("anna@ster.example", "invoice_rem1"),
            ("anna@ster.example", "flow"),
            ("c@b.example", "flow")
        ]
    );
}
