//! Second factors: authenticator apps, recovery codes, and accounts that require one.

use std::time::Duration;

use engine::clock::Clock;
use serde_json::{Value, json};
use totp_rs::{Builder, Secret};

use super::{Browser, PASSWORD, member, owner, token};
use crate::cli::{kantoor, said};
use crate::on_both;
use crate::server::Binary;
use crate::support::{Db, Reply, Server};

on_both![
    a_code_is_asked_after_the_password,
    a_code_works_once,
    codes_are_limited,
    recovery_codes_work_once,
    factors_are_listed_and_removed,
    other_ways_in_ask_for_the_code_too,
    a_new_password_waits_for_the_code,
    links_of_a_suspended_user_say_so,
    an_account_can_require_a_second_factor,
    a_session_without_its_factor_is_limited,
    an_owner_removes_a_lost_factor,
    secrets_of_apps_are_encrypted,
    the_operator_removes_a_lost_factor,
];

/// An authenticator app.
pub struct App {
    pub secret: String,
}

impl App {
    /// Returns the code of the current step, or of this many steps later.
    pub fn code(&self, steps: i64) -> String {
        let now = Clock::System.now().0 / 1000 + 30 * steps;
        let secret = Secret::try_from_base32(&self.secret).unwrap();
        Builder::new().with_secret(secret).build().unwrap().generate(u64::try_from(now).unwrap()).to_string()
    }
}

/// Adds an authenticator app; returns it with the recovery codes. The code of the previous step is used up.
#[track_caller]
pub fn enrol(browser: &Browser) -> (App, Vec<String>) {
    let new = browser.send("POST", "/console/factors/app", "").expect(200).data();
    let app = App { secret: new["secret"].as_str().unwrap().to_string() };
    // The owner recognizes it by its name.
    let body = json!({"id": new["id"], "code": app.code(-1), "name": "Ph\u{202e}one"});
    let refused = browser.post("/console/factors/confirm", body).expect(422);
    assert_eq!(refused.faults(), ["name: invalid_characters"]);
    let body = json!({"id": new["id"], "code": app.code(-1), "name": "Phone"});
    let done = browser.post("/console/factors/confirm", body).expect(200).data();
    (app, serde_json::from_value(done["recovery_codes"].clone()).unwrap())
}

/// Signs in with the password; returns the token of the second step.
#[track_caller]
pub fn first_step(browser: &Browser, email: &str) -> String {
    let reply = browser.post("/console/sign-in", json!({"email": email, "password": PASSWORD})).expect(200);
    assert_eq!(reply.header("set-cookie"), "", "there is no session yet: {reply:?}");
    let step = reply.data()["second_step"].clone();
    assert_eq!(step["methods"], json!(["totp"]));
    step["token"].as_str().unwrap().to_string()
}

pub fn second_step(browser: &Browser, token: &str, code: &str) -> Reply {
    browser.post("/console/second-step", json!({"token": token, "code": code}))
}

fn a_code_is_asked_after_the_password(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let mut browser = owner(&server, &client, "olga@a.example");
    let other = {
        let mut other = Browser::new(&client);
        other.sign_in("olga@a.example");
        other
    };
    let before = server.last_seq(&client);
    let new = browser.send("POST", "/console/factors/app", "").expect(200).data();
    let uri = new["uri"].as_str().unwrap();
    assert!(uri.starts_with("otpauth://totp/Kantoor%20Test:olga%40a.example?secret="), "{uri}");
    assert!(new["qr"].as_str().unwrap().starts_with("<svg "));
    let app = App { secret: new["secret"].as_str().unwrap().to_string() };
    let confirm = |code: &str| browser.post("/console/factors/confirm", json!({"id": new["id"], "code": code}));
    assert_eq!(confirm("000000").expect(422).faults(), ["code: invalid_format"]);
    // Until then, the password is enough.
    Browser::new(&client).sign_in("olga@a.example");
    let codes = confirm(&app.code(0)).expect(200).data();
    assert_eq!(codes["recovery_codes"].as_array().unwrap().len(), 10);
    confirm(&app.code(1)).expect(404);
    assert_eq!(server.events(&client, before), ["user.signed_in", "user.two_factor_added"]);
    browser.get("/console/v1/me").expect(200);
    std::thread::sleep(Duration::from_millis(1050));
    other.get("/console/v1/me").expect(401);

    let token = first_step(&browser, "olga@a.example");
    let wrong = second_step(&browser, &token, "000000").expect(401);
    assert!(wrong.text.contains("The code is wrong, or it has been used before."), "{}", wrong.text);
    second_step(&browser, &"0".repeat(64), &app.code(1)).expect(409);
    let code = app.code(1);
    let spaced = format!(" {} {}", &code[..3], &code[3..]);
    browser.enter("/console/second-step", json!({"token": token, "code": spaced}));
    assert_eq!(browser.get("/console/v1/me").expect(200).data()["user"]["email"], "olga@a.example");
    let used = second_step(&browser, &token, &app.code(1)).expect(409);
    assert!(used.text.contains("has been used. Sign in with your password again."), "{}", used.text);
}

