//! Measures Kantoor beside its limit: a bare program of axum and a database that does the same work
//! without accounts, events or search. What is measured and why: docs/performance.md.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::float_arithmetic,
    reason = "a program for developers, which may just stop"
)]

mod automation;
mod bare;
#[expect(dead_code, reason = "the tests use more of it")]
#[path = "../../tests/it/console/browser.rs"]
mod browser;
mod capacity;
mod client;
mod console;
mod documents;
mod invoice;
mod large;
mod limit;
mod load;
mod mixed;
mod printing;
mod product;
mod report;
mod rows;
mod seed;
mod server;
mod sign_in;
mod subscriptions;
mod timed;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use load::{Sample, Workload};
use printing::Printing;
use report::{Figure, Report, thousands};
use server::{Data, Server};

const USAGE: &str =
    "Usage: cargo run --release -p benches -- [--quick] [--alone | --documents | --sign-in | --console | --large | --load | --mixed | --soak]
                                         [--write]

  --alone       only subscriptions, flows and timed events
  --documents   only invoices and clients, on SQLite and PostgreSQL
  --sign-in     only signing in, and requests in a session
  --console     only the screens in the browser, with Chromium
  --large       only a large account beside a small one, on SQLite and PostgreSQL: searches, filters and sums
  --load        only what one server takes: closed and open loop, 1 to 1,000 connections, 10,000 idle ones;
                needs `ulimit -n 20000`
  --mixed       only the response times of each kind of request, at half of what the server takes
  --soak        only an hour of mixed load, with samples of memory and descriptors
  --quick       short measurements, and 100,000 rows instead of 1,000,000; a tenth of the large account
  --write       also update the figures in docs/performance.md

  BENCH_SECONDS   seconds per measurement, 6 by default (--soak: 3600 in total); preceded by a warm-up of a third of that
  BENCH_RATE      --mixed: requests per second, instead of half of what the server takes
  BENCH_FOLDER    --mixed: a folder that keeps the database for the next run
  BENCH_SETTINGS  --mixed: settings of the server, such as `workers=2 threads=4`
  KANTOOR_BIN     the server binary to measure; by default, it is built from this folder";

/// The table size at which every figure with a limit is measured.
const FEW: i64 = 1_000;
/// A disturbance spoils one round; the median of three ignores it.
const ROUNDS: usize = 3;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "limit") {
        limit::serve(&args[1..]);
        return ExitCode::SUCCESS;
    }
    if args.first().is_some_and(|arg| arg == "bare") {
        bare::serve(&args[1..]);
        return ExitCode::SUCCESS;
    }
    let flags = [
        "--quick",
        "--write",
        "--alone",
        "--documents",
        "--sign-in",
        "--console",
        "--large",
        "--load",
        "--mixed",
        "--soak",
    ];
    if let Some(odd) = args.iter().find(|arg| !flags.contains(&arg.as_str())) {
        eprintln!("{USAGE}");
        return if matches!(odd.as_str(), "--help" | "-h") { ExitCode::SUCCESS } else { ExitCode::from(2) };
    }
    if cfg!(debug_assertions) {
        eprintln!("Figures of a debug build are meaningless; run this with --release.");
        return ExitCode::from(2);
    }
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if let Some(code) = only_one(&has) {
        return code;
    }
    if has("--load") || has("--soak") {
        return capacity(has("--quick"), has("--soak"), has("--write"));
    }
    let only = ["--alone", "--documents", "--sign-in"].into_iter().find(|flag| has(flag));
    if only.is_none_or(|only| only == "--alone") {
        let figures = if has("--alone") { alone() } else { measure(has("--quick")) }.markdown();
        println!("{figures}");
        if has("--write") {
            report::write_into(&Path::new(server::ROOT).join("docs/performance.md"), "figures", &figures);
        }
    }
    if only.is_none_or(|only| only == "--sign-in") {
        let figures = sign_in(has("--quick")).markdown();
        println!("{figures}");
        if has("--write") {
            report::write_into(&Path::new(server::ROOT).join("docs/performance.md"), "sign-in", &figures);
        }
    }
    if only.is_none_or(|only| only == "--documents") {
        let table = documents::measure(has("--quick"));
        println!("{}", table.markdown());
        if has("--write") {
            let docs = Path::new(server::ROOT).join("docs");
            let figures = format!("![Ratios of documents](performance-documents.svg)\n\n{}", table.markdown());
            report::write_into(&docs.join("performance.md"), "documents", &figures);
            std::fs::write(docs.join("performance-documents.svg"), table.chart()).unwrap();
        }
    }
    ExitCode::SUCCESS
}

