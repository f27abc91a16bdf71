//! The description of all records that drives the lists and forms of the console.

use std::collections::BTreeSet;

use engine::http::openapi;
use serde_json::{Value, json};

use super::{assets, client, open};
use crate::people::owner;
use crate::support::{Db, Server};

fn schema() -> Value {
    let server = Server::start(Db::sqlite());
    let client = client(&server);
    let folder = assets(&open(&owner(&server, &client, "olga@a.example"), "/"));
    client.get(&format!("{folder}/schema.json")).expect(200).json()
}

fn words(language: &str) -> Value {
    let mut all = serde_json::Map::new();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/console/words")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with(language) {
            let words: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            all.extend(words.as_object().unwrap().clone());
        }
    }
    Value::Object(all)
}

/// A new line of a record is in the schema by itself: everything that the API accepts or returns is there.
#[test]
fn every_field_of_the_api_is_described() {
    let schema = schema();
    let paths = &openapi::DOCUMENT["paths"];
    let mut tables = 0;
    for table in schema.as_object().unwrap().values() {
        let own = |flag: &str| -> BTreeSet<&str> {
            let fields = table["fields"].as_array().unwrap().iter();
            fields.filter(|field| field[flag] == true).map(|field| field["name"].as_str().unwrap()).collect()
        };
        let list = &paths[table["path"].as_str().unwrap()];
        let one = &paths[table["item"].as_str().unwrap()];
        let body = |route: &Value| {
            openapi::resolved(&route["requestBody"]["content"]["application/json"]["schema"])["properties"].clone()
        };
        for (flag, route) in [("create", &list["post"]), ("patch", &one["patch"])] {
            let sent = body(route);
            let sent: BTreeSet<&str> = sent.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            assert!(sent.is_subset(&own(flag)), "{flag} {}: {sent:?} {:?}", table["path"], own(flag));
        }
        let filters = list["get"]["parameters"].as_array().into_iter().flatten();
        let filters: Vec<&Value> = filters
            .filter(|parameter| parameter["description"].as_str().unwrap_or("").starts_with("Filter by"))
            .collect();
        let fields = table["fields"].as_array().unwrap();
        for filter in &filters {
            // A field may be filtered by under two names, of which the console uses one.
            let names = filters.iter().filter(|other| other["description"] == filter["description"]);
            let known = |name: &Value| fields.iter().any(|field| field["filter"] == *name);
            assert!(names.into_iter().any(|own| known(&own["name"])), "{}: {}", table["path"], filter["name"]);
        }
        tables += 1;
    }
    assert!(tables > 30, "{tables}");
}

#[test]
fn the_schema_says_what_the_console_needs() {
    let schema = schema();
    let tasks = &schema["tasks"];
    assert_eq!(
        (&tasks["path"], &tasks["item"], &tasks["one"]),
        (&json!("/v1/tasks"), &json!("/v1/tasks/{id}"), &json!("task"))
    );
    assert_eq!((&tasks["names"], &tasks["pages"], &tasks["area"]), (&json!(["title"]), &json!(true), &json!("tasks")));
    assert_eq!(tasks["verbs"]["create"], "tasks.write");
    let actions: Vec<&str> =
        tasks["actions"].as_array().unwrap().iter().map(|action| action["name"].as_str().unwrap()).collect();
    assert!(actions.contains(&"complete") && actions.contains(&"reopen"), "{actions:?}");
    let field = |table: &str, name: &str| {
        let fields = schema[table]["fields"].as_array().unwrap();
        fields.iter().find(|field| field["name"] == name).cloned().unwrap_or_else(|| panic!("{table}.{name}"))
    };
    let deadline = field("tasks", "deadline");
    assert_eq!((&deadline["kind"], &deadline["range"]), (&json!("day"), &json!(["deadline_from", "deadline_to"])));
    assert_eq!(field("tasks", "client_id")["refers"], "clients");
    assert_eq!(field("products", "price")["kind"], "price");
    assert_eq!(field("invoices", "vat_rate")["kind"], "percent");
    assert_eq!(field("invoices", "payment_status")["choices"].as_array().unwrap().len(), 6);
    assert_eq!(field("products", "created_at")["meta"], true);
    assert_eq!(schema["clients"]["events"], "customer");
    assert_eq!(schema["keys"]["path"], "/v1/api-keys");
    assert_eq!(schema["settings"]["item"], "/v1/settings");
    assert_eq!(schema["hours"]["parent"], true);
    for (name, table) in schema.as_object().unwrap() {
        for field in table["fields"].as_array().unwrap() {
            let known = field["refers"].as_str().is_none_or(|table| schema.get(table).is_some());
            assert!(known, "{name}.{} refers to {}", field["name"], field["refers"]);
        }
        let links = table["verbs"].get("list").is_some() && table.get("parent").is_none();
        assert!(
            !links || table.get("names").is_some() || ["notes", "batches"].contains(&name.as_str()),
            "{name} has no name"
        );
    }
}

