//! The payment sandbox: only in accounts for testing, and visibly a test.

use mollie::scripted::ScriptedMollie;
use serde_json::{Value, json};

use crate::direct_debit::{advance, billed, firm, mandate, send_form, subscribe, verify, work_off};
use crate::on_both;
use crate::support::{Client, Db, Server, Shared};

/// What the English page of an invoice says if its payments are tests.
const BANNER: &str = "No money is transferred.";

/// A final invoice; returns its path and the path of its page.
fn invoice(client: &Client, firm: &str, language: &str) -> (String, String) {
    let rows = json!([{"name": "Hours", "unit_price": 50, "vat_rate": 21}]);
    let body = json!({"title": "Work", "client_id": firm, "generate": true, "language": language, "rows": rows});
    let made = client.post("/v1/invoices", body).expect(201);
    let page = made.data()["web_url"].as_str().unwrap().strip_prefix(&client.base).unwrap().to_string();
    (format!("/v1/invoices/{}", made.id()), page)
}

fn visit(client: &Client, path: &str) -> String {
    client.send("GET", path, &[("authorization", "")], "").expect(200).text
}

/// Presses the payment button of a page; returns the path that it leads to.
fn press_pay(client: &Client, page: &str) -> String {
    let reply = send_form(client, &format!("{page}/pay"), "").expect(303);
    reply.header("location").strip_prefix(&client.base).unwrap().to_string()
}

fn settings(client: &Client) -> Value {
    client.get("/v1/settings").expect(200).data()
}

on_both![
    only_test_and_demo_accounts_can_use_the_sandbox,
    the_operator_can_allow_the_sandbox,
    an_account_that_may_no_longer_use_the_sandbox_leaves_it,
    a_link_of_the_sandbox_ends_with_the_switch_to_mollie,
    what_a_caller_writes_opens_no_page,
    test_payments_are_visible,
    test_collections_are_visible,
];

fn only_test_and_demo_accounts_can_use_the_sandbox(db: Db) {
    let server = Server::start(db);
    let real = server.recorded_client(None);
    assert_eq!((&settings(&real)["provider"], &settings(&real)["demo"]), (&json!("manual"), &json!(false)));
    let fault = |body: Value| real.patch("/v1/settings", body).expect(422).faults();
    assert_eq!(fault(json!({"provider": "sandbox"})), ["provider: invalid_choice"]);
    assert_eq!(fault(json!({"provider": "sandbox", "online_payments": true})), ["provider: invalid_choice"]);
    assert_eq!(fault(json!({"online_payments": true})), ["online_payments: invalid_choice"]);
    assert_eq!(fault(json!({"demo": true})), ["demo: read_only"]);
    // Mollie takes online payments when there is a key.
    assert_eq!(fault(json!({"provider": "mollie", "online_payments": true})), ["online_payments: invalid_choice"]);
    real.patch("/v1/settings", json!({"provider": "mollie", "mollie_key": "live_x", "online_payments": true}))
        .expect(200);
    let firm = firm(&real);
    let (_, page) = invoice(&real, &firm, "en");
    assert!(visit(&real, &page).contains("/pay\"") && !visit(&real, &page).contains(BANNER));
    real.patch("/v1/settings", json!({"mollie_key": "test_x"})).expect(200);
    assert!(visit(&real, &page).contains(BANNER), "no money moves with a test key");
    assert_eq!(fault(json!({"mollie_key": ""})), ["online_payments: invalid_choice"]);
    assert_eq!(fault(json!({"provider": "manual"})), ["online_payments: invalid_choice"]);
    real.patch("/v1/settings", json!({"provider": "manual", "online_payments": false})).expect(200);
    assert!(verify(&real, &firm).expect(409).text.contains("through its bank"));
    let test = server.client();
    assert_eq!(settings(&test)["provider"], "sandbox");
    test.patch("/v1/settings", json!({"online_payments": true})).expect(200);
    let (account, key) = kantoor::opening::create_demo_account(&server.app, None).unwrap();
    let demo = Client::new(server.address, key, account.number);
    assert_eq!((&settings(&demo)["provider"], &settings(&demo)["demo"]), (&json!("sandbox"), &json!(true)));
    demo.patch("/v1/settings", json!({"online_payments": true})).expect(200);
    demo.patch("/v1/settings", json!({"provider": "manual", "online_payments": false})).expect(200);
    demo.patch("/v1/settings", json!({"provider": "sandbox"})).expect(200);
}

