//! Matches an event with the flows that listen to it and starts their runs.

use std::borrow::Cow;
use std::cell::LazyCell;

use engine::context::Ctx;
use engine::error::{Error, FieldErrors, Result};
use engine::log::{self, Event};
use engine::record::Link;
use engine::records;
use engine::registry::registry;
use engine::shown::{self, Viewer};
use engine::who::ActorType;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::Tx;

use super::conditions::{self, Condition, compare};
use super::definition::TRIGGER_ROOTS;
use super::events::{self, TRIGGERED};
use super::late::{self, Verdicts};
use super::listening::{self, Listener};
use super::needs;
use crate::automation::run::{self, Run};
use crate::mail::IMPORT;

/// Maximum depth of a chain of runs that start each other.
pub const DEEPEST: i64 = 5;

/// Maximum number of runs that result from one run.
const MAX_FLOWS: i64 = 1000;

/// How many bytes the conditions of an event may go through in a transaction: a few milliseconds' worth. Beyond that they are
/// evaluated outside.
const ROOM: usize = 4 * 1024 * 1024;

/// A run that an event started.
pub struct Started {
    /// The flow.
    pub flow_id: String,
    /// The run.
    pub run_id: String,
}

/// The flows that an event starts, and those whose conditions take too long for a transaction.
struct Plan {
    starts: Vec<Listener>,
    late: Vec<Listener>,
}

/// Writes a run for each active flow that listens to this event and whose conditions hold. `seq` is its number in the
/// log, where the runs find its data: many flows may listen to a large record.
pub fn start_runs(tx: &mut Tx, ctx: &Ctx, event: &Event, seq: i64) -> Result<Vec<Started>> {
    if ctx.actor.kind == ActorType::Other(IMPORT) {
        return Ok(Vec::new());
    }
    let plan = plan(tx, ctx, event, None)?;
    plan.begin(tx, ctx, event, seq, false)
}

/// Determines which flows the event starts. `known` has the results of conditions that were evaluated before the transaction.
fn plan(tx: &mut Tx, ctx: &Ctx, event: &Event, known: Option<&Verdicts>) -> Result<Plan> {
    let mut plan = Plan { starts: Vec::new(), late: Vec::new() };
    let listeners = listening::listeners(tx, ctx, event.name)?;
    if !listeners.is_empty()
        && let Some(why) = too_much(tx, ctx)?
    {
        tracing::warn!(account = ctx.account, event = event.name, "An event does not start a flow: {why}.");
        return Ok(plan);
    }
    // Read once, however many flows listen.
    let condition_context = LazyCell::new(|| condition_context(event));
    let mut room = ROOM;
    // What conditions find in a record is for those who may read it: the author may have lost the scope, and a caller may fire a
    // key of its own about any record. The run of such an author fails, whatever the conditions say.
    let to_read: Vec<String> =
        needs::of_event(event.name).into_iter().chain(needs::to_read(event.entity_type)).collect();
    for flow in listeners {
        if flow.conditions != "[]" && !to_read.is_empty() {
            let authority = flow.author.authority(tx, ctx)?;
            if !to_read.iter().all(|scope| authority.may(scope)) {
                plan.starts.push(flow);
                continue;
            }
        }
        let verdict = match known.and_then(|known| known.verdict(event, &flow)) {
            Some(verdict) => Some(verdict),
            None if flow.conditions == "[]" => Some(true),
            // Too long to be read here.
            None if flow.conditions.is_empty() => None,
            None => matches_within(&flow.id, &flow.conditions, &condition_context, &mut room),
        };
        match verdict {
            Some(true) => plan.starts.push(flow),
            Some(false) => {}
            None => plan.late.push(flow),
        }
    }
    Ok(plan)
}

impl Plan {
    /// Writes the runs, and a job for the flows that are late.
    fn begin(self, tx: &mut Tx, ctx: &Ctx, event: &Event, seq: i64, fired: bool) -> Result<Vec<Started>> {
        late::enqueue(tx, ctx, event, seq, fired, &self.late)?;
        insert_runs(tx, ctx, event, seq, fired, self.starts)
    }
}

/// Writes a run of each flow.
pub fn insert_runs(
    tx: &mut Tx,
    ctx: &Ctx,
    event: &Event,
    seq: i64,
    fired: bool,
    flows: Vec<Listener>,
) -> Result<Vec<Started>> {
    let mut started = Vec::with_capacity(flows.len());
    for flow in flows {
        let mut run = Run {
            flow_id: Link(flow.id.clone()),
            flow_name: flow.name,
            trigger_type: flow.trigger_type,
            trigger_key: flow.trigger_key,
            max_attempts: flow.max_attempts,
            flow_version: flow.version,
            event: event.name.to_string(),
            entity_type: event.entity_type.to_string(),
            entity_id: event.entity_id.to_string(),
            seq,
            fired,
            depth: ctx.depth + 1,
            chain: ctx.chain.to_string(),
            ..Run::default()
        };
        run.queue(ctx);
        run::insert(tx, ctx, &mut run)?;
        started.push(Started { flow_id: flow.id, run_id: run.base.id });
    }
    if !started.is_empty() {
        records::count::<Run>(tx, ctx, i64::try_from(started.len()).unwrap_or(0))?;
    }
    Ok(started)
}

