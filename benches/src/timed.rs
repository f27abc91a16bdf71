//! Timers: the number of timed events emitted per second, among few records with running timers and among many.

use std::path::Path;
use std::time::Instant;

use rusqlite::Connection;
use serde_json::json;

use crate::load::Sample;
use crate::report::{Figure, Report, thousands};
use crate::server::{Data, Server};

/// Tickets whose event is due.
const DUE: i64 = 1_000;
const FEW: i64 = 1_000;
const MANY_TIMERS: i64 = 1_000_000;

/// Measures and reports both.
pub fn tell(report: &mut Report, binary: &Path, folder: &Path) {
    eprintln!("Measuring timed events.");
    let few = among(binary, &folder.join("timed-few"), FEW);
    let many = among(binary, &folder.join("timed-many"), MANY_TIMERS);
    let what = format!(
        "Timed events emitted among {} records with running timers; limit: among {}",
        thousands(MANY_TIMERS),
        thousands(FEW)
    );
    report.compare(&what, &many, &few, Some(0.5));
}

/// Returns the events emitted per second, while `waiting` other tickets have running timers.
fn among(binary: &Path, folder: &Path, waiting: i64) -> Figure {
    let data = Data::with_test_clock(binary, folder, "2026-01-01T09:00:00Z");
    let server = Server::kantoor(binary, &data);
    server.post("/v1/tickets", &json!({"subject": "It is cold", "client_email": "bench@bench.example"}));
    server.stop();
    copy_ticket(&data.database(), "due", DUE - 1, 0);
    copy_ticket(&data.database(), "later", waiting, 1000);
    let server = Server::kantoor(binary, &data);
    let started = Instant::now();
    server.post("/v1/test-clock/advance", &json!({"to": "2026-01-05T09:00:00Z"}));
    let seconds = started.elapsed().as_secs_f64();
    server.stop();
    let conn = Connection::open(data.database()).unwrap();
    let told: i64 =
        conn.query_row("SELECT count(*) FROM log WHERE type = 'ticket.stale'", [], |row| row.get(0)).unwrap();
    assert_eq!(told, DUE, "every ticket that is due has its event");
    Figure::of(&[Sample { rate: told as f64 / seconds, micros: Vec::new() }])
}

/// Copies the ticket and its timer; the copies are `days` younger.
fn copy_ticket(db: &Path, name: &str, count: i64, days: i64) {
    let conn = Connection::open(db).unwrap();
    conn.pragma_update(None, "synchronous", "off").unwrap();
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)";
    let columns =
        "created_at, updated_at, version, subject, status, priority, client_name, client_email, client_id, project_id,
        source, closed_at";
    let tickets = format!(
        "{numbers} INSERT INTO tickets (account_id, id, number, {columns})
         SELECT account_id, ?2 || i, ?2 || i, {columns} FROM n, (SELECT * FROM tickets ORDER BY created_at LIMIT 1)"
    );
    conn.execute(&tickets, (count, name)).unwrap();
    let timers = format!(
        "{numbers} INSERT INTO timers (account_id, cause, record_id, since)
         SELECT account_id, cause, ?2 || i, since + ?3 * 86400000
         FROM n, (SELECT * FROM timers WHERE cause = 'ticket.stale' ORDER BY since LIMIT 1)"
    );
    conn.execute(&timers, (count, name, days)).unwrap();
}
