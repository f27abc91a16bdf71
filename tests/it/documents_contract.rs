//! Details of the contract for invoices, quotes and payments: fields that cannot be cleared, default terms, payment
//! statuses and their events.

use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Db, Office, Server, Shared};

const KINDS: [&str; 3] = ["invoices", "quotes", "workorders"];

fn rows(price: i64) -> Value {
    json!([{"name": "Hours", "unit_price": price, "vat_rate": 21}])
}

fn make(client: &Client, kind: &str, body: Value) -> String {
    format!("/v1/{kind}/{}", client.post(&format!("/v1/{kind}"), body).expect(201).id())
}

fn company(client: &Client, more: Value) -> String {
    let mut body = json!({"company_name": "De Ster"});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    client.post("/v1/clients", body).expect(201).id()
}

/// Returns how often each of these names occurs among the events since `seq`.
fn count(server: &Office, client: &Client, seq: i64, names: &[&str]) -> Vec<usize> {
    let events = server.events(client, seq);
    names.iter().map(|name| events.iter().filter(|event| event == name).count()).collect()
}

on_both![
    dates_title_and_status_cannot_be_cleared,
    restores_the_dates_of_a_document_that_lost_them,
    terms_default_to_those_of_the_account,
    the_invoices_of_a_subscription_have_the_terms_of_the_client,
    an_invoice_can_be_created_as_paid,
    an_invoice_of_zero_is_paid_and_never_late,
    no_status_makes_an_invoice_of_zero_late,
    an_invoice_is_not_late_before_the_due_date,
    an_invoice_with_a_negative_amount_is_never_overdue,
    first_invoice_paid_requires_a_payment,
    a_payment_cannot_lose_its_values,
    row_indexes_require_credit_all_false,
    accepting_a_draft_quote_is_one_change,
    totals_without_rows_imply_their_rate,
];

fn dates_title_and_status_cannot_be_cleared(server: Shared) {
    let client = server.client();
    for kind in KINDS {
        for generate in [false, true] {
            let path = make(&client, kind, json!({"title": "t", "rows": rows(10), "generate": generate}));
            let before = client.get(&path);
            for field in ["title", "invoice_date", "due_date", "payment_status"] {
                for nothing in [json!(null), json!(""), json!("  ")] {
                    let faults = client.patch(&path, json!({field: nothing})).expect(422).faults();
                    assert_eq!(faults, [format!("{field}: required")], "{kind} {nothing}");
                }
            }
            assert_eq!(client.get(&path).header("etag"), before.header("etag"));
            // Whichever date is changed is compared with the other.
            assert_eq!(
                client.patch(&path, json!({"due_date": "2026-05-03"})).expect(422).faults(),
                ["due_date: out_of_range"]
            );
            assert_eq!(
                client.patch(&path, json!({"invoice_date": "2027-01-01"})).expect(422).faults(),
                ["invoice_date: out_of_range"]
            );
            let both =
                client.patch(&path, json!({"invoice_date": "2027-01-01", "due_date": "2027-01-01"})).expect(200).data();
            assert_eq!((&both["invoice_date"], &both["due_date"]), (&json!("2027-01-01"), &json!("2027-01-01")));
        }
        // In a create, an empty value is the same as a missing one.
        for nothing in [json!(null), json!("")] {
            let body = json!({"title": "t", "invoice_date": nothing, "due_date": nothing, "payment_status": nothing});
            let made = client.post(&format!("/v1/{kind}"), body).expect(201).data();
            let due = if kind == "quotes" { "2026-06-03" } else { "2026-05-18" };
            assert_eq!(
                (&made["invoice_date"], &made["due_date"], &made["payment_status"]),
                (&json!("2026-05-04"), &json!(due), &json!("draft"))
            );
        }
    }
}

fn restores_the_dates_of_a_document_that_lost_them(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let draft = make(&client, "invoices", json!({"title": "t", "rows": rows(10)}));
    let stuck = make(&client, "invoices", json!({"title": "t", "rows": rows(10), "generate": true}));
    // As earlier versions allowed.
    let clear = |tx: &mut store::Tx| tx.execute("UPDATE invoices SET due_date = ''", &[]).map(drop);
    server.app.store.write_now(client.account, clear).unwrap();
    assert_eq!(client.act(&format!("{draft}/finalize")).expect(200).data()["due_date"], "2026-05-18");
    client.post(&format!("{stuck}/payments"), json!({})).expect(201);
    assert_eq!(client.get(&stuck).data()["due_date"], "2026-05-18");
}

