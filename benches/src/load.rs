//! The load generator: persistent connections, each sending the next request as soon as it has a response. It has its
//! own HTTP client, since a full one would measure itself.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::client;
use crate::invoice;
use crate::rows;
use crate::server::Server;

pub const CONNECTIONS: usize = 32;
pub const THREADS: usize = 2;

/// How long after the end of a measurement the last response may arrive.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Unique numbers of records to create, all with the same number of digits, so that all bodies have the same length.
pub static NEXT: AtomicU64 = AtomicU64::new(1_000_000_000);

/// The requests.
#[derive(Clone, Copy)]
pub enum Workload {
    /// One record, with all of `rows` equally likely.
    Get { rows: i64 },
    /// The same for a person who has signed in: the caller is the secret of the session.
    GetInSession { rows: i64 },
    /// The first page.
    List,
    /// Clients matching a search term, few of them.
    Search,
    /// The first page of the invoices.
    Invoices,
    /// The first page of one client's invoices, with all clients equally likely.
    OfClient { rows: i64 },
    /// The first page of one day's invoices.
    OfDay { rows: i64 },
    /// Invoices by number, client and a word in the title.
    SearchInvoices { rows: i64 },
    /// An event that a flow listens to.
    Trigger,
    /// A new record.
    Post,
    /// A new record with an Idempotency-Key.
    PostOnce,
    /// What people and programs do in a day: mostly reads, some lists and searches, and one write in six.
    Mixed { rows: i64 },
}

impl Workload {
    /// Chooses one of the kinds of a mixed load.
    fn chosen(self, chance: &mut Chance) -> Workload {
        let Workload::Mixed { rows } = self else { return self };
        match chance.below(24) {
            0..10 => Workload::Get { rows },
            10..13 => Workload::List,
            13..16 => Workload::Invoices,
            16..18 => Workload::OfClient { rows },
            18 => Workload::OfDay { rows },
            19 => Workload::Search,
            _ => Workload::PostOnce,
        }
    }

    /// Writes the bytes of a request to `out`.
    pub fn write(self, key: &str, chance: &mut Chance, out: &mut Vec<u8>) {
        out.clear();
        let who = format_args!("Host: bench\r\nAuthorization: Bearer {key}");
        let written = match self.chosen(chance) {
            Workload::Mixed { .. } => Ok(()),
            Workload::Get { rows } => {
                let id = rows::id(chance.below(rows));
                write!(out, "GET /v1/products/{id} HTTP/1.1\r\n{who}\r\n\r\n")
            }
            Workload::GetInSession { rows } => {
                let id = rows::id(chance.below(rows));
                write!(out, "GET /console/v1/products/{id} HTTP/1.1\r\nHost: bench\r\nCookie: kantoor={key}\r\n\r\n")
            }
            Workload::List => write!(out, "GET /v1/products HTTP/1.1\r\n{who}\r\n\r\n"),
            Workload::Search => {
                let words = client::SEARCHES[chance.below(client::SEARCHES.len() as i64) as usize];
                write!(out, "GET /v1/clients?search={} HTTP/1.1\r\n{who}\r\n\r\n", words.replace(' ', "+"))
            }
            Workload::Invoices => write!(out, "GET /v1/invoices HTTP/1.1\r\n{who}\r\n\r\n"),
            Workload::OfClient { rows } => {
                let id = rows::id(chance.below(invoice::clients(rows)));
                write!(out, "GET /v1/invoices?client_id={id} HTTP/1.1\r\n{who}\r\n\r\n")
            }
            Workload::OfDay { rows } => {
                let day = invoice::day_of(chance.below(rows));
                write!(out, "GET /v1/invoices?date_from={day}&date_to={day} HTTP/1.1\r\n{who}\r\n\r\n")
            }
            Workload::SearchInvoices { rows } => {
                let searches = invoice::searches(chance.below(rows));
                let (words, _) = &searches[chance.below(searches.len() as i64) as usize];
                write!(out, "GET /v1/invoices?search={words} HTTP/1.1\r\n{who}\r\n\r\n")
            }
            Workload::Trigger => {
                let n = NEXT.fetch_add(1, Ordering::Relaxed);
                let body = format!(r#"{{"event":"bench.note","data":{{"n":{n}}}}}"#);
                let length = body.len();
                write!(
                    out,
                    "POST /v1/automation/trigger HTTP/1.1\r\n{who}\r\nContent-Type: application/json\r\n\
                     Content-Length: {length}\r\n\r\n{body}"
                )
            }
            Workload::Post | Workload::PostOnce => {
                let n = NEXT.fetch_add(1, Ordering::Relaxed);
                let once = match self {
                    Workload::Post => String::new(),
                    _ => format!("Idempotency-Key: bench-{n}\r\n"),
                };
                let body = format!(
                    r#"{{"name":"Website hosting {n}","code":"H-{n}","price":12.5,"vat_rate":"21","unit":"month","active":true}}"#
                );
                let length = body.len();
                write!(
                    out,
                    "POST /v1/products HTTP/1.1\r\n{who}\r\n{once}Content-Type: application/json\r\n\
                     Content-Length: {length}\r\n\r\n{body}"
                )
            }
        };
        written.expect("memory takes all bytes");
    }
}

/// The result of a measurement.
pub struct Sample {
    /// Requests per second.
    pub rate: f64,
    /// The duration of each, in microseconds.
    pub micros: Vec<u32>,
}

/// The measured interval: from, until.
type Window = (Instant, Instant);

/// Loads a server for a third of `measured` to warm it up, then for `measured`.
pub fn run(server: &Server, ask: Workload, measured: Duration) -> Sample {
    run_with(server, ask, measured, CONNECTIONS)
}

/// The same with this number of connections.
pub fn run_with(server: &Server, ask: Workload, measured: Duration, connections: usize) -> Sample {
    run_as(server, &server.key, ask, measured, connections)
}

/// The same with another key, or in a session.
pub fn run_as(server: &Server, caller: &str, ask: Workload, measured: Duration, connections: usize) -> Sample {
    let from = Instant::now() + measured / 3;
    let window = (from, from + measured);
    let micros: Vec<Vec<u32>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || run_thread(server.address, caller, ask, thread, window, connections)))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a load without errors")).collect()
    });
    let micros = micros.concat();
    Sample { rate: micros.len() as f64 / measured.as_secs_f64(), micros }
}

