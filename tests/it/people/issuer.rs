//! Signing in at an OpenID Connect issuer, which this test runs.

use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use engine::clock::Moment;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use web::scripted::{Received, Reply as Scripted, Scripted as Issuer};

use super::pages::submit;
use super::{Browser, PASSWORD, invite, member, owner};
use crate::on_both;
use crate::support::{Client, Db, Reply, Server, Shared};

on_both![
    people_sign_in_at_an_issuer,
    a_wrong_token_is_rejected,
    a_response_belongs_to_one_browser,
    a_response_works_once,
    an_unknown_person_is_told,
    a_password_that_nobody_confirmed_opens_no_other_account,
    the_issuer_says_when_somebody_signed_in,
    responses_of_the_issuer_are_limited,
    the_wanted_page_survives_the_way_to_the_issuer,
    without_an_issuer_there_is_nothing,
    somebody_without_a_password_accepts_an_invitation_in_a_session,
    nobody_chooses_the_password_of_a_suspended_person,
    what_nobody_confirmed_ends_with_a_proof,
    the_invitation_that_somebody_opened_is_accepted,
];

fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn pairs(text: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

fn value(pairs: &[(String, String)], name: &str) -> String {
    pairs.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone()).unwrap_or_default()
}

/// What the issuer knows: the requests that people accepted, and what the next token says differently.
struct Books {
    base: String,
    key: EcdsaKeyPair,
    foreign: EcdsaKeyPair,
    accepted: Vec<Vec<(String, String)>>,
    email: String,
    changes: Value,
    signs_with_another_key: bool,
    exchanges_codes_again: bool,
}

fn new_key() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap()
}

impl Books {
    fn answer(&mut self, received: &Received) -> Scripted {
        let (base, said) = (&self.base, |data: Value| Scripted::json(200, data.to_string()));
        match received.path.as_str() {
            "/.well-known/openid-configuration" => said(json!({
                "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"), "jwks_uri": format!("{base}/keys"),
            })),
            "/keys" => {
                let point = self.key.public_key().as_ref();
                let (x, y) = (encode(&point[1..33]), encode(&point[33..]));
                said(json!({"keys": [{"kty": "EC", "crv": "P-256", "use": "sig", "kid": "k1", "x": x, "y": y}]}))
            }
            "/token" => self.token(received),
            _ => Scripted::new(404),
        }
    }

    /// Exchanges a code for a token, once, if the verifier fits the challenge.
    fn token(&mut self, received: &Received) -> Scripted {
        let form = pairs(&received.text());
        let basic = format!("Basic {}", BASE64_STANDARD.encode("kantoor:s%26cret"));
        let number: usize = value(&form, "code").trim_start_matches("code-").parse().unwrap_or(usize::MAX);
        let Some(asked) = self.accepted.get(number).cloned() else { return Scripted::json(400, "{}".to_string()) };
        let challenge = encode(&Sha256::digest(value(&form, "code_verifier")));
        let fits = received.header("authorization") == Some(&basic)
            && value(&form, "grant_type") == "authorization_code"
            && value(&form, "redirect_uri") == value(&asked, "redirect_uri")
            && challenge == value(&asked, "code_challenge");
        if !fits {
            return Scripted::json(400, json!({"error": "invalid_grant"}).to_string());
        }
        if !self.exchanges_codes_again {
            self.accepted[number].clear();
        }
        let now = engine::clock::Clock::System.now().0 / 1000;
        let mut claims = json!({
            "iss": self.base, "sub": "u1", "aud": "kantoor", "iat": now, "exp": now + 300,
            "nonce": value(&asked, "nonce"), "email": self.email, "email_verified": true,
        });
        for (name, value) in self.changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let header = encode(json!({"alg": "ES256", "kid": "k1"}).to_string().as_bytes());
        let message = format!("{header}.{}", encode(claims.to_string().as_bytes()));
        let key = if self.signs_with_another_key { &self.foreign } else { &self.key };
        let signature = key.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        let token = format!("{message}.{}", encode(signature.as_ref()));
        Scripted::json(200, json!({"id_token": token, "access_token": "x", "token_type": "Bearer"}).to_string())
    }
}

