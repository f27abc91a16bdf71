//! `kantoor backup`: copies made under load are complete and can be served.

mod archives;
mod moving;
mod objects;
pub mod scheduled;
mod sentences;
mod signed;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::{kantoor, said};
use crate::on_both;
use crate::server::Binary;
use crate::support::{Db, Server, multipart};

fn backup(db: &Db, folder: &Path) -> (bool, String) {
    let done = kantoor(db, &["backup", "--with-key", folder.to_str().unwrap()]);
    (done.status.success(), said(&done) + &String::from_utf8_lossy(&done.stderr))
}

/// The database of a backup, ready to be served: a folder, or a restored dump.
fn restored(db: &Db, folder: &Path) -> Db {
    if db.url.is_empty() {
        let mut own = Db::sqlite();
        own.data = folder.to_path_buf();
        return own;
    }
    let mut own = Db::postgres().unwrap().emptied();
    own.data = folder.to_path_buf();
    let done = Command::new("pg_restore")
        .args(["--no-owner", "--exit-on-error", "--dbname", &own.url])
        .arg(folder.join("kantoor.dump"))
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    own
}

/// A database of the same kind without tables, and an empty data folder.
pub fn empty_like(db: &Db) -> Db {
    if db.url.is_empty() { Db::sqlite().emptied() } else { Db::postgres().unwrap().emptied() }
}

fn manifest(folder: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("backup.json")).unwrap()).unwrap()
}

on_both![
    backups_under_load_are_complete_and_can_be_served,
    rejects_a_folder_that_is_not_empty,
    a_killed_backup_stays_unfinished,
    reports_a_copy_that_fails_verification,
    keeps_contents_during_a_backup,
];

fn backups_under_load_are_complete_and_can_be_served(db: Db) {
    let binary = Binary::start(&db, "", &[]);
    let client = &binary.client;
    let (stop, number) = (AtomicBool::new(false), AtomicU32::new(0));
    let folder = tempfile::tempdir().unwrap();
    let mut made: Vec<PathBuf> = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let n = number.fetch_add(1, Ordering::Relaxed);
                    let row = json!({"name": "x", "quantity": n, "unit_price": 1.17, "vat_rate": "21"});
                    client.post("/v1/quotes", json!({"title": format!("q{n}"), "rows": [row]})).expect(201);
                    client.post("/v1/products", json!({"name": format!("p{n}")})).expect(201);
                }
            });
            scope.spawn(|| {
                let mut kept: Vec<String> = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let n = number.fetch_add(1, Ordering::Relaxed);
                    let (kind, body) =
                        multipart(&[("file", Some("x.bin"), &vec![n as u8; 1 + (n as usize * 7_777) % 90_000])]);
                    let sent = client.try_send_bytes("POST", "/v1/files", &[("content-type", &kind)], body).unwrap();
                    kept.push(sent.expect(201).id());
                    if kept.len() > 5 {
                        client.delete(&format!("/v1/files/{}", kept.remove(0))).expect(204);
                    }
                }
            });
        }
        std::thread::sleep(Duration::from_millis(500));
        for n in 0..3 {
            let target = folder.path().join(format!("backup {n}"));
            let (done, words) = backup(&db, &target);
            if !done {
                stop.store(true, Ordering::Relaxed);
            }
            assert!(done, "{words}");
            made.push(target);
        }
        stop.store(true, Ordering::Relaxed);
    });
    for target in &made {
        let told = manifest(target);
        assert!(told["files"]["count"].as_u64().unwrap() >= 1, "{told}");
        assert!(!target.with_file_name("backup 0.unfinished").exists());
        let own = restored(&db, target);
        let checked = kantoor(&own, &["verify"]);
        assert!(checked.status.success(), "{}", said(&checked));
        // The description counts what the backup holds, not what was written meanwhile.
        let words = said(&checked).replace(',', "");
        for name in ["accounts", "records", "log_entries"] {
            let count = told[name].to_string();
            assert!(words.split([' ', '\n']).any(|word| word == count), "{name}: {told} {words}");
        }
        let again = Binary::start(&own, &client.key, &["--set", "workers=0"]);
        let before = again.client.get("/v1/quotes").json()["meta"]["total"].as_i64().unwrap();
        assert!(before > 0);
        let quote = again.client.post("/v1/quotes", json!({"title": "on", "generation_mode": "final"})).expect(201);
        assert!(quote.data()["number"].as_str().unwrap().ends_with("-0001"), "{quote:?}");
        let files = again.client.get("/v1/files").data();
        let file = files.as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_string();
        again.client.get(&format!("/v1/files/{file}/content")).expect(200);
    }
}

fn rejects_a_folder_that_is_not_empty(db: Db) {
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("b");
    std::fs::create_dir(&target).unwrap();
    assert!(backup(&db, &target).0, "an empty folder is accepted");
    let before = std::fs::read(target.join("backup.json")).unwrap();
    let (done, words) = backup(&db, &target);
    assert!(!done && words.contains("already exists and is not empty"), "{words}");
    assert_eq!(std::fs::read(target.join("backup.json")).unwrap(), before);
    let (done, words) = backup(&db, &db.data.join("files/b"));
    assert!(!done && words.contains("where files are stored"), "{words}");
}

