//! Each kind of tampering with the database, and what `kantoor verify` calls it.

mod entrances;
mod jobs;
mod outside;
mod rows;
mod schema;

use std::path::Path;
use std::time::{Duration, Instant};

use engine::app::App;
use kantoor::upkeep::anchor;
use serde_json::json;
use web::scripted::{Reply, Scripted};

use crate::cli::{kantoor, said};
use crate::on_both;
use crate::server::Binary;
use crate::support::{Db, Server, execute};

on_both![
    each_kind_of_tampering_is_named,
    kept_heads_are_compared,
    a_log_that_was_cut_while_the_server_was_down_is_named,
    a_tampered_log_is_not_signed,
    a_line_that_a_failover_lost_is_not_signed,
    a_database_without_heads_is_not_signed,
    heads_survive_a_new_key,
    heads_are_sent_out,
    heads_are_sent_once_a_day,
    heads_are_sent_where_a_new_setting_says,
    rows_without_log_lines_are_signed,
    verifying_without_a_key_or_heads_fails,
    an_erased_record_stays_erased,
    an_appended_line_is_named,
];

/// Runs statements directly on the database.
fn spoil(db: &Db, sql: &str) {
    if db.url.is_empty() {
        rusqlite::Connection::open(db.data.join("kantoor.db")).unwrap().execute_batch(sql).unwrap();
    } else {
        execute(&db.url, sql);
    }
}

/// Returns the output of verify, and whether it succeeded.
fn verify(db: &Db, arguments: &[&str]) -> (bool, String) {
    let done = kantoor(db, &[&["verify"], arguments].concat());
    (done.status.success(), said(&done) + &String::from_utf8_lossy(&done.stderr))
}

/// Creates two accounts with a few records, and stops the server, which signs the heads.
fn business(db: &Db) {
    let mut binary = Binary::start(db, "", &["--set", "workers=0"]);
    for name in ["a", "b", "c"] {
        binary.client.post("/v1/products", json!({"name": name})).expect(201);
    }
    binary.client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201);
    binary.client.post("/v1/api-keys", json!({"name": "Shop", "scopes": ["products.read"]})).expect(201);
    let flow = |title: &str| {
        json!({"name": "x", "trigger_type": "custom", "trigger_key": "x", "active": false,
               "steps": [{"type": "create_task", "title": title}]})
    };
    let id = binary.client.post("/v1/automation/flows", flow("Ask")).expect(201).id();
    binary.client.send("PUT", &format!("/v1/automation/flows/{id}"), &[], &flow("Buy").to_string()).expect(200);
    stop(&mut binary);
    assert!(kantoor(db, &["account", "create", "Second"]).status.success());
}