/// A server with an issuer.
struct World {
    server: Server,
    client: Client,
    books: Arc<Mutex<Books>>,
    issuer: Issuer,
}

fn world(db: Db) -> World {
    let books = Books {
        base: String::new(),
        key: new_key(),
        foreign: new_key(),
        accepted: Vec::new(),
        email: String::new(),
        changes: json!({}),
        signs_with_another_key: false,
        exchanges_codes_again: false,
    };
    let books = Arc::new(Mutex::new(books));
    let own = books.clone();
    let issuer = Issuer::start(move |received| own.lock().unwrap().answer(received)).unwrap();
    let base = issuer.url("").trim_end_matches('/').to_string();
    books.lock().unwrap().base.clone_from(&base);
    let server = Server::with(db, |config| {
        config.oidc_issuer = base;
        config.oidc_client_id = "kantoor".to_string();
        config.oidc_client_secret = "s&cret".to_string();
        config.oidc_name = "Our directory".to_string();
        config.allow_private_addresses = "127.0.0.1".to_string();
        config.public_limit_per_minute = 0;
    });
    let mut client = server.client();
    client.agent = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).build().into();
    World { server, client, books, issuer }
}

impl World {
    /// Returns how often this path of the issuer was requested.
    fn asked(&self, path: &str) -> usize {
        self.issuer.received().iter().filter(|one| one.path == path).count()
    }

    /// Goes to the issuer; returns the browser with the cookie of the attempt, and the path to come back to.
    fn go(&self, email: &str) -> (Browser, String) {
        self.go_to(email, "/oidc/start")
    }

    fn go_to(&self, email: &str, start: &str) -> (Browser, String) {
        let mut browser = Browser::new(&self.client);
        let sent = browser.get(start).expect(303);
        browser.take_cookie(&sent);
        let pairs_of = cookies(&sent).into_iter().map(|cookie| cookie.split(';').next().unwrap().to_string());
        browser.cookie = pairs_of.collect::<Vec<_>>().join("; ");
        let address = sent.header("location");
        let mut books = self.books.lock().unwrap();
        let (start, query) = address.split_once('?').unwrap();
        assert_eq!(start, format!("{}/authorize", books.base));
        let asked = pairs(query);
        assert_eq!((value(&asked, "response_type"), value(&asked, "client_id")), ("code".into(), "kantoor".into()));
        assert_eq!(
            (value(&asked, "code_challenge_method"), value(&asked, "scope")),
            ("S256".into(), "openid email profile".into())
        );
        assert!(value(&asked, "redirect_uri").ends_with("/oidc/callback"), "{address}");
        let path = format!("/oidc/callback?code=code-{}&state={}", books.accepted.len(), value(&asked, "state"));
        books.accepted.push(asked);
        books.email = email.to_string();
        (browser, path)
    }

    /// Signs in; the issuer's token has these changes.
    fn sign_in(&self, email: &str, changes: Value) -> (Browser, Reply) {
        self.books.lock().unwrap().changes = changes;
        let (browser, path) = self.go(email);
        // The browser comes from another site.
        let reply = browser.send_with("GET", &path, &[("sec-fetch-site", "cross-site")], "");
        (browser, reply)
    }
}

fn cookies(reply: &Reply) -> Vec<String> {
    reply.headers.get_all("set-cookie").iter().map(|cookie| cookie.to_str().unwrap().to_string()).collect()
}

fn session(mut browser: Browser, reply: &Reply) -> Browser {
    let cookies = cookies(reply);
    let session = cookies.iter().find(|cookie| cookie.starts_with("kantoor=")).unwrap_or_else(|| panic!("{reply:?}"));
    assert!(cookies.iter().any(|cookie| cookie.starts_with("kantoor-oidc=; Path=/; Max-Age=0")), "{cookies:?}");
    browser.cookie = session.split(';').next().unwrap().to_string();
    browser
}

