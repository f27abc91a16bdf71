//! Every list has an index, according to the query plans of both databases.

use engine::call::{Call, Query};
use engine::error::Error;
use engine::resource::Resource;
use kantoor::registry::REGISTRY;

use crate::on_both;
use crate::support::{Db, Server};

/// A query for each way to request a list, and whether the rows come sorted from the index.
fn queries(resource: &Resource) -> Vec<(String, bool)> {
    let list = resource.list.as_ref().unwrap();
    let mut queries = vec![(String::new(), true), ("created_from=2026-01-01&created_to=2026-02-01".to_string(), true)];
    queries.extend(
        list.sorts.iter().flat_map(|sort| ["asc", "desc"].map(|order| (format!("sort={sort}&order={order}"), true))),
    );
    for field in &resource.fields {
        let schema = (field.schema)(&field.rules);
        let value = schema["enum"][0].as_str().unwrap_or(if schema["type"] == "boolean" { "1" } else { "x" });
        if field.rules.filter {
            queries.push((format!("{}={value}", field.name), true));
            // Each value has its own range of the index.
            if field.takes_several() {
                let other = schema["enum"][1].as_str().unwrap_or("y");
                queries.push((format!("{}={value},{other}", field.name), false));
                queries.push((format!("{}={value},{other}&page=3&order=asc", field.name), false));
            }
            // Of two filters, the more selective one chooses the index.
            let links = resource.fields.iter().filter(|other| other.rules.filter && !other.rules.refers.is_empty());
            queries.extend(links.filter(|link| link.name != field.name && field.rules.refers.is_empty()).flat_map(
                |link| {
                    let both = |value: &str| (format!("{}={value}&{}=x", field.name, link.name), true);
                    let second = schema["enum"][1].as_str().filter(|_| field.takes_several());
                    [Some(both(value)), second.map(|other| both(&format!("{value},{other}")))].into_iter().flatten()
                },
            ));
        }
        let condition = field.rules.filter_when.parameter;
        if !condition.is_empty() {
            queries.extend(["true", "false"].map(|value| (format!("{condition}={value}"), false)));
        }
        if condition == "owed" {
            // The list of what is overdue on Home: few are owed, many may have a status or a due date.
            let home = "payment_status=open,overdue,partial&due_date_to=2026-01-01&collected=false&owed=true";
            queries.extend([home.to_string(), format!("{home}&sort=due_date&order=asc")].map(|query| (query, false)));
        }
        if let Some((from, to)) = field.rules.range {
            queries.push((format!("{from}=2026-01-01&{to}=2026-02-01&sort={}", field.name), true));
            queries.push((format!("{from}=2026-01-01&{to}=2026-02-01"), false));
        }
        if !field.rules.filter_filled.is_empty() {
            queries.extend(["true", "false"].map(|filled| (format!("{}={filled}", field.rules.filter_filled), false)));
        }
    }
    queries.push(("id=a,b".to_string(), false));
    if list.searches {
        queries.push(("search=hosting".to_string(), false));
        // Two letters: the texts are compared, in the order of the list.
        queries.push(("search=ho".to_string(), false));
        queries.push(("search=ho&sort=id&order=asc".to_string(), false));
        let sorts = list.sorts.iter().filter(|sort| **sort != "id" && **sort != "created_at");
        queries.extend(sorts.map(|sort| (format!("search=ho&sort={sort}&order=asc"), true)));
    }
    queries
}

on_both![
    every_list_has_an_index_behind_it,
    every_table_has_an_account,
    every_unique_field_has_a_unique_index,
    sums_by_status_read_an_index_alone,
];