fn stop(binary: &mut Binary) {
    binary.signal(rustix::process::Signal::TERM);
    let started = Instant::now();
    while binary.child.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A statement that keeps the rows of tables, and one that puts them back.
fn saved(tables: &[&str]) -> (String, String) {
    let keep = tables.iter().map(|table| format!("CREATE TABLE kept_{table} AS SELECT * FROM {table};"));
    let restore = tables.iter().map(|table| {
        format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept_{table}; DROP TABLE kept_{table};")
    });
    (keep.collect(), restore.collect())
}

/// What somebody does to the first account, and what it is called.
const TAMPERING: &[(&str, &[&str])] = &[
    ("DELETE FROM log WHERE account_id = 1 AND seq > 10", &["The end of the log was cut off: it has 10 lines"]),
    ("DELETE FROM log WHERE account_id = 1 AND seq > 1", &["The end of the log was cut off: it has 1 line, and"]),
    ("DELETE FROM log WHERE account_id = 1", &["The log was emptied: its signed head has "]),
    (
        "DELETE FROM log WHERE account_id = 1; DELETE FROM log_heads WHERE account_id = 1",
        &["Its signed head was deleted"],
    ),
    ("UPDATE log SET data = '{}' WHERE account_id = 1 AND seq = 5", &["BROKEN at line 5"]),
    (
        // A broken line hides nothing else.
        "UPDATE log SET actor = 'x' WHERE account_id = 1 AND seq = 2;
         UPDATE keys SET scopes = 'products.read,*' WHERE name = 'Shop'; DELETE FROM products WHERE name = 'b';
         UPDATE products SET price = price + 1 WHERE name = 'a'",
        &[
            "BROKEN at line 2",
            "Its scopes were widened outside the log: scopes is ",
            "Deleted outside the log",
            "Changed outside the log: price is ",
        ],
    ),
    ("DELETE FROM log_heads", &["Its signed head was deleted", "The signed list of accounts was deleted"]),
    ("UPDATE log_heads SET seq = seq - 1 WHERE account_id = 1", &["The signature of its signed head is not valid"]),
    ("UPDATE products SET price = price + 1 WHERE name = 'a'", &["Changed outside the log: price is "]),
    ("UPDATE products SET created_at = created_at - 1 WHERE name = 'a'", &["Changed outside the log: created_at is "]),
    ("UPDATE clients SET payment_term = 90 WHERE account_id = 1", &["Changed outside the log: payment_term is 90"]),
    (
        "UPDATE flow_definitions SET definition = replace(definition, 'Buy', 'Sell') WHERE account_id = 1",
        &["Version 2 of the flow was changed outside the log: its definition is not the one that was saved"],
    ),
    (
        "UPDATE flow_definitions SET definition = replace(definition, 'Ask', 'Tell') WHERE account_id = 1",
        &["Version 1 of the flow was changed outside the log: its definition is not the one that was saved"],
    ),
    (
        "UPDATE flow_definitions SET author_type = 'operator', author_id = '' WHERE account_id = 1",
        &["Version 2 of the flow was changed outside the log: its author is operator, but the log says key "],
    ),
    (
        "UPDATE flow_definitions SET version = 7 WHERE account_id = 1 AND version = 2",
        &[
            "Version 7 of the flow was created outside the log, which has no line about it",
            "The definition of the flow was deleted outside the log",
        ],
    ),
    ("DELETE FROM products WHERE name = 'b'", &["Deleted outside the log"]),
    (
        "UPDATE keys SET scopes = 'products.read,*' WHERE name = 'Shop'",
        &["Its scopes were widened outside the log: scopes is "],
    ),
    (
        // Somebody's own secret in place of that of a key.
        "UPDATE keys SET hash = (SELECT hash FROM kept_log WHERE account_id = 1 AND seq = 1) WHERE name = 'Shop'",
        &["Its secret was replaced outside the log"],
    ),
    (
        "UPDATE keys SET expires_at = 0, revoked_at = 1 WHERE name = 'Shop'",
        &["Changed outside the log: revoked_at is "],
    ),
    (
        "UPDATE products SET id = '0198d1c2-7b7e-7c3a-9d53-2f1d8c6a0b11' WHERE name = 'c'",
        &["Created outside the log", "Deleted outside the log"],
    ),
];

fn each_kind_of_tampering_is_named(db: Db) {
    business(&db);
    let (good, words) = verify(&db, &[]);
    assert!(good && words.contains("no problems"), "{words}");
    let (keep, restore) = saved(&["log", "log_heads", "products", "clients", "keys", "flow_definitions"]);
    for (harm, names) in TAMPERING {
        spoil(&db, &keep);
        spoil(&db, harm);
        let (good, words) = verify(&db, &[]);
        assert!(!good && names.iter().all(|name| words.contains(name)), "{harm}: no {names:?} in\n{words}");
        // The other account is.
        let is_cut = names[0].contains("log was");
        assert!(!is_cut || words.matches("  intact: ").count() == 1, "{harm}: {words}");
        spoil(&db, &restore);
        let (good, words) = verify(&db, &[]);
        assert!(good, "{harm}: {words}");
    }
    hash_again(&db);
    let (good, words) = verify(&db, &[]);
    assert!(!good && words.contains("The chain was hashed again: line "), "{words}");
    assert!(!words.contains("BROKEN"), "the chain itself is intact: {words}");
    delete_account(&db, &["log_heads"]);
    let (good, words) = verify(&db, &[]);
    assert!(!good && words.contains("The account was deleted"), "{words}");
    assert!(words.contains("Accounts were deleted or replaced: the signed list has 2, and there are 1"), "{words}");
    // A time zone that nobody knows hides nothing.
    spoil(&db, "UPDATE accounts SET zone = 'Mars/Olympus'");
    let (good, words) = verify(&db, &[]);
    assert!(!good && words.contains("time zone Mars/Olympus is not known"), "{words}");
    assert!(words.contains("The account was deleted") && words.contains("Checked 1 account,"), "{words}");
}

/// Changes the last product and its line, and gives all lines of the account new hashes, as somebody would who has read the
/// source.
fn hash_again(db: &Db) {
    let config = db.config();
    let app = kantoor::opening::open(config).unwrap();
    app.store
        .write_now(1, |tx| {
            tx.execute("UPDATE products SET name = 'x' WHERE name = 'c'", &[])?;
            tx.execute(
                "UPDATE log SET data = replace(data, '\"name\":\"c\"', '\"name\":\"x\"') WHERE account_id = 1",
                &[],
            )?;
            tx.execute("UPDATE search_texts SET folded = 'x' WHERE kind = 'product' AND folded = 'c'", &[])?;
            crate::proof::hash_again(tx, 1)
        })
        .unwrap();
}

/// Deletes the second account with everything that it has, except for these tables.
fn delete_account(db: &Db, except: &'static [&'static str]) {
    let app = kantoor::opening::open(db.config()).unwrap();
    app.store
        .write_now(0, move |tx| {
            for table in tx.tables()?.into_iter().filter(|table| !except.contains(&table.as_str())) {
                // Some have no accounts.
                let _ = tx.savepoint(|tx| tx.execute(&format!("DELETE FROM {table} WHERE account_id = 2"), &[]));
            }
            tx.execute("DELETE FROM accounts WHERE id = 2", &[])
        })
        .unwrap();
}

