//! No statement scans a table that grows with an account, according to the query plans of all statements that were
//! executed. They are recorded per process, so this needs its own process, as with cargo-nextest.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use engine::clock::Moment;
use engine::jobs::worker;
use engine::search;
use serde_json::json;
use store::{Dialect, seen};
use web::scripted::{Reply, Scripted};

use crate::asking::with_mandate;
use crate::on_both;
use crate::support::{Client, Db, Server, execute};
use crate::{walk, work};

/// Tables that stay small: one row for the server, or a few per account.
const SMALL: &[&str] = &[
    "schema_migrations",
    "accounts",
    "flows",
    "secrets",
    "sqlite_schema",
    "record_counts",
    "counters",
    "settings",
    "revenue_months",
    "tax_rates",
    "payment_terms",
    "mail_templates",
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
    "users",
    "second_factors",
    "mail_links",
    "key_limits",
    "log_heads",
    "log_verifications",
    "nodes",
    "holds",
    "backups",
];

/// Does everything once: every route, half a year of a business and another year, jobs, flows, webhooks.
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
        if route.lists() && (walk::can_be_made(resource) || !route.path.contains('{')) {
            client.get(&format!("{path}?search=example")).expect(200);
        }
    }
    for path in [
        "search?q=example",
        "search?q=ex",
        "mails?status=failed",
        "mails?about_id=x&before=019df263-b4af-739d-95b6-5a14849e885a",
        "invoices?sums=open_amount",
    ] {
        client.get(&format!("/v1/{path}")).expect(200);
    }
    let (account, key) =
        kantoor::opening::create_demo_account(&server.app, Moment::parse("2026-05-04T10:00:00Z")).unwrap();
    let demo = Client::new(server.address, key, account.number);
    partly_paid_and_late(&demo);
    waits_for_a_file(&server.client());
    demo.post("/v1/test-clock/advance", json!({"to": "2027-05-04T10:00:00Z"})).expect(200);
    let (_, key) = kantoor::opening::create_account(&server.app, "On time", None).unwrap();
    let on_time = Client::new(server.address, key, 0);
    on_time.post("/v1/clients", json!({"company_name": "x"})).expect(201);
    let again = "UPDATE jobs SET run_at = 1 WHERE kind IN ('housekeeping', 'days') AND state = 'ready'";
    server.app.store.write_now(0, move |tx| tx.execute(again, &[]).map(drop)).unwrap();
    let due = "SELECT count(*) FROM jobs WHERE state IN ('ready', 'running') AND run_at <= $1 AND attempts < 2
               AND kind IN ('housekeeping', 'days', 'subscriptions', 'collect')";
    let started = Instant::now();
    loop {
        let now = server.now();
        let waiting = server.app.store.read_now(move |tx| tx.int(due, &[now.0.into()])).unwrap();
        if waiting == 0 || started.elapsed() > Duration::from_secs(60) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    search::tidy(&server.app.store).unwrap();
    server.metric("kantoor_http_connections");
}

/// Two invoices of one client that are partly paid and late.
fn partly_paid_and_late(client: &Client) {
    let owner = client.post("/v1/clients", json!({"company_name": "Late"})).expect(201).id();
    for _ in 0..2 {
        let rows = json!([{"name": "Work", "quantity": 1, "unit_price": 100, "vat_rate": "21"}]);
        let invoice = json!({"title": "Late", "client_id": owner, "generation_mode": "final", "rows": rows});
        let id = client.post("/v1/invoices", invoice).expect(201).id();
        client.post(&format!("/v1/invoices/{id}/payments"), json!({"amount": 10})).expect(201);
    }
}

/// An invoice that the next bank file has.
fn waits_for_a_file(client: &Client) {
    let rows = json!([{"name": "Work", "quantity": 1, "unit_price": 100, "vat_rate": "21"}]);
    let invoice =
        json!({"title": "Collected", "client_id": with_mandate(client), "generation_mode": "final", "rows": rows});
    let id = client.post("/v1/invoices", invoice).expect(201).id();
    client.act(&format!("/v1/invoices/{id}/collect")).expect(201);
    assert_eq!(client.get("/v1/direct-debit/batches/waiting").expect(200).data()["count"], 1);
}

/// Columns with the same value in many rows of an account: an index on only these finds too much.
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

