//! Links that work once are in the mail that is sent, and nowhere else.

use std::time::Duration;

use ::mail::sink::Sink;
use engine::clock::Moment;
use serde_json::{Value, json};

use super::signing_in::{mailed, work_off};
use super::{Browser, PASSWORD, use_sink};
use crate::on_both;
use crate::support::{Client, Db, Server};

on_both![
    a_link_is_not_in_the_database,
    a_mail_that_failed_keeps_its_link_until_it_expires,
    a_sealed_account_shows_its_mail,
    an_invited_person_replaces_a_password_that_somebody_else_chose,
];

/// Returns the texts of all mails, and how many links wait.
fn stored(server: &Server) -> (String, i64) {
    let read = |tx: &mut store::Tx| {
        let texts = tx.all("SELECT body || html FROM mails ORDER BY id", &[], |row| {
            Ok::<_, store::Error>(row.text(0)?.to_string())
        })?;
        Ok::<_, store::Error>((texts.concat(), tx.int("SELECT count(*) FROM mail_links", &[])?))
    };
    server.app.store.read_now(read).unwrap()
}

fn mail_of(client: &Client, user: &str) -> Value {
    let listed = client.get(&format!("/v1/mails?about_id={user}")).expect(200).data();
    client.get(&format!("/v1/mails/{}", listed[0]["id"].as_str().unwrap())).expect(200).data()
}

fn a_link_is_not_in_the_database(db: Db) {
    let sink = Sink::start().unwrap();
    let server = Server::with(db, |config| use_sink(config, &sink));
    let client = server.client();
    let made = client.post("/v1/users", json!({"email": "ina@a.example", "name": "Ina"})).expect(201);
    let (texts, waiting) = stored(&server);
    assert!(texts.contains("https://kantoor.example/invite/…") && waiting == 1, "{texts}");
    let link = "SELECT link FROM mail_links";
    let link =
        server.app.store.read_now(move |tx| tx.first(link, &[], |row| Ok::<_, store::Error>(row.text(0)?.to_string())));
    assert!(link.unwrap().unwrap().starts_with("enc:"));
    assert!(mail_of(&client, &made.id())["text"].as_str().unwrap().contains("/invite/…"));
    work_off(&server);
    let token = mailed(&sink, 1, "https://kantoor.example/invite/");
    assert_eq!(token.len(), 64);
    let (texts, waiting) = stored(&server);
    assert!(!texts.contains(&token) && waiting == 0, "{texts}");
    assert!(mail_of(&client, &made.id())["text"].as_str().unwrap().contains("/invite/…"));
    let mut browser = Browser::new(&client);
    browser.enter("/console/accept-invite", json!({"token": token, "password": PASSWORD}));
    browser.post("/console/forgot", json!({"email": "ina@a.example"})).expect(200);
    work_off(&server);
    let token = mailed(&sink, 2, "https://kantoor.example/reset/");
    let (texts, waiting) = stored(&server);
    assert!(texts.contains("https://kantoor.example/reset/…") && !texts.contains(&token) && waiting == 0, "{texts}");
    // The text of a mail is for those who may read what it is about.
    let id = client.get("/v1/mails").data()[0]["id"].as_str().unwrap().to_string();
    server.with_scopes(&client, &["invoices.read"]).get(&format!("/v1/mails/{id}")).expect(404);
    server.client().get(&format!("/v1/mails/{id}")).expect(404);
}

fn a_mail_that_failed_keeps_its_link_until_it_expires(db: Db) {
    let sink = Sink::start().unwrap();
    let server = Server::with(db, |config| use_sink(config, &sink));
    let client = server.client();
    let made = client.post("/v1/users", json!({"email": "ina@a.example", "name": "Ina"})).expect(201);
    server.execute("DELETE FROM jobs WHERE kind = 'deliver'");
    server.execute("UPDATE deliveries SET status = 'failed'");
    let mail = mail_of(&client, &made.id());
    let path = format!("/v1/mails/{}/retry", mail["id"].as_str().unwrap());
    assert!(mail["text"].as_str().unwrap().contains("/invite/…"), "{mail}");
    client.act(&path).expect(200);
    work_off(&server);
    assert_eq!(mailed(&sink, 1, "https://kantoor.example/invite/").len(), 64);
    // Without its link, it is of no use.
    server.execute("UPDATE deliveries SET status = 'failed'");
    let refused = client.act(&path).expect(409);
    assert!(refused.text.contains("The link in this mail no longer works."), "{}", refused.text);
    client.act(&format!("/v1/users/{}/invite", made.id())).expect(200);
    server.execute("UPDATE mail_links SET expires_at = 1");
    let caller = server.app.acting_in(client.account, "kantoor").unwrap();
    let purged = server.app.store.write_now(client.account, move |tx| {
        let ctx = caller.writing(tx)?;
        engine::registry::registry().purges.iter().try_for_each(|purge| purge(tx, &ctx).map(drop))
    });
    purged.unwrap();
    assert_eq!(stored(&server).1, 0);
    assert_eq!(sink.wait(2, Duration::from_millis(100)).len(), 1);
}

