//! The time of a day on which many subscriptions are due, and of a year of days for a few.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::load::Sample;
use crate::report::{Report, thousands};
use crate::server::{Data, Server};

/// Number of subscriptions that are due on one day.
const DUE: usize = 10_000;
/// Number of subscriptions that run for a year.
const FEW: usize = 100;
const DAYS: i64 = 365;

/// Measures and reports both.
pub fn tell(report: &mut Report, binary: &Path, folder: &Path) {
    eprintln!("Measuring subscriptions.");
    let (seconds, meanwhile) = day(binary, &folder.join("due"));
    let due = i64::try_from(DUE).unwrap_or(i64::MAX);
    report.value(&format!("{} due subscriptions become final invoices", thousands(due)), seconds, "s", 60.0);
    let meanwhile = crate::report::Figure::of(&[meanwhile]);
    report.latency("List of clients while that goes on", &meanwhile, None);
    let year = year(binary, &folder.join("year"));
    report.value(&format!("A year of daily steps of the clock, {FEW} subscriptions"), year, "s", 30.0);
}

/// A server with an account whose clock is at the last day of a year, with subscriptions that start on the first of the
/// next.
fn server(binary: &Path, folder: &Path, count: usize) -> Server {
    let data = Data::with_test_clock(binary, folder, "2025-12-31T12:00:00Z");
    let server = Server::kantoor(binary, &data);
    let client = server.post("/v1/clients", &json!({"company_name": "Bench", "email": "bench@bench.example"}));
    for n in 0..count {
        let line = json!({"title": "Hosting", "quantity": 1, "unit_price": 25, "vat_code": "NL21"});
        let body = json!({
            "client_id": client["data"]["id"], "title": format!("Subscription {n}"),
            "subscription_start": "2026-01-01", "lines": [line, line],
        });
        server.post("/v1/subscriptions", &body);
    }
    server
}

/// Returns the seconds until all due subscriptions have their invoices, and the response times of lists meanwhile.
fn day(binary: &Path, folder: &Path) -> (f64, Sample) {
    let server = server(binary, folder, DUE);
    let started = Instant::now();
    let micros = std::thread::scope(|scope| {
        let moving = scope.spawn(|| server.post("/v1/test-clock/advance", &json!({"to": "2026-01-01T12:00:00Z"})));
        let mut micros = Vec::new();
        while !moving.is_finished() {
            let asked = Instant::now();
            server.json("/v1/clients");
            micros.push(u32::try_from(asked.elapsed().as_micros()).unwrap_or(u32::MAX));
            std::thread::sleep(Duration::from_millis(5));
        }
        micros
    });
    let seconds = started.elapsed().as_secs_f64();
    let made = server.json("/v1/invoices?per_page=1");
    assert_eq!(made["meta"]["total"], DUE, "every subscription has its invoice");
    server.stop();
    (seconds, Sample { rate: micros.len() as f64 / seconds, micros })
}

/// Returns the seconds for a year in steps of a day, one request each.
fn year(binary: &Path, folder: &Path) -> f64 {
    let server = server(binary, folder, FEW);
    let started = Instant::now();
    // 2026-01-01T12:00:00Z, in seconds.
    let first = 1_767_268_800;
    for day in 0..DAYS {
        let moment = format!("{}", crate::product::Moment((first + day * 86_400) * 1000));
        server.post("/v1/test-clock/advance", &json!({"to": moment}));
    }
    let seconds = started.elapsed().as_secs_f64();
    let made = server.json("/v1/invoices?per_page=1");
    assert_eq!(made["meta"]["total"], 12 * FEW, "a year has twelve months");
    server.stop();
    seconds
}
