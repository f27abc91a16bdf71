//! What comes with the days: invoices of subscriptions, invoices that become late, quotes that are no
//! longer valid, ends that are near. Looked at every hour, by the date of each account; its cost is by
//! what is due, not by what exists.

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
            some(tx, &ctx)
        })?;
        if !more {
            return Ok(());
        }
    }
}

/// The same at once, in the transaction and at the time of the caller.
pub fn catch_up(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    generate::catch_up(tx, ctx)?;
    while some(tx, ctx)? {}
    Ok(())
}

/// A part of what is due; answers whether there may be more.
fn some(tx: &mut Tx, ctx: &Ctx) -> Result<bool, Error> {
    let late = money_due::expire::<InvoiceKind>(tx, ctx, "overdue")?;
    let expired = money_due::expire::<QuoteKind>(tx, ctx, "expired")?;
    let ending = generate::announce(tx, ctx)?;
    let idle = timers::run_out(tx, ctx)?;
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
