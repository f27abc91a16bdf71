//! The table of jobs: enqueueing jobs and recording their outcome.

use std::sync::Arc;

use store::{Gathered, Merge, Migration, Places, Row, Tx, Value};

use super::marks::Text;
use crate::backoff::{self, Backoff};
use crate::clock::{Ids, Moment};
use crate::error::Result;
use crate::leases::{Lease, LeaseTable};
use crate::secrets::vault::Vault;

/// The table of jobs.
pub const MIGRATION: Migration = Migration {
    number: 6,
    name: "jobs",
    sql: "
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
    lost BIGINT NOT NULL DEFAULT 0,
    mark BLOB NOT NULL DEFAULT x''
) STRICT;
CREATE INDEX jobs_due ON jobs (state, run_at, id);
CREATE INDEX jobs_turns ON jobs (lane, account_id, run_at, id, kind) WHERE state = 'ready';
CREATE INDEX jobs_ready ON jobs (lane, run_at, account_id, kind) WHERE state = 'ready';
CREATE INDEX jobs_leases ON jobs (lease_until) WHERE state = 'running';
",
};

/// Lease of a job, in seconds; when it expires, another worker takes over. The heartbeat detects a dead node sooner.
pub const LEASE_SECONDS: i64 = 60;
/// The delays between the attempts of a failing job.
const RETRY: Backoff = backoff::UP_TO_AN_HOUR;
/// No job is scheduled further ahead than this, in seconds: it is the longest delay between attempts. One that is was
/// scheduled by a wrong clock.
pub const FURTHEST: i64 = RETRY.longest();
/// The maximum number of attempts of a repeating job.
pub const FOREVER: i64 = i64::MAX;

/// The number of jobs that read files at a time.
const READERS: usize = 2;

/// Why the jobs of a closed account are parked.
pub(super) const CLOSED: &str = "the account is closed";

/// The leases of jobs.
pub const LEASES: LeaseTable = LeaseTable {
    table: "jobs",
    until: "lease_until",
    held: "state = 'running'",
    ended: 0,
    // A node that shuts down releases its jobs under their current claim number.
    ends_while_held: true,
};

/// The queue of a job. Each lane has its own workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Typesetting documents, which takes processor time.
    Printing,
    /// Work that waits for external services.
    Outside,
    /// Work that reads files of others, in processes that take memory.
    Reading,
    /// Everything else.
    Other,
}

impl Lane {
    /// All lanes.
    pub const ALL: [Lane; 4] = [Lane::Printing, Lane::Outside, Lane::Reading, Lane::Other];

    /// Returns the name of its workers.
    pub fn workers(self) -> &'static str {
        match self {
            Lane::Printing => "printing workers",
            Lane::Outside => "outside workers",
            Lane::Reading => "reading workers",
            Lane::Other => "other workers",
        }
    }

    /// Returns the places of its workers, of which one account may keep `workers` busy. Each job that reads takes the memory of a
    /// process, so there are few of these, however many workers there are.
    pub fn places(self, workers: usize) -> Arc<Places> {
        match self {
            Lane::Reading => Places::capped(self.workers(), READERS, 1),
            Lane::Printing | Lane::Outside | Lane::Other => Places::with_share(self.workers(), workers),
        }
    }

    /// Returns its name in the database and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Lane::Printing => "printing",
            Lane::Outside => "outside",
            Lane::Reading => "reading",
            Lane::Other => "other",
        }
    }
}

/// A job to enqueue.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// The account it is for; 0 for the whole server.
    pub account: i64,
    /// The kind of job.
    pub kind: &'static str,
    /// The lane.
    pub lane: Lane,
    /// The payload, as JSON.
    pub payload: String,
    /// Not run before this time; at most [`FURTHEST`] from now.
    pub run_at: Moment,
    /// Maximum number of attempts; [`FOREVER`] for a repeating job.
    pub max_attempts: i64,
    /// If a job with this key exists, this one is not enqueued.
    pub unique_key: Option<String>,
}

