//! One response lists everything that is wrong with a body: fields, rows and ids that do not exist.

use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Db, Server, Shared};

on_both![
    a_document_lists_all_errors,
    a_subscription_lists_all_errors,
    unknown_ids_do_not_hide_invalid_fields,
    settings_list_all_errors,
    a_ticket_lists_all_errors,
    a_flow_lists_all_errors,
    private_addresses_do_not_hide_other_errors,
    errors_suggest_what_was_meant,
    bodies_with_two_errors_list_both,
];

const NOBODY: &str = "00000000-0000-7000-8000-000000000000";

fn a_document_lists_all_errors(server: Shared) {
    let client = server.client();
    let body = json!({"title": "", "client_id": NOBODY, "project_id": NOBODY, "due_date": "soon", "custom_fields": {"size": "L"},
    "rows": [
        {"name": "a", "quantity": "many", "product_id": NOBODY},
        {"title": "b", "vat_code": "XX"},
        {"unit_price": 1},
        {"name": "d", "unit_pirce": 1},
        7,
    ]});
    let expected = [
        "title: required",
        "due_date: invalid_format",
        "rows[0].quantity: wrong_type",
        "rows[3].unit_pirce: unknown_field",
        "rows[4]: wrong_type",
        "client_id: reference_not_found",
        "project_id: reference_not_found",
        "rows[0].product_id: reference_not_found",
        "rows[1].vat_code: reference_not_found",
        "rows[2].name: required",
        "custom_fields.size: unknown_field",
    ];
    let before = server.last_seq(&client);
    for path in ["/v1/invoices", "/v1/quotes", "/v1/workorders"] {
        let refused = client.post(path, body.clone()).expect(422);
        let mut faults = refused.faults();
        let mut wanted = expected.map(str::to_string).to_vec();
        faults.sort();
        wanted.sort();
        assert_eq!(faults, wanted, "{path}");
        let details = refused.json()["error"]["details"].clone();
        let guess =
            details.as_array().unwrap().iter().find(|one| one["field"] == "rows[3].unit_pirce").unwrap().clone();
        assert_eq!(guess["message"], "is not a known field of a row; did you mean 'unit_price'?");
    }
    // Each alone, and in pairs.
    let faults = |body: Value| client.post("/v1/invoices", body).expect(422).faults();
    assert_eq!(
        faults(json!({"title": "x", "client_external_id": "nobody", "rows": [{"name": "a", "vat_code": "XX"}]})),
        ["client_external_id: reference_not_found", "rows[0].vat_code: reference_not_found"]
    );
    assert_eq!(
        faults(json!({"title": "x", "client_id": NOBODY, "rows": [{"unit_price": 1}]})),
        ["client_id: reference_not_found", "rows[0].name: required"]
    );
    assert_eq!(
        faults(json!({"title": "x", "rows": 7, "deal_id": NOBODY})),
        ["rows: wrong_type", "deal_id: reference_not_found"]
    );
    // A key that was used before takes precedence.
    let key = [("idempotency-key", "k")];
    client.send("POST", "/v1/invoices", &key, &json!({"title": "x"}).to_string()).expect(201);
    let reused = client.send("POST", "/v1/invoices", &key, &body.to_string()).expect(422);
    assert_eq!(reused.code(), "idempotency_key_reused");

    let path = format!("/v1/invoices/{}", client.post("/v1/invoices", json!({"title": "x"})).expect(201).id());
    let refused =
        client.patch(&path, json!({"client_id": NOBODY, "due_date": "soon", "rows": [{"quantity": 1}]})).expect(422);
    assert_eq!(
        refused.faults(),
        ["due_date: invalid_format", "client_id: reference_not_found", "rows[0].name: required"]
    );
    client.patch("/v1/invoices/nobody", json!({"title": ""})).expect(422);
    let made = server.events(&client, before);
    assert!(made.iter().all(|name| name == "invoice.created" || name == "document.draft"), "{made:?}");
}