fn kept_heads_are_compared(db: Db) {
    business(&db);
    let file = db.folder.path().join("heads");
    let file = file.to_str().unwrap();
    let (good, words) = verify(&db, &["--write-heads", file]);
    assert!(good && words.contains("Wrote the heads of the logs (2) to "), "{words}");
    let (good, words) = verify(&db, &["--against", file]);
    assert!(good, "{words}");
    // A damaged head names no account that was deleted.
    let text = std::fs::read_to_string(file).unwrap();
    let uid = engine::heads::read(&text).unwrap()[0].uid.clone();
    let other = uid.replace(&uid[uid.len() - 1..], if uid.ends_with('0') { "1" } else { "0" });
    let damaged = format!("{file}-damaged");
    std::fs::write(&damaged, text.replace(&uid, &other)).unwrap();
    let (good, words) = verify(&db, &["--against", &damaged]);
    assert!(!good && words.contains("The signature of the kept head is not valid"), "{words}");
    assert!(!words.contains("The account was deleted"), "{words}");
    // Somebody has the key, or put an old database in place: its own heads fit.
    let (keep, restore) = saved(&["log", "log_heads"]);
    spoil(&db, &keep);
    spoil(&db, "DELETE FROM log WHERE account_id = 1 AND seq > 12; DELETE FROM log_heads WHERE account_id = 1");
    let (_, words) = verify(&db, &["--against", file]);
    assert!(words.contains("The end of the log was cut off: it has 12 lines, and the kept head has "), "{words}");
    spoil(&db, &restore);
    let text = std::fs::read_to_string(file).unwrap();
    let forged =
        text.lines().map(|line| if line.starts_with('#') { line.to_string() } else { line.replacen(' ', " 9", 1) });
    std::fs::write(file, forged.collect::<Vec<_>>().join("\n")).unwrap();
    let (good, words) = verify(&db, &["--against", file]);
    assert!(!good && words.contains("The signature of the kept head is not valid"), "{words}");
    std::fs::write(file, "nonsense").unwrap();
    let (good, words) = verify(&db, &["--against", file]);
    assert!(!good && words.contains("this is not a head of a log: nonsense"), "{words}");
    std::fs::write(file, &text).unwrap();
    delete_account(&db, &[]);
    let (good, words) = verify(&db, &["--against", file]);
    assert!(!good && words.contains("The account was deleted"), "{words}");
}

