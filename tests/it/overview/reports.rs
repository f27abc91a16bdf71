//! `GET /v1/reports/…`: revenue by month, and open amounts by age.

use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Shared};

on_both![
    revenue_follows_the_invoices,
    a_report_has_a_range_of_months,
    open_amounts_have_an_age,
    documents_show_what_is_open,
    clients_and_projects_have_figures,
    a_deal_and_a_project_list_their_documents,
];

fn invoice(client: &Client, date: &str, due: &str, price: i64, mode: &str) -> Value {
    let rows = json!([{"name": "Oven", "quantity": 1, "unit_price": price, "vat_rate": "21"}]);
    let body = json!({"title": "Oven", "rows": rows, "invoice_date": date, "due_date": due, "generation_mode": mode});
    client.post("/v1/invoices", body).expect(201).data()
}

/// Returns the months with revenue: number of invoices and total excluding VAT.
fn months(client: &Client, query: &str) -> Vec<(String, i64, Value)> {
    let data = client.get(&format!("/v1/reports/revenue{query}")).expect(200).data();
    let months = data["months"].as_array().unwrap().clone();
    for name in ["count", "total_excl_vat"] {
        let sum: i64 = months.iter().map(|one| one[name].as_i64().unwrap()).sum();
        assert_eq!(data[name], sum, "{data}");
    }
    let months = months.into_iter().filter(|one| one["count"] != 0 || one["total_excl_vat"] != 0);
    let month = |one: &Value| one["month"].as_str().unwrap().to_string();
    months.map(|one| (month(&one), one["count"].as_i64().unwrap(), one["total_excl_vat"].clone())).collect()
}

fn revenue_follows_the_invoices(server: Shared) {
    server.leaves_jobs();
    let client = server.client();
    assert_eq!(months(&client, ""), []);
    let april = invoice(&client, "2026-04-30", "2026-05-30", 100, "final");
    let draft = invoice(&client, "2026-05-01", "2026-05-30", 50, "draft");
    let counted = |month: &str, count: i64, total: Value| (month.to_string(), count, total);
    assert_eq!(months(&client, ""), [counted("2026-04", 1, json!(100))]);
    client.act(&format!("/v1/invoices/{}/finalize", draft["id"].as_str().unwrap())).expect(200);
    assert_eq!(months(&client, ""), [counted("2026-04", 1, json!(100)), counted("2026-05", 1, json!(50))]);
    // A final invoice can be moved to another month.
    let path = format!("/v1/invoices/{}", april["id"].as_str().unwrap());
    client.patch(&path, json!({"invoice_date": "2026-03-01"})).expect(200);
    assert_eq!(months(&client, ""), [counted("2026-03", 1, json!(100)), counted("2026-05", 1, json!(50))]);
    client.patch(&path, json!({"title": "Two ovens"})).expect(200);
    client.post(&format!("{path}/payments"), json!({"amount": 121})).expect(201);
    assert_eq!(months(&client, ""), [counted("2026-03", 1, json!(100)), counted("2026-05", 1, json!(50))]);
    // The credit counts on its own date.
    client.act(&format!("{path}/credit")).expect(201);
    assert_eq!(months(&client, ""), [counted("2026-03", 1, json!(100)), counted("2026-05", 2, json!(-50))]);
    let data = client.get("/v1/reports/revenue?from=2026-03&to=2026-03").data();
    assert_eq!(
        data,
        json!({
            "months": [{"month": "2026-03", "count": 1, "total_excl_vat": 100, "vat_amount": 21, "total_incl_vat": 121}],
            "count": 1, "total_excl_vat": 100, "vat_amount": 21, "total_incl_vat": 121,
        })
    );
    // Quotes are no revenue, and neither are the invoices of others.
    let rows = json!([{"name": "Oven", "quantity": 1, "unit_price": 9, "vat_rate": "21"}]);
    client.post("/v1/quotes", json!({"title": "Oven", "rows": rows, "generation_mode": "final"})).expect(201);
    assert_eq!(months(&client, "").len(), 2);
    assert_eq!(months(&server.client(), ""), []);
}

