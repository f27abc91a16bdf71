//! Jobs that were added or changed with SQL: they are named, and not run.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{spoil, stop, verify};
use crate::cli::{kantoor, said};
use crate::on_both;
use crate::people::{Browser, PASSWORD, commands, token};
use crate::server::Binary;
use crate::support::Db;

on_both![jobs_are_marked, an_added_job_is_not_run,];

/// Starts a server with an owner.
fn business(db: &Db, workers: &str) -> Binary {
    let binary = Binary::start(db, "", &["--set", &format!("workers={workers}")]);
    let set_up = token(&commands::link(&binary.said()));
    let owner = json!({"token": set_up, "email": "o@a.example", "name": "O", "business": "Ster", "password": PASSWORD});
    Browser::new(&binary.client).enter("/console/set-up", owner);
    binary
}

fn jobs_are_marked(db: Db) {
    let mut binary = business(&db, "0");
    let mail = json!({"email": "i@a.example", "name": "I", "role": "member"});
    binary.client.post("/v1/users", mail).expect(201);
    // Its row is no record, of which there is a stored count.
    binary.client.act("/v1/audit/verification").expect(202);
    stop(&mut binary);
    let (good, words) = verify(&db, &[]);
    assert!(good, "{words}");
    let others =
        "kind, payload, state, run_at, attempts, max_attempts, claim, lease_until, last_error, created_at, lane, mark";
    let added = format!(
        "INSERT INTO jobs (id, unique_key, account_id, {others}) SELECT 'x', 'x', account_id, {others} FROM jobs WHERE kind = 'deliver'"
    );
    for (harm, undo) in [
        (added.as_str(), "DELETE FROM jobs WHERE id = 'x'"),
        (
            "UPDATE jobs SET payload = payload || ' ' WHERE kind = 'deliver'",
            "UPDATE jobs SET payload = rtrim(payload) WHERE kind = 'deliver'",
        ),
        ("UPDATE jobs SET kind = 'x' WHERE kind = 'deliver'", "UPDATE jobs SET kind = 'deliver' WHERE kind = 'x'"),
        (
            "UPDATE jobs SET account_id = account_id + 1 WHERE kind = 'deliver'",
            "UPDATE jobs SET account_id = account_id - 1 WHERE kind = 'deliver'",
        ),
    ] {
        spoil(&db, harm);
        let (good, words) = verify(&db, &[]);
        let named = words.lines().any(|line| line.contains("jobs  ") && line.contains("added or changed outside"));
        assert!(!good && named, "{harm}: {words}");
        // Nor does a new key accept it.
        assert!(kantoor(&db, &["secrets", "rotate"]).status.success());
        assert!(!verify(&db, &[]).0, "{harm}");
        spoil(&db, undo);
        let (good, words) = verify(&db, &[]);
        assert!(good, "{undo}: {words}");
    }
    // What changes with attempts is not marked.
    spoil(&db, "UPDATE jobs SET run_at = run_at + 1, attempts = 1, claim = 7, state = 'failed'");
    assert!(verify(&db, &[]).0);
    spoil(&db, &added);
    assert!(kantoor(&db, &["secrets", "trust"]).status.success());
    assert!(verify(&db, &[]).0, "the operator accepts it");
}

/// This one would mail a link for a new password to whoever reads the outbox.
fn an_added_job_is_not_run(db: Db) {
    let binary = business(&db, "1");
    spoil(
        &db,
        "INSERT INTO jobs (id, unique_key, account_id, kind, payload, state, run_at, attempts, max_attempts, claim,
                           lease_until, last_error, created_at, lane)
         VALUES ('x', 'only', 0, 'mail_reset', '{\"email\":\"o@a.example\"}', 'ready', 1, 0, 3, 0, 0, '', 1, 'other')",
    );
    let listed = |state: &str| -> Value {
        let found = said(&kantoor(&db, &["jobs", "list", "--json", "--state", state]));
        let found: Vec<Value> = serde_json::from_str(&found).unwrap();
        found.into_iter().find(|job| job["id"] == "x").unwrap_or_default()
    };
    let started = Instant::now();
    while listed("parked").is_null() {
        assert!(listed("done").is_null(), "it ran");
        assert!(started.elapsed() < Duration::from_secs(30), "{}", binary.said());
        std::thread::sleep(Duration::from_millis(50));
    }
    let why = "it was added or changed outside the program";
    assert_eq!((&listed("parked")["last_error"], &listed("parked")["attempts"]), (&json!(why), &json!(0)));
    assert!(binary.said().contains("A job was added or changed outside the program, so it is not run"));
    // A retry does not help it, as long as nobody accepts it.
    assert!(kantoor(&db, &["jobs", "retry", "x"]).status.success());
    while listed("parked").is_null() {
        assert!(listed("done").is_null(), "it ran");
        assert!(started.elapsed() < Duration::from_secs(60), "{}", binary.said());
        std::thread::sleep(Duration::from_millis(50));
    }
}
