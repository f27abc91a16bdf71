//! Pipelines: the ways that deals go, from first contact to the end.

use store::{Migration, Tx};

use super::Resource;
use super::phase::Phase;
use crate::call::{Answer, Call, Outcome};
use crate::context::Ctx;
use crate::error::{Code, Error, Result};
use crate::json::{write_key, write_text};
use crate::record;
use crate::record::{Checks, INPUT, LIST, Link, NOWHERE, REQUIRED, Record};
use crate::records::{self, Work};

record! {
    /// A way that deals go, in phases.
    pub struct Pipeline = "pipeline" in "pipelines", order: "order", meta: NOWHERE;

    /// What it is called.
    name: String = REQUIRED.example("\"Sales\"");
    /// Whether deals still start in it.
    active: bool = INPUT.default("true").example("true");
    /// Its place among the others.
    order: i64 = INPUT.between(0, 1_000_000).resets_to("0").shown(NOWHERE).example("1");
}

impl Checks for Pipeline {}

/// Pipelines and their routes; the contract reads them.
pub fn resource() -> Resource {
    Resource::of::<Pipeline>("Pipelines", "deals", MIGRATIONS)
        .setting()
        .all_with(list)
        .managed::<Pipeline>()
        .delete_with(delete)
        .extension()
}

/// All pipelines, each with its phases.
fn list(call: Call) -> Result<Work> {
    let ignored: Vec<String> = call.query.names().map(str::to_string).collect();
    Ok(Box::new(move |tx, ctx| {
        let pipelines: Vec<Pipeline> = in_order(tx, ctx)?;
        let phases: Vec<Phase> = in_order(tx, ctx)?;
        let mut data = vec![b'['];
        for pipeline in &pipelines {
            if data.len() > 1 {
                data.push(b',');
            }
            pipeline.write_json(LIST, ctx, &mut data);
            data.pop();
            write_key(&mut data, "phases");
            write_phases(&phases, &pipeline.base.id, &mut data);
            data.push(b'}');
        }
        data.push(b']');
        let mut answer = Answer::data(Outcome::Done, data);
        answer.meta = vec![format!("\"total\":{}", pipelines.len())];
        Ok(answer.with_texts("ignored_params", &ignored))
    }))
}

fn write_phases(phases: &[Phase], pipeline: &str, data: &mut Vec<u8>) {
    data.push(b'[');
    for phase in phases.iter().filter(|phase| phase.pipeline_id.0 == pipeline) {
        if data.last() != Some(&b'[') {
            data.push(b',');
        }
        data.extend_from_slice(b"{\"id\":");
        write_text(data, &phase.base.id);
        write_key(data, "name");
        write_text(data, &phase.name);
        write_key(data, "order");
        data.extend_from_slice(phase.order.to_string().as_bytes());
        data.push(b'}');
    }
    data.push(b']');
}

/// All records of a short table, in their order.
pub fn in_order<R: Record>(tx: &mut Tx, ctx: &Ctx) -> Result<Vec<R>> {
    let sql = format!("{} WHERE account_id = $1 ORDER BY \"order\", id", R::sql().select);
    Ok(tx.all(&sql, &[ctx.account.into()], R::from_row)?)
}

/// One pipeline of five phases.
pub fn defaults(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    let mut pipeline = Pipeline { name: "Sales".into(), active: true, order: 1, ..Pipeline::default() };
    records::add(tx, ctx, &mut pipeline)?;
    for (order, name) in (1..).zip(["New", "Contact", "Proposal", "Negotiation", "Closing"]) {
        let pipeline_id = Link(pipeline.base.id.clone());
        let mut phase = Phase { pipeline_id, name: name.into(), order, ..Phase::default() };
        records::add(tx, ctx, &mut phase)?;
    }
    Ok(())
}

/// A pipeline goes with its phases, unless a deal is in it.
fn delete(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let pipeline: Pipeline = records::find_to_change(tx, ctx, &call)?;
        let deals = "SELECT count(*) FROM deals WHERE account_id = $1 AND pipeline_id = $2";
        if tx.int(deals, &[ctx.account.into(), (&pipeline.base.id).into()])? > 0 {
            return Err(Error::new(Code::InUse, "There are deals in this pipeline; move them first."));
        }
        let phases: Vec<Phase> = in_order(tx, ctx)?;
        for phase in phases.iter().filter(|phase| phase.pipeline_id.0 == pipeline.base.id) {
            records::remove(tx, ctx, phase)?;
        }
        records::remove(tx, ctx, &pipeline)?;
        Ok(Answer::empty())
    }))
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 13,
    name: "pipelines",
    sql: "
CREATE TABLE pipelines (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    name TEXT NOT NULL,
    active BIGINT NOT NULL CHECK (active IN (0, 1)),
    \"order\" BIGINT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX pipelines_order ON pipelines (account_id, \"order\", id);
",
}];
