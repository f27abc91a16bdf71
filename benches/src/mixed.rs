//! Response times of each kind of request of a mixed load: first as fast as possible, then at half of that rate, when requests are
//! due at fixed times and their time counts from then. Invoices become final, and their PDFs are created meanwhile.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::documents::invoice_body;
use crate::load::{self, CONNECTIONS, Chance, NEXT, Workload};
use crate::report::{header, thousands};
use crate::rows;
use crate::seed;
use crate::server::{self, Data, Server};

/// Connections of the open loop: enough that none of them is late because of another.
const OPEN: usize = 256;
/// How many of the slowest requests are listed while it runs.
const SLOWEST: usize = 12;

/// A kind of request.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    name: &'static str,
    /// How many of 240 requests are of this kind.
    share: i64,
    ask: Ask,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    Get,
    Invoices,
    Products,
    OfClient,
    OfDay,
    Search,
    SearchInvoices,
    Product,
    Draft,
    Final,
    Finalize,
}

/// What people and programs do in a day: mostly reads, some lists and searches, and one write in six. Of all requests, almost one in
/// a hundred makes an invoice final, which has its PDF typeset.
const KINDS: [Kind; 11] = [
    Kind { name: "GET one record", share: 100, ask: Ask::Get },
    Kind { name: "List of products", share: 30, ask: Ask::Products },
    Kind { name: "List of invoices", share: 30, ask: Ask::Invoices },
    Kind { name: "Invoices of a client", share: 20, ask: Ask::OfClient },
    Kind { name: "Invoices of a day", share: 8, ask: Ask::OfDay },
    Kind { name: "Search of clients", share: 8, ask: Ask::Search },
    Kind { name: "Search of invoices", share: 4, ask: Ask::SearchInvoices },
    Kind { name: "POST product", share: 32, ask: Ask::Product },
    Kind { name: "POST invoice, draft", share: 6, ask: Ask::Draft },
    Kind { name: "POST invoice, final", share: 1, ask: Ask::Final },
    Kind { name: "Finalize invoice", share: 1, ask: Ask::Finalize },
];

/// A response.
struct Answer {
    kind: usize,
    /// When it was due, since the start, and how long it took until then: in microseconds.
    due: u64,
    micros: u64,
    /// How long after that the request was sent.
    late: u64,
}

/// Measures a mixed load over `rows` documents; returns a table. `rate` is that of the open loop, if not half of the closed one.
pub fn measure(rows: i64, measured: Duration, rate: Option<f64>) -> String {
    let binary = server::kantoor_binary();
    let kept = std::env::var("BENCH_FOLDER").map(PathBuf::from).ok();
    let temporary = tempfile::Builder::new().prefix("bench-").tempdir_in(server::own_folder()).unwrap();
    let data = Data::kept(&binary, kept.as_deref().unwrap_or(temporary.path()), rows);
    let copy = data.copy(&temporary.path().join("copy"));
    let settings: Vec<String> = std::env::var("BENCH_SETTINGS")
        .map_or_else(|_| Vec::new(), |settings| settings.split_whitespace().map(str::to_string).collect());
    let mut all = vec!["max_connections=20000", "connections_per_address=0"];
    all.extend(settings.iter().map(String::as_str));
    let server = Server::kantoor_with(&binary, &copy, &all);
    let (most, rate) = match rate {
        Some(rate) => (0.0, rate),
        None => {
            eprintln!("Measuring the mixed load on {CONNECTIONS} connections.");
            let answers = run(&server, rows, None, measured, CONNECTIONS);
            told("closed loop", &answers, measured);
            let most = answers.len() as f64 / measured.as_secs_f64();
            settled(&server, &copy.database());
            (most, most / 2.0)
        }
    };
    eprintln!("Measuring the mixed load at {rate:.0} requests/s on {OPEN} connections.");
    let answers = run(&server, rows, Some(rate), measured, OPEN);
    let memory = server.megabytes();
    told("open loop", &answers, measured);
    server.stop();
    let shown = |rate: f64| thousands(rate.round() as i64);
    let of = match most > 0.0 {
        true => format!(", half of the {} that it takes on {CONNECTIONS} connections", shown(most)),
        false => String::new(),
    };
    let how = format!(
        "{} documents; {} s, once; {} requests/s{of}; the server has {memory:.0} MB",
        thousands(rows),
        measured.as_secs_f64(),
        shown(rate)
    );
    format!("{}\n\n{}", header(&how), table(&answers))
}

/// Waits until all PDFs exist.
fn settled(server: &Server, database: &Path) {
    seed::wait_for_jobs(database);
    server.rest();
}

fn table(answers: &[Answer]) -> String {
    let mut lines = vec![
        "| What | Requests | p50, ms | p99, ms | p99.9, ms | Slowest, ms |\n|---|--:|--:|--:|--:|--:|".to_string(),
    ];
    let mut line = |name: &str, mut micros: Vec<u64>| {
        micros.sort_unstable();
        let part = |thousandths: usize| {
            let at = micros.len().saturating_sub(1) * thousandths / 1000;
            micros.get(at).map_or(0.0, |micros| *micros as f64 / 1000.0)
        };
        let [half, most, almost, all] = [500, 990, 999, 1000].map(part);
        let count = thousands(micros.len() as i64);
        lines.push(format!("| {name} | {count} | {half:.2} | {most:.2} | {almost:.2} | {all:.2} |"));
    };
    for (number, kind) in KINDS.iter().enumerate() {
        line(kind.name, answers.iter().filter(|answer| answer.kind == number).map(|answer| answer.micros).collect());
    }
    line("All", answers.iter().map(|answer| answer.micros).collect());
    line("How late they were sent", answers.iter().map(|answer| answer.late).collect());
    lines.join("\n")
}

