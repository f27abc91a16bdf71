//! The demo: it is complete, identical every time, and contains no real addresses.

use std::collections::{HashMap, HashSet};

use engine::clock::Moment;
use engine::log::{self, Verdict};
use kantoor::registry::REGISTRY;
use serde_json::{Value, json};
use store::Tx;

use crate::on_both;
use crate::support::{Client, Db, Server};

const NOW: &str = "2026-05-04T10:00:00Z";

/// A client of a new account with the demo and a test clock.
fn demo(server: &Server) -> Client {
    let (account, key) = kantoor::opening::create_demo_account(&server.app, Moment::parse(NOW)).unwrap();
    Client::new(server.address, key, account.number)
}

fn items(client: &Client, path: &str) -> Vec<Value> {
    let reply = client.get(&format!("{path}?per_page=100")).expect(200).json();
    let items = reply["data"].as_array().unwrap().clone();
    assert_eq!(reply["meta"]["total"], items.len(), "{path} has more than a page");
    items
}

fn texts(items: &[Value], field: &str) -> Vec<String> {
    items.iter().map(|item| item[field].as_str().unwrap().to_string()).collect()
}

/// Returns how often each value of `field` occurs.
fn counts(items: &[Value], field: &str) -> HashMap<String, usize> {
    texts(items, field).into_iter().fold(HashMap::new(), |mut counts, text| {
        *counts.entry(text).or_default() += 1;
        counts
    })
}

/// Returns the records under each record of `path`.
fn under(client: &Client, path: &str, part: &str) -> Vec<Value> {
    texts(&items(client, path), "id").iter().flat_map(|id| items(client, &format!("{path}/{id}/{part}"))).collect()
}

/// Returns every list of the account by its path, including nested ones.
fn lists(client: &Client) -> Vec<(String, Vec<Value>)> {
    let routes = REGISTRY.resources.iter().flat_map(|resource| &resource.routes);
    // The first key is random.
    let is_apart = |path: &str| ["/v1/changes", "/v1/api-keys"].contains(&path) || path.ends_with("/history");
    let listing = routes.filter(|route| route.lists() && !is_apart(&route.path));
    let read = |path: &str| match path.split_once("/{id}/") {
        Some((parents, part)) => under(client, parents, part),
        None => items(client, path),
    };
    listing.map(|route| (route.path.clone(), read(&route.path))).collect()
}

/// Replaces each id by the number of its first occurrence, so that references are compared too.
fn number_ids(value: &mut Value, seen: &mut HashMap<String, usize>) {
    match value {
        Value::String(text) if is_id(text) => {
            let next = seen.len();
            let number = *seen.entry(text.clone()).or_insert(next);
            *value = json!(number);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| number_ids(item, seen)),
        Value::Object(members) => members.values_mut().for_each(|member| number_ids(member, seen)),
        _ => {}
    }
}

fn is_id(text: &str) -> bool {
    // The number of a draft comes from its id.
    text.starts_with("DRAFT-") || text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
}

/// Returns the times and the contents of the account's log, in order.
fn log_of(server: &Server, client: &Client) -> Vec<(i64, String)> {
    let account = client.account;
    let sql = format!("SELECT at, {} FROM log WHERE account_id = $1 ORDER BY seq", log::DATA);
    let read = move |tx: &mut Tx| {
        tx.all(&sql, &[account.into()], |row| Ok::<_, store::Error>((row.int(0)?, row.text(1)?.to_string())))
    };
    server.app.store.read_now(read).unwrap()
}

on_both![
    it_is_the_same_every_time,
    it_has_records_of_every_kind,
    its_documents_have_every_status,
    its_log_is_intact_and_chronological,
    nothing_in_it_leads_outside,
];

fn it_is_the_same_every_time(db: Db) {
    let server = Server::start(db);
    let everything = |client: &Client| {
        let mut seen = HashMap::new();
        let mut lists = lists(client);
        for (path, items) in &mut lists {
            for item in items {
                number_ids(item, &mut seen);
                // A busy machine advances a run in more transactions.
                if path == "/v1/automation/runs" {
                    item["meta"]["version"] = json!(0);
                }
            }
        }
        lists
    };
    let (one, other) = (everything(&demo(&server)), everything(&demo(&server)));
    assert!(one.len() > 15 && one.iter().map(|(_, items)| items.len()).sum::<usize>() > 100);
    for (first, second) in one.iter().zip(&other) {
        assert_eq!(first, second);
    }
    assert_eq!(one.len(), other.len());
}

