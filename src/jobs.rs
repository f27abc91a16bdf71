//! Work that follows a change: a row written in the transaction of the change, claimed by a
//! worker of any process under a lease. A worker that dies loses its lease and another takes the
//! job over; each claim has a number, and a result under an old number changes nothing.

use store::{Migration, Row, Store, Tx};

use crate::clock::{Ids, Moment};
use crate::error::Result;

/// The table of jobs.
pub const MIGRATION: Migration = Migration {
    number: 5,
    name: "jobs",
    sql: "
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    account_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    unique_key TEXT NOT NULL UNIQUE,
    payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('ready', 'running', 'done', 'failed')),
    run_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    max_attempts BIGINT NOT NULL,
    claim BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    last_error TEXT NOT NULL,
    created_at BIGINT NOT NULL
) STRICT;
CREATE INDEX jobs_due ON jobs (state, run_at, id);
CREATE INDEX jobs_leases ON jobs (state, lease_until);
",
};

/// How long a worker may be silent before its job is given to another.
pub const LEASE_SECONDS: i64 = 60;

/// A job to be done.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// The account it is for; 0 for the whole server.
    pub account: i64,
    /// What is to be done.
    pub kind: &'static str,
    /// With what, as JSON.
    pub payload: String,
    /// Not before this.
    pub run_at: Moment,
    /// How often to try.
    pub max_attempts: i64,
    /// A job with this key that is there already makes this one unnecessary.
    pub unique_key: Option<String>,
}

/// A job under a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// The account it is for; 0 for the whole server.
    pub account: i64,
    /// What is to be done.
    pub kind: String,
    /// With what, as JSON.
    pub payload: String,
    /// The number of this claim: the fence against workers that come back late.
    pub claim: i64,
    /// Tries, this one included.
    pub attempts: i64,
    /// How often to try.
    pub max_attempts: i64,
}

/// How a try ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Done.
    Done,
    /// Done for now; to be done again then.
    Again(Moment),
    /// It failed, with words for a person.
    Failed(String),
}

/// Puts a job in the queue, in the transaction of its cause.
pub fn enqueue(tx: &mut Tx, ids: &Ids, job: &NewJob, now: Moment) -> Result<()> {
    let id = ids.next();
    let unique = job.unique_key.as_ref().unwrap_or(&id);
    tx.execute(
        "INSERT INTO jobs (id, account_id, kind, unique_key, payload, state, run_at, attempts, max_attempts, claim,
                           lease_until, last_error, created_at)
         VALUES ($1, $2, $3, $4, $5, 'ready', $6, 0, $7, 0, 0, '', $8)
         ON CONFLICT (unique_key) DO NOTHING",
        &[
            (&id).into(),
            job.account.into(),
            job.kind.into(),
            unique.into(),
            (&job.payload).into(),
            job.run_at.0.into(),
            job.max_attempts.into(),
            now.0.into(),
        ],
    )?;
    Ok(())
}

/// Takes away a job that nobody has claimed yet; answers whether there was one.
pub fn call_off(tx: &mut Tx, unique_key: &str) -> Result<bool> {
    Ok(tx.execute("DELETE FROM jobs WHERE unique_key = $1 AND state = 'ready'", &[unique_key.into()])? == 1)
}

/// Whether there is something to claim: a look that writes nothing.
pub fn is_due(tx: &mut Tx, now: Moment, kinds: &[&str]) -> Result<bool> {
    let mut values = vec![now.0.into()];
    values.extend(kinds.iter().map(|kind| (*kind).into()));
    let due =
        format!("SELECT 1 FROM jobs WHERE state = 'ready' AND run_at <= $1 AND kind IN ({}) LIMIT 1", places(kinds));
    let lost = "SELECT 1 FROM jobs WHERE state = 'running' AND lease_until <= $1 LIMIT 1";
    let due = tx.first(&due, &values, |_| Ok::<_, store::Error>(()))?;
    let lost = tx.first(lost, &[now.0.into()], |_| Ok::<_, store::Error>(()))?;
    Ok(due.is_some() || lost.is_some())
}

/// `$2, $3, …`, one for each kind.
fn places(kinds: &[&str]) -> String {
    let places: Vec<String> = (0..kinds.len()).map(|n| format!("${}", n + 2)).collect();
    places.join(", ")
}

/// Takes up to `limit` jobs of these kinds that are due, those of dead workers included. A node
/// that is older than a kind leaves its jobs to the others.
pub fn claim(tx: &mut Tx, now: Moment, kinds: &[&str], limit: i64) -> Result<Vec<Job>> {
    claim_where(tx, now, kinds, None, limit)
}

/// The same, of one account.
pub fn claim_of(tx: &mut Tx, now: Moment, account: i64, kinds: &[&str]) -> Result<Vec<Job>> {
    claim_where(tx, now, kinds, Some(account), 100)
}

/// Whether somebody works on a job of the account.
pub fn is_running(tx: &mut Tx, account: i64, kinds: &[&str]) -> Result<bool> {
    let mut values = vec![account.into()];
    values.extend(kinds.iter().map(|kind| (*kind).into()));
    let sql = format!(
        "SELECT count(*) FROM jobs WHERE state = 'running' AND account_id = $1 AND kind IN ({})",
        places(kinds)
    );
    Ok(tx.int(&sql, &values)? > 0)
}

