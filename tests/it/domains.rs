//! E-mail domains: verified by a TXT record that a name server of the test answers, or by the operator.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ::mail::sink::Sink;
use engine::jobs::worker;
use serde_json::{Value, json};

use crate::cli::{kantoor, said};
use crate::on_both;
use crate::people::owner;
use crate::server::Binary;
use crate::support::{Client, Db, Server};

/// A name server with TXT records.
#[derive(Clone)]
pub struct Names {
    pub address: String,
    records: Arc<Mutex<HashMap<String, Vec<String>>>>,
    /// The response code for everything, unless it is 0.
    code: Arc<Mutex<u8>>,
    /// Answers wait for this lock.
    held: Arc<Mutex<()>>,
    asked: Arc<AtomicUsize>,
}

impl Names {
    pub fn start() -> Names {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let names = Names {
            address,
            records: Arc::default(),
            code: Arc::default(),
            held: Arc::default(),
            asked: Arc::default(),
        };
        let own = names.clone();
        std::thread::spawn(move || {
            let mut query = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut query) {
                own.asked.fetch_add(1, Ordering::SeqCst);
                drop(own.held.lock());
                let _ = socket.send_to(&own.answer(&query[..length]), from);
            }
        });
        names
    }

    fn set(&self, name: &Value, value: &str) {
        self.set_all(name.as_str().unwrap(), &[value]);
    }

    pub fn set_all(&self, name: &str, values: &[&str]) {
        let values = values.iter().map(ToString::to_string).collect();
        self.records.lock().unwrap().insert(name.to_string(), values);
    }

    fn fail_with(&self, code: u8) {
        *self.code.lock().unwrap() = code;
    }

    fn answer(&self, query: &[u8]) -> Vec<u8> {
        let (mut name, mut at) = (Vec::new(), 12);
        while query[at] != 0 {
            let length = usize::from(query[at]);
            name.push(String::from_utf8_lossy(&query[at + 1..at + 1 + length]).to_lowercase());
            at += length + 1;
        }
        let question = &query[12..at + 5];
        let texts = self.records.lock().unwrap().get(&name.join(".")).cloned().unwrap_or_default();
        let code = match *self.code.lock().unwrap() {
            0 if texts.is_empty() => 3,
            code => code,
        };
        let texts = if code == 0 { texts } else { Vec::new() };
        let mut out = query[..2].to_vec();
        out.extend([0x81, 0x80 | code, 0, 1, 0, u8::try_from(texts.len()).unwrap(), 0, 0, 0, 0]);
        out.extend_from_slice(question);
        for text in texts {
            let length = u8::try_from(text.len()).unwrap();
            out.extend([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 0, 0, length + 1, length]);
            out.extend_from_slice(text.as_bytes());
        }
        out
    }
}

fn server(db: Db, names: &Names) -> Server {
    let address = names.address.clone();
    Server::with(db, |config| config.dns_server = address)
}

fn domain(client: &Client, body: Value) -> Value {
    client.post("/v1/email-domains", body).expect(201).data()
}

fn path(domain: &Value) -> String {
    format!("/v1/email-domains/{}", domain["id"].as_str().unwrap())
}

fn check(client: &Client, domain: &Value) -> Value {
    client.act(&format!("{}/verify", path(domain))).expect(200).data()
}

/// Publishes the TXT record that the domain asks for.
fn publish(names: &Names, domain: &Value) {
    names.set(&domain["txt_name"], domain["txt_value"].as_str().unwrap());
}

on_both![
    a_txt_record_verifies_a_domain,
    a_verified_domain_keeps_its_status_for_three_days_without_the_record,
    only_one_account_verifies_a_domain,
    another_name_needs_another_proof,
    a_name_that_changes_during_the_lookup_is_not_verified,
    domains_are_checked_every_hour_and_by_the_operator,
    mail_of_an_unverified_identity_is_from_the_account,
];

