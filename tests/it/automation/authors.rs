//! A flow acts with the scopes of its author, and its runs show only what the caller may read.

use engine::accounts::NewKey;

use super::*;
use crate::support::Office;

on_both![
    a_flow_requires_the_scopes_of_what_it_does,
    a_flow_stops_when_its_author_is_revoked,
    a_flow_stops_when_its_author_loses_a_scope,
    a_run_that_waits_fails_when_the_author_has_expired,
    flows_without_an_author_keep_running,
    runs_of_a_deleted_flow_act_as_its_author,
    what_is_only_known_in_a_run_is_checked_there,
    runs_show_only_what_the_caller_may_read,
    backtests_show_only_what_the_caller_may_read,
    fired_data_never_overrides_a_record,
    firing_requires_the_scope_of_the_area,
    events_of_the_account_are_marked_when_fired,
    conditions_tell_nothing_to_an_author_who_may_not_read,
    lines_of_fired_events_have_no_signed_urls,
];

/// A key with its id.
fn key(server: &Office, client: &Client, scopes: &[&str]) -> (Client, String) {
    let scopes = scopes.iter().map(ToString::to_string).collect();
    let (secret, id) = server.add_key(client, NewKey { name: "Assistant".into(), scopes, expires_at: None });
    (Client { key: secret, ..client.clone() }, id)
}

fn change_key(server: &Office, id: &str, set: &str) {
    server.execute(&format!("UPDATE keys SET {set} WHERE id = '{id}'"));
}

fn body(key: &str, steps: Value) -> Value {
    json!({"name": key, "trigger_type": "custom", "trigger_key": key, "steps": steps})
}

fn one_flow(client: &Client, id: &str) -> Value {
    client.get(&format!("/v1/automation/flows/{id}")).expect(200).data()
}

/// What a 403 says.
#[track_caller]
fn refusal(reply: crate::support::Reply) -> String {
    let reply = reply.expect(403);
    assert_eq!(reply.code(), "forbidden");
    reply.json()["error"]["message"].as_str().unwrap().to_string()
}