fn a_report_has_a_range_of_months(server: Shared) {
    let client = server.client();
    let names = |query: &str| -> Vec<String> {
        let data = client.get(&format!("/v1/reports/revenue?{query}")).expect(200).data();
        data["months"].as_array().unwrap().iter().map(|one| one["month"].as_str().unwrap().to_string()).collect()
    };
    let year = names("");
    assert_eq!((year.len(), year[0].as_str(), year[11].as_str()), (12, "2025-06", "2026-05"));
    assert_eq!(names("from=2025-12-31&to=2026-02-01"), ["2025-12", "2026-01", "2026-02"]);
    assert_eq!(names("to=2026-01").len(), 12);
    for (query, fault) in [
        ("from=x", "from: invalid_format"),
        ("from=2026-13", "from: invalid_format"),
        ("to=2026-1-1", "to: invalid_format"),
        ("from=2026-06", "to: out_of_range"),
        ("from=2016-05", "from: out_of_range"),
    ] {
        assert_eq!(client.get(&format!("/v1/reports/revenue?{query}")).expect(422).faults(), [fault], "{query}");
    }
}

fn open_amounts_have_an_age(server: Shared) {
    server.leaves_jobs();
    let client = server.client();
    for (date, due) in [
        ("2026-05-01", "2026-05-04"),
        ("2026-05-01", "2026-05-03"),
        ("2026-04-01", "2026-04-04"),
        ("2026-04-01", "2026-04-03"),
        ("2026-01-01", "2026-02-03"),
        ("2026-01-01", "2026-02-02"),
    ] {
        invoice(&client, date, due, 100, "final");
    }
    let part = invoice(&client, "2026-01-01", "2026-01-31", 100, "final");
    client.post(&format!("/v1/invoices/{}/payments", part["id"].as_str().unwrap()), json!({"amount": 100})).expect(201);
    let paid = invoice(&client, "2026-01-01", "2026-01-31", 100, "final");
    client
        .patch(&format!("/v1/invoices/{}", paid["id"].as_str().unwrap()), json!({"payment_status": "paid"}))
        .expect(200);
    invoice(&client, "2026-01-01", "2026-01-31", 100, "draft");
    let age = |name: &str, count: i64, amount: i64| json!({"age": name, "count": count, "amount": amount});
    assert_eq!(
        client.get("/v1/reports/open").expect(200).data(),
        json!({
            "date": "2026-05-04",
            "ages": [age("not_due", 1, 121), age("1-30", 2, 242), age("31-60", 1, 121), age("61-90", 1, 121), age("over_90", 2, 142)],
            "count": 7, "amount": 747, "capped": false,
        })
    );
    each_age_is_a_list(&client);
}

/// Each number has a list of what it counts, to which Home leads.
fn each_age_is_a_list(client: &Client) {
    let report = client.get("/v1/reports/open").expect(200).data();
    let total = |query: &str| {
        let list = client.get(&format!("/v1/invoices?outstanding=true{query}")).expect(200).json();
        list["meta"]["total"].clone()
    };
    assert_eq!(total(""), report["count"]);
    let lists = [
        "&late=false",
        "&late=true&due_date_from=2026-04-04&due_date_to=2026-05-03",
        "&late=true&due_date_from=2026-03-05&due_date_to=2026-04-03",
        "&late=true&due_date_from=2026-02-03&due_date_to=2026-03-04",
        "&late=true&due_date_to=2026-02-02",
    ];
    for (place, query) in lists.into_iter().enumerate() {
        assert_eq!(total(query), report["ages"][place]["count"], "{query}");
    }
}

fn documents_show_what_is_open(server: Shared) {
    server.leaves_jobs();
    let client = server.client();
    let made = invoice(&client, "2026-05-01", "2026-05-30", 100, "draft");
    let path = format!("/v1/invoices/{}", made["id"].as_str().unwrap());
    let open = || client.get(&path).expect(200).data()["meta"]["open_amount"].clone();
    assert_eq!(open(), 0);
    client.act(&format!("{path}/finalize")).expect(200);
    assert_eq!(open(), 121);
    let payment = client.post(&format!("{path}/payments"), json!({"amount": 20.5})).expect(201).data();
    assert_eq!(open(), json!(100.5));
    client.patch(&path, json!({"payment_status": "paid"})).expect(200);
    assert_eq!(open(), 0);
    client.patch(&path, json!({"payment_status": "in collection"})).expect(200);
    assert_eq!(open(), json!(100.5));
    let payment = payment["payment"]["id"].as_str().unwrap();
    client.delete(&format!("{path}/payments/{payment}"));
    client.act(&format!("{path}/credit")).expect(201);
    assert_eq!(open(), 0);
}

