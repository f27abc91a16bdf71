//! Checkpoints of SQLite: what is in its write-ahead log is copied to the main file. That takes a tenth of a second or more, in which
//! the writer would keep everybody waiting. So a thread of its own copies most of it while the writer goes on. The log starts over
//! only when all of it is copied; the writer copies the little that it has written meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use crate::{Error, Result};

/// A checkpoint after this many bytes, four times SQLite's own: a page that many commits change is copied to the main file
/// once per checkpoint.
const BYTES: i64 = 16 * 1024 * 1024;
/// The writer does it itself when the log has this many bytes, because the thread is stuck. Everybody waits for that: copying 30 MB
/// takes a quarter of a second on a good disk.
const MOST_BYTES: i64 = 32 * BYTES;
/// The writer copies this much in a millisecond or two.
const FEW_BYTES: i64 = 512 * 1024;
/// The thread copies what was written while it copied. If that does not become little in this many rounds, the writer copies more.
const ROUNDS: usize = 4;
/// After this many rounds, the writer pauses after each commit until the thread is done, longer with each round. That is less than it
/// would take to copy.
const ROUNDS_WITHOUT_PAUSES: usize = 8;
/// How much longer the writer pauses with each round, in milliseconds.
const PAUSE: u64 = 5;
/// After this many rounds, readers keep the log from being copied.
const MOST_ROUNDS: usize = 20;
/// How often the thread looks whether there is enough to copy.
const EVERY: Duration = Duration::from_millis(100);
/// How long it waits for a reader whose snapshot needs the log as it is.
const LATER: Duration = Duration::from_secs(1);

/// The thread that copies, as the writer sees it. It ends when this is dropped.
pub(crate) struct Checkpoints {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    seen: Option<i64>,
}

#[derive(Default)]
struct Shared {
    commits: AtomicU64,
    /// Whether almost everything is copied.
    is_almost_done: AtomicBool,
    /// How long the writer pauses after each commit, in milliseconds, because the thread does not keep up.
    pause: AtomicU64,
    stopped: Mutex<bool>,
    woken: Condvar,
}

impl Checkpoints {
    /// Starts the thread with another connection to the file of the writer.
    pub(crate) fn start(conn: Connection, writer: &Connection) -> Result<Checkpoints> {
        let page: i64 = writer.pragma_query_value(None, "page_size", |row| row.get(0))?;
        writer.pragma_update(None, "wal_autocheckpoint", MOST_BYTES / page)?;
        conn.pragma_update(None, "synchronous", "full")?;
        conn.pragma_update(None, "wal_autocheckpoint", 0)?;
        let shared = Arc::<Shared>::default();
        let own = shared.clone();
        let thread = std::thread::Builder::new()
            .name("checkpoint".into())
            .spawn(move || own.run(&conn, page))
            .map_err(|error| Error::Unavailable(format!("cannot start the thread for checkpoints: {error}")))?;
        Ok(Checkpoints { shared, thread: Some(thread), seen: None })
    }

