//! The benchmark of the console, in a real Chromium: how soon a list is seen with an empty and with a filled cache, how soon
//! a keystroke in a long invoice is seen, and how lists and searches grow with the number of records.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::browser::Chromium;
use crate::report::{header, thousands, word};
use crate::rows;
use crate::server::{self, Data, Server};
use crate::sign_in::{ask, session_of};
use crate::{FEW, invoice};

const WINDOW: (u32, u32) = (1280, 860);
/// Pages per figure; the median counts.
const ROUNDS: usize = 9;
/// Rows of the invoice that is typed in.
const ROWS: usize = 999;
const KEYSTROKES: usize = 30;
const PASSWORD: &str = "correct horse battery";

/// Notes when the rows of a list are painted.
const WATCH: &str = "new MutationObserver(() => {
  if (!window.rowsAt && document.querySelector('tbody tr')) requestAnimationFrame(() => setTimeout(() => { window.rowsAt ??= performance.now(); }));
}).observe(document, { childList: true, subtree: true });";

/// A measured value and the value that it must stay below.
struct Line {
    what: String,
    value: f64,
    unit: &'static str,
    goal: f64,
}

/// The lines of the table, below a line that describes the measurement.
pub struct Table {
    how: String,
    lines: Vec<Line>,
}

impl Table {
    pub fn markdown(&self) -> String {
        let line = |line: &Line| {
            let (Line { what, value, unit, goal }, met) = (line, word(line.value < line.goal));
            let value = if unit.is_empty() { format!("{value:.2}") } else { format!("{value:.0} {unit}") };
            format!("| {what} | {value} | < {goal} {unit}, {met} |").replace(" ,", ",")
        };
        let lines: Vec<String> = self.lines.iter().map(line).collect();
        format!("{}\n\n| What | Measured | Goal |\n|---|--:|---|\n{}", self.how, lines.join("\n"))
    }
}

/// When things were painted, in milliseconds since the page was asked for.
struct Painted {
    first: f64,
    rows: f64,
}

/// Measures the console, or returns `None` where there is no Chromium.
pub fn measure(quick: bool) -> Option<Table> {
    let rows = if quick { 100_000 } else { 1_000_000 };
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(server::own_folder()).unwrap();
    let binary = server::kantoor_binary();
    let mut few = Site::start(&binary, &folder.path().join("few"), FEW)?;
    let mut many = Site::start(&binary, &folder.path().join("many"), rows)?;
    for site in [&few, &many] {
        site.server.rest();
    }

    let mut lines = Vec::new();
    let mut add = |what: String, value: f64, unit, goal| lines.push(Line { what, value, unit, goal });
    eprintln!("Measuring lists with an empty cache.");
    let cold: Vec<Painted> = (0..ROUNDS).map(|_| few.cold("/invoices")).collect();
    add("List, empty cache: first paint".to_string(), median(&cold, |page| page.first), "ms", 100.0);
    add("List, empty cache: rows".to_string(), median(&cold, |page| page.rows), "ms", 300.0);
    eprintln!("Measuring lists with a filled cache.");
    let search = format!("/invoices?search={}", invoice::searches(0)[2].0);
    let pages = [("List", "/invoices", 1.2), ("Search in a list", search.as_str(), 3.0)];
    // While no other browser is at work.
    for (what, path, _) in pages {
        let alone: Vec<Painted> = (0..ROUNDS).map(|_| few.warm(path)).collect();
        add(format!("{what}, filled cache: rows"), median(&alone, |page| page.rows), "ms", 150.0);
    }
    for (what, path, limit) in pages {
        let (mut with_few, mut with_many) = (Vec::new(), Vec::new());
        // In turn, so that disturbances affect both.
        for _ in 0..ROUNDS {
            with_few.push(few.warm(path));
            with_many.push(many.warm(path));
        }
        let [base, grown] = [&with_few, &with_many].map(|pages| median(pages, |page| page.rows));
        let beside = format!("{what}: rows of {} records beside {}", thousands(rows), thousands(FEW));
        add(beside, grown / base, "", limit);
    }
    eprintln!("Measuring Find.");
    let [base, grown] = [&mut few, &mut many].map(Site::find);
    add(format!("Find, {} records", thousands(FEW)), base, "ms", 150.0);
    add(format!("Find: {} records beside {}", thousands(rows), thousands(FEW)), grown / base, "", 3.0);
    eprintln!("Measuring keystrokes.");
    let (middle, worst) = few.keystrokes();
    add(format!("Keystroke to paint, invoice of {} rows", thousands(ROWS as i64)), middle, "ms", 50.0);
    add("Keystroke to paint, the slowest of them".to_string(), worst, "ms", 100.0);
    let how = header(&format!("Chromium, {} × {}; medians of {ROUNDS} pages", WINDOW.0, WINDOW.1));
    Some(Table { how, lines })
}