/// A sign-in of an hour ago at the issuer confirms no dangerous action.
fn the_issuer_says_when_somebody_signed_in(db: Db) {
    let world = world(db);
    owner(&world.server, &world.client, "olga@a.example");
    let now = engine::clock::Clock::System.now().0 / 1000;
    for (ago, status) in [(3600, 403), (60, 201)] {
        let (browser, reply) = world.sign_in("olga@a.example", json!({"auth_time": now - ago}));
        let browser = session(browser, &reply.expect(303));
        browser.post("/console/v1/api-keys", json!({"name": "x", "scopes": ["*"]})).expect(status);
    }
    // Its description and its keys are requested once.
    let asked = |path: &str| world.asked(path);
    assert_eq!((asked("/keys"), asked("/.well-known/openid-configuration"), asked("/token")), (1, 1, 2));
}

/// Anybody can start a sign-in and come back with any code, which is exchanged at the issuer.
fn responses_of_the_issuer_are_limited(db: Db) {
    let world = world(db);
    owner(&world.server, &world.client, "olga@a.example");
    let (browser, path) = world.go("olga@a.example");
    let now = world.server.now().0;
    world.server.execute(&format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 49)
         INSERT INTO sign_in_attempts (id, subject, at) SELECT 'a' || i, 'issuer 127.0.0.1', {now} FROM n"
    ));
    let made_up = path.replace("code=code", "code=other");
    browser.get(&made_up).expect(403);
    let refused = browser.get(&made_up).expect(429);
    assert!(refused.header("retry-after").parse::<i64>().is_ok() && refused.text.contains("Too many attempts"));
    assert_eq!(world.asked("/token"), 1);
    world.server.execute("UPDATE sign_in_attempts SET at = at - 900000");
    browser.get(&path).expect(303);
    // What succeeds does not count.
    let count = "SELECT count(*) FROM sign_in_attempts WHERE subject = 'issuer 127.0.0.1' AND at > $1";
    let counted = world.server.app.store.read_now(move |tx| tx.int(count, &[(now - 60_000).into()])).unwrap();
    assert_eq!(counted, 0);
}

/// The browser keeps where the person wanted to go, as long as it is one of our own pages.
fn the_wanted_page_survives_the_way_to_the_issuer(db: Db) {
    let world = world(db);
    owner(&world.server, &world.client, "olga@a.example");
    let page = Browser::new(&world.client).get("/sign-in?to=%2Finvoices%3Fstatus%3Dopen%26page%3D2").expect(200);
    assert!(page.text.contains("href=\"/oidc/start?to=%2Finvoices%3Fstatus%3Dopen%26page%3D2\""), "{}", page.text);
    for (to, led) in [
        ("%2Finvoices%3Fstatus%3Dopen%26page%3D2", "/invoices?status=open&page=2"),
        ("%2F%2Fevil.example%2Fx", "/"),
        ("%2F%5Cevil.example", "/"),
        ("https%3A%2F%2Fevil.example", "/"),
        ("%2Fx%0D%0Aset-cookie%3A%20a%3Db", "/"),
        ("", "/"),
    ] {
        let (mut browser, path) = world.go_to("olga@a.example", &format!("/oidc/start?to={to}"));
        let reply = browser.get(&path).expect(303);
        assert_eq!(reply.header("location"), led, "{to}");
        assert!(cookies(&reply).iter().any(|cookie| cookie.starts_with("kantoor-oidc-to=; Path=/; Max-Age=0")));
        // Whatever somebody puts there.
        let odd = BASE64_URL_SAFE_NO_PAD.encode("//evil.example");
        let (again, path) = world.go_to("olga@a.example", "/oidc/start");
        browser.cookie = format!("{}; kantoor-oidc-to={odd}", again.cookie.split(';').next().unwrap());
        assert_eq!(browser.get(&path).expect(303).header("location"), "/");
    }
}

