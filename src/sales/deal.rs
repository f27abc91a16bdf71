//! Deals: sales opportunities.

use engine::call::{Answer, Call};
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, FieldCode, Result, violation};
use engine::input::Input;
use engine::json::Json;
use engine::record::{ALL, Body, DETAIL, Day, INPUT, Kind, Link, Model, REQUIRED};
use engine::records::{self, Work};
use engine::resource::{Method, RequestBody, Resource, Returns, Verb};
use engine::timers::{self, Of, Since, Timer};
use engine::{choice, input, once, record};
use jiff::civil::Date;
use money::Amount;
use store::{Migration, Tx};

use super::pipeline::{Phase, Pipeline, in_order};
use crate::settings::Settings;

choice! {
    /// The status of a deal.
    pub enum Status {
        /// In progress.
        #[default]
        Open = "open",
        /// Won.
        Won = "won",
        /// Lost.
        Lost = "lost",
    }
}

choice! {
    /// The priority of a deal.
    pub enum Priority {
        /// Low.
        Low = "low",
        /// Medium.
        #[default]
        Medium = "medium",
        /// High.
        High = "high",
    }
}

record! {
    /// A sales opportunity that moves through the phases of a pipeline.
    pub struct Deal = "deal" in "deals", created_at: ALL;

    /// Title.
    title: String = REQUIRED.names().search().sort().example("\"New website\"");
    /// Value excluding VAT; may also be sent as a string with a decimal point.
    amount: Amount = INPUT.resets_to("0").sort().example("\"2500.00\"");
    /// `open`, `won` or `lost`.
    status: Status = INPUT.filter().filter_when("without_task", without_task, "Whether the deal has no open task.").example("\"open\"");
    /// Priority.
    priority: Priority = INPUT.filter().default("\"medium\"").example("\"medium\"");
    /// The pipeline of the deal; defaults to the first active one.
    pipeline_id: Link = INPUT.kept().refers("pipelines").filter();
    /// The phase of the deal; defaults to the first phase of its pipeline.
    phase_id: Link = INPUT.kept().refers("phases").filter();
    /// The client.
    client_id: Link = REQUIRED.refers("clients").filter();
    /// The expected close date.
    expected_close_date: Day = INPUT.sort().example("\"2026-06-30\"");
    /// The user who is responsible; cleared if the user is deleted. A suspended user cannot be chosen.
    assignee_id: Link = INPUT.refers("users").filter().in_meta();
}

/// The condition that a deal has no open task. They are counted: for a `NOT EXISTS` PostgreSQL might read all tasks first.
fn without_task() -> String {
    "(SELECT count(*) FROM tasks WHERE tasks.account_id = deals.account_id AND tasks.deal_id = deals.id
      AND tasks.deal_id <> '' AND tasks.status = 'open') = 0"
        .to_string()
}

impl Model for Deal {
    fn before_save(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        let chose_phase = before.map_or(!self.phase_id.0.is_empty(), |before| before.phase_id != self.phase_id);
        let chose_pipeline =
            before.map_or(!self.pipeline_id.0.is_empty(), |before| before.pipeline_id != self.pipeline_id);
        if chose_phase && !self.phase_id.0.is_empty() {
            let phase: Phase = records::find(tx, ctx, &self.phase_id.0)?;
            if chose_pipeline && phase.pipeline_id != self.pipeline_id {
                let message = "belongs to a different pipeline than pipeline_id";
                return Err(Error::field("phase_id", violation(FieldCode::InvalidChoice, message)));
            }
            self.pipeline_id = phase.pipeline_id;
            return Ok(());
        }
        if self.pipeline_id.0.is_empty() {
            let pipelines: Vec<Pipeline> = in_order(tx, ctx)?;
            let first = pipelines.into_iter().find(|pipeline| pipeline.active);
            self.pipeline_id = first.map(|pipeline| Link(pipeline.base.id)).unwrap_or_default();
        }
        let moved = before.is_none_or(|before| before.pipeline_id != self.pipeline_id) || self.phase_id.0.is_empty();
        if moved {
            let phases: Vec<Phase> = in_order(tx, ctx)?;
            let first = phases.into_iter().find(|phase| phase.pipeline_id == self.pipeline_id);
            self.phase_id = first.map(|phase| Link(phase.base.id)).unwrap_or_default();
        }
        Ok(())
    }

