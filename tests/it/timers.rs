//! Timers, on a moving clock.

use serde_json::json;

use crate::on_both;
use crate::support::{Client, Db, Server, Shared};

fn advance(client: &Client, to: &str) {
    client.post("/v1/test-clock/advance", json!({"to": to})).expect(200);
}

/// Returns the timed events since `seq`, with their dates.
fn timed_events(server: &Server, client: &Client, seq: i64) -> Vec<String> {
    let account = client.account;
    let sql = "SELECT type, at FROM log WHERE account_id = $1 AND seq > $2 ORDER BY seq";
    let read = move |tx: &mut store::Tx| {
        tx.all(sql, &[account.into(), seq.into()], |row| Ok::<_, store::Error>((row.text(0)?.to_string(), row.int(1)?)))
    };
    let names = [
        "deal.stalled",
        "deal.phase_idle",
        "deal.close_due",
        "deal.no_followup",
        "ticket.stale",
        "mail.unanswered",
        "quote.silent",
        "document.draft",
        "customer.inactive",
        "customer.no_followup",
        "invoice.late",
        "customer.payment_overdue",
        "subscription.expiring",
        "subscription.ended",
    ];
    let lines = server.app.store.read_now(read).unwrap().into_iter().filter(|(name, _)| names.contains(&name.as_str()));
    lines.map(|(name, at)| format!("{} {name}", &engine::clock::Moment(at).to_string()[5..16])).collect()
}

on_both![
    deals_emit_stalled_and_idle_events,
    tickets_and_clients_emit_events_when_unanswered,
    changing_a_day_setting_affects_running_timers,
    quotes_and_drafts_emit_events_when_idle,
    reopening_restarts_timers,
    notes_do_not_affect_timers,
    further_messages_do_not_restart_the_wait,
    a_quote_is_silent_once,
    an_invoice_is_late_once_per_due_date,
    two_late_invoices_emit_one_overdue_event,
    extending_an_expired_quote_reopens_it,
    close_due_is_emitted_once_per_date,
    emits_expiring_regardless_of_the_frequency,
];

fn deals_emit_stalled_and_idle_events(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let deal = |close: &str| {
        client
            .post("/v1/deals", json!({"title": "d", "client_id": firm, "expected_close_date": close}))
            .expect(201)
            .id()
    };
    let (idle, won, followed) = (deal("2026-05-20"), deal(""), deal(""));
    client.act(&format!("/v1/deals/{won}/win")).expect(200);
    let task = client.post("/v1/tasks", json!({"title": "call", "deal_id": followed})).expect(201).id();
    let seq = server.last_seq(&client);
    advance(&client, "2026-05-10T10:00:00Z");
    assert_eq!(timed_events(&server, &client, seq), ["05-05T10:00 deal.no_followup"]);
    client.act(&format!("/v1/tasks/{task}/complete")).expect(200);
    client.patch(&format!("/v1/deals/{idle}"), json!({"title": "moved"})).expect(200);
    let seq = server.last_seq(&client);
    advance(&client, "2026-07-01T10:00:00Z");
    assert_eq!(
        timed_events(&server, &client, seq),
        [
            "05-11T10:00 deal.no_followup",
            "05-18T10:00 deal.phase_idle",
            "05-18T10:00 deal.phase_idle",
            "05-18T10:00 deal.stalled",
            "05-19T22:00 deal.close_due",
            "05-24T10:00 deal.stalled"
        ]
    );
}

