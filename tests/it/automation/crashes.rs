//! A process that dies at every point of a run: before and after each of its commits.

use std::collections::{BTreeSet, HashMap};
use std::process::Command;

use mail::sink::Sink;

use super::*;
use crate::server::Binary;
use crate::support::{Db, execute};

/// The external effects of a run, as recorded by the receivers.
type Effects = std::collections::BTreeMap<String, BTreeSet<Vec<u8>>>;

struct World {
    db: Db,
    key: String,
    arguments: Vec<String>,
    sink: Sink,
    outside: Scripted,
}

impl World {
    fn new(db: Db) -> World {
        let sink = Sink::start().unwrap();
        let outside = Scripted::start(|_| Answer::json(200, r#"{"ok":true}"#)).unwrap();
        let port = format!("smtp_port={}", sink.port());
        let settings = ["allow_private_addresses=127.0.0.1", "smtp_host=127.0.0.1", "smtp_security=none", &port];
        let arguments = settings.iter().flat_map(|one| ["--set".to_string(), one.to_string()]).collect();
        World { db, key: String::new(), arguments, sink, outside }
    }

    /// The number in this file determines at which point the process dies.
    fn fatal(&self) -> std::path::PathBuf {
        self.db.folder.path().join("die-at")
    }

    fn start(&mut self) -> Binary {
        // On PostgreSQL, leases and marks remain valid after a restart because of other nodes; the test does not wait for them.
        if !self.db.url.is_empty() && !self.key.is_empty() {
            execute(&self.db.url, "UPDATE jobs SET lease_until = 0 WHERE state = 'running'");
            execute(&self.db.url, "UPDATE runs SET lease_until = 1 WHERE lease_until > 0");
            execute(&self.db.url, "UPDATE runs SET node = ''");
            execute(&self.db.url, "UPDATE webhook_deliveries SET due_at = 1 WHERE due_at > 0");
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
        command.env("KANTOOR_TEST_DIE_AT", self.fatal());
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let binary = Binary::start_with(command, &self.db, &self.key, &arguments);
        self.key.clone_from(&binary.client.key);
        binary
    }

    /// Returns the distinct mails, ignoring repeated attempts.
    fn mails(&self) -> HashMap<String, BTreeSet<String>> {
        let mut mails: HashMap<String, BTreeSet<String>> = HashMap::new();
        for mail in self.sink.mails() {
            let text = String::from_utf8_lossy(&mail.message).to_string();
            let header = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_string();
            mails.entry(header("Subject: ")).or_default().insert(header("Message-ID: "));
        }
        mails
    }

    /// Returns the requests to a path, by idempotency key.
    fn calls(&self, path: &str) -> Effects {
        let mut calls = Effects::new();
        for received in self.outside.received().into_iter().filter(|received| received.path == path) {
            let key = received.header("webhook-id").unwrap().to_string();
            calls.entry(key).or_default().insert(received.body);
        }
        calls
    }
}

/// Returns what has not ended yet, if anything; approves pending runs.
fn unsettled(world: &World, client: &Client, begun: usize) -> Option<String> {
    look(world, client, begun).unwrap_or_else(|| Some("no answer".to_string()))
}

fn look(world: &World, client: &Client, begun: usize) -> Option<Option<String>> {
    let get = |path: &str| Some(client.try_send("GET", path, &[], "").ok()?.json());
    let open = "/v1/automation/runs?status=queued,running,waiting,retrying,pending_approval,failed&per_page=100";
    let open = get(open)?["data"].as_array()?.clone();
    for run in open.iter().filter(|run| run["status"] == "pending_approval") {
        let path = format!("/v1/automation/runs/{}/approve", run["id"].as_str().unwrap());
        client.try_send("POST", &path, &[], "").ok()?;
    }
    let ended = get("/v1/automation/runs?status=success")?["meta"]["total"].as_u64()?;
    let (mails, hooks) = (world.mails().len(), world.calls("/hook").len());
    let all = open.is_empty() && ended == 2 * begun as u64 && mails == begun && hooks == begun;
    Some((!all).then(|| format!("{begun} begun, {ended} ended, {mails} mails, {hooks} hooks, open: {open:?}")))
}

fn begin(client: &Client, number: usize) -> Option<String> {
    let body = json!({"event": "order.paid", "data": {"n": number}}).to_string();
    let key = format!("order-{number}");
    let reply = client.try_send("POST", "/v1/automation/trigger", &[("idempotency-key", &key)], &body).ok()?;
    Some(reply.expect(200).data()["runs"][0]["run_id"].as_str().unwrap().to_string())
}

on_both![a_crash_at_any_commit_repeats_nothing,];

fn a_crash_at_any_commit_repeats_nothing(db: Db) {
    let mut world = World::new(db);
    let mut binary = world.start();
    // Mail leaves at once, whenever the test runs.
    let always = json!({"mail_hours_from": "00:00", "mail_hours_until": "24:00", "mail_days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]});
    binary.client.patch("/v1/settings", always).expect(200);
    let url = |path: &str| world.outside.url(path);
    flow(
        &binary.client,
        "order.paid",
        json!([
            {"type": "create_task", "title": "Task {{ data.n }}"},
            {"type": "http", "url": url("/first"), "body": {"n": "{{ data.n }}", "at": "{{ now }}"}},
            {"type": "send_email", "to": "anna@ster.example", "subject": "Mail {{ data.n }}", "body": "x"},
            {"type": "wait", "for": "PT0.1S"},
            {"type": "create_invoice", "title": "Invoice {{ data.n }}", "generation_mode": "final", "rows": [{"name": "x", "unit_price": 1}]},
            {"type": "trigger", "event": "order.done", "data": {"n": "{{ data.n }}"}},
            {"type": "approval"},
            {"type": "http", "url": url("/second"), "body": {"n": "{{ data.n }}", "at": "{{ now }}"}},
            {"type": "update", "entity_type": "task", "id": "{{ steps[0].id }}", "fields": {"category": "call"}},
        ]),
    );
    flow(&binary.client, "order.done", json!([{"type": "create_note", "body": "Note {{ data.n }}"}]));
    binary.client.post("/v1/webhook-endpoints", json!({"url": url("/hook"), "events": ["note.created"]})).expect(201);

    // A start takes four times as long with PostgreSQL, and what resumes a run is the same: every fourth point.
    let stride = if world.db.url.is_empty() { 1 } else { 4 };
    let mut runs = Vec::new();
    for begun in 1.. {
        let point = 1 + (begun - 1) * stride;
        std::fs::write(world.fatal(), point.to_string()).unwrap();
        let mut run = begin(&binary.client, begun);
        let started = Instant::now();
        let died = loop {
            if binary.child.try_wait().unwrap().is_some() {
                break true;
            }
            let Some(missing) = unsettled(&world, &binary.client, begun) else { break false };
            assert!(started.elapsed() < Duration::from_secs(30), "point {point}: {missing}");
            std::thread::sleep(Duration::from_millis(20));
        };
        std::fs::remove_file(world.fatal()).unwrap();
        if died {
            binary = world.start();
            // Requests without a response are repeated with the same key.
            run = begin(&binary.client, begun);
            let started = Instant::now();
            while let Some(missing) = unsettled(&world, &binary.client, begun) {
                assert!(started.elapsed() < Duration::from_secs(30), "after point {point}: {missing}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        runs.push(run.unwrap());
        if !died {
            break;
        }
    }
    let begun = runs.len();
    assert!(begun * stride > 12, "it has died only {} times", begun - 1);

    // It may have died for another reason at that point.
    drop(binary);
    let binary = world.start();
    everything_happened_once(&world, &binary.client, &runs);
}

/// Each run has one task, note, invoice, mail, webhook and call, whatever was interrupted.
fn everything_happened_once(world: &World, client: &Client, runs: &[String]) {
    let begun = runs.len();
    assert_eq!(total(client, "/v1/automation/runs"), 2 * begun as i64);
    let all = |path: &str, field: &str| {
        let data = client.get(&format!("{path}?per_page=100&sort=created_at&order=asc")).expect(200).data();
        data.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    let wanted = |word: &str| (1..=begun).map(|n| format!("{word} {n}")).collect::<Vec<_>>();
    assert_eq!(all("/v1/tasks", "title"), wanted("Task"));
    assert!(all("/v1/tasks", "category").iter().all(|text| text == "call"));
    assert_eq!(all("/v1/notes", "body"), wanted("Note"));
    assert_eq!(all("/v1/invoices", "title"), wanted("Invoice"));
    let numbers: Vec<usize> = all("/v1/invoices", "number")
        .iter()
        .map(|number| number.rsplit('-').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(numbers, (1..=begun).collect::<Vec<_>>());
    // Each external call has one key, under which the same request may have been sent twice.
    for (step, path) in [(1, "/first"), (7, "/second")] {
        let calls = world.calls(path);
        let keys: BTreeSet<String> = runs.iter().map(|run| format!("{run}.{step}")).collect();
        assert_eq!(calls.keys().cloned().collect::<BTreeSet<_>>(), keys);
        assert!(calls.values().all(|bodies| bodies.len() == 1), "{calls:?}");
    }
    let mails = world.mails();
    assert!(mails.len() == begun && mails.values().all(|ids| ids.len() == 1), "{mails:?}");
    let hooks = world.calls("/hook");
    assert!(hooks.len() == begun && hooks.values().all(|bodies| bodies.len() == 1), "{hooks:?}");
}
