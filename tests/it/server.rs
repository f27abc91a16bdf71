//! Connections: slow ones, many, h2c, and shutdown.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cli::{kantoor, said};
use crate::support::{Client, Db, Server};

/// The binary itself, running.
pub struct Binary {
    pub child: Child,
    pub client: Client,
    pub log: std::path::PathBuf,
}

impl Binary {
    /// Starts it on `db` and waits until it responds; returns the key of the first start.
    pub fn start(db: &Db, key: &str, arguments: &[&str]) -> Binary {
        Binary::start_with(Command::new(env!("CARGO_BIN_EXE_kantoor")), db, key, arguments)
    }

    pub fn start_with(mut command: Command, db: &Db, key: &str, arguments: &[&str]) -> Binary {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = db.folder.path().join("log");
        let file = std::fs::File::options().create(true).append(true).open(&log).unwrap();
        command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"]).arg(&db.data);
        command.args(["--database-url", &db.url, "--set", "rate_limit_per_minute=0"]).args(arguments);
        command.stdout(file.try_clone().unwrap()).stderr(file).stdin(Stdio::null());
        let child = command.spawn().unwrap();
        let mut binary = Binary { child, client: Client::new(([127, 0, 0, 1], port).into(), key.to_string(), 1), log };
        let started = Instant::now();
        while binary.client.try_send("GET", "/health", &[], "").is_err() {
            assert!(binary.child.try_wait().unwrap().is_none(), "it ended: {}", binary.said());
            assert!(started.elapsed() < Duration::from_secs(30), "it does not answer: {}", binary.said());
            std::thread::sleep(Duration::from_millis(10));
        }
        if key.is_empty() {
            let said = binary.said();
            let start = said.find("kt_").unwrap_or_else(|| panic!("no key: {said}"));
            binary.client.key = said[start..start + 39].to_string();
        }
        binary
    }

    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn times_out_slow_headers_and_slow_bodies() {
    let server = Server::with(Db::sqlite(), |config| {
        config.header_timeout_seconds = 1;
        config.body_timeout_seconds = 1;
    });
    let client = server.client();
    for start in ["", "P", "PRI * HT", "GET /v1/products HT"] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(start.as_bytes()).unwrap();
        let mut rest = Vec::new();
        let closed = stream.read_to_end(&mut rest);
        assert!(closed.is_ok() || closed.unwrap_err().kind() == std::io::ErrorKind::ConnectionReset, "'{start}'");
    }
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let head = format!(
        "POST /v1/products HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{{",
        client.key
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
}

/// A minimal HTTP/2 client.
struct Peer {
    stream: TcpStream,
}

const PING: u8 = 6;
const GOAWAY: u8 = 7;

impl Peer {
    /// Sends the preface and empty SETTINGS.
    fn connect(address: std::net::SocketAddr) -> Peer {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00").unwrap();
        Peer { stream }
    }

    fn send(&mut self, kind: u8, flags: u8, stream: u8, payload: &[u8]) {
        let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = vec![0, length[0], length[1], kind, flags, 0, 0, 0, stream];
        frame.extend_from_slice(payload);
        // A closed connection does not read.
        let _ = self.stream.write_all(&frame);
    }

    /// HEADERS of a GET in literal HPACK, with the end of the request.
    fn get(&mut self, path: &str, key: &str) {
        // 0x82 :method GET, 0x86 :scheme http, 0x01 :authority "x", 0x04 :path.
        let mut block = b"\x82\x86\x01\x01x\x04".to_vec();
        let mut word = |text: &str| {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        };
        word(path);
        if !key.is_empty() {
            word("");
            word("authorization");
            word(&format!("Bearer {key}"));
        }
        self.send(1, 5, 1, &block);
    }

