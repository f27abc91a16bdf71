//! Running the program: one server per data folder, commands without data, misspelled settings.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::{complained, kantoor, said};
use crate::on_both;
use crate::server::Binary;
use crate::support::Db;

on_both![one_server_per_data_folder, commands_without_data_create_nothing];

/// Runs `serve` on a database that may have a server already.
fn serve(db: &Db) -> Output {
    kantoor(db, &["serve", "--listen", "127.0.0.1:0", "--set", "workers=0", "--demo"])
}

fn one_server_per_data_folder(db: Db) {
    let mut binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let key = binary.client.key.clone();
    if !db.url.is_empty() {
        // Nodes on one PostgreSQL may share a folder of files.
        let other = Binary::start(&db, &key, &["--set", "workers=0"]);
        let file = binary.client.upload("a.txt", b"shared").expect(201).id();
        assert_eq!(other.client.get(&format!("/v1/files/{file}/content")).expect(200).text, "shared");
        return;
    }
    let refused = complained(&serve(&db));
    let words = format!(
        "kantoor: another server (process {}) is using the data folder {}. Stop it first",
        binary.child.id(),
        db.data.display()
    );
    assert!(refused.contains(&words), "{refused}");
    binary.client.get("/v1/products").expect(200);
    // Everything else works beside the server.
    let accounts: Value = serde_json::from_str(&said(&kantoor(&db, &["account", "list", "--json"]))).unwrap();
    let account = accounts[0]["id"].as_str().unwrap();
    let made =
        said(&kantoor(&db, &["key", "create", "--account", account, "--scopes", "*", "--networks", "10.0.0.0/8"]));
    assert!(made.contains("kt_"), "{made}");
    let listed = said(&kantoor(&db, &["key", "list", "--account", account]));
    assert!(listed.contains("  from 10.0.0.0/8  ") && listed.contains("  from anywhere  "), "{listed}");
    let backup = db.folder.path().join("backup");
    assert!(kantoor(&db, &["backup", backup.to_str().unwrap()]).status.success());
    assert!(kantoor(&db, &["verify"]).status.success());
    // A server that is killed leaves nothing behind that prevents the next start.
    binary.child.kill().unwrap();
    binary.child.wait().unwrap();
    let started = Instant::now();
    let mut binary = Binary::start(&db, &key, &["--set", "workers=0"]);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    binary.client.get("/v1/products").expect(200);
    binary.signal(rustix::process::Signal::TERM);
    assert!(binary.child.wait().unwrap().success());
    Binary::start(&db, &key, &["--set", "workers=0"]).client.get("/v1/products").expect(200);
}

/// All commands that need data.
const NEED_DATA: &[&[&str]] = &[
    &["account", "create", "A"],
    &["demo"],
    &["key", "create", "--account", "x", "--scopes", "*"],
    &["key", "list", "--account", "x"],
    &["key", "revoke", "x"],
    &["account", "list"],
    &["account", "close", "x"],
    &["user", "list"],
    &["domain", "list"],
    &["jobs", "list"],
    &["secrets", "rotate"],
    &["erase", "--account", "x", "task", "x"],
    &["backup", "/nowhere/backup"],
    &["verify"],
];

fn commands_without_data_create_nothing(db: Db) {
    let db = db.emptied();
    let folder = db.folder.path().join("typo");
    let words = match db.url.as_str() {
        "" => format!("kantoor: the data folder {} does not exist. Choose another one with --data", folder.display()),
        _ => "kantoor: the database contains no data of Kantoor. Choose another one".to_string(),
    };
    for arguments in NEED_DATA {
        let refused = complained(&kantoor(&db, &[arguments, &["--data", folder.to_str().unwrap()][..]].concat()));
        assert!(
            refused.starts_with(&words) && refused.contains("`kantoor serve` creates it"),
            "{arguments:?}: {refused}"
        );
        assert!(!folder.exists(), "{arguments:?} created the folder");
    }
    std::fs::create_dir(&folder).unwrap();
    let refused = complained(&kantoor(&db, &["account", "list", "--data", folder.to_str().unwrap()]));
    assert!(
        !db.url.is_empty() || refused.contains("contains no data of Kantoor: there is no kantoor.db in it"),
        "{refused}"
    );
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    // A list of fields needs no data.
    let fields = kantoor(&db, &["import", "--fields", "products", "--data", folder.join("none").to_str().unwrap()]);
    assert!(fields.status.success() && said(&fields).contains("vat_rate"), "{fields:?}");
    assert!(!folder.join("none").exists());
    let new = db.folder.path().join("new");
    let made = kantoor(&db, &["migrate", "--data", new.to_str().unwrap()]);
    assert!(made.status.success() && said(&made).contains("Created the database"), "{made:?}");
    assert!(!db.url.is_empty() || new.join("kantoor.db").is_file());
    for arguments in [&["account", "create", "A"][..], &["demo"]] {
        let done = kantoor(&db, &[arguments, &["--data", new.to_str().unwrap()][..]].concat());
        assert!(done.status.success(), "{arguments:?}: {done:?}");
    }
}

