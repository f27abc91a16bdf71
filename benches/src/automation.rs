//! Flows: runs of one step completed per second, the response time of a trigger while many runs wait, and the memory of
//! a million of them.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::json;

use crate::load::{self, Workload};
use crate::report::{Figure, Report, thousands};
use crate::server::{Data, Server};

/// Number of waiting runs while triggers are measured, and while memory is.
const WAITING: i64 = 100_000;
const WAITING_RUNS: i64 = 1_000_000;

/// Measures and reports all three.
pub fn tell(report: &mut Report, binary: &Path, folder: &Path, measured: Duration) {
    eprintln!("Measuring flows.");
    let data = Data::empty(binary, &folder.join("flows"));
    let server = Server::kantoor(binary, &data);
    for (key, step) in [
        ("bench.note", json!({"type": "create_note", "body": "{{ data.n }}"})),
        ("bench.wait", json!({"type": "wait", "for": "P30D"})),
    ] {
        let flow = json!({"name": key, "trigger_type": "custom", "trigger_key": key, "active": true, "steps": [step]});
        server.post("/v1/automation/flows", &flow);
    }
    let rest = server.megabytes();
    let per_second = runs(&server, measured);
    report.at_least("Runs of a flow of one step, triggered and ended, per second", per_second, 1_500.0);
    server.post("/v1/automation/trigger", &json!({"event": "bench.wait", "data": {"n": 1}}));
    while server.json("/v1/automation/runs?status=waiting")["meta"]["total"] != 1 {
        std::thread::sleep(Duration::from_millis(50));
    }
    server.stop();
    copy_waiting(&data.database(), WAITING);
    let server = Server::kantoor(binary, &data);
    let triggers = Figure::of(&[load::run_with(&server, Workload::Trigger, measured, 1)]);
    report.latency(&format!("A trigger while {} runs wait, one connection", thousands(WAITING)), &triggers, None);
    server.stop();
    copy_waiting(&data.database(), WAITING_RUNS);
    let server = Server::kantoor(binary, &data);
    load::run_with(&server, Workload::Trigger, measured, 4);
    let grown = server.megabytes() - rest;
    report.value(&format!("Memory that {} waiting runs add", thousands(WAITING_RUNS)), grown.max(0.0), "MB", 60.0);
    server.stop();
}

/// Triggers runs for a while, and waits until all have ended; returns how many per second.
fn runs(server: &Server, measured: Duration) -> f64 {
    let started = Instant::now();
    load::run(server, Workload::Trigger, measured);
    while server.json("/v1/automation/runs?status=queued,running,retrying")["meta"]["total"] != 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let seconds = started.elapsed().as_secs_f64();
    let ended = server.json("/v1/automation/runs?status=success")["meta"]["total"].as_f64().expect("a number");
    ended / seconds
}

/// Copies the waiting run until there are `count`.
fn copy_waiting(db: &Path, count: i64) {
    let conn = Connection::open(db).unwrap();
    conn.pragma_update(None, "synchronous", "off").unwrap();
    let columns = "created_at, updated_at, version, flow_id, flow_name, status, trigger_type, trigger_key, entity_type, attempts,
        max_attempts, actions_done, error, next_attempt_at, event, entity_id, depth, cancel_requested, finished_at, flow_version,
        step, failures, claim, lease_until, due_at, data, results";
    let sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO runs (account_id, id, {columns})
         SELECT account_id, 'w' || ?1 || '-' || i, {columns} FROM n, (SELECT * FROM runs WHERE status = 'waiting' LIMIT 1)"
    );
    conn.execute(&sql, [count]).unwrap();
}
