//! No statement of the program looks through what grows with an account: the databases say how they would run each one
//! that was really run.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kantoor::clock::Moment;
use kantoor::{search, worker};
use serde_json::json;
use store::{Dialect, seen};
use web::scripted::{Reply, Scripted};

use crate::on_both;
use crate::support::{Client, Server, execute};
use crate::walk;

/// Tables that stay small: one row for the server, or a few for each account.
const SMALL: &[&str] = &[
    "schema_migrations",
    "secrets",
    "sqlite_schema",
    "record_counts",
    "counters",
    "settings",
    "tax_rates",
    "payment_terms",
    "corporate_identities",
    "custom_fields",
    "email_domains",
    "pipelines",
    "phases",
    "deal_sources",
    "ticket_statuses",
    "ticket_channels",
    "webhook_endpoints",
    "webhook_cursors",
    "key_limits",
];

/// Does one of everything: every route, half a year of a business and a year more, jobs, flows, webhooks.
fn drive(server: &Server) {
    let receiver = Scripted::start(|_| Reply::json(200, "{}".to_string())).unwrap();
    let app = server.app.clone();
    server.block_on(server.apart(move || worker::start(&app))).unwrap().unwrap();
    let client = server.client();
    client.post("/v1/webhook-endpoints", json!({"url": receiver.url("/in")})).expect(201);
    let steps = json!([{"type": "http", "url": receiver.url("/flow")}, {"type": "create_task", "title": "Call"}]);
    let flow = json!({"name": "Calls", "trigger_type": "custom", "trigger_key": "order.shipped", "steps": steps});
    client.post("/v1/automation/flows", flow).expect(201);
    for (resource, route) in
        walk::routes().filter(|(_, route)| !route.path.contains("test-clock") && !route.path.ends_with("/stream"))
    {
        let made = walk::make(&client, resource);
        let path = made.path(resource, route);
        let key = format!("k{}", walk::next_number());
        let headers = [("idempotency-key", key.as_str())];
        walk::send(&client, &path, route, &client, if route.method.name() == "POST" { &headers } else { &[] });
        if route.lists() {
            client.get(&format!("{path}?search=example")).expect(200);
        }
    }
    let (account, key) = server.app.create_demo_account(Moment::parse("2026-05-04T10:00:00Z")).unwrap();
    let demo = Client::new(server.address, key, account.number);
    partly_paid_and_late(&demo);
    demo.post("/v1/test-clock/advance", json!({"to": "2027-05-04T10:00:00Z"})).expect(200);
    let (_, key) = server.app.create_account("On time", None).unwrap();
    let on_time = Client::new(server.address, key, 0);
    on_time.post("/v1/clients", json!({"company_name": "x"})).expect(201);
    let again = "UPDATE jobs SET run_at = 1 WHERE kind IN ('housekeeping', 'days') AND state = 'ready'";
    server.app.store.write_now(0, move |tx| tx.execute(again, &[]).map(drop)).unwrap();
    let due = "SELECT count(*) FROM jobs WHERE state IN ('ready', 'running') AND run_at <= $1 AND attempts < 2";
    let started = Instant::now();
    loop {
        let now = server.app.clock.now();
        let waiting = server.app.store.read_now(move |tx| tx.int(due, &[now.0.into()])).unwrap();
        if waiting == 0 || started.elapsed() > Duration::from_secs(60) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    search::tidy(&server.app.store).unwrap();
    server.metric("kantoor_http_connections");
}

/// Two invoices of one client that are paid in part and late.
fn partly_paid_and_late(client: &Client) {
    let owner = client.post("/v1/clients", json!({"company_name": "Late"})).expect(201).id();
    for _ in 0..2 {
        let rows = json!([{"name": "Work", "quantity": 1, "unit_price": 100, "vat_rate": "21"}]);
        let invoice = json!({"client_id": owner, "generation_mode": "final", "rows": rows});
        let id = client.post("/v1/invoices", invoice).expect(201).id();
        client.post(&format!("/v1/invoices/{id}/payments"), json!({"amount": 10})).expect(201);
    }
}

/// Columns that many rows of an account have the same value in: an index that is asked for no other finds too much.
const COARSE: &[&str] = &[
    "account_id",
    "active",
    "cause",
    "direction",
    "generation_mode",
    "kind",
    "payment_status",
    "pending",
    "provider",
    "state",
    "status",
    "type",
];

on_both! {
    fn no_statement_looks_through_what_grows(db) {
        let (folder, url) = (db.data.clone(), db.url.clone());
        let server = Server::with(db, |config| config.allow_private_addresses = "127.0.0.1".to_string());
        drive(&server);
        let dialect = server.app.store.dialect();
        let statements: Vec<String> = seen::statements(dialect).into_iter().filter(|sql| {
            ["SELECT", "UPDATE", "DELETE", "WITH"].iter().any(|verb| sql.starts_with(verb))
        }).collect();
        assert!(statements.len() > 300, "{} statements", statements.len());
        if let Ok(file) = std::env::var("KANTOOR_STATEMENTS") {
            std::fs::write(file, statements.join("\n;;\n")).unwrap();
        }
        let mut wrong = BTreeSet::new();
        match dialect {
            Dialect::Sqlite => {
                // Without statistics, and with those of a time at which there was next to nothing.
                let conn = rusqlite::Connection::open(folder.join("kantoor.db")).unwrap();
                for analyzed in [false, true] {
                    if analyzed {
                        conn.execute_batch("ANALYZE").unwrap();
                    }
                    wrong.extend(statements.iter().filter_map(|sql| scanned_by_sqlite(&conn, sql)));
                }
            }
            Dialect::Postgres => {
                execute(&url, "ANALYZE");
                let mut outside = postgres::Client::connect(&url, postgres::NoTls).unwrap();
                outside.batch_execute("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan").unwrap();
                wrong.extend(statements.iter().filter_map(|sql| scanned_by_postgres(&mut outside, sql)));
            }
        }
        let wrong: Vec<String> = wrong.into_iter().collect();
        assert!(wrong.is_empty(), "{} statements look through too much:\n\n{}", wrong.len(), wrong.join("\n\n"));
    }
}

/// Statements that may, and why.
const EXCEPTIONS: &[(&str, &str)] = &[];

fn is_excepted(sql: &str) -> bool {
    EXCEPTIONS.iter().any(|(part, _)| sql.contains(part))
}

/// The statement and its plan, if that looks through a table.
fn scanned_by_sqlite(conn: &rusqlite::Connection, sql: &str) -> Option<String> {
    let mut statement =
        conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let plan: Vec<String> = statement.query_map([], |row| row.get(3)).unwrap().map(Result::unwrap).collect();
    let limited = sql.contains("LIMIT");
    let bad = plan.iter().any(|line| {
        let mut words = line.split_whitespace();
        let (verb, table) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let table = table_of(sql, table);
        if SMALL.contains(&table.as_str())
            || table.is_empty()
            || line.contains("VIRTUAL TABLE")
            || line.contains("CONSTANT ROW")
        {
            return false;
        }
        match verb {
            "SCAN" => !limited || !line.contains("INDEX"),
            "SEARCH" => {
                let by = line.rsplit_once('(').map_or("", |(_, by)| by.trim_end_matches(')'));
                let narrow = by
                    .split(" AND ")
                    .any(|part| part.strip_suffix("=?").is_some_and(|column| !COARSE.contains(&column)));
                !narrow && !limited && !line.contains("rowid=?")
            }
            _ => false,
        }
    });
    (bad && !is_excepted(sql)).then(|| format!("{sql}\n    {}", plan.join("\n    ")))
}

/// The table behind the name of a line of a plan; nothing for a part of the statement itself.
fn table_of(sql: &str, name: &str) -> String {
    let words: Vec<&str> = sql
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ','))
        .filter(|word| !word.is_empty())
        .collect();
    for (place, word) in words.iter().enumerate() {
        let introduced = ["FROM", "JOIN", "UPDATE", "INTO"].contains(word);
        let Some(table) = words.get(place + 1).filter(|_| introduced) else { continue };
        let alias = match words.get(place + 2) {
            Some(&"AS") => words.get(place + 3),
            other => other,
        };
        if *table == name || alias == Some(&name) {
            let is_table = !["due", "found", "part", "SELECT"].contains(table);
            return if is_table { table.to_string() } else { String::new() };
        }
    }
    String::new()
}