fn terms_default_to_those_of_the_account(server: Shared) {
    let client = server.client();
    let due = |kind: &str, firm: &str| {
        client.get(&make(&client, kind, json!({"title": "t", "client_id": firm}))).data()["due_date"].clone()
    };
    let terms = |path: &str| {
        let data = client.get(path).expect(200).data();
        (data["payment_term"].clone(), data["quote_expiration_days"].clone())
    };
    let usual = company(&client, json!({}));
    let at_once = company(&client, json!({"payment_term": 0, "quote_expiration_days": 0}));
    assert_eq!(terms(&format!("/v1/clients/{usual}")), (json!(14), json!(30)));
    assert_eq!(terms(&format!("/v1/clients/{at_once}")), (json!(0), json!(0)));
    assert_eq!(
        (due("invoices", &usual), due("quotes", &usual), due("workorders", &usual)),
        (json!("2026-05-18"), json!("2026-06-03"), json!("2026-05-18"))
    );
    for kind in KINDS {
        assert_eq!(due(kind, &at_once), "2026-05-04", "0 days is today");
    }
    let supplier = client.post("/v1/suppliers", json!({"company_name": "Molen"})).expect(201).id();
    assert_eq!(terms(&format!("/v1/suppliers/{supplier}")), (json!(14), json!(30)));

    let settings =
        client.patch("/v1/settings", json!({"payment_term": 21, "quote_expiration_days": 0})).expect(200).data();
    assert_eq!((&settings["payment_term"], &settings["quote_expiration_days"]), (&json!(21), &json!(0)));
    let new = company(&client, json!({"payment_term": null}));
    assert_eq!(terms(&format!("/v1/clients/{new}")), (json!(21), json!(0)));
    assert_eq!((due("invoices", &new), due("quotes", &new)), (json!("2026-05-25"), json!("2026-05-04")));
    assert_eq!(
        (due("invoices", ""), due("quotes", "")),
        (json!("2026-05-25"), json!("2026-05-04")),
        "without a client"
    );
    assert_eq!(terms(&format!("/v1/clients/{usual}")), (json!(14), json!(30)), "a client keeps its terms");
    client.patch(&format!("/v1/clients/{usual}"), json!({"payment_term": null})).expect(200);
    assert_eq!(terms(&format!("/v1/clients/{usual}")), (json!(21), json!(30)), "null resets to the current setting");
    assert_eq!(
        client.patch(&format!("/v1/clients/{usual}"), json!({"payment_term": ""})).expect(422).faults(),
        ["payment_term: wrong_type"]
    );
    let reset =
        client.patch("/v1/settings", json!({"payment_term": null, "quote_expiration_days": null})).expect(200).data();
    assert_eq!((&reset["payment_term"], &reset["quote_expiration_days"]), (&json!(14), &json!(30)));
}

fn the_invoices_of_a_subscription_have_the_terms_of_the_client(server: Shared) {
    let client = server.client();
    let firm = company(&client, json!({"payment_term": 0}));
    let body = json!({"client_id": firm, "title": "s", "subscription_start": "2026-05-05", "lines": [{"title": "l", "unit_price": 10}]});
    let made = client.post("/v1/subscriptions", body).expect(201).id();
    client.post("/v1/test-clock/advance", json!({"to": "2026-05-05T12:00:00Z"})).expect(200);
    let invoices = client.get(&format!("/v1/subscriptions/{made}/invoices")).expect(200).data();
    assert_eq!((&invoices[0]["invoice_date"], &invoices[0]["due_date"]), (&json!("2026-05-05"), &json!("2026-05-05")));
}