/// The server continues the rest of the log, so that it becomes as long as it was.
fn a_log_that_was_cut_while_the_server_was_down_is_named(db: Db) {
    let mut binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let key = binary.client.key.clone();
    binary.client.post("/v1/products", json!({"name": "a"})).expect(201);
    for price in 1..=5 {
        binary.client.post("/v1/tasks", json!({"title": format!("{price}")})).expect(201);
    }
    stop(&mut binary);
    let last = "(SELECT max(seq) FROM log AS whole WHERE account_id = 1)";
    spoil(&db, &format!("DELETE FROM log WHERE account_id = 1 AND seq > {last} - 3"));
    let (good, words) = verify(&db, &[]);
    assert!(!good && words.contains("The end of the log was cut off: it has "), "{words}");
    let mut binary = Binary::start(&db, &key, &["--set", "workers=0"]);
    for name in 0..10 {
        binary.client.post("/v1/products", json!({"name": format!("new {name}")})).expect(201);
    }
    stop(&mut binary);
    let (good, words) = verify(&db, &[]);
    assert!(!good && words.contains("The end of the log was cut off, and the server continued it: line "), "{words}");
    assert!(!words.contains("hashed again"), "{words}");
}

/// The server does not sign what somebody put in the place of a signed log.
fn a_tampered_log_is_not_signed(db: Db) {
    business(&db);
    // A row that does not belong to the chain, whose hash would be the end of another one.
    let appended = "CREATE TABLE appended AS SELECT * FROM log WHERE account_id = 1 ORDER BY seq DESC LIMIT 1;
                    UPDATE appended SET seq = seq + 1; INSERT INTO log SELECT * FROM appended; DROP TABLE appended;";
    let cut = "DELETE FROM log WHERE account_id = 1 AND seq > 10";
    for harm in [appended, cut, "DELETE FROM log_heads WHERE account_id = 1"] {
        spoil(&db, harm);
        let (_, before) = verify(&db, &[]);
        let mut binary = Binary::start(&db, "kt_none", &["--set", "workers=0"]);
        stop(&mut binary);
        assert!(binary.said().contains("The log does not continue its signed head"), "{}", binary.said());
        let (good, after) = verify(&db, &[]);
        assert!(!good, "{after}");
        assert_eq!(before.lines().count(), after.lines().count(), "{after}");
    }
}

/// Appends a line to the log of the first account as somebody would who has read the source; returns its number.
fn append(app: &App, version: i64) -> i64 {
    let appended = app.store.write_now(1, move |tx| {
        let sql = "SELECT seq, hash FROM log WHERE account_id = 1 ORDER BY seq DESC LIMIT 1";
        let last = tx.first(sql, &[], |row| Ok::<_, store::Error>((row.int(0)?, row.bytes(1)?.to_vec())))?;
        let (seq, before) = last.map(|(seq, hash)| (seq + 1, hash)).unwrap();
        let (at, salt) = (1_800_000_000_000_i64, [7_u8; 32]);
        let texts = ["a.b", "thing", "x", "operator", "operator", "r", "operator", "{}"];
        let hash = crate::proof::chained(&before, [1, seq, at], &texts, &salt);
        let sql = "INSERT INTO log (account_id, seq, at, type, entity_type, entity_id, actor, actor_type, request_id,
                                    actor_name, data, hash, version, salt)
                   VALUES (1, $1, $2, 'a.b', 'thing', 'x', 'operator', 'operator', 'r', 'operator', '{}', $3, $4, $5)";
        tx.execute(sql, &[seq.into(), at.into(), hash.as_slice().into(), version.into(), salt.as_slice().into()])?;
        Ok::<_, store::Error>(seq)
    });
    appended.unwrap()
}

