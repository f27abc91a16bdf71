//! From an event to runs: which flows listen, and do their conditions hold.

use std::borrow::Cow;
use std::cell::LazyCell;

use engine::context::Ctx;
use engine::error::{Error, FieldErrors, Result};
use engine::log::{self, Event};
use engine::record::Link;
use engine::records;
use engine::registry::registry;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::{Row, Tx};

use super::conditions::{self, Condition, compare};
use super::definition::TRIGGER_ROOTS;
use super::events;
use super::late::{self, Verdicts};
use crate::automation::run::{self, Run};

/// How many runs in a row may lead to each other.
pub const DEEPEST: i64 = 5;

/// How many runs may follow from one.
const MAX_FLOWS: i64 = 1000;

/// How many bytes the conditions of an event may go through in a transaction: a few milliseconds' worth. Beyond that they are
/// evaluated outside.
const ROOM: usize = 4 * 1024 * 1024;

/// A run that an event began.
pub struct Started {
    /// The flow.
    pub flow_id: String,
    /// The run.
    pub run_id: String,
}

/// A flow that listens to an event.
pub struct Listener {
    /// The flow.
    pub id: String,
    name: String,
    trigger_type: String,
    trigger_key: String,
    /// Its conditions, as JSON.
    pub conditions: String,
    max_attempts: i64,
    /// The version of its definition.
    pub version: i64,
}

impl Listener {
    fn from_row(row: &Row) -> Result<Listener> {
        Ok(Listener {
            id: row.text(0)?.to_string(),
            name: row.text(1)?.to_string(),
            trigger_type: row.text(2)?.to_string(),
            trigger_key: row.text(3)?.to_string(),
            conditions: row.text(4)?.to_string(),
            max_attempts: row.int(5)?,
            version: row.int(6)?,
        })
    }
}

const LISTENERS: &str =
    "SELECT id, name, trigger_type, trigger_key, conditions, max_attempts, definition_version FROM flows";

/// The flows that an event starts, and those whose conditions take too long for a transaction.
struct Plan {
    starts: Vec<Listener>,
    late: Vec<Listener>,
}

/// Writes a run for each active flow that listens to this event and whose conditions hold. `seq` is its number in the
/// log, where the runs find its data: many flows may listen to a large record.
pub fn start_runs(tx: &mut Tx, ctx: &Ctx, event: &Event, seq: i64) -> Result<Vec<Started>> {
    let plan = plan(tx, ctx, event, None)?;
    plan.begin(tx, ctx, event, seq)
}

