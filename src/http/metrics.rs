//! Counters for the operator, in Prometheus' text form.

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
use crate::automation::engine;
use crate::clock::Moment;
use crate::error::Error;
use crate::jobs;
use crate::resources::run::FINAL;
use crate::webhooks::{breaker, queue};

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

/// How something ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    status: &'static str,
}

/// What became of a call to the outside.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Became {
    outcome: &'static str,
}

/// Why a connection was closed or refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Why {
    reason: &'static str,
}

/// Reasons to close or refuse a connection.
const CLOSED: [&str; 5] = ["address", "full", "idle", "silent", "stalled"];
/// What became of a call of a flow. They are there from the start, so that the first one of a kind is seen to
/// be one more.
const CALLS: [&str; 4] = ["success", "failed", "refused", "lost"];
/// The same of a webhook.
const WEBHOOKS: [&str; 4] = ["delivered", "failed", "given_up", "lost"];
/// How long the database may take to say how far behind it is.
const PATIENCE: Duration = Duration::from_secs(5);

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
    flow_runs: Family<Ended, Counter>,
    flow_calls: Family<Became, Counter>,
    webhooks: Family<Became, Counter>,
    webhook_seconds: Histogram,
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
            flow_runs: Family::default(),
            flow_calls: Family::default(),
            webhooks: Family::default(),
            webhook_seconds: Histogram::new([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0]),
            streamed: Counter::default(),
        };
        for reason in CLOSED {
            drop(metrics.connections_closed.get_or_create(&Why { reason }));
        }
        for status in FINAL {
            drop(metrics.flow_runs.get_or_create(&Ended { status: status.wire() }));
        }
        for (family, outcomes) in [(&metrics.flow_calls, CALLS), (&metrics.webhooks, WEBHOOKS)] {
            for outcome in outcomes {
                drop(family.get_or_create(&Became { outcome }));
            }
        }
        let registry = &mut metrics.registry;
        registry.register("http_requests", "Requests by method, route and status", metrics.requests.clone());
        registry.register("http_request_seconds", "How long requests took", metrics.seconds.clone());
        registry.register("http_connections", "Connections open now", metrics.connections.clone());
        let closed = metrics.connections_closed.clone();
        registry.register("http_connections_closed", "Connections closed or refused, by reason", closed);
        registry.register("jobs_done", "Jobs that ended well", metrics.jobs_done.clone());
        registry.register("jobs_failed", "Tries of jobs that failed", metrics.jobs_failed.clone());
        registry.register("jobs_lost", "Tries of jobs whose worker died", metrics.jobs_lost.clone());
        registry.register("flow_runs_finished", "Runs of flows by how they ended", metrics.flow_runs.clone());
        registry.register("flow_calls", "Calls of flows by what became of them", metrics.flow_calls.clone());
        registry.register("webhook_deliveries", "Tries of webhooks by what became of them", metrics.webhooks.clone());
        registry.register("webhook_seconds", "How long receivers of webhooks took", metrics.webhook_seconds.clone());
        registry.register("stream_events", "Events handed to streams", metrics.streamed.clone());
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

    /// Counts runs of flows that ended.
    pub fn runs_ended(&self, statuses: impl IntoIterator<Item = &'static str>) {
        for status in statuses {
            self.flow_runs.get_or_create(&Ended { status }).inc();
        }
    }

    /// Counts a call of a flow.
    pub fn flow_call(&self, outcome: &'static str) {
        self.flow_calls.get_or_create(&Became { outcome }).inc();
    }

    /// Counts a try of a webhook.
    pub fn webhook(&self, outcome: &'static str) {
        self.webhooks.get_or_create(&Became { outcome }).inc();
    }

    /// Notes how long a receiver took.
    #[expect(clippy::float_arithmetic, reason = "seconds of a metric, no money")]
    pub fn webhook_took(&self, milliseconds: i64) {
        self.webhook_seconds.observe(milliseconds as f64 / 1000.0);
    }

    /// Everything as text.
    pub async fn text(&self, app: &App) -> String {
        let mut text = String::new();
        let encoded = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        debug_assert!(encoded.is_ok());
        let end = "# EOF\n";
        let mut text = text.strip_suffix(end).unwrap_or(&text).to_string();
        let stats = app.store.stats();
        let calls = app.engine.calls.load(Ordering::Relaxed) as u64;
        let mut lines = vec![
            ("store_commits_total", "counter", "Commits done", stats.commits.load(Ordering::Relaxed)),
            ("store_writes_total", "counter", "Writes done", stats.writes.load(Ordering::Relaxed)),
            ("store_retries_total", "counter", "Writes run again", stats.retries.load(Ordering::Relaxed)),
            ("store_waiting", "gauge", "Writes that wait for their turn", app.store.waiting() as u64),
            ("documents_typeset_total", "counter", "Documents typeset", app.typesetter.made()),
            ("streams_open", "gauge", "Streams of events open now", app.listeners.open() as u64),
            ("flow_calls_open", "gauge", "Calls of flows under way now", calls),
        ];
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

/// A metric: its name, what it is, what it says, and its value.
type Metric = (&'static str, &'static str, &'static str, u64);

/// For how many seconds the oldest thing waits that could be done. It is of the whole database, the same on
/// every node, and left out when the database does not answer.
async fn behind(app: &App) -> Vec<Metric> {
    let now = app.clock.now();
    let oldest = app.store.read_apart(move |tx| {
        let oldest = [jobs::oldest_due(tx, now)?, engine::oldest_due(tx, now)?, queue::oldest_due(tx, now)?];
        Ok::<_, Error>((oldest, jobs::parked(tx)?, breaker::open(tx)?.unsigned_abs()))
    });
    let Ok(Ok(([jobs, flows, webhooks], parked, down))) = tokio::time::timeout(PATIENCE, oldest).await else {
        return Vec::new();
    };
    let seconds = |since: Option<Moment>| since.map_or(0, |since| (now.0 - since.0).unsigned_abs() / 1000);
    vec![
        ("jobs_behind_seconds", "gauge", "How long the oldest job that is due waits", seconds(jobs)),
        ("flows_behind_seconds", "gauge", "How long the oldest run of a flow that is due waits", seconds(flows)),
        ("webhooks_behind_seconds", "gauge", "How long the oldest webhook that is due waits", seconds(webhooks)),
        ("jobs_parked", "gauge", "Jobs that are parked until somebody looks at them", parked.unsigned_abs()),
        ("webhook_endpoints_down", "gauge", "Endpoints that are only probed, since their receiver fails", down),
    ]
}
