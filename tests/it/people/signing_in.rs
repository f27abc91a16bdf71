//! Signing in: with a password, with links that work once; wrong attempts; sessions.

use std::time::Duration;

use ::mail::sink::Sink;
use engine::config::Config;
use engine::jobs::worker;
use kantoor::people::operator;
use kantoor::people::password::Passwords;
use serde_json::{Value, json};

use super::{Browser, PASSWORD, invite, member, owner, set_up_token, token};
use crate::on_both;
use crate::support::{Client, Db, Reply, Server, Shared};

on_both![
    an_account_is_set_up_once,
    an_owner_gets_the_language_that_they_use,
    requests_of_other_origins_are_refused,
    an_invitation_and_a_reset_arrive_by_mail,
    links_expire_and_are_replaced,
    an_invitation_sets_no_password_of_somebody_who_signs_in_elsewhere,
    unknown_people_and_wrong_passwords_look_alike,
    guesses_are_limited_on_all_nodes,
    others_cannot_lock_out_a_known_address,
    successes_do_not_count,
    successes_at_the_same_time_do_not_count,
    a_password_that_is_replaced_meanwhile_opens_nothing,
    a_requested_link_ends_no_other,
    a_person_has_a_hundred_sessions,
    weak_passwords_are_refused,
    sessions_are_listed_and_ended,
    other_sessions_are_ended_together,
    sessions_expire,
    a_new_password_ends_other_sessions,
];

fn sign_in(browser: &Browser, email: &str, password: &str) -> Reply {
    browser.post("/console/sign-in", json!({"email": email, "password": password}))
}

