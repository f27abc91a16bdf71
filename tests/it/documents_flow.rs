//! Invoices, quotes and workorders: from draft to paid.

use std::collections::HashSet;

use kantoor::worker;
use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Server};

fn keys_of(data: &Value) -> Vec<&str> {
    data.as_object().unwrap().keys().map(String::as_str).collect()
}

fn company(client: &Client) -> String {
    let body = json!({"company_name": "Bakkerij De Ster", "email": "anna@ster.example", "country": "NL", "payment_term": 30, "external_id": "C-1"});
    client.post("/v1/clients", body).expect(201).id()
}

/// An invoice of two rows: 100 at 21% and 50 at 9%.
fn body(firm: &str) -> Value {
    json!({"title": "Work", "client_id": firm, "rows": [
        {"name": "Hours", "quantity": 2, "unit": "hour", "unit_price": 50, "vat_rate": "21%"},
        {"title": "Book", "quantity": 1, "unit_price": 50, "vat_code": "nl9", "description": "about boilers"},
    ]})
}

fn work_off(server: &Server) {
    server.block_on(async { while worker::turn(&server.app).await {} });
}

on_both! {
    fn a_draft_has_the_shape_of_the_contract(db) {
        let server = Server::start(db);
        let client = server.client();
        let firm = company(&client);
        let before = server.last_seq(&client);
        let made = client.post("/v1/invoices", body(&firm)).expect(201);
        let data = made.data();
        for field in ["id", "number", "title", "invoice_date", "due_date", "created_at", "subtotal", "vat_rate", "vat_amount", "total_excl_vat",
            "total_incl_vat", "client_id", "payment_status", "paid_at", "sent_at", "project_number", "is_credit", "external_id", "rows",
            "client_company_name", "client_firstname", "client_lastname", "web_url", "pdf_url", "meta", "generation_mode", "pdf"] {
            assert!(keys_of(&data).contains(&field), "{field}");
        }
        assert!(data["number"].as_str().unwrap().starts_with("DRAFT-"));
        assert_eq!((&data["invoice_date"], &data["due_date"], &data["payment_status"]), (&json!("2026-05-04"), &json!("2026-06-03"), &json!("draft")));
        assert_eq!((&data["subtotal"], &data["vat_amount"], &data["total_incl_vat"], &data["vat_rate"]), (&json!(150), &json!(25.5), &json!(175.5), &json!(17)));
        assert_eq!((&data["paid_at"], &data["external_id"], &data["project_number"], &data["is_credit"]), (&json!(null), &json!(null), &json!(null), &json!(false)));
        assert_eq!(data["rows"][0], json!({"name": "Hours", "quantity": 2, "unit": "hour", "unit_price": 50, "vat_rate": "21", "total_excl_vat": 100,
            "total_incl_vat": 121, "description": "", "vat_code": "", "product_id": ""}));
        assert_eq!((&data["rows"][1]["name"], &data["rows"][1]["vat_rate"], &data["rows"][1]["vat_code"]), (&json!("Book"), &json!("9"), &json!("NL9")));
        assert_eq!((&data["generation_mode"], &data["pdf"]["status"], &data["meta"]["pdf"]["status"]), (&json!("draft"), &json!("skipped"), &json!("skipped")));
        assert_eq!(data["client_company_name"], "Bakkerij De Ster");
        assert_eq!(server.events(&client, before), ["invoice.created", "document.draft"]);

        let item = client.get("/v1/invoices").data()[0].clone();
        assert_eq!(keys_of(&item), ["id", "number", "title", "invoice_date", "due_date", "subtotal", "vat_rate", "vat_amount", "total_excl_vat",
            "total_incl_vat", "client_id", "payment_status", "paid_at", "sent_at", "project_number", "is_credit", "external_id", "created_at"]);
        let path = format!("/v1/invoices/{}", made.id());
        let patched = client.patch(&path, json!({"title": "Other", "rows": [{"name": "x", "unit_price": 0.005, "quantity": 1, "vat_rate": 0}]})).expect(200).data();
        assert_eq!((&patched["title"], &patched["total_incl_vat"]), (&json!("Other"), &json!(0.01)));
        let gone = client.delete(&path).expect(200).data();
        assert_eq!(gone["rows"][0]["description"], "");
        assert_eq!(client.get(&path).status, 404);
        let order = client.post("/v1/workorders", json!({"title": "w"})).expect(201);
        assert_eq!(order.json()["meta"]["warnings"], json!(["The document has no client."]));
        client.delete(&format!("/v1/workorders/{}", order.id())).expect(204);
    }

    fn faults_of_rows_are_named_by_their_place(db) {
        let server = Server::start(db);
        let client = server.client();
        let firm = company(&client);
        let rows = json!([{"name": "ok"}, {"quantity": "x", "unit_price": 1.1234567, "zz": 1}, 7, {"name": "n", "vat_rate": 120}]);
        assert_eq!(client.post("/v1/invoices", json!({"rows": rows})).expect(422).faults(), [
            "rows[1].quantity: wrong_type", "rows[1].unit_price: too_precise", "rows[1].zz: unknown_field", "rows[2]: wrong_type",
            "rows[3].vat_rate: out_of_range", "title: required"]);
        let rows = json!([{"name": " "}, {"name": "a", "vat_code": "XX"}, {"name": "b", "product_id": "nope"}]);
        assert_eq!(client.post("/v1/invoices", json!({"title": "t", "client_id": firm, "rows": rows})).expect(422).faults(), [
            "rows[0].name: required", "rows[1].vat_code: reference_not_found", "rows[2].product_id: reference_not_found"]);
        let large = json!({"title": "t", "rows": [{"name": "a", "quantity": 999999999, "unit_price": 999999999}]});
        assert_eq!(client.post("/v1/invoices", large).expect(422).faults(), ["rows[0].quantity: out_of_range"]);
        let mut wrong = body(&firm);
        wrong["total_incl_vat"] = json!(180);
        wrong["subtotal"] = json!(150.01);
        wrong["rows"][0]["total_excl_vat"] = json!(90);
        assert_eq!(client.post("/v1/invoices", wrong.clone()).expect(422).faults(), ["rows[0].total_excl_vat: totals_mismatch"]);
        wrong["rows"][0]["total_excl_vat"] = json!(100);
        assert_eq!(client.post("/v1/invoices", wrong).expect(422).faults(), ["total_incl_vat: totals_mismatch"]);
        for (field, value, fault) in [
            ("client_id", json!("nope"), "client_id: reference_not_found"), ("client_external_id", json!("nope"), "client_external_id: reference_not_found"),
            ("due_date", json!("2026-05-03"), "due_date: out_of_range"), ("generation_mode", json!("maybe"), "generation_mode: invalid_choice"),
            ("rows", json!(vec![json!({"name": "x"}); 1001]), "rows: too_long"), ("number", json!("DRAFT-1"), "number: invalid_format"),
            ("paid_at", json!("2026-05-04T09:30:00Z"), "paid_at: read_only"), ("payed_at", json!(1), "payed_at: unknown_field"),
        ] {
            let mut wrong = body(&firm);
            wrong[field] = value;
            assert_eq!(client.post("/v1/invoices", wrong).expect(422).faults(), [fault]);
        }
        let other = client.post("/v1/clients", json!({"company_name": "Other"})).expect(201).id();
        let both = json!({"title": "t", "client_id": other, "client_external_id": "C-1"});
        assert_eq!(client.post("/v1/invoices", both).expect(422).faults(), ["client_external_id: invalid_choice"]);
        assert_eq!(client.post("/v1/invoices", json!({"title": "t", "client_external_id": "C-1"})).expect(201).data()["client_id"], json!(firm));
        let product = client.post("/v1/products", json!({"name": "Tap", "price": 12.5, "vat_rate": "9", "unit": "piece"})).expect(201).id();
        let made = client.post("/v1/invoices", json!({"title": "t", "rows": [{"product_id": product, "quantity": 2}]})).expect(201).data();
        assert_eq!((&made["rows"][0]["name"], &made["rows"][0]["unit"], &made["total_incl_vat"]), (&json!("Tap"), &json!("piece"), &json!(27.25)));
        let total = client.post("/v1/invoices", json!({"title": "Lump", "total_incl_vat": 121, "vat_rate": 21})).expect(201).data();
        assert_eq!((&total["rows"][0]["name"], &total["total_excl_vat"], &total["vat_rate"]), (&json!("Lump"), &json!(100), &json!(21)));
    }

    fn numbers_have_no_gaps(db) {
        let server = Server::start(db);
        let client = server.client();
        let firm = company(&client);
        let make = |mode: &str| {
            let mut body = body(&firm);
            body["generation_mode"] = json!(mode);
            client.post("/v1/invoices", body).expect(201)
        };
        let first = make("final");
        assert_eq!((&first.data()["number"], &first.data()["payment_status"], &first.data()["pdf"]["status"]), (&json!("F2026-0001"), &json!("open"), &json!("pending")));
        let draft = make("draft");
        let second = client.act(&format!("/v1/invoices/{}/finalize", draft.id())).expect(200).data();
        assert_eq!(second["number"], "F2026-0002");
        assert_eq!(client.act(&format!("/v1/invoices/{}/finalize", draft.id())).expect(200).data()["number"], "F2026-0002");
        let third = client.patch(&format!("/v1/invoices/{}", make("draft").id()), json!({"generation_mode": "final"})).expect(200).data();
        assert_eq!(third["number"], "F2026-0003");
        let mut own = body(&firm);
        own["number"] = json!("F2026-0004");
        own["generate"] = json!(true);
        own["external_id"] = json!("old-4");
        client.post("/v1/invoices", own.clone()).expect(201);
        client.post("/v1/invoices", own.clone()).expect(409);
        own["external_id"] = json!("old-5");
        assert_eq!(client.post("/v1/invoices", own.clone()).expect(409).code(), "duplicate");
        own["number"] = json!("OLD/7");
        own["external_id"] = json!("old-4");
        assert_eq!(client.post("/v1/invoices", own).expect(409).code(), "duplicate_external_id");
        assert_eq!(make("final").data()["number"], "F2026-0005", "one that was brought along is passed over");
        let mut old = body(&firm);
        old["invoice_date"] = json!("2025-12-31");
        old["generate"] = json!(true);
        assert_eq!(client.post("/v1/invoices", old).expect(201).data()["number"], "F2025-0001");
        assert_eq!(client.post("/v1/quotes", json!({"title": "q", "generate": true})).expect(201).data()["number"], "Q2026-0001");
        assert_eq!(client.post("/v1/workorders", json!({"title": "w", "generate": true})).expect(201).data()["number"], "W2026-0001");

        std::thread::scope(|scope| {
            for _ in 0..50 {
                scope.spawn(|| make("final"));
            }
        });
        let list = client.get("/v1/invoices?per_page=100&date_from=2026-01-01").json();
        let numbers: HashSet<String> = list["data"].as_array().unwrap().iter().map(|item| item["number"].as_str().unwrap().to_string()).collect();
        assert_eq!(numbers, (1..=55).map(|n| format!("F2026-{n:04}")).collect());
    }

    fn a_final_document_is_locked(db) {
        let server = Server::start(db);
        let client = server.client();
        let firm = company(&client);
        let mut body = body(&firm);
        body["generate"] = json!(true);
        let made = client.post("/v1/invoices", body).expect(201);
        let path = format!("/v1/invoices/{}", made.id());
        for change in [json!({"rows": []}), json!({"client_id": ""}), json!({"generation_mode": "draft"}), json!({"notes": "x"})] {
            assert_eq!(client.patch(&path, change.clone()).expect(409).code(), "locked", "{change}");
        }
        assert_eq!(client.delete(&path).expect(409).code(), "document_not_draft");
        client.patch(&format!("/v1/clients/{firm}"), json!({"company_name": "New name"})).expect(200);
        assert_eq!(client.get(&path).data()["client_company_name"], "Bakkerij De Ster", "the document keeps its client as it was");
        let changed = client.patch(&path, json!({"title": "Better", "due_date": "2026-05-20"})).expect(200).data();
        assert_eq!((&changed["title"], &changed["meta"]["revision"]), (&json!("Better"), &json!(2)));
        assert_eq!(client.patch(&path, json!({"due_date": "2026-01-01"})).expect(422).faults(), ["due_date: out_of_range"]);
        assert_eq!(client.patch(&path, json!({"due_date": null})).expect(422).faults(), ["due_date: required"]);
        assert_eq!(client.patch(&path, json!({"payment_status": "in dispute"})).expect(200).data()["payment_status"], "in dispute");
        let before = server.last_seq(&client);
        for _ in 0..2 {
            let paid = client.patch(&path, json!({"payment_status": "paid"})).expect(200).data();
            assert_eq!(paid["paid_at"], "2026-05-04T10:00:00.000Z");
        }
        assert_eq!(server.events(&client, before), ["invoice.updated", "invoice.paid", "customer.first_invoice_paid"]);
        assert_eq!(client.patch(&path, json!({"payment_status": "open"})).expect(200).data()["paid_at"], json!(null));
    }

    fn credits_are_the_exact_opposite(db) {
        let server = Server::start(db);
        let client = server.client();
        let firm = company(&client);
        let made = client.post("/v1/invoices", body(&firm)).expect(201);
        let path = format!("/v1/invoices/{}", made.id());
        let credit = |body: Value| client.post(&format!("{path}/credit"), body);
        assert_eq!(credit(json!({"credit_all": false})).expect(422).faults(), ["row_indexes: required"]);
        assert_eq!(credit(json!({"credit_all": false, "row_indexes": [2]})).expect(422).faults(), ["row_indexes: out_of_range"]);
        assert_eq!(credit(json!({"credit_all": false, "row_indexes": [0, 0]})).expect(422).faults(), ["row_indexes: given_twice"]);
        assert_eq!(client.get(&path).data()["payment_status"], "draft", "what is refused leaves a draft");
        let before = server.last_seq(&client);
        let first = credit(json!({"credit_all": false, "row_indexes": [1]})).expect(201);
        assert_eq!(first.json()["meta"]["finalized"], true);
        assert_eq!(first.header("location"), format!("/v1/invoices/{}", first.id()));
        let data = first.data();
        assert_eq!((&data["is_credit"], &data["number"], &data["total_incl_vat"], &data["meta"]["credited_invoice_id"]), (&json!(true), &json!("F2026-0002"), &json!(-54.5), &json!(made.id())));
        assert_eq!((&data["rows"][0]["quantity"], &data["rows"][0]["total_excl_vat"]), (&json!(-1), &json!(-50)));
        assert_eq!(server.events(&client, before), ["invoice.updated", "invoice.credit_created", "invoice.credited"]);
        assert_eq!(credit(json!({"credit_all": false, "row_indexes": [1]})).expect(409).code(), "already_credited");
        assert_eq!(client.get(&path).data()["payment_status"], "open");
        // Without a body: all that is left.
        let rest = client.act(&format!("{path}/credit")).expect(201);
        assert_eq!(rest.data()["total_incl_vat"], -121);
        assert_eq!(client.get(&path).data()["payment_status"], "credited");
        assert_eq!(client.act(&format!("{path}/credit")).expect(409).code(), "already_credited");
        assert_eq!(client.act(&format!("/v1/invoices/{}/credit", rest.id())).expect(409).code(), "invalid_transition");
        assert_eq!(client.post("/v1/quotes", json!({"title": "q"})).map_credit(&client), 404);
    }

    fn payments_move_an_invoice(db) {
        let server = Server::start(db);
        let client = server.client();
        let firm = company(&client);
        let made = client.post("/v1/invoices", body(&firm)).expect(201);
        let path = format!("/v1/invoices/{}", made.id());
        let payments = format!("{path}/payments");
        let status = || { let data = client.get(&path).data(); (data["payment_status"].as_str().unwrap().to_string(), data["paid_at"].is_string()) };
        for (amount, fault) in [(json!(0), "amount: out_of_range"), (json!(1.234), "amount: too_precise"), (json!(-1), "amount: out_of_range")] {
            assert_eq!(client.post(&payments, json!({"amount": amount})).expect(422).faults(), [fault]);
        }
        for (field, value) in [("status", "lost"), ("method", "barter"), ("type", "odd")] {
            let reply = client.post(&payments, json!({field: value})).expect(422);
            assert_eq!(reply.faults(), [format!("{field}: invalid_choice")]);
            assert!(reply.text.contains("must be one of: "), "{reply:?}");
        }
        let before = server.last_seq(&client);
        let part = client.post(&payments, json!({"amount": 100, "external_id": "b-1", "payment_data": {"line": 3}})).expect(201);
        assert_eq!(part.json()["meta"]["finalized"], true);
        let data = part.data();
        assert_eq!(data["invoice"], json!({"id": made.id(), "paid_amount": 100, "price": 175.5}));
        assert_eq!(keys_of(&data["payment"]), ["id", "amount", "date", "status", "type", "method", "external_id", "provider", "meta"]);
        assert_eq!((&data["payment"]["status"], &data["payment"]["method"], &data["payment"]["date"], &data["payment"]["meta"]["payment_data"]), (&json!("paid"), &json!("banktransfer"), &json!("2026-05-04"), &json!({"line": 3})));
        let first = format!("{payments}/{}", data["payment"]["id"].as_str().unwrap());
        assert_eq!(part.header("location"), first);
        assert_eq!(status(), ("partial".into(), false));
        assert_eq!(client.post(&payments, json!({"amount": 1, "external_id": "b-1"})).expect(409).code(), "duplicate_external_id");
        let rest = client.post(&payments, json!({})).expect(201).data();
        assert_eq!((&rest["payment"]["amount"], &rest["invoice"]["paid_amount"]), (&json!(75.5), &json!(175.5)));
        assert_eq!(status(), ("paid".into(), true));
        let events = server.events(&client, before);
        assert_eq!(events.iter().filter(|name| *name == "invoice.paid" || *name == "customer.first_invoice_paid").count(), 2, "{events:?}");
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

        // Every move of an online payment, allowed and refused.
        let states = ["open", "pending", "paid", "failed", "canceled", "expired", "authorized", "created", "chargeback", "refunded"];
        let allowed = |from: &str| -> &[&str] { match from {
            "created" => &["open"], "open" => &["pending", "authorized", "paid", "failed", "canceled", "expired"],
            "pending" | "authorized" => &["paid", "failed", "canceled", "expired"], "paid" => &["refunded", "chargeback"], "chargeback" => &["paid"], _ => &[],
        } };
        for from in states {
            for to in states {
                let made = client.post(&payments, json!({"type": "online", "amount": 1, "status": from})).expect(201).data();
                let own = format!("{payments}/{}", made["payment"]["id"].as_str().unwrap());
                let reply = client.patch(&own, json!({"status": to}));
                let good = from == to || allowed(from).contains(&to);
                assert_eq!(reply.status, if good { 200 } else { 409 }, "{from} to {to}");
                assert!(good || reply.code() == "invalid_transition");
                client.delete(&own).expect(204);
            }
        }
        let online = client.post(&payments, json!({"type": "online", "amount": 5})).expect(201).data();
        assert_eq!(online["payment"]["status"], "open");
        let own = format!("{payments}/{}", online["payment"]["id"].as_str().unwrap());
        assert_eq!(client.patch(&own, json!({"status": "cancelled"})).expect(200).data()["payment"]["status"], "canceled");
    }

    fn a_quote_becomes_an_invoice(db) {
        let server = Server::start(db);
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
            assert_eq!((&accepted.data()["payment_status"], &accepted.data()["meta"]["accepted_at"]), (&json!("accepted"), &json!("2026-05-04T10:00:00.000Z")));
        }
        assert_eq!(server.events(&client, before), ["quote.updated", "quote.phase_changed", "quote.accepted", "deal.quote_accepted"]);
        let invoice = client.act(&format!("{path}/invoice")).expect(201);
        assert_eq!((&invoice.data()["total_incl_vat"], &invoice.data()["payment_status"], &invoice.data()["meta"]["quote_id"]), (&json!(175.5), &json!("draft"), &json!(made.id())));
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

        let order = format!("/v1/workorders/{}", client.post("/v1/workorders", json!({"title": "w", "client_id": firm})).expect(201).id());
        let before = server.last_seq(&client);
        for _ in 0..2 {
            assert_eq!(client.act(&format!("{order}/complete")).expect(200).data()["payment_status"], "completed");
        }
        assert_eq!(server.events(&client, before), ["workorder.updated", "workorder.completed"]);
        client.act(&format!("{order}/invoice")).expect(201);
        assert_eq!(client.act(&format!("{order}/complete")).expect(409).code(), "invalid_transition");
    }

    fn the_pdf_is_made_and_kept_per_revision(db) {
        let server = Server::start(db);
        let client = server.client();
        let firm = company(&client);
        let draft = client.post("/v1/invoices", body(&firm)).expect(201);
        let path = format!("/v1/invoices/{}", draft.id());
        let pdf = |path: &str| client.get(&format!("{path}/pdf/content")).expect(200);
        let first = pdf(&path);
        assert!(first.bytes.starts_with(b"%PDF-") && first.header("content-type") == "application/pdf");
        assert_eq!(client.get("/v1/files").json()["meta"]["total"], 0, "the PDF of a draft is not kept");
        client.act(&format!("{path}/finalize")).expect(200);
        let shown = client.get(&format!("{path}/pdf")).expect(200).data();
        assert_eq!((keys_of(&shown), &shown["id"]), (vec!["id", "pdf_url"], &json!(draft.id())));
        let url = shown["pdf_url"].as_str().unwrap().strip_prefix(&client.base).unwrap().to_string();
        let one = client.send("GET", &url, &[("authorization", "")], "").expect(200);
        assert_eq!(one.header("content-disposition"), "inline; filename*=UTF-8''F2026-0001.pdf");
        work_off(&server);
        let files = client.get("/v1/files").json();
        assert_eq!((&files["meta"]["total"], &files["data"][0]["name"]), (&json!(1), &json!("F2026-0001.pdf")));
        assert_eq!(pdf(&path).bytes, one.bytes, "the same bytes, however it was made");
        let file = format!("/v1/files/{}", files["data"][0]["id"].as_str().unwrap());
        assert_eq!(client.get(&format!("{file}/content")).bytes, one.bytes);
        assert_eq!(client.delete(&file).expect(409).code(), "in_use");
        client.patch(&path, json!({"title": "Second"})).expect(200);
        work_off(&server);
        let second = pdf(&path);
        assert_ne!(second.bytes, one.bytes);
        assert_eq!(client.get("/v1/files").json()["meta"]["total"], 2);
        assert_eq!(client.get(&format!("{file}/content")).bytes, one.bytes, "the earlier one stays");
        let revisions = client.get(&format!("{path}/revisions")).expect(200).json();
        assert_eq!((&revisions["meta"]["total"], &revisions["data"][1]["revision"]), (&json!(2), &json!(2)));
        let waiting = server.app.store.read_now(|tx| tx.int("SELECT count(*) FROM jobs WHERE state <> 'done'", &[])).unwrap();
        assert_eq!(waiting, 0, "no job is left behind");
    }

    fn a_quote_becomes_a_project(db) {
        let server = Server::start(db);
        let client = server.client();
        let firm = company(&client);
        let path = format!("/v1/quotes/{}", client.post("/v1/quotes", body(&firm)).expect(201).id());
        let before = server.last_seq(&client);
        let made = client.act(&format!("{path}/project")).expect(201);
        let (quote, project) = (client.get(&path).data(), made.data());
        assert_eq!(made.json()["meta"]["finalized"], true);
        assert_eq!(made.header("location"), format!("/v1/projects/{}", made.id()));
        assert_eq!((&project["name"], &project["client_id"], &project["status"], &project["budget"]),
            (&quote["title"], &json!(firm), &json!("planned"), &quote["total_excl_vat"]));
        assert_eq!((&quote["meta"]["project_id"], &quote["project_number"], &quote["payment_status"]), (&json!(made.id()), &project["number"], &json!("open")));
        assert_eq!(server.events(&client, before), ["quote.updated", "quote.phase_changed", "project.created", "quote.updated", "quote.converted_to_project"]);
        assert_eq!(client.act(&format!("{path}/project")).expect(409).code(), "invalid_transition");
        // It can still be accepted and invoiced, and the invoice is of the same project.
        client.act(&format!("{path}/accept")).expect(200);
        assert_eq!(client.act(&format!("{path}/invoice")).expect(201).data()["project_number"], project["number"]);
        let other = format!("/v1/quotes/{}", client.post("/v1/quotes", body(&firm)).expect(201).id());
        client.act(&format!("{other}/reject")).expect(200);
        assert_eq!(client.act(&format!("{other}/project")).expect(409).code(), "invalid_transition");
        assert_eq!(server.with_scopes(&client, &["invoices.write"]).act(&format!("{other}/project")).expect(403).code(), "forbidden");
    }

    fn days_make_invoices_late_and_quotes_invalid(db) {
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
        let (late, other, today, quote) = (make("invoices", "2026-05-03"), make("invoices", "2026-05-01"), make("invoices", "2026-05-04"), make("quotes", "2026-05-03"));
        let before = server.last_seq(&client);
        for _ in 0..2 {
            let account = client.account;
            let account = server.app.store.read_now(move |tx| kantoor::accounts::Account::numbered(tx, account)).unwrap();
            server.pass_days(account);
        }
        let status = |path: &str| client.get(path).data()["payment_status"].as_str().unwrap().to_string();
        assert_eq!((status(&late), status(&other), status(&today), status(&quote)), ("overdue".into(), "overdue".into(), "open".into(), "expired".into()));
        assert_eq!(server.events(&client, before), ["invoice.updated", "invoice.late", "customer.payment_overdue", "invoice.updated", "invoice.late", "quote.updated", "quote.phase_changed"]);
        client.post(&format!("{late}/payments"), json!({"amount": 1})).expect(201);
        assert_eq!(status(&late), "partial");
        client.post(&format!("{late}/payments"), json!({"amount": -1})).expect(201);
        assert_eq!(status(&late), "overdue");
        assert_eq!(client.act(&format!("{quote}/accept")).expect(409).code(), "invalid_transition");
    }

    fn a_product_that_goes_leaves_its_name(db) {
        let server = Server::start(db);
        let client = server.client();
        let product = client.post("/v1/products", json!({"name": "Tap", "price": 12.5})).expect(201).id();
        let rows = json!([{"product_id": product}, {"name": "other"}]);
        let draft = format!("/v1/invoices/{}", client.post("/v1/invoices", json!({"title": "t", "rows": rows})).expect(201).id());
        let done = format!("/v1/invoices/{}", client.post("/v1/invoices", json!({"title": "t", "rows": rows, "generate": true})).expect(201).id());
        client.delete(&format!("/v1/products/{product}")).expect(204);
        let row = |path: &str| client.get(path).data()["rows"][0].clone();
        assert_eq!((&row(&draft)["name"], &row(&draft)["product_id"]), (&json!("Tap"), &json!("")));
        assert_eq!((&row(&done)["name"], &row(&done)["product_id"]), (&json!("Tap"), &json!(product)));
    }

    fn lists_of_documents_have_every_filter(db) {
        let server = Server::start(db);
        let client = server.client();
        let firm = company(&client);
        for n in 1..=3 {
            let date = format!("2026-0{n}-15");
            let body = json!({"title": format!("Job {n}"), "client_id": firm, "invoice_date": date, "generate": n > 1, "external_id": format!("e-{n}"), "rows": [{"name": "x", "unit_price": n}]});
            client.post("/v1/invoices", body).expect(201);
        }
        for (query, total) in [
            ("date_from=2026-02-01", 2), ("date_to=2026-02-15", 2), ("date_from=2026-02-15&date_to=2026-02-15", 1), ("due_date_from=2026-04-01", 1),
            ("due_date_to=2026-02-20", 1), ("created_from=2026-05-04&created_to=2026-05-04", 3), ("payment_status=open", 2), ("payment_status=draft", 1),
            ("search=job%202", 1), ("search=BAKKERIJ", 3), ("search=anna@ster", 3), ("search=e-3", 1), ("number=F2026-0002", 1), (&format!("client_id={firm}"), 3), ("client_id=x", 0),
            ("payment_status=nonsense", 0),
        ] {
            assert_eq!(client.get(&format!("/v1/invoices?{query}")).expect(200).json()["meta"]["total"], total, "{query}");
        }
        assert_eq!(client.get("/v1/invoices?date_from=2026").expect(422).faults(), ["date_from: invalid_format"]);
        let by = |sort: &str| -> Vec<Value> { client.get(&format!("/v1/invoices?sort={sort}&order=asc")).expect(200).data().as_array().unwrap().iter().map(|item| item["title"].clone()).collect() };
        assert_eq!(by("total_incl_vat"), ["Job 1", "Job 2", "Job 3"]);
        assert_eq!(by("invoice_date"), ["Job 1", "Job 2", "Job 3"]);
    }
}

impl crate::support::Reply {
    /// The status of crediting this at the address of an invoice.
    fn map_credit(self, client: &Client) -> u16 {
        client.act(&format!("/v1/invoices/{}/credit", self.id())).status
    }
}
