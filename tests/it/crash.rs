//! No acknowledged write is lost or duplicated, whatever happens to the process or the disk.

use std::collections::{HashMap, HashSet};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::on_both;
use crate::server::Binary;
use crate::support::Db;

/// Kills the server under load, repeatedly; every acknowledged write exists exactly once, and every lost response is
/// replayed by its Idempotency-Key.
fn survives_kills(db: &Db, rounds: u32) {
    let mut key = String::new();
    let acknowledged: Mutex<HashMap<String, String>> = Mutex::default();
    let unanswered: Mutex<HashSet<String>> = Mutex::default();
    let number = AtomicU32::new(0);
    for round in 0..rounds {
        let mut binary = Binary::start(db, &key, &[]);
        key.clone_from(&binary.client.key);
        let (stop, answered) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let name = format!("p{}", number.fetch_add(1, Ordering::Relaxed));
                        let body = json!({"name": name}).to_string();
                        let headers = [("idempotency-key", name.as_str())];
                        match binary.client.try_send("POST", "/v1/products", &headers, &body) {
                            Ok(reply) => {
                                assert_eq!(reply.status, 201, "{reply:?}");
                                acknowledged.lock().unwrap().insert(name, reply.id());
                                answered.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(_) => {
                                unanswered.lock().unwrap().insert(name);
                            }
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(150 + u64::from(round % 5) * 90));
            under_load(&answered);
            binary.signal(rustix::process::Signal::KILL);
            stop.store(true, Ordering::Relaxed);
        });
        let _ = binary.child.wait();
    }
    let binary = Binary::start(db, &key, &[]);
    let client = &binary.client;
    for name in unanswered.lock().unwrap().iter() {
        let reply =
            client.send("POST", "/v1/products", &[("idempotency-key", name)], &json!({"name": name}).to_string());
        acknowledged.lock().unwrap().insert(name.clone(), reply.expect(201).id());
    }
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() > 20, "hardly any load: {}", acknowledged.len());
    let mut found: HashMap<String, String> = HashMap::new();
    let mut page = 1;
    loop {
        let list = client.get(&format!("/v1/products?per_page=100&page={page}")).expect(200).json();
        assert_eq!(list["meta"]["total"], acknowledged.len());
        let items = list["data"].as_array().unwrap();
        if items.is_empty() {
            break;
        }
        for item in items {
            let name = item["name"].as_str().unwrap().to_string();
            assert!(
                found.insert(name.clone(), item["id"].as_str().unwrap().to_string()).is_none(),
                "{name} occurs twice"
            );
        }
        page += 1;
    }
    assert_eq!(found, acknowledged);
    let verified = Command::new(env!("CARGO_BIN_EXE_kantoor"))
        .args(["verify", "--database-url", &db.url, "--data"])
        .arg(&db.data)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&verified.stdout).to_string();
    assert!(verified.status.success() && said.contains("  intact: "), "{said}");
}

/// Waits for some responses: on a busy machine nothing may have started, and a kill would prove nothing.
fn under_load(answered: &AtomicU32) {
    let started = Instant::now();
    while answered.load(Ordering::Relaxed) < 8 && started.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills the server while invoices are finalized; afterwards the numbers start at 1 without gaps or duplicates.
fn numbers_survive_kills(db: &Db) {
    let mut key = String::new();
    for round in 0..4_u64 {
        let mut binary = Binary::start(db, &key, &[]);
        key.clone_from(&binary.client.key);
        let (stop, answered) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let body =
                        json!({"title": "x", "generate": true, "rows": [{"name": "x", "unit_price": 1}]}).to_string();
                    while !stop.load(Ordering::Relaxed) {
                        if binary.client.try_send("POST", "/v1/invoices", &[], &body).is_ok() {
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(150 + round * 70));
            under_load(&answered);
            binary.signal(rustix::process::Signal::KILL);
            stop.store(true, Ordering::Relaxed);
        });
        let _ = binary.child.wait();
    }
    let binary = Binary::start(db, &key, &[]);
    let list = |page: usize| {
        let path = format!("/v1/invoices?per_page=100&sort=number&order=asc&page={page}");
        binary.client.get(&path).expect(200).data().as_array().unwrap().clone()
    };
    let mut numbers: Vec<u32> = Vec::new();
    for page in 1.. {
        let items = list(page);
        if items.is_empty() {
            break;
        }
        numbers.extend(
            items
                .iter()
                .map(|item| item["number"].as_str().unwrap().rsplit('-').next().unwrap().parse::<u32>().unwrap()),
        );
    }
    numbers.sort_unstable();
    assert!(numbers.len() > 20, "hardly any load: {}", numbers.len());
    let last = u32::try_from(numbers.len()).unwrap();
    assert_eq!(numbers, (1..=last).collect::<Vec<_>>());
}