fn a_flow_requires_the_scopes_of_what_it_does(db: Db) {
    let server = with_calls(db);
    let client = server.client();
    let (weak, _) = key(&server, &client, &["automation.write", "automation.read"]);
    for (event, step, scopes) in [
        ("invoice.paid", json!({"type": "approval"}), "'invoices.read' (trigger)"),
        ("customer.created", json!({"type": "approval"}), "'relations.read' (trigger)"),
        ("sales.document_sent", json!({"type": "approval"}), "'invoices.read' (trigger)"),
        ("mail.unanswered", json!({"type": "approval"}), "'tickets.read' (trigger)"),
        ("settings.updated", json!({"type": "approval"}), "'settings.read' (trigger)"),
        ("x", json!({"type": "create_task", "title": "x"}), "'tasks.write' (step 1, create_task)"),
        (
            "x",
            json!({"type": "create_note", "body": "x", "client_id": "{{ data.x }}"}),
            "'notes.write' (step 1, create_note)",
        ),
        ("x", json!({"type": "create_ticket", "subject": "x"}), "'tickets.write' (step 1, create_ticket)"),
        (
            "x",
            json!({"type": "create_deal", "title": "x", "client_id": "{{ data.x }}"}),
            "'deals.write' (step 1, create_deal)",
        ),
        (
            "x",
            json!({"type": "create_invoice", "title": "x", "client_id": "{{ data.x }}", "rows": [{"name": "x"}]}),
            "'invoices.write' (step 1, create_invoice)",
        ),
        (
            "x",
            json!({"type": "add_ticket_message", "body": "x", "ticket_id": "{{ data.x }}"}),
            "'tickets.write' (step 1, add_ticket_message)",
        ),
        (
            "x",
            json!({"type": "send_email", "to": "a@b.example", "subject": "x", "body": "x"}),
            "'tickets.write' (step 1, send_email)",
        ),
        ("x", json!({"type": "send_document"}), "'invoices.write' (step 1, send_document)"),
        ("x", json!({"type": "http", "url": "http://127.0.0.1:9/"}), "'webhooks.write' (step 1, http)"),
        ("x", json!({"type": "trigger", "event": "invoice.paid"}), "'invoices.write' (step 1, trigger)"),
        (
            "x",
            json!({"type": "update", "entity_type": "corporate_identity", "id": "x", "fields": {"iban": ""}}),
            "'settings.write' (step 1, update)",
        ),
        (
            "invoice.paid",
            json!({"type": "update", "fields": {"title": "x"}}),
            "'invoices.read' (trigger), 'invoices.write' (step 1, update)",
        ),
    ] {
        let words = refusal(weak.post("/v1/automation/flows", body(event, json!([step]))));
        assert_eq!(words, format!("This flow requires scopes that you do not have: {scopes}."), "{event} {step}");
    }
    let harmless = json!([{"type": "approval"}, {"type": "wait", "for": "P1D"}, {"type": "trigger", "event": "y"}]);
    let made = weak.post("/v1/automation/flows", body("x", harmless.clone())).expect(201);
    let path = format!("/v1/automation/flows/{}", made.id());
    // Neither replacing nor enabling a flow gives more than creating one.
    refusal(weak.send("PUT", &path, &[], &body("invoice.paid", harmless.clone()).to_string()));
    for library in client.get("/v1/automation/flows?active=false").data().as_array().unwrap() {
        let path = format!("/v1/automation/flows/{}", library["id"].as_str().unwrap());
        assert!(refusal(weak.patch(&path, json!({"active": true}))).contains(".read' (trigger)"), "{library}");
        refusal(weak.act(&format!("{path}/adopt")));
        weak.patch(&path, json!({"active": false})).expect(200);
        assert_eq!(client.get(&path).data()["meta"]["author_type"], "operator");
    }
    weak.patch(&path, json!({"active": true})).expect(200);
    assert_eq!(weak.get(&path).data()["active"], true);
}

fn a_flow_stops_when_its_author_is_revoked(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (author, id) = key(&server, &client, &["automation.write", "tasks.write"]);
    let flow = author.post("/v1/automation/flows", body("order.shipped", task())).expect(201).id();
    let meta = one_flow(&client, &flow)["meta"].clone();
    assert_eq!(
        (&meta["author_type"], &meta["author_id"], &meta["stopped_reason"]),
        (&json!("key"), &json!(id), &json!(""))
    );
    let first = fire(&client, "order.shipped", json!({"name": "De Ster"})).pop().unwrap();
    server.automate(&client);
    assert_eq!((status(&client, &first).as_str(), total(&client, "/v1/tasks")), ("success", 1));
    kantoor::keys::operator::revoke(&server.app, &id).unwrap();
    let second = fire(&client, "order.shipped", json!({"name": "De Ster"})).pop().unwrap();
    let third = fire(&client, "order.shipped", json!({"name": "De Ster"})).pop().unwrap();
    server.automate(&client);
    for id in [&second, &third] {
        let run = run(&client, id);
        assert_eq!(
            (&run["status"], &run["error"]),
            (&json!("failed"), &json!("The flow was stopped: the key 'Assistant' of its author has been revoked."))
        );
    }
    assert_eq!(total(&client, "/v1/tasks"), 1);
    let stopped = one_flow(&client, &flow);
    assert_eq!(
        (&stopped["active"], &stopped["meta"]["stopped_reason"]),
        (
            &json!(false),
            &json!(
                "The flow was stopped: the key 'Assistant' of its author has been revoked. Adopt it to enable it again."
            )
        )
    );
    assert_eq!(server.events(&client, 0).iter().filter(|event| *event == "flow.stopped").count(), 1);
    assert!(fire(&client, "order.shipped", json!({})).is_empty());
    // Somebody without the scopes cannot adopt it, and a retry does not help.
    let (weak, _) = key(&server, &client, &["automation.write"]);
    let path = format!("/v1/automation/flows/{flow}");
    for reply in [weak.act(&format!("{path}/adopt")), weak.patch(&path, json!({"active": true}))] {
        assert_eq!(
            refusal(reply),
            "This flow requires scopes that you do not have: 'tasks.write' (step 1, create_task)."
        );
    }
    client.act(&format!("/v1/automation/runs/{second}/retry")).expect(200);
    server.automate(&client);
    assert_eq!(status(&client, &second), "failed");
    let adopted = client.act(&format!("{path}/adopt")).expect(200).data();
    assert_eq!((&adopted["active"], &adopted["meta"]["stopped_reason"]), (&json!(true), &json!("")));
    assert_ne!(adopted["meta"]["author_id"], json!(id));
    client.act(&format!("/v1/automation/runs/{second}/retry")).expect(200);
    fire(&client, "order.shipped", json!({"name": "De Ster"}));
    server.automate(&client);
    assert_eq!((status(&client, &second).as_str(), total(&client, "/v1/tasks")), ("success", 3));
    // Adopting a flow that is switched off does not enable it.
    client.patch(&path, json!({"active": false})).expect(200);
    assert_eq!(client.act(&format!("{path}/adopt")).expect(200).data()["active"], false);
}

