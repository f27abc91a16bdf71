//! Rows for the measurements: the same in Kantoor's database and in that of the limit.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use crate::client;
use crate::invoice;
use crate::limit;
use crate::product::{self, Input, Moment, Product};
use crate::rows::{created, id, scatter};

const FIRST: [&str; 8] = ["Website", "Zakelijk", "Premium", "Maandelijks", "Mobiel", "Extra", "Basis", "Jaarlijks"];
const SECOND: [&str; 8] = ["hosting", "onderhoud", "rapport", "advies", "ontwerp", "domein", "licentie", "training"];

/// Rows per transaction.
const PART: i64 = 50_000;

/// Fills the database of a stopped Kantoor, for the account with this public id: the same number of products, clients
/// and invoices. The clients and the invoices are searched, and are pending for the index; the products are not
/// searched.
pub fn kantoor(db: &Path, uid: &str, rows: i64) {
    let conn = open(db);
    let sql = "SELECT id FROM accounts WHERE uid = ?1";
    let account: i64 = conn.query_row(sql, [uid], |row| row.get(0)).expect("the account is there");
    let (clients, invoices) = (client::Seed::new(), invoice::Seed::start(&conn));
    fill(&conn, account, rows, |tx, n| {
        clients.insert(tx, account, n, rows);
        invoices.insert(tx, account, n, rows);
    });
    client::Seed::count(&conn, account, rows);
    invoices.finish(&conn, account, rows);
    close(conn, db);
}

/// Fills the database of a stopped Kantoor, for the account at this place, with clients and with invoices that are numbered from
/// `first` on. A tenth of the invoices is overdue, a thousandth are credit invoices.
pub fn account(db: &Path, place: i64, invoices: i64, clients: i64, first: i64) {
    let conn = open(db);
    let sql = "SELECT id FROM accounts ORDER BY id LIMIT 1 OFFSET ?1";
    let account: i64 = conn.query_row(sql, [place], |row| row.get(0)).expect("the account is there");
    let (of_clients, of_invoices) = (client::Seed::new(), invoice::Seed::start(&conn));
    let tx = conn.unchecked_transaction().unwrap();
    (0..clients).for_each(|n| of_clients.insert(&tx, account, n, clients));
    (first..first + invoices).for_each(|n| of_invoices.insert(&tx, account, n, invoices));
    let unpaid =
        "UPDATE invoices SET payment_status = 'overdue', paid_amount = 0, paid_at = 0, open_amount = total_incl_vat
                  WHERE account_id = ?1 AND rowid % 10 = 3";
    tx.execute(unpaid, [account]).unwrap();
    tx.execute("UPDATE invoices SET is_credit = 1 WHERE account_id = ?1 AND rowid % 1000 = 7", [account]).unwrap();
    tx.commit().unwrap();
    client::Seed::count(&conn, account, clients);
    of_invoices.finish(&conn, account, invoices);
    close(conn, db);
}

/// Creates and fills the database of the limit.
pub fn limit(db: &Path, rows: i64) {
    let conn = open(db);
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
    conn.execute_batch(product::SCHEMA).unwrap();
    fill(&conn, limit::ACCOUNT, rows, |_, _| {});
    close(conn, db);
}

fn row(n: i64) -> Product {
    let chance = scatter(n);
    let (first, second) = (FIRST[(chance % 8) as usize], SECOND[(chance / 8 % 8) as usize]);
    let input = Input {
        name: format!("{first} {second} {n}"),
        code: format!("H-{n}"),
        // Never an integer: the limit would show 12 as 12.0, and responses are compared.
        price: (n % 500) as f64 + 0.5,
        vat_rate: "21".to_string(),
        unit: "month".to_string(),
        active: n % 10 != 0,
    };
    Product::new(input, id(n), Moment(created(n)))
}

/// Inserts products, and with each what `more` inserts.
fn fill(conn: &Connection, account: i64, rows: i64, more: impl Fn(&Connection, i64)) {
    for part in (0..rows).step_by(PART as usize) {
        let tx = conn.unchecked_transaction().unwrap();
        for n in part..rows.min(part + PART) {
            row(n).insert(&tx, account).unwrap();
            more(&tx, n);
        }
        tx.commit().unwrap();
        if rows > PART {
            eprintln!("Seeding: {} of {rows} rows.", rows.min(part + PART));
        }
    }
    product::count(conn, account, product::KIND, rows).unwrap();
}

/// Waits until the server on this database has indexed all texts, except the few that it leaves pending.
pub fn wait_for_index(db: &Path) {
    wait(db, "SELECT count(*) FROM search_texts WHERE pending = 1", |waiting| waiting < 256);
}

/// Waits until it has created this many PDFs.
pub fn wait_for_pdfs(db: &Path, wanted: i64) {
    wait(db, "SELECT count(*) FROM document_pdfs", |made| made >= wanted);
}

/// Waits until no job is due or running.
pub fn wait_for_jobs(db: &Path) {
    let sql = "SELECT count(*) FROM jobs WHERE lane = 'printing' AND state IN ('ready', 'running')";
    wait(db, sql, |left| left == 0);
}

fn wait(db: &Path, count: &str, done: impl Fn(i64) -> bool) {
    let conn = Connection::open(db).unwrap();
    while !done(conn.query_row(count, [], |row| row.get(0)).unwrap()) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Merges the server's WAL into the file.
pub fn checkpoint(db: &Path) {
    close(open(db), db);
}

/// Opens the database for fast inserts; a crash only costs another run.
fn open(db: &Path) -> Connection {
    let conn = Connection::open(db).unwrap();
    conn.pragma_update(None, "synchronous", "off").unwrap();
    conn.pragma_update(None, "cache_size", -400_000).unwrap();
    conn.pragma_update(None, "temp_store", "memory").unwrap();
    conn
}

/// Merges everything into one file and syncs it; otherwise the system would write it back during the first
/// measurements.
fn close(conn: Connection, db: &Path) {
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    conn.close().map_err(|(_, error)| error).unwrap();
    File::open(db).and_then(|file| file.sync_all()).unwrap();
}