/// A field is shown under its word. English has one for every field, since its name is English.
#[test]
fn every_field_has_a_dutch_word() {
    let (schema, words) = (schema(), words("nl"));
    let mut missing = Vec::new();
    for (name, table) in schema.as_object().unwrap() {
        if words.get(format!("table.{name}")).is_none() && table.get("parent").is_none() {
            missing.push(format!("table.{name}"));
        }
        for field in table["fields"].as_array().unwrap() {
            let own = field["name"].as_str().unwrap();
            let known = [format!("field.{name}.{own}"), format!("field.{own}")];
            if !known.iter().any(|key| words.get(key).is_some()) {
                missing.push(known[0].clone());
            }
        }
    }
    assert!(missing.is_empty(), "console/words/nl.json lacks {missing:#?}");
}

/// The editor of flows names what an event has: the fields of its record, and those of a mail or a message beside it.
#[test]
fn every_field_of_an_event_has_a_dutch_word() {
    let server = Server::start(Db::sqlite());
    let client = client(&server);
    let (schema, words) = (schema(), words("nl"));
    let vocabulary = client.get("/v1/automation/vocabulary").expect(200).data();
    let has = |key: String| words.get(key).is_some();
    let mut missing = BTreeSet::new();
    let mut mails = 0;
    for event in vocabulary["events"].as_array().unwrap() {
        for field in event["fields"].as_array().unwrap() {
            let parts = field["path"].as_str().unwrap().split('.').skip(1).filter(|part| *part != "id");
            missing.extend(parts.map(|part| format!("field.{part}")).filter(|key| !has(key.clone())));
            mails += usize::from(field["path"] == "data.mail.recipient");
        }
    }
    for (kind, fields) in vocabulary["records"].as_object().unwrap() {
        let tables = schema.as_object().unwrap().iter().filter(|(_, table)| table["one"] == kind.as_str());
        let table = tables.map(|(name, _)| name.as_str()).next().unwrap_or_default();
        for field in fields.as_array().unwrap().iter().filter(|field| field["type"] != "array") {
            let last = field["path"].as_str().unwrap().rsplit('.').next().unwrap();
            if !has(format!("field.{table}.{last}")) && !has(format!("field.{last}")) && field["type"] != "object" {
                missing.insert(format!("field.{table}.{last}"));
            }
        }
    }
    assert!(mails >= 3, "{mails}");
    assert!(missing.is_empty(), "console/words/nl.json lacks {missing:#?}");
}

#[test]
fn both_languages_have_the_same_words() {
    let keys = |words: Value| -> BTreeSet<String> {
        let all = words.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        // The names of fields and of their values are English already.
        all.into_iter()
            .filter(|key| !["field.", "choice.", "status.", "hint."].iter().any(|start| key.starts_with(start)))
            .collect()
    };
    let (english, dutch) = (keys(words("en")), keys(words("nl")));
    let different: Vec<&String> = english.symmetric_difference(&dutch).collect();
    assert!(different.is_empty(), "{different:#?}");
}

/// Sentences of the server that the console translates are those that the server has: their keys are the sentences.
#[test]
fn the_translated_sentences_are_those_of_the_server() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = String::new();
    let mut folders = vec![root.join("src"), root.join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|own| own == "rs") {
                sources.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let words = words("en");
    let keys = words.as_object().unwrap().keys().filter_map(|key| key.strip_prefix("said."));
    // What differs, such as an amount, has a name in braces.
    let parts = |key: &str| -> Vec<String> {
        let pieces = key.split('{').enumerate();
        let outside =
            pieces.map(|(place, part)| if place == 0 { part } else { part.split_once('}').map_or("", |one| one.1) });
        outside
            .map(|part| part.trim_matches([' ', '.', ':', ',', '\'']).to_string())
            .filter(|part| part.len() > 3)
            .collect()
    };
    let keys: Vec<&str> = keys.collect();
    let unknown: Vec<&&str> =
        keys.iter().filter(|key| parts(key).iter().any(|part| !sources.contains(part.as_str()))).collect();
    assert!(keys.len() > 40 && unknown.is_empty(), "{unknown:#?}");
}

/// The flows of a new account are in English; the console shows them in the reader's language.
#[test]
fn the_flows_of_a_new_account_have_dutch_words() {
    let server = Server::start(Db::sqlite());
    let client = client(&server);
    let (flows, words) = (client.get("/v1/automation/flows").data(), words("nl"));
    let flows = flows.as_array().unwrap();
    let said = flows.iter().flat_map(|flow| [&flow["name"], &flow["description"]]).filter_map(Value::as_str);
    let unknown: Vec<&str> = said.filter(|text| words.get(format!("default.{text}")).is_none()).collect();
    assert!(flows.len() > 5 && unknown.is_empty(), "{unknown:#?}");
}