fn every_list_has_an_index_behind_it(db: Db) {
    let server = Server::start(db);
    server.client();
    let account = server.app.store.read_now(engine::accounts::Account::all).unwrap().pop().unwrap();
    let caller = server.app.acting(account, "test");
    for resource in REGISTRY.resources.iter().filter(|resource| resource.list.is_some()) {
        for (query, sorted) in queries(resource) {
            let (own, text) = (caller.clone(), query.clone());
            let statements = resource.list.as_ref().unwrap().statements;
            let plans: Vec<Vec<String>> = server
                .app
                .store
                .read_now(move |tx| {
                    let ctx = own.reading(tx)?;
                    let call = Call { query: Query::parse(&text)?, path: vec!["x".into()], ..Call::default() };
                    let found = statements(&call, tx, &ctx)?;
                    let dialect = tx.dialect();
                    Ok::<_, Error>(vec![
                        dialect.explain(tx, &found.page, &found.page_values)?,
                        dialect.explain(tx, &found.total, &found.total_values)?,
                    ])
                })
                .unwrap();
            for (plan, is_page) in plans.iter().zip([true, false]) {
                let text = plan.join("\n");
                let what = format!("{}?{query}:\n{text}", resource.path);
                assert!(!text.contains("Seq Scan"), "{what}");
                let scans = plan.iter().any(|line| {
                    line.starts_with("SCAN")
                        && !line.contains("VIRTUAL TABLE INDEX 0:M")
                        && !line.contains("found")
                        && !line.starts_with("SCAN part")
                        && !line.starts_with("SCAN (subquery")
                        && !line.contains("search_texts_pending")
                });
                assert!(!scans, "{what}");
                if query.starts_with("search=ho&") || query == "search=ho" {
                    assert!(text.contains("search_texts_record") && !text.contains("search_index"), "{what}");
                }
                if query == "search=hosting" && server.app.store.dialect() == store::Dialect::Sqlite {
                    assert!(
                        text.contains("VIRTUAL TABLE INDEX 0:M") && !text.contains("search_texts_record"),
                        "{what}"
                    );
                }
                if server.app.store.dialect() == store::Dialect::Sqlite {
                    let index = match query.split('&').find(|part| part.starts_with("owed=t") || *part == "is_credit=1")
                    {
                        Some("is_credit=1") if !query.contains("_id=x") => "credit",
                        Some("owed=true") => "unpaid",
                        _ => "",
                    };
                    assert!(index.is_empty() || text.contains(&format!("{}_{index}", resource.shape.table)), "{what}");
                }
                if let Some((_, link)) = query.split_once('&').filter(|(_, link)| link.ends_with("_id=x"))
                    && server.app.store.dialect() == store::Dialect::Sqlite
                {
                    let column = link.trim_end_matches("=x");
                    assert!(text.contains(&format!("AND {column}=?")), "{what}");
                }
                if sorted && is_page {
                    assert!(!text.contains("TEMP B-TREE") && !text.contains("Sort"), "{what}");
                }
            }
        }
    }
}

fn every_table_has_an_account(db: Db) {
    let server = Server::start(db);
    let tables: Vec<(String, String)> = engine::migrations::all()
        .iter()
        .flat_map(|migration| {
            migration.sql.split("CREATE TABLE ").skip(1).map(|text| {
                let (name, rest) = text.split_once('(').unwrap();
                (name.trim().to_string(), rest.split("\n)").next().unwrap().to_string())
            })
        })
        .collect();
    assert!(tables.len() > 8);
    for (name, columns) in tables {
        // Trigrams of all accounts are counted together, since they share the search index; nodes work for all
        // accounts, and a person may have several.
        assert!(
            [
                "accounts",
                "secrets",
                "search_pieces",
                "nodes",
                "people",
                "sign_in_attempts",
                "recovery_codes",
                "sign_in_failures"
            ]
            .contains(&name.as_str())
                || columns.contains("account_id BIGINT NOT NULL")
                || columns.contains("account_id INTEGER NOT NULL"),
            "{name} has no account"
        );
        assert!(
            !columns
                .lines()
                .any(|line| line.contains(" TEXT") && !line.contains("NOT NULL") && !line.contains("PRIMARY KEY")),
            "{name} has a column that may be NULL"
        );
        server.app.store.read_now(move |tx| tx.int(&format!("SELECT count(*) FROM {name}"), &[])).unwrap();
    }
}

/// What must be unique is not looked up before it is written: an index refuses it.
fn every_unique_field_has_a_unique_index(db: Db) {
    let server = Server::start(db);
    let sql = match server.app.store.dialect() {
        store::Dialect::Sqlite => "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql <> ''",
        store::Dialect::Postgres => "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()",
    };
    let read = |tx: &mut store::Tx| tx.all(sql, &[], |row| Ok::<_, store::Error>(row.text(0)?.replace('"', "")));
    let indexes = server.app.store.read_now(read).unwrap();
    let mut checked = 0;
    for table in engine::tables::all() {
        for field in &table.fields {
            let Some(others) = field.rules.unique else { continue };
            let mut wanted: Vec<&str> = others.iter().copied().chain(["account_id", field.name]).collect();
            wanted.sort_unstable();
            let found = indexes.iter().any(|index| {
                let Some((head, rest)) = index.split_once('(') else { return false };
                let mut columns: Vec<&str> = rest.split(')').next().unwrap_or_default().split(", ").collect();
                columns.sort_unstable();
                head.starts_with("CREATE UNIQUE INDEX")
                    && head.split_whitespace().any(|word| word.trim_start_matches("public.") == table.shape.table)
                    && columns == wanted
            });
            assert!(found, "{}.{} has no unique index", table.shape.table, field.name);
            checked += 1;
        }
    }
    assert!(checked > 8, "{checked}");
}

