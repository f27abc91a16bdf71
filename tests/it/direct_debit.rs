//! Mandates and collections: with the sandbox, a scripted Mollie, and the bank.

use std::time::Duration;

use engine::jobs::worker;
use mollie::scripted::ScriptedMollie;
use mollie::{MandateStatus, Status};
use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Db, Office, Reply, Server, Shared};

pub fn firm(client: &Client) -> String {
    let body = json!({"company_name": "Bakkerij De Ster", "email": "anna@ster.example", "iban": "NL91ABNA0417164300", "bic": "ABNANL2A"});
    client.post("/v1/clients", body).expect(201).id()
}

pub fn subscribe(client: &Client, firm: &str) -> String {
    let lines = json!([{"title": "Server", "unit_price": 100, "vat_code": "NL21"}]);
    let body = json!({"client_id": firm, "title": "Hosting", "subscription_start": "2026-05-10", "lines": lines});
    client.post("/v1/subscriptions", body).expect(201).id()
}

pub fn advance(client: &Client, to: &str) {
    client.post("/v1/test-clock/advance", json!({"to": to})).expect(200);
}

pub fn mandate(client: &Client, firm: &str) -> Value {
    client.get(&format!("/v1/clients/{firm}/direct-debit/mandate")).expect(200).data()
}

pub fn verify(client: &Client, firm: &str) -> Reply {
    client.post(&format!("/v1/clients/{firm}/direct-debit/verification"), json!({}))
}

/// Submits the form of a page, as a browser does.
pub fn send_form(client: &Client, url: &str, form: &str) -> Reply {
    let path = url.strip_prefix(&client.base).unwrap_or(url);
    let headers = [("authorization", ""), ("content-type", "application/x-www-form-urlencoded")];
    let config = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).build();
    let visitor = Client { agent: config.into(), ..client.clone() };
    visitor.send("POST", path, &headers, form)
}

/// Returns the last invoice of a subscription, and its payments, newest last.
pub fn billed(client: &Client, subscription: &str) -> (Value, Vec<Value>) {
    let list = client.get(&format!("/v1/subscriptions/{subscription}/invoices?sort=invoice_date")).expect(200).data();
    let invoice = list[0].clone();
    let payments = client.get(&format!("/v1/invoices/{}/payments", invoice["id"].as_str().unwrap())).expect(200).data();
    (invoice, payments.as_array().unwrap().clone())
}

pub fn work_off(server: &Server) {
    server.block_on(async { while worker::turn(&server.app).await {} });
}

/// Runs all jobs, including those waiting for a retry.
pub fn hurry(server: &Server) {
    let now = "UPDATE jobs SET run_at = 0 WHERE state = 'ready'";
    server.app.store.write_now(0, move |tx| tx.execute(now, &[]).map(drop)).unwrap();
    work_off(server);
}

fn with_mollie(db: Db, mollie: &ScriptedMollie) -> (Server, Client) {
    let base = mollie.base();
    let server = Server::with(db, |config| {
        config.mollie_url = base;
        config.mollie_key = ScriptedMollie::KEY.to_string();
        config.allow_private_addresses = "127.0.0.1".to_string();
    });
    let client = server.client();
    client.patch("/v1/settings", json!({"provider": "mollie"})).expect(200);
    (server, client)
}

on_both![
    the_sandbox_has_a_page_only_for_its_own_payments,
    the_sandbox_creates_a_mandate_and_collects,
    mollie_creates_a_mandate_and_collects,
    completes_an_interrupted_verification_once,
    cancels_a_verification_that_is_replaced_during_creation,
    clients_pay_on_the_page,
    the_bank_gets_a_file,
];

