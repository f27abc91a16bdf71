//! Sign-ins that failed are counted, logged and shown to the owners of the account.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::factors::{enrol, first_step, second_step};
use super::{Browser, PASSWORD, invite, member, owner};
use crate::failover::until;
use crate::on_both;
use crate::server::Binary;
use crate::support::{Client, Db, Server};

on_both![
    owners_see_which_sign_ins_failed,
    other_accounts_see_no_addresses,
    a_flood_stores_a_limited_number_of_rows,
    the_log_names_the_address_and_no_secret,
];

fn fail(client: &Client, address: &str, email: &str) {
    let headers = [("sec-fetch-site", "same-origin"), ("x-forwarded-for", address)];
    let body = json!({"email": email, "password": "a wrong password"}).to_string();
    Browser::new(client).send_with("POST", "/console/sign-in", &headers, &body).expect(401);
}

fn failed(browser: &Browser) -> Vec<Value> {
    browser.get("/console/v1/users/failed-sign-ins").expect(200).data().as_array().unwrap().clone()
}

fn count(failed: &[Value]) -> i64 {
    failed.iter().filter_map(|one| one["count"].as_i64()).sum()
}

fn rows(server: &Server) -> i64 {
    server.app.store.read_now(|tx| tx.int("SELECT count(*) FROM sign_in_failures", &[])).unwrap()
}

fn behind_a_proxy(db: Db) -> Server {
    Server::with(db, |config| {
        config.public_limit_per_minute = 0;
        config.trusted_proxies = "127.0.0.1".to_string();
    })
}

fn owners_see_which_sign_ins_failed(db: Db) {
    let server = behind_a_proxy(db);
    let client = server.client();
    let olga = owner(&server, &client, "olga@a.example");
    let (id, ina) = member(&client, "ina@a.example", "member");
    invite(&client, "new@a.example", "member");
    let before = server.metric("kantoor_sign_ins_failed_total{reason=\"password\"}");
    for email in ["ina@a.example", "Ina@a.example", "nobody@a.example", "new@a.example"] {
        fail(&client, "203.0.113.9", email);
    }
    assert_eq!(server.metric("kantoor_sign_ins_failed_total{reason=\"password\"}"), before + 4);
    // Those of an hour are one row.
    until("both are stored", || count(&failed(&olga)) == 2);
    for one in failed(&olga) {
        assert_eq!(
            (&one["user_id"], &one["reason"], &one["address"]),
            (&json!(id), &json!("password"), &json!("203.0.113.9"))
        );
    }
    // The second step counts as well.
    enrol(&olga);
    let token = first_step(&olga, "olga@a.example");
    second_step(&olga, &token, "000000").expect(401);
    until("the code is stored", || failed(&olga).iter().any(|one| one["reason"] == "code"));
    assert_eq!(server.metric("kantoor_sign_ins_failed_total{reason=\"code\"}"), 1);
    // Only owners see them, those of their own account.
    ina.get("/console/v1/users/failed-sign-ins").expect(403);
    let other = server.client();
    assert!(failed(&owner(&server, &other, "otto@b.example")).is_empty());
    // They go with the person, and after two weeks.
    client.delete(&format!("/v1/users/{id}")).expect(204);
    until("one is left", || rows(&server) == 2);
    let purge = || {
        let caller = server.app.acting_in(client.account, "test").unwrap();
        let purged = server.app.store.write_now(client.account, move |tx| {
            let ctx = caller.writing(tx)?;
            kantoor::people::failures::purge(tx, &ctx)
        });
        purged.unwrap()
    };
    assert_eq!(purge(), 0);
    server.execute("UPDATE sign_in_failures SET last_at = last_at - 14 * 24 * 3600 * 1000 - 1");
    assert!(failed(&olga).is_empty());
    assert_eq!((purge(), rows(&server)), (2, 0));
}

fn other_accounts_see_no_addresses(db: Db) {
    let server = behind_a_proxy(db);
    let (client, other) = (server.client(), server.client());
    let olga = owner(&server, &client, "olga@a.example");
    let otto = owner(&server, &other, "otto@b.example");
    member(&client, "ina@a.example", "bookkeeper");
    let (_, link) = invite(&other, "ina@a.example", "bookkeeper");
    fail(&client, "203.0.113.9", "ina@a.example");
    until("it is stored", || failed(&olga).len() == 1);
    // Anybody can invite her.
    assert_eq!(failed(&olga)[0]["address"], "203.0.113.9");
    assert!(failed(&otto).is_empty());
    Browser::new(&other).enter("/console/accept-invite", json!({"token": link, "password": PASSWORD}));
    for browser in [&olga, &otto] {
        let all = failed(browser);
        assert_eq!((all.len(), &all[0]["address"], &all[0]["count"]), (1, &json!(""), &json!(1)), "{all:?}");
    }
    // Those from other addresses could not be told apart: they are the same row, unless they are of another hour.
    for address in ["203.0.113.10", "203.0.113.11"] {
        fail(&client, address, "ina@a.example");
    }
    until("all are counted", || count(&failed(&olga)) == 3);
    for browser in [&olga, &otto] {
        let all = failed(browser);
        let hours: HashSet<String> = all.iter().map(|one| one["last_at"].as_str().unwrap()[..13].to_string()).collect();
        assert_eq!((all.len(), count(&all)), (hours.len(), 3), "{all:?}");
    }
}

fn a_flood_stores_a_limited_number_of_rows(db: Db) {
    let server = behind_a_proxy(db);
    let client = server.client();
    let olga = owner(&server, &client, "olga@a.example");
    server.execute(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
         INSERT INTO sign_in_failures (id, person_id, reason, address, attempts, last_at)
         SELECT 'a' || i, (SELECT id FROM people), 'password', '192.0.2.' || i, 1, 1 FROM n",
    );
    for address in 1..=5 {
        fail(&client, &format!("203.0.113.{address}"), "olga@a.example");
    }
    until("all are counted", || count(&failed(&olga)) == 5);
    // They may be of two hours.
    assert!(rows(&server) <= 102, "{}", rows(&server));
    assert!(failed(&olga).iter().all(|one| one["address"] == ""));
}

fn the_log_names_the_address_and_no_secret(db: Db) {
    let binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let body = json!({"email": "hunter2hunter2@a.example", "password": "a wrong password"});
    Browser::new(&binary.client).post("/console/sign-in", body).expect(401);
    until("it is logged", || binary.said().contains("A sign-in failed"));
    let said = binary.said();
    let line = said.lines().find(|line| line.contains("A sign-in failed")).unwrap();
    assert!(line.contains("127.0.0.1") && line.contains("password"), "{line}");
    assert!(!said.contains("a wrong password") && !said.contains("hunter2"), "{said}");
}
