//! The counters of the process.

use std::collections::HashMap;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::clock::Moment;

/// A counter with one label whose values are known in advance.
pub struct CounterInfo {
    /// Name.
    pub name: &'static str,
    /// Its help text.
    pub help: &'static str,
    /// The name of its label.
    pub label: &'static str,
    /// The values of the label. They exist from the start, so that the first increment is visible.
    pub values: &'static [&'static str],
}

/// A histogram of seconds.
pub struct HistogramInfo {
    /// Name.
    pub name: &'static str,
    /// Its help text.
    pub help: &'static str,
    /// The upper bounds of its buckets.
    pub bounds: &'static [f64],
}

/// A metric: name, type, help text and value.
pub type Metric = (&'static str, &'static str, &'static str, u64);

/// The labels of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Labels {
    /// The method.
    pub method: &'static str,
    /// The route with its placeholders, so that ids create no new series.
    pub route: String,
    /// The status.
    pub status: u16,
}

/// Why a connection was closed or refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Why {
    reason: &'static str,
}

/// Reasons why a connection was closed or refused.
const CLOSED: [&str; 5] = ["address", "full", "idle", "silent", "stalled"];

/// A counter with one label.
type Labelled = Family<[(&'static str, &'static str); 1], Counter>;

/// The counters.
pub struct Metrics {
    pub(super) registry: Registry,
    requests: Family<Labels, Counter>,
    seconds: Histogram,
    /// Open connections.
    pub connections: Gauge,
    connections_closed: Family<Why, Counter>,
    /// Completed jobs.
    pub jobs_done: Counter,
    /// Failed attempts of jobs.
    pub jobs_failed: Counter,
    /// Attempts of jobs whose worker died.
    pub jobs_lost: Counter,
    counters: HashMap<&'static str, (&'static str, Labelled)>,
    histograms: HashMap<&'static str, Histogram>,
    /// Events sent on streams.
    pub streamed: Counter,
}

impl Metrics {
    /// Creates the metrics, all at zero.
    pub fn new(counters: &'static [CounterInfo], histograms: &'static [HistogramInfo]) -> Metrics {
        let bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
        let mut metrics = Metrics {
            registry: Registry::with_prefix("kantoor"),
            requests: Family::default(),
            seconds: Histogram::new(bounds),
            connections: Gauge::default(),
            connections_closed: Family::default(),
            jobs_done: Counter::default(),
            jobs_failed: Counter::default(),
            jobs_lost: Counter::default(),
            counters: HashMap::new(),
            histograms: HashMap::new(),
            streamed: Counter::default(),
        };
        for reason in CLOSED {
            drop(metrics.connections_closed.get_or_create(&Why { reason }));
        }
        let prometheus = &mut metrics.registry;
        prometheus.register("http_requests", "Requests by method, route and status", metrics.requests.clone());
        prometheus.register("http_request_seconds", "Duration of requests", metrics.seconds.clone());
        prometheus.register("http_connections", "Open connections", metrics.connections.clone());
        let closed = metrics.connections_closed.clone();
        prometheus.register("http_connections_closed", "Connections closed or refused, by reason", closed);
        prometheus.register("jobs_done", "Jobs completed", metrics.jobs_done.clone());
        prometheus.register("jobs_failed", "Failed attempts of jobs", metrics.jobs_failed.clone());
        prometheus.register("jobs_lost", "Attempts of jobs whose worker died", metrics.jobs_lost.clone());
        prometheus.register("stream_events", "Events sent on streams", metrics.streamed.clone());
        for CounterInfo { name, help, label, values } in counters {
            let family = Labelled::default();
            values.iter().for_each(|value| drop(family.get_or_create(&[(label, value)])));
            prometheus.register(*name, *help, family.clone());
            metrics.counters.insert(name, (label, family));
        }
        for info in histograms {
            let histogram = Histogram::new(info.bounds.iter().copied());
            prometheus.register(info.name, info.help, histogram.clone());
            metrics.histograms.insert(info.name, histogram);
        }
        metrics
    }

    /// Counts a request.
    pub fn count(&self, method: &'static str, route: &str, status: u16, seconds: f64) {
        let labels = Labels { method, route: route.to_string(), status };
        self.requests.get_or_create(&labels).inc();
        self.seconds.observe(seconds);
    }

    /// Counts a connection that was closed or refused.
    pub fn connection_closed(&self, reason: &'static str) {
        self.connections_closed.get_or_create(&Why { reason }).inc();
    }

    /// Increments a counter of the registry with this label value.
    pub fn add(&self, counter: &str, value: &'static str) {
        let found = self.counters.get(counter);
        debug_assert!(found.is_some(), "the registry has no counter {counter}");
        if let Some((label, family)) = found {
            family.get_or_create(&[(label, value)]).inc();
        }
    }

    /// Records a duration in a histogram of the registry.
    #[expect(clippy::float_arithmetic, reason = "seconds of a metric, no money")]
    pub fn took(&self, histogram: &str, milliseconds: i64) {
        debug_assert!(self.histograms.contains_key(histogram), "the registry has no histogram {histogram}");
        if let Some(histogram) = self.histograms.get(histogram) {
            histogram.observe(milliseconds as f64 / 1000.0);
        }
    }
}

/// A gauge of how long something has been due.
pub fn waiting(name: &'static str, help: &'static str, since: Option<Moment>, now: Moment) -> Metric {
    let seconds = since.map_or(0, |since| (now.0 - since.0).unsigned_abs() / 1000);
    (name, "gauge", help, seconds)
}
