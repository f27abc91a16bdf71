//! Users of an account: inviting, changing, suspending, deleting.

use engine::record::may_become;
use kantoor::people::status::{Status, TRANSITIONS};
use serde_json::json;

use super::{invite, member, owner};
use crate::on_both;
use crate::support::{Db, Server, Shared};

on_both![
    names_of_people_are_one_line,
    a_user_is_invited_once_and_logged,
    the_last_owner_stays,
    statuses_follow_their_table,
    nobody_gives_more_than_they_have,
    a_person_may_have_several_accounts,
    a_deleted_user_leaves_no_password,
    a_user_gets_the_language_of_the_account,
];

fn a_user_is_invited_once_and_logged(server: Shared) {
    let client = server.client();
    let before = server.last_seq(&client);
    let body = json!({"email": "Anna@Jansen.example", "name": "Anna"});
    let made = client.post("/v1/users", body.clone()).expect(201);
    let data = made.data();
    assert_eq!(
        (&data["email"], &data["role"], &data["language"], &data["status"]),
        (&json!("anna@jansen.example"), &json!("member"), &json!("en"), &json!("invited"))
    );
    assert!(data.get("person_id").is_none(), "{data}");
    assert_eq!(server.events(&client, before), ["user.created", "user.invited"]);
    let again = client.post("/v1/users", body).expect(409);
    assert_eq!(again.code(), "duplicate");
    let path = format!("/v1/users/{}", made.id());
    assert_eq!(client.patch(&path, json!({"email": "x@y.example"})).expect(422).faults(), ["email: read_only"]);
    client.patch(&path, json!({"name": "Anna J.", "language": "nl", "role": "reader"})).expect(200);
    let resent = client.act(&format!("{path}/invite")).expect(200);
    assert!(resent.json()["meta"]["invite_url"].as_str().unwrap().contains("/invite/"));
    assert_eq!(client.get("/v1/users?search=anna").json()["meta"]["total"], 1);
    client.delete(&path).expect(204);
    assert_eq!(server.events(&client, before)[2..], ["user.updated", "user.invited", "user.deleted"]);
}

fn the_last_owner_stays(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let first = browser.get("/console/v1/me").expect(200).data()["user"]["id"].as_str().unwrap().to_string();
    let path = format!("/v1/users/{first}");
    // An owner who has not accepted yet does not count.
    invite(&client, "invited@a.example", "owner");
    for body in [json!({"role": "member"}), json!({"status": "suspended"})] {
        assert_eq!(client.patch(&path, body.clone()).expect(409).code(), "last_owner", "{body}");
    }
    assert_eq!(client.delete(&path).expect(409).code(), "last_owner");
    client.patch(&path, json!({"name": "Olga"})).expect(200);
    let (second, _) = member(&client, "otto@a.example", "owner");
    client.patch(&path, json!({"role": "member"})).expect(200);
    assert_eq!(
        client.patch(&format!("/v1/users/{second}"), json!({"role": "reader"})).expect(409).code(),
        "last_owner"
    );
}

fn statuses_follow_their_table(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (id, _) = invite(&client, "ina@a.example", "member");
    for from in Status::ALL {
        for to in Status::ALL {
            let (own, status) = (id.clone(), from.wire());
            let sql = "UPDATE users SET status = $1 WHERE id = $2";
            server.app.store.write_now(0, move |tx| tx.execute(sql, &[status.into(), (&own).into()])).unwrap();
            let reply = client.patch(&format!("/v1/users/{id}"), json!({"status": to.wire()}));
            let allowed = from == to || may_become(TRANSITIONS, from, to);
            assert_eq!(reply.status, if allowed { 200 } else { 409 }, "{from:?} to {to:?}: {reply:?}");
        }
    }
}

