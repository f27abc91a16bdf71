//! Secrets at rest: encrypted with a key outside the database, in files that only the server's user can read.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::cli::{kantoor, said};
use crate::on_both;
use crate::server::Binary;
use crate::support::{Client, Db, execute};

/// Runs statements directly on the database.
fn run(db: &Db, sql: &str) {
    if db.url.is_empty() {
        rusqlite::Connection::open(db.data.join("kantoor.db")).unwrap().execute_batch(sql).unwrap();
    } else {
        execute(&db.url, sql);
    }
}

/// Returns the values of a text column.
fn column(db: &Db, sql: &str) -> Vec<String> {
    if db.url.is_empty() {
        let connection = rusqlite::Connection::open(db.data.join("kantoor.db")).unwrap();
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.map(Result::unwrap).collect()
    } else {
        let mut client = postgres::Client::connect(&db.url, postgres::NoTls).unwrap();
        client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
    }
}

const STORED: &str = "SELECT mollie_key FROM settings UNION ALL SELECT secret FROM webhook_endpoints
                      UNION ALL SELECT old_secret FROM webhook_endpoints";

/// Both outputs of a command, and whether it succeeded.
fn told(db: &Db, arguments: &[&str]) -> (bool, String) {
    let done = kantoor(db, arguments);
    (done.status.success(), said(&done) + &String::from_utf8_lossy(&done.stderr))
}

fn key_file(db: &Db) -> PathBuf {
    db.data.join("secret.key")
}

/// Stores one secret of each kind; returns those that were shown.
fn fill(client: &Client) -> Vec<String> {
    client.patch("/v1/settings", json!({"mollie_key": "live_verysecretmolliekey"})).expect(200);
    let endpoint = json!({"url": "https://example.com/in", "events": ["note.*"]}).to_string();
    let make = || client.send("POST", "/v1/webhook-endpoints", &[("idempotency-key", "once")], &endpoint).expect(201);
    let first = make();
    assert_eq!(make().text, first.text, "the stored response is decrypted");
    let rotated = client.act(&format!("/v1/webhook-endpoints/{}/rotate-secret", first.id())).expect(200);
    let secret = |reply: &crate::support::Reply| reply.data()["secret"].as_str().unwrap().to_string();
    vec!["live_verysecretmolliekey".to_string(), secret(&first), secret(&rotated)]
}

on_both![
    plain_text_is_only_accepted_from_the_operator,
    secrets_are_encrypted_in_the_database,
    a_moved_or_changed_value_is_named,
    a_secret_in_plain_text_is_not_used,
    the_wrong_key_is_named_and_nothing_is_lost,
    a_rotated_key_works_at_once,
    a_backup_names_the_key_that_it_needs,
];

fn secrets_are_encrypted_in_the_database(db: Db) {
    let binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let secrets = fill(&binary.client);
    // Both spellings of the secret: as shown, and its bytes in Base64.
    let plain = |text: &str| secrets.iter().any(|secret| text.contains(secret.trim_start_matches("whsec_")));
    let stored = column(&db, STORED);
    assert!(stored.len() == 3 && stored.iter().all(|value| value.starts_with("enc:")), "{stored:?}");
    let texts = "SELECT body FROM stored_answers UNION ALL SELECT data FROM log";
    assert!(!column(&db, texts).iter().any(|text| plain(text)));
    let hashed = column(&db, "SELECT CAST(length(value) AS TEXT) FROM secrets");
    assert_eq!(hashed, ["65"], "version, key id, nonce, 32 bytes, tag");
    drop(binary);
    if db.url.is_empty() {
        for entry in std::fs::read_dir(&db.data).unwrap().flatten() {
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            assert!(!plain(&String::from_utf8_lossy(&bytes)), "{}", entry.path().display());
        }
    }
    let (done, words) = told(&db, &["verify"]);
    assert!(done, "{words}");
}

