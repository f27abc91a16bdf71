//! Reads from a standby that return what a read from the primary would have.
//!
//! A read first asks the primary how far its log is on disk, or without `synchronous_commit` how far it is in memory; everything
//! that was acknowledged before is within that. Then it
//! asks the standby how far it has replayed the log, waits a moment if that is not far enough, and reads there. So
//! everyone reads every acknowledged write, whoever made it on whichever node. Reads that arrive together share the question
//! to the primary, which takes a few microseconds there. If the standby is behind or lost, the primary answers.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::address::Address;
use crate::postgres::{Connection, Pool};
use crate::{Error, Result, Stats, Tx};

/// How long a read waits for the standby to catch up before it goes to the primary.
const BEHIND: Duration = Duration::from_millis(20);
/// How often the standby is asked in that time.
const PAUSE: Duration = Duration::from_millis(1);
/// How long a standby that was behind or lost is left alone.
const REST: Duration = Duration::from_secs(1);
/// Time limit of both questions.
const ANSWER: Duration = Duration::from_secs(1);

/// As text: the driver has no type for it. Without `synchronous_commit`, commits are acknowledged before they are on disk.
const WRITTEN: &str = "SELECT CASE current_setting('synchronous_commit')
     WHEN 'off' THEN pg_current_wal_insert_lsn() ELSE pg_current_wal_flush_lsn() END - '0/0'";
/// No row unless it receives the log: what a standby that was left behind by a failover has replayed may have been lost.
const REPLAYED: &str = "SELECT pg_last_wal_replay_lsn() - '0/0' FROM pg_stat_wal_receiver";

/// The servers that answer reads.
pub(crate) struct Servers {
    pub(crate) primary: Pool,
    standby: Option<Standby>,
}

impl Servers {
    pub(crate) fn new(primary: Pool, standby: Option<Address>) -> Servers {
        let standby = standby
            .map(|address| Standby::new(primary.for_standby(address), primary.address().clone(), primary.stats()));
        Servers { primary, standby }
    }

    /// Runs `work` in a transaction that only reads; what it returned last counts.
    pub(crate) fn read(&self, work: &mut dyn FnMut(&mut Tx)) -> Result<()> {
        if self.standby.as_ref().is_some_and(|standby| standby.read(work)) {
            return Ok(());
        }
        self.primary.read(work)
    }
}

/// The standby of a primary.
struct Standby {
    pool: Pool,
    primary: Address,
    asked: Mutex<Asked>,
    answered: Condvar,
    stats: Arc<Stats>,
}

/// The questions to the primary.
#[derive(Default)]
struct Asked {
    conn: Option<Connection>,
    /// How many questions were begun.
    begun: u64,
    /// The last one that was answered, and its answer.
    done: u64,
    position: u64,
    /// Whether one is on its way.
    busy: bool,
    /// The standby is not asked before this moment.
    rests_until: Option<Instant>,
}

impl Asked {
    fn rests(&self) -> bool {
        self.rests_until.is_some_and(|until| Instant::now() < until)
    }

    fn rest(&mut self) {
        self.rests_until = Some(Instant::now() + REST);
    }
}

impl Standby {
    fn new(pool: Pool, primary: Address, stats: &Arc<Stats>) -> Standby {
        Standby { pool, primary, asked: Mutex::default(), answered: Condvar::new(), stats: stats.clone() }
    }

    /// Runs `work` on the standby; returns false if the primary has to run it.
    fn read(&self, work: &mut dyn FnMut(&mut Tx)) -> bool {
        if self.asked().rests() {
            self.stats.standby_missed.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let read = self.position().and_then(|position| {
            let reached = &mut |conn: &mut Connection| reaches(conn, position);
            self.pool.read_once(reached, work)
        });
        let done = matches!(read, Ok(true));
        if !done {
            self.asked().rest();
        }
        let counter = if done { &self.stats.standby_reads } else { &self.stats.standby_missed };
        counter.fetch_add(1, Ordering::Relaxed);
        done
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a position of the primary's log that contains everything acknowledged before this call.
    fn position(&self) -> Result<u64> {
        let mut asked = self.asked();
        // A question that is on its way may have been answered before the write of this caller.
        let needed = asked.begun + 1;
        while asked.done < needed {
            // If the question of another caller has just failed, this one does not wait for the same failure again.
            if asked.rests() {
                return Err(Error::Disconnected("the primary does not say how far its log is".into()));
            }
            if asked.busy {
                asked = self.answered.wait(asked).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            (asked.busy, asked.begun) = (true, asked.begun + 1);
            let (own, conn) = (asked.begun, asked.conn.take());
            drop(asked);
            let answer = self.ask(conn);
            asked = self.asked();
            asked.busy = false;
            self.answered.notify_all();
            if answer.is_err() {
                asked.rest();
            }
            let (conn, position) = answer?;
            (asked.conn, asked.done, asked.position) = (Some(conn), own, position);
        }
        Ok(asked.position)
    }

    fn ask(&self, conn: Option<Connection>) -> Result<(Connection, u64)> {
        let reused = conn.is_some();
        let mut conn = conn.map_or_else(|| Connection::open(&self.primary, ANSWER, ANSWER), Ok)?;
        match conn.ask_number(WRITTEN, ANSWER) {
            Ok(position) => Ok((conn, position.unwrap_or(u64::MAX))),
            // It may have been lost while nobody read.
            Err(_) if reused => self.ask(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether the standby has replayed the log up to `position`, within a moment.
fn reaches(conn: &mut Connection, position: u64) -> Result<bool> {
    let started = Instant::now();
    loop {
        match conn.ask_number(REPLAYED, ANSWER)? {
            Some(replayed) if replayed >= position => return Ok(true),
            Some(_) if started.elapsed() < BEHIND => std::thread::sleep(PAUSE),
            _ => return Ok(false),
        }
    }
}
