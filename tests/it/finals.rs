//! What a final document should have, and what its page and its PDF say.

use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Reply, Shared};

on_both![
    rows_without_a_rate_get_the_default,
    the_default_rate_follows_its_code,
    a_final_document_warns_of_what_it_lacks,
    a_strict_account_rejects_what_is_missing,
    a_subscription_warns_of_lines_without_a_rate,
    a_document_is_printed_in_the_words_of_its_language,
    a_workorder_has_no_payment_term,
];

fn warnings(reply: &Reply) -> Vec<String> {
    let warnings = reply.json()["meta"]["warnings"].clone();
    serde_json::from_value(warnings).unwrap_or_default()
}

fn rates(document: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_string();
    document["rows"].as_array().unwrap().iter().map(|row| (text(&row["vat_code"]), text(&row["vat_rate"]))).collect()
}

fn rows_without_a_rate_get_the_default(server: Shared) {
    let client = server.client();
    for code in ["NL20", "NL21-P"] {
        let refused = client.patch("/v1/settings", json!({"default_vat_code": code})).expect(422);
        assert_eq!(refused.faults(), ["default_vat_code: reference_not_found"]);
    }
    let settings = client.patch("/v1/settings", json!({"default_vat_code": "nl21"})).expect(200).data();
    assert_eq!(settings["default_vat_code"], "NL21");
    let rows = json!([{"name": "a", "unit_price": 100}, {"name": "b", "unit_price": 100, "vat_rate": 0},
        {"name": "c", "unit_price": 100, "vat_code": "NLV"}]);
    let made = client.post("/v1/invoices", json!({"title": "t", "generate": true, "rows": rows})).expect(201);
    let of = |code: &str, rate: &str| (code.to_string(), rate.to_string());
    assert_eq!(rates(&made.data()), [of("NL21", "21"), of("", "0"), of("NLV", "0")]);
    assert_eq!(warnings(&made), ["The document has no client."]);
    // The rate of the document comes first, and totals that say there is no VAT are believed.
    let rows = json!([{"name": "a", "unit_price": 100}]);
    let own = client.post("/v1/quotes", json!({"title": "t", "vat_rate": 9, "rows": rows})).expect(201).data();
    assert_eq!(rates(&own), [of("", "9")]);
    for (totals, rate) in [
        (json!({"total_excl_vat": 100}), of("NL21", "21")),
        (json!({"total_incl_vat": 121}), of("NL21", "21")),
        (json!({"total_excl_vat": 100, "total_incl_vat": 100}), of("", "0")),
    ] {
        let mut body = json!({"title": "t"});
        body.as_object_mut().unwrap().extend(totals.as_object().unwrap().clone());
        assert_eq!(rates(&client.post("/v1/invoices", body).expect(201).data()), [rate], "{totals}");
    }
    let lines = json!([{"title": "l", "unit_price": 10}]);
    let subscription =
        client.post("/v1/subscriptions", json!({"title": "s", "subscription_start": "2026-06-01", "lines": lines}));
    assert_eq!(subscription.expect(201).data()["vat_rate"], 21);
    let rate = client.get("/v1/tax-rates").data();
    let rate = rate.as_array().unwrap().iter().find(|rate| rate["code"] == "NL21").unwrap().clone();
    let path = format!("/v1/tax-rates/{}", rate["id"].as_str().unwrap_or_default());
    if rate["id"].is_string() {
        assert_eq!(client.delete(&path).expect(409).code(), "in_use");
    }
}

fn the_default_rate_follows_its_code(server: Shared) {
    let client = server.client();
    client.patch("/v1/settings", json!({"default_vat_code": "NL21"})).expect(200);
    let rates_now = client.get("/v1/tax-rates").data();
    let rate = rates_now.as_array().unwrap().iter().find(|rate| rate["code"] == "NL21").unwrap().clone();
    let path = format!("/v1/tax-rates/{}", rate["id"].as_str().unwrap());
    let before = server.last_seq(&client);
    client.patch(&path, json!({"code": "NL21X"})).expect(200);
    assert_eq!(client.get("/v1/settings").data()["default_vat_code"], "NL21X");
    assert_eq!(server.events(&client, before), ["tax_rate.updated", "settings.updated"]);
    let rows = json!([{"name": "a", "unit_price": 100}]);
    let made = client.post("/v1/invoices", json!({"title": "t", "generate": true, "rows": rows})).expect(201).data();
    assert_eq!(rates(&made), [("NL21X".to_string(), "21".to_string())]);
    // It stays a rate for sales.
    assert_eq!(client.patch(&path, json!({"context": "purchase"})).expect(409).code(), "in_use");
    let before = server.last_seq(&client);
    client.patch(&path, json!({"label": "Hoog"})).expect(200);
    assert_eq!(server.events(&client, before), ["tax_rate.updated"]);
}

