//! The benchmark of documents: creates, changes, reads and lists invoices and clients on SQLite and PostgreSQL, with one
//! account and with several, and compares with the bare program on the same database.

mod chart;
mod load;
mod postgres;
mod site;
mod table;

use std::path::Path;
use std::time::Duration;

use crate::server;
pub use load::invoice_body;
use load::{Operation, Phase};
pub use postgres::Postgres;
use site::{Database, Program, Seed, Side};
pub use table::Table;
use table::{Line, Measured};

/// The operations in the order in which they are measured: reads come first, while the tables contain only the seed. Later
/// operations finalize and pay the invoices that earlier ones create.
const OPERATIONS: [Operation; 8] = [
    Operation::Get,
    Operation::List,
    Operation::Clients,
    Operation::Client,
    Operation::Draft,
    Operation::Final,
    Operation::Finalize,
    Operation::Pay,
];

const ROUNDS: usize = 3;
/// Numbers of accounts and connections.
const LOADS: [(usize, usize); 4] = [(1, 32), (16, 32), (1, 8), (16, 8)];

pub fn measure(quick: bool) -> Table {
    let seconds = std::env::var("BENCH_SECONDS").ok().map(|text| text.parse::<f64>().expect("a number"));
    let seconds = seconds.unwrap_or(if quick { 0.75 } else { 1.5 });
    let loads = if quick { &LOADS[..2] } else { &LOADS };
    // Next to the binary, since /tmp may not be on a disk. The PostgreSQL server runs as another user and needs access.
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(server::own_folder()).unwrap();
    let binary = server::kantoor_binary();
    let postgres = Postgres::start();
    let mut table = Table::new(&format!("{seconds} s per measurement, medians of {ROUNDS} rounds"));
    for database in [Database::Sqlite, Database::Postgres(&postgres)] {
        let name = database.name();
        eprintln!("Seeding {name}.");
        let seeds = [Program::Kantoor(&binary), Program::Bare]
            .map(|program| Seed::make(program, database, &folder.path().join(format!("{name}-{}", program.name()))));
        check(&seeds, folder.path());
        for (accounts, connections) in loads {
            eprintln!("Measuring {name}: accounts {accounts}, connections {connections}.");
            let lines = rounds(&seeds, folder.path(), (*accounts, *connections), Duration::from_secs_f64(seconds));
            for (operation, [kantoor, bare]) in lines {
                let (accounts, connections) = (*accounts, *connections);
                table.lines.push(Line { database: name, operation, accounts, connections, kantoor, bare });
            }
        }
    }
    table
}

/// The measurements of Kantoor and of the bare program, one for each round.
type Both = [Vec<Measured>; 2];

fn rounds(seeds: &[Seed; 2], folder: &Path, load: (usize, usize), measured: Duration) -> Vec<(Operation, Both)> {
    let mut lines: Vec<(Operation, Both)> = OPERATIONS.map(|operation| (operation, [Vec::new(), Vec::new()])).into();
    for _ in 0..ROUNDS {
        // Fresh copies: growing tables get slower, and the faster program grows them more.
        let copies = tempfile::tempdir_in(folder).unwrap();
        let mut sides = [0, 1].map(|n| seeds[n].start(&copies.path().join(n.to_string())));
        for (operation, both) in &mut lines {
            for (side, samples) in sides.iter_mut().zip(both) {
                samples.push(measure_one(side, *operation, load, measured));
            }
        }
        sides.into_iter().for_each(Side::stop);
    }
    lines
}

fn measure_one(
    side: &mut Side,
    operation: Operation,
    (accounts, connections): (usize, usize),
    measured: Duration,
) -> Measured {
    let before = side.standing();
    let feed = std::mem::take(&mut side.feed);
    let (Phase { rate, asked }, feed) = load::run(&side.server, feed, operation, accounts, connections, measured);
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

/// The comparison is fair only if both programs return the same fields.
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
    assert_eq!(paths[0], paths[1], "Kantoor and the bare program return different fields");
    sides.into_iter().for_each(Side::stop);
}