fn a_subscription_lists_all_errors(server: Shared) {
    let client = server.client();
    let body = json!({"client_id": NOBODY, "title": "x", "day_of_month": 40, "lines": [
        {"title": "a", "quantity": "many"}, {"title": "b", "product_id": NOBODY}, {"titel": "c"}]});
    let mut faults = client.post("/v1/subscriptions", body).expect(422).faults();
    faults.sort();
    assert_eq!(
        faults,
        [
            "client_id: reference_not_found",
            "day_of_month: out_of_range",
            "lines[0].quantity: wrong_type",
            "lines[1].product_id: reference_not_found",
            "lines[2].titel: unknown_field",
            "lines[2].title: required"
        ]
    );
    let made = client.post("/v1/subscriptions", json!({"title": "x", "lines": [{"title": "a"}]})).expect(201).id();
    let refused = client
        .patch(
            &format!("/v1/subscriptions/{made}"),
            json!({"day_of_month": 40, "lines": [{"title": "a", "vat_code": "XX"}]}),
        )
        .expect(422);
    assert_eq!(refused.faults(), ["day_of_month: out_of_range", "lines[0].vat_code: reference_not_found"]);
}

fn unknown_ids_do_not_hide_invalid_fields(server: Shared) {
    let client = server.client();
    let refused =
        client.post("/v1/tasks", json!({"client_id": NOBODY, "deadline": "soon", "deal_id": NOBODY})).expect(422);
    assert_eq!(
        refused.faults(),
        [
            "deadline: invalid_format",
            "title: required",
            "client_id: reference_not_found",
            "deal_id: reference_not_found"
        ]
    );
    let task = client.post("/v1/tasks", json!({"title": "x"})).expect(201).id();
    let refused = client.patch(&format!("/v1/tasks/{task}"), json!({"title": "", "assignee_id": NOBODY})).expect(422);
    assert_eq!(refused.faults(), ["title: required", "assignee_id: reference_not_found"]);
    let refused = client.post("/v1/tickets", json!({"subject": "", "client_id": NOBODY})).expect(422);
    assert_eq!(refused.faults(), ["subject: required", "client_id: reference_not_found"]);
    assert_eq!(client.get("/v1/tasks").json()["meta"]["total"], 1);
}

fn settings_list_all_errors(server: Shared) {
    let client = server.client();
    let body = json!({"mail_dys": [], "mail_days": ["maandag"], "default_vat_code": "XX", "payment_term": "soon",
        "mail_hours_from": "8:00", "provider": "paypal", "creditor_id": "x"});
    let mut faults = client.patch("/v1/settings", body).expect(422).faults();
    faults.sort();
    assert_eq!(
        faults,
        [
            "creditor_id: invalid_format",
            "default_vat_code: reference_not_found",
            "mail_days: invalid_choice",
            "mail_dys: unknown_field",
            "mail_hours_from: invalid_format",
            "payment_term: wrong_type",
            "provider: invalid_choice",
        ]
    );
    let empty = client.patch("/v1/settings", json!({})).expect(422);
    assert_eq!(empty.faults(), ["body: no_fields"]);
    assert_eq!(client.get("/v1/settings").data()["payment_term"], 14);
}

fn a_ticket_lists_all_errors(server: Shared) {
    let client = server.client();
    let refused = |body: Value| client.post("/v1/tickets", body).expect(422);
    assert_eq!(
        refused(json!({"subject": "s", "client_id": NOBODY, "status": "Opn"})).faults(),
        ["client_id: reference_not_found", "status: invalid_choice"]
    );
    let unknown = refused(json!({"subject": "s", "statsu": "x", "status": "Opn"}));
    assert_eq!(unknown.faults(), ["statsu: unknown_field", "status: invalid_choice"]);
    assert!(unknown.text.contains("New, Open, Waiting, Closed; did you mean 'Open'?"), "{}", unknown.text);
    let ticket = client.post("/v1/tickets", json!({"subject": "s", "status": "open"})).expect(201);
    assert_eq!(ticket.data()["status"], "Open");
    let path = format!("/v1/tickets/{}", ticket.id());
    assert_eq!(
        client.patch(&path, json!({"subject": "", "status": "Dnoe", "assignee_id": NOBODY})).expect(422).faults(),
        ["subject: required", "assignee_id: reference_not_found", "status: invalid_choice"]
    );
    client.patch(&path, json!({"status": "closed"})).expect(200);
}

