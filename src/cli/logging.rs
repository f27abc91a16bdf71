//! The program's log on standard error. A thread of its own writes it, so that nobody waits for a pipe that is full or a disk
//! that is slow: what does not fit in the queue is dropped and counted.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use engine::config::{Config, LogFormat};
use engine::http::metrics::LOG_LINES_DROPPED;
use tracing_subscriber::EnvFilter;

/// How many lines may wait to be written, and how many bytes of them.
const LINES: usize = 4096;
const BYTES: usize = 4 * 1024 * 1024;
/// How long the end of the program waits for the last lines.
const GOODBYE: Duration = Duration::from_secs(1);

enum Entry {
    Line(Vec<u8>),
    /// Answered once everything before it is written.
    End(SyncSender<()>),
}

/// The way to the thread that writes. It never fails and never waits.
#[derive(Clone)]
struct Log {
    queue: Sender<Entry>,
    /// Lines and bytes that wait.
    lines: Arc<AtomicUsize>,
    bytes: Arc<AtomicUsize>,
}

static LOG: OnceLock<Log> = OnceLock::new();

/// Writes what is left of the log when the program ends.
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

/// Starts the log as the settings describe it.
pub fn start(config: &Config) -> Result<Flush, String> {
    let filter: EnvFilter =
        config.log_level.parse().map_err(|error| format!("log_level '{}': {error}", config.log_level))?;
    let log = Log::start(std::io::stderr())?;
    let own = LOG.get_or_init(|| log).clone();
    // By default a panic is written to standard error by the thread that panics, which would wait for it.
    let panics = own.clone();
    std::panic::set_hook(Box::new(move |panic| panics.put(format!("{panic}\n").into_bytes())));
    // It would say that it cannot write in the same place, and panic when it cannot.
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
            .map_err(|error| format!("no thread for the log: {error}"))?;
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
                // On a full disk, or when nobody reads any more, the line is lost.
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
    fn a_reader_that_stands_still_holds_up_nobody() {
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
        // The first line may come after the note, when the thread that writes starts late.
        assert!(text.contains("line 0 x") && text.contains(" lines of the log were dropped.\n"));
        assert_eq!(text.lines().filter(|line| line.starts_with("line ")).count() as u64 + dropped, 3 * LINES as u64);
    }
}
