//! The load of the document benchmark. Each connection takes turns between the accounts, and keeps the ids of what it
//! creates for later operations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::load::{ANSWER_TIMEOUT, Chance, NEXT, THREADS, exchange};
use crate::server::Server;

/// A request to measure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Get,
    List,
    Clients,
    Client,
    Draft,
    Final,
    /// Finalizes the invoices that `Draft` created.
    Finalize,
    /// Pays the invoices that `Final` created.
    Pay,
}

/// The accounts and records that requests use.
#[derive(Clone, Default)]
pub struct Feed {
    /// The API key of each account.
    pub keys: Vec<String>,
    /// A client of each account.
    pub clients: Vec<String>,
    /// The seeded invoices of each account.
    pub seeded: Vec<Vec<String>>,
    /// Drafts created during the measurements and not yet used: account and id.
    pub drafts: Vec<(usize, String)>,
    /// Final invoices created during the measurements and not yet used: account and id.
    pub finals: Vec<(usize, String)>,
}

/// The result of a measurement.
pub struct Phase {
    /// Requests per second.
    pub rate: f64,
    /// The number of requests, including the warm-up.
    pub asked: u64,
}

pub fn client_body(n: u64) -> Value {
    json!({"company_name": format!("Bakkerij De Ster {n}"), "firstname": "Sanne", "lastname": "de Vries",
        "email": "s.devries@example.com", "address": "Dorpsstraat 1", "zipcode": "1234 AB", "city": "Delft"})
}

pub fn invoice_body(n: u64, client: &str, mode: &str) -> Value {
    let row = |name: &str, quantity: i64, price: f64| json!({"name": name, "quantity": quantity, "unit_price": price, "vat_rate": "21"});
    let rows = [row("Labour", 2, 62.5), row("Boiler", 1, 1250.5), row("Travel", 3, 35.25)];
    json!({"title": format!("Repairs {n}"), "client_id": client, "generation_mode": mode, "rows": rows})
}

/// The total of such an invoice.
const TOTAL: f64 = 1792.31;

/// Loads a server for a third of `measured` to warm it up, then for `measured`. An operation that uses up documents has no
/// warm-up, and ends when the first connection runs out of them.
pub fn run(
    server: &Server,
    mut feed: Feed,
    operation: Operation,
    accounts: usize,
    connections: usize,
    measured: Duration,
) -> (Phase, Feed) {
    let mut supply = match operation {
        Operation::Finalize => std::mem::take(&mut feed.drafts),
        Operation::Pay => std::mem::take(&mut feed.finals),
        _ => Vec::new(),
    };
    let uses_up = matches!(operation, Operation::Finalize | Operation::Pay);
    let from = if uses_up { Instant::now() } else { Instant::now() + measured / 3 };
    let until = from + measured;
    let share = supply.len() / connections;
    let supplies: Vec<Vec<(usize, String)>> =
        (0..connections).map(|_| supply.split_off(supply.len() - share)).collect();
    let asked = AtomicU64::new(0);
    let runs = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (feed, supplies, asked) = (&feed, &supplies, &asked);
                scope.spawn(move || {
                    let turns = (thread..connections).step_by(THREADS).map(|number| Turns {
                        operation,
                        accounts,
                        number,
                        supply: supplies[number].clone(),
                        uses_up,
                        feed: feed.clone(),
                        made: Vec::new(),
                    });
                    run_thread(server, turns.collect(), (from, until), asked)
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a load without errors")).collect::<Vec<_>>()
    });
    let end = runs.iter().filter_map(|run| run.exhausted).min().unwrap_or(until).min(until);
    let counted = runs.iter().flat_map(|run| &run.done).filter(|done| **done >= from && **done < end).count();
    let rate = counted as f64 / (end - from).as_secs_f64().max(1e-6);
    let made = runs.into_iter().flat_map(|run| run.made);
    match operation {
        Operation::Draft => feed.drafts.extend(made),
        Operation::Final => feed.finals.extend(made),
        _ => {}
    }
    (Phase { rate, asked: asked.into_inner() }, feed)
}