/// Measures what is never measured with anything else, if that is asked for.
fn only_one(has: &impl Fn(&str) -> bool) -> Option<ExitCode> {
    let (name, table) = if has("--console") {
        let Some(table) = console::measure(has("--quick")) else { return Some(ExitCode::from(2)) };
        ("console", table.markdown())
    } else if has("--mixed") {
        let rate = std::env::var("BENCH_RATE").ok().map(|text| text.parse().expect("BENCH_RATE is a number"));
        let rows = if has("--quick") { 100_000 } else { 1_000_000 };
        ("mixed", mixed::measure(rows, Duration::from_secs_f64(seconds(has("--quick"))), rate))
    } else if has("--large") {
        ("large", large::measure(has("--quick")))
    } else {
        return None;
    };
    println!("{table}");
    if has("--write") {
        report::write_into(&Path::new(server::ROOT).join("docs/performance.md"), name, &table);
    }
    Some(ExitCode::SUCCESS)
}

/// Measures what one server takes.
fn capacity(quick: bool, soak: bool, write: bool) -> ExitCode {
    let rows = if quick { 100_000 } else { 1_000_000 };
    let seconds = Duration::from_secs_f64(seconds(quick));
    let (name, table) = if soak {
        let hour = std::env::var("BENCH_SECONDS").map_or(Duration::from_secs(3600), |_| seconds);
        ("soak", capacity::soak(rows, hour))
    } else {
        ("load", capacity::measure(rows, seconds))
    };
    println!("{table}");
    if write {
        report::write_into(&Path::new(server::ROOT).join("docs/performance.md"), name, &table);
    }
    ExitCode::SUCCESS
}

/// The settings of all measurements.
struct Bench {
    binary: PathBuf,
    folder: tempfile::TempDir,
    measured: Duration,
}

/// Measures background work: subscriptions, flows and timed events.
fn alone() -> Report {
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(server::own_folder()).unwrap();
    let binary = server::kantoor_binary();
    let mut report = Report::new("once");
    subscriptions::tell(&mut report, &binary, folder.path());
    automation::tell(&mut report, &binary, folder.path(), Duration::from_secs(5));
    timed::tell(&mut report, &binary, folder.path());
    report
}

/// Measures signing in and sessions.
fn sign_in(quick: bool) -> Report {
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(server::own_folder()).unwrap();
    let seconds = seconds(quick);
    let mut report = Report::new(&format!("{seconds} s per measurement, median of {ROUNDS} rounds"));
    sign_in::tell(&mut report, &server::kantoor_binary(), folder.path(), Duration::from_secs_f64(seconds));
    report
}

/// Returns the seconds of a measurement.
fn seconds(quick: bool) -> f64 {
    let seconds =
        std::env::var("BENCH_SECONDS").ok().map(|text| text.parse::<f64>().expect("BENCH_SECONDS is a number"));
    seconds.unwrap_or(if quick { 1.0 } else { 6.0 })
}

fn measure(quick: bool) -> Report {
    let rows = if quick { 100_000 } else { 1_000_000 };
    let seconds = seconds(quick);
    let bench = Bench {
        binary: server::kantoor_binary(),
        // Next to the binary rather than in /tmp, which is a RAM disk on many machines: a commit must reach a disk
        // here.
        folder: tempfile::Builder::new().prefix("bench-").tempdir_in(server::own_folder()).unwrap(),
        measured: Duration::from_secs_f64(seconds),
    };
    let folder = bench.folder.path();
    let few = Data::make(&bench.binary, &folder.join("few"), FEW);
    let bare = folder.join("bare.db");
    seed::limit(&bare, FEW);
    let many = Data::make(&bench.binary, &folder.join("many"), rows);

    let mut report = Report::new(&format!("{seconds} s per measurement, median of {ROUNDS} rounds"));
    let many_server = Server::kantoor(&bench.binary, &many);
    let reads = reads(&bench, &few, &bare, &many_server, rows);
    let lists = invoices(&bench, &few, &many_server, rows);
    let writes = writes(&bench, &few, &bare, &many_server);
    let memory = many_server.megabytes();
    many_server.stop();
    let start = start(&bench.binary, &many);
    let printing = print(&bench, &few);
    tell(&mut report, &reads, &writes, rows);
    tell_invoices(&mut report, &lists, rows);
    report.value(&format!("Memory after the load, {} rows", thousands(rows)), memory, "MB", 80.0);
    report.value(&format!("Start on a database of {} rows", thousands(rows)), start, "s", 0.3);
    printing.tell(&mut report);
    subscriptions::tell(&mut report, &bench.binary, folder);
    automation::tell(&mut report, &bench.binary, folder, bench.measured);
    timed::tell(&mut report, &bench.binary, folder);
    report
}

