//! Work that becomes due as time passes in an account, such as reminders on a date.

use store::Tx;

use crate::app::App;
use crate::clock::Moment;
use crate::context::{Caller, Ctx};
use crate::error::Result;
use crate::slice::Slice;

/// Work that becomes due with the days of an account.
pub struct DueWork {
    /// Does all that is due, in transactions of its own. This comes first.
    pub pass: fn(&App, &Caller) -> Result<()>,
    /// Does all that is due, in the transaction and at the time of the caller.
    pub catch_up: fn(&mut Tx, &Ctx) -> Result<()>,
    /// Does a part of what is due; answers whether there may be more.
    pub some: fn(&mut Tx, &Ctx, &Slice) -> Result<bool>,
    /// When something is next due in the account, after now. The test clock goes there.
    pub next_moment: fn(&mut Tx, &Ctx) -> Result<Option<Moment>>,
    /// Does what the workers do otherwise, by the test clock of the account; answers whether there was anything.
    pub follow: fn(&App, &Caller) -> Result<bool>,
    /// Done once an hour after all of it, but not for an account with a test clock.
    pub hourly: fn(&mut Tx, &Ctx) -> Result<()>,
}

impl DueWork {
    /// Never due.
    pub const NOTHING: DueWork = DueWork {
        pass: |_, _| Ok(()),
        catch_up: |_, _| Ok(()),
        some: |_, _, _| Ok(false),
        next_moment: |_, _| Ok(None),
        follow: |_, _| Ok(false),
        hourly: |_, _| Ok(()),
    };
}
