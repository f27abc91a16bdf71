//! A stored value that cannot be read is an error that names its table, id and column, and is never replaced by a
//! default.

use engine::error::Code;
use engine::record::FieldInfo;
use engine::resource::Resource;
use serde_json::json;
use store::Value as Stored;

use crate::on_both;
use crate::support::{Client, Db, Server};
use crate::walk;

/// Values that no column with a format can have: words, and empty lines and items.
const WORDS: [&str; 2] = ["no such value", "{\n\n,,"];
/// Neither 0 nor 1, and a moment after the year 9999.
const NUMBERS: [i64; 2] = [7, i64::MAX / 2];

/// Returns invalid values for a column, if there are any. A plain text column accepts any text, and an amount any
/// number.
fn spoilt(field: &FieldInfo) -> Vec<Stored<'static>> {
    let schema = (field.schema)(&field.rules);
    let is_moment = schema.to_string().contains("date-time");
    let has_form = ["array", "object"].iter().any(|kind| field.is(kind))
        || field.is_date()
        || schema.get("enum").is_some()
        || (field.is("string") && field.is("number"));
    match () {
        () if field.is("boolean") || is_moment => NUMBERS.map(Stored::from).to_vec(),
        () if has_form => WORDS.map(Stored::from).to_vec(),
        () => Vec::new(),
    }
}

/// Writes a value to a column; returns whether the database accepts it.
fn update(server: &Server, table: &str, column: &str, id: &str, value: Stored<'static>) -> bool {
    let sql = format!("UPDATE {table} SET \"{column}\" = $1 WHERE id = $2");
    let id = id.to_string();
    match server.app.store.write_now(0, move |tx| tx.execute(&sql, &[value.clone(), (&id).into()])) {
        Ok(rows) => rows == 1 || panic!("no {table} {column}"),
        Err(store::Error::Database(why)) if why.to_lowercase().contains("check constraint") => false,
        Err(error) => panic!("{table}.{column}: {error}"),
    }
}

/// Returns a column of the first record, as stored.
fn stored(server: &Server, table: &str, column: &str, id: &str, is_text: bool) -> Stored<'static> {
    let sql = format!("SELECT \"{column}\" FROM {table} WHERE id = $1");
    let id = id.to_string();
    let read = move |tx: &mut store::Tx| {
        tx.first(&sql, &[(&id).into()], |row| {
            Ok::<_, store::Error>(if is_text { row.text(0)?.to_string().into() } else { row.int(0)?.into() })
        })
    };
    server.app.store.read_now(read).unwrap().unwrap()
}

/// Returns the id of a record of the account, if there is one.
fn some_id(server: &Server, client: &Client, table: &str) -> Option<String> {
    let (account, sql) = (client.account, format!("SELECT id FROM {table} WHERE account_id = $1 ORDER BY id LIMIT 1"));
    let read = move |tx: &mut store::Tx| {
        tx.first(&sql, &[account.into()], |row| Ok::<_, store::Error>(row.text(0)?.to_string()))
    };
    server.app.store.read_now(read).unwrap()
}

/// Returns the internal error of reading the record, or nothing.
fn read(server: &Server, client: &Client, resource: &'static Resource, id: &str) -> Result<(), String> {
    let caller = server.app.acting_in(client.account, "test").unwrap();
    let id = id.to_string();
    let shown = server.app.store.read_now(move |tx| {
        let ctx = caller.reading(tx)?;
        (resource.show)(tx, &ctx, &id)
    });
    shown.map(|shown| assert!(shown.is_some(), "{} is gone", resource.shape.table)).map_err(|error| {
        assert_eq!(error.code, Code::Unreadable);
        error.internal.unwrap_or_default()
    })
}

/// Returns the output of `kantoor verify` about the record.
fn inspected(server: &Server, client: &Client, resource: &'static Resource, id: &str) -> Vec<String> {
    let account = client.account;
    let found = server.app.store.read_now(move |tx| (resource.inspect)(tx, account, "", None)).unwrap();
    found.problems.into_iter().filter(|(of, _)| of == id).map(|(_, what)| what).collect()
}

