//! A large account beside a small one, on both databases: searches, filters and sums of many records. They share the tables and the
//! index of searches. What is measured and why: docs/performance.md.

use std::time::Instant;

use crate::documents::Postgres;
use crate::report::{header, thousands, word};
use crate::seed;
use crate::server::{self, Server};

/// Invoices and clients of the large account, and of the small one.
const LARGE: (i64, i64) = (300_000, 100_000);
const SMALL: (i64, i64) = (500, 500);
/// Invoices of the small account are numbered from here on: a token is in one account.
const FIRST_OF_SMALL: i64 = 10_000_000;
/// The most that a request may take in the large account, in milliseconds.
const MOST: f64 = 100.0;
/// How much longer a request of the small account may take than without the large one, and the milliseconds that it may take anyway:
/// below those, the connection takes most of the time.
const LONGER: f64 = 2.0;
const ANYWAY: f64 = 3.0;

/// What everything is compared with.
const PLAIN: &str = "/v1/invoices";

/// The requests. Of the words, "onderhoud" is in one of twenty invoices, "example" in all of them, and "qx" in none. Numbers begin
/// with "b00" in the oldest third of the large account.
const REQUESTS: [(&str, &str); 16] = [
    ("A word of many invoices", "/v1/invoices?search=onderhoud"),
    ("A word of all invoices", "/v1/invoices?search=example"),
    ("A word of many invoices, by amount", "/v1/invoices?search=onderhoud&sort=total_incl_vat"),
    ("A word of many clients", "/v1/clients?search=gmail"),
    ("A word of many clients, by name", "/v1/clients?search=gmail&sort=lastname&order=asc"),
    ("Two letters of many invoices", "/v1/invoices?search=an"),
    ("Two letters of no invoice", "/v1/invoices?search=qx"),
    ("Two letters of no client", "/v1/clients?search=qx"),
    ("The start of a number", "/v1/invoices?search=b00"),
    ("`is_credit=1`", "/v1/invoices?is_credit=1"),
    ("`payment_status=paid`", "/v1/invoices?payment_status=paid"),
    ("`payment_status=overdue` with sums", "/v1/invoices?payment_status=overdue&sums=total_incl_vat,open_amount"),
    ("`owed=true` with sums", "/v1/invoices?owed=true&sums=total_incl_vat,open_amount"),
    ("Find: a word of many records", "/v1/search?q=onderhoud"),
    ("Find: a word of all records", "/v1/search?q=example"),
    ("Find: the start of a number", "/v1/search?q=b00"),
];

/// Measures both databases; returns the tables as Markdown.
pub fn measure(quick: bool) -> String {
    let part = if quick { 10 } else { 1 };
    let (invoices, clients) = (LARGE.0 / part, LARGE.1 / part);
    let rounds = if quick { 5 } else { 15 };
    let binary = server::kantoor_binary();
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(server::own_folder()).unwrap();
    let folder = folder.path().join("data");
    std::fs::create_dir_all(&folder).unwrap();
    let postgres = Postgres::start();
    let keys = [(); 2].map(|()| server::create_account(&binary, &folder, None));
    let measure = |name: &str, keys: &[String]| -> [Vec<Vec<f64>>; 2] {
        let server = Server::kantoor_alone(&binary, &folder, None);
        seed::wait_for_index(&folder.join("kantoor.db"));
        eprintln!("Measuring SQLite, {name}.");
        let on_sqlite = times(server, keys, rounds);
        eprintln!("Copying to PostgreSQL.");
        postgres.create(name, "template1");
        server::copy_database(&binary, &folder, &postgres.url(name));
        postgres.run(name, "VACUUM ANALYZE");
        eprintln!("Measuring PostgreSQL, {name}.");
        let server = Server::kantoor_alone(&binary, &folder, Some(&postgres.url(name)));
        [on_sqlite, times(server, keys, rounds)]
    };
    let fill = |place: i64, (invoices, clients): (i64, i64), first: i64| {
        seed::account(&folder.join("kantoor.db"), place, invoices, clients, first);
    };
    fill(0, SMALL, FIRST_OF_SMALL);
    let alone = measure("alone", &keys[..1]);
    fill(1, (invoices, clients), 0);
    let beside = measure("beside", &keys);
    let tables = ["SQLite", "PostgreSQL"].iter().zip(alone.iter().zip(&beside));
    let tables: Vec<String> =
        tables.map(|(name, (alone, beside))| table(name, &alone[0], &beside[0], &beside[1])).collect();
    let (invoices, clients) = (thousands(invoices), thousands(clients));
    let how = format!("{invoices} invoices and {clients} clients beside 500 of each; medians of {rounds} requests");
    format!("{}\n\n{}", header(&how), tables.join("\n\n"))
}

/// Returns the median times of the plain list and of each request, in milliseconds, for each account.
fn times(mut server: Server, keys: &[String], rounds: usize) -> Vec<Vec<f64>> {
    server.rest();
    let mut all = Vec::new();
    for key in keys {
        server.key.clone_from(key);
        let paths = std::iter::once(PLAIN).chain(REQUESTS.map(|(_, path)| path));
        all.push(paths.map(|path| median(&server, path, rounds)).collect());
    }
    server.stop();
    all
}

fn median(server: &Server, path: &str, rounds: usize) -> f64 {
    // The first one prepares the statements.
    let mut times: Vec<f64> = (0..=rounds)
        .map(|_| {
            let started = Instant::now();
            server.bytes(path);
            started.elapsed().as_secs_f64() * 1e3
        })
        .skip(1)
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn table(name: &str, alone: &[f64], small: &[f64], large: &[f64]) -> String {
    let plain = format!(
        "**{name}.** The list of 25 takes {:.1} ms in the large account and {:.1} ms in the small one, {:.1} ms without the other.",
        large[0], small[0], alone[0]
    );
    let rows = REQUESTS.iter().enumerate().map(|(place, (what, _))| {
        let (large_time, small_time, alone_time) = (large[place + 1], small[place + 1], alone[place + 1]);
        let met = large_time <= MOST && (small_time <= ANYWAY || small_time <= alone_time * LONGER);
        format!(
            "| {what} | {large_time:.1} | {:.1} | {small_time:.1} | {:.1} | {alone_time:.1} | {} |",
            large_time / large[0],
            small_time / small[0],
            word(met)
        )
    });
    format!(
        "{plain}\n\n\
         | What | Large, ms | Lists of 25 | Small, ms | Lists of 25 | Alone, ms | Goal |\n|---|--:|--:|--:|--:|--:|---|\n{}",
        rows.collect::<Vec<_>>().join("\n")
    )
}
