//! Leases: who works on a row, until when, and under which claim number. Jobs and the tables of the registry
//! share the rules. Each claim has a new number, which fences off workers that come back late: a result under an old
//! number changes nothing. A lease that runs out is taken over by others.
//!
//! A process that serves a SQLite file alone knows at its start that nobody works on anything, and ends all leases. On
//! PostgreSQL a node that misses its heartbeats loses them (`nodes.rs`).

use std::future::Future;
use std::time::{Duration, Instant};

use store::{Tx, Value};

use crate::backoff::Backoff;
use crate::clock::Moment;
use crate::error::Result;

/// How many times in a row the worker of something may die before it is given up.
pub const LOST_AT_MOST: i64 = 5;
/// How long to wait after so many deaths: not at all the first time, then longer each time. The random part is as long as
/// the delay: what ran beside the one that kills the process gets away from it.
const AFTER_DEATHS: Backoff = Backoff { delays: &[0, 10, 20, 40, 80, 160, 320, 640, 1280], spread: 1 };
/// How long to wait before the end of something is written once more.
const AGAIN: Duration = Duration::from_secs(1);

/// A table whose rows are worked on under a lease. It has the columns `account_id`, `id`, `claim` and `node`.
pub struct LeaseTable {
    /// Name.
    pub table: &'static str,
    /// The column that says until when a lease holds.
    pub until: &'static str,
    /// The condition under which a row has a lease.
    pub held: &'static str,
    /// What `until` becomes when a lease ends early.
    pub ended: i64,
    /// Whether a result needs the lease beside its number. Without it a result under the right number counts late, too.
    pub ends_while_held: bool,
}

/// A claim on a row.
#[derive(Clone, Copy, Debug)]
pub struct Lease<'l> {
    /// The account of the row.
    pub account: i64,
    /// The id of the row.
    pub id: &'l str,
    /// The number of the claim.
    pub claim: i64,
}

impl LeaseTable {
    /// The assignments of a new claim, whose end and node are the values at `place` and after it.
    pub fn claimed(&self, place: usize) -> String {
        format!("claim = claim + 1, {} = ${place}, node = ${}", self.until, place + 1)
    }

    /// Makes a lease longer; answers whether it is still ours.
    pub fn renew(&self, tx: &mut Tx, lease: Lease, until: Moment) -> Result<bool> {
        let LeaseTable { table, held, until: column, .. } = self;
        let sql =
            format!("UPDATE {table} SET {column} = $1 WHERE account_id = $2 AND id = $3 AND claim = $4 AND {held}");
        let values = [until.0.into(), lease.account.into(), lease.id.into(), lease.claim.into()];
        Ok(tx.execute(&sql, &values)? == 1)
    }

    /// Changes a row under the number of its claim; answers whether the number was still right. When it was not, the
    /// caller must undo whatever it did in this transaction.
    pub fn end<'v>(&self, tx: &mut Tx, lease: Lease<'v>, set: &str, values: &[Value<'v>]) -> Result<bool> {
        let place = values.len();
        let held = if self.ends_while_held { format!(" AND {}", self.held) } else { String::new() };
        let sql = format!(
            "UPDATE {} SET {set} WHERE account_id = ${} AND id = ${} AND claim = ${}{held}",
            self.table,
            place + 1,
            place + 2,
            place + 3
        );
        let mut all = values.to_vec();
        all.extend([lease.account.into(), lease.id.into(), lease.claim.into()]);
        Ok(tx.execute(&sql, &all)? == 1)
    }

    /// Ends the leases of a node. The claim numbers stay: should it come back after all, it changes nothing.
    fn end_of(&self, tx: &mut Tx, node: &str) -> Result<()> {
        let LeaseTable { table, until, held, ended, .. } = self;
        tx.execute(&format!("UPDATE {table} SET {until} = {ended} WHERE {held} AND node = $1"), &[node.into()])?;
        Ok(())
    }

    /// Ends all of them.
    pub fn end_all(&self, tx: &mut Tx) -> Result<()> {
        let LeaseTable { table, until, held, ended, .. } = self;
        tx.execute(&format!("UPDATE {table} SET {until} = {ended} WHERE {held}"), &[])?;
        Ok(())
    }
}

/// What becomes of something whose worker died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comeback {
    /// It is taken over at once.
    AtOnce,
    /// It waits for so many seconds.
    After(i64),
    /// It was begun too often: it may be what ends the process.
    Never,
}

/// What becomes of `id`, whose worker died so many times in a row.
pub fn after_deaths(id: &str, times: i64) -> Comeback {
    match AFTER_DEATHS.seconds(id, times) {
        _ if times >= LOST_AT_MOST => Comeback::Never,
        0 => Comeback::AtOnce,
        seconds => Comeback::After(seconds),
    }
}

/// What becomes of `id`, whose worker died so many times in a row, if it is never given up.
pub fn always_after_deaths(id: &str, times: i64) -> Comeback {
    match AFTER_DEATHS.seconds(id, times) {
        0 => Comeback::AtOnce,
        seconds => Comeback::After(seconds),
    }
}

/// Writes down how something ended, and tries again every second until `deadline`, by which its lease still holds.
pub async fn write_end<T, F>(deadline: Instant, mut write: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    loop {
        match write().await {
            Err(_) if Instant::now() < deadline => tokio::time::sleep(AGAIN).await,
            written => return written,
        }
    }
}

/// Ends the leases of a node that is gone.
pub fn end_of(tx: &mut Tx, tables: &[&LeaseTable], node: &str) -> Result<()> {
    tables.iter().try_for_each(|table| table.end_of(tx, node))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kills_its_workers_waits_longer_each_time_and_is_given_up() {
        for id in ["0190d5a2-0000-7000-8000-000000000000", "x"] {
            assert_eq!(after_deaths(id, 1), Comeback::AtOnce);
            for (times, shortest) in [(2, 10), (3, 20), (4, 40)] {
                let Comeback::After(seconds) = after_deaths(id, times) else { panic!("{times}") };
                assert!((shortest..=2 * shortest).contains(&seconds), "{times}: {seconds}");
            }
            assert_eq!(after_deaths(id, LOST_AT_MOST), Comeback::Never);
            assert!(matches!(always_after_deaths(id, 100), Comeback::After(1280..=2560)));
        }
    }
}