fn people_sign_in_at_an_issuer(db: Db) {
    let world = world(db);
    let (server, client) = (&world.server, &world.client);
    owner(server, client, "olga@a.example");
    let page = Browser::new(client).get("/sign-in").expect(200);
    assert!(page.text.contains("href=\"/oidc/start\"") && page.text.contains("Our directory"), "{}", page.text);
    let before = server.last_seq(client);
    let (browser, reply) = world.sign_in("Olga@A.example", json!({}));
    let reply = reply.expect(303);
    assert_eq!(reply.header("location"), "/");
    let browser = session(browser, &reply);
    assert_eq!(browser.get("/console/v1/me").expect(200).data()["user"]["email"], "olga@a.example");
    // The password that she chose when she set up the account, which confirms no address, has ended with its session.
    assert_eq!(server.events(client, before), ["user.password_changed", "user.session_ended", "user.signed_in"]);
    // An invitation is accepted by signing in, without a password.
    let (id, token) = invite(client, "ina@a.example", "member");
    let (ina, reply) = world.sign_in("ina@a.example", json!({}));
    let ina = session(ina, &reply.expect(303));
    ina.get("/console/v1/tasks").expect(200);
    assert_eq!(client.get(&format!("/v1/users/{id}")).data()["status"], "active");
    ina.post("/console/accept-invite", json!({"token": token, "password": PASSWORD})).expect(409);
    ina.post("/console/confirm", json!({"password": PASSWORD})).expect(403);
    // Nobody asks for a password that she does not have.
    server.rewrite("UPDATE sessions SET confirmed_at = 1");
    server.execute("UPDATE users SET language = 'en'");
    let page = ina.get("/two-factor").expect(200);
    assert!(
        page.text.contains("You have no password here") && !page.text.contains("type=\"password\""),
        "{}",
        page.text
    );
    let known = json!({"email": "olga@a.example", "password": PASSWORD});
    Browser::new(client).post("/console/sign-in", known).expect(401);
    // The issuer decides about second factors.
    member(client, "rob@a.example", "member");
    client.patch("/v1/settings", json!({"two_factor": "all"})).expect(200);
    std::thread::sleep(std::time::Duration::from_millis(1050));
    ina.get("/console/v1/tasks").expect(200);
    let mut by_password = Browser::new(client);
    by_password.sign_in("rob@a.example");
    assert_eq!(by_password.get("/console/v1/tasks").expect(403).code(), "two_factor_required");
    client.patch(&format!("/v1/users/{id}"), json!({"status": "suspended"})).expect(200);
    let (_, reply) = world.sign_in("ina@a.example", json!({}));
    let page = reply.expect(403);
    assert!(page.text.contains("Your access is suspended. Ask an owner"), "{}", page.text);
}

fn a_wrong_token_is_rejected(db: Db) {
    let world = world(db);
    owner(&world.server, &world.client, "olga@a.example");
    let now = world.server.now().0 / 1000;
    let wrong = [
        json!({"nonce": "another"}),
        json!({"aud": "another"}),
        json!({"aud": ["kantoor", "another"]}),
        json!({"exp": now - 120}),
        json!({"iat": now - 3600}),
        json!({"email_verified": false}),
        json!({"email_verified": null}),
        json!({"email": ""}),
        json!({"iss": "https://issuer.evil"}),
    ];
    for changes in wrong {
        let (_, reply) = world.sign_in("olga@a.example", changes.clone());
        assert_eq!(reply.status, 403, "{changes}: {reply:?}");
        assert!(
            reply.text.contains("did not succeed") && !reply.text.contains("kantoor="),
            "{changes}: {}",
            reply.text
        );
        assert!(!cookies(&reply).iter().any(|cookie| cookie.starts_with("kantoor=")), "{changes}");
    }
    world.books.lock().unwrap().signs_with_another_key = true;
    assert_eq!(world.sign_in("olga@a.example", json!({})).1.status, 403);
    world.books.lock().unwrap().signs_with_another_key = false;
    world.sign_in("olga@a.example", json!({})).1.expect(303);
}