fn tickets_and_clients_emit_events_when_unanswered(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let ticket = client
        .post("/v1/tickets", json!({"subject": "cold", "client_id": firm, "client_email": "a@ster.example"}))
        .expect(201)
        .id();
    let seq = server.last_seq(&client);
    let path = format!("/v1/tickets/{ticket}/messages");
    client.post(&format!("{path}/inbound"), json!({"body": "hello?"})).expect(201);
    client.post(&path, json!({"body": "a note", "type": "note"})).expect(201);
    advance(&client, "2026-05-06T12:00:00Z");
    assert_eq!(
        timed_events(&server, &client, seq),
        ["05-05T10:00 customer.no_followup", "05-06T10:00 mail.unanswered"]
    );
    client.post(&path, json!({"body": "we come"})).expect(201);
    client.post("/v1/tasks", json!({"title": "go", "client_id": firm})).expect(201);
    let seq = server.last_seq(&client);
    advance(&client, "2026-05-30T12:00:00Z");
    assert_eq!(timed_events(&server, &client, seq), ["05-09T12:00 ticket.stale"]);
    client.patch(&format!("/v1/tickets/{ticket}"), json!({"status": "Closed"})).expect(200);
    let seq = server.last_seq(&client);
    advance(&client, "2027-05-30T12:00:00Z");
    assert_eq!(
        timed_events(&server, &client, seq),
        ["11-02T12:00 customer.inactive"],
        "once, 180 days after the last message"
    );
}

fn changing_a_day_setting_affects_running_timers(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let days = |days: i64| {
        client.patch("/v1/settings", json!({"ticket_stale_days": days, "customer_no_followup_days": 0})).expect(200)
    };
    client.post("/v1/tickets", json!({"subject": "cold", "client_email": "a@ster.example"})).expect(201);
    let seq = server.last_seq(&client);
    days(10);
    advance(&client, "2026-05-10T10:00:00Z");
    days(0);
    advance(&client, "2026-05-20T10:00:00Z");
    assert!(timed_events(&server, &client, seq).is_empty());
    days(20);
    advance(&client, "2026-05-24T09:00:00Z");
    assert!(timed_events(&server, &client, seq).is_empty());
    advance(&client, "2026-06-24T10:00:00Z");
    assert_eq!(timed_events(&server, &client, seq), ["05-24T10:00 ticket.stale"]);
}

fn quotes_and_drafts_emit_events_when_idle(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    client
        .patch(
            "/v1/settings",
            json!({"quote_silent_days": 3, "customer_inactive_days": 0, "customer_no_followup_days": 0}),
        )
        .expect(200);
    let firm =
        client.post("/v1/clients", json!({"company_name": "De Ster", "email": "a@ster.example"})).expect(201).id();
    let quote = || {
        client
            .post("/v1/quotes", json!({"title": "q", "client_id": firm, "rows": [{"name": "x", "unit_price": 1}]}))
            .expect(201)
            .id()
    };
    let (silent, answered) = (quote(), quote());
    let send = json!({"to": "a@ster.example", "subject": "s", "message": "m"});
    for id in [&silent, &answered] {
        client.post(&format!("/v1/quotes/{id}/send"), send.clone()).expect(200);
    }
    client.act(&format!("/v1/quotes/{answered}/accept")).expect(200);
    client.post("/v1/invoices", json!({"title": "draft"})).expect(201);
    let partly = client
        .post(
            "/v1/invoices",
            json!({"title": "partly", "due_date": "2026-05-20", "generate": true, "total_incl_vat": 10}),
        )
        .expect(201)
        .id();
    client.post(&format!("/v1/invoices/{partly}/payments"), json!({"amount": 4})).expect(201);
    let done = client.post("/v1/invoices", json!({"title": "done"})).expect(201).id();
    client.act(&format!("/v1/invoices/{done}/finalize")).expect(200);
    client.patch(&format!("/v1/invoices/{done}"), json!({"payment_status": "paid"})).expect(200);
    let seq = server.last_seq(&client);
    advance(&client, "2026-08-01T12:00:00Z");
    assert_eq!(
        timed_events(&server, &client, seq),
        ["05-07T10:00 quote.silent", "05-11T10:00 document.draft", "05-20T22:00 invoice.late"]
    );
}