fn a_code_works_once(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let (app, _) = enrol(&browser);
    let (first, second) = (first_step(&browser, "olga@a.example"), first_step(&browser, "olga@a.example"));
    // The code that completed the enrolment is used up.
    second_step(&browser, &first, &app.code(-1)).expect(401);
    let code = app.code(1);
    second_step(&browser, &first, &code).expect(200);
    second_step(&browser, &second, &code).expect(401);
    // An earlier code does not come back after a later one.
    second_step(&browser, &second, &app.code(0)).expect(401);
    // Of many requests with the same code, one succeeds.
    server.execute("UPDATE second_factors SET counter = 0");
    let tokens: Vec<String> = (0..6).map(|_| first_step(&browser, "olga@a.example")).collect();
    let code = app.code(0);
    let passed = std::thread::scope(|scope| {
        let tried: Vec<_> =
            tokens.iter().map(|token| scope.spawn(|| second_step(&browser, token, &code).status)).collect();
        tried.into_iter().map(|one| one.join().unwrap()).filter(|status| *status == 200).count()
    });
    assert_eq!(passed, 1);
}

fn codes_are_limited(db: Db) {
    let server = Server::with(db, |config| config.public_limit_per_minute = 0);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let (app, _) = enrol(&browser);
    // Those of others who share the IP address do not count.
    let now = server.now().0;
    server.execute(&format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
         INSERT INTO sign_in_attempts (id, subject, at) SELECT 'a' || i, 'address 127.0.0.1', {now} FROM n"
    ));
    for _ in 0..10 {
        // A right password does not start the count again.
        let token = first_step(&browser, "olga@a.example");
        second_step(&browser, &token, "000000").expect(401);
    }
    let token = first_step(&browser, "olga@a.example");
    let refused = second_step(&browser, &token, &app.code(1)).expect(429);
    let wait: i64 = refused.header("retry-after").parse().unwrap();
    assert!((600..=900).contains(&wait), "{wait}");
    server.execute("UPDATE sign_in_attempts SET at = at - 900000");
    second_step(&browser, &token, &app.code(1)).expect(200);
    // The first step does not last.
    let token = first_step(&browser, "olga@a.example");
    server.rewrite("UPDATE one_time_tokens SET expires_at = 1 WHERE used_at = 0");
    server.execute("UPDATE second_factors SET counter = 0");
    assert!(second_step(&browser, &token, &app.code(1)).expect(409).text.contains("has expired"));
    // A new password ends what was begun with the old one.
    let token = first_step(&browser, "olga@a.example");
    let body = json!({"current_password": PASSWORD, "password": "battery staple horse"});
    browser.post("/console/password", body).expect(204);
    second_step(&browser, &token, &app.code(1)).expect(409);
}