fn a_moved_or_changed_value_is_named(db: Db) {
    let binary = Binary::start(&db, "", &["--set", "workers=0"]);
    fill(&binary.client);
    let id = binary.client.get("/v1/webhook-endpoints").data()[0]["id"].as_str().unwrap().to_string();
    run(&db, "UPDATE webhook_endpoints SET secret = old_secret");
    let (done, words) = told(&db, &["verify"]);
    assert!(!done && words.contains(&format!("webhook_endpoints  {id}  PROBLEM: Column secret cannot be")), "{words}");
    run(&db, "UPDATE settings SET mollie_key = 'live_inserted'");
    let (done, words) = told(&db, &["verify"]);
    assert!(!done && words.contains(PLAIN_KEY), "{words}");
}

/// What `kantoor verify` says about a key in plain text.
const PLAIN_KEY: &str = "PROBLEM: Column mollie_key cannot be decrypted: it is not encrypted";

/// Somebody who can write to the database cannot make the program use a key of theirs, and everything else works.
fn a_secret_in_plain_text_is_not_used(db: Db) {
    let binary = Binary::start(&db, "", &["--set", "allow_private_addresses=127.0.0.0/8"]);
    let client = &binary.client;
    fill(client);
    client.patch("/v1/settings", json!({"provider": "mollie", "online_payments": true})).expect(200);
    let endpoint = client.get("/v1/webhook-endpoints").data()[0]["id"].as_str().unwrap().to_string();
    let identity = client.get("/v1/corporate-identities").data()[0]["id"].as_str().unwrap().to_string();
    client.patch(&format!("/v1/corporate-identities/{identity}"), json!({"iban": "NL91ABNA0417164300"})).expect(200);
    run(&db, "UPDATE settings SET mollie_key = 'live_inserted'");
    run(&db, "UPDATE webhook_endpoints SET secret = 'whsec_AAAA'");

    let shown = client.get("/v1/settings").expect(200);
    assert!(!shown.text.contains("inserted"), "{}", shown.text);
    client.patch("/v1/settings", json!({"payment_term": 21})).expect(200);
    let firm = json!({"company_name": "De Ster", "email": "ster@a.example", "iban": "NL91ABNA0417164300"});
    let firm = client.post("/v1/clients", firm).expect(201).id();
    let rows = json!([{"name": "x", "quantity": 1, "unit_price": 10, "vat_rate": 21}]);
    let invoice = client.post("/v1/invoices", json!({"client_id": firm, "title": "T", "rows": rows})).expect(201);
    client.act(&format!("/v1/invoices/{}/finalize", invoice.id())).expect(200);
    let page = invoice.data()["web_url"].as_str().unwrap().to_string();
    let page = page.split_once("//").and_then(|(_, rest)| rest.split_once('/')).unwrap().1;
    client.get(&format!("/{page}")).expect(200);
    let paid = client.send("POST", &format!("/{page}/pay"), &[("sec-fetch-site", "same-origin")], "");
    assert!(paid.status < 500, "{paid:?}");
    client.get("/v1/webhook-endpoints").expect(200);
    client.get(&format!("/v1/webhook-endpoints/{endpoint}")).expect(200);
    let tested = client.act(&format!("/v1/webhook-endpoints/{endpoint}/test"));
    assert!(tested.status < 500, "{tested:?}");
    let verification = client.post(&format!("/v1/clients/{firm}/direct-debit/verification"), json!({}));
    assert_eq!(verification.expect(409).code(), "unreadable");
    let texts = column(&db, "SELECT data FROM log");
    assert!(!texts.iter().any(|text| text.contains("inserted") || text.contains("whsec_AAAA")), "{texts:?}");

    let (done, words) = told(&db, &["verify"]);
    assert!(!done && words.contains(PLAIN_KEY), "{words}");
    assert!(
        words.contains(&format!("webhook_endpoints  {endpoint}  PROBLEM: Column secret cannot be decr")),
        "{words}"
    );
    let (done, words) = told(&db, &["doctor"]);
    let named = [
        "problem  secrets   settings ",
        "Column mollie_key cannot be decrypted: it is not encrypted",
        "So is 1 other.",
    ];
    assert!(!done && named.iter().all(|name| words.contains(name)), "{words}");
    // Whoever has the right ones sets them again.
    client.patch("/v1/settings", json!({"mollie_key": "live_another"})).expect(200);
    client.act(&format!("/v1/webhook-endpoints/{endpoint}/rotate-secret")).expect(200);
    let (_, words) = told(&db, &["doctor"]);
    assert!(!words.contains("problem  secrets"), "{words}");
}