fn an_invoice_can_be_created_as_paid(server: Shared) {
    let client = server.client();
    let firm = company(&client, json!({}));
    let names = ["invoice.paid", "customer.first_invoice_paid"];
    let body = |generate: bool| json!({"title": "t", "client_id": firm, "rows": rows(10), "payment_status": "paid", "generate": generate});

    let seq = server.last_seq(&client);
    let draft = make(&client, "invoices", body(false));
    client
        .patch(
            &make(&client, "invoices", json!({"title": "t", "client_id": firm, "rows": rows(10)})),
            json!({"payment_status": "paid"}),
        )
        .expect(200);
    assert_eq!(count(&server, &client, seq, &names), [0, 0], "a draft emits nothing yet");
    assert!(client.get(&draft).data()["paid_at"].is_string());
    let done = client.act(&format!("{draft}/finalize")).expect(200).data();
    assert_eq!((&done["payment_status"], &done["paid_at"]), (&json!("paid"), &json!("2026-05-04T10:00:00.000Z")));
    assert_eq!(count(&server, &client, seq, &names), [1, 1]);

    let seq = server.last_seq(&client);
    let made = client.get(&make(&client, "invoices", body(true))).data();
    assert_eq!((&made["payment_status"], &made["paid_at"]), (&json!("paid"), &json!("2026-05-04T10:00:00.000Z")));
    assert_eq!(count(&server, &client, seq, &names), [1, 0], "the first one was paid before");
    let other = company(&client, json!({}));
    let mut theirs = body(true);
    theirs["client_id"] = json!(other);
    let seq = server.last_seq(&client);
    make(&client, "invoices", theirs);
    assert_eq!(count(&server, &client, seq, &names), [1, 1]);

    // The same applies to quotes and workorders.
    let deal = client.post("/v1/deals", json!({"title": "d", "client_id": firm})).expect(201).id();
    let seq = server.last_seq(&client);
    let quote = make(&client, "quotes", json!({"title": "q", "deal_id": deal, "payment_status": "accepted"}));
    let order = make(&client, "workorders", json!({"title": "w", "payment_status": "completed"}));
    let names = ["quote.accepted", "deal.quote_accepted", "workorder.completed"];
    assert_eq!(count(&server, &client, seq, &names), [0, 0, 0]);
    client.act(&format!("{quote}/finalize")).expect(200);
    client.act(&format!("{order}/finalize")).expect(200);
    assert!(client.get(&quote).data()["meta"]["accepted_at"].is_string());
    assert_eq!(count(&server, &client, seq, &names), [1, 1, 1]);
}

fn an_invoice_of_zero_is_paid_and_never_late(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let firm = company(&client, json!({"payment_term": 0}));
    let body = json!({"title": "t", "client_id": firm, "invoice_date": "2026-04-01", "rows": [{"name": "Free", "unit_price": 0}]});
    let seq = server.last_seq(&client);
    let names = ["invoice.paid", "customer.first_invoice_paid", "invoice.late", "customer.payment_overdue"];
    let free = make(&client, "invoices", body.clone());
    let empty = make(&client, "invoices", json!({"title": "t", "client_id": firm, "invoice_date": "2026-04-01"}));
    assert_eq!(count(&server, &client, seq, &names), [0, 0, 0, 0]);
    for path in [&free, &empty] {
        let done = client.act(&format!("{path}/finalize")).expect(200).data();
        assert_eq!((&done["payment_status"], &done["paid_at"]), (&json!("paid"), &json!("2026-05-04T10:00:00.000Z")));
        assert_eq!(client.post(&format!("{path}/payments"), json!({})).expect(409).code(), "invalid_transition");
    }
    assert_eq!(count(&server, &client, seq, &names), [2, 0, 0, 0], "nothing was paid by the client");
    // One that was open in an earlier version is not late either.
    let open =
        |tx: &mut store::Tx| tx.execute("UPDATE invoices SET payment_status = 'open', paid_at = 0", &[]).map(drop);
    server.app.store.write_now(client.account, open).unwrap();
    let account = client.account;
    let account = server.app.store.read_now(move |tx| engine::accounts::Account::numbered(tx, account)).unwrap();
    server.pass_days(account);
    assert_eq!(client.get(&free).data()["payment_status"], "paid");
    assert_eq!(count(&server, &client, seq, &names)[2..], [0, 0]);
    // A payment on it can be refunded, and it is still paid.
    client.post(&format!("{free}/payments"), json!({"amount": 5})).expect(201);
    client.post(&format!("{free}/payments"), json!({"amount": -5})).expect(201);
    assert_eq!(client.get(&free).data()["payment_status"], "paid");
    let credit = client.act(&format!("{free}/credit")).expect(201).data();
    assert_eq!((&credit["payment_status"], &credit["total_incl_vat"]), (&json!("credited"), &json!(0)));
    assert_eq!(client.get(&free).data()["payment_status"], "credited");
    // The same when a credit leaves nothing.
    let two = make(
        &client,
        "invoices",
        json!({"title": "t", "generate": true, "rows": [{"name": "a", "unit_price": 10}, {"name": "b"}]}),
    );
    client.post(&format!("{two}/credit"), json!({"credit_all": false, "row_indexes": [0]})).expect(201);
    assert_eq!(client.get(&two).data()["payment_status"], "credited");
}

