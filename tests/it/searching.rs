//! A search has the same results whether it asks the index, which all accounts share, or compares the texts of the account.

use engine::call::{Call, Query};
use kantoor::registry::REGISTRY;
use serde_json::{Value, json};

use crate::on_both;
use crate::support::{Client, Db, Office, Reply, Server};

on_both![
    common_words_find_the_same_as_rare_ones,
    a_small_account_does_not_search_the_large_one,
    a_search_is_counted_up_to_a_limit,
    what_is_far_from_the_start_of_a_large_account_is_found,
];

/// Lets the sample say that these words are in nearly all texts of a large database.
fn make_common(server: &Office, words: &[&str]) {
    server.execute("UPDATE search_pieces SET texts = 1000000 WHERE piece = ''");
    for word in words {
        let letters: Vec<char> = word.chars().collect();
        for three in letters.windows(3) {
            let piece: String = three.iter().collect();
            server.execute(&format!(
                "INSERT INTO search_pieces (piece, texts) VALUES ('{piece}', 900000)
                 ON CONFLICT (piece) DO UPDATE SET texts = excluded.texts"
            ));
        }
    }
}

/// Returns the statement for the page of a search, and the one for the total.
fn statements(server: &Server, client: &Client, path: &str, query: &str) -> [String; 2] {
    let number = client.account;
    let account = server.app.store.read_now(move |tx| engine::accounts::Account::numbered(tx, number)).unwrap();
    let caller = server.app.acting(account, "test");
    let list = REGISTRY.resources.iter().find(|resource| resource.path == path).unwrap().list.as_ref().unwrap();
    let (made, query) = (list.statements, query.to_string());
    let found = server.app.store.read_now(move |tx| {
        let ctx = caller.reading(tx)?;
        made(&Call { query: Query::parse(&query)?, ..Call::default() }, tx, &ctx)
    });
    let found = found.unwrap();
    [found.page, found.total]
}

/// Whether a search by this statement asks the shared index. PostgreSQL is asked with a pattern of its own, after `OFFSET 0`.
fn asks_the_index(sql: &str) -> bool {
    sql.contains("search_index") || sql.contains("OFFSET 0")
}

fn common_words_find_the_same_as_rare_ones(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let owners = ["Ster", "Zon", "Ster en Maan"]
        .map(|name| client.post("/v1/clients", json!({"company_name": name, "city": "Delft"})).expect(201).id());
    for number in 0..45 {
        let title = if number % 9 == 4 { format!("Repair {number}") } else { format!("Hosting {number}") };
        let rows = json!([{"name": "Work", "quantity": 1, "unit_price": number + 1, "vat_rate": "21"}]);
        let body = json!({"title": title, "client_id": owners[number % 3], "rows": rows});
        client.post("/v1/invoices", body).expect(201);
        let name = if number % 9 == 4 { "Other" } else { "Hosting" };
        client
            .post("/v1/products", json!({"name": format!("{name} {:02}", 77 * number % 45), "code": "c"}))
            .expect(201);
    }
    let searches = ["hosting", "repair", "host", "HOSTING%204", "ster", "maan,ster", "nowhere", "ho", "r%2041"];
    let rest = [
        "",
        "&per_page=1",
        "&per_page=1&page=33",
        "&per_page=7&page=3",
        "&per_page=40&page=1",
        "&per_page=41&order=asc",
        "&page=9",
        "&order=asc&per_page=4&page=2",
        "&sort=id&order=asc&per_page=3",
        "&sort=created_at&order=asc&per_page=3&page=2",
    ];
    let own: [(&str, &[&str]); 2] = [
        (
            "/v1/products",
            &["&sort=name&order=asc&per_page=1", "&sort=name&order=asc&per_page=1&page=20", "&code=c&per_page=2"],
        ),
        (
            "/v1/invoices",
            &[
                "&sort=total_incl_vat&per_page=2&page=2",
                "&payment_status=unpaid&per_page=2",
                "&is_credit=0&per_page=2&page=2&sums=total_excl_vat",
                "&is_credit=0&owed=true",
                "&sums=open_amount",
            ],
        ),
    ];
    let mut paths = Vec::new();
    for words in searches {
        paths.push(format!("/v1/search?q={words}"));
        for (path, more) in own {
            paths.extend(rest.iter().chain(more).map(|rest| format!("{path}?search={words}{rest}")));
        }
    }
    let answers = || -> Vec<Value> { paths.iter().map(|path| client.get(path).expect(200).json()).collect() };
    let before = answers();
    for path in ["/v1/products", "/v1/invoices"] {
        let [page, total] = statements(&server, &client, path, "search=hosting");
        assert!(asks_the_index(&page) && asks_the_index(&total), "{page}");
    }
    make_common(&server, &["hosting", "repair", "ster", "maan"]);
    for path in ["/v1/products", "/v1/invoices"] {
        let [page, total] = statements(&server, &client, path, "search=hosting");
        assert!(!asks_the_index(&page) && !asks_the_index(&total), "{page}");
    }
    for ((path, before), after) in paths.iter().zip(before).zip(answers()) {
        assert_eq!(without_request(before), without_request(after), "{path}");
    }
    // A changed text, and one that is gone.
    let gone = client.get("/v1/products?search=hosting").data()[0]["id"].as_str().unwrap().to_string();
    client.delete(&format!("/v1/products/{gone}")).expect(204);
    let other = client.get("/v1/products?search=hosting").data()[0]["id"].as_str().unwrap().to_string();
    client.patch(&format!("/v1/products/{other}"), json!({"name": "Support"})).expect(200);
    assert_eq!(client.get("/v1/products?search=hosting").json()["meta"]["total"], 38);
    assert_eq!(client.get("/v1/products?search=hosting&per_page=1").json()["meta"]["total"], 38);
}

