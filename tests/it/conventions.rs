//! The conventions that apply to all routes.

use std::collections::HashSet;
use std::time::Duration;

use engine::accounts::NewKey;
use engine::clock::Moment;
use serde_json::json;

use crate::on_both;
use crate::support::{Client, Db, Reply, Server, Shared};

fn posts(client: &Client, count: usize, key: &str) -> Vec<Reply> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|_| {
                scope.spawn(move || {
                    let own = client.clone();
                    own.send("POST", "/v1/products", &[("idempotency-key", key)], "{\"name\":\"once\"}")
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

on_both![
    fifty_posts_with_one_key_create_one_record,
    two_accounts_may_use_the_same_key,
    an_idempotency_key_compares_json_values,
    responses_are_stored_for_a_day_of_the_account_clock,
    many_writers_leave_no_gap_in_the_log,
    detects_tampering_with_the_log,
    events_that_show_the_same_share_their_data,
    every_change_has_its_event,
    keys_can_be_revoked_and_expire,
];

fn fifty_posts_with_one_key_create_one_record(server: Shared) {
    let client = server.client();
    let replies = posts(&client, 50, "the-one");
    let bodies: HashSet<&str> = replies.iter().map(|reply| reply.text.as_str()).collect();
    assert!(replies.iter().all(|reply| reply.status == 201), "{replies:?}");
    assert_eq!(bodies.len(), 1);
    assert_eq!(replies.iter().filter(|reply| reply.header("x-idempotent-replay").is_empty()).count(), 1);
    assert_eq!(client.get("/v1/products").json()["meta"]["total"], 1);
}

fn two_accounts_may_use_the_same_key(server: Shared) {
    let (one, other) = (server.client(), server.client());
    let (first, second) = (posts(&one, 1, "k"), posts(&other, 1, "k"));
    assert_ne!(first[0].id(), second[0].id());
    // A rejected request is not stored: the caller can correct and resend it.
    let bad = one.send("POST", "/v1/products", &[("idempotency-key", "m")], "{}").expect(422);
    assert_eq!(bad.faults(), ["name: required"]);
    one.send("POST", "/v1/products", &[("idempotency-key", "m")], "{\"name\":\"good\"}").expect(201);
}

fn an_idempotency_key_compares_json_values(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let send = |key: &str, body: &str| client.send("POST", "/v1/products", &[("idempotency-key", key)], body);
    let first = send("k", r#"{"name":"é","price":12.5,"active":true}"#).expect(201);
    for same in [
        r#"{"name":"é","price":12.5,"active":true}"#,
        r#" { "name" : "é" , "price" : 12.5 , "active" : true } "#,
        "{\r\n\t\"active\": true,\n\t\"price\": 12.50,\n\t\"name\": \"\\u00e9\"\n}\n",
        r#"{"price":125e-1,"active":true,"name":"é"}"#,
    ] {
        let again = send("k", same).expect(201);
        assert_eq!((again.header("x-idempotent-replay"), &again.text), ("true", &first.text), "{same}");
    }
    for other in [
        r#"{"name":"e","price":12.5,"active":true}"#,
        r#"{"name":"é ","price":12.5,"active":true}"#,
        r#"{"name":"é","price":12.51,"active":true}"#,
        r#"{"name":"é","price":"12.5","active":true}"#,
        r#"{"name":"é","price":12.5}"#,
        r#"{"name":"é","price":12.5,"active":true,"code":null}"#,
        "{}",
        "[]",
        "null",
    ] {
        assert_eq!(send("k", other).expect(422).code(), "idempotency_key_reused", "{other}");
    }
    assert_eq!(client.get("/v1/products").json()["meta"]["total"], 1);
    // No body equals an empty object.
    let task = client.post("/v1/tasks", json!({"title": "x"})).expect(201).id();
    for body in ["", "{}", " { } "] {
        let done = client
            .send("POST", &format!("/v1/tasks/{task}/complete"), &[("idempotency-key", "none")], body)
            .expect(200);
        assert_eq!(done.header("x-idempotent-replay"), if body.is_empty() { "" } else { "true" }, "{body}");
    }
}

fn responses_are_stored_for_a_day_of_the_account_clock(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let first = posts(&client, 1, "day").remove(0);
    let at = |text: &str| Moment::parse(text).unwrap().0;
    for (now, replayed) in [(at("2026-05-05T09:59:59Z"), true), (at("2026-05-05T10:00:01Z"), false)] {
        let account = client.account;
        server
            .app
            .store
            .write_now(0, move |tx| {
                tx.execute("UPDATE accounts SET test_clock = $1 WHERE id = $2", &[now.into(), account.into()])
            })
            .unwrap();
        let again = posts(&client, 1, "day").remove(0);
        assert_eq!(again.text == first.text, replayed);
    }
}

fn many_writers_leave_no_gap_in_the_log(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let before = server.last_seq(&client);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let own = client.clone();
            scope.spawn(move || {
                for _ in 0..20 {
                    let id = own.post("/v1/tasks", json!({"title": "t"})).expect(201).id();
                    own.act(&format!("/v1/tasks/{id}/complete")).expect(200);
                }
            });
        }
    });
    let account = client.account;
    let seqs: Vec<i64> = server
        .app
        .store
        .read_now(move |tx| {
            tx.all("SELECT seq FROM log WHERE account_id = $1 ORDER BY seq", &[account.into()], |row| row.int(0))
        })
        .unwrap();
    assert_eq!(seqs, (1..=before + 320).collect::<Vec<_>>());
    let verdict = server.app.store.read_now(move |tx| engine::log::verify(tx, account)).unwrap();
    assert!(matches!(verdict, engine::log::Verdict::Whole { rows, .. } if rows == before + 320), "{verdict:?}");
}

fn detects_tampering_with_the_log(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    for name in ["a", "b", "c"] {
        client.post("/v1/products", json!({"name": name})).expect(201);
    }
    let account = client.account;
    let last = server.last_seq(&client);
    for (harm, found) in [
        ("UPDATE log SET data = '{}' WHERE account_id = $1 AND seq = $2", last - 1),
        ("DELETE FROM log WHERE account_id = $1 AND seq = $2 - 1", last - 1),
    ] {
        server.app.store.write_now(0, move |tx| tx.execute(harm, &[account.into(), (last - 1).into()])).unwrap();
        let verdict = server.app.store.read_now(move |tx| engine::log::verify(tx, account)).unwrap();
        assert!(matches!(verdict, engine::log::Verdict::Broken { seq, .. } if seq == found), "{verdict:?}");
    }
}

/// A draft has two events that show the same invoice; the second entry refers to the first.
fn events_that_show_the_same_share_their_data(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let account = client.account;
    let row = json!({"name": "Work", "quantity": 1, "unit_price": 10, "vat_rate": "21"});
    let before = server.last_seq(&client);
    let draft = client.post("/v1/invoices", json!({"title": "Repairs", "rows": [row]})).expect(201);
    assert_eq!(server.events(&client, before), ["invoice.created", "document.draft"]);
    let sql = "SELECT data_of FROM log WHERE account_id = $1 AND seq > $2 ORDER BY seq";
    let read = move |tx: &mut store::Tx| tx.all(sql, &[account.into(), before.into()], |row| row.int(0));
    assert_eq!(server.app.store.read_now(read).unwrap(), [0, before + 1]);
    let changes = client.get(&format!("/v1/changes?after={before}")).expect(200).data();
    assert_eq!(changes[0]["data"]["id"], draft.id());
    assert_eq!(changes[0]["data"], changes[1]["data"]);
    let verdict = |harm: &'static str| {
        server.app.store.write_now(0, move |tx| tx.execute(harm, &[account.into(), (before + 2).into()])).unwrap();
        server.app.store.read_now(move |tx| engine::log::verify(tx, account)).unwrap()
    };
    let whole = verdict("UPDATE log SET data_of = data_of WHERE account_id = $1 AND seq = $2");
    assert!(matches!(whole, engine::log::Verdict::Whole { .. }), "{whole:?}");
    for harm in [
        "UPDATE log SET data = ' ' WHERE account_id = $1 AND seq = $2",
        "UPDATE log SET data = '', data_of = data_of - 1 WHERE account_id = $1 AND seq = $2",
        "UPDATE log SET data_of = 0 WHERE account_id = $1 AND seq = $2",
    ] {
        let found = verdict(harm);
        let is_it = |seq: i64| seq == before + 2;
        assert!(matches!(found, engine::log::Verdict::Broken { seq, .. } if is_it(seq)), "{harm}: {found:?}");
    }
}

