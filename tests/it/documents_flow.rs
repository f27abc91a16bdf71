//! Invoices, quotes and workorders: from draft to paid.

mod hours;
mod payments;
mod quotes;

use std::collections::HashSet;

use engine::jobs::worker;
use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Db, Server, Shared};

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

on_both![
    a_draft_has_the_shape_of_the_contract,
    row_errors_have_the_index_of_their_row,
    numbers_have_no_gaps,
    a_final_document_is_locked,
    the_pdf_is_stored_per_revision,
    a_draft_is_printed_with_its_client_of_that_moment,
    a_late_job_prints_its_own_revision,
    a_deleted_product_leaves_its_name_in_rows,
    lists_of_documents_have_every_filter,
];

/// The fields of an invoice in the response to a POST.
const FIELDS: [&str; 27] = [
    "id",
    "number",
    "title",
    "invoice_date",
    "due_date",
    "created_at",
    "subtotal",
    "vat_rate",
    "vat_amount",
    "total_excl_vat",
    "total_incl_vat",
    "client_id",
    "payment_status",
    "paid_at",
    "sent_at",
    "project_number",
    "is_credit",
    "external_id",
    "rows",
    "client_company_name",
    "client_firstname",
    "client_lastname",
    "web_url",
    "pdf_url",
    "meta",
    "generation_mode",
    "pdf",
];

/// The fields of an invoice in a list.
const LISTED: [&str; 18] = [
    "id",
    "number",
    "title",
    "invoice_date",
    "due_date",
    "subtotal",
    "vat_rate",
    "vat_amount",
    "total_excl_vat",
    "total_incl_vat",
    "client_id",
    "payment_status",
    "paid_at",
    "sent_at",
    "project_number",
    "is_credit",
    "external_id",
    "created_at",
];

fn a_draft_has_the_shape_of_the_contract(server: Shared) {
    let client = server.client();
    let firm = company(&client);
    let before = server.last_seq(&client);
    let made = client.post("/v1/invoices", body(&firm)).expect(201);
    let data = made.data();
    for field in FIELDS {
        assert!(keys_of(&data).contains(&field), "{field}");
    }
    assert!(data["number"].as_str().unwrap().starts_with("DRAFT-"));
    assert_eq!(
        (&data["invoice_date"], &data["due_date"], &data["payment_status"]),
        (&json!("2026-05-04"), &json!("2026-06-03"), &json!("draft"))
    );
    assert_eq!(
        (&data["subtotal"], &data["vat_amount"], &data["total_incl_vat"], &data["vat_rate"]),
        (&json!(150), &json!(25.5), &json!(175.5), &json!(17))
    );
    assert_eq!(
        (&data["paid_at"], &data["external_id"], &data["project_number"], &data["is_credit"]),
        (&json!(null), &json!(null), &json!(null), &json!(false))
    );
    assert_eq!(
        data["rows"][0],
        json!({"name": "Hours", "quantity": 2, "unit": "hour", "unit_price": 50, "vat_rate": "21", "total_excl_vat": 100,
            "total_incl_vat": 121, "description": "", "vat_code": "", "product_id": ""})
    );
    assert_eq!(
        (&data["rows"][1]["name"], &data["rows"][1]["vat_rate"], &data["rows"][1]["vat_code"]),
        (&json!("Book"), &json!("9"), &json!("NL9"))
    );
    assert_eq!(
        (&data["generation_mode"], &data["pdf"]["status"], &data["meta"]["pdf"]["status"]),
        (&json!("draft"), &json!("skipped"), &json!("skipped"))
    );
    assert_eq!(data["client_company_name"], "Bakkerij De Ster");
    assert_eq!(server.events(&client, before), ["invoice.created", "document.draft"]);

    let item = client.get("/v1/invoices").data()[0].clone();
    assert_eq!(keys_of(&item), LISTED);
    let path = format!("/v1/invoices/{}", made.id());
    let patched = client
        .patch(
            &path,
            json!({"title": "Other", "rows": [{"name": "x", "unit_price": 0.005, "quantity": 1, "vat_rate": 0}]}),
        )
        .expect(200)
        .data();
    assert_eq!((&patched["title"], &patched["total_incl_vat"]), (&json!("Other"), &json!(0.01)));
    let gone = client.delete(&path).expect(200).data();
    assert_eq!(gone["rows"][0]["description"], "");
    assert_eq!(client.get(&path).status, 404);
    let order = client.post("/v1/workorders", json!({"title": "w"})).expect(201);
    assert_eq!(order.json()["meta"]["warnings"], json!(["The document has no client.", "The document has no rows."]));
    client.delete(&format!("/v1/workorders/{}", order.id())).expect(204);
}

