//! Runs: what starts them, what they wait for, and how they end.

use super::*;

on_both![
    conditions_and_names_decide_what_matches,
    runs_can_be_filtered_by_several_statuses,
    deletes_expired_runs,
    an_undefined_name_is_an_error,
    retries_failures_with_backoff,
    waits_follow_the_account_clock,
    runs_can_be_approved_rejected_and_cancelled,
    continue_on_error_makes_a_run_partial,
    limits_the_depth_of_a_chain_of_flows,
    limits_the_number_of_runs_in_a_chain,
    a_schedule_fires_once_per_time,
];

fn conditions_and_names_decide_what_matches(server: Shared) {
    let client = server.client();
    flow_with(&client, "quote.fase_changed", json!([{"type": "approval"}]), json!({"trigger_type": "event"}));
    flow_with(&client, "work", json!([{"type": "approval"}]), json!({"trigger_type": "event"}));
    flow_with(
        &client,
        "a.b",
        json!([{"type": "approval"}]),
        json!({"conditions": [{"field": "data.total", "op": "gt", "value": 10}, {"field": "data.kind", "op": "in", "value": ["x", "y"]}]}),
    );
    let matched = |event: &str, data: Value| fire(&client, event, data).len();
    for (event, count) in [
        ("quote.phase_changed", 1),
        ("quote.fase_changed", 1),
        ("work", 1),
        ("work.recurring", 1),
        ("A.B", 0),
        ("a.b", 0),
    ] {
        assert_eq!(matched(event, json!({})), count, "{event}");
    }
    assert_eq!(matched("a.b", json!({"total": 11, "kind": "x"})), 1);
    assert_eq!(matched("a.b", json!({"total": 10, "kind": "x"})), 0);
    assert_eq!(matched("a.b", json!({"total": "11.5", "kind": "z"})), 0);
    let echoed = client.post("/v1/webhooks/trigger", json!({"event": "quote.fase_changed"})).expect(200).data();
    assert_eq!((&echoed["event"], &echoed["matched"]), (&json!("quote.fase_changed"), &json!(1)));
    // Events of the service itself count too.
    flow_with(&client, "customer.created", json!([{"type": "approval"}]), json!({"trigger_type": "event"}));
    flow(&client, "task.completed", json!([{"type": "approval"}]));
    let before = total(&client, "/v1/automation/runs");
    let firm = firm(&client);
    let task = client.post("/v1/tasks", json!({"title": "x"})).expect(201).id();
    client.act(&format!("/v1/tasks/{task}/complete")).expect(200);
    assert_eq!(total(&client, "/v1/automation/runs"), before + 2);
    let runs = client.get("/v1/automation/runs?sort=id&order=desc").data();
    let about: Vec<&Value> = runs.as_array().unwrap().iter().take(2).map(|run| &run["entity_type"]).collect();
    assert_eq!(about, ["task", "client"]);
    assert_eq!(runs[1]["meta"]["entity_id"], json!(firm));
}

fn runs_can_be_filtered_by_several_statuses(server: Shared) {
    let client = server.client();
    let one = flow(&client, "a.one", json!([{"type": "approval"}]));
    flow(&client, "a.two", task());
    fire(&client, "a.one", json!({}));
    fire(&client, "a.two", json!({"name": "x"}));
    server.automate(&client);
    fire(&client, "a.two", json!({"name": "x"}));
    for (query, count) in [
        ("status=pending_approval", 1),
        ("status=success", 1),
        ("status=success,queued", 2),
        ("status=success,queued,pending_approval", 3),
        ("status=nope", 0),
        ("status=nope,success", 1),
        ("status=", 0),
    ] {
        assert_eq!(total(&client, &format!("/v1/automation/runs?{query}")), count, "{query}");
    }
    assert_eq!(total(&client, &format!("/v1/automation/runs?flow_id={one}")), 1);
    assert_eq!(total(&client, &format!("/v1/automation/runs?flow_id={one}&status=success")), 0);
    assert_eq!(total(&client, "/v1/automation/runs"), 3);
}

