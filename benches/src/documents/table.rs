//! The figures of documents as a table for docs/performance.md.

use super::chart;
use super::load::Ask;
use crate::report::{header, thousands, word};

/// What one measurement gives, of one program.
pub struct Measured {
    pub rate: f64,
    /// Per request. None from a server that does not count them.
    pub statements: Option<f64>,
    pub stored: f64,
    pub written: f64,
}

/// A line of the table; the rounds of both programs are in the same order.
pub struct Line {
    pub database: &'static str,
    pub ask: Ask,
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

    /// The ratios at 32 connections as a picture.
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

    /// A value of Kantoor's, then of the bare program.
    fn both(&self, of: impl Fn(&[Measured]) -> Option<String>) -> String {
        let shown = |rounds: &[Measured]| of(rounds).unwrap_or_else(|| "–".to_string());
        match (shown(&self.kantoor), shown(&self.bare)) {
            (kantoor, bare) if kantoor == "–" && bare == "–" => kantoor,
            (kantoor, bare) => format!("{kantoor} / {bare}"),
        }
    }

    /// The median of the ratios of each round: what disturbs a round disturbs both.
    fn ratio(&self) -> f64 {
        let mut ratios: Vec<f64> =
            self.kantoor.iter().zip(&self.bare).map(|(kantoor, bare)| kantoor.rate / bare.rate).collect();
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    }

    /// The least that the ratio is to be.
    fn goal(&self) -> Option<f64> {
        match (self.database, self.ask, self.connections, self.accounts) {
            ("SQLite", Ask::Draft, 32, _) => Some(0.4),
            ("SQLite", Ask::Final, 32, _) => Some(0.35),
            (_, Ask::List, 32, _) | ("PostgreSQL", Ask::Get, 32, _) => Some(0.6),
            ("PostgreSQL", Ask::Draft, 32, 1) => Some(0.35),
            _ => None,
        }
    }

    fn writes(&self) -> bool {
        !matches!(self.ask, Ask::Get | Ask::List | Ask::Clients)
    }

    fn name(&self) -> &'static str {
        match self.ask {
            Ask::Get => "GET invoice",
            Ask::List => "List of 25 invoices",
            Ask::Clients => "List of 25 clients",
            Ask::Client => "POST client",
            Ask::Draft => "POST invoice, draft",
            Ask::Final => "POST invoice, final",
            Ask::Finalize => "Finalize invoice",
            Ask::Pay => "POST payment",
        }
    }
}

fn median(rounds: &[Measured], of: impl Fn(&Measured) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
