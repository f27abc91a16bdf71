//! A database that accepts bytes and does not respond, and nodes that are paused or disconnected.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use engine::open::open_store;
use serde_json::json;
use store::{Error, Migration, Store, Tx};

use crate::proxy::Proxy;
use crate::support::{Db, Server};

const TABLE: Migration =
    Migration { number: 1, name: "t", sql: "CREATE TABLE t (id BIGINT PRIMARY KEY, word TEXT NOT NULL) STRICT;" };

fn put(tx: &mut Tx, id: i64, word: &str) -> Result<(), Error> {
    let sql = "INSERT INTO t (id, word) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET word = excluded.word";
    tx.execute(sql, &[id.into(), word.into()]).map(drop)
}

fn words(store: &Store) -> Vec<String> {
    let read =
        |tx: &mut Tx| tx.all("SELECT word FROM t ORDER BY id", &[], |row| Ok::<_, Error>(row.text(0)?.to_string()));
    store.read_now(read).unwrap()
}

/// A proxy to the database that can be silenced, and its URL.
fn way(db: &Db) -> (Proxy, String) {
    let (before, rest) = db.url.split_once("127.0.0.1:").unwrap();
    let (port, name) = rest.split_once('/').unwrap();
    let proxy = Proxy::to(port.parse().unwrap());
    let url = format!("{before}127.0.0.1:{}/{name}", proxy.port);
    (proxy, url)
}

#[track_caller]
fn until(mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(60), "it does not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn reports_an_unresponsive_database_and_recovers() {
    let Some(db) = Db::postgres() else { return };
    let (proxy, url) = way(&db);
    let server = Server::with(db, |config| {
        config.database_url = url;
        config.database_timeout_seconds = 1;
    });
    let client = server.client();
    client.get("/v1/products").expect(200);
    client.post("/v1/products", json!({"name": "before"})).expect(201);
    client.get("/ready").expect(200);
    proxy.silence(true);
    // Each of these would wait forever, or until the client gives up after a minute.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(client.get("/v1/products").expect(503).code(), "unavailable"));
        }
        scope.spawn(|| client.post("/v1/products", json!({"name": "meanwhile"})).expect(503));
        scope.spawn(|| until(|| client.get("/ready").status == 503));
    });
    client.get("/v1/products").expect(503);
    proxy.silence(false);
    until(|| client.get("/ready").status == 200);
    until(|| client.get("/v1/products").status == 200);
    client.post("/v1/products", json!({"name": "after"})).expect(201);
    let list = client.get("/v1/products?sort=created_at&order=asc").expect(200).data();
    let names: Vec<_> = list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["before", "after"]);
}

#[test]
fn a_write_to_an_unresponsive_database_waits_one_timeout() {
    let Some(db) = Db::postgres().map(Db::emptied) else { return };
    let (proxy, url) = way(&db);
    let mut config = db.config();
    (config.database_url, config.database_timeout_seconds) = (url, 2);
    let store = open_store(&config).unwrap();
    store.migrate(&[TABLE]).unwrap();
    store.write_now(0, |tx| put(tx, 1, "before")).unwrap();
    proxy.silence(true);
    let started = Instant::now();
    let done = store.write_now(0, |tx| put(tx, 2, "lost"));
    let took = started.elapsed();
    assert!(matches!(done, Err(Error::Disconnected(_))), "{done:?}");
    // Two seconds, and two of grace; another connection would take five more.
    assert!(took < Duration::from_secs(6), "{took:?}");
    proxy.silence(false);
    until(|| store.write_now(0, |tx| put(tx, 3, "back")).is_ok());
    assert_eq!(words(&store), ["before", "back"]);
}

#[test]
fn urgent_writes_do_not_wait_for_others() {
    let Some(db) = Db::postgres().map(Db::emptied) else { return };
    let mut config = db.config();
    config.database_writers = 1;
    let store = open_store(&config).unwrap();
    store.migrate(&[TABLE]).unwrap();
    let (tell, busy) = channel();
    let (free, wait) = channel::<()>();
    let (own, ends) = (store.clone(), Mutex::new((tell, wait)));
    let slow = std::thread::spawn(move || {
        own.write_now(1, move |tx| {
            let (tell, wait) = &*ends.lock().unwrap();
            tell.send(()).unwrap();
            let _ = wait.recv_timeout(Duration::from_secs(2));
            put(tx, 1, "slow")
        })
    });
    busy.recv().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for beat in 2..5 {
        runtime.block_on(store.write_urgently(0, move |tx| put(tx, beat, "beat"))).unwrap();
    }
    assert_eq!(words(&store), ["beat", "beat", "beat"], "the other write is not done yet");
    free.send(()).unwrap();
    slow.join().unwrap().unwrap();
}