fn it_has_records_of_every_kind(db: Db) {
    let server = Server::start(db);
    let client = demo(&server);
    for (path, count) in [
        ("/v1/clients", 12),
        ("/v1/suppliers", 5),
        ("/v1/products", 10),
        ("/v1/deals", 14),
        ("/v1/tickets", 6),
        ("/v1/projects", 4),
        ("/v1/tasks", 15),
        ("/v1/notes", 8),
        ("/v1/custom-fields", 2),
        ("/v1/email-domains", 1),
        ("/v1/corporate-identities", 1),
    ] {
        assert_eq!(items(&client, path).len(), count, "{path}");
    }
    let deals = items(&client, "/v1/deals");
    for phase in items(&client, "/v1/phases") {
        let open = deals.iter().filter(|deal| deal["phase_id"] == phase["id"] && deal["status"] == "open").count();
        assert!(open > 0, "no deal in phase {}", phase["name"]);
    }
    assert_eq!(counts(&deals, "status"), HashMap::from([("open".into(), 9), ("won".into(), 3), ("lost".into(), 2)]));
    let tickets = counts(&items(&client, "/v1/tickets"), "status");
    for status in texts(&items(&client, "/v1/ticket-statuses"), "name") {
        assert!(tickets.contains_key(&status), "no ticket is {status}");
    }
    let messages = under(&client, "/v1/tickets", "messages");
    assert!(counts(&messages, "type")["note"] >= 5 && counts(&messages, "direction")["in"] >= 6);
    let entries = under(&client, "/v1/projects", "hours");
    let users = client.get("/v1/users").data();
    let is_user = |id: &Value| users.as_array().unwrap().iter().any(|user| user["id"] == *id);
    assert!(entries.iter().all(|entry| is_user(&entry["meta"]["user_id"])), "somebody worked all hours");
    let hours = counts(&entries, "status");
    let expected = [("draft", 2), ("submitted", 2), ("approved", 14), ("rejected", 2)];
    assert_eq!(hours, HashMap::from(expected.map(|(status, count)| (status.to_string(), count))));
    assert_eq!(counts(&items(&client, "/v1/projects"), "status").len(), 4);
    assert_eq!(counts(&items(&client, "/v1/tasks"), "status")["completed"], 4);
    let due = |query: &str| client.get(&format!("/v1/tasks?status=open&{query}")).json()["meta"]["total"].clone();
    assert_eq!((due("deadline_to=2026-05-03"), due("deadline_from=2026-05-04")), (json!(3), json!(8)));
    assert_eq!(under(&client, "/v1/clients", "links").len(), 3);
    let countries = counts(&items(&client, "/v1/clients"), "country");
    assert_eq!(countries, HashMap::from([("NL".into(), 10), ("BE".into(), 1), ("DE".into(), 1)]));
    let found = client.get("/v1/clients?search=bakkerij&contact_type=company").data();
    assert_eq!(found[0]["custom_fields"], json!({"onderhoud": "compleet", "sleutel": true}));
}

