//! The texts of mail, and when automatic mail leaves.

use engine::clock::Moment;
use engine::jobs::worker;
use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Db, Office, Server, Shared};

on_both![
    reminders_leave_in_office_hours,
    mail_outside_office_hours_waits,
    waiting_mail_follows_new_office_hours,
    waiting_mail_says_what_is_open_when_it_leaves,
    waiting_mail_goes_to_the_address_of_its_client,
    addresses_on_a_test_clock_follow_the_client,
    reminders_fit_the_invoice,
    mail_on_a_test_clock_leaves_when_it_is_advanced,
    unknown_placeholders_are_rejected_when_sending,
    a_plain_mail_has_its_link_once,
    mail_to_owners_leaves_at_once,
    waiting_mail_of_a_flow_is_canceled_with_its_author,
    rejects_invalid_office_hours,
    texts_are_the_accounts_own,
    reminders_of_a_quote_differ,
    ready_flows_follow_the_language,
    braces_in_a_title_are_text,
    a_send_says_when_its_mail_leaves,
];

fn quote(client: &Client) -> String {
    let body =
        json!({"title": "Ketel", "generate": true, "rows": [{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]});
    format!("/v1/quotes/{}", client.post("/v1/quotes", body).expect(201).id())
}

fn send(client: &Client, path: &str, kind: &str) {
    let body = json!({"to": "a@ster.example", "subject": "s", "message": "m", "send_type": kind, "include_pdf": false});
    client.post(&format!("{path}/send"), body).expect(200);
}

fn deliveries(client: &Client, path: &str) -> Vec<Value> {
    client.get(&format!("{path}/deliveries")).expect(200).data().as_array().unwrap().clone()
}

fn reminders_leave_in_office_hours(server: Shared) {
    // Saturday evening in Amsterdam.
    let client = server.recorded_client(Moment::parse("2026-05-09T20:00:00Z"));
    let path = quote(&client);
    for kind in ["quote", "quote_rem1"] {
        send(&client, &path, kind);
    }
    let leaves = |place: usize| deliveries(&client, &path)[place]["leaves_at"].as_str().unwrap().to_string();
    assert_eq!(leaves(0), "2026-05-09T20:00:00.000Z", "somebody sends it now");
    assert_eq!(leaves(1), "2026-05-11T06:00:00.000Z", "Monday at eight");
    client.patch("/v1/settings", json!({"mail_hours_from": "09:30", "mail_days": ["sat", "sun"]})).expect(200);
    send(&client, &path, "quote_rem2");
    assert_eq!(leaves(2), "2026-05-10T07:30:00.000Z");
    client.patch("/v1/settings", json!({"mail_hours_from": "00:00", "mail_hours_until": "24:00"})).expect(200);
    send(&client, &path, "quote_rem3");
    assert_eq!(leaves(3), "2026-05-09T20:00:00.000Z");
    let listed = client.get("/v1/mails").expect(200).data();
    let waited: Vec<&Value> = listed.as_array().unwrap().iter().map(|mail| &mail["leaves_at"]).collect();
    assert_eq!(waited, [&json!("2026-05-09T20:00:00.000Z"); 4], "always open: what waited has left");
}

fn mail_outside_office_hours_waits(db: Db) {
    let server = Server::start(db);
    let client = server.recorded_client(None);
    // Only on the day before yesterday, so not for another five days.
    let today = server.now().date(&jiff::tz::TimeZone::get("Europe/Amsterdam").unwrap()).weekday();
    let days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let then = days[usize::try_from(today.to_monday_zero_offset() + 5).unwrap() % 7];
    client.patch("/v1/settings", json!({"mail_days": [then]})).expect(200);
    let path = quote(&client);
    for kind in ["quote", "quote_rem1"] {
        send(&client, &path, kind);
    }
    server.block_on(async { while worker::turn(&server.app).await {} });
    let statuses: Vec<String> =
        deliveries(&client, &path).iter().map(|one| one["status"].as_str().unwrap().to_string()).collect();
    assert_eq!(statuses, ["stored", "queued"]);
    // The client answers before the reminder leaves.
    client.act(&format!("{path}/accept")).expect(200);
    server.execute("UPDATE mails SET created_at = created_at - 10000, leaves_at = created_at - 5000");
    server.execute("UPDATE jobs SET run_at = 0 WHERE kind = 'deliver'");
    server.block_on(async { while worker::turn(&server.app).await {} });
    let why = "Not sent: the quote was answered before the reminder was due to leave.";
    assert_eq!(deliveries(&client, &path)[1]["reason"], why);
}

fn waiting_mail_follows_new_office_hours(db: Db) {
    let server = Server::start(db);
    let client = server.recorded_client(None);
    let zone = jiff::tz::TimeZone::get("Europe/Amsterdam").unwrap();
    let today = server.now().date(&zone).weekday().to_monday_zero_offset();
    let days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let in_days = |count: i8| days[usize::try_from(today + count).unwrap() % 7];
    client.patch("/v1/settings", json!({"mail_days": [in_days(5)]})).expect(200);
    let path = quote(&client);
    send(&client, &path, "quote_rem1");
    let leaves = || Moment::parse(deliveries(&client, &path)[0]["leaves_at"].as_str().unwrap()).unwrap();
    let day = |leaves: Moment| i64::from(leaves.date(&zone).weekday().to_monday_zero_offset() - today).rem_euclid(7);
    assert_eq!(day(leaves()), 5);
    client.patch("/v1/settings", json!({"mail_days": [in_days(3)]})).expect(200);
    assert_eq!(day(leaves()), 3);
    server.block_on(async { while worker::turn(&server.app).await {} });
    assert_eq!(deliveries(&client, &path)[0]["status"], "queued");
    // Always open: it leaves at once.
    client
        .patch("/v1/settings", json!({"mail_days": days, "mail_hours_from": "00:00", "mail_hours_until": "24:00"}))
        .expect(200);
    server.block_on(async { while worker::turn(&server.app).await {} });
    assert_eq!(deliveries(&client, &path)[0]["status"], "stored");
}

/// Office hours that begin on another day, so that automatic mail waits.
fn close_today(server: &Office, client: &Client) {
    let today = server.now().date(&jiff::tz::TimeZone::get("Europe/Amsterdam").unwrap()).weekday();
    let days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let then = days[usize::try_from(today.to_monday_zero_offset() + 3).unwrap() % 7];
    client.patch("/v1/settings", json!({"mail_days": [then]})).expect(200);
}

/// Lets what waits leave, as if time had passed.
fn leave_now(server: &Server) {
    server.execute("UPDATE mails SET created_at = created_at - 10000, leaves_at = created_at - 5000");
    server.execute("UPDATE jobs SET run_at = 0 WHERE kind = 'deliver'");
    server.block_on(async { while worker::turn(&server.app).await {} });
}

fn invoice(client: &Client) -> String {
    let body =
        json!({"title": "Ketel", "generate": true, "rows": [{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]});
    format!("/v1/invoices/{}", client.post("/v1/invoices", body).expect(201).id())
}

fn texts(client: &Client) -> Vec<Value> {
    let list = client.get("/v1/mails").expect(200).data();
    let mut ids: Vec<String> =
        list.as_array().unwrap().iter().map(|mail| mail["id"].as_str().unwrap().to_string()).collect();
    ids.sort();
    ids.iter().map(|id| client.get(&format!("/v1/mails/{id}")).expect(200).data()).collect()
}

fn waiting_mail_says_what_is_open_when_it_leaves(db: Db) {
    let server = Server::start(db);
    let client = server.recorded_client(None);
    close_today(&server, &client);
    let path = invoice(&client);
    client.patch(&path, json!({"invoice_date": "2026-03-02", "due_date": "2026-03-16"})).expect(200);
    // The preview unchanged, own words with a placeholder, and an amount that somebody wrote.
    let usual = client.get(&format!("{path}/send-preview?send_type=invoice_rem1")).expect(200).data();
    for (subject, message) in [
        (usual["subject"].clone(), usual["message"].clone()),
        (json!("Nog {amount}"), json!("Beste klant,\n\nNog {amount} van {total}.")),
        (json!("s"), json!("Nog € 121,00.")),
        // One word of the preview was changed.
        (json!("s"), json!(usual["message"].as_str().unwrap().replace("alsnog", "nu"))),
    ] {
        let body = json!({"to": "a@ster.example, b@ster.example", "subject": subject, "message": message, "send_type": "invoice_rem1", "include_pdf": false});
        client.post(&format!("{path}/send"), body).expect(200);
    }
    assert!(
        texts(&client)[0]["text"].as_str().unwrap().contains("bedrag van €\u{a0}121,00"),
        "{:?}",
        texts(&client)[0]
    );
    let id = path.rsplit('/').next().unwrap();
    client.post(&format!("{path}/payments"), json!({"amount": 21})).expect(201);
    leave_now(&server);
    let mails = texts(&client);
    assert_eq!(mails.iter().map(|mail| &mail["status"]).collect::<Vec<_>>(), [&json!("stored"); 8]);
    let text = |place: usize| mails[place]["text"].as_str().unwrap();
    for place in [0, 1] {
        assert!(text(place).contains("bedrag van €\u{a0}100,00 alsnog"), "{}", text(place));
    }
    assert!(text(2).contains("Nog €\u{a0}100,00 van €\u{a0}121,00."), "{}", text(2));
    assert_eq!(mails[2]["subject"], "Nog €\u{a0}100,00");
    assert!(text(4).contains("Nog € 121,00."), "{}", text(4));
    assert!(text(6).contains("bedrag van €\u{a0}100,00 nu over te maken"), "{}", text(6));
    for mail in &mails {
        let html = mail["html"].as_str().unwrap();
        assert!(html.contains(">€\u{a0}100,00</td>"), "{html}");
    }
    // Nothing is left to pay.
    send(&client, &path, "invoice_rem2");
    client.post(&format!("{path}/payments"), json!({"amount": 100})).expect(201);
    leave_now(&server);
    let last = deliveries(&client, &path).pop().unwrap();
    assert_eq!(last["status"], "canceled");
    assert_eq!(last["reason"], "Not sent: the invoice was paid before the reminder was due to leave.");
    let lines = client.get("/v1/changes?type=mail.canceled").expect(200).data();
    assert_eq!((lines.as_array().unwrap().len(), &lines[0]["entity_id"]), (1, &json!(id)));
    assert_eq!((&lines[0]["data"]["mail"]["id"], &lines[0]["actor"]), (&last["id"], &json!("outbox")));
    // The client was given more time.
    let path = invoice(&client);
    client.patch(&path, json!({"invoice_date": "2026-03-02", "due_date": "2026-03-16"})).expect(200);
    send(&client, &path, "invoice_rem1");
    client.patch(&path, json!({"due_date": "2096-03-16"})).expect(200);
    leave_now(&server);
    assert_eq!(deliveries(&client, &path).pop().unwrap()["status"], "canceled");
}

/// An invoice that is late, of a client; returns the paths of both.
fn late_invoice(client: &Client, address: &str) -> (String, String) {
    let firm = json!({"company_name": "De Ster", "email": address, "mail_salutation": "Beste Anna"});
    let firm = client.post("/v1/clients", firm).expect(201).id();
    let row = json!([{"name": "Ketel", "unit_price": 100, "vat_rate": 21}]);
    let body = json!({"title": "Ketel", "generate": true, "client_id": firm, "rows": row, "invoice_date": "2026-03-02",
        "due_date": "2026-03-16"});
    let invoice = client.post("/v1/invoices", body).expect(201).id();
    (format!("/v1/clients/{firm}"), format!("/v1/invoices/{invoice}"))
}

/// Sends the first reminder as its preview has it, to this address instead of the usual one if given.
fn remind(client: &Client, path: &str, to: Option<&str>, cc: &str) {
    let mut body = client.get(&format!("{path}/send-preview?send_type=invoice_rem1")).expect(200).data();
    for name in ["from", "reply_to", "from_email", "language", "attachment"] {
        body.as_object_mut().unwrap().remove(name);
    }
    body["include_pdf"] = json!(false);
    body["cc"] = json!(cc);
    if let Some(to) = to {
        body["to"] = json!(to);
    }
    client.send("POST", &format!("{path}/send"), &[], &body.to_string()).expect(200);
}

/// The recipients of the mail about a document, with their status.
fn recipients(client: &Client, path: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let mut all: Vec<(String, String)> =
        deliveries(client, path).iter().map(|one| (text(&one["recipient"]), text(&one["status"]))).collect();
    all.sort();
    all
}

fn waiting_mail_goes_to_the_address_of_its_client(db: Db) {
    let server = Server::start(db);
    let client = server.recorded_client(None);
    close_today(&server, &client);
    let pair = |to: &str, status: &str| (to.to_string(), status.to_string());
    let (firm, path) = late_invoice(&client, "old@ster.example");
    remind(&client, &path, None, "boss@ster.example");
    assert!(client.get(&path).data()["sent_at"].is_null());
    client.patch(&firm, json!({"email": "new@ster.example", "mail_salutation": "Beste Berend"})).expect(200);
    leave_now(&server);
    assert_eq!(recipients(&client, &path), [pair("boss@ster.example", "stored"), pair("new@ster.example", "stored")]);
    let mails = texts(&client);
    assert!(mails.iter().all(|mail| mail["text"].as_str().unwrap().starts_with("Beste Berend,")), "{mails:?}");
    assert!(!client.get(&path).data()["sent_at"].is_null(), "a reminder sends the document too");
    // An invoice that is final keeps the client that it was printed with, but not for the next mail.
    let preview = client.get(&format!("{path}/send-preview?send_type=invoice_rem2")).expect(200).data();
    assert_eq!(preview["to"], "new@ster.example");

    // One address becomes several, and several become one.
    for (before, after, expected) in [
        (
            "a@ster.example",
            "b@ster.example, c@ster.example",
            vec![("b@ster.example", "stored"), ("c@ster.example", "stored")],
        ),
        (
            "a@ster.example, b@ster.example",
            "b@ster.example",
            vec![("a@ster.example", "canceled"), ("b@ster.example", "stored")],
        ),
        (
            "a@ster.example, b@ster.example",
            "c@ster.example",
            vec![("b@ster.example", "canceled"), ("c@ster.example", "stored")],
        ),
        // Without an address, it goes nowhere.
        ("a@ster.example", "", vec![("a@ster.example", "canceled")]),
    ] {
        let (firm, path) = late_invoice(&client, "");
        client.patch(&firm, json!({"email_reminders": before})).expect(200);
        remind(&client, &path, None, "");
        client.patch(&firm, json!({"email_reminders": after})).expect(200);
        leave_now(&server);
        let found = recipients(&client, &path);
        let expected: Vec<(String, String)> = expected.iter().map(|(to, status)| pair(to, status)).collect();
        let first_canceled = [pair("a@ster.example", "canceled"), pair("c@ster.example", "stored")];
        assert!(found == expected || after == "c@ster.example" && found == first_canceled, "{found:?}");
    }
    // What somebody wrote stays.
    let (firm, path) = late_invoice(&client, "old@ster.example");
    remind(&client, &path, Some("other@ster.example"), "");
    client.patch(&firm, json!({"email": "new@ster.example"})).expect(200);
    leave_now(&server);
    assert_eq!(recipients(&client, &path), [pair("other@ster.example", "stored")]);
}

fn addresses_on_a_test_clock_follow_the_client(server: Shared) {
    let client = server.recorded_client(Moment::parse("2026-05-09T20:00:00Z"));
    let flow = json!({"name": "Herinner", "trigger_type": "event", "trigger_key": "invoice.created",
        "steps": [{"type": "send_document", "send_type": "invoice_rem1"}]});
    client.post("/v1/automation/flows", flow).expect(201);
    let (firm, path) = late_invoice(&client, "old@ster.example");
    client.post("/v1/test-clock/advance", json!({"to": "2026-05-10T20:00:00Z"})).expect(200);
    assert_eq!(recipients(&client, &path), [("old@ster.example".to_string(), "queued".to_string())]);
    client.patch(&firm, json!({"email_reminders": "a@ster.example, b@ster.example"})).expect(200);
    client.post("/v1/test-clock/advance", json!({"to": "2026-05-12T10:00:00Z"})).expect(200);
    let recorded = |to: &str| (to.to_string(), "recorded".to_string());
    assert_eq!(recipients(&client, &path), [recorded("a@ster.example"), recorded("b@ster.example")]);
}

/// A credit invoice asks for nothing, and one that is not due yet is not late.
fn reminders_fit_the_invoice(server: Shared) {
    let client = server.recorded_client(Moment::parse("2026-05-09T20:00:00Z"));
    let preview = |path: &str| client.get(&format!("{path}/send-preview?send_type=invoice_rem1")).expect(200).data();
    let path = invoice(&client);
    let early = preview(&path);
    let message = early["message"].as_str().unwrap();
    assert!(early["subject"].as_str().unwrap().starts_with("Herinnering: factuur "), "{early}");
    assert!(message.contains("Graag herinneren wij u aan factuur") && message.contains("Wij verzoeken u"), "{early}");
    assert!(!message.contains("had uiterlijk"), "{early}");
    let credit = client.post(&format!("{path}/credit"), json!({})).expect(201).id();
    let credit = preview(&format!("/v1/invoices/{credit}"));
    assert!(credit["subject"].as_str().unwrap().starts_with("Creditfactuur "), "{credit}");
    assert!(!credit["message"].as_str().unwrap().contains("verzoeken"), "{credit}");
    // One that becomes late while it waits says so.
    let path = invoice(&client);
    client.patch(&path, json!({"due_date": "2026-05-10"})).expect(200);
    remind(&client, &path, Some("a@ster.example"), "");
    client.post("/v1/test-clock/advance", json!({"to": "2026-05-12T10:00:00Z"})).expect(200);
    let mails = texts(&client);
    assert_eq!((mails.len(), &mails[0]["status"]), (1, &json!("recorded")));
    assert!(mails[0]["text"].as_str().unwrap().contains("had uiterlijk op 10 mei 2026"), "{mails:?}");
    // The account's own text is used as it is.
    let own =
        json!({"send_type": "invoice_rem1", "language": "nl", "subject": "Eigen", "message": "Denkt u aan {number}?"});
    client.post("/v1/mail-templates", own).expect(201);
    assert_eq!(preview(&invoice(&client))["subject"], "Eigen");
}

fn mail_on_a_test_clock_leaves_when_it_is_advanced(db: Db) {
    let server = Server::start(db);
    // Saturday evening in Amsterdam.
    let client = server.recorded_client(Moment::parse("2026-05-09T20:00:00Z"));
    let advance = |to: &str| client.post("/v1/test-clock/advance", json!({"to": to})).expect(200);
    let send_document = json!([{"type": "send_document", "to": "a@ster.example"}]);
    let flow =
        json!({"name": "Mail", "trigger_type": "event", "trigger_key": "invoice.created", "steps": send_document});
    client.post("/v1/automation/flows", flow).expect(201);
    let (sent, settled, open) = (invoice(&client), quote(&client), quote(&client));
    for path in [&settled, &open] {
        send(&client, path, "quote_rem1");
    }
    advance("2026-05-10T20:00:00Z");
    assert_eq!(deliveries(&client, &sent)[0]["status"], "queued");
    assert!(client.get(&sent).data()["sent_at"].is_null());
    client.act(&format!("{settled}/accept")).expect(200);
    advance("2026-05-12T10:00:00Z");
    let mail = deliveries(&client, &sent)[0].clone();
    assert_eq!((&mail["status"], &mail["leaves_at"]), (&json!("recorded"), &json!("2026-05-11T06:00:00.000Z")));
    assert_eq!(client.get(&sent).data()["sent_at"], "2026-05-11T06:00:00.000Z");
    assert_eq!(deliveries(&client, &settled)[0]["status"], "canceled");
    assert_eq!(deliveries(&client, &open)[0]["status"], "recorded");
    // An account that sends does not wait for a clock that stands still.
    advance("2026-05-12T20:00:00Z");
    send(&client, &open, "quote_rem2");
    assert_eq!(deliveries(&client, &open)[1]["status"], "queued");
    client.patch("/v1/settings", json!({"outside": "live"})).expect(200);
    send(&client, &open, "quote_rem3");
    server.block_on(async { while worker::turn(&server.app).await {} });
    let statuses: Vec<Value> = deliveries(&client, &open).iter().map(|one| one["status"].clone()).collect();
    assert_eq!(statuses, ["recorded", "stored", "stored"]);
}

fn unknown_placeholders_are_rejected_when_sending(server: Shared) {
    let client = server.client();
    let path = invoice(&client);
    let send = |subject: &str, message: &str, to: &str| {
        client.post(&format!("{path}/send"), json!({"to": to, "subject": subject, "message": message}))
    };
    let refused = send("Factuur {nummer}", "Nog {Amount}", "a@ster.example").expect(422);
    assert_eq!(refused.faults(), ["subject: invalid_format", "message: invalid_format"]);
    assert!(refused.text.contains("did you mean 'number'?"), "{}", refused.text);
    assert_eq!(send("{nummer}", "m", "nobody").expect(422).faults(), ["to: invalid_format", "subject: invalid_format"]);
    assert_eq!(client.get("/v1/mails").data(), json!([]));
    // Braces of the document itself are text.
    client.patch(&path, json!({"title": "Ketel {groot}"})).expect(200);
    let usual = client.get(&format!("{path}/send-preview")).expect(200).data();
    send(usual["subject"].as_str().unwrap(), usual["message"].as_str().unwrap(), "a@ster.example").expect(200);
    let step = json!({"type": "send_document", "subject": "{{ data.number }} {nummer}", "message": "{{ data.title }}"});
    let flow = json!({"name": "x", "trigger_type": "event", "trigger_key": "invoice.created", "steps": [step]});
    let warnings = client.post("/v1/automation/flows", flow).expect(201).json()["meta"]["warnings"].clone();
    assert!(warnings.to_string().contains("steps[0].subject: has the unknown placeholder {nummer}"), "{warnings}");
    assert_eq!(warnings.as_array().unwrap().len(), 1, "{warnings}");
}

fn a_plain_mail_has_its_link_once(server: Shared) {
    let client = server.client();
    let path = quote(&client);
    for message in ["Zie {link} voor de offerte.", "Zie de bijlage."] {
        let body = json!({"to": "a@ster.example", "subject": "s", "message": message, "include_pdf": false});
        client.post(&format!("{path}/send"), body).expect(200);
    }
    for mail in texts(&client) {
        let text = mail["text"].as_str().unwrap();
        assert_eq!(text.matches("/d/").count(), 1, "{text}");
    }
}

/// What a flow tells the owner of the account disturbs nobody else.
fn mail_to_owners_leaves_at_once(db: Db) {
    let server = Server::start(db);
    let client = server.recorded_client(Moment::parse("2026-05-09T20:00:00Z"));
    crate::people::owner(&server, &client, "olga@jansen.example");
    let mail = |to: &str| json!({"type": "send_email", "to": to, "subject": to, "body": "b"});
    let steps = json!([mail("Olga@jansen.example"), mail("anna@ster.example, olga@jansen.example")]);
    let flow = json!({"name": "x", "trigger_type": "custom", "trigger_key": "order.shipped", "steps": steps});
    client.post("/v1/automation/flows", flow).expect(201);
    client.post("/v1/automation/trigger", json!({"event": "order.shipped"})).expect(200);
    client.post("/v1/test-clock/advance", json!({"to": "2026-05-09T20:00:01Z"})).expect(200);
    let mails = client.get("/v1/mails").data();
    let leaves = |subject: &str| {
        let found = mails.as_array().unwrap().iter().find(|mail| mail["subject"] == subject).unwrap();
        found["leaves_at"].as_str().unwrap()[..10].to_string()
    };
    assert_eq!(leaves("Olga@jansen.example"), "2026-05-09");
    assert_eq!(leaves("anna@ster.example, olga@jansen.example"), "2026-05-11");
}

fn waiting_mail_of_a_flow_is_canceled_with_its_author(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    close_today(&server, &client);
    let key = |name: &str| {
        let scopes = vec!["automation.write".to_string(), "tickets.write".to_string()];
        let new = engine::accounts::NewKey { name: name.into(), scopes, expires_at: None };
        let (secret, id) = server.add_key(&client, new);
        (Client { key: secret, ..client.clone() }, id)
    };
    let ((leaving, revoked), (staying, _)) = (key("Leaving"), key("Staying"));
    for (author, address) in [(&leaving, "late@y.example"), (&staying, "fine@y.example")] {
        let step = json!({"type": "send_email", "to": address, "subject": "s", "body": "b"});
        let flow = json!({"name": "x", "trigger_type": "custom", "trigger_key": "my.own", "steps": [step]});
        author.post("/v1/automation/flows", flow).expect(201);
    }
    client.post("/v1/automation/trigger", json!({"event": "my.own"})).expect(200);
    server.automate(&client);
    let standings = || {
        let mails = client.get("/v1/mails").expect(200).data();
        let of = |mail: &Value| (mail["recipient"].to_string(), mail["status"].as_str().unwrap().to_string());
        let mut all: Vec<_> = mails.as_array().unwrap().iter().map(of).collect();
        all.sort();
        all.into_iter().map(|(_, status)| status).collect::<Vec<_>>()
    };
    assert_eq!(standings(), ["queued", "queued"]);
    kantoor::keys::operator::revoke(&server.app, &revoked).unwrap();
    leave_now(&server);
    assert_eq!(standings(), ["stored", "canceled"], "{}", client.get("/v1/mails").text);
}

fn rejects_invalid_office_hours(server: Shared) {
    let client = server.client();
    for (body, fault) in [
        (json!({"mail_hours_from": "8:00"}), "mail_hours_from: invalid_format"),
        (json!({"mail_hours_until": "24:01"}), "mail_hours_until: invalid_format"),
        (json!({"mail_hours_until": "08:00"}), "mail_hours_until: out_of_range"),
        (json!({"mail_days": []}), "mail_days: required"),
        (json!({"mail_days": ["maandag"]}), "mail_days: invalid_choice"),
    ] {
        assert_eq!(client.patch("/v1/settings", body).expect(422).faults(), [fault]);
    }
}

fn texts_are_the_accounts_own(server: Shared) {
    let client = server.client();
    let text =
        |message: &str| json!({"send_type": "quote", "language": "nl", "subject": "Voor {client}", "message": message});
    let refused = client.post("/v1/mail-templates", text("Zie {nummer}")).expect(422);
    assert_eq!(refused.faults(), ["message: invalid_format"]);
    assert!(refused.text.contains("did you mean 'number'?"), "{}", refused.text);
    let old = client.post("/v1/mail-templates", text("x")).expect(201).id();
    let template = client.post("/v1/mail-templates", text("Zie {number} van {total}. {payment} {niets")).expect(201);
    let path = quote(&client);
    let words = client.get(&format!("{path}/send-preview")).expect(200).data();
    assert_eq!(
        (&words["subject"], &words["message"]),
        (&json!("Voor"), &json!("Zie Q2026-0001 van €\u{a0}121,00.  {niets"))
    );
    let own = format!("/v1/mail-templates/{}", template.id());
    client.patch(&own, json!({"message": "Dag {client}"})).expect(200);
    assert_eq!(client.patch(&own, json!({"subject": "a\nb"})).expect(422).faults(), ["subject: invalid_characters"]);
    // A preview shows a text before it is stored, about a document or a sample.
    let preview = |body: Value| client.post("/v1/mail-templates/preview", body);
    let sample = preview(json!({"send_type": "quote"})).expect(200).data();
    assert_eq!(
        (&sample["message"], &sample["template"]["message"]),
        (&json!("Dag Bakkerij De Ster"), &json!("Dag {client}"))
    );
    let english = preview(json!({"send_type": "invoice_rem2", "language": "en"})).expect(200).data();
    assert!(english["message"].as_str().unwrap().contains("outstanding amount of €121.00"), "{english}");
    let link = preview(json!({"send_type": "quote", "message": "{link}"})).expect(200).data();
    assert!(link["message"].as_str().unwrap().ends_with("/d/example"), "{link}");
    let html = english["html"].as_str().unwrap();
    assert!(html.contains("Invoice number") && html.contains("€121.00") && html.contains("View the invoice"), "{html}");
    let about = json!({"send_type": "quote", "subject": "{number}", "document_id": path.rsplit('/').next().unwrap()});
    assert_eq!(preview(about).expect(200).data()["subject"], "Q2026-0001");
    let wrong = preview(json!({"send_type": "invoice", "document_id": "x", "message": "{x}"})).expect(422);
    assert_eq!(wrong.faults(), ["message: invalid_format", "document_id: reference_not_found"]);
    client.delete(&own).expect(204);
    client.delete(&format!("/v1/mail-templates/{old}")).expect(204);
    let words = client.get(&format!("{path}/send-preview")).expect(200).data();
    assert_eq!(words["subject"], "Offerte Q2026-0001");
}

fn reminders_of_a_quote_differ(server: Shared) {
    let client = server.client();
    let path = quote(&client);
    for language in ["nl", "en"] {
        let texts = ["quote_rem1", "quote_rem2", "quote_rem3"].map(|kind| {
            let body =
                json!({"send_type": kind, "language": language, "document_id": path.rsplit('/').next().unwrap()});
            client.post("/v1/mail-templates/preview", body).expect(200).data()["message"].clone()
        });
        assert!(texts[0] != texts[1] && texts[1] != texts[2] && texts[0] != texts[2], "{texts:?}");
    }
}

fn ready_flows_follow_the_language(server: Shared) {
    let client = server.client();
    let names = || -> Vec<String> {
        let flows = client.get("/v1/automation/flows?per_page=100&sort=id&order=asc").expect(200).data();
        flows.as_array().unwrap().iter().map(|flow| flow["name"].as_str().unwrap().to_string()).collect()
    };
    let english = names();
    assert!(english.contains(&"Payment reminders".to_string()), "{english:?}");
    let flows = client.get("/v1/automation/flows?search=stale").data();
    let enabled = format!("/v1/automation/flows/{}", flows[0]["id"].as_str().unwrap());
    client.patch(&enabled, json!({"active": true})).expect(200);
    client.patch("/v1/settings", json!({"language": "nl"})).expect(200);
    let dutch = names();
    for name in ["Betalingsherinneringen", "Meld een geweigerde mail", "Verwelkom een nieuwe klant"] {
        assert!(dutch.contains(&name.to_string()), "{dutch:?}");
    }
    assert_eq!(dutch.len(), english.len());
    let kept: Vec<&String> = dutch.iter().filter(|name| english.contains(name)).collect();
    assert_eq!(kept, ["Follow up on a stale ticket"], "one that is in use stays as it is");
    client.patch("/v1/settings", json!({"language": "en"})).expect(200);
    assert_eq!(names(), english);
}

fn braces_in_a_title_are_text(server: Shared) {
    let client = server.client();
    let own = json!({"send_type": "invoice", "language": "nl", "subject": "{title}: {number}", "message": "{title} {amount}"});
    client.post("/v1/mail-templates", own).expect(201);
    for title in ["Set {amount} groot", "{amount}", "{{number}} {link}", "{"] {
        let path = invoice(&client);
        client.patch(&path, json!({"title": title})).expect(200);
        let number = client.get(&path).data()["number"].as_str().unwrap().to_string();
        let sent = |subject: &str, message: &str| {
            let body = json!({"to": "a@ster.example", "subject": subject, "message": message, "include_pdf": false});
            client.post(&format!("{path}/send"), body).expect(200);
            let mail = texts(&client).pop().unwrap();
            (mail["subject"].as_str().unwrap().to_string(), mail["text"].as_str().unwrap().to_string())
        };
        let usual = client.get(&format!("{path}/send-preview")).expect(200).data();
        let part = |name: &str| usual[name].as_str().unwrap().to_string();
        assert_eq!(part("subject"), format!("{title}: {number}"));
        let (subject, text) = sent(&part("subject"), &part("message"));
        assert_eq!(subject, part("subject"));
        assert!(text.starts_with(&format!("{title} €\u{a0}121,00\n")), "{text}");
        // Placeholders that somebody adds are filled.
        let (subject, text) = sent(&part("subject"), &format!("{} ({{number}})", part("message")));
        assert_eq!(subject, part("subject"));
        assert!(text.starts_with(&format!("{title} €\u{a0}121,00 ({number})")), "{text}");
    }
}

fn a_send_says_when_its_mail_leaves(server: Shared) {
    // Saturday evening in Amsterdam.
    let client = server.recorded_client(Moment::parse("2026-05-09T18:00:00Z"));
    let path = quote(&client);
    for (kind, leaves) in [("quote", "2026-05-09T18:00:00.000Z"), ("quote_rem1", "2026-05-11T06:00:00.000Z")] {
        let body =
            json!({"to": "a@ster.example", "subject": "s", "message": "m", "send_type": kind, "include_pdf": false});
        let sent = client.post(&format!("{path}/send"), body).expect(200).data();
        assert_eq!(sent["leaves_at"], leaves, "{kind}");
        assert_eq!(deliveries(&client, &path).pop().unwrap()["leaves_at"], leaves, "{kind}");
    }
}
