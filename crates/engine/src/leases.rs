//! Leases: which worker owns a row, until when, and under which claim number. Jobs and the tables of the registry share
//! these rules. Each claim has a new number, which fences off workers that lost their lease: a result under an old
//! number is discarded. When a lease expires, another worker takes over.
//!
//! A process that owns a SQLite file knows at its start that no other worker exists, and ends all leases. On
//! PostgreSQL, a node that misses its heartbeats loses them (`nodes.rs`).

use std::future::Future;
use std::time::{Duration, Instant};

use store::{Tx, Value};

use crate::backoff::Backoff;
use crate::clock::{Moment, machine};
use crate::error::Result;

/// How many times in a row a worker may die before its work is given up.
pub const LOST_AT_MOST: i64 = 5;
/// Delays after lost workers: none the first time, then longer each time. The random part is as long as the delay,
/// which separates other work from the one that crashes the process.
const AFTER_DEATHS: Backoff = Backoff { delays: &[0, 10, 20, 40, 80, 160, 320, 640, 1280], spread: 1 };
/// Delay before recording an outcome is retried.
const AGAIN: Duration = Duration::from_secs(1);

/// For this many milliseconds after it was confirmed, a lease is certainly valid: other nodes take over from a node that misses
/// its heartbeats for twice as long, and no lease is shorter.
const CERTAIN: i64 = 4_000;
/// How often a lease is confirmed again when confirming it took too long.
pub const CONFIRMED_AT_MOST: u32 = 3;

/// When a lease was last confirmed: before the transaction that did it. A process that was paused since confirms it again before
/// it does what cannot be undone.
#[derive(Clone, Copy, Debug)]
pub struct Confirmed(i64);

impl Confirmed {
    /// A confirmation that begins now.
    pub fn now() -> Confirmed {
        Confirmed(machine::running())
    }

    /// Whether no other worker can have taken over since.
    pub fn is_certain(self) -> bool {
        machine::running() - self.0 < CERTAIN
    }
}

/// A table whose rows are processed under a lease. It has the columns `account_id`, `id`, `claim` and `node`.
pub struct LeaseTable {
    /// Name.
    pub table: &'static str,
    /// The column with the expiry time of a lease.
    pub until: &'static str,
    /// The condition under which a row has a lease.
    pub held: &'static str,
    /// The value of `until` when a lease ends early.
    pub ended: i64,
    /// Whether a result also requires a valid lease. Otherwise a late result under the current number is accepted.
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
    /// Returns the assignments of a new claim, whose expiry and node are the values at `place` and after it.
    pub fn claimed(&self, place: usize) -> String {
        format!("claim = claim + 1, {} = ${place}, node = ${}", self.until, place + 1)
    }

    /// Extends a lease; returns whether the claim is still valid.
    pub fn renew(&self, tx: &mut Tx, lease: Lease, until: Moment) -> Result<bool> {
        let LeaseTable { table, held, until: column, .. } = self;
        let sql =
            format!("UPDATE {table} SET {column} = $1 WHERE account_id = $2 AND id = $3 AND claim = $4 AND {held}");
        let values = [until.0.into(), lease.account.into(), lease.id.into(), lease.claim.into()];
        Ok(tx.execute(&sql, &values)? == 1)
    }

    /// Changes a row under its claim number; returns whether the number was still current. If it was not, the caller
    /// must roll back this transaction.
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

    /// Ends the leases of a node. The claim numbers stay, so that its late results are discarded.
    fn end_of(&self, tx: &mut Tx, node: &str) -> Result<()> {
        let LeaseTable { table, until, held, ended, .. } = self;
        tx.execute(&format!("UPDATE {table} SET {until} = {ended} WHERE {held} AND node = $1"), &[node.into()])?;
        Ok(())
    }

    /// Ends all leases.
    pub fn end_all(&self, tx: &mut Tx) -> Result<()> {
        let LeaseTable { table, until, held, ended, .. } = self;
        tx.execute(&format!("UPDATE {table} SET {until} = {ended} WHERE {held}"), &[])?;
        Ok(())
    }
}

/// What happens to work whose worker died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comeback {
    /// It is resumed immediately.
    AtOnce,
    /// It waits for this number of seconds.
    After(i64),
    /// It was started too often, and may be what crashes the process.
    Never,
}

/// Returns what happens to `id`, whose worker died this many times in a row.
pub fn after_deaths(id: &str, times: i64) -> Comeback {
    match AFTER_DEATHS.seconds(id, times) {
        _ if times >= LOST_AT_MOST => Comeback::Never,
        0 => Comeback::AtOnce,
        seconds => Comeback::After(seconds),
    }
}

/// Returns when `id`, whose worker died this many times in a row, is resumed, if it is never given up.
pub fn always_after_deaths(id: &str, times: i64) -> Comeback {
    match AFTER_DEATHS.seconds(id, times) {
        0 => Comeback::AtOnce,
        seconds => Comeback::After(seconds),
    }
}

/// Records an outcome, and retries every second until `deadline`, when the lease is still valid.
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

/// Ends the leases of a dead node.
pub fn end_of(tx: &mut Tx, tables: &[&LeaseTable], node: &str) -> Result<()> {
    tables.iter().try_for_each(|table| table.end_of(tx, node))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backs_off_after_lost_workers_then_gives_up() {
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