fn told(what: &str, answers: &[Answer], measured: Duration) {
    let rate = answers.len() as f64 / measured.as_secs_f64();
    eprintln!("{what}, {rate:.0} requests/s:\n{}", table(answers));
    let mut slowest: Vec<&Answer> = answers.iter().collect();
    slowest.sort_unstable_by_key(|answer| std::cmp::Reverse(answer.micros));
    for answer in slowest.iter().take(SLOWEST) {
        let [due, micros, late] = [answer.due, answer.micros, answer.late].map(|micros| micros as f64 / 1000.0);
        eprintln!("  due at {due:.0} ms: {}, {micros:.1} ms, sent after {late:.1} ms", KINDS[answer.kind].name);
    }
}

/// Loads a server for a third of `measured` to warm it up, then for `measured`; at this rate, or as fast as possible.
fn run(server: &Server, rows: i64, rate: Option<f64>, measured: Duration, connections: usize) -> Vec<Answer> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (address, start) = (server.address, Instant::now() + Duration::from_millis(300));
    let (from, until) = (start + measured / 3, start + measured / 3 + measured);
    let each = rate.map(|rate| Duration::from_secs_f64(connections as f64 / rate));
    let done = runtime.block_on(async {
        let mut open = JoinSet::new();
        for number in 0..connections {
            let mut turns = Turns {
                key: server.key.clone(),
                rows,
                chance: Chance::of(number),
                drafts: Vec::new(),
                answers: Vec::new(),
            };
            open.spawn(async move {
                let mut stream = TcpStream::connect(address).await.expect("a connection");
                stream.set_nodelay(true).unwrap();
                let mut due = each.map(|each| start + each.mul_f64(number as f64 / connections as f64));
                while due.unwrap_or_else(Instant::now) < until {
                    if let Some(due) = due {
                        tokio::time::sleep_until(due.into()).await;
                    }
                    turns.ask(&mut stream, due.unwrap_or_else(Instant::now), from).await;
                    due = due.zip(each).map(|(due, each)| due + each);
                }
                turns.answers
            });
        }
        open.join_all().await
    });
    done.into_iter().flatten().collect()
}

/// The requests of one connection.
struct Turns {
    key: String,
    rows: i64,
    chance: Chance,
    drafts: Vec<String>,
    answers: Vec<Answer>,
}

impl Turns {
    /// Makes the next request, which is due at this time, and notes its time if that is after `from`.
    async fn ask(&mut self, stream: &mut TcpStream, due: Instant, from: Instant) {
        let (kind, request) = self.next();
        let (sent, mut answer) = (Instant::now(), Vec::new());
        load::exchange(stream, &request, &mut answer).await;
        let done = Instant::now();
        if KINDS[kind].ask == Ask::Draft {
            let start = answer.windows(6).position(|six| six == b"\"id\":\"").expect("an id") + 6;
            self.drafts.push(String::from_utf8_lossy(&answer[start..start + 36]).to_string());
        }
        if due >= from {
            let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            self.answers.push(Answer {
                kind,
                due: micros(due - from),
                micros: micros(done - due),
                late: micros(sent.saturating_duration_since(due)),
            });
        }
    }

    /// Chooses a kind, and returns its number and a request.
    fn next(&mut self) -> (usize, Vec<u8>) {
        let mut left = self.chance.below(KINDS.iter().map(|kind| kind.share).sum());
        let mut number = 0;
        while left >= KINDS[number].share {
            left -= KINDS[number].share;
            number += 1;
        }
        let draft = KINDS.iter().position(|kind| kind.ask == Ask::Draft).unwrap_or(0);
        if KINDS[number].ask == Ask::Finalize && self.drafts.is_empty() {
            number = draft;
        }
        let rows = self.rows;
        let workload = match KINDS[number].ask {
            Ask::Get => Workload::Get { rows },
            Ask::Products => Workload::List,
            Ask::Invoices => Workload::Invoices,
            Ask::OfClient => Workload::OfClient { rows },
            Ask::OfDay => Workload::OfDay { rows },
            Ask::Search => Workload::Search,
            Ask::SearchInvoices => Workload::SearchInvoices { rows },
            Ask::Product => Workload::PostOnce,
            Ask::Draft => return (number, self.invoice("draft")),
            Ask::Final => return (number, self.invoice("final")),
            Ask::Finalize => {
                let id = self.drafts.pop().unwrap_or_default();
                return (number, self.post(&format!("/v1/invoices/{id}/finalize"), ""));
            }
        };
        let mut request = Vec::new();
        workload.write(&self.key, &mut self.chance, &mut request);
        (number, request)
    }

    fn invoice(&mut self, mode: &str) -> Vec<u8> {
        let n = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let client = rows::id(self.chance.below(self.rows));
        let body: Value = invoice_body(n, &client, mode);
        self.post("/v1/invoices", &body.to_string())
    }

    fn post(&self, path: &str, body: &str) -> Vec<u8> {
        let (key, length) = (&self.key, body.len());
        format!(
            "POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }
}
