//! What lets people in without a password: sessions and links that work once, added or changed with SQL.

use engine::accounts;
use engine::contents::hex;
use serde_json::json;

use super::{spoil, stop, verify};
use crate::cli::kantoor;
use crate::on_both;
use crate::people::{Browser, PASSWORD, commands, token};
use crate::server::Binary;
use crate::support::Db;

on_both![sessions_and_links_are_marked, forged_sessions_and_links_open_nothing,];

fn sessions_and_links_are_marked(db: Db) {
    let mut binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let mut browser = Browser::new(&binary.client);
    let set_up = token(&commands::link(&binary.said()));
    let owner = json!({"token": set_up, "email": "o@a.example", "name": "O", "business": "Ster", "password": PASSWORD});
    browser.enter("/console/set-up", owner);
    browser.post("/console/confirm", json!({"password": PASSWORD})).expect(204);
    let invited = binary.client.post("/v1/users", json!({"email": "i@a.example", "name": "I", "role": "member"}));
    invited.expect(201);
    stop(&mut binary);
    let (good, words) = verify(&db, &[]);
    assert!(good, "{words}");
    let is_sqlite = db.url.is_empty();
    let hash = if is_sqlite { "x'00'" } else { "'\\x00'::BYTEA" };
    let copied = |table: &str, columns: &str| {
        format!("INSERT INTO {table} (hash, {columns}, mark) SELECT {hash}, {columns}, mark FROM {table}")
    };
    let (of_session, of_link) = (
        "account_id, user_id, person_id, created_at, seen_at, browser, address, via, confirmed_at",
        "account_id, purpose, user_id, created_at, expires_at, used_at",
    );
    let added = copied("sessions", of_session).replacen("hash,", "id, hash,", 1).replacen("SELECT", "SELECT 'x',", 1);
    let added_link = copied("one_time_tokens", of_link) + " WHERE used_at = 0";
    let unlink = format!("DELETE FROM one_time_tokens WHERE hash = {hash}");
    let (session, link) = ("sessions  ", "one_time_tokens  ");
    for (harm, undo, table) in [
        (added.as_str(), "DELETE FROM sessions WHERE id = 'x'", session),
        ("UPDATE sessions SET user_id = 'x' || user_id", "UPDATE sessions SET user_id = substr(user_id, 2)", session),
        (
            "UPDATE sessions SET confirmed_at = confirmed_at + 1",
            "UPDATE sessions SET confirmed_at = confirmed_at - 1",
            session,
        ),
        ("UPDATE sessions SET created_at = created_at + 1", "UPDATE sessions SET created_at = created_at - 1", session),
        (added_link.as_str(), unlink.as_str(), link),
        (
            "UPDATE one_time_tokens SET purpose = 'sign_in' WHERE purpose = 'invite'",
            "UPDATE one_time_tokens SET purpose = 'invite' WHERE purpose = 'sign_in'",
            link,
        ),
        (
            "UPDATE one_time_tokens SET expires_at = expires_at + 1",
            "UPDATE one_time_tokens SET expires_at = expires_at - 1",
            link,
        ),
        // One that was used is set back.
        (
            "UPDATE one_time_tokens SET used_at = 0 WHERE purpose = 'set_up'",
            "UPDATE one_time_tokens SET used_at = 1 WHERE purpose = 'set_up'",
            link,
        ),
    ] {
        spoil(&db, harm);
        let (good, words) = verify(&db, &[]);
        let named = words.lines().any(|line| line.contains(table) && line.contains("added or changed outside"));
        assert!(!good && named, "{harm}: {words}");
        // Nor does a new key accept it.
        assert!(kantoor(&db, &["secrets", "rotate"]).status.success());
        assert!(!verify(&db, &[]).0, "{harm}");
        spoil(&db, undo);
        let (good, words) = verify(&db, &[]);
        assert!(good, "{undo}: {words}");
    }
    spoil(&db, &added);
    assert!(kantoor(&db, &["secrets", "trust"]).status.success());
    assert!(verify(&db, &[]).0, "the operator accepts it");
}

/// Whoever can write to the database knows the secrets of the rows that they add.
fn forged_sessions_and_links_open_nothing(db: Db) {
    let mut binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let mut browser = Browser::new(&binary.client);
    let set_up = token(&commands::link(&binary.said()));
    let owner = json!({"token": set_up, "email": "o@a.example", "name": "O", "business": "Ster", "password": PASSWORD});
    browser.enter("/console/set-up", owner);
    let made = binary.client.post("/v1/users", json!({"email": "i@a.example", "name": "I", "role": "member"}));
    let invited = token(made.expect(201).json()["meta"]["invite_url"].as_str().unwrap());
    let hash = |secret: &str| {
        let hash = hex(&accounts::hash(secret));
        if db.url.is_empty() { format!("x'{hash}'") } else { format!("'\\x{hash}'::BYTEA") }
    };
    let (session, link) = ("a".repeat(64), "b".repeat(64));
    let of_session = "account_id, user_id, person_id, created_at, seen_at, browser, address, via, confirmed_at, mark";
    let of_link = "account_id, purpose, user_id, created_at, expires_at, used_at, mark";
    spoil(
        &db,
        &format!(
            "INSERT INTO sessions (id, hash, {of_session}) SELECT 'x', {}, {of_session} FROM sessions",
            hash(&session)
        ),
    );
    spoil(
        &db,
        &format!(
            "INSERT INTO one_time_tokens (hash, {of_link}) SELECT {}, {of_link} FROM one_time_tokens WHERE used_at = 0",
            hash(&link)
        ),
    );
    let name = browser.cookie.split_once('=').unwrap().0;
    let forged = Browser { cookie: format!("{name}={session}"), ..browser.clone() };
    let accept = |token: &str| {
        Browser::new(&binary.client).post("/console/accept-invite", json!({"token": token, "password": PASSWORD}))
    };
    for _ in 0..3 {
        forged.get("/console/v1/me").expect(401);
        let refused = accept(&link).expect(409);
        assert!(refused.code() == "link_invalid" && refused.text.contains("is unknown"), "{refused:?}");
    }
    browser.get("/console/v1/me").expect(200);
    // One that is made stronger opens nothing either.
    spoil(&db, "UPDATE sessions SET confirmed_at = confirmed_at + 900000 WHERE id <> 'x'");
    std::thread::sleep(std::time::Duration::from_millis(600));
    browser.get("/console/v1/me").expect(401);
    accept(&invited).expect(200);
    let warned = binary.said().matches("so it opens nothing").count();
    assert_eq!(warned, 3, "once for each: {}", binary.said());
    stop(&mut binary);
}
