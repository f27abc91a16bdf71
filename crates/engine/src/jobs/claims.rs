//! Claiming jobs, with the accounts taking turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use store::{Dialect, Tx, Value};

use super::queue::{Claimed, LEASE_SECONDS, LEASES, Lane, known};
use super::{closed, marks};
use crate::clock::Moment;
use crate::error::{Error, Result};
use crate::secrets::vault::Vault;

/// Claims jobs for a node, and remembers which account had the last turn in each lane.
pub struct Claimant {
    /// The id of the node; empty for one without a heartbeat.
    pub node: String,
    vault: Arc<Vault>,
    turns: [AtomicI64; Lane::ALL.len()],
}

/// As many due jobs are looked at one by one to find whose turn it is.
const FEW: usize = 64;
/// Before the first account.
const NOBODY: i64 = -1;

/// A claimed job, and its mark.
type Marked = (Claimed, Vec<u8>);

impl Claimant {
    /// Creates the claimant of a node, which runs only what one of these keys marked.
    pub fn new(node: String, vault: Arc<Vault>) -> Claimant {
        Claimant { node, vault, turns: [NOBODY; Lane::ALL.len()].map(AtomicI64::new) }
    }

    /// Claims up to `limit` jobs of these kinds, all of the account whose turn it is. An older node leaves unknown
    /// kinds to the others.
    pub fn claim(
        &self,
        tx: &mut Tx,
        now: Moment,
        lane: Lane,
        kinds: &[&'static str],
        limit: i64,
    ) -> Result<Vec<Claimed>> {
        self.claim_if(tx, now, lane, kinds, limit, &mut |_| true)
    }

    /// Does the work of [`Claimant::claim`], but passes over the accounts that `may` refuses.
    pub fn claim_if(
        &self,
        tx: &mut Tx,
        now: Moment,
        lane: Lane,
        kinds: &[&'static str],
        limit: i64,
        may: &mut dyn FnMut(i64) -> bool,
    ) -> Result<Vec<Claimed>> {
        let turn = &self.turns[lane as usize];
        let last = turn.load(Ordering::Relaxed);
        let (mut after, mut around) = (last, false);
        loop {
            match next_account(tx, now, lane, kinds, after)? {
                Some(account) if !around || account <= last => {
                    let jobs = match may(account) {
                        true => self.claim_of(tx, now, account, lane, kinds, limit)?,
                        false => Vec::new(),
                    };
                    if !jobs.is_empty() {
                        turn.store(account, Ordering::Relaxed);
                        return Ok(jobs);
                    }
                    // Another node has locked them, or the account has its share of the workers.
                    after = account;
                }
                _ if around || last == NOBODY => return Ok(Vec::new()),
                _ => (after, around) = (NOBODY, true),
            }
        }
    }

    /// Claims up to `limit` due jobs of one account. Those that somebody added or changed in the database are parked.
    pub fn claim_of(
        &self,
        tx: &mut Tx,
        now: Moment,
        account: i64,
        lane: Lane,
        kinds: &[&'static str],
        limit: i64,
    ) -> Result<Vec<Claimed>> {
        for _ in 0..FEW {
            let Some(claimed) = self.claim_some(tx, now, account, lane, kinds, limit)? else { return Ok(Vec::new()) };
            let (mut jobs, mut any_forged) = (Vec::new(), false);
            for (job, mark) in claimed {
                match job.text().has(&self.vault, &mark)? {
                    true => jobs.push(job),
                    false => {
                        marks::park(tx, &job.id, job.account, &job.kind)?;
                        any_forged = true;
                    }
                }
            }
            // Others of the account may be behind them.
            if !jobs.is_empty() || !any_forged {
                return Ok(jobs);
            }
        }
        Ok(Vec::new())
    }

    /// Claims up to `limit` due jobs of one account, with their marks; `None` if the account is closed.
    fn claim_some(
        &self,
        tx: &mut Tx,
        now: Moment,
        account: i64,
        lane: Lane,
        kinds: &[&'static str],
        limit: i64,
    ) -> Result<Option<Vec<Marked>>> {
        let mut values = vec![lane.name().into(), account.into(), now.0.into()];
        let known = known(kinds, &mut values);
        values.extend([limit.into(), now.plus_seconds(LEASE_SECONDS).0.into(), (&self.node).into()]);
        let place = values.len() - 2;
        // MATERIALIZED: PostgreSQL might otherwise evaluate the inner query again and claim more.
        let sql = format!(
            "WITH due AS MATERIALIZED (
                SELECT id FROM jobs{} WHERE lane = $1 AND state = 'ready' AND account_id = $2 AND run_at <= $3 AND {known}
                ORDER BY run_at, id LIMIT ${place}{})
             UPDATE jobs{} SET state = 'running', attempts = attempts + 1, {}
             WHERE id IN (SELECT id FROM due)
             RETURNING id, account_id, kind, payload, claim, attempts, max_attempts, lost, mark,
                       (SELECT count(*) FROM accounts WHERE accounts.id = jobs.account_id AND closed_at > 0)",
            tx.dialect().indexed_by("jobs_turns"),
            tx.dialect().skip_locked(),
            tx.dialect().indexed_by("sqlite_autoindex_jobs_1"),
            LEASES.claimed(place + 1)
        );
        let mut any_closed = false;
        let mut claimed = tx.all(&sql, &values, |row| {
            any_closed |= row.int(9)? > 0;
            Ok::<_, Error>((Claimed::from_row(row)?, row.bytes(8)?.to_vec()))
        })?;
        if any_closed {
            closed::park(tx, account, lane, now, claimed.iter().map(|(job, _)| job.id.as_str()))?;
            return Ok(None);
        }
        // RETURNING has no order; ids increase with time.
        claimed.sort_by(|(a, _), (b, _)| a.id.cmp(&b.id));
        Ok(Some(claimed))
    }
}

/// The first account after `after` that has a job which is due. Most of the time few jobs are, and these say it, however many
/// accounts have jobs that wait for a later time. Otherwise the first job of each account is looked at, by the index.
fn next_account(tx: &mut Tx, now: Moment, lane: Lane, kinds: &[&'static str], after: i64) -> Result<Option<i64>> {
    let due = due_accounts(tx, now, lane, kinds, FEW)?;
    if due.len() < FEW {
        return Ok(due.into_iter().filter(|account| *account > after).min());
    }
    let (sql, values) = turn(tx.dialect(), now, lane, kinds, after);
    Ok(tx.first(&sql, &values, |row| row.int(0))?)
}

/// The accounts of the jobs that have been due for longest, up to `most` jobs.
fn due_accounts(tx: &mut Tx, now: Moment, lane: Lane, kinds: &[&'static str], most: usize) -> Result<Vec<i64>> {
    let mut values = vec![lane.name().into(), now.0.into()];
    let known = known(kinds, &mut values);
    let index = tx.dialect().indexed_by("jobs_ready");
    let sql = format!(
        "SELECT account_id FROM jobs{index} WHERE lane = $1 AND state = 'ready' AND run_at <= $2 AND {known}
         ORDER BY run_at LIMIT {most}"
    );
    Ok(tx.all(&sql, &values, |row| row.int(0))?)
}

fn turn(
    dialect: Dialect,
    now: Moment,
    lane: Lane,
    kinds: &[&'static str],
    after: i64,
) -> (String, Vec<Value<'static>>) {
    let index = dialect.indexed_by("jobs_turns");
    let mut values = vec![lane.name().into(), after.into()];
    let known = known(kinds, &mut values);
    values.push(now.0.into());
    let first = |what: &str, after: &str| {
        format!(
            "SELECT {what} FROM jobs{index} WHERE lane = $1 AND state = 'ready' AND account_id > {after} AND {known}
             ORDER BY account_id, run_at LIMIT 1"
        )
    };
    let sql = format!(
        "WITH RECURSIVE turns (account, due) AS (
            SELECT account_id, run_at FROM ({}) AS first
            UNION ALL
            SELECT ({}), ({}) FROM turns WHERE due > ${place})
         SELECT account FROM turns WHERE due <= ${place} LIMIT 1",
        first("account_id, run_at", "$2"),
        first("account_id", "turns.account"),
        first("run_at", "turns.account"),
        place = values.len()
    );
    (sql, values)
}

/// Returns the query plan of finding the next account, one step per line. For tests of the index.
pub fn explain_turn(tx: &mut Tx, now: Moment, lane: Lane, kinds: &[&'static str]) -> Result<Vec<String>> {
    let (sql, values) = turn(tx.dialect(), now, lane, kinds, NOBODY);
    Ok(tx.dialect().explain(tx, &sql, &values)?)
}

/// Whether a job of these kinds is due; writes nothing.
pub fn any_due(tx: &mut Tx, now: Moment, lane: Lane, kinds: &[&'static str]) -> Result<bool> {
    Ok(!due_accounts(tx, now, lane, kinds, 1)?.is_empty())
}