fn row_errors_have_the_index_of_their_row(server: Shared) {
    let client = server.client();
    let firm = company(&client);
    let rows =
        json!([{"name": "ok"}, {"quantity": "x", "unit_price": 1.1234567, "zz": 1}, 7, {"name": "n", "vat_rate": 120}]);
    assert_eq!(
        client.post("/v1/invoices", json!({"rows": rows})).expect(422).faults(),
        [
            "rows[1].quantity: wrong_type",
            "rows[1].unit_price: too_precise",
            "rows[1].zz: unknown_field",
            "rows[2]: wrong_type",
            "rows[3].vat_rate: out_of_range",
            "title: required",
            "rows[1].name: required"
        ]
    );
    let rows = json!([{"name": " "}, {"name": "a", "vat_code": "XX"}, {"name": "b", "product_id": "nope"}]);
    assert_eq!(
        client.post("/v1/invoices", json!({"title": "t", "client_id": firm, "rows": rows})).expect(422).faults(),
        ["rows[0].name: required", "rows[1].vat_code: reference_not_found", "rows[2].product_id: reference_not_found"]
    );
    let large = json!({"title": "t", "rows": [{"name": "a", "quantity": 999999999, "unit_price": 999999999}]});
    assert_eq!(client.post("/v1/invoices", large).expect(422).faults(), ["rows[0].quantity: out_of_range"]);
    let mut wrong = body(&firm);
    wrong["total_incl_vat"] = json!(180);
    wrong["subtotal"] = json!(150.01);
    wrong["rows"][0]["total_excl_vat"] = json!(90);
    assert_eq!(
        client.post("/v1/invoices", wrong.clone()).expect(422).faults(),
        ["rows[0].total_excl_vat: totals_mismatch"]
    );
    wrong["rows"][0]["total_excl_vat"] = json!(100);
    assert_eq!(client.post("/v1/invoices", wrong).expect(422).faults(), ["total_incl_vat: totals_mismatch"]);
    for (field, value, fault) in [
        ("client_id", json!("nope"), "client_id: reference_not_found"),
        ("client_external_id", json!("nope"), "client_external_id: reference_not_found"),
        ("due_date", json!("2026-05-03"), "due_date: out_of_range"),
        ("generation_mode", json!("maybe"), "generation_mode: invalid_choice"),
        ("rows", json!(vec![json!({"name": "x"}); 1001]), "rows: too_long"),
        ("number", json!("DRAFT-1"), "number: invalid_format"),
        ("paid_at", json!("2026-05-04T09:30:00Z"), "paid_at: read_only"),
        ("payed_at", json!(1), "payed_at: unknown_field"),
    ] {
        let mut wrong = body(&firm);
        wrong[field] = value;
        assert_eq!(client.post("/v1/invoices", wrong).expect(422).faults(), [fault]);
    }
    let other = client.post("/v1/clients", json!({"company_name": "Other"})).expect(201).id();
    let both = json!({"title": "t", "client_id": other, "client_external_id": "C-1"});
    assert_eq!(client.post("/v1/invoices", both).expect(422).faults(), ["client_external_id: invalid_choice"]);
    assert_eq!(
        client.post("/v1/invoices", json!({"title": "t", "client_external_id": "C-1"})).expect(201).data()["client_id"],
        json!(firm)
    );
    let product = client
        .post("/v1/products", json!({"name": "Tap", "price": 12.5, "vat_rate": "9", "unit": "piece"}))
        .expect(201)
        .id();
    let made = client
        .post("/v1/invoices", json!({"title": "t", "rows": [{"product_id": product, "quantity": 2}]}))
        .expect(201)
        .data();
    assert_eq!(
        (&made["rows"][0]["name"], &made["rows"][0]["unit"], &made["total_incl_vat"]),
        (&json!("Tap"), &json!("piece"), &json!(27.25))
    );
    let total =
        client.post("/v1/invoices", json!({"title": "Lump", "total_incl_vat": 121, "vat_rate": 21})).expect(201).data();
    assert_eq!(
        (&total["rows"][0]["name"], &total["total_excl_vat"], &total["vat_rate"]),
        (&json!("Lump"), &json!(100), &json!(21))
    );
}