    /// Called by the writer after a commit. Copies the rest if it is small, until the log starts over.
    pub(crate) fn committed(&mut self, writer: &Connection) {
        self.shared.commits.fetch_add(1, Ordering::Relaxed);
        let pause = self.shared.pause.load(Ordering::Relaxed);
        if pause > 0 {
            std::thread::sleep(Duration::from_millis(pause));
        }
        let begins = self.shared.is_almost_done.swap(false, Ordering::Relaxed);
        if !begins && self.seen.is_none() {
            return;
        }
        self.seen = match checkpoint(writer, "PASSIVE") {
            Ok(Progress { log, .. }) if self.seen.is_none_or(|seen| log >= seen) => Some(log),
            Ok(_) => None,
            Err(error) => {
                warn(&error);
                None
            }
        };
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        *self.shared.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.woken.notify_all();
        // Its connection must not outlive that of the writer.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Shared {
    fn run(&self, conn: &Connection, page: i64) {
        let (mut known, mut pause) = (0, EVERY);
        while !self.is_stopped_within(pause) {
            pause = EVERY;
            let commits = self.commits.load(Ordering::Relaxed);
            if commits == known {
                continue;
            }
            known = commits;
            let copied = copy(conn, page, &self.pause);
            self.pause.store(0, Ordering::Relaxed);
            match copied {
                Ok(Copied::Nothing) => {}
                Ok(Copied::AlmostAll) => self.is_almost_done.store(true, Ordering::Relaxed),
                Ok(Copied::Some) => pause = LATER,
                Err(error) => {
                    warn(&error);
                    pause = LATER;
                }
            }
        }
    }

    fn is_stopped_within(&self, pause: Duration) -> bool {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.woken.wait_timeout_while(stopped, pause, |stopped| !*stopped);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

enum Copied {
    Nothing,
    /// A reader needs the rest of the log.
    Some,
    AlmostAll,
}

/// Copies the log, if it is long enough. Under load, what the writer adds meanwhile is copied again and again, until it is little:
/// a pause would leave so much that the writer has to copy it.
fn copy(conn: &Connection, page: i64, pause: &AtomicU64) -> Result<Copied> {
    let mut before = checkpoint(conn, "NOOP")?;
    if before.left() * page < BYTES {
        return Ok(Copied::Nothing);
    }
    for round in 1..=MOST_ROUNDS {
        checkpoint(conn, "PASSIVE")?;
        let after = checkpoint(conn, "NOOP")?;
        let few = if round > ROUNDS { 4 * FEW_BYTES } else { FEW_BYTES };
        if after.left() * page < few {
            return Ok(Copied::AlmostAll);
        }
        if after.copied == before.copied {
            break;
        }
        pause.store(PAUSE * round.saturating_sub(ROUNDS_WITHOUT_PAUSES) as u64, Ordering::Relaxed);
        before = after;
    }
    Ok(Copied::Some)
}

/// How many pages the log has, and how many of them are copied.
struct Progress {
    log: i64,
    copied: i64,
}

impl Progress {
    fn left(&self) -> i64 {
        self.log - self.copied
    }
}

fn checkpoint(conn: &Connection, mode: &str) -> Result<Progress> {
    let mut statement = conn.prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?;
    Ok(statement.query_one([], |row| Ok(Progress { log: row.get(1)?, copied: row.get(2)? }))?)
}

/// What is not copied stays in the log and is copied later.
fn warn(error: &Error) {
    tracing::warn!(cause = %error, "The write-ahead log cannot be copied to the database at the moment; this will be retried.");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(conn: &Connection, megabytes: usize) {
        for _ in 0..megabytes {
            conn.execute("INSERT INTO pieces VALUES (randomblob(1000000))", []).unwrap();
        }
    }

    #[test]
    fn the_thread_copies_and_the_writer_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kantoor.db");
        let writer = Connection::open(&path).unwrap();
        writer.pragma_update(None, "journal_mode", "wal").unwrap();
        writer.execute("CREATE TABLE pieces (piece BLOB) STRICT", []).unwrap();
        let page: i64 = writer.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
        writer.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        write(&writer, 2);
        let none = AtomicU64::new(0);
        assert!(matches!(copy(&writer, page, &none), Ok(Copied::Nothing)));
        write(&writer, 20);
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM pieces").unwrap();
        write(&writer, 20);
        let beside = Connection::open(&path).unwrap();
        assert!(matches!(copy(&beside, page, &none), Ok(Copied::Some)), "a reader needs the rest");
        reader.execute_batch("COMMIT").unwrap();
        assert!(matches!(copy(&beside, page, &none), Ok(Copied::AlmostAll)));
        drop((reader, beside));

        let mut checkpoints = Checkpoints::start(Connection::open(&path).unwrap(), &writer).unwrap();
        checkpoints.shared.is_almost_done.store(true, Ordering::Relaxed);
        checkpoints.committed(&writer);
        let before = checkpoints.seen.unwrap();
        assert!(before * page > 40_000_000);
        write(&writer, 1);
        checkpoints.committed(&writer);
        assert!(checkpoints.seen.is_none(), "the log has started over");
        assert!(checkpoint(&writer, "NOOP").unwrap().log < before / 10);
    }

    #[test]
    fn the_log_does_not_grow_under_load() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kantoor.db");
        let writer = Connection::open(&path).unwrap();
        writer.pragma_update(None, "journal_mode", "wal").unwrap();
        writer.execute("CREATE TABLE pieces (piece BLOB) STRICT", []).unwrap();
        let page: i64 = writer.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
        let mut checkpoints = Checkpoints::start(Connection::open(&path).unwrap(), &writer).unwrap();
        let (mut started_over, mut last) = (0, 0);
        while started_over < 2 {
            write(&writer, 1);
            checkpoints.committed(&writer);
            let log = checkpoint(&writer, "NOOP").unwrap().log;
            assert!(log * page < MOST_BYTES, "the writer would have to copy it");
            started_over += usize::from(log < last);
            last = log;
        }
    }
}
