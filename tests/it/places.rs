//! Places that accounts share: threads, workers, calls, streams. No account takes those of the others.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use engine::turns;
use futures_util::FutureExt;
use kantoor::automation::{runner, worker};
use serde_json::json;
use store::{Error, Tx};
use web::scripted::{Reply, Scripted};

use crate::on_both;
use crate::support::{Db, Server};

on_both![
    an_account_leaves_a_place_in_every_pool,
    a_call_of_a_flow_does_not_wait_for_those_of_another_account,
    a_large_body_does_not_wait_for_those_of_another_account,
    a_write_does_not_share_a_commit_with_an_expensive_one,
];

/// Every pool of the program is in the list that ARCHITECTURE.md shows. Whatever an account takes, another one finds a place at
/// once; where there is only one place, it has the next turn but one.
fn an_account_leaves_a_place_in_every_pool(db: Db) {
    let server = Server::start(db);
    let pools = turns::pools(&server.app);
    let names: BTreeSet<&str> = pools.iter().map(|pool| pool.name()).collect();
    let page = std::fs::read_to_string("ARCHITECTURE.md").unwrap();
    let section = page.split("\n## ").find(|section| section.starts_with("Shared places")).unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(names, rows.collect::<BTreeSet<&str>>());
    assert_eq!(names.len(), pools.len());
    for pool in &pools {
        let name = pool.name();
        let own = pool.take_all(1);
        assert_eq!((own.len(), pool.share() > 0), (pool.share(), true), "{name}");
        if pool.most() > 1 {
            assert!(pool.try_take(2).is_ok(), "{name}");
            continue;
        }
        server.block_on(async {
            let mut waiting = [1, 1, 2].map(|account| Box::pin(pool.take(account)));
            assert!(waiting.iter_mut().all(|turn| turn.now_or_never().is_none()), "{name}");
            let [first, second, other] = waiting;
            drop(own);
            drop(first.await);
            assert!(other.now_or_never().is_some(), "{name}");
            assert!(second.now_or_never().is_some(), "{name}");
        });
    }
}

/// What waits for a place uses the pools of that list. These count for one account, or for one e-mail address or IP address.
#[test]
fn only_limits_of_one_account_are_outside_the_pools() {
    const OWN: [&str; 3] =
        ["crates/engine/src/http/responses.rs", "crates/store/src/postgres.rs", "src/people/throttle.rs"];
    let mut found = Vec::new();
    for folder in ["src", "crates/engine/src", "crates/store/src"] {
        in_folder(Path::new(folder), &mut |path, text| {
            if text.contains("Semaphore::new") {
                found.push(path.display().to_string());
            }
        });
    }
    found.sort();
    assert_eq!(found, OWN);
}

fn in_folder(folder: &Path, look: &mut dyn FnMut(&Path, &str)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            in_folder(&path, look);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            look(&path, &std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// An account whose receiver does not respond has as many calls in progress as it may have.
fn a_call_of_a_flow_does_not_wait_for_those_of_another_account(db: Db) {
    let server = Server::with(db, |config| config.allow_private_addresses = "127.0.0.1".to_string());
    let (busy, other) = (server.client(), server.client());
    let gate = Arc::new(RwLock::new(()));
    let held = gate.clone();
    let outside = Scripted::start(move |received| {
        if received.path == "/held" {
            drop(held.read());
        }
        Reply::new(204)
    })
    .unwrap();
    for (client, path) in [(&busy, "/held"), (&other, "/quick")] {
        let steps = json!([{"type": "http", "url": outside.url(path), "timeout_seconds": 30}]);
        let flow = json!({"name": "Call", "trigger_type": "custom", "trigger_key": "a.b", "steps": steps});
        client.post("/v1/automation/flows", flow).expect(201);
    }
    let closed = gate.write().unwrap();
    let calls = runner::runner_of(&server.app).calls.clone();
    for _ in 0..calls.share() + 8 {
        busy.post("/v1/automation/trigger", json!({"event": "a.b", "data": {}})).expect(200);
    }
    let app = server.app.clone();
    server.block_on(async move { worker::start(&app) });
    wait_until("its share is in use", || calls.taken() == calls.share());
    for _ in 0..3 {
        other.post("/v1/automation/trigger", json!({"event": "a.b", "data": {}})).expect(200);
    }
    let ended = |client: &crate::support::Client| {
        client.get("/v1/automation/runs?status=success").json()["meta"]["total"].clone()
    };
    wait_until("the calls of the other account return", || ended(&other) == 3);
    wait_until("its share is still in use", || calls.taken() == calls.share());
    assert_eq!(ended(&busy), 0);
    drop(closed);
    wait_until("the first calls return", || ended(&busy) == calls.share() + 8);
    wait_until("all places are free", || calls.taken() == 0);
}

fn a_large_body_does_not_wait_for_those_of_another_account(db: Db) {
    let server = Server::start(db);
    let (busy, other) = (server.client(), server.client());
    let _taken = server.app.decoding.take_all(busy.account);
    let ticket = other.post("/v1/tickets", json!({"subject": "x"})).expect(201).id();
    other.post(&format!("/v1/tickets/{ticket}/messages"), json!({"html": "&".repeat(2000)})).expect(201);
    assert_eq!(server.app.decoding.waiting(busy.account), 0);
}

/// Whoever shares a commit with an expensive write waits for it.
fn a_write_does_not_share_a_commit_with_an_expensive_one(db: Db) {
    let server = Server::with(db, |config| config.database_writers = 1);
    let accounts = [server.client().account, server.client().account, server.client().account];
    let store = server.app.store.clone();
    // Each returns how many commits came before its own.
    let write = |milliseconds: u64| {
        let own = store.clone();
        move |_: &mut Tx| {
            std::thread::sleep(Duration::from_millis(milliseconds));
            Ok::<_, Error>(own.stats().commits.load(Ordering::Relaxed))
        }
    };
    store.write_now(accounts[0], write(8)).unwrap();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let first = store.write(accounts[1], move |_| {
        let _ = wait.lock().unwrap().recv();
        Ok::<_, Error>(())
    });
    let (cheap, expensive) = (store.write(accounts[2], write(0)), store.write(accounts[0], write(8)));
    let (first, cheap, expensive, ()) =
        server.block_on(async { tokio::join!(first, cheap, expensive, async { go.send(()).unwrap() }) });
    first.unwrap();
    assert_ne!(cheap.unwrap(), expensive.unwrap());
}

#[track_caller]
fn wait_until(what: &str, done: impl Fn() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}
