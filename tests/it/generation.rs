//! Subscription invoices with two concurrent nodes, and after kill -9.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use kantoor::subscriptions::generate;
use serde_json::{Value, json};

use crate::on_both;
use crate::server::Binary;
use crate::support::{Client, Db, Server};

/// Creates subscriptions that started a quarter ago and today; returns how many invoices are due.
fn subscribe(client: &Client, count: usize, today: jiff::civil::Date) -> usize {
    let firm = client.post("/v1/clients", json!({"company_name": "De Ster"})).expect(201).id();
    let start = today.checked_sub(jiff::Span::new().months(2)).unwrap().first_of_month();
    let mut owed = 0;
    for n in 0..count {
        let start = if n % 2 == 0 { start } else { today };
        let body = json!({"client_id": firm, "title": format!("s{n}"), "subscription_start": start.to_string(), "lines": [{"title": "x", "unit_price": 1, "vat_code": "NL21"}]});
        client.post("/v1/subscriptions", body).expect(201);
        owed += if n % 2 == 0 { 3 } else { 1 };
    }
    owed
}

/// Every invoice of the account, by subscription and period.
fn made(client: &Client) -> HashMap<(String, String), usize> {
    let mut made: HashMap<(String, String), usize> = HashMap::new();
    for page in 1.. {
        let list = client.get(&format!("/v1/invoices?per_page=100&page={page}")).expect(200).data();
        let list = list.as_array().unwrap().clone();
        if list.is_empty() {
            return made;
        }
        for one in list {
            *made
                .entry((one["title"].as_str().unwrap().to_string(), one["invoice_date"].as_str().unwrap().to_string()))
                .or_default() += 1;
        }
    }
    made
}

fn total(client: &Client, path: &str) -> usize {
    usize::try_from(client.get(path).json()["meta"]["total"].as_u64().unwrap()).unwrap()
}

on_both![two_nodes_create_each_invoice_once, kill_9_during_generation_duplicates_and_misses_none,];

fn two_nodes_create_each_invoice_once(db: Db) {
    let config = db.config();
    let server = Server::start(db);
    let client = server.client();
    let owed = subscribe(&client, 20, "2026-05-04".parse().unwrap());
    let other = kantoor::opening::open(config).unwrap();
    let passes: Vec<_> = [server.app.clone(), other.clone(), server.app.clone(), other]
        .into_iter()
        .map(|app| {
            let account = client.account;
            server.apart(move || {
                let caller = app.acting_in(account, "test")?;
                (generate::DUE.bring_up_to_date)(&app, &caller)
            })
        })
        .collect();
    for pass in passes {
        server.block_on(pass).unwrap().unwrap();
    }
    let made = made(&client);
    assert_eq!((made.len(), made.values().all(|count| *count == 1)), (owed, true), "{made:?}");
    let first = client.get("/v1/subscriptions?search=s0").data()[0].clone();
    let periods = client.get(&format!("/v1/subscriptions/{}/periods", first["id"].as_str().unwrap())).data();
    let told: Vec<&Value> = periods.as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(told, ["made", "made", "made", "upcoming"]);
}

fn kill_9_during_generation_duplicates_and_misses_none(db: Db) {
    let mut binary = Binary::start(&db, "", &[]);
    let key = binary.client.key.clone();
    let zone = jiff::tz::TimeZone::get("Europe/Amsterdam").unwrap();
    let today = zone.to_datetime(engine::clock::Clock::System.now().to_string().parse().unwrap()).date();
    let owed = subscribe(&binary.client, 120, today);
    for round in 0..4 {
        std::thread::sleep(Duration::from_millis(30 + round * 40));
        binary.signal(rustix::process::Signal::KILL);
        let _ = binary.child.wait();
        binary = Binary::start(&db, &key, &[]);
    }
    // The job of a dead worker is released when its lease expires; the test does not wait for that.
    let started = Instant::now();
    while total(&binary.client, "/v1/invoices") < owed {
        assert!(
            started.elapsed() < Duration::from_secs(90),
            "{} of {owed}: {}",
            total(&binary.client, "/v1/invoices"),
            binary.said()
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    let made = made(&binary.client);
    assert_eq!((made.len(), made.values().all(|count| *count == 1)), (owed, true), "{made:?}");
}