fn the_operator_can_allow_the_sandbox(db: Db) {
    let server = Server::with(db, |config| config.allow_sandbox = true);
    let real = server.recorded_client(None);
    assert_eq!(settings(&real)["provider"], "manual", "it is never the default of a real account");
    real.patch("/v1/settings", json!({"provider": "sandbox", "online_payments": true})).expect(200);
    let firm = firm(&real);
    let (path, page) = invoice(&real, &firm, "en");
    let sandbox = press_pay(&real, &page);
    let shown = visit(&real, &sandbox).replace("&#x2f;", "/");
    assert!(shown.contains("Test payment: no money is transferred."));
    assert!(shown.contains("Payment of invoice F") && shown.contains(&format!("href=\"{page}\"")), "{shown}");
    assert_eq!(send_form(&real, &sandbox, "status=paid").status, 303);
    let payment = real.get(&format!("{path}/payments")).expect(200).data()[0].clone();
    assert_eq!((&payment["status"], &payment["meta"]["test"]), (&json!("paid"), &json!(true)));
}

fn an_account_that_may_no_longer_use_the_sandbox_leaves_it(db: Db) {
    let config = db.config();
    let server = Server::with(db, |config| config.allow_sandbox = true);
    let there = server.recorded_client(None);
    there.patch("/v1/settings", json!({"provider": "sandbox", "online_payments": true})).expect(200);
    let firm = firm(&there);
    let (path, page) = invoice(&there, &firm, "en");
    let link = press_pay(&there, &page);
    let verified = verify(&there, &firm).expect(201).data()["payment_url"].as_str().unwrap().to_string();
    assert_eq!(send_form(&there, &verified, "status=paid").status, 303);
    assert_eq!(mandate(&there, &firm)["mandate_status"], "authorized");
    // The operator no longer allows it.
    let node = server.another_node(config);
    let client = Client { base: format!("http://{node}"), ..there.clone() };
    let shown = settings(&client);
    assert_eq!((&shown["provider"], &shown["online_payments"]), (&json!("manual"), &json!(false)));
    assert!(!visit(&client, &page).contains("/pay\""));
    assert_eq!(send_form(&client, &format!("{page}/pay"), "").status, 409);
    assert_eq!((client.get(&link).status, send_form(&client, &link, "status=paid").status), (404, 404));
    let standing = mandate(&client, &firm);
    assert_eq!((&standing["mandate_status"], &standing["provider"]), (&json!("none"), &json!("manual")));
    assert!(client.act(&format!("{path}/collect")).expect(409).text.contains("no valid mandate"));
    assert_eq!(client.get(&path).expect(200).data()["payment_status"], "open");
    // The next change of the settings stores it.
    client.patch("/v1/settings", json!({"payment_term": 30})).expect(200);
    assert_eq!(
        (&settings(&there)["provider"], &settings(&there)["online_payments"]),
        (&json!("manual"), &json!(false))
    );
}

fn a_link_of_the_sandbox_ends_with_the_switch_to_mollie(db: Db) {
    let mollie = ScriptedMollie::start().unwrap();
    let base = mollie.base();
    let server = Server::with(db, |config| {
        config.mollie_url = base;
        config.allow_private_addresses = "127.0.0.1".to_string();
    });
    let client = server.client();
    client.patch("/v1/settings", json!({"online_payments": true})).expect(200);
    let firm = firm(&client);
    let (path, page) = invoice(&client, &firm, "en");
    let link = press_pay(&client, &page);
    visit(&client, &link);
    client.patch("/v1/settings", json!({"provider": "mollie", "mollie_key": ScriptedMollie::KEY})).expect(200);
    assert_eq!((client.get(&link).status, send_form(&client, &link, "status=paid").status), (404, 404));
    assert_eq!(client.get(&path).expect(200).data()["payment_status"], "open");
    // The button now leads to Mollie, with a payment of its own.
    let to = send_form(&client, &format!("{page}/pay"), "").expect(303);
    assert_eq!(Some(to.header("location")), mollie.made_payments()[0].checkout_url.as_deref());
    work_off(&server);
}

