//! What is known about scheduled backups, in the database: when they were made and checked, and which node does it now.

use engine::accounts::SHARED;
use engine::clock::Moment;
use engine::error::{Error, Result};
use engine::http::metrics::Metric;
use engine::leases::{Lease, LeaseTable};
use store::{Migration, Store, Tx};

/// The table of scheduled work.
pub const MIGRATION: Migration = Migration {
    number: 65,
    name: "backups",
    sql: "
CREATE TABLE backups (
    account_id BIGINT NOT NULL,
    id TEXT NOT NULL,
    done_at BIGINT NOT NULL DEFAULT 0,
    tried_at BIGINT NOT NULL DEFAULT 0,
    name TEXT NOT NULL DEFAULT '',
    bytes BIGINT NOT NULL DEFAULT 0,
    failures BIGINT NOT NULL DEFAULT 0,
    last_error TEXT NOT NULL DEFAULT '',
    claim BIGINT NOT NULL DEFAULT 0,
    node TEXT NOT NULL DEFAULT '',
    lease_until BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) STRICT;
INSERT INTO backups (account_id, id) VALUES (0, 'make'), (0, 'check');
",
};

/// The leases of scheduled work.
pub const LEASES: LeaseTable =
    LeaseTable { table: "backups", until: "lease_until", held: "lease_until > 0", ended: 0, ends_while_held: true };

/// How long a claim lasts that is not renewed, in seconds.
pub const LEASE_SECONDS: i64 = 120;

/// The scheduled work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Making a backup.
    Make,
    /// Restoring and verifying the newest one.
    Check,
}

impl Task {
    fn id(self) -> &'static str {
        match self {
            Task::Make => "make",
            Task::Check => "check",
        }
    }
}

/// What is known about a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// When it last succeeded; 0 for never.
    pub done_at: Moment,
    /// When it was last tried.
    pub tried_at: Moment,
    /// The name of the backup.
    pub name: String,
    /// Its size.
    pub bytes: i64,
    /// How often it failed.
    pub failures: i64,
    /// Why it failed last; empty after a success.
    pub last_error: String,
}

impl State {
    /// Reads the state of a task.
    pub fn of(tx: &mut Tx, task: Task) -> Result<State> {
        let sql = "SELECT done_at, tried_at, name, bytes, failures, last_error FROM backups
                   WHERE account_id = 0 AND id = $1";
        let found = tx.first(sql, &[task.id().into()], |row| {
            Ok::<_, Error>(State {
                done_at: Moment(row.int(0)?),
                tried_at: Moment(row.int(1)?),
                name: row.text(2)?.to_string(),
                bytes: row.int(3)?,
                failures: row.int(4)?,
                last_error: row.text(5)?.to_string(),
            })
        })?;
        Ok(found.unwrap_or_default())
    }
}

