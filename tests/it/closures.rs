//! How much a transaction does at most: every route with the largest body that it takes. Counted, not timed; to see the
//! times, run `KANTOOR_CLOSURES=1 cargo nextest run --no-capture -E 'test(no_route_does_much)'`.

use kantoor::record::FieldInfo;
use kantoor::resources::{Method, Takes};
use serde_json::{Value, json};
use store::seen;

use crate::on_both;
use crate::support::{Db, Server};
use crate::walk;

/// What one closure may do: a document of a thousand rows, and all that follows from it.
const STATEMENTS: u64 = 100;
const ROWS: u64 = 500;
const BYTES: u64 = 16 * 1024 * 1024;

on_both![
    a_deal_with_many_tasks_goes_in_small_steps,
    html_that_takes_long_to_clean_is_refused,
    no_route_does_much_in_a_transaction,
];

fn a_deal_with_many_tasks_goes_in_small_steps(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let owner = client.post("/v1/clients", json!({"company_name": "x"})).expect(201).id();
    let deal = client.post("/v1/deals", json!({"title": "Large", "client_id": owner})).expect(201).id();
    let tasks: Vec<String> =
        (0..250).map(|_| client.post("/v1/tasks", json!({"title": "x", "deal_id": deal})).expect(201).id()).collect();
    seen::closures();
    client.delete(&format!("/v1/deals/{deal}")).expect(200);
    // Each task takes four statements or so, and a transaction has a hundred at most.
    let closures = seen::closures();
    let most = closures.iter().map(|closure| closure.statements).max().unwrap();
    assert!(closures.len() > 1 && most < 700, "{} transactions, of {most} statements", closures.len());
    client.get(&format!("/v1/deals/{deal}")).expect(404);
    for id in tasks.iter().step_by(25) {
        assert_eq!(client.get(&format!("/v1/tasks/{id}")).data()["meta"]["deal_id"], "");
    }
}

fn html_that_takes_long_to_clean_is_refused(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let ticket = client.post("/v1/tickets", json!({"subject": "x"})).expect(201).id();
    let nested = json!({"body": "x", "html": "<b>".repeat(21_000)});
    for path in [format!("/v1/tickets/{ticket}/messages"), format!("/v1/tickets/{ticket}/messages/inbound")] {
        let refused = client.post(&path, nested.clone()).expect(422);
        assert_eq!(refused.faults(), ["html: too_long"]);
        assert!(refused.text.contains("has tags in tags, more than 500 deep"), "{}", refused.text);
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
        let good = match route.takes {
            Takes::Nothing | Takes::File => Value::Null,
            _ => walk::good_body(&client, route),
        };
        // The largest that it takes: all at once, else field by field.
        let mut largest = good.clone();
        for field in &route.fields {
            for value in larger(&good[field.name], field) {
                let before = std::mem::replace(&mut largest[field.name], value);
                let tried =
                    client.send(route.method.name(), &path.replace(&made.id, "nobody"), &[], &largest.to_string());
                // Another record is not there: whatever is said of the body comes first.
                if matches!(tried.status, 422 | 413 | 400) {
                    largest[field.name] = before;
                } else {
                    break;
                }
            }
        }
        // What must differ from other documents.
        for name in ["number", "external_id"] {
            if largest[name].is_string() {
                largest[name] = json!(format!("L{}", walk::next_number()));
            }
        }
        seen::closures();
        let reply = match route.takes {
            Takes::File => client.upload("large.txt", &vec![b'x'; 1_000_000]),
            Takes::Nothing => client.send(route.method.name(), &path, &[], ""),
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
        if std::env::var("KANTOOR_CLOSURES").is_ok() {
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

/// Values of a field that are as large as may be, the largest first.
fn larger(good: &Value, field: &FieldInfo) -> Vec<Value> {
    let schema = (field.schema)(&field.rules);
    let formed = ["enum", "pattern", "x-form"].iter().any(|key| schema.get(key).is_some());
    match (schema["type"].as_str(), good) {
        (Some("string"), _) if field.name == "html" => vec![json!("<p>x</p>".repeat(field.rules.max_length / 8))],
        (Some("string"), _) if !formed && field.rules.refers.is_empty() && field.rules.unique.is_none() => {
            vec![json!("é".repeat(field.rules.max_length))]
        }
        (Some("array"), Value::Array(items)) if !items.is_empty() => {
            [1000, 100, 50].iter().map(|count| json!(vec![items[0].clone(); *count])).collect()
        }
        (Some("object"), _) => vec![json!({"x": "y".repeat(256 * 1024 - 16)}), json!({"x": "y".repeat(60_000)})],
        _ => Vec::new(),
    }
}
