//! Passkeys, with an authenticator in software.

use passkeys::encode;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::pages::submit;
use super::two_factor_pages::hidden;
use super::{Browser, PASSWORD, member, owner};
use crate::on_both;
use crate::support::{Db, Reply, Server};

on_both![
    a_passkey_signs_in,
    a_passkey_is_bound_to_its_person_and_sign_in,
    a_rejected_passkey_says_what_to_do,
    a_wrong_recovery_code_leaves_the_passkey,
    passkeys_need_a_domain,
];

/// An authenticator with one key.
struct Authenticator {
    pair: EcdsaKeyPair,
    id: Vec<u8>,
    origin: &'static str,
    counter: std::cell::Cell<u32>,
}

impl Authenticator {
    fn new(id: &str) -> Authenticator {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random).unwrap();
        let counter = std::cell::Cell::new(0);
        Authenticator { pair, id: id.as_bytes().to_vec(), origin: "https://kantoor.example", counter }
    }

    fn client_data(&self, kind: &str, options: &Value) -> Vec<u8> {
        json!({"type": kind, "challenge": options["challenge"], "origin": self.origin}).to_string().into_bytes()
    }

    fn data(&self, flags: u8, rest: &[u8]) -> Vec<u8> {
        let count = self.counter.replace(self.counter.get() + 1);
        [Sha256::digest(b"kantoor.example").as_slice(), &[flags], &count.to_be_bytes(), rest].concat()
    }

    /// Answers `navigator.credentials.create()`.
    fn create(&self, options: &Value) -> Value {
        let point = self.pair.public_key().as_ref();
        let start = [0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 0x20];
        let key = [&start[..], &point[1..33], &[0x22, 0x58, 0x20], &point[33..]].concat();
        let length = u16::try_from(self.id.len()).unwrap().to_be_bytes();
        let data = self.data(0x41, &[&[0; 16][..], &length, &self.id, &key].concat());
        json!({
            "client_data": encode(&self.client_data("webauthn.create", options)), "authenticator_data": encode(&data),
        })
    }

    /// Answers `navigator.credentials.get()`.
    fn get(&self, options: &Value) -> Value {
        let (client, data) = (self.client_data("webauthn.get", options), self.data(0x05, &[]));
        let message = [&data[..], &Sha256::digest(&client)].concat();
        let signature = self.pair.sign(&SystemRandom::new(), &message).unwrap();
        json!({
            "credential": encode(&self.id), "client_data": encode(&client), "authenticator_data": encode(&data),
            "signature": encode(signature.as_ref()),
        })
    }
}

fn secure(db: Db) -> Server {
    // Browsers write its origin in lower case and without the port.
    Server::with(db, |config| config.public_url = "https://Kantoor.example:443/".to_string())
}

/// Adds a passkey; returns the response to its confirmation.
fn add(browser: &Browser, authenticator: &Authenticator) -> Reply {
    let begun = browser.send("POST", "/console/factors/passkey", "").expect(200).data();
    let mut body = authenticator.create(&begun["options"]);
    body["id"] = begun["id"].clone();
    browser.post("/console/factors/passkey/confirm", body)
}

/// Signs in with the password; returns the second step.
#[track_caller]
fn first_step(browser: &Browser, email: &str) -> Value {
    let reply = browser.post("/console/sign-in", json!({"email": email, "password": PASSWORD})).expect(200);
    reply.data()["second_step"].clone()
}

fn second_step(browser: &Browser, step: &Value, mut body: Value) -> Reply {
    body["token"] = step["token"].clone();
    browser.post("/console/second-step/passkey", body)
}

fn a_passkey_signs_in(db: Db) {
    let server = secure(db);
    let client = server.client();
    let mut browser = owner(&server, &client, "olga@a.example");
    let (laptop, stick) = (Authenticator::new("laptop"), Authenticator::new("stick"));
    let begun = browser.send("POST", "/console/factors/passkey", "").expect(200).data();
    let options = &begun["options"];
    assert_eq!(options["rp"], json!({"id": "kantoor.example", "name": "Kantoor"}));
    assert_eq!((&options["attestation"], &options["user"]["name"]), (&json!("none"), &json!("olga@a.example")));
    let confirm = |mut body: Value| {
        body["id"] = begun["id"].clone();
        browser.post("/console/factors/passkey/confirm", body)
    };
    let elsewhere = confirm(laptop.create(&json!({"challenge": "AAAA"}))).expect(422);
    assert!(elsewhere.text.contains("the response to another challenge"), "{}", elsewhere.text);
    assert_eq!(confirm(json!({"client_data": "!", "authenticator_data": "x"})).expect(422).status, 422);
    let codes = confirm(laptop.create(options)).expect(200).data();
    assert_eq!(codes["recovery_codes"].as_array().unwrap().len(), 10);
    let more = add(&browser, &stick).expect(200).data();
    assert_eq!(more["recovery_codes"], json!([]));

    let step = first_step(&browser, "olga@a.example");
    assert_eq!(step["methods"], json!(["passkey"]));
    let ids: Vec<&str> =
        step["passkey"]["allowCredentials"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [encode(b"laptop"), encode(b"stick")]);
    for authenticator in [&laptop, &stick] {
        let step = first_step(&browser, "olga@a.example");
        let mut body = authenticator.get(&step["passkey"]);
        body["token"] = step["token"].clone();
        browser.enter("/console/second-step/passkey", body.clone());
        browser.get("/console/v1/me").expect(200);
        assert_eq!(browser.post("/console/second-step/passkey", body).expect(409).code(), "link_invalid");
    }
    // A recovery code replaces it.
    let step = first_step(&browser, "olga@a.example");
    let body = json!({"token": step["token"], "code": codes["recovery_codes"][0]});
    browser.enter("/console/second-step", body);
    let listed = browser.get("/console/factors").expect(200).data();
    assert_eq!((&listed["factors"][0]["method"], &listed["recovery_codes_left"]), (&json!("passkey"), &json!(9)));
}