/// Creates records of every kind: the demo, and what it lacks.
fn records(server: &Server) -> (Client, Vec<(&'static Resource, String)>) {
    let clock = engine::clock::Moment::parse("2026-05-04T10:00:00Z");
    let (account, key) = kantoor::opening::create_demo_account(&server.app, clock).unwrap();
    let client = Client::new(server.address, key, account.number);
    let endpoint = client.post("/v1/webhook-endpoints", json!({"url": "https://example.com/hooks"})).expect(201).id();
    client.act(&format!("/v1/webhook-endpoints/{endpoint}/test")).expect(200);
    let kept: Vec<&Resource> =
        kantoor::registry::REGISTRY.resources.iter().filter(|resource| resource.is_kept()).collect();
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for resource in kept {
        let table = resource.shape.table;
        match some_id(server, &client, table) {
            Some(id) => found.push((resource, id)),
            None if walk::can_be_made(resource) => found.push((resource, walk::make(&client, resource).id)),
            None => missing.push(table),
        }
    }
    // A batch requires pending payments; its columns have types that others have too.
    assert_eq!(missing, ["batches"], "no record to damage");
    (client, found)
}

on_both![
    names_an_unreadable_column_of_each_type,
    does_not_overwrite_an_unreadable_value,
    neither_prints_nor_changes_an_unreadable_copy,
    sets_aside_an_unreadable_run,
];

fn names_an_unreadable_column_of_each_type(db: Db) {
    let server = Server::with(db, |config| config.workers = 0);
    let (client, records) = records(&server);
    let mut spoilt_columns = 0;
    for (resource, id) in &records {
        let table = resource.shape.table;
        assert_eq!(read(&server, &client, resource, id), Ok(()), "{table}");
        for field in resource.fields.iter().filter(|field| !field.rules.sent_only) {
            let values = spoilt(field);
            let Some(first) = values.first() else { continue };
            let before = stored(&server, table, field.name, id, matches!(first, Stored::Text(_)));
            let mut named = 0;
            for value in values {
                if !update(&server, table, field.name, id, value) {
                    named += 1;
                    continue;
                }
                let Err(why) = read(&server, &client, resource, id) else { continue };
                let place = format!("column {} of {table} {id} cannot be read", field.name);
                assert!(why.starts_with(&place), "{place}: {why}");
                let said = inspected(&server, &client, resource, id);
                let place = format!("Column {} cannot be read", field.name);
                assert!(said.iter().any(|what| what.starts_with(&place)), "{table}: {place}: {said:?}");
                named += 1;
            }
            assert!(named > 0, "{table}.{} was read, whatever it was", field.name);
            spoilt_columns += 1;
            update(&server, table, field.name, id, before);
        }
        assert_eq!(read(&server, &client, resource, id), Ok(()), "{table}");
    }
    assert!(spoilt_columns > 100, "{spoilt_columns}");
}

/// Every request that touches the record says so, and the stored value does not change.
fn does_not_overwrite_an_unreadable_value(db: Db) {
    let server = Server::with(db, |config| config.workers = 0);
    let client = server.client();
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let deal = |title: &str| client.post("/v1/deals", json!({"title": title, "client_id": firm})).expect(201).id();
    let (deal, other) = (deal("Boiler"), deal("Pump"));
    let path = format!("/v1/deals/{deal}");
    for (column, bad, is_text) in [
        ("status", Stored::from("lost, perhaps"), true),
        ("expected_close_date", Stored::from("in spring"), true),
        ("updated_at", Stored::from(i64::MAX), false),
    ] {
        let before = stored(&server, "deals", column, &deal, is_text);
        update(&server, "deals", column, &deal, bad.clone());
        let last = server.last_seq(&client);
        for reply in [
            client.get(&path),
            client.get("/v1/deals"),
            client.patch(&path, json!({"title": "Other"})),
            client.delete(&path),
        ] {
            let reply = reply.expect(409);
            assert_eq!(reply.json()["error"]["code"], "unreadable");
            let place = format!("The column '{column}' of deals {deal} cannot be read");
            assert!(reply.text.contains(&place) && !reply.text.contains("perhaps"), "{}", reply.text);
        }
        assert_eq!(stored(&server, "deals", column, &deal, is_text), bad);
        assert_eq!(server.last_seq(&client), last);
        client.get(&format!("/v1/deals/{other}")).expect(200);
        update(&server, "deals", column, &deal, before);
        client.get("/v1/deals").expect(200);
    }
}

/// A response does not show the client that a final invoice was printed with, so a GET does not read all of it.
fn neither_prints_nor_changes_an_unreadable_copy(db: Db) {
    let server = Server::with(db, |config| config.workers = 0);
    let client = server.client();
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let rows = json!([{"name": "Boiler", "unit_price": 100}]);
    let sent = json!({"title": "Boiler", "client_id": firm, "rows": rows, "generation_mode": "final"});
    let id = client.post("/v1/invoices", sent).expect(201).id();
    let path = format!("/v1/invoices/{id}");
    update(&server, "invoices", "client", &id, Stored::from("{\"company_name\": De Ster}"));
    client.get(&path).expect(200);
    for reply in [client.get(&format!("{path}/pdf/content")), client.patch(&path, json!({"title": "Other"}))] {
        let reply = reply.expect(409);
        let place = format!("The column 'client' of invoices {id} cannot be read");
        assert!(reply.text.contains(&place), "{}", reply.text);
    }
    let invoices = kantoor::registry::REGISTRY.resources.iter().find(|own| own.shape.table == "invoices").unwrap();
    let said = inspected(&server, &client, invoices, &id);
    assert!(said.iter().any(|what| what.starts_with("Column client cannot be read")), "{said:?}");
}

/// An unreadable run does not block others.
fn sets_aside_an_unreadable_run(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let flow = json!({"name": "Wait", "trigger_type": "custom", "trigger_key": "a.b",
            "steps": [{"type": "wait", "for": "PT1H"}, {"type": "create_task", "title": "Call"}]});
    client.post("/v1/automation/flows", flow).expect(201);
    let begin = || {
        let fired = client.post("/v1/automation/trigger", json!({"event": "a.b"})).expect(200).data();
        fired["runs"][0]["run_id"].as_str().unwrap().to_string()
    };
    let (spoilt, good) = (begin(), begin());
    let run = |id: &str| client.get(&format!("/v1/automation/runs/{id}"));
    let advance = |to: &str| client.post("/v1/test-clock/advance", json!({"to": to})).expect(200);
    advance("2026-05-04T10:01:00Z");
    for id in [&spoilt, &good] {
        assert_eq!(run(id).expect(200).data()["status"], "waiting");
    }
    update(&server, "runs", "results", &spoilt, "?".into());
    advance("2026-05-04T12:30:00Z");
    assert_eq!(run(&good).expect(200).data()["status"], "success");
    run(&spoilt).expect(409);
    assert_eq!(stored(&server, "runs", "results", &spoilt, true), Stored::from("?"));
}

/// Rows from before a column was added have its default, which must be readable.
#[test]
fn the_default_of_every_column_is_readable() {
    let server = Server::with(Db::sqlite(), |config| config.workers = 0);
    let (client, records) = records(&server);
    for (resource, id) in &records {
        let table = resource.shape.table;
        let sql = format!("SELECT name, dflt_value FROM pragma_table_info('{table}') WHERE dflt_value IS NOT NULL");
        let defaults = server.app.store.read_now(move |tx| {
            tx.all(&sql, &[], |row| Ok::<_, store::Error>((row.text(0)?.to_string(), row.text(1)?.to_string())))
        });
        for (column, default) in defaults.unwrap() {
            let sql = format!("UPDATE {table} SET \"{column}\" = {default} WHERE id = $1");
            let own = id.clone();
            server.app.store.write_now(0, move |tx| tx.execute(&sql, &[(&own).into()])).unwrap();
            assert_eq!(read(&server, &client, resource, id), Ok(()), "{table}.{column} = {default}");
        }
    }
}
