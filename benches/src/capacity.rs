//! What one server takes: closed and open loop, few and many connections, idle ones, and a long time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::load::{self, Chance, Sample, Workload};
use crate::report::{Figure, header, thousands};
use crate::server::{self, Data, Server};

/// The numbers of connections of the closed loop.
const CONNECTIONS: [usize; 3] = [1, 32, 1_000];
/// Connections that do nothing.
const IDLE: usize = 10_000;
/// Connections of the open loop: enough that none of them is late because of another.
const OPEN: usize = 256;
/// Each connection belongs to somebody, and none is idle for too long.
const SETTINGS: [&str; 3] = ["max_connections=20000", "connections_per_address=0", "header_timeout_seconds=600"];
/// Connections that read a long response a little at a time.
const SLOW: usize = 1_000;
/// What each of them reads ten times a second, in bytes.
const SIP: usize = 256;
/// How often memory and descriptors are sampled.
const SAMPLED: u32 = 60;
/// Requests per second of the long time. A tenth of what the server takes, so that the machine can do other work meanwhile.
const STEADY: f64 = 400.0;

/// Measures what a server takes over `rows` documents; returns a table.
pub fn measure(rows: i64, measured: Duration) -> String {
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(server::own_folder()).unwrap();
    let binary = server::kantoor_binary();
    let data = Data::make(&binary, &folder.path().join("load"), rows);
    let server = Server::kantoor_with(&binary, &data, &SETTINGS);
    let mut lines = Vec::new();
    let mut line = |what: &str, connections: usize, figure: &Figure, note: String| {
        let (rate, p50, p99) = figure.shown();
        let connections = thousands(connections as i64);
        lines.push(format!("| {what} | {connections} | {rate} | {p50:.2} | {p99:.2} | {note} |"));
    };
    let kinds =
        [("GET one record", Workload::Get { rows }), ("POST", Workload::PostOnce), ("Mixed", Workload::Mixed { rows })];
    let mut usual = 0.0;
    for (what, ask) in kinds {
        for connections in CONNECTIONS {
            eprintln!("Measuring {what} on {connections} connections.");
            let sample = load::run_with(&server, ask, measured, connections);
            if what == "Mixed" && connections == 32 {
                usual = sample.rate;
            }
            line(&format!("{what}, closed loop"), connections, &Figure::of(&[sample]), memory(&server));
        }
    }
    for percent in [50, 80] {
        eprintln!("Measuring an open loop at {percent} % of the closed one.");
        let rate = usual * f64::from(percent) / 100.0;
        let (sample, _) = open_loop(&server, Workload::Mixed { rows }, measured, rate);
        line(&format!("Mixed, open loop at {percent} %"), OPEN, &Figure::of(&[sample]), memory(&server));
    }
    eprintln!("Measuring beside {SLOW} slow readers.");
    let before = server.megabytes();
    let readers = SlowReaders::start(&server);
    let beside = load::run_with(&server, Workload::Get { rows }, measured, 32);
    let each = (server.megabytes() - before) * 1000.0 / SLOW as f64;
    let note = format!("{}; {each:.1} kB per slow reader, {} still reading", memory(&server), readers.stop());
    line(&format!("GET beside {} slow readers", thousands(SLOW as i64)), 32, &Figure::of(&[beside]), note);
    eprintln!("Measuring beside {IDLE} idle connections.");
    let before = server.megabytes();
    let (idle, runtime) = idle(&server);
    let each = (server.megabytes() - before) * 1000.0 / IDLE as f64;
    let beside = load::run_with(&server, Workload::Get { rows }, measured, 32);
    let note = format!("{}; {each:.1} kB per idle connection", memory(&server));
    line(&format!("GET beside {} idle connections", thousands(IDLE as i64)), 32, &Figure::of(&[beside]), note);
    drop((idle, runtime));
    server.stop();
    let how = format!("{} documents; {} s per measurement, once", thousands(rows), measured.as_secs_f64());
    format!(
        "{}\n\n| What | Connections | Requests/s | p50, ms | p99, ms | Server |\n|---|--:|--:|--:|--:|---|\n{}",
        header(&how),
        lines.join("\n")
    )
}

fn memory(server: &Server) -> String {
    format!("{:.0} MB", server.megabytes())
}

