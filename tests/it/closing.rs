//! Closed accounts: nobody gets in, nothing happens, nothing is deleted, and everything continues when they are reopened.

use std::process::Command;
use std::time::{Duration, Instant};

use ::mail::sink::Sink;
use engine::clock::Moment;
use engine::jobs::{Claimed, JobKind, worker};
use kantoor::automation::worker as flows;
use kantoor::calendar::days::Days;
use kantoor::webhooks;
use serde_json::{Value, json};
use web::scripted::{Reply as Answer, Scripted};

use crate::on_both;
use crate::people::{Browser, PASSWORD, owner};
use crate::support::{Client, Db, Reply, Server};

on_both![
    a_closed_account_refuses_everybody,
    nothing_happens_in_a_closed_account,
    people_enter_their_other_accounts,
    accounts_are_renamed,
];

/// Runs a command on the database of a server.
fn kantoor(server: &Server, arguments: &[&str]) -> (bool, String) {
    let config = &server.app.config;
    let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
    command.args(arguments).env("KANTOOR_DATABASE_URL", &config.database_url).env("KANTOOR_DATA", &config.data);
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).to_string() + &String::from_utf8_lossy(&done.stderr);
    (done.status.success(), said)
}

fn id_of(server: &Server, client: &Client) -> String {
    crate::people::account(server, client).uid
}

#[track_caller]
fn close(server: &Server, client: &Client) {
    let (done, said) = kantoor(server, &["account", "close", &id_of(server, client)]);
    assert!(done && said.starts_with("Closed account "), "{said}");
    wait_for(client, 403);
}

#[track_caller]
fn reopen(server: &Server, client: &Client) {
    let (done, said) = kantoor(server, &["account", "reopen", &id_of(server, client)]);
    assert!(done && said.starts_with("Reopened account "), "{said}");
    wait_for(client, 200);
}

/// The commands take effect shortly after.
#[track_caller]
fn wait_for(client: &Client, status: u16) {
    until(|| client.get("/v1/products").status == status);
}

#[track_caller]
fn until(done: impl Fn() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(20), "it takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn work_off(server: &Server) {
    server.block_on(async { while worker::turn(&server.app).await {} });
}

/// Redirects are not followed, so that they can be checked.
fn without_redirects(client: &Client) -> Client {
    let agent = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).build().into();
    Client { agent, ..client.clone() }
}

/// Without a key.
fn visit(client: &Client, path: &str) -> Reply {
    client.send("GET", path, &[("authorization", ""), ("content-type", "")], "")
}