/// A hash needs no key, but a mark does. A line of another version is none.
fn an_appended_line_is_named(db: Db) {
    business(&db);
    for version in 1..=3 {
        let app = kantoor::opening::open(db.config()).unwrap();
        let line = append(&app, version);
        let head = |app: &App| app.store.read_now(engine::heads::saved).unwrap()[&1].clone();
        let before = head(&app);
        engine::heads::sign(&app.store, &app.site.vault).unwrap();
        assert_eq!(head(&app), before, "it is not signed");
        drop(app);
        let (good, words) = verify(&db, &[]);
        let named = format!("Line {line} was appended outside the program");
        let is_named = if version == 1 { words.contains(&named) } else { words.contains("BROKEN") };
        assert!(!good && is_named && (version > 1 || !words.contains("BROKEN")), "{version}: {words}");
        spoil(&db, &format!("DELETE FROM log WHERE account_id = 1 AND seq = {line}"));
        let (good, words) = verify(&db, &[]);
        assert!(good, "{version}: {words}");
    }
}

fn a_line_that_a_failover_lost_is_not_signed(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let store = &server.app.store;
    let head = || {
        let sql = format!("SELECT seq FROM log_heads WHERE account_id = {}", client.account);
        store.read_now(move |tx| tx.int(&sql, &[])).unwrap()
    };
    client.post("/v1/products", json!({"name": "kept"})).expect(201);
    let kept = server.last_seq(&client);
    engine::heads::sign(store, &server.app.site.vault).unwrap();
    assert_eq!(head(), kept);
    // The old primary shows a line; the new one has another in its place.
    client.post("/v1/products", json!({"name": "lost"})).expect(201);
    let read = engine::heads::Successors::of_all(store, &server.app.site.vault).unwrap();
    server.execute(&format!("UPDATE log SET hash = salt WHERE account_id = {} AND seq > {kept}", client.account));
    read.save(store).unwrap();
    assert_eq!(head(), kept);
}

/// Somebody who has read the source hashes the logs again, and deletes the heads.
fn a_database_without_heads_is_not_signed(db: Db) {
    business(&db);
    let app = kantoor::opening::open(db.config()).unwrap();
    for account in [1, 2] {
        let harm = move |tx: &mut store::Tx| {
            let sql = "UPDATE log SET actor = 'x' WHERE account_id = $1 AND seq = 2";
            tx.execute(sql, &[account.into()])?;
            crate::proof::hash_again(tx, account)
        };
        app.store.write_now(account, harm).unwrap();
    }
    drop(app);
    spoil(&db, "DELETE FROM log_heads");
    let mut binary = Binary::start(&db, "kt_none", &["--set", "workers=0"]);
    stop(&mut binary);
    let (good, words) = verify(&db, &[]);
    assert!(!good && words.matches("Its signed head was deleted").count() == 2, "{words}");
    assert!(words.contains("The signed list of accounts was deleted"), "{words}");
}

fn heads_survive_a_new_key(db: Db) {
    business(&db);
    assert!(kantoor(&db, &["secrets", "rotate"]).status.success());
    // Without the old key.
    let path = db.data.join("secret.key");
    let keys = std::fs::read_to_string(&path).unwrap();
    let current: Vec<&str> = keys.lines().filter(|line| !line.starts_with('#')).take(1).collect();
    std::fs::write(&path, current.join("\n")).unwrap();
    let (good, words) = verify(&db, &[]);
    assert!(good, "{words}");
    std::fs::write(&path, "0".repeat(64)).unwrap();
    let (good, words) = verify(&db, &[]);
    assert!(!good, "{words}");
    assert!(kantoor(&db, &["secrets", "reset"]).status.success());
    let (good, words) = verify(&db, &[]);
    assert!(good, "{words}");
}

