//! Matches an event with the flows that listen to it and starts their runs.

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
use store::Tx;

use super::conditions::{self, Condition};
use super::definition::TRIGGER_ROOTS;
use super::events;
use crate::automation::run::{self, Run};

/// Maximum depth of a chain of runs that start each other.
pub const DEEPEST: i64 = 5;

/// Maximum number of runs that result from one run.
const MAX_FLOWS: i64 = 1000;

/// A run that an event started.
pub struct Started {
    /// The flow.
    pub flow_id: String,
    /// The run.
    pub run_id: String,
}

struct Listener {
    id: String,
    name: String,
    trigger_type: String,
    trigger_key: String,
    conditions: String,
    max_attempts: i64,
    version: i64,
}

/// Writes a run for each active flow that listens to this event and whose conditions hold. `seq` is its entry in the
/// log, from which the runs read its data: many flows may listen to an event with a large record.
pub fn start_runs(tx: &mut Tx, ctx: &Ctx, event: &Event, seq: i64) -> Result<Vec<Started>> {
    // Scheduled flows have an empty event name.
    if event.name.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT id, name, trigger_type, trigger_key, conditions, max_attempts, definition_version FROM flows
               WHERE account_id = $1 AND listens_to = $2 AND active = 1 ORDER BY id";
    let listeners = tx.all(sql, &[ctx.account.into(), events::canonical(event.name).into()], |row| {
        Ok::<_, Error>(Listener {
            id: row.text(0)?.to_string(),
            name: row.text(1)?.to_string(),
            trigger_type: row.text(2)?.to_string(),
            trigger_key: row.text(3)?.to_string(),
            conditions: row.text(4)?.to_string(),
            max_attempts: row.int(5)?,
            version: row.int(6)?,
        })
    })?;
    if !listeners.is_empty()
        && let Some(why) = too_much(tx, ctx)?
    {
        tracing::warn!(account = ctx.account, event = event.name, "An event does not start a flow: {why}.");
        return Ok(Vec::new());
    }
    let mut started = Vec::new();
    // Computed once, however many flows listen.
    let condition_context = LazyCell::new(|| condition_context(event));
    for flow in listeners {
        if flow.conditions != "[]" && !matches(&flow.id, &flow.conditions, &condition_context) {
            continue;
        }
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

/// Whether the stored conditions of a flow hold. Unreadable conditions do not hold: an event must not fail because one
/// of the flows that listen to it is damaged.
pub fn matches(flow: &str, conditions: &str, condition_context: &Value) -> bool {
    let wanted = read_conditions(conditions);
    if wanted.is_none() {
        let cause = store::Error::unreadable("it is not a list of conditions").at("flows", flow, "conditions");
        tracing::error!(%cause, "A flow does not start.");
    }
    wanted.is_some_and(|wanted| holds(&wanted, condition_context))
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
    let find = |path: &str| conditions::follow(condition_context, &conditions::steps_of(path)?).cloned();
    wanted.iter().all(|condition| condition.holds(&find))
}

/// A record with what is in its `meta` beside its other fields too, so that flows need not know which
/// fields the API shows where.
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

/// Fires an event. If its data names a record, the fields of that record are added to the data.
pub fn fire(tx: &mut Tx, ctx: &Ctx, fired: &Fired) -> Result<Vec<Started>> {
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
    let event = Event {
        name: fired.event,
        entity_type: if known || !named.is_empty() { kind } else { "" },
        entity_id: id,
        data: &data,
    };
    let seq = note(tx, ctx, &event)?;
    start_runs(tx, ctx, &event, seq)
}

/// Appends a fired event to the log, under a separate type: it is not an event that the service itself emits.
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

/// The log type of a fired event.
pub const TRIGGERED: &str = "automation.triggered";

/// The log data of a fired event, with the event's data unparsed.
#[derive(Deserialize)]
struct Noted<'n> {
    #[serde(borrow)]
    data: &'n RawValue,
}

/// Returns the data of the event that started a run, as JSON.
pub fn data_of(tx: &mut Tx, ctx: &Ctx, run: &Run) -> Result<String> {
    // Scheduled runs have no log entry, nor have runs from before runs stored its number.
    if run.seq == 0 {
        return Ok(run.data.0.clone());
    }
    let Some(line) = log::line(tx, ctx.account, run.seq)? else {
        return Err(Error::internal(format!("the log has no line {}", run.seq)));
    };
    if line.name != TRIGGERED {
        return Ok(line.into_data());
    }
    let noted = line.into_data();
    let data = serde_json::from_str::<Noted>(&noted).map(|noted| noted.data.get().to_string());
    Ok(data.map_err(|_| unreadable_data(run.seq))?)
}

/// The error for a log entry whose data is not JSON.
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