fn its_documents_have_every_status(db: Db) {
    let server = Server::start(db);
    let client = demo(&server);
    let statuses = |path: &str| {
        let mut counts: Vec<(String, usize)> = counts(&items(&client, path), "payment_status").into_iter().collect();
        counts.sort();
        counts.into_iter().map(|(status, count)| format!("{status} {count}")).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(statuses("/v1/quotes"), "accepted 2, draft 1, expired 1, invoiced 8, open 3, rejected 2");
    assert_eq!(statuses("/v1/workorders"), "completed 4, draft 1, invoiced 6, open 2");
    assert_eq!(statuses("/v1/invoices"), "credited 3, draft 4, open 8, overdue 4, paid 54, partial 1");
    let whole = |path: &str, query: &str| -> Vec<Value> {
        let found = client.get(&format!("{path}?per_page=100&{query}")).expect(200).data();
        texts(found.as_array().unwrap(), "id")
            .iter()
            .map(|id| client.get(&format!("{path}/{id}")).expect(200).data())
            .collect()
    };
    for quote in whole("/v1/quotes", "payment_status=accepted") {
        assert!(quote["meta"]["accepted_by"] != "" && quote["sent_at"].is_string());
    }
    assert!(whole("/v1/quotes", "payment_status=open").iter().any(|quote| quote["meta"]["viewed_at"].is_string()));
    let invoices = whole("/v1/invoices", "");
    for invoice in &invoices {
        let (date, due) = (invoice["invoice_date"].as_str().unwrap(), invoice["due_date"].as_str().unwrap());
        assert!(("2025-11-03"..="2026-05-04").contains(&date), "{invoice}");
        match invoice["payment_status"].as_str().unwrap() {
            "overdue" => assert!(due < "2026-05-04", "{invoice}"),
            "open" => assert!(due >= "2026-05-04", "{invoice}"),
            "draft" => assert_eq!(invoice["sent_at"], json!(null)),
            _ => {}
        }
    }
    let credits = invoices.iter().filter(|invoice| invoice["is_credit"] == true).count();
    let kinds: HashSet<String> = invoices
        .iter()
        .flat_map(|invoice| {
            let path = format!("/v1/invoices/{}/deliveries", invoice["id"].as_str().unwrap());
            texts(client.get(&path).data().as_array().unwrap(), "send_type")
        })
        .collect();
    assert_eq!((credits, kinds), (3, ["invoice", "credit", "invoice_rem1", "invoice_rem2"].map(String::from).into()));
    let numbers: Vec<String> =
        texts(&invoices, "number").into_iter().filter(|number| number.starts_with('F')).collect();
    assert!(numbers.is_sorted_by(|one, other| one > other), "newest first: {numbers:?}");
}

fn its_log_is_intact_and_chronological(db: Db) {
    let server = Server::start(db);
    let client = demo(&server);
    let log = log_of(&server, &client);
    assert!(log.is_sorted_by_key(|(at, _)| *at));
    let (first, last) = (log[0].0, log[log.len() - 1].0);
    assert_eq!(Moment(first).to_string(), "2025-11-03T07:00:00.000Z", "half a year before");
    assert!(last < Moment::parse(NOW).unwrap().0 && log.len() > 200);
    // The change feed finds the events of a day.
    let zone = jiff::tz::TimeZone::get("Europe/Amsterdam").unwrap();
    let day_of = |at: i64| Moment(at).date(&zone);
    let day = day_of(log[log.len() / 2].0);
    let own = log.iter().filter(|(at, _)| day_of(*at) == day).count();
    let found = client.get(&format!("/v1/changes?day={day}&limit=1000")).expect(200).json();
    assert_eq!((found["data"].as_array().unwrap().len(), &found["meta"]["has_more"]), (own, &json!(false)), "{day}");
    assert_eq!(client.get("/v1/changes?day=2020-01-01").expect(200).data(), json!([]));
    let account = client.account;
    let verdict = server.app.store.read_now(move |tx| log::verify(tx, account)).unwrap();
    assert!(matches!(verdict, Verdict::Whole { rows, .. } if rows == i64::try_from(log.len()).unwrap()), "{verdict:?}");
}

fn nothing_in_it_leads_outside(db: Db) {
    let server = Server::start(db);
    let client = demo(&server);
    let mut addresses = 0;
    for (_, data) in log_of(&server, &client) {
        for word in data.split(|c: char| c.is_whitespace() || "\",<>()[]{}".contains(c)) {
            let is_own = word.starts_with(&format!("{}/", client.base));
            if !is_own && (word.contains('@') || word.contains("://")) {
                assert!(word.ends_with(".example"), "{word} in {data}");
                addresses += 1;
            }
        }
    }
    assert!(addresses > 50);
    let account = client.account;
    let count = |sql: &'static str| server.app.store.read_now(move |tx| tx.int(sql, &[account.into()])).unwrap();
    let waiting = count("SELECT count(*) FROM jobs WHERE account_id = $1 AND kind = 'deliver'");
    assert_eq!(waiting, 0, "old mail would be sent today");
    // The mail of a real business was sent, and some of it did not arrive.
    assert_eq!(count("SELECT count(*) FROM deliveries WHERE account_id = $1 AND status = 'failed'"), 1);
    assert!(count("SELECT count(*) FROM deliveries WHERE account_id = $1 AND status = 'sent'") > 50);
    assert_eq!(count("SELECT count(*) FROM deliveries WHERE account_id = $1 AND status NOT IN ('sent', 'failed')"), 0);
}
