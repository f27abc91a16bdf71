//! Limits on the work of a transaction: every route with the largest body that it accepts. Counted, not timed; to see
//! the times, run `KANTOOR_TEST_CLOSURES=1 cargo nextest run --no-capture -E 'test(no_route_does_much)'`.

use engine::record::FieldInfo;
use engine::resource::{Method, RequestBody};
use serde_json::{Value, json};
use store::seen;

use crate::on_both;
use crate::support::{Db, Server, Shared};
use crate::walk;

/// The maximum work of a closure: a document of a thousand rows, and what follows from it.
const STATEMENTS: u64 = 100;
const ROWS: u64 = 500;
const BYTES: u64 = 4 * 1024 * 1024;

/// A document with the maximum amount of text.
fn large() -> Value {
    json!({"title": "Large", "rows": vec![row(500); 1000]})
}

/// A row whose description has this many bytes as JSON. Every letter is escaped, which takes the longest.
fn row(bytes: usize) -> Value {
    json!({"name": "x", "description": "\"\\".repeat(bytes / 4), "unit_price": 1, "vat_rate": 21})
}

/// Returns the number of closures since the previous call, and the maximum work of any of them.
fn most(count: fn(&seen::Closure) -> u64) -> (usize, u64) {
    let closures = seen::closures();
    (closures.len(), closures.iter().map(count).max().unwrap_or(0))
}

on_both![
    deletes_a_deal_with_many_tasks_in_slices,
    the_text_of_a_document_has_a_limit,
    writes_a_large_document_no_more_often_than_needed,
    products_of_rows_are_looked_up_together,
    deletes_a_product_in_many_drafts_in_slices,
    changing_the_expiry_days_rewrites_nothing,
    rejects_html_that_is_slow_to_sanitize,
    no_route_does_much_in_a_transaction,
];

fn deletes_a_deal_with_many_tasks_in_slices(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let owner = client.post("/v1/clients", json!({"company_name": "x"})).expect(201).id();
    let deal = client.post("/v1/deals", json!({"title": "Large", "client_id": owner})).expect(201).id();
    let tasks: Vec<String> =
        (0..250).map(|_| client.post("/v1/tasks", json!({"title": "x", "deal_id": deal})).expect(201).id()).collect();
    seen::closures();
    client.delete(&format!("/v1/deals/{deal}")).expect(200);
    // Each task takes about four statements, and a transaction handles at most a hundred.
    let closures = seen::closures();
    let most = closures.iter().map(|closure| closure.statements).max().unwrap();
    assert!(closures.len() > 1 && most < 700, "{} transactions, of {most} statements", closures.len());
    client.get(&format!("/v1/deals/{deal}")).expect(404);
    for id in tasks.iter().step_by(25) {
        assert_eq!(client.get(&format!("/v1/tasks/{id}")).data()["meta"]["deal_id"], "");
    }
}

fn the_text_of_a_document_has_a_limit(server: Shared) {
    let client = server.client();
    let made = client.post("/v1/invoices", large()).expect(201).id();
    let too_large = json!(vec![row(600); 1000]);
    for reply in [
        client.post("/v1/invoices", json!({"title": "x", "rows": too_large})),
        client.patch(&format!("/v1/invoices/{made}"), json!({"rows": too_large})),
    ] {
        assert_eq!(reply.expect(422).faults(), ["rows: too_long"]);
    }
    let refused = client.post("/v1/subscriptions", json!({"title": "x", "lines": too_large})).expect(422);
    assert_eq!(refused.faults(), ["lines: too_long"]);
    assert!(
        refused.text.contains("may have at most 524288 bytes of text in all rows together, but has 601000"),
        "{}",
        refused.text
    );
    // Half a megabyte of text that is longer as JSON.
    let escaped = json!(vec![json!({"name": "x", "description": "\n".repeat(300), "unit_price": 1}); 1000]);
    let refused = client.post("/v1/quotes", json!({"title": "x", "rows": escaped})).expect(422);
    assert_eq!(refused.faults(), ["rows: too_long"]);
    // Texts from products count too.
    let name = "😀".repeat(255);
    let product = client.post("/v1/products", json!({"name": name})).expect(201).id();
    let rows = json!(vec![json!({"product_id": product}); 1000]);
    assert_eq!(client.post("/v1/quotes", json!({"title": "x", "rows": rows})).expect(422).faults(), ["rows: too_long"]);
    let rows = json!(vec![json!({"product_id": product}); 100]);
    assert_eq!(
        client.post("/v1/quotes", json!({"title": "x", "rows": rows})).expect(201).data()["rows"][99]["name"],
        name
    );
}

fn writes_a_large_document_no_more_often_than_needed(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    seen::closures();
    let path = format!("/v1/invoices/{}", client.post("/v1/invoices", large()).expect(201).id());
    // The record and two events, of 700 KB each.
    assert!(most(|one| one.bytes).1 < 2_300_000);
    client.patch(&path, json!({"reference": "x"})).expect(200);
    assert!(most(|one| one.bytes).1 < 1_600_000);
    client.act(&format!("{path}/finalize")).expect(200);
    // The record, its event, and the PDF job.
    assert!(most(|one| one.bytes).1 < 2_300_000);
}

