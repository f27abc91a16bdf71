//! An import and its undo survive kill -9: every line takes effect once. Commands that were killed say how to go on.

use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::total;
use crate::cli::{complained, kantoor, said};
use crate::on_both;
use crate::server::Binary;
use crate::support::Db;

on_both![an_import_survives_kills, a_command_that_was_killed_is_continued,];

const LINES: usize = 1500;

fn an_import_survives_kills(db: Db) {
    let mut binary = Binary::start(&db, "", &[]);
    let lines: String = (0..LINES).map(|n| format!("Product {n},{n}\n")).collect();
    let file = binary.client.upload("x.csv", format!("name,code\n{lines}").as_bytes()).expect(201).id();
    let import = binary.client.post("/v1/imports", json!({"resource": "products", "file_id": file})).expect(201).id();
    let path = format!("/v1/imports/{import}");
    binary.client.act(&format!("{path}/run")).expect(200);
    let (mut kills, started) = (0, Instant::now());
    loop {
        let state = binary.client.get(&path).expect(200).data();
        if state["status"] == "done" {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(180), "{state:#}");
        if kills < 2 && state["processed"].as_i64().unwrap() >= (kills + 1) * 400 {
            binary.signal(rustix::process::Signal::KILL);
            let _ = binary.child.wait();
            binary = Binary::start(&db, &binary.client.key.clone(), &[]);
            kills += 1;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(kills > 0, "the import was never interrupted");
    let client = &binary.client;
    let mut codes = HashSet::new();
    for page in 1..=LINES / 100 {
        let list = client.get(&format!("/v1/products?per_page=100&page={page}")).expect(200).data();
        codes.extend(list.as_array().unwrap().iter().map(|product| product["code"].as_str().unwrap().to_string()));
    }
    assert_eq!((codes.len(), total(client, "/v1/products")), (LINES, LINES as i64));
    let verified = kantoor(&db, &["verify"]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

/// Runs a command that dies in the middle of its work: before or after a commit, at a later one each time, until another command
/// finds that it has begun.
fn killed(db: &Db, arguments: &[&str], has_begun: impl Fn() -> bool) {
    let fatal = db.folder.path().join("fatal");
    for chance in (1..).step_by(14) {
        std::fs::write(&fatal, chance.to_string()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
        command.args(arguments).env("KANTOOR_DATABASE_URL", &db.url).env("KANTOOR_DATA", &db.data);
        let done = command.env("KANTOOR_TEST_DIE_AT", &fatal).output().unwrap();
        assert_eq!(done.status.signal(), Some(6), "it was never interrupted: {done:?}");
        if has_begun() {
            return;
        }
    }
}

fn a_command_that_was_killed_is_continued(db: Db) {
    let made: Value = serde_json::from_str(&said(&kantoor(&db, &["account", "create", "A", "--json"]))).unwrap();
    let account = made["account"]["id"].as_str().unwrap();
    let file = db.folder.path().join("x.csv");
    let lines: String = (0..LINES).map(|n| format!("Client {n}\n")).collect();
    std::fs::write(&file, format!("company_name\n{lines}")).unwrap();
    let check = ["import", "--account", account, "clients", file.to_str().unwrap()];
    let run = [&check[..], &["--run"]].concat();
    killed(&db, &run, || said(&kantoor(&db, &check)).contains("was interrupted"));

    let refused = complained(&kantoor(&db, &run));
    let (_, rest) = refused.split_once("--continue ").unwrap_or_else(|| panic!("{refused}"));
    let id = rest.split([',', ' ']).next().unwrap();
    assert!(refused.contains(&format!("kantoor import --account {account} --continue {id},")), "{refused}");
    assert!(!refused.contains("--again"), "{refused}");
    // Nor does the wish to import it once more make two of them.
    assert!(complained(&kantoor(&db, &[&run[..], &["--again"]].concat())).contains("--continue"));
    let checked = said(&kantoor(&db, &check));
    assert!(checked.contains(&format!("--continue {id}")), "{checked}");
    assert!(!checked.contains("--run") && !checked.contains("once more"), "{checked}");
    let done = said(&kantoor(&db, &["import", "--account", account, "--continue", id]));
    assert!(done.contains("1,500 created"), "{done}");

    let undo = ["import", "--account", account, "--undo", id];
    let resume = ["import", "--account", account, "--continue", id];
    killed(&db, &undo, || !kantoor(&db, &resume).status.success());
    let refused = complained(&kantoor(&db, &resume));
    assert!(refused.contains("continue it with --undo"), "{refused}");
    let undone = said(&kantoor(&db, &undo));
    assert!(undone.contains("1,500 records removed"), "{undone}");
    let verified = kantoor(&db, &["verify"]);
    assert!(verified.status.success(), "{}", said(&verified));
    let binary = Binary::start(&db, made["key"].as_str().unwrap(), &["--set", "workers=0"]);
    assert_eq!(total(&binary.client, "/v1/clients"), 0);
    let (mut after, mut deleted) = (0, Vec::new());
    loop {
        let page = binary.client.get(&format!("/v1/changes?type=customer.deleted&limit=1000&after={after}"));
        let page = page.expect(200).json();
        deleted.extend(page["data"].as_array().unwrap().iter().map(|event| event["entity_id"].to_string()));
        after = page["meta"]["last_seq"].as_i64().unwrap();
        if page["meta"]["has_more"] == false {
            break;
        }
    }
    let once: HashSet<&String> = deleted.iter().collect();
    assert_eq!((deleted.len(), once.len()), (LINES, LINES), "each has one line in the log");
}