fn a_txt_record_verifies_a_domain(db: Db) {
    let names = Names::start();
    let server = server(db, &names);
    let client = server.client();
    let refused = client.post("/v1/email-domains", json!({"domain": "firma.example", "status": "verified"}));
    assert_eq!(refused.expect(422).faults(), ["status: read_only"]);
    let made = domain(&client, json!({"domain": "Firma.Example", "subdomain": "Mail"}));
    assert_eq!((&made["status"], &made["verified_by"]), (&json!("pending"), &json!("nobody")));
    assert_eq!(made["txt_name"], "_kantoor.mail.firma.example");
    assert_eq!(made["txt_value"], format!("kantoor-verification={}", made["id"].as_str().unwrap()));
    let before = server.last_seq(&client);
    let checked = check(&client, &made);
    assert_eq!(
        (&checked["status"], &checked["check_result"]),
        (&json!("pending"), &json!("There is no TXT record with this name."))
    );
    names.set(&made["txt_name"], "kantoor-verification=another");
    assert_eq!(check(&client, &made)["check_result"], "The TXT record has another value.");
    names.fail_with(2);
    let failed = check(&client, &made);
    assert!(failed["check_result"].as_str().unwrap().starts_with("The DNS lookup failed. "), "{failed}");
    assert_eq!(server.events(&client, before), Vec::<String>::new(), "nothing has changed");
    names.fail_with(0);
    publish(&names, &made);
    let verified = check(&client, &made);
    assert_eq!((&verified["status"], &verified["verified_by"]), (&json!("verified"), &json!("dns")));
    assert!(verified["checked_at"].is_string());
    assert_eq!(server.events(&client, before), ["email_domain.updated"]);
    let listed = client.get("/v1/email-domains?status=verified").expect(200).data();
    assert_eq!(listed[0]["id"], made["id"]);
    assert!(listed[0].get("txt_value").is_none(), "lists are as in the contract");
    let reader = server.with_scopes(&client, &["settings.read"]);
    reader.act(&format!("{}/verify", path(&made))).expect(403);
    assert_eq!(server.client().act(&format!("{}/verify", path(&made))).status, 404);
}

fn a_verified_domain_keeps_its_status_for_three_days_without_the_record(db: Db) {
    let names = Names::start();
    let server = server(db, &names);
    let client = server.client();
    let made = domain(&client, json!({"domain": "firma.example"}));
    publish(&names, &made);
    assert_eq!(check(&client, &made)["status"], "verified");
    names.records.lock().unwrap().clear();
    let missing = check(&client, &made);
    assert_eq!(missing["status"], "verified");
    assert!(missing["missing_since"].is_string());
    server.execute("UPDATE email_domains SET missing_since = missing_since - 3 * 24 * 3600 * 1000");
    names.fail_with(2);
    assert_eq!(check(&client, &made)["status"], "verified", "a failed lookup proves nothing");
    names.fail_with(0);
    let gone = check(&client, &made);
    assert_eq!((&gone["status"], &gone["verified_by"]), (&json!("pending"), &json!("nobody")));
    publish(&names, &made);
    let back = check(&client, &made);
    assert_eq!((&back["status"], &back["missing_since"]), (&json!("verified"), &Value::Null));
    // One that nobody verified.
    names.records.lock().unwrap().clear();
    server.execute("UPDATE email_domains SET verified_by = 'nobody', missing_since = 0");
    assert_eq!(check(&client, &made)["status"], "pending");
}

fn only_one_account_verifies_a_domain(db: Db) {
    let names = Names::start();
    let server = server(db, &names);
    let (one, other) = (server.client(), server.client());
    let first = domain(&one, json!({"domain": "firma.example", "subdomain": "mail"}));
    let second = domain(&other, json!({"domain": "mail.firma.example"}));
    assert_eq!(first["txt_name"], second["txt_name"]);
    assert_ne!(first["txt_value"], second["txt_value"]);
    publish(&names, &first);
    assert_eq!(check(&other, &second)["status"], "pending", "the record of another account proves nothing");
    assert_eq!(check(&one, &first)["status"], "verified");
    publish(&names, &second);
    let refused = other.act(&format!("{}/verify", path(&second))).expect(409);
    assert_eq!(refused.code(), "duplicate");
    assert_eq!(other.get(&path(&second)).data()["status"], "pending");
    one.delete(&path(&first)).expect(204);
    assert_eq!(check(&other, &second)["status"], "verified");
}