/// The connections of one thread. Each thread has its own runtime: they share nothing.
fn run_thread(
    address: SocketAddr,
    caller: &str,
    ask: Workload,
    thread: usize,
    window: Window,
    count: usize,
) -> Vec<u32> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connections = JoinSet::new();
        for number in (thread..count).step_by(THREADS) {
            let key = caller.to_string();
            connections.spawn(async move {
                let asking = keep_asking(address, &key, ask, Chance::of(number), window);
                let end = tokio::time::Instant::from_std(window.1 + ANSWER_TIMEOUT);
                tokio::time::timeout_at(end, asking).await.expect("an answer in time")
            });
        }
        connections.join_all().await.concat()
    })
}

async fn keep_asking(
    address: SocketAddr,
    key: &str,
    ask: Workload,
    mut chance: Chance,
    (from, until): Window,
) -> Vec<u32> {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).unwrap();
    let (mut request, mut answer) = (Vec::with_capacity(1024), Vec::with_capacity(32 * 1024));
    let mut micros = Vec::new();
    let mut asked = Instant::now();
    while asked < until {
        ask.write(key, &mut chance, &mut request);
        asked = Instant::now();
        exchange(&mut stream, &request, &mut answer).await;
        let done = Instant::now();
        if from <= done && done < until {
            micros.push(u32::try_from((done - asked).as_micros()).unwrap_or(u32::MAX));
        }
        asked = done;
    }
    micros
}

/// Sends a request and reads its response; an unsuccessful one aborts the measurement.
pub async fn exchange(stream: &mut TcpStream, request: &[u8], answer: &mut Vec<u8>) {
    let status = status_of(stream, request, answer).await;
    assert!((200..300).contains(&status), "a request failed: {}", String::from_utf8_lossy(answer));
}

/// The same, where the server may be overloaded: whether it accepted the request.
pub async fn accepted(stream: &mut TcpStream, request: &[u8], answer: &mut Vec<u8>) -> bool {
    let status = status_of(stream, request, answer).await;
    assert!((200..300).contains(&status) || status == 503, "a request failed: {}", String::from_utf8_lossy(answer));
    status != 503
}

/// Sends a request and reads its response; returns the status.
async fn status_of(stream: &mut TcpStream, request: &[u8], answer: &mut Vec<u8>) -> u16 {
    stream.write_all(request).await.expect("a server that listens");
    answer.clear();
    let mut head: Option<Head> = None;
    while head.as_ref().is_none_or(|head| answer.len() < head.whole) {
        let more = stream.read_buf(answer).await.expect("an answer");
        assert!(more > 0, "the server hung up");
        if head.is_none() {
            head = Head::find(answer);
        }
    }
    head.map_or(0, |head| head.status)
}

struct Head {
    status: u16,
    /// The bytes of the header and the body together.
    whole: usize,
}

impl Head {
    /// Parses the header of a response, once it is complete.
    fn find(answer: &[u8]) -> Option<Head> {
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
        let text = str::from_utf8(&answer[..end]).expect("a head in ASCII");
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
        let length = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            if name.eq_ignore_ascii_case("content-length") { value.trim().parse::<usize>().ok() } else { None }
        });
        let (Some(status), Some(length)) = (status, length) else {
            panic!("an answer without a status or a length: {text}");
        };
        Some(Head { status, whole: end + 4 + length })
    }
}

/// Pseudorandom numbers, the same in every run (xorshift64).
pub struct Chance(u64);

impl Chance {
    pub fn of(number: usize) -> Chance {
        Chance((number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn below(&mut self, end: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as i64
    }
}