fn reopening_restarts_timers(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    client.patch("/v1/settings", json!({"deal_stalled_days": 0, "customer_no_followup_days": 0})).expect(200);
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let deal = format!(
        "/v1/deals/{}",
        client.post("/v1/deals", json!({"title": "d", "client_id": firm, "status": "lost"})).expect(201).id()
    );
    let ticket = format!("/v1/tickets/{}", client.post("/v1/tickets", json!({"subject": "cold"})).expect(201).id());
    client.patch(&ticket, json!({"status": "Closed"})).expect(200);
    let seq = server.last_seq(&client);
    advance(&client, "2026-06-01T10:00:00Z");
    assert!(timed_events(&server, &client, seq).is_empty());
    client.patch(&ticket, json!({"status": "Open"})).expect(200);
    client.patch(&deal, json!({"status": "open"})).expect(200);
    advance(&client, "2026-07-01T10:00:00Z");
    assert_eq!(
        timed_events(&server, &client, seq),
        ["06-02T10:00 deal.no_followup", "06-04T10:00 ticket.stale", "06-15T10:00 deal.phase_idle"]
    );
}

fn notes_do_not_affect_timers(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let library = client.get("/v1/automation/flows?search=stale").data();
    client
        .patch(&format!("/v1/automation/flows/{}", library[0]["id"].as_str().unwrap()), json!({"active": true}))
        .expect(200);
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let ticket = client.post("/v1/tickets", json!({"subject": "cold", "client_id": firm})).expect(201).id();
    let path = format!("/v1/tickets/{ticket}/messages");
    let seq = server.last_seq(&client);
    advance(&client, "2026-05-06T10:00:00Z");
    client.post(&path, json!({"body": "asked the plumber", "type": "note"})).expect(201);
    advance(&client, "2026-07-01T10:00:00Z");
    assert_eq!(
        timed_events(&server, &client, seq),
        ["05-07T10:00 ticket.stale"],
        "the note of the flow does not start it again"
    );
    assert_eq!(client.get(&path).data().as_array().unwrap().len(), 2);
    let task = client.get("/v1/tasks").data()[0]["id"].as_str().unwrap().to_string();
    client.act(&format!("/v1/tasks/{task}/complete")).expect(200);
    client.post(&path, json!({"body": "they come", "type": "note"})).expect(201);
    client.post(&path, json!({"body": "we come"})).expect(201);
    let seq = server.last_seq(&client);
    advance(&client, "2026-08-01T10:00:00Z");
    assert_eq!(timed_events(&server, &client, seq), ["07-02T10:00 customer.no_followup", "07-04T10:00 ticket.stale"]);
}

fn further_messages_do_not_restart_the_wait(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    client.patch("/v1/settings", json!({"ticket_stale_days": 0})).expect(200);
    let ticket = client.post("/v1/tickets", json!({"subject": "cold"})).expect(201).id();
    let path = format!("/v1/tickets/{ticket}/messages");
    let seq = server.last_seq(&client);
    for day in ["2026-05-05", "2026-05-06", "2026-05-07"] {
        client.post(&format!("{path}/inbound"), json!({"body": "hello?"})).expect(201);
        advance(&client, &format!("{day}T10:00:00Z"));
    }
    client.post(&path, json!({"body": "we come"})).expect(201);
    advance(&client, "2026-05-08T10:00:00Z");
    client.post(&format!("{path}/inbound"), json!({"body": "when?"})).expect(201);
    advance(&client, "2026-06-08T10:00:00Z");
    assert_eq!(timed_events(&server, &client, seq), ["05-06T10:00 mail.unanswered", "05-10T10:00 mail.unanswered"]);
}

fn a_quote_is_silent_once(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    client.patch("/v1/settings", json!({"customer_no_followup_days": 0})).expect(200);
    let quote = client
        .post("/v1/quotes", json!({"title": "q", "due_date": "2026-12-31", "rows": [{"name": "x", "unit_price": 1}]}))
        .expect(201)
        .id();
    let send = |kind: &str| {
        client
            .post(
                &format!("/v1/quotes/{quote}/send"),
                json!({"to": "a@ster.example", "subject": "s", "message": "m", "send_type": kind}),
            )
            .expect(200)
    };
    send("quote");
    let seq = server.last_seq(&client);
    advance(&client, "2026-05-12T10:00:00Z");
    send("quote_rem1");
    advance(&client, "2026-05-30T10:00:00Z");
    send("quote_rem2");
    advance(&client, "2026-08-01T10:00:00Z");
    assert_eq!(timed_events(&server, &client, seq), ["05-11T10:00 quote.silent"]);
}

