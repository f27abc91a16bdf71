//! The account as the templates of a flow see it.

use engine::accounts::Account;
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::Result;
use serde_json::{Value, json};
use store::Tx;

use super::definition::Definition;
use super::needs::TO_SEE_OWNER;
use crate::mail;
use crate::people::user;

/// How many owners are told, at most.
const MAX_OWNERS: usize = 20;

/// Returns the account at a moment, with the address of its owner if the flow uses it. Its author may read it, or it would
/// not run; whoever tries it on the past must be allowed to read it too.
pub fn account(tx: &mut Tx, ctx: &Ctx, account: &Account, definition: &Definition, now: Moment) -> Result<Value> {
    let mut about = json!({
        "id": account.uid, "name": account.name, "today": now.date(&ctx.zone).to_string(),
        "time_zone": ctx.zone.iana_name().unwrap_or_default(),
    });
    if definition.uses_owner && ctx.may(TO_SEE_OWNER) {
        about["owner_email"] = owner_email(tx, ctx)?.into();
    }
    Ok(about)
}

/// Returns the addresses of the owners, or that of the default corporate identity if nobody has signed up.
fn owner_email(tx: &mut Tx, ctx: &Ctx) -> Result<String> {
    let owners = user::owner_emails(tx, ctx)?;
    if owners.is_empty() {
        return Ok(mail::identity_of(tx, ctx, "")?.1);
    }
    Ok(owners[..owners.len().min(MAX_OWNERS)].join(", "))
}
