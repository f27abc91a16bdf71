//! What one server takes: closed and open loop, few and many connections, idle ones, and a long time.

use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
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
/// How often memory and descriptors are sampled.
const SAMPLED: u32 = 60;

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
        let sample = open_loop(&server, Workload::Mixed { rows }, measured, rate);
        line(&format!("Mixed, open loop at {percent} %"), OPEN, &Figure::of(&[sample]), memory(&server));
    }
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
/// falls behind cannot hide it.
fn open_loop(server: &Server, ask: Workload, measured: Duration, rate: f64) -> Sample {
    let (address, key) = (server.address, server.key.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let each = Duration::from_secs_f64(OPEN as f64 / rate);
    let start = Instant::now() + Duration::from_millis(500);
    let micros = runtime.block_on(async {
        let mut connections = JoinSet::new();
        for number in 0..OPEN {
            let key = key.clone();
            connections.spawn(async move {
                let mut stream = TcpStream::connect(address).await.expect("a connection");
                stream.set_nodelay(true).unwrap();
                let (mut chance, mut micros) = (Chance::of(number), Vec::new());
                let (mut request, mut answer) = (Vec::new(), Vec::new());
                let mut due = start + each.mul_f64(number as f64 / OPEN as f64);
                while due < start + measured {
                    tokio::time::sleep_until(due.into()).await;
                    ask.write(&key, &mut chance, &mut request);
                    load::exchange(&mut stream, &request, &mut answer).await;
                    micros.push(u32::try_from(due.elapsed().as_micros()).unwrap_or(u32::MAX));
                    due += each;
                }
                micros
            });
        }
        connections.join_all().await.concat()
    });
    Sample { rate: micros.len() as f64 / measured.as_secs_f64(), micros }
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

/// Mixed load for a long time; returns memory and descriptors at every sixtieth of it.
pub fn soak(rows: i64, measured: Duration) -> String {
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(server::own_folder()).unwrap();
    let binary = server::kantoor_binary();
    let data = Data::make(&binary, &folder.path().join("soak"), rows);
    let server = Server::kantoor_with(&binary, &data, &SETTINGS);
    let (mut lines, mut slices) = (Vec::new(), Vec::new());
    for number in 1..=SAMPLED {
        slices.push(load::run_with(&server, Workload::Mixed { rows }, measured / SAMPLED * 3 / 4, 32));
        let (seconds, megabytes) = ((measured / SAMPLED * number).as_secs(), server.megabytes());
        lines.push(format!("| {seconds} | {megabytes:.0} | {} |", server.descriptors()));
        eprintln!("{seconds} s: {megabytes:.0} MB, {} descriptors", server.descriptors());
    }
    server.stop();
    let (rate, p50, p99) = Figure::of(&slices).shown();
    let how =
        format!("{} documents; 32 connections; {rate} requests/s, p50 {p50:.2} ms, p99 {p99:.2} ms", thousands(rows));
    format!("{}\n\n| Seconds | Memory, MB | Descriptors |\n|--:|--:|--:|\n{}", header(&how), lines.join("\n"))
}
