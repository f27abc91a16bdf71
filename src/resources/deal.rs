//! Deals: what may become a sale.

use money::Amount;
use store::{Migration, Tx};

use super::Resource;
use super::phase::Phase;
use super::pipeline::{Pipeline, in_order};
use crate::call::{Answer, Call};
use crate::context::Ctx;
use crate::error::{Error, FieldCode, Result, wrong};
use crate::input;
use crate::input::Input;
use crate::json::Json;
use crate::record::{ALL, Body, Checks, DETAIL, Day, INPUT, Kind, Link, REQUIRED};
use crate::records::{self, Work};
use crate::timers;
use crate::{choice, record};

choice! {
    /// How a deal stands.
    pub enum Status {
        /// Under way.
        #[default]
        Open = "open",
        /// Won.
        Won = "won",
        /// Lost.
        Lost = "lost",
    }
}

choice! {
    /// How much a deal matters.
    pub enum Priority {
        /// Little.
        Low = "low",
        /// As usual.
        #[default]
        Medium = "medium",
        /// Much.
        High = "high",
    }
}

record! {
    /// What may become a sale, on its way through the phases of a pipeline.
    pub struct Deal = "deal" in "deals", created_at: ALL;

    /// What it is about.
    title: String = REQUIRED.search().sort().example("\"New website\"");
    /// What it is worth, without VAT; also sent as a text with a dot.
    amount: Amount = INPUT.resets_to("0").sort().example("\"2500.00\"");
    /// `open`, `won` or `lost`.
    status: Status = INPUT.filter().example("\"open\"");
    /// How much it matters.
    priority: Priority = INPUT.default("\"medium\"").example("\"medium\"");
    /// The pipeline it is in; the first active one when nothing is sent.
    pipeline_id: Link = INPUT.kept().refers("pipelines").filter();
    /// The phase it is in; the first of its pipeline when nothing is sent.
    phase_id: Link = INPUT.kept().refers("phases").filter();
    /// The client it is with.
    client_id: Link = REQUIRED.refers("clients").filter();
    /// When it is expected to be decided.
    expected_close_date: Day = INPUT.sort().example("\"2026-06-30\"");
}

impl Checks for Deal {
    fn settle(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        let chose_phase = before.map_or(!self.phase_id.0.is_empty(), |before| before.phase_id != self.phase_id);
        let chose_pipeline =
            before.map_or(!self.pipeline_id.0.is_empty(), |before| before.pipeline_id != self.pipeline_id);
        if chose_phase && !self.phase_id.0.is_empty() {
            let phase: Phase = records::find(tx, ctx, &self.phase_id.0)?;
            if chose_pipeline && phase.pipeline_id != self.pipeline_id {
                let message = "is a phase of another pipeline than pipeline_id says";
                return Err(Error::field("phase_id", wrong(FieldCode::InvalidChoice, message)));
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

    fn saved(&self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        let opens = self.status == Status::Open && before.is_some_and(|before| before.status != Status::Open);
        if opens { timers::reopened(tx, ctx, &["deal.phase_idle", "deal.no_followup"], &self.base.id) } else { Ok(()) }
    }
}

input! {
    /// Where a deal goes.
    pub struct Move;

    /// The phase, also of another pipeline.
    phase_id: Link = INPUT.refers("phases");
    /// How it stands from now on.
    status: Status = INPUT.example("\"won\"");
}

impl Body for Move {
    /// `null` is the same as nothing.
    fn body(body: Json) -> Json {
        let Json::Object(mut members) = body else { return body };
        members.retain(|(_, json)| *json != Json::Null);
        Json::Object(members)
    }
}

/// Deals and their routes.
pub fn resource() -> Resource {
    Resource::of::<Deal>("Deals", "deals", MIGRATIONS)
        .list::<Deal>()
        .create::<Deal>()
        .get::<Deal>()
        .patch::<Deal>()
        .delete_shown::<Deal>()
        .action_with::<Move>("move", "Move a deal to a phase, or to won, lost or open", DETAIL, move_to)
        .action("win", "Mark a deal as won", DETAIL, win)
        .action("lose", "Mark a deal as lost", DETAIL, lose)
}

fn win(call: Call) -> Result<Work> {
    records::act::<Deal>(call, DETAIL, |deal, _| {
        deal.status = Status::Won;
        Ok("updated")
    })
}

fn lose(call: Call) -> Result<Work> {
    records::act::<Deal>(call, DETAIL, |deal, _| {
        deal.status = Status::Lost;
        Ok("updated")
    })
}

fn move_to(call: Call) -> Result<Work> {
    let input = input::create_with(&call, |input: &Input<Move>, faults| {
        if input.has("phase_id") && input.record().phase_id.is_empty() {
            faults.add("phase_id", wrong(FieldCode::Required, "must have a value"));
        }
        if input.sent().next().is_none() && faults.0.is_empty() {
            faults.add("body", wrong(FieldCode::NoFields, "must have at least one of: phase_id, status"));
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
    number: 16,
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
",
}];
