//! `kantoor copy`: the same rows in the other database.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::cli::{complained, kantoor, said};
use crate::server::Binary;
use crate::support::Db;

/// A SQLite database with demo data, and an empty PostgreSQL database.
fn both() -> Option<(Db, Db, String)> {
    let empty = Db::postgres()?.emptied();
    let db = Db::sqlite();
    let binary = Binary::start(&db, "", &["--demo", "--set", "workers=0"]);
    binary.client.upload("a.bin", &[1; 1000]).expect(201);
    let key = binary.client.key.clone();
    Some((db, empty, key))
}

fn copy(db: &Db, from: &str, to: &str) -> std::process::Output {
    kantoor(db, &["copy", "--from", from, "--to", to])
}

#[test]
fn a_database_moves_to_postgresql_and_back() {
    let Some((db, mut there, key)) = both() else { return };
    let data = db.data.to_str().unwrap().to_string();
    let done = copy(&db, &data, &there.url);
    assert!(done.status.success(), "{done:?}");
    assert!(said(&done).contains("both databases have the same rows"), "{}", said(&done));
    there.data.clone_from(&db.data);
    let verified = kantoor(&there, &["verify"]);
    assert!(verified.status.success(), "{}", said(&verified));
    let binary = Binary::start(&there, &key, &["--set", "workers=0"]);
    let total = |binary: &Binary, path: &str| binary.client.get(path).json()["meta"]["total"].as_i64().unwrap();
    let clients = total(&binary, "/v1/clients");
    assert!(clients > 3);
    binary.client.post("/v1/clients", json!({"company_name": "Zuiderzee Transport"})).expect(201);
    assert_eq!(total(&binary, "/v1/clients?search=zuiderzee"), 1);
    drop(binary);

    let back = tempfile::tempdir().unwrap();
    let target = back.path().join("back");
    let done = copy(&db, &there.url, target.to_str().unwrap());
    assert!(done.status.success(), "{done:?}");
    let mut own = Db::sqlite();
    own.data = target;
    std::fs::copy(db.data.join("secret.key"), own.data.join("secret.key")).unwrap();
    let files = format!("files={}", db.data.join("files").display());
    let verified = kantoor(&own, &["verify", "--set", &files]);
    assert!(verified.status.success(), "{}", said(&verified));
    let binary = Binary::start(&own, &key, &["--set", "workers=0", "--set", &files]);
    assert_eq!(total(&binary, "/v1/clients"), clients + 1);
    assert_eq!(total(&binary, "/v1/clients?search=zuiderzee"), 1, "the index of searches is filled again");
}

#[test]
fn a_killed_copy_is_resumed() {
    let Some((db, mut there, _)) = both() else { return };
    let data = db.data.to_str().unwrap().to_string();
    let mut killed = 0;
    for wait in [100, 200, 400, 600, 800, 1000, 1200, 1400] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
        command.args(["copy", "--from", &data, "--to", &there.url]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        killed += 1;
        let served = kantoor(&there, &["account", "list"]);
        assert!(!served.status.success(), "half a database is not used");
    }
    assert!(killed > 0);
    // The copy may have been complete.
    let done = copy(&db, &data, &there.url);
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success() || words.contains("not empty"), "{words}");
    there.data.clone_from(&db.data);
    let verified = kantoor(&there, &["verify"]);
    assert!(verified.status.success(), "{}", said(&verified));
}

#[test]
fn refuses_a_copy_that_could_lose_something() {
    let Some((db, there, key)) = both() else { return };
    let data = db.data.to_str().unwrap().to_string();
    let refused = |from: &str, to: &str, why: &str| {
        let words = complained(&copy(&db, from, to));
        assert!(words.contains(why), "{words}");
        assert!(!words.contains("hush"), "{words}");
    };
    let running = Binary::start(&db, &key, &["--set", "workers=0"]);
    refused(&data, &there.url, "nother server");
    drop(running);
    refused(&data, &data, "are the same database");
    refused("mysql://x:hush@y/z", &data, "expected postgres://");
    refused("/nonexistent", &there.url, "does not exist");
    let full = Db::postgres().unwrap();
    refused(&data, &full.url, "the target is not empty");
    let running = Binary::start(&full, "", &["--set", "workers=0"]);
    refused(&data, &full.url, "a server is running on this database");
    refused(&full.url, &there.url, "a server is running on this database");
    drop(running);
    let half = db.folder.path().join("half");
    let empty = Db::postgres().unwrap().emptied();
    refused(&empty.url, half.to_str().unwrap(), "contains no data of Kantoor");
    // The source changes between two attempts.
    crate::support::execute(&there.url, "CREATE TABLE copy_progress (name TEXT PRIMARY KEY, state TEXT NOT NULL)");
    refused(&data, &there.url, "a part of another copy");
}