fn every_change_has_its_event(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let before = server.last_seq(&client);
    let id = client.post("/v1/tasks", json!({"title": "t"})).id();
    let path = format!("/v1/tasks/{id}");
    client.patch(&path, json!({"title": "u"})).expect(200);
    client.patch(&path, json!({"title": "u"})).expect(200);
    client.act(&format!("{path}/complete")).expect(200);
    client.act(&format!("{path}/complete")).expect(200);
    client.act(&format!("{path}/reopen")).expect(200);
    client.post("/v1/tasks", json!({"title": "", "notes": "refused"})).expect(422);
    let last = client.delete(&path).expect(204);
    let names = ["task.created", "task.updated", "task.completed", "task.reopened", "task.deleted"];
    assert_eq!(server.events(&client, before), names);
    let account = client.account;
    let of_last = server
        .app
        .store
        .read_now(move |tx| {
            tx.first(
                "SELECT entity_id, request_id FROM log WHERE account_id = $1 ORDER BY seq DESC LIMIT 1",
                &[account.into()],
                |row| Ok::<_, store::Error>((row.text(0)?.to_string(), row.text(1)?.to_string())),
            )
        })
        .unwrap();
    assert_eq!(of_last, Some((id, last.header("x-request-id").to_string())));
}

fn keys_can_be_revoked_and_expire(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let scopes = vec!["products.read".to_string()];
    let now = server.now();
    let (old, _) =
        server.add_key(&client, NewKey { name: String::new(), scopes: scopes.clone(), expires_at: Some(now) });
    let expired = Client::new(server.address, old, client.account);
    assert_eq!(expired.get("/v1/products").expect(401).code(), "unauthorized");
    let later = now.plus_seconds(3600);
    let (fresh, id) = server.add_key(&client, NewKey { name: String::new(), scopes, expires_at: Some(later) });
    let fresh = Client::new(server.address, fresh, client.account);
    fresh.get("/v1/products").expect(200);
    kantoor::keys::operator::revoke(&server.app, &id).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(fresh.get("/v1/products").status, 401);
}