fn another_name_needs_another_proof(db: Db) {
    let names = Names::start();
    let server = server(db, &names);
    let client = server.client();
    let made = domain(&client, json!({"domain": "firma.example"}));
    publish(&names, &made);
    assert_eq!(check(&client, &made)["status"], "verified");
    let patched = client.patch(&path(&made), json!({"type": "receiving"})).expect(200).data();
    assert_eq!(patched["status"], "verified");
    let patched = client.patch(&path(&made), json!({"domain": "bank.example"})).expect(200).data();
    assert_eq!((&patched["status"], &patched["verified_by"]), (&json!("pending"), &json!("nobody")));
    assert_eq!(check(&client, &patched)["status"], "pending");
}

fn a_name_that_changes_during_the_lookup_is_not_verified(db: Db) {
    let names = Names::start();
    let server = server(db, &names);
    let client = server.client();
    let made = domain(&client, json!({"domain": "own.example"}));
    publish(&names, &made);
    let held = names.held.lock().unwrap();
    let (own, copy) = (client.clone(), made.clone());
    let checking = std::thread::spawn(move || check(&own, &copy));
    while names.asked.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    client.patch(&path(&made), json!({"domain": "bank.example"})).expect(200);
    drop(held);
    for domain in [checking.join().unwrap(), client.get(&path(&made)).expect(200).data()] {
        assert_eq!((&domain["domain"], &domain["status"]), (&json!("bank.example"), &json!("pending")));
    }
}

