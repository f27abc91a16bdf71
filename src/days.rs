//! What comes with the days: invoices of subscriptions, invoices that become late, quotes that are no
//! longer valid, ends that are near. Looked at every hour, by the date of each account; its cost is by
//! what is due, not by what exists.

use std::cell::Cell;
use std::time::{Duration, Instant};

use store::Tx;

use crate::accounts::Account;
use crate::app::App;
use crate::automation::engine;
use crate::clock::Moment;
use crate::collecting;
use crate::context::{Caller, Ctx};
use crate::error::{Error, Result};
use crate::jobs::{Ending, Job};
use crate::resources::document::{InvoiceKind, QuoteKind, money_due};
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

/// The job: every account that has no test clock; those move when they are told to.
pub fn run(app: &App, _: &Job) -> Result<Ending> {
    for account in app.store.read_now(Account::all)? {
        if account.has_test_clock {
            continue;
        }
        let caller = app.acting(account, "days");
        // One account whose day cannot be done does not keep the others from theirs.
        if let Err(error) = day_of(app, &caller) {
            let (account, cause) = (&caller.account.uid, error.internal.as_deref().unwrap_or(""));
            tracing::warn!(%account, %error, cause, "What came with the day could not be done; it is tried again in an hour.");
        }
    }
    Ok(Ending::Again(app.clock.now().plus_seconds(HOUR)))
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
    let late = money_due::expire::<InvoiceKind>(tx, ctx, "overdue", slice)?;
    let expired = money_due::expire::<QuoteKind>(tx, ctx, "expired", slice)?;
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