fn deletes_expired_runs(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    flow(&client, "a.ends", task());
    flow(&client, "a.waits", json!([{"type": "approval"}]));
    let tidy = || {
        let caller = server.app.acting_in(client.account, "test").unwrap();
        server
            .app
            .store
            .write_now(client.account, move |tx| {
                let ctx = caller.writing(tx)?;
                kantoor::automation::run::purge(tx, &ctx)
            })
            .unwrap();
    };
    for event in ["a.ends", "a.ends", "a.waits"] {
        fire(&client, event, json!({"name": "x"}));
    }
    server.automate(&client);
    advance(&client, "2026-08-01T10:00:00Z");
    fire(&client, "a.ends", json!({"name": "late"}));
    server.automate(&client);
    tidy();
    assert_eq!(total(&client, "/v1/automation/runs"), 4);
    advance(&client, "2026-08-03T10:00:00Z");
    client.patch("/v1/settings", json!({"runs_kept_days": 0})).expect(200);
    tidy();
    assert_eq!(total(&client, "/v1/automation/runs"), 4, "0 is for always");
    client.patch("/v1/settings", json!({"runs_kept_days": 90})).expect(200);
    tidy();
    assert_eq!(total(&client, "/v1/automation/runs"), 2, "a run that has not ended is kept");
    let left = client.get("/v1/automation/runs").data();
    assert_eq!(
        (left.as_array().unwrap().len(), &left[0]["status"], &left[1]["status"]),
        (2, &json!("success"), &json!("pending_approval"))
    );
}

fn an_undefined_name_is_an_error(server: Shared) {
    let client = server.client();
    flow(&client, "a.b", json!([{"type": "create_task", "title": "Call {{ data.nobody }}"}]));
    flow(&client, "a.c", json!([{"type": "create_task", "title": "Call {{ person }}"}]));
    flow(
        &client,
        "a.d",
        json!([{"type": "create_task", "title": "{% for a in range(900) %}{% for b in range(900) %}x{% endfor %}{% endfor %}"}]),
    );
    flow(&client, "a.e", json!([{"type": "create_task", "title": "x", "category": "{{ data.kind }}"}]));
    for (event, words) in [
        ("a.b", "'data.nobody' is not defined"),
        ("a.c", "'person' is not defined"),
        ("a.d", "takes too long to evaluate"),
        ("a.e", "'category' must be one of"),
    ] {
        let id = fire(&client, event, json!({"kind": "dance"})).pop().unwrap();
        server.automate(&client);
        let one = run(&client, &id);
        assert_eq!((&one["status"], &one["attempts"], &one["actions_done"]), (&json!("failed"), &json!(1), &json!(0)));
        assert!(one["error"].as_str().unwrap().contains(words), "{one}");
        assert!(steps(&client, &id)[0]["error"].as_str().unwrap().contains(words));
    }
    assert_eq!(total(&client, "/v1/tasks"), 0);
}