fn a_flow_stops_when_its_author_loses_a_scope(server: Shared) {
    let client = server.client();
    let (author, id) = key(&server, &client, &["automation.write", "products.read", "tasks.write"]);
    let made = |path: &str, event: &str| {
        author.send(
            if path.is_empty() { "POST" } else { "PUT" },
            &format!("/v1/automation/flows{path}"),
            &[],
            &body(event, task()).to_string(),
        )
    };
    let flow = made("", "product.created").expect(201).id();
    change_key(&server, &id, "scopes = 'automation.write,tasks.write'");
    client.post("/v1/products", json!({"name": "Ketel"})).expect(201);
    server.automate(&client);
    let reason = "The flow was stopped: its author does not have the required scopes: 'products.read' (trigger).";
    assert_eq!(client.get("/v1/automation/runs").data()[0]["error"], reason);
    let stopped = one_flow(&client, &flow);
    assert!(stopped["active"] == false && stopped["meta"]["stopped_reason"].as_str().unwrap().starts_with(reason));
    // The author can still save what the remaining scopes allow, which also enables it.
    std::thread::sleep(Duration::from_millis(1100));
    refusal(made(&format!("/{flow}"), "product.created"));
    made(&format!("/{flow}"), "order.shipped").expect(200);
    let saved = one_flow(&client, &flow);
    assert_eq!((&saved["active"], &saved["meta"]["stopped_reason"]), (&json!(true), &json!("")));
    fire(&client, "order.shipped", json!({"name": "x"}));
    server.automate(&client);
    assert_eq!(total(&client, "/v1/tasks"), 1);
}

fn a_run_that_waits_fails_when_the_author_has_expired(server: Shared) {
    let client = server.client();
    let (author, id) = key(&server, &client, &["automation.write", "tasks.write"]);
    let steps = json!([{"type": "wait", "for": "P1D"}, {"type": "create_task", "title": "x"}]);
    let flow = author.post("/v1/automation/flows", body("x", steps)).expect(201).id();
    let run_id = fire(&client, "x", json!({})).pop().unwrap();
    server.automate(&client);
    assert_eq!(status(&client, &run_id), "waiting");
    change_key(&server, &id, "expires_at = 1");
    advance(&client, "2026-05-06T10:00:00Z");
    let failed = run(&client, &run_id);
    assert_eq!(failed["error"], "The flow was stopped: the key 'Assistant' of its author has expired.");
    assert_eq!(
        (steps_status(&client, &run_id), total(&client, "/v1/tasks")),
        (vec!["failed".into(), "skipped".into()], 0)
    );
    client.act(&format!("/v1/automation/flows/{flow}/adopt")).expect(200);
    client.act(&format!("/v1/automation/runs/{run_id}/retry")).expect(200);
    server.automate(&client);
    assert_eq!((status(&client, &run_id).as_str(), total(&client, "/v1/tasks")), ("success", 1));
}