fn products_of_rows_are_looked_up_together(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let products: Vec<String> = (0..150)
        .map(|n| client.post("/v1/products", json!({"name": format!("P{n}"), "price": n})).expect(201).id())
        .collect();
    let rows: Vec<Value> = (0..1000).map(|n| json!({"product_id": products[n % 150]})).collect();
    seen::closures();
    let made = client.post("/v1/invoices", json!({"title": "x", "rows": rows})).expect(201).data();
    assert!(most(|one| one.statements).1 < 50);
    assert_eq!((&made["rows"][149]["name"], &made["rows"][999]["unit_price"]), (&json!("P149"), &json!(99)));
    let unknown = json!([{"product_id": products[0]}, {"product_id": "nobody"}]);
    let refused = client.post("/v1/invoices", json!({"title": "x", "rows": unknown})).expect(422);
    assert!(refused.faults().contains(&"rows[1].product_id: reference_not_found".to_string()), "{}", refused.text);
}

fn deletes_a_product_in_many_drafts_in_slices(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let product = client.post("/v1/products", json!({"name": "Boiler", "price": 10})).expect(201).id();
    let rows = json!([{"product_id": product}, {"name": "Other", "unit_price": 1}]);
    let paths: Vec<String> = (0..90)
        .map(|n| {
            let kind = ["invoices", "quotes", "workorders"][n % 3];
            format!(
                "/v1/{kind}/{}",
                client.post(&format!("/v1/{kind}"), json!({"title": "x", "rows": rows})).expect(201).id()
            )
        })
        .collect();
    let fixed = format!(
        "/v1/invoices/{}",
        client.post("/v1/invoices", json!({"title": "x", "rows": rows, "generate": true})).expect(201).id()
    );
    let lines = json!([{"product_id": product, "vat_code": "NL21"}]);
    let subscription = format!(
        "/v1/subscriptions/{}",
        client.post("/v1/subscriptions", json!({"title": "x", "lines": lines})).expect(201).id()
    );
    seen::closures();
    client.delete(&format!("/v1/products/{product}")).expect(204);
    // Each draft takes about six statements.
    let (closures, statements) = most(|one| one.statements);
    assert!(closures > 1 && statements < 700, "{closures} transactions, of {statements} statements");
    client.get(&format!("/v1/products/{product}")).expect(404);
    for path in &paths {
        let data = client.get(path).data();
        assert_eq!(
            (&data["rows"][0]["product_id"], &data["rows"][0]["name"]),
            (&json!(""), &json!("Boiler")),
            "{path}"
        );
        assert_eq!(data["meta"]["version"], 2);
    }
    assert_eq!(client.get(&fixed).data()["rows"][0]["product_id"], product);
    assert_eq!(client.get(&subscription).data()["lines"][0]["product_id"], "");
    let rates = client.get("/v1/tax-rates").data();
    let rate = rates.as_array().unwrap().iter().find(|rate| rate["code"] == "NL21").unwrap()["id"].clone();
    let rate = format!("/v1/tax-rates/{}", rate.as_str().unwrap());
    assert_eq!(client.delete(&rate).expect(409).code(), "in_use");
    client.patch(&subscription, json!({"lines": [{"title": "x", "vat_code": "NL9"}]})).expect(200);
    client.delete(&rate).expect(204);
}

fn changing_the_expiry_days_rewrites_nothing(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    for day in 1..=60 {
        let end = format!("2026-{:02}-{:02}", 6 + day / 30, 1 + day % 28);
        let body = json!({"title": "x", "subscription_end": end, "lines": [{"title": "x", "unit_price": 1}]});
        client.post("/v1/subscriptions", body).expect(201);
    }
    let advance = |to: &str| client.post("/v1/test-clock/advance", json!({"to": to})).expect(200);
    let expiring = || server.events(&client, 0).iter().filter(|name| *name == "subscription.expiring").count();
    client.patch("/v1/settings", json!({"subscription_expiring_days": 0})).expect(200);
    advance("2026-05-20T10:00:00Z");
    assert_eq!(expiring(), 0);
    seen::closures();
    client.patch("/v1/settings", json!({"subscription_expiring_days": 100})).expect(200);
    let (_, rows) = most(|one| one.rows);
    assert!(rows < 20, "{rows}");
    advance("2026-05-20T11:00:00Z");
    assert_eq!(expiring(), 60);
    client.patch("/v1/settings", json!({"subscription_expiring_days": 101})).expect(200);
    advance("2026-09-01T10:00:00Z");
    assert_eq!(expiring(), 60, "each is emitted once");
}

