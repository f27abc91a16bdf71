//! Daily work: everything that the registry lists as due work. It runs every hour, by the date of each account, and its
//! cost depends on the number of due records, not on their total.

use std::collections::BTreeMap;

use engine::accounts::Account;
use engine::app::App;
use engine::clock::Moment;
use engine::context::{Actor, Ctx};
use engine::due::DueWork;
use engine::error::Result;
use engine::jobs::{Claimed, Ending, FOREVER, Job, SHARED, worker};
use engine::registry::registry;
use engine::slice::Slice;
use serde::{Deserialize, Serialize};
use store::Tx;

/// Interval of the job, in seconds.
const HOUR: i64 = 3600;

/// How often the process may die during the work of an account before that account is set aside, and for how long.
const DEATHS: u32 = 2;
const SET_ASIDE: i64 = 24 * HOUR;

/// The job for every account without a test clock; a test clock does this work when it is advanced. The payload records
/// which account the last attempt was at when the process died, and which accounts caused that. It is written only
/// after such an attempt, so that a normal run costs nothing.
#[derive(Clone, Default, Serialize, Deserialize, PartialEq)]
#[serde(default)]
pub struct Days {
    at: i64,
    deaths: BTreeMap<i64, u32>,
    set_aside: BTreeMap<i64, i64>,
}

impl Job for Days {
    const KIND: &'static str = "days";
    const TRIES: i64 = FOREVER;

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        let mut memory = self.clone().after(claimed, app.clock.now());
        for account in app.store.read_now(Account::all)? {
            if account.has_test_clock || account.is_closed() || memory.is_set_aside(&account) {
                continue;
            }
            if claimed.lost > 0 {
                memory.at = account.number;
                memory.write(app, claimed)?;
            }
            let caller = app.acting(account, Self::KIND);
            // A failure in one account does not affect the others.
            if let Err(error) = day_of(app, &caller) {
                let (account, cause) = (&caller.account.uid, error.internal.as_deref().unwrap_or(""));
                tracing::warn!(%account, %error, cause, "The daily work of an account failed; it is retried in an hour.");
            }
        }
        // All accounts were processed. Those that were set aside remain so until their time is over.
        let rest = Days { set_aside: memory.set_aside, ..Days::default() };
        if claimed.lost > 0 || rest != *self {
            rest.write(app, claimed)?;
        }
        Ok(Ending::Again(app.clock.now().plus_seconds(HOUR)))
    }
}

impl Days {
    fn after(mut self, claimed: &Claimed, now: Moment) -> Days {
        self.set_aside.retain(|_, until| *until > now.0);
        if self.at > 0 && claimed.lost > 0 {
            let deaths = self.deaths.entry(self.at).or_default();
            *deaths += 1;
            if *deaths >= DEATHS {
                self.set_aside.insert(self.at, now.plus_seconds(SET_ASIDE).0);
            }
        }
        self
    }

    fn is_set_aside(&self, account: &Account) -> bool {
        let aside = self.set_aside.contains_key(&account.number);
        if aside {
            tracing::error!(account = %account.uid, "The process died repeatedly during the daily work of this account; the account is skipped for a day.");
        }
        aside
    }

    fn write(&self, app: &App, claimed: &Claimed) -> Result<()> {
        let (own, vault, memory) = (claimed.clone(), app.site.vault.clone(), self.clone());
        app.store.write_now(SHARED, move |tx| own.keep(tx, &vault, &memory)).map(drop)
    }
}

fn day_of(app: &App, caller: &Actor) -> Result<()> {
    bring_up_to_date(app, caller)?;
    let (own, due) = (caller.clone(), registry().due_work);
    app.store.write_now(caller.account.number, move |tx| {
        let ctx = own.writing(tx)?;
        due.iter().try_for_each(|due| (due.hourly)(tx, &ctx))
    })
}

/// Brings an account up to its date.
pub fn bring_up_to_date(app: &App, caller: &Actor) -> Result<()> {
    let due = registry().due_work;
    due.iter().try_for_each(|due| (due.bring_up_to_date)(app, caller))?;
    loop {
        let own = caller.clone();
        let more = app.store.write_now(caller.account.number, move |tx| {
            let ctx = own.writing(tx)?;
            process_batch(tx, &ctx, due, &Slice::start())
        })?;
        if !more {
            return Ok(());
        }
    }
}

/// Does the follow-up work on the test clock of the account; returns whether there was any.
pub(crate) fn follow(app: &App, caller: &Actor) -> Result<bool> {
    worker::drain(app, caller.account.number)?;
    let mut any = false;
    for due in registry().due_work {
        any |= (due.follow)(app, caller)?;
    }
    Ok(any)
}

/// The same as `bring_up_to_date` at once, in the transaction and at the time of the caller.
pub(crate) fn catch_up(tx: &mut Tx, ctx: &Ctx, due: &[DueWork]) -> Result<()> {
    due.iter().try_for_each(|due| (due.catch_up)(tx, ctx))?;
    while process_batch(tx, ctx, due, &Slice::endless())? {}
    Ok(())
}

/// Does part of the due work; returns whether there may be more.
fn process_batch(tx: &mut Tx, ctx: &Ctx, due: &[DueWork], slice: &Slice) -> Result<bool> {
    let mut more = false;
    for due in due {
        more |= (due.process_batch)(tx, ctx, slice)?;
    }
    Ok(more)
}

/// Returns the next moment after now at which something is due in the account.
pub(crate) fn next_moment(tx: &mut Tx, ctx: &Ctx, due: &[DueWork]) -> Result<Option<Moment>> {
    let mut next = None;
    for due in due {
        next = [next, (due.next_moment)(tx, ctx)?].into_iter().flatten().min();
    }
    Ok(next)
}
