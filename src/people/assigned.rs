//! Users to whom records are assigned: the assignee of a deal, ticket or task, the owner of a client, who worked the hours.

use engine::context::Ctx;
use engine::error::{Error, Result};
use store::Tx;

use crate::people::status::Status;

/// Returns why a user cannot be chosen, if so. A user who is suspended later stays on the records.
pub(crate) fn unfit(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Option<&'static str>> {
    let sql = "SELECT status FROM users WHERE account_id = $1 AND id = $2";
    let is_suspended = |row: &store::Row| Ok::<_, Error>(row.text(0)? == Status::Suspended.wire());
    let found = tx.first(sql, &[ctx.account.into(), id.into()], is_suspended)?;
    Ok(found.unwrap_or_default().then_some("is a suspended user"))
}
