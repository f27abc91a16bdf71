//! The program's log on standard error. A separate thread writes it, so that nothing blocks on a full pipe or a slow
//! disk: lines that do not fit in the queue are dropped and counted.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use engine::config::{Config, LogFormat};
use engine::http::metrics::LOG_LINES_DROPPED;
use traces::Traces;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// Limits of the queue, in lines and in bytes.
const LINES: usize = 4096;
const BYTES: usize = 4 * 1024 * 1024;
/// How long the program waits for the last lines when it exits.
const GOODBYE: Duration = Duration::from_secs(1);

enum Entry {
    Line(Vec<u8>),
    /// Answered when everything before it is written.
    End(SyncSender<()>),
}

/// The sender to the log thread. It never fails and never blocks.
#[derive(Clone)]
struct Log {
    queue: Sender<Entry>,
    /// Lines and bytes in the queue.
    lines: Arc<AtomicUsize>,
    bytes: Arc<AtomicUsize>,
}

static LOG: OnceLock<Log> = OnceLock::new();

/// Sends the last traces and flushes the log when it is dropped.
pub struct Flush {
    traces: Option<Traces>,
}

impl Drop for Flush {
    fn drop(&mut self) {
        drop(self.traces.take());
        let Some(log) = LOG.get() else { return };
        let (written, wait) = sync_channel(1);
        if log.queue.send(Entry::End(written)).is_ok() {
            let _ = wait.recv_timeout(GOODBYE);
        }
    }
}

/// Starts the log as configured.
pub fn start(config: &Config) -> Result<Flush, String> {
    let filter: EnvFilter =
        config.log_level.parse().map_err(|error| format!("log_level '{}': {error}", config.log_level))?;
    let log = Log::start(std::io::stderr())?;
    let own = LOG.get_or_init(|| log).clone();
    // By default, the panicking thread writes to standard error itself, and could block on it.
    let panics = own.clone();
    std::panic::set_hook(Box::new(move |panic| panics.put(format!("{panic}\n").into_bytes())));
    let traces = match config.trace_to.as_str() {
        "" => None,
        collector => Some(start_traces(config, collector)?),
    };
    // It would report a write error to the same stream, and panic if that fails too.
    let lines = tracing_subscriber::fmt::layer().with_target(false).log_internal_errors(false);
    let lines = lines.with_writer(move || own.clone());
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match config.log_format {
        LogFormat::Text => lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // The spans of traces are not part of the lines, whatever the level.
    let filter = filter.add_directive(format!("{}=off", traces::TARGET).parse().map_err(|_| "the filter of traces")?);
    let layers = vec![lines.with_filter(filter).boxed()];
    let sent = traces.iter().map(|traces| traces.layer().boxed());
    tracing_subscriber::registry().with(layers.into_iter().chain(sent).collect::<Vec<_>>()).init();
    if let Some(cause) = traces.as_ref().and_then(|traces| traces.uncertified.as_deref()) {
        tracing::warn!(
            collector = config.trace_to,
            cause,
            "No traces are sent over TLS: install the package ca-certificates and restart."
        );
    }
    Ok(Flush { traces })
}

fn start_traces(config: &Config, collector: &str) -> Result<Traces, String> {
    let settings = traces::Settings {
        collector: collector.to_string(),
        one_in: config.trace_one_in,
        version: env!("CARGO_PKG_VERSION").to_string(),
    };
    Traces::start(&settings).map_err(|error| format!("trace_to '{collector}': {error}"))
}

impl Log {
    fn start(to: impl Write + Send + 'static) -> Result<Log, String> {
        let (queue, entries) = channel();
        let log = Log { queue, lines: Arc::default(), bytes: Arc::default() };
        let (lines, bytes) = (log.lines.clone(), log.bytes.clone());
        std::thread::Builder::new()
            .name("log".into())
            .spawn(move || write(to, &entries, &lines, &bytes))
            .map_err(|error| format!("cannot start the log thread: {error}"))?;
        Ok(log)
    }

    fn put(&self, line: Vec<u8>) {
        let lines = self.lines.fetch_add(1, Ordering::Relaxed);
        let bytes = self.bytes.fetch_add(line.len(), Ordering::Relaxed);
        let length = line.len();
        let fits = lines < LINES && bytes + length <= BYTES;
        if !fits || self.queue.send(Entry::Line(line)).is_err() {
            self.lines.fetch_sub(1, Ordering::Relaxed);
            self.bytes.fetch_sub(length, Ordering::Relaxed);
            LOG_LINES_DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write(mut to: impl Write, entries: &Receiver<Entry>, lines: &AtomicUsize, bytes: &AtomicUsize) {
    let mut told = 0;
    while let Ok(entry) = entries.recv() {
        match entry {
            Entry::Line(mut line) => {
                lines.fetch_sub(1, Ordering::Relaxed);
                bytes.fetch_sub(line.len(), Ordering::Relaxed);
                let dropped = LOG_LINES_DROPPED.load(Ordering::Relaxed);
                if dropped > told {
                    let mut note = String::new();
                    let _ = writeln!(note, "kantoor: {} lines of the log were dropped.", dropped - told);
                    line.splice(..0, note.into_bytes());
                    told = dropped;
                }
                // On a full disk or a closed pipe the line is lost.
                let _ = to.write_all(&line);
            }
            Entry::End(written) => drop(written.send(())),
        }
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.put(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stalled_reader_blocks_nothing() {
        let (mut read, stuck) = std::io::pipe().unwrap();
        let log = Log::start(stuck).unwrap();
        for number in 0..3 * LINES {
            log.put(format!("line {number} {}\n", "x".repeat(100)).into_bytes());
        }
        assert!(log.lines.load(Ordering::Relaxed) <= LINES && log.bytes.load(Ordering::Relaxed) <= BYTES);
        let dropped = LOG_LINES_DROPPED.load(Ordering::Relaxed);
        assert!(dropped > 0, "{dropped}");
        drop(log);
        let mut text = String::new();
        std::io::Read::read_to_string(&mut read, &mut text).unwrap();
        // The first line may come after the note, if the log thread starts late.
        assert!(text.contains("line 0 x") && text.contains(" lines of the log were dropped.\n"));
        assert_eq!(text.lines().filter(|line| line.starts_with("line ")).count() as u64 + dropped, 3 * LINES as u64);
    }
}