fn recovery_codes_work_once(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    assert_eq!(browser.send("POST", "/console/recovery-codes", "").expect(409).code(), "invalid_transition");
    let (_, codes) = enrol(&browser);
    let before = server.last_seq(&client);
    let token = first_step(&browser, "olga@a.example");
    second_step(&browser, &token, &codes[0].to_lowercase().replace('-', " ")).expect(200);
    assert_eq!(server.events(&client, before), ["user.recovery_code_used", "user.signed_in"]);
    let token = first_step(&browser, "olga@a.example");
    second_step(&browser, &token, &codes[0]).expect(401);
    assert_eq!(browser.get("/console/factors").expect(200).data()["recovery_codes_left"], 9);
    let new = browser.send("POST", "/console/recovery-codes", "").expect(200).data();
    assert!(server.events(&client, before).contains(&"user.recovery_codes_created".to_string()));
    second_step(&browser, &token, &codes[1]).expect(401);
    second_step(&browser, &token, new["recovery_codes"][0].as_str().unwrap()).expect(200);
    // Those of another person do not work.
    let (_, ina) = member(&client, "ina@a.example", "member");
    let (_, hers) = enrol(&ina);
    let token = first_step(&browser, "olga@a.example");
    second_step(&browser, &token, &hers[0]).expect(401);
    // They are stored as hashes.
    let stored = server.app.store.read_now(|tx| {
        tx.all("SELECT hash FROM recovery_codes", &[], |row| Ok::<_, store::Error>(row.bytes(0)?.to_vec()))
    });
    let stored = stored.unwrap();
    assert_eq!(stored.len(), 19);
    assert!(stored.iter().all(|hash| hash.len() == 32));
}

fn factors_are_listed_and_removed(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let empty = browser.get("/console/factors").expect(200).data();
    assert_eq!(empty, json!({"factors": [], "recovery_codes_left": 0, "required": false, "confirmed": true}));
    enrol(&browser);
    let (_, codes) = enrol(&browser);
    assert!(codes.is_empty(), "the codes of the first factor still work");
    let listed = browser.get("/console/factors").expect(200).data();
    assert_eq!((&listed["factors"][0]["method"], &listed["factors"][1]["name"]), (&json!("totp"), &json!("Phone")));
    let id = |place: usize| listed["factors"][place]["id"].clone();
    let (_, stranger) = member(&client, "ina@a.example", "member");
    stranger.post("/console/factors/remove", json!({"id": id(0)})).expect(404);
    let before = server.last_seq(&client);
    browser.post("/console/factors/remove", json!({"id": id(0)})).expect(204);
    browser.post("/console/factors/remove", json!({"id": id(0)})).expect(404);
    assert_eq!(browser.get("/console/factors").expect(200).data()["recovery_codes_left"], 10);
    browser.post("/console/factors/remove", json!({"id": id(1)})).expect(204);
    assert_eq!(server.events(&client, before), ["user.two_factor_removed", "user.two_factor_removed"]);
    assert_eq!(browser.get("/console/factors").expect(200).data(), empty);
    Browser::new(&client).sign_in("olga@a.example");
    Browser::new(&client).get("/console/factors").expect(401);
    assert_eq!(browser.send("POST", "/console/factors", "").expect(405).header("allow"), "GET, HEAD");
    for _ in 0..10 {
        enrol(&browser);
    }
    assert_eq!(browser.send("POST", "/console/factors/app", "").expect(409).code(), "limit_reached");
}

fn other_ways_in_ask_for_the_code_too(db: Db) {
    let server = Server::start(db);
    let (client, other) = (server.client(), server.client());
    let (_, browser) = member(&client, "ina@a.example", "member");
    let (app, _) = enrol(&browser);
    let reset = kantoor::people::operator::reset(&server.app, "ina@a.example").unwrap();
    let body = json!({"token": token(&reset), "password": PASSWORD});
    let reply = browser.post("/console/reset", body).expect(200);
    assert!(reply.data().get("second_step").is_some() && reply.header("set-cookie").is_empty(), "{reply:?}");
    let (id, invitation) = super::invite(&other, "ina@a.example", "reader");
    let accept = || {
        let body = json!({"token": invitation, "password": PASSWORD});
        let reply = browser.post("/console/accept-invite", body).expect(200);
        reply.data()["second_step"]["token"].as_str().unwrap().to_string()
    };
    second_step(&browser, &accept(), "000000").expect(401);
    // The invitation is accepted after the code, and can be opened until then.
    let status = || other.get(&format!("/v1/users/{id}")).data()["status"].clone();
    assert_eq!(status(), "invited");
    let step = accept();
    let mut inside = Browser::new(&other);
    inside.enter("/console/second-step", json!({"token": step, "code": app.code(1)}));
    assert_eq!(status(), "active");
    let used = browser.post("/console/accept-invite", json!({"token": invitation, "password": PASSWORD})).expect(409);
    assert!(used.text.contains("has been used"), "{}", used.text);
    // A session leads to the other account without another code.
    let account = super::account(&server, &client).uid;
    let switched = inside.enter("/console/account", json!({"account_id": account}));
    assert_eq!(switched.data()["user"]["role"], "member");
}