fn plain_text_is_only_accepted_from_the_operator(db: Db) {
    let binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let key = binary.client.key.clone();
    fill(&binary.client);
    drop(binary);
    run(&db, "UPDATE settings SET mollie_key = 'live_inserted'");
    let binary = Binary::start(&db, &key, &["--set", "workers=0"]);
    binary.client.get("/v1/settings").expect(200);
    assert!(binary.said().contains("secrets in plain text, which are not used"), "{}", binary.said());
    drop(binary);
    assert_eq!(column(&db, "SELECT mollie_key FROM settings"), ["live_inserted"]);
    let (done, words) = told(&db, &["verify"]);
    assert!(!done && words.contains(PLAIN_KEY), "{words}");
    // The operator knows better.
    let (done, words) = told(&db, &["secrets", "trust"]);
    assert!(done, "{words}");
    assert!(column(&db, "SELECT mollie_key FROM settings")[0].starts_with("enc:"));
    let (done, words) = told(&db, &["verify"]);
    assert!(done, "{words}");
    let binary = Binary::start(&db, &key, &["--set", "workers=0"]);
    binary.client.get("/v1/settings").expect(200);
    let last = binary.client.get("/v1/changes?order=desc&type=account.database_trusted").data();
    assert_eq!(last[0]["actor_type"], "operator");
    drop(binary);
    // So is a deleted key of the links.
    run(&db, "DELETE FROM secrets");
    let (done, words) = told(&db, &["verify"]);
    assert!(!done && words.contains("PROBLEM: The key that signs links was deleted"), "{words}");
}

