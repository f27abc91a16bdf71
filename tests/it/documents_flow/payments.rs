//! Payments and credits.

use super::*;

on_both![credits_are_the_exact_opposite, payments_move_an_invoice,];

fn credits_are_the_exact_opposite(server: Shared) {
    let client = server.client();
    let firm = company(&client);
    let made = client.post("/v1/invoices", body(&firm)).expect(201);
    let path = format!("/v1/invoices/{}", made.id());
    let credit = |body: Value| client.post(&format!("{path}/credit"), body);
    assert_eq!(credit(json!({"credit_all": false})).expect(422).faults(), ["row_indexes: required"]);
    assert_eq!(
        credit(json!({"credit_all": false, "row_indexes": [2]})).expect(422).faults(),
        ["row_indexes: out_of_range"]
    );
    assert_eq!(
        credit(json!({"credit_all": false, "row_indexes": [0, 0]})).expect(422).faults(),
        ["row_indexes: given_twice"]
    );
    assert_eq!(client.get(&path).data()["payment_status"], "draft", "a rejected request leaves a draft");
    let before = server.last_seq(&client);
    let first = credit(json!({"credit_all": false, "row_indexes": [1]})).expect(201);
    assert_eq!(first.json()["meta"]["finalized"], true);
    assert_eq!(first.header("location"), format!("/v1/invoices/{}", first.id()));
    let data = first.data();
    assert_eq!(
        (&data["is_credit"], &data["number"], &data["total_incl_vat"], &data["meta"]["credited_invoice_id"]),
        (&json!(true), &json!("F2026-0002"), &json!(-54.5), &json!(made.id()))
    );
    assert_eq!((&data["rows"][0]["quantity"], &data["rows"][0]["total_excl_vat"]), (&json!(-1), &json!(-50)));
    assert_eq!(server.events(&client, before), ["invoice.updated", "invoice.credit_created", "invoice.credited"]);
    assert_eq!(credit(json!({"credit_all": false, "row_indexes": [1]})).expect(409).code(), "already_credited");
    assert_eq!(client.get(&path).data()["payment_status"], "open");
    // Without a body: everything that is left.
    let rest = client.act(&format!("{path}/credit")).expect(201);
    assert_eq!(rest.data()["total_incl_vat"], -121);
    assert_eq!(client.get(&path).data()["payment_status"], "credited");
    assert_eq!(client.act(&format!("{path}/credit")).expect(409).code(), "already_credited");
    assert_eq!(client.act(&format!("/v1/invoices/{}/credit", rest.id())).expect(409).code(), "invalid_transition");
    assert_eq!(client.post("/v1/quotes", json!({"title": "q"})).map_credit(&client), 404);
}