fn steps_status(client: &Client, id: &str) -> Vec<String> {
    steps(client, id).iter().map(|step| step["status"].as_str().unwrap().to_string()).collect()
}

fn flows_without_an_author_keep_running(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (author, id) = key(&server, &client, &["*"]);
    let flow = author.post("/v1/automation/flows", body("x", task())).expect(201).id();
    // As the migration leaves a flow from before.
    for table in ["flows", "flow_definitions"] {
        let sql = format!("UPDATE {table} SET author_type = 'operator', author_id = ''");
        server.app.store.write_now(0, move |tx| tx.execute(&sql, &[]).map(drop)).unwrap();
    }
    change_key(&server, &id, "revoked_at = 1");
    let run = fire(&client, "x", json!({"name": "x"})).pop().unwrap();
    server.automate(&client);
    assert_eq!((status(&client, &run).as_str(), &one_flow(&client, &flow)["active"]), ("success", &json!(true)));
}

fn runs_of_a_deleted_flow_act_as_its_author(server: Shared) {
    let client = server.client();
    let steps = json!([{"type": "wait", "for": "P1D"}, {"type": "create_task", "title": "x"}]);
    let mut runs = Vec::new();
    for set in ["name = name", "revoked_at = 1"] {
        let (author, id) = key(&server, &client, &["automation.write", "tasks.write"]);
        let flow = author.post("/v1/automation/flows", body("x", steps.clone())).expect(201).id();
        runs.extend(fire(&client, "x", json!({})));
        server.automate(&client);
        client.delete(&format!("/v1/automation/flows/{flow}")).expect(204);
        change_key(&server, &id, set);
    }
    advance(&client, "2026-05-06T10:00:00Z");
    let ended: Vec<String> = runs.iter().map(|id| status(&client, id)).collect();
    assert_eq!((ended, total(&client, "/v1/tasks")), (vec!["success".to_string(), "failed".to_string()], 1));
}

fn what_is_only_known_in_a_run_is_checked_there(server: Shared) {
    let client = server.client();
    let (author, _) = key(&server, &client, &["automation.write", "tasks.write"]);
    let (firm, product) = (firm(&client), client.post("/v1/products", json!({"name": "x"})).expect(201).id());
    for (name, steps) in [
        (
            "update",
            json!([{"type": "update", "entity_type": "{{ data.kind }}", "id": "{{ data.of }}", "fields": {"name": "y"}}]),
        ),
        ("own", json!([{"type": "update", "fields": {"city": "Goes"}}])),
        ("trigger", json!([{"type": "trigger", "event": "{{ data.kind }}.created"}])),
        ("read", json!([{"type": "create_task", "title": "{{ record.company_name }} {{ data.company_name }}"}])),
    ] {
        let flow = author.post("/v1/automation/flows", body(name, steps)).expect(201).id();
        let fired = json!({"event": name, "data": {"kind": "product", "of": product}});
        let about = json!({"event": name, "entity_type": "client", "data": {"id": firm}});
        let fired = client.post("/v1/automation/trigger", if name == "own" || name == "read" { about } else { fired });
        let id = fired.expect(200).data()["runs"][0]["run_id"].as_str().unwrap().to_string();
        server.automate(&client);
        let run = run(&client, &id);
        let scope = if name == "own" || name == "read" { "relations.read" } else { "products.write" };
        assert!(run["status"] == "failed" && run["error"].as_str().unwrap().contains(scope), "{run}");
        // What a caller fires does not stop a flow.
        assert_eq!(one_flow(&client, &flow)["active"], true);
    }
    assert_eq!(total(&client, "/v1/tasks"), 0);
    assert_eq!(client.get(&format!("/v1/products/{product}")).data()["name"], "x");
}