/// Whoever reads the mail of a person can neither sign in nor lock the person out.
fn a_new_password_waits_for_the_code(db: Db) {
    let server = Server::start(db);
    let (client, other) = (server.client(), server.client());
    let (_, browser) = member(&client, "ina@a.example", "member");
    let (_, invitation) = super::invite(&other, "ina@a.example", "reader");
    browser.post("/console/accept-invite", json!({"token": invitation, "password": PASSWORD})).expect(200);
    let (app, _) = enrol(&browser);
    let new = "battery staple horse";
    let link = token(&kantoor::people::operator::reset(&server.app, "ina@a.example").unwrap());
    let choose = |password: &str| browser.post("/console/reset", json!({"token": link, "password": password}));
    let step = |reply: Reply| reply.expect(200).data()["second_step"]["token"].as_str().unwrap().to_string();
    let (before, elsewhere) = (server.last_seq(&client), server.last_seq(&other));
    let first = step(choose("another good password"));
    second_step(&browser, &first, "000000").expect(401);
    // Nothing has happened yet.
    std::thread::sleep(Duration::from_millis(1050));
    browser.get("/console/v1/me").expect(200);
    first_step(&browser, "ina@a.example");
    assert!(server.events(&client, before).is_empty());
    // The link works until the second step is done.
    let second = step(choose(new));
    let mut entered = Browser::new(&client);
    entered.enter("/console/second-step", json!({"token": second, "code": app.code(1)}));
    assert_eq!(server.events(&client, before), ["user.password_changed", "user.signed_in"]);
    assert_eq!(server.events(&other, elsewhere), ["user.password_changed"]);
    assert!(choose(new).expect(409).text.contains("This link has been used."));
    second_step(&browser, &first, &app.code(1)).expect(409);
    let pending = "SELECT count(*) FROM one_time_tokens WHERE new_password <> ''";
    let pending = server.app.store.read_now(move |tx| tx.int(pending, &[])).unwrap();
    assert_eq!(pending, 0);
    std::thread::sleep(Duration::from_millis(1050));
    browser.get("/console/v1/me").expect(401);
    entered.get("/console/v1/me").expect(200);
    let old = json!({"email": "ina@a.example", "password": PASSWORD});
    browser.post("/console/sign-in", old).expect(401);
    browser.post("/console/sign-in", json!({"email": "ina@a.example", "password": new})).expect(200);
}

fn links_of_a_suspended_user_say_so(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let (id, browser) = member(&client, "ina@a.example", "member");
    let sign_in = kantoor::people::operator::sign_in_link(&server.app, "ina@a.example").unwrap();
    let reset = kantoor::people::operator::reset(&server.app, "ina@a.example").unwrap();
    client.patch(&format!("/v1/users/{id}"), json!({"status": "suspended"})).expect(200);
    let with_password = json!({"token": token(&reset), "password": "battery staple horse"});
    for (path, body) in [("sign-in-link", json!({"token": token(&sign_in)})), ("reset", with_password)] {
        let page = browser.get(&format!("/{path}/{}", body["token"].as_str().unwrap())).expect(403);
        assert!(page.text.contains("Ask an owner of the account to restore it."), "{}", page.text);
        assert_eq!(browser.post(&format!("/console/{path}"), body).expect(403).code(), "user_suspended");
    }
    let refused = kantoor::people::operator::sign_in_link(&server.app, "ina@a.example").unwrap_err();
    assert!(refused.message.contains("is not an active user of any account"), "{}", refused.message);
}