fn no_status_makes_an_invoice_of_zero_late(server: Shared) {
    let client = server.client();
    let firm = company(&client, json!({}));
    let seq = server.last_seq(&client);
    for status in ["open", "partial", "overdue"] {
        let body = json!({"title": "t", "client_id": firm, "payment_status": status, "rows": [{"name": "Free", "unit_price": 0}]});
        let draft = make(&client, "invoices", body.clone());
        assert_eq!(client.act(&format!("{draft}/finalize")).expect(200).data()["payment_status"], "paid");
        let mut whole = body;
        whole["generate"] = json!(true);
        let path = make(&client, "invoices", whole);
        let changed = client.patch(&path, json!({"payment_status": status})).expect(200).data();
        assert_eq!((&changed["payment_status"], changed["paid_at"].is_string()), (&json!("paid"), true));
    }
    // A refund does not count as a payment.
    let back = make(&client, "invoices", json!({"title": "t", "client_id": firm, "generate": true, "rows": rows(-5)}));
    client.post(&format!("{back}/payments"), json!({})).expect(201);
    let names = ["invoice.paid", "customer.first_invoice_paid", "invoice.late", "customer.payment_overdue"];
    assert_eq!(count(&server, &client, seq, &names), [7, 0, 0, 0]);
    let own = make(&client, "invoices", json!({"title": "t", "client_id": firm, "generate": true, "rows": rows(5)}));
    client.post(&format!("{own}/payments"), json!({})).expect(201);
    assert_eq!(count(&server, &client, seq, &names), [8, 1, 0, 0]);
}

fn an_invoice_is_not_late_before_the_due_date(server: Shared) {
    let client = server.client();
    let firm = company(&client, json!({}));
    let names = ["invoice.late", "customer.payment_overdue"];
    let seq = server.last_seq(&client);
    let body = |status: &str, generate: bool| json!({"title": "t", "client_id": firm, "rows": rows(10), "generate": generate, "payment_status": status});
    let made = make(&client, "invoices", body("overdue", true));
    let changed = make(&client, "invoices", body("open", true));
    client.patch(&changed, json!({"payment_status": "overdue"})).expect(200);
    let draft = make(&client, "invoices", body("overdue", false));
    client.act(&format!("{draft}/finalize")).expect(200);
    let (moved, paid) =
        (make(&client, "invoices", body("overdue", true)), make(&client, "invoices", body("overdue", true)));
    for path in [&made, &changed, &draft] {
        assert_eq!(client.get(path).data()["payment_status"], "overdue", "the custom status is kept");
    }
    assert_eq!(count(&server, &client, seq, &names), [0, 0]);
    client.patch(&moved, json!({"due_date": "2026-05-20"})).expect(200);
    client.post(&format!("{paid}/payments"), json!({})).expect(201);
    let at = |moment: &str| {
        client.post("/v1/test-clock/advance", json!({"to": moment})).expect(200);
        count(&server, &client, seq, &names)
    };
    assert_eq!(at("2026-05-18T12:00:00Z"), [0, 0], "the due date itself is in time");
    assert_eq!(at("2026-05-19T12:00:00Z"), [3, 1]);
    assert_eq!(at("2026-05-21T12:00:00Z"), [4, 1], "later for the extended one");
    assert_eq!(at("2026-06-21T12:00:00Z"), [4, 1]);
    // After the due date, the caller's status applies.
    let other = company(&client, json!({}));
    let late = json!({"title": "t", "client_id": other, "rows": rows(10), "generate": true, "payment_status": "overdue",
            "invoice_date": "2026-06-01", "due_date": "2026-06-02"});
    make(&client, "invoices", late);
    assert_eq!(count(&server, &client, seq, &names), [5, 2]);
}