fn runs_show_only_what_the_caller_may_read(server: Shared) {
    let client = server.client();
    let steps = json!([
        {"type": "create_task", "title": "Call {{ data.company_name }}", "name": "call"},
        {"type": "send_email", "to": "{{ data.company_name }}", "subject": "x", "body": "x"},
    ]);
    flow(&client, "customer.created", steps);
    firm(&client);
    server.automate(&client);
    let id = client.get("/v1/automation/runs").data()[0]["id"].as_str().unwrap().to_string();
    let paths = [
        "/v1/automation/runs".to_string(),
        format!("/v1/automation/runs/{id}"),
        format!("/v1/automation/runs/{id}/steps"),
    ];
    let (whole, _) = key(&server, &client, &["automation.read", "relations.read", "tasks.read"]);
    for path in &paths {
        let all = client.get(path).expect(200);
        assert!(all.text.contains("De Ster"), "{path}: {}", all.text);
        assert_eq!(whole.get(path).expect(200).json(), all.json());
    }
    for (scopes, missing) in [
        (&["automation.read"][..], "Hidden: requires the scopes relations.read, tasks.read."),
        (&["automation.read", "tasks.read"], "Hidden: requires the scope relations.read."),
    ] {
        let (weak, _) = key(&server, &client, scopes);
        for path in &paths {
            let reply = weak.get(path).expect(200);
            assert!(reply.text.contains(missing) && !reply.text.contains("Ster"), "{path}: {}", reply.text);
        }
        let told = super::steps(&weak, &id);
        assert_eq!(
            (&told[0]["status"], &told[0]["result"], &told[1]["error"]),
            (&json!("success"), &json!({"hidden": missing}), &json!(missing))
        );
        assert_eq!(run(&weak, &id)["meta"]["fired"], false);
    }
}

fn backtests_show_only_what_the_caller_may_read(server: Shared) {
    let client = server.client();
    let period = json!({"from": "2026-05-01T00:00:00Z", "to": "2026-05-30T00:00:00Z"});
    let steps = json!([{"type": "trigger", "event": "y", "data": {"name": "{{ data.company_name }}"}}]);
    let customers = format!("/v1/automation/flows/{}/backtest", flow(&client, "customer.created", steps.clone()));
    let orders = format!("/v1/automation/flows/{}/backtest", flow(&client, "order.shipped", steps));
    let firm = firm(&client);
    client
        .post(
            "/v1/automation/trigger",
            json!({"event": "order.shipped", "entity_type": "client", "data": {"id": firm}}),
        )
        .expect(200);
    fire(&client, "order.shipped", json!({"company_name": "mine"}));
    let (writes, _) = key(&server, &client, &["automation.write"]);
    assert!(refusal(writes.post(&orders, period.clone())).contains("'automation.read'"));
    let (weak, _) = key(&server, &client, &["automation.read", "automation.write"]);
    assert_eq!(
        refusal(weak.post(&customers, period.clone())),
        "The events of this flow require the scope 'relations.read'."
    );
    let seen = weak.post(&orders, period.clone()).expect(200);
    assert!(seen.data()["events"] == 1 && seen.text.contains("mine") && !seen.text.contains("Ster"), "{}", seen.text);
    let (reader, _) = key(&server, &client, &["automation.read", "automation.write", "relations.read"]);
    assert_eq!(reader.post(&orders, period.clone()).expect(200).data()["events"], 2);
    assert!(reader.post(&customers, period).expect(200).text.contains("De Ster"));
}

