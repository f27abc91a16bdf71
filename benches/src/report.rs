//! The figures as tables for docs/performance.md.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::load::{CONNECTIONS, Sample};

/// The result of several rounds of a measurement.
pub struct Figure {
    /// Requests per second: the median of the rounds.
    rate: f64,
    /// Milliseconds, over the requests of all rounds.
    p50: f64,
    p99: f64,
}

impl Figure {
    pub fn of(samples: &[Sample]) -> Figure {
        let mut rates: Vec<f64> = samples.iter().map(|sample| sample.rate).collect();
        rates.sort_by(f64::total_cmp);
        let mut micros: Vec<u32> = samples.iter().flat_map(|sample| sample.micros.iter().copied()).collect();
        micros.sort_unstable();
        // A server too slow to respond in time shows as "inf", and the other figures remain.
        let percentile = |percent: usize| {
            let at = micros.len().saturating_sub(1) * percent / 100;
            micros.get(at).map_or(f64::INFINITY, |micros| f64::from(*micros) / 1000.0)
        };
        Figure { rate: rates[rates.len() / 2], p50: percentile(50), p99: percentile(99) }
    }

    /// The rate as text, and the percentiles in milliseconds.
    pub fn shown(&self) -> (String, f64, f64) {
        (thousands(self.rate.round() as i64), self.p50, self.p99)
    }
}

/// The lines of two tables, below a line that describes the measurement.
pub struct Report {
    how: String,
    figures: Vec<String>,
    latencies: Vec<String>,
}

impl Report {
    pub fn new(how: &str) -> Report {
        let how = header(&format!("{CONNECTIONS} connections; {how}"));
        Report { how, figures: Vec::new(), latencies: Vec::new() }
    }

    /// Adds a line of Kantoor and a comparison; without a goal it is informational.
    pub fn compare(&mut self, what: &str, kantoor: &Figure, limit: &Figure, goal: Option<f64>) {
        let ratio = kantoor.rate / limit.rate;
        let goal = goal.map_or("–".to_string(), |goal| format!("≥ {goal}, {}", word(ratio >= goal)));
        let [kantoor, limit] = [kantoor, limit].map(|figure| thousands(figure.rate.round() as i64));
        self.figures.push(format!("| {what} | {kantoor} | {limit} | {ratio:.2} | {goal} |"));
    }

    /// Adds a line with a value that must stay below `goal`.
    pub fn value(&mut self, what: &str, value: f64, unit: &str, goal: f64) {
        let shown = if value < 1.0 { format!("{value:.3}") } else { format!("{value:.1}") };
        self.figures.push(format!("| {what} | {shown} {unit} | – | – | < {goal} {unit}, {} |", word(value < goal)));
    }

    /// Adds a line with a value that must reach `goal`.
    pub fn at_least(&mut self, what: &str, value: f64, goal: f64) {
        let (shown, least) = (thousands(value.round() as i64), thousands(goal.round() as i64));
        self.figures.push(format!("| {what} | {shown} | – | – | ≥ {least}, {} |", word(value >= goal)));
    }

    /// Adds the response times, next to those of the limit if there is one.
    pub fn latency(&mut self, what: &str, kantoor: &Figure, limit: Option<&Figure>) {
        let shown = |figure: &Figure| format!("{:.2} | {:.2}", figure.p50, figure.p99);
        let (kantoor, limit) = (shown(kantoor), limit.map_or("– | –".to_string(), shown));
        self.latencies.push(format!("| {what} | {kantoor} | {limit} |"));
    }

    pub fn markdown(&self) -> String {
        format!(
            "{}\n\n| What | Kantoor, req/s | Limit, req/s | Ratio | Goal |\n|---|--:|--:|--:|---|\n{}\n\n\
             Response time in milliseconds:\n\n\
             | What | Kantoor p50 | Kantoor p99 | Limit p50 | Limit p99 |\n|---|--:|--:|--:|--:|\n{}",
            self.how,
            self.figures.join("\n"),
            self.latencies.join("\n")
        )
    }
}

/// When and where something was measured, and how.
pub fn header(how: &str) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let date = Command::new("date").arg("+%F").output().expect("the command date").stdout;
    let date = String::from_utf8_lossy(&date).trim().to_string();
    format!("Measured on {date} with {cores} CPUs, on loopback; {how}.")
}

pub fn word(met: bool) -> &'static str {
    if met { "met" } else { "**missed**" }
}

/// `1000000` as `1,000,000`.
pub fn thousands(number: i64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Replaces what stands between the markers of this name in a document.
pub fn write_into(document: &Path, name: &str, figures: &str) {
    let (begin, end) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let text = fs::read_to_string(document).expect("the document is there");
    let (head, rest) = text.split_once(&begin).expect("the document has the first marker");
    let (_, tail) = rest.split_once(&end).expect("the document has the second marker");
    fs::write(document, format!("{head}{begin}\n\n{figures}\n\n{end}{tail}")).expect("the document can be written");
}
