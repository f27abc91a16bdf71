//! The change feed and the event stream.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kantoor::webhooks;
use serde_json::{Value, json};
use web::scripted::Reply;

use super::{deliveries, endpoint, product, receiver, sending, until};
use crate::on_both;
use crate::server::Binary;
use crate::support::{Client, Db, Server, Shared};

on_both![
    the_change_feed_has_everything_in_order,
    the_stream_resumes_where_it_ended,
    a_brief_stream_has_no_records,
    a_stream_ends_with_its_key,
    streams_end_when_the_server_stops,
    an_idle_stream_sends_heartbeats,
    limits_the_streams_of_a_node,
    an_account_leaves_streams_to_others,
    a_slow_reader_costs_no_memory,
    large_events_are_read_a_few_at_a_time,
];

fn the_change_feed_has_everything_in_order(db: Db) {
    let is_postgres = !db.url.is_empty();
    let config = db.config();
    let server = Server::start(db);
    let client = server.client();
    // On a shared database, another process writes too.
    let other = if is_postgres { server.another_node(config) } else { server.address };
    let other = Client::new(other, client.key.clone(), client.account);
    let done = AtomicBool::new(false);
    let seen: Vec<Value> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..6)
            .map(|writer| {
                let own = if writer % 2 == 0 { client.clone() } else { other.clone() };
                scope.spawn(move || (0..40).for_each(|n| drop(product(&own, &format!("{writer}-{n}")))))
            })
            .collect();
        let reader = scope.spawn(|| {
            let (mut seen, mut after) = (Vec::new(), 0);
            loop {
                let last_look = done.load(Ordering::SeqCst);
                let page = other.get(&format!("/v1/changes?after={after}&limit=7")).expect(200).json();
                let changes = page["data"].as_array().unwrap().clone();
                for change in &changes {
                    after += 1;
                    assert_eq!(change["seq"], after, "a gap");
                }
                assert_eq!(page["meta"]["last_seq"], after);
                seen.extend(changes);
                if last_look && page["meta"]["has_more"] == false {
                    return seen;
                }
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::SeqCst);
        reader.join().unwrap()
    });
    assert_eq!(seen.len() as i64, server.last_seq(&client));
    let made: HashSet<String> = seen
        .iter()
        .filter(|one| one["type"] == "product.created")
        .map(|one| one["entity_id"].as_str().unwrap().to_string())
        .collect();
    assert_eq!(made.len(), 240);
    let last = seen.last().unwrap();
    assert_eq!(
        last.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["type", "timestamp", "data", "seq", "entity_type", "entity_id", "actor", "actor_type", "actor_name"]
    );
    assert_eq!((&last["entity_type"], &last["data"]["id"]), (&json!("product"), &last["entity_id"]));

    let page = client.get("/v1/changes?x=1").expect(200).json();
    assert_eq!(page["data"].as_array().unwrap().len(), 100);
    assert_eq!(page["meta"], json!({"last_seq": 100, "has_more": true, "ignored_params": ["x"]}));
    let end = client.get("/v1/changes?after=999999999").expect(200).json();
    assert_eq!((&end["data"], &end["meta"]), (&json!([]), &json!({"last_seq": 999999999, "has_more": false})));
    for bad in [
        "after=-1",
        "day=soon",
        "day=2026-13-01",
        "after=x",
        "after=",
        "after=1.5",
        "after=99999999999999999999",
        "limit=0",
        "limit=1001",
        "limit=x",
        "after=%2B1",
    ] {
        let faults = client.get(&format!("/v1/changes?{bad}")).expect(422).faults();
        assert!(faults[0].starts_with(bad.split('=').next().unwrap()), "{bad}: {faults:?}");
    }
}

