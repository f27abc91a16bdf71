//! Clients that occupy shared resources: connections, memory, and unread responses.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::support::{Client, Db, Office, Server};

/// A connection with a request.
fn ask(server: &Office, path: &str, key: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let key = if key.is_empty() { String::new() } else { format!("authorization: Bearer {key}\r\n") };
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n{key}\r\n").as_bytes()).unwrap();
    stream
}

fn status(stream: &mut TcpStream) -> String {
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[9..]).to_string()
}

/// A connection with a request that never completes.
fn follow(server: &Office, client: &Client) -> TcpStream {
    let mut stream = ask(server, "/v1/events/stream", &client.key);
    assert_eq!(status(&mut stream), "200");
    stream
}

fn is_closed(stream: &mut TcpStream) -> bool {
    let read = stream.read_to_end(&mut Vec::new());
    read.is_ok() || read.unwrap_err().kind() == std::io::ErrorKind::ConnectionReset
}

/// Waits until a metric has this value.
fn wait_for(server: &Server, metric: &str, value: u64) {
    let started = Instant::now();
    while server.metric(metric) < value {
        assert!(started.elapsed() < Duration::from_secs(60), "{metric} stays at {}", server.metric(metric));
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn closed(reason: &str) -> String {
    format!("kantoor_http_connections_closed_total{{reason=\"{reason}\"}}")
}

#[test]
fn an_idle_connection_makes_room() {
    let server = Server::with(Db::sqlite(), |config| config.max_connections = 2);
    let client = server.client();
    let mut busy = follow(&server, &client);
    let mut silent = TcpStream::connect(server.address).unwrap();
    wait_for(&server, "kantoor_http_connections", 2);
    let mut third = ask(&server, "/v1/products", &client.key);
    assert_eq!(status(&mut third), "200");
    assert!(is_closed(&mut silent));
    assert_eq!(server.metric(&closed("idle")), 1);
    let mut more = [0; 4];
    busy.read_exact(&mut more).unwrap();
}

#[test]
fn serves_health_checks_when_all_connections_are_busy() {
    let server = Server::with(Db::sqlite(), |config| config.max_connections = 2);
    let client = server.client();
    let held = [follow(&server, &client), follow(&server, &client)];
    for path in ["/health", "/ready"] {
        assert_eq!(status(&mut ask(&server, path, "")), "200");
    }
    let mut refused = ask(&server, "/v1/products", &client.key);
    let mut answer = String::new();
    refused.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    assert!(answer.contains("\"overloaded\""), "{answer}");
    assert_eq!(server.metric(&closed("full")), 1);
    drop(held);
    let started = Instant::now();
    while status(&mut ask(&server, "/v1/products", &client.key)) != "200" {
        assert!(started.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn limits_connections_per_address_except_for_proxies() {
    for (proxies, third) in [("", "503"), ("127.0.0.0/8", "200")] {
        let server = Server::with(Db::sqlite(), |config| {
            config.connections_per_address = 2;
            config.trusted_proxies = proxies.to_string();
        });
        let client = server.client();
        let _held = [follow(&server, &client), follow(&server, &client)];
        assert_eq!(status(&mut ask(&server, "/v1/products", &client.key)), third, "proxies: {proxies}");
    }
}

#[test]
fn closes_a_connection_without_a_first_byte() {
    let server = Server::with(Db::sqlite(), |config| config.first_byte_timeout_seconds = 1);
    let mut silent = TcpStream::connect(server.address).unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(25))).unwrap();
    assert!(is_closed(&mut silent), "within the header timeout, which is 30 s");
    assert_eq!(server.metric(&closed("silent")), 1);
}

#[test]
fn closes_a_connection_that_does_not_read() {
    let server = Server::with(Db::sqlite(), |config| {
        config.write_timeout_seconds = 1;
        config.public_limit_per_minute = 0;
    });
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    // More than the system buffers for a connection, requested repeatedly.
    for _ in 0..100 {
        let _ = stream.write_all(b"GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n");
    }
    wait_for(&server, &closed("stalled"), 1);
}

#[test]
fn closes_an_http2_connection_that_does_not_read() {
    let server = Server::with(Db::sqlite(), |config| config.write_timeout_seconds = 1);
    let client = server.client();
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // The preface, and SETTINGS: no stream can send anything (INITIAL_WINDOW_SIZE is 0).
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0").unwrap();
    for (id, path) in [(1, "/docs"), (3, "/v1/openapi.json")] {
        let block = [b"\x82\x86\x01\x01x\x04", &[u8::try_from(path.len()).unwrap()][..], path.as_bytes()].concat();
        let head = [0, 0, u8::try_from(block.len()).unwrap(), 1, 5, 0, 0, 0, id];
        stream.write_all(&[&head[..], &block].concat()).unwrap();
    }
    assert!(is_closed(&mut stream), "it reads every frame, but opens no window");
    wait_for(&server, &closed("stalled"), 1);
    // An idle event stream waits for the server, not for its reader.
    let mut follower = follow(&server, &client);
    std::thread::sleep(Duration::from_secs(3));
    client.post("/v1/products", serde_json::json!({"name": "x"})).expect(201);
    let mut heard = Vec::new();
    while !String::from_utf8_lossy(&heard).contains("product.created") {
        let mut piece = [0; 1024];
        let length = follower.read(&mut piece).unwrap();
        assert!(length > 0, "it was cut off: {}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&piece[..length]);
    }
}

#[test]
fn static_pages_are_compressed_once_tagged_and_limited() {
    let server = Server::with(Db::sqlite(), |config| config.public_limit_per_minute = 60);
    let mut client = server.client();
    // `/` leads to the page to sign in, which shows its errors to people.
    client.agent = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).build().into();
    let get = |path: &str, headers: &[(&str, &str)]| {
        client.send("GET", path, &[headers, &[("authorization", "")]].concat(), "")
    };
    for path in ["/docs", "/v1/openapi.json"] {
        let plain = get(path, &[("accept-encoding", "identity")]).expect(200);
        let packed = get(path, &[("accept-encoding", "br, gzip")]).expect(200);
        assert_eq!((plain.header("content-encoding"), packed.header("vary")), ("", "accept-encoding"));
        assert!(!plain.text.is_empty() && plain.text == packed.text, "{path}");
        assert_ne!(plain.header("etag"), packed.header("etag"));
        let tag = packed.header("etag").to_string();
        let again = get(path, &[("accept-encoding", "gzip"), ("if-none-match", &tag)]).expect(304);
        assert!(again.bytes.is_empty());
        assert_eq!(get(path, &[("accept-encoding", "identity"), ("if-none-match", &tag)]).status, 200);
    }
    for path in ["/docs", "/v1/openapi.json", "/", "/thanks", "/nothing"] {
        let refused = (0..1000).map(|_| get(path, &[])).find(|reply| reply.status == 429).unwrap();
        assert!(refused.header("retry-after").parse::<u32>().is_ok() && refused.code() == "too_many_requests");
    }
    for _ in 0..5 {
        assert_eq!((get("/health", &[]).status, get("/ready", &[]).status), (200, 200));
    }
    client.get("/v1/products").expect(200);
}

#[test]
fn limits_invalid_keys_and_signed_urls() {
    let server = Server::with(Db::sqlite(), |config| config.public_limit_per_minute = 3);
    let client = server.client();
    let url = client.upload("note.txt", b"hello").expect(201).data()["url"].as_str().unwrap().to_string();
    let path = url.strip_prefix(&client.base).unwrap();
    let open = || client.send("GET", path, &[("authorization", "")], "");
    let guess = || {
        let key = format!("Bearer {}", engine::accounts::new_secret().unwrap());
        client.send("GET", "/v1/products", &[("authorization", &key)], "")
    };
    assert_eq!((guess().expect(401).code().as_str(), open().status), ("unauthorized", 200));
    let refused = |ask: &dyn Fn() -> crate::support::Reply| {
        let refused = (0..1000).map(|_| ask()).find(|reply| reply.status == 429).unwrap();
        assert!(refused.header("retry-after").parse::<u32>().is_ok() && refused.code() == "too_many_requests");
    };
    refused(&open);
    assert_eq!(guess().status, 401, "keys are counted separately");
    refused(&guess);
    client.get("/v1/products").expect(200);
    assert_eq!(client.send("GET", "/v1/products", &[("authorization", "")], "").status, 401);
}
