//! The states of tickets.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::record::{INPUT, Model, NOWHERE, REQUIRED};
use engine::records::{self, Work};
use engine::resource::Resource;
use engine::{choice, record};
use store::{Migration, Tx};

use super::renaming;

choice! {
    /// What a status means to the rules of tickets.
    pub enum Role {
        /// Nothing was done yet.
        New = "new",
        /// Being worked on.
        #[default]
        Open = "open",
        /// Waiting for somebody else.
        Waiting = "waiting",
        /// Done.
        Closed = "closed",
    }
}

record! {
    /// A status that a ticket can have.
    pub struct TicketStatus = "ticket_status" in "ticket_statuses", order: "order", meta: NOWHERE;

    /// Unique name, which tickets refer to.
    name: String = REQUIRED.at_most(100).unique(&[]).example("\"On its way\"");
    /// Whether tickets can be given this status.
    active: bool = INPUT.filter().assumed("1").default("true").example("true");
    /// Sort position; a new ticket has the first active status.
    order: i64 = INPUT.between(0, 1_000_000).resets_to("0").example("9");
    /// The role of the status: `new`, `open`, `waiting` or `closed`.
    role: Role = INPUT.example("\"open\"");
}

impl Model for TicketStatus {
    /// Tickets find their status in any case of its letters, so two names differ in more than that.
    fn before_save(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        if before.is_some_and(|before| before.name == self.name) {
            return Ok(());
        }
        renaming::check_free(tx, ctx, &self.base.id, &self.name)?;
        match named(tx, ctx, &self.name)? {
            Some(other) if other.base.id != self.base.id => {
                let message = format!("Another ticket status has the name '{}'.", other.name);
                Err(Error::new(Code::Duplicate, message))
            }
            _ => Ok(()),
        }
    }
}

/// Statuses and their routes; the contract reads them.
pub fn resource() -> Resource {
    Resource::of::<TicketStatus>("Ticket statuses", "tickets", MIGRATIONS)
        // A migration told two of one name apart.
        .changes_silently(&["name"])
        .setting()
        .all::<TicketStatus>()
        .create::<TicketStatus>()
        .extension()
        .get::<TicketStatus>()
        .extension()
        .patch_with::<TicketStatus>(patch)
        .extension()
        .delete_with(delete)
        .extension()
}

/// New, Open, Waiting, Closed.
pub fn defaults(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    let roles = [("New", Role::New), ("Open", Role::Open), ("Waiting", Role::Waiting), ("Closed", Role::Closed)];
    for (order, (name, role)) in (1..).zip(roles) {
        let mut status = TicketStatus { name: name.into(), active: true, order, role, ..TicketStatus::default() };
        records::add(tx, ctx, &mut status)?;
    }
    Ok(())
}

/// The status of this name, in any case.
pub fn named(tx: &mut Tx, ctx: &Ctx, name: &str) -> Result<Option<TicketStatus>> {
    let all: Vec<TicketStatus> = crate::sales::pipeline::in_order(tx, ctx)?;
    Ok(all.into_iter().find(|status| status.name.eq_ignore_ascii_case(name)))
}

/// The first active status, of this role if there is one to choose.
pub fn first(tx: &mut Tx, ctx: &Ctx, role: Option<Role>) -> Result<Option<TicketStatus>> {
    let all: Vec<TicketStatus> = crate::sales::pipeline::in_order(tx, ctx)?;
    Ok(all.into_iter().find(|status| status.active && role.is_none_or(|role| status.role == role)))
}

/// A status that gets another name keeps its tickets.
fn patch(call: Call) -> Result<Work> {
    let write = records::patch::<TicketStatus>(call.clone())?;
    Ok(Box::new(move |tx, ctx| {
        let before: TicketStatus = records::find(tx, ctx, call.id())?;
        let answer = write(tx, ctx)?;
        let status: TicketStatus = records::find(tx, ctx, call.id())?;
        if status.name == before.name {
            return Ok(answer);
        }
        renaming::follow(tx, ctx, &status, before.name, answer)
    }))
}

fn delete(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let status: TicketStatus = records::find_to_change(tx, ctx, &call)?;
        let tickets =
            "SELECT count(*) FROM (SELECT 1 FROM tickets WHERE account_id = $1 AND status = $2 LIMIT 1) AS found";
        let is_used = tx.int(tickets, &[ctx.account.into(), (&status.name).into()])? > 0;
        if is_used || renaming::is_under_way(tx, &status.base.id)? {
            return Err(Error::new(Code::InUse, "This status is used by tickets. Make it inactive instead."));
        }
        records::remove(tx, ctx, &status)?;
        Ok(Answer::empty())
    }))
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        number: 19,
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
",
    },
    // Where a name was given twice, the later status gets its id behind it; tickets stay with the first.
    Migration {
        number: 44,
        name: "ticket statuses have names of their own",
        sql: "
UPDATE ticket_statuses SET name = substr(name, 1, 60) || ' ' || id
WHERE EXISTS (SELECT 1 FROM ticket_statuses other WHERE other.account_id = ticket_statuses.account_id
              AND other.name = ticket_statuses.name AND other.id < ticket_statuses.id);
CREATE UNIQUE INDEX ticket_statuses_name ON ticket_statuses (account_id, name);
",
    },
];
