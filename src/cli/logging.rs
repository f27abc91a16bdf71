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
use tracing_subscriber::EnvFilter;

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

/// Flushes the log when it is dropped.
pub struct Flush;

impl Drop for Flush {
    fn drop(&mut self) {
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
    // It would report a write error to the same stream, and panic if that fails too.
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).log_internal_errors(false);
    let log = log.with_writer(move || own.clone());
    match config.log_format {
        LogFormat::Text => log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    Ok(Flush)
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
