//! Measures the work of the program's statements when tables have up to 200,000 rows and statistics from when the database
//! was much smaller. SQLite counts the instructions of its virtual machine, PostgreSQL the pages that it touches. Each
//! statement that the program executed is executed again with its values, before and after the tables are filled; its work
//! must not grow. `statements.rs` runs the program first.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use engine::clock::Moment;
use engine::error::Error;
use engine::jobs::{self, Claimant, Lane};
use store::{Dialect, Value, seen};

use crate::on_both;
use crate::support::{Db, Server, execute};

/// A table to fill, its number of rows, and expressions for columns that are not copied from the first row.
type Filled = (&'static str, u32, &'static [(&'static str, &'static str)]);

const LARGE: u32 = 200_000;
const MEDIUM: u32 = 50_000;
const SMALL: u32 = 5_000;

/// The rows of a business that is years old: most things have ended, and everything pending is in the future.
const FILLED: &[Filled] = &[
    (
        "log",
        LARGE,
        // With gaps between the numbers: the running server appends lines.
        &[("seq", "n * 100 + 100000"), ("type", "'invoice.updated'"), ("entity_type", "'invoice'"), ("hash", "hash")],
    ),
    ("timers", LARGE, &[("since", "4000000000000 + n"), ("cause", CAUSES)]),
    ("jobs", LARGE, &[("state", "'done'")]),
    (
        "runs",
        LARGE,
        &[("status", "'success'"), ("finished_at", "4000000000000"), ("chain", "''"), ("flow_id", "flow_id")],
    ),
    ("webhook_deliveries", MEDIUM, &[("status", "'delivered'"), ("endpoint_id", "endpoint_id")]),
    (
        "invoices",
        MEDIUM,
        &[
            ("payment_status", "'paid'"),
            ("generation_mode", "'final'"),
            ("due_date", "'2026-01-01'"),
            ("open_amount", "0"),
        ],
    ),
    ("payments", SMALL, &[("status", "'paid'")]),
    ("subscriptions", SMALL, &[("status", "'ended'"), ("next_generate", "''"), ("untold_end", "''")]),
    ("quotes", SMALL, &[("payment_status", "'accepted'"), ("generation_mode", "'final'")]),
    ("clients", SMALL, &[]),
    ("deals", SMALL, &[]),
    ("tickets", SMALL, &[("status", "'Closed'"), ("closed_at", "1")]),
    ("ticket_messages", SMALL, &[]),
    ("tasks", SMALL, &[("status", "'done'")]),
    ("files", SMALL, &[]),
    ("marks", SMALL, &[]),
    ("document_pdfs", SMALL, &[]),
    ("stored_answers", SMALL, &[]),
    ("mails", SMALL, &[]),
    ("deliveries", SMALL, &[("status", "'sent'")]),
];

/// The most frequent causes of timers.
const CAUSES: &str =
    "CASE n % 3 WHEN 0 THEN 'customer.no_followup' WHEN 1 THEN 'customer.inactive' ELSE 'invoice.late' END";

/// Columns whose values must be unique, in addition to those named `…_id`.
const DIFFERENT: &[&str] = &["id", "number", "token", "unique_key", "key", "content"];

/// Statements whose work may grow, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("kind = 'deliver'", "the demo, once in a new account"),
    ("Part of the demo", "the demo, once in a new account"),
    ("subscription_id <> '' AND payment_status = 'open'", "the demo, once in a new account"),
    ("\"corporate_identity_id\" = $2", "deleting an identity, which many documents may use"),
    ("status IN ('active', 'draft') AND lines LIKE $2", "deleting a product reads the drafts before its transaction"),
    ("'subscriptions', 'collect')", "a statement of this test"),
    ("UPDATE jobs SET run_at = 1", "a statement of this test"),
    ("LIMIT 1001) AS attention", "looks at a thousand deals at most"),
    ("LIMIT 1001) AS counted", "counts a thousand runs of each flow at most"),
    ("ORDER BY deliveries.id DESC LIMIT", "a page of mail"),
    ("AS summed", "adds up to a limit, on the threads of slow reads"),
    (".id > $2 ORDER BY clients.id LIMIT 500", "an export reads 500 records at a time"),
    ("LIMIT 1000) AS queued", "counts at most a thousand queued deliveries of an endpoint"),
    ("AND at >= $4 AND at <= $5 ORDER BY seq", "a backtest, which has its own limits and reads outside the writer"),
];

on_both![a_claim_passes_over_accounts_whose_jobs_wait,];

