//! Products, tasks and notes, according to the contract.

use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Db, Server, Shared};

fn keys(value: &Value) -> Vec<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

on_both![
    a_product_can_be_created_changed_and_deleted,
    prices_are_decimals_to_the_last_digit,
    search_ignores_case_and_accents_and_looks_inside_words,
    search_finds_pending_and_indexed_texts,
    tasks_have_the_fields_of_the_contract,
    notes_have_the_fields_of_the_contract,
];

fn a_product_can_be_created_changed_and_deleted(server: Shared) {
    let client = server.client();
    let body = json!({"name": "Hosting", "code": "H1", "price": 12.50, "vat_rate": 21, "unit": "month"});
    let made = client.post("/v1/products", body).expect(201);
    let path = format!("/v1/products/{}", made.id());
    assert_eq!(made.header("location"), path);
    insta::assert_json_snapshot!("product_created", made.json(), {".data.id" => "[id]"});
    assert_eq!(client.get(&path).expect(200).data(), made.data());
    assert_eq!(client.get(&format!("{path}?x=1")).json()["meta"]["ignored_params"], json!(["x"]));
    let silent = client.post("/v1/products", json!({"name": "No word on active", "active": null})).expect(201);
    assert_eq!(silent.data()["active"], true);
    client.delete(&format!("/v1/products/{}", silent.id())).expect(204);
    let unread = client.send("PATCH", &path, &[("if-none-match", "*")], "{\"unit\":\"month\"}");
    assert_eq!(unread.status, 200, "a PATCH always returns the record");
    let changed = client.patch(&path, json!({"price": "9.999999", "active": false, "vat_rate": "9%"})).expect(200);
    insta::assert_json_snapshot!("product_changed", changed.json(), {".data.id" => "[id]"});
    assert!(changed.text.contains("\"price\":9.999999,"), "numbers are printed exactly: {}", changed.text);
    assert_eq!(client.get("/v1/products?active=0").json()["meta"]["total"], 1);
    assert_eq!(client.get("/v1/products?active=true").json()["meta"]["total"], 0);
    assert_eq!(client.get("/v1/products?code=H1").json()["meta"]["total"], 1);
    assert_eq!(client.delete(&path).expect(204).text, "");
    assert_eq!(client.delete(&path).status, 404);
    assert_eq!(client.get("/v1/products").json()["meta"]["total"], 0);
    assert_eq!(client.get("/v1/products?search=hosting").json()["meta"]["total"], 0);
}

fn prices_are_decimals_to_the_last_digit(server: Shared) {
    let client = server.client();
    for (sent, kept) in [
        ("0.1", "0.1"),
        ("141.28", "141.28"),
        ("999999999999.999999", "999999999999.999999"),
        ("-5", "-5"),
        ("1e3", "1000"),
        ("12.50", "12.5"),
        ("0.000001", "0.000001"),
        ("\"7.25\"", "7.25"),
    ] {
        let reply =
            client.send("POST", "/v1/products", &[], &format!("{{\"name\":\"x\",\"price\":{sent}}}")).expect(201);
        assert!(reply.text.contains(&format!("\"price\":{kept},")), "{sent}: {}", reply.text);
    }
    for (sent, code) in [
        ("0.0000001", "too_precise"),
        ("1000000000000", "out_of_range"),
        ("\"1,5\"", "wrong_type"),
        ("true", "wrong_type"),
        ("1e99", "out_of_range"),
    ] {
        let reply =
            client.send("POST", "/v1/products", &[], &format!("{{\"name\":\"x\",\"price\":{sent}}}")).expect(422);
        assert_eq!(reply.faults(), [format!("price: {code}")], "{sent}");
    }
    let source = |order: &str| {
        client.send("POST", "/v1/deal-sources", &[], &format!("{{\"name\":\"{order}\",\"order\":{order}}}"))
    };
    assert!(source("3.0").expect(201).text.contains("\"order\":3"), "some languages write integers like this");
    for fraction in ["3.5", "3.01", "1e3", "3.0e1"] {
        assert_eq!(source(fraction).expect(422).faults(), ["order: wrong_type"], "{fraction}");
    }
    // A limit holds to the last decimal.
    for above in [json!(1000.01), json!("1000.5")] {
        let reply = client.patch("/v1/settings", json!({"verification_amount": above})).expect(422);
        assert_eq!(reply.faults(), ["verification_amount: out_of_range"]);
    }
    client.patch("/v1/settings", json!({"verification_amount": 1000})).expect(200);
    let rising = client.get("/v1/products?sort=price&order=asc").data();
    let prices: Vec<f64> = rising.as_array().unwrap().iter().map(|item| item["price"].as_f64().unwrap()).collect();
    assert!(prices.is_sorted(), "{prices:?}");
}