fn retries_failures_with_backoff(db: Db) {
    let server = with_calls(db);
    let client = server.client();
    let away = away();
    let steps_ = json!([{"type": "create_note", "body": "once"}, {"type": "http", "url": away.url("/")}]);
    let id = flow_with(&client, "a.b", steps_, json!({"max_attempts": 3}));
    let run_id = fire(&client, "a.b", json!({})).pop().unwrap();
    server.automate(&client);
    let mut pauses = Vec::new();
    for tries in 1..3 {
        let one = run(&client, &run_id);
        assert_eq!(
            (&one["status"], &one["attempts"], &one["actions_done"]),
            (&json!("retrying"), &json!(tries), &json!(1))
        );
        assert!(one["error"].as_str().unwrap().contains("responded with 503: try later"), "{one}");
        let next = jiff_seconds(one["next_attempt_at"].as_str().unwrap()) - jiff_seconds("2026-05-04T10:00:00.000Z");
        pauses.push(next);
        hurry(&server, &client);
    }
    assert!((10..=12).contains(&pauses[0]) && (20..=25).contains(&pauses[1]), "{pauses:?}");
    let one = run(&client, &run_id);
    assert_eq!((&one["status"], &one["attempts"], &one["next_attempt_at"]), (&json!("failed"), &json!(3), &json!("")));
    assert_eq!(client.act(&format!("/v1/automation/runs/{run_id}/cancel")).expect(409).code(), "run_finished");
    // A manual retry resumes where it failed.
    let again = client.act(&format!("/v1/automation/runs/{run_id}/retry")).expect(200).data();
    assert_eq!(again, json!({"id": run_id, "status": "queued"}));
    server.automate(&client);
    assert_eq!(run(&client, &run_id)["status"], "retrying");
    assert_eq!(total(&client, "/v1/notes"), 1, "a completed step is not repeated");
    // One that waits for its next attempt need not wait; one that is queued cannot be retried.
    client.act(&format!("/v1/automation/runs/{run_id}/retry")).expect(200);
    assert_eq!(client.act(&format!("/v1/automation/runs/{run_id}/retry")).expect(409).code(), "invalid_transition");
    server.automate(&client);
    let one = run(&client, &run_id);
    assert_eq!((&one["status"], &one["attempts"]), (&json!("retrying"), &json!(1)), "{one}");
    // On the test clock, attempts follow automatically.
    advance(&client, "2026-05-04T11:00:00Z");
    assert_eq!(run(&client, &run_id)["status"], "failed");
    // A run in progress keeps the definition that it started with.
    let waiting = fire(&client, "a.b", json!({})).pop().unwrap();
    server.automate(&client);
    let new = json!({"name": "x", "trigger_type": "custom", "trigger_key": "a.b", "steps": [{"type": "approval"}]});
    client.send("PUT", &format!("/v1/automation/flows/{id}"), &[], &new.to_string()).expect(200);
    client.delete(&format!("/v1/automation/flows/{id}")).expect(204);
    advance(&client, "2026-05-04T12:00:00Z");
    let one = run(&client, &waiting);
    assert_eq!((&one["status"], &one["actions_done"]), (&json!("failed"), &json!(1)), "{one}");
    assert_eq!(steps(&client, &waiting).len(), 2);
}

fn waits_follow_the_account_clock(server: Shared) {
    let client = server.client();
    flow(
        &client,
        "a.b",
        json!([{"type": "wait", "for": "P3D"}, {"type": "create_task", "title": "At {{ now }}"},
            {"type": "wait", "until": "{{ data.until }}"}, {"type": "create_task", "title": "Then {{ now }}"}]),
    );
    let id = fire(&client, "a.b", json!({"until": "2026-05-20"})).pop().unwrap();
    let late = fire(&client, "a.b", json!({"until": "2026-05-01T00:00:00Z"})).pop().unwrap();
    server.automate(&client);
    let one = run(&client, &id);
    assert_eq!(
        (&one["status"], &one["next_attempt_at"], &one["actions_done"]),
        (&json!("waiting"), &json!("2026-05-07T10:00:00.000Z"), &json!(0))
    );
    advance(&client, "2026-05-07T09:59:59Z");
    assert_eq!(status(&client, &id), "waiting");
    advance(&client, "2026-06-01T00:00:00Z");
    for id in [&id, &late] {
        let one = run(&client, id);
        assert_eq!((&one["status"], &one["actions_done"]), (&json!("success"), &json!(4)), "{one}");
    }
    let tasks = client.get("/v1/tasks?sort=title&order=asc").data();
    let titles: Vec<&str> = tasks.as_array().unwrap().iter().map(|task| task["title"].as_str().unwrap()).collect();
    assert_eq!(
        titles,
        [
            "At 2026-05-07T10:00:00.000Z",
            "At 2026-05-07T10:00:00.000Z",
            "Then 2026-05-07T10:00:00.000Z",
            "Then 2026-05-19T22:00:00.000Z"
        ]
    );
    assert_eq!(steps(&client, &id)[0]["attempts"], 1);
}