fn numbers_have_no_gaps(server: Shared) {
    let client = server.client();
    let firm = company(&client);
    let make = |mode: &str| {
        let mut body = body(&firm);
        body["generation_mode"] = json!(mode);
        client.post("/v1/invoices", body).expect(201)
    };
    let first = make("final");
    assert_eq!(
        (&first.data()["number"], &first.data()["payment_status"], &first.data()["pdf"]["status"]),
        (&json!("F2026-0001"), &json!("open"), &json!("pending"))
    );
    let draft = make("draft");
    let second = client.act(&format!("/v1/invoices/{}/finalize", draft.id())).expect(200).data();
    assert_eq!(second["number"], "F2026-0002");
    let ahead =
        |query: &str| client.get(&format!("/v1/invoices/next-number{query}")).expect(200).data()["number"].clone();
    assert_eq!((ahead(""), ahead("?date=2025-03-01")), (json!("F2026-0003"), json!("F2025-0001")));
    assert_eq!(ahead(""), "F2026-0003", "it is not reserved");
    assert_eq!(client.get("/v1/invoices/next-number?date=soon").expect(422).faults(), ["date: invalid_format"]);
    assert_eq!(client.get("/v1/quotes/next-number").expect(200).data()["number"], "Q2026-0001");
    assert_eq!(client.act(&format!("/v1/invoices/{}/finalize", draft.id())).expect(200).data()["number"], "F2026-0002");
    let third = client
        .patch(&format!("/v1/invoices/{}", make("draft").id()), json!({"generation_mode": "final"}))
        .expect(200)
        .data();
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
    assert_eq!(ahead(""), "F2026-0005");
    assert_eq!(make("final").data()["number"], "F2026-0005", "a number set by a caller is skipped");
    let mut old = body(&firm);
    old["invoice_date"] = json!("2025-12-31");
    old["generate"] = json!(true);
    assert_eq!(client.post("/v1/invoices", old).expect(201).data()["number"], "F2025-0001");
    assert_eq!(
        client.post("/v1/quotes", json!({"title": "q", "generate": true})).expect(201).data()["number"],
        "Q2026-0001"
    );
    assert_eq!(
        client.post("/v1/workorders", json!({"title": "w", "generate": true})).expect(201).data()["number"],
        "W2026-0001"
    );

    std::thread::scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|| make("final"));
        }
    });
    let list = client.get("/v1/invoices?per_page=100&date_from=2026-01-01").json();
    let numbers: HashSet<String> =
        list["data"].as_array().unwrap().iter().map(|item| item["number"].as_str().unwrap().to_string()).collect();
    assert_eq!(numbers, (1..=55).map(|n| format!("F2026-{n:04}")).collect());
}

fn a_final_document_is_locked(server: Shared) {
    let client = server.client();
    let firm = company(&client);
    let mut body = body(&firm);
    body["generate"] = json!(true);
    let made = client.post("/v1/invoices", body).expect(201);
    let path = format!("/v1/invoices/{}", made.id());
    for change in
        [json!({"rows": []}), json!({"client_id": ""}), json!({"generation_mode": "draft"}), json!({"notes": "x"})]
    {
        assert_eq!(client.patch(&path, change.clone()).expect(409).code(), "locked", "{change}");
    }
    assert_eq!(client.delete(&path).expect(409).code(), "document_not_draft");
    client.patch(&format!("/v1/clients/{firm}"), json!({"company_name": "New name"})).expect(200);
    assert_eq!(
        client.get(&path).data()["client_company_name"],
        "Bakkerij De Ster",
        "the document keeps its client as it was"
    );
    let changed = client.patch(&path, json!({"title": "Better", "due_date": "2026-05-20"})).expect(200).data();
    assert_eq!((&changed["title"], &changed["meta"]["revision"]), (&json!("Better"), &json!(2)));
    assert_eq!(client.patch(&path, json!({"due_date": "2026-01-01"})).expect(422).faults(), ["due_date: out_of_range"]);
    assert_eq!(client.patch(&path, json!({"due_date": null})).expect(422).faults(), ["due_date: required"]);
    assert_eq!(
        client.patch(&path, json!({"payment_status": "in dispute"})).expect(200).data()["payment_status"],
        "in dispute"
    );
    let before = server.last_seq(&client);
    for _ in 0..2 {
        let paid = client.patch(&path, json!({"payment_status": "paid"})).expect(200).data();
        assert_eq!(paid["paid_at"], "2026-05-04T10:00:00.000Z");
    }
    assert_eq!(server.events(&client, before), ["invoice.updated", "invoice.paid", "customer.first_invoice_paid"]);
    assert_eq!(client.patch(&path, json!({"payment_status": "open"})).expect(200).data()["paid_at"], json!(null));
}