/// Returns where the last backup was made, as `backup_to` said then; empty if that is not known. It has a row of its own.
pub fn place(tx: &mut Tx) -> Result<String> {
    let sql = "SELECT name FROM backups WHERE account_id = 0 AND id = 'place'";
    let found = tx.first(sql, &[], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    Ok(found.unwrap_or_default())
}

fn keep_place(tx: &mut Tx, to: &str) -> Result<()> {
    let sql = "INSERT INTO backups (account_id, id, name) VALUES (0, 'place', $1)
               ON CONFLICT (account_id, id) DO UPDATE SET name = excluded.name";
    tx.execute(sql, &[to.into()])?;
    Ok(())
}

/// A claim on a task: no other node does it.
#[derive(Clone, Copy)]
pub struct Claim {
    task: Task,
    number: i64,
}

impl Claim {
    /// Claims a task that was last tried at `tried`; none if another node has it or did it meanwhile.
    pub fn take(store: &Store, task: Task, node: &str, tried: Moment, now: Moment) -> Result<Option<Claim>> {
        let node = node.to_string();
        store.write_now(SHARED, move |tx| {
            let sql = format!(
                "UPDATE backups SET tried_at = $1, {} WHERE account_id = 0 AND id = $4 AND tried_at = $5 AND lease_until <= $6",
                LEASES.claimed(2)
            );
            let until = now.plus_seconds(LEASE_SECONDS);
            let values =
                [now.0.into(), until.0.into(), (&node).into(), task.id().into(), tried.0.into(), now.0.into()];
            if tx.execute(&sql, &values)? == 0 {
                return Ok(None);
            }
            let number = tx.int("SELECT claim FROM backups WHERE account_id = 0 AND id = $1", &[task.id().into()])?;
            Ok(Some(Claim { task, number }))
        })
    }

    fn lease(&self) -> Lease<'static> {
        Lease { account: SHARED, id: self.task.id(), claim: self.number }
    }

    /// Extends the claim; returns whether it is still valid.
    pub fn renew(self, store: &Store, now: Moment) -> Result<bool> {
        store.write_now(SHARED, move |tx| LEASES.renew(tx, self.lease(), now.plus_seconds(LEASE_SECONDS)))
    }

    /// Records a success with the backup `name` in the place `to`.
    pub fn succeed(self, store: &Store, now: Moment, (name, bytes): (&str, u64), to: &str) -> Result<()> {
        let (name, bytes, to) = (name.to_string(), i64::try_from(bytes).unwrap_or(i64::MAX), to.to_string());
        store.write_now(SHARED, move |tx| {
            let set = "done_at = $1, name = $2, bytes = $3, last_error = '', lease_until = 0";
            let is_own = LEASES.end(tx, self.lease(), set, &[now.0.into(), (&name).into(), bytes.into()])?;
            if is_own && self.task == Task::Make { keep_place(tx, &to) } else { Ok(()) }
        })
    }

    /// Records a failure.
    pub fn fail(self, store: &Store, why: &str) -> Result<()> {
        let why = why.to_string();
        store.write_now(SHARED, move |tx| {
            let set = "failures = failures + 1, last_error = $1, lease_until = 0";
            LEASES.end(tx, self.lease(), set, &[(&why).into()]).map(drop)
        })
    }
}

/// Records that an operator restored and verified the backup with this name.
pub fn record_check(store: &Store, now: Moment, name: &str) -> Result<()> {
    let name = name.to_string();
    store.write_now(SHARED, move |tx| {
        let sql = "UPDATE backups SET done_at = $1, name = $2, last_error = '' WHERE account_id = 0 AND id = $3";
        tx.execute(sql, &[now.0.into(), (&name).into(), Task::Check.id().into()])?;
        Ok(())
    })
}

fn seconds(moment: Moment) -> u64 {
    (moment.0 / 1000).unsigned_abs()
}

/// When the last scheduled backup was made.
pub fn made(tx: &mut Tx, _: Moment) -> Result<Metric> {
    let made = seconds(State::of(tx, Task::Make)?.done_at);
    Ok(("backup_made_timestamp_seconds", "gauge", "When the last scheduled backup was made", made))
}

/// The size of the last scheduled backup.
pub fn bytes(tx: &mut Tx, _: Moment) -> Result<Metric> {
    let bytes = State::of(tx, Task::Make)?.bytes.unsigned_abs();
    Ok(("backup_bytes", "gauge", "The size of the last scheduled backup", bytes))
}

/// When a scheduled backup was last restored and verified.
pub fn proven(tx: &mut Tx, _: Moment) -> Result<Metric> {
    let proven = seconds(State::of(tx, Task::Check)?.done_at);
    Ok(("backup_proven_timestamp_seconds", "gauge", "When a backup was last restored and verified", proven))
}

/// How many scheduled backups and checks failed.
pub fn failures(tx: &mut Tx, _: Moment) -> Result<Metric> {
    let failures = State::of(tx, Task::Make)?.failures + State::of(tx, Task::Check)?.failures;
    Ok(("backup_failures_total", "counter", "Scheduled backups and checks that failed", failures.unsigned_abs()))
}
