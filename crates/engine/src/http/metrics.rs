//! Metrics for Prometheus.

pub mod counts;
pub mod format;
mod process;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::accounts;
use crate::app::App;
use crate::error::{Error, Result};
use crate::jobs;
use crate::registry::registry;
pub use counts::{CounterInfo, HistogramInfo, Metric, Metrics, waiting};

/// Time limit for metrics from the database.
const METRICS_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns all metrics as text, in the format OpenMetrics.
pub async fn text(app: &App) -> String {
    let mut text = String::new();
    let encoded = prometheus_client::encoding::text::encode(&mut text, &app.metrics.registry);
    debug_assert!(encoded.is_ok());
    let end = "# EOF\n";
    let mut text = text.strip_suffix(end).unwrap_or(&text).to_string();
    let stats = app.store.stats();
    let mut lines = vec![
        ("store_commits_total", "counter", "Commits", stats.commits.load(Ordering::Relaxed)),
        ("store_writes_total", "counter", "Writes", stats.writes.load(Ordering::Relaxed)),
        ("store_statements_total", "counter", "Statements", stats.statements()),
        ("store_retries_total", "counter", "Retried writes", stats.retries.load(Ordering::Relaxed)),
        ("store_standby_reads_total", "counter", "Reads from the standby", stats.standby_reads.load(Ordering::Relaxed)),
        (
            "store_standby_missed_total",
            "counter",
            "Reads from the primary because the standby was behind or lost",
            stats.standby_missed.load(Ordering::Relaxed),
        ),
        ("store_waiting", "gauge", "Queued writes", app.store.waiting() as u64),
        ("http_bodies_bytes", "gauge", "Bytes of request bodies in progress", app.bodies.total()),
        ("http_responses_bytes", "gauge", "Bytes of responses that are not yet sent", app.responses.total()),
        ("log_dropped_total", "counter", "Log lines dropped", LOG_LINES_DROPPED.load(Ordering::Relaxed)),
        ("streams_open", "gauge", "Open event streams", app.listeners.streams().taken() as u64),
    ];
    lines.extend(registry().gauges.iter().map(|gauge| gauge(app)));
    lines.extend(behind(app).await);
    for (name, kind, help, value) in lines {
        let family = name.strip_suffix("_total").unwrap_or(name);
        let _ =
            writeln!(text, "# HELP kantoor_{family} {help}.\n# TYPE kantoor_{family} {kind}\nkantoor_{name} {value}");
    }
    held(&mut text, stats);
    process::write(&mut text);
    text + &loops(app) + end
}

/// The number of log lines that were dropped because they could not be written in time.
pub static LOG_LINES_DROPPED: AtomicU64 = AtomicU64::new(0);

/// Writes how long transactions hold the writer.
fn held(text: &mut String, stats: &store::Stats) {
    let seconds = |nanoseconds: &AtomicU64| Duration::from_nanos(nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
    let _ = writeln!(
        text,
        "# HELP kantoor_writer_hold_seconds How long transactions held the writer.\n\
         # TYPE kantoor_writer_hold_seconds histogram"
    );
    let mut count = 0;
    // OpenMetrics requires decimals.
    let ends = store::HOLDS.iter().map(|end| format!("{:?}", end.as_secs_f64())).chain(["+Inf".to_string()]);
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
        ("hold", "Longest time that a transaction held the writer since the start", &stats.longest_hold),
        ("closure", "Longest time that one write took in a transaction since the start", &stats.longest_closure),
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

/// Writes the state of the background loops.
fn loops(app: &App) -> String {
    let mut ages = "# HELP kantoor_loop_last_turn_seconds Time since each background loop last made progress.\n\
                    # TYPE kantoor_loop_last_turn_seconds gauge\n"
        .to_string();
    let mut restarts = "# HELP kantoor_loop_restarts Restarts of each background loop.\n\
                        # TYPE kantoor_loop_restarts counter\n"
        .to_string();
    for one in app.loops.standings() {
        let (name, age) = (one.name, one.age.as_secs());
        let _ = writeln!(ages, "kantoor_loop_last_turn_seconds{{loop=\"{name}\"}} {age}");
        let _ = writeln!(restarts, "kantoor_loop_restarts_total{{loop=\"{name}\"}} {}", one.restarts);
    }
    ages + &restarts
}

/// Returns the lag of due work, and the other metrics from the database. They cover the whole database, are the same on
/// every node, and are omitted if the database does not respond.
async fn behind(app: &App) -> Vec<Metric> {
    let now = app.clock.now();
    let asked = app.store.read_apart(accounts::SHARED, move |tx| {
        let jobs = waiting(
            "jobs_behind_seconds",
            "How long the oldest due job has been waiting",
            jobs::oldest_due(tx, now)?,
            now,
        );
        let parked = jobs::parked(tx)?.unsigned_abs();
        let mut all = vec![jobs, ("jobs_parked", "gauge", "Parked jobs, which wait for an operator", parked)];
        for gauge in registry().stored_gauges {
            all.push(gauge(tx, now)?);
        }
        Ok::<_, Error>(all)
    });
    let answered: Result<Vec<Metric>> = match tokio::time::timeout(METRICS_TIMEOUT, asked).await {
        Ok(answered) => answered,
        Err(_) => return Vec::new(),
    };
    answered.unwrap_or_default()
}
