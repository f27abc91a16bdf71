//! Large responses: they use neither the threads nor the memory of others, and only a limited part of either.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use engine::open::open_store;
use serde_json::json;
use store::Tx;

use crate::on_both;
use crate::support::{Client, Db, Office, Server, Shared};

on_both![
    responses_that_nobody_reads_have_a_limit,
    many_large_lists_take_little_memory,
    lists_without_pages_are_limited_too,
    a_filter_finds_both_spellings,
    incomplete_bodies_leave_connections_for_others,
];

const MIB: u64 = 1024 * 1024;

/// Creates notes of 192 KiB each.
fn write_notes(client: &Client, count: usize) {
    for _ in 0..count {
        client.post("/v1/notes", json!({"body": "€".repeat(65_536)})).expect(201);
    }
}

/// A connection that sends a request and does not read the response.
fn ask(server: &Office, client: &Client, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n", client.key);
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn responses_that_nobody_reads_have_a_limit(db: Db) {
    let server = Server::with(db, |config| {
        config.responses_per_account_mib = 20;
        config.responses_mib = 30;
        config.write_timeout_seconds = 300;
    });
    let (client, other) = (server.client(), server.client());
    write_notes(&client, 40);
    write_notes(&other, 3);
    let path = "/v1/notes?per_page=100";
    let page = client.get(path).expect(200);
    assert_eq!(page.data().as_array().unwrap().len(), 40, "a page is as long as requested");
    let size = page.bytes.len() as u64;
    let total = || server.app.responses.total();
    wait_until("what is read is not counted", || total() == 0);

    let mut unread: Vec<TcpStream> = (0..12).map(|_| ask(&server, &client, path)).collect();
    wait_until("some are answered", || total() >= 20 * MIB);
    for refused in [client.get(path), client.get("/v1/products"), client.post("/v1/products", json!({"name": "x"}))] {
        let refused = refused.expect(429);
        assert_eq!((refused.code().as_str(), refused.header("retry-after")), ("too_many_requests", "1"));
        assert!(refused.text.contains("responses_per_account_mib"), "{refused:?}");
    }
    assert!(total() < 20 * MIB + size, "{} bytes are held", total());
    // Others do not notice.
    assert_eq!(other.get(path).expect(200).data().as_array().unwrap().len(), 3);
    other.post("/v1/products", json!({"name": "x"})).expect(201);
    assert_eq!((other.get("/health").status, other.get("/ready").status), (200, 200));

    // A response is sent as a whole, however slowly it is read.
    let mut start = [0; 12];
    let answered = unread.iter_mut().find(|stream| stream.peek(&mut start).is_ok() && &start[9..] == b"200").unwrap();
    let mut answer = Vec::new();
    let is_whole = |answer: &[u8]| {
        let head = answer.windows(4).take(4096).position(|four| four == b"\r\n\r\n");
        head.is_some_and(|head| (answer.len() - head - 4) as u64 >= size)
    };
    while !is_whole(&answer) {
        let mut piece = [0; 65_536];
        let length = answered.read(&mut piece).unwrap();
        assert!(length > 0);
        answer.extend_from_slice(&piece[..length]);
    }
    assert!(answer.ends_with(b"}}"));
    drop(unread);
    wait_until("what nobody reads any more is not counted", || total() == 0);
    client.get(path).expect(200);
    assert!(client.get("/v1/products").expect(200).data().as_array().unwrap().is_empty(), "429 changed nothing");
}

/// Returns the memory of this process, in bytes.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

fn many_large_lists_take_little_memory(db: Db) {
    let server = Server::with(db, |config| config.write_timeout_seconds = 300);
    let (client, other) = (server.client(), server.client());
    write_notes(&client, 100);
    other.post("/v1/notes", json!({"body": "x"})).expect(201);
    let size = client.get("/v1/notes?per_page=100").expect(200).bytes.len() as u64;
    assert!(size > 19_000_000, "{size}");
    let (before, mut most) = (memory(), 0);
    let mut unread: Vec<TcpStream> = (0..100).map(|_| ask(&server, &client, "/v1/notes?per_page=100")).collect();
    let mut statuses = Vec::new();
    for stream in &mut unread {
        let mut start = [0; 12];
        stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let started = Instant::now();
        while stream.read_exact(&mut start).is_err() {
            assert!(started.elapsed() < Duration::from_secs(60), "{statuses:?}");
            most = most.max(memory());
            assert_eq!(other.get("/v1/notes").expect(200).data().as_array().unwrap().len(), 1);
        }
        statuses.push(String::from_utf8_lossy(&start[9..]).to_string());
    }
    assert_eq!((other.get("/health").status, other.get("/ready").status), (200, 200));
    let served = statuses.iter().filter(|status| *status == "200").count();
    assert!((1..=4).contains(&served) && statuses.iter().filter(|status| *status == "429").count() == 100 - served);
    // The responses that fit into 64 MiB, one more, and the buffers of a read; all of them would be 1,900 MiB.
    let grown = most.max(memory()).saturating_sub(before);
    assert!(grown < 400 * MIB, "{grown} bytes for 100 responses of {size}");
}

fn lists_without_pages_are_limited_too(db: Db) {
    let server = Server::with(db, |config| config.responses_mib = 1);
    let client = server.client();
    let ticket = client.post("/v1/tickets", json!({"subject": "x"})).expect(201).id();
    let path = format!("/v1/tickets/{ticket}/messages");
    let write = |number: usize| {
        client.post(&path, json!({"body": format!("{number}{}", "€".repeat(65_000))})).expect(201);
    };
    (0..5).for_each(write);
    let found = client.get(&path).expect(200);
    assert!(found.bytes.len() > 900_000, "{}", found.bytes.len());
    let bodies = found.data();
    let first: Vec<char> =
        bodies.as_array().unwrap().iter().filter_map(|one| one["body"].as_str()?.chars().next()).collect();
    assert_eq!(first, ['0', '1', '2', '3', '4']);
    write(5);
    let refused = client.get(&path).expect(422);
    assert_eq!(refused.code(), "response_too_large");
    assert!(refused.text.contains("more than 1 MiB (limit responses_mib)"), "{refused:?}");
    assert_eq!(client.get(&path.replace("/messages", "")).status, 200);
}

fn a_filter_finds_both_spellings(server: Shared) {
    let client = server.client();
    for status in ["canceled", "open", "cancelled", "canceled"] {
        client.post("/v1/invoices", json!({"title": status, "payment_status": status})).expect(201);
    }
    for spelling in ["canceled", "cancelled"] {
        let found = client.get(&format!("/v1/invoices?payment_status={spelling}")).expect(200).json();
        let titles: Vec<&str> =
            found["data"].as_array().unwrap().iter().filter_map(|one| one["title"].as_str()).collect();
        assert_eq!(
            (&found["meta"]["total"], titles),
            (&json!(3), vec!["canceled", "cancelled", "canceled"]),
            "{found}"
        );
        let page =
            client.get(&format!("/v1/invoices?payment_status={spelling}&per_page=1&page=2&order=asc")).expect(200);
        assert_eq!(page.data()[0]["title"], "cancelled");
    }
}

fn incomplete_bodies_leave_connections_for_others(db: Db) {
    let server = Server::with(db, |config| {
        config.max_connections = 60;
        config.body_timeout_seconds = 300;
    });
    let (client, other) = (server.client(), server.client());
    let head = format!(
        "POST /v1/products HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        client.key
    );
    let mut slow: Vec<TcpStream> = (0..70)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            // One that finds all connections taken may be closed before this.
            let _ = stream.write_all(head.as_bytes());
            stream
        })
        .collect();
    let is_served = || other.try_send("GET", "/v1/products", &[], "").is_ok_and(|reply| reply.status == 200);
    wait_until("others are served", is_served);
    // A quarter of the connections still wait for their bodies.
    let mut refused = 0;
    slow.iter().for_each(|stream| stream.set_nonblocking(true).unwrap());
    wait_until("the others are refused", || {
        slow.retain_mut(|stream| {
            let mut start = [0; 12];
            let waits = stream.read(&mut start).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
            refused += usize::from(&start[9..] == b"429");
            waits
        });
        slow.len() <= 15
    });
    assert_eq!(slow.len(), 15);
    // All but those that found every connection taken, or made room before their request was read.
    assert!(refused >= 30, "{refused} of 70 got 429");
    for number in 0..20 {
        other.post("/v1/products", json!({"name": number.to_string()})).expect(201);
    }
    // They are served when the rest arrives.
    let stream = &mut slow[0];
    stream.set_nonblocking(false).unwrap();
    let rest = format!("\"name\":\"slow\"{}}}", " ".repeat(100 - 15));
    stream.write_all(rest.as_bytes()).unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();
    assert_eq!(&start[9..], b"201");
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// An HTTP/2 connection with requests whose responses cannot be sent: INITIAL_WINDOW_SIZE is 0.
fn ask_without_window(server: &Office, client: &Client, streams: u32) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let settings = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
    stream.write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..]].concat()).unwrap();
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let key = format!("Bearer {}", client.key);
    let block =
        [&b"\x82\x86\x01\x01x\x04"[..], &text("/v1/notes"), b"\x00", &text("authorization"), &text(&key)].concat();
    for number in 0..streams {
        stream.write_all(&frame(1, 5, 2 * number + 1, &block)).unwrap();
    }
    stream
}

