//! The table of jobs: what is enqueued, and what is known of a job that was claimed.

use store::{Migration, Row, Tx, Value};

use crate::backoff::{self, Backoff};
use crate::clock::{Ids, Moment};
use crate::error::Result;
use crate::leases::{Lease, LeaseTable};

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

/// Lanes, and what is known about workers that died. SQLite cannot change a CHECK, so there the table is copied.
pub const LANES: Migration = Migration {
    number: 60,
    name: "jobs_lanes",
    sql: "
-- sqlite
ALTER TABLE jobs RENAME TO jobs_before;
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    account_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    unique_key TEXT NOT NULL UNIQUE,
    payload TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('ready', 'running', 'done', 'failed', 'parked')),
    run_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    max_attempts BIGINT NOT NULL,
    claim BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    last_error TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    lane TEXT NOT NULL DEFAULT 'other',
    node TEXT NOT NULL DEFAULT '',
    lost BIGINT NOT NULL DEFAULT 0
) STRICT;
INSERT INTO jobs (id, account_id, kind, unique_key, payload, state, run_at, attempts, max_attempts, claim, lease_until,
                  last_error, created_at)
SELECT id, account_id, kind, unique_key, payload, state, run_at, attempts, max_attempts, claim, lease_until, last_error,
       created_at FROM jobs_before;
DROP TABLE jobs_before;
CREATE INDEX jobs_due ON jobs (state, run_at, id);
CREATE INDEX jobs_leases ON jobs (state, lease_until);
-- postgres
ALTER TABLE jobs DROP CONSTRAINT jobs_state_check;
ALTER TABLE jobs ADD CONSTRAINT jobs_state_check CHECK (state IN ('ready', 'running', 'done', 'failed', 'parked'));
ALTER TABLE jobs ADD COLUMN lane TEXT NOT NULL DEFAULT 'other';
ALTER TABLE jobs ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN lost BIGINT NOT NULL DEFAULT 0;
-- both
UPDATE jobs SET lane = 'printing' WHERE kind = 'document_pdf' AND state IN ('ready', 'running');
UPDATE jobs SET lane = 'outside' WHERE state IN ('ready', 'running')
    AND kind IN ('deliver', 'collect', 'provider_news', 'verification', 'provider_cancel');
CREATE INDEX jobs_turns ON jobs (lane, account_id, run_at, id, kind) WHERE state = 'ready';
",
};

/// How long a worker may be silent before its job is given to another. A node that dies is noticed sooner, by its heartbeat.
pub const LEASE_SECONDS: i64 = 60;
/// The delays between the tries of a job that fails.
const RETRY: Backoff = backoff::UP_TO_AN_HOUR;
/// No job waits longer than this, in seconds: that is the longest pause between tries. One that stands further ahead was
/// written by a clock that was wrong.
pub const FURTHEST: i64 = RETRY.longest();
/// The tries of a job that comes back for ever.
pub const FOREVER: i64 = i64::MAX;

/// Jobs under a lease.
pub const LEASES: LeaseTable = LeaseTable {
    table: "jobs",
    until: "lease_until",
    held: "state = 'running'",
    ended: 0,
    // A node that stops gives its jobs back under the number that they have.
    ends_while_held: true,
};

/// Where a job waits. Each lane has its own workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Documents to print, which takes processor time.
    Printing,
    /// Whatever waits for somebody outside.
    Outside,
    /// Everything else.
    Other,
}

impl Lane {
    /// All of them.
    pub const ALL: [Lane; 3] = [Lane::Printing, Lane::Outside, Lane::Other];

    /// What it is called in the database and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Lane::Printing => "printing",
            Lane::Outside => "outside",
            Lane::Other => "other",
        }
    }
}

/// A job to be done.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// The account it is for; 0 for the whole server.
    pub account: i64,
    /// The kind of job.
    pub kind: &'static str,
    /// Where it waits.
    pub lane: Lane,
    /// With what, as JSON.
    pub payload: String,
    /// Not before this; at most [`FURTHEST`] from now.
    pub run_at: Moment,
    /// How often to try; [`FOREVER`] for a job that comes back for ever.
    pub max_attempts: i64,
    /// A job with this key that is there already makes this one unnecessary.
    pub unique_key: Option<String>,
}

impl NewJob {
    /// Enqueues the job only if no job with this key is waiting or running.
    #[must_use]
    pub fn keyed(self, key: String) -> NewJob {
        NewJob { unique_key: Some(key), ..self }
    }

    /// Delays the job by this many seconds.
    #[must_use]
    pub fn after(self, seconds: i64) -> NewJob {
        NewJob { run_at: self.run_at.plus_seconds(seconds), ..self }
    }
}

/// A job under a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Its id.
    pub id: String,
    /// The account it is for; 0 for the whole server.
    pub account: i64,
    /// The kind of job.
    pub kind: String,
    /// With what, as JSON.
    pub payload: String,
    /// The number of this claim: the fence against workers that come back late.
    pub claim: i64,
    /// Tries, this one included.
    pub attempts: i64,
    /// How often to try.
    pub max_attempts: i64,
    /// How many tries before this one ended with their worker.
    pub lost: i64,
}

