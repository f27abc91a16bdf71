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
    /// What was to be done.
    pub kind: String,
    /// How often in a row that happened.
    pub times: i64,
    /// Whether it is parked now.
    pub parked: bool,
}

/// Whether a worker died.
pub fn any_lost(tx: &mut Tx, now: Moment) -> Result<bool> {
    let sql = "SELECT 1 FROM jobs WHERE state = 'running' AND lease_until <= $1 LIMIT 1";
    Ok(tx.first(sql, &[now.0.into()], |_| Ok::<_, store::Error>(()))?.is_some())
}

/// Puts the jobs of workers that died back in the queue. The first time a job comes back at once. After that it waits, longer
/// each time and not as long as others: when several ran beside the one that ends the process, they part. What was begun too
/// often is parked. A job that comes back for ever is not: without it the server does not do its work.
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
        // A worker that died is none of the tries that a job may fail.
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

/// Puts back the jobs that a node has under way when it is shut down. That does not count as a lost worker.
pub fn give_back(tx: &mut Tx, node: &str) -> Result<u64> {
    let sql = "UPDATE jobs SET state = 'ready', last_error = 'the worker was stopped',
                      max_attempts = CASE WHEN max_attempts < $1 THEN max_attempts + 1 ELSE max_attempts END
               WHERE state = 'running' AND node = $2";
    Ok(tx.execute(sql, &[FOREVER.into(), node.into()])?)
}

/// Whether a job stands further ahead than it can by a clock that is right.
pub fn any_ahead(tx: &mut Tx, now: Moment) -> Result<bool> {
    let sql = "SELECT 1 FROM jobs WHERE state = 'ready' AND run_at > $1 LIMIT 1";
    Ok(tx.first(sql, &[now.plus_seconds(FURTHEST).0.into()], |_| Ok::<_, store::Error>(()))?.is_some())
}

/// After the clock jumped forward and back: what comes back for ever is due now, the rest in an hour. Answers how many jobs
/// stood too far ahead.
pub fn pull_back(tx: &mut Tx, now: Moment) -> Result<u64> {
    let mut pulled = 0;
    for (run_at, which) in [(now, "="), (now.plus_seconds(3600), "<>")] {
        let sql =
            format!("UPDATE jobs SET run_at = $1 WHERE state = 'ready' AND run_at > $2 AND max_attempts {which} $3");
        let furthest = now.plus_seconds(FURTHEST);
        pulled += tx.execute(&sql, &[run_at.0.into(), furthest.0.into(), FOREVER.into()])?;
    }
    Ok(pulled)
}