fn the_stream_resumes_where_it_ended(db: Db) {
    let server = Server::with(db, |config| config.streams_per_key = 2);
    let client = server.client();
    let mut stream = Stream::open(&client, "", None);
    let id = product(&client, "één\nregel");
    let first = stream.next();
    assert_eq!((first.id, first.event.as_str()), (server.last_seq(&client), "product.created"));
    assert_eq!(
        (&first.data["data"]["id"], &first.data["seq"], &first.data["entity_type"]),
        (&json!(id), &json!(first.id), &json!("product"))
    );
    drop(stream);
    product(&client, "b");
    product(&client, "c");
    let mut stream = Stream::open(&client, "?after=0", Some(first.id));
    assert_eq!((stream.next().id, stream.next().id), (first.id + 1, first.id + 2), "the header takes precedence");
    let mut from_start = Stream::open(&client, "?after=0", None);
    for seq in 1..=first.id + 2 {
        assert_eq!(from_start.next().id, seq);
    }
    let refused = client.get("/v1/events/stream");
    assert_eq!(
        (refused.status, refused.code().as_str(), refused.header("retry-after")),
        (429, "too_many_requests", "15")
    );
    drop(from_start);
    until("the seat of the one that left", || {
        let reply = Stream::try_open(&client, "", None);
        reply.ok()
    });
    assert_eq!(
        client.send("GET", "/v1/events/stream", &[("last-event-id", "x")], "").expect(400).code(),
        "invalid_header"
    );
    assert_eq!(client.get("/v1/events/stream?after=x").expect(422).faults(), ["after: wrong_type"]);
    let head = client.send("HEAD", "/v1/events/stream", &[], "");
    assert_eq!((head.status, head.header("content-type")), (200, "text/event-stream"));
    assert_eq!(server.with_scopes(&client, &["products.read"]).get("/v1/events/stream").status, 403);
}

fn a_brief_stream_has_no_records(server: Shared) {
    let client = server.client();
    let some = server.with_scopes(&client, &["audit.read", "tasks.read"]);
    let mut all = Stream::open(&client, "?data=0", None);
    let mut tasks = Stream::open(&some, "?data=0", None);
    let mut whole = Stream::open(&some, "", None);
    let id = product(&client, "a");
    client.post("/v1/tasks", json!({"title": "Call"})).expect(201);
    let first = all.next();
    assert_eq!((first.event.as_str(), &first.data["data"]), ("product.created", &json!({})));
    assert_eq!((&first.data["entity_type"], &first.data["entity_id"]), (&json!("product"), &json!(id)));
    assert_eq!(all.next().event, "task.created");
    let task = tasks.next();
    assert_eq!((task.id, task.event.as_str()), (first.id + 1, "task.created"), "products are not for this caller");
    let task = whole.next();
    assert_eq!((task.event.as_str(), &task.data["data"]["title"]), ("task.created", &json!("Call")));
    // A browser has one handler for messages without a name.
    let mut unnamed = Stream::open(&client, &format!("?data=0&named=0&after={}", first.id - 1), None);
    let lines = unnamed.lines();
    assert!(!lines.iter().any(|line| line.starts_with("event:")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("\"type\":\"product.created\"")), "{lines:?}");
    assert_eq!(client.get("/v1/events/stream?data=x").expect(422).faults(), ["data: invalid_choice"]);
    assert_eq!(client.get("/v1/events/stream?named=x").expect(422).faults(), ["named: invalid_choice"]);
}

fn a_stream_ends_with_its_key(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let new = engine::accounts::NewKey {
        name: "x".into(),
        scopes: vec!["audit.read".into(), "products.read".into()],
        expires_at: None,
    };
    let (secret, id) = server.add_key(&client, new);
    let follower = Client::new(server.address, secret, client.account);
    let mut stream = Stream::open(&follower, "", None);
    product(&client, "a");
    assert_eq!(stream.next().event, "product.created");
    kantoor::keys::operator::revoke(&server.app, &id).unwrap();
    std::thread::sleep(Duration::from_millis(1200));
    product(&client, "b");
    // Within a second, it may still have seen that its key was revoked.
    assert!(!stream.rest().iter().any(|line| line.contains("product.created")));
}