/// Returns why no more runs may start, if so: flows that start each other must end.
pub fn too_much(tx: &mut Tx, ctx: &Ctx) -> Result<Option<String>> {
    if ctx.depth >= DEEPEST {
        return Ok(Some(format!("it is the result of a chain of {DEEPEST} runs")));
    }
    let sql = "SELECT count(*) FROM (SELECT 1 FROM runs WHERE account_id = $1 AND chain = $2 AND chain <> '' LIMIT $3) AS followers";
    let follows = !ctx.chain.is_empty()
        && tx.int(sql, &[ctx.account.into(), (&*ctx.chain).into(), MAX_FLOWS.into()])? >= MAX_FLOWS;
    Ok(follows.then(|| format!("the same run has led to {MAX_FLOWS} runs")))
}

/// Whether the stored conditions of a flow hold, however long that takes. Conditions that cannot be read do not: an event
/// must not fail because one of the flows that listen to it is damaged.
pub fn matches(flow: &str, conditions: &str, condition_context: &Value) -> bool {
    matches_within(flow, conditions, condition_context, &mut usize::MAX.clone()).unwrap_or(false)
}

/// Whether the stored conditions of a flow hold; `None` if evaluating them takes more than `room`, which is then used up.
fn matches_within(flow: &str, conditions: &str, condition_context: &Value, room: &mut usize) -> Option<bool> {
    take(room, conditions.len())?;
    let Some(wanted) = read_conditions(conditions) else {
        let cause = store::Error::unreadable("it is not a list of conditions").at("flows", flow, "conditions");
        tracing::error!(%cause, "A flow does not start.");
        return Some(false);
    };
    for condition in &wanted {
        let found = found(condition, condition_context);
        // Checked before the effort is computed, since measuring a long list takes time too.
        take(room, 1)?;
        take(room, condition.effort(found))?;
        if !compare(condition.op, found, &condition.value) {
            return Some(false);
        }
    }
    Some(true)
}

fn take(room: &mut usize, effort: usize) -> Option<()> {
    let left = room.checked_sub(effort);
    *room = left.unwrap_or(0);
    left.filter(|left| *left > 0).map(drop)
}

fn found<'c>(condition: &Condition, condition_context: &'c Value) -> Option<&'c Value> {
    conditions::follow(condition_context, &conditions::steps_of(&condition.field)?)
}

fn read_conditions(text: &str) -> Option<Vec<Condition>> {
    let mut faults = FieldErrors::default();
    let read = conditions::read(&serde_json::from_str(text).ok()?, "", TRIGGER_ROOTS, &mut faults);
    faults.0.is_empty().then_some(read)
}

/// The value that conditions are evaluated on.
pub fn condition_context(event: &Event) -> Value {
    let data: Value = serde_json::from_str(event.data).unwrap_or_default();
    json!({"event": event.name, "entity_type": event.entity_type, "data": flatten_meta(data)})
}

/// Whether all conditions hold.
pub fn holds(wanted: &[Condition], condition_context: &Value) -> bool {
    wanted.iter().all(|condition| compare(condition.op, found(condition, condition_context), &condition.value))
}

/// Copies the members of a record's `meta` next to its other fields, so that flows need not know where the API returns
/// a field.
pub fn flatten_meta(mut data: Value) -> Value {
    if let Some(members) = data.as_object_mut()
        && let Some(Value::Object(meta)) = members.get("meta").cloned()
    {
        for (name, value) in meta {
            members.entry(name).or_insert(value);
        }
    }
    data
}

/// An event fired by a caller or by a step.
pub struct Fired<'f> {
    /// Its name, as it was sent.
    pub event: &'f str,
    /// The kind of record that it is about; empty if not given.
    pub entity_type: &'f str,
    /// Its data.
    pub data: &'f Sent,
}

/// The data of an event with its JSON text: it may be large and is serialized before the transaction.
pub struct Sent {
    value: Value,
    text: String,
}

impl Sent {
    /// From a JSON object.
    pub fn of(value: Value) -> Sent {
        Sent { text: value.to_string(), value }
    }
}

/// An event that a request sends.
pub struct SentEvent {
    /// Its name.
    pub event: String,
    /// What kind of record it is about, or empty.
    pub entity_type: String,
    /// The data that was sent.
    pub data: Sent,
}

impl SentEvent {
    /// The event.
    pub fn fired(&self) -> Fired<'_> {
        Fired { event: &self.event, entity_type: &self.entity_type, data: &self.data }
    }
}

/// Fires an event.
pub fn fire(tx: &mut Tx, ctx: &Ctx, fired: &Fired) -> Result<Vec<Started>> {
    let ground = Ground::of(tx, ctx, fired)?;
    let event = ground.event(fired);
    let plan = plan(tx, ctx, &event, None)?;
    let seq = note(tx, ctx, &event)?;
    plan.begin(tx, ctx, &event, seq, true)
}

