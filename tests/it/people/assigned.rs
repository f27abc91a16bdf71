//! Records that refer to users: the assignee of a deal, ticket or task, the owner of a client, who worked the hours.

use serde_json::{Value, json};

use super::{invite, member};
use crate::on_both;
use crate::support::{Client, Shared};

on_both![
    records_refer_to_users,
    a_suspended_user_stays_but_is_not_chosen,
    a_deleted_user_is_cleared,
    conditions_of_flows_see_the_user,
    a_message_names_the_user_who_wrote_it,
];

/// Creates a record of each type; returns its path, the path of its list and the field.
fn records(client: &Client) -> Vec<(String, String, &'static str)> {
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let project = client.post("/v1/projects", json!({"name": "Bakery"})).expect(201).id();
    let hours = format!("/v1/projects/{project}/hours");
    let made = |list: &str, body: Value, field| {
        let id = client.post(list, body).expect(201).id();
        (format!("{list}/{id}"), list.to_string(), field)
    };
    vec![
        made("/v1/deals", json!({"title": "Oven", "client_id": firm}), "assignee_id"),
        made("/v1/tickets", json!({"subject": "Cold"}), "assignee_id"),
        made("/v1/tasks", json!({"title": "Call"}), "assignee_id"),
        made("/v1/clients", json!({"company_name": "De Maan"}), "owner_id"),
        made(&hours, json!({"hours": 1.5}), "user_id"),
    ]
}

fn records_refer_to_users(server: Shared) {
    let client = server.client();
    let (anna, _) = invite(&client, "anna@a.example", "member");
    let (stranger, _) = invite(&server.client(), "stranger@a.example", "member");
    for (path, list, field) in records(&client) {
        assert_eq!(client.get(&path).data()["meta"][field], "", "{path}");
        for wrong in ["nobody", stranger.as_str()] {
            let faults = client.patch(&path, json!({field: wrong})).expect(422).faults();
            assert_eq!(faults, [format!("{field}: reference_not_found")], "{path}");
        }
        let before = server.last_seq(&client);
        let changed = client.patch(&path, json!({field: anna})).expect(200).data();
        assert_eq!(changed["meta"][field], anna.as_str(), "{path}");
        let shown = client.get(&path).data();
        assert_eq!(shown["meta"][field], anna.as_str(), "{path}");
        let change = client.get(&format!("/v1/changes?after={before}")).data()[0].clone();
        assert!(change["type"].as_str().unwrap().ends_with(".updated"), "{change}");
        assert_eq!(change["data"]["meta"][field], anna.as_str(), "{path}");
        let found = |id: &str| client.get(&format!("{list}?{field}={id}")).expect(200).json();
        assert_eq!((&found(&anna)["meta"]["total"], &found(&anna)["data"][0]["id"]), (&json!(1), &shown["id"]));
        assert_eq!(found(&stranger)["meta"]["total"], 0, "{path}");
        client.patch(&path, json!({field: null})).expect(200);
        assert_eq!(client.get(&path).data()["meta"][field], "", "{path}");
    }
    // A new record shows it as well.
    let task = client.post("/v1/tasks", json!({"title": "Call", "assignee_id": anna})).expect(201);
    assert_eq!(task.data()["meta"], client.get(&format!("/v1/tasks/{}", task.id())).data()["meta"]);
    assert_eq!(task.data()["meta"]["assignee_id"], anna.as_str());
}

fn a_suspended_user_stays_but_is_not_chosen(server: Shared) {
    let client = server.client();
    let (anna, _) = member(&client, "anna@a.example", "member");
    let records = records(&client);
    for (path, _, field) in &records {
        client.patch(path, json!({*field: anna})).expect(200);
    }
    client.patch(&format!("/v1/users/{anna}"), json!({"status": "suspended"})).expect(200);
    for (path, _, field) in &records {
        client.patch(path, json!({*field: anna})).expect(200);
        assert_eq!(client.get(path).data()["meta"][*field], anna.as_str(), "{path}");
        client.patch(path, json!({*field: null})).expect(200);
        let refused = client.patch(path, json!({*field: anna})).expect(422);
        assert_eq!(refused.faults(), [format!("{field}: invalid_choice")], "{path}");
    }
    let new = client.post("/v1/tasks", json!({"title": "Call", "assignee_id": anna})).expect(422);
    assert_eq!(new.faults(), ["assignee_id: invalid_choice"]);
}

