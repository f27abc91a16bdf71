//! Rows that no log line shows, deleted or added with SQL.

use serde_json::json;

use super::{business, spoil, stop, verify};
use crate::cli::{kantoor, said};
use crate::on_both;
use crate::people::{Browser, PASSWORD, commands, token};
use crate::server::Binary;
use crate::support::Db;

on_both![
    deleted_rows_are_named_and_accepted,
    an_added_account_is_named,
    a_value_that_was_zero_is_compared,
    an_unknown_time_zone_hides_nothing_of_its_account,
];

/// What people sign in with, replaced secrets and the row of the account, deleted or changed; and accepted by the operator.
fn deleted_rows_are_named_and_accepted(db: Db) {
    let mut binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let secret = binary.client.key.clone();
    let mut browser = Browser::new(&binary.client);
    let (first, password) = (token(&commands::link(&binary.said())), PASSWORD);
    let owner = json!({"token": first, "email": "o@a.example", "name": "O", "business": "Ster", "password": password});
    browser.enter("/console/set-up", owner);
    let key = binary.client.post("/v1/api-keys", json!({"name": "Shop", "scopes": ["products.read"]})).expect(201);
    binary.client.act(&format!("/v1/api-keys/{}/rotate", key.id())).expect(200);
    spoil(&db, "UPDATE people SET password = 'x' || password");
    let entered = browser.post("/console/sign-in", json!({"email": "o@a.example", "password": password}));
    assert_eq!(entered.status, 401, "nothing matches a damaged hash: {}", entered.text);
    spoil(&db, "DELETE FROM old_key_secrets");
    spoil(&db, "DELETE FROM people");
    // Nobody is let in, and nothing fails.
    let entered = browser.post("/console/sign-in", json!({"email": "o@a.example", "password": password}));
    assert_eq!(entered.status, 401, "{}", entered.text);
    let user = binary.client.get("/v1/users").expect(200).data()[0]["id"].as_str().unwrap().to_string();
    for (path, body) in [
        ("/console/forgot", json!({"email": "o@a.example"})),
        ("/console/confirm", json!({"password": password})),
        ("/console/password", json!({"current_password": password, "password": "battery staple horse"})),
        ("/console/factors/app", json!({})),
    ] {
        let reply = browser.post(path, body);
        assert!(reply.status < 500, "{path}: {reply:?}");
    }
    for reply in [
        browser.get("/console/v1/me"),
        browser.get("/two-factor"),
        binary.client.get(&format!("/v1/users/{user}")),
        binary.client.act(&format!("/v1/users/{user}/remove-two-factor")),
        binary.client.act(&format!("/v1/users/{user}/invite")),
        binary.client.patch(&format!("/v1/users/{user}"), json!({"name": "P"})),
    ] {
        assert!(reply.status < 500, "{reply:?}");
    }
    stop(&mut binary);
    spoil(&db, "UPDATE accounts SET name = 'Star', closed_at = 1");
    let (good, words) = verify(&db, &[]);
    let named = [
        "PROBLEM: The old secret of this key was deleted outside the log",
        "PROBLEM: Deleted outside the log: the user ",
        "Changed outside the log: name is \"Star\", but the log says \"Ster\"",
        "the account is closed, but the log says that it is open",
    ];
    assert!(!good && named.iter().all(|name| words.contains(name)), "{words}");
    let trusted = kantoor(&db, &["secrets", "trust"]);
    assert!(trusted.status.success(), "{}", String::from_utf8_lossy(&trusted.stderr));
    let (good, words) = verify(&db, &[]);
    assert!(good, "the operator accepted it: {words}");
    spoil(&db, "UPDATE accounts SET closed_at = 0");
    assert!(kantoor(&db, &["secrets", "trust"]).status.success());
    let (good, words) = verify(&db, &[]);
    assert!(good, "{words}");

    let binary = Binary::start(&db, &secret, &["--set", "workers=0"]);
    for name in ["account.updated", "account.closed", "account.reopened"] {
        let told = binary.client.get(&format!("/v1/changes?type={name}&order=desc")).expect(200).data();
        assert_eq!(told[0]["actor_type"], "operator", "{name}: {told}");
    }
    assert!(binary.client.get(&format!("/v1/api-keys/{}", key.id())).data()["old_secret_until"].is_null());
    let old = Browser { client: binary.client.clone(), ..browser };
    old.get("/console/v1/me").expect(401);
    let reset = said(&kantoor(&db, &["user", "reset", "o@a.example"]));
    let reset = token(&commands::link(&reset));
    let mut browser = Browser::new(&binary.client);
    browser.enter("/console/reset", json!({"token": reset, "password": password}));
    browser.get("/console/v1/me").expect(200);
}

