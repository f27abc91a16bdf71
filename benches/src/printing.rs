//! PDFs: final invoices per minute with concurrent readers, and the time of a single one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::load::Sample;
use crate::report::{Figure, Report};
use crate::rows;
use crate::seed;
use crate::server::{Data, Server};

/// Number of invoices to finalize.
const PRINTED: usize = 1_000;
/// Number of connections that send them.
const SENDERS: usize = 4;
/// The maximum number of rows of a document.
const LARGE: usize = 1_000;
/// How often the list is read meanwhile.
const LIST_INTERVAL: Duration = Duration::from_millis(20);
const ALONE: usize = 51;

/// The result of a run.
pub struct Printing {
    /// Invoices per minute, from the first request to the last PDF.
    per_minute: f64,
    /// Lists of invoices read meanwhile.
    lists: Figure,
    /// Peak memory so far, in MB.
    peak: f64,
    /// Seconds for a document of one page, and for one of a thousand rows.
    page: f64,
    large: f64,
    /// Peak memory after those.
    large_peak: f64,
    /// Resident memory three seconds and one request later.
    rest: f64,
}

/// Measures on a separate server; `data` gets the invoices.
pub fn run(server: &Server, data: &Data) -> Printing {
    eprintln!("Measuring PDFs.");
    let begun = Instant::now();
    let done = AtomicBool::new(false);
    let micros = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut micros = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let asked = Instant::now();
                server.json("/v1/invoices");
                micros.push(u32::try_from(asked.elapsed().as_micros()).unwrap_or(u32::MAX));
                std::thread::sleep(LIST_INTERVAL);
            }
            micros
        });
        for _ in 0..SENDERS {
            scope
                .spawn(|| (0..PRINTED / SENDERS).for_each(|_| drop(server.post("/v1/invoices", &invoice(3, "final")))));
        }
        seed::wait_for_pdfs(&data.database(), PRINTED as i64);
        done.store(true, Ordering::Relaxed);
        reader.join().expect("lists are answered")
    });
    let seconds = begun.elapsed().as_secs_f64();
    let lists = Figure::of(&[Sample { rate: micros.len() as f64 / seconds, micros }]);
    let (per_minute, peak) = (PRINTED as f64 * 60.0 / seconds, server.peak());
    // A draft is typeset on demand. A new one each time: the compiler caches previous ones.
    let mut pages: Vec<f64> =
        (0..ALONE).map(|_| print(server, &server.post("/v1/invoices", &invoice(3, "draft")))).collect();
    pages.sort_by(f64::total_cmp);
    let large = print(server, &server.post("/v1/invoices", &invoice(LARGE, "draft")));
    let large_peak = server.peak();
    // Free memory is returned to the system after a second, when something runs.
    std::thread::sleep(Duration::from_secs(3));
    server.json("/v1/invoices");
    Printing { per_minute, lists, peak, page: pages[ALONE / 2], large, large_peak, rest: server.megabytes() }
}

/// Returns the seconds until the PDF of a document exists.
fn print(server: &Server, made: &Value) -> f64 {
    let id = made["data"]["id"].as_str().expect("an id");
    let asked = Instant::now();
    let pdf = server.bytes(&format!("/v1/invoices/{id}/pdf/content"));
    assert!(pdf.starts_with(b"%PDF-"), "no PDF");
    asked.elapsed().as_secs_f64()
}

fn invoice(rows: usize, mode: &str) -> Value {
    let row = |n: usize| {
        json!({
            "name": format!("Onderhoud, deel {n}"),
            "description": "Volgens afspraak, met materiaal",
            "quantity": n % 7 + 1,
            "unit_price": 12.5,
            "vat_rate": "21",
        })
    };
    let rows: Vec<Value> = (1..=rows).map(row).collect();
    json!({"title": "Onderhoud", "client_id": rows::id(0), "generation_mode": mode, "rows": rows})
}

impl Printing {
    pub fn tell(&self, report: &mut Report) {
        report.at_least("Final invoices with their PDF, a minute", self.per_minute, 3_000.0);
        report.value("PDF of one page", self.page * 1000.0, "ms", 20.0);
        report.value("PDF of 1,000 rows", self.large, "s", 2.0);
        report.value("Memory, at most, while 1,000 invoices are printed", self.peak, "MB", 200.0);
        report.value("Memory, at most, with 1,000 rows", self.large_peak, "MB", 200.0);
        report.value("Memory three seconds and a request later", self.rest, "MB", 200.0);
        report.latency("List of invoices while 1,000 are printed", &self.lists, None);
    }
}