fn the_pdf_is_stored_per_revision(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let firm = company(&client);
    let draft = client.post("/v1/invoices", body(&firm)).expect(201);
    let path = format!("/v1/invoices/{}", draft.id());
    let pdf = |path: &str| client.get(&format!("{path}/pdf/content")).expect(200);
    let first = pdf(&path);
    assert!(first.bytes.starts_with(b"%PDF-") && first.header("content-type") == "application/pdf");
    assert_eq!(client.get("/v1/files").json()["meta"]["total"], 0, "the PDF of a draft is not stored");
    client.act(&format!("{path}/finalize")).expect(200);
    let shown = client.get(&format!("{path}/pdf")).expect(200).data();
    assert_eq!((keys_of(&shown), &shown["id"]), (vec!["id", "pdf_url"], &json!(draft.id())));
    let url = shown["pdf_url"].as_str().unwrap().strip_prefix(&client.base).unwrap().to_string();
    let one = client.send("GET", &url, &[("authorization", "")], "").expect(200);
    assert_eq!(one.header("content-disposition"), "inline; filename*=UTF-8''F2026-0001.pdf");
    work_off(&server);
    let files = client.get("/v1/files").json();
    assert_eq!((&files["meta"]["total"], &files["data"][0]["name"]), (&json!(1), &json!("F2026-0001.pdf")));
    assert_eq!(pdf(&path).bytes, one.bytes, "the same bytes, however it was created");
    let file = format!("/v1/files/{}", files["data"][0]["id"].as_str().unwrap());
    assert_eq!(client.get(&format!("{file}/content")).bytes, one.bytes);
    assert_eq!(client.delete(&file).expect(409).code(), "in_use");
    client.patch(&path, json!({"title": "Second"})).expect(200);
    work_off(&server);
    let second = pdf(&path);
    assert_ne!(second.bytes, one.bytes);
    assert_eq!(client.get("/v1/files").json()["meta"]["total"], 2);
    assert_eq!(client.get(&format!("{file}/content")).bytes, one.bytes, "the earlier revision is kept");
    let revisions = client.get(&format!("{path}/revisions")).expect(200).json();
    assert_eq!((&revisions["meta"]["total"], &revisions["data"][1]["revision"]), (&json!(2), &json!(2)));
    let waiting =
        server.app.store.read_now(|tx| tx.int("SELECT count(*) FROM jobs WHERE state <> 'done'", &[])).unwrap();
    assert_eq!(waiting, 0, "no job is left behind");
}

/// A draft has no copy of its client and identity: it is printed with what they are.
fn a_draft_is_printed_with_its_client_of_that_moment(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let firm = company(&client);
    let path = format!("/v1/invoices/{}", client.post("/v1/invoices", body(&firm)).expect(201).id());
    let pdf = || client.get(&format!("{path}/pdf/content")).expect(200).bytes;
    let first = pdf();
    client.patch(&format!("/v1/clients/{firm}"), json!({"city": "Elsewhere"})).expect(200);
    assert_ne!(pdf(), first);
    let identity = client.get("/v1/corporate-identities").data()[0]["id"].as_str().unwrap().to_string();
    client.patch(&format!("/v1/corporate-identities/{identity}"), json!({"name": "Loodgieters van Dam"})).expect(200);
    let preview = json!({"send_type": "invoice", "document_id": path.rsplit('/').next()});
    let mail = client.post("/v1/mail-templates/preview", preview).expect(200).text;
    assert!(mail.contains("Loodgieters van Dam"), "{mail}");
    client.act(&format!("{path}/finalize")).expect(200);
    let printed = pdf();
    client.patch(&format!("/v1/clients/{firm}"), json!({"city": "Far away"})).expect(200);
    assert_eq!(pdf(), printed, "a final document keeps its client");
    // As while the documents of a deleted client are being changed.
    let other = client.post("/v1/invoices", body(&firm)).expect(201).id();
    let gone = "UPDATE invoices SET client_id = 'gone' WHERE generation_mode = 'draft'";
    server.app.store.write_now(0, |tx| tx.execute(gone, &[])).unwrap();
    client.get(&format!("/v1/invoices/{other}/pdf/content")).expect(200);
}