/// What people sign in with, replaced secrets of keys and accounts have no log lines that show them.
fn rows_without_log_lines_are_signed(db: Db) {
    let mut binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let link = crate::people::commands::link(&binary.said());
    let mut browser = crate::people::Browser::new(&binary.client);
    let token = crate::people::token(&link);
    let owner = json!({"token": token, "email": "o@a.example", "name": "O", "business": "Ster",
                       "password": crate::people::PASSWORD});
    browser.enter("/console/set-up", owner);
    let key = binary.client.post("/v1/api-keys", json!({"name": "Shop", "scopes": ["products.read"]})).expect(201);
    binary.client.act(&format!("/v1/api-keys/{}/rotate", key.id())).expect(200);
    stop(&mut binary);
    let (good, words) = verify(&db, &[]);
    assert!(good, "{words}");
    let people = "The password, the second factors or the recovery codes were changed outside the log";
    for (harm, undo, name) in [
        ("UPDATE people SET password = 'x' || password", "UPDATE people SET password = substr(password, 2)", people),
        ("UPDATE people SET email = 'x' || email", "UPDATE people SET email = substr(email, 2)", people),
        (
            "INSERT INTO recovery_codes (hash, person_id) SELECT signature, id FROM people",
            "DELETE FROM recovery_codes",
            people,
        ),
        (
            "UPDATE old_key_secrets SET until = until + 1",
            "UPDATE old_key_secrets SET until = until - 1",
            "An old secret of this key was added or changed outside the log",
        ),
        (
            "UPDATE accounts SET name = 'x' || name",
            "UPDATE accounts SET name = substr(name, 2)",
            "Changed outside the log: name is \"xSter\"",
        ),
    ] {
        spoil(&db, harm);
        let (good, words) = verify(&db, &[]);
        assert!(!good && words.contains(name), "{harm}: no {name:?} in\n{words}");
        // Nor does a new key accept it.
        assert!(kantoor(&db, &["secrets", "rotate"]).status.success());
        let (good, words) = verify(&db, &[]);
        assert!(!good && words.contains(name), "{harm}: {words}");
        spoil(&db, undo);
        let (good, words) = verify(&db, &[]);
        assert!(good, "{harm}: {words}");
    }
    let binary = Binary::start(&db, &binary.client.key, &["--set", "workers=0"]);
    let rotated = binary.client.get("/v1/changes?type=account.secrets_rotated").expect(200).data();
    assert_eq!((rotated.as_array().unwrap().len(), &rotated[0]["actor"]), (5, &json!("operator")));
}

fn verifying_without_a_key_or_heads_fails(db: Db) {
    business(&db);
    let file = db.folder.path().join("heads");
    std::fs::write(&file, "# nothing\n").unwrap();
    let (good, words) = verify(&db, &["--against", file.to_str().unwrap()]);
    assert!(!good && words.contains("the file contains no heads"), "{words}");
    spoil(&db, "DELETE FROM secrets");
    std::fs::remove_file(db.data.join("secret.key")).unwrap();
    let (good, words) = verify(&db, &[]);
    assert!(!good && words.contains("does not exist, so signatures and secrets cannot be checked"), "{words}");
}

fn an_erased_record_stays_erased(db: Db) {
    let mut binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let account = binary.client.get("/v1/me").data()["account"]["id"].as_str().unwrap().to_string();
    let id = binary.client.post("/v1/tasks", json!({"title": "Call Jansen"})).expect(201).id();
    let erase = |more: &[&str]| {
        let done = kantoor(&db, &[&["erase", "--account", &account, "task", &id], more].concat());
        (done.status.success(), said(&done) + &String::from_utf8_lossy(&done.stderr))
    };
    let (done, words) = erase(&["--yes"]);
    assert!(!done && words.contains("only a record that was deleted can be erased"), "{words}");
    spoil(&db, "CREATE TABLE kept AS SELECT * FROM tasks");
    binary.client.delete(&format!("/v1/tasks/{id}")).expect(204);
    let (done, words) = erase(&[]);
    assert!(!done && words.contains("the log has 2 lines about this record"), "{words}");
    let (done, words) = erase(&["--yes"]);
    assert!(done && words.contains("Erased the data of 2 log lines"), "{words}");
    let changes = binary.client.get("/v1/changes?limit=1000").expect(200);
    assert!(!changes.text.contains("Jansen"));
    let last = binary.client.get("/v1/changes?type=task.erased").data()[0].clone();
    assert_eq!((&last["entity_id"], &last["actor"]), (&json!(id), &json!("operator")));
    stop(&mut binary);
    let (good, words) = verify(&db, &[]);
    assert!(good, "{words}");
    spoil(&db, "INSERT INTO tasks SELECT * FROM kept; DROP TABLE kept");
    let (good, words) = verify(&db, &[]);
    assert!(!good && words.contains("whose last line about it says that it was deleted"), "{words}");
}