fn runs_can_be_approved_rejected_and_cancelled(db: Db) {
    let server = with_calls(db);
    let client = server.client();
    let away = away();
    flow(
        &client,
        "a.b",
        json!([{"type": "approval", "message": "Send to {{ data.name }}?"}, {"type": "create_task", "title": "Sent"}]),
    );
    flow(&client, "a.wait", json!([{"type": "wait", "for": "P3D"}, {"type": "create_task", "title": "Never"}]));
    flow(&client, "a.retry", json!([{"type": "http", "url": away.url("/")}]));
    let act = |id: &str, what: &str| client.act(&format!("/v1/automation/runs/{id}/{what}"));
    let begin = |event: &str| {
        let id = fire(&client, event, json!({"name": "Anna"})).pop().unwrap();
        server.automate(&client);
        id
    };
    let id = begin("a.b");
    assert_eq!(status(&client, &id), "pending_approval");
    assert_eq!(steps(&client, &id)[0]["result"]["message"], "Send to Anna?");
    assert_eq!(act(&id, "retry").expect(409).code(), "invalid_transition");
    assert_eq!(act(&id, "approve").expect(200).data(), json!({"id": id, "status": "queued"}));
    server.automate(&client);
    assert_eq!((status(&client, &id), total(&client, "/v1/tasks")), ("success".to_string(), 1));
    for what in ["approve", "reject"] {
        assert_eq!(act(&id, what).expect(409).code(), "invalid_transition");
    }
    let id = begin("a.b");
    assert_eq!(act(&id, "reject").expect(200).data()["status"], "cancelled");
    let mut cancelled = vec![begin("a.b"), begin("a.wait"), begin("a.retry")];
    cancelled.push(fire(&client, "a.wait", json!({})).pop().unwrap());
    let were: Vec<String> = cancelled.iter().map(|id| status(&client, id)).collect();
    assert_eq!(were, ["pending_approval", "waiting", "retrying", "queued"]);
    for id in &cancelled {
        assert_eq!(act(id, "cancel").expect(200).data(), json!({"id": id, "status": "cancelled"}));
        assert_eq!(act(id, "cancel").expect(409).code(), "run_finished");
    }
    advance(&client, "2026-06-01T00:00:00Z");
    assert!(cancelled.iter().all(|id| status(&client, id) == "cancelled"));
    assert_eq!(total(&client, "/v1/tasks"), 1);
    let log = server.events(&client, 0);
    assert!(
        ["run.approved", "run.rejected", "run.cancelled"].iter().all(|name| log.iter().any(|own| own == name)),
        "{log:?}"
    );
}

fn continue_on_error_makes_a_run_partial(db: Db) {
    let server = with_calls(db);
    let client = server.client();
    let away = away();
    flow_with(
        &client,
        "a.b",
        json!([
            {"type": "http", "url": away.url("/"), "continue_on_error": true},
            {"type": "create_task", "title": "{{ data.nope }}", "continue_on_error": true},
            {"type": "create_task", "title": "On we go"},
        ]),
        json!({"max_attempts": 2}),
    );
    let id = fire(&client, "a.b", json!({})).pop().unwrap();
    server.automate(&client);
    assert_eq!(status(&client, &id), "retrying");
    hurry(&server, &client);
    let one = run(&client, &id);
    assert_eq!((&one["status"], &one["actions_done"], &one["error"]), (&json!("partial"), &json!(1), &json!("")));
    let told: Vec<String> = steps(&client, &id)
        .iter()
        .map(|step| format!("{} {}", step["status"].as_str().unwrap(), step["attempts"]))
        .collect();
    assert_eq!(told, ["failed 2", "failed 1", "success 1"]);
}