fn a_closed_account_refuses_everybody(db: Db) {
    let server = Server::start(db);
    let clock = Moment::parse("2026-05-04T10:00:00Z");
    let (client, other) = (server.recorded_client(clock), server.recorded_client(clock));
    let browser = owner(&server, &client, "olga@a.example");
    let buyer = client.post("/v1/clients", json!({"type": "company", "company_name": "De Ster"})).expect(201).data();
    let rows = json!([{"name": "x", "unit_price": 1, "vat_rate": 21}]);
    let document = json!({"title": "x", "client_id": buyer["id"], "generation_mode": "final", "rows": rows});
    let invoice = client.post("/v1/invoices", document).expect(201).data();
    let page = invoice["web_url"].as_str().unwrap();
    let page = page[page.find("/d/").unwrap()..].to_string();
    let file = client.upload("a.txt", b"hello").expect(201).data();
    let signed = file["url"].as_str().unwrap();
    let signed = signed[signed.find("/v1/").unwrap()..].to_string();
    visit(&client, &page).expect(200);
    visit(&client, &signed).expect(200);
    let before = server.last_seq(&client);

    close(&server, &client);
    let refused = client.get("/v1/products").expect(403);
    assert_eq!(refused.code(), "account_closed");
    assert!(
        refused.text.contains("Nothing was deleted; the operator of the server can reopen it."),
        "{}",
        refused.text
    );
    client.post("/v1/products", json!({"name": "x"})).expect(403);
    client.get("/v1/events/stream").expect(403);
    assert_eq!(browser.get("/console/v1/me").expect(403).code(), "account_closed");
    assert_eq!(visit(&client, &signed).expect(403).code(), "account_closed");
    let shown = visit(&client, &page).expect(403);
    assert!(
        shown.text.contains("Deze pagina is niet beschikbaar") && shown.text.contains("This page is not available")
    );
    visit(&client, &format!("{page}/pdf")).expect(403);
    let sign_in = json!({"email": "olga@a.example", "password": PASSWORD});
    assert_eq!(Browser::new(&client).post("/console/sign-in", sign_in.clone()).expect(403).code(), "account_closed");
    let wrong = json!({"email": "olga@a.example", "password": "a wrong password"});
    Browser::new(&client).post("/console/sign-in", wrong).expect(401);
    let plain = Browser { cookie: browser.cookie.clone(), ..Browser::new(&without_redirects(&client)) };
    assert_eq!(plain.get("/").expect(303).header("location"), "/sign-in");
    let form = plain.get("/sign-in").expect(403);
    assert!(form.text.contains("This account is closed.") && form.text.contains("name=\"password\""), "{}", form.text);
    plain.send("POST", "/console/sign-out", "").expect(204);
    other.get("/v1/products").expect(200);
    let (_, listed) = kantoor(&server, &["account", "list"]);
    assert_eq!(listed.matches("  (closed 20").count(), 1, "{listed}");
    let (_, listed) = kantoor(&server, &["account", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert!(listed[0]["closed_at"].is_string() && listed[1]["closed_at"].is_null(), "{listed}");
    let (done, again) = kantoor(&server, &["account", "close", &id_of(&server, &client)]);
    assert!(done && again.contains("is closed already"), "{again}");

    reopen(&server, &client);
    assert_eq!(server.events(&client, before), ["account.closed", "account.reopened"]);
    let lines = client.get("/v1/changes?order=desc&limit=2").expect(200).data();
    assert!(lines.as_array().unwrap().iter().all(|line| line["actor_type"] == "operator"), "{lines}");
    visit(&client, &page).expect(200);
    visit(&client, &signed).expect(200);
    browser.get("/console/v1/me").expect(200);
    Browser::new(&client).post("/console/sign-in", sign_in).expect(200);
    let (intact, said) = kantoor(&server, &["verify"]);
    assert!(intact, "{said}");
    server.execute(&format!("UPDATE accounts SET closed_at = 1 WHERE id = {}", client.account));
    let (intact, said) = kantoor(&server, &["verify"]);
    let words = "Changed outside the log: the account is closed, but the log says that it is open";
    assert!(!intact && said.contains(words), "{said}");
    server.execute("UPDATE accounts SET closed_at = 0");
    let (done, said) = kantoor(&server, &["account", "close", "nope"]);
    assert!(!done && said.contains("no account has the id nope"), "{said}");
}

fn nothing_happens_in_a_closed_account(db: Db) {
    let (sink, outside) = (Sink::start().unwrap(), Scripted::start(|_| Answer::new(200)).unwrap());
    let server = Server::with(db, |config| {
        crate::people::use_sink(config, &sink);
        config.allow_private_addresses = "127.0.0.1".to_string();
    });
    let (account, key) = kantoor::opening::create_account(&server.app, "Real", None).unwrap();
    let client = Client::new(server.address, key, account.number);
    let rows = json!([{"name": "x", "unit_price": 1, "vat_rate": 21}]);
    let buyer = client.post("/v1/clients", json!({"company_name": "Ster", "email": "a@ster.example"})).expect(201).id();
    let monthly = json!({"title": "Huur", "client_id": buyer, "frequency": "monthly", "subscription_start": "2026-01-01",
        "lines": [{"title": "x", "unit_price": 1, "vat_code": "NL21"}]});
    let plan = client.post("/v1/subscriptions", monthly).expect(201);
    client.act(&format!("/v1/subscriptions/{}/activate", plan.id())).expect(200);
    let document = json!({"title": "x", "generation_mode": "final", "client_id": buyer, "rows": rows});
    let invoice = client.post("/v1/invoices", document).expect(201).id();
    let mail = json!({"to": "a@ster.example", "subject": "s", "message": "m", "include_pdf": false});
    client.post(&format!("/v1/invoices/{invoice}/send"), mail).expect(200);
    let steps = json!([{"type": "create_task", "title": "x"}]);
    let flow = json!({"name": "f", "trigger_type": "custom", "trigger_key": "a.b", "steps": steps});
    client.post("/v1/automation/flows", flow).expect(201);
    client.post("/v1/automation/trigger", json!({"event": "a.b"})).expect(200);
    let endpoint = json!({"url": outside.url("/"), "events": ["account.*"]});
    client.post("/v1/webhook-endpoints", endpoint).expect(201);
    let count = |table: &'static str| {
        let (number, sql) = (client.account, format!("SELECT count(*) FROM {table} WHERE account_id = $1"));
        server.app.store.read_now(move |tx| tx.int(&sql, &[number.into()])).unwrap()
    };
    let invoices = count("invoices");

    close(&server, &client);
    server.block_on(async {
        webhooks::start(&server.app);
        flows::start(&server.app);
    });
    work_off(&server);
    days(&server);
    work_off(&server);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(sink.mails().len(), 0);
    assert_eq!(outside.received().len(), 0);
    assert_eq!((count("tasks"), count("invoices")), (0, invoices));
    let parked = server.jobs_left();
    assert!(
        !parked.is_empty() && parked.iter().all(|job| job.ends_with("is parked: the account is closed")),
        "{parked:?}"
    );
    // Nothing that waits in a closed account is a reason to alert.
    for metric in ["jobs_parked", "jobs_behind_seconds", "flows_behind_seconds", "webhooks_behind_seconds"] {
        assert_eq!(server.metric(&format!("kantoor_{metric}")), 0, "{metric}");
    }

    reopen(&server, &client);
    work_off(&server);
    assert_eq!(sink.wait(1, Duration::from_secs(10)).len(), 1);
    until(|| count("tasks") == 1);
    until(|| outside.received().len() == 2);
    days(&server);
    work_off(&server);
    assert!(count("invoices") > invoices, "the subscription continues");
    assert!(server.jobs_left().is_empty());
}

/// Does the daily work of all accounts.
fn days(server: &Server) {
    let job = Claimed {
        id: "days".into(),
        account: 0,
        kind: "days".into(),
        payload: "{}".into(),
        claim: 0,
        attempts: 1,
        max_attempts: i64::MAX,
        lost: 0,
    };
    let app = server.app.clone();
    server.block_on(server.apart(move || (JobKind::of::<Days>().run)(&app, &job))).unwrap().unwrap();
}

/// A person who is a user of several accounts enters one that is open.
fn people_enter_their_other_accounts(db: Db) {
    let server = Server::start(db);
    let (first, second) = (server.client(), server.client());
    let browser = owner(&server, &first, "olga@a.example");
    let (_, token) = crate::people::invite(&second, "olga@a.example", "member");
    browser.post("/console/accept-invite", json!({"token": token, "password": PASSWORD})).expect(200);
    let (_, other) = crate::people::invite(&first, "ina@a.example", "member");
    close(&server, &first);
    let mut again = Browser::new(&first);
    again.sign_in("olga@a.example");
    let me = again.get("/console/v1/me").expect(200).data();
    assert_eq!(me["account"]["id"], id_of(&server, &second));
    assert_eq!(me["accounts"].as_array().unwrap().len(), 1);
    let switch = json!({"account_id": id_of(&server, &first)});
    assert_eq!(again.post("/console/account", switch).expect(403).code(), "account_closed");
    let link = visit(&first, &format!("/invite/{other}")).expect(403);
    assert!(link.text.contains("This account is closed."), "{}", link.text);
    let accept = json!({"token": other, "password": PASSWORD});
    assert_eq!(Browser::new(&first).post("/console/accept-invite", accept).expect(403).code(), "account_closed");
}

fn accounts_are_renamed(db: Db) {
    let server = Server::start(db);
    let client = server.recorded_client(Moment::parse("2026-05-04T10:00:00Z"));
    let before = server.last_seq(&client);
    let id = id_of(&server, &client);
    let (done, said) = kantoor(&server, &["account", "rename", &id, "Jansen & Zn"]);
    assert!(done && said.contains("is now called Jansen & Zn."), "{said}");
    assert_eq!(client.get("/v1/account").data()["name"], "Jansen & Zn");
    client.patch("/v1/account", json!({"name": "Jansen"})).expect(200);
    assert_eq!(server.events(&client, before), ["account.updated", "account.updated"]);
    let (done, said) = kantoor(&server, &["account", "rename", &id, " "]);
    assert!(!done && said.contains("1 to 255 characters"), "{said}");
    assert!(kantoor(&server, &["verify"]).0);
}
