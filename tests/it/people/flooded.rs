//! What many requests of strangers leave to the people whose e-mail addresses they know.

use std::sync::atomic::{AtomicUsize, Ordering};

use ::mail::sink::Sink;
use engine::config::Config;
use kantoor::people::password::Passwords;
use serde_json::json;

use super::signing_in::work_off;
use super::{Browser, PASSWORD, owner, use_sink};
use crate::failover::until;
use crate::on_both;
use crate::support::{Client, Db, Reply, Server};

on_both![
    requests_for_new_passwords_use_up_no_mail,
    nobody_keeps_a_person_from_a_new_password,
    a_flood_of_strangers_keeps_no_known_person_out,
];

/// Strangers have many IP addresses.
fn behind_a_proxy(config: &mut Config) {
    config.public_limit_per_minute = 0;
    config.trusted_proxies = "127.0.0.1".to_string();
}

fn from(client: &Client, address: &str, path: &str, body: serde_json::Value) -> Reply {
    let headers = [("sec-fetch-site", "same-origin"), ("x-forwarded-for", address)];
    Browser::new(client).send_with("POST", path, &headers, &body.to_string())
}

fn forgets(client: &Client, address: &str, email: &str) -> Reply {
    from(client, address, "/console/forgot", json!({"email": email}))
}

/// Returns how many mails with links for new passwords there are.
fn mailed(server: &Server) -> i64 {
    work_off(server);
    server.app.store.read_now(|tx| tx.int("SELECT count(*) FROM mails WHERE kind = 'user_reset'", &[])).unwrap()
}

fn requests_for_new_passwords_use_up_no_mail(db: Db) {
    let sink = Sink::start().unwrap();
    let server = Server::with(db, |config| {
        use_sink(config, &sink);
        behind_a_proxy(config);
        config.quota_mails_per_day = 2;
    });
    let client = server.client();
    owner(&server, &client, "olga@a.example");
    let first = forgets(&client, "203.0.113.1", "olga@a.example").expect(200);
    for address in 2..=12 {
        let again = forgets(&client, &format!("203.0.113.{address}"), "olga@a.example").expect(200);
        assert_eq!(again.text, first.text);
    }
    assert_eq!(mailed(&server), 1, "one in five minutes");
    assert_eq!(client.get("/v1/settings/usage").data()["mails_today"], 0);
    for name in ["ina", "ida"] {
        client.post("/v1/users", json!({"email": format!("{name}@a.example"), "name": name})).expect(201);
    }
    // When the account has mailed what it may, people still get theirs.
    server.execute("UPDATE sign_in_attempts SET at = at - 100000 WHERE id LIKE 'mailed%'");
    forgets(&client, "203.0.113.1", "olga@a.example").expect(200);
    assert_eq!(mailed(&server), 1);
    server.execute("UPDATE sign_in_attempts SET at = at - 200000 WHERE id LIKE 'mailed%'");
    forgets(&client, "203.0.113.1", "olga@a.example").expect(200);
    assert_eq!(mailed(&server), 2);
    assert_eq!(client.get("/v1/settings/usage").data()["mails_today"], 2);
}

fn nobody_keeps_a_person_from_a_new_password(db: Db) {
    let server = Server::with(db, behind_a_proxy);
    let client = server.client();
    owner(&server, &client, "olga@a.example");
    let sign_in = json!({"email": "olga@a.example", "password": PASSWORD});
    from(&client, "198.51.100.1", "/console/sign-in", sign_in).expect(200);
    for _ in 0..10 {
        forgets(&client, "203.0.113.1", "olga@a.example").expect(200);
    }
    assert_eq!(mailed(&server), 1);
    let refused = forgets(&client, "203.0.113.1", "olga@a.example").expect(429);
    assert!(refused.header("retry-after").parse::<u32>().unwrap() > 0);
    // At another IP address, the link has just been mailed. From where the person signs in, it is mailed once more.
    forgets(&client, "203.0.113.2", "olga@a.example").expect(200);
    assert_eq!(mailed(&server), 1);
    forgets(&client, "198.51.100.1", "olga@a.example").expect(200);
    assert_eq!(mailed(&server), 2);
    // An IP address that requests links for many people has a limit, except for those who sign in there.
    let now = server.now().0;
    server.execute(&format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)
         INSERT INTO sign_in_attempts (id, subject, at)
         SELECT 'a' || i, 'address reset 198.51.100.1', {now} FROM n"
    ));
    forgets(&client, "198.51.100.1", "nobody@a.example").expect(429);
    forgets(&client, "198.51.100.1", "olga@a.example").expect(200);
}

fn a_flood_of_strangers_keeps_no_known_person_out(db: Db) {
    const FLOOD: usize = 40;
    let server = Server::with(db, behind_a_proxy);
    let client = server.client();
    owner(&server, &client, "olga@a.example");
    let sign_in = |address: &str, email: &str, password: &str| {
        from(&client, address, "/console/sign-in", json!({"email": email, "password": password}))
    };
    sign_in("198.51.100.1", "olga@a.example", PASSWORD).expect(200);
    let calculated = || server.app.services.get::<Passwords>().calculated();
    let (before, over) = (calculated(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..FLOOD {
            let (sign_in, over) = (&sign_in, &over);
            scope.spawn(move || {
                sign_in(&format!("203.0.113.{number}"), "olga@a.example", "a wrong password").expect(401);
                over.fetch_add(1, Ordering::SeqCst);
            });
        }
        until("strangers come in", || calculated() > before);
        sign_in("198.51.100.1", "olga@a.example", PASSWORD).expect(200);
        let over = over.load(Ordering::SeqCst);
        assert!(over < FLOOD / 2, "{over} of {FLOOD} strangers came first");
    });
}