fn a_response_belongs_to_one_browser(db: Db) {
    let world = world(db);
    owner(&world.server, &world.client, "olga@a.example");
    let (browser, path) = world.go("olga@a.example");
    let (other, _) = world.go("olga@a.example");
    // Somebody else's response signs nobody in.
    other.get(&path).expect(403);
    Browser::new(&world.client).get(&path).expect(403);
    browser.get(&path.replace("state=", "state=x")).expect(403);
    browser.get(&path.replace("code=code", "code=other")).expect(403);
    browser.get(&format!("{path}&iss=https%3A%2F%2Fissuer.evil")).expect(403);
    browser.get("/oidc/callback?error=access_denied").expect(403);
    // The code of one attempt does not work in another, since its verifier differs.
    let number = path.split("code-").nth(1).unwrap().split('&').next().unwrap().to_string();
    let (third, later) = world.go("olga@a.example");
    let mixed = later.replace(later.split("code-").nth(1).unwrap().split('&').next().unwrap(), &number);
    third.get(&mixed).expect(403);
    let base = world.books.lock().unwrap().base.clone();
    browser.get(&format!("{path}&iss={}", encode_query(&base))).expect(303);
    // A code works once.
    browser.get(&path).expect(403);
}

/// Whatever the issuer accepts: somebody may have copied the cookie and the address.
fn a_response_works_once(db: Db) {
    let world = world(db);
    owner(&world.server, &world.client, "olga@a.example");
    world.books.lock().unwrap().exchanges_codes_again = true;
    let (browser, path) = world.go("olga@a.example");
    // An attempt that failed may be repeated.
    browser.get(&path.replace("code=code", "code=other")).expect(403);
    browser.get(&path).expect(303);
    let again = browser.get(&path).expect(403);
    assert!(!cookies(&again).iter().any(|cookie| cookie.starts_with("kantoor=")), "{again:?}");
    assert_eq!(world.asked("/token"), 3);
    let (_, reply) = world.sign_in("olga@a.example", json!({}));
    reply.expect(303);
    assert_eq!(world.sign_in("olga@a.example", json!({})).1.expect(303).header("location"), "/");
}

fn encode_query(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Whoever sees the link of an invitation can choose a password for any address. It must not open an account whose invitation the
/// person accepts at the issuer.
fn a_password_that_nobody_confirmed_opens_no_other_account(db: Db) {
    let world = world(db);
    let client = &world.server.recorded_client(None);
    let other = world.server.recorded_client(Moment::parse("2020-05-04T10:00:00Z"));
    // Her other invitation is older on the clock of its account.
    let (stranger, _) = invite(&other, "eva@a.example", "owner");
    let (eva, _) = invite(client, "eva@a.example", "member");
    world.sign_in("eva@a.example", json!({})).1.expect(303);
    let status = |client: &Client, id: &str| client.get(&format!("/v1/users/{id}")).data()["status"].clone();
    assert_eq!((status(client, &eva), status(&other, &stranger)), (json!("active"), json!("invited")));
    // An invitation that was to be mailed is recorded instead.
    other.patch("/v1/settings", json!({"outside": "live"})).expect(200);
    let (_, mut attacker) = member(&other, "jet@a.example", "member");
    let kept = super::token(&kantoor::people::operator::reset(&world.server.app, "jet@a.example").unwrap());
    world.server.rewrite("UPDATE one_time_tokens SET shown = 1 WHERE purpose = 'reset'");
    let (id, _) = invite(client, "jet@a.example", "owner");
    let (jet, reply) = world.sign_in("jet@a.example", json!({}));
    let jet = session(jet, &reply.expect(303));
    assert_eq!(jet.get("/console/v1/me").expect(200).data()["user"]["id"], json!(id), "not the account of the other");
    attacker.cookie.clear();
    let guess = json!({"email": "jet@a.example", "password": PASSWORD});
    attacker.post("/console/sign-in", guess).expect(401);
    let own = json!({"token": kept, "password": "battery staple horse"});
    assert_eq!(attacker.post("/console/reset", own.clone()).expect(409).code(), "link_invalid");
    // Not even one that was not withdrawn.
    world.server.rewrite("UPDATE one_time_tokens SET used_at = 0 WHERE purpose = 'reset'");
    assert_eq!(attacker.post("/console/reset", own).expect(409).code(), "link_invalid");
    // From now on, the address is known to be hers.
    let (again, reply) = world.sign_in("jet@a.example", json!({}));
    session(again, &reply.expect(303)).get("/console/v1/me").expect(200);
}

fn somebody_without_a_password_accepts_an_invitation_in_a_session(db: Db) {
    let world = world(db);
    let (client, other) = (&world.client, &world.server.client());
    invite(client, "ina@a.example", "member");
    let (ina, reply) = world.sign_in("ina@a.example", json!({}));
    let ina = session(ina, &reply.expect(303));
    let (id, token) = invite(other, "ina@a.example", "reader");
    let path = format!("/invite/{token}");
    // Her own browser offers to accept it, another one to sign in as she does.
    let join = [("action", "join")];
    let stranger = Browser::new(client);
    let page = stranger.get(&path).expect(200).text;
    let back = format!("href=\"/oidc/start?to=%2Finvite%2F{token}\"");
    assert!(page.contains(&back) && page.contains("href=\"/forgot\"") && !page.contains("type=\"password\""), "{page}");
    submit(&stranger, &path, &join).expect(401);
    let page = ina.get(&path).expect(200).text;
    assert!(page.contains("value=\"join\"") && !page.contains("type=\"password\""), "{page}");
    let (_, guest) = member(other, "rob@a.example", "member");
    assert!(!guest.get(&path).expect(200).text.contains("value=\"join\""));
    submit(&guest, &path, &join).expect(401);
    let forged = [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "cross-site")];
    ina.send_with("POST", &path, &forged, "action=join").expect(403);
    let status = || other.get(&format!("/v1/users/{id}")).data()["status"].clone();
    assert_eq!(status(), "invited");
    let mut inside = ina;
    let entered = submit(&inside, &path, &join).expect(303);
    assert_eq!((entered.header("location"), status()), ("/", json!("active")));
    inside.take_cookie(&entered);
    assert_eq!(inside.get("/console/v1/me").expect(200).data()["user"]["id"], json!(id));
    submit(&inside, &path, &join).expect(409);
}