fn the_sandbox_has_a_page_only_for_its_own_payments(server: Shared) {
    let client = server.client();
    let firm = firm(&client);
    let url = verify(&client, &firm).expect(201).data()["payment_url"].as_str().unwrap().to_string();
    let path = url.strip_prefix(&client.base).unwrap();
    client.get(path).expect(200);
    // A payment that a caller records opens no page, even under the id of another one.
    let invoice = json!({"title": "x", "client_id": firm, "generation_mode": "final", "rows": [{"name": "x", "unit_price": 100}]});
    let invoice = client.post("/v1/invoices", invoice).expect(201).id();
    let taken = path.strip_prefix("/sandbox/").unwrap();
    for (number, external_id) in ["sb_mine", taken].iter().enumerate() {
        let body = json!({"amount": 1, "status": "open", "provider": "sandbox", "external_id": external_id});
        let reply = client.post(&format!("/v1/invoices/{invoice}/payments"), body);
        assert!(reply.status == 201, "{number}: {reply:?}");
    }
    assert_eq!(client.get("/sandbox/sb_mine").status, 404);
    assert!(client.get(path).expect(200).text.contains("Verification payment"));
    // Nor does an account that has switched to another provider.
    client.patch("/v1/settings", json!({"provider": "manual"})).expect(200);
    assert_eq!((client.get(path).status, send_form(&client, &url, "status=paid").status), (404, 404));
    assert_eq!(mandate(&client, &firm)["mandate_authorized"], false);
    client.patch("/v1/settings", json!({"provider": "sandbox"})).expect(200);
    assert_eq!(send_form(&client, &url, "status=paid").status, 303);
}

fn the_sandbox_creates_a_mandate_and_collects(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let firm = firm(&client);
    has_no_mandate_at_first(&client, &firm);
    let (page, subscription) = awaits_the_mandate(&client, &firm);
    is_verified_by_a_payment(&client, &firm, &page);
    let foreign = activates_its_own_subscriptions(&server, &client, &firm, &subscription);
    collects_by_sandbox(&server, &client, &firm, &subscription, &foreign);
}

fn has_no_mandate_at_first(client: &Client, firm: &str) {
    assert_eq!(
        mandate(client, firm),
        json!({"client_found": true, "provider": "sandbox", "mandate_present": false, "mandate_authorized": false,
            "direct_debit_enabled": 0, "mandate_status": "none", "customer_id": "", "mandate_id": "", "can_activate_subscription": false,
            "subscription_activation": {"status": "skipped"}, "meta": {"signed_on": null}})
    );
    assert_eq!(mandate(client, "nobody")["client_found"], json!(false));
    assert_eq!(verify(client, "nobody").status, 404);
    for (body, fault) in [
        (json!({"amount": "0"}), "amount: out_of_range"),
        (json!({"amount": "1,50"}), "amount: wrong_type"),
        (json!({"verification": {"amount": -1}}), "verification.amount: out_of_range"),
        (json!({"verification": {"x": 1}}), "verification.x: unknown_field"),
        (json!({"amount": "0.001"}), "amount: too_precise"),
    ] {
        assert_eq!(
            client.post(&format!("/v1/clients/{firm}/direct-debit/verification"), body).expect(422).faults(),
            [fault]
        );
    }
}

/// Starts a verification and a subscription; returns the page of the payment and the subscription.
fn awaits_the_mandate(client: &Client, firm: &str) -> (String, String) {
    let first = verify(client, firm).expect(201);
    let data = first.data();
    let keys: Vec<&String> = data.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["status", "payment_url", "external_id", "amount", "provider", "canceled_previous", "meta"]);
    assert_eq!(
        (&data["status"], &data["amount"], &data["provider"], &data["canceled_previous"]),
        (&json!("created"), &json!("0.01"), &json!("sandbox"), &json!(false))
    );
    assert_eq!(mandate(client, firm)["mandate_status"], "pending");
    let subscription = subscribe(client, firm);
    assert_eq!(
        client.get(&format!("/v1/subscriptions/{subscription}")).data()["status"],
        "draft",
        "the mandate is awaited"
    );
    assert_eq!(
        (activation(client, firm, &subscription), activation(client, firm, "nope")),
        (json!("not_authorized"), json!("not_found"))
    );
    (data["payment_url"].as_str().unwrap().to_string(), subscription)
}