on_both![no_statement_scans_a_growing_table,];

fn no_statement_scans_a_growing_table(db: Db) {
    let (folder, url) = (db.data.clone(), db.url.clone());
    let server = Server::with(db, |config| config.allow_private_addresses = "127.0.0.1".to_string());
    server.leaves_jobs();
    drive(&server);
    let dialect = server.app.store.dialect();
    let statements: Vec<String> = seen::statements(dialect)
        .into_iter()
        .filter(|sql| ["SELECT", "UPDATE", "DELETE", "WITH"].iter().any(|verb| sql.starts_with(verb)))
        .collect();
    assert!(statements.len() > 200, "{} statements", statements.len());
    if let Ok(file) = std::env::var("KANTOOR_TEST_STATEMENTS") {
        std::fs::write(file, statements.join("\n;;\n")).unwrap();
    }
    let mut wrong = BTreeSet::new();
    match dialect {
        Dialect::Sqlite => {
            // Without statistics, and with those of a nearly empty database.
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
    assert!(wrong.is_empty(), "{} statements scan too much:\n\n{}", wrong.len(), wrong.join("\n\n"));
    work::no_statement_does_more_among_many_rows(dialect, folder.join("kantoor.db"), url);
}

/// Statements that may scan, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("kind = 'deliver'", "the demo, once in a new account"),
    ("Part of the demo", "the demo, once in a new account"),
    ("AND leaves_at <= $3 AND about = $4", "the demo, once in a new account"),
    ("AND mails.leaves_at <= $3 ORDER BY deliveries.id", "mail of a test account that waits: few, by their index"),
    ("subscription_id <> '' AND payment_status = 'open'", "the demo, once in a new account"),
    ("state = 'running'", "few jobs are under way at a time"),
    ("FROM imports unended", "few imports run at a time"),
    ("AS recent CROSS JOIN files", "the last imports, up to a limit"),
    ("kind IN ($2", "the kinds are all that there are, or those that a test clock waits for"),
    ("FROM runs WHERE account_id = $1 AND lease_until > 0", "few calls are under way at a time"),
    ("generation_mode = 'draft' AND rows LIKE $2", "a product is deleted: drafts are few beside final documents"),
    ("status IN ('active', 'draft') AND lines LIKE $2", "the same, of subscriptions"),
    ("DELETE FROM flow_definitions", "once an hour; those that no run needs are dropped"),
    ("AND at >= $4 AND at <= $5 ORDER BY seq", "a back-test, which reads apart and has limits of its own"),
    (
        "EXISTS (SELECT 1 FROM webhook_deliveries due",
        "PostgreSQL may read all that is due instead of the endpoint's own",
    ),
    ("OR EXISTS (SELECT 1 FROM runs WHERE runs.account_id = accounts.id", "the same, of runs that are due"),
    ("UPDATE mails SET leaves_at", "by the index of mail that waits: only what still does"),
    ("coalesce(min(due), 0)", "the first of an index for each account or endpoint"),
    ("FROM verifications WHERE account_id = $1 AND provider", "its index has those alone that wait"),
    ("search_texts_pending", "texts that wait for the index: some hundreds"),
    ("folded LIKE", "searches are asked for their plans in plans.rs"),
    ("total_incl_vat - credited_amount >= 0", "its index has those alone"),
    ("payment_status = 'open' AND due_date", "its index has those alone that are open"),
    ("state = 'parked'", "few jobs are parked"),
    ("ORDER BY deliveries.id DESC LIMIT", "a page of mail, in the order of its index"),
    ("AND invoices.client_id = $2", "the collections that wait for a bank file, when a mandate is revoked"),
    ("AS attention", "counts up to a limit, by an index of those alone"),
    ("AS live", "counts up to a limit, by an index of the keys that were not revoked"),
    ("AS unpaid", "its index has those alone that are not paid, and they are limited"),
    ("AS summed", "adds up to a limit, on the threads of slow reads"),
    ("_tried WHERE", "rows that were written in the future: their index has them last"),
    ("status IN ('queued', 'retrying') AND updated_at > $1", "the same, on PostgreSQL"),
    (
        "UPDATE jobs SET run_at = $1 WHERE state = 'ready' AND run_at > $2",
        "jobs that stand far ahead: a wrong clock put them there",
    ),
    ("WITH RECURSIVE turns", "steps from account to account, each by the index of turns"),
    ("UPDATE jobs SET run_at = 1", "of this test"),
    ("'subscriptions', 'collect')", "of this test"),
];

fn is_excepted(sql: &str) -> bool {
    EXCEPTIONS.iter().any(|(part, _)| sql.contains(part))
}

/// Whether a part of a plan that looks up `columns` finds few rows: by a selective column, or by all conditions of the
/// statement without exceeding its limit.
fn finds_little(sql: &str, columns: &[&str]) -> bool {
    if columns.iter().any(|column| column.strip_suffix('=').is_some_and(|column| !COARSE.contains(&column))) {
        return true;
    }
    let limited = sql.contains("LIMIT") || sql.contains("max(") || sql.contains("min(");
    let known: Vec<&str> = columns.iter().map(|column| column.trim_end_matches('=')).collect();
    limited && conditions(sql).iter().all(|column| known.contains(&column.as_str()))
}

/// Returns the columns that the innermost conditions of a statement compare, except inequalities.
fn conditions(sql: &str) -> Vec<String> {
    let innermost = sql.rsplit_once("WHERE").map_or("", |(_, rest)| rest);
    let innermost = innermost.split("ORDER BY").next().unwrap_or_default();
    let words: Vec<&str> = innermost
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ','))
        .filter(|word| !word.is_empty())
        .collect();
    let compared = words.windows(2).filter(|pair| ["=", "<", ">", "<=", ">=", "IN", "LIKE"].contains(&pair[1]));
    let names =
        compared.map(|pair| pair[0].rsplit('.').next().unwrap_or_default().trim_matches(['"', '+']).to_string());
    names.filter(|name| name != "account_id" && name.starts_with(|c: char| c.is_ascii_lowercase())).collect()
}