fn domains_are_checked_every_hour_and_by_the_operator(db: Db) {
    let names = Names::start();
    let server = format!("dns_server={}", names.address);
    let binary = Binary::start(&db, "", &["--set", &server]);
    let client = &binary.client;
    let made = domain(client, json!({"domain": "firma.example"}));
    publish(&names, &made);
    // The work of the next hour.
    let hurry = || {
        let sql = "UPDATE jobs SET run_at = 0 WHERE kind = 'days' AND state = 'ready'";
        if db.url.is_empty() {
            rusqlite::Connection::open(db.data.join("kantoor.db")).unwrap().execute_batch(sql).unwrap();
        } else {
            crate::support::execute(&db.url, sql);
        }
    };
    let started = Instant::now();
    while client.get(&path(&made)).expect(200).data()["status"] != "verified" {
        assert!(started.elapsed() < Duration::from_secs(20), "{}", client.get(&path(&made)).text);
        hurry();
        std::thread::sleep(Duration::from_millis(300));
    }
    let other = domain(client, json!({"domain": "bank.example"}));
    let id = other["id"].as_str().unwrap();
    assert_eq!(said(&kantoor(&db, &["domain", "verify", id])).trim(), "Verified bank.example.");
    let shown = client.get(&path(&other)).expect(200).data();
    assert_eq!((&shown["status"], &shown["verified_by"]), (&json!("verified"), &json!("operator")));
    assert_eq!(check(client, &other)["status"], "verified", "no record is needed");
    let listed: Value = serde_json::from_str(&said(&kantoor(&db, &["domain", "list", "--json"]))).unwrap();
    assert_eq!((&listed[0]["id"], &listed[0]["host"]), (&other["id"], &json!("bank.example")));
    assert!(said(&kantoor(&db, &["domain", "list"])).contains("firma.example  verified by dns"));
    let revoke = ["domain", "revoke", "Bank.Example."];
    assert_eq!(said(&kantoor(&db, &revoke)).trim(), "Revoked the verification of bank.example.");
    assert!(said(&kantoor(&db, &["domain", "list"])).contains("bank.example  pending  "));
    assert_eq!(client.get(&path(&other)).expect(200).data()["status"], "pending");
    let wrong = kantoor(&db, &["domain", "verify", "nope"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("no account has the e-mail domain nope"));
    let numbers = client.post("/v1/email-domains", json!({"domain": "192.0.2.1"})).expect(422);
    assert_eq!(numbers.faults(), ["domain: invalid_format"]);
    let letters = client.post("/v1/email-domains", json!({"domain": "bücher.example"})).expect(422);
    assert!(letters.text.contains("xn--bcher-kva.example"), "{}", letters.text);
    let verified = said(&kantoor(&db, &["verify"]));
    assert!(verified.contains("no problems"), "{verified}");
}

/// Anybody can write the name and the address of a bank into a corporate identity or a ticket channel.
fn mail_of_an_unverified_identity_is_from_the_account(db: Db) {
    let sink = Sink::start().unwrap();
    let server = Server::with(db, |config| {
        config.smtp_host = "127.0.0.1".to_string();
        config.smtp_port = sink.port();
        config.smtp_security = "none".to_string();
        config.smtp_timeout_seconds = 2;
        config.mail_from = "kantoor@server.example".to_string();
    });
    let client = server.client();
    owner(&server, &client, "olga@a.example");
    client.patch("/v1/account", json!({"name": "Loodgieters Jansen"})).expect(200);
    let identity = client.get("/v1/corporate-identities").data()[0]["id"].as_str().unwrap().to_string();
    let named = |name: &str, email: &str| {
        let changed = json!({"name": name, "email": email});
        client.patch(&format!("/v1/corporate-identities/{identity}"), changed).expect(200);
    };
    let mut count = 0;
    // The mail that a request causes: its headers From and Reply-To.
    let mut sent = |path: &str, body: Value| {
        let reply = client.post(path, body);
        assert!(matches!(reply.status, 200 | 201), "{reply:?}");
        server.block_on(async { while worker::turn(&server.app).await {} });
        count += 1;
        let mail = sink.wait(count, Duration::from_secs(10)).pop().unwrap();
        let text = String::from_utf8_lossy(&mail.message).to_string();
        let header = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            line.unwrap_or_default().replace('"', "")
        };
        (header("From"), header("Reply-To"))
    };
    let trial = || ("/v1/mails/test", json!({"to": "anna@ster.example"}));
    named("Big Bank", "help@bank.example");
    let own = "Loodgieters Jansen <kantoor@server.example>".to_string();
    let owners = "Loodgieters Jansen <olga@a.example>".to_string();
    let (path, body) = trial();
    assert_eq!(sent(path, body), (own.clone(), owners.clone()));
    let ticket = client.post("/v1/tickets", json!({"subject": "Koud", "client_email": "a@b.example"})).expect(201).id();
    let channel = json!({"name": "Mail", "from_name": "Big Bank", "from_email": "help@bank.example", "active": true});
    client.post("/v1/ticket-channels", channel).expect(201);
    assert_eq!(
        sent(&format!("/v1/tickets/{ticket}/messages"), json!({"body": "Morgen"})),
        (own.clone(), owners.clone())
    );
    assert_eq!(
        sent("/v1/users", json!({"email": "ina@a.example", "name": "Ina", "role": "owner"})),
        (own.clone(), owners)
    );
    // Another user of the account is theirs too, once they have accepted.
    let invited = json!({"email": "bert@a.example", "name": "Bert", "role": "reader"});
    assert!(sent("/v1/users", invited).1.contains("olga@a.example"));
    named("Big Bank", "bert@a.example");
    let (path, body) = trial();
    assert!(sent(path, body).1.contains("olga@a.example"), "Bert has not accepted");
    server.execute("UPDATE users SET status = 'active' WHERE email = 'bert@a.example'");
    let (path, body) = trial();
    assert_eq!(sent(path, body), (own, "Loodgieters Jansen <bert@a.example>".to_string()));
    // A verified domain is the proof of both.
    named("Jansen en Zoon", "info@jansen.example");
    client.post("/v1/email-domains", json!({"domain": "jansen.example"})).expect(201);
    server.execute("UPDATE email_domains SET status = 'verified', verified_by = 'operator'");
    let (path, body) = trial();
    assert_eq!(sent(path, body), ("Jansen en Zoon <info@jansen.example>".to_string(), String::new()));
}