fn an_added_account_is_named(db: Db) {
    business(&db);
    spoil(
        &db,
        "INSERT INTO accounts (id, uid, name, zone, created_at, test_clock)
         SELECT id + 10, 'a0000000-0000-7000-8000-000000000001', 'Mine', zone, created_at, 0 FROM accounts WHERE id = 1",
    );
    let (good, words) = verify(&db, &[]);
    assert!(!good && words.contains("PROBLEM: The account was added outside the program"), "{words}");
    assert!(!words.contains("signed head was deleted"), "{words}");
    // One that the program creates now is not signed either, but is no intruder.
    assert!(kantoor(&db, &["account", "create", "Third"]).status.success());
    let (_, words) = verify(&db, &[]);
    assert_eq!(words.matches("was added outside the program").count(), 1, "{words}");
    assert!(words.contains("The account is not in the signed list of accounts"), "{words}");
    assert!(kantoor(&db, &["secrets", "trust"]).status.success());
    let (good, words) = verify(&db, &[]);
    assert!(good, "the operator accepted it: {words}");
}

/// A zero in the log is a value like any other, also where `null` resets a field.
fn a_value_that_was_zero_is_compared(db: Db) {
    let mut binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let firm = binary.client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    binary.client.post("/v1/deals", json!({"title": "Oven", "client_id": firm})).expect(201);
    binary.client.patch("/v1/settings", json!({"quote_silent_days": 0})).expect(200);
    stop(&mut binary);
    for (harm, undo, name) in [
        ("UPDATE deals SET amount = 100", "UPDATE deals SET amount = 0", "Changed outside the log: amount is "),
        (
            "UPDATE settings SET quote_silent_days = 9",
            "UPDATE settings SET quote_silent_days = 0",
            "Changed outside the log: quote_silent_days is 9, but the last line of the log says 0",
        ),
    ] {
        spoil(&db, harm);
        let (good, words) = verify(&db, &[]);
        assert!(!good && words.contains(name), "{harm}: no {name:?} in\n{words}");
        spoil(&db, undo);
        let (good, words) = verify(&db, &[]);
        assert!(good, "{harm}: {words}");
    }
}

/// Also if only that account is verified.
fn an_unknown_time_zone_hides_nothing_of_its_account(db: Db) {
    let mut binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let account = binary.client.get("/v1/account").expect(200).data()["id"].as_str().unwrap().to_string();
    stop(&mut binary);
    let only = ["--account", account.as_str()];
    let (good, words) = verify(&db, &only);
    assert!(good, "{words}");
    spoil(&db, "UPDATE accounts SET zone = 'Mars/Olympus', name = 'x' || name, closed_at = 1");
    for arguments in [&only[..0], &only[..]] {
        let (good, words) = verify(&db, arguments);
        let named = [
            "PROBLEM: time zone Mars/Olympus is not known",
            "PROBLEM: Changed outside the log: name is ",
            "the account is closed, but the log says that it is open",
        ];
        assert!(!good && named.iter().all(|name| words.contains(name)), "{words}");
        assert!(words.contains("Checked 1 account,") && !words.contains("time_zone is"), "{words}");
    }
}
