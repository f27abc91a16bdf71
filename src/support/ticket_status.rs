//! The statuses of tickets.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::record::{INPUT, Model, NOWHERE, REQUIRED};
use engine::records::{self, Work};
use engine::resource::{Handler, Resource, Verb};
use engine::tables::Logged;
use engine::{choice, record};
use serde::{Deserialize, Serialize};
use store::{Migration, Tx};

choice! {
    /// The role of a status in the rules of tickets.
    pub enum Role {
        /// Not handled yet.
        New = "new",
        /// In progress.
        #[default]
        Open = "open",
        /// Waiting for someone else.
        Waiting = "waiting",
        /// Closed.
        Closed = "closed",
    }
}

record! {
    /// A status that a ticket can have.
    pub struct TicketStatus = "ticket_status" in "ticket_statuses", order: "order", meta: NOWHERE;

    /// Unique name, which tickets refer to.
    name: String = REQUIRED.names().at_most(100).unique(&[]).example("\"On its way\"").changed_to("\"Appointment made\"");
    /// Whether tickets can be given this status.
    active: bool = INPUT.filter().assumed("1").default("true").example("true");
    /// Sort position; a new ticket has the first active status.
    order: i64 = INPUT.between(0, 1_000_000).resets_to("0").example("9");
    /// The role of the status: `new`, `open`, `waiting` or `closed`.
    role: Role = INPUT.filter().example("\"open\"");
}

impl Model for TicketStatus {
    const MOST: i64 = 1000;

    /// Rejects a name that differs only in case: tickets match the name of their status in any case.
    fn before_save(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        if before.is_some_and(|before| before.name == self.name) {
            return Ok(());
        }
        check_free(tx, ctx, &self.base.id, &self.name)?;
        match named(tx, ctx, &self.name)? {
            Some(other) if other.base.id != self.base.id => {
                let message = format!("Another ticket status has the name '{}'.", other.name);
                Err(Error::new(Code::Duplicate, message))
            }
            _ => Ok(()),
        }
    }
}

/// The resource of ticket statuses; in the contract they are read-only.
pub fn resource(patch: Handler) -> Resource {
    Resource::of::<TicketStatus>("Ticket statuses", "tickets", MIGRATIONS)
        // A migration renamed duplicates without an event.
        .logged(Logged::Except(&["name"]))
        .setting()
        .all::<TicketStatus>()
        .create::<TicketStatus>()
        .extension()
        .get::<TicketStatus>()
        .extension()
        .verb(Verb::Patch, patch)
        .extension()
        .verb(Verb::Delete, delete)
        .extension()
}

/// Creates the default statuses: New, Open, Waiting and Closed.
pub fn defaults(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    let roles = [("New", Role::New), ("Open", Role::Open), ("Waiting", Role::Waiting), ("Closed", Role::Closed)];
    for (order, (name, role)) in (1..).zip(roles) {
        let mut status = TicketStatus { name: name.into(), active: true, order, role, ..TicketStatus::default() };
        records::add(tx, ctx, &mut status)?;
    }
    Ok(())
}

/// Finds a status by name, ignoring case.
pub fn named(tx: &mut Tx, ctx: &Ctx, name: &str) -> Result<Option<TicketStatus>> {
    let all: Vec<TicketStatus> = crate::sales::pipeline::in_order(tx, ctx)?;
    Ok(all.into_iter().find(|status| status.name.eq_ignore_ascii_case(name)))
}

/// Returns the names of all statuses, in order.
pub(crate) fn names(tx: &mut Tx, ctx: &Ctx) -> Result<Vec<String>> {
    let all: Vec<TicketStatus> = crate::sales::pipeline::in_order(tx, ctx)?;
    Ok(all.into_iter().map(|status| status.name).collect())
}

/// Returns the first active status, of this role if given.
pub fn first(tx: &mut Tx, ctx: &Ctx, role: Option<Role>) -> Result<Option<TicketStatus>> {
    let all: Vec<TicketStatus> = crate::sales::pipeline::in_order(tx, ctx)?;
    Ok(all.into_iter().find(|status| status.active && role.is_none_or(|role| status.role == role)))
}

/// The kind of the job that renames a status.
pub const RENAME_JOB: &str = "rename_ticket_status";

/// A job that gives tickets the new name of their status.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RenameStatus {
    /// The status.
    pub status: String,
    /// Its earlier name, which some tickets still have.
    pub old: String,
}

/// Rejects a name that tickets of another status still have, and a second new name before all tickets have the first.
fn check_free(tx: &mut Tx, ctx: &Ctx, status: &str, name: &str) -> Result<()> {
    let sql = "SELECT jobs.payload FROM ticket_statuses JOIN jobs ON jobs.unique_key = $1 || ticket_statuses.id
               WHERE ticket_statuses.account_id = $2";
    let under_way = tx.all(sql, &[rename_key("").into(), ctx.account.into()], |row| {
        let read = serde_json::from_str::<RenameStatus>(row.text(0)?);
        read.map_err(|_| Error::internal("the payload of a rename cannot be read"))
    })?;
    match under_way.iter().find(|rename| rename.status == status || rename.old.eq_ignore_ascii_case(name)) {
        Some(rename) => {
            let message =
                format!("Tickets with the status '{}' are still being renamed. Retry in a moment.", rename.old);
            Err(Error::new(Code::InvalidTransition, message))
        }
        None => Ok(()),
    }
}

/// Whether tickets of a status still have an earlier name of it.
fn is_under_way(tx: &mut Tx, status: &str) -> Result<bool> {
    Ok(tx.int("SELECT count(*) FROM jobs WHERE unique_key = $1", &[rename_key(status).into()])? > 0)
}

/// Returns the unique key of the job that renames a status.
pub fn rename_key(status: &str) -> String {
    format!("{RENAME_JOB} {status}")
}

fn delete(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let status: TicketStatus = records::find_to_change(tx, ctx, &call)?;
        let tickets =
            "SELECT count(*) FROM (SELECT 1 FROM tickets WHERE account_id = $1 AND status = $2 LIMIT 1) AS found";
        let is_used = tx.int(tickets, &[ctx.account.into(), (&status.name).into()])? > 0;
        if is_used || is_under_way(tx, &status.base.id)? {
            return Err(Error::new(Code::InUse, "This status is used by tickets. Make it inactive instead."));
        }
        records::remove(tx, ctx, &status)?;
        Ok(Answer::empty())
    }))
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 44,
    name: "ticket statuses",
    sql: "
CREATE TABLE ticket_statuses (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    name TEXT NOT NULL,
    active BIGINT NOT NULL CHECK (active IN (0, 1)),
    \"order\" BIGINT NOT NULL,
    role TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX ticket_statuses_order ON ticket_statuses (account_id, \"order\", id);
CREATE INDEX ticket_statuses_active ON ticket_statuses (account_id, active, \"order\", id);
CREATE UNIQUE INDEX ticket_statuses_name ON ticket_statuses (account_id, name);
CREATE INDEX ticket_statuses_role ON ticket_statuses (account_id, role, \"order\", id);
",
}];
