//! Tests with separate processes: the work of a node that was killed or paused, jobs that kill their process, and a log
//! that cannot be written.

use std::net::TcpListener;
use std::process::{Command, Output};

use rustix::process::Signal;
use serde_json::{Value, json};
use web::scripted::{Reply, Scripted};

use super::*;
use crate::server::Binary;
use crate::support::{Client, Db, execute};

/// Bounds a hang.
pub(super) const LONG: Duration = Duration::from_secs(60);
/// Longer than a node takes to detect that another is dead, and shorter than the leases of its work.
pub(super) const SOON: Duration = Duration::from_secs(40);

#[track_caller]
pub(super) fn until(what: &str, patience: Duration, done: impl Fn() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < patience, "{what}: it takes too long");
        std::thread::sleep(Duration::from_millis(100));
    }
}

pub(super) fn ask(db: &Db, sql: &str) -> i64 {
    if db.url.is_empty() {
        let file = rusqlite::Connection::open(db.data.join("kantoor.db")).unwrap();
        file.busy_timeout(Duration::from_secs(10)).unwrap();
        return file.query_row(sql, [], |row| row.get(0)).unwrap();
    }
    let mut client = postgres::Client::connect(&db.url, postgres::NoTls).unwrap();
    client.query_one(sql, &[]).unwrap().get(0)
}

fn change(db: &Db, sql: &str) {
    if db.url.is_empty() {
        let file = rusqlite::Connection::open(db.data.join("kantoor.db")).unwrap();
        file.busy_timeout(Duration::from_secs(10)).unwrap();
        file.execute_batch(sql).unwrap();
    } else {
        execute(&db.url, sql);
    }
}

/// An SMTP server that accepts connections and sends nothing.
struct Silent {
    listener: TcpListener,
}

impl Silent {
    fn start() -> Silent {
        Silent { listener: TcpListener::bind("127.0.0.1:0").unwrap() }
    }

    fn settings(&self) -> Vec<String> {
        let port = self.listener.local_addr().unwrap().port();
        let settings = [
            "smtp_host=127.0.0.1".to_string(),
            format!("smtp_port={port}"),
            "smtp_security=none".to_string(),
            "smtp_timeout_seconds=120".to_string(),
            "allow_private_addresses=127.0.0.1".to_string(),
        ];
        settings.into_iter().flat_map(|one| ["--set".to_string(), one]).collect()
    }
}

fn start(db: &Db, key: &str, settings: &[String]) -> Binary {
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    Binary::start(db, key, &settings)
}

/// Sends a mail.
pub(super) fn mail(client: &Client) {
    let body = json!({"title": "x", "rows": [{"name": "x", "unit_price": 1}]});
    let path = format!("/v1/invoices/{}", client.post("/v1/invoices", body).expect(201).id());
    let letter = json!({"to": "anna@ster.example", "subject": "x", "message": "x", "include_pdf": false});
    client.post(&format!("{path}/send"), letter).expect(200);
}

pub(super) fn flow(client: &Client, steps: Value) {
    let flow = json!({"name": "x", "trigger_type": "custom", "trigger_key": "a.b", "steps": steps});
    client.post("/v1/automation/flows", flow).expect(201);
    client.post("/v1/automation/trigger", json!({"event": "a.b"})).expect(200);
}

fn kantoor(db: &Db, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
    command.args(arguments).env("KANTOOR_DATABASE_URL", &db.url).env("KANTOOR_DATA", &db.data);
    command.output().unwrap()
}

/// A job, a flow call and a webhook are in progress on a node that is killed; another node takes them over long before
/// their leases expire.
#[test]
fn another_node_takes_over_from_a_killed_one() {
    let Some(db) = Db::postgres() else { return };
    let outside = Scripted::start(|_| Reply::new(200).after(Duration::from_secs(10))).unwrap();
    let smtp = Silent::start();
    let mut first = start(&db, "", &smtp.settings());
    let client = first.client.clone();
    client
        .post("/v1/webhook-endpoints", json!({"url": outside.url("/hook"), "events": ["product.created"]}))
        .expect(201);
    client.post("/v1/products", json!({"name": "x"})).expect(201);
    flow(&client, json!([{"type": "http", "url": outside.url("/flow")}]));
    mail(&client);
    let calls = |path: &str| outside.received().iter().filter(|received| received.path == path).count();
    until("the work begins", LONG, || {
        let mails = ask(&db, "SELECT count(*) FROM jobs WHERE kind = 'deliver' AND state = 'running'");
        calls("/hook") == 1 && calls("/flow") == 1 && mails == 1
    });
    let second = start(&db, &client.key, &smtp.settings());
    first.signal(Signal::KILL);
    let _ = first.child.wait();
    until("another takes over", SOON, || {
        let mails = ask(&db, "SELECT count(*) FROM jobs WHERE kind = 'deliver' AND state = 'running' AND claim = 2");
        calls("/hook") == 2 && calls("/flow") == 2 && mails == 1
    });
    until("they end", LONG, || ask(&db, "SELECT count(*) FROM runs WHERE status = 'success'") == 1);
    assert!(second.said().contains("A node died"), "{}", second.said());
}

