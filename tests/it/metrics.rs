//! Metrics: work is counted once, and lag is visible.

use std::time::{Duration, Instant};

use engine::jobs::{Lane, NewJob};
use kantoor::automation::worker;
use kantoor::webhooks;
use serde_json::{Value, json};
use web::scripted::{Reply, Scripted};

use crate::on_both;
use crate::support::{Client, Db, Server};

/// Returns the metric, once it has this value.
#[track_caller]
fn shows(server: &Server, name: &str, value: u64) {
    let started = Instant::now();
    loop {
        let now = server.metric(name);
        if now == value {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{name} is {now}, not {value}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a run of a flow with these steps; returns its path.
fn run(client: &Client, key: &str, steps: Value) -> String {
    let flow = json!({"name": key, "trigger_type": "custom", "trigger_key": key, "steps": steps, "max_attempts": 1});
    client.post("/v1/automation/flows", flow).expect(201);
    let fired = client.post("/v1/automation/trigger", json!({"event": key})).expect(200).data();
    format!("/v1/automation/runs/{}", fired["runs"][0]["run_id"].as_str().unwrap())
}

on_both![flows_and_webhooks_are_counted, metrics_show_the_lag, metrics_show_how_long_the_writer_is_held,];

fn flows_and_webhooks_are_counted(db: Db) {
    let outside = Scripted::start(|received| match received.path.as_str() {
        "/ok" => Reply::new(200),
        "/slow" => Reply::new(200).after(Duration::from_secs(2)),
        "/gone" => Reply::new(410),
        _ => Reply::new(500),
    })
    .unwrap();
    let server = Server::with(db, |config| config.allow_private_addresses = "127.0.0.1".to_string());
    server.block_on(async {
        webhooks::start(&server.app);
        worker::start(&server.app);
    });
    let client = server.client();
    let ended = |status: &str, count: u64| {
        shows(&server, &format!("kantoor_flow_runs_finished_total{{status=\"{status}\"}}"), count)
    };
    let calls = |outcome: &str, count: u64| {
        shows(&server, &format!("kantoor_flow_calls_total{{outcome=\"{outcome}\"}}"), count)
    };
    let call = |path: &str| json!({"type": "http", "url": outside.url(path)});
    for status in ["success", "partial", "failed", "cancelled"] {
        ended(status, 0);
    }
    run(&client, "a.task", json!([{"type": "create_task", "title": "x"}]));
    ended("success", 1);
    run(&client, "a.call", json!([call("/ok"), call("/ok")]));
    ended("success", 2);
    calls("success", 2);
    let mut lenient = call("/bad");
    lenient["continue_on_error"] = json!(true);
    run(&client, "a.partial", json!([lenient]));
    ended("partial", 1);
    calls("failed", 1);
    run(&client, "a.refused", json!([{"type": "http", "url": "http://{{ \"10.0.0.1\" }}/"}]));
    ended("failed", 1);
    calls("refused", 1);
    let waits = json!([{"type": "approval", "message": "May I?"}]);
    for (key, verb) in [("a.cancelled", "cancel"), ("a.rejected", "reject")] {
        let path = run(&client, key, waits.clone());
        until(|| client.get(&path).data()["status"] == "pending_approval");
        let act =
            |status| client.send("POST", &format!("{path}/{verb}"), &[("idempotency-key", key)], "").expect(status);
        act(200);
        act(200);
    }
    ended("cancelled", 2);
    run(&client, "a.slow", json!([call("/slow")]));
    shows(&server, "kantoor_flow_calls_open", 1);
    ended("success", 3);
    shows(&server, "kantoor_flow_calls_open", 0);
    calls("success", 3);
    calls("lost", 0);

    let became = |outcome: &str, count: u64| {
        shows(&server, &format!("kantoor_webhook_deliveries_total{{outcome=\"{outcome}\"}}"), count)
    };
    for path in ["/ok", "/bad", "/gone"] {
        let made = client.post("/v1/webhook-endpoints", json!({"url": outside.url(path), "events": ["product.*"]}));
        made.expect(201);
    }
    client.post("/v1/products", json!({"name": "x"})).expect(201);
    for outcome in ["delivered", "failed", "given_up"] {
        became(outcome, 1);
    }
    became("lost", 0);
    shows(&server, "kantoor_webhook_seconds_count", 3);
    // The first of the tests above would not detect double counting.
    for (status, count) in [("success", 3), ("partial", 1), ("failed", 1), ("cancelled", 2)] {
        ended(status, count);
    }
}

fn metrics_show_the_lag(db: Db) {
    let server = Server::start(db);
    let (account, key) = kantoor::opening::create_account(&server.app, "Real", None).unwrap();
    let client = Client::new(server.address, key, account.number);
    let change = |sql: &'static str| server.app.store.write_now(0, move |tx| tx.execute(sql, &[]).map(drop)).unwrap();
    let about = |name: &str, seconds: u64| {
        let shown = server.metric(&format!("kantoor_{name}_behind_seconds"));
        assert!((seconds..seconds + 60).contains(&shown), "{name}: {shown}");
    };
    for name in ["jobs", "flows", "webhooks"] {
        about(name, 0);
    }
    let path = format!(
        "/v1/webhook-endpoints/{}",
        client.post("/v1/webhook-endpoints", json!({"url": "https://example.com/"})).expect(201).id()
    );
    client.post("/v1/products", json!({"name": "x"})).expect(201);
    change("UPDATE log SET at = at - 100000");
    about("webhooks", 100);
    client.act(&format!("{path}/test")).expect(200);
    change("UPDATE webhook_deliveries SET due_at = due_at - 200000");
    about("webhooks", 200);
    run(&client, "a.b", json!([{"type": "create_task", "title": "x"}]));
    about("flows", 0);
    change("UPDATE runs SET due_at = due_at - 300000");
    about("flows", 300);
    let (ids, now) = (server.app.ids, server.now());
    let job = NewJob {
        account: 0,
        kind: "housekeeping",
        lane: Lane::Other,
        payload: "{}".to_string(),
        run_at: now.plus_seconds(-400),
        max_attempts: 1,
        unique_key: None,
    };
    let vault = server.app.site.vault.clone();
    server.app.store.write_now(0, move |tx| job.enqueue(tx, &ids, &vault, now)).unwrap();
    about("jobs", 400);
    // Work that is due later does not lag, nor does a disabled endpoint.
    change("UPDATE jobs SET run_at = run_at + 1000000");
    change("UPDATE runs SET due_at = due_at + 1000000");
    client.patch(&path, json!({"active": false})).expect(200);
    for name in ["jobs", "flows", "webhooks"] {
        about(name, 0);
    }
}

fn metrics_show_how_long_the_writer_is_held(db: Db) {
    let server = Server::start(db);
    let before = server.metric("kantoor_writer_hold_seconds_count");
    server
        .app
        .store
        .write_now(0, |_| {
            std::thread::sleep(Duration::from_millis(60));
            Ok::<_, store::Error>(())
        })
        .unwrap();
    assert_eq!(server.metric("kantoor_writer_hold_seconds_count"), before + 1);
    let longer = |end: &str| before + 1 - server.metric(&format!("kantoor_writer_hold_seconds_bucket{{le=\"{end}\"}}"));
    assert!(longer("0.05") >= 1);
    assert_eq!(longer("+Inf"), 0);
    let text = server.block_on(engine::http::metrics::text(&server.app));
    for name in ["hold", "closure"] {
        let name = format!("kantoor_writer_longest_{name}_seconds ");
        let longest: f64 = text.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).unwrap();
        assert!(longest >= 0.06, "{name}{longest}");
    }
}

#[track_caller]
fn until(done: impl Fn() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(20), "it takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}