    /// Returns the next frame; `None` when the connection is closed.
    fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 9];
        match self.stream.read_exact(&mut head) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("it stays open"),
            read => read.ok()?,
        }
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        self.stream.read_exact(&mut payload).ok()?;
        Some((head[3], payload))
    }

    /// Reads until the connection is closed, answering pings while `answers` is true; returns the types of frames, and
    /// how long it took.
    fn until_closed(&mut self, answers: impl Fn() -> bool) -> (Vec<u8>, Duration) {
        let started = Instant::now();
        let mut seen = Vec::new();
        while let Some((kind, payload)) = self.frame() {
            seen.push(kind);
            if kind == PING && answers() {
                self.send(PING, 1, 0, &payload);
            }
        }
        (seen, started.elapsed())
    }
}

#[test]
fn http2_without_tls_works() {
    let server = Server::start(Db::sqlite());
    let mut peer = Peer::connect(server.address);
    peer.get("/health", "");
    while peer.frame().expect("closed").1 != b"{\"status\":\"ok\"}" {}
}

#[test]
fn closes_idle_http2_connections() {
    let server = Server::with(Db::sqlite(), |config| config.header_timeout_seconds = 1);
    let client = server.client();
    let second = Duration::from_secs(1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (seen, took) = Peer::connect(server.address).until_closed(|| false);
            assert!(seen.contains(&GOAWAY) && took >= second, "silent from the start: {seen:?} after {took:?}");
        });
        scope.spawn(|| {
            let mut peer = Peer::connect(server.address);
            std::thread::sleep(Duration::from_millis(600));
            peer.get("/health", "");
            let (seen, took) = peer.until_closed(|| true);
            // The timer starts when the response is written, a moment before it is read.
            assert!(seen.contains(&GOAWAY) && took >= second * 9 / 10, "idle after a request: {seen:?} after {took:?}");
        });
        scope.spawn(|| {
            let mut peer = Peer::connect(server.address);
            peer.get("/v1/events/stream", &client.key);
            let started = Instant::now();
            let (seen, took) = peer.until_closed(|| started.elapsed() < 3 * second);
            assert!(took >= 3 * second, "a stream is no idle connection: {seen:?} after {took:?}");
            assert!(seen.contains(&PING), "{seen:?}");
        });
    });
}