fn an_invoice_with_a_negative_amount_is_never_overdue(server: Shared) {
    let client = server.client();
    let firm = company(&client, json!({}));
    let seq = server.last_seq(&client);
    let invoice = |rows: Value| {
        make(&client, "invoices", json!({"title": "t", "client_id": firm, "rows": rows, "generate": true}))
    };
    let below = invoice(rows(-5));
    // A credit of a paid amount is to be refunded.
    let paid = invoice(rows(10));
    client.post(&format!("{paid}/payments"), json!({})).expect(201);
    let credit = format!("/v1/invoices/{}", client.act(&format!("{paid}/credit")).expect(201).id());
    // A credit can also leave a negative amount.
    let left = invoice(json!([{"name": "a", "unit_price": 100}, {"name": "b", "unit_price": -40}]));
    client.post(&format!("{left}/credit"), json!({"credit_all": false, "row_indexes": [0]})).expect(201);
    let owed = invoice(rows(7));
    client.post("/v1/test-clock/advance", json!({"to": "2026-07-01T12:00:00Z"})).expect(200);
    let status = |path: &str| client.get(path).data()["payment_status"].as_str().unwrap().to_string();
    assert_eq!([status(&below), status(&credit), status(&left), status(&owed)], ["open", "open", "open", "overdue"]);
    for path in [&below, &credit, &left] {
        assert_eq!(
            client.patch(path, json!({"payment_status": "overdue"})).expect(200).data()["payment_status"],
            "open"
        );
    }
    let late = make(
        &client,
        "invoices",
        json!({"title": "t", "rows": rows(-5), "generate": true, "payment_status": "overdue"}),
    );
    assert_eq!(status(&late), "open");
    // A payment that is reversed leaves it unchanged.
    client.post(&format!("{below}/payments"), json!({"amount": -2})).expect(201);
    assert_eq!(status(&below), "partial");
    client.post(&format!("{below}/payments"), json!({"amount": 2})).expect(201);
    assert_eq!(status(&below), "open");
    assert_eq!(count(&server, &client, seq, &["invoice.late", "customer.payment_overdue"]), [1, 1]);
}

fn first_invoice_paid_requires_a_payment(server: Shared) {
    let client = server.client();
    let firm = company(&client, json!({}));
    let seq = server.last_seq(&client);
    let names = ["invoice.paid", "customer.first_invoice_paid"];
    let body = json!({"title": "t", "client_id": firm, "rows": rows(100), "payment_status": "paid"});
    let draft = make(&client, "invoices", body.clone());
    client.post(&format!("{draft}/payments"), json!({"amount": 1})).expect(201);
    let data = client.get(&draft).data();
    assert_eq!((&data["payment_status"], &data["paid_at"]), (&json!("partial"), &json!(null)));
    assert_eq!(count(&server, &client, seq, &names), [0, 0]);
    client.post(&format!("{draft}/payments"), json!({})).expect(201);
    assert_eq!(count(&server, &client, seq, &names), [1, 1]);
    // A payment that does not count yet leaves the caller's status unchanged.
    let other = make(&client, "invoices", body);
    client.post(&format!("{other}/payments"), json!({"type": "online"})).expect(201);
    assert_eq!(client.get(&other).data()["payment_status"], "paid");
    assert_eq!(count(&server, &client, seq, &names), [2, 1]);
}