fn scanned_by_postgres(outside: &mut postgres::Client, sql: &str) -> Option<String> {
    let count = sql
        .split('$')
        .skip(1)
        .filter_map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<usize>().ok())
        .max()
        .unwrap_or(0);
    let nothing = vec!["NULL"; count].join(", ");
    let execute = if count == 0 { "EXECUTE looked".to_string() } else { format!("EXECUTE looked ({nothing})") };
    outside.batch_execute(&format!("PREPARE looked AS {sql}")).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let plan: Vec<String> =
        outside.query(&format!("EXPLAIN {execute}"), &[]).unwrap().iter().map(|row| row.get(0)).collect();
    outside.batch_execute("DEALLOCATE looked").unwrap();
    let limited = sql.contains("LIMIT");
    let mut bad = false;
    for (place, line) in plan.iter().enumerate() {
        let Some((_, rest)) = line.split_once("Scan").filter(|_| line.contains(" on ")) else { continue };
        let Some(table) = rest.split(" on ").nth(1).and_then(|rest| rest.split_whitespace().next()) else { continue };
        if SMALL.contains(&table) || line.contains("Bitmap Index Scan") {
            continue;
        }
        let conditions: String = plan[place + 1..]
            .iter()
            .take_while(|line| !line.contains("->"))
            .map(|line| line.trim())
            .collect::<Vec<_>>()
            .join(" ");
        let narrow = conditions.split(['(', ')']).any(|part| {
            part.split_once(" = ")
                .is_some_and(|(column, _)| !COARSE.contains(&column.trim().rsplit('.').next().unwrap_or_default()))
        });
        bad |= line.contains("Seq Scan") || (!narrow && !limited);
    }
    (bad && !is_excepted(sql)).then(|| format!("{sql}\n    {}", plan.join("\n    ")))
}