/// Without what differs between two equal requests.
fn without_request(mut answer: Value) -> Value {
    if let Some(meta) = answer["meta"].as_object_mut() {
        meta.remove("request_id");
    }
    answer
}

/// The index is of all accounts. An account with fewer records than the index has entries for the words looks through its own.
fn a_small_account_does_not_search_the_large_one(db: Db) {
    let server = Server::start(db);
    let (large, small) = (server.client(), server.client());
    for client in [&large, &small] {
        client.post("/v1/products", json!({"name": "Hosting"})).expect(201);
    }
    make_common(&server, &["xyz"]);
    server.execute(
        "INSERT INTO search_pieces (piece, texts)
         VALUES ('hos', 200), ('ost', 200), ('sti', 200), ('tin', 200), ('ing', 200)",
    );
    let many = "UPDATE record_counts SET total = 400000 WHERE kind = 'product' AND account_id =";
    server.execute(&format!("{many} {}", large.account));
    // The matches are counted first: many texts have each of the trigrams.
    let asks = |client: &Client| asks_the_index(&statements(&server, client, "/v1/products", "search=hosting")[1]);
    assert!(asks(&large) && !asks(&small));
    assert_eq!(small.get("/v1/products?search=hosting").json()["meta"]["total"], 1);
    server.execute(&format!("UPDATE record_counts SET total = 1 WHERE account_id = {}", large.account));
}

