//! When users were last there, and who has a screen open.

use serde_json::json;

use super::{Browser, member, owner};
use crate::on_both;
use crate::support::{Db, Server};

on_both![the_last_use_of_a_session_is_shown, people_on_one_screen_see_each_other,];

fn the_last_use_of_a_session_is_shown(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let olga = owner(&server, &client, "olga@a.example");
    let (ina, _) = member(&client, "ina@a.example", "member");
    client.post("/v1/users", json!({"email": "new@a.example", "name": "New"})).expect(201);
    let me = olga.get("/console/v1/me").data()["user"]["id"].clone();
    let seen = olga.get("/console/v1/users/access").expect(200).data();
    assert_eq!((seen.as_array().unwrap().len(), &seen[0]["user_id"], &seen[1]["user_id"]), (3, &me, &json!(ina)));
    assert!(seen[1]["last_seen_at"].as_str().unwrap().ends_with('Z'), "{seen}");
    assert_eq!((&seen[2]["last_seen_at"], &seen[0]["two_factor"]), (&json!(""), &json!(false)));
    // Those of another account are not shown.
    assert_eq!(server.client().get("/v1/users/access").expect(200).data(), json!([]));
}

fn people_on_one_screen_see_each_other(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let olga = owner(&server, &client, "olga@a.example");
    let (_, ina) = member(&client, "ina@a.example", "reader");
    let before = server.last_seq(&client);
    let here = |person: &Browser, address: &str| {
        let body = json!({"address": address}).to_string();
        person.send("PATCH", "/console/v1/me/here", &body).expect(200).data()["others"].clone()
    };
    assert_eq!(here(&olga, "/tickets/7"), json!([]));
    assert_eq!(here(&ina, "/tickets/7"), json!(["Olga Owner"]));
    assert_eq!(here(&olga, "/tickets/7"), json!(["Ina"]));
    assert_eq!(here(&ina, "/tickets/8"), json!([]));
    assert_eq!(server.last_seq(&client), before, "an open screen is no event");
    // Somebody who has left is forgotten.
    server.execute("UPDATE presences SET until = 0");
    assert_eq!(here(&olga, "/tickets/7"), json!([]));
    // Other accounts have screens of their own, and a key has none.
    let other = server.client();
    assert_eq!(here(&owner(&server, &other, "otto@b.example"), "/tickets/7"), json!([]));
    assert!(client.patch("/v1/me/here", json!({"address": "/"})).expect(403).text.contains("a key has none"));
}