fn a_flow_lists_all_errors(server: Shared) {
    let client = server.client();
    let steps = json!([
        {"type": "create_task", "title": "x", "titel": "x"},
        {"type": "create_task", "title": "x", "duration_minutes": "long"},
        {"type": "update", "fields": {"due_date": "soon"}},
        {"type": "send_email", "to": "nobody", "subject": "s", "body": "b"},
    ]);
    let flow = json!({"name": "x", "trigger_type": "event", "trigger_key": "invoice.paid", "steps": steps});
    let mut faults = client.post("/v1/automation/flows", flow).expect(422).faults();
    faults.sort();
    assert_eq!(
        faults,
        [
            "steps[0].titel: unknown_field",
            "steps[1].duration_minutes: wrong_type",
            "steps[2].fields.due_date: invalid_format",
            "steps[3].to: invalid_format",
        ]
    );
    // Each says what to write instead, and a template says all that is wrong with it.
    let steps = json!([
        {"type": "create_task", "title": "{{ data.title | uper }} {% set x = 1 %} {{ data.number | lowr }}"},
        {"type": "create_task", "title": "x", "deadline": "3 days"},
    ]);
    let flow = json!({"name": "x", "trigger_type": "event", "trigger_key": "invoice.paid", "steps": steps});
    let refused = client.post("/v1/automation/flows", flow).expect(422);
    for said in [
        "uses the unknown filter 'uper'; did you mean 'upper'?; it uses the tag 'set'; supported tags are",
        "it uses the unknown filter 'lowr'; did you mean 'lower'?",
        "must be a date in the format YYYY-MM-DD, or a duration such as P3D",
    ] {
        assert!(refused.text.contains(said), "{said}: {}", refused.text);
    }
    let number = json!({"company_name": "x", "vat_number": "NL123456789B01"});
    let refused = client.post("/v1/clients", number).expect(422);
    assert!(refused.text.contains("'vat_number' has check digits that do not match"), "{}", refused.text);
}

fn private_addresses_do_not_hide_other_errors(db: Db) {
    let server = Server::with(db, |config| config.allow_private_addresses.clear());
    let client = server.client();
    let endpoint = json!({"url": "http://10.0.0.1/hook", "events": ["no event"], "activ": true});
    let refused = client.post("/v1/webhook-endpoints", endpoint).expect(422);
    assert_eq!(refused.faults(), ["activ: unknown_field", "events: invalid_format", "url: invalid_format"]);
    assert!(refused.text.contains("cannot be called"), "{}", refused.text);
    let odd = client.post("/v1/webhook-endpoints", json!({"url": "here"})).expect(422);
    assert_eq!(odd.faults(), ["url: invalid_format"], "said once");
    let good = json!({"url": "https://boekhouding.example/hook", "events": ["*"]});
    let path = format!("/v1/webhook-endpoints/{}", client.post("/v1/webhook-endpoints", good).expect(201).id());
    let change = json!({"url": "http://127.0.0.1/hook", "events": []});
    let mut faults = client.patch(&path, change).expect(422).faults();
    faults.sort();
    assert_eq!(faults, ["events: required", "url: invalid_format"]);
    let steps = json!([
        {"type": "http", "url": "http://192.168.1.1/{{ data.id }}"},
        {"type": "create_task", "title": "x", "titel": "x"},
        {"type": "http", "url": "http://127.0.0.1/"},
    ]);
    let flow =
        |steps: &Value| json!({"name": "x", "trigger_type": "event", "trigger_key": "invoice.paid", "steps": steps});
    let mut faults = client.post("/v1/automation/flows", flow(&steps)).expect(422).faults();
    faults.sort();
    assert_eq!(
        faults,
        ["steps[0].url: invalid_format", "steps[1].titel: unknown_field", "steps[2].url: invalid_format"]
    );
}

fn errors_suggest_what_was_meant(server: Shared) {
    let client = server.client();
    let lines = json!([{"title": "a"}]);
    for (method, path, body, field, meant) in [
        ("PATCH", "/v1/settings", json!({"mail_days": ["mo"]}), "mail_days", "mon"),
        ("PATCH", "/v1/settings", json!({"provider": "sandbx"}), "provider", "sandbox"),
        (
            "POST",
            "/v1/invoices",
            json!({"title": "x", "rows": [{"name": "a", "price": 1}]}),
            "rows[0].price",
            "unit_price",
        ),
        ("POST", "/v1/invoices", json!({"title": "x", "rows": [{"name": "a", "vat": 21}]}), "rows[0].vat", "vat_rate"),
        (
            "POST",
            "/v1/subscriptions",
            json!({"title": "x", "frequency": "montly", "lines": lines}),
            "frequency",
            "monthly",
        ),
        (
            "POST",
            "/v1/subscriptions",
            json!({"title": "x", "start_date": "2026-06-01", "lines": lines}),
            "start_date",
            "subscription_start",
        ),
        ("POST", "/v1/subscriptions", json!({"title": "x", "term": "monthly", "lines": lines}), "term", "frequency"),
        ("POST", "/v1/clients", json!({"type": "compny", "company_name": "x"}), "type", "company"),
        (
            "POST",
            "/v1/invoices",
            json!({"title": "x", "rows": [{"name": "a", "vat_code": "NL12"}]}),
            "rows[0].vat_code",
            "NL21",
        ),
        ("PATCH", "/v1/settings", json!({"default_vat_code": "NL12"}), "default_vat_code", "NL21"),
        ("POST", "/v1/clients", json!({"type": "Company", "company_name": "x"}), "type", "company"),
    ] {
        let refused = client.send(method, path, &[], &body.to_string()).expect(422);
        let json = refused.json();
        let details = json["error"]["details"].as_array().unwrap();
        assert_eq!((details.len(), &details[0]["field"]), (1, &json!(field)), "{json}");
        let message = details[0]["message"].as_str().unwrap();
        assert!(message.ends_with(&format!("; did you mean '{meant}'?")), "{message}");
    }
}