/// Which flows the event starts. `known` is what their conditions came to before the transaction.
fn plan(tx: &mut Tx, ctx: &Ctx, event: &Event, known: Option<&Verdicts>) -> Result<Plan> {
    let mut plan = Plan { starts: Vec::new(), late: Vec::new() };
    let listeners = listeners(tx, ctx, event.name)?;
    if !listeners.is_empty()
        && let Some(why) = too_much(tx, ctx)?
    {
        tracing::warn!(account = ctx.account, event = event.name, "An event does not start a flow: {why}.");
        return Ok(plan);
    }
    // Read once, however many flows listen.
    let condition_context = LazyCell::new(|| condition_context(event));
    let mut room = ROOM;
    for flow in listeners {
        let verdict = match known.and_then(|known| known.verdict(event, &flow)) {
            Some(verdict) => Some(verdict),
            None if flow.conditions == "[]" => Some(true),
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

/// The active flows that listen to an event.
pub fn listeners(tx: &mut Tx, ctx: &Ctx, event: &str) -> Result<Vec<Listener>> {
    // No name is what flows with a schedule listen to.
    if event.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!("{LISTENERS} WHERE account_id = $1 AND listens_to = $2 AND active = 1 ORDER BY id");
    tx.all(&sql, &[ctx.account.into(), events::canonical(event).into()], Listener::from_row)
}

/// A flow as it is now, whether or not it is active.
pub fn listener(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Option<Listener>> {
    let sql = format!("{LISTENERS} WHERE account_id = $1 AND id = $2");
    tx.first(&sql, &[ctx.account.into(), id.into()], Listener::from_row)
}

impl Plan {
    /// Writes the runs, and a job for the flows that are late.
    fn begin(self, tx: &mut Tx, ctx: &Ctx, event: &Event, seq: i64) -> Result<Vec<Started>> {
        late::enqueue(tx, ctx, event, seq, &self.late)?;
        insert_runs(tx, ctx, event, seq, self.starts)
    }
}

/// Writes a run of each flow.
pub fn insert_runs(tx: &mut Tx, ctx: &Ctx, event: &Event, seq: i64, flows: Vec<Listener>) -> Result<Vec<Started>> {
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

/// Why no more runs may follow, if so: flows that start each other must come to an end.
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

/// The same; `None` when it takes more than is left of `room`, of which nothing is left then.
fn matches_within(flow: &str, conditions: &str, condition_context: &Value, room: &mut usize) -> Option<bool> {
    take(room, conditions.len())?;
    let Some(wanted) = read_conditions(conditions) else {
        let cause = store::Error::unreadable("it is not a list of conditions").at("flows", flow, "conditions");
        tracing::error!(%cause, "A flow does not start.");
        return Some(false);
    };
    for condition in &wanted {
        let found = found(condition, condition_context);
        // What is left is asked first: how long a list is takes time as well.
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

/// What conditions look at.
pub fn condition_context(event: &Event) -> Value {
    let data: Value = serde_json::from_str(event.data).unwrap_or_default();
    json!({"event": event.name, "entity_type": event.entity_type, "data": beside(data)})
}

/// Whether all conditions hold.
pub fn holds(wanted: &[Condition], condition_context: &Value) -> bool {
    wanted.iter().all(|condition| compare(condition.op, found(condition, condition_context), &condition.value))
}

/// A record with what is in its `meta` beside its other fields too, so that flows need not know which
/// fields the API shows where.
pub fn beside(mut data: Value) -> Value {
    if let Some(members) = data.as_object_mut()
        && let Some(Value::Object(meta)) = members.get("meta").cloned()
    {
        for (name, value) in meta {
            members.entry(name).or_insert(value);
        }
    }
    data
}

/// An event from outside, or from a step.
pub struct Fired<'f> {
    /// Its name, as it was sent.
    pub event: &'f str,
    /// What kind of record it is about; empty when that was not said.
    pub entity_type: &'f str,
    /// What was sent along.
    pub data: &'f Sent,
}

/// What is sent along with an event, and the same as a text: it may be large, and is written before the transaction.
pub struct Sent {
    value: Value,
    text: String,
}

impl Sent {
    /// An object.
    pub fn of(value: Value) -> Sent {
        Sent { text: value.to_string(), value }
    }
}

/// An event from outside, as a request has it.
pub struct SentEvent {
    /// Its name.
    pub event: String,
    /// What kind of record it is about, or empty.
    pub entity_type: String,
    /// What was sent along.
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
    plan.begin(tx, ctx, &event, seq)
}

/// Fires an event for a request, which answers with its runs. `None` when conditions take too long for a transaction: then
/// nothing is written, and the caller comes back with what they came to.
pub fn fire_knowing(tx: &mut Tx, ctx: &Ctx, fired: &Fired, known: Option<&Verdicts>) -> Result<Option<Vec<Started>>> {
    let ground = Ground::of(tx, ctx, fired)?;
    let event = ground.event(fired);
    let plan = plan(tx, ctx, &event, known)?;
    if !plan.late.is_empty() && known.is_none() {
        return Ok(None);
    }
    let seq = note(tx, ctx, &event)?;
    plan.begin(tx, ctx, &event, seq).map(Some)
}

/// What an event that is fired is about, and its data.
pub struct Ground<'f> {
    entity_type: &'f str,
    entity_id: &'f str,
    data: Cow<'f, str>,
}

impl<'f> Ground<'f> {
    /// The record that the event names, if there is one, is the ground of its data.
    pub fn of(tx: &mut Tx, ctx: &Ctx, fired: &Fired<'f>) -> Result<Ground<'f>> {
        let named = events::entity(fired.entity_type);
        let kind = if named.is_empty() { events::kind_of(fired.event) } else { named };
        let id = fired.data.value["id"].as_str().filter(|id| id.len() <= 255).unwrap_or_default();
        let record = if id.is_empty() { None } else { shown(tx, ctx, kind, id)? };
        let known = record.is_some();
        let data = match record {
            Some(mut ground) => {
                if let (Value::Object(ground), Value::Object(sent)) = (&mut ground, &fired.data.value) {
                    ground.extend(sent.clone());
                }
                Cow::Owned(ground.to_string())
            }
            None => Cow::Borrowed(fired.data.text.as_str()),
        };
        Ok(Ground { entity_type: if known || !named.is_empty() { kind } else { "" }, entity_id: id, data })
    }

    /// The event.
    pub fn event<'e>(&'e self, fired: &'e Fired) -> Event<'e> {
        Event { name: fired.event, entity_type: self.entity_type, entity_id: self.entity_id, data: &self.data }
    }
}

/// The log has who fired what: it is not what the service itself says, so it has a name of its own.
fn note(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<i64> {
    let data = format!(
        "{{\"event\":{},\"entity_type\":{},\"data\":{}}}",
        json!(event.name),
        json!(event.entity_type),
        event.data
    );
    log::append(
        tx,
        ctx,
        &Event { name: TRIGGERED, entity_type: event.entity_type, entity_id: event.entity_id, data: &data },
    )
}

/// What the log calls an event that was fired.
pub const TRIGGERED: &str = "automation.triggered";

/// What the log has of an event that was fired; its data as it was, unread.
#[derive(Deserialize)]
struct Noted<'n> {
    #[serde(borrow)]
    data: &'n RawValue,
}

/// The data of the event that began a run, as JSON.
pub fn data_of(tx: &mut Tx, ctx: &Ctx, run: &Run) -> Result<String> {
    // Runs of schedules have no line in the log; nor have those that began before runs had a number.
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
        return Ok(line.into_data());
    }
    let noted = line.into_data();
    let data = serde_json::from_str::<Noted>(&noted).map(|noted| noted.data.get().to_string());
    Ok(data.map_err(|_| unreadable_data(seq))?)
}

/// The data of a line of the log is not JSON.
pub fn unreadable_data(seq: i64) -> store::Error {
    store::Error::unreadable("it is not JSON").at("log", &seq.to_string(), "data")
}

/// A record of the account as the API shows it.
pub fn shown(tx: &mut Tx, ctx: &Ctx, kind: &str, id: &str) -> Result<Option<Value>> {
    let Some(resource) = registry().named(kind).filter(|resource| resource.is_kept()) else {
        return Ok(None);
    };
    let text = (resource.show)(tx, ctx, id)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}
