//! The verification of the log, as a caller asks for it.

use std::time::{Duration, Instant};

use engine::app::App;
use engine::jobs::worker;
use engine::log::{self, Event};
use serde_json::{Value, json};

use crate::on_both;
use crate::server::Binary;
use crate::support::{Client, Db, Server, Shared};

on_both![
    the_log_is_verified_on_request,
    a_log_that_lost_lines_or_was_replaced_is_not_intact,
    a_line_that_was_emptied_is_found,
    a_long_log_is_verified_by_a_job,
    a_job_finds_a_line_that_was_tampered_with,
    a_verification_continues_where_it_stopped,
    nobody_else_can_move_the_place_of_a_verification,
    a_killed_verification_is_finished_after_the_restart,
];

/// What the request itself verifies, in lines.
const IN_THE_REQUEST: i64 = 3000;

/// Verifies a log that is short enough for the request.
fn verify(client: &Client) -> Value {
    let verified = client.act("/v1/audit/verification").expect(202).data();
    assert_eq!(verified["state"], "done", "{verified}");
    assert_eq!(client.get("/v1/audit/verification").expect(200).data(), verified);
    verified
}

/// Adds lines to the log, as many as if the account had been busy for a while.
fn grow(app: &App, account: i64, count: usize) {
    let caller = app.acting_in(account, "growth").unwrap();
    let grown = app.store.write_now(account, move |tx| {
        let ctx = caller.writing(tx)?;
        for n in 0..count {
            let (id, data) = (format!("x{}", n % 100), json!({"id": n}).to_string());
            let event = Event { name: "product.updated", entity_type: "product", entity_id: &id, data: &data };
            log::append(tx, &ctx, &event)?;
        }
        Ok::<_, engine::error::Error>(())
    });
    grown.unwrap();
}

/// Starts to verify a log that is too long for the request.
fn start(client: &Client) -> Value {
    let started = client.act("/v1/audit/verification").expect(202).data();
    assert_eq!((&started["state"], &started["lines"]), (&json!("running"), &json!(IN_THE_REQUEST)));
    assert_eq!((&started["intact"], &started["verified_at"]), (&Value::Null, &Value::Null));
    started
}

/// Runs the job to its end.
fn finish(server: &Server, client: &Client) -> Value {
    server.block_on(async { while worker::turn(&server.app).await {} });
    let verified = client.get("/v1/audit/verification").expect(200).data();
    assert_eq!(verified["state"], "done", "{verified}");
    verified
}

fn the_log_is_verified_on_request(server: Shared) {
    let client = server.client();
    client.post("/v1/products", json!({"name": "Boiler"})).expect(201);
    let none = client.get("/v1/audit/verification").expect(200).data();
    assert_eq!((&none["state"], &none["intact"], &none["verified_at"]), (&json!("none"), &Value::Null, &Value::Null));
    let verified = verify(&client);
    let lines = server.last_seq(&client);
    assert_eq!((&verified["intact"], &verified["lines"]), (&json!(true), &json!(lines)));
    assert_eq!(verified["head"].as_str().unwrap().len(), 64, "{verified}");
    assert_eq!((&verified["total"], &verified["problem"]), (&json!(lines), &json!("")));
    server.with_scopes(&client, &["products.read"]).get("/v1/audit/verification").expect(403);
    server.with_scopes(&client, &["products.write"]).act("/v1/audit/verification").expect(403);
    server.with_scopes(&client, &["audit.read"]).act("/v1/audit/verification").expect(202);
    server.execute(&format!("UPDATE log SET actor = 'x' WHERE account_id = {} AND seq = 2", client.account));
    let verified = verify(&client);
    assert_eq!((&verified["intact"], &verified["lines"], &verified["head"]), (&json!(false), &json!(1), &json!("")));
    assert!(verified["problem"].as_str().unwrap().starts_with("Line 2 of "), "{verified}");
}

