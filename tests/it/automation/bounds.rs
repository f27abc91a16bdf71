//! Limits of flows: hostile definitions and events.

use super::*;

on_both![
    renders_slow_templates_between_transactions,
    stores_an_event_once_for_all_its_flows,
    an_id_in_the_data_cannot_reach_another_route,
    rejects_an_event_without_a_name_or_an_object,
    compares_numbers_exactly_or_rejects_them,
    a_missing_field_compares_as_null,
    retries_a_run_after_a_cancel_request,
    a_backtest_has_limits,
    checks_urls_with_placeholders_as_far_as_known,
];

fn renders_slow_templates_between_transactions(server: Shared) {
    let client = server.client();
    // Sorting this takes longer than is allowed in a transaction.
    let sorts = "{% for i in range(10) %}{% if data.l | sort | length == 0 %}x{% endif %}{% endfor %}";
    flow(
        &client,
        "slow",
        json!([
            {"type": "create_task", "name": "first", "title": format!("{sorts}{{{{ data.name }}}}")},
            {"type": "condition", "conditions": [{"field": "steps.first.title", "op": "eq", "value": format!("{sorts}{{{{ data.name }}}}")}]},
            {"type": "create_note", "body": format!("{sorts}{{{{ data.name }}}}")},
            {"type": "create_note", "body": "{% for i in range(2000) %}{{ (data.l | sort | length) * 0 }}{% endfor %}"},
        ]),
    );
    let list: Vec<String> = (0..1_000).rev().map(|n| format!("item {n:05}")).collect();
    let id = fire(&client, "slow", json!({"l": list, "name": "{{ 7 }}"})).remove(0);
    server.automate(&client);
    let told = steps(&client, &id);
    let states: Vec<(&str, i64)> =
        told.iter().map(|step| (step["status"].as_str().unwrap(), step["attempts"].as_i64().unwrap())).collect();
    // A template that takes too long outside a transaction fails permanently.
    assert_eq!(states, [("success", 1), ("success", 1), ("success", 1), ("failed", 1)], "{told:#?}");
    assert!(run(&client, &id)["error"].as_str().unwrap().contains("takes too long to evaluate"));
    // Data is not evaluated as a template.
    assert_eq!(client.get("/v1/tasks").data()[0]["title"], "{{ 7 }}");
    assert_eq!((&client.get("/v1/notes").data()[0]["body"], total(&client, "/v1/notes")), (&json!("{{ 7 }}"), 1));
}

fn stores_an_event_once_for_all_its_flows(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let flows: Vec<String> = (0..200).map(|_| flow(&client, "a.b", json!([{"type": "approval"}]))).collect();
    let body = json!({"name": "x", "trigger_type": "custom", "trigger_key": "a.b", "steps": [{"type": "create_task", "title": "{{ data.name }}"}]});
    let refused = client.post("/v1/automation/flows", body.clone()).expect(409);
    assert_eq!(refused.code(), "limit_reached");
    assert!(refused.text.contains("200 active flows are triggered by the event 'a.b'"), "{}", refused.text);
    let mut off = body.clone();
    off["active"] = json!(false);
    let off = format!("/v1/automation/flows/{}", client.post("/v1/automation/flows", off).expect(201).id());
    assert_eq!(client.patch(&off, json!({"active": true})).expect(409).code(), "limit_reached");
    client.patch(&format!("/v1/automation/flows/{}", flows[0]), json!({"active": false})).expect(200);
    client.patch(&off, json!({"active": true})).expect(200);
    client.patch(&off, json!({"active": true})).expect(200);

    store::seen::closures();
    let large = "y".repeat(200_000);
    let runs = fire(&client, "a.b", json!({"name": "Ster", "large": large}));
    assert_eq!((runs.len(), total(&client, "/v1/automation/runs")), (200, 200));
    let bytes = store::seen::closures().iter().map(|closure| closure.bytes).max();
    assert!(bytes.is_some_and(|bytes| bytes < 1_000_000), "{bytes:?} bytes in a transaction");
    server.automate(&client);
    assert_eq!(client.get("/v1/tasks").data()[0]["title"], "Ster");

    // A run from before runs shared the data of the log.
    let id = fire(&client, "a.b", json!({"name": "New"})).pop().unwrap();
    server.execute(&format!("UPDATE runs SET seq = 0, data = '{{\"name\": \"Old\"}}' WHERE id = '{id}'"));
    server.automate(&client);
    assert_eq!(client.get("/v1/tasks").data()[0]["title"], "Old");
}