impl NewJob {
    /// Enqueues the job only if no job with this key is waiting or running.
    #[must_use]
    pub fn keyed(self, key: String) -> NewJob {
        NewJob { unique_key: Some(key), ..self }
    }

    /// Delays the job by a number of seconds.
    #[must_use]
    pub fn after(self, seconds: i64) -> NewJob {
        NewJob { run_at: self.run_at.plus_seconds(seconds), ..self }
    }

    /// Enqueues the job, in the transaction of its cause, with the mark that lets it run.
    pub fn enqueue(&self, tx: &mut Tx, ids: &Ids, vault: &Vault, now: Moment) -> Result<()> {
        let id = ids.next();
        let unique = self.unique_key.as_ref().unwrap_or(&id);
        let mark = Text { id: &id, account: self.account, kind: self.kind, payload: &self.payload }.mark(vault)?;
        let row: [Value; 15] = [
            unique.into(),
            (&id).into(),
            self.account.into(),
            self.kind.into(),
            (&self.payload).into(),
            "ready".into(),
            self.run_at.0.into(),
            0_i64.into(),
            self.max_attempts.into(),
            0_i64.into(),
            0_i64.into(),
            "".into(),
            now.0.into(),
            self.lane.name().into(),
            mark.as_slice().into(),
        ];
        Ok(tx.gather(&ENQUEUED, &row)?)
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
    /// The payload, as JSON.
    pub payload: String,
    /// The claim number, which fences off workers that lost their lease.
    pub claim: i64,
    /// Number of attempts, including this one.
    pub attempts: i64,
    /// Maximum number of attempts.
    pub max_attempts: i64,
    /// Number of previous attempts whose worker died.
    pub lost: i64,
}

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Completed.
    Done,
    /// Completed for now; repeat at this time.
    Again(Moment),
    /// Not started, since other work comes first; check again at this time.
    Wait(Moment),
    /// Failed, with a message for people.
    Failed(String),
}

static ENQUEUED: Gathered = Gathered {
    table: "jobs",
    columns: &[
        "unique_key",
        "id",
        "account_id",
        "kind",
        "payload",
        "state",
        "run_at",
        "attempts",
        "max_attempts",
        "claim",
        "lease_until",
        "last_error",
        "created_at",
        "lane",
        "mark",
    ],
    key: 1,
    merge: Merge::First,
    conflict: "ON CONFLICT (unique_key) DO NOTHING",
};

/// Deletes a job that has not been claimed; returns whether there was one.
pub fn call_off(tx: &mut Tx, unique_key: &str) -> Result<bool> {
    Ok(tx.execute("DELETE FROM jobs WHERE unique_key = $1 AND state = 'ready'", &[unique_key.into()])? == 1)
}

/// Runs the jobs of a kind at this time that would be run later, unless an attempt of theirs has failed.
pub fn hasten(tx: &mut Tx, account: i64, lane: Lane, kind: &str, run_at: Moment) -> Result<()> {
    let sql = "UPDATE jobs SET run_at = $1
               WHERE state = 'ready' AND lane = $2 AND account_id = $3 AND run_at > $1 AND kind = $4 AND attempts = 0";
    tx.execute(sql, &[run_at.0.into(), lane.name().into(), account.into(), kind.into()])?;
    Ok(())
}

/// Returns a condition for these kinds, and adds its values.
pub(super) fn known<'v>(kinds: &[&'static str], values: &mut Vec<Value<'v>>) -> String {
    let places: Vec<String> = (1..=kinds.len()).map(|n| format!("${}", values.len() + n)).collect();
    values.extend(kinds.iter().map(|kind| (*kind).into()));
    format!("kind IN ({})", places.join(", "))
}