fn fired_data_never_overrides_a_record(server: Shared) {
    let client = server.client();
    let invoice = invoice(&client);
    let steps = json!([{"type": "create_note", "client_id": "{{ data.client_id }}", "body": "{{ data.total_incl_vat }} {{ data.version }} {{ data.bonus }} {{ data.fired.total_incl_vat }}"}]);
    flow_with(&client, "invoice.paid", steps, json!({"trigger_type": "event"}));
    let never = json!([{"field": "data.total_incl_vat", "op": "eq", "value": 1_000_000}]);
    flow_with(&client, "invoice.paid", task(), json!({"conditions": never}));
    let genuine = json!([{"field": "data.fired", "op": "exists", "value": false}]);
    flow_with(&client, "invoice.paid", task(), json!({"conditions": genuine}));
    let sent = json!({"id": invoice, "total_incl_vat": 1_000_000, "version": 9, "bonus": "yes", "fired": "no", "payment_status": "paid"});
    for path in ["/v1/automation/trigger", "/v1/webhooks/trigger"] {
        let fired = client.post(path, json!({"event": "invoice.paid", "data": sent})).expect(200).json();
        assert_eq!((&fired["data"]["matched"], &fired["meta"]), (&json!(1), &json!({})));
    }
    // Without a record, all of it is the caller's, and marked.
    assert!(fire(&client, "invoice.paid", json!({"total_incl_vat": 1_000_000})).len() == 2);
    server.automate(&client);
    let notes = client.get("/v1/notes").data();
    assert_eq!((total(&client, "/v1/notes"), &notes[0]["body"]), (2, &json!("121 1 yes 1000000")));
    let runs = client.get("/v1/automation/runs").data();
    assert!(runs.as_array().unwrap().iter().all(|run| run["meta"]["fired"] == true), "{runs}");
    let changes = client.get("/v1/changes?limit=1000").data();
    let noted = changes.as_array().unwrap().iter().find(|change| change["type"] == "automation.triggered").unwrap();
    let data = &noted["data"]["data"];
    assert_eq!(
        (&data["total_incl_vat"], &data["payment_status"], &data["fired"]["payment_status"]),
        (&json!(121), &json!("open"), &json!("paid"))
    );
}

fn events_of_the_account_are_marked_when_fired(server: Shared) {
    let client = server.client();
    let genuine = json!([{"field": "data.fired", "op": "exists", "value": false}]);
    flow_with(&client, "account.updated", task(), json!({"conditions": genuine}));
    assert!(fire(&client, "account.updated", json!({"id": "x", "name": "Evil"})).is_empty());
    client.patch("/v1/account", json!({"name": "Renamed"})).expect(200);
    assert_eq!(client.get("/v1/automation/runs").data().as_array().unwrap().len(), 1);
}

fn conditions_tell_nothing_to_an_author_who_may_not_read(server: Shared) {
    let client = server.client();
    let invoice = invoice(&client);
    let (weak, _) = key(&server, &client, &["automation.write", "automation.read", "tasks.write"]);
    for total in [121, 122] {
        let conditions = json!([{"field": "data.total_incl_vat", "op": "eq", "value": total}]);
        let steps = json!([{"type": "create_task", "title": "x"}]);
        let body = json!({"name": "x", "trigger_type": "custom", "trigger_key": "my.own", "steps": steps, "conditions": conditions});
        weak.post("/v1/automation/flows", body.clone()).expect(201);
        client.post("/v1/automation/flows", body).expect(201);
    }
    let about = json!({"event": "my.own", "entity_type": "invoice", "data": {"id": invoice}});
    let fired = client.post("/v1/automation/trigger", about).expect(200).data();
    assert_eq!(fired["matched"], 3, "both flows of the weak key, and the fitting one of the other: {fired}");
    server.automate(&client);
    let runs = client.get("/v1/automation/runs").data();
    let failed = runs.as_array().unwrap().iter().filter(|run| run["status"] == "failed").count();
    assert_eq!((failed, total(&client, "/v1/tasks")), (2, 1), "{runs}");
    // Without a record, the data is the caller's own.
    assert_eq!(fire(&client, "my.own", json!({"total_incl_vat": 121})).len(), 2);
    // An author who lost the scope of a real event learns as little.
    let (author, id) = key(&server, &client, &["automation.write", "relations.read", "tasks.write"]);
    for name in ["De Ster", "De Maan"] {
        let conditions = json!([{"field": "data.company_name", "op": "eq", "value": name}]);
        let steps = json!([{"type": "create_task", "title": "x"}]);
        let body = json!({"name": "y", "trigger_type": "event", "trigger_key": "customer.created", "steps": steps, "conditions": conditions});
        author.post("/v1/automation/flows", body).expect(201);
    }
    change_key(&server, &id, "scopes = 'automation.write,tasks.write'");
    firm(&client);
    server.automate(&client);
    let runs = client.get("/v1/automation/runs?limit=100").data();
    let stopped = runs.as_array().unwrap().iter().filter(|run| run["flow_name"] == "y" && run["status"] == "failed");
    assert_eq!(stopped.count(), 2, "{runs}");
}