fn payments_move_an_invoice(server: Shared) {
    let client = server.client();
    let firm = company(&client);
    let made = client.post("/v1/invoices", body(&firm)).expect(201);
    let path = format!("/v1/invoices/{}", made.id());
    let payments = format!("{path}/payments");
    let status = || {
        let data = client.get(&path).data();
        (data["payment_status"].as_str().unwrap().to_string(), data["paid_at"].is_string())
    };
    for (amount, fault) in
        [(json!(0), "amount: out_of_range"), (json!(1.234), "amount: too_precise"), (json!(-1), "amount: out_of_range")]
    {
        assert_eq!(client.post(&payments, json!({"amount": amount})).expect(422).faults(), [fault]);
    }
    for (field, value) in [("status", "lost"), ("method", "barter"), ("type", "odd")] {
        let reply = client.post(&payments, json!({field: value})).expect(422);
        assert_eq!(reply.faults(), [format!("{field}: invalid_choice")]);
        assert!(reply.text.contains("must be one of: "), "{reply:?}");
    }
    let before = server.last_seq(&client);
    let part =
        client.post(&payments, json!({"amount": 100, "external_id": "b-1", "payment_data": {"line": 3}})).expect(201);
    assert_eq!(part.json()["meta"]["finalized"], true);
    let data = part.data();
    assert_eq!(data["invoice"], json!({"id": made.id(), "paid_amount": 100, "price": 175.5}));
    assert_eq!(
        keys_of(&data["payment"]),
        ["id", "amount", "date", "status", "type", "method", "external_id", "provider", "meta"]
    );
    assert_eq!(
        (
            &data["payment"]["status"],
            &data["payment"]["method"],
            &data["payment"]["date"],
            &data["payment"]["meta"]["payment_data"]
        ),
        (&json!("paid"), &json!("banktransfer"), &json!("2026-05-04"), &json!({"line": 3}))
    );
    let first = format!("{payments}/{}", data["payment"]["id"].as_str().unwrap());
    assert_eq!(part.header("location"), first);
    assert_eq!(status(), ("partial".into(), false));
    assert_eq!(
        client.post(&payments, json!({"amount": 1, "external_id": "b-1"})).expect(409).code(),
        "duplicate_external_id"
    );
    let rest = client.post(&payments, json!({})).expect(201).data();
    assert_eq!((&rest["payment"]["amount"], &rest["invoice"]["paid_amount"]), (&json!(75.5), &json!(175.5)));
    assert_eq!(status(), ("paid".into(), true));
    let events = server.events(&client, before);
    assert_eq!(
        events.iter().filter(|name| *name == "invoice.paid" || *name == "customer.first_invoice_paid").count(),
        2,
        "{events:?}"
    );
    let over = client.post(&payments, json!({"amount": 10})).expect(201);
    assert_eq!(over.json()["meta"]["overpaid"], 10);
    let back = client.post(&payments, json!({"amount": -60})).expect(201);
    assert_eq!(back.data()["invoice"]["paid_amount"], 125.5);
    assert_eq!(status(), ("partial".into(), false));
    assert_eq!(client.post(&payments, json!({"amount": -126})).expect(422).faults(), ["amount: out_of_range"]);
    assert_eq!(client.patch(&first, json!({"amount": 150})).expect(200).data()["invoice"]["paid_amount"], 175.5);
    assert_eq!(status(), ("paid".into(), true));
    client.delete(&first).expect(204);
    assert_eq!(status(), ("partial".into(), false));
    assert_eq!(client.get(&format!("{payments}?external_id=b-1")).json()["meta"], json!({"total": 0}));
    assert_eq!(client.get(&format!("{payments}?type=manual&status=paid")).json()["meta"], json!({"total": 3}));
    online_payments_follow_their_transitions(&client, &payments);
    let online = client.post(&payments, json!({"type": "online", "amount": 5})).expect(201).data();
    assert_eq!(online["payment"]["status"], "open");
    let own = format!("{payments}/{}", online["payment"]["id"].as_str().unwrap());
    assert_eq!(client.patch(&own, json!({"status": "cancelled"})).expect(200).data()["payment"]["status"], "canceled");
}

/// Tries every transition of an online payment.
fn online_payments_follow_their_transitions(client: &Client, payments: &str) {
    let states =
        ["open", "pending", "paid", "failed", "canceled", "expired", "authorized", "created", "chargeback", "refunded"];
    let allowed = |from: &str| -> &[&str] {
        match from {
            "created" => &["open"],
            "open" => &["pending", "authorized", "paid", "failed", "canceled", "expired"],
            "pending" | "authorized" => &["paid", "failed", "canceled", "expired"],
            "paid" => &["refunded", "chargeback"],
            "chargeback" => &["paid"],
            _ => &[],
        }
    };
    for from in states {
        for to in states {
            let made = client.post(payments, json!({"type": "online", "amount": 1, "status": from})).expect(201).data();
            let own = format!("{payments}/{}", made["payment"]["id"].as_str().unwrap());
            let reply = client.patch(&own, json!({"status": to}));
            let good = from == to || allowed(from).contains(&to);
            assert_eq!(reply.status, if good { 200 } else { 409 }, "{from} to {to}");
            assert!(good || reply.code() == "invalid_transition");
            client.delete(&own).expect(204);
        }
    }
}