fn an_account_is_set_up_once(db: Db) {
    let server = Server::start(db);
    let client = server.recorded_client(None);
    let before = server.last_seq(&client);
    let token = set_up_token(&server, &client);
    let mut browser = Browser::new(&client);
    let body = json!({"token": token, "email": "Olga@A.example", "name": "Olga", "password": PASSWORD});
    let entered = browser.enter("/console/set-up", body.clone());
    assert_eq!(entered.data()["user"]["role"], "owner");
    assert_eq!(entered.header("cache-control"), "private, no-store");
    let cookie = entered.header("set-cookie");
    assert!(cookie.starts_with("kantoor=") && cookie.contains("; Path=/; Max-Age=7776000"), "{cookie}");
    assert!(!cookie.contains("Secure"), "there is no HTTPS: {cookie}");
    assert_eq!(browser.get("/console/v1/me").data()["scopes"], json!(["*"]));
    let used = browser.post("/console/set-up", body).expect(409);
    assert_eq!(used.code(), "link_invalid");
    assert!(
        used.text.contains("has been used. Sign in with the e-mail address and password that were chosen then."),
        "{}",
        used.text
    );
    // The account is strict, and its flows are in the language of its owner.
    let mut done = server.events(&client, before);
    done.retain(|event| event != "flow.updated");
    let events =
        ["account.set_up_requested", "user.created", "settings.updated", "user.password_changed", "user.signed_in"];
    assert_eq!(done, events);
    let settings = client.get("/v1/settings").data();
    assert_eq!((&settings["strict_final"], &settings["language"]), (&json!(true), &json!("en")));
    browser.send("POST", "/console/sign-out", "").expect(204);
    browser.get("/console/v1/me").expect(401);
    let again = browser.send("POST", "/console/sign-out", "").expect(204);
    assert!(again.header("set-cookie").starts_with("kantoor=; Path=/; Max-Age=0"), "{again:?}");
    browser.sign_in(" OLGA@a.example ");
    browser.get("/console/v1/me").expect(200);
    let events = server.events(&client, before);
    assert_eq!(events[events.len() - 2..], ["user.signed_out", "user.signed_in"]);
    // Only hashes are stored.
    let secret = browser.cookie.trim_start_matches("kantoor=").to_string();
    let stored = server.app.store.read_now(|tx| {
        let sql = "SELECT people.password, sessions.hash FROM sessions JOIN people ON people.id = sessions.person_id";
        tx.all(sql, &[], |row| Ok::<_, store::Error>((row.text(0)?.to_string(), row.bytes(1)?.to_vec())))
    });
    let [(password, session)] = &stored.unwrap()[..] else { panic!("there is one session") };
    assert!(password.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{password}");
    assert_eq!(*session, engine::accounts::hash(&secret));
}

/// The language of the body, or of the browser, or of the account.
fn an_owner_gets_the_language_that_they_use(db: Db) {
    let server = Server::start(db);
    for (account, header, body, expected) in [
        ("en", "", "", "en"),
        ("nl", "", "", "nl"),
        ("en", "nl-NL,nl;q=0.9,en;q=0.8", "", "nl"),
        ("nl", "de-DE, en-GB;q=0.8", "", "en"),
        ("nl", "fr", "", "nl"),
        ("nl", "nl", "en", "en"),
    ] {
        let client = server.client();
        client.patch("/v1/settings", json!({"language": account})).expect(200);
        let email = format!("o{}@a.example", client.account);
        let mut body = match body {
            "" => json!({}),
            language => json!({"language": language}),
        };
        for (name, value) in [("token", set_up_token(&server, &client).as_str()), ("email", &email), ("name", "O")] {
            body[name] = json!(value);
        }
        body["password"] = json!(PASSWORD);
        let headers = [("sec-fetch-site", "same-origin"), ("accept-language", header)];
        let mut browser = Browser::new(&client);
        let entered = browser.send_with("POST", "/console/set-up", &headers, &body.to_string()).expect(200);
        browser.take_cookie(&entered);
        let language = browser.get("/console/v1/me").data()["user"]["language"].clone();
        assert_eq!(language, expected, "{account} {header} {body}");
        assert_eq!(client.get("/v1/settings").data()["language"], expected);
    }
}

/// A browser names the same site in both headers, so a request in which they differ is not from one of our pages.
fn requests_of_other_origins_are_refused(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let own = client.base.clone();
    let write = |headers: &[(&str, &str)]| {
        browser.send_with("POST", "/console/sign-in", headers, "{}").expect(403);
        browser.send_with("POST", "/console/v1/notes", headers, "{\"body\":\"x\"}").status
    };
    let fetch = |site| ("sec-fetch-site", site);
    assert_eq!(write(&[fetch("same-origin"), ("origin", "https://evil.example")]), 403);
    assert_eq!(write(&[fetch("cross-site"), ("origin", &own)]), 403);
    assert_eq!(write(&[fetch("same-site")]), 403);
    assert_eq!(write(&[("origin", "https://evil.example")]), 403);
    assert_eq!(write(&[("origin", "null")]), 403);
    assert_eq!(write(&[]), 403);
    // Our URL is not one of HTTPS.
    let secure = own.replace("http://", "https://");
    assert_eq!(write(&[("origin", &secure)]), 403);
    assert_eq!(write(&[("origin", &own.replace("http://", "ftp://"))]), 403);
    for headers in [&[fetch("same-origin"), ("origin", own.as_str())][..], &[fetch("same-origin")], &[("origin", &own)]]
    {
        let sent = browser.send_with("POST", "/console/v1/notes", headers, "{\"body\":\"x\"}");
        assert_eq!(sent.status, 201, "{headers:?}: {sent:?}");
    }
    // A proxy serves HTTPS and passes the name on, and nobody told us our URL; or a wrong one, but the browser has compared.
    for headers in [
        &[("host", "kantoor.example"), ("origin", "https://kantoor.example")][..],
        &[("host", "kantoor.example"), ("origin", "http://kantoor.example")],
        &[fetch("same-origin"), ("origin", secure.as_str())],
    ] {
        let sent = browser.send_with("POST", "/console/v1/notes", headers, "{\"body\":\"x\"}");
        assert_eq!(sent.status, 201, "{headers:?}: {sent:?}");
    }
    let odd = [("host", "kantoor.example"), ("origin", "https://kantoor.example:8443")];
    browser.send_with("POST", "/console/v1/notes", &odd, "{\"body\":\"x\"}").expect(403);
}

/// Lets the server send its mail to the sink.
pub fn use_sink(config: &mut Config, sink: &Sink) {
    config.smtp_host = "127.0.0.1".to_string();
    config.smtp_port = sink.port();
    config.smtp_security = "none".to_string();
    config.mail_from = "kantoor@server.example".to_string();
    config.public_url = "https://kantoor.example".to_string();
}

pub fn work_off(server: &Server) {
    server.block_on(async { while worker::turn(&server.app).await {} });
}

/// Returns the token in the last mail.
pub fn mailed(sink: &Sink, count: usize, link: &str) -> String {
    let mails = sink.wait(count, Duration::from_secs(10));
    assert_eq!(mails.len(), count);
    let text = String::from_utf8_lossy(&mails[count - 1].message).replace("=\r\n", "").replace("=3D", "=");
    let rest = text.split(link).nth(1).unwrap_or_else(|| panic!("no {link} in {text}"));
    rest.chars().take_while(char::is_ascii_alphanumeric).collect()
}

fn an_invitation_and_a_reset_arrive_by_mail(db: Db) {
    let sink = Sink::start().unwrap();
    let server = Server::with(db, |config| use_sink(config, &sink));
    let client = server.client();
    let made = client.post("/v1/users", json!({"email": "ina@a.example", "name": "Ina"})).expect(201);
    assert!(made.json()["meta"].get("invite_url").is_none(), "the link is only in the mail: {made:?}");
    work_off(&server);
    let token = mailed(&sink, 1, "https://kantoor.example/invite/");
    let mut browser = Browser::new(&client);
    let entered = browser.enter("/console/accept-invite", json!({"token": token, "password": PASSWORD}));
    let cookie = entered.header("set-cookie");
    assert!(cookie.starts_with("__Host-kantoor=") && cookie.ends_with("; Secure"), "{cookie}");
    browser.get("/console/v1/tasks").expect(200);
    // An unknown address gets the same response, and no mail.
    let unknown = browser.post("/console/forgot", json!({"email": "nobody@a.example"})).expect(200);
    let known = browser.post("/console/forgot", json!({"email": "Ina@a.example"})).expect(200);
    assert_eq!(unknown.text, known.text);
    work_off(&server);
    let token = mailed(&sink, 2, "https://kantoor.example/reset/");
    let new = "battery staple horse";
    let body = json!({"token": token, "password": new});
    let old = browser.clone();
    browser.enter("/console/reset", body.clone());
    assert_eq!(browser.post("/console/reset", body).expect(409).code(), "link_invalid");
    browser.get("/console/v1/tasks").expect(200);
    std::thread::sleep(Duration::from_millis(1050));
    old.get("/console/v1/tasks").expect(401);
    assert_eq!(sign_in(&browser, "ina@a.example", PASSWORD).status, 401);
    sign_in(&browser, "ina@a.example", new).expect(200);
    // A suspended user cannot come back this way.
    client.patch(&format!("/v1/users/{}", made.id()), json!({"status": "suspended"})).expect(200);
    browser.post("/console/forgot", json!({"email": "ina@a.example"})).expect(200);
    work_off(&server);
    assert_eq!(sink.wait(3, Duration::from_millis(300)).len(), 2);
}

/// The owner of an account sees the link of an invitation, and must not become that person in another account with it.
fn an_invitation_sets_no_password_of_somebody_who_signs_in_elsewhere(db: Db) {
    let server = Server::start(db);
    let (client, other) = (server.client(), server.client());
    owner(&server, &client, "vera@a.example");
    // As if she had only signed in through an issuer.
    server.execute("UPDATE people SET password = ''");
    let browser = Browser::new(&other);
    let (_, invitation) = invite(&other, "vera@a.example", "member");
    let accept = json!({"token": invitation, "password": PASSWORD});
    let refused = browser.post("/console/accept-invite", accept).expect(403);
    assert_eq!(refused.code(), "password_required");
    assert!(refused.text.contains("or request a link for a new password"), "{}", refused.text);
    let set_up = set_up_token(&server, &server.client());
    let body = json!({"token": set_up, "email": "vera@a.example", "name": "V", "password": PASSWORD});
    browser.post("/console/set-up", body).expect(403);
    assert_eq!(sign_in(&browser, "vera@a.example", PASSWORD).status, 401);
}

fn links_expire_and_are_replaced(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let browser = Browser::new(&client);
    let accept = |token: &str| browser.post("/console/accept-invite", json!({"token": token, "password": PASSWORD}));
    let (id, first) = invite(&client, "ina@a.example", "member");
    let again = client.act(&format!("/v1/users/{id}/invite")).expect(200).json();
    let second = token(again["meta"]["invite_url"].as_str().unwrap());
    assert!(accept(&first).expect(409).text.contains("replaced by a newer one"));
    for bad in ["x", "", &"0".repeat(64), &second[..63]] {
        let reply = accept(bad);
        assert!([409, 422].contains(&reply.status), "{bad}: {reply:?}");
    }
    let foreign = browser.post("/console/reset", json!({"token": second, "password": PASSWORD})).expect(409);
    assert!(foreign.text.contains("is for something else. Open the link exactly as you received it"), "{foreign:?}");
    let age = |sql: &str| server.rewrite(sql);
    age("UPDATE one_time_tokens SET expires_at = 1");
    assert!(accept(&second).expect(409).text.contains("has expired. Ask for a new invitation"));
    age("UPDATE one_time_tokens SET expires_at = 9999999999999");
    for status in ["suspended", "active"] {
        let refused = client.patch(&format!("/v1/users/{id}"), json!({"status": status})).expect(409);
        assert_eq!(refused.code(), "invalid_transition");
    }
    age("UPDATE users SET status = 'suspended' WHERE status = 'invited'");
    assert_eq!(accept(&second).expect(403).code(), "user_suspended");
    client.delete(&format!("/v1/users/{id}")).expect(204);
    accept(&second).expect(409);
    assert_eq!(sign_in(&browser, "ina@a.example", PASSWORD).status, 401);
}

fn unknown_people_and_wrong_passwords_look_alike(db: Db) {
    let server = Server::with(db, |config| config.public_limit_per_minute = 0);
    let client = server.client();
    owner(&server, &client, "olga@a.example");
    invite(&client, "invited@a.example", "member");
    let browser = Browser::new(&client);
    let without_id = |reply: &Reply| -> Value {
        let mut body = reply.json();
        body["meta"]["request_id"] = json!("");
        body
    };
    let known = sign_in(&browser, "olga@a.example", "a wrong password").expect(401);
    for (email, password) in [
        ("nobody@a.example", "a wrong password"),
        ("invited@a.example", "a wrong password"),
        ("not an e-mail address", "x"),
        ("olga@a.example", ""),
    ] {
        let reply = sign_in(&browser, email, password);
        if password.is_empty() {
            assert_eq!(reply.status, 422);
        } else {
            assert_eq!(without_id(&reply.expect(401)), without_id(&known), "{email}");
        }
    }
    // Both cost one hash, which takes nearly all of the time.
    let passwords: &Passwords = server.app.services.get();
    for email in ["olga@a.example", "nobody@a.example", "invited@a.example"] {
        let before = passwords.calculated();
        sign_in(&browser, email, "a wrong password").expect(401);
        assert_eq!(passwords.calculated() - before, 1, "{email}");
    }
}

/// Somebody replaces the password in another account, which another node may write to at the same time.
fn a_password_that_is_replaced_meanwhile_opens_nothing(db: Db) {
    let url = db.url.clone();
    let server = Server::start(db);
    let (client, second) = (server.client(), server.client());
    owner(&server, &client, "olga@a.example");
    let (_, invitation) = invite(&second, "olga@a.example", "member");
    let accept = json!({"token": invitation, "password": PASSWORD});
    if url.is_empty() {
        return; // SQLite has one writer.
    }
    let mut other = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    let mut replacing = other.transaction().unwrap();
    replacing.execute("UPDATE people SET password = 'another'", &[]).unwrap();
    let browser = Browser::new(&client);
    let (signed_in, accepted) = std::thread::scope(|scope| {
        let signing_in = scope.spawn(|| sign_in(&browser, "olga@a.example", PASSWORD));
        let accepting = scope.spawn(|| browser.post("/console/accept-invite", accept));
        std::thread::sleep(Duration::from_secs(2));
        replacing.commit().unwrap();
        (signing_in.join().unwrap(), accepting.join().unwrap())
    });
    signed_in.expect(401);
    assert!(accepted.expect(403).text.contains("The password was changed in the meantime"));
}

fn others_cannot_lock_out_a_known_address(db: Db) {
    let server = Server::with(db, |config| {
        config.public_limit_per_minute = 0;
        config.trusted_proxies = "127.0.0.1".to_string();
    });
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let from = |address: &str, password: &str| {
        let headers = [("sec-fetch-site", "same-origin"), ("x-forwarded-for", address)];
        let body = json!({"email": "olga@a.example", "password": password}).to_string();
        browser.send_with("POST", "/console/sign-in", &headers, &body)
    };
    from("203.0.113.1", PASSWORD).expect(200);
    for _ in 0..10 {
        from("203.0.113.2", "a wrong password").expect(401);
    }
    from("203.0.113.2", "a wrong password").expect(429);
    // Nor do they lock out a person at an address that is new.
    from("203.0.113.3", PASSWORD).expect(200);
    from("203.0.113.2", PASSWORD).expect(429);
    // The address from which the account was set up is known too.
    sign_in(&browser, "olga@a.example", PASSWORD).expect(200);
    from("203.0.113.1", PASSWORD).expect(200);
    // A known address has a limit too.
    for _ in 0..10 {
        from("203.0.113.1", "a wrong password").expect(401);
    }
    from("203.0.113.1", PASSWORD).expect(429);
}

/// An office may share one IP address: those who sign in do not use up its attempts.
fn successes_do_not_count(db: Db) {
    let server = Server::with(db, |config| config.public_limit_per_minute = 0);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    member(&client, "ina@a.example", "member");
    let now = server.now().0;
    let fail = |count: i64| {
        server.execute(&format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
             INSERT INTO sign_in_attempts (id, subject, at) SELECT 'a{count}' || i, 'address 127.0.0.1', {now} FROM n"
        ));
    };
    fail(49);
    for _ in 0..3 {
        // As if she had never signed in from here.
        server.execute("DELETE FROM sign_in_attempts WHERE subject LIKE 'known%'");
        sign_in(&browser, "olga@a.example", PASSWORD).expect(200);
    }
    server.execute("DELETE FROM sign_in_attempts WHERE subject LIKE 'known%ina%'");
    sign_in(&browser, "nobody@a.example", "a wrong password").expect(401);
    sign_in(&browser, "nobody@a.example", "a wrong password").expect(429);
    sign_in(&browser, "ina@a.example", PASSWORD).expect(429);
    // Others at the same IP address do not lock out somebody who has signed in from there.
    sign_in(&browser, "olga@a.example", PASSWORD).expect(200);
    // Nor do they keep anybody from requesting a new password.
    browser.post("/console/forgot", json!({"email": "ina@a.example"})).expect(200);
}