    fn events(&self, before: Option<&Self>) -> Vec<&'static str> {
        let mut events = Vec::new();
        if before.is_some_and(|before| before.phase_id != self.phase_id) {
            events.push("phase_changed");
        }
        if before.map_or(Status::Open, |before| before.status) != self.status {
            match self.status {
                Status::Won => events.push("won"),
                Status::Lost => events.push("lost"),
                Status::Open => {}
            }
        }
        events
    }

    fn after_save(&self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        let opens = self.status == Status::Open && before.is_some_and(|before| before.status != Status::Open);
        if !opens {
            return Ok(());
        }
        // Timers that expired while the deal was closed start again.
        PHASE_IDLE.arm(tx, ctx, &self.base.id, ctx.now)?;
        NO_FOLLOWUP.arm(tx, ctx, &self.base.id, ctx.now)
    }
}

/// The deal has not changed for a number of days.
pub static STALLED: Timer<Settings> = Timer {
    cause: "deal.stalled",
    about: &["deal"],
    armed_by: &[("deal.created", Of::Itself), ("deal.updated", Of::Itself)],
    since: timers::NOW,
    days: Some(|settings| settings.deal_stalled_days),
    run_out: |tx, ctx, id| match open(tx, ctx, id)? {
        Some(deal) => records::emit(tx, ctx, &deal, STALLED.cause),
        None => Ok(()),
    },
};

/// The deal has been in its phase for a number of days.
pub static PHASE_IDLE: Timer<Settings> = Timer {
    cause: "deal.phase_idle",
    about: &["deal"],
    armed_by: &[("deal.created", Of::Itself), ("deal.phase_changed", Of::Itself)],
    since: timers::NOW,
    days: Some(|settings| settings.deal_phase_idle_days),
    run_out: |tx, ctx, id| match open(tx, ctx, id)? {
        Some(deal) => records::emit(tx, ctx, &deal, PHASE_IDLE.cause),
        None => Ok(()),
    },
};

/// The expected close date has come.
pub static CLOSE_DUE: Timer<Settings> = Timer {
    cause: "deal.close_due",
    about: &["deal"],
    armed_by: &[("deal.created", Of::Itself), ("deal.updated", Of::Itself)],
    since: |ctx, data| {
        let date = data.text("expected_close_date").and_then(|date| date.parse::<Date>().ok());
        match date.filter(|date| *date >= ctx.now.date(&ctx.zone)) {
            Some(date) => Since::At(Moment::start_of(date, &ctx.zone)),
            None => Since::Never,
        }
    },
    days: None,
    run_out: |tx, ctx, id| {
        let Some(deal) = open(tx, ctx, id)? else { return Ok(()) };
        let date = deal.expected_close_date.0.map(|date| date.to_string()).unwrap_or_default();
        // On that day, each change arms the timer again.
        let first = once::first_time(tx, ctx, &format!("{} {date}", CLOSE_DUE.cause), id)?;
        if first { records::emit(tx, ctx, &deal, CLOSE_DUE.cause) } else { Ok(()) }
    },
};

/// The deal had no open task for a number of days.
pub static NO_FOLLOWUP: Timer<Settings> = Timer {
    cause: "deal.no_followup",
    about: &["deal"],
    armed_by: &[
        ("deal.created", Of::Itself),
        ("task.completed", Of::Member("meta.deal_id")),
        ("task.deleted", Of::Member("meta.deal_id")),
    ],
    since: timers::NOW,
    days: Some(|settings| settings.deal_no_followup_days),
    run_out: |tx, ctx, id| {
        let Some(deal) = open(tx, ctx, id)? else { return Ok(()) };
        let sql = "SELECT 1 FROM tasks WHERE account_id = $1 AND deal_id = $2 AND status = 'open' LIMIT 1";
        let has_task = tx.first(sql, &[ctx.account.into(), id.into()], |_| Ok::<_, Error>(()))?.is_some();
        if has_task { Ok(()) } else { records::emit(tx, ctx, &deal, NO_FOLLOWUP.cause) }
    },
};

