//! Hours: time worked on projects, with an approval process.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, Result, violation};
use engine::input::Input;
use engine::record::{Body, COMPUTED, DETAIL, Day, INPUT, Link, Model, Record, Transitions, check_transition};
use engine::records::{self, Work};
use engine::resource::{Method, RequestBody, Resource, Verb};
use engine::slice::Slice;
use engine::tables::Relink;
use engine::{choice, input, record};
use money::{Amount, Decimal};
use store::{Migration, Tx};

choice! {
    /// The status of an entry.
    pub enum Status {
        /// Not submitted yet.
        #[default]
        Draft = "draft",
        /// Awaiting approval.
        Submitted = "submitted",
        /// Approved and locked.
        Approved = "approved",
        /// Rejected; can be corrected and submitted again.
        Rejected = "rejected",
    }
}

/// The allowed transitions.
pub const TRANSITIONS: Transitions<Status> = &[
    (Status::Draft, &[Status::Submitted]),
    (Status::Rejected, &[Status::Submitted]),
    (Status::Submitted, &[Status::Approved, Status::Rejected, Status::Draft]),
];

record! {
    /// Time worked on a project.
    pub struct Hour = "hour" in "project_hours", parent: "project_id";

    /// Date; defaults to today.
    date: Day = INPUT.kept().sort().range("from", "to").example("\"2026-05-04\"");
    /// Duration in hours, such as 1.5; derived from the minutes if only those are sent.
    hours: Amount = INPUT.between(0, 1_000).example("1.5");
    /// Duration in minutes; derived from the hours if only those are sent.
    minutes: i64 = INPUT.between(0, 60_000).example("90");
    /// Status; change it with the actions.
    status: Status = COMPUTED.filter();
    /// Description of the work.
    activity_name: String = INPUT.example("\"Design\"");
    /// The project.
    project_id: Link = COMPUTED.refers("projects").in_meta();
    /// The user who worked. A user with hours cannot be deleted, and a suspended user cannot be chosen.
    user_id: Link = INPUT.refers("users").filter().in_meta();
    /// The invoice that bills them. Deleting it, while it is a draft, clears this; `POST /v1/invoices/{id}/release-hours` does so
    /// for a draft, and for an invoice that is credited in full.
    invoice_id: Link = COMPUTED.nullable().refers("invoices").filter().filter_filled("invoiced").in_meta();
    /// Why they are rejected, if whoever rejected them said so; empty as soon as they have another status.
    rejected_reason: String = COMPUTED.in_meta();
}

input! {
    /// Why hours are rejected.
    pub struct Rejection;

    /// The reason, for whoever worked them.
    reason: String = INPUT.example("\"Please add what you did\"");
}

impl Body for Rejection {}

impl Model for Hour {
    fn before_save(&mut self, _: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        if before.is_some_and(|before| before.status == Status::Approved) {
            return Err(Error::new(Code::Locked, "These hours are approved and can no longer be changed."));
        }
        if self.date.0.is_none() {
            self.date = Day(Some(ctx.now.date(&ctx.zone)));
        }
        let (old_hours, old_minutes) = before.map_or((Amount::ZERO, 0), |before| (before.hours, before.minutes));
        let field = if self.minutes != old_minutes { "minutes" } else { "hours" };
        match (self.hours != old_hours, self.minutes != old_minutes) {
            (true, false) => self.minutes = in_minutes(self.hours),
            (false, true) => self.hours = in_hours(self.minutes),
            (true, true) if in_minutes(self.hours) != self.minutes && in_hours(self.minutes) != self.hours => {
                return Err(Error::field("minutes", violation(FieldCode::OutOfRange, "and hours do not match")));
            }
            _ => {}
        }
        if self.minutes == 0 {
            return Err(Error::field(field, violation(FieldCode::OutOfRange, "must be more than 0")));
        }
        Ok(())
    }
}

