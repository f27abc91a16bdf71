//! The verification of the log, as a caller asks for it.

use serde_json::json;

use crate::on_both;
use crate::support::{Db, Server};

on_both![the_log_is_verified_on_request,];

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
