//! Pipelines: the ways that deals go, from first contact to the end, with their phases.

use engine::call::{Answer, Call, Outcome};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldErrors, Result};
use engine::input::{self, Input};
use engine::json::{write_key, write_text};
use engine::record;
use engine::record::{CREATED, INPUT, LIST, Link, Model, NOWHERE, REQUIRED, Record};
use engine::records::{self, Work};
use engine::resource::{Part, Resource, Verb};
use engine::slice::{Slice, TOGETHER};
use store::{Migration, Tx};

record! {
    /// A sales process, divided into phases.
    pub struct Pipeline = "pipeline" in "pipelines", order: "order", meta: NOWHERE, parts: PARTS;

    /// Name.
    name: String = REQUIRED.names().example("\"Sales\"");
    /// Whether new deals can start in this pipeline.
    active: bool = INPUT.default("true").example("true");
    /// Sort position; a new pipeline without one goes last.
    order: i64 = INPUT.between(0, 1_000_000).resets_to("0").shown(NOWHERE).example("1");
}

impl Model for Pipeline {
    const MOST: i64 = 1000;
}

record! {
    /// A phase of a pipeline.
    pub struct Phase = "phase" in "phases", order: "order", meta: NOWHERE;

    /// The pipeline that the phase belongs to.
    pipeline_id: Link = REQUIRED.create_only().refers("pipelines").filter();
    /// Name.
    name: String = REQUIRED.names().example("\"Negotiation\"");
    /// Sort position in the pipeline.
    order: i64 = INPUT.between(0, 1_000_000).resets_to("0").example("3");
}

impl Model for Phase {
    const MOST: i64 = 10_000;

    fn after_save(&self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        if before == Some(self) { Ok(()) } else { phases_changed(tx, ctx, &self.pipeline_id.0) }
    }
}

/// Fields of a pipeline besides those of its record.
const PARTS: &[Part] = &[Part("phases", "array", "Its phases in order: `id`, `name`, `order`.")];

/// The resource of pipelines; in the contract they are read-only.
pub fn resource() -> Resource {
    Resource::of::<Pipeline>("Pipelines", "deals", MIGRATIONS)
        .setting()
        .verb(Verb::All, list)
        .verb(Verb::Create, create)
        .extension()
        .verb(Verb::Get, get)
        .extension()
        .verb(Verb::Patch, patch)
        .extension()
        .verb(Verb::Delete, delete)
        .extension()
}

/// Phases and their routes; the contract reads them.
pub fn phases() -> Resource {
    Resource::of::<Phase>("Phases", "deals", PHASES)
        .setting()
        .all::<Phase>()
        .managed::<Phase>()
        .verb(Verb::Delete, delete_phase)
        .extension()
}

/// Lists all pipelines with their phases.
fn list(call: Call) -> Result<Work> {
    let ignored: Vec<String> = call.query.names().map(str::to_string).collect();
    let mut faults = FieldErrors::default();
    call.refuse_unknown(&ignored, &[], &mut faults);
    faults.into_result()?;
    Ok(Box::new(move |tx, ctx| {
        let pipelines: Vec<Pipeline> = in_order(tx, ctx)?;
        let phases: Vec<Phase> = in_order(tx, ctx)?;
        let mut data = vec![b'['];
        for pipeline in &pipelines {
            if data.len() > 1 {
                data.push(b',');
            }
            pipeline.write_json(LIST, ctx, &mut data);
            write_phases(&phases, &pipeline.base.id, &mut data);
        }
        data.push(b']');
        let mut answer = Answer::data(Outcome::Done, data);
        answer.meta = vec![format!("\"total\":{}", pipelines.len())];
        Ok(answer.with_texts("ignored_params", &ignored))
    }))
}

fn create(call: Call) -> Result<Work> {
    let input: Input<Pipeline> = input::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let mut pipeline = input.record();
        if !input.has("order") {
            // The first one is where new deals start: another one does not take its place by itself.
            let last = in_order::<Pipeline>(tx, ctx)?.last().map_or(0, |last| last.order);
            pipeline.order = (last + 1).min(1_000_000);
        }
        records::add(tx, ctx, &mut pipeline)?;
        let answer = Answer::created(ctx, &pipeline, CREATED).with_texts("warnings", &input.warnings);
        with_phases(tx, ctx, answer, &pipeline.base.id)
    }))
}