#[test]
fn reports_and_enforces_rate_limits() {
    let server = Server::with(Db::sqlite(), |config| config.rate_limit_per_minute = 5);
    let client = server.client();
    let replies: Vec<Reply> = (0..6).map(|_| client.get("/v1/products")).collect();
    assert_eq!(replies[0].header("ratelimit-policy"), "\"key\";q=5;w=60");
    assert!(replies[0].header("ratelimit").starts_with("\"key\";r=4;t="), "{:?}", replies[0]);
    let last = &replies[5];
    assert_eq!((last.status, last.code().as_str()), (429, "too_many_requests"));
    assert!(last.header("retry-after").parse::<u32>().unwrap() >= 1);
    server.with_scopes(&client, &["*"]).get("/v1/products").expect(200);
}

#[test]
fn errors_come_in_the_envelope_or_as_a_problem() {
    let server = Server::start(Db::sqlite());
    let client = server.client();
    let body = "{\"nmae\":\"x\",\"price\":\"1,5\",\"active\":\"yes\"}";
    let refused = client.send("POST", "/v1/products", &[("x-request-id", "my-own-id")], body).expect(422);
    assert_eq!(refused.header("x-request-id"), "my-own-id");
    insta::assert_json_snapshot!("error_envelope", refused.json());
    let problem =
        client.send("POST", "/v1/products", &[("accept", "application/problem+json"), ("x-request-id", "r")], body);
    assert_eq!(problem.header("content-type"), "application/problem+json");
    insta::assert_json_snapshot!("error_problem", problem.json());
    // A request id that could break a log line is replaced.
    let odd = client.send("GET", "/v1/products", &[("x-request-id", "two words")], "");
    assert_eq!(odd.header("x-request-id").len(), 36);
}