fn claim_where(tx: &mut Tx, now: Moment, kinds: &[&str], account: Option<i64>, limit: i64) -> Result<Vec<Job>> {
    tx.execute(
        "UPDATE jobs SET state = CASE WHEN attempts >= max_attempts THEN 'failed' ELSE 'ready' END,
                last_error = 'the worker was lost'
         WHERE state = 'running' AND lease_until <= $1",
        &[now.0.into()],
    )?;
    let mut values = vec![now.0.into()];
    values.extend(kinds.iter().map(|kind| (*kind).into()));
    let own = account.map(|account| {
        values.push(account.into());
        format!(" AND account_id = ${}", values.len())
    });
    let own = own.unwrap_or_default();
    let (limit_at, lease_at) = (values.len() + 1, values.len() + 2);
    // MATERIALIZED: PostgreSQL might otherwise run the inner part again and take more.
    let sql = format!(
        "WITH due AS MATERIALIZED (
            SELECT id FROM jobs WHERE state = 'ready' AND run_at <= $1 AND kind IN ({}){own} ORDER BY run_at, id
            LIMIT ${limit_at}{})
         UPDATE jobs SET state = 'running', claim = claim + 1, attempts = attempts + 1, lease_until = ${lease_at}
         WHERE id IN (SELECT id FROM due)
         RETURNING id, account_id, kind, payload, claim, attempts, max_attempts",
        places(kinds),
        tx.dialect().skip_locked()
    );
    values.extend([limit.into(), now.plus_seconds(LEASE_SECONDS).0.into()]);
    let mut jobs = tx.all(&sql, &values, Job::from_row)?;
    // RETURNING keeps no order; ids grow with time.
    jobs.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(jobs)
}

impl Job {
    fn from_row(row: &Row) -> Result<Job> {
        Ok(Job {
            id: row.text(0)?.to_string(),
            account: row.int(1)?,
            kind: row.text(2)?.to_string(),
            payload: row.text(3)?.to_string(),
            claim: row.int(4)?,
            attempts: row.int(5)?,
            max_attempts: row.int(6)?,
        })
    }

    /// Makes the lease longer; answers whether it is still ours.
    pub fn renew(&self, tx: &mut Tx, now: Moment) -> Result<bool> {
        let sql = "UPDATE jobs SET lease_until = $1 WHERE id = $2 AND claim = $3 AND state = 'running'";
        let lease = now.plus_seconds(LEASE_SECONDS);
        Ok(tx.execute(sql, &[lease.0.into(), (&self.id).into(), self.claim.into()])? == 1)
    }

    /// Writes how the try ended; answers whether the lease was still ours. When it was not, the
    /// caller must undo whatever it did in this transaction.
    pub fn finish(&self, tx: &mut Tx, ending: &Ending, now: Moment) -> Result<bool> {
        let (state, run_at, attempts, error) = match ending {
            Ending::Done => ("done", now, self.attempts, ""),
            Ending::Again(at) => ("ready", *at, 0, ""),
            Ending::Failed(why) if self.attempts >= self.max_attempts => ("failed", now, self.attempts, why.as_str()),
            Ending::Failed(why) => ("ready", now.plus_seconds(self.pause()), self.attempts, why.as_str()),
        };
        // What has ended does not stand in the way of a new job with the same unique key.
        let sql = "UPDATE jobs SET state = $1, run_at = $2, attempts = $3, last_error = $4,
                          unique_key = CASE WHEN $1 IN ('done', 'failed') THEN id ELSE unique_key END
                   WHERE id = $5 AND claim = $6 AND state = 'running'";
        let values =
            [state.into(), run_at.0.into(), attempts.into(), error.into(), (&self.id).into(), self.claim.into()];
        Ok(tx.execute(sql, &values)? == 1)
    }

    /// Seconds until the next try: 10, 20, 40 … up to an hour, and up to a quarter more so that
    /// jobs that failed together do not come back together.
    fn pause(&self) -> i64 {
        let doubled = 10_i64 << self.attempts.clamp(1, 10).saturating_sub(1);
        let seconds = doubled.min(3600);
        let chance = self.id.bytes().rev().take(4).fold(0_i64, |sum, byte| sum + i64::from(byte));
        seconds + chance % (seconds / 4 + 1)
    }
}

/// The moment at which the oldest job that waits became due.
pub fn oldest_due(tx: &mut Tx, now: Moment) -> Result<Option<Moment>> {
    let sql = "SELECT coalesce(min(run_at), 0) FROM jobs WHERE state = 'ready'";
    let oldest = Moment(tx.int(sql, &[])?);
    Ok(Some(oldest).filter(|oldest| oldest.0 > 0 && *oldest <= now))
}

/// Drops jobs in `state` that ended before `before`, up to a thousand; answers how many.
pub fn purge(tx: &mut Tx, state: &str, before: Moment) -> Result<u64> {
    let sql = "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE state = $1 AND run_at < $2 LIMIT 1000)";
    Ok(tx.execute(sql, &[state.into(), before.0.into()])?)
}

/// Claims jobs in a transaction of their own, when a look says that it is worth it.
pub fn claim_due(store: &Store, now: Moment, kinds: &'static [&'static str], limit: i64) -> Result<Vec<Job>> {
    if !store.read_now(move |tx| is_due(tx, now, kinds))? {
        return Ok(Vec::new());
    }
    store.write_now(SHARED, move |tx| claim(tx, now, kinds, limit))
}

/// The store's key for writes that belong to no account.
pub const SHARED: i64 = 0;