/// An invoice of 121 euros.
fn invoice_of(client: &Client, links: &Value, due: &str, mode: &str) -> Value {
    let rows = json!([{"name": "Oven", "quantity": 1, "unit_price": 100, "vat_rate": "21"}]);
    let mut body =
        json!({"title": "Oven", "rows": rows, "invoice_date": "2026-04-01", "due_date": due, "generation_mode": mode});
    for (name, value) in links.as_object().unwrap() {
        body[name] = value.clone();
    }
    client.post("/v1/invoices", body).expect(201).data()
}

fn clients_and_projects_have_figures(server: Shared) {
    server.leaves_jobs();
    let client = server.client();
    let firm = |name: &str| client.post("/v1/clients", json!({"company_name": name})).expect(201).id();
    let (bakery, mill) = (firm("Bakery"), firm("Mill"));
    let project =
        client.post("/v1/projects", json!({"name": "Oven", "client_id": bakery, "budget": 500})).expect(201).id();
    let links = json!({"client_id": bakery, "project_id": project});
    invoice_of(&client, &links, "2026-05-30", "final");
    invoice_of(&client, &json!({"client_id": bakery}), "2026-04-30", "final");
    invoice_of(&client, &links, "2026-05-30", "draft");
    let hours = json!({"date": "2026-05-04", "minutes": 90});
    client.post(&format!("/v1/projects/{project}/hours"), hours).expect(201);
    let path = format!("/v1/reports/clients?client_id={bakery},{mill}");
    let owes = json!([{"client_id": bakery, "count": 2, "open_amount": 242, "overdue_amount": 121}]);
    assert_eq!(client.get(&path).expect(200).data(), owes);
    let used = json!([{"project_id": project, "minutes": 90, "invoiced_amount": 100}]);
    let path = format!("/v1/reports/projects?project_id={project}");
    assert_eq!(client.get(&path).expect(200).data(), used);
    let amounts = |path: &str| -> Vec<Value> {
        let found = client.get(path).expect(200).data();
        found.as_array().unwrap().iter().map(|one| one["open_amount"].clone()).collect()
    };
    assert_eq!(amounts("/v1/reports/invoices"), [json!(121), json!(121)], "without the draft");
    let shown = client.get(&format!("/v1/invoices?client_id={bakery}")).expect(200).data();
    let ids: Vec<&str> = shown.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(amounts(&format!("/v1/reports/invoices?invoice_id={}", ids.join(","))), [json!(121), json!(121)]);
    // Without ids: who owes most, and the newest projects.
    assert_eq!(client.get("/v1/reports/clients").expect(200).data(), owes);
    assert_eq!(client.get("/v1/reports/projects?project_id=,").expect(200).data(), used);
    assert_eq!(server.client().get(&path).expect(200).data(), json!([]), "another account");
    let many = (0..101).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let refused = client.get(&format!("/v1/reports/clients?client_id={many}")).expect(422);
    assert_eq!(refused.faults(), ["client_id: too_long"]);
}

fn a_deal_and_a_project_list_their_documents(server: Shared) {
    server.leaves_jobs();
    let client = server.client();
    let firm = client.post("/v1/clients", json!({"company_name": "Bakery"})).expect(201).id();
    let deal = client.post("/v1/deals", json!({"title": "Oven", "client_id": firm})).expect(201).id();
    let project = client.post("/v1/projects", json!({"name": "Oven"})).expect(201).id();
    let quote = client.post("/v1/quotes", json!({"title": "Oven", "deal_id": deal, "total_incl_vat": 121})).expect(201);
    let made = invoice_of(&client, &json!({"deal_id": deal, "project_id": project}), "2026-05-30", "final");
    let of = |path: &str| -> Vec<Value> {
        let data = client.get(&format!("{path}/documents")).expect(200).data();
        data.as_array().unwrap().clone()
    };
    let found = of(&format!("/v1/deals/{deal}"));
    let shown: Vec<(&Value, &Value)> = found.iter().map(|one| (&one["type"], &one["id"])).collect();
    assert_eq!(shown, [(&json!("invoice"), &made["id"]), (&json!("quote"), &json!(quote.id()))]);
    assert_eq!((&found[0]["number"], &found[0]["total_incl_vat"]), (&made["number"], &json!(121)));
    assert_eq!(found[0]["path"], format!("/v1/invoices/{}", made["id"].as_str().unwrap()));
    assert_eq!(of(&format!("/v1/projects/{project}")).len(), 1);
    server.client().get(&format!("/v1/deals/{deal}/documents")).expect(404);
}