#[test]
fn heads_gzip_and_headers() {
    let server = Server::start(Db::sqlite());
    let client = server.client();
    for number in 0..25 {
        client.post("/v1/products", json!({"name": format!("Product {number}")})).expect(201);
    }
    let full = client.send("GET", "/v1/products", &[("accept-encoding", "identity")], "").expect(200);
    let head = client.send("HEAD", "/v1/products", &[("accept-encoding", "identity")], "").expect(200);
    assert_eq!((head.text.as_str(), head.header("content-length")), ("", full.text.len().to_string().as_str()));
    let small = client.send("GET", "/v1/products", &[("accept-encoding", "gzip")], "").expect(200);
    assert_eq!(small.text, full.text);
    assert_eq!(full.header("x-content-type-options"), "nosniff");
    assert_eq!(full.header("cache-control"), "private, no-cache");
    let health = client.send("GET", "/health", &[("authorization", "")], "").expect(200);
    assert_eq!(health.json(), json!({"status": "ok"}));
    let ready = client.send("GET", "/ready", &[("authorization", "")], "").expect(200);
    assert_eq!(ready.json()["checks"], json!({"database": "ok", "migrations": "ok", "disk": "ok", "loops": "ok"}));
    assert_eq!(client.send("POST", "/health", &[], "").expect(405).header("allow"), "GET, HEAD");
    assert_eq!(client.get("/nowhere").expect(404).code(), "not_found");
}

/// A header that repeats a long query for every page would be larger than proxies accept.
#[test]
fn a_long_query_is_not_repeated_in_the_headers() {
    let server = Server::start(Db::sqlite());
    let client = server.client();
    for number in 0..3 {
        client.post("/v1/products", json!({"name": format!("Product {number}")})).expect(201);
    }
    let list = |more: &str| client.get(&format!("/v1/products?per_page=1&page=2{more}")).expect(200);
    let link = list("&q=Product&x=1").header("link").to_string();
    assert!(link.contains("rel=\"next\"") && link.contains("rel=\"prev\"") && link.contains("q=Product"), "{link}");
    let long = list(&format!("&nothing={}", "x".repeat(60_000)));
    assert_eq!((long.header("link"), &long.json()["meta"]["pages"]), ("", &json!(3)));
    let size: usize = long.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    assert!(size < 1024, "{size} bytes of headers");
}

#[test]
fn ready_reports_failed_checks() {
    let server = Server::with(Db::sqlite(), |config| config.min_free_disk_mib = u64::MAX / (1024 * 1024));
    let client = server.client();
    let reply = client.get("/ready").expect(503);
    assert_eq!(reply.json()["status"], "not ready");
    assert_eq!(reply.json()["checks"], json!({"database": "ok", "migrations": "ok", "disk": "failed", "loops": "ok"}));
}

/// Two nodes on one PostgreSQL, one account: one record per key, one chain.
#[test]
fn two_nodes_act_as_one() {
    let Some(db) = Db::postgres() else { return };
    let mut config = db.config();
    config.database_writers = 1;
    let first = Server::start(db);
    let client = first.client();
    let before = first.last_seq(&client);
    let second = first.another_node(config);
    let other = Client::new(second, client.key.clone(), client.account);
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..40)
            .map(|number| {
                let node = if number % 2 == 0 { &client } else { &other };
                scope.spawn(move || {
                    let key = format!("key-{}", number / 4);
                    node.send("POST", "/v1/products", &[("idempotency-key", &key)], "{\"name\":\"n\"}")
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(replies.iter().all(|reply| reply.status == 201), "{replies:?}");
    let ids: HashSet<String> = replies.iter().map(Reply::id).collect();
    assert_eq!(ids.len(), 10, "four requests share a key");
    assert_eq!(other.get("/v1/products").json()["meta"]["total"], 10);
    let account = client.account;
    let verdict = first.app.store.read_now(move |tx| engine::log::verify(tx, account)).unwrap();
    assert!(matches!(verdict, engine::log::Verdict::Whole { rows, .. } if rows == before + 10), "{verdict:?}");
}