fn rejects_html_that_is_slow_to_sanitize(server: Shared) {
    let client = server.client();
    let ticket = client.post("/v1/tickets", json!({"subject": "x"})).expect(201).id();
    let nested = json!({"body": "x", "html": "<b>".repeat(21_000)});
    for path in [format!("/v1/tickets/{ticket}/messages"), format!("/v1/tickets/{ticket}/messages/inbound")] {
        let refused = client.post(&path, nested.clone()).expect(422);
        assert_eq!(refused.faults(), ["html: too_long"]);
        assert!(refused.text.contains("has tags nested more than 500 deep"), "{}", refused.text);
        let table = "<table><tr><td>One<td><b>two</b><script>x</script></table>".repeat(1000);
        let made = client.post(&path, json!({"html": table})).expect(201).data();
        assert!(!made.to_string().contains("script") && made["body"].as_str().unwrap().starts_with("Onetwo"), "{made}");
    }
}

fn no_route_does_much_in_a_transaction(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let mut wrong = Vec::new();
    for (resource, route) in walk::routes() {
        if route.method == Method::Get || route.path.contains("test-clock") {
            continue;
        }
        let made = walk::make(&client, resource);
        let path = made.path(resource, route);
        let good = match route.body {
            RequestBody::Nothing | RequestBody::File => Value::Null,
            _ => walk::good_body(&client, route),
        };
        // The largest accepted body: all fields together, or else one by one.
        let mut largest = good.clone();
        for field in &route.fields {
            for value in larger(&good[field.name], field) {
                let before = std::mem::replace(&mut largest[field.name], value);
                let tried =
                    client.send(route.method.name(), &path.replace(&made.id, "nobody"), &[], &largest.to_string());
                // The other record does not exist: errors about the body take precedence.
                if matches!(tried.status, 422 | 413 | 400) {
                    largest[field.name] = before;
                } else {
                    break;
                }
            }
        }
        // Fields that must be unique.
        for name in ["number", "external_id"] {
            if largest[name].is_string() {
                largest[name] = json!(format!("L{}", walk::next_number()));
            }
        }
        seen::closures();
        let reply = match route.body {
            RequestBody::File => client.upload("large.txt", &vec![b'x'; 1_000_000]),
            RequestBody::Nothing => client.send(route.method.name(), &path, &[], ""),
            _ => client.send(route.method.name(), &path, &[], &walk::renamed(largest, route).to_string()),
        };
        let closures = seen::closures();
        let most = |count: fn(&seen::Closure) -> u64| closures.iter().map(count).max().unwrap_or(0);
        let (statements, rows, bytes) = (most(|one| one.statements), most(|one| one.rows), most(|one| one.bytes));
        let what = format!(
            "{} {}: {statements} statements, {rows} rows, {bytes} bytes ({})",
            route.method.name(),
            route.path,
            reply.status
        );
        if std::env::var("KANTOOR_TEST_CLOSURES").is_ok() {
            let took = closures.iter().map(|one| one.took).max().unwrap_or_default();
            eprintln!("{took:>12.3?} {what}");
        }
        assert!(reply.status < 500, "{what}: {}", reply.text);
        if statements > STATEMENTS || rows > ROWS || bytes > BYTES {
            wrong.push(what);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns the largest valid values of a field, largest first.
fn larger(good: &Value, field: &FieldInfo) -> Vec<Value> {
    let schema = (field.schema)(&field.rules);
    let formed = ["enum", "pattern", "x-form"].iter().any(|key| schema.get(key).is_some());
    match (schema["type"].as_str(), good) {
        (Some("string"), _) if field.name == "html" => vec![json!("<p>x</p>".repeat(field.rules.max_length / 8))],
        (Some("string"), _) if !formed && field.rules.refers.is_empty() && field.rules.unique.is_none() => {
            vec![json!("é".repeat(field.rules.max_length))]
        }
        (Some("array"), _) if matches!(field.name, "rows" | "lines") => vec![json!(vec![row(500); 1000])],
        (Some("array"), Value::Array(items)) if !items.is_empty() => {
            [1000, 100, 50].iter().map(|count| json!(vec![items[0].clone(); *count])).collect()
        }
        (Some("object"), _) => vec![json!({"x": "y".repeat(256 * 1024 - 16)}), json!({"x": "y".repeat(60_000)})],
        _ => Vec::new(),
    }
}

/// On PostgreSQL each result that is waited for is a round trip, during which no one else can write to the account.
#[test]
fn few_answers_are_waited_for() {
    let Some(db) = Db::postgres() else { return };
    let server = Server::start(db);
    let client = server.client();
    let owner = client.post("/v1/clients", json!({"company_name": "x"})).expect(201).id();
    let draft = json!({"client_id": owner, "title": "x", "rows": vec![row(10); 3]});
    let mut last = draft.clone();
    last["generation_mode"] = json!("final");
    for (path, body, most) in
        [("/v1/clients", json!({"company_name": "y"}), 5), ("/v1/invoices", draft, 11), ("/v1/invoices", last, 13)]
    {
        // Not counted the first time, when statements are prepared.
        client.post(path, body.clone()).expect(201);
        seen::closures();
        client.post(path, body.clone()).expect(201);
        let closures = seen::closures();
        let one = closures.iter().max_by_key(|closure| closure.statements).unwrap();
        eprintln!("POST {path}: {} statements, {} of them waited for", one.statements, one.waits);
        assert!(one.waits <= most, "POST {path}: {one:?}");
    }
}