fn the_wrong_key_is_named_and_nothing_is_lost(db: Db) {
    let binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let key = binary.client.key.clone();
    fill(&binary.client);
    drop(binary);
    let right = std::fs::read_to_string(key_file(&db)).unwrap();
    assert_eq!(std::fs::metadata(key_file(&db)).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::remove_file(key_file(&db)).unwrap();
    let before = column(&db, STORED);
    let missing = |words: &str| {
        let place = key_file(&db).display().to_string();
        words.contains("encrypted with the key ") && words.contains(&place) && words.contains("secret_key_file")
    };
    for arguments in
        [&["account", "list"][..], &["serve", "--listen", "127.0.0.1:0"], &["verify"], &["secrets", "rotate"]]
    {
        let (done, words) = told(&db, arguments);
        assert!(!done && missing(&words) && words.contains("does not exist"), "{words}");
    }
    assert!(!key_file(&db).exists(), "no new key hides the problem");
    std::fs::write(key_file(&db), "ab".repeat(32)).unwrap();
    let (done, words) = told(&db, &["account", "list"]);
    assert!(!done && missing(&words), "{words}");
    for (text, wrong) in [("", "does not contain a key"), ("typo", "64 hexadecimal digits")] {
        std::fs::write(key_file(&db), text).unwrap();
        let (done, words) = told(&db, &["account", "list"]);
        assert!(!done && words.contains(wrong), "{words}");
    }
    std::fs::remove_file(key_file(&db)).unwrap();
    assert_eq!(column(&db, STORED), before);
    // The same key as a setting.
    let digits = right.lines().find(|line| !line.starts_with('#')).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
    command.env("KANTOOR_SECRET_KEY", digits);
    Binary::start_with(command, &db, &key, &["--set", "workers=0"]).client.get("/v1/settings").expect(200);
    assert!(!key_file(&db).exists());
    // After a loss of the key, everything can be set again.
    std::fs::write(db.folder.path().join("elsewhere"), &right).unwrap();
    let place = format!("secret_key_file={}", db.folder.path().join("elsewhere").display());
    let (done, words) = told(&db, &["verify", "--set", &place]);
    assert!(done, "{words}");
    let (done, words) = told(&db, &["secrets", "reset", "--set", &place]);
    assert!(!done && words.contains("the key of the secrets is there"), "{words}");
    let (done, words) = told(&db, &["secrets", "reset"]);
    assert!(done && key_file(&db).exists(), "{words}");
    assert!(column(&db, "SELECT type FROM log").contains(&"account.secrets_reset".to_string()));
    let (done, words) = told(&db, &["verify"]);
    assert!(!done && words.matches("cannot be decrypted: ").count() == 3, "{words}");
    let binary = Binary::start(&db, &key, &["--set", "workers=0"]);
    let id = binary.client.get("/v1/webhook-endpoints").expect(200).data()[0]["id"].as_str().unwrap().to_string();
    binary.client.act(&format!("/v1/webhook-endpoints/{id}/rotate-secret")).expect(200);
    binary.client.patch("/v1/settings", json!({"mollie_key": "live_another"})).expect(200);
    let (done, words) = told(&db, &["verify"]);
    assert!(done, "{words}");
}

fn a_rotated_key_works_at_once(db: Db) {
    let binary = Binary::start(&db, "", &["--set", "workers=0"]);
    fill(&binary.client);
    let id = binary.client.get("/v1/webhook-endpoints").data()[0]["id"].as_str().unwrap().to_string();
    let before = (column(&db, STORED), std::fs::read_to_string(key_file(&db)).unwrap());
    let (done, words) = told(&db, &["secrets", "rotate"]);
    assert!(done && words.contains("Encrypted 4 secrets with the key "), "{words}");
    assert!(column(&db, "SELECT type FROM log").contains(&"account.secrets_rotated".to_string()));
    let after = (column(&db, STORED), std::fs::read_to_string(key_file(&db)).unwrap());
    assert!(before.0.iter().all(|value| !after.0.contains(value)));
    let digits =
        |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_string).collect::<Vec<_>>();
    assert_eq!(digits(&after.1)[1..], digits(&before.1), "backups need the key from before");
    // The running server reads the new key.
    binary.client.act(&format!("/v1/webhook-endpoints/{id}/rotate-secret")).expect(200);
    drop(binary);
    let (done, words) = told(&db, &["secrets", "rotate"]);
    assert!(done, "{words}");
    std::fs::write(key_file(&db), digits(&std::fs::read_to_string(key_file(&db)).unwrap()).remove(0)).unwrap();
    let (done, words) = told(&db, &["verify"]);
    assert!(done, "the newest key is enough: {words}");
}

