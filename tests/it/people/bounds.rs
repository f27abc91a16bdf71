//! What of signing in has an end or a maximum: sessions that move to another account, tokens, enrolments; and the account
//! that a link for a new password is mailed through.

use ::mail::sink::Sink;
use engine::clock::Moment;
use kantoor::people::{factor, operator, role::Role};
use serde_json::json;

use super::factors::{enrol, first_step};
use super::signing_in::{mailed, use_sink, work_off};
use super::{Browser, PASSWORD, account, invite, owner, token};
use crate::on_both;
use crate::support::{Client, Db, Server};

on_both![
    switching_accounts_does_not_prolong_a_session,
    a_reset_is_mailed_through_an_account_that_sends,
    tokens_of_the_second_step_do_not_pile_up,
    an_enrolment_that_was_not_completed_is_deleted,
];

fn count(server: &Server, sql: &'static str) -> i64 {
    server.app.store.read_now(|tx| tx.int(sql, &[])).unwrap()
}

fn switching_accounts_does_not_prolong_a_session(db: Db) {
    let server = Server::start(db);
    let (client, other) = (server.client(), server.client());
    let mut browser = owner(&server, &client, "olga@a.example");
    let (_, invitation) = invite(&other, "olga@a.example", "member");
    Browser::new(&other).enter("/console/accept-invite", json!({"token": invitation, "password": PASSWORD}));
    let days_pass = |days: i64| {
        server.rewrite(&format!("UPDATE sessions SET created_at = created_at - {}", days * 24 * 3600 * 1000));
    };
    days_pass(89);
    let switched = browser.enter("/console/account", json!({"account_id": account(&server, &other).uid}));
    assert_eq!(switched.data()["user"]["role"], "member");
    days_pass(2);
    browser.get("/console/v1/me").expect(401);
}

/// Not through an account with a test clock, whose mail is recorded. One that has used up its quota sends it all the same.
fn a_reset_is_mailed_through_an_account_that_sends(db: Db) {
    let sink = Sink::start().unwrap();
    let server = Server::with(db, |config| {
        use_sink(config, &sink);
        config.quota_mails_per_day = 1;
    });
    let recorded = server.recorded_client(Moment::parse("2026-05-04T10:00:00Z"));
    owner(&server, &recorded, "olga@a.example");
    let join = |client: &Client| {
        let own = account(&server, client);
        let link = operator::invite(&server.app, own, "olga@a.example", "Olga", Role::Member).unwrap();
        let body = json!({"token": token(&link), "password": PASSWORD});
        Browser::new(client).enter("/console/accept-invite", body);
    };
    let (full, open) = (server.client(), server.client());
    join(&full);
    join(&open);
    full.post("/v1/users", json!({"email": "ina@a.example", "name": "Ina"})).expect(201);
    work_off(&server);
    Browser::new(&open).post("/console/forgot", json!({"email": "olga@a.example"})).expect(200);
    work_off(&server);
    let link = mailed(&sink, 2, "https://kantoor.example/reset/");
    let requested = [&recorded, &full, &open].map(|client| {
        let events = server.events(client, 0);
        events.iter().filter(|event| *event == "user.reset_requested").count()
    });
    assert_eq!(requested, [0, 1, 0]);
    assert_eq!(full.get("/v1/settings/usage").data()["mails_today"], 1);
    Browser::new(&open).enter("/console/reset", json!({"token": link, "password": "battery staple horse"}));
}

fn tokens_of_the_second_step_do_not_pile_up(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    enrol(&browser);
    let tokens = || count(&server, "SELECT count(*) FROM one_time_tokens WHERE purpose = 'second_step'");
    for _ in 0..3 {
        first_step(&browser, "olga@a.example");
    }
    assert_eq!(tokens(), 3, "somebody may sign in on several devices at a time");
    server.rewrite("UPDATE one_time_tokens SET expires_at = 1");
    first_step(&browser, "olga@a.example");
    assert_eq!(tokens(), 1);
}

fn an_enrolment_that_was_not_completed_is_deleted(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    enrol(&browser);
    browser.send("POST", "/console/factors/app", "").expect(200);
    let purge = || {
        let caller = server.app.acting_in(client.account, "test").unwrap();
        let purged = server.app.store.write_now(client.account, move |tx| {
            let ctx = caller.writing(tx)?;
            factor::purge(tx, &ctx)
        });
        purged.unwrap()
    };
    assert_eq!(purge(), 0);
    server.execute("UPDATE second_factors SET created_at = created_at - 3600001");
    assert_eq!(purge(), 1);
    assert_eq!(count(&server, "SELECT count(*) FROM second_factors WHERE confirmed_at > 0"), 1);
}