fn what_a_caller_writes_opens_no_page(server: Shared) {
    let client = server.client();
    let firm = firm(&client);
    let url = verify(&client, &firm).expect(201).data()["payment_url"].as_str().unwrap().to_string();
    let taken = url.rsplit('/').next().unwrap();
    let (path, _) = invoice(&client, &firm, "en");
    let payments = format!("{path}/payments");
    for (kind, external_id) in [("online", "sb_mine"), ("manual", "sb_yours"), ("online", taken)] {
        let body =
            json!({"amount": 1, "type": kind, "status": "open", "provider": "sandbox", "external_id": external_id});
        let payment = client.post(&payments, body).expect(201).data()["payment"].clone();
        assert_eq!(payment["meta"]["test"], false, "{payment}");
    }
    for id in ["sb_mine", "sb_yours"] {
        let link = format!("/sandbox/{id}");
        assert_eq!((client.get(&link).status, send_form(&client, &link, "status=paid").status), (404, 404));
    }
    // Nor does one that looks like the payment of the page: the button leads to another one.
    client.patch("/v1/settings", json!({"online_payments": true})).expect(200);
    let (own, page) = invoice(&client, &firm, "en");
    let body = json!({
        "type": "online", "status": "open", "provider": "sandbox", "external_id": "sb_own", "method": "ideal",
        "feedback_data": {"payment_url": "https://evil.example/pay"},
    });
    client.post(&format!("{own}/payments"), body).expect(201);
    let link = press_pay(&client, &page);
    assert!(link.starts_with("/sandbox/sb_") && link != "/sandbox/sb_own", "{link}");
    assert_eq!(send_form(&client, &link, "status=paid").status, 303);
    assert_eq!(client.get(&own).expect(200).data()["payment_status"], "paid");
    // The page of the verification is not that of the payment with its id.
    assert_eq!(send_form(&client, &url, "status=paid").status, 303);
    assert_eq!(mandate(&client, &firm)["mandate_authorized"], true);
    let payments = client.get(&payments).expect(200).data();
    assert!(payments.as_array().unwrap().iter().all(|payment| payment["status"] == "open"), "{payments}");
}

fn test_payments_are_visible(server: Shared) {
    let client = server.client();
    let firm = firm(&client);
    let nl = "Er wordt geen geld overgemaakt.";
    let en = BANNER;
    let (_, dutch) = invoice(&client, &firm, "nl");
    let (path, english) = invoice(&client, &firm, "en");
    assert!(!visit(&client, &english).contains(en), "nothing can be paid online yet");
    client.patch("/v1/settings", json!({"online_payments": true})).expect(200);
    assert!(visit(&client, &dutch).contains(nl) && visit(&client, &english).contains(en));
    let link = press_pay(&client, &english);
    let page = visit(&client, &link);
    assert!(page.contains("er wordt geen geld overgemaakt.") && page.contains("no money is transferred."), "{page}");
    let before = server.last_seq(&client);
    assert_eq!(send_form(&client, &link, "status=paid").status, 303);
    let payment = client.get(&format!("{path}/payments")).expect(200).data()[0].clone();
    assert_eq!((&payment["status"], &payment["meta"]["test"]), (&json!("paid"), &json!(true)));
    let changes = client.get(&format!("/v1/changes?since={before}")).expect(200).data();
    let paid = changes.as_array().unwrap().iter().find(|one| one["type"] == "payment.paid").unwrap();
    assert_eq!(paid["data"]["meta"]["test"], true, "{paid}");
    // The page keeps saying so, whatever the account uses later; a payment that a person records is real.
    client.patch("/v1/settings", json!({"provider": "manual", "online_payments": false})).expect(200);
    assert!(visit(&client, &english).contains(en) && !visit(&client, &dutch).contains(nl));
    let (path, real) = invoice(&client, &firm, "en");
    let payment = client.post(&format!("{path}/payments"), json!({})).expect(201).data()["payment"].clone();
    assert_eq!((&payment["status"], &payment["meta"]["test"]), (&json!("paid"), &json!(false)));
    assert!(!visit(&client, &real).contains(en));
    client.patch("/v1/settings", json!({"provider": "sandbox"})).expect(200);
    assert_eq!(verify(&client, &firm).expect(201).data()["meta"]["test"], true);
}

/// Also where nothing can be paid online: the collection itself is a test.
fn test_collections_are_visible(server: Shared) {
    let client = server.client();
    let firm = firm(&client);
    let url = verify(&client, &firm).expect(201).data()["payment_url"].as_str().unwrap().to_string();
    assert_eq!(send_form(&client, &url, "status=paid").status, 303);
    let nl = "Er wordt geen geld overgemaakt.";
    let (_, other) = invoice(&client, &firm, "nl");
    let subscription = subscribe(&client, &firm);
    advance(&client, "2026-05-10T10:00:00Z");
    let (collected, payments) = billed(&client, &subscription);
    assert_eq!((&payments[0]["status"], &payments[0]["meta"]["test"]), (&json!("pending"), &json!(true)));
    let collected = client.get(&format!("/v1/invoices/{}", collected["id"].as_str().unwrap())).expect(200).data();
    let page = collected["web_url"].as_str().unwrap().strip_prefix(&client.base).unwrap().to_string();
    assert!(visit(&client, &page).contains(nl) && !visit(&client, &other).contains(nl));
    let link = payments[0]["meta"]["feedback_data"]["payment_url"].as_str().unwrap();
    assert_eq!(send_form(&client, link, "status=paid").status, 303);
    assert!(visit(&client, &page).contains(nl), "it stays when the collection has succeeded");
}