/// The first matches of an account that has most of the texts may be far from the start of the list: then the table is read.
fn what_is_far_from_the_start_of_a_large_account_is_found(db: Db) {
    let server = Server::start(db);
    let (client, other) = (server.client(), server.client());
    let ids =
        ["Zzap 1", "Zzap 2", "Zzap 3"].map(|name| client.post("/v1/products", json!({"name": name})).expect(201).id());
    other.post("/v1/products", json!({"name": "Zzap 4"})).expect(201);
    client.post("/v1/clients", json!({"company_name": "Zzap", "city": "Utrecht"})).expect(201);
    add_products(&server, &client, 3, 4_503);
    make_common(&server, &["zzap", "hosting"]);
    let many = "UPDATE record_counts SET total = 100000000 WHERE kind = 'product' AND account_id =";
    server.execute(&format!("{many} {}", client.account));
    let found = |query: &str| -> (Vec<String>, Value) {
        let reply = client.get(&format!("/v1/products?{query}")).expect(200).json();
        let ids = reply["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_string());
        (ids.collect(), reply["meta"]["total"].clone())
    };
    let page_of = |query: &str| statements(&server, &client, "/v1/products", query)[0].clone();
    let in_table =
        |query: &str| page_of(query).contains("LIMIT 1000000000000") || page_of(query).contains("record_id <= ");
    let newest = [&ids[2], &ids[1], &ids[0]].map(String::clone);
    for words in ["ap", "zzap"] {
        let query = format!("search={words}&sort=id&order=desc");
        assert!(in_table(&query), "{words}: {}", page_of(&query));
        assert_eq!(
            page_of(&query).contains("record_id <= "),
            words == "zzap",
            "many have its trigrams, as far as is known"
        );
        assert_eq!(found(&query), (newest.to_vec(), json!(3)), "{words}");
        assert_eq!(found(&format!("{query}&per_page=2")), (newest[..2].to_vec(), json!(3)), "{words}");
        assert_eq!(found(&format!("{query}&per_page=2&page=2")), (newest[2..].to_vec(), json!(3)), "{words}");
        // With a filter that most records satisfy.
        assert_eq!(
            found(&format!("search={words}&active=true&sort=id&order=desc")),
            (newest.to_vec(), json!(3)),
            "{words}"
        );
    }
    // Near the start, it is not.
    assert!(!in_table("search=ho&sort=id&order=desc"));
    assert_eq!(found("search=ho&sort=id&order=desc&per_page=1").1, 4_500);
    assert_eq!(found("search=qx&sort=id"), (Vec::new(), json!(0)));
    assert_eq!(found("search=hos%2Czzap&sort=id"), (Vec::new(), json!(0)), "the sample says that many do");
    let results = client.get("/v1/search?q=zzap").expect(200).data();
    let of = |kind: &str| -> Vec<&str> {
        let all = results.as_array().unwrap().iter().filter(|one| one["type"] == kind);
        all.map(|one| one["name"].as_str().unwrap()).collect()
    };
    assert_eq!((of("product"), of("client")), (vec!["Zzap 3", "Zzap 2", "Zzap 1"], vec!["Zzap"]));
    server.execute(&format!(
        "UPDATE record_counts SET total = 4503 WHERE kind = 'product' AND account_id = {}",
        client.account
    ));
}

/// Inserts this many products with the name "Hosting" directly, from a number on.
fn add_products(server: &Server, client: &Client, from: i64, until: i64) {
    let numbers = format!(
        "WITH RECURSIVE numbers (n) AS (SELECT {from} UNION ALL SELECT n + 1 FROM numbers WHERE n < {until} - 1)"
    );
    let (account, id) = (client.account, "'x' || CAST(100000 + n AS TEXT)");
    server.execute(&format!(
        "INSERT INTO products (account_id, id, created_at, updated_at, version, name, code, price, vat_rate, unit, active)
         {numbers} SELECT {account}, {id}, 1700000000000 + n, 1700000000000, 1, 'Hosting', 'c', 1000000, '21', '', 1 FROM numbers"
    ));
    server.execute(&format!(
        "INSERT INTO search_texts (account_id, kind, record_id, folded)
         {numbers} SELECT {account}, 'product', {id}, 'hosting' FROM numbers"
    ));
    server.execute(&format!(
        "INSERT INTO record_counts (account_id, kind, total) VALUES ({account}, 'product', {})
         ON CONFLICT (account_id, kind) DO UPDATE SET total = excluded.total",
        until
    ));
    // As PostgreSQL does by itself a minute later.
    let tables = ["products", "search_texts"];
    server.app.store.write_now(0, move |tx| tx.update_statistics(&tables, 1_000_000)).unwrap();
}

/// Ten thousand matches are counted. Of more, the response says that there are more, and the pages after those are there.
fn a_search_is_counted_up_to_a_limit(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    add_products(&server, &client, 0, 10_000);
    let meta = |query: &str| client.get(&format!("/v1/products?{query}")).expect(200).json()["meta"].clone();
    let searches = ["search=ho&sort=id&order=asc", "search=hosting&sort=id", "search=hosting", "search=hosting&code=c"];
    for search in searches {
        let exact = meta(search);
        assert_eq!((&exact["total"], &exact["pages"]), (&json!(10_000), &json!(400)), "{search}");
        assert_eq!(exact["total_is_minimum"], Value::Null, "{search}");
    }
    assert_eq!(meta("search=hosting&sums=price")["sums"], json!({"price": 10_000}));

    add_products(&server, &client, 10_000, 10_060);
    for common in [false, true] {
        if common {
            make_common(&server, &["hosting"]);
        }
        for search in searches {
            let page =
                |number: i64| client.get(&format!("/v1/products?{search}&per_page=100&page={number}")).expect(200);
            let relates = |reply: &Reply, relation: &str| reply.header("link").contains(&format!("rel=\"{relation}\""));
            for number in [1, 100] {
                let reply = page(number);
                let meta = reply.json()["meta"].clone();
                assert_eq!((&meta["total"], &meta["pages"]), (&json!(10_000), &json!(100)), "{search}");
                assert_eq!(meta["total_is_minimum"], true, "{search}");
                assert!(relates(&reply, "next") && !relates(&reply, "last"), "{search}");
            }
            // The last page is not full, so it has the exact number.
            let reply = page(101);
            let last = reply.json();
            assert_eq!((&last["meta"]["total"], &last["meta"]["pages"]), (&json!(10_060), &json!(101)), "{search}");
            assert_eq!(last["meta"]["total_is_minimum"], Value::Null, "{search}");
            assert_eq!(last["data"].as_array().unwrap().len(), 60, "{search}");
            assert!(relates(&reply, "prev") && relates(&reply, "last"), "{search}");
            let reply = page(102);
            let past = reply.json();
            assert_eq!((&past["data"], &past["meta"]["total"]), (&json!([]), &json!(10_000)), "{search}");
            assert!(!relates(&reply, "next"), "{search}");
        }
    }
    let sums = meta("search=hosting&sums=price");
    assert_eq!((&sums["sums"], &sums["sums_limit"]), (&Value::Null, &json!(10_000)));
    // Without a search, the total and the sums are exact.
    let filtered = meta("code=c&sums=price");
    assert_eq!((&filtered["total"], &filtered["total_is_minimum"]), (&json!(10_060), &Value::Null));
    assert_eq!(filtered["sums"], json!({"price": 10_060}));
    for table in ["search_texts", "products", "record_counts"] {
        let kind = if table == "products" { "" } else { " AND kind = 'product'" };
        server.execute(&format!("DELETE FROM {table} WHERE account_id = {}{kind}", client.account));
    }
}
