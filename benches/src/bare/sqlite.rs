//! The bare program on SQLite: reads on the calling thread, and one writer with group commit.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, ToSql, params_from_iter};
use serde_json::Value as Any;
use tokio::sync::oneshot;

use super::model::{
    CLIENT, Document, FINALIZE, INVOICE, NUMBER, PAID, PAYMENT, Payment, ROW, Record, Table, Value, number,
};
use super::statement;
use crate::limit;
use crate::product::Moment;

/// As in crates/store/src/writer.rs.
const BATCH: usize = 256;

pub struct Sqlite {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    queue: Sender<Job>,
}

/// A write; its response is sent after the commit.
type Job = Box<dyn FnOnce(&Connection) -> Answer + Send>;
type Answer = Box<dyn FnOnce()>;

impl Sqlite {
    pub fn open(path: &Path) -> Sqlite {
        let writing = limit::open_to_write(path).unwrap();
        writing.set_prepared_statement_cache_capacity(64);
        let (queue, jobs) = channel();
        std::thread::spawn(move || write(&writing, &jobs));
        Sqlite { path: path.to_path_buf(), idle: Mutex::new(Vec::new()), queue }
    }

    pub async fn list(&self, account: i64, table: &'static Table) -> (Vec<Record>, i64) {
        self.read(|conn| {
            let records = all(conn, &table.sql.list, &[Value::Int(account)]);
            (records, int(conn, &table.sql.total, &[Value::Int(account)]))
        })
    }

    pub async fn invoice(&self, account: i64, id: String) -> Document {
        self.read(|conn| document(conn, account, &id))
    }

    pub async fn create_client(&self, account: i64, mut record: Record) -> Record {
        self.write(move |conn| {
            // The debtor number comes from the same counter as invoice numbers, with one more statement, as in Kantoor.
            let last = int(conn, NUMBER, &[Value::Int(-account)]);
            record.set(&CLIENT, "debtor_number", Value::Text(last.to_string()));
            insert(conn, account, &CLIENT, &[record.clone()]);
            record
        })
        .await
    }

    pub async fn create_invoice(&self, account: i64, mut document: Document, is_final: bool) -> Document {
        self.write(move |conn| {
            let client = document.record.get(&INVOICE, "client_id").clone();
            let client = all(conn, &CLIENT.sql.get, &[Value::Int(account), client]).remove(0);
            document.address_to(&client);
            if is_final {
                let last = int(conn, NUMBER, &[Value::Int(account)]);
                document.record.set(&INVOICE, "number", Value::Text(number(last)));
            }
            insert(conn, account, &INVOICE, std::slice::from_ref(&document.record));
            insert(conn, account, &ROW, &document.rows);
            document
        })
        .await
    }

    pub async fn finalize(&self, account: i64, id: String, now: Moment) -> Document {
        self.write(move |conn| {
            let last = int(conn, NUMBER, &[Value::Int(account)]);
            let values = [Value::Text(number(last)), Value::Int(now.0), Value::Int(account), Value::Text(id.clone())];
            execute(conn, FINALIZE, &values);
            document(conn, account, &id)
        })
        .await
    }

    pub async fn pay(&self, account: i64, payment: Payment) -> Any {
        self.write(move |conn| {
            let Payment { id, invoice, amount, at } = payment;
            let (account, amount, at) = (Value::Int(account), Value::Int(amount), Value::Int(at.0));
            let text = |text: &str| Value::Text(text.to_string());
            execute(conn, PAYMENT, &[account.clone(), text(&id), text(&invoice), amount.clone(), at.clone()]);
            statement();
            let mut paid = conn.prepare_cached(PAID).unwrap();
            let values = [amount, at, account, text(&invoice)];
            let (paid, total) =
                paid.query_row(params_from_iter(&values), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            Payment::of(&invoice, paid, total)
        })
        .await
    }

    fn read<T>(&self, work: impl FnOnce(&Connection) -> T) -> T {
        let idle = self.idle.lock().unwrap().pop();
        let conn = idle.unwrap_or_else(|| limit::open(&self.path).unwrap());
        let found = work(&conn);
        self.idle.lock().unwrap().push(conn);
        found
    }

    async fn write<T: Send + 'static>(&self, work: impl FnOnce(&Connection) -> T + Send + 'static) -> T {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |conn| {
            let done = work(conn);
            // The caller disconnects when a measurement ends.
            Box::new(move || drop(reply.send(done)))
        });
        self.queue.send(job).expect("the writer runs");
        answer.await.expect("the writer answers")
    }
}

/// Writes all queued writes in one commit, and responds once it is on disk.
fn write(conn: &Connection, jobs: &Receiver<Job>) {
    let control = |word: &str| execute(conn, word, &[]);
    while let Ok(first) = jobs.recv() {
        control("BEGIN IMMEDIATE");
        let mut answers = vec![first(conn)];
        while answers.len() < BATCH
            && let Ok(job) = jobs.try_recv()
        {
            answers.push(job(conn));
        }
        control("COMMIT");
        answers.into_iter().for_each(|answer| answer());
    }
}

fn document(conn: &Connection, account: i64, id: &str) -> Document {
    let key = [Value::Int(account), Value::Text(id.to_string())];
    let record = all(conn, &INVOICE.sql.get, &key).remove(0);
    Document { record, rows: all(conn, &ROW.sql.of_invoice, &key) }
}

fn insert(conn: &Connection, account: i64, table: &Table, records: &[Record]) {
    let values = records.iter().flat_map(|record| [Value::Int(account)].into_iter().chain(record.0.iter().cloned()));
    execute(conn, table.sql.insert(records.len()), &values.collect::<Vec<_>>());
}

fn execute(conn: &Connection, sql: &str, values: &[Value]) {
    statement();
    conn.prepare_cached(sql).unwrap().execute(params_from_iter(values)).unwrap();
}

fn int(conn: &Connection, sql: &str, values: &[Value]) -> i64 {
    statement();
    conn.prepare_cached(sql).unwrap().query_row(params_from_iter(values), |row| row.get(0)).unwrap()
}

fn all(conn: &Connection, sql: &str, values: &[Value]) -> Vec<Record> {
    statement();
    let mut found = conn.prepare_cached(sql).unwrap();
    let columns = found.column_count();
    let found = found.query_map(params_from_iter(values), |row| record(row, columns)).unwrap();
    found.map(Result::unwrap).collect()
}

fn record(row: &Row, columns: usize) -> rusqlite::Result<Record> {
    let values = (0..columns).map(|place| match row.get_ref(place)? {
        ValueRef::Integer(number) => Ok(Value::Int(number)),
        other => Ok(Value::Text(other.as_str()?.to_string())),
    });
    Ok(Record(values.collect::<rusqlite::Result<Vec<_>>>()?))
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Int(number) => ValueRef::Integer(*number),
        }))
    }
}
