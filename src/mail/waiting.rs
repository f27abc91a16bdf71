//! Mail that waits for office hours, when they change.

use engine::context::Ctx;
use engine::error::Result;
use engine::jobs::{self, Job};
use engine::log::Event;
use store::{Migration, Tx};

use super::hours::{next_in, next_look};
use super::{Deliver, Standing};
use crate::settings::Settings;

/// Lets mail that waits follow the office hours when they change.
pub(crate) fn follow_hours(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<()> {
    if event.name != "settings.updated" {
        return Ok(());
    }
    let leaves = next_in(&Settings::of(tx, ctx)?.office_hours(), ctx);
    let moved = tx.execute(
        "UPDATE mails SET leaves_at = $1
         WHERE account_id = $2 AND leaves_at > created_at AND leaves_at > $3 AND leaves_at <> $1
         AND EXISTS (SELECT 1 FROM deliveries WHERE deliveries.account_id = $2 AND deliveries.about_id = mails.about_id
                     AND deliveries.mail_id = mails.id AND deliveries.status = $4)",
        &[leaves.0.into(), ctx.account.into(), ctx.now.0.into(), Standing::Queued.wire().into()],
    )?;
    match moved {
        0 => Ok(()),
        _ => jobs::hasten(tx, ctx.account, Deliver::LANE, Deliver::KIND, next_look(leaves, ctx.machine_now)),
    }
}

/// The index of mail that waits.
pub(crate) const WAITING: Migration = Migration {
    number: 116,
    name: "mail that waits",
    sql: "CREATE INDEX mails_waiting ON mails (account_id, leaves_at) WHERE leaves_at > created_at;",
};