fn in_minutes(hours: Amount) -> i64 {
    let sixty: Decimal<0> = Decimal::from_scaled(60);
    let minutes: Option<Decimal<0>> = hours.times(sixty);
    minutes.map_or(0, Decimal::scaled)
}

/// Converts minutes to hours with two decimals, rounded half up.
pub(crate) fn in_hours(minutes: i64) -> Amount {
    Amount::from_scaled((minutes * 100 + 30) / 60)
}

/// The resource of hours; in the contract they are read-only. `all_hours.rs` has the routes across projects.
pub(crate) fn resource() -> Resource {
    Resource::of::<Hour>("Project hours", "projects", MIGRATIONS)
        .relinked(relink)
        .relinked_last()
        .at("/v1/projects/{id}/hours")
        .list::<Hour>()
        .managed::<Hour>()
        .verb(Verb::Delete, delete)
        .extension()
        .route(Method::Post, "/{hour_id}/submit", "Submit hours for approval", |call| {
            become_status(call, Status::Submitted, "submitted")
        })
        .extension()
        .route(Method::Post, "/{hour_id}/approve", "Approve hours, which locks them", |call| {
            become_status(call, Status::Approved, "approved")
        })
        .extension()
        .route(Method::Post, "/{hour_id}/reject", "Reject hours, with a reason if you send one", reject)
        .body::<Rejection>(RequestBody::Maybe)
        .extension()
        .route(Method::Post, "/{hour_id}/withdraw", "Withdraw hours, which become a draft again", |call| {
            become_status(call, Status::Draft, "updated")
        })
        .extension()
}

fn become_status(call: Call, to: Status, event: &'static str) -> Result<Work> {
    records::act(call, DETAIL, move |hour: &mut Hour, _| {
        hour.move_to(to, "")?;
        Ok(event)
    })
}

fn reject(call: Call) -> Result<Work> {
    let (mut reason, mut warnings) = (String::new(), Vec::new());
    if call.body.is_some() {
        let input: Input<Rejection> = input::create(&call)?;
        (reason, warnings) = (input.record().reason, input.warnings);
    }
    Ok(Box::new(move |tx, ctx| {
        let before: Hour = records::find_to_change(tx, ctx, &call)?;
        let mut hour = before.clone();
        hour.move_to(Status::Rejected, &reason)?;
        records::change(tx, ctx, &before, &mut hour, "rejected")?;
        Ok(Answer::record(ctx, &hour, DETAIL).with_texts("warnings", &warnings))
    }))
}

impl Hour {
    /// Changes the status, if its transitions allow it. The reason is that of a rejection.
    pub(crate) fn move_to(&mut self, to: Status, reason: &str) -> Result<()> {
        check_transition(TRANSITIONS, &self.status, &to, || {
            format!("Hours cannot move from {} to {}.", self.status.wire(), to.wire())
        })?;
        self.status = to;
        self.rejected_reason = reason.to_string();
        Ok(())
    }

    /// Saves that an invoice bills these hours, or that none does. They are locked for callers, not for this: what was worked stays the same.
    pub(crate) fn bill(&self, tx: &mut Tx, ctx: &Ctx, invoice: &str) -> Result<()> {
        let mut billed = self.clone();
        billed.invoice_id = Link(invoice.to_string());
        records::update(tx, ctx, self, &mut billed, "updated")
    }
}

/// The hours that an invoice bills, oldest first.
pub(crate) fn billed_by(tx: &mut Tx, ctx: &Ctx, invoice: &str) -> Result<Vec<Hour>> {
    let sql = format!(
        "{}{} WHERE account_id = $1 AND invoice_id = $2 AND invoice_id <> '' ORDER BY date, id",
        Hour::sql().select,
        tx.dialect().indexed_by("project_hours_of_invoice")
    );
    Ok(tx.all(&sql, &[ctx.account.into(), invoice.into()], Hour::from_row)?)
}