fn median(pages: &[Painted], of: impl Fn(&Painted) -> f64) -> f64 {
    middle(pages.iter().map(of).collect())
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A server with records, and a browser in which its owner has signed in.
struct Site {
    server: Server,
    browser: Chromium,
}

impl Site {
    fn start(binary: &Path, folder: &Path, records: i64) -> Option<Site> {
        let data = Data::make(binary, folder, records);
        let server = Server::kantoor(binary, &data);
        let mut browser = Chromium::start(&format!("http://{}", server.address), WINDOW.0, WINDOW.1)?;
        let invited = server.post("/v1/users", &json!({"email": "owner@a.example", "name": "Owner", "role": "owner"}));
        let link = invited["meta"]["invite_url"].as_str().expect("a link");
        let entry = json!({"token": link.rsplit('/').next(), "password": PASSWORD});
        let session = session_of(&ask(&server, 1, "/console/accept-invite", &entry));
        let base = format!("http://{}", server.address);
        browser.call("Network.setCookie", json!({"name": "kantoor", "value": session, "url": base}));
        // It would calculate the tree of a screen reader anew with every change of the page.
        browser.call("Accessibility.disable", json!({}));
        browser.call("Page.addScriptToEvaluateOnNewDocument", json!({"source": WATCH}));
        Some(Site { server, browser })
    }

    /// Opens a page with an empty cache.
    fn cold(&mut self, path: &str) -> Painted {
        self.browser.call("Network.clearBrowserCache", json!({}));
        self.painted(path)
    }

    /// Opens a page again.
    fn warm(&mut self, path: &str) -> Painted {
        self.painted(path)
    }

    fn painted(&mut self, path: &str) -> Painted {
        self.browser.open("/health");
        self.browser.wait_until("location.pathname === '/health'");
        // Chromium tidies up the page before for a while.
        std::thread::sleep(Duration::from_millis(500));
        self.browser.open(path);
        self.browser.wait_until("location.pathname !== '/health' && window.rowsAt > 0");
        let first = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime";
        // Rows that are in the first frame are there before it is painted.
        self.browser.wait_until(&format!("{first} > 0"));
        let first = self.browser.evaluate(first).as_f64().expect("a first paint");
        Painted { first, rows: self.browser.evaluate("window.rowsAt").as_f64().expect("a time") }
    }

    /// Returns how long a search over all kinds of records takes, as the page sees it.
    fn find(&mut self) -> f64 {
        let words = invoice::searches(0)[2].0.clone();
        let asked = format!(
            "(async () => {{ const began = performance.now(); await (await fetch('/console/v1/search?q={words}')).json(); return performance.now() - began; }})()"
        );
        middle((0..ROUNDS).map(|_| self.browser.evaluate(&asked).as_f64().expect("a time")).collect())
    }

    /// Returns the median and the largest time from a keystroke in a long invoice to the next frame.
    fn keystrokes(&mut self) -> (f64, f64) {
        let row = |n: usize| json!({"name": format!("Row {n}"), "quantity": 1 + n % 7, "unit_price": n % 90});
        let rows: Vec<_> = (0..ROWS).map(row).collect();
        let invoice = json!({"title": "Long", "client_id": rows::id(0), "rows": rows});
        let id = self.server.post("/v1/invoices", &invoice)["data"]["id"].as_str().expect("an id").to_string();
        self.browser.open(&format!("/invoices/{id}"));
        self.browser.wait_until(&format!("document.querySelectorAll('.cell-price input').length > {ROWS}"));
        let typed = format!(
            "(async () => {{
               const box = document.querySelectorAll('.cell-price input')[{}];
               const times = [];
               const frame = () => new Promise((done) => requestAnimationFrame(() => {{ const line = new MessageChannel(); line.port1.onmessage = done; line.port2.postMessage(0); }}));
               // This scrolls to the row, which is not part of a keystroke.
               box.focus();
               await frame();
               await frame();
               for (let n = 0; n < {KEYSTROKES}; n++) {{
                 const began = performance.now();
                 box.value = String(n % 90);
                 box.dispatchEvent(new InputEvent('input', {{ bubbles: true }}));
                 await frame();
                 times.push(performance.now() - began);
               }}
               return times;
             }})()",
            ROWS / 2
        );
        let times = self.browser.evaluate(&typed);
        let times: Vec<f64> = times.as_array().expect("times").iter().filter_map(serde_json::Value::as_f64).collect();
        let worst = times.iter().copied().fold(0.0, f64::max);
        (middle(times), worst)
    }
}