#[test]
fn all_wrong_settings_are_reported_at_once() {
    let db = Db::sqlite();
    let file = db.folder.path().join("kantoor.toml");
    let text = "listen = \"8080\"\nmetrics_listen = \"localhost\"\nsecret_key = \"hush\"\ntrusted_proxies = \"10.0.0.0/8, lan\"\n\
                allow_private_addresses = \"10.1.2.3/8 wan\"\nbackup_at = \"noon\"\nbackup_keep = \"some\"\nbackup_check = \"often\"\n\
                backup_recipient = \"me\"\ndns_server = \"one\"\ntrace_to = \"x\"\nworkers = \"two\"\nlog_format = \"xml\"\nlisten_on = 1\n\
                template = \"/nowhere/x.typ\"\nsmtp_ca_file = \"FILE\"\ndatabase_url = \"postgres://db:port/k\"\n\
                database_standby = \"nowhere\"\noidc_issuer = \"login.example\"\nmollie_url = \"https://\"\n\
                s3_endpoint = \"s3.example\"\nfiles = \"s4://x\"\n";
    // It has no certificate.
    std::fs::write(&file, text.replace("FILE", file.to_str().unwrap())).unwrap();
    let names = [
        "trusted_proxies",
        "allow_private_addresses",
        "allow_private_addresses",
        "listen",
        "metrics_listen",
        "secret_key",
        "backup_at",
        "backup_keep",
        "backup_recipient",
        "backup_check",
        "dns_server",
        "trace_to",
        "workers",
        "log_format",
        "template",
        "smtp_ca_file",
        "database_url",
        "database_standby",
        "oidc_issuer",
        "mollie_url",
        "s3_endpoint",
        "files",
    ];
    for command in ["config", "serve"] {
        let mut kantoor = Command::new(env!("CARGO_BIN_EXE_kantoor"));
        let done = kantoor.args([command, "--config", file.to_str().unwrap()]).env("KANTOOR_DATA", &db.data).output();
        let done = done.unwrap();
        assert_eq!(done.status.code(), Some(1));
        let words = complained(&done);
        for name in names {
            let count = names.iter().filter(|own| **own == name).count();
            let start = format!("kantoor: {name}: ");
            assert_eq!(words.lines().filter(|line| line.starts_with(&start)).count(), count, "{name}: {words}");
        }
        assert!(words.contains("unknown setting 'listen_on'") && !words.contains("hush"), "{words}");
        assert_eq!(words.lines().count(), names.len() + 1, "{words}");
    }
    // Commands that do not use them are not kept from running.
    let file = file.to_str().unwrap();
    std::fs::write(file, "backup_at = \"noon\"\n").unwrap();
    assert!(kantoor(&db, &["account", "create", "Second", "--config", file]).status.success());
}

#[test]
fn misspelled_settings_are_refused_with_a_guess() {
    let db = Db::sqlite();
    let run = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
        command.args(arguments).env("KANTOOR_DATA", &db.data).envs(variables.iter().copied());
        command.output().unwrap()
    };
    let refused = run(&[("KANTOOR_SMTP_HOTS", "x"), ("KANTOOR_WORKRES", "2")], &["account", "list"]);
    assert_eq!(refused.status.code(), Some(1));
    let words = complained(&refused);
    let lines = [
        "kantoor: unknown environment variable KANTOOR_SMTP_HOTS; did you mean 'KANTOOR_SMTP_HOST'?",
        "kantoor: unknown environment variable KANTOOR_WORKRES; did you mean 'KANTOOR_WORKERS'?",
    ];
    assert!(lines.iter().all(|line| words.contains(line)) && words.lines().count() == 2, "{words}");
    let words = complained(&run(&[], &["config", "--set", "lisen=127.0.0.1:1"]));
    assert_eq!(words.trim(), "kantoor: unknown setting 'lisen'; did you mean 'listen'?");
    let words = complained(&run(&[], &["config", "--set", "smtp_security=ssl"]));
    assert_eq!(words.trim(), "kantoor: smtp_security: 'ssl' is none of starttls, tls, none; did you mean 'tls'?");
    let words = complained(&run(&[("KANTOOR_LOG_FORMAT", "jsn")], &["account", "list"]));
    assert_eq!(words.trim(), "kantoor: log_format: 'jsn' is none of text, json; did you mean 'json'?");
    let file = db.folder.path().join("kantoor.toml");
    std::fs::write(&file, "workers = 1\nmail_form = \"a@b.example\"\nlog_leve = \"info\"\n").unwrap();
    let words = complained(&run(&[], &["config", "--config", file.to_str().unwrap()]));
    let place = file.display();
    let line =
        |wrong: &str, right: &str| format!("kantoor: {place}: unknown setting '{wrong}'; did you mean '{right}'?");
    assert!(
        words.contains(&line("mail_form", "mail_from")) && words.contains(&line("log_leve", "log_level")),
        "{words}"
    );
    std::fs::write(&file, "workers = 1\nworkers = 2\nlog_leve = \"info\"\n[smtp]\nhost = \"x\"\n").unwrap();
    let words = complained(&run(&[], &["config", "--config", file.to_str().unwrap()]));
    assert!(words.contains("duplicate key") && words.contains(&line("log_leve", "log_level")), "{words}");
    assert!(words.contains("unknown setting 'smtp'") && !words.contains("'host'"), "{words}");
    let words = complained(&run(&[], &["account", "list", "--dta", "x"]));
    assert!(words.contains("a similar argument exists: '--data'"), "{words}");
    // Variables of tests, of programs that call the API, and of Kubernetes for a service of this name.
    let others =
        ["KANTOOR_TEST_POSTGRES", "KANTOOR_KEY", "KANTOOR_BIN", "KANTOOR_SERVICE_HOST", "KANTOOR_PORT_8080_TCP"];
    assert!(run(&others.map(|name| (name, "x")), &["account", "list"]).status.success());
}
