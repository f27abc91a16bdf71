//! What can be done as a job. A job is a struct that says with what, as JSON in its row.

use serde::Serialize;
use serde::de::DeserializeOwned;
use store::Tx;

use super::queue::{Claimed, Ending, FOREVER, Lane, NewJob};
use crate::accounts::SHARED;
use crate::app::App;
use crate::clock::Moment;
use crate::context::Ctx;
use crate::error::{Error, Result};

/// A kind of job; its fields are its payload. Waiting jobs of an older version must stay readable, so a new field has a
/// default.
pub trait Job: Serialize + DeserializeOwned {
    /// What it is called in the table of jobs.
    const KIND: &'static str;
    /// Where it waits.
    const LANE: Lane = Lane::Other;
    /// How often it is tried.
    const TRIES: i64 = 20;
    /// Whether the test clock of an account waits for it: it follows from a day.
    const AWAITED: bool = false;

    /// Does it. It runs outside any transaction and may take its time; its lease is kept. It may run twice.
    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending>;
}

impl Claimed {
    /// Keeps something with the job, in case this try does not come to its end; answers whether the claim still holds.
    pub fn keep<J: Job>(&self, tx: &mut Tx, job: &J) -> Result<bool> {
        let payload = serde_json::to_string(job).map_err(|error| Error::internal(error.to_string()))?;
        let sql = "UPDATE jobs SET payload = $1 WHERE id = $2 AND claim = $3";
        Ok(tx.execute(sql, &[payload.into(), (&self.id).into(), self.claim.into()])? == 1)
    }
}

impl NewJob {
    /// A job of this kind in the account of `ctx`, to be done at once.
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

/// A kind of job as the workers know it.
pub struct JobKind {
    /// What it is called in the table of jobs.
    pub kind: &'static str,
    /// Where it waits.
    pub lane: Lane,
    /// How often it is tried; one that is tried for ever is there once and comes back by itself.
    pub tries: i64,
    /// Whether the test clock of an account waits for it.
    pub awaited: bool,
    /// Does it.
    pub run: fn(&App, &Claimed) -> Result<Ending>,
}

impl JobKind {
    /// The kind that `J` describes.
    pub const fn of<J: Job>() -> JobKind {
        JobKind { kind: J::KIND, lane: J::LANE, tries: J::TRIES, awaited: J::AWAITED, run: run::<J> }
    }

    /// Whether it comes back by itself.
    pub fn is_repeated(&self) -> bool {
        self.tries == FOREVER
    }

    /// The one job of a kind that comes back by itself.
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

/// Drops rows of an account that are too old, a thousand at most so that nobody waits for it; answers how many.
pub type Purge = fn(&mut Tx, &Ctx) -> Result<u64>;
