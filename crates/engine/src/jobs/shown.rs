//! The list of jobs for the operator.

use store::{Tx, Value};

use crate::clock::Moment;
use crate::error::Result;

/// A job as an operator sees it.
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
    /// When it is due, or ended.
    pub run_at: Moment,
    /// Tries so far.
    pub attempts: i64,
    /// How many of the last tries ended with the process.
    pub lost: i64,
    /// What went wrong.
    pub last_error: String,
}

/// The newest jobs in these states, a thousand at most.
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

/// Puts a job that failed or is parked back in the queue; answers whether there was one. Its tries still count: a provider
/// may have heard of it.
pub fn retry(tx: &mut Tx, id: &str, now: Moment) -> Result<bool> {
    let sql = "UPDATE jobs SET state = 'ready', run_at = $1, lost = 0, last_error = '', max_attempts = attempts + 5
               WHERE id = $2 AND state IN ('failed', 'parked')";
    Ok(tx.execute(sql, &[now.0.into(), id.into()])? == 1)
}

/// How many are parked.
pub fn parked(tx: &mut Tx) -> Result<i64> {
    Ok(tx.int("SELECT count(*) FROM jobs WHERE state = 'parked'", &[])?)
}