/// Tries to activate a subscription under the mandate of a client; returns the outcome.
fn activation(client: &Client, firm: &str, subscription: &str) -> Value {
    let path = format!("/v1/clients/{firm}/direct-debit/mandate?subscription_id={subscription}");
    client.get(&path).expect(200).data()["subscription_activation"]["status"].clone()
}

fn is_verified_by_a_payment(client: &Client, firm: &str, first_page: &str) {
    // Another replaces it; the first can no longer be paid.
    let second = client
        .post(&format!("/v1/clients/{firm}/direct-debit/verification"), json!({"verification": {"amount": "1.50"}}))
        .expect(201)
        .data();
    assert_eq!((&second["amount"], &second["canceled_previous"]), (&json!("1.50"), &json!(true)));
    let page = client
        .send(
            "GET",
            second["payment_url"].as_str().unwrap().strip_prefix(&client.base).unwrap(),
            &[("authorization", "")],
            "",
        )
        .expect(200);
    assert!(page.text.contains("€1.50") && page.text.contains("name=\"status\" value=\"paid\""), "{}", page.text);
    assert!(page.header("content-security-policy").contains("default-src 'none'"));
    assert_eq!(send_form(client, first_page, "status=paid").status, 409);
    assert_eq!(send_form(client, second["payment_url"].as_str().unwrap(), "status=maybe").status, 422);
    assert_eq!(client.get("/sandbox/sb_nope").status, 404);
    assert_eq!(send_form(client, second["payment_url"].as_str().unwrap(), "status=failed").status, 303);
    assert_eq!(mandate(client, firm)["mandate_status"], "none");
    let third = verify(client, firm).expect(201).data();
    assert_eq!(send_form(client, third["payment_url"].as_str().unwrap(), "status=paid").status, 303);
    let given = mandate(client, firm);
    assert_eq!(
        (
            &given["mandate_status"],
            &given["mandate_authorized"],
            &given["direct_debit_enabled"],
            &given["can_activate_subscription"]
        ),
        (&json!("authorized"), &json!(true), &json!(1), &json!(true))
    );
    assert!(
        given["mandate_id"].as_str().unwrap().starts_with("sbm_")
            && given["customer_id"].as_str().unwrap().starts_with("sbc_")
    );
}

/// A mandate activates subscriptions of its own client only; returns one of another client.
fn activates_its_own_subscriptions(server: &Office, client: &Client, firm: &str, subscription: &str) -> String {
    let reader = server.with_scopes(client, &["relations.read"]);
    assert_eq!(
        reader
            .get(&format!("/v1/clients/{firm}/direct-debit/mandate?subscription_id={subscription}"))
            .expect(403)
            .code(),
        "forbidden"
    );
    reader.get(&format!("/v1/clients/{firm}/direct-debit/mandate")).expect(200);
    let other = client.post("/v1/clients", json!({"company_name": "Other"})).expect(201).id();
    let foreign = subscribe(client, &other);
    assert_eq!(
        (activation(client, &other, subscription), activation(client, &other, &foreign)),
        (json!("not_found"), json!("not_authorized")),
        "a client without any mandate"
    );
    // HEAD does the same without changes, and requires the same scope.
    let path = format!("/v1/clients/{firm}/direct-debit/mandate?subscription_id={subscription}");
    let before = server.last_seq(client);
    assert_eq!(client.send("HEAD", &path, &[], "").expect(200).text, "");
    assert_eq!(reader.send("HEAD", &path, &[], "").status, 403);
    assert_eq!(client.get(&format!("/v1/subscriptions/{subscription}")).data()["status"], "draft");
    assert_eq!(server.last_seq(client), before);
    assert_eq!(
        (
            activation(client, firm, &foreign),
            activation(client, firm, subscription),
            activation(client, firm, subscription)
        ),
        (json!("not_found"), json!("activated"), json!("activated"))
    );
    foreign
}