fn a_passkey_is_bound_to_its_person_and_sign_in(db: Db) {
    let server = secure(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let (_, ina) = member(&client, "ina@a.example", "member");
    let (own, hers, unknown) = (Authenticator::new("own"), Authenticator::new("hers"), Authenticator::new("own"));
    add(&browser, &own).expect(200);
    add(&ina, &hers).expect(200);
    let step = first_step(&browser, "olga@a.example");
    let rejected = |body: Value, why: &str| {
        let reply = second_step(&browser, &step, body).expect(401);
        assert!(reply.text.contains(why), "{}", reply.text);
    };
    rejected(hers.get(&step["passkey"]), "it is not one of yours");
    rejected(unknown.get(&step["passkey"]), "the signature is wrong");
    // The answer to one sign-in does not complete another.
    let other = first_step(&browser, "olga@a.example");
    assert_ne!(other["passkey"]["challenge"], step["passkey"]["challenge"]);
    rejected(own.get(&other["passkey"]), "the response to another challenge");
    // A copy of the page on another site gets an answer that is of no use here.
    let phished = Authenticator { origin: "https://kantoor.evil", ..Authenticator::new("own") };
    rejected(phished.get(&step["passkey"]), "it was made on another site");
    // A copied key falls behind.
    second_step(&browser, &step, own.get(&step["passkey"])).expect(200);
    own.counter.set(1);
    let step = first_step(&browser, "olga@a.example");
    let reply = second_step(&browser, &step, own.get(&step["passkey"])).expect(401);
    assert!(reply.text.contains("it may have been copied"), "{}", reply.text);
}

fn a_rejected_passkey_says_what_to_do(db: Db) {
    let server = secure(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    server.execute("UPDATE users SET language = 'en'");
    add(&browser, &Authenticator::new("own")).expect(200);
    let fields = [("email", "olga@a.example"), ("password", PASSWORD)];
    let page = submit(&browser, "/sign-in", &fields).expect(200);
    assert!(page.text.contains("Sign in with a passkey"), "{}", page.text);
    let token = hidden(&page.text, "token");
    let another = Authenticator::new("own").get(&json!({"challenge": "AAAA"}));
    let field = |name: &'static str| (name, another[name].as_str().unwrap());
    let parts = ["credential", "client_data", "authenticator_data", "signature"].map(field);
    let refused = submit(&browser, "/sign-in", &[&[("token", token.as_str())][..], &parts].concat()).expect(401);
    let advice = "The passkey was rejected. Sign in again to retry, or use a recovery code.";
    assert!(refused.text.contains(advice) && hidden(&refused.text, "token") == token, "{}", refused.text);
}

fn a_wrong_recovery_code_leaves_the_passkey(db: Db) {
    let server = secure(db);
    let client = server.client();
    let mut browser = owner(&server, &client, "olga@a.example");
    server.execute("UPDATE users SET language = 'en'");
    let own = Authenticator::new("own");
    add(&browser, &own).expect(200);
    let page = submit(&browser, "/sign-in", &[("email", "olga@a.example"), ("password", PASSWORD)]).expect(200);
    let token = hidden(&page.text, "token");
    let options = hidden(&page.text, "options").replace("&quot;", "\"");
    let fields = [("token", token.as_str()), ("methods", "passkey"), ("options", &options), ("code", "AAAA-BBBB")];
    let page = submit(&browser, "/sign-in", &fields).expect(401);
    assert!(page.text.contains("Sign in with a passkey") && page.text.contains("<script nonce="), "{}", page.text);
    assert!(!page.text.contains("authenticator app"), "{}", page.text);
    let options: Value = serde_json::from_str(&hidden(&page.text, "options").replace("&quot;", "\"")).unwrap();
    let mut used = own.get(&options);
    used["token"] = json!(token);
    browser.enter("/console/second-step/passkey", used);
    // What somebody else put into the form is text.
    let fields = [("token", token.as_str()), ("methods", "\"><b>"), ("options", "\"><b>"), ("code", "x")];
    let page = submit(&browser, "/sign-in", &fields);
    assert!(page.status < 500 && !page.text.contains("<b>"), "{}", page.text);
}

fn passkeys_need_a_domain(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let browser = owner(&server, &client, "olga@a.example");
    let refused = browser.send("POST", "/console/factors/passkey", "").expect(409);
    assert!(refused.text.contains("only on a domain name with HTTPS"), "{}", refused.text);
    assert!(!browser.get("/two-factor").expect(200).text.contains("passkey"));
}