fn heads_are_sent_out(db: Db) {
    let receiver = Scripted::start(|_| Reply::json(200, "{}".to_string())).unwrap();
    let config = db.config();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heads");
    let server = Server::start(db);
    let client = server.recorded_client(None);
    client.post("/v1/products", json!({"name": "a"})).expect(201);
    let send = |anchor: String| {
        let config = engine::config::Config {
            audit_anchor: anchor,
            allow_private_addresses: "127.0.0.1".to_string(),
            ..config.clone()
        };
        let app = kantoor::opening::open(config).unwrap();
        server.block_on(server.apart(move || anchor::send(&app))).unwrap()
    };
    send(format!("file:{}", file.display())).unwrap();
    client.post("/v1/products", json!({"name": "b"})).expect(201);
    send(format!("file:{}", file.display())).unwrap();
    let heads = engine::heads::read(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(heads.iter().map(|head| head.seq).collect::<Vec<_>>(), {
        let last = server.last_seq(&client);
        [last - 1, last]
    });
    send(receiver.url("/heads")).unwrap();
    let received = receiver.received();
    let text = String::from_utf8(received[0].body.clone()).unwrap();
    assert!(text.contains(&heads[1].uid), "{text}");
    send("mailto:audit@example.com".to_string()).unwrap();
    let mails = mails_in(&config.data.join("mail"));
    assert!(mails.contains("audit@example.com") && mails.contains("filename=\"kantoor-heads-"), "{mails}");
    assert!(send("file:/nowhere/at/all".to_string()).is_err());
}

fn heads_are_sent_once_a_day(db: Db) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heads");
    let server = Server::with(db, |config| config.audit_anchor = format!("file:{}", file.display()));
    server.recorded_client(None);
    let (ids, now) = (server.app.ids, server.now());
    let kind = engine::registry::registry().jobs.iter().find(|kind| kind.kind == "send_heads").unwrap();
    let job = kind.repeated(now);
    let vault = server.app.site.vault.clone();
    server.app.store.write_now(0, move |tx| job.enqueue(tx, &ids, &vault, now)).unwrap();
    let sent = || {
        server.execute("UPDATE jobs SET run_at = 0");
        server.block_on(async { while engine::jobs::worker::turn(&server.app).await {} });
        let is_ahead = server.app.store.read_now(move |tx| engine::jobs::any_ahead(tx, now)).unwrap();
        assert!(!is_ahead, "it would be taken for a job that a wrong clock scheduled");
        engine::heads::read(&std::fs::read_to_string(&file).unwrap()).unwrap().len()
    };
    assert_eq!([sent(), sent()], [1, 1]);
    server.rewrite("UPDATE jobs SET payload = '{\"sent_at\": 1}' WHERE kind = 'send_heads'");
    assert_eq!(sent(), 2);
}

/// A server that starts with a new setting sends the heads there at once, not an hour later.
fn heads_are_sent_where_a_new_setting_says(db: Db) {
    let folder = tempfile::tempdir().unwrap();
    for place in ["first", "second"] {
        let file = folder.path().join(place);
        let mut binary = Binary::start(&db, "", &["--set", &format!("audit_anchor=file:{}", file.display())]);
        let started = Instant::now();
        while !file.exists() {
            assert!(started.elapsed() < Duration::from_secs(60), "{place}");
            std::thread::sleep(Duration::from_millis(50));
        }
        stop(&mut binary);
    }
}

fn mails_in(folder: &Path) -> String {
    let files = std::fs::read_dir(folder).unwrap().flatten();
    files.map(|file| std::fs::read_to_string(file.path()).unwrap()).collect()
}