/// A paused node finds that another has taken over its work: its late results are discarded.
#[test]
fn a_paused_node_repeats_nothing() {
    let Some(db) = Db::postgres() else { return };
    let outside = Scripted::start(|_| Reply::new(200).after(Duration::from_secs(2))).unwrap();
    let smtp = Silent::start();
    let first = start(&db, "", &smtp.settings());
    let client = first.client.clone();
    flow(&client, json!([{"type": "http", "url": outside.url("/")}, {"type": "create_task", "title": "once"}]));
    until("the call begins", LONG, || outside.received().len() == 1);
    // Before the other one, whose start may take longer than the call.
    first.signal(Signal::STOP);
    let second = start(&db, &client.key, &smtp.settings());
    until("another takes over", SOON, || ask(&db, "SELECT count(*) FROM runs WHERE status = 'success'") == 1);
    first.signal(Signal::CONT);
    let alive = "SELECT count(*) FROM nodes";
    until("it comes back", LONG, || ask(&db, alive) == 2);
    until("it has seen that its call was lost", LONG, || {
        first.said().contains("another worker has taken over its run")
    });
    assert_eq!(second.client.get("/v1/tasks").json()["meta"]["total"], 1);
    assert_eq!(ask(&db, "SELECT count(*) FROM runs WHERE status = 'success' AND actions_done = 2"), 1);
}

on_both![parks_a_job_that_kills_its_process_and_retries_it_on_request, a_shutdown_releases_jobs,];

/// A mail that kills the process does not do so at every start.
fn parks_a_job_that_kills_its_process_and_retries_it_on_request(db: Db) {
    let smtp = Silent::start();
    let mut key = String::new();
    for begun in 1..=5 {
        let mut binary = start(&db, &key, &smtp.settings());
        key.clone_from(&binary.client.key);
        if begun == 1 {
            mail(&binary.client);
        }
        let running =
            format!("SELECT count(*) FROM jobs WHERE kind = 'deliver' AND state = 'running' AND attempts = {begun}");
        until("it is begun", LONG, || {
            // Skips the delay of the retry.
            change(&db, "UPDATE jobs SET run_at = 0 WHERE state = 'ready' AND kind = 'deliver'");
            ask(&db, &running) == 1
        });
        binary.signal(Signal::KILL);
        let _ = binary.child.wait();
        change(&db, "UPDATE jobs SET lease_until = 0 WHERE state = 'running'");
    }
    let binary = start(&db, &key, &smtp.settings());
    until("it is parked", LONG, || ask(&db, "SELECT count(*) FROM jobs WHERE state = 'parked'") == 1);
    binary.client.get("/ready").expect(200);
    assert!(binary.said().contains("A job was parked"), "{}", binary.said());
    let listed = kantoor(&db, &["jobs", "list", "--state", "parked", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!((&listed[0]["kind"], &listed[0]["lost"]), (&json!("deliver"), &json!(5)), "{listed}");
    let id = listed[0]["id"].as_str().unwrap();
    let text = String::from_utf8(kantoor(&db, &["jobs", "list"]).stdout).unwrap();
    assert!(text.contains(id) && text.contains("it was started 5 times in a row and never completed"), "{text}");
    assert!(kantoor(&db, &["jobs", "retry", id]).status.success());
    until("it is tried again", LONG, || {
        ask(&db, "SELECT count(*) FROM jobs WHERE kind = 'deliver' AND state = 'running'") == 1
    });
    let unknown = kantoor(&db, &["jobs", "retry", id, "nothing"]);
    assert!(!unknown.status.success());
}

/// A node that shuts down releases its jobs, without counting an attempt.
fn a_shutdown_releases_jobs(db: Db) {
    let smtp = Silent::start();
    let mut settings = smtp.settings();
    settings.extend(["--set".to_string(), "shutdown_seconds=1".to_string()]);
    let mut binary = start(&db, "", &settings);
    mail(&binary.client);
    until("it is begun", LONG, || {
        ask(&db, "SELECT count(*) FROM jobs WHERE kind = 'deliver' AND state = 'running'") == 1
    });
    binary.signal(Signal::TERM);
    assert!(binary.child.wait().unwrap().success(), "{}", binary.said());
    assert_eq!(ask(&db, "SELECT count(*) FROM jobs WHERE kind = 'deliver' AND state = 'ready' AND lost = 0"), 1);
    assert_eq!(ask(&db, "SELECT count(*) FROM nodes"), 0);
}

/// Work continues when the log cannot be written: on a full disk, with a closed pipe, or with a pipe that is not read.
#[test]
fn an_unwritable_log_stops_no_work() {
    for redirect in ["2>/dev/full", "2> >(exec true)", "2> >(exec sleep 100)"] {
        let db = Db::sqlite();
        let mut command = Command::new("bash");
        command.args(["-c", &format!("exec \"$0\" \"$@\" {redirect}"), env!("CARGO_BIN_EXE_kantoor")]);
        // Nothing listens there, so that the workers log errors.
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let port = format!("smtp_port={closed}");
        let settings = ["smtp_host=127.0.0.1", &port, "smtp_security=none", "log_requests=true", "log_level=debug"];
        let settings: Vec<&str> = settings.iter().flat_map(|one| ["--set", one]).collect();
        let binary = Binary::start_with(command, &db, "", &settings);
        let client = &binary.client;
        // More lines than fit in a pipe.
        for _ in 0..1000 {
            client.get("/v1/products").expect(200);
        }
        for _ in 0..5 {
            mail(client);
        }
        until("the mails fail", LONG, || {
            ask(&db, "SELECT count(*) FROM jobs WHERE kind = 'deliver' AND attempts > 0 AND state = 'ready'") == 5
        });
        let body = json!({"title": "x", "generate": true, "rows": [{"name": "x", "unit_price": 1}]});
        client.post("/v1/invoices", body).expect(201);
        flow(client, json!([{"type": "create_task", "title": "x"}]));
        until("work goes on", LONG, || {
            let unprinted = ask(&db, "SELECT count(*) FROM jobs WHERE kind = 'document_pdf' AND state <> 'done'");
            unprinted == 0 && ask(&db, "SELECT count(*) FROM runs WHERE status = 'success'") == 1
        });
        client.get("/ready").expect(200);
    }
}
