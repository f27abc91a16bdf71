//! Documents: invoices and clients created, changed, read and listed, on SQLite and on PostgreSQL, with one account and
//! with many, beside the bare program on the same database.

mod chart;
mod load;
mod postgres;
mod site;
mod table;

use std::path::Path;
use std::time::Duration;

use crate::server;
use load::{Ask, Phase};
use postgres::Postgres;
use site::{Database, Program, Seed, Side};
pub use table::Table;
use table::{Line, Measured};

/// What is measured, in this order: reads first, while the tables are as they were seeded; what is created is then
/// finalized and paid.
const ASKED: [Ask; 8] =
    [Ask::Get, Ask::List, Ask::Clients, Ask::Client, Ask::Draft, Ask::Final, Ask::Finalize, Ask::Pay];

const ROUNDS: usize = 3;
/// Accounts, connections.
const LOADS: [(usize, usize); 4] = [(1, 32), (16, 32), (1, 8), (16, 8)];

pub fn measure(quick: bool) -> Table {
    let seconds = std::env::var("BENCH_SECONDS").ok().map(|text| text.parse::<f64>().expect("a number"));
    let seconds = seconds.unwrap_or(if quick { 0.75 } else { 1.5 });
    let loads = if quick { &LOADS[..2] } else { &LOADS };
    // Beside the binary, since a commit must reach a disk. PostgreSQL has another user, who has to get in.
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(server::own_folder()).unwrap();
    let binary = server::kantoor_binary();
    let postgres = Postgres::start();
    let mut table = Table::new(&format!("{seconds} s a measurement, medians of {ROUNDS} rounds"));
    for database in [Database::Sqlite, Database::Postgres(&postgres)] {
        let name = database.name();
        eprintln!("Seeding {name}.");
        let seeds = [Program::Kantoor(&binary), Program::Bare]
            .map(|program| Seed::make(program, database, &folder.path().join(format!("{name}-{}", program.name()))));
        check(&seeds, folder.path());
        for (accounts, connections) in loads {
            eprintln!("Measuring {name}: accounts {accounts}, connections {connections}.");
            let lines = rounds(&seeds, folder.path(), (*accounts, *connections), Duration::from_secs_f64(seconds));
            for (ask, [kantoor, bare]) in lines {
                let (accounts, connections) = (*accounts, *connections);
                table.lines.push(Line { database: name, ask, accounts, connections, kantoor, bare });
            }
        }
    }
    table
}

/// What Kantoor and the bare program did in each round.
type Both = [Vec<Measured>; 2];

fn rounds(seeds: &[Seed; 2], folder: &Path, load: (usize, usize), measured: Duration) -> Vec<(Ask, Both)> {
    let mut lines: Vec<(Ask, Both)> = ASKED.map(|ask| (ask, [Vec::new(), Vec::new()])).into();
    for _ in 0..ROUNDS {
        // Fresh copies: tables that grow get slower, and the fastest program would make its own work the hardest.
        let copies = tempfile::tempdir_in(folder).unwrap();
        let mut sides = [0, 1].map(|n| seeds[n].start(&copies.path().join(n.to_string())));
        for (ask, both) in &mut lines {
            for (side, samples) in sides.iter_mut().zip(both) {
                samples.push(one(side, *ask, load, measured));
            }
        }
        sides.into_iter().for_each(Side::stop);
    }
    lines
}

fn one(side: &mut Side, ask: Ask, (accounts, connections): (usize, usize), measured: Duration) -> Measured {
    let before = side.standing();
    let feed = std::mem::take(&mut side.feed);
    let (Phase { rate, asked }, feed) = load::run(&side.server, feed, ask, accounts, connections, measured);
    side.feed = feed;
    let after = side.standing();
    let each = |from: u64, to: u64| to.saturating_sub(from) as f64 / asked.max(1) as f64;
    let statements = before.statements.zip(after.statements).map(|(from, to)| each(from, to));
    Measured {
        rate,
        statements,
        stored: each(before.stored, after.stored),
        written: each(before.written, after.written),
    }
}

/// A comparison is only fair when both answer with the same fields.
fn check(seeds: &[Seed; 2], folder: &Path) {
    let copies = tempfile::tempdir_in(folder).unwrap();
    let sides = [0, 1].map(|n| seeds[n].start(&copies.path().join(n.to_string())));
    let paths = sides.each_ref().map(|side| {
        let invoice = format!("/v1/invoices/{}", side.feed.seeded[0][0]);
        [invoice, "/v1/invoices".to_string(), "/v1/clients".to_string()].map(|path| {
            let answer = side.server.json(&path);
            let (mut fields, data) =
                (Vec::new(), if path.ends_with('s') { &answer["data"][0] } else { &answer["data"] });
            site::fields(data, "", &mut fields);
            fields
        })
    });
    assert_eq!(paths[0], paths[1], "Kantoor and the bare program answer with different fields");
    sides.into_iter().for_each(Side::stop);
}