fn collects_by_sandbox(server: &Server, client: &Client, firm: &str, subscription: &str, foreign: &str) {
    advance(client, "2026-05-10T10:00:00Z");
    let (invoice, payments) = billed(client, subscription);
    assert_eq!((&invoice["payment_status"], payments.len()), (&json!("open"), 1));
    let payment = &payments[0];
    assert_eq!(
        (&payment["type"], &payment["status"], &payment["amount"], &payment["provider"], &payment["date"]),
        (&json!("online"), &json!("pending"), &json!(121), &json!("sandbox"), &json!("2026-05-10"))
    );
    assert_eq!(mandate(client, firm)["mandate_status"], "active");
    assert!(billed(client, foreign).1.is_empty(), "no mandate, no collection");
    let page = payment["meta"]["feedback_data"]["payment_url"].as_str().unwrap().to_string();
    let path = format!("/v1/invoices/{}", invoice["id"].as_str().unwrap());
    assert_eq!(client.act(&format!("{path}/collect")).expect(409).code(), "invalid_transition");
    assert_eq!(send_form(client, &page, "status=failed").status, 303);
    assert_eq!(billed(client, subscription).0["payment_status"], "open");
    // Retried, paid, charged back, and paid again.
    let again = client.act(&format!("{path}/collect")).expect(201);
    assert_eq!(again.data()["payment"]["status"], "created");
    work_off(server);
    let payment = billed(client, subscription).1.into_iter().find(|one| one["status"] == "pending").unwrap();
    let page = payment["meta"]["feedback_data"]["payment_url"].as_str().unwrap().to_string();
    let before = server.last_seq(client);
    for (say, status) in [("paid", "paid"), ("chargeback", "open"), ("paid", "paid"), ("refunded", "open")] {
        assert_eq!(send_form(client, &page, &format!("status={say}")).status, 303);
        assert_eq!(billed(client, subscription).0["payment_status"], status, "after {say}");
    }
    let events = server.events(client, before);
    assert_eq!(events.iter().filter(|name| *name == "invoice.paid").count(), 2);
    assert!(
        events.contains(&"payment.charged_back".to_string())
            && events.contains(&"customer.first_invoice_paid".to_string())
    );
    client.delete(&format!("/v1/clients/{firm}/direct-debit/mandate")).expect(204);
    assert_eq!(mandate(client, firm)["mandate_status"], "none");
    assert_eq!(client.act(&format!("{path}/collect")).expect(409).code(), "invalid_transition");
}