fn an_invoice_is_late_once_per_due_date(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let body = json!({"title": "i", "client_id": firm, "due_date": "2026-05-10", "generate": true, "rows": [{"name": "x", "unit_price": 10}]});
    let path = format!("/v1/invoices/{}", client.post("/v1/invoices", body).expect(201).id());
    let status = || client.get(&path).data()["payment_status"].as_str().unwrap().to_string();
    let pay = |amount: i64| {
        client.post(&format!("{path}/payments"), json!({"amount": amount})).expect(201).data()["payment"]["id"]
            .as_str()
            .unwrap()
            .to_string()
    };
    let unpay = |payment: &str| client.delete(&format!("{path}/payments/{payment}")).expect(204);
    let seq = server.last_seq(&client);
    advance(&client, "2026-05-12T10:00:00Z");
    assert_eq!(
        timed_events(&server, &client, seq),
        ["05-10T22:00 invoice.late", "05-10T22:00 customer.payment_overdue"]
    );
    let seq = server.last_seq(&client);
    unpay(&pay(10));
    assert_eq!(status(), "overdue");
    assert_eq!(
        timed_events(&server, &client, seq),
        ["05-12T10:00 customer.payment_overdue"],
        "the invoice was late before, the client owes anew"
    );
    // A partial payment: the client remains overdue.
    let (part, seq) = (pay(4), server.last_seq(&client));
    unpay(&part);
    advance(&client, "2026-05-13T10:00:00Z");
    assert!(timed_events(&server, &client, seq).is_empty());

    let moved = client.patch(&path, json!({"due_date": "2026-05-25"})).expect(200).data();
    assert_eq!((&moved["payment_status"], &moved["due_date"]), (&json!("open"), &json!("2026-05-25")));
    let seq = server.last_seq(&client);
    advance(&client, "2026-05-27T10:00:00Z");
    assert_eq!(
        (status().as_str(), timed_events(&server, &client, seq)),
        ("overdue", vec!["05-25T22:00 invoice.late".to_string(), "05-25T22:00 customer.payment_overdue".to_string()])
    );

    // Partly paid, it stays partial, and is late only after its last due date.
    pay(4);
    for due in ["2026-06-01", "2026-06-10"] {
        assert_eq!(client.patch(&path, json!({"due_date": due})).expect(200).data()["payment_status"], "partial");
    }
    let seq = server.last_seq(&client);
    advance(&client, "2026-07-01T10:00:00Z");
    assert_eq!(
        timed_events(&server, &client, seq),
        ["06-10T22:00 invoice.late", "06-10T22:00 customer.payment_overdue"]
    );
}

fn two_late_invoices_emit_one_overdue_event(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let body = json!({"title": "i", "client_id": firm, "due_date": "2026-05-10", "generate": true, "rows": [{"name": "x", "unit_price": 10}]});
    let make = || format!("/v1/invoices/{}", client.post("/v1/invoices", body.clone()).expect(201).id());
    let (partly, _, credited) = (make(), make(), make());
    client.post(&format!("{partly}/payments"), json!({"amount": 4})).expect(201);
    client.post(&format!("{credited}/payments"), json!({})).expect(201);
    client.act(&format!("{credited}/credit")).expect(201);
    let seq = server.last_seq(&client);
    advance(&client, "2026-06-01T10:00:00Z");
    assert_eq!(
        timed_events(&server, &client, seq),
        ["05-10T22:00 invoice.late", "05-10T22:00 customer.payment_overdue", "05-10T22:00 invoice.late"],
        "and nobody is late with a credit"
    );
}

fn extending_an_expired_quote_reopens_it(server: Shared) {
    let client = server.client();
    let body =
        json!({"title": "q", "due_date": "2026-05-10", "generate": true, "rows": [{"name": "x", "unit_price": 10}]});
    let path = format!("/v1/quotes/{}", client.post("/v1/quotes", body).expect(201).id());
    advance(&client, "2026-05-12T10:00:00Z");
    assert_eq!(client.get(&path).data()["payment_status"], "expired");
    assert_eq!(client.patch(&path, json!({"due_date": "2026-05-11"})).expect(200).data()["payment_status"], "expired");
    assert_eq!(client.patch(&path, json!({"due_date": "2026-05-20"})).expect(200).data()["payment_status"], "open");
    client.act(&format!("{path}/accept")).expect(200);
}