const STALLED: &str = "kantoor_http_connections_closed_total{reason=\"stalled\"}";

#[test]
fn closes_an_http2_connection_that_opens_its_window_by_a_byte_at_a_time() {
    let server = Server::with(Db::sqlite(), |config| {
        config.write_timeout_seconds = 2;
        config.header_timeout_seconds = 300;
    });
    let client = server.client();
    write_notes(&client, 5);
    let mut stream = ask_without_window(&server, &client, 1);
    wait_until("it is answered", || server.app.responses.total() > 900_000);
    wait_until("it is closed", || {
        // WINDOW_UPDATE: one byte more.
        let _ = stream.write_all(&frame(8, 0, 1, &[0, 0, 0, 1]));
        server.metric(STALLED) == 1
    });
    wait_until("its memory is free", || server.app.responses.total() == 0);
}

#[test]
fn http2_streams_without_a_window_share_the_limit() {
    let server = Server::with(Db::sqlite(), |config| {
        config.responses_per_account_mib = 8;
        config.write_timeout_seconds = 10;
    });
    let (client, other) = (server.client(), server.client());
    write_notes(&client, 25);
    let held: Vec<TcpStream> = (0..4).map(|_| ask_without_window(&server, &client, 32)).collect();
    wait_until("the limit is reached", || server.app.responses.total() >= 8 * MIB);
    let mut most = 0;
    wait_until("all are closed", || {
        most = most.max(server.app.responses.total());
        other.get("/v1/notes").expect(200);
        server.metric(STALLED) == 4
    });
    assert!(most < 14 * MIB, "{most}: the limit, and one response of 5 MB");
    wait_until("the memory is free", || server.app.responses.total() == 0);
    drop(held);
    client.get("/v1/notes").expect(200);
}

