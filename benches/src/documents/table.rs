//! The results of the document benchmark as a table for docs/performance.md.

use super::chart;
use super::load::Operation;
use crate::report::{header, thousands, word};

/// One measurement of one program.
pub struct Measured {
    pub rate: f64,
    /// Per request; `None` if the server does not count them.
    pub statements: Option<f64>,
    pub stored: f64,
    pub written: f64,
}

/// A line of the table; the rounds of both programs are in the same order.
pub struct Line {
    pub database: &'static str,
    pub operation: Operation,
    pub accounts: usize,
    pub connections: usize,
    pub kantoor: Vec<Measured>,
    pub bare: Vec<Measured>,
}

pub struct Table {
    how: String,
    pub lines: Vec<Line>,
}

const HEAD: &str = "\
| What | Accounts | Connections | Kantoor, req/s | Bare, req/s | Ratio | Goal | Statements | Stored, bytes | Written, bytes |
|---|--:|--:|--:|--:|--:|---|--:|--:|--:|";

impl Table {
    pub fn new(how: &str) -> Table {
        Table { how: header(how), lines: Vec::new() }
    }

    pub fn markdown(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(Line::markdown).collect();
        format!("{}\n\n{HEAD}\n{}", self.how, lines.join("\n"))
    }

    /// Draws the ratios at 32 connections.
    pub fn chart(&self) -> String {
        let shown = self.lines.iter().filter(|line| line.connections == 32);
        let bars: Vec<chart::Bar> = shown
            .map(|line| {
                let accounts = if line.accounts == 1 { "1 account" } else { "16 accounts" };
                let label = format!("{}, {}, {accounts}", line.name(), line.database);
                chart::Bar { label, value: line.ratio(), goal: line.goal() }
            })
            .collect();
        chart::svg("Kantoor beside a bare program, 32 connections", &bars)
    }
}

impl Line {
    fn markdown(&self) -> String {
        let Line { database, accounts, connections, .. } = self;
        let (name, ratio) = (self.name(), self.ratio());
        let goal = self.goal().map_or("–".to_string(), |goal| format!("≥ {goal}, {}", word(ratio >= goal)));
        let [kantoor, bare] =
            [&self.kantoor, &self.bare].map(|rounds| thousands(median(rounds, |one| one.rate) as i64));
        let statements = self.both(|rounds| {
            let known = rounds.iter().all(|one| one.statements.is_some());
            known.then(|| format!("{:.1}", median(rounds, |one| one.statements.unwrap_or(0.0))))
        });
        let bytes = |of: fn(&Measured) -> f64| {
            self.both(|rounds| self.writes().then(|| thousands(median(rounds, of).round() as i64)))
        };
        let (stored, written) = (bytes(|one| one.stored), bytes(|one| one.written));
        format!(
            "| {database}: {name} | {accounts} | {connections} | {kantoor} | {bare} | {ratio:.2} | {goal} | {statements} \
             | {stored} | {written} |"
        )
    }

    /// Formats a value of Kantoor and of the bare program.
    fn both(&self, of: impl Fn(&[Measured]) -> Option<String>) -> String {
        let shown = |rounds: &[Measured]| of(rounds).unwrap_or_else(|| "–".to_string());
        match (shown(&self.kantoor), shown(&self.bare)) {
            (kantoor, bare) if kantoor == "–" && bare == "–" => kantoor,
            (kantoor, bare) => format!("{kantoor} / {bare}"),
        }
    }

    /// Returns the median of the ratios per round, since a disturbance affects both programs of a round.
    fn ratio(&self) -> f64 {
        let mut ratios: Vec<f64> =
            self.kantoor.iter().zip(&self.bare).map(|(kantoor, bare)| kantoor.rate / bare.rate).collect();
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    }

    /// Returns the minimum for the ratio.
    fn goal(&self) -> Option<f64> {
        match (self.database, self.operation, self.connections, self.accounts) {
            ("SQLite", Operation::Draft, 32, _) => Some(0.4),
            ("SQLite", Operation::Final, 32, _) => Some(0.35),
            (_, Operation::List, 32, _) | ("PostgreSQL", Operation::Get, 32, _) => Some(0.6),
            ("PostgreSQL", Operation::Draft, 32, 1) => Some(0.35),
            _ => None,
        }
    }

    fn writes(&self) -> bool {
        !matches!(self.operation, Operation::Get | Operation::List | Operation::Clients)
    }

    fn name(&self) -> &'static str {
        match self.operation {
            Operation::Get => "GET invoice",
            Operation::List => "List of 25 invoices",
            Operation::Clients => "List of 25 clients",
            Operation::Client => "POST client",
            Operation::Draft => "POST invoice, draft",
            Operation::Final => "POST invoice, final",
            Operation::Finalize => "Finalize invoice",
            Operation::Pay => "POST payment",
        }
    }
}

fn median(rounds: &[Measured], of: impl Fn(&Measured) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
