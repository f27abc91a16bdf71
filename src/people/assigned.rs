//! Users to whom records are assigned: the assignee of a deal, ticket or task, the owner of a client, who worked the hours.

use engine::context::Ctx;
use engine::error::{Error, Result};
use store::{Migration, Tx};

use crate::people::status::Status;

/// Returns why a user cannot be chosen, if so. A user who is suspended later stays on the records.
pub(crate) fn unfit(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Option<&'static str>> {
    let sql = "SELECT status FROM users WHERE account_id = $1 AND id = $2";
    let is_suspended = |row: &store::Row| Ok::<_, Error>(row.text(0)? == Status::Suspended.wire());
    let found = tx.first(sql, &[ctx.account.into(), id.into()], is_suspended)?;
    Ok(found.unwrap_or_default().then_some("is a suspended user"))
}

/// The columns that refer to users. `clients_of_owner` serves deleting a user: PostgreSQL would choose another index.
pub(crate) const MIGRATION: Migration = Migration {
    number: 93,
    name: "users of records",
    sql: "
ALTER TABLE deals ADD COLUMN assignee_id TEXT NOT NULL DEFAULT '';
CREATE INDEX deals_assignee ON deals (account_id, assignee_id, created_at, id);
ALTER TABLE tickets ADD COLUMN assignee_id TEXT NOT NULL DEFAULT '';
CREATE INDEX tickets_assignee ON tickets (account_id, assignee_id, created_at, id);
ALTER TABLE tasks ADD COLUMN assignee_id TEXT NOT NULL DEFAULT '';
CREATE INDEX tasks_assignee ON tasks (account_id, assignee_id, created_at, id);
ALTER TABLE clients ADD COLUMN owner_id TEXT NOT NULL DEFAULT '';
CREATE INDEX clients_owner ON clients (account_id, owner_id, created_at, id);
CREATE INDEX clients_of_owner ON clients (account_id, owner_id) WHERE owner_id <> '';
ALTER TABLE project_hours ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
CREATE INDEX project_hours_user ON project_hours (account_id, user_id, created_at, id);
",
};
