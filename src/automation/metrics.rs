//! Metrics of flows.

use engine::app::App;
use engine::clock::Moment;
use engine::error::Result;
use engine::http::metrics::{CounterInfo, Metric, waiting};
use store::Tx;

use super::runner::{self, runner_of};
use crate::automation::run::{self, Status};

/// The final statuses of runs.
const FINAL: [&str; 4] =
    [Status::Success.wire(), Status::Partial.wire(), Status::Failed.wire(), Status::Cancelled.wire()];

/// The counter of finished runs.
pub const RUNS: CounterInfo =
    CounterInfo { name: run::RUNS, help: "Flow runs by outcome", label: "status", values: &FINAL };
/// The counter of HTTP calls.
pub const CALLS: CounterInfo = CounterInfo {
    name: "flow_calls",
    help: "HTTP calls by flows, by outcome",
    label: "outcome",
    values: &["success", "failed", "refused", "lost"],
};

/// Counts finished runs.
pub fn count_ended(app: &App, statuses: impl IntoIterator<Item = &'static str>) {
    statuses.into_iter().for_each(|status| app.metrics.add(RUNS.name, status));
}

/// The number of calls in progress.
pub fn calls_open(app: &App) -> Metric {
    let calls = runner_of(app).calls.taken() as u64;
    ("flow_calls_open", "gauge", "HTTP calls by flows in progress", calls)
}

/// How long the oldest due run has been waiting.
pub fn behind(tx: &mut Tx, now: Moment) -> Result<Metric> {
    let since = runner::oldest_due(tx, now)?;
    Ok(waiting("flows_behind_seconds", "How long the oldest due flow run has been waiting", since, now))
}
