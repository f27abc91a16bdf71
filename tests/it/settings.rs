//! Settings: the defaults of a new account, and the effects of changes.

use serde_json::{Value, json};

use crate::cli::{kantoor, said};
use crate::on_both;
use crate::server::Binary;
use crate::support::{Client, Db, Shared};

fn column(client: &Client, path: &str, field: &str) -> Vec<Value> {
    client.get(path).expect(200).data().as_array().unwrap().iter().map(|item| item[field].clone()).collect()
}

fn keys_of(data: &Value) -> Vec<&str> {
    data.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The header of a PNG of this size.
fn png(width: u32, height: u32) -> Vec<u8> {
    [&b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"[..], &width.to_be_bytes(), &height.to_be_bytes(), b"\x08\x02\0\0\0"].concat()
}

on_both![
    a_new_account_has_the_dutch_rates,
    one_identity_is_the_default,
    custom_fields_have_values_on_clients,
    email_domains_are_pending_by_default,
    deleting_a_record_clears_links_to_it,
    an_account_is_renamed,
];

fn an_account_is_renamed(db: Db) {
    let binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let client = &binary.client;
    let before = client.get("/v1/account").expect(200).data();
    assert_eq!(keys_of(&before), ["id", "name", "time_zone", "test_clock"]);
    let named = client.patch("/v1/account", json!({"name": " Jansen & Zn "})).expect(200).data();
    assert_eq!((&named["name"], &named["id"]), (&json!("Jansen & Zn"), &before["id"]));
    assert_eq!(client.get("/v1/me").data()["account"]["name"], "Jansen & Zn");
    for (body, fault) in [
        (json!({}), "name: required"),
        (json!({"name": "a\nb"}), "name: invalid_characters"),
        (json!({"name": "x".repeat(256)}), "name: too_long"),
    ] {
        assert_eq!(client.patch("/v1/account", body).expect(422).faults(), [fault]);
    }
    // It is logged once, and verify knows it.
    client.patch("/v1/account", json!({"name": "Jansen & Zn"})).expect(200);
    let lines = client.get("/v1/changes?type=account.updated").data();
    assert_eq!((lines.as_array().unwrap().len(), &lines[0]["data"]["name"]), (1, &json!("Jansen & Zn")));
    drop(binary);
    let verified = said(&kantoor(&db, &["verify"]));
    assert!(!verified.contains("Changed outside the log"), "{verified}");
}

fn a_new_account_has_the_dutch_rates(server: Shared) {
    let client = server.client();
    let rates = client.get("/v1/tax-rates").expect(200);
    assert_eq!(rates.json()["meta"], json!({"total": 12}));
    assert_eq!(keys_of(&rates.data()[0]), ["id", "code", "label", "type", "context", "profile", "amount"]);
    assert_eq!(column(&client, "/v1/tax-rates?context=sales", "code"), ["NL21", "NL9", "NL0", "NLV", "EU", "EX"]);
    assert_eq!(column(&client, "/v1/tax-rates?context=sales", "amount"), [21, 9, 0, 0, 0, 0]);
    assert_eq!(column(&client, "/v1/tax-rates?context=purchase", "profile")[4..], ["eu", "world"]);
    assert_eq!(client.get("/v1/tax-rates?context=other").expect(422).faults(), ["context: invalid_choice"]);
    let made = client.post("/v1/tax-rates", json!({"code": "BE6", "type": "reduced", "amount": 6})).expect(201);
    let path = format!("/v1/tax-rates/{}", made.id());
    assert_eq!(client.post("/v1/tax-rates", json!({"code": "BE6"})).expect(409).code(), "duplicate");
    assert_eq!(client.patch(&path, json!({"code": "NL9"})).expect(409).code(), "duplicate");
    assert_eq!(client.patch(&path, json!({"amount": 100.5})).expect(422).faults(), ["amount: out_of_range"]);
    assert_eq!(client.patch(&path, json!({"type": "export"})).expect(422).faults(), ["amount: out_of_range"]);
    client.patch(&path, json!({"amount": 12.5, "label": "x"})).expect(200);
    client.delete(&path).expect(204);
    assert_eq!(column(&client, "/v1/payment-terms", "days"), [0, 7, 14, 30, 60]);
    let terms = client.get("/v1/payment-terms").data();
    assert_eq!(keys_of(&terms[0]), ["id", "code", "days", "label"]);
}

fn one_identity_is_the_default(server: Shared) {
    let client = server.client();
    let list = client.get("/v1/corporate-identities").data();
    assert_eq!(keys_of(&list[0]), ["id", "name", "primary_color", "secondary_color", "is_default", "updated_at"]);
    assert_eq!((&list[0]["name"], &list[0]["is_default"]), (&json!("Test"), &json!(true)));
    let first = format!("/v1/corporate-identities/{}", list[0]["id"].as_str().unwrap());
    assert_eq!(client.patch(&first, json!({"is_default": false})).expect(422).faults(), ["is_default: invalid_choice"]);
    assert_eq!(client.delete(&first).expect(409).code(), "in_use");
    let second = client
        .post("/v1/corporate-identities", json!({"name": "Two", "is_default": true, "iban": "NL91 ABNA 0417 1643 00"}))
        .expect(201);
    assert_eq!(second.data()["meta"]["iban"], "NL91ABNA0417164300");
    assert_eq!(column(&client, "/v1/corporate-identities", "is_default"), [false, true]);
    client.delete(&first).expect(204);

    let path = format!("/v1/corporate-identities/{}", second.id());
    let words = client.upload("logo.png", b"these are words").expect(201).id();
    assert_eq!(
        client.patch(&path, json!({"logo_file_id": words})).expect(422).faults(),
        ["logo_file_id: invalid_choice"]
    );
    assert_eq!(
        client.patch(&path, json!({"logo_file_id": "nope"})).expect(422).faults(),
        ["logo_file_id: reference_not_found"]
    );
    for (content, fault) in [
        (&b"\x89PNG\r\n\x1a\n"[..], "logo_file_id: invalid_choice"),
        (&b"\xff\xd8\xff\xe0\0\x04JF\xff\xda"[..], "logo_file_id: invalid_choice"),
        (&png(5001, 5000), "logo_file_id: out_of_range"),
        (&png(u32::MAX, u32::MAX), "logo_file_id: out_of_range"),
        (&b"\xff\xd8\xff\xe0\0\x04JF\xff\xc2\0\x11\x08\xff\xff\xff\xff\x03"[..], "logo_file_id: out_of_range"),
    ] {
        let huge = client.upload("logo.png", content).expect(201).id();
        assert_eq!(client.patch(&path, json!({"logo_file_id": huge})).expect(422).faults(), [fault], "{content:?}");
        assert_eq!(
            client.post("/v1/corporate-identities", json!({"name": "x", "logo_file_id": huge})).expect(422).faults(),
            [fault]
        );
    }
    let logo = client.upload("logo.png", &png(5000, 5000)).expect(201).id();
    assert_eq!(
        client.patch(&path, json!({"logo_file_id": logo})).expect(422).faults(),
        ["logo_file_id: invalid_format"]
    );
    let logo = client.upload("logo.png", &crate::typesetting::picture(0)).expect(201).id();
    client.patch(&path, json!({"logo_file_id": logo})).expect(200);
    assert_eq!(client.delete(&format!("/v1/files/{logo}")).expect(409).code(), "in_use");
    client.patch(&path, json!({"logo_file_id": null})).expect(200);
    client.delete(&format!("/v1/files/{logo}")).expect(204);
}

fn custom_fields_have_values_on_clients(server: Shared) {
    let client = server.client();
    let field = |body: Value| client.post("/v1/custom-fields", body);
    assert_eq!(field(json!({"entity": "client", "key": "Bad Key"})).expect(422).faults(), ["key: invalid_format"]);
    assert_eq!(field(json!({"entity": "planet", "key": "k"})).expect(422).faults(), ["entity: invalid_choice"]);
    assert_eq!(
        field(json!({"entity": "client", "key": "k", "type": "select"})).expect(422).faults(),
        ["options: required"]
    );
    assert_eq!(
        field(json!({"entity": "client", "key": "k", "options": ["a"]})).expect(422).faults(),
        ["type: invalid_choice"]
    );
    let text = field(json!({"entity": "client", "key": "nick", "label": "Nickname"})).expect(201);
    assert_eq!(keys_of(&text.data()), ["id", "entity", "key", "label", "type", "options"]);
    field(json!({"entity": "client", "key": "vip", "type": "checkbox"})).expect(201);
    field(json!({"entity": "client", "key": "level", "type": "select", "options": ["gold", "tin"]})).expect(201);
    field(json!({"entity": "supplier", "key": "nick"})).expect(201);
    assert_eq!(field(json!({"entity": "client", "key": "nick"})).expect(409).code(), "duplicate");
    assert_eq!(column(&client, "/v1/custom-fields?entity=supplier", "key"), ["nick"]);
    assert_eq!(client.get("/v1/custom-fields?entity=planet").expect(422).faults(), ["entity: invalid_choice"]);

    let wrong = json!({"company_name": "x", "custom_fields": {"nick": true, "vip": "yes", "level": "lead", "zz": "1"}});
    assert_eq!(
        client.post("/v1/clients", wrong).expect(422).faults(),
        [
            "custom_fields.nick: wrong_type",
            "custom_fields.vip: wrong_type",
            "custom_fields.level: invalid_choice",
            "custom_fields.zz: unknown_field"
        ]
    );
    let made = client
        .post("/v1/clients", json!({"company_name": "x", "custom_fields": {"level": "tin", "nick": "Bob \"x\""}}))
        .expect(201);
    assert_eq!(made.data()["custom_fields"], json!({"nick": "Bob \"x\"", "level": "tin"}));
    let path = format!("/v1/clients/{}", made.id());
    let changed = client.patch(&path, json!({"custom_fields": {"vip": true, "nick": null}})).expect(200).data();
    assert_eq!(changed["custom_fields"], json!({"vip": true, "level": "tin"}), "values that are not sent are kept");
    assert_eq!(client.get(&path).data()["custom_fields"], changed["custom_fields"]);
    let supplier =
        client.post("/v1/suppliers", json!({"company_name": "y", "custom_fields": {"nick": "S"}})).expect(201).data();
    assert_eq!(supplier["custom_fields"], json!({"nick": "S"}));

    let level = column(&client, "/v1/custom-fields?entity=client", "id")[2].as_str().unwrap().to_string();
    client.delete(&format!("/v1/custom-fields/{level}")).expect(204);
    let after = client.patch(&path, json!({"city": "Breda"})).expect(200).data();
    assert_eq!(after["custom_fields"], json!({"vip": true}), "a value is removed with its field at the next change");
}

fn email_domains_are_pending_by_default(server: Shared) {
    let client = server.client();
    let made = client.post("/v1/email-domains", json!({"domain": "Firma.Example.", "subdomain": "mail"})).expect(201);
    let listed = client.get("/v1/email-domains").data()[0].clone();
    assert_eq!(keys_of(&listed), ["id", "domain", "subdomain", "status", "type", "created_at", "updated_at"]);
    assert_eq!((&made.data()["domain"], &made.data()["status"]), (&json!("firma.example"), &json!("pending")));
    assert_eq!(
        client.post("/v1/email-domains", json!({"domain": "no dots"})).expect(422).faults(),
        ["domain: invalid_format"]
    );
    client.post("/v1/email-domains", json!({"domain": "firma.example"})).expect(201);
    assert_eq!(client.post("/v1/email-domains", json!({"domain": "firma.example"})).expect(409).code(), "duplicate");
    let patch = client.patch(&format!("/v1/email-domains/{}", made.id()), json!({"status": "verified"}));
    assert_eq!(patch.expect(422).faults(), ["status: read_only"]);
    server.execute("UPDATE email_domains SET status = 'verified', verified_by = 'operator' WHERE subdomain = 'mail'");
    for (query, total) in [("", 2), ("?status=all", 2), ("?status=verified", 1), ("?status=pending", 1)] {
        assert_eq!(client.get(&format!("/v1/email-domains{query}")).json()["meta"]["total"], total, "{query}");
    }
    assert_eq!(client.get("/v1/email-domains?status=maybe").expect(422).faults(), ["status: invalid_choice"]);
}

fn deleting_a_record_clears_links_to_it(server: Shared) {
    let client = server.client();
    let firm = client.post("/v1/clients", json!({"company_name": "x"})).expect(201).id();
    let deal = client.post("/v1/deals", json!({"title": "d", "client_id": firm})).expect(201).id();
    let task = client.post("/v1/tasks", json!({"title": "t", "deal_id": deal})).expect(201).id();
    let note = client.post("/v1/notes", json!({"body": "n", "deal_id": deal})).expect(201).id();
    let before = server.last_seq(&client);
    client.delete(&format!("/v1/deals/{deal}")).expect(200);
    assert_eq!(client.get(&format!("/v1/tasks/{task}")).data()["meta"]["deal_id"], "");
    assert_eq!(client.get(&format!("/v1/notes/{note}")).data()["meta"]["deal_id"], "");
    let mut events = server.events(&client, before);
    events.sort();
    assert_eq!(events, ["deal.deleted", "note.updated", "task.updated"]);
}
