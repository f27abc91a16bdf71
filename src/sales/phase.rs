//! The phases of a pipeline.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::record;
use engine::record::{INPUT, Link, Model, NOWHERE, REQUIRED};
use engine::records::{self, Work};
use engine::resource::Resource;
use store::{Migration, Tx};

use super::pipeline;

record! {
    /// A phase of a pipeline.
    pub struct Phase = "phase" in "phases", order: "order", meta: NOWHERE;

    /// The pipeline that the phase belongs to.
    pipeline_id: Link = REQUIRED.create_only().refers("pipelines").filter();
    /// Name.
    name: String = REQUIRED.example("\"Negotiation\"");
    /// Sort position in the pipeline.
    order: i64 = INPUT.between(0, 1_000_000).resets_to("0").example("3");
}

impl Model for Phase {
    fn after_save(&self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        if before == Some(self) { Ok(()) } else { pipeline::phases_changed(tx, ctx, &self.pipeline_id.0) }
    }
}

/// The resource of phases; in the contract they are read-only.
pub fn resource() -> Resource {
    Resource::of::<Phase>("Phases", "deals", MIGRATIONS)
        .setting()
        .all::<Phase>()
        .managed::<Phase>()
        .delete_with(delete)
        .extension()
}

fn delete(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let phase: Phase = records::find_to_change(tx, ctx, &call)?;
        let deals = "SELECT count(*) FROM deals WHERE account_id = $1 AND phase_id = $2";
        if tx.int(deals, &[ctx.account.into(), (&phase.base.id).into()])? > 0 {
            return Err(Error::new(Code::InUse, "This phase has deals. Move them first."));
        }
        records::remove(tx, ctx, &phase)?;
        pipeline::phases_changed(tx, ctx, &phase.pipeline_id.0)?;
        Ok(Answer::empty())
    }))
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 14,
    name: "phases",
    sql: "
CREATE TABLE phases (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    pipeline_id TEXT NOT NULL,
    name TEXT NOT NULL,
    \"order\" BIGINT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX phases_order ON phases (account_id, \"order\", id);
CREATE INDEX phases_pipeline ON phases (account_id, pipeline_id, \"order\", id);
",
}];
