//! `GET /v1/search`.

use kantoor::overview::search::KINDS;
use kantoor::registry::{self, REGISTRY};
use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Db, Server, Shared};

on_both![
    finds_records_of_every_kind,
    shows_only_what_the_caller_may_read,
    short_words_find_the_latest,
    a_first_and_last_name_find_the_person,
    what_commas_separate_is_found_in_any_order,
];

/// Returns type, name and detail of each result.
fn found(client: &Client, words: &str) -> Vec<[String; 3]> {
    let reply = client.get(&format!("/v1/search?q={words}")).expect(200);
    let data = reply.data();
    assert_eq!(reply.json()["meta"]["total"], data.as_array().unwrap().len());
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let lines = data.as_array().unwrap().iter();
    lines.map(|one| [text(&one["type"]), text(&one["name"]), text(&one["detail"])]).collect()
}

fn finds_records_of_every_kind(server: Shared) {
    let client = server.client();
    let owner =
        json!({"company_name": "Bakkerij De Ster", "firstname": "Anna", "lastname": "Vrolijk", "city": "Delft"});
    let owner = client.post("/v1/clients", owner).expect(201).id();
    let rows = json!([{"name": "Oven", "quantity": 1, "unit_price": 100, "vat_rate": "21"}]);
    let invoice = json!({"title": "Oven, installed", "client_id": owner, "rows": rows, "generation_mode": "final"});
    let invoice = client.post("/v1/invoices", invoice).expect(201).data();
    client.post("/v1/quotes", json!({"title": "Second oven", "client_id": owner, "rows": rows})).expect(201);
    client.post("/v1/deals", json!({"title": "Stèrren on the roof", "client_id": owner})).expect(201);
    let ticket = json!({"subject": "The oven stays cold", "client_name": "Ster, Anna"});
    let ticket = client.post("/v1/tickets", ticket).expect(201).data()["number"].as_str().unwrap().to_string();
    client.post("/v1/projects", json!({"name": "Other"})).expect(201);
    let number = invoice["number"].as_str().unwrap();
    assert_eq!(
        found(&client, "ster"),
        [
            ["client", "Bakkerij De Ster", "Anna Vrolijk · Delft"],
            ["invoice", number, "Oven, installed · Bakkerij De Ster"],
            ["quote", "Second oven", "Bakkerij De Ster"],
            ["deal", "Stèrren on the roof", "open"],
            ["ticket", "The oven stays cold", &format!("{ticket} · Ster, Anna")],
        ]
    );
    assert_eq!(found(&client, number), [["invoice", number, "Oven, installed · Bakkerij De Ster"]]);
    for one in client.get("/v1/search?q=ster").data().as_array().unwrap() {
        let path = one["path"].as_str().unwrap();
        assert_eq!(client.get(path).expect(200).data()["id"], one["id"], "{path}");
    }
    for nothing in ["zzzz", "%25", "", "%20", "'%22"] {
        assert_eq!(found(&client, nothing), Vec::<[String; 3]>::new(), "{nothing}");
    }
    assert_eq!(found(&server.client(), "ster"), Vec::<[String; 3]>::new());
    let long = "x".repeat(256);
    assert_eq!(client.get(&format!("/v1/search?q={long}")).expect(422).faults(), ["q: too_long"]);
    assert_eq!(client.get("/v1/search?q=a&z=1").json()["meta"]["ignored_params"], json!(["z"]));
}

fn shows_only_what_the_caller_may_read(server: Shared) {
    let client = server.client();
    client.post("/v1/products", json!({"name": "Ladder", "price": 10})).expect(201);
    client.post("/v1/projects", json!({"name": "Ladders"})).expect(201);
    let kinds = |client: &Client| found(client, "ladder").into_iter().map(|[kind, ..]| kind).collect::<Vec<_>>();
    assert_eq!(kinds(&client), ["project", "product"]);
    assert_eq!(kinds(&server.with_scopes(&client, &["products.read"])), ["product"]);
    assert_eq!(kinds(&server.with_scopes(&client, &["tasks.read"])), Vec::<String>::new());
}

fn short_words_find_the_latest(server: Shared) {
    let client = server.client();
    for number in 1..=7 {
        client.post("/v1/products", json!({"name": format!("Zo {number}"), "price": 10})).expect(201);
    }
    let names: Vec<String> = found(&client, "zo").into_iter().map(|[_, name, _]| name).collect();
    assert_eq!(names, ["Zo 7", "Zo 6", "Zo 5", "Zo 4", "Zo 3"]);
    let names: Vec<String> = found(&client, "zo%20").into_iter().map(|[_, name, _]| name).collect();
    assert_eq!(names.len(), 5);
}