/// Requests at fixed times, however long the responses take. Their time counts from when they were due, so a server that
/// falls behind cannot hide it. Returns also how many were refused because the server was overloaded.
fn open_loop(server: &Server, ask: Workload, measured: Duration, rate: f64) -> (Sample, usize) {
    let (address, key) = (server.address, server.key.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let each = Duration::from_secs_f64(OPEN as f64 / rate);
    let start = Instant::now() + Duration::from_millis(500);
    let outcomes = runtime.block_on(async {
        let mut connections = JoinSet::new();
        for number in 0..OPEN {
            let key = key.clone();
            connections.spawn(async move {
                let mut refused = 0;
                let mut stream = TcpStream::connect(address).await.expect("a connection");
                stream.set_nodelay(true).unwrap();
                let (mut chance, mut micros) = (Chance::of(number), Vec::new());
                let (mut request, mut answer) = (Vec::new(), Vec::new());
                let mut due = start + each.mul_f64(number as f64 / OPEN as f64);
                while due < start + measured {
                    tokio::time::sleep_until(due.into()).await;
                    ask.write(&key, &mut chance, &mut request);
                    if load::accepted(&mut stream, &request, &mut answer).await {
                        micros.push(u32::try_from(due.elapsed().as_micros()).unwrap_or(u32::MAX));
                    } else {
                        refused += 1;
                    }
                    due += each;
                }
                (micros, refused)
            });
        }
        connections.join_all().await
    });
    let refused = outcomes.iter().map(|(_, refused)| refused).sum();
    let micros: Vec<u32> = outcomes.into_iter().flat_map(|(micros, _)| micros).collect();
    (Sample { rate: micros.len() as f64 / measured.as_secs_f64(), micros }, refused)
}

/// Connections that request more than fits into the buffers of the system and read it in small pieces.
struct SlowReaders {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<usize>,
}

impl SlowReaders {
    fn start(server: &Server) -> SlowReaders {
        let request =
            format!("GET /v1/invoices HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\n\r\n", server.key);
        let (address, requests, stop) = (server.address, request.repeat(20), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut readers = JoinSet::new();
                for _ in 0..SLOW {
                    let (requests, stopped) = (requests.clone(), stopped.clone());
                    readers.spawn(async move { read_slowly(address, &requests, &stopped).await.is_ok() });
                }
                readers.join_all().await.into_iter().filter(|reading| *reading).count()
            })
        });
        SlowReaders { stop, thread }
    }

    /// Ends them; returns how many the server had not cut off.
    fn stop(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("slow readers end")
    }
}

async fn read_slowly(address: SocketAddr, requests: &str, stopped: &AtomicBool) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(requests.as_bytes()).await?;
    let mut sip = [0; SIP];
    while !stopped.load(Ordering::Relaxed) {
        if stream.read(&mut sip).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Opens connections that have made a request and then keep silent.
fn idle(server: &Server) -> (Vec<TcpStream>, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let request = format!("GET /health HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\n\r\n", server.key);
    let idle = runtime.block_on(async {
        let (mut idle, mut answer) = (Vec::with_capacity(IDLE), Vec::new());
        for _ in 0..IDLE {
            let mut stream = TcpStream::connect(server.address)
                .await
                .expect("a connection; `ulimit -n 20000` allows enough of them");
            load::exchange(&mut stream, request.as_bytes(), &mut answer).await;
            stream.flush().await.unwrap();
            idle.push(stream);
        }
        idle
    });
    (idle, runtime)
}

/// Mixed load at a steady rate for a long time; returns memory and descriptors at every sixtieth of it.
pub fn soak(rows: i64, measured: Duration) -> String {
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(server::own_folder()).unwrap();
    let binary = server::kantoor_binary();
    let data = Data::make(&binary, &folder.path().join("soak"), rows);
    let server = Server::kantoor_with(&binary, &data, &SETTINGS);
    let (mut lines, mut slices) = (Vec::new(), Vec::new());
    for number in 1..=SAMPLED {
        let (slice, refused) = open_loop(&server, Workload::Mixed { rows }, measured / SAMPLED, STEADY);
        let (seconds, megabytes) = ((measured / SAMPLED * number).as_secs(), server.megabytes());
        let (descriptors, answered) = (server.descriptors(), thousands(slice.micros.len() as i64));
        let line = format!("| {seconds} | {answered} | {refused} | {megabytes:.0} | {descriptors} |");
        eprintln!("{line}");
        lines.push(line);
        slices.push(slice);
    }
    server.stop();
    let (rate, p50, p99) = Figure::of(&slices).shown();
    let connections = thousands(OPEN as i64);
    let how = format!(
        "{} documents; {connections} connections, open loop; {rate} requests/s, p50 {p50:.2} ms, p99 {p99:.2} ms",
        thousands(rows)
    );
    format!(
        "{}\n\n| Seconds | Requests | Refused | Memory, MB | Descriptors |\n|--:|--:|--:|--:|--:|\n{}",
        header(&how),
        lines.join("\n")
    )
}