fn a_session_without_its_factor_is_limited(db: Db) {
    let server = Server::with(db, |config| config.public_limit_per_minute = 20);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    client.patch("/v1/settings", json!({"two_factor": "all"})).expect(200);
    std::thread::sleep(Duration::from_millis(1050));
    let statuses: Vec<u16> = (0..30).map(|_| browser.get("/console/v1/tasks").status).collect();
    assert_eq!((statuses[0], statuses[29]), (403, 429), "{statuses:?}");
}

fn an_account_can_require_a_second_factor(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let (_, ina) = member(&client, "ina@a.example", "member");
    let settle = || std::thread::sleep(Duration::from_millis(1050));
    client.patch("/v1/settings", json!({"two_factor": "sometimes"})).expect(422);
    client.patch("/v1/settings", json!({"two_factor": "owners"})).expect(200);
    settle();
    ina.get("/console/v1/tasks").expect(200);
    let refused = browser.get("/console/v1/tasks").expect(403);
    assert_eq!(refused.code(), "two_factor_required");
    for path in ["/console/v1/me", "/console/v1/me/sessions", "/console/v1/changes/stream"] {
        assert_eq!(browser.get(path).expect(403).code(), "two_factor_required", "{path}");
    }
    let password = json!({"current_password": PASSWORD, "password": "battery staple horse"});
    assert_eq!(browser.post("/console/password", password).expect(403).code(), "two_factor_required");
    let account = json!({"account_id": super::account(&server, &client).uid});
    assert_eq!(browser.post("/console/account", account).expect(403).code(), "two_factor_required");
    // A new sign-in leads no further.
    let mut again = Browser::new(&client);
    again.sign_in("olga@a.example");
    assert_eq!(again.get("/console/v1/tasks").expect(403).code(), "two_factor_required");
    assert_eq!(again.get("/console/factors").expect(200).data()["required"], true);
    again.send("POST", "/console/sign-out", "").expect(204);
    again.get("/console/factors").expect(401);
    enrol(&browser);
    browser.get("/console/v1/tasks").expect(200);
    assert_eq!(browser.get("/console/factors").expect(200).data()["required"], false);
    client.patch("/v1/settings", json!({"two_factor": "all"})).expect(200);
    settle();
    ina.get("/console/v1/tasks").expect(403);
    browser.get("/console/v1/tasks").expect(200);
    // Keys have no second factor.
    client.get("/v1/tasks").expect(200);
    let id = browser.get("/console/factors").data()["factors"][0]["id"].clone();
    browser.post("/console/factors/remove", json!({"id": id})).expect(204);
    settle();
    browser.get("/console/v1/tasks").expect(403);
    client.patch("/v1/settings", json!({"two_factor": "off"})).expect(200);
    browser.get("/console/v1/tasks").expect(200);
}

fn an_owner_removes_a_lost_factor(db: Db) {
    let server = Server::start(db);
    let (client, other) = (server.client(), server.client());
    let boss = owner(&server, &client, "olga@a.example");
    let (id, ina) = member(&client, "ina@a.example", "member");
    let (_, reader) = member(&client, "rob@a.example", "reader");
    enrol(&ina);
    let path = format!("/console/v1/users/{id}/remove-two-factor");
    reader.send("POST", &path, "").expect(403);
    let (guest, invitation) = super::invite(&other, "ina@a.example", "reader");
    let before = server.last_seq(&client);
    boss.send("POST", &path, "").expect(200);
    boss.send("POST", &path, "").expect(200);
    assert_eq!(server.events(&client, before), ["user.two_factor_removed"]);
    std::thread::sleep(Duration::from_millis(1050));
    ina.get("/console/v1/tasks").expect(401);
    let mut ina = Browser::new(&client);
    ina.sign_in("ina@a.example");
    // In two accounts, neither owner decides.
    ina.post("/console/accept-invite", json!({"token": invitation, "password": PASSWORD})).expect(200);
    enrol(&ina);
    for (client, id) in [(&client, &id), (&other, &guest)] {
        let refused = client.act(&format!("/v1/users/{id}/remove-two-factor")).expect(403);
        assert!(refused.text.contains("also a user of another account"), "{}", refused.text);
    }
    // Nor if she is suspended in one of them.
    other.patch(&format!("/v1/users/{guest}"), json!({"status": "suspended"})).expect(200);
    client.act(&format!("/v1/users/{id}/remove-two-factor")).expect(403);
}

