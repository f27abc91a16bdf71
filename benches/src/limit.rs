//! The limit: the same reads and writes with only axum and SQLite. No keys, events, search or idempotency. The
//! difference from Kantoor is the cost of those.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use axum::extract::{Path as InPath, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::product::{self, GET, Input, KIND, LIST, Moment, Product, TOTAL};

/// The one account in the table.
pub const ACCOUNT: i64 = 1;

const PER_PAGE: i64 = 25;
/// As in crates/store/src/writer.rs.
const BATCH: usize = 256;
/// As in src/cli/serve.rs on two cores.
const THREADS: usize = 4;

/// `limit --port P --db FILE --mode group|single`, until the process is stopped.
pub fn serve(args: &[String]) {
    let value = |name: &str| {
        let place = args.iter().position(|arg| arg == name).unwrap_or_else(|| panic!("limit needs {name}"));
        args[place + 1].as_str()
    };
    let port: u16 = value("--port").parse().unwrap();
    let largest = match value("--mode") {
        "group" => BATCH,
        "single" => 1,
        odd => panic!("--mode is group or single, not {odd}"),
    };
    let path = PathBuf::from(value("--db"));
    let (queue, jobs) = channel();
    let writing = open_to_write(&path).unwrap();
    std::thread::spawn(move || write(&writing, &jobs, largest));
    let shared = Arc::new(Shared { path, idle: Mutex::new(Vec::new()), queue, last: AtomicU64::new(0) });
    let router = Router::new()
        .route("/health", get(|| async { "ok" }))
        .route("/v1/products", get(list).post(create))
        .route("/v1/products/{id}", get(get_one))
        .with_state(shared);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap());
        axum::serve(listener, router).await.unwrap();
    });
}

/// As in crates/store/src/sqlite.rs.
pub fn open(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open(path)?;
    // Without this, SQLite plans a statement with ORDER BY anew at each execution, since it looks at the values.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.pragma_update(None, "cache_size", -2_000)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    Ok(conn)
}

/// The same for the write connection.
pub fn open_to_write(path: &Path) -> rusqlite::Result<Connection> {
    let conn = open(path)?;
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    assert_eq!(mode, "wal", "the journal of {}", path.display());
    conn.pragma_update(None, "synchronous", "full")?;
    conn.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    Ok(conn)
}

struct Shared {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    queue: Sender<Job>,
    /// Distinguishes ids within a millisecond.
    last: AtomicU64,
}

impl Shared {
    /// Reads on the calling thread, as Kantoor does: the fastest way for cached rows.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> T {
        let idle = self.idle.lock().unwrap().pop();
        let conn = idle.unwrap_or_else(|| open(&self.path).unwrap());
        let found = work(&conn).unwrap();
        self.idle.lock().unwrap().push(conn);
        found
    }
}

/// The envelope of every response.
#[derive(Serialize)]
struct Answer<D, M> {
    data: D,
    meta: M,
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct Pages {
    page: i64,
    per_page: i64,
    total: i64,
    pages: i64,
}

async fn get_one(
    State(shared): State<Arc<Shared>>,
    InPath(id): InPath<String>,
) -> Result<Json<Answer<Product, Nothing>>, StatusCode> {
    let found = shared.read(|conn| {
        let mut statement = conn.prepare_cached(GET)?;
        statement.query_row(params![ACCOUNT, id], Product::from_row).optional()
    });
    let data = found.ok_or(StatusCode::NOT_FOUND)?;
    Ok(Json(Answer { data, meta: Nothing {} }))
}

async fn list(State(shared): State<Arc<Shared>>) -> Json<Answer<Vec<Product>, Pages>> {
    let answer = shared.read(|conn| {
        let mut statement = conn.prepare_cached(LIST)?;
        let rows = statement.query_map(params![ACCOUNT, PER_PAGE, 0], Product::from_row)?;
        let data = rows.collect::<rusqlite::Result<Vec<Product>>>()?;
        let mut statement = conn.prepare_cached(TOTAL)?;
        let total: i64 = statement.query_row(params![ACCOUNT, KIND], |row| row.get(0))?;
        let pages = (total + PER_PAGE - 1) / PER_PAGE;
        Ok(Answer { data, meta: Pages { page: 1, per_page: PER_PAGE, total, pages } })
    });
    Json(answer)
}

async fn create(
    State(shared): State<Arc<Shared>>,
    Json(input): Json<Input>,
) -> (StatusCode, Json<Answer<Product, Nothing>>) {
    let now = Moment::now();
    let id = product::uuid7(now.0, shared.last.fetch_add(1, Ordering::Relaxed));
    let (reply, answer) = oneshot::channel();
    shared.queue.send(Job { product: Product::new(input, id, now), reply }).expect("the writer runs");
    let data = answer.await.expect("the writer answers");
    (StatusCode::CREATED, Json(Answer { data, meta: Nothing {} }))
}

/// A record to write, which is returned to its sender.
struct Job {
    product: Product,
    reply: oneshot::Sender<Product>,
}

/// Writes what is queued, at most `largest` per commit, and responds when it is on disk.
fn write(conn: &Connection, jobs: &Receiver<Job>, largest: usize) {
    let control = |word: &str| conn.prepare_cached(word).unwrap().execute([]).unwrap();
    while let Ok(first) = jobs.recv() {
        control("BEGIN IMMEDIATE");
        let mut done = Vec::new();
        let mut next = Some(first);
        while let Some(job) = next.take() {
            job.product.insert(conn, ACCOUNT).unwrap();
            product::count(conn, ACCOUNT, KIND, 1).unwrap();
            done.push(job);
            if done.len() < largest {
                next = jobs.try_recv().ok();
            }
        }
        control("COMMIT");
        for Job { product, reply } in done {
            // The client disconnects when a measurement ends.
            let _ = reply.send(product);
        }
    }
}
