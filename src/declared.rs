//! Tests that a field is declared once: one line and one column. Under `cfg(test)`, documents, subscriptions and flows
//! have fields whose names start with `test_`. Only their declarations and the migration below mention them, and the
//! tests find them wherever the API accepts or returns a field.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use engine::app::App;
use engine::config::Config;
use engine::context::Actor;
use engine::error::{Code, Error};
use engine::http::openapi;
use engine::perform::perform;
use serde_json::{Value, json};
use store::Migration;

macro_rules! column {
    ($table:literal, $name:literal, $kind:literal) => {
        concat!("ALTER TABLE ", $table, " ADD COLUMN ", $name, " ", $kind, ";\n")
    };
}

macro_rules! document_columns {
    ($table:literal) => {
        concat!(
            column!($table, "test_text", "TEXT NOT NULL DEFAULT ''"),
            column!($table, "test_number", "BIGINT NOT NULL DEFAULT 0"),
            column!($table, "test_amount", "BIGINT NOT NULL DEFAULT 0"),
            column!($table, "test_switch", "BIGINT NOT NULL DEFAULT 0"),
            column!($table, "test_day", "TEXT NOT NULL DEFAULT ''"),
            column!($table, "test_moment", "BIGINT NOT NULL DEFAULT 0"),
            column!($table, "test_choice", "TEXT NOT NULL DEFAULT 'nl'"),
            column!($table, "test_link", "TEXT NOT NULL DEFAULT ''"),
            column!($table, "test_list", "TEXT NOT NULL DEFAULT '[]'"),
        )
    };
}

/// The columns of the test fields; `test_hint` exists only in the request body and has none.
pub const MIGRATION: Migration = Migration {
    number: 9999,
    name: "fields of the tests",
    sql: concat!(
        document_columns!("invoices"),
        document_columns!("quotes"),
        document_columns!("workorders"),
        column!("subscriptions", "test_text", "TEXT NOT NULL DEFAULT ''"),
        column!("subscriptions", "test_amount", "BIGINT NOT NULL DEFAULT 0"),
        column!("flows", "test_text", "TEXT NOT NULL DEFAULT ''"),
        column!("flows", "test_amount", "BIGINT NOT NULL DEFAULT 0"),
    ),
};

#[test]
fn a_field_of_a_document_is_one_line() {
    on_both(|api| {
        for (table, name) in [("invoices", "Invoice"), ("quotes", "Quote"), ("workorders", "Workorder")] {
            let client = || api.made("/v1/clients", json!({"type": "private", "lastname": "Smit"}));
            let values = values_of_each_kind(&client(), &client());
            described(table, name, &values);
            let path = format!("/v1/{table}");
            let id = sent_shown_and_found(
                api,
                &path,
                &values,
                "PATCH",
                json!({"title": "x", "rows": [{"name": "Boiler", "unit_price": 1250}], "test_hint": "y"}),
            );
            refused(api, &path, json!({"title": "x"}), &values);
            final_ones_are_locked(api, &format!("{path}/{id}"));
            let made_of_it = if table == "invoices" { "credit" } else { "invoice" };
            let copy = api.ok("POST", &format!("{path}/{id}/{made_of_it}"), None);
            for (field, _, second) in values.iter().filter(|(field, ..)| !["test_text", "test_number"].contains(field))
            {
                assert_eq!(copy[field], *second, "{field} of the {made_of_it} of {table}");
            }
            assert_eq!((&copy["test_text"], &copy["test_number"]), (&json!("blue"), &json!(3)));
        }
    });
}

#[test]
fn a_field_of_a_subscription_is_one_line() {
    on_both(|api| {
        let values = &values_of_each_kind("", "")[..2];
        described("subscriptions", "Subscription", values);
        sent_shown_and_found(api, "/v1/subscriptions", values, "PATCH", json!({"title": "Hosting"}));
        refused(api, "/v1/subscriptions", json!({"title": "Hosting"}), values);
    });
}

#[test]
fn a_field_of_a_flow_is_one_line() {
    on_both(|api| {
        let values = &values_of_each_kind("", "")[..2];
        described("automation/flows", "Flow", values);
        let steps = json!([{"type": "create_task", "title": "Call"}]);
        let flow = json!({"name": "x", "trigger_type": "custom", "trigger_key": "a.b", "steps": steps});
        sent_shown_and_found(api, "/v1/automation/flows", values, "PUT", flow.clone());
        refused(api, "/v1/automation/flows", flow, values);
    });
}

/// A field with two possible values.
type Values = (&'static str, Value, Value);

/// A field of each kind of value; every resource has the first two, documents have the others.
fn values_of_each_kind(client: &str, other: &str) -> Vec<Values> {
    vec![
        ("test_text", json!("red"), json!("blue")),
        ("test_amount", json!(12.5), json!(99.95)),
        ("test_number", json!(1), json!(2)),
        ("test_switch", json!(true), json!(false)),
        ("test_day", json!("2026-05-04"), json!("2026-06-04")),
        ("test_moment", json!("2026-05-04T09:30:00.000Z"), json!("2026-06-04T09:30:00.000Z")),
        ("test_choice", json!("en"), json!("nl")),
        ("test_link", json!(client), json!(other)),
        ("test_list", json!(["a"]), json!(["b", "c"])),
    ]
}

/// Creates a record with the first values and changes it to the second; checks them in each response and each filter.
fn sent_shown_and_found(api: &Api, path: &str, values: &[Values], method: &str, good: Value) -> String {
    let with = |mut body: Value, second: bool| {
        values.iter().for_each(|(field, one, two)| body[field] = if second { two.clone() } else { one.clone() });
        body
    };
    let created = api.ok("POST", path, Some(with(good.clone(), false)));
    let id = created["id"].as_str().unwrap().to_string();
    let own = format!("{path}/{id}");
    let retrieved = api.ok("GET", &own, None);
    // A PUT sends the whole record.
    let body = if method == "PUT" { good } else { json!({}) };
    let changed = api.ok(method, &own, Some(with(body, true)));
    let listed = api.ok("GET", &format!("{path}?id={id}"), None)[0].clone();
    for (field, first, second) in values {
        assert_eq!((&created[field], &retrieved[field]), (first, first), "{field} of {path}");
        assert_eq!((&changed[field], &listed[field]), (second, second), "{field} of {path}");
        let found = |value: &Value| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
            let page = api.ok("GET", &format!("{path}?{field}={text}"), None);
            page.as_array().unwrap().iter().filter(|one| one["id"] == json!(id)).count()
        };
        if *field != "test_list" {
            assert_eq!((found(first), found(second)), (0, 1), "{path}?{field}");
        }
    }
    assert!(changed.get("test_hint").is_none() && listed.get("test_hint").is_none());
    id
}

