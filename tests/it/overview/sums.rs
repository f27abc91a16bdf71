//! Sums of lists, and the last message of tickets.

use serde_json::json;

use crate::on_both;
use crate::support::Shared;

on_both![lists_add_up_all_their_pages, too_many_records_are_not_added_up, a_ticket_shows_who_spoke_last,];

fn lists_add_up_all_their_pages(server: Shared) {
    server.leaves_jobs();
    let client = server.client();
    for price in [100, 200, 300] {
        let rows = json!([{"name": "Oven", "quantity": 1, "unit_price": price, "vat_rate": "21"}]);
        let mode = if price == 300 { "draft" } else { "final" };
        client.post("/v1/invoices", json!({"title": "Oven", "rows": rows, "generation_mode": mode})).expect(201);
    }
    let sums = |query: &str| client.get(&format!("/v1/invoices?{query}")).expect(200).json()["meta"]["sums"].clone();
    let all = json!({"total_excl_vat": 600, "total_incl_vat": 726, "open_amount": 363});
    assert_eq!(sums("sums=open_amount,total_incl_vat,total_excl_vat&per_page=1"), all);
    assert_eq!(sums("sums=total_incl_vat&payment_status=open"), json!({"total_incl_vat": 363}));
    assert_eq!(sums("sums=total_incl_vat&search=oven"), json!({"total_incl_vat": 726}));
    assert_eq!(sums("sums=total_incl_vat&payment_status=paid"), json!({"total_incl_vat": 0}));
    assert_eq!(sums(""), json!(null));
    for bad in ["title", "total_incl_vat,", "vat_rate", ""] {
        assert_eq!(
            client.get(&format!("/v1/invoices?sums={bad}")).expect(422).faults(),
            ["sums: invalid_choice"],
            "{bad}"
        );
    }
    assert_eq!(client.get("/v1/tickets?sums=x").json()["meta"]["ignored_params"], json!(["sums"]));
    let others = server.client();
    assert_eq!(others.get("/v1/deals?sums=amount").json()["meta"]["sums"], json!({"amount": 0}));
}

fn too_many_records_are_not_added_up(server: Shared) {
    let client = server.client();
    let owner = client.post("/v1/clients", json!({"company_name": "Ster"})).expect(201).id();
    let deal = client.post("/v1/deals", json!({"title": "Oven", "client_id": owner, "amount": 1})).expect(201).id();
    // In parts, since a statement may only take some seconds.
    let fill = |first: i64, last: i64| {
        format!(
            "INSERT INTO deals (account_id, id, created_at, updated_at, version, title, amount, status, priority, pipeline_id,
                                phase_id, client_id, expected_close_date, assignee_id)
             WITH RECURSIVE numbers (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers WHERE n < {last})
             SELECT account_id, 'x' || CAST(n AS TEXT), created_at, updated_at, version, title, amount, status, priority,
                    pipeline_id, phase_id, client_id, expected_close_date, assignee_id
             FROM deals CROSS JOIN numbers WHERE id = '{deal}'"
        )
    };
    for part in 0..20 {
        server.execute(&fill(part * 5000 + 1, part * 5000 + 5000));
    }
    let meta = client.get("/v1/deals?sums=amount").expect(200).json()["meta"].clone();
    assert_eq!((&meta["sums"], &meta["sums_limit"]), (&json!(null), &json!(100_000)));
    server.execute("DELETE FROM deals WHERE id = 'x7'");
    assert_eq!(client.get("/v1/deals?sums=amount").json()["meta"]["sums"], json!({"amount": 100_000}));
}

fn a_ticket_shows_who_spoke_last(server: Shared) {
    server.leaves_jobs();
    let client = server.client();
    let ticket = |subject: &str| {
        client.post("/v1/tickets", json!({"subject": subject, "client_email": "a@ster.example"})).expect(201).id()
    };
    let (first, second) = (ticket("First"), ticket("Second"));
    let last = |id: &str| {
        let meta = client.get(&format!("/v1/tickets/{id}")).expect(200).data()["meta"].clone();
        (meta["last_message_from"].as_str().unwrap().to_string(), meta["last_message_at"].as_str().unwrap().to_string())
    };
    assert_eq!(last(&first), ("nobody".into(), "2026-05-04T10:00:00.000Z".into()));
    client.post("/v1/test-clock/advance", json!({"to": "2026-05-05T10:00:00Z"})).expect(200);
    let version = client.get(&format!("/v1/tickets/{first}")).header("etag").to_string();
    let before = server.last_seq(&client);
    client.post(&format!("/v1/tickets/{first}/messages/inbound"), json!({"body": "Cold."})).expect(201);
    assert_eq!(last(&first), ("client".into(), "2026-05-05T10:00:00.000Z".into()));
    // Whoever edits the ticket is not disturbed, and the message is the only event about the ticket.
    assert_eq!(client.get(&format!("/v1/tickets/{first}")).header("etag"), version);
    assert_eq!(server.events(&client, before), ["message.created", "ticket.message", "ticket.inbound_message"]);
    client
        .post(&format!("/v1/tickets/{first}/messages"), json!({"body": "Call the shop.", "type": "note"}))
        .expect(201);
    assert_eq!(last(&first).0, "client");
    client.post("/v1/test-clock/advance", json!({"to": "2026-05-06T10:00:00Z"})).expect(200);
    client.post(&format!("/v1/tickets/{second}/messages"), json!({"body": "How is it?"})).expect(201);
    assert_eq!(last(&second), ("staff".into(), "2026-05-06T10:00:00.000Z".into()));
    let sorted = client.get("/v1/tickets?sort=last_message_at&order=desc").expect(200).data();
    let ids: Vec<&str> = sorted.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [second.as_str(), first.as_str()]);
    assert_eq!(sorted[0]["meta"]["last_message_from"], "staff");
}