fn bodies_with_two_errors_list_both(server: Shared) {
    let client = server.client();
    let identity = client.get("/v1/corporate-identities").data()[0]["id"].as_str().unwrap().to_string();
    let identity = format!("/v1/corporate-identities/{identity}");
    let refused = client.patch(&identity, json!({"iban": "x", "logo_file_id": NOBODY})).expect(422);
    assert_eq!(refused.faults(), ["iban: invalid_format", "logo_file_id: reference_not_found"]);
    let refused = client.post("/v1/corporate-identities", json!({"iban": "x", "logo_file_id": NOBODY})).expect(422);
    assert_eq!(refused.faults(), ["iban: invalid_format", "name: required", "logo_file_id: reference_not_found"]);
    let words = client.upload("words.txt", b"words").expect(201).id();
    let mut faults = client.patch(&identity, json!({"iban": "x", "logo_file_id": words})).expect(422).faults();
    faults.sort();
    assert_eq!(faults, ["iban: invalid_format", "logo_file_id: invalid_choice"]);

    let batch = json!({"collection_date": "2020-01-01", "scheme": "cor"});
    let refused = client.post("/v1/direct-debit/batches", batch).expect(422);
    assert_eq!(refused.faults(), ["scheme: invalid_choice", "collection_date: out_of_range"]);

    let preview = json!({"send_type": "invoice", "document_id": "zz", "language": "fr"});
    let refused = client.post("/v1/mail-templates/preview", preview).expect(422);
    assert_eq!(refused.faults(), ["language: invalid_choice", "document_id: reference_not_found"]);
    let preview = json!({"send_type": "invoic", "document_id": "zz"});
    let refused = client.post("/v1/mail-templates/preview", preview).expect(422);
    assert_eq!(refused.faults(), ["send_type: invalid_choice"], "it is not known which document is meant");

    let endpoint = json!({"url": "https://example.com/in", "events": ["*.created", "inv oice", "x*", "invoice.*"]});
    let refused = client.post("/v1/webhook-endpoints", endpoint).expect(422);
    assert_eq!(refused.faults(), ["events: invalid_format"; 3]);
    for odd in ["'*.created'", "'inv oice'", "'x*'"] {
        assert!(refused.text.contains(odd), "{odd}: {}", refused.text);
    }

    client.patch("/v1/settings", json!({"strict_final": true})).expect(200);
    let invoice = json!({"title": "", "generation_mode": "final", "rows": [{"nam": "x"}]});
    let mut faults = client.post("/v1/invoices", invoice).expect(422).faults();
    faults.sort();
    assert_eq!(
        faults,
        ["client_id: required", "rows[0].nam: unknown_field", "rows[0].name: required", "title: required"]
    );
    let draft = json!({"title": "", "rows": [{"name": "x"}]});
    assert_eq!(client.post("/v1/invoices", draft).expect(422).faults(), ["title: required"]);
    let draft = client.post("/v1/invoices", json!({"title": "x"})).expect(201).id();
    let becomes_final = json!({"generation_mode": "final", "rows": [{"nam": "x"}]});
    let mut faults = client.patch(&format!("/v1/invoices/{draft}"), becomes_final).expect(422).faults();
    faults.sort();
    assert_eq!(faults, ["client_id: required", "rows[0].nam: unknown_field", "rows[0].name: required"]);
}
