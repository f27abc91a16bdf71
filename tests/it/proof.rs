//! The log as proof: who did what, and what `kantoor verify` finds when somebody changed it.

use engine::accounts::Account;
use serde_json::{Value, json};

use crate::on_both;
use crate::people::member;
use crate::support::{Client, Db, Server};

on_both![every_actor_has_a_type_and_a_name,];

/// Returns the events after `seq`.
fn changes(client: &Client, seq: i64) -> Vec<Value> {
    client.get(&format!("/v1/changes?after={seq}&limit=1000")).expect(200).data().as_array().unwrap().clone()
}

fn every_actor_has_a_type_and_a_name(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let key = client.get("/v1/me").data()["key"]["id"].as_str().unwrap().to_string();
    let (user, browser) = member(&client, "ina@a.example", "member");
    let name = client.get(&format!("/v1/users/{user}")).data()["name"].clone();
    browser.post("/console/v1/tasks", json!({"title": "By a user"})).expect(201);
    let steps = json!([{"type": "create_task", "title": "By a flow"}]);
    let flow = json!({"name": "Remind", "trigger_type": "custom", "trigger_key": "x", "steps": steps});
    let flow = client.post("/v1/automation/flows", flow).expect(201).id();
    client.post("/v1/automation/trigger", json!({"event": "x", "data": {}})).expect(200);
    client.post("/v1/test-clock/advance", json!({"to": "2026-05-05T10:00:00Z"})).expect(200);
    let number = client.account;
    let account = server.app.store.read_now(move |tx| Account::numbered(tx, number)).unwrap();
    let app = server.app.clone();
    let invited = server.apart(move || {
        kantoor::people::operator::invite(&app, account, "o@a.example", "Ola", kantoor::people::role::Role::Reader)
    });
    server.block_on(invited).unwrap().unwrap();
    let quote = json!({"title": "Q", "generation_mode": "final", "rows": [{"name": "x", "unit_price": 1}]});
    let page = client.post("/v1/quotes", quote).expect(201).data()["web_url"].as_str().unwrap().to_string();
    client.send("GET", &page[page.find("/d/").unwrap()..], &[("authorization", "")], "").expect(200);

    let seen = changes(&client, 0);
    let actor = |wanted: &dyn Fn(&Value) -> bool| {
        let found = seen.iter().find(|change| wanted(change)).unwrap();
        (found["actor_type"].clone(), found["actor"].clone(), found["actor_name"].clone())
    };
    let titled = |title: &'static str| move |change: &Value| change["data"]["title"] == title;
    assert_eq!(actor(&|change| change["type"] == "quote.created"), (json!("key"), json!(key), json!("first key")));
    assert_eq!(actor(&titled("By a user")), (json!("user"), json!(user), name));
    assert_eq!(actor(&titled("By a flow")), (json!("flow"), json!(format!("flow {flow}")), json!("Remind")));
    let invited = |change: &Value| change["type"] == "user.created" && change["data"]["email"] == "o@a.example";
    assert_eq!(actor(&invited), (json!("operator"), json!("operator"), json!("operator")));
    assert_eq!(actor(&|change| change["actor"] == "visitor").0, "visitor");
    assert_eq!(actor(&|change| change["seq"] == 1).0, "job");
    assert!(seen.iter().all(|change| change["actor_name"] != ""));

    // Lines of earlier versions have neither; their type follows from the actor.
    server.execute(&format!("UPDATE log SET actor_type = '', actor_name = '' WHERE account_id = {number}"));
    for (new, old) in seen.iter().zip(changes(&client, 0)).filter(|(new, _)| new["actor_type"] != "user") {
        assert_eq!((&new["actor_type"], &old["actor_name"]), (&old["actor_type"], &json!("")), "{new}");
    }
}
