//! Permanent failures, and the cleanup of flows.

use super::*;

on_both![
    does_not_retry_permanent_failures,
    a_step_that_needs_more_than_a_transaction_fails,
    a_step_renames_a_status_of_many_tickets,
    deletes_unused_definitions,
];

fn does_not_retry_permanent_failures(server: Shared) {
    let client = server.client();
    let rows = json!([{"name": "x", "unit_price": 1}]);
    let taken = json!({"title": "First", "client_id": firm(&client), "external_id": "shop-1", "rows": rows});
    let (taken, last) = (client.post("/v1/invoices", taken).expect(201).id(), invoice(&client));
    let gone = "00000000-0000-7000-8000-000000000000";
    for (event, step, words) in [
        (
            "a.duplicate",
            json!({"type": "create_invoice", "title": "Again", "external_id": "shop-1", "rows": rows}),
            "Another invoice has the external_id 'shop-1'",
        ),
        (
            "a.gone",
            json!({"type": "update", "entity_type": "task", "id": gone, "fields": {"title": "y"}}),
            "Your account has no task",
        ),
        (
            "a.final",
            json!({"type": "update", "entity_type": "invoice", "id": last, "fields": {"notes": "y"}}),
            "The document is final",
        ),
        ("a.wrong", json!({"type": "create_task", "title": "x", "client_id": gone}), "'client_id'"),
    ] {
        flow(&client, event, json!([step]));
        let id = fire(&client, event, json!({})).pop().unwrap();
        server.automate(&client);
        let one = run(&client, &id);
        assert_eq!((&one["status"], &one["attempts"]), (&json!("failed"), &json!(1)), "{one}");
        assert!(one["error"].as_str().unwrap().contains(words), "{one}");
    }
    // Nor is mail queued that could never leave.
    let attach = json!([{"type": "send_email", "to": "a@b.example", "subject": "x", "body": "x", "attach_pdf": true}]);
    flow(&client, "invoice.paid", attach);
    let event = json!({"event": "invoice.paid", "entity_type": "invoice", "data": {"id": gone}});
    let fired = client.post("/v1/automation/trigger", event).expect(200).data();
    let id = fired["runs"][0]["run_id"].as_str().unwrap().to_string();
    server.automate(&client);
    let one = run(&client, &id);
    let words = format!("Step 1 (send_email): There is no document to attach: no invoice has the id {gone}.");
    assert_eq!((&one["status"], &one["error"]), (&json!("failed"), &json!(words)), "{one}");
    // The cause can be fixed, and the run resumed.
    let id = client.get("/v1/automation/runs?status=failed&order=asc").data()[0]["id"].as_str().unwrap().to_string();
    client.delete(&format!("/v1/invoices/{taken}")).expect(200);
    client.act(&format!("/v1/automation/runs/{id}/retry")).expect(200);
    server.automate(&client);
    assert_eq!(status(&client, &id), "success");
}

/// It used to succeed without doing anything.
fn a_step_that_needs_more_than_a_transaction_fails(server: Shared) {
    let client = server.client();
    let hook = client.post("/v1/webhook-endpoints", json!({"url": "https://a.example/in"})).expect(201).id();
    let path = format!("/v1/webhook-endpoints/{hook}");
    let update = |event: &str, fields: Value| {
        flow(
            &client,
            event,
            json!([{"type": "update", "entity_type": "webhook_endpoint", "id": hook, "fields": fields}]),
        );
        let id = fire(&client, event, json!({})).pop().unwrap();
        server.automate(&client);
        run(&client, &id)
    };
    for (event, url) in [("a.public", "https://ok.example/own"), ("a.private", "http://10.0.0.1/")] {
        let one = update(event, json!({"url": url, "description": "Mine"}));
        assert_eq!((&one["status"], &one["attempts"]), (&json!("failed"), &json!(1)), "{one}");
        assert!(one["error"].as_str().unwrap().contains("Send it as a request of its own."), "{one}");
    }
    let kept = client.get(&path).expect(200).data();
    assert_eq!((&kept["url"], &kept["description"]), (&json!("https://a.example/in"), &json!("")));
    assert_eq!(update("a.text", json!({"description": "Books"}))["status"], "success");
    assert_eq!(client.get(&path).expect(200).data()["description"], "Books");
    // With nothing left to end, enabling takes one transaction.
    client.patch(&path, json!({"active": false})).expect(200);
    assert_eq!(update("a.on", json!({"active": true}))["status"], "success");
    assert_eq!(client.get(&path).expect(200).data()["active"], true);
}

