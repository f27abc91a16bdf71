//! Evaluates conditions outside the transaction: before the transaction of a request, or in the job of an event. See
//! `late.rs`.

use std::sync::Arc;

use engine::app::App;
use engine::context::{Actor, Ctx};
use engine::error::{Error, Result};
use engine::jobs::{Claimed, Ending, Job};
use engine::log::Event;
use serde_json::Value;
use store::Tx;

use super::late::{MatchLate, Verdicts};
use super::listening::{self, Listener};
use super::matching::{self, Ground, SentEvent};

impl Verdicts {
    /// Evaluates the conditions of all flows that listen to an event.
    pub fn of(app: &App, caller: &Actor, sent: &Arc<SentEvent>) -> Result<Verdicts> {
        let (own, shared) = (caller.clone(), sent.clone());
        let (entity_type, data, listeners) = app.store.read_now(move |tx| {
            let ctx = own.reading(tx)?;
            let fired = shared.fired();
            let ground = Ground::of(tx, &ctx, &fired)?;
            let Event { entity_type, data, name, .. } = ground.event(&fired);
            let listeners = listening::with_conditions(tx, &ctx, name)?;
            Ok::<_, Error>((entity_type.to_string(), data.to_string(), listeners))
        })?;
        let event = Event { name: &sent.event, entity_type: &entity_type, entity_id: "", data: &data };
        let context = matching::condition_context(&event);
        let verdict = |flow: Listener| {
            let verdict = matching::matches(&flow.id, &flow.conditions, &context);
            ((flow.id, flow.version), verdict)
        };
        let flows = listeners.into_iter().map(verdict).collect();
        Ok(Verdicts { entity_type, data, flows })
    }
}

impl Job for MatchLate {
    const KIND: &'static str = "match_flows";
    const AWAITED: bool = true;

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        if self.flows.is_empty() {
            return Ok(Ending::Done);
        }
        let caller = app.acting_in(claimed.account, "automation")?;
        let (own, job) = (caller.clone(), self.clone());
        let (data, conditions) = app.store.read_now(move |tx| {
            let ctx = own.reading(tx)?;
            let data = matching::data_at(tx, &ctx, job.seq)?;
            let conditions = job.flows.iter().map(|(flow, version)| conditions_of(tx, &ctx, flow, *version));
            Ok::<_, Error>((data, conditions.collect::<Result<Vec<Option<String>>>>()?))
        })?;
        let context = matching::condition_context(&self.event(&data));
        let all = self.flows.iter().zip(&conditions);
        let hold = all.filter(|((flow, _), conditions)| {
            conditions.as_deref().is_some_and(|conditions| matching::matches(flow, conditions, &context))
        });
        let hold: Vec<(String, i64)> = hold.map(|(flow, _)| flow.clone()).collect();
        let (own, job, claim) = (caller.clone(), self.clone(), claimed.clone());
        app.store.write_now(caller.account.number, move |tx| {
            let ctx = own.writing(tx)?;
            // Committed together with the runs, so they are started once, even if another worker has claimed the job.
            if claim.keep(tx, &ctx.site.vault, &MatchLate { flows: Vec::new(), ..job.clone() })? {
                job.start(tx, &ctx, &hold)?;
            }
            Ok::<_, Error>(())
        })?;
        Ok(Ending::Done)
    }
}

impl MatchLate {
    fn event<'e>(&'e self, data: &'e str) -> Event<'e> {
        Event { name: &self.event, entity_type: &self.entity_type, entity_id: &self.entity_id, data }
    }

    fn start(&self, tx: &mut Tx, ctx: &Ctx, flows: &[(String, i64)]) -> Result<()> {
        let ctx = ctx.acting_as(&ctx.actor, &ctx.request_id, self.depth, &self.chain);
        if flows.is_empty() || matching::too_much(tx, &ctx)?.is_some() {
            return Ok(());
        }
        let mut starts = Vec::with_capacity(flows.len());
        for (flow, version) in flows {
            // A deleted flow does not start.
            if let Some(mut found) = listening::listener(tx, &ctx, flow)? {
                found.version = *version;
                starts.push(found);
            }
        }
        matching::insert_runs(tx, &ctx, &self.event(""), self.seq, self.fired, starts).map(drop)
    }
}

/// Returns the conditions of a version of a flow as JSON, if that version exists. One that cannot be read does not prevent
/// other flows from starting.
fn conditions_of(tx: &mut Tx, ctx: &Ctx, flow: &str, version: i64) -> Result<Option<String>> {
    let sql = "SELECT definition FROM flow_definitions WHERE account_id = $1 AND flow_id = $2 AND version = $3";
    let values = [ctx.account.into(), flow.into(), version.into()];
    let Some(text) = tx.first(sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))? else {
        return Ok(None);
    };
    let Ok(definition) = serde_json::from_str::<Value>(&text) else {
        let id = format!("{flow} {version}");
        let cause = store::Error::unreadable("it is not JSON").at("flow_definitions", &id, "definition");
        tracing::error!(%cause, "A flow does not start.");
        return Ok(None);
    };
    Ok(Some(definition["conditions"].to_string()))
}
