//! After the machine's clock jumps forward and back, retries scheduled in between are not delayed by the jump.

use std::time::{Duration, Instant};

use engine::clock::Moment;
use engine::jobs::worker;
use serde_json::json;
use web::scripted::{Reply, Scripted};

use crate::on_both;
use crate::support::{Client, Db, Server};

on_both![retries_come_back_and_waits_stay,];

fn retries_come_back_and_waits_stay(db: Db) {
    let receiver = Scripted::start(|_| Reply::json(200, "{}".to_string())).unwrap();
    let server = Server::with(db, |config| config.allow_private_addresses = "127.0.0.1".to_string());
    server.leaves_jobs();
    let (account, key) = kantoor::opening::create_account(&server.app, "On time", None).unwrap();
    let client = Client::new(server.address, key, account.number);
    let flow = |key: &str, steps| {
        let body = json!({"name": key, "trigger_type": "custom", "trigger_key": key, "steps": steps});
        client.post("/v1/automation/flows", body).expect(201);
        let fired = client.post("/v1/automation/trigger", json!({"event": key, "data": {}})).expect(200).data();
        format!("/v1/automation/runs/{}", fired["runs"][0]["run_id"].as_str().unwrap())
    };
    let retried = flow("order.shipped", json!([{"type": "create_task", "title": "Call"}]));
    let waiting = flow("order.delayed", json!([{"type": "wait", "for": "P30D"}]));
    let endpoint = client.post("/v1/webhook-endpoints", json!({"url": receiver.url("/in")})).expect(201).id();
    client.act(&format!("/v1/webhook-endpoints/{endpoint}/test")).expect(200);

    // While the clock was ten hours ahead, a step failed, a wait began, a delivery failed and a probe was scheduled.
    let now = server.app.clock.now();
    let hours = |count: i64| now.plus_seconds(count * 3600).0;
    let (ahead, next, in_a_month) = (hours(10), Moment(hours(10)).plus_seconds(2).0, hours(24 * 30));
    let changes = [
        format!(
            "UPDATE runs SET status = 'retrying', updated_at = {ahead}, due_at = {next}, next_attempt_at = {next}
             WHERE trigger_key = 'order.shipped'"
        ),
        format!(
            "UPDATE runs SET status = 'waiting', updated_at = {ahead}, due_at = {in_a_month}, next_attempt_at = {in_a_month}
             WHERE trigger_key = 'order.delayed'"
        ),
        format!("UPDATE webhook_deliveries SET status = 'retrying', updated_at = {ahead}, due_at = {next}, next_attempt_at = {next}"),
        format!("UPDATE webhook_cursors SET next_probe_at = {ahead}"),
    ];
    server.app.store.write_now(0, move |tx| changes.iter().try_for_each(|sql| tx.execute(sql, &[]).map(drop))).unwrap();
    let app = server.app.clone();
    server.block_on(server.apart(move || worker::start(&app))).unwrap().unwrap();

    let started = Instant::now();
    let is_done = || client.get(&retried).data()["status"] == "success" && !receiver.received().is_empty();
    while !is_done() {
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", client.get(&retried));
        std::thread::sleep(Duration::from_millis(50));
    }
    let waits = client.get(&waiting).data();
    assert_eq!(waits["status"], "waiting");
    assert_eq!(waits["next_attempt_at"].as_str().and_then(Moment::parse), Some(Moment(in_a_month)));
}