/// Figures of reads: Kantoor with few rows, the limit with the same number, Kantoor with many. The limit has no search.
struct Reads {
    get: [Figure; 3],
    list: [Figure; 3],
    search: [Figure; 2],
}

fn reads(bench: &Bench, few: &Data, bare: &Path, many: &Server, rows: i64) -> Reads {
    // Copies: the originals are kept for the measurements of writes.
    let folder = bench.folder.path();
    let few = Server::kantoor(&bench.binary, &few.copy(&folder.join("few-read")));
    let limit = Server::limit(&server::copy(bare, &folder.join("bare-read.db")), "group");
    check(&few, &limit, many);
    let run = |server: &Server, ask: Workload| load::run(server, ask, bench.measured);
    let three = |few_ask: Workload, many_ask: Workload| {
        in_turn([&|| run(&few, few_ask), &|| run(&limit, few_ask), &|| run(many, many_ask)])
    };
    eprintln!("Measuring GET of one record.");
    let get = three(Workload::Get { rows: FEW }, Workload::Get { rows });
    eprintln!("Measuring lists.");
    let list = three(Workload::List, Workload::List);
    eprintln!("Measuring searches.");
    let search = in_turn([&|| run(&few, Workload::Search), &|| run(many, Workload::Search)]);
    few.stop();
    Reads { get, list, search }
}

/// Returns the requests for a number of rows.
type ByRows = fn(i64) -> Workload;

/// Lists of invoices: the name of each, the minimum ratio of many to few rows, and its requests for a number of rows.
const INVOICES: [(&str, f64, ByRows); 4] = [
    ("Invoices, list of 25", 0.5, |_| Workload::Invoices),
    ("Invoices of a client", 0.5, |rows| Workload::OfClient { rows }),
    ("Invoices of a day", 0.5, |rows| Workload::OfDay { rows }),
    ("Invoices, search", 0.2, |rows| Workload::SearchInvoices { rows }),
];

/// Figures of the lists of invoices: with few rows, with many.
fn invoices(bench: &Bench, few: &Data, many: &Server, rows: i64) -> [[Figure; 2]; INVOICES.len()] {
    let few = Server::kantoor(&bench.binary, &few.copy(&bench.folder.path().join("few-invoices")));
    check_invoices(&few, FEW);
    check_invoices(many, rows);
    let run = |server: &Server, ask: Workload| load::run(server, ask, bench.measured);
    let figures = INVOICES.map(|(what, _, ask)| {
        eprintln!("Measuring: {what}.");
        in_turn([&|| run(&few, ask(FEW)), &|| run(many, ask(rows))])
    });
    few.stop();
    figures
}

/// Figures of POST: Kantoor, Kantoor with an Idempotency-Key, both limits, Kantoor with many rows.
struct Writes {
    post: Figure,
    post_once: Figure,
    group: Figure,
    single: Figure,
    many: Figure,
}

fn writes(bench: &Bench, few: &Data, bare: &Path, many: &Server) -> Writes {
    eprintln!("Measuring POST.");
    // Every run gets a new copy, since a growing table gets slower, and the fastest server would grow it the most.
    let kantoor = |ask: Workload| {
        let folder = tempfile::tempdir_in(bench.folder.path()).unwrap();
        let server = Server::kantoor(&bench.binary, &few.copy(&folder.path().join("data")));
        let sample = load::run(&server, ask, bench.measured);
        server.stop();
        sample
    };
    let limit = |mode: &str| {
        let folder = tempfile::tempdir_in(bench.folder.path()).unwrap();
        let server = Server::limit(&server::copy(bare, &folder.path().join("bare.db")), mode);
        let sample = load::run(&server, Workload::Post, bench.measured);
        server.stop();
        sample
    };
    let [post, group, single, post_once] =
        in_turn([&|| kantoor(Workload::Post), &|| limit("group"), &|| limit("single"), &|| {
            kantoor(Workload::PostOnce)
        }]);
    let [many] = in_turn([&|| load::run(many, Workload::Post, bench.measured)]);
    Writes { post, post_once, group, single, many }
}

fn print(bench: &Bench, few: &Data) -> Printing {
    let data = few.copy(&bench.folder.path().join("few-print"));
    let server = Server::kantoor(&bench.binary, &data);
    let printing = printing::run(&server, &data);
    server.stop();
    printing
}