/// Calls `stop` in the middle of a transaction that locks a row, which another node then needs. Returns the result of
/// the first transaction, and how often it ran.
fn held_by(one: &Store, other: &Store, stop: impl Fn() + Send + 'static) -> (Result<(), Error>, u32) {
    other.write_now(0, |tx| put(tx, 1, "free")).unwrap();
    let (tell, held) = channel();
    let tries = Arc::new(AtomicU32::new(0));
    let own = tries.clone();
    let stop = Mutex::new((tell, stop));
    let first = one.clone();
    let paused = std::thread::spawn(move || {
        first.write_now(0, move |tx| {
            tx.hold("t", 1)?;
            // Holding is not waited for; this is.
            tx.int("SELECT count(*) FROM t", &[])?;
            if own.fetch_add(1, Ordering::SeqCst) == 0 {
                let (tell, stop) = &*stop.lock().unwrap();
                tell.send(()).unwrap();
                stop();
            }
            put(tx, 2, "from the first")
        })
    });
    held.recv().unwrap();
    // The lock is released before others give up.
    other
        .write_now(0, |tx| {
            tx.hold("t", 1)?;
            put(tx, 1, "from the other")
        })
        .unwrap();
    drop(held);
    (paused.join().unwrap(), tries.load(Ordering::SeqCst))
}

#[test]
fn a_paused_node_releases_its_locks_and_retries() {
    let Some(db) = Db::postgres().map(Db::emptied) else { return };
    let (one, other) = (open_store(&db.config()).unwrap(), open_store(&db.config()).unwrap());
    other.migrate(&[TABLE]).unwrap();
    // To the database, a stopped process sends nothing.
    let waits = other.clone();
    let paused = move || until(|| words(&waits).contains(&"from the other".to_string()));
    assert_eq!(held_by(&one, &other, paused), (Ok(()), 2));
    assert_eq!(words(&other), ["from the other", "from the first"]);
}

#[test]
fn a_disconnected_node_releases_its_locks() {
    let Some(db) = Db::postgres().map(Db::emptied) else { return };
    let (proxy, url) = way(&db);
    let mut config = db.config();
    (config.database_url, config.database_timeout_seconds) = (url, 1);
    let (one, other) = (open_store(&config).unwrap(), open_store(&db.config()).unwrap());
    other.migrate(&[TABLE]).unwrap();
    let own = proxy.clone();
    let (done, tries) = held_by(&one, &other, move || own.silence(true));
    assert!(matches!(done, Err(Error::Disconnected(_))), "{done:?}");
    assert_eq!((tries, words(&other)), (1, vec!["from the other".to_string()]));
    proxy.silence(false);
    until(|| one.write_now(0, |tx| put(tx, 3, "back")).is_ok());
    assert_eq!(words(&one), ["from the other", "back"]);
}

#[test]
fn skips_an_unresponsive_server() {
    let Some(db) = Db::postgres().map(Db::emptied) else { return };
    let (proxy, _) = way(&db);
    let port = db.url.split_once("127.0.0.1:").and_then(|(_, rest)| rest.split_once('/')).unwrap().0;
    let both = format!("127.0.0.1:{},127.0.0.1:{port}", proxy.port);
    let mut config = db.config();
    config.database_url = format!("{}&connect_timeout=1", db.url.replace(&format!("127.0.0.1:{port}"), &both));
    proxy.silence(true);
    let store = open_store(&config).unwrap();
    store.migrate(&[TABLE]).unwrap();
    // The server that responded is tried first from then on.
    proxy.silence(false);
    proxy.cut();
    store.write_now(0, |tx| put(tx, 1, "there")).unwrap();
    assert_eq!(words(&store), ["there"]);
}
