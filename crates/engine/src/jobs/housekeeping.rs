//! The hourly job that deletes expired rows.

use serde::{Deserialize, Serialize};

use super::kind::Job;
use super::queue::{self, Claimed, Ending, FOREVER};
use crate::accounts::{Account, SHARED};
use crate::app::App;
use crate::error::Result;
use crate::registry::registry;

/// How long completed jobs are kept.
const KEPT_SECONDS: i64 = 7 * 24 * 3600;
/// How long failed and parked jobs are kept.
const FAILED_KEPT_SECONDS: i64 = 90 * 24 * 3600;
const HOUR: i64 = 3600;

/// The job.
#[derive(Default, Serialize, Deserialize)]
pub struct Housekeeping {}

impl Job for Housekeeping {
    const KIND: &'static str = "housekeeping";
    const TRIES: i64 = FOREVER;

    fn run(&self, app: &App, _: &Claimed) -> Result<Ending> {
        let (now, purges) = (app.clock.now(), registry().purges);
        for account in app.store.read_now(Account::all)?.into_iter().filter(|account| !account.is_closed()) {
            let caller = app.acting(account, Self::KIND);
            for purge in purges {
                until_done(|| {
                    let own = caller.clone();
                    app.store.write_now(caller.account.number, move |tx| {
                        let ctx = own.writing(tx)?;
                        purge(tx, &ctx)
                    })
                })?;
            }
        }
        for (state, kept) in [("done", KEPT_SECONDS), ("failed", FAILED_KEPT_SECONDS), ("parked", FAILED_KEPT_SECONDS)]
        {
            until_done(|| app.store.write_now(SHARED, move |tx| queue::purge(tx, state, now.plus_seconds(-kept))))?;
        }
        Ok(Ending::Again(now.plus_seconds(HOUR)))
    }
}

fn until_done(purge: impl Fn() -> Result<u64>) -> Result<()> {
    while purge()? > 0 {}
    Ok(())
}