fn secrets_of_apps_are_encrypted(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let (app, _) = enrol(&browser);
    let stored = || -> Vec<(String, String)> {
        let sql = "SELECT id, secret FROM second_factors ORDER BY created_at";
        let read = move |tx: &mut store::Tx| {
            tx.all(sql, &[], |row| Ok::<_, store::Error>((row.text(0)?.to_string(), row.text(1)?.to_string())))
        };
        server.app.store.read_now(read).unwrap()
    };
    let (id, secret) = stored().pop().unwrap();
    assert!(secret.starts_with("enc:") && !secret.contains(&app.secret), "{secret}");
    let (_, ina) = member(&client, "ina@a.example", "member");
    let (hers, _) = enrol(&ina);
    // The secret of one person does not work for another.
    server.execute(&format!("UPDATE second_factors SET secret = '{secret}' WHERE id <> '{id}'"));
    let token = first_step(&browser, "ina@a.example");
    for code in [app.code(1), hers.code(1)] {
        let refused = second_step(&browser, &token, &code).expect(409);
        assert_eq!(refused.code(), "unreadable", "{}", refused.text);
    }
}

fn the_operator_removes_a_lost_factor(db: Db) {
    let binary = Binary::start(&db, "", &[]);
    let first = super::commands::link(&binary.said());
    let mut browser = Browser::new(&binary.client);
    let owner = json!({"token": token(&first), "email": "olga@a.example", "name": "Olga", "password": PASSWORD,
                       "business": "Ster"});
    browser.enter("/console/set-up", owner);
    enrol(&browser);
    let user = |arguments: &[&str]| kantoor(&db, &[&["user"], arguments].concat());
    // In an emergency, a link signs in without both.
    let printed = said(&user(&["sign-in-link", "Olga@a.example"]));
    assert!(printed.starts_with("Open this link within 15 minutes to sign in as Olga@a.example."), "{printed}");
    let link = super::commands::link(&printed);
    let page = Browser::new(&binary.client).get(&format!("/sign-in-link/{}", token(&link))).expect(200);
    assert!(page.text.contains("<strong>Olga</strong>") && page.header("set-cookie").is_empty(), "{}", page.text);
    let mut inside = Browser::new(&binary.client);
    let body = json!({"token": token(&link)});
    inside.enter("/console/sign-in-link", body.clone());
    inside.get("/console/v1/products").expect(200);
    assert!(inside.post("/console/sign-in-link", body).expect(409).text.contains("has been used"));
    let line = |event: &str| -> Value {
        let all = binary.client.get("/v1/changes?limit=100").expect(200).data();
        all.as_array()
            .unwrap()
            .iter()
            .rfind(|line| line["type"] == event)
            .unwrap_or_else(|| panic!("{event}: {all}"))
            .clone()
    };
    assert_eq!(line("user.sign_in_link_created")["actor"], "operator");
    // Its log lines and those of the factor are signed: the password is not changed by anybody else.
    let verified = said(&kantoor(&db, &["verify"]));
    assert!(!verified.contains("PROBLEM"), "{verified}");
    let expired = super::commands::link(&said(&user(&["sign-in-link", "olga@a.example"])));
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!(said(&user(&["remove-two-factor", "olga@a.example"])).trim(), "Removed 1 second factor.");
    assert_eq!(said(&user(&["remove-two-factor", "olga@a.example"])).trim(), "olga@a.example has no second factor.");
    assert_eq!(line("user.two_factor_removed")["actor"], "operator");
    std::thread::sleep(Duration::from_millis(1050));
    for ended in [&browser, &inside] {
        ended.get("/console/v1/products").expect(401);
    }
    Browser::new(&binary.client).sign_in("olga@a.example");
    Browser::new(&binary.client).enter("/console/sign-in-link", json!({"token": token(&expired)}));
    let wrong = String::from_utf8(user(&["sign-in-link", "x@a.example"]).stderr).unwrap();
    assert!(wrong.contains("obody has the e-mail address x@a.example"), "{wrong}");
    assert!(said(&kantoor(&db, &["verify"])).contains("  intact: "));
}