fn a_killed_backup_stays_unfinished(db: Db) {
    let binary = Binary::start(&db, "", &["--demo", "--set", "workers=0"]);
    for n in 0..30_u8 {
        binary.client.upload("x.bin", &vec![n; 50_000]).expect(201);
    }
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("b");
    let mut left = 0;
    for wait in [30, 100, 200, 300, 500, 800, 1_200] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
        command.arg("backup").arg(&target).env("KANTOOR_DATABASE_URL", &db.url).env("KANTOOR_DATA", &db.data);
        let mut child =
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        left += u32::from(folder.path().join("b.unfinished").exists());
        if target.exists() {
            manifest(&target);
            std::fs::remove_dir_all(&target).unwrap();
        }
    }
    assert!(left > 0, "no backup was killed halfway");
    let (done, words) = backup(&db, &target);
    assert!(done, "{words}");
    assert!(!folder.path().join("b.unfinished").exists());
    assert_eq!(manifest(&target)["files"]["count"], 30);
    let own = restored(&db, &target);
    assert!(kantoor(&own, &["verify"]).status.success());
}

fn reports_a_copy_that_fails_verification(db: Db) {
    let binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let made = binary.client.upload("x.bin", b"hello").expect(201);
    let uid = std::fs::read_dir(db.data.join("files")).unwrap().next().unwrap().unwrap().path();
    let content = std::fs::read_dir(uid).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(content).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (done, words) = backup(&db, &folder.path().join("b"));
    assert!(!done && words.contains(&made.id()) && words.contains("failed verification"), "{words}");
    assert!(!folder.path().join("b").exists());
}

fn keeps_contents_during_a_backup(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let made = client.upload("x.bin", b"hello").expect(201);
    let run = |sql: &'static str| server.app.store.write_now(0, move |tx| tx.execute(sql, &[]).map(drop)).unwrap();
    let contents = || server.block_on(server.app.blobs.keys()).unwrap().len();
    let work = || server.block_on(async { while engine::jobs::worker::turn(&server.app).await {} });
    run("INSERT INTO holds (account_id, id, until) VALUES (0, 'x', 9000000000000)");
    client.delete(&format!("/v1/files/{}", made.id())).expect(204);
    work();
    assert_eq!(contents(), 1, "it is held");
    run("UPDATE holds SET until = 1");
    run("UPDATE jobs SET run_at = 0 WHERE kind = 'drop_content'");
    work();
    assert_eq!(contents(), 0);
}

/// The `sh` blocks of a section of docs/backup.md.
fn blocks(section: &str) -> Vec<String> {
    let text = std::fs::read_to_string("docs/backup.md").unwrap();
    let part = text.split("\n## ").find(|part| part.starts_with(section)).unwrap();
    part.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_string()).collect()
}

fn run_blocks(db: &Db, section: &str, others: &[(&str, &str)]) {
    let binary = Binary::start(db, "", &["--set", "workers=0"]);
    binary.client.upload("x.txt", b"hello").expect(201);
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_kantoor")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let blocks = blocks(section);
    assert!(blocks.len() >= 2);
    for block in blocks {
        let block: Vec<&str> = block.lines().filter(|line| !line.contains("=postgres://")).collect();
        let mut command = Command::new("bash");
        command.args(["-c", &format!("set -euo pipefail\n{}", block.join("\n"))]).current_dir(folder.path());
        command.env("PATH", &path).env("KANTOOR_DATA", &db.data).env("KANTOOR_DATABASE_URL", &db.url);
        let done = command.envs(others.iter().copied()).output().unwrap();
        let words = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "{block:?}\n{words}");
    }
}

#[test]
fn every_command_in_the_backup_guide_works_on_sqlite() {
    run_blocks(&Db::sqlite(), "SQLite", &[]);
}

#[test]
fn every_command_in_the_backup_guide_works_on_postgres() {
    let (Some(db), Some(empty)) = (Db::postgres(), Db::postgres().map(Db::emptied)) else { return };
    run_blocks(&db, "PostgreSQL", &[("RESTORED", &empty.url)]);
}

/// Runs the proof with few backups.
fn prove(kind: &str) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new("scripts/prove-backups");
    command.args(["2", kind]).env("KANTOOR_BIN", env!("CARGO_BIN_EXE_kantoor")).env("PORT", port.to_string());
    let done = command.output().unwrap();
    let words = said(&done) + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && words.contains("2 backups, 2 verified"), "{words}");
}

#[test]
fn the_proof_runs_on_sqlite() {
    prove("sqlite");
}

#[test]
fn the_proof_runs_on_postgres() {
    if Db::postgres().is_some() {
        prove("postgres");
    }
}