/// A browser that restores its tabs may sign in many times at once; none of them looks like a failure to the others.
fn successes_at_the_same_time_do_not_count(db: Db) {
    let server = Server::with(db, |config| config.public_limit_per_minute = 0);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    std::thread::scope(|scope| {
        let entered: Vec<_> =
            (0..24).map(|_| scope.spawn(|| sign_in(&browser, "olga@a.example", PASSWORD).status)).collect();
        let statuses: Vec<u16> = entered.into_iter().map(|entered| entered.join().unwrap()).collect();
        assert_eq!(statuses, [200; 24]);
    });
    let left = "SELECT count(*) FROM sign_in_attempts WHERE subject NOT LIKE 'known%'";
    assert_eq!(server.app.store.read_now(move |tx| tx.int(left, &[])).unwrap(), 0);
}

/// Anybody can request one, and must not be able to end the link that the person is about to open.
fn a_requested_link_ends_no_other(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    owner(&server, &client, "olga@a.example");
    let links = [(); 2].map(|()| token(&operator::reset(&server.app, "olga@a.example").unwrap()));
    let mut browser = Browser::new(&client);
    browser.enter("/console/reset", json!({"token": links[0], "password": "battery staple horse"}));
    let other = json!({"token": links[1], "password": "horse staple battery"});
    assert_eq!(browser.post("/console/reset", other).expect(409).code(), "link_invalid", "one password, one link");
}

