//! Recovery of stranded jobs: those whose worker died, and those that a wrong clock scheduled far in the future.

use store::Tx;

use super::queue::{FOREVER, FURTHEST};
use crate::clock::Moment;
use crate::error::Result;
use crate::leases::{self, Comeback};

/// A job whose worker died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Its id.
    pub id: String,
    /// The type of job.
    pub kind: String,
    /// How many times in a row its worker died.
    pub times: i64,
    /// Whether it is parked now.
    pub parked: bool,
}

/// Whether a worker died.
pub fn any_lost(tx: &mut Tx, now: Moment) -> Result<bool> {
    let sql = "SELECT 1 FROM jobs WHERE state = 'running' AND lease_until <= $1 LIMIT 1";
    Ok(tx.first(sql, &[now.0.into()], |_| Ok::<_, store::Error>(()))?.is_some())
}

/// Requeues the jobs of workers that died. The first time, a job is due immediately. After that it waits, longer each
/// time and each job for a different time, so that jobs that happened to run at the same time are separated from the
/// one that crashes the process. A job that was started too often is parked, except for a repeating one, which the
/// server cannot do without.
pub fn take_back(tx: &mut Tx, now: Moment) -> Result<Vec<Lost>> {
    let find = format!(
        "SELECT id, kind, lost, run_at, max_attempts FROM jobs WHERE state = 'running' AND lease_until <= $1
         ORDER BY lease_until LIMIT 100{}",
        tx.dialect().skip_locked()
    );
    let found = tx.all(&find, &[now.0.into()], |row| {
        let (id, kind) = (row.text(0)?.to_string(), row.text(1)?.to_string());
        let lost = Lost { id, kind, times: row.int(2)? + 1, parked: false };
        Ok::<_, store::Error>((lost, Moment(row.int(3)?), row.int(4)?))
    })?;
    let mut all = Vec::new();
    for (mut lost, run_at, max_attempts) in found {
        let comeback = match max_attempts {
            FOREVER => leases::always_after_deaths(&lost.id, lost.times),
            _ => leases::after_deaths(&lost.id, lost.times),
        };
        lost.parked = comeback == Comeback::Never;
        let times = lost.times;
        let (state, run_at, why) = match comeback {
            Comeback::Never => ("parked", now, format!("it was started {times} times in a row and never completed")),
            Comeback::AtOnce => ("ready", run_at, "the worker was lost".to_string()),
            Comeback::After(seconds) => {
                ("ready", now.plus_seconds(seconds), format!("the worker was lost {times} times in a row"))
            }
        };
        // A worker that died does not count as a failed attempt.
        let sql =
            "UPDATE jobs SET state = $1, run_at = $2, last_error = $3, lost = $4, max_attempts = $5 WHERE id = $6";
        let more = max_attempts.saturating_add(1);
        tx.execute(
            sql,
            &[state.into(), run_at.0.into(), why.into(), lost.times.into(), more.into(), (&lost.id).into()],
        )?;
        all.push(lost);
    }
    Ok(all)
}

/// Requeues the jobs of a node that shuts down. This does not count as a lost worker.
pub fn give_back(tx: &mut Tx, node: &str) -> Result<u64> {
    let sql = "UPDATE jobs SET state = 'ready', last_error = 'the worker was stopped',
                      max_attempts = CASE WHEN max_attempts < $1 THEN max_attempts + 1 ELSE max_attempts END
               WHERE state = 'running' AND node = $2";
    Ok(tx.execute(sql, &[FOREVER.into(), node.into()])?)
}

/// Whether a job is scheduled further ahead than a correct clock allows.
pub fn any_ahead(tx: &mut Tx, now: Moment) -> Result<bool> {
    // In the order of an index, so that PostgreSQL uses it however few rows it expects.
    let sql = "SELECT 1 FROM jobs WHERE state = 'ready' AND run_at > $1 ORDER BY state DESC, run_at DESC LIMIT 1";
    Ok(tx.first(sql, &[now.plus_seconds(FURTHEST).0.into()], |_| Ok::<_, store::Error>(()))?.is_some())
}

/// Reschedules up to five hundred jobs after the clock jumped forward and back: repeating jobs are due now, the others in
/// an hour. Returns how many there were.
pub fn pull_back(tx: &mut Tx, now: Moment) -> Result<u64> {
    let sql = format!(
        "UPDATE jobs SET run_at = CASE WHEN max_attempts = $1 THEN CAST($2 AS BIGINT) ELSE CAST($3 AS BIGINT) END
         WHERE id IN
         (SELECT id FROM jobs WHERE state = 'ready' AND run_at > $4 ORDER BY state DESC, run_at DESC LIMIT 500{})",
        tx.dialect().skip_locked()
    );
    let (in_an_hour, furthest) = (now.plus_seconds(3600), now.plus_seconds(FURTHEST));
    Ok(tx.execute(&sql, &[FOREVER.into(), now.0.into(), in_an_hour.0.into(), furthest.0.into()])?)
}