fn a_deleted_user_is_cleared(server: Shared) {
    let client = server.client();
    let (anna, _) = invite(&client, "anna@a.example", "member");
    let records = records(&client);
    for (path, _, field) in &records {
        client.patch(path, json!({*field: anna})).expect(200);
    }
    let user = format!("/v1/users/{anna}");
    let refused = client.delete(&user).expect(409);
    assert!(refused.code() == "in_use" && refused.text.contains("Suspend the user instead"), "{}", refused.text);
    for (path, _, field) in &records {
        assert_eq!(client.get(path).data()["meta"][*field], anna.as_str(), "nothing was cleared: {path}");
    }
    let (hours, _, _) = &records[4];
    client.delete(hours).expect(204);
    let before = server.last_seq(&client);
    client.delete(&user).expect(204);
    for (path, _, field) in &records[..4] {
        assert_eq!(client.get(path).data()["meta"][*field], "", "{path}");
    }
    let mut events = server.events(&client, before);
    events.sort();
    assert_eq!(events, ["customer.updated", "deal.updated", "task.updated", "ticket.updated", "user.deleted"]);
}

fn conditions_of_flows_see_the_user(server: Shared) {
    let client = server.client();
    let (anna, _) = invite(&client, "anna@a.example", "member");
    let flow = json!({
        "name": "Assigned", "trigger_type": "event", "trigger_key": "deal.created",
        "conditions": [{"field": "data.assignee_id", "op": "eq", "value": anna}],
        "steps": [{"type": "create_task", "title": "{{ data.title }}", "assignee_id": "{{ data.assignee_id }}"}],
    });
    let saved = client.post("/v1/automation/flows", flow).expect(201);
    assert!(saved.json()["meta"].get("warnings").is_none(), "{}", saved.text);
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    for (title, assignee) in [("Hers", anna.as_str()), ("Nobody's", "")] {
        client.post("/v1/deals", json!({"title": title, "client_id": firm, "assignee_id": assignee})).expect(201);
    }
    client.post("/v1/test-clock/advance", json!({"to": "2026-05-04T10:01:00Z"})).expect(200);
    let tasks = client.get("/v1/tasks").data();
    let tasks: Vec<(&Value, &Value)> =
        tasks.as_array().unwrap().iter().map(|task| (&task["title"], &task["meta"]["assignee_id"])).collect();
    assert_eq!(tasks, [(&json!("Hers"), &json!(anna))]);
}

fn a_message_names_the_user_who_wrote_it(server: Shared) {
    let client = server.client();
    let (_, browser) = member(&client, "ina@a.example", "member");
    let ticket = client.post("/v1/tickets", json!({"subject": "Cold"})).expect(201).id();
    let path = format!("/v1/tickets/{ticket}/messages");
    let author =
        |message: Value| browser.post(&format!("/console{path}"), message).expect(201).data()["author"].clone();
    let own = json!({"name": "Ina", "email": "ina@a.example"});
    for kind in ["reply", "note"] {
        assert_eq!(author(json!({"type": kind, "body": "Tomorrow"})), own, "{kind}");
    }
    assert_eq!(client.get(&path).data()[0]["author"], own);
    // Who is named stays the author, and a key has no name to give.
    let named = json!({"body": "Tomorrow", "author_name": "Support"});
    assert_eq!(author(named), json!({"name": "Support", "email": ""}));
    let by_key = client.post(&path, json!({"type": "note", "body": "Tomorrow"})).expect(201).data();
    assert_eq!(by_key["author"], json!({"name": "", "email": ""}));
    // The client wrote what is recorded as theirs.
    let inbound = browser.post(&format!("/console{path}/inbound"), json!({"body": "Cold"})).expect(201).data();
    assert_eq!(inbound["author"], json!({"name": "", "email": ""}));
}