fn nobody_gives_more_than_they_have(server: Shared) {
    let client = server.client();
    let weak = server.with_scopes(&client, &["users.read", "users.write"]);
    let body = json!({"email": "ina@a.example", "name": "Ina", "role": "reader"});
    let refused = weak.post("/v1/users", body.clone()).expect(403);
    assert!(refused.text.contains("'invoices.read', which you do not have yourself"), "{}", refused.text);
    let (id, _) = invite(&client, "otto@a.example", "owner");
    let path = format!("/v1/users/{id}");
    for reply in [
        weak.patch(&path, json!({"role": "member"})),
        weak.patch(&path, json!({"status": "suspended"})),
        weak.patch(&path, json!({"name": "Somebody else"})),
        weak.patch(&path, json!({"language": "nl"})),
        weak.delete(&path),
        weak.act(&format!("{path}/invite")),
    ] {
        let reply = reply.expect(403);
        assert_eq!(reply.code(), "forbidden");
        assert!(reply.text.contains("The role 'owner' includes the scope '*'"), "{}", reply.text);
    }
    assert_eq!(client.get(&path).expect(200).data()["name"], "Ina");
    let reads: Vec<&str> =
        engine::accounts::scopes().iter().filter(|s| s.ends_with(".read")).map(String::as_str).collect();
    let stronger = server.with_scopes(&client, &[&reads[..], &["users.write"]].concat());
    let reader = format!("/v1/users/{}", stronger.post("/v1/users", body).expect(201).id());
    stronger.patch(&reader, json!({"name": "Ina B."})).expect(200);
    weak.patch(&reader, json!({"name": "Somebody else"})).expect(403);
}

fn a_person_may_have_several_accounts(db: Db) {
    let server = Server::start(db);
    let (one, other) = (server.client(), server.client());
    let (_, mut browser) = member(&one, "anna@a.example", "member");
    let (_, token) = invite(&other, "ANNA@a.example", "reader");
    // The second invitation asks for the password that the person has.
    let wrong = json!({"token": token, "password": "another password"});
    assert_eq!(browser.post("/console/accept-invite", wrong).expect(401).code(), "unauthorized");
    let entered = browser.enter("/console/accept-invite", json!({"token": token, "password": super::PASSWORD}));
    let second = entered.data()["account"]["id"].as_str().unwrap().to_string();
    assert_eq!(browser.get("/console/v1/me").data()["user"]["role"], "reader");
    // Signing in starts in the first account; the second can be named or switched to.
    let first = browser.sign_in("anna@a.example").data()["account"]["id"].clone();
    assert_ne!(first, json!(second));
    assert_eq!(browser.get("/console/v1/me").data()["user"]["role"], "member");
    let old = browser.clone();
    browser.enter("/console/account", json!({"account_id": second}));
    let me = browser.get("/console/v1/me").data();
    assert_eq!(me["account"]["id"], json!(second));
    assert_eq!((&me["accounts"][0]["id"], &me["accounts"][1]["id"]), (&first, &json!(second)));
    assert_eq!(one.get("/v1/me").data()["accounts"], json!([]));
    old.get("/console/v1/me").expect(401);
    let stranger = super::account(&server, &server.client()).uid;
    browser.post("/console/account", json!({"account_id": stranger})).expect(404);
    let named = json!({"email": "anna@a.example", "password": super::PASSWORD, "account_id": second});
    assert_eq!(browser.enter("/console/sign-in", named).data()["account"]["id"], json!(second));
}

fn a_deleted_user_leaves_no_password(db: Db) {
    let server = Server::start(db);
    let (one, other) = (server.client(), server.client());
    let (first, browser) = member(&one, "anna@a.example", "member");
    super::factors::enrol(&browser);
    let (_, token) = invite(&other, "anna@a.example", "reader");
    let there = other.get("/v1/users?email=anna@a.example").data()[0]["id"].as_str().unwrap().to_string();
    let rows = || {
        let count = |table: &str| format!("(SELECT count(*) FROM {table})");
        let sql = ["people", "second_factors", "recovery_codes"].map(count).join(" + ");
        server.app.store.read_now(move |tx| tx.int(&format!("SELECT {sql}"), &[])).unwrap()
    };
    one.delete(&format!("/v1/users/{first}")).expect(204);
    assert_eq!(rows(), 12, "she is a user of another account");
    other.delete(&format!("/v1/users/{there}")).expect(204);
    assert_eq!(rows(), 0);
    browser.post("/console/accept-invite", json!({"token": token, "password": super::PASSWORD})).expect(409);
    // She comes back as somebody new.
    member(&one, "anna@a.example", "member");
}