fn mollie_creates_a_mandate_and_collects(db: Db) {
    let mollie = ScriptedMollie::start().unwrap();
    let (server, client) = with_mollie(db, &mollie);
    let firm = firm(&client);
    let made = verify(&client, &firm).expect(201).data();
    assert_eq!(made["provider"], "mollie");
    let payment = mollie.made_payments().pop().unwrap();
    assert_eq!(
        (payment.id.as_str(), payment.checkout_url.as_deref()),
        (made["external_id"].as_str().unwrap(), made["payment_url"].as_str())
    );
    // A webhook before anything changed, twice, and then the change.
    for _ in 0..2 {
        assert_eq!(mollie.call_webhook(&payment.id).unwrap(), 200);
    }
    work_off(&server);
    assert_eq!(mandate(&client, &firm)["mandate_status"], "pending");
    mollie.set_status(&payment.id, Status::Paid);
    let theirs = mollie.mandates(payment.customer_id.as_deref().unwrap()).pop().unwrap();
    mollie.set_mandate(&theirs.id, MandateStatus::Pending);
    mollie.call_webhook(&payment.id).unwrap();
    work_off(&server);
    assert_eq!(mandate(&client, &firm)["mandate_status"], "verified", "paid, but the mandate cannot be used yet");
    mollie.set_mandate(&theirs.id, MandateStatus::Valid);
    hurry(&server);
    let given = mandate(&client, &firm);
    assert_eq!((&given["mandate_status"], &given["mandate_id"]), (&json!("authorized"), &json!(theirs.id)));

    let subscription = subscribe(&client, &firm);
    // Mollie accepts the collection, and the connection is lost before it responds.
    mollie.cut_next(1);
    advance(&client, "2026-05-10T10:00:00Z");
    let (_, payments) = billed(&client, &subscription);
    assert_eq!(payments[0]["status"], "created");
    // Hours later it has forgotten the key; there is still one payment.
    mollie.forget_keys();
    hurry(&server);
    let collected = mollie.made_payments();
    assert_eq!(collected.len(), 2, "one verification, one collection");
    let collection = collected.last().unwrap().clone();
    let (_, payments) = billed(&client, &subscription);
    assert_eq!((&payments[0]["external_id"], payments.len()), (&json!(collection.id), 1));
    assert_eq!(mandate(&client, &firm)["mandate_status"], "active");
    mollie.set_status(&collection.id, Status::Paid);
    // The status request fails; the change is not lost.
    mollie.fail_next(2, 503);
    mollie.call_webhook(&collection.id).unwrap();
    work_off(&server);
    assert_ne!(billed(&client, &subscription).0["payment_status"], "paid");
    hurry(&server);
    hurry(&server);
    assert_eq!(billed(&client, &subscription).0["payment_status"], "paid");
    mollie.chargeback(&collection.id);
    mollie.call_webhook(&collection.id).unwrap();
    work_off(&server);
    let (invoice, payments) = billed(&client, &subscription);
    assert_eq!((&invoice["payment_status"], &payments[0]["status"]), (&json!("open"), &json!("chargeback")));

    finds_a_failed_collection_without_a_webhook(&server, &client, &mollie, &subscription);
    for path in ["/hooks/mollie/nobody/payment/x", "/hooks/x", "/hooks/mollie/a/b/c/d"] {
        assert_eq!(send_form(&client, path, "id=tr_1").status, 200);
    }
}

fn finds_a_failed_collection_without_a_webhook(
    server: &Server,
    client: &Client,
    mollie: &ScriptedMollie,
    subscription: &str,
) {
    advance(client, "2026-06-10T10:00:00Z");
    let failed = mollie.made_payments().pop().unwrap();
    mollie.fail_payment(&failed.id, "AM04", "Insufficient funds");
    // Without a webhook, the hourly check finds it.
    let caller = server.app.acting_in(client.account, "test").unwrap();
    server
        .app
        .store
        .write_now(client.account, move |tx| {
            let ctx = caller.writing(tx)?;
            (kantoor::payments::collecting::DUE.hourly)(tx, &ctx)
        })
        .unwrap();
    work_off(server);
    let (_, payments) = billed(client, subscription);
    assert_eq!(
        (
            &payments[0]["status"],
            payments[0]["meta"]["feedback_data"]["reason"].as_str().unwrap().contains("Insufficient")
        ),
        (&json!("failed"), true)
    );
    assert!(server.events(client, 0).contains(&"payment.failed".to_string()));
}

fn completes_an_interrupted_verification_once(db: Db) {
    let mollie = ScriptedMollie::start().unwrap();
    let (server, client) = with_mollie(db, &mollie);
    let firm = firm(&client);
    let path = format!("/v1/clients/{firm}/direct-debit/verification");
    let key = [("idempotency-key", "verify-1")];
    mollie.cut_next(1);
    assert_eq!(client.send("POST", &path, &key, "{}").expect(503).code(), "unavailable");
    let again = client.send("POST", &path, &key, "{}").expect(201);
    assert_eq!(again.data()["canceled_previous"], json!(false));
    assert_eq!(client.send("POST", &path, &key, "{}").expect(201).text, again.text);
    assert_eq!((mollie.made_payments().len(), mollie.made_customers()), (1, 1));
    // Without a key the caller starts again; the job completes the interrupted verification, which is then cancelled.
    mollie.fail_next(1, 500);
    client.send("POST", &path, &[], "{}").expect(503);
    hurry(&server);
    assert_eq!(mollie.made_payments().len(), 2);
    assert_eq!(mollie.made_payments()[0].status, Status::Canceled);
    assert_eq!(mandate(&client, &firm)["mandate_status"], "pending");
    mollie.fail_next(1, 422);
    assert_eq!(client.send("POST", &path, &[], "{}").expect(409).code(), "provider_refused");
    // A Mollie that is too slow is reported as unavailable.
    mollie.delay_next(1, Duration::from_millis(10));
    client.send("POST", &path, &[], "{}").expect(201);
}

