//! Flows across processes: limits on all nodes, outgoing calls, lost workers.

use super::*;

on_both![
    the_trigger_limit_is_shared_by_all_nodes,
    a_single_placeholder_as_body_is_json,
    calls_are_signed_and_record_their_response,
    repeats_an_interrupted_call_with_the_same_key,
    the_worker_runs_flows_on_wakeup_and_by_polling,
    backtests_a_flow_on_past_events,
    backtests_a_schedule,
    the_reminders_of_the_library_work,
    the_library_works_without_an_address_and_does_not_loop,
    reminders_stop_when_the_due_date_is_extended,
    fails_a_call_that_always_kills_its_worker,
];

fn the_trigger_limit_is_shared_by_all_nodes(db: Db) {
    let server = Server::with(db, |config| config.trigger_limit_per_minute = 30);
    let client = server.client();
    let other = Client { base: format!("http://{}", server.another_node(server.app.config.clone())), ..client.clone() };
    let fire = |client: &Client| client.post("/v1/webhooks/trigger", json!({"event": "x"}));
    for n in 0..30 {
        if n == 7 {
            // Rejected requests count too.
            let wrong = client.post("/v1/webhooks/trigger", json!({})).expect(422);
            assert!(wrong.header("ratelimit").starts_with("\"key\";r=22;t="), "{}", wrong.header("ratelimit"));
            continue;
        }
        let reply = fire(if n % 2 == 0 { &client } else { &other }).expect(200);
        assert_eq!(reply.header("ratelimit-policy"), "\"key\";q=30;w=60");
        assert!(
            reply.header("ratelimit").starts_with(&format!("\"key\";r={};t=", 29 - n)),
            "{}",
            reply.header("ratelimit")
        );
    }
    for client in [&client, &other] {
        assert_eq!(
            client.post("/v1/webhooks/trigger", json!({})).expect(429).code(),
            "too_many_requests",
            "whatever is asked"
        );
        let refused = fire(client).expect(429);
        assert_eq!(refused.code(), "too_many_requests");
        let seconds: i64 = refused.header("retry-after").parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
    }
    client.post("/v1/automation/trigger", json!({"event": "x"})).expect(200);
    let second = server.with_scopes(&client, &["webhooks.write"]);
    fire(&second).expect(200);
    let account = client.account;
    server
        .app
        .store
        .write_now(account, move |tx| {
            tx.execute("UPDATE key_limits SET asked = '1 2 3' WHERE account_id = $1", &[account.into()]).map(drop)
        })
        .unwrap();
    fire(&client).expect(200);
}