/// The chain alone does not tell; the signed head does.
fn a_log_that_lost_lines_or_was_replaced_is_not_intact(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    for name in ["a", "b", "c"] {
        client.post("/v1/products", json!({"name": name})).expect(201);
    }
    engine::heads::sign(&server.app.store, &server.app.site.vault).unwrap();
    let (account, last) = (client.account, server.last_seq(&client));
    let intact = verify(&client);
    assert_eq!(intact["intact"], true, "{intact}");
    let kept = ["log", "log_heads"];
    let keep = kept.map(|table| format!("CREATE TABLE kept_{table} AS SELECT * FROM {table};")).concat();
    let restore =
        kept.map(|table| format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept_{table};")).concat();
    let harms = [
        (format!("DELETE FROM log WHERE account_id = {account} AND seq = {last}"), "The end of the log was cut off"),
        (format!("DELETE FROM log WHERE account_id = {account}"), "The log was emptied"),
        (format!("DELETE FROM log_heads WHERE account_id = {account}"), "Its signed head was deleted"),
        (
            format!("DELETE FROM log WHERE account_id = {account}; DELETE FROM log_heads WHERE account_id = {account}"),
            "The log was emptied",
        ),
        (
            format!("UPDATE log_heads SET seq = seq - 1 WHERE account_id = {account}"),
            "The signature of its signed head is not valid",
        ),
    ];
    let batch = |sql: &str| sql.split_terminator(';').for_each(|one| server.execute(one));
    batch(&keep);
    let finds = |harm: &str, name: &str| {
        let verified = verify(&client);
        assert_eq!((&verified["intact"], &verified["head"]), (&json!(false), &json!("")), "{harm}: {verified}");
        assert!(verified["problem"].as_str().unwrap().contains(name), "{harm}: {verified}");
    };
    for (harm, name) in &harms {
        batch(harm);
        finds(harm, name);
        batch(&restore);
        assert_eq!(verify(&client)["intact"], true);
    }
    server.execute(&format!("UPDATE log SET actor = 'x' WHERE account_id = {account} AND seq = 2"));
    server.app.store.write_now(account, move |tx| crate::proof::hash_again(tx, account)).unwrap();
    finds("replaced", "The chain was hashed again: line ");
}

fn a_line_that_was_emptied_is_found(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let account = client.account;
    for _ in 0..2 {
        let id = client.post("/v1/tasks", json!({"title": "Call Jansen"})).expect(201).id();
        client.delete(&format!("/v1/tasks/{id}")).expect(204);
        let caller = server.app.acting_in(account, "erasing").unwrap();
        let erased = server.app.store.write_now(account, move |tx| {
            let ctx = caller.writing(tx)?;
            log::erasing::erase(tx, &ctx, "task", &id)
        });
        assert_eq!(erased.unwrap(), 2);
        grow(&server.app, account, 1100);
    }
    assert_eq!(verify(&client)["intact"], true);
    let seq = server.last_seq(&client) - 1500;
    let sql = "UPDATE log SET data = '', data_of = 0, actor_name = '', salt = $1, digest = $2 WHERE account_id = $3 AND seq = $4";
    let (none, digest) = (b"".as_slice(), [7_u8; 32]);
    let harm = move |tx: &mut store::Tx| {
        tx.execute(sql, &[none.into(), digest.as_slice().into(), account.into(), seq.into()]).map(drop)
    };
    server.app.store.write_now(account, harm).unwrap();
    let verified = verify(&client);
    assert_eq!((&verified["intact"], &verified["lines"]), (&json!(false), &json!(seq - 1)), "{verified}");
}

fn a_long_log_is_verified_by_a_job(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    grow(&server.app, client.account, 4500);
    let started = start(&client);
    assert_eq!(started["total"], server.last_seq(&client));
    // There is one at a time.
    assert_eq!(client.act("/v1/audit/verification").expect(202).data(), started);
    let sql = "SELECT count(*) FROM jobs WHERE kind = 'verify_log'";
    assert_eq!(server.app.store.read_now(move |tx| tx.int(sql, &[])).unwrap(), 1);
    // Another account has its own.
    assert_eq!(verify(&server.client())["intact"], true);
    client.post("/v1/products", json!({"name": "Meanwhile"})).expect(201);
    let (verified, lines) = (finish(&server, &client), server.last_seq(&client));
    assert_eq!((&verified["intact"], &verified["lines"]), (&json!(true), &json!(lines)), "{verified}");
    assert_eq!((&verified["total"], verified["head"].as_str().unwrap().len()), (&json!(lines), 64));
    // The next one starts again.
    start(&client);
    assert_eq!(finish(&server, &client)["intact"], true);
}

fn a_job_finds_a_line_that_was_tampered_with(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    grow(&server.app, client.account, 3500);
    let seq = IN_THE_REQUEST + 200;
    server.execute(&format!("UPDATE log SET actor = 'x' WHERE account_id = {} AND seq = {seq}", client.account));
    start(&client);
    let verified = finish(&server, &client);
    assert_eq!((&verified["intact"], &verified["lines"]), (&json!(false), &json!(seq - 1)), "{verified}");
    assert!(verified["problem"].as_str().unwrap().starts_with(&format!("Line {seq} of ")), "{verified}");
}

fn a_verification_continues_where_it_stopped(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    grow(&server.app, client.account, 3500);
    start(&client);
    // It has passed this line, so only the next verification finds it.
    server.execute(&format!("UPDATE log SET actor = 'x' WHERE account_id = {} AND seq = 2", client.account));
    assert_eq!(finish(&server, &client)["intact"], true);
    assert_eq!(verify(&client)["lines"], 1);
}

fn nobody_else_can_move_the_place_of_a_verification(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    grow(&server.app, client.account, 3500);
    start(&client);
    server.execute("UPDATE log_verifications SET seq = seq + 1");
    assert_eq!(client.get("/v1/audit/verification").expect(200).data()["state"], "none");
    start(&client);
    finish(&server, &client);
    server.execute("UPDATE log_verifications SET problem = 'x'");
    assert_eq!(client.get("/v1/audit/verification").expect(200).data()["state"], "none");
}

fn a_killed_verification_is_finished_after_the_restart(db: Db) {
    let mut binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let key = binary.client.key.clone();
    let app = kantoor::opening::open(db.config()).unwrap();
    grow(&app, 1, 4500);
    drop(app);
    start(&binary.client);
    binary.child.kill().unwrap();
    binary.child.wait().unwrap();
    let restarted = Binary::start(&db, &key, &[]);
    let begun = Instant::now();
    let verified = loop {
        let found = restarted.client.get("/v1/audit/verification").expect(200).data();
        assert!(found["lines"].as_i64() >= Some(IN_THE_REQUEST), "{found}");
        if found["state"] == "done" {
            break found;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{found}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!((&verified["intact"], &verified["lines"]), (&json!(true), &verified["total"]), "{verified}");
}