/// A value of the wrong type is a validation error on its field.
fn refused(api: &Api, path: &str, mut body: Value, values: &[Values]) {
    values.iter().for_each(|(field, ..)| body[field] = json!({}));
    let mut faults: Vec<String> =
        api.call("POST", path, Some(body)).unwrap_err().faults.into_iter().map(|fault| fault.field).collect();
    let mut names: Vec<&str> = values.iter().map(|(field, ..)| *field).collect();
    faults.sort();
    names.sort_unstable();
    assert_eq!(faults, names);
}

/// `test_text` is locked when a document is final; changing `test_number` creates a new revision.
fn final_ones_are_locked(api: &Api, path: &str) {
    let revision = api.ok("POST", &format!("{path}/finalize"), None)["meta"]["revision"].as_i64().unwrap();
    let locked = api.call("PATCH", path, Some(json!({"test_text": "green"}))).unwrap_err();
    assert_eq!(locked.code, Code::Locked);
    let changed = api.ok("PATCH", path, Some(json!({"test_number": 3})));
    assert_eq!(changed["meta"]["revision"], json!(revision + 1));
    let same = api.ok("PATCH", path, Some(json!({"test_switch": false})));
    assert_eq!(same["meta"], changed["meta"]);
}

/// The OpenAPI document has each field in the request bodies, the record and the list parameters.
fn described(table: &str, schema: &str, values: &[Values]) {
    let paths = &openapi::DOCUMENT["paths"];
    let (all, one) = (&paths[format!("/v1/{table}")], &paths[format!("/v1/{table}/{{id}}")]);
    let change = if one["put"].is_object() { &one["put"] } else { &one["patch"] };
    let body = |route: &Value| {
        openapi::resolved(&route["requestBody"]["content"]["application/json"]["schema"])["properties"].clone()
    };
    let shown = &openapi::DOCUMENT["components"]["schemas"][schema]["properties"];
    let parameters = all["get"]["parameters"].as_array().unwrap();
    for (field, ..) in values {
        for properties in [&body(&all["post"]), &body(change), shown] {
            assert!(properties[field]["description"].is_string(), "{field} of {table}");
        }
        let filtered = parameters.iter().any(|parameter| parameter["name"] == *field);
        assert_eq!(filtered, *field != "test_list", "{field} of {table}");
    }
}

/// The API of an account, without HTTP.
struct Api {
    app: Arc<App>,
    caller: Actor,
}

impl Api {
    fn open(folder: &std::path::Path, database_url: &str) -> Api {
        let flags = [
            ("data", folder.to_str().unwrap()),
            ("database_url", database_url),
            ("typeset_apart", "false"),
            ("read_apart", "false"),
        ];
        let flags = flags.map(|(name, value)| (name.to_string(), value.to_string()));
        let app = crate::opening::open(Config::load(None, std::iter::empty(), &flags).unwrap()).unwrap();
        let (account, _) = crate::opening::create_account(&app, "Test", None).unwrap();
        let caller = app.acting(account, "test");
        Api { app, caller }
    }

    fn call(&self, method: &'static str, path: &str, body: Option<Value>) -> Result<Value, Error> {
        let (caller, path) = (self.caller.clone(), path.to_string());
        self.app.store.write_now(caller.account.number, move |tx| {
            let ctx = caller.writing(tx)?;
            perform(tx, &ctx, method, &path, body.as_ref())
        })
    }

    #[track_caller]
    fn ok(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let method = ["GET", "POST", "PATCH", "PUT"].into_iter().find(|one| *one == method).unwrap();
        let done = self.call(method, path, body);
        done.unwrap_or_else(|error| panic!("{method} {path}: {error} {:?}", error.faults))
    }

    fn made(&self, path: &str, body: Value) -> String {
        self.ok("POST", path, Some(body))["id"].as_str().unwrap().to_string()
    }
}

/// Runs a test on SQLite, and on PostgreSQL where it is available.
fn on_both(test: impl Fn(&Api)) {
    let folder = tempfile::tempdir().unwrap();
    test(&Api::open(folder.path(), ""));
    let Ok(admin) = std::env::var("KANTOOR_TEST_POSTGRES") else { return };
    if admin == "skip" {
        return;
    }
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("declared{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let execute = |sql: String| {
        postgres::Client::connect(&admin, postgres::NoTls).unwrap().batch_execute(&sql).unwrap();
    };
    execute(format!("CREATE DATABASE {name}"));
    let folder = tempfile::tempdir().unwrap();
    let url = format!("{}/{name}?sslmode=disable", admin.rsplit_once('/').unwrap().0);
    test(&Api::open(folder.path(), &url));
    execute(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
}