fn an_id_in_the_data_cannot_reach_another_route(server: Shared) {
    let client = server.client();
    let task = client.post("/v1/tasks", json!({"title": "Mine"})).expect(201).id();
    flow(&client, "a.b", json!([{"type": "update", "fields": {"title": "Theirs"}}]));
    flow(&client, "a.c", json!([{"type": "add_ticket_message", "ticket_id": "{{ data.ticket }}", "body": "x"}]));
    flow(&client, "a.d", json!([{"type": "send_document", "to": "a@b.example", "subject": "x", "message": "y"}]));
    for (event, kind, data) in [
        ("a.b", "task", json!({"id": format!("{task}?x=")})),
        ("a.c", "", json!({"ticket": "x/close?y="})),
        ("a.d", "invoice", json!({"id": "x/credit?y="})),
    ] {
        let fired = json!({"event": event, "entity_type": kind, "data": data});
        let runs = client.post("/v1/webhooks/trigger", fired).expect(200).data()["runs"].clone();
        server.automate(&client);
        let one = run(&client, runs[0]["run_guid"].as_str().unwrap());
        assert_eq!(one["status"], "failed", "{event}");
        assert!(one["error"].as_str().unwrap().ends_with("is not an id."), "{one}");
    }
    assert_eq!(client.get(&format!("/v1/tasks/{task}")).data()["title"], "Mine");
    // A long id is just a text that matches nothing.
    let long = json!({"event": "a.b", "entity_type": "task", "data": {"id": "x".repeat(100_000)}});
    client.post("/v1/automation/trigger", long).expect(200);
}

fn rejects_an_event_without_a_name_or_an_object(server: Shared) {
    let client = server.client();
    flow_with(&client, "0 9 * * *", json!([{"type": "approval"}]), json!({"trigger_type": "schedule"}));
    flow(&client, "a.b", json!([{"type": "trigger", "event": "{{ data.next }}", "data": "{{ data.with }}"}]));
    for (next, with, words) in [
        ("", json!({}), "The name of the event"),
        ("  ", json!({}), "The name of the event"),
        ("a.c", json!([1]), "The data of the event"),
    ] {
        let id = fire(&client, "a.b", json!({"next": next, "with": with})).pop().unwrap();
        server.automate(&client);
        let one = run(&client, &id);
        assert!(one["status"] == "failed" && one["error"].as_str().unwrap().contains(words), "{one}");
    }
    assert_eq!(total(&client, "/v1/automation/runs"), 3, "no schedule was started by an event without a name");
}