fn cancels_a_verification_that_is_replaced_during_creation(db: Db) {
    let mollie = ScriptedMollie::start().unwrap();
    let (server, client) = with_mollie(db, &mollie);
    let firm = firm(&client);
    // Mollie is slow for the first; meanwhile another is requested.
    mollie.delay_next(1, Duration::from_secs(2));
    let (other, its_firm) = (client.clone(), firm.clone());
    let first = std::thread::spawn(move || verify(&other, &its_firm));
    while mollie.received().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let second = verify(&client, &firm).expect(201).data();
    assert_eq!(second["canceled_previous"], json!(true));
    assert_eq!(first.join().unwrap().expect(409).code(), "invalid_transition");
    let status = |wins: bool| {
        let payments = mollie.made_payments();
        assert_eq!(payments.len(), 2);
        payments.into_iter().find(|payment| (second["external_id"] == payment.id.as_str()) == wins).unwrap().status
    };
    assert_eq!((status(true), status(false)), (Status::Open, Status::Open));
    // It is retried until it succeeds.
    mollie.fail_next(1, 503);
    work_off(&server);
    assert_eq!(status(false), Status::Open);
    hurry(&server);
    assert_eq!((status(true), status(false)), (Status::Open, Status::Canceled));
    assert_eq!(mandate(&client, &firm)["mandate_status"], "pending");
}

fn clients_pay_on_the_page(db: Db) {
    let mollie = ScriptedMollie::start().unwrap();
    let (server, client) = with_mollie(db, &mollie);
    let firm = firm(&client);
    let body = json!({"title": "Work", "client_id": firm, "generate": true, "rows": [{"name": "Hours", "unit_price": 50, "vat_rate": 21}]});
    let invoice = client.post("/v1/invoices", body).expect(201);
    let page = invoice.data()["web_url"].as_str().unwrap().strip_prefix(&client.base).unwrap().to_string();
    let shown = || client.send("GET", &page, &[("authorization", "")], "").expect(200).text;
    assert!(!shown().contains("/pay\""), "only if it is enabled in the settings");
    assert_eq!(send_form(&client, &format!("{page}/pay"), "").status, 409);
    client.patch("/v1/settings", json!({"online_payments": true})).expect(200);
    assert!(shown().contains("/pay\""));
    let to = send_form(&client, &format!("{page}/pay"), "").expect(303);
    let payment = mollie.made_payments().pop().unwrap();
    assert_eq!(Some(to.header("location")), payment.checkout_url.as_deref());
    assert_eq!(send_form(&client, &format!("{page}/pay"), "").expect(303).header("location"), to.header("location"));
    assert_eq!(mollie.made_payments().len(), 1);
    mollie.set_status(&payment.id, Status::Paid);
    mollie.call_webhook(&payment.id).unwrap();
    work_off(&server);
    assert_eq!(client.get(&format!("/v1/invoices/{}", invoice.id())).data()["payment_status"], "paid");
    assert!(!shown().contains("/pay\""));
}