fn a_person_has_a_hundred_sessions(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let mut browser = owner(&server, &client, "olga@a.example");
    let many = (0..120).map(|n: i64| {
        format!(
            "INSERT INTO sessions (id, hash, account_id, user_id, person_id, created_at, seen_at, browser, address, via,
             confirmed_at) SELECT id || '{n}', signature, account_id, user_id, person_id, {n}, {n}, '', '', via, 0
             FROM (SELECT sessions.*, CAST('{n}' AS {blob}) AS signature FROM sessions WHERE browser = 'Test/1.0') AS one;",
            blob = if server.app.config.database_url.is_empty() { "BLOB" } else { "BYTEA" }
        )
    });
    many.for_each(|sql| server.execute(&sql));
    browser.sign_in("olga@a.example");
    let count = server.app.store.read_now(|tx| tx.int("SELECT count(*) FROM sessions", &[])).unwrap();
    assert_eq!(count, 100);
    browser.get("/console/v1/tasks").expect(200);
}

fn guesses_are_limited_on_all_nodes(db: Db) {
    let config = db.config();
    let server = Server::with(db, |config| config.public_limit_per_minute = 0);
    let client = server.client();
    owner(&server, &client, "olga@a.example");
    let here = Browser::new(&client);
    let node = server.another_node(Config { public_limit_per_minute: 0, ..config });
    let there = Browser::new(&Client { base: format!("http://{node}"), ..client.clone() });
    for place in 0..10 {
        let browser = if place % 2 == 0 { &here } else { &there };
        assert_eq!(sign_in(browser, "Olga@a.example", "a wrong password").status, 401, "{place}");
    }
    for browser in [&here, &there] {
        let refused = sign_in(browser, "olga@a.example", PASSWORD).expect(429);
        let wait: i64 = refused.header("retry-after").parse().unwrap();
        assert!((600..=900).contains(&wait), "{wait}");
    }
    // After the oldest attempts no longer count, a success clears the others.
    let age = |seconds: i64| {
        let sql = "UPDATE sign_in_attempts SET at = at - $1";
        server.app.store.write_now(0, move |tx| tx.execute(sql, &[(seconds * 1000).into()])).unwrap()
    };
    age(900);
    sign_in(&here, "olga@a.example", PASSWORD).expect(200);
    for _ in 0..9 {
        sign_in(&there, "olga@a.example", "a wrong password").expect(401);
    }
    sign_in(&here, "olga@a.example", PASSWORD).expect(200);
    sign_in(&here, "olga@a.example", "a wrong password").expect(401);
    // The IP address has a limit of its own.
    age(900);
    std::thread::scope(|scope| {
        let one = |number: usize| {
            let browser = if number.is_multiple_of(2) { &here } else { &there };
            sign_in(browser, &format!("nobody{number}@a.example"), "a wrong password").status
        };
        let tried: Vec<_> =
            (0..6).map(|part| scope.spawn(move || (0..10).map(|n| one(part * 10 + n)).collect::<Vec<_>>())).collect();
        let statuses: Vec<u16> = tried.into_iter().flat_map(|tried| tried.join().unwrap()).collect();
        let passed = statuses.iter().filter(|status| **status == 401).count();
        assert!((45..=50).contains(&passed), "{passed} of 60 attempts passed: {statuses:?}");
        assert!(statuses.iter().all(|status| [401, 429].contains(status)), "{statuses:?}");
    });
}