/// Returns the deal, if it is open.
fn open(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Option<Deal>> {
    Ok(Some(records::find::<Deal>(tx, ctx, id)?).filter(|deal| deal.status == Status::Open))
}

input! {
    /// The destination of a deal.
    pub struct Move;

    /// The phase to move to; may belong to another pipeline.
    phase_id: Link = INPUT.refers("phases");
    /// The new status.
    status: Status = INPUT.example("\"won\"");
}

impl Body for Move {
    /// Treats `null` as a missing field.
    fn body(body: Json) -> Json {
        let Json::Object(mut members) = body else { return body };
        members.retain(|(_, json)| *json != Json::Null);
        Json::Object(members)
    }
}

/// The resource of deals.
pub fn resource() -> Resource {
    Resource::of::<Deal>("Deals", "deals", MIGRATIONS)
        .list::<Deal>()
        .create::<Deal>()
        .get::<Deal>()
        .patch::<Deal>()
        .verb(Verb::Delete, records::delete_shown::<Deal>)
        .removed_together::<Deal>()
        .returns(Returns::Item(DETAIL))
        .route(Method::Post, "/{id}/move", "Move a deal to a phase, or to won, lost or open", move_to)
        .body::<Move>(RequestBody::Body)
        .route(Method::Post, "/{id}/win", "Mark a deal as won", |call| set_status(call, Status::Won))
        .route(Method::Post, "/{id}/lose", "Mark a deal as lost", |call| set_status(call, Status::Lost))
}

fn set_status(call: Call, status: Status) -> Result<Work> {
    records::act(call, DETAIL, move |deal: &mut Deal, _| {
        deal.status = status;
        Ok("updated")
    })
}

fn move_to(call: Call) -> Result<Work> {
    let input = input::create_with(&call, |input: &Input<Move>, faults| {
        if input.has("phase_id") && input.record().phase_id.is_empty() {
            faults.add("phase_id", violation(FieldCode::Required, "must have a value"));
        }
        if input.sent().next().is_none() && faults.0.is_empty() {
            faults.add("body", violation(FieldCode::NoFields, "must contain at least one of: phase_id, status"));
        }
    })?;
    Ok(Box::new(move |tx, ctx| {
        let before: Deal = records::find_to_change(tx, ctx, &call)?;
        let mut deal = before.clone();
        let to = input.record();
        records::check_references(tx, ctx, &to, &input)?;
        if input.has("phase_id") {
            deal.phase_id = to.phase_id;
        }
        if input.has("status") {
            deal.status = to.status;
        }
        records::change(tx, ctx, &before, &mut deal, "updated")?;
        Ok(Answer::record(ctx, &deal, DETAIL).with_texts("warnings", &input.warnings))
    }))
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 28,
    name: "deals",
    sql: "
CREATE TABLE deals (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    title TEXT NOT NULL,
    amount BIGINT NOT NULL,
    status TEXT NOT NULL,
    priority TEXT NOT NULL,
    pipeline_id TEXT NOT NULL,
    phase_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    expected_close_date TEXT NOT NULL,
    assignee_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX deals_created ON deals (account_id, created_at, id);
CREATE INDEX deals_title ON deals (account_id, title, id);
CREATE INDEX deals_amount ON deals (account_id, amount, id);
CREATE INDEX deals_close ON deals (account_id, expected_close_date, id);
CREATE INDEX deals_status ON deals (account_id, status, created_at, id);
CREATE INDEX deals_pipeline ON deals (account_id, pipeline_id, created_at, id);
CREATE INDEX deals_phase ON deals (account_id, phase_id, created_at, id);
CREATE INDEX deals_client ON deals (account_id, client_id, created_at, id);
CREATE INDEX deals_assignee ON deals (account_id, assignee_id, created_at, id);
CREATE INDEX deals_priority ON deals (account_id, priority, created_at, id);
",
}];