/// Runs each in turn, for several rounds, so that disturbances affect all of them.
fn in_turn<const N: usize>(runs: [&dyn Fn() -> Sample; N]) -> [Figure; N] {
    let mut samples: [Vec<Sample>; N] = std::array::from_fn(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (run, samples) in runs.iter().zip(&mut samples) {
            samples.push(run());
        }
    }
    samples.map(|samples| Figure::of(&samples))
}

/// A comparison is only fair if both give the same responses.
fn check(few: &Server, limit: &Server, many: &Server) {
    let record = format!("/v1/products/{}", rows::id(FEW / 2));
    for path in [record.as_str(), "/v1/products"] {
        assert_eq!(few.json(path), limit.json(path), "Kantoor and the limit answer {path} differently");
    }
    for server in [few, many] {
        for words in client::SEARCHES {
            let found = server.json(&format!("/v1/clients?search={}", words.replace(' ', "+")));
            assert_eq!(found["meta"]["total"], client::MATCHES, "clients with '{words}'");
        }
    }
}

/// Each request finds the same number of invoices, whatever the size of the table.
fn check_invoices(server: &Server, rows: i64) {
    let (client, day) = (rows::id(0), invoice::day_of(rows / 2));
    let filters = [
        (String::new(), rows),
        (format!("?client_id={client}"), invoice::OF_CLIENT),
        (format!("?date_from={day}&date_to={day}"), invoice::OF_DAY),
    ];
    let searches = invoice::searches(rows / 2).map(|(words, found)| (format!("?search={words}"), found));
    for (query, found) in filters.into_iter().chain(searches) {
        let list = server.json(&format!("/v1/invoices{query}"));
        assert_eq!(list["meta"]["total"], found, "invoices{query} of {rows}");
    }
}

/// Returns the seconds from the start of the process to its first response; the median.
fn start(binary: &Path, data: &Data) -> f64 {
    eprintln!("Measuring the start.");
    let mut starts: Vec<Duration> = Vec::new();
    for _ in 0..ROUNDS {
        let server = Server::kantoor(binary, data);
        starts.push(server.started_in);
        server.stop();
    }
    starts.sort();
    starts[ROUNDS / 2].as_secs_f64()
}

fn tell(report: &mut Report, reads: &Reads, writes: &Writes, rows: i64) {
    let (few, many) = (thousands(FEW), thousands(rows));
    let ([get, get_limit, get_many], [list, list_limit, list_many]) = (&reads.get, &reads.list);
    let [search, search_many] = &reads.search;
    let beside = format!("{many} rows; limit: Kantoor with {few}");
    report.compare(&format!("GET one record, {few} rows"), get, get_limit, Some(0.6));
    report.compare(&format!("List of 25, {few} rows"), list, list_limit, Some(0.5));
    report.compare("POST, durable; limit: group commit", &writes.post, &writes.group, Some(0.4));
    report.compare("POST, durable; limit: one commit per request", &writes.post, &writes.single, Some(5.0));
    let with_key = "POST with an Idempotency-Key; limit: group commit without one";
    report.compare(with_key, &writes.post_once, &writes.group, None);
    report.compare(&format!("GET one record, {beside}"), get_many, get, Some(0.8));
    report.compare(&format!("List of 25, {beside}"), list_many, list, Some(0.8));
    report.compare(&format!("Search with {} matches, {beside}", client::MATCHES), search_many, search, Some(0.2));
    report.compare(&format!("POST, {beside}"), &writes.many, &writes.post, None);

    report.latency(&format!("GET one record, {few} rows"), get, Some(get_limit));
    report.latency(&format!("GET one record, {many} rows"), get_many, None);
    report.latency(&format!("List of 25, {few} rows"), list, Some(list_limit));
    report.latency(&format!("List of 25, {many} rows"), list_many, None);
    report.latency(&format!("Search, {few} rows"), search, None);
    report.latency(&format!("Search, {many} rows"), search_many, None);
    report.latency("POST; limit: group commit", &writes.post, Some(&writes.group));
    report.latency("POST; limit: one commit per request", &writes.post, Some(&writes.single));
    report.latency("POST with an Idempotency-Key", &writes.post_once, None);
    report.latency(&format!("POST, {many} rows"), &writes.many, None);
}

fn tell_invoices(report: &mut Report, lists: &[[Figure; 2]], rows: i64) {
    let (few, many) = (thousands(FEW), thousands(rows));
    for ((what, goal, _), [with_few, with_many]) in INVOICES.iter().zip(lists) {
        report.compare(&format!("{what}, {many} rows; limit: Kantoor with {few}"), with_many, with_few, Some(*goal));
        report.latency(&format!("{what}, {few} rows"), with_few, None);
        report.latency(&format!("{what}, {many} rows"), with_many, None);
    }
}
