//! Conditions that take too long for a transaction: hundreds of flows may each search a text of 250 KB. They are evaluated
//! outside (`late_runs.rs`). A request that returns the runs evaluates them first, and its transaction uses the results
//! ([`Verdicts`]). Any other event enqueues a job ([`MatchLate`]) in its transaction, which starts the runs right after; the
//! log has the event, and `flow_definitions` has the conditions of that version.

use std::collections::HashMap;

use engine::context::Ctx;
use engine::error::Result;
use engine::jobs::{self, NewJob};
use engine::log::Event;
use serde::{Deserialize, Serialize};
use store::Tx;

use super::listening::Listener;

/// The results of the conditions of flows for the data of an event.
pub struct Verdicts {
    pub(super) entity_type: String,
    pub(super) data: String,
    pub(super) flows: HashMap<(String, i64), bool>,
}

impl Verdicts {
    /// Returns the result for a flow, if this is the event for which its conditions were evaluated.
    pub fn verdict(&self, event: &Event, flow: &Listener) -> Option<bool> {
        let is_same = self.entity_type == event.entity_type && self.data == event.data;
        self.flows.get(&(flow.id.clone(), flow.version)).copied().filter(|_| is_same)
    }
}

/// A job that starts the flows whose conditions hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MatchLate {
    pub(super) seq: i64,
    pub(super) event: String,
    pub(super) entity_type: String,
    pub(super) entity_id: String,
    pub(super) depth: i64,
    pub(super) chain: String,
    /// Whether the event was fired.
    pub(super) fired: bool,
    /// Flows and the versions of their definitions; empty when their runs are written.
    pub(super) flows: Vec<(String, i64)>,
}

/// Enqueues the job for flows whose conditions still have to be evaluated.
pub fn enqueue(tx: &mut Tx, ctx: &Ctx, event: &Event, seq: i64, fired: bool, flows: &[Listener]) -> Result<()> {
    if flows.is_empty() {
        return Ok(());
    }
    let job = MatchLate {
        seq,
        event: event.name.to_string(),
        entity_type: event.entity_type.to_string(),
        entity_id: event.entity_id.to_string(),
        depth: ctx.depth,
        chain: ctx.chain.to_string(),
        fired,
        flows: flows.iter().map(|flow| (flow.id.clone(), flow.version)).collect(),
    };
    jobs::enqueue(tx, ctx, &NewJob::of(ctx, &job)?)
}
