//! Tickets: conversations and statuses.

use super::*;
use crate::support::{Db, Server};

on_both![
    a_ticket_from_question_to_closed,
    any_unknown_priority_of_a_ticket_is_normal,
    ticket_events_contain_the_message,
    warns_about_a_reply_without_a_recipient,
    renaming_a_status_renames_it_on_tickets,
];

fn a_ticket_from_question_to_closed(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let before = server.last_seq(&client);
    let made = client
        .post("/v1/tickets", json!({"subject": "Help", "priority": "very!", "client_email": "a@b.example"}))
        .expect(201);
    has_the_fields_of_a_ticket(&client, &made.data());
    let path = format!("/v1/tickets/{}", made.id());
    is_answered(&server, &client, &path);
    assert_eq!(client.patch(&path, json!({"status": "Nowhere"})).expect(422).faults(), ["status: invalid_choice"]);
    let closed = client.patch(&path, json!({"status": "closed"})).expect(200).data();
    assert_eq!((&closed["status"], &closed["closed_at"]), (&json!("Closed"), &json!("2026-05-04T10:00:00.000Z")));
    assert_eq!(client.patch(&path, json!({"status": "Waiting"})).expect(200).data()["closed_at"], json!(null));
    let inbound = format!("{path}/messages/inbound");
    let told = client
        .post(&inbound, json!({"body": "Still cold", "author_name": "Anna", "author_email": "a@b.example"}))
        .expect(201)
        .data();
    assert_eq!(
        (&told["direction"], &told["type"], &told["via_staff_save"], &told["meta"]["to"]),
        (&json!("in"), &json!("reply"), &json!(false), &json!(""))
    );
    assert_eq!(client.get(&path).data()["status"], "Open", "a message from the client reopens it");
    assert_eq!(
        server.events(&client, before),
        [
            "ticket.created",
            "message.created",
            "ticket.message",
            "message.created",
            "ticket.updated",
            "ticket.status_changed",
            "ticket.message",
            "ticket.updated",
            "ticket.status_changed",
            "ticket.closed",
            "ticket.updated",
            "ticket.status_changed",
            "message.created",
            "ticket.updated",
            "ticket.status_changed",
            "ticket.message",
            "ticket.inbound_message",
        ]
    );
    assert_eq!(client.get("/v1/tickets?search=help").json()["meta"]["total"], 1);
    has_statuses_and_a_channel(&client);
}

fn has_the_fields_of_a_ticket(client: &Client, data: &Value) {
    assert_eq!(
        keys(data),
        [
            "id",
            "number",
            "subject",
            "status",
            "priority",
            "client_name",
            "client_email",
            "client_id",
            "project_id",
            "source",
            "closed_at",
            "created_at",
            "updated_at",
            "meta"
        ]
    );
    assert_eq!(
        (&data["status"], &data["priority"], &data["client_id"], &data["closed_at"], &data["number"]),
        (&json!("New"), &json!("normal"), &json!(null), &json!(null), &json!("T00001"))
    );
    let item = client.get("/v1/tickets").data()[0].clone();
    assert_eq!(
        keys(&item),
        [
            "id",
            "number",
            "subject",
            "status",
            "priority",
            "client_name",
            "client_email",
            "client_id",
            "project_id",
            "created_at",
            "meta"
        ]
    );
}

/// A note is internal; a reply is mailed and opens the ticket.
fn is_answered(server: &Server, client: &Client, path: &str) {
    let messages = format!("{path}/messages");
    assert_eq!(client.post(&messages, json!({"type": "note"})).expect(422).faults(), ["body: required"]);
    let note = client.post(&messages, json!({"type": "note", "body": "for us"})).expect(201).data();
    assert_eq!(client.get(path).data()["status"], "New", "a note does not count as a reply");
    assert_eq!(keys(&note), ["id", "direction", "type", "body", "author", "via_staff_save", "created_at", "meta"]);
    let html = "<p>Hi <b>you</b></p><script>alert(1)</script><a href=\"javascript:x\" onclick=\"y\">z</a>";
    let reply = client
        .post(&messages, json!({"html": html, "author_name": "Sam", "author_email": "sam@us.example"}))
        .expect(201);
    let data = reply.data();
    assert_eq!(
        (&data["direction"], &data["type"], &data["author"]),
        (&json!("out"), &json!("reply"), &json!({"name": "Sam", "email": "sam@us.example"}))
    );
    let clean = data["meta"]["html"].as_str().unwrap();
    assert!(clean.contains("<b>you</b>") && !clean.contains("script") && !clean.contains("onclick"), "{clean}");
    assert_eq!(data["body"], "Hi you\nz");
    assert_eq!(data["meta"]["to"], "a@b.example");
    assert_eq!(client.get(&format!("{messages}/{}", reply.id())).data()["body"], data["body"]);
    assert_eq!(client.get(&messages).json()["meta"], json!({"total": 2}));
    assert_eq!(client.get(path).data()["status"], "Open");
    let outbox =
        server.app.store.read_now(|tx| tx.int("SELECT count(*) FROM jobs WHERE kind = 'deliver'", &[])).unwrap();
    assert_eq!(outbox, 1, "the reply is in the outbox, the note is not");
}