/// The results of one connection.
struct Run {
    done: Vec<Instant>,
    exhausted: Option<Instant>,
    made: Vec<(usize, String)>,
}

fn run_thread(server: &Server, turns: Vec<Turns>, (from, until): (Instant, Instant), asked: &AtomicU64) -> Vec<Run> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connections = JoinSet::new();
        for turns in turns {
            let address = server.address;
            connections.spawn(async move {
                let stream = TcpStream::connect(address).await.expect("a connection");
                let end = tokio::time::Instant::from_std(until + ANSWER_TIMEOUT);
                tokio::time::timeout_at(end, keep_asking(stream, turns, from, until)).await.expect("an answer in time")
            });
        }
        let runs = connections.join_all().await;
        for (_, count) in &runs {
            asked.fetch_add(*count, Ordering::Relaxed);
        }
        runs.into_iter().map(|(run, _)| run).collect()
    })
}

async fn keep_asking(mut stream: TcpStream, mut turns: Turns, from: Instant, until: Instant) -> (Run, u64) {
    stream.set_nodelay(true).unwrap();
    let mut chance = Chance::of(turns.number);
    let (mut done, mut exhausted, mut count) = (Vec::new(), None, 0);
    let mut answer = Vec::with_capacity(32 * 1024);
    while Instant::now() < until {
        let Some((account, request)) = turns.request(count, &mut chance) else {
            exhausted = Some(Instant::now());
            break;
        };
        exchange(&mut stream, &request, &mut answer).await;
        count += 1;
        let now = Instant::now();
        if now >= from {
            done.push(now);
        }
        turns.remember(account, &answer);
    }
    (Run { done, exhausted, made: turns.made }, count)
}

/// The requests of one connection.
struct Turns {
    operation: Operation,
    accounts: usize,
    number: usize,
    supply: Vec<(usize, String)>,
    uses_up: bool,
    feed: Feed,
    made: Vec<(usize, String)>,
}

impl Turns {
    /// Returns the account and the bytes of request `count`, or `None` if the documents are used up.
    fn request(&mut self, count: u64, chance: &mut Chance) -> Option<(usize, Vec<u8>)> {
        let mut account = (self.number + count as usize) % self.accounts;
        let mut used = String::new();
        if self.uses_up {
            (account, used) = self.supply.pop()?;
        }
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let client = &self.feed.clients[account];
        let (method, path, body) = match self.operation {
            Operation::Get => {
                let seeded = &self.feed.seeded[account];
                let id = &seeded[chance.below(seeded.len() as i64) as usize];
                ("GET", format!("/v1/invoices/{id}"), String::new())
            }
            Operation::List => ("GET", "/v1/invoices".to_string(), String::new()),
            Operation::Clients => ("GET", "/v1/clients".to_string(), String::new()),
            Operation::Client => ("POST", "/v1/clients".to_string(), client_body(n).to_string()),
            Operation::Draft => ("POST", "/v1/invoices".to_string(), invoice_body(n, client, "draft").to_string()),
            Operation::Final => ("POST", "/v1/invoices".to_string(), invoice_body(n, client, "final").to_string()),
            Operation::Finalize => ("POST", format!("/v1/invoices/{used}/finalize"), String::new()),
            Operation::Pay => ("POST", format!("/v1/invoices/{used}/payments"), json!({"amount": TOTAL}).to_string()),
        };
        let (key, length) = (&self.feed.keys[account], body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        Some((account, request.into_bytes()))
    }

    /// Keeps the id of a created document.
    fn remember(&mut self, account: usize, answer: &[u8]) {
        if !matches!(self.operation, Operation::Draft | Operation::Final) {
            return;
        }
        let start = answer.windows(6).position(|six| six == b"\"id\":\"").expect("an id") + 6;
        self.made.push((account, String::from_utf8_lossy(&answer[start..start + 36]).to_string()));
    }
}
