//! Work that becomes due as time passes in an account, such as reminders on a date.

use store::Tx;

use crate::app::App;
use crate::clock::Moment;
use crate::context::{Actor, Ctx};
use crate::error::Result;
use crate::slice::Slice;

/// Work that becomes due with the days of an account.
pub struct DueWork {
    /// Does all due work, in its own transactions. This runs first.
    pub bring_up_to_date: fn(&App, &Actor) -> Result<()>,
    /// Does all due work in the transaction and at the time of the caller.
    pub catch_up: fn(&mut Tx, &Ctx) -> Result<()>,
    /// Does part of the due work; returns whether there may be more.
    pub process_batch: fn(&mut Tx, &Ctx, &Slice) -> Result<bool>,
    /// Returns the next moment after now at which work is due. The test clock stops there.
    pub next_moment: fn(&mut Tx, &Ctx) -> Result<Option<Moment>>,
    /// Does what the workers normally do, by the test clock of the account; returns whether there was anything.
    pub follow: fn(&App, &Actor) -> Result<bool>,
    /// Runs once an hour after all other work, except for accounts with a test clock.
    pub hourly: fn(&mut Tx, &Ctx) -> Result<()>,
}

impl DueWork {
    /// Never due.
    pub const NOTHING: DueWork = DueWork {
        bring_up_to_date: |_, _| Ok(()),
        catch_up: |_, _| Ok(()),
        process_batch: |_, _, _| Ok(false),
        next_moment: |_, _| Ok(None),
        follow: |_, _| Ok(false),
        hourly: |_, _| Ok(()),
    };
}