/// Returns the statement and its plan, if it scans a table.
fn scanned_by_sqlite(conn: &rusqlite::Connection, sql: &str) -> Option<String> {
    let mut statement =
        conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut rows = statement.raw_query();
    let mut plan: Vec<String> = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        plan.push(row.get(3).unwrap());
    }
    let bad = plan.iter().any(|line| {
        let mut words = line.split_whitespace();
        let (verb, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let table = table_of(sql, name);
        if SMALL.contains(&table.as_str())
            || table.is_empty()
            || line.contains("VIRTUAL TABLE")
            || line.contains("(rowid")
        {
            return false;
        }
        let by = line.rsplit_once('(').map_or("", |(_, by)| by.trim_end_matches(')'));
        let columns: Vec<&str> = by
            .split(" AND ")
            .map(|part| match part.split_once(['=', '<', '>']) {
                Some((column, _)) if part.ends_with("=?") => &part[..=column.len()],
                Some((column, _)) => column,
                None => part,
            })
            .collect();
        match verb {
            "SCAN" => !line.contains("INDEX") || !finds_little(sql, &[]),
            "SEARCH" => !finds_little(sql, &columns),
            _ => false,
        }
    });
    (bad && !is_excepted(sql)).then(|| format!("{sql}\n    {}", plan.join("\n    ")))
}

/// Returns the table of a line of a plan; nothing for a part of the statement itself.
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

/// Returns the statement and its plan if PostgreSQL has no index for it, planned without values.
fn scanned_by_postgres(outside: &mut postgres::Client, sql: &str) -> Option<String> {
    let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<usize>().ok();
    let count = sql.split('$').skip(1).filter_map(digits).max().unwrap_or(0);
    let execute = match count {
        0 => "EXECUTE looked".to_string(),
        count => format!("EXECUTE looked ({})", vec!["NULL"; count].join(", ")),
    };
    outside.batch_execute(&format!("PREPARE looked AS {sql}")).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let plan = outside.query(&format!("EXPLAIN {execute}"), &[]).unwrap();
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    outside.batch_execute("DEALLOCATE looked").unwrap();
    // Sequential scans are disabled, so the plan has one only where there is no index.
    let bad = plan.iter().filter(|line| line.contains("Seq Scan")).any(|line| {
        let table = line.split(" on ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
        !SMALL.contains(&table)
    });
    (bad && !is_excepted(sql)).then(|| format!("{sql}\n    {}", plan.join("\n    ")))
}