/// Returns how many of these unique keys have a job.
pub fn count(tx: &mut Tx, unique_keys: &[&'static str]) -> Result<i64> {
    let places: Vec<String> = (1..=unique_keys.len()).map(|n| format!("${n}")).collect();
    let values: Vec<Value> = unique_keys.iter().map(|key| (*key).into()).collect();
    Ok(tx.int(&format!("SELECT count(*) FROM jobs WHERE unique_key IN ({})", places.join(", ")), &values)?)
}

/// Whether the job with this key is running.
pub fn is_under_way(tx: &mut Tx, unique_key: &str) -> Result<bool> {
    let sql = "SELECT count(*) FROM jobs WHERE unique_key = $1 AND state = 'running'";
    Ok(tx.int(sql, &[unique_key.into()])? > 0)
}

/// Whether a job of these kinds is running in the account.
pub fn is_running(tx: &mut Tx, account: i64, kinds: &[&'static str]) -> Result<bool> {
    let mut values = vec![account.into()];
    let known = known(kinds, &mut values);
    let sql = format!("SELECT count(*) FROM jobs WHERE state = 'running' AND account_id = $1 AND {known}");
    Ok(tx.int(&sql, &values)? > 0)
}

impl Claimed {
    pub(super) fn text(&self) -> Text<'_> {
        Text { id: &self.id, account: self.account, kind: &self.kind, payload: &self.payload }
    }

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

    /// Whether the job is retried if this attempt fails.
    pub fn has_tries_left(&self) -> bool {
        self.attempts < self.max_attempts
    }

    /// Returns when the next attempt follows if this one fails now.
    pub fn retry_at(&self, now: Moment) -> Moment {
        now.plus_seconds(RETRY.seconds(&self.id, self.attempts))
    }

    /// Extends the lease; returns whether the claim is still valid.
    pub fn renew(&self, tx: &mut Tx, now: Moment) -> Result<bool> {
        LEASES.renew(tx, self.lease(), now.plus_seconds(LEASE_SECONDS))
    }

    /// Records the outcome of an attempt; returns whether the lease was still valid. If it was not, the caller must
    /// roll back this transaction.
    pub fn finish(&self, tx: &mut Tx, ending: &Ending, now: Moment) -> Result<bool> {
        let (state, run_at, attempts, error) = match ending {
            Ending::Done => ("done", now, self.attempts, ""),
            Ending::Again(at) => ("ready", *at, 0, ""),
            Ending::Wait(at) => ("ready", *at, self.attempts - 1, ""),
            Ending::Failed(why) if self.has_tries_left() => ("ready", self.retry_at(now), self.attempts, why.as_str()),
            Ending::Failed(why) => ("failed", now, self.attempts, why.as_str()),
        };
        // A finished job does not block a new one with the same unique key, and one that succeeded is not run again.
        let set = "state = $1, run_at = $2, attempts = $3, last_error = $4, lost = 0,
                   unique_key = CASE WHEN $1 IN ('done', 'failed') THEN id ELSE unique_key END,
                   payload = CASE WHEN $1 = 'done' THEN '' ELSE payload END";
        LEASES.end(tx, self.lease(), set, &[state.into(), run_at.0.into(), attempts.into(), error.into()])
    }
}

/// Returns when the oldest queued job became due.
pub fn oldest_due(tx: &mut Tx, now: Moment) -> Result<Option<Moment>> {
    let sql = "SELECT coalesce(min(run_at), 0) FROM jobs WHERE state = 'ready'";
    let oldest = Moment(tx.int(sql, &[])?);
    Ok(Some(oldest).filter(|oldest| oldest.0 > 0 && *oldest <= now))
}

/// Deletes up to two hundred jobs in `state` that ended before `before`; returns how many. Those of closed accounts stay.
pub fn purge(tx: &mut Tx, state: &str, before: Moment) -> Result<u64> {
    // In order, or PostgreSQL reads the table until it has found as many.
    let sql = "DELETE FROM jobs WHERE id IN
               (SELECT id FROM jobs WHERE state = $1 AND run_at < $2 AND last_error <> $3 ORDER BY run_at LIMIT 200)";
    Ok(tx.execute(sql, &[state.into(), before.0.into(), CLOSED.into()])?)
}