fn get(call: Call) -> Result<Work> {
    let read = records::get::<Pipeline>(call.clone())?;
    Ok(Box::new(move |tx, ctx| {
        let answer = read(tx, ctx)?;
        with_phases(tx, ctx, answer, call.id())
    }))
}

fn patch(call: Call) -> Result<Work> {
    let write = records::patch::<Pipeline>(call.clone())?;
    Ok(Box::new(move |tx, ctx| {
        let answer = write(tx, ctx)?;
        with_phases(tx, ctx, answer, call.id())
    }))
}

/// Adds the phases to the response for one pipeline.
fn with_phases(tx: &mut Tx, ctx: &Ctx, mut answer: Answer, id: &str) -> Result<Answer> {
    let phases: Vec<Phase> = in_order(tx, ctx)?;
    write_phases(&phases, id, &mut answer.data);
    Ok(answer)
}

/// Increments the version of a pipeline when one of its phases changes, since the pipeline includes them.
fn phases_changed(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<()> {
    let before: Pipeline = records::find(tx, ctx, id)?;
    records::touch(tx, ctx, &before, &mut before.clone(), "updated")
}

/// Writes the phases of a pipeline.
fn write_phases(phases: &[Phase], pipeline: &str, data: &mut Vec<u8>) {
    data.pop();
    write_key(data, "phases");
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
    data.extend_from_slice(b"]}");
}

/// Returns all records of a small table, in order.
pub fn in_order<R: Record>(tx: &mut Tx, ctx: &Ctx) -> Result<Vec<R>> {
    let sql = format!("{} WHERE account_id = $1 ORDER BY \"order\", id", R::sql().select);
    Ok(tx.all(&sql, &[ctx.account.into()], R::from_row)?)
}

/// Creates the default pipeline of five phases.
pub fn defaults(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    let mut pipeline = Pipeline { name: "Sales".into(), active: true, order: 1, ..Pipeline::default() };
    records::add(tx, ctx, &mut pipeline)?;
    for (order, name) in (1..).zip(["New", "Contact", "Proposal", "Negotiation", "Closing"]) {
        let pipeline_id = Link(pipeline.base.id.clone());
        let mut phase = Phase { pipeline_id, name: name.into(), order, ..Phase::default() };
        // Not `add`: the pipeline has not been visible without the phase.
        records::insert(tx, ctx, &mut phase)?;
    }
    Ok(())
}

/// Deletes a pipeline with its phases, unless it has deals.
fn delete(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let pipeline: Pipeline = records::find_to_change(tx, ctx, &call)?;
        if has_deals(tx, ctx, "pipeline_id", &pipeline.base.id)? {
            return Err(Error::new(Code::InUse, "This pipeline has deals. Move them first."));
        }
        let phases: Vec<Phase> = in_order(tx, ctx)?;
        let slice = Slice::start();
        let own = phases.iter().filter(|phase| phase.pipeline_id.0 == pipeline.base.id);
        for (place, phase) in own.enumerate() {
            if place == TOGETHER || slice.is_over() {
                return Ok(records::once_more(delete, &call));
            }
            records::remove(tx, ctx, phase)?;
            slice.did_one();
        }
        records::remove(tx, ctx, &pipeline)?;
        Ok(Answer::empty())
    }))
}

fn has_deals(tx: &mut Tx, ctx: &Ctx, field: &str, id: &str) -> Result<bool> {
    let sql = format!("SELECT 1 FROM deals WHERE account_id = $1 AND {field} = $2 LIMIT 1");
    Ok(tx.first(&sql, &[ctx.account.into(), id.into()], |_| Ok::<_, Error>(()))?.is_some())
}

fn delete_phase(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let phase: Phase = records::find_to_change(tx, ctx, &call)?;
        if has_deals(tx, ctx, "phase_id", &phase.base.id)? {
            return Err(Error::new(Code::InUse, "This phase has deals. Move them first."));
        }
        records::remove(tx, ctx, &phase)?;
        phases_changed(tx, ctx, &phase.pipeline_id.0)?;
        Ok(Answer::empty())
    }))
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 26,
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

const PHASES: &[Migration] = &[Migration {
    number: 27,
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