#[test]
fn a_shutdown_completes_requests_in_progress() {
    let db = Db::sqlite();
    let mut binary = Binary::start(&db, "", &[]);
    let address = binary.client.base.strip_prefix("http://").unwrap().to_string();
    let mut slow = TcpStream::connect(&address).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!(
        "POST /v1/products HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 12\r\n\r\n{{\"name\"",
        binary.client.key
    );
    slow.write_all(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    binary.signal(rustix::process::Signal::TERM);
    std::thread::sleep(Duration::from_millis(300));
    assert!(TcpStream::connect(&address).is_err(), "it takes new connections after SIGTERM");
    slow.write_all(b":\"x\"}").unwrap();
    let mut answer = [0; 12];
    slow.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 201");
    let status = binary.child.wait().unwrap();
    assert!(status.success(), "{status}: {}", binary.said());
    assert!(binary.said().contains("Kantoor has stopped."));
    let keys = said(&kantoor(&db, &["key", "list"]));
    assert!(keys.contains("  used 2") && !keys.contains("never used"), "the last use was not recorded: {keys}");
}

#[test]
fn logs_can_be_json_and_contain_no_secrets() {
    let db = Db::sqlite();
    let made = said(&kantoor(&db, &["account", "create", "A", "--json"]));
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    let arguments = ["--set", "log_format=json", "--set", "log_level=trace", "--set", "log_requests=true"];
    let binary = Binary::start(&db, made["key"].as_str().unwrap(), &arguments);
    let reply =
        binary.client.send("POST", "/v1/notes", &[("x-request-id", "find-me")], "{\"body\":\"hush-hush\"}").expect(201);
    assert_eq!(reply.header("x-request-id"), "find-me");
    std::thread::sleep(Duration::from_millis(200));
    let said = binary.said();
    let logged: Vec<&str> = said.lines().filter(|line| line.starts_with('{')).collect();
    let line = logged.iter().find(|line| line.contains("find-me")).unwrap_or_else(|| panic!("{said}"));
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((&line["status"], &line["route"]), (&201.into(), &"/v1/notes".into()));
    assert!(!logged.iter().any(|line| line.contains("hush-hush") || line.contains(&binary.client.key)));
}

#[test]
fn metrics_are_on_their_own_listener() {
    let db = Db::sqlite();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let binary = Binary::start(&db, "", &["--set", &format!("metrics_listen=127.0.0.1:{port}")]);
    binary.client.post("/v1/products", serde_json::json!({"name": "x"})).expect(201);
    let scraper = Client::new(([127, 0, 0, 1], port).into(), String::new(), 0);
    let plain = scraper.get("/metrics").expect(200);
    assert_eq!(plain.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    check_metrics(&plain.text, false);
    let accept = "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    let open = scraper.send("GET", "/metrics", &[("accept", accept)], "").expect(200);
    assert_eq!(open.header("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert_eq!(open.header("vary"), "accept");
    check_metrics(&open.text, true);
    for name in ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds"] {
        for text in [&plain.text, &open.text] {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
            assert!(value.is_some_and(|value| value > 0.0) || name.contains("cpu"), "{name}: {value:?}");
        }
    }
    let line = |name: &str| open.text.lines().find_map(|line| line.strip_prefix(name)?.parse::<f64>().ok()).unwrap();
    let now = engine::clock::Clock::System.now().0 / 1000;
    let started = line("process_start_time_seconds ");
    assert!((now - 120..=now + 2).contains(&(started as i64)), "{started} and {now}");
    assert!(line("process_resident_memory_bytes ") > 1e6);
    let build = format!("kantoor_build_info{{version=\"{}\",", env!("CARGO_PKG_VERSION"));
    assert!(plain.text.contains(&build) && open.text.contains(&build));
    let metrics = open.text;
    assert!(
        metrics.contains("kantoor_http_requests_total{method=\"POST\",route=\"/v1/products\",status=\"201\"} 1"),
        "{metrics}"
    );
    assert!(metrics.contains("kantoor_store_commits_total"), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"));
    assert_eq!(binary.client.get("/metrics").status, 404);
}

/// Checks the syntax of metrics: each family is declared once, before its samples, and a sample has a name that its type allows.
#[track_caller]
fn check_metrics(text: &str, is_open: bool) {
    assert_eq!(text.ends_with("# EOF\n"), is_open);
    let (mut families, mut samples) = (HashMap::new(), HashSet::new());
    let mut family = String::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "HELP", name, help] => {
                assert!(!help.is_empty() && !families.contains_key(name), "{line}");
                family = name.to_string();
            }
            ["#", "TYPE", name, kind] => {
                assert_eq!(name, family, "{line}");
                let kinds = if is_open {
                    &["counter", "gauge", "histogram", "info"][..]
                } else {
                    &["counter", "gauge", "histogram"]
                };
                assert!(kinds.contains(&kind), "{line}");
                assert!(families.insert(name.to_string(), kind.to_string()).is_none(), "{line} is declared twice");
            }
            _ => {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                assert!(samples.insert(series.to_string()), "{line} is there twice");
                let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
                assert!(labels.ends_with('}'), "{line}");
                let endings: &[&str] = match families[&family].as_str() {
                    "counter" if is_open => &["_total"],
                    "info" => &["_info"],
                    "histogram" => &["_bucket", "_sum", "_count"],
                    _ => &[""],
                };
                assert!(endings.iter().any(|end| name == format!("{family}{end}")), "{line} in {family}");
                if let Some((_, end)) = labels.split_once("le=\"") {
                    let end = end.split('"').next().unwrap();
                    assert!(end == "+Inf" || (end.contains('.') && end.parse::<f64>().is_ok()), "{line}");
                }
            }
        }
    }
    assert!(families.len() > 30, "{families:?}");
}
