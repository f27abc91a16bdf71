//! Accounts with a test clock record what they would send, until they are switched to `outside: live`.

use std::time::{Duration, Instant};

use ::mail::sink::Sink;
use engine::accounts::Account;
use engine::clock::Moment;
use engine::jobs::worker;
use kantoor::webhooks;
use mollie::scripted::ScriptedMollie;
use serde_json::{Value, json};
use web::scripted::{Reply, Scripted};

use crate::cli::{kantoor, said};
use crate::direct_debit;
use crate::on_both;
use crate::server::Binary;
use crate::support::{Client, Db, Server};

/// Everything outside: a mail server, a receiver and a provider.
struct World {
    sink: Sink,
    receiver: Scripted,
    mollie: ScriptedMollie,
    server: Server,
}

impl World {
    fn new(db: Db) -> World {
        let sink = Sink::start().unwrap();
        let receiver = Scripted::start(|_| Reply::json(200, r#"{"ok":true}"#)).unwrap();
        let mollie = ScriptedMollie::start().unwrap();
        let (port, base) = (sink.port(), mollie.base());
        let server = Server::with(db, |config| {
            config.smtp_host = "127.0.0.1".to_string();
            config.smtp_port = port;
            config.smtp_security = "none".to_string();
            config.mollie_url = base;
            config.mollie_key = ScriptedMollie::KEY.to_string();
            config.allow_private_addresses = "127.0.0.1".to_string();
        });
        server.block_on(async { webhooks::start(&server.app) });
        World { sink, receiver, mollie, server }
    }

    fn client(&self) -> Client {
        self.server.recorded_client(Moment::parse("2026-05-04T10:00:00Z"))
    }

    fn work(&self, client: &Client) {
        let (app, number) = (self.server.app.clone(), client.account);
        let account = app.store.read_now(move |tx| Account::numbered(tx, number)).unwrap();
        let follow = move || (kantoor::automation::worker::DUE.follow)(&app, &app.acting(account, "automation"));
        self.server.block_on(self.server.apart(follow)).unwrap().unwrap();
        self.server.block_on(async { while worker::turn(&self.server.app).await {} });
    }

    /// The number of mails, webhooks and calls, and requests to the provider.
    fn reached(&self) -> (usize, usize, usize) {
        (self.sink.mails().len(), self.receiver.received().len(), self.mollie.received().len())
    }
}

#[track_caller]
fn until(what: &str, look: impl Fn() -> bool) {
    let started = Instant::now();
    while !look() {
        assert!(started.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends one of each; returns the path of the invoice, of the endpoint, and the run.
fn send_all(world: &World, client: &Client) -> (String, String, String) {
    let endpoint = json!({"url": world.receiver.url("/hook"), "events": ["invoice.*"]});
    let endpoint = format!("/v1/webhook-endpoints/{}", client.post("/v1/webhook-endpoints", endpoint).expect(201).id());
    let headers = json!({"authorization": "Bearer hush", "x-plain": "shown"});
    let steps = json!([{"type": "http", "url": world.receiver.url("/step"), "headers": headers, "body": {"a": 1}}]);
    let flow = json!({"name": "Calls", "trigger_type": "custom", "trigger_key": "order.shipped", "steps": steps});
    client.post("/v1/automation/flows", flow).expect(201);
    let firm =
        client.post("/v1/clients", json!({"company_name": "De Ster", "email": "a@ster.example"})).expect(201).id();
    let invoice = json!({"title": "x", "client_id": firm, "rows": [{"name": "x", "unit_price": 10, "vat_rate": 21}]});
    let invoice = format!("/v1/invoices/{}", client.post("/v1/invoices", invoice).expect(201).id());
    let letter = json!({"to": "a@ster.example", "subject": "s", "message": "m"});
    client.post(&format!("{invoice}/send"), letter).expect(200);
    let fired = client.post("/v1/automation/trigger", json!({"event": "order.shipped", "data": {}})).expect(200).data();
    client.patch("/v1/settings", json!({"provider": "mollie"})).expect(200);
    client.post(&format!("/v1/clients/{firm}/direct-debit/verification"), json!({})).expect(201);
    (invoice, endpoint, fired["runs"][0]["run_id"].as_str().unwrap().to_string())
}

fn statuses(client: &Client, path: &str) -> Vec<String> {
    let list = client.get(&format!("{path}/deliveries")).expect(200).data();
    list.as_array().unwrap().iter().map(|one| one["status"].as_str().unwrap().to_string()).collect()
}

on_both![
    a_test_account_records_what_it_would_send,
    a_live_test_account_sends,
    queued_work_is_recorded_after_the_switch,
    a_sent_mail_stays_sent_after_the_switch,
    a_recorded_collection_stays_pending,
    the_command_line_creates_live_test_accounts,
];

fn a_test_account_records_what_it_would_send(db: Db) {
    let world = World::new(db);
    let client = world.client();
    assert_eq!(client.get("/v1/settings").expect(200).data()["outside"], "recorded");
    let (invoice, endpoint, run) = send_all(&world, &client);
    world.work(&client);
    assert_eq!(statuses(&client, &invoice), ["recorded"]);
    let mail = client.get(&format!("{invoice}/deliveries")).data()[0].clone();
    assert!(mail["reason"].as_str().unwrap().contains("'outside' is not 'live'"), "{mail}");
    assert_eq!(mail["attempts"], 0);
    until("the webhooks are recorded", || !statuses(&client, &endpoint).is_empty());
    assert!(statuses(&client, &endpoint).iter().all(|status| status == "recorded"));
    let filtered = client.get(&format!("{endpoint}/deliveries?status=recorded")).expect(200).data();
    assert!(filtered[0]["seq"].as_i64().unwrap() > 0 && filtered[0]["next_attempt_at"].is_null(), "{filtered}");
    let tested = client.act(&format!("{endpoint}/test")).expect(200).data();
    assert_eq!(tested["status"], "recorded");
    let first = filtered[0]["id"].as_str().unwrap();
    let again = client.act(&format!("{endpoint}/deliveries/{first}/resend")).expect(201).data();
    assert_eq!(again["status"], "recorded");
    assert_eq!(client.get(&format!("/v1/automation/runs/{run}")).expect(200).data()["status"], "success");
    let step = client.get(&format!("/v1/automation/runs/{run}/steps")).expect(200).data()[0].clone();
    assert_eq!(step["result"]["recorded"], true, "{step}");
    assert_eq!(step["result"]["request"]["body"], r#"{"a":1}"#);
    assert_eq!(step["result"]["request"]["headers"]["x-plain"], "shown");
    assert!(!step.to_string().contains("hush"), "{step}");
    let verifications = "SELECT external_id FROM verifications";
    let external: Vec<String> = world
        .server
        .app
        .store
        .read_now(|tx| tx.all(verifications, &[], |row| Ok::<_, store::Error>(row.text(0)?.to_string())))
        .unwrap();
    assert!(external[0].starts_with("recorded_"), "{external:?}");
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(world.reached(), (0, 0, 0));
}

fn a_live_test_account_sends(db: Db) {
    let world = World::new(db);
    let client = world.client();
    client.patch("/v1/settings", json!({"outside": "live"})).expect(200);
    let (invoice, endpoint, run) = send_all(&world, &client);
    world.work(&client);
    until("the mail is sent", || statuses(&client, &invoice) == ["sent"]);
    until("the webhooks are sent", || {
        let all = statuses(&client, &endpoint);
        !all.is_empty() && all.iter().all(|status| status == "delivered")
    });
    let step = client.get(&format!("/v1/automation/runs/{run}/steps")).expect(200).data()[0].clone();
    assert_eq!(step["result"]["status"], 200, "{step}");
    let (mails, calls, requests) = world.reached();
    assert!(mails == 1 && calls >= 2 && requests >= 1, "{:?}", world.reached());
    let (_, key) = kantoor::opening::create_account(&world.server.app, "Real", None).unwrap();
    let real = Client { key, ..client };
    assert_eq!(real.get("/v1/settings").expect(200).data()["outside"], "live");
    let refused = real.patch("/v1/settings", json!({"outside": "recorded"})).expect(422);
    assert_eq!(refused.faults(), ["outside: invalid_choice"]);
}

fn queued_work_is_recorded_after_the_switch(db: Db) {
    let world = World::new(db);
    let client = world.client();
    client.patch("/v1/settings", json!({"outside": "live"})).expect(200);
    let firm = client.post("/v1/clients", json!({"company_name": "x", "email": "a@ster.example"})).expect(201).id();
    let invoice = json!({"title": "x", "client_id": firm, "rows": [{"name": "x", "unit_price": 10, "vat_rate": 21}]});
    let invoice = format!("/v1/invoices/{}", client.post("/v1/invoices", invoice).expect(201).id());
    let letter = json!({"to": "a@ster.example", "subject": "s", "message": "m"});
    client.post(&format!("{invoice}/send"), letter).expect(200);
    assert_eq!(statuses(&client, &invoice), ["queued"]);
    client.patch("/v1/settings", json!({"outside": "recorded"})).expect(200);
    world.work(&client);
    assert_eq!(statuses(&client, &invoice), ["recorded"]);
    assert_eq!(world.reached(), (0, 0, 0));
}

fn a_sent_mail_stays_sent_after_the_switch(db: Db) {
    let world = World::new(db);
    let client = world.client();
    client.patch("/v1/settings", json!({"outside": "live"})).expect(200);
    let (invoice, ..) = send_all(&world, &client);
    world.work(&client);
    let sent = client.get(&format!("{invoice}/deliveries")).expect(200).data()[0].clone();
    assert_eq!(sent["status"], "sent");
    client.patch("/v1/settings", json!({"outside": "recorded"})).expect(200);
    // As if the process died between sending the mail and ending the job.
    let payload = json!({"delivery": sent["id"]});
    world.server.rewrite(&format!("UPDATE jobs SET state = 'ready', payload = '{payload}' WHERE kind = 'deliver'"));
    world.work(&client);
    assert_eq!(client.get(&format!("{invoice}/deliveries")).expect(200).data()[0], sent);
}

fn a_recorded_collection_stays_pending(db: Db) {
    let world = World::new(db);
    let client = world.client();
    client.patch("/v1/settings", json!({"provider": "mollie"})).expect(200);
    let firm = direct_debit::firm(&client);
    direct_debit::verify(&client, &firm).expect(201);
    // A recorded verification is never paid.
    world.server.execute("UPDATE mandates SET status = 'authorized', mandate_id = 'mdt_1'");
    let subscription = direct_debit::subscribe(&client, &firm);
    direct_debit::advance(&client, "2026-05-10T10:00:00Z");
    world.work(&client);
    let payment = direct_debit::billed(&client, &subscription).1.remove(0);
    assert!(payment["external_id"].as_str().unwrap().starts_with("recorded_collection_"), "{payment}");
    assert_eq!((&payment["status"], &payment["meta"]["test"]), (&json!("pending"), &json!(true)));
    // A request for its status finds it as it was.
    let account = client.get("/v1/me").expect(200).data()["account"]["id"].as_str().unwrap().to_string();
    let hook = format!("/hooks/mollie/{account}/payment/{}", payment["id"].as_str().unwrap());
    assert_eq!(direct_debit::send_form(&client, &hook, "id=tr_1").status, 200);
    world.work(&client);
    assert_eq!(direct_debit::billed(&client, &subscription).1, [payment]);
    assert_eq!(world.reached(), (0, 0, 0));
}

fn the_command_line_creates_live_test_accounts(db: Db) {
    let create = |more: &[&str]| -> Value {
        let mut arguments = vec!["account", "create", "T", "--test-clock", "2026-01-31T12:00:00Z", "--json"];
        arguments.extend(more);
        serde_json::from_str(&said(&kantoor(&db, &arguments))).unwrap()
    };
    let (sealed, live) = (create(&[]), create(&["--live"]));
    let binary = Binary::start(&db, sealed["key"].as_str().unwrap(), &["--set", "workers=0"]);
    let outside = |client: &Client| client.get("/v1/settings").expect(200).data()["outside"].clone();
    assert_eq!(outside(&binary.client), "recorded");
    let live = Client { key: live["key"].as_str().unwrap().to_string(), ..binary.client.clone() };
    assert_eq!(outside(&live), "live");
    let refused = kantoor(&db, &["account", "create", "T", "--live"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--test-clock"));
    let verified = said(&kantoor(&db, &["verify"]));
    assert!(verified.contains("no problems"), "{verified}");
}