fn search_ignores_case_and_accents_and_looks_inside_words(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    for (name, code) in
        [("Crème brûlée", "C-1"), ("Webhosting GROOT", "W_2"), ("Straße 100%", "S\\3"), ("日本語の本", "J4")]
    {
        client.post("/v1/products", json!({"name": name, "code": code})).expect(201);
    }
    let found = |words: &str| -> Vec<String> {
        let query: String = words.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let data = client.get(&format!("/v1/products?search={query}")).expect(200).data();
        data.as_array().unwrap().iter().map(|item| item["code"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(found("BRULEE"), ["C-1"]);
    assert_eq!(found("crème"), ["C-1"]);
    assert_eq!(found("hosting gr"), ["W_2"]);
    assert_eq!(found("OST"), ["W_2"]);
    assert_eq!(found("w_2"), ["W_2"]);
    assert_eq!(found("STRASSE"), ["S\\3"]);
    assert_eq!(found("100%"), ["S\\3"]);
    assert_eq!(found("%"), ["S\\3"]);
    assert_eq!(found("\\"), ["S\\3"]);
    assert_eq!(found("___"), Vec::<String>::new());
    assert_eq!(found("ß"), ["S\\3"]);
    assert_eq!(found("本語"), ["J4"]);
    assert_eq!(found("日本語の"), ["J4"]);
    assert_eq!(found("-1"), ["C-1"]);
    assert_eq!(found("e"), ["S\\3", "W_2", "C-1"]);
    assert_eq!(found("\"; drop"), Vec::<String>::new());
    // The same when the texts have been added to the index.
    for number in 0..300 {
        client.post("/v1/products", json!({"name": format!("Filler {number}")})).expect(201);
    }
    while engine::search::tidy(&server.app.store).unwrap() {}
    assert_eq!((found("BRULEE"), found("hosting gr")), (vec!["C-1".to_string()], vec!["W_2".to_string()]));
    assert_eq!(found("日本語の"), ["J4"]);
    assert_eq!(client.get("/v1/products?search=filler%20299").json()["meta"]["total"], 1);
    let id = client.get("/v1/products?code=C-1").data()[0]["id"].as_str().unwrap().to_string();
    client.patch(&format!("/v1/products/{id}"), json!({"name": "Vla"})).expect(200);
    assert_eq!((found("brulee").len(), found("vla").len()), (0, 1));
    client.delete(&format!("/v1/products/{id}")).expect(204);
    let id = client.get("/v1/products?code=W_2").data()[0]["id"].as_str().unwrap().to_string();
    client.delete(&format!("/v1/products/{id}")).expect(204);
    assert_eq!((found("vla").len(), found("hosting").len()), (0, 0));
}

/// Names with letters that a search index or a query language may treat specially.
const NAMES: [&str; 16] = [
    "Bakkerij De Ster",
    "50% korting",
    "onder_streep",
    "C:\\map\\bestand",
    "Say \"hello\" twice",
    "O'Neill & Zonen",
    "5*3 AND NOT (7 OR 8)",
    "日本語の本屋",
    "Café Zoë",
    "a b c d",
    "((((",
    "aaaaaa",
    "Müller-Lüdenscheidt",
    "NEAR(x, 2) ^ {y} : -z",
    "🙂🙃🙂 smile",
    "per jaar: 12\u{a0}maanden",
];

/// Searches, and the index of the name that each finds.
const MATCHES: [(&str, usize); 34] = [
    ("de ster", 0),
    ("RIJ DE S", 0),
    ("50%", 1),
    ("% k", 1),
    ("0% korting", 1),
    ("r_s", 2),
    ("_", 2),
    ("C:\\map", 3),
    ("\\", 3),
    ("\"hello\" t", 4),
    ("\"he", 4),
    ("o'neill", 5),
    ("'n", 5),
    ("l & z", 5),
    ("5*3", 6),
    ("*", 6),
    ("3 and not (", 6),
    ("日本語", 7),
    ("語の", 7),
    ("屋", 7),
    ("日本語の本屋", 7),
    ("cafe zoe", 8),
    ("ZOË", 8),
    ("b c", 9),
    ("a b c d", 9),
    ("(((", 10),
    ("aaaaaa", 11),
    ("LÜDEN", 12),
    ("er-lu", 12),
    ("near(x", 13),
    ("^ {", 13),
    ("🙃🙂 s", 14),
    ("🙂🙃🙂", 14),
    ("2 maand", 15),
];

fn search_finds_pending_and_indexed_texts(db: Db) {
    let server = Server::start(db);
    let (client, stranger) = (server.client(), server.client());
    let put = |code: &str| {
        for name in NAMES {
            for caller in [&client, &stranger] {
                caller.post("/v1/products", json!({"name": name, "code": code})).expect(201);
            }
            client.post("/v1/clients", json!({"company_name": name})).expect(201);
        }
    };
    let list = |words: &str, rest: &str| {
        let query: String = words.bytes().map(|byte| format!("%{byte:02x}")).collect();
        client.get(&format!("/v1/products?search={query}{rest}")).expect(200).json()
    };
    put("first");
    // Enough for the first ones to be in the index and their trigrams in the sample.
    for number in 0..300 {
        client.post("/v1/products", json!({"name": format!("Filler {number}"), "code": "filler"})).expect(201);
    }
    while engine::search::tidy(&server.app.store).unwrap() {}
    put("second");
    for (words, name) in MATCHES {
        let found = list(words, "&sort=created_at&order=asc");
        let data = found["data"].as_array().unwrap();
        let data: Vec<_> = data.iter().map(|item| (item["name"].clone(), item["code"].clone())).collect();
        let name = client
            .get(&format!("/v1/products?code=first&sort=created_at&order=asc&page={}&per_page=1", name + 1))
            .data()[0]["name"]
            .clone();
        assert_eq!(data, [(name.clone(), json!("first")), (name, json!("second"))], "{words}");
        assert_eq!(found["meta"]["total"], 2, "{words}");
    }
    for words in ["host*", "5_3", "50_", "%%%", "ster de", "a  b", "aaaaaaa", "\"\"\"", "''", "zonen\nfirst", "日語"]
    {
        assert_eq!(list(words, "")["meta"]["total"], 0, "{words}");
    }
    // A full page, a partial one, an empty one, and one past the end; with another filter too.
    for (rest, here) in
        [("&per_page=1", 1), ("&per_page=2", 2), ("&per_page=1&page=2", 1), ("&per_page=2&page=2", 0), ("&page=9", 0)]
    {
        let found = list("de ster", rest);
        assert_eq!((found["data"].as_array().unwrap().len(), &found["meta"]["total"]), (here, &json!(2)), "{rest}");
        let filtered = list("de ster", &format!("&code=second{rest}"));
        assert_eq!(filtered["meta"]["total"], 1, "{rest}");
    }
    assert_eq!(list("filler", "&per_page=100")["meta"]["total"], 300);
    assert_eq!(list("fi", "&per_page=100&page=3")["data"].as_array().unwrap().len(), 100);
}

fn tasks_have_the_fields_of_the_contract(server: Shared) {
    let client = server.client();
    let made = client.post("/v1/tasks", json!({"title": "Call", "category": "call", "notes": "n", "deadline": "2026-06-01", "duration_minutes": 15})).expect(201);
    assert_eq!(keys(&made.data()), ["id", "title", "category", "status", "meta"]);
    let path = format!("/v1/tasks/{}", made.id());
    let detail = client.get(&path).data();
    assert_eq!(
        keys(&detail),
        [
            "id",
            "title",
            "category",
            "status",
            "notes",
            "deadline",
            "duration_minutes",
            "client_id",
            "project_id",
            "created_at",
            "meta"
        ]
    );
    assert_eq!(
        (&detail["client_id"], &detail["deadline"], &detail["status"]),
        (&json!(""), &json!("2026-06-01"), &json!("open"))
    );
    let item = client.get("/v1/tasks").data()[0].clone();
    assert_eq!(
        keys(&item),
        ["id", "title", "category", "status", "deadline", "client_id", "project_id", "created_at", "meta"]
    );
    let changed = client.patch(&path, json!({"title": "Call again", "deadline": null})).expect(200).data();
    assert_eq!(keys(&changed), ["id", "title", "category", "status", "notes", "deadline", "meta"]);
    assert_eq!(changed["deadline"], "");
    for (action, status) in
        [("complete", "completed"), ("complete", "completed"), ("reopen", "open"), ("reopen", "open")]
    {
        let done = client.act(&format!("{path}/{action}")).expect(200).data();
        assert_eq!(keys(&done), ["id", "title", "status"]);
        assert_eq!(done["status"], status);
    }
    assert_eq!(client.get("/v1/tasks?status=open&category=call").json()["meta"]["total"], 1);
    let reply = client.post("/v1/tasks", json!({"title": "x", "category": "party", "deadline": "soon", "duration_minutes": -1, "client_id": "nobody", "status": "open"}));
    assert_eq!(
        reply.expect(422).faults(),
        [
            "category: invalid_choice",
            "deadline: invalid_format",
            "duration_minutes: out_of_range",
            "status: read_only",
            "client_id: reference_not_found"
        ]
    );
    let reply = client.post("/v1/tasks", json!({"title": "x", "client_id": "nobody", "deal_id": "no"}));
    assert_eq!(reply.expect(422).faults(), ["client_id: reference_not_found", "deal_id: reference_not_found"]);
    for (date, total) in [("deadline_from=2026-06-01", 0), ("deadline_to=2026-06-01", 0)] {
        assert_eq!(
            client.get(&format!("/v1/tasks?{date}")).json()["meta"]["total"],
            total,
            "{date}: no deadline, no range"
        );
    }
    client.patch(&path, json!({"deadline": "2026-06-01"})).expect(200);
    for (date, total) in [("deadline_from=2026-06-01", 1), ("deadline_to=2026-06-01", 1), ("deadline_to=2026-05-31", 0)]
    {
        assert_eq!(client.get(&format!("/v1/tasks?{date}")).json()["meta"]["total"], total, "{date}");
    }
    assert_eq!(client.get("/v1/tasks?deadline_from=").expect(422).faults(), ["deadline_from: invalid_format"]);
}

fn notes_have_the_fields_of_the_contract(server: Shared) {
    let client = server.client();
    let made = client.post("/v1/notes", json!({"body": "First\nsecond"})).expect(201);
    assert_eq!(keys(&made.data()), ["id", "body", "created_at"]);
    assert_eq!(made.data()["created_at"], "2026-05-04T10:00:00.000Z");
    let changed = client.patch(&format!("/v1/notes/{}", made.id()), json!({"body": "Other"})).expect(200);
    assert_eq!(keys(&changed.data()), ["id", "body", "created_at", "updated_at", "meta"]);
    assert_eq!(client.get("/v1/notes").data()[0], changed.data());
    assert_eq!(client.get("/v1/notes?client_id=x").json()["meta"]["total"], 0);
    assert_eq!(
        client.patch(&format!("/v1/notes/{}", made.id()), json!({"client_id": "x"})).expect(422).faults(),
        ["client_id: read_only"]
    );
    let long = "x".repeat(65_537);
    assert_eq!(client.post("/v1/notes", json!({"body": long})).expect(422).faults(), ["body: too_long"]);
    client.post("/v1/notes", json!({"body": &long[1..]})).expect(201);
    assert_eq!(client.delete(&format!("/v1/notes/{}", made.id())).status, 204);
}
