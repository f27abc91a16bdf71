//! What comes with the days: invoices of subscriptions, invoices that become late, quotes that are no
//! longer valid, ends that are near. Looked at every hour, by the date of each account; its cost is by
//! what is due, not by what exists.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use store::Tx;

use crate::accounts::Account;
use crate::app::App;
use crate::automation::engine;
use crate::clock::Moment;
use crate::collecting;
use crate::context::{Caller, Ctx};
use crate::error::{Error, Result};
use crate::jobs::{Ending, Job, SHARED};
use crate::resources::document::{InvoiceKind, PaymentStatus, QuoteKind, money_due};
use crate::resources::subscription::generate;
use crate::timers;

/// How often it looks, in seconds.
const HOUR: i64 = 3600;
/// About how long a transaction takes at most: requests wait for it.
const TURN: Duration = Duration::from_millis(5);
/// How many things of a kind are looked up at once, and so how many happen in a transaction at most.
pub const TOGETHER: usize = 100;

/// The part of a day's work that shares a transaction: one thing at least, or a slow machine would never get
/// anywhere, and no more once a few milliseconds are over.
pub struct Slice {
    started: Instant,
    done: Cell<bool>,
    /// Whether it ends at all.
    ends: bool,
}

impl Slice {
    /// It starts now.
    pub fn start() -> Slice {
        Slice { started: Instant::now(), done: Cell::new(false), ends: true }
    }

    /// One that has no end, for who does everything in one transaction.
    pub fn endless() -> Slice {
        Slice { ends: false, ..Slice::start() }
    }

    /// Something was done in it.
    pub fn did_one(&self) {
        self.done.set(true);
    }

    /// Whether the rest is for another transaction.
    pub fn is_over(&self) -> bool {
        self.ends && self.done.get() && self.started.elapsed() > TURN
    }
}

/// How often the process may die in the day of an account before the others go first, and for how long they do.
const DEATHS: u32 = 2;
const SET_ASIDE: i64 = 24 * HOUR;

/// The job: every account that has no test clock; those move when they are told to.
pub fn run(app: &App, job: &Job) -> Result<Ending> {
    let mut memory = Memory::of(job, app.clock.now());
    for account in app.store.read_now(Account::all)? {
        if account.has_test_clock || memory.is_set_aside(&account) {
            continue;
        }
        if job.lost > 0 {
            memory.begin(app, job, &account)?;
        }
        let caller = app.acting(account, "days");
        // One account whose day cannot be done does not keep the others from theirs.
        if let Err(error) = day_of(app, &caller) {
            let (account, cause) = (&caller.account.uid, error.internal.as_deref().unwrap_or(""));
            tracing::warn!(%account, %error, cause, "What came with the day could not be done; it is tried again in an hour.");
        }
    }
    memory.end(app, job)?;
    Ok(Ending::Again(app.clock.now().plus_seconds(HOUR)))
}

/// What the job knows of the tries that ended with the process: where the last one was, and which accounts have ended it. It
/// is written down only after such a try, so that an ordinary day costs nothing.
#[derive(Default, Serialize, Deserialize, PartialEq)]
#[serde(default)]
struct Memory {
    at: i64,
    deaths: BTreeMap<i64, u32>,
    set_aside: BTreeMap<i64, i64>,
}

impl Memory {
    fn of(job: &Job, now: Moment) -> Memory {
        let mut memory: Memory = serde_json::from_str(&job.payload).unwrap_or_default();
        memory.set_aside.retain(|_, until| *until > now.0);
        if memory.at > 0 && job.lost > 0 {
            let deaths = memory.deaths.entry(memory.at).or_default();
            *deaths += 1;
            if *deaths >= DEATHS {
                memory.set_aside.insert(memory.at, now.plus_seconds(SET_ASIDE).0);
            }
        }
        memory
    }

    fn is_set_aside(&self, account: &Account) -> bool {
        let aside = self.set_aside.contains_key(&account.number);
        if aside {
            tracing::error!(account = %account.uid, "The process died in the day of this account more than once; it is left out for a day.");
        }
        aside
    }

    fn begin(&mut self, app: &App, job: &Job, account: &Account) -> Result<()> {
        self.at = account.number;
        self.write(app, job)
    }

    /// All accounts had their day. Those that were set aside stay so until their time is over.
    fn end(self, app: &App, job: &Job) -> Result<()> {
        let rest = Memory { set_aside: self.set_aside, ..Memory::default() };
        let old: Memory = serde_json::from_str(&job.payload).unwrap_or_default();
        if job.lost == 0 && rest == old { Ok(()) } else { rest.write(app, job) }
    }

    fn write(&self, app: &App, job: &Job) -> Result<()> {
        let (own, payload) = (job.clone(), serde_json::to_string(self).unwrap_or_default());
        app.store.write_now(SHARED, move |tx| own.keep(tx, &payload))
    }
}

fn day_of(app: &App, caller: &Caller) -> Result<()> {
    pass(app, caller)?;
    let own = caller.clone();
    app.store.write_now(caller.account.number, move |tx| {
        let ctx = own.writing(tx)?;
        collecting::ask_after(tx, &ctx)
    })
}

/// Brings an account up to its date.
pub fn pass(app: &App, caller: &Caller) -> Result<()> {
    generate::pass(app, caller)?;
    loop {
        let own = caller.clone();
        let more = app.store.write_now(caller.account.number, move |tx| {
            let ctx = own.writing(tx)?;
            some(tx, &ctx, &Slice::start())
        })?;
        if !more {
            return Ok(());
        }
    }
}

/// The same at once, in the transaction and at the time of the caller.
pub fn catch_up(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    generate::catch_up(tx, ctx)?;
    while some(tx, ctx, &Slice::endless())? {}
    Ok(())
}

/// A part of what is due; answers whether there may be more.
fn some(tx: &mut Tx, ctx: &Ctx, slice: &Slice) -> Result<bool, Error> {
    let late = money_due::expire::<InvoiceKind>(tx, ctx, &PaymentStatus::Overdue, slice)?;
    let expired = money_due::expire::<QuoteKind>(tx, ctx, &PaymentStatus::Expired, slice)?;
    let ending = generate::announce(tx, ctx, slice)?;
    let idle = timers::run_out(tx, ctx, slice)?;
    Ok(late || expired || ending || idle)
}

/// When something is next due in the account, after now.
pub fn next_moment(tx: &mut Tx, ctx: &Ctx) -> Result<Option<Moment>> {
    let moments = [
        generate::next_moment(tx, ctx)?,
        money_due::next_moment::<InvoiceKind>(tx, ctx)?,
        money_due::next_moment::<QuoteKind>(tx, ctx)?,
        timers::next_moment(tx, ctx)?,
        engine::next_moment(tx, ctx)?,
    ];
    Ok(moments.into_iter().flatten().min())
}
