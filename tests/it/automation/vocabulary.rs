//! `GET /v1/automation/vocabulary`.

use serde_json::{Value, json};

use crate::on_both;
use crate::support::Shared;

on_both![the_vocabulary_describes_flows,];

fn named<'v>(list: &'v Value, name: &str, value: &str) -> &'v Value {
    let found = list.as_array().unwrap().iter().find(|one| one[name] == value);
    found.unwrap_or_else(|| panic!("no {value} in {list}"))
}

fn the_vocabulary_describes_flows(server: Shared) {
    let client = server.client();
    let reply = client.get("/v1/automation/vocabulary").expect(200);
    assert!(reply.text.len() < 256 * 1024, "{} bytes", reply.text.len());
    let data = reply.data();
    for (event, kinds) in [
        ("invoice.paid", json!(["invoice"])),
        ("customer.created", json!(["client"])),
        ("sales.document_sent", json!(["invoice", "quote", "workorder"])),
        ("mail.unanswered", json!(["ticket"])),
        ("task.deleted", json!(["task"])),
        ("hour.created", json!(["hour"])),
        ("planning.updated", json!([])),
    ] {
        assert_eq!(named(&data["events"], "event", event)["entity_types"], kinds, "{event}");
    }
    // What an event has beside its record.
    let failed = &named(&data["events"], "event", "mail.failed")["fields"];
    assert_eq!(named(failed, "path", "data.mail.attempts")["type"], "number");
    let message = &named(&data["events"], "event", "ticket.message")["fields"];
    assert_eq!(named(message, "path", "data.message.author.email")["type"], "string");
    assert_eq!(named(&data["events"], "event", "invoice.paid")["fields"], json!([]));
    // Every event can be the trigger of a flow.
    for event in data["events"].as_array().unwrap() {
        for kind in event["entity_types"].as_array().unwrap() {
            assert!(data["records"][kind.as_str().unwrap()].is_array(), "{event}");
        }
    }
    let invoice = &data["records"]["invoice"];
    assert_eq!(named(invoice, "path", "data.number")["changeable"], false);
    assert_eq!(named(invoice, "path", "data.meta.open_amount")["type"], "number");
    let status = named(&data["records"]["task"], "path", "data.category");
    assert_eq!((&status["choices"], &status["changeable"]), (&json!(["task", "call", "meeting"]), &json!(true)));
    let http = named(&data["steps"], "type", "http");
    assert_eq!(http["scopes"], json!(["webhooks.write"]));
    assert_eq!(named(&http["fields"], "name", "url"), &json!({"name": "url", "required": true, "type": "string"}));
    assert_eq!(named(&http["fields"], "name", "method")["choices"][1], "POST");
    let task = named(&data["steps"], "type", "create_task");
    assert_eq!(
        (&task["scopes"], &named(&task["fields"], "name", "title")["required"]),
        (&json!(["tasks.write"]), &json!(true))
    );
    assert_eq!(named(&data["operators"], "op", "in"), &json!({"op": "in", "value": "array"}));
    assert_eq!(data["roots"]["trigger"], json!(["event", "entity_type", "data"]));
    assert_eq!(server.with_scopes(&client, &["tasks.read"]).get("/v1/automation/vocabulary").status, 403);
}