fn a_first_and_last_name_find_the_person(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let made = |body: Value| client.post("/v1/clients", body).expect(201).id();
    let person =
        made(json!({"type": "private", "firstname": "J\u{e0}n", "lastname": "Smit", "email": "j@smit.example"}));
    let company = made(json!({"company_name": "Slagerij Smit", "firstname": "Jan", "lastname": "Smit"}));
    // Nothing is found across other fields, nor across a first name that is missing.
    made(json!({"company_name": "Jan", "lastname": "Smit"}));
    let rows = json!([{"name": "Oven", "quantity": 1, "unit_price": 100, "vat_rate": "21"}]);
    let document = |path: &str, client_id: &str, own: &str| {
        let body = json!({"title": "Oven", "client_id": client_id, "external_id": own, "rows": rows});
        client.post(path, body).expect(201);
    };
    document("/v1/invoices", &person, "");
    document("/v1/invoices", &company, "own-1");
    document("/v1/quotes", &company, "");
    document("/v1/workorders", &person, "own-2");
    client.post("/v1/suppliers", json!({"company_name": "S", "firstname": "Jan", "lastname": "Smit"})).expect(201);

    let kinds = |words: &str| found(&client, words).into_iter().map(|[kind, ..]| kind).collect::<Vec<_>>();
    let every = ["client", "client", "supplier", "invoice", "invoice", "quote", "workorder"];
    let listed = |path: &str| client.get(&format!("/v1/{path}?search=jan%20smit")).json()["meta"]["total"].clone();
    assert_eq!(kinds("jan%20smit"), every);
    assert_eq!((listed("clients"), listed("invoices"), listed("suppliers")), (json!(2), json!(2), json!(1)));
    assert_eq!(kinds("smit%20jan"), Vec::<String>::new());
    assert_eq!(kinds("smit%20j@smit"), Vec::<String>::new());
}

/// As in a register: the last name, a comma, the first name.
fn what_commas_separate_is_found_in_any_order(server: Shared) {
    let client = server.client();
    let person = json!({"type": "private", "firstname": "Karin", "lastname": "de Vries", "email": "k@huis.example"});
    client.post("/v1/clients", person).expect(201);
    client.post("/v1/clients", json!({"company_name": "Vries, Karin & Zoon"})).expect(201);
    client.post("/v1/clients", json!({"company_name": "De Vries BV"})).expect(201);
    for name in ["Buis 1,5 m", "Buis 1 m, 5 stuks"] {
        client.post("/v1/products", json!({"name": name})).expect(201);
    }
    let both = ["Vries, Karin & Zoon", "Karin de Vries"];
    let check = |words: &str, expected: &[&str]| {
        let words: String = words.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let names: Vec<String> = found(&client, &words).into_iter().map(|[_, name, _]| name).collect();
        assert_eq!(names, expected, "{words}");
        let listed = ["clients", "products"].map(|path| {
            client.get(&format!("/v1/{path}?search={words}")).expect(200).json()["meta"]["total"].as_u64().unwrap()
        });
        assert_eq!(listed.iter().sum::<u64>(), expected.len() as u64, "{words}");
    };
    let check_all = || {
        check("Vries, Karin", &both);
        check("KARIN,VRIES", &both);
        check("vries , ka", &both);
        check("vr, ka", &both);
        check("de Vries, Karin", &["Karin de Vries"]);
        check("Vries, Piet", &[]);
        // While the rest is still being typed.
        check("Vries,", &["De Vries BV", "Vries, Karin & Zoon", "Karin de Vries"]);
        check("stuks, buis", &["Buis 1 m, 5 stuks"]);
        check("1,5", &["Buis 1,5 m"]);
        // A list is searched for as it is.
        check("k, a, r, i, n", &[]);
    };
    check_all();
    // The same when the texts are in the index.
    server.execute("UPDATE search_texts SET pending = 0");
    check_all();
}

#[test]
fn every_kind_that_lists_can_search_has_its_lines() {
    registry::install();
    let searched =
        REGISTRY.resources.iter().filter(|resource| resource.list.as_ref().is_some_and(|list| list.searches));
    let mut searched: Vec<&str> = searched.map(|resource| resource.shape.name).collect();
    let mut shown: Vec<&str> = KINDS.iter().map(|shown| shown.kind).collect();
    searched.sort_unstable();
    shown.sort_unstable();
    assert_eq!(searched, shown);
}
