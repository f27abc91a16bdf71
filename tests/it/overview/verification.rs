//! The verification of the log, as a caller asks for it.

use serde_json::json;

use crate::on_both;
use crate::support::{Db, Server};

on_both![the_log_is_verified_on_request, a_log_that_lost_lines_or_was_replaced_is_not_intact,];

fn the_log_is_verified_on_request(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    client.post("/v1/products", json!({"name": "Boiler"})).expect(201);
    let verified = client.get("/v1/audit/verification").expect(200).data();
    let lines = server.last_seq(&client);
    assert_eq!((&verified["intact"], &verified["lines"]), (&json!(true), &json!(lines)));
    assert_eq!(verified["head"].as_str().unwrap().len(), 64, "{verified}");
    server.with_scopes(&client, &["products.read"]).get("/v1/audit/verification").expect(403);
    server.execute(&format!("UPDATE log SET actor = 'x' WHERE account_id = {} AND seq = 2", client.account));
    let verified = client.get("/v1/audit/verification").expect(200).data();
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
    let intact = client.get("/v1/audit/verification").expect(200).data();
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
    let verify = |harm: &str, name: &str| {
        let verified = client.get("/v1/audit/verification").expect(200).data();
        assert_eq!((&verified["intact"], &verified["head"]), (&json!(false), &json!("")), "{harm}: {verified}");
        assert!(verified["problem"].as_str().unwrap().contains(name), "{harm}: {verified}");
    };
    for (harm, name) in &harms {
        batch(harm);
        verify(harm, name);
        batch(&restore);
        assert_eq!(client.get("/v1/audit/verification").expect(200).data()["intact"], true);
    }
    server.app.store.write_now(account, move |tx| crate::proof::as_before(tx, account)).unwrap();
    verify("replaced", "The chain was hashed again: line ");
}