/// Fires an event for a request that returns its runs. `None` if the conditions take too long for a transaction: then
/// nothing is written, and the caller evaluates them and calls again with the results.
pub fn fire_knowing(tx: &mut Tx, ctx: &Ctx, fired: &Fired, known: Option<&Verdicts>) -> Result<Option<Vec<Started>>> {
    let ground = Ground::of(tx, ctx, fired)?;
    let event = ground.event(fired);
    let plan = plan(tx, ctx, &event, known)?;
    if !plan.late.is_empty() && known.is_none() {
        return Ok(None);
    }
    let seq = note(tx, ctx, &event)?;
    plan.begin(tx, ctx, &event, seq, true).map(Some)
}

/// The record that a fired event is about, and the data of the event.
pub struct Ground<'f> {
    entity_type: &'f str,
    entity_id: &'f str,
    data: Cow<'f, str>,
}

impl<'f> Ground<'f> {
    /// Adds the record that the event names, if it exists, which wins over the data that was sent. Rejects a caller that
    /// may not fire it.
    pub fn of(tx: &mut Tx, ctx: &Ctx, fired: &Fired<'f>) -> Result<Ground<'f>> {
        let named = events::entity(fired.entity_type);
        let kind = if named.is_empty() { events::kind_of(fired.event) } else { named };
        needs::check_firing(ctx, fired.event, kind, &fired.data.value)?;
        let id = fired.data.value["id"].as_str().filter(|id| id.len() <= 255).unwrap_or_default();
        let record = if id.is_empty() { None } else { shown(tx, ctx, kind, id)? };
        let known = record.is_some();
        let data = match record {
            Some(record) => Cow::Owned(marked(record, &fired.data.value).to_string()),
            // An event of the service, as if it happened.
            None if events::is_of_service(fired.event) => Cow::Owned(marked(json!({}), &fired.data.value).to_string()),
            None => Cow::Borrowed(fired.data.text.as_str()),
        };
        Ok(Ground { entity_type: if known || !named.is_empty() { kind } else { "" }, entity_id: id, data })
    }

    /// The event.
    pub fn event<'e>(&'e self, fired: &'e Fired) -> Event<'e> {
        Event { name: fired.event, entity_type: self.entity_type, entity_id: self.entity_id, data: &self.data }
    }
}

/// Adds what a caller sent to a record: members that the record does not have itself, and all of it in `fired`, so that
/// it is never mistaken for the record.
fn marked(mut record: Value, sent: &Value) -> Value {
    let of_meta = record["meta"].clone();
    if let (Value::Object(members), Value::Object(sent)) = (&mut record, sent) {
        for (name, value) in sent.iter().filter(|(name, _)| of_meta.get(name.as_str()).is_none()) {
            members.entry(name).or_insert_with(|| value.clone());
        }
        members.insert("fired".to_string(), Value::Object(sent.clone()));
    }
    record
}

/// Appends a fired event to the log, under a separate type: it is not an event that the service itself emits.
fn note(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<i64> {
    let data = format!(
        "{{\"event\":{},\"entity_type\":{},\"data\":{}}}",
        json!(event.name),
        json!(event.entity_type),
        shown::without_signed_urls(event.entity_type, event.data)
    );
    log::append(
        tx,
        ctx,
        &Event { name: TRIGGERED, entity_type: event.entity_type, entity_id: event.entity_id, data: &data },
    )
}

/// The log data of a fired event, with the event's data unparsed.
#[derive(Deserialize)]
struct Noted<'n> {
    #[serde(borrow)]
    data: &'n RawValue,
}

/// Returns the data of the event that started a run, as JSON.
pub fn data_of(tx: &mut Tx, ctx: &Ctx, run: &Run) -> Result<String> {
    // Scheduled runs have no log line.
    if run.seq == 0 {
        return Ok(run.data.0.clone());
    }
    data_at(tx, ctx, run.seq)
}

/// The data of the event with this number, as JSON.
pub fn data_at(tx: &mut Tx, ctx: &Ctx, seq: i64) -> Result<String> {
    let Some(line) = log::line(tx, ctx.account, seq)? else {
        return Err(Error::internal(format!("the log has no line {seq}")));
    };
    if line.name != TRIGGERED {
        return Ok(shown::data(&Viewer::of(ctx), line.entity_type(), line.data()).into_owned());
    }
    let noted = line.data();
    let data = serde_json::from_str::<Noted>(noted).map(|noted| noted.data.get());
    let data = data.map_err(|_| unreadable_data(seq))?;
    Ok(shown::with_signed_urls(&Viewer::of(ctx), line.entity_type(), data).into_owned())
}

/// The error for a log line whose data is not JSON.
pub fn unreadable_data(seq: i64) -> store::Error {
    store::Error::unreadable("it is not JSON").at("log", &seq.to_string(), "data")
}

/// Returns a record of the account as the API returns it.
pub fn shown(tx: &mut Tx, ctx: &Ctx, kind: &str, id: &str) -> Result<Option<Value>> {
    let Some(resource) = registry().named(kind).filter(|resource| resource.is_kept()) else {
        return Ok(None);
    };
    let text = (resource.show)(tx, ctx, id)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}