fn a_final_document_warns_of_what_it_lacks(server: Shared) {
    let client = server.client();
    let no_rate = "Row 1 ('a') names no VAT rate, so it has 0%. Send vat_code or vat_rate, or set default_vat_code in the settings.";
    let rows = json!([{"name": "a", "unit_price": 100}, {"name": "b", "unit_price": 1, "vat_rate": "0%"}]);
    let all = ["The document has no client.".to_string(), no_rate.to_string()];
    let draft = json!({"title": "t", "rows": rows});
    for kind in ["invoices", "quotes", "workorders"] {
        let made = |body: &Value| client.post(&format!("/v1/{kind}"), body.clone()).expect(201);
        let path = |made: &Reply| format!("/v1/{kind}/{}", made.id());
        let mut whole = draft.clone();
        whole["generate"] = json!(true);
        assert_eq!(warnings(&made(&whole)), all);
        let empty = made(&json!({"title": "t", "generate": true}));
        assert_eq!(warnings(&empty), ["The document has no client.", "The document has no rows."]);
        let drafted = made(&draft);
        assert_eq!(warnings(&drafted), all[..1], "a draft may lack anything");
        assert_eq!(warnings(&client.act(&format!("{}/finalize", path(&drafted))).expect(200)), all);
        assert_eq!(warnings(&client.act(&format!("{}/finalize", path(&drafted))).expect(200)), [""; 0]);
        let patched = client.patch(&path(&made(&draft)), json!({"generation_mode": "final"})).expect(200);
        assert_eq!(warnings(&patched), all);
        let letter = json!({"to": "a@ster.example", "subject": "s", "message": "m", "include_pdf": false});
        let sent = client.post(&format!("{}/send", path(&made(&draft))), letter).expect(200);
        assert_eq!(warnings(&sent), all);
    }
}

fn a_strict_account_rejects_what_is_missing(server: Shared) {
    let client = server.client();
    client.patch("/v1/settings", json!({"strict_final": true})).expect(200);
    let rows = json!([{"name": "a", "unit_price": 100}]);
    let lacking = json!({"title": "t", "generate": true, "rows": rows});
    let faults = client.post("/v1/invoices", lacking).expect(422).faults();
    assert_eq!(faults, ["client_id: required", "rows[0].vat_code: required"]);
    let draft = client.post("/v1/quotes", json!({"title": "t"})).expect(201).id();
    for path in [format!("/v1/quotes/{draft}/finalize"), format!("/v1/quotes/{draft}/accept")] {
        assert_eq!(client.act(&path).expect(422).faults(), ["client_id: required", "rows: required"]);
    }
    assert_eq!(client.get(&format!("/v1/quotes/{draft}")).data()["payment_status"], "draft");
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let whole = json!({"client_id": firm, "rows": [{"name": "a", "unit_price": 100, "vat_code": "NL21"}]});
    client.patch(&format!("/v1/quotes/{draft}"), whole).expect(200);
    assert_eq!(warnings(&client.act(&format!("/v1/quotes/{draft}/accept")).expect(200)), [""; 0]);
}