fn limits_the_depth_of_a_chain_of_flows(server: Shared) {
    let client = server.client();
    flow(&client, "round", json!([{"type": "trigger", "event": "round"}]));
    flow(&client, "task.updated", json!([{"type": "update", "fields": {"title": "{{ data.title }}x"}}]));
    fire(&client, "round", json!({}));
    let task = client.post("/v1/tasks", json!({"title": "x"})).expect(201).id();
    client.patch(&format!("/v1/tasks/{task}"), json!({"title": "y"})).expect(200);
    server.automate(&client);
    let runs = client.get("/v1/automation/runs?sort=id&order=asc&per_page=100").data();
    let of = |key: &str| {
        runs.as_array().unwrap().iter().filter(|run| run["trigger_key"] == key).cloned().collect::<Vec<_>>()
    };
    let round = of("round");
    assert_eq!(round.len(), 5);
    assert_eq!((&round[4]["status"], &round[3]["status"]), (&json!("failed"), &json!("success")));
    assert!(round[4]["error"].as_str().unwrap().contains("a chain of 5 runs"));
    assert_eq!(of("task.updated").len(), 5);
    assert_eq!(client.get(&format!("/v1/tasks/{task}")).data()["title"], "yxxxxx");
}

fn limits_the_number_of_runs_in_a_chain(server: Shared) {
    let client = server.client();
    flow(&client, "boom", Value::Array(vec![json!({"type": "trigger", "event": "boom"}); 50]));
    let first = fire(&client, "boom", json!({})).pop().unwrap();
    server.automate(&client);
    assert_eq!(total(&client, "/v1/automation/runs"), 1001);
    assert_eq!(status(&client, &first), "success");
    let failed = client.get("/v1/automation/runs?status=failed&per_page=1").data();
    assert!(failed[0]["error"].as_str().unwrap().contains("the same run has led to 1000 runs"), "{failed}");
    assert_eq!(fire(&client, "boom", json!({})).len(), 1, "another event starts another chain");
}

fn a_schedule_fires_once_per_time(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let at_nine = json!([{"type": "create_task", "title": "For {{ data.date }} at {{ now }}"}]);
    let id = flow_with(&client, "0 9 * * mon-fri", at_nine.clone(), json!({"trigger_type": "schedule"}));
    flow_with(&client, "0 9 * * *", at_nine.clone(), json!({"trigger_type": "schedule", "active": false}));
    server.automate(&client);
    assert_eq!(total(&client, "/v1/tasks"), 0);
    advance(&client, "2026-05-11T12:00:00Z");
    let tasks = client.get("/v1/tasks?sort=title&order=asc").data();
    let titles: Vec<&str> = tasks.as_array().unwrap().iter().map(|task| task["title"].as_str().unwrap()).collect();
    let wanted: Vec<String> =
        [5, 6, 7, 8, 11].iter().map(|day| format!("For 2026-05-{day:02} at 2026-05-{day:02}T07:00:00.000Z")).collect();
    assert_eq!(titles, wanted);
    client.patch(&format!("/v1/automation/flows/{id}"), json!({"active": false})).expect(200);
    advance(&client, "2026-05-14T12:00:00Z");
    assert_eq!(total(&client, "/v1/tasks"), 5);
    // An account on real time that was down for days: only the latest time starts a run.
    let (real, key) = kantoor::opening::create_account(&server.app, "Real", None).unwrap();
    let real = Client::new(server.address, key, real.number);
    let id = flow_with(&real, "* * * * *", at_nine, json!({"trigger_type": "schedule"}));
    let (number, own) = (real.account, id.clone());
    let past = server.now().plus_seconds(-3 * 24 * 3600).0 / 60_000 * 60_000;
    server
        .app
        .store
        .write_now(number, move |tx| {
            tx.execute(
                "UPDATE flows SET next_at = $1 WHERE account_id = $2 AND id = $3",
                &[past.into(), number.into(), (&own).into()],
            )
            .map(drop)
        })
        .unwrap();
    server.automate(&real);
    server.automate(&real);
    assert!((1..=2).contains(&total(&real, "/v1/tasks")), "once, unless a minute has just begun");
    assert_eq!(
        run(&real, real.get("/v1/automation/runs").data()[0]["id"].as_str().unwrap())["trigger_type"],
        "schedule"
    );
}
