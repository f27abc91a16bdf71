//! `/v1/hours`: hours of all projects.

use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Shared};

on_both![lists_the_hours_of_all_projects, several_are_submitted_and_approved_at_once, a_rejection_may_have_a_reason,];

fn log(client: &Client, project: &str, body: Value) -> String {
    client.post(&format!("/v1/projects/{project}/hours"), body).expect(201).id()
}

fn project(client: &Client) -> String {
    client.post("/v1/projects", json!({"name": "Oven"})).expect(201).id()
}

fn lists_the_hours_of_all_projects(server: Shared) {
    let client = server.client();
    let (one, other) = (project(&client), project(&client));
    let user = client.post("/v1/users", json!({"email": "ina@a.example", "name": "Ina"})).expect(201).id();
    let first = log(&client, &one, json!({"date": "2026-05-04", "hours": 1, "user_id": user}));
    let second = log(&client, &other, json!({"date": "2026-05-05", "hours": 2}));
    let third = log(&client, &other, json!({"date": "2026-05-11", "hours": 3, "user_id": user}));
    let found = |query: &str| -> Vec<String> {
        let reply = client.get(&format!("/v1/hours?{query}")).expect(200).json();
        let data = reply["data"].as_array().unwrap();
        assert_eq!(reply["meta"]["total"], data.len());
        data.iter().map(|one| one["id"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(found(""), [third.clone(), second.clone(), first.clone()]);
    assert_eq!(found("from=2026-05-04&to=2026-05-10&sort=date&order=asc"), [first.clone(), second.clone()]);
    assert_eq!(found(&format!("user_id={user}")), [third.clone(), first.clone()]);
    assert_eq!(found(&format!("user_id={user}&from=2026-05-05&status=draft")), [third.as_str()]);
    assert_eq!(found("status=approved"), Vec::<String>::new());
    let entry = client.get(&format!("/v1/hours?id={second}")).data()[0].clone();
    assert_eq!(entry["meta"]["project_id"], json!(other));
    assert_eq!(entry, client.get(&format!("/v1/projects/{other}/hours")).data()[1]);
    let sums = client.get("/v1/hours?from=2026-05-05&sums=hours").json()["meta"]["sums"].clone();
    assert_eq!(sums, json!({"hours": 5}));
    assert_eq!(server.client().get("/v1/hours").json()["meta"]["total"], 0);
}

fn several_are_submitted_and_approved_at_once(server: Shared) {
    let client = server.client();
    let (one, other) = (project(&client), project(&client));
    let ids = [log(&client, &one, json!({"hours": 1})), log(&client, &other, json!({"hours": 2}))];
    let stranger = server.client();
    let foreign = log(&stranger, &project(&stranger), json!({"hours": 1}));
    let before = server.last_seq(&client);
    let act = |action: &str, ids: &[&String]| {
        client.post(&format!("/v1/hours/{action}"), json!({"ids": ids})).expect(200).data()
    };
    let refused = |data: &Value| -> Vec<[String; 2]> {
        let text = |value: &Value| value.as_str().unwrap().to_string();
        data["refused"].as_array().unwrap().iter().map(|one| [text(&one["id"]), text(&one["code"])]).collect()
    };
    let done = act("submit", &[&ids[0], &ids[1], &foreign]);
    assert_eq!(done["changed"], json!(ids));
    assert_eq!(refused(&done), [[foreign.as_str(), "not_found"]]);
    assert_eq!(server.events(&client, before), ["hour.submitted", "hour.submitted"]);
    let done = act("withdraw", &[&ids[0]]);
    assert_eq!((&done["changed"], &done["refused"]), (&json!([ids[0]]), &json!([])));
    assert_eq!(client.get(&format!("/v1/hours?id={}", ids[0])).data()[0]["status"], "draft");
    act("submit", &[&ids[0]]);
    let done = act("approve", &[&ids[0]]);
    assert_eq!(done["changed"], json!([ids[0]]));
    let done = act("reject", &[&ids[0], &ids[1]]);
    assert_eq!(
        (&done["changed"], refused(&done)),
        (&json!([ids[1]]), vec![[ids[0].clone(), "invalid_transition".into()]])
    );
    let status = |id: &String| client.get(&format!("/v1/hours?id={id}")).data()[0]["status"].clone();
    assert_eq!((status(&ids[0]), status(&ids[1])), (json!("approved"), json!("rejected")));
    let stays = stranger.get(&format!("/v1/hours?id={foreign}")).data()[0]["status"].clone();
    assert_eq!(stays, "draft");
    for (body, fault) in [(json!({}), "ids: required"), (json!({"ids": ["a", "a"]}), "ids: given_twice")] {
        assert_eq!(client.post("/v1/hours/approve", body).expect(422).faults(), [fault]);
    }
    let reader = server.with_scopes(&client, &["projects.read"]);
    assert_eq!(reader.post("/v1/hours/approve", json!({"ids": ids})).status, 403);
}

/// The reason stays until the hours are submitted again. Only a rejection has one.
fn a_rejection_may_have_a_reason(server: Shared) {
    let client = server.client();
    let project = project(&client);
    let path = format!("/v1/projects/{project}/hours");
    let ids = [1, 2].map(|hours| log(&client, &project, json!({"hours": hours})));
    let reason =
        |id: &String| client.get(&format!("{path}/{id}")).expect(200).data()["meta"]["rejected_reason"].clone();
    let submit = || client.post("/v1/hours/submit", json!({"ids": ids})).expect(200);
    assert_eq!(reason(&ids[0]), "");

    submit();
    let body = json!({"reason": "Which job was this?"});
    let rejected = client.post(&format!("{path}/{}/reject", ids[0]), body).expect(200).data();
    assert_eq!(
        (&rejected["status"], &rejected["meta"]["rejected_reason"]),
        (&json!("rejected"), &json!("Which job was this?"))
    );
    client.act(&format!("{path}/{}/reject", ids[1])).expect(200);
    assert_eq!([reason(&ids[0]), reason(&ids[1])], ["Which job was this?", ""]);
    client.patch(&format!("{path}/{}", ids[0]), json!({"activity_name": "Oven"})).expect(200);
    assert_eq!(reason(&ids[0]), "Which job was this?");

    submit();
    assert_eq!(reason(&ids[0]), "");
    client.post("/v1/hours/reject", json!({"ids": ids, "reason": "Twice"})).expect(200);
    assert_eq!([reason(&ids[0]), reason(&ids[1])], ["Twice", "Twice"]);
    let listed = client.get("/v1/hours?status=rejected").data();
    assert_eq!(listed[0]["meta"]["rejected_reason"], "Twice");

    submit();
    let long = json!({"ids": ids, "reason": "a".repeat(256)});
    assert_eq!(client.post("/v1/hours/reject", long).expect(422).faults(), ["reason: too_long"]);
}