fn nobody_chooses_the_password_of_a_suspended_person(db: Db) {
    let world = world(db);
    let (client, other) =
        (&world.server.recorded_client(None), &world.server.recorded_client(Moment::parse("2026-05-04T10:00:00Z")));
    let (id, _) = invite(client, "eva@a.example", "owner");
    world.sign_in("eva@a.example", json!({})).1.expect(303);
    owner(&world.server, client, "olga@a.example");
    let browser = Browser::new(client);
    for status in ["active", "suspended"] {
        client.patch(&format!("/v1/users/{id}"), json!({"status": status})).expect(200);
        let (guest, token) = invite(other, "eva@a.example", "reader");
        let accept = browser.post("/console/accept-invite", json!({"token": token, "password": PASSWORD}));
        assert_eq!(accept.expect(403).code(), "password_required", "{status}");
        let token = super::set_up_token(&world.server, &world.server.client());
        let body =
            json!({"token": token, "email": "eva@a.example", "name": "E", "password": PASSWORD, "business": "B"});
        assert_eq!(browser.post("/console/set-up", body).expect(403).code(), "password_required", "{status}");
        other.delete(&format!("/v1/users/{guest}")).expect(204);
    }
}

/// Whoever has a test account can choose a password for anybody, which must never open another account.
fn what_nobody_confirmed_ends_with_a_proof(db: Db) {
    let world = world(db);
    let (client, other) =
        (&world.server.recorded_client(None), &world.server.recorded_client(Moment::parse("2026-05-04T10:00:00Z")));
    for (email, at_issuer, by_reset) in
        [("jet@a.example", true, false), ("kim@a.example", false, false), ("lea@a.example", true, true)]
    {
        let attacker =
            if by_reset { reset_by_somebody_else(&world, other, email) } else { member(other, email, "member").1 };
        let before = [client, other].map(|account| world.server.last_seq(account));
        let mut own = Browser::new(&world.client);
        if at_issuer {
            let (browser, reply) = world.sign_in(email, json!({}));
            own = session(browser, &reply.expect(303));
        } else {
            let link = kantoor::people::operator::sign_in_link(&world.server.app, email).unwrap();
            own.enter("/console/sign-in-link", json!({"token": super::token(&link)}));
        }
        let (id, token) = invite(client, email, "owner");
        world.server.rewrite("UPDATE one_time_tokens SET shown = 0 WHERE purpose = 'invite'");
        let entered = submit(&own, &format!("/invite/{token}"), &[("action", "join")]).expect(303);
        own.take_cookie(&entered);
        assert_eq!(own.get("/console/v1/me").expect(200).data()["user"]["id"], json!(id));
        std::thread::sleep(std::time::Duration::from_millis(1050));
        attacker.get("/console/v1/me").expect(401);
        let guess = json!({"email": email, "password": PASSWORD});
        Browser::new(client).post("/console/sign-in", guess).expect(401);
        // The logs of all accounts of the person say so.
        for (account, seq) in [client, other].into_iter().zip(before).skip(usize::from(at_issuer)) {
            let events = world.server.events(account, seq);
            for event in ["user.password_changed", "user.session_ended"] {
                assert_eq!(events.iter().filter(|one| *one == event).count(), 1, "{email}: {events:?}");
            }
        }
    }
}