/// The approved hours of a project between two days that no invoice bills, oldest first: `most` of them.
pub(crate) fn unbilled(tx: &mut Tx, ctx: &Ctx, project: &str, days: [&Day; 2], most: usize) -> Result<Vec<Hour>> {
    let [from, to] = days.map(|day| day.0.map(|date| date.to_string()));
    let sql = format!(
        "{}{} WHERE account_id = $1 AND project_id = $2 AND invoice_id = '' AND status = '{}' AND date >= $3 AND date <= $4
         ORDER BY date, id LIMIT {most}",
        Hour::sql().select,
        tx.dialect().indexed_by("project_hours_billed"),
        Status::Approved.wire()
    );
    let (from, to) = (from.unwrap_or_default(), to.unwrap_or_else(|| LAST_DAY.to_string()));
    Ok(tx.all(&sql, &[ctx.account.into(), project.into(), from.into(), to.into()], Hour::from_row)?)
}

/// The last day that a date can be.
const LAST_DAY: &str = "9999-12-31";

/// Changes a link of hours whose record is deleted or merged. All hours of a deleted draft are free again in the transaction that
/// deletes it: before, the draft could become final, and would bill hours that another invoice can bill too. An invoice has few
/// enough of them.
fn relink(tx: &mut Tx, ctx: &Ctx, link: &Relink, slice: &Slice) -> Result<bool> {
    match link.field {
        "invoice_id" => records::relink::<Hour>(tx, ctx, link, &Slice::endless()),
        _ => records::relink::<Hour>(tx, ctx, link, slice),
    }
}

fn delete(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let hour: Hour = records::find_to_change(tx, ctx, &call)?;
        if hour.status == Status::Approved {
            return Err(Error::new(Code::Locked, "These hours are approved and cannot be deleted."));
        }
        records::remove(tx, ctx, &hour)?;
        Ok(Answer::empty())
    }))
}

/// Rejects deleting a user who has hours: approved hours are locked, and would lose who worked them.
pub(crate) fn guard_user(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<()> {
    let sql = "SELECT 1 FROM project_hours WHERE account_id = $1 AND user_id = $2 AND user_id <> '' LIMIT 1";
    match tx.first(sql, &[ctx.account.into(), id.into()], |_| Ok::<_, Error>(()))? {
        Some(()) => Err(Error::new(Code::InUse, "The user has hours. Suspend the user instead.")),
        None => Ok(()),
    }
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 32,
    name: "project hours",
    sql: "
CREATE TABLE project_hours (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    date TEXT NOT NULL,
    hours BIGINT NOT NULL,
    minutes BIGINT NOT NULL,
    status TEXT NOT NULL,
    activity_name TEXT NOT NULL,
    project_id TEXT NOT NULL,
    user_id TEXT NOT NULL DEFAULT '',
    invoice_id TEXT NOT NULL DEFAULT '',
    rejected_reason TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX project_hours_created ON project_hours (account_id, project_id, created_at, id);
CREATE INDEX project_hours_id ON project_hours (account_id, project_id, id);
CREATE INDEX project_hours_date ON project_hours (account_id, project_id, date, id);
CREATE INDEX project_hours_status ON project_hours (account_id, project_id, status, created_at, id);
CREATE INDEX project_hours_user ON project_hours (account_id, user_id, created_at, id);
CREATE INDEX project_hours_all ON project_hours (account_id, created_at, id);
CREATE INDEX project_hours_dates ON project_hours (account_id, date, id);
CREATE INDEX project_hours_dated ON project_hours (account_id, date, created_at, id);
CREATE INDEX project_hours_statuses ON project_hours (account_id, status, created_at, id);
CREATE INDEX project_hours_billed ON project_hours (account_id, project_id, invoice_id, created_at, id);
CREATE INDEX project_hours_invoice ON project_hours (account_id, invoice_id, created_at, id);
CREATE INDEX project_hours_of_invoice ON project_hours (account_id, invoice_id) WHERE invoice_id <> '';
",
}];