fn weak_passwords_are_refused(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (_, token) = invite(&client, "ina@a.example", "member");
    let browser = Browser::new(&client);
    let bad = ["short", "password1234", "ina@a.example", "123123123123", "administrator", "administrator1"];
    for bad in bad.into_iter().chain(["kantoorkantoor", "Kantoor 2026!", "Ina-ina-2026"]) {
        let reply = browser.post("/console/accept-invite", json!({"token": token, "password": bad})).expect(422);
        assert_eq!(reply.faults(), ["password: invalid_format"], "{bad}");
    }
    let long = "x".repeat(257);
    let reply = browser.post("/console/accept-invite", json!({"token": token, "password": long})).expect(422);
    assert_eq!(reply.faults(), ["password: too_long"]);
    browser.post("/console/accept-invite", json!({"token": token, "password": "twaalf tekens"})).expect(200);
}

fn sessions_are_listed_and_ended(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (_, first) = member(&client, "ina@a.example", "member");
    let mut second = Browser::new(&client);
    second.sign_in("ina@a.example");
    let (_, stranger) = member(&client, "otto@a.example", "member");
    let listed = second.get("/console/v1/me/sessions").expect(200).data();
    let current: Vec<&Value> = listed.as_array().unwrap().iter().map(|one| &one["current"]).collect();
    assert_eq!(current, [&json!(true), &json!(false)], "newest first: {listed}");
    assert_eq!((&listed[0]["browser"], &listed[0]["address"]), (&json!("Test/1.0"), &json!("127.0.0.1")));
    let path = format!("/console/v1/me/sessions/{}", listed[1]["id"].as_str().unwrap());
    stranger.send("DELETE", &path, "").expect(404);
    let before = server.last_seq(&client);
    second.send("DELETE", &path, "").expect(204);
    second.send("DELETE", &path, "").expect(404);
    assert_eq!(server.events(&client, before), ["user.session_ended"]);
    std::thread::sleep(Duration::from_millis(1050));
    first.get("/console/v1/me").expect(401);
    second.get("/console/v1/me").expect(200);
}