fn a_payment_cannot_lose_its_values(server: Shared) {
    let client = server.client();
    let path = make(&client, "invoices", json!({"title": "t", "rows": rows(100), "generate": true}));
    let payments = format!("{path}/payments");
    let failed = client
        .post(&payments, json!({"amount": 20, "status": "failed", "method": "ideal", "date": "2026-05-01"}))
        .expect(201);
    let own = failed.header("location").to_string();
    for (field, code) in
        [("status", "invalid_choice"), ("method", "invalid_choice"), ("amount", "wrong_type"), ("date", "required")]
    {
        assert_eq!(client.patch(&own, json!({field: null})).expect(422).faults(), [format!("{field}: required")]);
        assert_eq!(client.patch(&own, json!({field: ""})).expect(422).faults(), [format!("{field}: {code}")]);
    }
    assert_eq!(client.patch(&own, json!({"type": null})).expect(422).faults(), ["type: read_only"]);
    assert_eq!(
        (client.get(&own).data(), client.get(&path).data()["payment_status"].clone()),
        (failed.data()["payment"].clone(), json!("open"))
    );
    // In a create, null is the same as a missing field.
    let nothing = json!({"type": "online", "status": null, "method": null, "amount": null, "date": null, "external_id": null, "payment_data": null});
    let made = client.post(&payments, nothing).expect(201).data();
    assert_eq!(
        (&made["payment"]["status"], &made["payment"]["method"], &made["payment"]["amount"], &made["payment"]["date"]),
        (&json!("open"), &json!("ideal"), &json!(121), &json!("2026-05-04"))
    );

    client.post(&payments, json!({"amount": 121})).expect(201);
    let total = || client.get(&payments).json()["meta"]["total"].clone();
    let before = total();
    assert_eq!(client.post(&payments, json!({})).expect(409).code(), "invalid_transition");
    client.post(&payments, json!({"amount": 9})).expect(201);
    assert_eq!(client.post(&payments, json!({})).expect(409).code(), "invalid_transition");
    assert_eq!(
        client.post(&payments, json!({"type": "online", "amount": null})).expect(409).code(),
        "invalid_transition"
    );
    assert_eq!(total().as_i64(), before.as_i64().map(|before| before + 1));
    assert_eq!(client.post(&payments, json!({"amount": -9})).expect(201).data()["invoice"]["paid_amount"], 121);
    // A credit is refunded without an amount, once.
    let credit = client.post(&format!("{path}/credit"), json!({"row_indexes": [0]})).expect(201);
    assert_eq!(credit.json()["meta"]["warnings"].as_array().unwrap().len(), 1, "{credit:?}");
    let back = format!("/v1/invoices/{}/payments", credit.id());
    assert_eq!(client.post(&back, json!({})).expect(201).data()["payment"]["amount"], -121);
    assert_eq!(client.post(&back, json!({})).expect(409).code(), "invalid_transition");
}

fn row_indexes_require_credit_all_false(server: Shared) {
    let client = server.client();
    let two = json!([{"name": "a", "unit_price": 10}, {"name": "b", "unit_price": 20}]);
    let credit = |body: Value| {
        let path = make(&client, "invoices", json!({"title": "t", "generate": true, "rows": two}));
        let seq = server.last_seq(&client);
        let reply = client.post(&format!("{path}/credit"), body).expect(201);
        assert_eq!(server.events(&client, seq), ["invoice.credit_created", "invoice.credited"]);
        let warned = reply.json()["meta"]["warnings"][0].as_str().is_some_and(|words| words.contains("row_indexes"));
        (reply.data()["total_incl_vat"].clone(), warned)
    };
    assert_eq!(credit(json!({"row_indexes": [0]})), (json!(-30), true));
    assert_eq!(credit(json!({"row_indexes": [0], "credit_all": null})), (json!(-30), true));
    assert_eq!(credit(json!({"row_indexes": [0], "credit_all": true})), (json!(-30), true));
    assert_eq!(credit(json!({"row_indexes": [0], "credit_all": false})), (json!(-10), false));
    assert_eq!(credit(json!({})), (json!(-30), false));
    // They are validated whether they have an effect or not.
    let path = make(&client, "invoices", json!({"title": "t", "generate": true, "rows": two}));
    for (places, fault) in [
        (json!([2]), "out_of_range"),
        (json!([0, 0]), "given_twice"),
        (json!([]), "required"),
        (json!(["0"]), "wrong_type"),
        (json!([-1]), "wrong_type"),
    ] {
        for all in [json!(true), json!(false), json!(null)] {
            let refused =
                client.post(&format!("{path}/credit"), json!({"row_indexes": places, "credit_all": all})).expect(422);
            assert_eq!(refused.faults(), [format!("row_indexes: {fault}")], "{places} {all}");
        }
    }
    client.post(&format!("{path}/credit"), json!({"row_indexes": [0], "credit_all": false})).expect(201);
    assert_eq!(
        client.post(&format!("{path}/credit"), json!({"row_indexes": [0]})).expect(201).data()["total_incl_vat"],
        -20,
        "the rest"
    );
}