fn streams_end_when_the_server_stops(db: Db) {
    let mut binary = Binary::start(&db, "", &[]);
    let mut stream = Stream::open(&binary.client, "", None);
    product(&binary.client, "a");
    stream.next();
    let started = Instant::now();
    binary.signal(rustix::process::Signal::TERM);
    assert!(stream.rest().is_empty());
    assert!(binary.child.wait().unwrap().success(), "{}", binary.said());
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

fn an_idle_stream_sends_heartbeats(db: Db) {
    let server = Server::with(db, |config| config.stream_heartbeat_seconds = 1);
    let client = server.client();
    let mut stream = Stream::open(&client, "", None);
    assert_eq!((stream.lines(), stream.lines()), (vec![":".to_string()], vec![":".to_string()]));
    product(&client, "a");
    let next = std::iter::repeat_with(|| stream.lines()).find(|lines| lines[0] != ":").unwrap();
    assert_eq!(next[1], "event: product.created", "between two heartbeats");
}

fn limits_the_streams_of_a_node(db: Db) {
    let server = Server::with(db, |config| config.max_streams = 2);
    let clients = [server.client(), server.client(), server.client()];
    let first = Stream::open(&clients[0], "", None);
    let _second = Stream::open(&clients[1], "", None);
    assert_eq!(server.metric("kantoor_streams_open"), 2);
    let refused = clients[2].get("/v1/events/stream");
    assert_eq!((refused.status, refused.code().as_str(), refused.header("retry-after")), (503, "overloaded", "15"));
    drop(first);
    let mut third = until("a seat", || Stream::try_open(&clients[2], "", None).ok());
    product(&clients[2], "a");
    assert_eq!(third.next().event, "product.created");
    assert_eq!(server.metric("kantoor_streams_open"), 2);
}

fn an_account_leaves_streams_to_others(db: Db) {
    let server = Server::with(db, |config| config.max_streams = 4);
    let (client, other) = (server.client(), server.client());
    // Its other keys are of no use.
    let second = server.with_scopes(&client, &["*"]);
    let own = [Stream::open(&client, "", None), Stream::open(&second, "", None)];
    for key in [&client, &second] {
        let refused = key.get("/v1/events/stream");
        assert_eq!((refused.code().as_str(), refused.header("retry-after")), ("too_many_requests", "15"));
        assert!(refused.text.contains("Your account has 2 open streams"), "{refused:?}");
    }
    let mut stream = Stream::open(&other, "", None);
    product(&other, "a");
    assert_eq!(stream.next().event, "product.created");
    drop(own);
    until("a seat", || Stream::try_open(&second, "", None).ok());
}

/// 32 MB of events exceed the socket buffers on both sides.
fn a_slow_reader_costs_no_memory(db: Db) {
    let server = Server::start(db);
    let (client, other) = (server.client(), server.client());
    let before = server.last_seq(&client);
    fill(&server, &client, 4000, 8 * 1024);
    let mut slow: Vec<Stream> = (0..3).map(|_| Stream::open(&client, "?after=0", None)).collect();
    let mut quick = Stream::open(&client, "", None);
    let mut elsewhere = Stream::open(&other, "", None);
    // Until the server has filled the buffers between them.
    let read = until("a rest", || {
        let read = server.metric("kantoor_stream_events_total");
        std::thread::sleep(Duration::from_millis(700));
        (server.metric("kantoor_stream_events_total") == read).then_some(read)
    });
    assert!(read > 0 && read < 3 * 2000, "{read} of 12000 events were read ahead of the client");
    for own in [&client, &other] {
        product(own, "a");
    }
    assert_eq!((quick.next().event.as_str(), elsewhere.next().event.as_str()), ("product.created", "product.created"));
    for stream in &mut slow {
        for seq in 1..=before + 4001 {
            assert_eq!(stream.next().id, seq);
        }
    }
}

fn large_events_are_read_a_few_at_a_time(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let before = server.last_seq(&client);
    fill(&server, &client, 20, 1024 * 1024);
    let page = client.get(&format!("/v1/changes?after={before}&limit=1000")).expect(200);
    assert!(page.text.len() < 10 * 1024 * 1024, "{}", page.text.len());
    let page = page.json();
    let count = page["data"].as_array().unwrap().len() as i64;
    assert_eq!((count, &page["meta"]), (7, &json!({"last_seq": before + count, "has_more": true})));
    // An event that is larger than the limit of a read.
    fill(&server, &client, 1, 9 * 1024 * 1024);
    let (mut after, mut pages) = (before, 0);
    while after < before + 21 {
        let next = client.get(&format!("/v1/changes?after={after}&limit=1000")).expect(200).json()["meta"]["last_seq"]
            .as_i64()
            .unwrap();
        assert!(next > after);
        (after, pages) = (next, pages + 1);
    }
    assert_eq!(pages, 4);
    let mut stream = Stream::open(&client, &format!("?after={before}"), None);
    for seq in before + 1..=before + 21 {
        assert_eq!(stream.next().id, seq);
    }
}

/// Inserts log lines of a given size.
fn fill(server: &Server, client: &Client, count: i64, size: usize) {
    let (account, last) = (client.account, server.last_seq(client));
    let data = format!("{{\"x\":\"{}\"}}", "x".repeat(size));
    let sql = "WITH RECURSIVE numbers(n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < $1)
               INSERT INTO log (account_id, seq, at, type, entity_type, entity_id, actor, request_id, data, hash)
               SELECT account_id, seq + n, at, 'test.filled', 'test', 'x', actor, request_id, $2, hash
               FROM numbers, log WHERE account_id = $3 AND seq = $4";
    let write = move |tx: &mut store::Tx| {
        tx.execute(sql, &[count.into(), (&data).into(), account.into(), last.into()]).map(drop)
    };
    server.app.store.write_now(account, write).unwrap();
}

/// Two nodes send from one database: nothing twice, and each node's stream has the events of the other.
#[test]
fn two_nodes_share_the_work() {
    let Some(db) = Db::postgres() else { return };
    let receiver = receiver(|_| Reply::new(200).after(Duration::from_millis(5)));
    let mut config = db.config();
    config.allow_private_addresses = "127.0.0.1".to_string();
    let server = sending(db);
    let client = server.client();
    let second = kantoor::opening::open(config.clone()).unwrap();
    server.block_on(async { webhooks::start(&second) });
    let other = Client::new(server.another_node(config), client.key.clone(), client.account);
    let (path, _) = endpoint(&client, &receiver.url("/"), &["product.*"]);
    let mut stream = Stream::open(&other, "", None);
    let started = Instant::now();
    product(&client, "first");
    assert_eq!(stream.next().event, "product.created");
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    for n in 0..60 {
        product(if n % 2 == 0 { &client } else { &other }, &n.to_string());
    }
    for seq in 1..=60 {
        assert_eq!(stream.next().id, server.last_seq(&client) - 60 + seq);
    }
    until("all", || deliveries(&client, &path, "status=delivered&per_page=100").get(60).cloned());
    assert_eq!(receiver.received().len(), 61, "none twice");
}

/// A stream of events, read line by line.
struct Stream(BufReader<Box<dyn std::io::Read>>);

struct Event {
    id: i64,
    event: String,
    data: Value,
}

impl Stream {
    #[track_caller]
    fn open(client: &Client, query: &str, last: Option<i64>) -> Stream {
        Stream::try_open(client, query, last).unwrap_or_else(|status| panic!("{status}"))
    }

    fn try_open(client: &Client, query: &str, last: Option<i64>) -> Result<Stream, u16> {
        let mut request = client
            .agent
            .get(format!("{}/v1/events/stream{query}", client.base))
            .header("authorization", format!("Bearer {}", client.key));
        if let Some(last) = last {
            request = request.header("last-event-id", last.to_string());
        }
        let response = request.call().unwrap();
        if response.status() != 200 {
            return Err(response.status().as_u16());
        }
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert!(!response.headers().contains_key("content-encoding"), "compression would delay events");
        let mut stream = Stream(BufReader::new(Box::new(response.into_body().into_reader())));
        assert_eq!(stream.lines(), [": Kantoor", "retry: 2000"]);
        Ok(stream)
    }

    /// Returns lines up to an empty one, or to the end.
    fn lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            if line.trim_end().is_empty() {
                return lines;
            }
            lines.push(line.trim_end().to_string());
        }
    }

    fn next(&mut self) -> Event {
        let lines = self.lines();
        let part = |name: &str, place: usize| {
            lines[place].strip_prefix(name).unwrap_or_else(|| panic!("{lines:?}")).to_string()
        };
        assert_eq!(lines.len(), 3, "{lines:?}");
        Event {
            id: part("id: ", 0).parse().unwrap(),
            event: part("event: ", 1),
            data: serde_json::from_str(&part("data: ", 2)).unwrap(),
        }
    }

    /// Returns everything until it ends.
    fn rest(&mut self) -> Vec<String> {
        self.lines()
    }
}
