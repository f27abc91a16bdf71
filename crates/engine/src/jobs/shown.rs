//! The list of jobs for the operator.

use store::{Tx, Value};

use super::queue::{CLOSED, Lane};
use crate::clock::Moment;
use crate::error::Result;

/// A job in the list for the operator.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its id.
    pub id: String,
    /// The id of its account; empty for the whole server.
    pub account: String,
    /// The kind of job.
    pub kind: String,
    /// `ready`, `running`, `done`, `failed` or `parked`.
    pub state: String,
    /// When it is due, or when it ended.
    pub run_at: Moment,
    /// Number of attempts.
    pub attempts: i64,
    /// Number of consecutive attempts in which the process died.
    pub lost: i64,
    /// The last error.
    pub last_error: String,
}

/// Returns the newest jobs in these states, at most a thousand.
pub fn list(tx: &mut Tx, states: &[&'static str]) -> Result<Vec<Shown>> {
    let places: Vec<String> = (1..=states.len()).map(|n| format!("${n}")).collect();
    let values: Vec<Value> = states.iter().map(|state| (*state).into()).collect();
    let sql = format!(
        "SELECT jobs.id, coalesce(accounts.uid, ''), kind, state, run_at, attempts, lost, last_error
         FROM jobs LEFT JOIN accounts ON accounts.id = jobs.account_id WHERE state IN ({})
         ORDER BY run_at DESC, jobs.id DESC LIMIT 1000",
        places.join(", ")
    );
    tx.all(&sql, &values, |row| {
        let text = |column: usize| row.text(column).map(str::to_string);
        Ok(Shown {
            id: text(0)?,
            account: text(1)?,
            kind: text(2)?,
            state: text(3)?,
            run_at: Moment(row.int(4)?),
            attempts: row.int(5)?,
            lost: row.int(6)?,
            last_error: text(7)?,
        })
    })
}

/// Requeues a failed or parked job; returns whether there was one. Its attempts still count: a provider may have
/// received the request.
pub fn retry(tx: &mut Tx, id: &str, now: Moment) -> Result<bool> {
    let sql = "UPDATE jobs SET state = 'ready', run_at = $1, lost = 0, last_error = '', max_attempts = attempts + 5
               WHERE id = $2 AND state IN ('failed', 'parked')";
    Ok(tx.execute(sql, &[now.0.into(), id.into()])? == 1)
}

/// Returns the number of parked jobs. Those of closed accounts need no attention.
pub fn parked(tx: &mut Tx) -> Result<i64> {
    let sql = "SELECT count(*) FROM jobs WHERE state = 'parked' AND last_error <> $1";
    Ok(tx.int(sql, &[CLOSED.into()])?)
}

/// What the operator should know about the queue.
pub struct QueueState {
    /// Jobs that are not tried any more.
    pub given_up: i64,
    /// When the oldest queued job was due; 0 if there is none.
    pub oldest_due: Moment,
    /// When the newest job was created.
    pub newest: Moment,
}

/// Returns the state of the queue.
pub fn state(tx: &mut Tx) -> Result<QueueState> {
    let given_up = "SELECT count(*) FROM jobs WHERE state = 'failed' OR (state = 'parked' AND last_error <> $1)";
    Ok(QueueState {
        given_up: tx.int(given_up, &[CLOSED.into()])?,
        oldest_due: Moment(tx.int("SELECT coalesce(min(run_at), 0) FROM jobs WHERE state = 'ready'", &[])?),
        newest: Moment(tx.int("SELECT coalesce(max(created_at), 0) FROM jobs", &[])?),
    })
}

/// Returns the number of queued jobs of a kind, in its lane.
pub fn queued(tx: &mut Tx, lane: Lane, kind: &str) -> Result<i64> {
    let index = tx.dialect().indexed_by("jobs_ready");
    let sql = format!("SELECT count(*) FROM jobs{index} WHERE lane = $1 AND state = 'ready' AND kind = $2");
    Ok(tx.int(&sql, &[lane.name().into(), kind.into()])?)
}
