//! What can be done as a job. A job is a struct that says with what, as JSON in its row.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Claimed, Ending, FOREVER, Lane, NewJob, SHARED};
use crate::app::App;
use crate::clock::Moment;
use crate::error::Result;

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