fn lines_of_fired_events_have_no_signed_urls(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let invoice = invoice(&client);
    let steps = json!([{"type": "create_task", "title": "{{ data.pdf_url }}"}]);
    let exists = json!([{"field": "data.pdf_url", "op": "exists"}]);
    flow_with(&client, "my.own", steps, json!({"conditions": exists}));
    let data = json!({"id": invoice, "pdf_url": "https://evil.example/"});
    client
        .post("/v1/automation/trigger", json!({"event": "my.own", "entity_type": "invoice", "data": data}))
        .expect(200);
    server.automate(&client);
    let lines = server.app.store.read_now(|tx| {
        let sql = "SELECT data FROM log WHERE type = 'automation.triggered'";
        tx.all(sql, &[], |row| Ok::<_, store::Error>(row.text(0)?.to_string()))
    });
    let lines = lines.unwrap();
    assert!(lines.len() == 1 && !lines[0].contains("signature="), "{lines:?}");
    let title = client.get("/v1/tasks").data()[0]["title"].as_str().unwrap().to_string();
    assert!(title.contains("signature="), "a flow gets a fresh one: {title}");
}

fn firing_requires_the_scope_of_the_area(server: Shared) {
    let client = server.client();
    let firm = firm(&client);
    for (path, own) in [("/v1/automation/trigger", "automation.write"), ("/v1/webhooks/trigger", "webhooks.write")] {
        let (weak, _) = key(&server, &client, &[own]);
        for (event, scope) in [
            ("invoice.paid", "invoices.write"),
            ("customer.first_invoice_paid", "relations.write"),
            ("quote.fase_changed", "invoices.write"),
            ("document.draft", "invoices.write"),
            ("mail.unanswered", "tickets.write"),
            ("deal.anything", "deals.write"),
            ("account.updated", "settings.write"),
        ] {
            let words = refusal(weak.post(path, json!({"event": event})));
            assert_eq!(words, format!("Firing the event '{event}' requires the scope '{scope}'."));
        }
        // Nobody is told whether a record exists.
        for id in [&firm, "nobody"] {
            let about = json!({"event": "order.shipped", "entity_type": "customer", "data": {"id": id}});
            let words = refusal(weak.post(path, about));
            assert_eq!(words, "Firing the event 'order.shipped' requires the scope 'relations.read'.");
        }
        for event in ["order.shipped", "planning.updated", "work"] {
            weak.post(path, json!({"event": event, "data": {"id": firm}, "entity_type": "order"})).expect(200);
        }
        let (strong, _) = key(&server, &client, &[own, "invoices.write"]);
        strong.post(path, json!({"event": "invoice.paid", "data": {"id": "nobody"}})).expect(200);
    }
}