/// The job stores what a later revision changes, and reads the rest from the document.
fn a_late_job_prints_its_own_revision(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let mut sent = body(&company(&client));
    sent["generation_mode"] = json!("final");
    let path = format!("/v1/invoices/{}", client.post("/v1/invoices", sent).expect(201).id());
    let first = client.get(&format!("{path}/pdf/content")).expect(200).bytes;
    client.patch(&path, json!({"title": "Second", "due_date": "2026-12-31"})).expect(200);
    let second = client.get(&format!("{path}/pdf/content")).expect(200).bytes;
    assert_ne!(first, second);
    // As if nobody had asked for them before the jobs run.
    server.app.store.write_now(0, |tx| tx.execute("DELETE FROM document_pdfs", &[])).unwrap();
    work_off(&server);
    let revisions = client.get(&format!("{path}/revisions")).expect(200).data();
    let content = |place: usize| {
        let file = revisions[place]["file_id"].as_str().unwrap();
        client.get(&format!("/v1/files/{file}/content")).expect(200).bytes
    };
    assert_eq!((content(0) == first, content(1) == second), (true, true));
}

fn a_deleted_product_leaves_its_name_in_rows(server: Shared) {
    let client = server.client();
    let product = client.post("/v1/products", json!({"name": "Tap", "price": 12.5})).expect(201).id();
    let rows = json!([{"product_id": product}, {"name": "other"}]);
    let draft =
        format!("/v1/invoices/{}", client.post("/v1/invoices", json!({"title": "t", "rows": rows})).expect(201).id());
    let done = format!(
        "/v1/invoices/{}",
        client.post("/v1/invoices", json!({"title": "t", "rows": rows, "generate": true})).expect(201).id()
    );
    client.delete(&format!("/v1/products/{product}")).expect(204);
    let row = |path: &str| client.get(path).data()["rows"][0].clone();
    assert_eq!((&row(&draft)["name"], &row(&draft)["product_id"]), (&json!("Tap"), &json!("")));
    assert_eq!((&row(&done)["name"], &row(&done)["product_id"]), (&json!("Tap"), &json!(product)));
}

fn lists_of_documents_have_every_filter(server: Shared) {
    let client = server.client();
    let firm = company(&client);
    for n in 1..=3 {
        let date = format!("2026-0{n}-15");
        let body = json!({"title": format!("Job {n}"), "client_id": firm, "invoice_date": date, "generate": n > 1, "external_id": format!("e-{n}"), "rows": [{"name": "x", "unit_price": n}]});
        client.post("/v1/invoices", body).expect(201);
    }
    for (query, total) in [
        ("date_from=2026-02-01", 2),
        ("date_to=2026-02-15", 2),
        ("date_from=2026-02-15&date_to=2026-02-15", 1),
        ("due_date_from=2026-04-01", 1),
        ("due_date_to=2026-02-20", 1),
        ("created_from=2026-05-04&created_to=2026-05-04", 3),
        ("payment_status=open", 2),
        ("payment_status=draft", 1),
        ("search=job%202", 1),
        ("search=BAKKERIJ", 3),
        ("search=anna@ster", 3),
        ("search=e-3", 1),
        ("number=F2026-0002", 1),
        (&format!("client_id={firm}"), 3),
        ("client_id=x", 0),
        ("payment_status=nonsense", 0),
    ] {
        assert_eq!(client.get(&format!("/v1/invoices?{query}")).expect(200).json()["meta"]["total"], total, "{query}");
    }
    assert_eq!(client.get("/v1/invoices?date_from=2026").expect(422).faults(), ["date_from: invalid_format"]);
    let by = |sort: &str| -> Vec<Value> {
        client
            .get(&format!("/v1/invoices?sort={sort}&order=asc"))
            .expect(200)
            .data()
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["title"].clone())
            .collect()
    };
    assert_eq!(by("total_incl_vat"), ["Job 1", "Job 2", "Job 3"]);
    assert_eq!(by("invoice_date"), ["Job 1", "Job 2", "Job 3"]);
}

impl crate::support::Reply {
    /// Returns the status of crediting an invoice with this body.
    fn map_credit(self, client: &Client) -> u16 {
        client.act(&format!("/v1/invoices/{}/credit", self.id())).status
    }
}