fn a_subscription_warns_of_lines_without_a_rate(server: Shared) {
    let client = server.client();
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let lines = json!([{"title": "a", "unit_price": 1, "vat_rate": 0}, {"title": "b", "unit_price": 10}]);
    let body = json!({"client_id": firm, "title": "s", "subscription_start": "2026-05-10", "lines": lines});
    let warned = "Line 2 ('b') names no VAT rate, so it has 0%. Send vat_code or vat_rate, or set default_vat_code in the settings.";
    let made = client.post("/v1/subscriptions", body.clone()).expect(201);
    assert_eq!(warnings(&made), [warned]);
    let path = format!("/v1/subscriptions/{}", made.id());
    assert_eq!(warnings(&client.patch(&path, json!({"lines": lines})).expect(200)), [warned]);
    assert_eq!(warnings(&client.patch(&path, json!({"title": "t"})).expect(200)), [""; 0]);
    client.patch("/v1/settings", json!({"strict_final": true})).expect(200);
    for reply in [client.post("/v1/subscriptions", body.clone()), client.patch(&path, json!({"lines": lines}))] {
        assert_eq!(reply.expect(422).faults(), ["lines[1].vat_code: required"]);
    }
    client.patch(&path, json!({"title": "u"})).expect(200);
    // What was saved before is invoiced all the same.
    client.post("/v1/test-clock/advance", json!({"to": "2026-05-11T10:00:00Z"})).expect(200);
    let invoices = client.get(&format!("{path}/invoices")).expect(200).data();
    assert_eq!((invoices[0]["title"].as_str(), invoices[0]["payment_status"].as_str()), (Some("u"), Some("open")));
    // Somebody looks at a draft before it becomes final.
    client.patch("/v1/settings", json!({"subscription_generation": "draft"})).expect(200);
    assert_eq!(warnings(&client.post("/v1/subscriptions", body.clone()).expect(201)), [warned]);
    client.patch("/v1/settings", json!({"subscription_generation": "final_and_send"})).expect(200);
    client.post("/v1/subscriptions", body.clone()).expect(422);
    client.patch("/v1/settings", json!({"default_vat_code": "NL21"})).expect(200);
    assert_eq!(warnings(&client.post("/v1/subscriptions", body).expect(201)), [""; 0]);
}

fn page(client: &Client, document: &Value) -> String {
    let url = document["web_url"].as_str().unwrap();
    client.send("GET", &url[url.find("/d/").unwrap()..], &[("authorization", "")], "").expect(200).text
}

fn a_document_is_printed_in_the_words_of_its_language(server: Shared) {
    let client = server.client();
    let identity = client.get("/v1/corporate-identities").data()[0]["id"].as_str().unwrap().to_string();
    let footer = json!({"footer": "Lid van Techniek Nederland", "iban": "NL02ABNA0123456789"});
    client.patch(&format!("/v1/corporate-identities/{identity}"), footer).expect(200);
    client
        .post("/v1/tax-rates", json!({"code": "VRIJ", "label": "Vrijgesteld", "type": "exempt", "amount": 0}))
        .expect(201);
    let firm = json!({"company_name": "Der Stern", "country": "DE"});
    let firm = client.post("/v1/clients", firm).expect(201).id();
    let row = |code: &str| json!({"name": code, "unit_price": 100, "vat_code": code});
    let rows = json!(["NL21", "NL0", "VRIJ", "NLV", "EU", "EX"].map(row));
    let made = |language: &str| {
        let body = json!({"title": "t", "client_id": firm, "language": language, "generate": true, "rows": rows, "supply_date": "2026-04-30"});
        let made = client.post("/v1/invoices", body).expect(201).data();
        client.get(&format!("/v1/invoices/{}/pdf/content", made["id"].as_str().unwrap())).expect(200);
        made
    };
    let dutch = page(&client, &made("nl"));
    for words in [
        "Duitsland",
        "Leverdatum",
        "30 april 2026",
        "Btw 0% over €\u{a0}100,00",
        "Vrijgesteld van btw over",
        "Btw verlegd over",
        "Intracommunautaire levering",
        "artikel 146",
        "Lid van Techniek Nederland",
        // On a narrow page, beside the price.
        "× 100,00 · 21% btw</span>",
        "· 0% btw</span>",
        "· vrijgesteld van btw</span>",
        "· btw verlegd</span>",
        "· 0% btw binnen de EU</span>",
        "· uitvoer, 0% btw</span>",
    ] {
        assert!(dutch.contains(words), "{words}: {dutch}");
    }
    let english = made("en");
    let shown = page(&client, &english);
    for words in [
        "Germany",
        "Date of supply",
        "€621.00",
        "Reverse charge",
        "Article 138",
        "· exempt from VAT</span>",
        "· VAT reverse charged<",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let credit =
        client.post(&format!("/v1/invoices/{}/credit", english["id"].as_str().unwrap()), json!({})).expect(201);
    assert!(page(&client, &credit.data()).contains("\u{2212}€621.00"));
}

fn a_workorder_has_no_payment_term(server: Shared) {
    let client = server.client();
    let made = |more: Value| {
        let mut body =
            json!({"title": "t", "generate": true, "rows": [{"name": "a", "unit_price": 1, "vat_rate": 21}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        page(&client, &client.post("/v1/workorders", body).expect(201).data())
    };
    assert!(!made(json!({})).contains("18 mei 2026"), "the usual term is not a date of the work");
    let chosen = made(json!({"due_date": "2026-05-08"}));
    assert!(chosen.contains("Gereed uiterlijk 8 mei 2026."), "{chosen}");
}