fn the_bank_gets_a_file(server: Shared) {
    let client = server.client();
    client.patch("/v1/settings", json!({"provider": "manual"})).expect(200);
    let firm = firm(&client);
    assert_eq!(verify(&client, &firm).expect(409).code(), "invalid_transition");
    let path = format!("/v1/clients/{firm}/direct-debit/mandate");
    assert_eq!(
        client.post(&path, json!({"mandate_id": "x".repeat(36)})).expect(422).faults(),
        ["mandate_id: too_long"]
    );
    let signed = client.post(&path, json!({"mandate_id": "M-1", "signed_on": "2026-05-01"})).expect(201).data();
    assert_eq!((&signed["status"], &signed["provider"]), (&json!("authorized"), &json!("manual")));
    let without_iban = client.post("/v1/clients", json!({"company_name": "No bank"})).expect(201).id();
    client.post(&format!("/v1/clients/{without_iban}/direct-debit/mandate"), json!({"mandate_id": "M-2"})).expect(201);
    let subscription = subscribe(&client, &firm);
    let paid_otherwise = subscribe(&client, &without_iban);
    assert_eq!(client.post("/v1/direct-debit/batches", json!({})).expect(409).code(), "invalid_transition");
    advance(&client, "2026-05-10T10:00:00Z");
    assert_eq!(billed(&client, &subscription).1[0]["status"], "created", "it awaits a batch file");
    let refused = client.post("/v1/direct-debit/batches", json!({})).expect(409);
    assert!(refused.text.contains("creditor_id"), "{}", refused.text);
    client.patch("/v1/settings", json!({"creditor_id": "NL69ZZZ123456780000"})).expect(200);
    let identity = client.get("/v1/corporate-identities").data()[0]["id"].as_str().unwrap().to_string();
    client
        .patch(
            &format!("/v1/corporate-identities/{identity}"),
            json!({"name": "Jansen & Zn", "iban": "NL02ABNA0123456789"}),
        )
        .expect(200);
    assert_eq!(
        client.post("/v1/direct-debit/batches", json!({"collection_date": "2026-05-10"})).expect(422).faults(),
        ["collection_date: out_of_range"]
    );
    let made = client.post("/v1/direct-debit/batches", json!({})).expect(201);
    let batch = made.data();
    assert_eq!(
        (&batch["count"], &batch["amount"], &batch["collection_date"]),
        (&json!(1), &json!(121), &json!("2026-05-12"))
    );
    assert_eq!(made.json()["meta"]["left_out"], json!(null));
    let (invoice, payments) = billed(&client, &paid_otherwise);
    assert_eq!((payments.len(), &invoice["meta"]["collection_date"]), (0, &json!(null)), "the client is asked to pay");
    let file = client.get(&format!("/v1/direct-debit/batches/{}/content", made.id())).expect(200);
    assert!(
        file.header("content-type").starts_with("application/xml")
            && file.header("content-disposition").starts_with("attachment")
    );
    for part in [
        "<InstdAmt Ccy=\"EUR\">121.00</InstdAmt>",
        "<MndtId>M-1</MndtId>",
        "<SeqTp>FRST</SeqTp>",
        "NL69ZZZ123456780000",
        "<IBAN>NL91ABNA0417164300</IBAN>",
    ] {
        assert!(file.text.contains(part), "{part}: {}", file.text);
    }
    let signed = batch["file_url"].as_str().unwrap().strip_prefix(&client.base).unwrap();
    assert_eq!(client.send("GET", signed, &[("authorization", "")], "").expect(200).text, file.text);
    let (invoice, payments) = billed(&client, &subscription);
    assert_eq!(
        (&payments[0]["status"], &mandate(&client, &firm)["mandate_status"]),
        (&json!("pending"), &json!("active"))
    );
    let payment =
        format!("/v1/invoices/{}/payments/{}", invoice["id"].as_str().unwrap(), payments[0]["id"].as_str().unwrap());
    client.patch(&payment, json!({"status": "paid"})).expect(200);
    assert_eq!(billed(&client, &subscription).0["payment_status"], "paid");
    advance(&client, "2026-06-10T10:00:00Z");
    let next = client.post("/v1/direct-debit/batches", json!({"scheme": "b2b"})).expect(201).id();
    assert!(
        client
            .get(&format!("/v1/direct-debit/batches/{next}/content"))
            .expect(200)
            .text
            .contains("<SeqTp>RCUR</SeqTp>")
    );
    assert_eq!(client.get("/v1/direct-debit/batches").json()["meta"]["total"], 2);
}
