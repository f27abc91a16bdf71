//! What comes with the days: invoices that become late, quotes that are no longer valid. Looked at
//! every hour, by the date of each account; its cost is by what is due, not by what exists.

use store::Tx;

use crate::accounts::Account;
use crate::app::App;
use crate::context::Ctx;
use crate::error::{Error, Result};
use crate::jobs::{Ending, Job};
use crate::resources::document::{InvoiceKind, QuoteKind, money_due};

/// How often it looks, in seconds.
const HOUR: i64 = 3600;

/// The job: every account that has no test clock; those move when they are told to.
pub fn run(app: &App, _: &Job) -> Result<Ending> {
    for account in app.store.read_now(Account::all)? {
        if !account.has_test_clock {
            pass(app, account)?;
        }
    }
    Ok(Ending::Again(app.clock.now().plus_seconds(HOUR)))
}

/// Brings an account up to its date.
pub fn pass(app: &App, account: Account) -> Result<()> {
    let caller = app.acting(account, "days");
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
    while some(tx, ctx)? {}
    Ok(())
}

/// A part of what is due; answers whether there may be more.
fn some(tx: &mut Tx, ctx: &Ctx) -> Result<bool, Error> {
    let late = money_due::expire::<InvoiceKind>(tx, ctx, "overdue")?;
    let expired = money_due::expire::<QuoteKind>(tx, ctx, "expired")?;
    Ok(late || expired)
}