/// How a try ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Done.
    Done,
    /// Done for now; to be done again then.
    Again(Moment),
    /// Not begun, since something else comes first; to be looked at again then.
    Wait(Moment),
    /// It failed, with words for a person.
    Failed(String),
}

/// Puts a job in the queue, in the transaction of its cause.
pub fn enqueue(tx: &mut Tx, ids: &Ids, job: &NewJob, now: Moment) -> Result<()> {
    let id = ids.next();
    let unique = job.unique_key.as_ref().unwrap_or(&id);
    tx.send(
        "INSERT INTO jobs (id, account_id, kind, unique_key, payload, state, run_at, attempts, max_attempts, claim,
                           lease_until, last_error, created_at, lane)
         VALUES ($1, $2, $3, $4, $5, 'ready', $6, 0, $7, 0, 0, '', $8, $9)
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
            job.lane.name().into(),
        ],
    )?;
    Ok(())
}

/// Takes away a job that nobody has claimed yet; answers whether there was one.
pub fn call_off(tx: &mut Tx, unique_key: &str) -> Result<bool> {
    Ok(tx.execute("DELETE FROM jobs WHERE unique_key = $1 AND state = 'ready'", &[unique_key.into()])? == 1)
}

/// A condition for these kinds, whose values it adds.
pub(super) fn known<'v>(kinds: &[&'static str], values: &mut Vec<Value<'v>>) -> String {
    let places: Vec<String> = (1..=kinds.len()).map(|n| format!("${}", values.len() + n)).collect();
    values.extend(kinds.iter().map(|kind| (*kind).into()));
    format!("kind IN ({})", places.join(", "))
}

/// How many of these unique keys have a job.
pub fn count(tx: &mut Tx, unique_keys: &[&'static str]) -> Result<i64> {
    let places: Vec<String> = (1..=unique_keys.len()).map(|n| format!("${n}")).collect();
    let values: Vec<Value> = unique_keys.iter().map(|key| (*key).into()).collect();
    Ok(tx.int(&format!("SELECT count(*) FROM jobs WHERE unique_key IN ({})", places.join(", ")), &values)?)
}

/// Whether a worker has the job with this key.
pub fn is_under_way(tx: &mut Tx, unique_key: &str) -> Result<bool> {
    let sql = "SELECT count(*) FROM jobs WHERE unique_key = $1 AND state = 'running'";
    Ok(tx.int(sql, &[unique_key.into()])? > 0)
}

/// Whether somebody works on a job of the account.
pub fn is_running(tx: &mut Tx, account: i64, kinds: &[&'static str]) -> Result<bool> {
    let mut values = vec![account.into()];
    let known = known(kinds, &mut values);
    let sql = format!("SELECT count(*) FROM jobs WHERE state = 'running' AND account_id = $1 AND {known}");
    Ok(tx.int(&sql, &values)? > 0)
}

impl Claimed {
    pub(super) fn from_row(row: &Row) -> Result<Claimed> {
        Ok(Claimed {
            id: row.text(0)?.to_string(),
            account: row.int(1)?,
            kind: row.text(2)?.to_string(),
            payload: row.text(3)?.to_string(),
            claim: row.int(4)?,
            attempts: row.int(5)?,
            max_attempts: row.int(6)?,
            lost: row.int(7)?,
        })
    }

    fn lease(&self) -> Lease<'_> {
        Lease { account: self.account, id: &self.id, claim: self.claim }
    }

    /// Whether another try follows when this one fails.
    pub fn has_tries_left(&self) -> bool {
        self.attempts < self.max_attempts
    }

    /// Makes the lease longer; answers whether it is still ours.
    pub fn renew(&self, tx: &mut Tx, now: Moment) -> Result<bool> {
        LEASES.renew(tx, self.lease(), now.plus_seconds(LEASE_SECONDS))
    }

    /// Writes how the try ended; answers whether the lease was still ours. When it was not, the
    /// caller must undo whatever it did in this transaction.
    pub fn finish(&self, tx: &mut Tx, ending: &Ending, now: Moment) -> Result<bool> {
        let pause = RETRY.seconds(&self.id, self.attempts);
        let (state, run_at, attempts, error) = match ending {
            Ending::Done => ("done", now, self.attempts, ""),
            Ending::Again(at) => ("ready", *at, 0, ""),
            Ending::Wait(at) => ("ready", *at, self.attempts - 1, ""),
            Ending::Failed(why) if self.has_tries_left() => {
                ("ready", now.plus_seconds(pause), self.attempts, why.as_str())
            }
            Ending::Failed(why) => ("failed", now, self.attempts, why.as_str()),
        };
        // What has ended does not stand in the way of a new job with the same unique key.
        let set = "state = $1, run_at = $2, attempts = $3, last_error = $4, lost = 0,
                   unique_key = CASE WHEN $1 IN ('done', 'failed') THEN id ELSE unique_key END";
        LEASES.end(tx, self.lease(), set, &[state.into(), run_at.0.into(), attempts.into(), error.into()])
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
