//! The reference for the benchmark of documents: clients, invoices with rows, and payments, with only axum and a database.
//! One program serves both databases: `model.rs` has the tables, `shown.rs` the JSON, `sqlite.rs` and `postgres.rs` the
//! storage.

mod model;
mod postgres;
mod shown;
mod sqlite;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use serde_json::{Value as Any, json};
use tokio::net::TcpListener;

use crate::product::{Moment, uuid7};
pub use model::schema;
use model::{CLIENT, Document, INVOICE, Input, Payment, Record, Table};
use shown::{List, Shown};

/// As in src/cli/serve.rs on two cores.
const THREADS: usize = 4;

/// The number of executed statements, for `/metrics`.
static STATEMENTS: AtomicU64 = AtomicU64::new(0);

fn statement() {
    STATEMENTS.fetch_add(1, Ordering::Relaxed);
}

/// Runs `bare PORT DATABASE` until the process is killed. The database is a file, or the URL of a PostgreSQL server.
pub fn serve(args: &[String]) {
    let [port, database] = args else { panic!("bare takes a port and a database") };
    let port: u16 = port.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build().unwrap();
    runtime.block_on(async {
        let db = match database.starts_with("postgres://") {
            true => Db::Postgres(postgres::Pool::open(database).await),
            false => Db::Sqlite(sqlite::Sqlite::open(database.as_ref())),
        };
        let shared = Arc::new(Shared { db, last: AtomicU64::new(0) });
        let router = Router::new()
            .route("/health", get(|| async { "ok" }))
            .route("/metrics", get(metrics))
            .route("/v1/clients", get(clients).post(create_client))
            .route("/v1/invoices", get(invoices).post(create_invoice))
            .route("/v1/invoices/{id}", get(invoice))
            .route("/v1/invoices/{id}/finalize", post(finalize))
            .route("/v1/invoices/{id}/payments", post(pay))
            .with_state(shared);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap());
        axum::serve(listener, router).await.unwrap();
    });
}

/// The key of the account with this number.
pub fn key(account: i64) -> String {
    format!("kt_{account:036}")
}

fn account(headers: &HeaderMap) -> i64 {
    let key = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    key.rsplit('_').next().and_then(|number| number.parse().ok()).expect("a key of an account")
}

struct Shared {
    db: Db,
    /// Makes ids differ within a millisecond.
    last: AtomicU64,
}

impl Shared {
    fn id(&self, now: Moment) -> String {
        uuid7(now.0, self.last.fetch_add(1, Ordering::Relaxed))
    }
}

enum Db {
    Sqlite(sqlite::Sqlite),
    Postgres(postgres::Pool),
}

/// Calls the same function on either database.
macro_rules! ask {
    ($shared:expr, $call:ident($($value:expr),*)) => {
        match &$shared.db {
            Db::Sqlite(db) => db.$call($($value),*).await,
            Db::Postgres(db) => db.$call($($value),*).await,
        }
    };
}

type Here = State<Arc<Shared>>;

async fn metrics() -> String {
    format!("kantoor_store_statements_total {}\n", STATEMENTS.load(Ordering::Relaxed))
}

async fn clients(State(shared): Here, headers: HeaderMap) -> impl IntoResponse {
    list(&shared, &headers, &CLIENT).await
}

async fn invoices(State(shared): Here, headers: HeaderMap) -> impl IntoResponse {
    list(&shared, &headers, &INVOICE).await
}

async fn list(shared: &Shared, headers: &HeaderMap, table: &'static Table) -> Json<List> {
    let (records, total) = ask!(shared, list(account(headers), table));
    Json(List { table, records, total })
}

async fn create_client(State(shared): Here, headers: HeaderMap, Json(sent): Json<Any>) -> impl IntoResponse {
    let now = Moment::now();
    let record = Record::client(shared.id(now), now, &sent);
    let record = ask!(shared, create_client(account(&headers), record));
    (StatusCode::CREATED, Json(Shown { table: &CLIENT, document: Document { record, rows: Vec::new() } }))
}

async fn create_invoice(State(shared): Here, headers: HeaderMap, Json(sent): Json<Input>) -> impl IntoResponse {
    let now = Moment::now();
    let document = Document::invoice(shared.id(now), now, &sent);
    let document = ask!(shared, create_invoice(account(&headers), document, sent.is_final()));
    (StatusCode::CREATED, Json(Shown { table: &INVOICE, document }))
}

async fn invoice(State(shared): Here, headers: HeaderMap, Path(id): Path<String>) -> impl IntoResponse {
    let document = ask!(shared, invoice(account(&headers), id));
    Json(Shown { table: &INVOICE, document })
}

async fn finalize(State(shared): Here, headers: HeaderMap, Path(id): Path<String>) -> impl IntoResponse {
    let document = ask!(shared, finalize(account(&headers), id, Moment::now()));
    Json(Shown { table: &INVOICE, document })
}

async fn pay(
    State(shared): Here,
    headers: HeaderMap,
    Path(id): Path<String>,
    Json(sent): Json<Any>,
) -> impl IntoResponse {
    let now = Moment::now();
    let payment = Payment::new(shared.id(now), now, id, &sent);
    let invoice = ask!(shared, pay(account(&headers), payment.clone()));
    let data = json!({"invoice": invoice, "payment": payment.shown()});
    (StatusCode::CREATED, Json(json!({"data": data, "meta": {}})))
}