fn accepting_a_draft_quote_is_one_change(server: Shared) {
    let client = server.client();
    for (action, status) in [("accept", "accepted"), ("reject", "rejected"), ("invoice", "invoiced")] {
        let path = make(&client, "quotes", json!({"title": "q", "rows": rows(10)}));
        let seq = server.last_seq(&client);
        let reply = client.act(&format!("{path}/{action}"));
        assert!(reply.status < 300 && reply.json()["meta"]["finalized"] == true, "{reply:?}");
        assert_eq!(count(&server, &client, seq, &["quote.phase_changed", "quote.updated"]), [1, 1], "{action}");
        let quote = client.get(&path).data();
        assert_eq!((&quote["payment_status"], &quote["meta"]["generation_mode"]), (&json!(status), &json!("final")));
        assert!(quote["number"].as_str().unwrap().starts_with("Q2026-"), "{quote}");
        assert!(client.get(&format!("{path}/pdf/content")).expect(200).bytes.starts_with(b"%PDF-"));
    }
    let path = make(&client, "quotes", json!({"title": "q", "payment_status": "accepted"}));
    let quote = client.act(&format!("{path}/accept")).expect(200).data();
    assert_eq!((&quote["payment_status"], &quote["meta"]["generation_mode"]), (&json!("accepted"), &json!("final")));
}

fn totals_without_rows_imply_their_rate(server: Shared) {
    let client = server.client();
    let send = |mut body: Value| {
        body["title"] = json!("Lump");
        client.post("/v1/invoices", body)
    };
    for (body, rate, code) in [
        (json!({"total_excl_vat": 100, "total_incl_vat": 121}), "21", "NL21"),
        (json!({"total_excl_vat": 100, "total_incl_vat": 109}), "9", "NL9"),
        (json!({"subtotal": 100, "vat_amount": 21}), "21", "NL21"),
        (json!({"total_incl_vat": 121, "vat_amount": 21}), "21", "NL21"),
        (json!({"subtotal": 33.33, "total_excl_vat": 33.33, "vat_amount": 7, "total_incl_vat": 40.33}), "21", "NL21"),
        (json!({"total_excl_vat": 0.05, "total_incl_vat": 0.06}), "21", "NL21"),
        (json!({"total_excl_vat": -100, "total_incl_vat": -109}), "9", "NL9"),
        (json!({"total_excl_vat": 100, "total_incl_vat": 100}), "0", ""),
        (json!({"total_excl_vat": 100}), "0", ""),
        (json!({"total_incl_vat": 121, "vat_rate": 21}), "21", ""),
        (json!({"total_excl_vat": 100, "total_incl_vat": 121, "vat_rate": null}), "21", "NL21"),
    ] {
        let made = send(body.clone()).expect(201).data();
        assert_eq!(
            (&made["rows"][0]["vat_rate"], &made["rows"][0]["vat_code"]),
            (&json!(rate), &json!(code)),
            "{body}"
        );
        for (name, sent) in body.as_object().unwrap().iter().filter(|(name, _)| *name != "vat_rate") {
            assert_eq!(made[name], *sent, "{body}");
        }
    }
    let odd = send(json!({"total_excl_vat": 100, "total_incl_vat": 117})).expect(422);
    assert_eq!(odd.faults(), ["total_incl_vat: totals_mismatch"]);
    client.post("/v1/tax-rates", json!({"code": "LU17", "amount": 17, "profile": "eu"})).expect(201);
    assert_eq!(
        send(json!({"total_excl_vat": 100, "total_incl_vat": 117})).expect(201).data()["rows"][0]["vat_code"],
        "LU17"
    );
    assert_eq!(
        send(json!({"total_excl_vat": 100, "total_incl_vat": 121, "vat_rate": 9})).expect(422).faults(),
        ["total_incl_vat: totals_mismatch"]
    );
}