/// What is added up of overdue or unpaid invoices is in the indexes of these filters. Only SQLite says so for few rows.
fn sums_by_status_read_an_index_alone(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let sums = "per_page=1&sums=total_incl_vat,total_excl_vat,open_amount";
    let filters = ["payment_status=overdue", "owed=true&due_date_to=2026-01-01&payment_status=open,overdue,partial"];
    for filter in filters {
        let answer = client.get(&format!("/v1/invoices?{filter}&{sums}")).expect(200).json();
        assert_eq!(answer["meta"]["sums"]["open_amount"], 0);
    }
    if server.app.store.dialect() == store::Dialect::Postgres {
        return;
    }
    let statements = store::seen::with_values(store::Dialect::Sqlite).into_iter();
    let summed: Vec<_> = statements.filter(|(sql, _)| sql.contains("AS summed")).collect();
    assert_eq!(summed.len(), filters.len());
    for (sql, values) in summed {
        let plan =
            server.app.store.read_now(|tx| store::Dialect::Sqlite.explain(tx, &sql, &values)).unwrap().join("\n");
        assert!(plan.contains("COVERING INDEX"), "{sql}\n{plan}");
    }
}

/// Among many invoices, PostgreSQL finds those that are not paid by their own index.
#[test]
fn postgres_finds_what_is_owed_by_its_index() {
    let Some(db) = Db::postgres() else { return };
    let url = db.url.clone();
    let server = Server::start(db);
    let client = server.client();
    let rows = serde_json::json!([{"name": "Oven", "quantity": 1, "unit_price": 100, "vat_rate": "21"}]);
    let invoice = serde_json::json!({"title": "Oven", "rows": rows, "generation_mode": "final"});
    client.post("/v1/invoices", invoice).expect(201);
    let paid = "INSERT INTO invoices SELECT (jsonb_populate_record(one, jsonb_build_object(
            'id', n::TEXT, 'number', n::TEXT, 'token', n::TEXT, 'open_amount', 0))).*
        FROM invoices one CROSS JOIN generate_series(1, 5000) n; ANALYZE invoices";
    crate::support::execute(&url, paid);
    let account = server.app.store.read_now(engine::accounts::Account::all).unwrap().pop().unwrap();
    let caller = server.app.acting(account, "test");
    let invoices = REGISTRY.resources.iter().find(|resource| resource.path == "/v1/invoices").unwrap();
    let statements = invoices.list.as_ref().unwrap().statements;
    for query in ["owed=true", "owed=true&sort=due_date"] {
        let own = caller.clone();
        let found = server.app.store.read_now(move |tx| {
            let ctx = own.reading(tx)?;
            statements(&Call { query: Query::parse(query)?, ..Call::default() }, tx, &ctx)
        });
        let found = found.unwrap();
        let mut outside = postgres::Client::connect(&url, postgres::NoTls).unwrap();
        for (sql, values) in [(&found.page, &found.page_values), (&found.total, &found.total_values)] {
            let values: Vec<&(dyn postgres::types::ToSql + Sync)> = values.iter().map(|value| value as _).collect();
            let plan = outside.query(&format!("EXPLAIN {sql}"), &values).unwrap();
            let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
            assert!(plan.iter().any(|line| line.contains("invoices_unpaid")), "{query}: {plan:#?}");
        }
    }
}

/// Separate from `every_list_has_an_index_behind_it`, which forces PostgreSQL to use indexes: here there are enough
/// texts for its own choice.
#[test]
fn postgres_searches_by_its_trigrams() {
    let Some(db) = Db::postgres() else { return };
    let url = db.url.clone();
    let server = Server::start(db);
    let client = server.client();
    let sql = format!(
        "INSERT INTO search_texts (account_id, kind, record_id, folded)
         SELECT {0}, 'product', n::TEXT, md5(n::TEXT) FROM generate_series(1, 40000) n; ANALYZE search_texts;
         INSERT INTO record_counts (account_id, kind, total) VALUES ({0}, 'product', 40000)",
        client.account
    );
    crate::support::execute(&url, &sql);
    while engine::search::tidy(&server.app.store).unwrap() {}
    let account = server.app.store.read_now(engine::accounts::Account::all).unwrap().pop().unwrap();
    let caller = server.app.acting(account, "test");
    let products = REGISTRY.resources.iter().find(|resource| resource.path == "/v1/products").unwrap();
    let statements = products.list.as_ref().unwrap().statements;
    let mut outside = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    // Hexadecimal digits: each trigram is in one of 140 texts, and any six digits in few.
    for words in ["abcdef", "abc", "0f1e2d3c"] {
        let own = caller.clone();
        let found = server.app.store.read_now(move |tx| {
            let ctx = own.reading(tx)?;
            let call = Call { query: Query::parse(&format!("search={words}"))?, ..Call::default() };
            statements(&call, tx, &ctx)
        });
        let found = found.unwrap();
        for (sql, values) in [(&found.page, &found.page_values), (&found.total, &found.total_values)] {
            let values: Vec<&(dyn postgres::types::ToSql + Sync)> = values.iter().map(|value| value as _).collect();
            let plan = outside.query(&format!("EXPLAIN {sql}"), &values).unwrap();
            let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
            assert!(plan.iter().any(|line| line.contains("Bitmap Index Scan on search_index")), "{words}: {plan:#?}");
        }
    }
}