fn has_statuses_and_a_channel(client: &Client) {
    let names: Vec<Value> = client
        .get("/v1/ticket-statuses")
        .data()
        .as_array()
        .unwrap()
        .iter()
        .map(|status| status["name"].clone())
        .collect();
    assert_eq!(names, ["New", "Open", "Waiting", "Closed"]);
    assert_eq!(client.get("/v1/ticket-statuses?active=0").json()["meta"]["total"], 0);
    let channel = client.get("/v1/ticket-channels").data()[0].clone();
    assert_eq!(
        keys(&channel),
        [
            "id",
            "name",
            "email",
            "from_email",
            "from_name",
            "inbound_email",
            "forwarding_emails",
            "active",
            "order",
            "meta"
        ]
    );
    assert_eq!(channel["forwarding_emails"], json!([]));
}

fn any_unknown_priority_of_a_ticket_is_normal(server: Shared) {
    let client = server.client();
    let path = format!("/v1/tickets/{}", client.post("/v1/tickets", json!({"subject": "Help"})).expect(201).id());
    for unknown in [
        json!(1),
        json!(null),
        json!(true),
        json!({}),
        json!({"a": [1]}),
        json!(["high"]),
        json!(""),
        json!("HIGH"),
        json!("a\u{0}b"),
        json!("x".repeat(9999)),
    ] {
        let made = client.post("/v1/tickets", json!({"subject": "Help", "priority": unknown})).expect(201).data();
        assert_eq!(made["priority"], "normal", "{unknown}");
        assert_eq!(client.patch(&path, json!({"priority": "urgent"})).expect(200).data()["priority"], "urgent");
        assert_eq!(client.patch(&path, json!({"priority": unknown})).expect(200).data()["priority"], "normal");
    }
    // The contract says this only of tickets.
    let deal = json!({"title": "x", "client_id": company(&client, "Firm"), "priority": "urgent"});
    assert_eq!(client.post("/v1/deals", deal).expect(422).faults(), ["priority: invalid_choice"]);
}

fn ticket_events_contain_the_message(server: Shared) {
    let client = server.client();
    let ticket = client.post("/v1/tickets", json!({"subject": "Koud", "client_email": "a@b.example"})).expect(201).id();
    let messages = format!("/v1/tickets/{ticket}/messages");
    let seq = server.last_seq(&client);
    client.post(&messages, json!({"type": "note", "body": "for us", "author_name": "Sam"})).expect(201);
    let inbound = client
        .post(&format!("{messages}/inbound"), json!({"body": "Nog koud", "author_email": "a@b.example"}))
        .expect(201)
        .data();
    let changes = client.get(&format!("/v1/changes?after={seq}")).expect(200).data();
    let events: Vec<&Value> = changes
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["type"].as_str().unwrap().ends_with("message"))
        .collect();
    let names: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(names, ["ticket.message", "ticket.message", "ticket.inbound_message"]);
    assert!(events.iter().all(|event| event["data"]["subject"] == "Koud" && event["entity_id"] == json!(ticket)));
    let note = &events[0]["data"]["message"];
    assert_eq!(
        (&note["direction"], &note["type"], &note["body"], &note["author"]["name"]),
        (&json!("out"), &json!("note"), &json!("for us"), &json!("Sam"))
    );
    let said = json!({"id": inbound["id"], "direction": "in", "type": "reply", "body": "Nog koud", "author": {"name": "", "email": "a@b.example"}, "created_at": inbound["created_at"]});
    assert_eq!((&events[1]["data"]["message"], &events[2]["data"]["message"]), (&said, &said));
}

