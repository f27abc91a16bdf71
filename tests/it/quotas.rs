//! Quotas of an account, and the cleanup of rejected uploads.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use engine::jobs::worker;
use serde_json::json;

use crate::on_both;
use crate::support::{Client, Db, Office, Server, multipart};

/// Returns the contents that remain when the workers have done all due work.
fn contents_come_to(server: &Server, expected: usize) {
    let started = Instant::now();
    loop {
        server.block_on(async { while worker::turn(&server.app).await {} });
        let left = server.block_on(server.app.blobs.keys()).unwrap().len();
        if left == expected {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{left} contents instead of {expected}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

on_both![
    lists_that_are_read_as_a_whole_have_a_maximum,
    limits_files_under_concurrency,
    bytes_of_files_have_a_limit,
    mail_has_a_limit_per_day,
    a_mail_of_a_flow_waits_for_the_quota_of_another_day,
    endpoints_at_one_host_have_a_limit,
    deletes_rejected_uploads_immediately,
];

fn limits_files_under_concurrency(db: Db) {
    let server = Server::with(db, |config| config.quota_files = 3);
    let client = server.client();
    let sent: Vec<_> = std::thread::scope(|scope| {
        let send = || client.upload("x.bin", b"hello");
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(send)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (kept, refused): (Vec<_>, Vec<_>) = sent.into_iter().partition(|reply| reply.status == 201);
    assert_eq!((kept.len(), refused.len()), (3, 5));
    for reply in &refused {
        assert_eq!((reply.status, reply.code().as_str()), (403, "quota_exceeded"), "{reply:?}");
        assert!(reply.text.contains("may store 3 files") && reply.text.contains("quota_files"), "{reply:?}");
    }
    contents_come_to(&server, 3);
    client.delete(&format!("/v1/files/{}", kept[0].id())).expect(204);
    client.upload("x.bin", b"hello").expect(201);
    server.client().upload("x.bin", b"of another account").expect(201);
    let usage = client.get("/v1/settings/usage").expect(200).data();
    assert_eq!((&usage["files"], &usage["files_quota"], &usage["file_bytes"]), (&json!(3), &json!(3), &json!(15)));
}

fn bytes_of_files_have_a_limit(db: Db) {
    let server = Server::with(db, |config| config.quota_file_mib = 1);
    let client = server.client();
    let first = client.upload("x.bin", &vec![1; 700_000]).expect(201);
    let refused = client.upload("x.bin", &vec![2; 700_000]).expect(403);
    assert_eq!(refused.code(), "quota_exceeded");
    assert!(refused.text.contains("1048576") && refused.text.contains("quota_file_mib"), "{refused:?}");
    contents_come_to(&server, 1);
    client.delete(&format!("/v1/files/{}", first.id())).expect(204);
    client.upload("x.bin", &vec![2; 1024 * 1024]).expect(201);
    assert_eq!(client.upload("x.bin", b"").expect(403).code(), "quota_exceeded");
    contents_come_to(&server, 1);
}

fn mail_has_a_limit_per_day(db: Db) {
    let server = Server::with(db, |config| config.quota_mails_per_day = 3);
    let client = server.client();
    let made = client.post("/v1/invoices", json!({"title": "x", "generation_mode": "final"})).expect(201);
    let path = format!("/v1/invoices/{}", made.id());
    let send = |to: &str| {
        client.post(&format!("{path}/send"), json!({"to": to, "subject": "x", "message": "y", "include_pdf": false}))
    };
    send("a@example.com, b@example.com, A@example.com").expect(200);
    let refused = send("c@example.com, d@example.com").expect(403);
    assert_eq!(refused.code(), "quota_exceeded");
    assert!(refused.text.contains("may mail 3 recipients per day and has mailed 2"), "{refused:?}");
    assert!((1..=90_000).contains(&refused.header("retry-after").parse::<u32>().unwrap()), "{refused:?}");
    send("c@example.com").expect(200);
    assert_eq!(send("d@example.com").status, 403);
    assert_eq!(client.get(&format!("{path}/deliveries")).data().as_array().unwrap().len(), 3);
    assert_eq!(client.get("/v1/settings/usage").data()["mails_today"], 3);
    // The next day the quota is available again.
    server
        .app
        .store
        .write_now(0, |tx| tx.execute("UPDATE quota_usage SET day = '2026-01-01' WHERE name = 'mails'", &[]).map(drop))
        .unwrap();
    assert_eq!(client.get("/v1/settings/usage").data()["mails_today"], 0);
    send("d@example.com").expect(200);
}

fn a_mail_of_a_flow_waits_for_the_quota_of_another_day(db: Db) {
    let server = Server::with(db, |config| config.quota_mails_per_day = 2);
    let client = server.client();
    let flow = |key: &str, to: &str| {
        let steps = json!([{"type": "send_email", "to": to, "subject": "x", "body": "y"}]);
        let body =
            json!({"name": key, "trigger_type": "custom", "trigger_key": key, "steps": steps, "max_attempts": 2});
        client.post("/v1/automation/flows", body).expect(201);
    };
    flow("two", "a@example.com, b@example.com");
    flow("three", "a@example.com, b@example.com, c@example.com");
    let fire = |event: &str| {
        let fired = client.post("/v1/automation/trigger", json!({"event": event})).expect(200).data();
        format!("/v1/automation/runs/{}", fired["runs"][0]["run_id"].as_str().unwrap())
    };
    let advance = |to: &str| client.post("/v1/test-clock/advance", json!({"to": to})).expect(200);
    let status = |run: &str| client.get(run).expect(200).data()["status"].clone();
    let (first, second, never) = (fire("two"), fire("two"), fire("three"));
    advance("2026-05-04T10:00:01Z");
    assert_eq!((status(&first), status(&second)), (json!("success"), json!("retrying")));
    // The quota counts by the machine's clock, so it stays used up however far the test clock goes.
    advance("2026-05-07T10:00:00Z");
    assert_eq!(status(&second), "retrying");
    assert_eq!(status(&never), "failed", "a day does not allow so many recipients");
    server
        .app
        .store
        .write_now(0, |tx| tx.execute("UPDATE quota_usage SET day = '2026-01-01' WHERE name = 'mails'", &[]).map(drop))
        .unwrap();
    advance("2026-05-08T12:00:00Z");
    assert_eq!(status(&second), "success");
    assert_eq!(client.get("/v1/settings/usage").data()["mails_today"], 2);
}

fn endpoints_at_one_host_have_a_limit(db: Db) {
    let server = Server::with(db, |config| config.quota_endpoints_per_host = 2);
    let client = server.client();
    let add = |url: &str| client.post("/v1/webhook-endpoints", json!({"url": url, "active": false}));
    add("https://example.com/a").expect(201);
    add("https://EXAMPLE.com:8443/b").expect(201);
    let refused = add("https://example.com/c").expect(403);
    assert_eq!(refused.code(), "quota_exceeded");
    assert!(refused.text.contains("2 webhook endpoints at one host"), "{refused:?}");
    let other = add("https://example.org/").expect(201).id();
    let moved = client.patch(&format!("/v1/webhook-endpoints/{other}"), json!({"url": "https://example.com/"}));
    assert_eq!(moved.expect(403).code(), "quota_exceeded");
}

fn deletes_rejected_uploads_immediately(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let send = |headers: &[(&str, &str)], parts: &[(&str, Option<&str>, &[u8])]| {
        let (kind, body) = multipart(parts);
        let mut all = vec![("content-type", kind.as_str())];
        all.extend(headers);
        client.try_send_bytes("POST", "/v1/files", &all, body).unwrap()
    };
    send(&[], &[("file", Some("a"), b"x"), ("odd", None, b"y")]).expect(422);
    send(&[], &[("file", Some("a"), b"x"), ("file", Some("a"), b"y")]).expect(422);
    let key = [("idempotency-key", "k")];
    send(&key, &[("file", Some("a"), b"x")]).expect(201);
    send(&key, &[("file", Some("a"), b"x")]).expect(201);
    send(&key, &[("file", Some("a"), b"other")]).expect(422);
    contents_come_to(&server, 1);
    let waiting = server
        .app
        .store
        .read_now(|tx| tx.int("SELECT count(*) FROM jobs WHERE kind = 'drop_content' AND state = 'ready'", &[]));
    assert_eq!(waiting.unwrap(), 0, "nothing is left for the hourly job");
    let only = client.get("/v1/files").data()[0]["id"].as_str().unwrap().to_string();
    assert_eq!(client.get(&format!("/v1/files/{only}/content")).expect(200).text, "x");
}

/// A request whose body stops halfway, after the first part has arrived.
fn stuck(server: &Server, client: &Client, sent: usize) -> TcpStream {
    let before = server.app.bodies.total();
    let stream = begun(server, client, sent);
    comes_to(server, before + sent as u64);
    stream
}

fn begun(server: &Office, client: &Client, sent: usize) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let head = format!(
        "POST /v1/products HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 2000000\r\n\r\n",
        client.key
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&vec![b' '; sent]).unwrap();
    stream
}

/// Waits until this many bytes of bodies are in progress.
fn comes_to(server: &Server, bytes: u64) {
    let started = Instant::now();
    while server.app.bodies.total() != bytes {
        let total = server.app.bodies.total();
        assert!(started.elapsed() < Duration::from_secs(60), "{total} bytes are under way instead of {bytes}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn limits_request_bodies_in_progress() {
    let server = Server::with(Db::sqlite(), |config| {
        config.bodies_per_account_mib = 1;
        config.bodies_mib = 2;
        config.body_timeout_seconds = 300;
    });
    let (client, other, third) = (server.client(), server.client(), server.client());
    let post = |client: &Client, size: usize| {
        let body = json!({"name": "x", "odd": "y".repeat(size)}).to_string();
        client.send("POST", "/v1/products", &[("prefer", "handling=lenient")], &body)
    };
    let first = stuck(&server, &client, 1_000_000);
    let refused = post(&client, 60_000).expect(429);
    assert!(refused.text.contains("bodies_per_account_mib") && refused.header("retry-after") == "1", "{refused:?}");
    post(&other, 60_000).expect(201);
    comes_to(&server, 1_000_000);
    let second = stuck(&server, &other, 1_000_000);
    assert_eq!(post(&other, 60_000).expect(429).code(), "too_many_requests");
    assert_eq!(post(&third, 120_000).expect(503).code(), "overloaded");
    drop(first);
    comes_to(&server, 1_000_000);
    post(&client, 60_000).expect(201);
    drop(second);
    comes_to(&server, 0);
    // A body that grows beyond the limit is rejected, and its memory is released.
    let mut large = begun(&server, &third, 1_900_000);
    large.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut answer = [0; 12];
    large.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 429");
    comes_to(&server, 0);
}

fn lists_that_are_read_as_a_whole_have_a_maximum(db: Db) {
    let server = Server::with(db, |config| config.rate_limit_per_minute = 0);
    let client = server.client();
    let rate = |n: i64| json!({"code": format!("R{n}"), "type": "reduced", "amount": 6});
    let known = client.get("/v1/tax-rates").expect(200).json()["meta"]["total"].as_i64().unwrap();
    for n in known..1000 {
        client.post("/v1/tax-rates", rate(n)).expect(201);
    }
    let refused = client.post("/v1/tax-rates", rate(1000)).expect(409);
    assert_eq!(refused.code(), "limit_reached");
    assert!(refused.text.contains("at most 1000 tax rates. Delete one first."), "{}", refused.text);
    server.client().post("/v1/tax-rates", rate(1)).expect(201);
}
