//! Flows on ticket messages.

use super::*;

on_both![a_flow_reads_the_message_of_a_ticket, a_step_warns_about_a_reply_that_was_not_mailed,];

fn a_flow_reads_the_message_of_a_ticket(server: Shared) {
    let client = server.client();
    let made = client.post("/v1/automation/flows", json!({
            "name": "Refunds", "trigger_type": "event", "trigger_key": "ticket.inbound_message",
            "conditions": [{"field": "data.message.body", "op": "contains", "value": "refund"}, {"field": "data.priority", "op": "eq", "value": "high"}],
            "steps": [{"type": "create_task", "title": "{{ data.number }}: {{ data.message.body }} ({{ data.message.author.email }})"}],
        })).expect(201).json();
    assert_eq!(made["meta"], json!({}), "conditions on the message cause no warning");
    let doubted = client.post("/v1/automation/flows", json!({
            "name": "Wrong", "trigger_type": "event", "trigger_key": "ticket.created", "active": false, "steps": [{"type": "approval"}],
            "conditions": [{"field": "data.message.body", "op": "contains", "value": "refund"}],
        })).expect(201).json();
    assert_eq!(doubted["meta"]["warnings"].as_array().unwrap().len(), 1, "only events of messages have one");
    let ticket = client.post("/v1/tickets", json!({"subject": "Koud", "priority": "high"})).expect(201).id();
    for words in ["Still cold", "I want a refund"] {
        let path = format!("/v1/tickets/{ticket}/messages/inbound");
        client.post(&path, json!({"body": words, "author_email": "anna@ster.example"})).expect(201);
    }
    server.automate(&client);
    let tasks = client.get("/v1/tasks").data();
    assert_eq!(tasks.as_array().unwrap().len(), 1);
    assert_eq!(tasks[0]["title"], "T00001: I want a refund (anna@ster.example)");
}

fn a_step_warns_about_a_reply_that_was_not_mailed(server: Shared) {
    let client = server.client();
    flow(
        &client,
        "a.b",
        json!([{"type": "add_ticket_message", "ticket_id": "{{ data.ticket }}", "body": "Hello", "message_type": "reply"}]),
    );
    for (ticket, warned) in
        [(json!({"subject": "x"}), true), (json!({"subject": "x", "client_email": "a@b.example"}), false)]
    {
        let ticket = client.post("/v1/tickets", ticket).expect(201).id();
        let id = fire(&client, "a.b", json!({"ticket": ticket})).pop().unwrap();
        server.automate(&client);
        let result = steps(&client, &id)[0]["result"].clone();
        assert_eq!(result["body"], "Hello");
        assert_eq!(
            result["warnings"][0].as_str().is_some_and(|words| words.contains("was not mailed")),
            warned,
            "{result}"
        );
    }
}