on_both![kill_9_leaves_no_gap_in_the_numbers, kill_9_under_load_loses_and_duplicates_nothing,];

fn kill_9_leaves_no_gap_in_the_numbers(db: Db) {
    numbers_survive_kills(&db);
}

fn kill_9_under_load_loses_and_duplicates_nothing(db: Db) {
    survives_kills(&db, 6);
}

#[test]
fn a_failing_disk_ends_the_process_and_loses_nothing() {
    let db = Db::sqlite();
    let key = Binary::start(&db, "", &[]).client.key.clone();
    // Files cannot grow past 12 MiB: writing fails with an I/O error, not with "disk full".
    let mut command = Command::new("bash");
    command.args(["-c", "trap '' XFSZ; ulimit -f 12288; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_kantoor")]);
    let mut binary = Binary::start_with(command, &db, &key, &["--set", "log_level=warn"]);
    let body = json!({"body": "x".repeat(20_000)}).to_string();
    let mut acknowledged = 0;
    let ended = loop {
        match binary.client.try_send("POST", "/v1/notes", &[], &body) {
            Ok(reply) if reply.status == 201 => acknowledged += 1,
            Ok(reply) => assert!(reply.status >= 500, "{reply:?}"),
            Err(_) => break binary.child.wait().unwrap(),
        }
        assert!(acknowledged < 1000, "the limit is not enforced");
    };
    assert_eq!(ended.code(), Some(74), "{}", binary.said());
    assert!(binary.said().contains("Writing to the database failed"), "{}", binary.said());
    drop(binary);
    let binary = Binary::start(&db, &key, &[]);
    let total = binary.client.get("/v1/notes").json()["meta"]["total"].as_i64().unwrap();
    assert!(total == acknowledged || total == acknowledged + 1, "{total} of {acknowledged}");
    binary.client.post("/v1/notes", json!({"body": "goes on"})).expect(201);
}

#[test]
fn reports_a_full_disk_and_recovers() {
    let mut db = Db::sqlite();
    let disk = db.folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=16m", "none"]).arg(&disk).output();
    if !mounted.is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: mounting a small disk needs root");
        return;
    }
    let small = Mounted(disk.clone());
    db.data = disk;
    let binary = Binary::start(&db, "", &["--set", "min_free_disk_mib=1"]);
    binary.client.get("/ready").expect(200);
    let body = json!({"body": "x".repeat(60_000)}).to_string();
    let mut acknowledged = 0;
    let full = loop {
        let reply = binary.client.send("POST", "/v1/notes", &[], &body);
        if reply.status != 201 {
            break reply;
        }
        acknowledged += 1;
        assert!(acknowledged < 1000, "the disk never fills up");
    };
    assert_eq!((full.status, full.code().as_str()), (503, "disk_full"), "{}", binary.said());
    assert!(!full.header("retry-after").is_empty());
    assert_eq!(binary.client.get("/v1/notes").expect(200).json()["meta"]["total"], acknowledged);
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(binary.client.get("/ready").status, 503);
    let grown = Command::new("mount").args(["-o", "remount,size=32m"]).arg(&small.0).status().unwrap();
    assert!(grown.success());
    binary.client.send("POST", "/v1/notes", &[], &body).expect(201);
    drop(binary);
}

struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