fn close_due_is_emitted_once_per_date(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    client.patch("/v1/settings", json!({"deal_no_followup_days": 0, "deal_stalled_days": 0, "deal_phase_idle_days": 0, "customer_inactive_days": 0})).expect(200);
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let seq = server.last_seq(&client);
    let deal = client
        .post("/v1/deals", json!({"title": "d", "client_id": firm, "expected_close_date": "2026-05-04"}))
        .expect(201)
        .id();
    for (title, close) in [("e", "2026-05-04"), ("f", "2026-05-04"), ("g", "2026-05-06"), ("h", "2026-05-06")] {
        client.patch(&format!("/v1/deals/{deal}"), json!({"title": title, "expected_close_date": close})).expect(200);
        advance(&client, "2026-05-04T12:00:00Z");
    }
    advance(&client, "2026-06-04T12:00:00Z");
    assert_eq!(timed_events(&server, &client, seq), ["05-04T10:00 deal.close_due", "05-05T22:00 deal.close_due"]);
}

fn emits_expiring_regardless_of_the_frequency(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let make = |frequency: &str, more: serde_json::Value| {
        let mut body = json!({"title": frequency, "frequency": frequency, "subscription_start": "2026-05-04", "subscription_end": "2027-05-03",
                "lines": [{"title": "x", "unit_price": 1, "vat_code": "NL21"}]});
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        format!("/v1/subscriptions/{}", client.post("/v1/subscriptions", body).expect(201).id())
    };
    let paths = [make("yearly", json!({})), make("quarterly", json!({})), make("monthly", json!({}))];
    let draft = make("weekly", json!({"status": "draft"}));
    let by_hand = make("yearly", json!({}));
    let stands = |path: &str| {
        let data = client.get(path).data();
        (data["status"].as_str().unwrap().to_string(), data["next_generate"].clone())
    };
    let seq = server.last_seq(&client);
    let about = |seq: i64| {
        timed_events(&server, &client, seq).into_iter().filter(|one| one.contains("subscription")).collect::<Vec<_>>()
    };
    advance(&client, "2027-01-01T10:00:00Z");
    client.act(&format!("{by_hand}/deactivate")).expect(200);
    assert_eq!(about(seq), ["05-04T10:00 subscription.ended"; 2]);
    assert_eq!(stands(&paths[0]), ("ended".into(), json!(null)), "nothing more to invoice");
    let seq = server.last_seq(&client);
    advance(&client, "2027-04-10T10:00:00Z");
    assert_eq!(
        about(seq),
        [
            "02-03T23:00 subscription.ended",
            "04-02T22:00 subscription.expiring",
            "04-02T22:00 subscription.expiring",
            "04-02T22:00 subscription.expiring",
            "04-03T22:00 subscription.ended"
        ]
    );
    // A renewed subscription continues, and has another end.
    client.patch(&paths[0], json!({"subscription_end": "2028-05-03"})).expect(200);
    assert_eq!(stands(&paths[0]), ("active".into(), json!("2027-05-04")));
    client.patch(&by_hand, json!({"subscription_end": "2028-05-03"})).expect(200);
    assert_eq!(stands(&by_hand), ("ended".into(), json!(null)), "a deactivated subscription stays ended");
    let seq = server.last_seq(&client);
    advance(&client, "2027-07-01T10:00:00Z");
    assert_eq!(about(seq), ["05-03T22:00 subscription.ended"]);
    assert!(paths.iter().all(|path| stands(path) == ("ended".into(), json!(null))));
    let seq = server.last_seq(&client);
    client.act(&format!("{draft}/activate")).expect(200);
    advance(&client, "2028-07-01T10:00:00Z");
    assert_eq!(
        about(seq),
        ["07-01T10:00 subscription.ended", "04-02T22:00 subscription.expiring"],
        "one that becomes active after its end is made up for and over"
    );
}