#[test]
fn closes_a_connection_that_reads_a_large_response_too_slowly() {
    let server = Server::with(Db::sqlite(), |config| config.write_timeout_seconds = 2);
    let client = server.client();
    write_notes(&client, 100);
    let mut stream = ask(&server, &client, "/v1/notes?per_page=100");
    wait_until("it is closed", || {
        let _ = stream.read(&mut [0; 16]);
        server.metric(STALLED) == 1
    });
    wait_until("its memory is free", || server.app.responses.total() == 0);
}

#[test]
fn reads_that_wait_for_a_connection_occupy_no_thread() {
    let Some(db) = Db::postgres() else { return };
    let store = open_store(&db.config()).unwrap();
    let threads = Arc::new(Mutex::new(HashSet::new()));
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let reads = (0..100).map(|_| {
            let (store, threads) = (store.clone(), threads.clone());
            tokio::spawn(async move {
                let read = move |tx: &mut Tx| {
                    threads.lock().unwrap().insert(std::thread::current().id());
                    tx.all("SELECT 1 WHERE pg_sleep(0.01) IS NOT NULL", &[], |row| row.int(0))
                };
                store.read(read).await.unwrap()
            })
        });
        for read in reads.collect::<Vec<_>>() {
            read.await.unwrap();
        }
    });
    // Those that have finished a read may not be idle yet when the next one starts.
    let (threads, connections) = (threads.lock().unwrap().len(), db.config().database_readers);
    assert!(threads <= 2 * connections, "{threads} threads for {connections} connections");
}