/// Whoever has a test account can accept an invitation that nobody received, and so choose the password of any address.
fn an_invited_person_replaces_a_password_that_somebody_else_chose(db: Db) {
    let sink = Sink::start().unwrap();
    let server = Server::with(db, |config| use_sink(config, &sink));
    let sealed = server.recorded_client(Moment::parse("2026-05-04T10:00:00Z"));
    let made = sealed.post("/v1/users", json!({"email": "ina@a.example", "name": "Ina"})).expect(201);
    let link = made.json()["meta"]["invite_url"].as_str().unwrap().to_string();
    Browser::new(&sealed).enter("/console/accept-invite", json!({"token": super::token(&link), "password": PASSWORD}));
    let client = server.recorded_client(None);
    client.post("/v1/users", json!({"email": "ina@a.example", "name": "Ina", "role": "owner"})).expect(201);
    work_off(&server);
    let mut browser = Browser::new(&client);
    browser.post("/console/forgot", json!({"email": "ina@a.example"})).expect(200);
    work_off(&server);
    let own = mailed(&sink, 2, "https://kantoor.example/reset/");
    let entered = browser.enter("/console/reset", json!({"token": own, "password": "battery staple horse"}));
    assert_eq!(entered.data()["user"]["role"], "owner");
    let guess = json!({"email": "ina@a.example", "password": PASSWORD});
    Browser::new(&client).post("/console/sign-in", guess).expect(401);
    let requested = client.get("/v1/changes?type=user.reset_requested").expect(200).data();
    assert_eq!(requested[0]["actor_type"], "visitor", "{requested}");
}

fn a_sealed_account_shows_its_mail(db: Db) {
    let sink = Sink::start().unwrap();
    let server = Server::with(db, |config| use_sink(config, &sink));
    let client = server.recorded_client(Moment::parse("2026-05-04T10:00:00Z"));
    let made = client.post("/v1/users", json!({"email": "ina@a.example", "name": "Ina", "role": "owner"})).expect(201);
    let link = made.json()["meta"]["invite_url"].as_str().unwrap().to_string();
    work_off(&server);
    let mail = mail_of(&client, &made.id());
    assert_eq!(mail["status"], "recorded");
    assert!(mail["text"].as_str().unwrap().contains(&link), "{mail}");
    assert!(!stored(&server).0.contains(&link));
    // Whoever could not invite an owner does not see the link of one.
    for scopes in [&["invoices.read", "users.read"][..], &["invoices.read", "users.read", "users.write"]] {
        let mail = mail_of(&server.with_scopes(&client, scopes), &made.id());
        assert!(mail["text"].as_str().unwrap().contains("/invite/…"), "{scopes:?}: {mail}");
    }
    let mut browser = Browser::new(&client);
    browser.enter("/console/accept-invite", json!({"token": super::token(&link), "password": PASSWORD}));
    browser.post("/console/forgot", json!({"email": "ina@a.example"})).expect(200);
    work_off(&server);
    let mail = mail_of(&client, &made.id());
    assert!(
        mail["text"].as_str().unwrap().contains("/reset/") && !mail["text"].as_str().unwrap().contains('…'),
        "{mail}"
    );
    assert_eq!(sink.wait(1, Duration::from_millis(100)).len(), 0);
    // A new password would also open another account, even one where she is suspended for now.
    let other = server.recorded_client(Moment::parse("2026-05-04T10:00:00Z"));
    let there = other.post("/v1/users", json!({"email": "ina@a.example", "name": "Ina", "role": "member"})).expect(201);
    let link = there.json()["meta"]["invite_url"].as_str().unwrap().to_string();
    browser.enter("/console/accept-invite", json!({"token": super::token(&link), "password": PASSWORD}));
    other.patch(&format!("/v1/users/{}", there.id()), json!({"status": "suspended"})).expect(200);
    Browser::new(&client).post("/console/forgot", json!({"email": "ina@a.example"})).expect(200);
    work_off(&server);
    let mail = mail_of(&client, &made.id());
    assert!(mail["text"].as_str().unwrap().contains("/reset/…"), "{mail}");
    // An account that sends shows it no longer.
    client.patch("/v1/settings", json!({"outside": "live"})).expect(200);
    assert!(mail_of(&client, &made.id())["text"].as_str().unwrap().contains("/reset/…"));
}
