//! `kantoor copy`: the same rows in the other database.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
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
    let sign = if there.url.contains('?') { '&' } else { '?' };
    let pooled = complained(&copy(&db, &data, &format!("{}{sign}pool_mode=transaction", there.url)));
    assert!(pooled.contains("kantoor copy does not work with pool_mode=transaction"), "{pooled}");
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
    std::fs::create_dir(&target).unwrap();
    // The owner of the folder, as whom root goes on, must get there.
    std::fs::set_permissions(back.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    // Only root can give a folder away.
    let owner = if std::os::unix::fs::chown(&target, Some(65534), Some(65534)).is_ok() { Some(65534) } else { None };
    let done = copy(&db, &there.url, target.to_str().unwrap());
    assert!(done.status.success(), "{done:?}");
    for name in ["kantoor.db", "kantoor.lock"] {
        let uid = target.join(name).metadata().unwrap().uid();
        assert!(owner.is_none_or(|owner| owner == uid), "{name} belongs to {uid}");
    }
    if owner.is_some() {
        for name in ["", "kantoor.db", "kantoor.lock"] {
            std::os::unix::fs::chown(target.join(name), Some(0), Some(0)).unwrap();
        }
    }
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
fn the_doctor_knows_a_database_that_was_copied_in_part() {
    let db = Db::sqlite();
    assert!(kantoor(&db, &["account", "create", "Before"]).status.success());
    let from = db.data.to_str().unwrap();
    for target in [Some(Db::sqlite().emptied()), Db::postgres().map(Db::emptied)].into_iter().flatten() {
        let folder = target.data.display().to_string();
        let (to, remedy) = match target.url.as_str() {
            "" => {
                (folder.as_str(), format!("delete kantoor.db, kantoor.db-wal and kantoor.db-shm in {folder} and run"))
            }
            url => (url, "drop this database, create it again and run".to_string()),
        };
        let fatal = db.folder.path().join("fatal");
        std::fs::write(&fatal, "4").unwrap();
        let mut killed = Command::new(env!("CARGO_BIN_EXE_kantoor"));
        killed.args(["copy", "--from", from, "--to", to]).env("KANTOOR_TEST_DIE_AT", &fatal);
        let killed = killed.output().unwrap();
        assert_eq!(killed.status.signal(), Some(6), "{killed:?}");
        let told = kantoor(&target, &["doctor"]);
        let (code, text) = (told.status.code(), said(&told));
        assert!(
            code == Some(1) && text.contains("problem  database  A copy of another database to this one"),
            "{text}"
        );
        assert!(
            text.contains("Run the same `kantoor copy` again, which continues") && text.contains(&remedy),
            "{text}"
        );
        assert!(!text.contains("cannot be read") && !text.contains("database_url"), "{text}");
        let done = copy(&db, from, to);
        assert!(done.status.success(), "{done:?}");
        assert!(!said(&kantoor(&target, &["doctor"])).contains("copy of another"));
    }
}

/// Writes to a database, unless that needs to wait.
fn written(db: &Db) -> Result<(), String> {
    let sql = "UPDATE accounts SET name = name || '!'";
    if db.url.is_empty() {
        let conn = rusqlite::Connection::open(db.data.join("kantoor.db")).unwrap();
        conn.busy_timeout(Duration::ZERO).unwrap();
        return conn.execute_batch(sql).map_err(|error| error.to_string());
    }
    let mut client = postgres::Client::connect(&db.url, postgres::NoTls).unwrap();
    client.batch_execute("SET lock_timeout = '100ms'").unwrap();
    client.batch_execute(sql).map_err(|error| error.as_db_error().map(ToString::to_string).unwrap_or_default())
}

/// Nobody can write to the source while it is copied, neither a command nor a server.
#[test]
fn nothing_is_written_to_the_source_of_a_copy() {
    for is_shared in [false, true] {
        let from = if is_shared { Db::postgres() } else { Some(Db::sqlite()) };
        let Some(from) = from else { return };
        let Some(there) = Db::postgres() else { return };
        let mut there = there.emptied();
        assert!(kantoor(&from, &["account", "create", "Before"]).status.success());
        let source = if is_shared { from.url.clone() } else { from.data.to_str().unwrap().to_string() };
        // The copy waits for this transaction, which creates the same table.
        let mut holder = postgres::Client::connect(&there.url, postgres::NoTls).unwrap();
        holder.batch_execute("BEGIN; CREATE TABLE copy_progress (name TEXT PRIMARY KEY)").unwrap();
        let mut watcher = postgres::Client::connect(&there.url, postgres::NoTls).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
        command.args(["copy", "--from", &source, "--to", &there.url]).stdout(Stdio::null());
        let mut copying = command.spawn().unwrap();
        let waits =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while watcher.query_one(waits, &[]).unwrap().get::<_, i64>(0) == 0 {
            assert!(copying.try_wait().unwrap().is_none(), "the copy waits");
            std::thread::sleep(Duration::from_millis(20));
        }
        let why = written(&from).unwrap_err();
        assert!(why.contains("lock"), "{why}");
        holder.batch_execute("ROLLBACK").unwrap();
        assert!(copying.wait().unwrap().success());
        there.data.clone_from(&from.data);
        let copied = said(&kantoor(&there, &["account", "list"]));
        assert!(copied.contains("Before"), "{copied}");
        assert_eq!(written(&from), Ok(()), "the source is as it was");
    }
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
    refused(&data, &there.url, "is using the folder");
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
    let older = Db::postgres().unwrap();
    crate::support::execute(&older.url, "DELETE FROM schema_migrations WHERE number > 20");
    let deep = half.join("deep");
    refused(&older.url, deep.to_str().unwrap(), "run `kantoor migrate` on the source first");
    assert!(!half.exists(), "nothing is left of a copy that was refused");
    // The source changes between two attempts.
    crate::support::execute(&there.url, "CREATE TABLE copy_progress (name TEXT PRIMARY KEY, state TEXT NOT NULL)");
    refused(&data, &there.url, "a part of another copy");
}
