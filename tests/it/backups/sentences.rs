//! What an operator reads when a backup, a restore or a migration cannot be done: one sentence, and an exit code.

use std::process::{Command, Output};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::empty_like;
use super::scheduled::{execute, forget_last};
use crate::cli::{complained, kantoor, said};
use crate::on_both;
use crate::support::Db;

on_both![
    a_missing_pg_dump_is_named,
    wrong_targets_and_keys_are_named,
    a_newer_schema_needs_the_newer_program,
    a_restore_asks_the_database_for_its_schema,
];

fn without_programs(db: &Db, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
    command.args(arguments).env("KANTOOR_DATABASE_URL", &db.url).env("KANTOOR_DATA", &db.data);
    command.env("PATH", db.folder.path()).output().unwrap()
}

fn a_missing_pg_dump_is_named(db: Db) {
    if db.url.is_empty() {
        return;
    }
    kantoor::registry::install();
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    for name in ["b.kantoor", "folder"] {
        let target = db.folder.path().join(name);
        let words = complained(&without_programs(&db, &["backup", target.to_str().unwrap()]));
        assert!(words.contains("pg_dump is not installed") && words.lines().count() == 1, "{words}");
        assert!(!target.exists());
    }
    forget_last(&db, engine::migrations::all().last().unwrap().number);
    // Applying the last migration again fails, after the copy.
    let migrated = without_programs(&db, &["migrate", "--set", "backup_before_migration=auto"]);
    let words = String::from_utf8_lossy(&migrated.stderr).into_owned();
    assert!(words.contains("no backup was made before the migration") && words.contains("pg_dump"), "{words}");
}

fn wrong_targets_and_keys_are_named(db: Db) {
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let file = db.folder.path().join("b.kantoor");
    let words = complained(&kantoor(&db, &["backup", file.to_str().unwrap(), "--to", "age1foo"]));
    assert!(words.contains("'age1foo' is not an age recipient: it is incomplete or mistyped"), "{words}");
    let settings = db.folder.path().join("kantoor.toml");
    std::fs::write(&settings, "s3_endpoint = \"http://127.0.0.1:1\"\ns3_access_key = \"a\"\ns3_secret_key = \"b\"\n")
        .unwrap();
    let store = ["--config", settings.to_str().unwrap()];
    for arguments in [["backup", "s3://bucket/b.kantoor"], ["restore", "s3://bucket/b.kantoor"]] {
        let db = if arguments[0] == "restore" { &empty_like(&db) } else { &db };
        let words = complained(&kantoor(db, &[&arguments[..], &store].concat()));
        assert!(words.contains("s3://bucket/b.kantoor: the store cannot be used; check"), "{words}");
        assert_eq!(words.lines().count(), 1, "{words}");
    }
}

fn a_newer_schema_needs_the_newer_program(db: Db) {
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    execute(&db, "INSERT INTO schema_migrations (number, name) VALUES (9999, 'later')");
    let file = db.folder.path().join("b.kantoor");
    for arguments in [&["verify"][..], &["backup", file.to_str().unwrap()], &["migrate"]] {
        let words = complained(&kantoor(&db, arguments));
        assert!(words.contains("newer") && words.contains("9999"), "{words}");
        assert!(!words.contains("kantoor migrate") && words.lines().count() == 1, "{words}");
    }
    assert!(!file.exists());
}

fn a_restore_asks_the_database_for_its_schema(db: Db) {
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let folder = db.folder.path().join("backup");
    let path = folder.to_str().unwrap();
    assert!(kantoor(&db, &["backup", path]).status.success());
    let manifest = folder.join("backup.json");
    let mut told: Value = serde_json::from_str(&std::fs::read_to_string(&manifest).unwrap()).unwrap();
    told["schema"] = json!(3);
    std::fs::write(&manifest, told.to_string()).unwrap();
    let checked = kantoor(&db, &["restore", "--check", path]);
    assert!(checked.status.success() && !said(&checked).contains("earlier version"), "{checked:?}");
    if !db.url.is_empty() {
        return;
    }
    let copy = folder.join("kantoor.db");
    let sql = "INSERT INTO schema_migrations (number, name) VALUES (9999, 'later')";
    rusqlite::Connection::open(&copy).unwrap().execute_batch(sql).unwrap();
    let bytes = std::fs::read(&copy).unwrap();
    told["database"]["sha256"] =
        json!(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    told["database"]["bytes"] = json!(bytes.len());
    std::fs::write(&manifest, told.to_string()).unwrap();
    let own = empty_like(&db);
    let words = complained(&kantoor(&own, &["restore", path]));
    assert!(words.contains("newer version (schema 9999)"), "{words}");
    assert!(!own.data.join("kantoor.db").exists());
}
