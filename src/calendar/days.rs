//! What comes with the days: whatever the registry lists as due work. Looked at every hour, by the date of each account; its
//! cost is by what is due, not by what exists.

use std::collections::BTreeMap;

use engine::accounts::Account;
use engine::app::App;
use engine::clock::Moment;
use engine::context::{Caller, Ctx};
use engine::due::DueWork;
use engine::error::Result;
use engine::jobs::{Claimed, Ending, FOREVER, Job, SHARED, worker};
use engine::registry::registry;
use engine::slice::Slice;
use serde::{Deserialize, Serialize};
use store::Tx;

/// How often it looks, in seconds.
const HOUR: i64 = 3600;

/// How often the process may die in the day of an account before the others go first, and for how long they do.
const DEATHS: u32 = 2;
const SET_ASIDE: i64 = 24 * HOUR;

/// The job: every account that has no test clock; those move when they are told to. Its payload is what it knows of the tries
/// that ended with the process: where the last one was, and which accounts have ended it. That is written down only after
/// such a try, so that an ordinary day costs nothing.
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
            if account.has_test_clock || memory.is_set_aside(&account) {
                continue;
            }
            if claimed.lost > 0 {
                memory.at = account.number;
                memory.write(app, claimed)?;
            }
            let caller = app.acting(account, Self::KIND);
            // One account whose day cannot be done does not keep the others from theirs.
            if let Err(error) = day_of(app, &caller) {
                let (account, cause) = (&caller.account.uid, error.internal.as_deref().unwrap_or(""));
                tracing::warn!(%account, %error, cause, "The daily work of an account failed; it is retried in an hour.");
            }
        }
        // All accounts had their day. Those that were set aside stay so until their time is over.
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
        let (own, memory) = (claimed.clone(), self.clone());
        app.store.write_now(SHARED, move |tx| own.keep(tx, &memory)).map(drop)
    }
}

fn day_of(app: &App, caller: &Caller) -> Result<()> {
    pass(app, caller)?;
    let (own, due) = (caller.clone(), registry().due_work);
    app.store.write_now(caller.account.number, move |tx| {
        let ctx = own.writing(tx)?;
        due.iter().try_for_each(|due| (due.hourly)(tx, &ctx))
    })
}

/// Brings an account up to its date.
pub fn pass(app: &App, caller: &Caller) -> Result<()> {
    let due = registry().due_work;
    due.iter().try_for_each(|due| (due.pass)(app, caller))?;
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

/// Does what follows from that by the test clock of the account; answers whether there was anything.
pub fn follow(app: &App, caller: &Caller) -> Result<bool> {
    worker::drain(app, caller.account.number)?;
    let mut any = false;
    for due in registry().due_work {
        any |= (due.follow)(app, caller)?;
    }
    Ok(any)
}

/// The same as `pass` at once, in the transaction and at the time of the caller.
pub fn catch_up(tx: &mut Tx, ctx: &Ctx, due: &[DueWork]) -> Result<()> {
    due.iter().try_for_each(|due| (due.catch_up)(tx, ctx))?;
    while process_batch(tx, ctx, due, &Slice::endless())? {}
    Ok(())
}

/// A part of what is due; answers whether there may be more.
fn process_batch(tx: &mut Tx, ctx: &Ctx, due: &[DueWork], slice: &Slice) -> Result<bool> {
    let mut more = false;
    for due in due {
        more |= (due.some)(tx, ctx, slice)?;
    }
    Ok(more)
}

/// When something is next due in the account, after now.
pub fn next_moment(tx: &mut Tx, ctx: &Ctx, due: &[DueWork]) -> Result<Option<Moment>> {
    let mut next = None;
    for due in due {
        next = [next, (due.next_moment)(tx, ctx)?].into_iter().flatten().min();
    }
    Ok(next)
}