fn a_single_placeholder_as_body_is_json(db: Db) {
    let server = with_calls(db);
    let client = server.client();
    let outside = Scripted::start(|_| Answer::new(204)).unwrap();
    let call = |body: &str| json!({"type": "http", "url": outside.url("/"), "body": body});
    flow(&client, "a.b", json!([call("{{ data.rows }}"), call("{{ data.name }}"), call("<{{ data.name }}>")]));
    let id =
        fire(&client, "a.b", json!({"name": "De Ster", "rows": [{"a": null, "b": true, "c": "\"x\""}]})).pop().unwrap();
    server.automate(&client);
    assert_eq!(status(&client, &id), "success");
    let bodies: Vec<String> = outside.received().iter().map(|received| received.text()).collect();
    assert_eq!(bodies, [r#"[{"a":null,"b":true,"c":"\"x\""}]"#, "De Ster", "<De Ster>"]);
}

fn calls_are_signed_and_record_their_response(db: Db) {
    let server = with_calls(db);
    let client = server.client();
    let count = Arc::new(AtomicU32::new(0));
    let seen = count.clone();
    let outside = Scripted::start(move |received| match received.path.as_str() {
        "/ok" => Answer::json(201, r#"{"id":"o-1"}"#),
        "/text" => Answer { body: b"plain".to_vec(), ..Answer::new(200) },
        "/second" if seen.fetch_add(1, Ordering::SeqCst) == 0 => {
            Answer { body: b"try later".to_vec(), ..Answer::new(503) }
        }
        "/second" => Answer::new(204),
        _ => Answer::new(500),
    })
    .unwrap();
    let url = |path: &str| outside.url(path);
    flow(
        &client,
        "a.b",
        json!([
            {"type": "http", "name": "order", "url": url("/ok"), "headers": {"X-Who": "{{ data.name }}"}, "body": {"name": "{{ data.name }}", "total": "{{ data.total }}"}},
            {"type": "http", "method": "PUT", "url": url("/text"), "body": "order {{ steps.order.body.id }}", "timeout_seconds": 5},
            {"type": "http", "url": url("/second")},
            {"type": "create_task", "title": "{{ steps.order.status }} {{ steps[1].body }}"},
        ]),
    );
    let id = fire(&client, "a.b", json!({"name": "De Ster", "total": 12.5})).pop().unwrap();
    server.automate(&client);
    let one = run(&client, &id);
    assert_eq!(
        (&one["status"], &one["actions_done"], &one["attempts"]),
        (&json!("retrying"), &json!(2), &json!(1)),
        "{one}"
    );
    assert!(one["error"].as_str().unwrap().contains("responded with 503: try later"), "{one}");
    hurry(&server, &client);
    assert_eq!(status(&client, &id), "success");
    assert_eq!(client.get("/v1/tasks").data()[0]["title"], "201 plain");
    let received = outside.received();
    assert_eq!(received.len(), 4);
    assert_eq!(
        (received[0].text().as_str(), received[0].header("x-who")),
        (r#"{"name":"De Ster","total":12.5}"#, Some("De Ster"))
    );
    assert_eq!((received[1].method.as_str(), received[1].text().as_str()), ("PUT", "order o-1"));
    assert!(received[2].text().starts_with(r#"{"event":"a.b","entity_type":"","data":{"#), "{}", received[2].text());
    assert_eq!(received[2].header("idempotency-key"), Some(format!("{id}.2").as_str()));
    assert_eq!(received[2].header("idempotency-key"), received[3].header("webhook-id"), "the same for every attempt");
    let secret = client.get("/v1/automation/signing-secret").expect(200).data()["secret"].as_str().unwrap().to_string();
    let of = |at: usize, name: &str| received[at].header(name).unwrap().to_string();
    let signed = format!("{}.{}.{}", of(0, "webhook-id"), of(0, "webhook-timestamp"), received[0].text());
    assert_eq!(of(0, "webhook-signature"), format!("v1,{}", signature(&secret, &signed)));
    // A template may lead to a forbidden address.
    flow(&client, "a.c", json!([{"type": "http", "url": "http://{{ data.host }}/"}]));
    let id = fire(&client, "a.c", json!({"host": "10.0.0.1"})).pop().unwrap();
    server.automate(&client);
    let one = run(&client, &id);
    assert_eq!((&one["status"], &one["attempts"]), (&json!("failed"), &json!(1)));
    assert!(one["error"].as_str().unwrap().contains("not allowed"), "{one}");
}

fn repeats_an_interrupted_call_with_the_same_key(db: Db) {
    let server = with_calls(db);
    let client = server.client();
    let outside = Scripted::start(|_| Answer::json(200, r#"{"n":1}"#)).unwrap();
    flow(
        &client,
        "a.b",
        json!([{"type": "http", "url": outside.url("/pay")}, {"type": "create_task", "title": "Paid"}]),
    );
    let id = fire(&client, "a.b", json!({})).pop().unwrap();
    // The first worker records the call, makes it, and then stalls for longer than its lease.
    let announced = announce(&server, &client);
    assert_eq!((announced.len(), status(&client, &id).as_str()), (1, "running"));
    let slow = announced.into_iter().next().unwrap();
    let ended = server.block_on(worker::make(&server.app, &slow)).map_err(|trouble| trouble.words).unwrap();
    assert!(announce(&server, &client).is_empty(), "no other worker claims it meanwhile");
    lose_lease(&server, &client);
    server.automate(&client);
    let one = run(&client, &id);
    assert_eq!((&one["status"], total(&client, "/v1/tasks")), (&json!("success"), 1));
    // Its late result changes nothing.
    assert!(!come_back(&server, &client, &slow, ended.clone()));
    assert_eq!((run(&client, &id), total(&client, "/v1/tasks")), (one, 1));
    let keys: Vec<String> =
        outside.received().iter().map(|received| received.header("idempotency-key").unwrap().to_string()).collect();
    assert_eq!(keys, [format!("{id}.0"), format!("{id}.0")], "the receiver can recognize the repeated call");
    // A run that is cancelled during its call ends when the call does.
    let id = fire(&client, "a.b", json!({})).pop().unwrap();
    let announced = announce(&server, &client).pop().unwrap();
    assert_eq!(client.act(&format!("/v1/automation/runs/{id}/cancel")).expect(200).data()["status"], "running");
    assert_eq!(run(&client, &id)["meta"]["cancel_requested"], true);
    assert!(server.events(&client, 0).contains(&"run.cancel_requested".to_string()));
    assert!(come_back(&server, &client, &announced, ended));
    let one = run(&client, &id);
    assert_eq!(
        (&one["status"], &one["actions_done"], total(&client, "/v1/tasks")),
        (&json!("cancelled"), &json!(1), 1)
    );
}

fn the_worker_runs_flows_on_wakeup_and_by_polling(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    flow(&client, "a.b", task());
    let app = server.app.clone();
    server.block_on(async move { worker::start(&app) });
    std::thread::sleep(Duration::from_millis(600));
    let started = Instant::now();
    for n in 0..20 {
        fire(&client, "a.b", json!({"name": n}));
    }
    wait_for(|| total(&client, "/v1/automation/runs?status=success") == 20);
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(total(&client, "/v1/tasks"), 20);
    // A run started by another process is found by polling.
    let node = Client { base: format!("http://{}", server.another_node(server.app.config.clone())), ..client.clone() };
    fire(&node, "a.b", json!({"name": "elsewhere"}));
    wait_for(|| total(&client, "/v1/tasks") == 21);
}

fn backtests_a_flow_on_past_events(server: Shared) {
    let client = server.client();
    for (n, name) in ["Anna", "Bob", "Cas"].iter().enumerate() {
        fire(&client, "order.shipped", json!({"name": name, "total": n * 100}));
        client.post("/v1/tasks", json!({"title": name})).expect(201);
    }
    let id = flow_with(
        &client,
        "order.shipped",
        json!([
            {"type": "create_task", "name": "call", "title": "Call {{ data.name }}", "deadline": "P1D"},
            {"type": "condition", "conditions": [{"field": "data.total", "op": "lt", "value": 150}]},
            {"type": "create_note", "body": "After {{ steps.call.id }} {{ data.nope }}"},
        ]),
        json!({"conditions": [{"field": "data.total", "op": "gt", "value": 0}], "active": false}),
    );
    let before = server.last_seq(&client);
    let period = json!({"from": "2026-05-01T00:00:00Z", "to": "2026-05-31T00:00:00Z"});
    let told = client.post(&format!("/v1/automation/flows/{id}/backtest"), period.clone()).expect(200).data();
    assert_eq!(
        (&told["events"], &told["matched"], &told["failed"], &told["complete"]),
        (&json!(3), &json!(2), &json!(1), &json!(true))
    );
    assert_eq!(told["steps"][2], json!({"place": 2, "type": "create_note", "name": "", "taken": 1, "failed": 1}));
    assert_eq!(told["examples"][0]["steps"][0]["would"], json!({"title": "Call Bob", "deadline": "2026-05-05"}));
    assert_eq!(told["examples"][0]["steps"][2]["error"], "'data.nope' is not defined");
    assert_eq!(told["examples"][1]["steps"][1]["would"], json!({"holds": false}));
    assert_eq!(
        (server.last_seq(&client), total(&client, "/v1/automation/runs"), total(&client, "/v1/tasks")),
        (before, 0, 3),
        "nothing happened"
    );
    let of_tasks =
        flow(&client, "task.created", json!([{"type": "create_note", "body": "{{ data.title }} {{ steps[0].id }}"}]));
    let told = client.post(&format!("/v1/automation/flows/{of_tasks}/backtest"), period).expect(200).data();
    assert_eq!((&told["matched"], &told["failed"]), (&json!(3), &json!(0)));
    assert_eq!(told["examples"][0]["steps"][0]["would"]["body"], "Anna ‹steps[0].id›");
    let empty = json!({"from": "2026-06-01T00:00:00Z", "to": "2026-06-02T00:00:00Z"});
    assert_eq!(
        client.post(&format!("/v1/automation/flows/{of_tasks}/backtest"), empty).expect(200).data()["events"],
        0
    );
    let wrong = json!({"from": "2026-06-01T00:00:00Z", "to": "2026-05-02T00:00:00Z"});
    assert_eq!(
        client.post(&format!("/v1/automation/flows/{of_tasks}/backtest"), wrong).expect(422).faults(),
        ["to: out_of_range"]
    );
}

fn backtests_a_schedule(server: Shared) {
    let client = server.client();
    let steps = json!([{"type": "create_task", "title": "{{ event }} {{ data.scheduled_for }} on {{ account.today }}", "deadline": "P1D"}]);
    let scheduled = |key: &str, more: Value| {
        let mut all = json!({"trigger_type": "schedule", "active": false});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        flow_with(&client, key, steps.clone(), all)
    };
    let look = |id: &str, from: &str, to: &str| {
        client.post(&format!("/v1/automation/flows/{id}/backtest"), json!({"from": from, "to": to})).expect(200).data()
    };
    let before = server.last_seq(&client) + 1;
    let id = scheduled("0 9 * * 1-5", json!({}));
    let told = look(&id, "2026-01-01T00:00:00Z", "2026-01-31T23:59:59Z");
    assert_eq!(
        (&told["events"], &told["matched"], &told["failed"], &told["complete"]),
        (&json!(22), &json!(22), &json!(0), &json!(true))
    );
    assert_eq!(told["steps"][0], json!({"place": 0, "type": "create_task", "name": "", "taken": 22, "failed": 0}));
    let first = &told["examples"][0];
    assert_eq!(
        (&first["at"], &first["event"], &first["entity_id"]),
        (&json!("2026-01-01T08:00:00.000Z"), &json!("schedule"), &json!(""))
    );
    assert_eq!(
        first["steps"][0]["would"],
        json!({"title": "schedule 2026-01-01T08:00:00.000Z on 2026-01-01", "deadline": "2026-01-02"})
    );
    // Both ends are inclusive.
    assert_eq!(look(&id, "2026-01-01T08:00:00Z", "2026-01-02T08:00:00Z")["events"], 2);
    assert_eq!(look(&id, "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z")["events"], 0);
    assert_eq!(server.last_seq(&client), before, "nothing happened");
    // The same limit as for events.
    let told = look(&scheduled("* * * * *", json!({})), "2026-01-01T00:00:00Z", "2026-03-01T00:00:00Z");
    assert_eq!((&told["events"], told["examples"].as_array().unwrap().len()), (&json!(20_000), 100));
    assert_eq!(told["complete"], false);
    // Conditions are evaluated at that time too.
    let on_a_day = json!({"conditions": [{"field": "data.date", "op": "eq", "value": "2026-05-06"}], "active": true});
    let told = look(&scheduled("0 9 * * *", on_a_day), "2026-05-01T00:00:00Z", "2026-05-31T00:00:00Z");
    assert_eq!((&told["events"], &told["matched"]), (&json!(30), &json!(1)));
    advance(&client, "2026-05-09T12:00:00Z");
    let tasks = client.get("/v1/tasks").data();
    assert_eq!(
        (tasks.as_array().unwrap().len(), &tasks[0]["title"]),
        (1, &json!("schedule 2026-05-06T07:00:00.000Z on 2026-05-06"))
    );
}

fn the_reminders_of_the_library_work(server: Shared) {
    let client = server.client();
    let flows = client.get("/v1/automation/flows?search=reminders").data();
    client
        .patch(&format!("/v1/automation/flows/{}", flows[0]["id"].as_str().unwrap()), json!({"active": true}))
        .expect(200);
    let (paid, unpaid) = (invoice(&client), invoice(&client));
    advance(&client, "2026-05-25T10:00:00Z");
    client.post(&format!("/v1/invoices/{paid}/payments"), json!({})).expect(201);
    advance(&client, "2026-07-01T10:00:00Z");
    let sent = |id: &str| -> Vec<String> {
        let data = client.get(&format!("/v1/invoices/{id}/deliveries")).data();
        data.as_array()
            .unwrap()
            .iter()
            .map(|one| format!("{} {}", &one["created_at"].as_str().unwrap()[..10], one["send_type"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(sent(&paid), ["2026-05-21 invoice_rem1"]);
    assert_eq!(sent(&unpaid), ["2026-05-21 invoice_rem1", "2026-05-28 invoice_rem2", "2026-06-04 invoice_rem3"]);
    assert_eq!(total(&client, "/v1/automation/runs?status=success"), 2);
    assert_eq!(total(&client, "/v1/tasks"), 1);
}

fn the_library_works_without_an_address_and_does_not_loop(server: Shared) {
    let client = server.client();
    for flow in client.get("/v1/automation/flows").data().as_array().unwrap() {
        client
            .patch(&format!("/v1/automation/flows/{}", flow["id"].as_str().unwrap()), json!({"active": true}))
            .expect(200);
    }
    create_one_of_each(&client);
    advance(&client, "2026-06-20T10:00:00Z");
    let runs = || -> Vec<String> {
        let list = client.get("/v1/automation/runs?per_page=100").data();
        let mut all: Vec<String> = list
            .as_array()
            .unwrap()
            .iter()
            .map(|run| format!("{} {}", run["trigger_key"].as_str().unwrap(), run["status"].as_str().unwrap()))
            .collect();
        all.sort();
        all
    };
    let wanted = [
        "deal.no_followup success",
        "deal.won success",
        "invoice.late partial",
        "invoice.late partial",
        "invoice.late partial",
        "invoice.late partial",
        "quote.silent pending_approval",
        "quote.silent pending_approval",
        "subscription.expiring success",
        "subscription.expiring success",
        "ticket.stale success",
        "ticket.stale success",
    ];
    assert_eq!(runs(), wanted);
    let calls = client.get("/v1/tasks?per_page=100").data();
    let calls: Vec<&str> = calls
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|task| task["title"].as_str())
        .filter(|title| title.starts_with("Call about"))
        .collect();
    assert_eq!(calls.len(), 4, "the call comes though no reminder went: {calls:?}");
    for run in client.get("/v1/automation/runs?status=pending_approval").data().as_array().unwrap() {
        client.act(&format!("/v1/automation/runs/{}/approve", run["id"].as_str().unwrap())).expect(200);
    }
    advance(&client, "2027-01-20T10:00:00Z");
    assert_eq!(runs().len(), wanted.len(), "nothing that the flows did starts them again: {:?}", runs());
}

fn create_one_of_each(client: &Client) {
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let rows = json!([{"name": "x", "unit_price": 10}]);
    // One of each, for a client without an address and without a client.
    for who in [json!(firm), json!(null)] {
        let invoice = || {
            client
                .post(
                    "/v1/invoices",
                    json!({"title": "i", "client_id": who, "due_date": "2026-05-10", "generate": true, "rows": rows}),
                )
                .expect(201)
                .id()
        };
        invoice();
        client.post(&format!("/v1/invoices/{}/payments", invoice()), json!({})).expect(201);
        let quote = client
            .post("/v1/quotes", json!({"title": "q", "client_id": who, "due_date": "2027-05-10", "rows": rows}))
            .expect(201)
            .id();
        client
            .post(&format!("/v1/quotes/{quote}/send"), json!({"to": "a@ster.example", "subject": "s", "message": "m"}))
            .expect(200);
        client.post("/v1/tickets", json!({"subject": "cold", "client_id": who})).expect(201);
        client
            .post(
                "/v1/subscriptions",
                json!({"title": "s", "client_id": who, "frequency": "yearly", "subscription_end": "2026-07-01",
                "lines": [{"title": "x", "unit_price": 10, "vat_code": "NL21"}]}),
            )
            .expect(201);
    }
    let deal = || client.post("/v1/deals", json!({"title": "d", "client_id": firm})).expect(201).id();
    deal();
    client.act(&format!("/v1/deals/{}/win", deal())).expect(200);
}

fn reminders_stop_when_the_due_date_is_extended(server: Shared) {
    let client = server.client();
    let flows = client.get("/v1/automation/flows?search=reminders").data();
    client
        .patch(&format!("/v1/automation/flows/{}", flows[0]["id"].as_str().unwrap()), json!({"active": true}))
        .expect(200);
    let id = invoice(&client);
    advance(&client, "2026-05-19T10:00:00Z");
    client.patch(&format!("/v1/invoices/{id}"), json!({"due_date": "2026-06-30"})).expect(200);
    advance(&client, "2026-07-05T10:00:00Z");
    let sent = client.get(&format!("/v1/invoices/{id}/deliveries")).data();
    assert_eq!(sent.as_array().unwrap().len(), 1, "{sent}");
    assert_eq!(
        (total(&client, "/v1/automation/runs?status=success"), total(&client, "/v1/automation/runs?status=waiting")),
        (1, 1)
    );
}

/// A call whose worker always dies is given up; it can be retried manually.
fn fails_a_call_that_always_kills_its_worker(db: Db) {
    let server = with_calls(db);
    let client = server.client();
    let outside = away();
    flow(&client, "a.b", json!([{"type": "http", "url": outside.url("/")}, {"type": "create_task", "title": "x"}]));
    let id = fire(&client, "a.b", json!({})).pop().unwrap();
    for begun in 1..=5 {
        assert_eq!(announce(&server, &client).len(), 1, "{begun}");
        lose_lease(&server, &client);
    }
    assert!(announce(&server, &client).is_empty());
    let failed = run(&client, &id);
    assert_eq!(failed["status"], "failed", "{failed}");
    assert_eq!(failed["error"], "Step 1 (http): It was started 5 times in a row and never completed.");
    client.act(&format!("/v1/automation/runs/{id}/retry")).expect(200);
    let request = announce(&server, &client).remove(0);
    assert!(come_back(&server, &client, &request, json!({"status": 200, "body": ""})));
    // A turn ends after a few milliseconds, so the rest may need another.
    assert!(announce(&server, &client).is_empty());
    assert_eq!((status(&client, &id).as_str(), total(&client, "/v1/tasks")), ("success", 1));
}

/// Two nodes with workers on one database: each run is executed once.
#[test]
fn two_nodes_share_the_runs() {
    let Some(db) = Db::postgres() else { return };
    let server = Server::start(db);
    let client = server.client();
    flow(
        &client,
        "a.b",
        json!([{"type": "create_task", "title": "{{ data.n }}"}, {"type": "create_note", "body": "{{ data.n }}"}]),
    );
    let second = kantoor::opening::open(server.app.config.clone()).unwrap();
    for app in [server.app.clone(), second] {
        server.block_on(async move { worker::start(&app) });
    }
    for n in 0..150 {
        fire(&client, "a.b", json!({"n": n}));
    }
    wait_for(|| total(&client, "/v1/automation/runs?status=success") == 150);
    assert_eq!((total(&client, "/v1/tasks"), total(&client, "/v1/notes")), (150, 150));
    let titles: std::collections::BTreeSet<String> = (1..=2)
        .flat_map(|page| client.get(&format!("/v1/tasks?per_page=100&page={page}")).data().as_array().unwrap().clone())
        .map(|task| task["title"].as_str().unwrap().to_string())
        .collect();
    assert_eq!(titles.len(), 150);
}

/// An independent implementation of Standard Webhooks.
fn signature(secret: &str, signed: &str) -> String {
    use base64::Engine as _;
    use hmac::{Hmac, KeyInit, Mac};
    let coder = base64::engine::general_purpose::STANDARD;
    let key = coder.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = <Hmac<sha2::Sha256> as KeyInit>::new_from_slice(&key).unwrap();
    mac.update(signed.as_bytes());
    coder.encode(mac.finalize().into_bytes())
}

/// A turn of a worker that makes no calls.
pub(super) fn announce(server: &Server, client: &Client) -> Vec<PendingCall> {
    let (caller, engine) =
        (server.app.acting(account(server, client), "automation"), runner::runner_of(&server.app).clone());
    let turn = server.app.store.write_now(client.account, move |tx| {
        let ctx = caller.writing(tx)?;
        runner::turn(tx, &ctx, &caller.account, &engine, 10)
    });
    turn.unwrap().calls
}

/// Records the outcome of a call; returns whether it was accepted.
fn come_back(server: &Server, client: &Client, request: &PendingCall, ended: Value) -> bool {
    let (caller, engine, request) = (
        server.app.acting(account(server, client), "automation"),
        runner::runner_of(&server.app).clone(),
        request.clone(),
    );
    let written = server.app.store.write_now(client.account, move |tx| {
        let ctx = caller.writing(tx)?;
        runner::called(tx, &ctx, &caller.account, &engine, &request, &Ok(ended.clone()))
    });
    written.unwrap().ours
}

pub(super) fn lose_lease(server: &Server, client: &Client) {
    let account = client.account;
    let past = server.now().plus_seconds(-LEASE_SECONDS).0;
    let sql = "UPDATE runs SET lease_until = $1 WHERE account_id = $2 AND lease_until > 0";
    server.app.store.write_now(account, move |tx| tx.execute(sql, &[past.into(), account.into()]).map(drop)).unwrap();
}