/// The tickets follow by a job, for which the run does not wait.
fn a_step_renames_a_status_of_many_tickets(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    for _ in 0..150 {
        client.post("/v1/tickets", json!({"subject": "x", "status": "Open"})).expect(201);
    }
    let all = client.get("/v1/ticket-statuses").data();
    let open = all.as_array().unwrap().iter().find(|status| status["name"] == "Open").unwrap()["id"].clone();
    let step = json!({"type": "update", "entity_type": "ticket_status", "id": open, "fields": {"name": "Busy"}});
    flow(&client, "a.rename", json!([step]));
    let id = fire(&client, "a.rename", json!({})).pop().unwrap();
    server.automate(&client);
    assert_eq!((status(&client, &id), &steps(&client, &id)[0]["result"]["name"]), ("success".into(), &json!("Busy")));
    server.block_on(async { while engine::jobs::worker::turn(&server.app).await {} });
    assert_eq!(total(&client, "/v1/tickets?status=Busy"), 150);
}

fn deletes_unused_definitions(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let waits = json!([{"type": "approval"}]);
    let id = flow(&client, "a.b", waits.clone());
    let path = format!("/v1/automation/flows/{id}");
    let change = |name: &str| {
        let body = json!({"name": "x", "trigger_type": "custom", "trigger_key": "a.b", "steps": [{"type": "approval", "message": name}]});
        client.send("PUT", &path, &[], &body.to_string()).expect(200);
    };
    let left = || {
        let (caller, own) = (server.app.acting_in(client.account, "test").unwrap(), id.clone());
        server
            .app
            .store
            .write_now(client.account, move |tx| {
                let ctx = caller.writing(tx)?;
                kantoor::automation::run::purge(tx, &ctx)?;
                kantoor::automation::flow::purge(tx, &ctx)?;
                let sql =
                    "SELECT version FROM flow_definitions WHERE account_id = $1 AND flow_id = $2 ORDER BY version";
                Ok::<_, engine::error::Error>(tx.all(sql, &[ctx.account.into(), (&own).into()], |row| row.int(0))?)
            })
            .unwrap()
    };
    change("second");
    assert_eq!(left(), [2], "no run follows the first");
    let old = fire(&client, "a.b", json!({})).pop().unwrap();
    server.automate(&client);
    change("third");
    advance(&client, "2026-05-06T10:00:00Z");
    let new = fire(&client, "a.b", json!({})).pop().unwrap();
    server.automate(&client);
    assert_eq!(left(), [2, 3]);
    assert_eq!(steps(&client, &old)[0]["result"]["message"], "second");
    client.act(&format!("/v1/automation/runs/{old}/approve")).expect(200);
    advance(&client, "2026-08-06T10:00:00Z");
    assert_eq!(left(), [3], "the run of the second is deleted");
    assert_eq!(
        (status(&client, &new).as_str(), client.get(&format!("/v1/automation/runs/{old}")).status),
        ("pending_approval", 404)
    );
    client.delete(&path).expect(204);
    assert_eq!(left(), [3], "a run uses it, with or without its flow");
    client.act(&format!("/v1/automation/runs/{new}/cancel")).expect(200);
    advance(&client, "2026-12-01T10:00:00Z");
    assert_eq!(left(), [0_i64; 0]);
    assert!(
        client
            .get("/v1/automation/flows")
            .data()
            .as_array()
            .unwrap()
            .iter()
            .all(|flow| flow["step_count"].as_i64().unwrap() > 0)
    );
}