fn other_sessions_are_ended_together(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (_, first) = member(&client, "ina@a.example", "member");
    let (mut second, mut third) = (Browser::new(&client), Browser::new(&client));
    second.sign_in("ina@a.example");
    third.sign_in("ina@a.example");
    let (_, stranger) = member(&client, "otto@a.example", "member");
    let before = server.last_seq(&client);
    let end = || third.send("POST", "/console/v1/me/sessions/end-others", "").expect(200).data();
    assert_eq!(end(), json!({"ended": 2}));
    assert_eq!(server.events(&client, before), ["user.session_ended"]);
    assert_eq!(end(), json!({"ended": 0}));
    assert_eq!(server.events(&client, before).len(), 1, "there is no other session");
    std::thread::sleep(Duration::from_millis(1050));
    for ended in [&first, &second] {
        ended.get("/console/v1/me").expect(401);
    }
    third.get("/console/v1/me").expect(200);
    stranger.get("/console/v1/me").expect(200);
    client.act("/v1/me/sessions/end-others").expect(403);
}

fn sessions_expire(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (_, browser) = member(&client, "ina@a.example", "member");
    let day = 24 * 3600 * 1000;
    let age = |created: i64, seen: i64| {
        let now = server.now().0;
        let (created_at, seen_at) = (now - created * day, now - seen * day);
        server.rewrite(&format!("UPDATE sessions SET created_at = {created_at}, seen_at = {seen_at}"));
        std::thread::sleep(Duration::from_millis(1050));
        browser.get("/console/v1/me").status
    };
    assert_eq!(age(89, 13), 200);
    assert_eq!(age(89, 15), 401, "not used for 14 days");
    assert_eq!(age(91, 0), 401, "older than 90 days");
    assert_eq!(age(1, 1), 200);
}

fn a_new_password_ends_other_sessions(server: Shared) {
    let client = server.client();
    let (_, first) = member(&client, "ina@a.example", "member");
    let mut second = Browser::new(&client);
    second.sign_in("ina@a.example");
    let new = "battery staple horse";
    let change = |current: &str, new: &str| {
        second.post("/console/password", json!({"current_password": current, "password": new}))
    };
    change("a wrong password", new).expect(403);
    assert_eq!(change(PASSWORD, "short").expect(422).faults(), ["password: invalid_format"]);
    let before = server.last_seq(&client);
    change(PASSWORD, new).expect(204);
    assert_eq!(server.events(&client, before), ["user.password_changed"]);
    std::thread::sleep(Duration::from_millis(1050));
    first.get("/console/v1/me").expect(401);
    second.get("/console/v1/me").expect(200);
    sign_in(&first, "ina@a.example", new).expect(200);
    Browser::new(&client).post("/console/password", json!({"current_password": new, "password": new})).expect(401);
}
