//! Limits the number of statements of the most frequent writes, since each may be a round trip to PostgreSQL. It counts the
//! statements of one request on an idle server. Statements are recorded per process, so this test needs its own process,
//! as cargo-nextest provides.

use serde_json::{Value, json};
use store::{Dialect, seen};

use crate::on_both;
use crate::support::{Client, Db, Server};

/// A request: method, path, body.
type Request = (&'static str, String, Value);

/// The name of a write, its maximum number of statements on SQLite and on PostgreSQL, and its request.
type Budget = (&'static str, usize, usize, fn(&Client) -> Request);

/// The budgets. The function of each creates the records that the request needs, and returns the request. Lower a number
/// when fewer statements are enough.
const BUDGET: &[Budget] = &[
    ("POST client", 6, 11, |_| ("POST", "/v1/clients".to_string(), client_body())),
    // One looks for a signed mandate: what waits to be collected follows the IBAN.
    ("PATCH client", 4, 7, |client| ("PATCH", made(client, "/v1/clients", client_body()), json!({"city": "Gouda"}))),
    ("POST product", 4, 7, |_| ("POST", "/v1/products".to_string(), product_body())),
    ("POST invoice, draft", 6, 11, |client| ("POST", "/v1/invoices".to_string(), document(client, "draft"))),
    ("POST invoice, final", 9, 16, |client| ("POST", "/v1/invoices".to_string(), document(client, "final"))),
    ("PATCH invoice", 4, 7, |client| ("PATCH", draft(client), json!({"title": "Repairs and parts"}))),
    ("POST invoice finalize", 7, 13, |client| ("POST", format!("{}/finalize", draft(client)), Value::Null)),
    ("POST invoice payment", 7, 10, |client| {
        let path = made(client, "/v1/invoices", document(client, "final"));
        ("POST", format!("{path}/payments"), json!({"amount": 10}))
    }),
    ("POST quote", 6, 11, |client| ("POST", "/v1/quotes".to_string(), document(client, "draft"))),
    ("POST ticket", 8, 12, |_| {
        let ticket = json!({"subject": "The boiler leaks", "client_email": "s.devries@example.com"});
        ("POST", "/v1/tickets".to_string(), ticket)
    }),
];

fn client_body() -> Value {
    json!({"company_name": "Bakkerij De Ster", "lastname": "de Vries", "email": "s.devries@example.com", "city": "Delft"})
}

fn product_body() -> Value {
    json!({"name": "Website hosting", "price": 12.5, "vat_rate": "21", "unit": "month"})
}

/// A document with three rows for a new client.
fn document(client: &Client, mode: &str) -> Value {
    let path = made(client, "/v1/clients", client_body());
    let row = |name: &str, price: f64| json!({"name": name, "quantity": 2, "unit_price": price, "vat_rate": "21"});
    let rows = [row("Labour", 62.5), row("Boiler", 1250.0), row("Travel", 35.0)];
    json!({"title": "Repairs", "client_id": path.rsplit('/').next(), "generation_mode": mode, "rows": rows})
}

fn draft(client: &Client) -> String {
    made(client, "/v1/invoices", document(client, "draft"))
}

/// Creates a record and returns its path.
fn made(client: &Client, path: &str, body: Value) -> String {
    format!("{path}/{}", client.post(path, body).expect(201).id())
}

on_both![no_write_takes_more_statements,];

fn no_write_takes_more_statements(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let postgres = server.app.store.dialect() == Dialect::Postgres;
    let mut wrong = Vec::new();
    for (what, on_sqlite, on_postgres, request) in BUDGET {
        let allowed = if postgres { *on_postgres } else { *on_sqlite };
        let statements = fewest(&client, *request);
        let count = statements.len();
        if count > allowed {
            let listed = statements.join("\n    ");
            wrong
                .push(format!("{what} takes {count} statements, {} more than allowed:\n    {listed}", count - allowed));
        } else if count < allowed {
            wrong.push(format!("{what} takes {count} statements. Lower its budget, which is {allowed}."));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Returns the statements of a request: the fewest of three attempts, in case background work interferes.
fn fewest(client: &Client, request: fn(&Client) -> Request) -> Vec<String> {
    let tries = (0..3).map(|_| {
        let (method, path, body) = request(client);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        seen::in_order();
        let reply = client.send(method, &path, &[], &body);
        let statements = seen::in_order();
        assert!(reply.status < 300, "{method} {path}: {}", reply.text);
        // The API key is looked up at most once a second.
        statements.into_iter().filter(|sql| !sql.contains(" keys ")).collect::<Vec<_>>()
    });
    tries.min_by_key(Vec::len).unwrap_or_default()
}