fn warns_about_a_reply_without_a_recipient(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let with_address =
        client.post("/v1/clients", json!({"company_name": "Ster", "email": "anna@ster.example"})).expect(201).id();
    let without = company(&client, "Maan");
    let messages = |body: Value| {
        let mut ticket = json!({"subject": "Koud"});
        ticket.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        format!("/v1/tickets/{}/messages", client.post("/v1/tickets", ticket).expect(201).id())
    };
    let mailed = || {
        let mut sent: Vec<String> = server
            .app
            .store
            .read_now(|tx| {
                tx.all("SELECT recipient FROM deliveries", &[], |row| Ok::<_, store::Error>(row.text(0)?.to_string()))
            })
            .unwrap();
        sent.sort();
        sent
    };
    let own = json!({"client_id": with_address, "client_email": "own@ster.example"});
    let mut expected: Vec<&str> = Vec::new();
    for (ticket, message, goes_to, warned) in [
        (json!({"client_id": with_address}), json!({"body": "x"}), "anna@ster.example", ""),
        (own.clone(), json!({"body": "x"}), "own@ster.example", ""),
        (own, json!({"body": "x", "to": "other@ster.example"}), "other@ster.example", ""),
        (json!({"client_id": without}), json!({"body": "x", "to": "sent@maan.example"}), "sent@maan.example", ""),
        (json!({"client_id": without}), json!({"body": "x"}), "", "The reply was not mailed"),
        (json!({}), json!({"body": "x", "zz": 1}), "", "The reply was not mailed"),
        (json!({}), json!({"body": "x", "cc": "copy@maan.example"}), "copy@maan.example", "only to 'cc'"),
        (json!({"client_id": with_address}), json!({"body": "x", "type": "note"}), "", ""),
        (
            json!({"client_id": with_address}),
            json!({"body": "x", "type": "note", "to": "a@b.example"}),
            "",
            "A note is never mailed",
        ),
    ] {
        let reply = client
            .send("POST", &messages(ticket), &[("prefer", "handling=lenient")], &message.to_string())
            .expect(201)
            .json();
        let warnings = reply["meta"]["warnings"].as_array().cloned().unwrap_or_default();
        assert_eq!(warnings.iter().any(|one| one.as_str().unwrap().contains(warned)), !warned.is_empty(), "{reply}");
        expected.extend((!goes_to.is_empty()).then_some(goes_to));
        expected.sort_unstable();
        assert_eq!(mailed(), expected, "{message}");
    }
}

fn renaming_a_status_renames_it_on_tickets(server: Shared) {
    let client = server.client();
    let statuses = client.get("/v1/ticket-statuses").data();
    let path = |place: usize| format!("/v1/ticket-statuses/{}", statuses[place]["id"].as_str().unwrap());
    let ticket = |status: &str| {
        let id = client.post("/v1/tickets", json!({"subject": "Help"})).expect(201).id();
        client.patch(&format!("/v1/tickets/{id}"), json!({"status": status})).expect(200);
        id
    };
    let (one, two, other) = (ticket("Waiting"), ticket("Closed"), ticket("Closed"));
    for taken in ["Closed", "closed", "NEW"] {
        assert_eq!(client.post("/v1/ticket-statuses", json!({"name": taken})).expect(409).code(), "duplicate");
        assert_eq!(client.patch(&path(2), json!({"name": taken})).expect(409).code(), "duplicate");
    }
    let before = server.last_seq(&client);
    client.patch(&path(3), json!({"name": "Afgehandeld", "order": 9})).expect(200);
    assert_eq!(
        server.events(&client, before),
        ["ticket_status.updated", "ticket.updated", "ticket.updated"],
        "no ticket moved"
    );
    let shown = |id: &str| {
        let data = client.get(&format!("/v1/tickets/{id}")).data();
        (
            data["status"].as_str().unwrap().to_string(),
            data["closed_at"].is_string(),
            data["meta"]["version"].as_i64().unwrap(),
        )
    };
    assert_eq!(shown(&two), ("Afgehandeld".into(), true, 3));
    assert_eq!((shown(&other).0.as_str(), shown(&one).0.as_str()), ("Afgehandeld", "Waiting"));
    assert_eq!(client.get("/v1/tickets?status=Afgehandeld").json()["meta"]["total"], 2);
    assert_eq!(client.get("/v1/tickets?status=Closed").json()["meta"]["total"], 0);
    assert_eq!(
        client.patch(&format!("/v1/tickets/{one}"), json!({"status": "Closed"})).expect(422).faults(),
        ["status: invalid_choice"]
    );
    // A change of case only; then its old name is free for another.
    client.patch(&path(3), json!({"name": "AFGEHANDELD"})).expect(200);
    assert_eq!(shown(&other).0, "AFGEHANDELD");
    let before = server.last_seq(&client);
    client.patch(&path(3), json!({"order": 8})).expect(200);
    assert_eq!(server.events(&client, before), ["ticket_status.updated"]);
    client.post("/v1/ticket-statuses", json!({"name": "Closed"})).expect(201);
    assert_eq!(client.delete(&path(3)).expect(409).code(), "in_use");
    client.patch(&format!("/v1/tickets/{one}"), json!({"status": "New"})).expect(200);
    client.delete(&path(2)).expect(204);
}