fn a_user_gets_the_language_of_the_account(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    client.patch("/v1/settings", json!({"language": "en"})).expect(200);
    let invite = |email: &str, language: Option<&str>| {
        let mut body = json!({"email": email, "name": "Ina"});
        if let Some(language) = language {
            body["language"] = json!(language);
        }
        let made = client.post("/v1/users", body).expect(201);
        let mails = client.get(&format!("/v1/mails?about_id={}", made.id())).expect(200).data();
        (made.data()["language"].as_str().unwrap().to_string(), mails[0]["subject"].as_str().unwrap().to_string())
    };
    assert_eq!(invite("ina@a.example", None), ("en".into(), "Invitation to Test".into()));
    assert_eq!(invite("ida@a.example", Some("nl")), ("nl".into(), "Uitnodiging voor Test".into()));
    let account = super::account(&server, &client);
    let role = kantoor::people::role::Role::Member;
    kantoor::people::operator::invite(&server.app, account, "iris@a.example", "Iris", role).unwrap();
    assert_eq!(client.get("/v1/users?email=iris@a.example").data()[0]["language"], "en");
}

/// A name is put into mail, where another line could be another sentence or another header.
fn names_of_people_are_one_line(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    for name in ["Ina\nUw account is geblokkeerd: https://evil.example", "Ina\tJ.", "Ina\u{2028}J."] {
        let body = json!({"email": "ina@a.example", "name": name, "rol": "member"});
        let refused = client.post("/v1/users", body).expect(422);
        assert_eq!(refused.faults(), ["rol: unknown_field", "name: invalid_characters"], "{name:?}");
    }
    let (id, _) = invite(&client, "ina@a.example", "member");
    let faults = client.patch(&format!("/v1/users/{id}"), json!({"name": "a\r\nb"})).expect(422).faults();
    assert_eq!(faults, ["name: invalid_characters"]);
    let identity = client.get("/v1/corporate-identities").data()[0]["id"].as_str().unwrap().to_string();
    let faults =
        client.patch(&format!("/v1/corporate-identities/{identity}"), json!({"name": "a\nb"})).expect(422).faults();
    assert_eq!(faults, ["name: invalid_characters"]);
    assert_eq!(client.patch("/v1/account", json!({"name": "a\nb"})).expect(422).faults(), ["name: invalid_characters"]);
    let token = super::set_up_token(&server, &client);
    for name in ["O\nO", "O\u{202e}O"] {
        let body = json!({"token": token, "email": "o@a.example", "name": name, "password": super::PASSWORD});
        let refused = super::Browser::new(&client).post("/console/set-up", body).expect(422);
        assert_eq!(refused.faults(), ["name: invalid_characters"]);
    }
    // What shows nothing but makes a name look like another one.
    let key = json!({"name": "Shop", "scopes": ["products.read"]});
    let key = client.post("/v1/api-keys", key).expect(201).id();
    for name in ["Jan\u{202e}nesn", "\u{2066}Jan\u{2069}", "Jan\u{200b}sen", "Jan\u{feff}", "J\u{ad}an"] {
        let new = json!({"email": "x@a.example", "name": name, "role": "reader"});
        for refused in [
            client.post("/v1/users", new),
            client.patch(&format!("/v1/users/{id}"), json!({"name": name})),
            client.post("/v1/api-keys", json!({"name": name, "scopes": ["products.read"]})),
            client.patch(&format!("/v1/api-keys/{key}"), json!({"name": name})),
            client.patch("/v1/account", json!({"name": name})),
        ] {
            assert_eq!(refused.expect(422).faults(), ["name: invalid_characters"], "{name:?}");
        }
    }
    client.patch(&format!("/v1/users/{id}"), json!({"name": "علی\u{200c}رضا 👩\u{200d}👧"})).expect(200);
}