/// The page of an invitation leads to the issuer, which leads back to that invitation alone.
fn the_invitation_that_somebody_opened_is_accepted(db: Db) {
    let world = world(db);
    let (older, newer) = (&world.server.recorded_client(None), &world.server.recorded_client(None));
    let status = |client: &Client, id: &str| client.get(&format!("/v1/users/{id}")).data()["status"].clone();
    let come_from = |email: &str, token: &str| {
        let (browser, path) = world.go_to(email, &format!("/oidc/start?to=%2Finvite%2F{token}"));
        browser.get(&path).expect(303).header("location").to_string()
    };
    let (left, _) = invite(older, "eva@a.example", "owner");
    let (opened, token) = invite(newer, "eva@a.example", "member");
    let page = Browser::new(newer).get(&format!("/invite/{token}")).expect(200).text;
    assert!(page.contains(&format!("href=\"/oidc/start?to=%2Finvite%2F{token}\"")), "{page}");
    assert_eq!(come_from("eva@a.example", &token), "/");
    assert_eq!((status(newer, &opened), status(older, &left)), (json!("active"), json!("invited")));
    // Somebody with a password whose only access is the invitation.
    let (id, token) = invite(newer, "rob@a.example", "member");
    let (gone, _) = member(older, "rob@a.example", "member");
    older.delete(&format!("/v1/users/{gone}")).expect(204);
    assert_eq!(come_from("rob@a.example", &token), "/");
    assert_eq!(status(newer, &id), "active");
    // That of another address is not accepted.
    let (id, token) = invite(older, "zoe@a.example", "member");
    assert_eq!(come_from("rob@a.example", &token), format!("/invite/{token}"));
    assert_eq!(status(older, &id), "invited");
}

/// Chooses the password of somebody who signs in at the issuer, with a link in the recorded mail of a test account.
fn reset_by_somebody_else(world: &World, other: &Client, email: &str) -> Browser {
    invite(other, email, "member");
    world.sign_in(email, json!({})).1.expect(303);
    let link = kantoor::people::operator::reset(&world.server.app, email).unwrap();
    world.server.rewrite("UPDATE one_time_tokens SET shown = 1 WHERE purpose = 'reset'");
    let mut attacker = Browser::new(&world.client);
    attacker.enter("/console/reset", json!({"token": super::token(&link), "password": PASSWORD}));
    attacker
}

fn an_unknown_person_is_told(db: Db) {
    let world = world(db);
    let (id, _) = member(&world.client, "ina@a.example", "member");
    let (_, reply) = world.sign_in("nobody@a.example", json!({}));
    let page = reply.expect(403);
    assert!(page.text.contains("Nobody here has the e-mail address"), "{}", page.text);
    world.client.delete(&format!("/v1/users/{id}")).expect(204);
    world.sign_in("ina@a.example", json!({})).1.expect(403);
}

fn without_an_issuer_there_is_nothing(server: Shared) {
    let client = server.client();
    let browser = Browser::new(&client);
    assert!(!browser.get("/sign-in").expect(200).text.contains("oidc"));
    browser.get("/oidc/start").expect(404);
    browser.get("/oidc/callback?code=x&state=y").expect(403);
}
