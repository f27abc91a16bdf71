//! What a user chose for the screens.

use serde_json::json;

use super::{member, owner};
use crate::on_both;
use crate::support::{Db, Server};

on_both![a_user_keeps_preferences, preferences_have_a_size, everybody_changes_their_own_name_and_language,];

fn a_user_keeps_preferences(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    assert_eq!(browser.get("/console/v1/me").data()["preferences"], json!({}));
    let before = server.last_seq(&client);
    let patch = |body: serde_json::Value| {
        browser.send("PATCH", "/console/v1/me", &json!({"preferences": body}).to_string()).expect(200).data()
    };
    let views = json!({"late": "/invoices?payment_status=overdue"});
    patch(json!({"theme": "dark", "columns": {"invoices": ["number", "title"]}, "views": views}));
    let changed = patch(json!({"theme": "light", "columns": null, "density": "compact"}));
    let kept = json!({"density": "compact", "theme": "light", "views": views});
    assert_eq!(changed["preferences"], kept);
    assert_eq!(changed["account"]["test_clock"], json!(true));
    assert_eq!(browser.get("/console/v1/me").data(), changed);
    assert_eq!(server.last_seq(&client), before, "a preference is no event");

    // Others have their own, and a key has none.
    let (id, other) = member(&client, "ina@a.example", "reader");
    assert_eq!(other.get("/console/v1/me").data()["preferences"], json!({}));
    other.send("PATCH", "/console/v1/me", r#"{"preferences":{"theme":"dark"}}"#).expect(200);
    assert_eq!(browser.get("/console/v1/me").data()["preferences"], kept);
    assert_eq!(client.get("/v1/me").data()["preferences"], json!({}));
    let refused = client.patch("/v1/me", json!({"preferences": {"theme": "dark"}})).expect(403);
    assert!(refused.text.contains("a key has none"), "{}", refused.text);
    client.delete(&format!("/v1/users/{id}")).expect(204);
    let left = server.app.store.read_now(|tx| tx.int("SELECT count(*) FROM preferences", &[])).unwrap();
    assert_eq!(left, 1);
}

/// A reader may change nothing else.
fn everybody_changes_their_own_name_and_language(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    owner(&server, &client, "olga@a.example");
    let (id, reader) = member(&client, "rita@a.example", "reader");
    let changed = reader.send("PATCH", "/console/v1/me", r#"{"name":"Rita","language":"en"}"#).expect(200).data();
    assert_eq!((&changed["user"]["name"], &changed["user"]["language"]), (&json!("Rita"), &json!("en")));
    let user = client.get(&format!("/v1/users/{id}")).data();
    assert_eq!((&user["name"], &user["role"]), (&json!("Rita"), &json!("reader")));
    let history = client.get(&format!("/v1/users/{id}/history")).data();
    assert_eq!((&history[0]["type"], &history[0]["actor"]), (&json!("user.updated"), &json!(id)));
    // Nothing changes, so nothing is logged.
    let before = server.last_seq(&client);
    reader.send("PATCH", "/console/v1/me", r#"{"name":"Rita"}"#).expect(200);
    assert_eq!(server.last_seq(&client), before);
}

fn preferences_have_a_size(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let patch = |body: serde_json::Value| browser.send("PATCH", "/console/v1/me", &body.to_string());
    let half = "x".repeat(40_000);
    patch(json!({"preferences": {"a": half}})).expect(200);
    assert_eq!(patch(json!({"preferences": {"b": half}})).expect(422).faults(), ["preferences: too_long"]);
    patch(json!({"preferences": {"a": null, "b": half}})).expect(200);
    for (body, fault) in [
        (json!({"preferences": []}), "preferences: wrong_type"),
        (json!({}), "preferences: required"),
        (json!({"name": " "}), "name: required"),
        (json!({"language": "fr"}), "language: invalid_choice"),
        (json!({"role": "owner"}), "role: unknown_field"),
    ] {
        assert!(patch(body.clone()).expect(422).faults().contains(&fault.to_string()), "{body}");
    }
    let kept = browser.get("/console/v1/me").data()["preferences"].clone();
    assert_eq!(kept, json!({"b": half}));
}
