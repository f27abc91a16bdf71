//! Backtests: evaluates the trigger, conditions and templates of a flow on past events, or on the times of its
//! schedule, without side effects.

mod trial;

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::accounts::Account;
use engine::call::{Answer, Call};
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, FieldCode, FieldErrors, Result, violation};
use engine::input;
use engine::input::Input;
use engine::log::{self, Event};
use engine::record::{Body, REQUIRED, When};
use engine::records::{self, Work};
use engine::resource::{Method, Part, RequestBody, Resource, Returns};
use engine::shown::{self, Viewer};
use engine::turns;
use serde_json::{Value, json};
use store::{Places, Tx};
use tokio::runtime::Handle;

use self::trial::{Past, Trial};
use super::cron::Cron;
use super::definition::Definition;
use super::events::{self, TRIGGERED};
use super::matching;
use super::{needs, schedules};
use crate::automation::flow::{Flow, TriggerType};

/// Maximum number of examples in the response.
const EXAMPLES: usize = 100;
/// Maximum size of all examples together, in bytes of JSON: a step can produce a long text for each.
const MAX_EXAMPLE_BYTES: usize = 1024 * 1024;
/// Maximum number of events or times to evaluate.
const MAX_EVENTS: usize = 20_000;
/// Maximum size of their data together, in bytes.
const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;
/// Number of events to read at a time.
const PAGE: usize = 500;
/// Time limit; the rest of the period is left out.
const BACKTEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The turns of accounts: a backtest may use a processor for as long as its time limit.
pub struct BacktestTurns(pub Arc<Places>);

input! {
    /// The period to evaluate.
    pub struct Period;

    /// Start of the period.
    from: When = REQUIRED.example("\"2026-01-01T00:00:00Z\"");
    /// End of the period.
    to: When = REQUIRED.example("\"2026-06-01T00:00:00Z\"");
}

impl Body for Period {
    fn check(&self, faults: &mut FieldErrors) {
        if self.to.0 < self.from.0 {
            faults.add("to", violation(FieldCode::OutOfRange, "must not be before from"));
        }
    }
}

/// Fields of the response.
const PARTS: &[Part] = &[
    Part("events", "integer", "Number of matching events, or times of the schedule, in the period."),
    Part("matched", "integer", "Number of runs that would have started."),
    Part("failed", "integer", "Number of runs in which a step would have failed, as far as can be determined."),
    Part("complete", "boolean", "Whether the whole period was evaluated."),
    Part("steps", "array", "For each step, how often it would have run and how often it would have failed."),
    Part("examples", "array", "Up to a hundred runs: the event, and what each step would have done."),
];

/// Flows can be tested on the past.
pub fn testable(flows: Resource) -> Resource {
    flows
        .route(Method::Post, "/{id}/backtest", "Backtest a flow on past events", run)
        .body::<Period>(RequestBody::Body)
        .returns(Returns::Parts(PARTS))
        .extension()
        // It shows the data of past events.
        .with(|route| route.also_needs = Some("automation.read"))
}

/// `POST /v1/automation/flows/{id}/backtest`
fn run(call: Call) -> Result<Work> {
    let input: Input<Period> = input::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let flow: Flow = records::find(tx, ctx, call.id())?;
        needs::check_reader(ctx, &flow.listens_to)?;
        let period = input.record();
        let warnings = input.warnings.clone();
        // It can read a lot, so it does not run on the writer thread.
        Ok(Answer::after(move |app, caller| {
            let (flow, period, own) = (flow.clone(), period.clone(), caller.clone());
            let backtests = &app.services.get::<BacktestTurns>().0;
            let turn = Handle::current().block_on(turns::take(backtests, caller.account.number))?;
            let found = app.store.read_now(move |tx| {
                let ctx = own.reading(tx)?;
                look_back(tx, &ctx, &own.account, &flow, &period)
            });
            drop(turn);
            let found = found?;
            let warnings = warnings.clone();
            Ok(Box::new(move |_, _| Ok(Answer::json(&found).with_texts("warnings", &warnings))))
        }))
    }))
}

