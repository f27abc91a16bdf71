//! The command line.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::on_both;
use crate::server::Binary;
use crate::support::{Client, Db};

/// Runs a command on a database.
pub fn kantoor(db: &Db, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
    command.args(arguments).env("KANTOOR_DATABASE_URL", &db.url).env("KANTOOR_DATA", &db.data);
    command.output().unwrap()
}

/// Returns the output of a command.
pub fn said(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns what a command that failed reports.
pub fn complained(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8(output.stderr.clone()).unwrap()
}

on_both![accounts_and_keys_while_the_server_runs, a_test_clock_stands_still, demo_data_is_created_on_request,];

fn accounts_and_keys_while_the_server_runs(db: Db) {
    let binary = Binary::start(&db, "", &[]);
    binary.client.get("/v1/products").expect(200);
    let made: Value = serde_json::from_str(&said(&kantoor(&db, &["account", "create", "Second", "--json"]))).unwrap();
    let account = made["account"]["id"].as_str().unwrap();
    assert_eq!(made["account"]["name"], "Second");
    let with = |key: &Value| Client { key: key.as_str().unwrap().to_string(), ..binary.client.clone() };
    with(&made["key"]).get("/v1/products").expect(200);
    let arguments = [
        "key",
        "create",
        "--account",
        account,
        "--scopes",
        "products.read,tasks.write",
        "--name",
        "robot",
        "--expires",
        "2099-01-01",
        "--json",
    ];
    let key: Value = serde_json::from_str(&said(&kantoor(&db, &arguments))).unwrap();
    with(&key["key"]).get("/v1/products").expect(200);
    with(&key["key"]).get("/v1/tasks").expect(403);
    let listed = said(&kantoor(&db, &["key", "list", "--account", account]));
    assert!(listed.contains("robot") && listed.contains("expires 2098-12-31T23:00:00.000Z"), "{listed}");
    assert!(!listed.contains(key["key"].as_str().unwrap()));
    assert!(kantoor(&db, &["key", "revoke", key["id"].as_str().unwrap()]).status.success());
    std::thread::sleep(Duration::from_millis(1100));
    with(&key["key"]).get("/v1/products").expect(401);
    let accounts: Value = serde_json::from_str(&said(&kantoor(&db, &["account", "list", "--json"]))).unwrap();
    assert_eq!(accounts.as_array().unwrap().len(), 2);
    assert_eq!(said(&kantoor(&db, &["migrate"])).trim(), "The database is up to date.");
    let verified = said(&kantoor(&db, &["verify"]));
    assert_eq!(verified.matches("  intact: ").count(), 2, "{verified}");
}

fn a_test_clock_stands_still(db: Db) {
    let made: Value = serde_json::from_str(&said(&kantoor(
        &db,
        &["account", "create", "T", "--test-clock", "2026-01-31T12:00:00+01:00", "--json"],
    )))
    .unwrap();
    let binary = Binary::start(&db, made["key"].as_str().unwrap(), &[]);
    let note = binary.client.post("/v1/notes", serde_json::json!({"body": "then"})).expect(201);
    assert_eq!(note.data()["created_at"], "2026-01-31T11:00:00.000Z");
    assert!(!binary.said().contains("kt_"), "an account exists, so no first one is created");
    let arguments =
        ["account", "create", "T", "--test-clock", "2026-01-31T12:00:00Z", "--time-zone", "Pacific/Auckland", "--json"];
    let far: Value = serde_json::from_str(&said(&kantoor(&db, &arguments))).unwrap();
    let far = Client { key: far["key"].as_str().unwrap().to_string(), ..binary.client.clone() };
    let invoice = far.post("/v1/invoices", serde_json::json!({"title": "there"})).expect(201);
    assert_eq!(invoice.data()["invoice_date"], "2026-02-01", "it is tomorrow there");
    let wrong = complained(&kantoor(&db, &["account", "create", "T", "--time-zone", "Mars/North"]));
    assert!(wrong.contains("unknown time zone 'Mars/North'"), "{wrong}");
}

fn demo_data_is_created_on_request(db: Db) {
    let binary = Binary::start(&db, "", &["--demo"]);
    assert!(binary.said().contains("Your account is called \"Van Dijk Installatietechniek\""), "{}", binary.said());
    let clients = |key: &str| {
        let client = Client { key: key.to_string(), ..binary.client.clone() };
        client.get("/v1/clients").expect(200).json()["meta"]["total"].clone()
    };
    assert_eq!(clients(&binary.client.key), 12);
    let made: Value = serde_json::from_str(&said(&kantoor(&db, &["demo", "--json"]))).unwrap();
    assert_eq!(made["account"]["name"], "Van Dijk Installatietechniek");
    assert_eq!(clients(made["key"].as_str().unwrap()), 12);
    let words = said(&kantoor(&db, &["demo"]));
    assert!(words.contains("Its API key, shown only once: kt_"), "{words}");
    assert_eq!(said(&kantoor(&db, &["verify"])).matches("  intact: ").count(), 3);
    drop(binary);
    let again = Binary::start(&db, made["key"].as_str().unwrap(), &["--demo"]);
    // The log is written by a thread of its own.
    let started = Instant::now();
    while !again.said().contains("An account already exists") {
        assert!(started.elapsed() < Duration::from_secs(20), "{}", again.said());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(said(&kantoor(&db, &["account", "list"])).lines().count(), 3);
}

#[test]
fn reports_invalid_arguments() {
    let db = Db::sqlite();
    let made: Value = serde_json::from_str(&said(&kantoor(&db, &["account", "create", "A", "--json"]))).unwrap();
    let id = made["account"]["id"].as_str().unwrap();
    assert_eq!(
        complained(&kantoor(&db, &["key", "create", "--account", "x", "--scopes", "*"])).trim(),
        "kantoor: no account has the id x"
    );
    let odd = complained(&kantoor(&db, &["key", "create", "--account", id, "--scopes", "everything"]));
    assert!(odd.starts_with("kantoor: unknown scope 'everything'. Choose from: invoices.read"), "{odd}");
    let past = ["key", "create", "--account", id, "--scopes", "*", "--expires", "2020-01-01"];
    assert!(complained(&kantoor(&db, &past)).contains("the date is in the past"));
    assert!(complained(&kantoor(&db, &["key", "revoke", "nope"])).contains("no key has the id nope"));
    assert!(complained(&kantoor(&db, &["account", "create", " "])).contains("1 to 255 characters"));
    assert!(
        complained(&kantoor(&db, &["account", "create", "x", "--test-clock", "noon"]))
            .contains("expected a time such as")
    );
    assert!(complained(&kantoor(&db, &["serve", "--listen", "256.0.0.1:1"])).contains("cannot listen on 256.0.0.1:1"));
    assert!(complained(&kantoor(&db, &["config", "--set", "nope=1"])).contains("unknown setting 'nope'"));
    assert!(
        complained(&kantoor(&db, &["migrate", "--database-url", "postgres://127.0.0.1:1/x"]))
            .contains("lost the connection")
    );
    assert!(complained(&kantoor(&db, &["migrate", "--data", "/proc/nowhere"])).contains("cannot create the folder"));
    assert_eq!(
        complained(&kantoor(&db, &["verify", "--data", "/nowhere"])).trim(),
        "kantoor: the data folder /nowhere does not exist. Choose another one with --data or --database-url; `kantoor serve` creates it"
    );
}

#[test]
fn help_settings_and_completions() {
    let db = Db::sqlite();
    let help = said(&kantoor(&db, &["--help"]));
    insta::assert_snapshot!("help", help);
    insta::assert_snapshot!("help_serve", said(&kantoor(&db, &["serve", "--help"])));
    let shown =
        said(&kantoor(&db, &["config", "--set", "database_url=postgres://me:secret@db/k", "--set", "workers=5"]));
    assert!(shown.contains("workers = 5") && shown.contains("postgres://me:***@db/k"), "{shown}");
    assert_eq!(said(&kantoor(&db, &["config", "--default"])).trim(), engine::config::DEFAULTS.trim());
    for shell in ["bash", "zsh", "fish"] {
        assert!(said(&kantoor(&db, &["completions", shell])).contains("kantoor"));
    }
    let printed: Value = serde_json::from_str(&said(&kantoor(&db, &["openapi"]))).unwrap();
    assert_eq!(printed["openapi"], "3.1.0");
}
