//! Counters for the operator, in Prometheus' text form.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::app::App;
use crate::catalogue::{CounterInfo, Metric, registry};
use crate::clock::Moment;
use crate::error::{Error, Result};
use crate::jobs;

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

/// Why a connection was closed or refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Why {
    reason: &'static str,
}

/// Reasons to close or refuse a connection.
const CLOSED: [&str; 5] = ["address", "full", "idle", "silent", "stalled"];
/// How long the database may take to say how far behind it is.
const PATIENCE: Duration = Duration::from_secs(5);

/// A counter with one label.
type Labelled = Family<[(&'static str, &'static str); 1], Counter>;

/// The counters.
pub struct Metrics {
    registry: Registry,
    requests: Family<Labels, Counter>,
    seconds: Histogram,
    /// Connections open now.
    pub connections: Gauge,
    connections_closed: Family<Why, Counter>,
    /// Jobs that ended well.
    pub jobs_done: Counter,
    /// Tries of jobs that failed.
    pub jobs_failed: Counter,
    /// Tries of jobs whose worker died.
    pub jobs_lost: Counter,
    counters: HashMap<&'static str, Labelled>,
    histograms: HashMap<&'static str, Histogram>,
    /// Events that were handed to streams.
    pub streamed: Counter,
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
        prometheus.register("http_request_seconds", "How long requests took", metrics.seconds.clone());
        prometheus.register("http_connections", "Connections open now", metrics.connections.clone());
        let closed = metrics.connections_closed.clone();
        prometheus.register("http_connections_closed", "Connections closed or refused, by reason", closed);
        prometheus.register("jobs_done", "Jobs that ended well", metrics.jobs_done.clone());
        prometheus.register("jobs_failed", "Tries of jobs that failed", metrics.jobs_failed.clone());
        prometheus.register("jobs_lost", "Tries of jobs whose worker died", metrics.jobs_lost.clone());
        prometheus.register("stream_events", "Events handed to streams", metrics.streamed.clone());
        for CounterInfo { name, help, label, values } in registry().counters {
            let family = Labelled::default();
            values.iter().for_each(|value| drop(family.get_or_create(&[(label, value)])));
            prometheus.register(*name, *help, family.clone());
            metrics.counters.insert(name, family);
        }
        for info in registry().histograms {
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

    /// Adds one to a counter of the registry, under this value of its label.
    pub fn add(&self, counter: &str, value: &'static str) {
        let info = registry().counters.iter().find(|info| info.name == counter);
        debug_assert!(info.is_some(), "the registry has no counter {counter}");
        if let (Some(info), Some(family)) = (info, self.counters.get(counter)) {
            family.get_or_create(&[(info.label, value)]).inc();
        }
    }

    /// Notes a duration in a histogram of the registry.
    #[expect(clippy::float_arithmetic, reason = "seconds of a metric, no money")]
    pub fn took(&self, histogram: &str, milliseconds: i64) {
        debug_assert!(self.histograms.contains_key(histogram), "the registry has no histogram {histogram}");
        if let Some(histogram) = self.histograms.get(histogram) {
            histogram.observe(milliseconds as f64 / 1000.0);
        }
    }

    /// Everything as text.
    pub async fn text(&self, app: &App) -> String {
        let mut text = String::new();
        let encoded = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        debug_assert!(encoded.is_ok());
        let end = "# EOF\n";
        let mut text = text.strip_suffix(end).unwrap_or(&text).to_string();
        let stats = app.store.stats();
        let mut lines = vec![
            ("store_commits_total", "counter", "Commits done", stats.commits.load(Ordering::Relaxed)),
            ("store_writes_total", "counter", "Writes done", stats.writes.load(Ordering::Relaxed)),
            ("store_retries_total", "counter", "Writes run again", stats.retries.load(Ordering::Relaxed)),
            ("store_waiting", "gauge", "Writes that wait for their turn", app.store.waiting() as u64),
            ("streams_open", "gauge", "Streams of events open now", app.listeners.open() as u64),
        ];
        lines.extend(registry().gauges.iter().map(|gauge| gauge(app)));
        lines.extend(behind(app).await);
        for (name, kind, help, value) in lines {
            let family = name.strip_suffix("_total").unwrap_or(name);
            let _ = writeln!(
                text,
                "# HELP kantoor_{family} {help}.\n# TYPE kantoor_{family} {kind}\nkantoor_{name} {value}"
            );
        }
        held(&mut text, stats);
        text + &loops(app) + end
    }
}

/// How long transactions hold the writer, while others wait for it.
fn held(text: &mut String, stats: &store::Stats) {
    let seconds = |nanoseconds: &AtomicU64| Duration::from_nanos(nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
    let _ = writeln!(
        text,
        "# HELP kantoor_writer_hold_seconds How long transactions held their writer.\n\
         # TYPE kantoor_writer_hold_seconds histogram"
    );
    let mut count = 0;
    let ends = store::HOLDS.iter().map(|end| end.as_secs_f64().to_string()).chain(["+Inf".to_string()]);
    for (end, transactions) in ends.zip(&stats.holds) {
        count += transactions.load(Ordering::Relaxed);
        let _ = writeln!(text, "kantoor_writer_hold_seconds_bucket{{le=\"{end}\"}} {count}");
    }
    let _ = writeln!(
        text,
        "kantoor_writer_hold_seconds_sum {}\nkantoor_writer_hold_seconds_count {count}",
        seconds(&stats.held)
    );
    for (name, help, longest) in [
        ("hold", "The longest that a transaction held its writer since the start", &stats.longest_hold),
        ("closure", "The longest that one write ran in a transaction since the start", &stats.longest_closure),
    ] {
        let _ = writeln!(
            text,
            "# HELP kantoor_writer_longest_{name}_seconds {help}.\n\
             # TYPE kantoor_writer_longest_{name}_seconds gauge\n\
             kantoor_writer_longest_{name}_seconds {}",
            seconds(longest)
        );
    }
}

/// How the loops in the background stand.
fn loops(app: &App) -> String {
    let mut ages = "# HELP kantoor_loop_last_turn_seconds How long ago each background loop turned.\n\
                    # TYPE kantoor_loop_last_turn_seconds gauge\n"
        .to_string();
    let mut restarts = "# HELP kantoor_loop_restarts How often each background loop was started again.\n\
                        # TYPE kantoor_loop_restarts counter\n"
        .to_string();
    for one in app.loops.standings() {
        let (name, age) = (one.name, one.age.as_secs());
        let _ = writeln!(ages, "kantoor_loop_last_turn_seconds{{loop=\"{name}\"}} {age}");
        let _ = writeln!(restarts, "kantoor_loop_restarts_total{{loop=\"{name}\"}} {}", one.restarts);
    }
    ages + &restarts
}

/// For how many seconds the oldest thing waits that could be done, and what else the database knows. It is of the whole
/// database, the same on every node, and left out when the database does not answer.
async fn behind(app: &App) -> Vec<Metric> {
    let now = app.clock.now();
    let asked = app.store.read_apart(move |tx| {
        let jobs = waiting(
            "jobs_behind_seconds",
            "How long the oldest job that is due waits",
            jobs::oldest_due(tx, now)?,
            now,
        );
        let parked = jobs::parked(tx)?.unsigned_abs();
        let mut all = vec![jobs, ("jobs_parked", "gauge", "Jobs that are parked until somebody looks at them", parked)];
        for gauge in registry().stored_gauges {
            all.push(gauge(tx, now)?);
        }
        Ok::<_, Error>(all)
    });
    let answered: Result<Vec<Metric>> = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answered) => answered,
        Err(_) => return Vec::new(),
    };
    answered.unwrap_or_default()
}

/// A gauge of how long something has been due.
pub fn waiting(name: &'static str, help: &'static str, since: Option<Moment>, now: Moment) -> Metric {
    let seconds = since.map_or(0, |since| (now.0 - since.0).unsigned_abs() / 1000);
    (name, "gauge", help, seconds)
}
