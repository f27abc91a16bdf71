//! Job types. A job is a struct whose fields are its payload, stored as JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use store::Tx;

use super::marks::Text;
use super::queue::{Claimed, Ending, FOREVER, Lane, NewJob};
use crate::accounts::SHARED;
use crate::app::App;
use crate::clock::Moment;
use crate::context::Ctx;
use crate::error::{Error, Result};
use crate::leases::{CONFIRMED_AT_MOST, Confirmed};
use crate::secrets::vault::Vault;

/// A type of job; its fields are its payload. Queued jobs of an older version must stay readable, so a new field has a
/// default.
pub trait Job: Serialize + DeserializeOwned {
    /// Its name in the table of jobs.
    const KIND: &'static str;
    /// Its lane.
    const LANE: Lane = Lane::Other;
    /// Its maximum number of attempts.
    const TRIES: i64 = 20;
    /// Whether the test clock of an account waits for it, since it follows from a date.
    const AWAITED: bool = false;

    /// Runs the job, outside any transaction. It may take long, since its lease is renewed, and it may run twice.
    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending>;
}

impl Claimed {
    /// Whether no other worker can have this job: for what cannot be undone. If it was confirmed too long ago, as when the process
    /// was paused, the lease is extended under its number. If that cannot be done, nothing is certain.
    pub fn is_certain(&self, app: &App, confirmed: Confirmed) -> bool {
        let mut confirmed = confirmed;
        for _ in 0..CONFIRMED_AT_MOST {
            if confirmed.is_certain() {
                return true;
            }
            confirmed = Confirmed::now();
            let (own, now) = (self.clone(), app.clock.now());
            if !matches!(app.store.write_now(SHARED, move |tx| own.renew(tx, now)), Ok(true)) {
                return false;
            }
        }
        confirmed.is_certain()
    }

    /// Stores data with the job, in case this attempt does not complete; returns whether the claim still holds.
    pub fn keep<J: Job>(&self, tx: &mut Tx, vault: &Vault, job: &J) -> Result<bool> {
        let payload = serde_json::to_string(job).map_err(|error| Error::internal(error.to_string()))?;
        let mark = Text { payload: &payload, ..self.text() }.mark(vault)?;
        let sql = "UPDATE jobs SET payload = $1, mark = $2 WHERE id = $3 AND claim = $4";
        Ok(tx.execute(sql, &[payload.into(), mark.as_slice().into(), (&self.id).into(), self.claim.into()])? == 1)
    }
}

/// Enqueues a job, in the transaction of its cause.
pub fn enqueue(tx: &mut Tx, ctx: &Ctx, job: &NewJob) -> Result<()> {
    job.enqueue(tx, &ctx.ids, &ctx.site.vault, ctx.machine_now)
}

impl NewJob {
    /// Creates a job of this type in the account of `ctx`, due immediately.
    pub fn of<J: Job>(ctx: &Ctx, job: &J) -> Result<NewJob> {
        let payload = serde_json::to_string(job).map_err(|error| Error::internal(error.to_string()))?;
        Ok(NewJob {
            account: ctx.account,
            kind: J::KIND,
            lane: J::LANE,
            payload,
            run_at: ctx.machine_now,
            max_attempts: J::TRIES,
            unique_key: None,
        })
    }
}

/// A type of job, as the workers use it.
pub struct JobKind {
    /// Its name in the table of jobs.
    pub kind: &'static str,
    /// Its lane.
    pub lane: Lane,
    /// Its maximum number of attempts; a job without a maximum exists once and repeats.
    pub tries: i64,
    /// Whether the test clock of an account waits for it.
    pub awaited: bool,
    /// Runs the job.
    pub run: fn(&App, &Claimed) -> Result<Ending>,
}

impl JobKind {
    /// Returns the type of `J`.
    pub const fn of<J: Job>() -> JobKind {
        JobKind { kind: J::KIND, lane: J::LANE, tries: J::TRIES, awaited: J::AWAITED, run: run::<J> }
    }

    /// Whether it repeats.
    pub fn is_repeated(&self) -> bool {
        self.tries == FOREVER
    }

    /// Creates the single job of a repeating type.
    pub fn repeated(&self, now: Moment) -> NewJob {
        NewJob {
            account: SHARED,
            kind: self.kind,
            lane: self.lane,
            payload: "{}".to_string(),
            run_at: now,
            max_attempts: self.tries,
            unique_key: Some(self.kind.to_string()),
        }
    }
}

fn run<J: Job>(app: &App, claimed: &Claimed) -> Result<Ending> {
    match serde_json::from_str::<J>(&claimed.payload) {
        Ok(job) => job.run(app, claimed),
        Err(error) => Ok(Ending::Failed(format!("the payload of the job cannot be read: {error}"))),
    }
}

/// Deletes up to two hundred expired rows of an account, which limits how long others wait; returns how many.
pub type Purge = fn(&mut Tx, &Ctx) -> Result<u64>;