fn compares_numbers_exactly_or_rejects_them(server: Shared) {
    let client = server.client();
    let condition = |value: &str| format!(r#"[{{"field": "data.n", "op": "gt", "value": {value}}}]"#);
    let make = |conditions: &str| {
        let body = format!(
            r#"{{"name": "x", "trigger_type": "custom", "trigger_key": "a.b", "conditions": {conditions}, "steps": [{{"type": "approval"}}]}}"#
        );
        client.send("POST", "/v1/automation/flows", &[], &body)
    };
    make(&condition("12345678901234567890")).expect(201);
    let fire = |n: &str| {
        client.send("POST", "/v1/automation/trigger", &[], &format!(r#"{{"event": "a.b", "data": {{"n": {n}}}}}"#))
    };
    for (n, matched) in [
        ("12345678901234567891", 1),
        ("12345678901234567890", 0),
        ("12345678901234567889", 0),
        ("\"12345678901234567890.5\"", 1),
        ("\"1e999\"", 1),
        ("1e300", 1),
        ("-1", 0),
    ] {
        assert_eq!(fire(n).expect(200).data()["matched"], matched, "{n}");
    }
    for n in ["1e999", "-1e999", "123456789012345678901", "[{\"x\": 1e999}]"] {
        let refused = fire(n).expect(422);
        assert_eq!(refused.faults(), ["data: out_of_range"], "{n}");
        assert!(refused.text.contains("too large; send it as a string"), "{}", refused.text);
    }
    assert_eq!(make(&condition("1e999")).expect(422).faults(), ["conditions: out_of_range"]);
    assert_eq!(make(&condition("123456789012345678901")).expect(422).faults(), ["conditions: out_of_range"]);
}

fn a_missing_field_compares_as_null(server: Shared) {
    let client = server.client();
    let conditions = [
        ("eq", json!(null)),
        ("ne", json!(null)),
        ("ne", json!("x")),
        ("exists", json!(true)),
        ("exists", json!(false)),
    ];
    for (place, (op, value)) in conditions.iter().enumerate() {
        let condition = json!([{"field": "data.n", "op": op, "value": value}]);
        flow_with(&client, &format!("a.{place}"), json!([{"type": "approval"}]), json!({"conditions": condition}));
        // The same applies in a step.
        flow(
            &client,
            &format!("b.{place}"),
            json!([{"type": "condition", "conditions": condition}, {"type": "approval"}]),
        );
    }
    for (data, wanted) in [
        (json!({}), [true, false, true, false, true]),
        (json!({"n": null}), [true, false, true, false, true]),
        (json!({"n": ""}), [false, true, true, false, true]),
        (json!({"n": "x"}), [false, true, false, true, false]),
    ] {
        for (place, holds) in wanted.into_iter().enumerate() {
            assert_eq!(
                fire(&client, &format!("a.{place}"), data.clone()).len(),
                usize::from(holds),
                "{data} {:?}",
                conditions[place]
            );
            let id = fire(&client, &format!("b.{place}"), data.clone()).pop().unwrap();
            server.automate(&client);
            assert_eq!(
                status(&client, &id),
                if holds { "pending_approval" } else { "success" },
                "{data} {:?} in a step",
                conditions[place]
            );
        }
    }
}

fn retries_a_run_after_a_cancel_request(server: Shared) {
    let client = server.client();
    flow(&client, "a.b", json!([{"type": "create_task", "title": "{{ data.nope }}"}]));
    let id = fire(&client, "a.b", json!({})).pop().unwrap();
    server.automate(&client);
    // As if it was cancelled during the call that failed.
    server.execute(&format!("UPDATE runs SET cancel_requested = 1 WHERE id = '{id}'"));
    client.act(&format!("/v1/automation/runs/{id}/retry")).expect(200);
    server.automate(&client);
    assert_eq!((status(&client, &id).as_str(), steps(&client, &id)[0]["attempts"].as_i64()), ("failed", Some(1)));
}

fn a_backtest_has_limits(server: Shared) {
    let client = server.client();
    let long = json!({"type": "approval", "message": format!("{{{{ data.name }}}}{}", "x".repeat(20_000))});
    let id = flow_with(&client, "a.b", json!(vec![long; 12]), json!({"active": false}));
    for _ in 0..20 {
        fire(&client, "a.b", json!({"name": "De Ster"}));
    }
    let period = json!({"from": "2026-05-01T00:00:00Z", "to": "2026-06-01T00:00:00Z"});
    let reply = client.post(&format!("/v1/automation/flows/{id}/backtest"), period).expect(200);
    let told = reply.data();
    assert_eq!(
        (&told["events"], &told["matched"], &told["steps"][11]["taken"], &told["complete"]),
        (&json!(20), &json!(20), &json!(20), &json!(true))
    );
    assert!(reply.text.len() < 2 * 1024 * 1024, "{}", reply.text.len());
    assert!(told["examples"].as_array().unwrap().len() < 20);
}

fn checks_urls_with_placeholders_as_far_as_known(server: Shared) {
    let client = server.client();
    let sent = |url: &str| {
        let steps = json!([{"type": "http", "url": url}]);
        client.post(
            "/v1/automation/flows",
            json!({"name": "x", "trigger_type": "custom", "trigger_key": "a.b", "steps": steps}),
        )
    };
    for good in ["{{ data.url }}", "https://{{ data.host }}/x", "https://93.184.215.14/{% if data.a %}a{% endif %}"] {
        sent(good).expect(201);
    }
    for bad in ["http://10.0.0.1/{{ data.id }}", "ftp://93.184.215.14/{{ data.id }}"] {
        assert_eq!(sent(bad).expect(422).faults(), ["steps[0].url: invalid_format"], "{bad}");
    }
    // A part that was not known then is checked when the call is made.
    let id = fire(&client, "a.b", json!({"url": "http://10.0.0.1/", "host": "10.0.0.1", "a": false})).remove(0);
    server.automate(&client);
    assert_eq!(status(&client, &id), "failed");
}
