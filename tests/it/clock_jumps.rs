//! After the machine's clock jumps forward and back, retries scheduled in between are not delayed by the jump.

use std::time::{Duration, Instant};

use engine::clock::Moment;
use engine::jobs::worker;
use kantoor::automation::schedules;
use serde_json::json;
use web::scripted::{Reply, Scripted};

use crate::on_both;
use crate::support::{Client, Db, Server};

on_both![retries_come_back_and_waits_stay, schedules_come_back, jobs_come_back_in_small_steps,];

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
    let now = server.now();
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

fn schedules_come_back(db: Db) {
    let server = Server::start(db);
    server.leaves_jobs();
    let (account, key) = kantoor::opening::create_account(&server.app, "On time", None).unwrap();
    let client = Client::new(server.address, key, account.number);
    let flow = |client: &Client, cron: &str| {
        let body = json!({"name": cron, "trigger_type": "schedule", "trigger_key": cron,
            "steps": [{"type": "create_task", "title": "Call"}]});
        client.post("/v1/automation/flows", body).expect(201).id()
    };
    let tested = server.client();
    let (minutely, yearly) = (flow(&client, "* * * * *"), flow(&client, "0 0 1 1 *"));
    let (unread, of_test_clock) = (flow(&client, "*/2 * * * *"), flow(&tested, "* * * * *"));
    let next_at = |flow: &str| {
        let (sql, id) = ("SELECT next_at FROM flows WHERE id = $1", flow.to_string());
        server.app.store.read_now(move |tx| tx.int(sql, &[(&id).into()])).unwrap()
    };
    let (new_year, at_test) = (next_at(&yearly), next_at(&of_test_clock));
    // Ten hours ahead one was fired, and another could not be read an hour ago; then the clock went back.
    let now = server.now();
    let (ahead, in_an_hour) = (now.plus_seconds(10 * 3600).0, now.plus_seconds(3600).0);
    let set = |flow: &str, next_at: i64| {
        let (sql, id) = ("UPDATE flows SET next_at = $1 WHERE id = $2", flow.to_string());
        let write = move |tx: &mut store::Tx| tx.execute(sql, &[next_at.into(), (&id).into()]).map(drop);
        server.app.store.write_now(0, write).unwrap();
    };
    set(&minutely, ahead);
    set(&unread, in_an_hour);
    let app = server.app.clone();
    let pull_back = move || schedules::pull_back(&app);
    let pulled = server.block_on(server.apart(pull_back.clone())).unwrap().unwrap();
    assert_eq!(pulled, 1);
    let next = next_at(&minutely);
    assert!(next > now.0 && next <= now.plus_seconds(180).0, "{next} and {}", now.0);
    assert_eq!((next_at(&yearly), next_at(&unread), next_at(&of_test_clock)), (new_year, in_an_hour, at_test));
    assert_eq!(server.block_on(server.apart(pull_back)).unwrap().unwrap(), 0);

    // The workers do it too.
    set(&minutely, ahead);
    let app = server.app.clone();
    server.block_on(server.apart(move || worker::start(&app))).unwrap().unwrap();
    assert!(next_at(&minutely) < now.plus_seconds(600).0);
}

fn jobs_come_back_in_small_steps(db: Db) {
    let server = Server::start(db);
    server.leaves_jobs();
    let ahead = server.now().plus_seconds(10 * 3600);
    let sql =
        "WITH RECURSIVE numbers (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < 1200)
         INSERT INTO jobs (id, account_id, kind, unique_key, payload, state, run_at, attempts, max_attempts, claim,
                           lease_until, last_error, created_at)
         SELECT 'j' || n, 1, 'later', 'j' || n, '{}', 'ready', CAST($1 AS BIGINT), 0, 3, 0, 0, '', 0 FROM numbers";
    let write = move |tx: &mut store::Tx| tx.execute(sql, &[ahead.0.into()]).map(drop);
    server.app.store.write_now(0, write).unwrap();
    store::seen::closures();
    let app = server.app.clone();
    server.block_on(server.apart(move || worker::start(&app))).unwrap().unwrap();
    let most = store::seen::closures().iter().map(|one| one.rows).max().unwrap();
    assert!(most <= 600, "{most} rows in a transaction");
    let later = server.now().plus_seconds(3700);
    let left = "SELECT count(*) FROM jobs WHERE kind = 'later' AND run_at > $1";
    assert_eq!(server.app.store.read_now(move |tx| tx.int(left, &[later.0.into()])).unwrap(), 0);
}
