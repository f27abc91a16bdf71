//! Counters for the operator, in Prometheus' text form.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::app::App;

/// What a request is counted under.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Labels {
    /// The method.
    pub method: &'static str,
    /// The route with its placeholders, so that ids do not make new series.
    pub route: String,
    /// The status.
    pub status: u16,
}

/// The counters.
pub struct Metrics {
    registry: Registry,
    requests: Family<Labels, Counter>,
    seconds: Histogram,
    /// Connections open now.
    pub connections: Gauge,
    /// Jobs that ended well.
    pub jobs_done: Counter,
    /// Tries of jobs that failed.
    pub jobs_failed: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics::new()
    }
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Metrics {
        let bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
        let mut metrics = Metrics {
            registry: Registry::with_prefix("kantoor"),
            requests: Family::default(),
            seconds: Histogram::new(bounds),
            connections: Gauge::default(),
            jobs_done: Counter::default(),
            jobs_failed: Counter::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("http_requests", "Requests by method, route and status", metrics.requests.clone());
        registry.register("http_request_seconds", "How long requests took", metrics.seconds.clone());
        registry.register("http_connections", "Connections open now", metrics.connections.clone());
        registry.register("jobs_done", "Jobs that ended well", metrics.jobs_done.clone());
        registry.register("jobs_failed", "Tries of jobs that failed", metrics.jobs_failed.clone());
        metrics
    }

    /// Counts a request.
    pub fn count(&self, method: &'static str, route: &str, status: u16, seconds: f64) {
        let labels = Labels { method, route: route.to_string(), status };
        self.requests.get_or_create(&labels).inc();
        self.seconds.observe(seconds);
    }

    /// Everything as text.
    pub fn text(&self, app: &App) -> String {
        let mut text = String::new();
        let encoded = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        debug_assert!(encoded.is_ok());
        let end = "# EOF\n";
        let mut text = text.strip_suffix(end).unwrap_or(&text).to_string();
        let stats = app.store.stats();
        for (name, kind, help, value) in [
            ("store_commits_total", "counter", "Commits done", stats.commits.load(Ordering::Relaxed)),
            ("store_writes_total", "counter", "Writes done", stats.writes.load(Ordering::Relaxed)),
            ("store_retries_total", "counter", "Writes run again", stats.retries.load(Ordering::Relaxed)),
            ("store_waiting", "gauge", "Writes that wait for their turn", app.store.waiting() as u64),
        ] {
            let family = name.strip_suffix("_total").unwrap_or(name);
            let _ = writeln!(
                text,
                "# HELP kantoor_{family} {help}.\n# TYPE kantoor_{family} {kind}\nkantoor_{name} {value}"
            );
        }
        text + end
    }
}
