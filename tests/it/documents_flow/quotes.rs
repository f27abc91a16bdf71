//! Quotes that are converted, and documents past their due date.

use super::*;

on_both![a_quote_becomes_an_invoice, a_quote_becomes_a_project, invoices_become_overdue_and_quotes_expire,];

fn a_quote_becomes_an_invoice(server: Shared) {
    let client = server.client();
    let firm = company(&client);
    let deal = client.post("/v1/deals", json!({"title": "d", "client_id": firm})).expect(201).id();
    let mut body = body(&firm);
    body["deal_id"] = json!(deal);
    let made = client.post("/v1/quotes", body.clone()).expect(201);
    assert_eq!(made.data()["due_date"], "2026-06-03");
    let path = format!("/v1/quotes/{}", made.id());
    let before = server.last_seq(&client);
    for _ in 0..2 {
        let accepted = client.act(&format!("{path}/accept")).expect(200);
        assert_eq!(
            (&accepted.data()["payment_status"], &accepted.data()["meta"]["accepted_at"]),
            (&json!("accepted"), &json!("2026-05-04T10:00:00.000Z"))
        );
    }
    assert_eq!(
        server.events(&client, before),
        ["quote.updated", "quote.phase_changed", "quote.accepted", "deal.quote_accepted"]
    );
    let invoice = client.act(&format!("{path}/invoice")).expect(201);
    assert_eq!(
        (&invoice.data()["total_incl_vat"], &invoice.data()["payment_status"], &invoice.data()["meta"]["quote_id"]),
        (&json!(175.5), &json!("draft"), &json!(made.id()))
    );
    assert_eq!(invoice.header("location"), format!("/v1/invoices/{}", invoice.id()));
    assert_eq!(client.act(&format!("{path}/invoice")).expect(409).code(), "invalid_transition");
    assert_eq!(client.get(&path).data()["payment_status"], "invoiced");
    let own = format!("/v1/invoices/{}", invoice.id());
    client.post(&format!("{own}/payments"), json!({"amount": 100})).expect(201);
    assert_eq!(client.get(&own).data()["payment_status"], "partial");
    client.post(&format!("{own}/payments"), json!({})).expect(201);
    assert_eq!(client.get(&own).data()["payment_status"], "paid");

    let other = format!("/v1/quotes/{}", client.post("/v1/quotes", body.clone()).expect(201).id());
    for _ in 0..2 {
        assert_eq!(client.act(&format!("{other}/reject")).expect(200).data()["payment_status"], "rejected");
    }
    assert_eq!(client.act(&format!("{other}/accept")).expect(409).code(), "invalid_transition");
    assert_eq!(client.act(&format!("{other}/invoice")).expect(409).code(), "invalid_transition");
    body["invoice_date"] = json!("2026-04-01");
    body["due_date"] = json!("2026-05-03");
    let late = format!("/v1/quotes/{}", client.post("/v1/quotes", body).expect(201).id());
    assert_eq!(client.act(&format!("{late}/accept")).expect(409).code(), "invalid_transition");

    let order = format!(
        "/v1/workorders/{}",
        client.post("/v1/workorders", json!({"title": "w", "client_id": firm})).expect(201).id()
    );
    let before = server.last_seq(&client);
    for _ in 0..2 {
        assert_eq!(client.act(&format!("{order}/complete")).expect(200).data()["payment_status"], "completed");
    }
    assert_eq!(server.events(&client, before), ["workorder.updated", "workorder.completed"]);
    client.act(&format!("{order}/invoice")).expect(201);
    assert_eq!(client.act(&format!("{order}/complete")).expect(409).code(), "invalid_transition");
}

fn a_quote_becomes_a_project(server: Shared) {
    let client = server.client();
    let firm = company(&client);
    let path = format!("/v1/quotes/{}", client.post("/v1/quotes", body(&firm)).expect(201).id());
    let before = server.last_seq(&client);
    let made = client.act(&format!("{path}/project")).expect(201);
    let (quote, project) = (client.get(&path).data(), made.data());
    assert_eq!(made.json()["meta"]["finalized"], true);
    assert_eq!(made.header("location"), format!("/v1/projects/{}", made.id()));
    assert_eq!(
        (&project["name"], &project["client_id"], &project["status"], &project["budget"]),
        (&quote["title"], &json!(firm), &json!("planned"), &quote["total_excl_vat"])
    );
    assert_eq!(
        (&quote["meta"]["project_id"], &quote["project_number"], &quote["payment_status"]),
        (&json!(made.id()), &project["number"], &json!("open"))
    );
    assert_eq!(
        server.events(&client, before),
        ["quote.updated", "quote.phase_changed", "project.created", "quote.updated", "quote.converted_to_project"]
    );
    assert_eq!(client.act(&format!("{path}/project")).expect(409).code(), "invalid_transition");
    // It can still be accepted and invoiced, and the invoice belongs to the same project.
    client.act(&format!("{path}/accept")).expect(200);
    assert_eq!(client.act(&format!("{path}/invoice")).expect(201).data()["project_number"], project["number"]);
    let other = format!("/v1/quotes/{}", client.post("/v1/quotes", body(&firm)).expect(201).id());
    client.act(&format!("{other}/reject")).expect(200);
    assert_eq!(client.act(&format!("{other}/project")).expect(409).code(), "invalid_transition");
    assert_eq!(
        server.with_scopes(&client, &["invoices.write"]).act(&format!("{other}/project")).expect(403).code(),
        "forbidden"
    );
}

fn invoices_become_overdue_and_quotes_expire(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let firm = company(&client);
    let make = |kind: &str, due: &str| {
        let mut body = body(&firm);
        body["invoice_date"] = json!("2026-04-01");
        body["due_date"] = json!(due);
        body["generate"] = json!(true);
        format!("/v1/{kind}/{}", client.post(&format!("/v1/{kind}"), body).expect(201).id())
    };
    let (late, other, today, quote) = (
        make("invoices", "2026-05-03"),
        make("invoices", "2026-05-01"),
        make("invoices", "2026-05-04"),
        make("quotes", "2026-05-04"),
    );
    client.patch(&quote, json!({"due_date": "2026-05-03"})).expect(200);
    let before = server.last_seq(&client);
    for _ in 0..2 {
        let account = client.account;
        let account = server.app.store.read_now(move |tx| engine::accounts::Account::numbered(tx, account)).unwrap();
        server.pass_days(account);
    }
    let status = |path: &str| client.get(path).data()["payment_status"].as_str().unwrap().to_string();
    assert_eq!(
        (status(&late), status(&other), status(&today), status(&quote)),
        ("overdue".into(), "overdue".into(), "open".into(), "expired".into())
    );
    assert_eq!(
        server.events(&client, before),
        [
            "invoice.updated",
            "invoice.late",
            "customer.payment_overdue",
            "invoice.updated",
            "invoice.late",
            "quote.updated",
            "quote.phase_changed"
        ]
    );
    client.post(&format!("{late}/payments"), json!({"amount": 1})).expect(201);
    assert_eq!(status(&late), "partial");
    client.post(&format!("{late}/payments"), json!({"amount": -1})).expect(201);
    assert_eq!(status(&late), "overdue");
    assert_eq!(client.act(&format!("{quote}/accept")).expect(409).code(), "invalid_transition");
}
