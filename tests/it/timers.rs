//! What happens when nothing happens, on a moving clock.

use serde_json::json;

use crate::on_both;
use crate::support::{Client, Server};

fn advance(client: &Client, to: &str) {
    client.post("/v1/test-clock/advance", json!({"to": to})).expect(200);
}

/// The timed events since `seq`, with their days.
fn told(server: &Server, client: &Client, seq: i64) -> Vec<String> {
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
    ];
    let lines = server.app.store.read_now(read).unwrap().into_iter().filter(|(name, _)| names.contains(&name.as_str()));
    lines.map(|(name, at)| format!("{} {name}", &kantoor::clock::Moment(at).to_string()[5..16])).collect()
}

on_both! {
    fn deals_say_that_nobody_moves_them(db) {
        let server = Server::start(db);
        let client = server.client();
        let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
        let deal = |close: &str| client.post("/v1/deals", json!({"title": "d", "client_id": firm, "expected_close_date": close})).expect(201).id();
        let (idle, won, followed) = (deal("2026-05-20"), deal(""), deal(""));
        client.act(&format!("/v1/deals/{won}/win")).expect(200);
        let task = client.post("/v1/tasks", json!({"title": "call", "deal_id": followed})).expect(201).id();
        let seq = server.last_seq(&client);
        advance(&client, "2026-05-10T10:00:00Z");
        assert_eq!(told(&server, &client, seq), ["05-05T10:00 deal.no_followup"]);
        client.act(&format!("/v1/tasks/{task}/complete")).expect(200);
        client.patch(&format!("/v1/deals/{idle}"), json!({"title": "moved"})).expect(200);
        let seq = server.last_seq(&client);
        advance(&client, "2026-07-01T10:00:00Z");
        assert_eq!(told(&server, &client, seq), ["05-11T10:00 deal.no_followup", "05-18T10:00 deal.phase_idle", "05-18T10:00 deal.phase_idle",
            "05-18T10:00 deal.stalled", "05-19T22:00 deal.close_due", "05-24T10:00 deal.stalled"]);
    }

    fn tickets_and_clients_say_that_nobody_answers(db) {
        let server = Server::start(db);
        let client = server.client();
        let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
        let ticket = client.post("/v1/tickets", json!({"subject": "cold", "client_id": firm, "client_email": "a@ster.example"})).expect(201).id();
        let seq = server.last_seq(&client);
        let path = format!("/v1/tickets/{ticket}/messages");
        client.post(&format!("{path}/inbound"), json!({"body": "hello?"})).expect(201);
        client.post(&path, json!({"body": "a note", "type": "note"})).expect(201);
        advance(&client, "2026-05-06T12:00:00Z");
        assert_eq!(told(&server, &client, seq), ["05-05T10:00 customer.no_followup", "05-06T10:00 mail.unanswered"]);
        client.post(&path, json!({"body": "we come"})).expect(201);
        client.post("/v1/tasks", json!({"title": "go", "client_id": firm})).expect(201);
        let seq = server.last_seq(&client);
        advance(&client, "2026-05-30T12:00:00Z");
        assert_eq!(told(&server, &client, seq), ["05-09T12:00 ticket.stale"]);
        client.patch(&format!("/v1/tickets/{ticket}"), json!({"status": "Closed"})).expect(200);
        let seq = server.last_seq(&client);
        advance(&client, "2027-05-30T12:00:00Z");
        assert_eq!(told(&server, &client, seq), ["11-02T12:00 customer.inactive"], "once, 180 days after the last message");
    }

    fn a_change_of_days_counts_for_what_waits_already(db) {
        let server = Server::start(db);
        let client = server.client();
        let days = |days: i64| client.patch("/v1/settings", json!({"ticket_stale_days": days, "customer_no_followup_days": 0})).expect(200);
        client.post("/v1/tickets", json!({"subject": "cold", "client_email": "a@ster.example"})).expect(201);
        let seq = server.last_seq(&client);
        days(10);
        advance(&client, "2026-05-10T10:00:00Z");
        days(0);
        advance(&client, "2026-05-20T10:00:00Z");
        assert!(told(&server, &client, seq).is_empty());
        days(20);
        advance(&client, "2026-05-24T09:00:00Z");
        assert!(told(&server, &client, seq).is_empty());
        advance(&client, "2026-06-24T10:00:00Z");
        assert_eq!(told(&server, &client, seq), ["05-24T10:00 ticket.stale"]);
    }

    fn quotes_and_drafts_say_that_they_wait(db) {
        let server = Server::start(db);
        let client = server.client();
        client.patch("/v1/settings", json!({"quote_silent_days": 3, "customer_inactive_days": 0, "customer_no_followup_days": 0})).expect(200);
        let firm = client.post("/v1/clients", json!({"company_name": "De Ster", "email": "a@ster.example"})).expect(201).id();
        let quote = || client.post("/v1/quotes", json!({"title": "q", "client_id": firm, "rows": [{"name": "x", "unit_price": 1}]})).expect(201).id();
        let (silent, answered) = (quote(), quote());
        let send = json!({"to": "a@ster.example", "subject": "s", "message": "m"});
        for id in [&silent, &answered] {
            client.post(&format!("/v1/quotes/{id}/send"), send.clone()).expect(200);
        }
        client.act(&format!("/v1/quotes/{answered}/accept")).expect(200);
        client.post("/v1/invoices", json!({"title": "draft"})).expect(201);
        let partly = client.post("/v1/invoices", json!({"title": "partly", "due_date": "2026-05-20", "generate": true, "total_incl_vat": 10})).expect(201).id();
        client.post(&format!("/v1/invoices/{partly}/payments"), json!({"amount": 4})).expect(201);
        let done = client.post("/v1/invoices", json!({"title": "done"})).expect(201).id();
        client.act(&format!("/v1/invoices/{done}/finalize")).expect(200);
        client.patch(&format!("/v1/invoices/{done}"), json!({"payment_status": "paid"})).expect(200);
        let seq = server.last_seq(&client);
        advance(&client, "2026-08-01T12:00:00Z");
        assert_eq!(told(&server, &client, seq), ["05-07T10:00 quote.silent", "05-11T10:00 document.draft", "05-20T22:00 invoice.late"]);
    }
}