fn a_backup_names_the_key_that_it_needs(db: Db) {
    let binary = Binary::start(&db, "", &["--set", "workers=0"]);
    fill(&binary.client);
    let folder = tempfile::tempdir().unwrap();
    let (with, without) = (folder.path().join("with"), folder.path().join("without"));
    let (done, words) = told(&db, &["backup", without.to_str().unwrap()]);
    assert!(done && words.contains("It does not include the key of its secrets ("), "{words}");
    assert!(words.contains(&key_file(&db).display().to_string()), "{words}");
    let (done, words) = told(&db, &["backup", "--with-key", with.to_str().unwrap()]);
    assert!(done && words.contains("It includes the key of its secrets ("), "{words}");
    let id_of = |folder: &Path| {
        let manifest = std::fs::read_to_string(folder.join("backup.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&manifest).unwrap()["secrets"].clone()
    };
    assert_eq!(id_of(&with)["key"], id_of(&without)["key"]);
    assert!(id_of(&with)["included"] == true && id_of(&without)["included"] == false);
    assert!(with.join("secret.key").exists() && !without.join("secret.key").exists());
    let needed = id_of(&without)["key"].as_str().unwrap().to_string();
    if db.url.is_empty() {
        let mut own = Db::sqlite();
        own.data = without.clone();
        for arguments in [&["verify"][..], &["serve", "--listen", "127.0.0.1:0"]] {
            let (done, words) = told(&own, arguments);
            assert!(!done && words.contains(&format!("encrypted with the key {needed}, but")), "{words}");
        }
        let place = format!("secret_key_file={}", key_file(&db).display());
        let (done, words) = told(&own, &["verify", "--set", &place]);
        assert!(done, "{words}");
        own.data = with;
        let (done, words) = told(&own, &["verify"]);
        assert!(done, "{words}");
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Everything below a folder with other permissions than those of its owner.
fn open_to_others(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut paths = vec![folder.to_path_buf()];
    while let Some(path) = paths.pop() {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        if mode(&path) != expected {
            found.push(format!("{} is {:o}", path.display(), mode(&path)));
        }
        if path.is_dir() {
            paths.extend(std::fs::read_dir(&path).unwrap().flatten().map(|entry| entry.path()));
        }
    }
    found
}

#[test]
fn data_is_created_for_its_own_user_only() {
    let mut db = Db::sqlite();
    db.data = db.folder.path().join("new/data");
    let binary = Binary::start(&db, "", &[]);
    binary.client.upload("x.txt", b"hello").expect(201);
    assert_eq!(open_to_others(&db.data), Vec::<String>::new());
    assert!(!binary.said().contains("Other users of this machine"), "{}", binary.said());
}

#[test]
fn wider_permissions_are_removed_at_the_start() {
    let mut db = Db::sqlite();
    db.data = db.folder.path().join("data");
    assert!(told(&db, &["migrate"]).0 && told(&db, &["account", "create", "A"]).0);
    let loosen = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    loosen(&db.data, 0o755);
    loosen(&db.data.join("kantoor.db"), 0o644);
    loosen(&key_file(&db), 0o640);
    let binary = Binary::start_with(Command::new(env!("CARGO_BIN_EXE_kantoor")), &db, "x", &[]);
    assert_eq!((mode(&db.data), mode(&db.data.join("kantoor.db")), mode(&key_file(&db))), (0o700, 0o600, 0o600));
    let said = binary.said();
    assert_eq!(said.matches("the permissions are now restricted").count(), 3, "{said}");
    drop(binary);
    // A folder that others use too is left alone.
    loosen(&db.data, 0o1777);
    let binary = Binary::start_with(Command::new(env!("CARGO_BIN_EXE_kantoor")), &db, "x", &[]);
    assert_eq!(std::fs::metadata(&db.data).unwrap().permissions().mode() & 0o7777, 0o1777);
    assert!(binary.said().contains("Restrict the permissions to the user of the program"), "{}", binary.said());
}

#[test]
fn secrets_in_arguments_disappear_from_the_process_list() {
    let db = Db::sqlite();
    let digits = "cd".repeat(32);
    let key = format!("--set=secret_key={digits}");
    let arguments = ["--set", "smtp_password=hush-hush", "--set", "workers=0", &key];
    let binary = Binary::start(&db, "", &arguments);
    let shown = std::fs::read(format!("/proc/{}/cmdline", binary.child.id())).unwrap();
    let shown = String::from_utf8_lossy(&shown).replace('\0', " ");
    assert!(shown.contains("--set workers=0") && !shown.contains("hush") && !shown.contains("cdcd"), "{shown}");
    let log = binary.said();
    for variable in ["KANTOOR_SMTP_PASSWORD", "KANTOOR_SECRET_KEY"] {
        assert!(log.contains(&format!("use the environment variable {variable} or a configuration file")), "{log}");
    }
    assert!(!log.contains("hush-hush") && !log.contains(&digits), "{log}");
    assert!(!key_file(&db).exists(), "the key of the arguments is used");
    let config = said(&kantoor(&db, &["config", "--set", "smtp_password=hush-hush", &key]));
    assert!(
        config.contains("smtp_password = \"(hidden)\"") && config.contains("secret_key = \"(hidden)\""),
        "{config}"
    );
    assert!(!config.contains("hush-hush") && !config.contains(&digits), "{config}");
}