/// Checks the statements that this process has executed so far.
pub fn no_statement_does_more_among_many_rows(dialect: Dialect, file: PathBuf, url: String) {
    let statements: Vec<(String, Vec<Value>)> =
        seen::with_values(dialect).into_iter().filter(|(sql, _)| is_internal(sql)).collect();
    assert!(statements.len() > 150, "{} statements", statements.len());
    let mut database = database(dialect, file, url);
    let before = database.work(&statements);
    database.fill_all();
    let after = database.work(&statements);
    let mut wrong = Vec::new();
    for (sql, work) in &after {
        let (then, most) = (before[sql], before[sql] * 2 + database.spare());
        if *work > most && !EXCEPTIONS.iter().any(|(part, _)| sql.contains(part)) {
            wrong.push(format!("{then} -> {work}: {sql}"));
        }
    }
    assert!(wrong.is_empty(), "{} statements do too much:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// A claim costs the same, however many accounts have jobs that are not due yet.
fn a_claim_passes_over_accounts_whose_jobs_wait(db: Db) {
    let (file, url) = (db.data.join("kantoor.db"), db.url.clone());
    let server = Server::start(db);
    server.leaves_jobs();
    let now = server.now();
    let add = |accounts: i64, run_at: Moment| {
        let sql = "WITH RECURSIVE numbers (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < $1)
             INSERT INTO jobs (id, account_id, kind, unique_key, payload, state, run_at, attempts, max_attempts, claim,
                               lease_until, last_error, created_at)
             SELECT CAST($2 AS TEXT) || n, n, 'a', CAST($2 AS TEXT) || n, '{}', 'ready', CAST($3 AS BIGINT), 0, 3, 0, 0, '', 0
             FROM numbers";
        let values = move || [accounts.into(), format!("{}-", run_at.0).into(), run_at.0.into()];
        server.app.store.write_now(0, move |tx| tx.execute(sql, &values()).map(drop)).unwrap();
    };
    add(3, now);
    jobs::marks::sign_all(&server.app.store, &server.app.site.vault, true).unwrap();
    let claimed = || {
        let claimant = Claimant::new("x".to_string(), server.app.site.vault.clone());
        server.app.store.write_now(0, move |tx| {
            Ok::<_, Error>((
                jobs::any_due(tx, now, Lane::Other, &["a"])?,
                claimant.claim(tx, now, Lane::Other, &["a"], 1)?,
            ))
        })
    };
    let (due, first) = claimed().unwrap();
    assert!(due && first[0].account == 1);
    let dialect = server.app.store.dialect();
    let statements: Vec<(String, Vec<Value>)> = seen::with_values(dialect)
        .into_iter()
        .filter(|(sql, _)| sql.contains("FROM jobs") && sql.contains("lane = $1"))
        .collect();
    assert_eq!(statements.len(), 3, "{statements:#?}");
    let mut database = database(dialect, file, url);
    let before = database.work(&statements);
    database.analyze();
    add(20_000, now.plus_seconds(1000));
    let after = database.work(&statements);
    for (sql, work) in &after {
        assert!(*work <= before[sql] + 30, "{} -> {work}: {sql}", before[sql]);
    }
    assert_eq!(claimed().unwrap().1[0].account, 2);
}

fn database(dialect: Dialect, file: PathBuf, url: String) -> Box<dyn Database> {
    match dialect {
        Dialect::Sqlite => Box::new(Sqlite { file }),
        Dialect::Postgres => Box::new(Postgres { url }),
    }
}

/// Whether a statement is not that of a list. `plans.rs` covers lists; counting the matches of a filter takes time in
/// proportion to their number.
fn is_internal(sql: &str) -> bool {
    let of_list = sql.contains("OFFSET $") || sql.contains("folded LIKE") || {
        let table =
            sql.strip_prefix("SELECT count(*) FROM ").and_then(|rest| rest.split_once(' ')).map(|(table, _)| table);
        table.is_some_and(|table| sql.contains(&format!("WHERE {table}.account_id")))
    };
    !of_list && ["SELECT", "UPDATE", "DELETE", "WITH"].iter().any(|verb| sql.starts_with(verb))
}

trait Database {
    /// Returns the work of each statement: the maximum over all plans that it may get.
    fn work(&mut self, statements: &[(String, Vec<Value>)]) -> BTreeMap<String, u64>;
    /// Returns the additional work that is allowed because indexes are deeper.
    fn spare(&self) -> u64;
    /// Fills the tables, and leaves the statistics as they were before.
    fn fill_all(&mut self);
    /// Updates the statistics.
    fn analyze(&mut self);
}

/// Returns the statement that fills a table with rows of these numbers. `columns` has the name of each column and whether it
/// is text.
fn filling((table, _, given): &Filled, columns: &[(String, bool)], numbers: RangeInclusive<u32>) -> String {
    let (first, last) = numbers.into_inner();
    let value = |(name, is_text): &(String, bool)| match given.iter().find(|(own, _)| own == name) {
        Some((_, value)) => (*value).to_string(),
        None if name == "account_id" => "1 + n % 2".to_string(),
        None if name == "id" || DIFFERENT.contains(&name.as_str()) => "'x' || CAST(n AS TEXT)".to_string(),
        None if name.ends_with("_id") && *is_text => {
            format!("CASE WHEN {name} = '' THEN '' ELSE 'x' || CAST(n AS TEXT) END")
        }
        None if *is_text => format!("CASE WHEN length(\"{name}\") > 40 THEN '' ELSE \"{name}\" END"),
        None if ["due_at", "lease_until", "next_attempt_at"].contains(&name.as_str()) => "0".to_string(),
        None => format!("\"{name}\""),
    };
    let names: Vec<String> = columns.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let values: Vec<String> = columns.iter().map(value).collect();
    format!(
        "WITH RECURSIVE numbers (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM numbers WHERE n < {last})
         INSERT INTO {table} ({}) SELECT {} FROM numbers CROSS JOIN (SELECT * FROM {table} LIMIT 1) AS first",
        names.join(", "),
        values.join(", ")
    )
}

struct Sqlite {
    file: PathBuf,
}

impl Sqlite {
    fn open(&self) -> rusqlite::Connection {
        let conn = rusqlite::Connection::open(&self.file).unwrap();
        // The workers of the server write at the same time.
        conn.busy_timeout(Duration::from_secs(60)).unwrap();
        conn
    }

    fn steps(&self, statements: &[(String, Vec<Value>)], most: &mut BTreeMap<String, u64>) {
        let conn = self.open();
        for (sql, values) in statements {
            conn.execute_batch("BEGIN IMMEDIATE").unwrap();
            let mut statement = conn.prepare(sql).unwrap();
            let mut rows = statement.query(rusqlite::params_from_iter(values)).unwrap();
            while rows.next().unwrap_or_else(|error| panic!("{sql}: {error}")).is_some() {}
            drop(rows);
            let steps = statement.get_status(rusqlite::StatementStatus::VmStep);
            drop(statement);
            conn.execute_batch("ROLLBACK").unwrap();
            let known = most.entry(sql.clone()).or_default();
            *known = (*known).max(u64::try_from(steps).unwrap());
        }
    }
}

impl Database for Sqlite {
    fn work(&mut self, statements: &[(String, Vec<Value>)]) -> BTreeMap<String, u64> {
        let mut most = BTreeMap::new();
        // With the existing statistics, if any, and without.
        self.steps(statements, &mut most);
        let conn = self.open();
        let there = "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'";
        if conn.query_row(there, [], |row| row.get::<_, i64>(0)).unwrap() > 0 {
            conn.execute_batch("DELETE FROM sqlite_stat1").unwrap();
            self.steps(statements, &mut most);
        }
        most
    }

    fn spare(&self) -> u64 {
        2_000
    }

    /// SQLite never updates its statistics by itself, so they are those of almost empty tables.
    fn fill_all(&mut self) {
        self.open().execute_batch("ANALYZE; CREATE TABLE kept AS SELECT * FROM sqlite_stat1").unwrap();
        FILLED.iter().for_each(|filled| self.fill(filled));
        let text = "DELETE FROM sqlite_stat1; INSERT INTO sqlite_stat1 SELECT * FROM kept; DROP TABLE kept";
        self.open().execute_batch(text).unwrap();
    }

    fn analyze(&mut self) {
        self.open().execute_batch("ANALYZE").unwrap();
    }
}

impl Sqlite {
    fn fill(&self, filled: &Filled) {
        let (conn, table) = (self.open(), filled.0);
        let columns = format!("SELECT name, type = 'TEXT' FROM pragma_table_info('{table}')");
        let mut columns = conn.prepare(&columns).unwrap();
        let columns: Vec<(String, bool)> =
            columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
        let indexes =
            format!("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql <> '' AND tbl_name = '{table}'");
        let mut indexes = conn.prepare(&indexes).unwrap();
        let indexes: Vec<(String, String)> =
            indexes.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
        let dropped: String = indexes.iter().map(|(name, _)| format!("DROP INDEX {name};")).collect();
        let made: String = indexes.iter().map(|(_, sql)| format!("{sql};")).collect();
        conn.execute_batch(&format!(
            "PRAGMA synchronous = off; PRAGMA cache_size = -200000; PRAGMA temp_store = memory; BEGIN IMMEDIATE; {dropped}"
        ))
        .unwrap();
        let done = conn
            .execute(&filling(filled, &columns, 1..=filled.1), [])
            .unwrap_or_else(|error| panic!("{table}: {error:?}"));
        assert_eq!(done, filled.1 as usize, "{table} has no row to copy");
        conn.execute_batch(&format!("{made} COMMIT")).unwrap_or_else(|error| panic!("{table}: {error:?}"));
    }
}

struct Postgres {
    url: String,
}

impl Postgres {
    fn open(&self) -> postgres::Client {
        postgres::Client::connect(&self.url, postgres::NoTls).unwrap()
    }
}

impl Database for Postgres {
    fn work(&mut self, statements: &[(String, Vec<Value>)]) -> BTreeMap<String, u64> {
        let mut most: BTreeMap<String, u64> = BTreeMap::new();
        let mut outside = self.open();
        // PostgreSQL first makes custom plans, and may switch to a generic plan after some executions.
        for mode in ["force_custom_plan", "force_generic_plan"] {
            outside.batch_execute(&format!("SET plan_cache_mode = {mode}")).unwrap();
            for (sql, values) in statements {
                let execute = match values.is_empty() {
                    true => "EXECUTE looked".to_string(),
                    false => format!("EXECUTE looked ({})", values.iter().map(literal).collect::<Vec<_>>().join(", ")),
                };
                outside.batch_execute(&format!("BEGIN; PREPARE looked AS {sql}")).unwrap();
                let explain = format!("EXPLAIN (ANALYZE, BUFFERS, TIMING off) {execute}");
                let plan = outside.query(&explain, &[]).unwrap_or_else(|error| panic!("{explain}: {error}"));
                outside.batch_execute("ROLLBACK; DEALLOCATE looked").unwrap();
                let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
                let known = most.entry(sql.clone()).or_default();
                *known = (*known).max(pages(&plan));
            }
        }
        most
    }

    fn spare(&self) -> u64 {
        200
    }

    /// Autovacuum updates the statistics within a minute after a table has grown by a tenth, so they are those of tables
    /// with a hundredth of their rows.
    fn fill_all(&mut self) {
        FILLED.iter().for_each(|filled| self.fill(filled, 1..=filled.1 / 100));
        self.analyze();
        FILLED.iter().for_each(|filled| self.fill(filled, filled.1 / 100 + 1..=filled.1));
    }

    fn analyze(&mut self) {
        execute(&self.url, "ANALYZE");
    }
}

impl Postgres {
    fn fill(&self, filled: &Filled, numbers: RangeInclusive<u32>) {
        let (mut outside, table) = (self.open(), filled.0);
        let columns = "SELECT column_name::TEXT, data_type = 'text' FROM information_schema.columns
                       WHERE table_name = $1 ORDER BY ordinal_position";
        let columns: Vec<(String, bool)> =
            outside.query(columns, &[&table]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
        let indexes = "SELECT indexname::TEXT, indexdef FROM pg_indexes WHERE tablename = $1
                       AND indexname NOT IN (SELECT conname FROM pg_constraint)";
        let indexes: Vec<(String, String)> =
            outside.query(indexes, &[&table]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
        let dropped: String = indexes.iter().map(|(name, _)| format!("DROP INDEX {name};")).collect();
        let made: String = indexes.iter().map(|(_, sql)| format!("{sql};")).collect();
        outside
            .batch_execute(&format!(
                "ALTER TABLE {table} SET (autovacuum_enabled = off); SET synchronous_commit = off; {dropped}"
            ))
            .unwrap();
        let done = outside
            .execute(&filling(filled, &columns, numbers.clone()), &[])
            .unwrap_or_else(|error| panic!("{table}: {error:?}"));
        assert_eq!(done, numbers.count() as u64, "{table} has no row to copy");
        outside.batch_execute(&made).unwrap_or_else(|error| panic!("{table}: {error:?}"));
    }
}

/// Returns the pages that a plan touched. The first node includes all others: `Buffers: shared hit=3 read=1`.
fn pages(plan: &[String]) -> u64 {
    let line =
        plan.iter().take_while(|line| !line.starts_with("Planning")).find(|line| line.contains("Buffers: shared"));
    let counts = line.map(String::as_str).unwrap_or_default().split_whitespace();
    let counts = counts.filter_map(|word| word.strip_prefix("hit=").or(word.strip_prefix("read=")));
    counts.map(|count| count.parse::<u64>().unwrap()).sum()
}

/// Returns a value as an SQL literal.
fn literal(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Bytes(bytes) => {
            format!("'\\x{}'", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
    }
}
