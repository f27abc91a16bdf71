//! The bare program on PostgreSQL: a pool of connections, and one transaction per write request.

use std::collections::HashMap;
use std::sync::Mutex;

use bytes::BytesMut;
use serde_json::Value as Any;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, NoTls, Row, Statement};

use super::model::{
    CLIENT, Document, FINALIZE, INVOICE, NUMBER, PAID, PAYMENT, Payment, ROW, Record, Table, Value, number,
};
use super::statement;
use crate::product::Moment;

/// Slightly more connections than Kantoor has for reading and writing together.
const CONNECTIONS: usize = 16;

pub struct Pool {
    idle: Mutex<Vec<Connection>>,
    free: Semaphore,
}

/// A connection with its prepared statements.
struct Connection {
    client: Client,
    prepared: HashMap<String, Statement>,
}

impl Pool {
    pub async fn open(url: &str) -> Pool {
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
            tokio::spawn(connection);
            idle.push(Connection { client, prepared: HashMap::new() });
        }
        Pool { idle: Mutex::new(idle), free: Semaphore::new(CONNECTIONS) }
    }

    pub async fn list(&self, account: i64, table: &'static Table) -> (Vec<Record>, i64) {
        let mut lease = self.take().await;
        let conn = lease.conn();
        let records = conn.all(&table.sql.list, &[Value::Int(account)]).await;
        (records, conn.int(&table.sql.total, &[Value::Int(account)]).await)
    }

    pub async fn invoice(&self, account: i64, id: String) -> Document {
        self.take().await.conn().document(account, &id).await
    }

    pub async fn create_client(&self, account: i64, mut record: Record) -> Record {
        let mut lease = self.take().await;
        let conn = lease.conn();
        conn.control("BEGIN").await;
        let last = conn.int(NUMBER, &[Value::Int(-account)]).await;
        record.set(&CLIENT, "debtor_number", Value::Text(last.to_string()));
        conn.insert(account, &CLIENT, std::slice::from_ref(&record)).await;
        conn.control("COMMIT").await;
        record
    }

    pub async fn create_invoice(&self, account: i64, mut document: Document, is_final: bool) -> Document {
        let mut lease = self.take().await;
        let conn = lease.conn();
        conn.control("BEGIN").await;
        let client = document.record.get(&INVOICE, "client_id").clone();
        let client = conn.all(&CLIENT.sql.get, &[Value::Int(account), client]).await.remove(0);
        document.address_to(&client);
        if is_final {
            let last = conn.int(NUMBER, &[Value::Int(account)]).await;
            document.record.set(&INVOICE, "number", Value::Text(number(last)));
        }
        conn.insert(account, &INVOICE, std::slice::from_ref(&document.record)).await;
        conn.insert(account, &ROW, &document.rows).await;
        conn.control("COMMIT").await;
        document
    }

    pub async fn finalize(&self, account: i64, id: String, now: Moment) -> Document {
        let mut lease = self.take().await;
        let conn = lease.conn();
        conn.control("BEGIN").await;
        let last = conn.int(NUMBER, &[Value::Int(account)]).await;
        let values = [Value::Text(number(last)), Value::Int(now.0), Value::Int(account), Value::Text(id.clone())];
        conn.query(FINALIZE, &values).await;
        let document = conn.document(account, &id).await;
        conn.control("COMMIT").await;
        document
    }

    pub async fn pay(&self, account: i64, payment: Payment) -> Any {
        let mut lease = self.take().await;
        let conn = lease.conn();
        let Payment { id, invoice, amount, at } = payment;
        let (account, amount, at) = (Value::Int(account), Value::Int(amount), Value::Int(at.0));
        let text = |text: &str| Value::Text(text.to_string());
        conn.control("BEGIN").await;
        conn.query(PAYMENT, &[account.clone(), text(&id), text(&invoice), amount.clone(), at.clone()]).await;
        let paid = conn.query(PAID, &[amount, at, account, text(&invoice)]).await;
        conn.control("COMMIT").await;
        Payment::of(&invoice, paid[0].get(0), paid[0].get(1))
    }

    async fn take(&self) -> Lease<'_> {
        let permit = self.free.acquire().await.unwrap();
        let conn = self.idle.lock().unwrap().pop();
        Lease { pool: self, conn, _permit: permit }
    }
}

/// A connection from the pool. Its permit is released after the connection is returned.
struct Lease<'p> {
    pool: &'p Pool,
    conn: Option<Connection>,
    _permit: SemaphorePermit<'p>,
}

impl Lease<'_> {
    fn conn(&mut self) -> &mut Connection {
        self.conn.as_mut().expect("a permit is a connection")
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.pool.idle.lock().unwrap().extend(self.conn.take());
    }
}

impl Connection {
    async fn document(&mut self, account: i64, id: &str) -> Document {
        let key = [Value::Int(account), Value::Text(id.to_string())];
        let record = self.all(&INVOICE.sql.get, &key).await.remove(0);
        Document { record, rows: self.all(&ROW.sql.of_invoice, &key).await }
    }

    async fn insert(&mut self, account: i64, table: &Table, records: &[Record]) {
        let values =
            records.iter().flat_map(|record| [Value::Int(account)].into_iter().chain(record.0.iter().cloned()));
        self.query(table.sql.insert(records.len()), &values.collect::<Vec<_>>()).await;
    }

    async fn int(&mut self, sql: &str, values: &[Value]) -> i64 {
        self.query(sql, values).await[0].get(0)
    }

    async fn all(&mut self, sql: &str, values: &[Value]) -> Vec<Record> {
        self.query(sql, values).await.iter().map(record).collect()
    }

    async fn query(&mut self, sql: &str, values: &[Value]) -> Vec<Row> {
        statement();
        if !self.prepared.contains_key(sql) {
            let prepared = self.client.prepare(sql).await.unwrap();
            self.prepared.insert(sql.to_string(), prepared);
        }
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        self.client.query(&self.prepared[sql], &values).await.unwrap()
    }

    async fn control(&mut self, word: &str) {
        statement();
        self.client.batch_execute(word).await.unwrap();
    }
}

fn record(row: &Row) -> Record {
    let values = row.columns().iter().enumerate().map(|(place, column)| match *column.type_() {
        Type::INT8 => Value::Int(row.get(place)),
        _ => Value::Text(row.get(place)),
    });
    Record(values.collect())
}

impl ToSql for Value {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Value::Text(text) => text.to_sql(kind, out),
            Value::Int(number) => number.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        [Type::INT8, Type::TEXT].contains(kind)
    }

    to_sql_checked!();
}