fn look_back(tx: &mut Tx, ctx: &Ctx, account: &Account, flow: &Flow, period: &Period) -> Result<Value> {
    let definition = Definition::parse(&flow.definition.0);
    let started = Instant::now();
    let (events, mut complete) = match flow.trigger_type {
        TriggerType::Schedule => times(ctx, flow, period),
        _ => past(tx, ctx, flow, period)?,
    };
    let mut taken = vec![(0_u64, 0_u64); definition.steps.len()];
    let (mut matched, mut failed, mut examples, mut shown) = (0, 0, Vec::new(), 0);
    for past in &events {
        if started.elapsed() > BACKTEST_TIMEOUT {
            complete = false;
            break;
        }
        let event =
            Event { name: &past.name, entity_type: &past.entity_type, entity_id: &past.entity_id, data: &past.data };
        if !matching::holds(&definition.conditions, &matching::condition_context(&event)) {
            continue;
        }
        matched += 1;
        let mut trial = Trial::of(tx, ctx, account, &definition, past)?;
        let mut would = Vec::new();
        let is_example = examples.len() < EXAMPLES && shown < MAX_EXAMPLE_BYTES;
        for (place, step) in definition.steps.iter().enumerate() {
            let (entry, goes_on) = trial.take(tx, step, place)?;
            taken[place].0 += 1;
            let wrong = entry.get("error").is_some();
            taken[place].1 += u64::from(wrong);
            failed += u64::from(wrong && !step.continue_on_error);
            if is_example && shown < MAX_EXAMPLE_BYTES {
                shown += entry.to_string().len();
                would.push(entry);
            }
            if !goes_on {
                break;
            }
        }
        if is_example {
            examples.push(json!({
                "at": past.at.to_string(), "event": past.name, "entity_type": past.entity_type,
                "entity_id": past.entity_id, "steps": would,
            }));
        }
    }
    let steps = definition.steps.iter().zip(taken).enumerate().map(|(place, (step, (taken, failed)))| {
        json!({"place": place, "type": step.kind, "name": step.name, "taken": taken, "failed": failed})
    });
    Ok(json!({
        "events": events.len(), "matched": matched, "failed": failed, "complete": complete,
        "steps": steps.collect::<Vec<_>>(), "examples": examples,
    }))
}

/// Returns the times in the period at which the flow would have started, and whether the list is complete.
fn times(ctx: &Ctx, flow: &Flow, period: &Period) -> (Vec<Past>, bool) {
    let Ok(cron) = Cron::parse(&flow.trigger_key) else { return (Vec::new(), true) };
    let (from, to) = (period.from.0.unwrap_or_default(), period.to.0.unwrap_or_default());
    // Includes the first moment itself.
    let first = cron.next(Moment(from.0.saturating_sub(1)), &ctx.zone);
    let all = std::iter::successors(first, |time| cron.next(*time, &ctx.zone)).take_while(|time| *time <= to);
    let mut times: Vec<Past> = all
        .take(MAX_EVENTS + 1)
        .map(|at| Past {
            at,
            name: schedules::EVENT.to_string(),
            entity_type: String::new(),
            entity_id: String::new(),
            data: schedules::data(at, &ctx.zone).0,
        })
        .collect();
    let complete = times.len() <= MAX_EVENTS;
    times.truncate(MAX_EVENTS);
    (times, complete)
}

/// Returns the events of the period that the flow listens to, oldest first, including fired ones.
fn past(tx: &mut Tx, ctx: &Ctx, flow: &Flow, period: &Period) -> Result<(Vec<Past>, bool)> {
    let mut found = Vec::new();
    let (from, to) = (period.from.0.unwrap_or_default(), period.to.0.unwrap_or_default());
    let sql = format!(
        "SELECT seq, at, type, entity_type, entity_id, {} FROM log
         WHERE account_id = $1 AND type = $2 AND seq > $3 AND at >= $4 AND at <= $5 ORDER BY seq LIMIT $6",
        log::DATA
    );
    let (page, viewer) = (i64::try_from(PAGE).unwrap_or(i64::MAX), Viewer::of(ctx));
    let (mut complete, mut size) = (true, 0);
    let own = events::canonical(&flow.listens_to);
    for name in [&*own, TRIGGERED] {
        let (mut last, mut seen) = (0, 0);
        loop {
            let values = [ctx.account.into(), name.into(), last.into(), from.0.into(), to.0.into(), page.into()];
            let lines = tx.all(&sql, &values, |row| {
                let entity_type = row.text(3)?.to_string();
                let past = Past {
                    at: Moment(row.int(1)?),
                    name: row.text(2)?.to_string(),
                    entity_id: row.text(4)?.to_string(),
                    data: shown::data(&viewer, &entity_type, row.text(5)?).into_owned(),
                    entity_type,
                };
                Ok::<_, Error>((row.int(0)?, past))
            })?;
            let is_last = lines.len() < PAGE;
            seen += lines.len();
            for (seq, line) in lines {
                last = seq;
                let heard = if name == TRIGGERED { fired(ctx, line, flow) } else { Some(line) };
                size += heard.as_ref().map_or(0, |line| line.data.len());
                found.extend(heard);
            }
            if is_last {
                break;
            }
            if seen >= MAX_EVENTS || size > MAX_EVENT_BYTES {
                complete = false;
                break;
            }
        }
    }
    found.sort_by_key(|past| past.at);
    Ok((found, complete))
}

/// The event that was fired, if the flow listens to it and the caller may read its record.
fn fired(ctx: &Ctx, line: Past, flow: &Flow) -> Option<Past> {
    if needs::to_read(&line.entity_type).is_some_and(|scope| !ctx.may(&scope)) {
        return None;
    }
    let data: Value = serde_json::from_str(&line.data).ok()?;
    let name = data["event"].as_str()?.to_string();
    let heard = events::canonical(&name) == events::canonical(&flow.listens_to);
    heard.then(|| {
        let data = data["data"].to_string();
        let data = shown::with_signed_urls(&Viewer::of(ctx), &line.entity_type, &data).into_owned();
        Past { name, data, ..line }
    })
}
