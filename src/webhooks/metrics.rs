//! Metrics of webhooks.

use engine::clock::Moment;
use engine::error::Result;
use engine::http::metrics::{CounterInfo, HistogramInfo, Metric, waiting};
use store::Tx;

use super::{breaker, queue};

/// The counter of attempts.
pub const DELIVERIES: CounterInfo = CounterInfo {
    name: "webhook_deliveries",
    help: "Webhook attempts by outcome",
    label: "outcome",
    values: &["delivered", "failed", "given_up", "lost"],
};
/// The response times of receivers.
pub const SECONDS: HistogramInfo = HistogramInfo {
    name: "webhook_seconds",
    help: "Response time of webhook receivers",
    bounds: &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0],
};

/// How long the oldest due delivery has been waiting.
pub fn behind(tx: &mut Tx, now: Moment) -> Result<Metric> {
    let since = queue::oldest_due(tx, now)?;
    Ok(waiting("webhooks_behind_seconds", "How long the oldest due webhook has been waiting", since, now))
}

/// The number of endpoints whose receiver is down.
pub fn down(tx: &mut Tx, _: Moment) -> Result<Metric> {
    let down = breaker::open(tx)?.unsigned_abs();
    Ok(("webhook_endpoints_down", "gauge", "Endpoints whose receiver is failing and that are only probed", down))
}
