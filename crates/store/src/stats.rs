use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper ends of the buckets of [`Stats::holds`].
pub const HOLDS: [Duration; 12] = [
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(20),
];

/// Statements that this process ran. A transaction does not know its store, so all of them share this counter.
static STATEMENTS: AtomicU64 = AtomicU64::new(0);

pub(crate) fn statement_ran() {
    STATEMENTS.fetch_add(1, Ordering::Relaxed);
}

/// Counters for the operator.
#[derive(Default, Debug)]
pub struct Stats {
    /// Commits done.
    pub commits: AtomicU64,
    /// Writes done, good or refused; divided by `commits`: how well they share commits.
    pub writes: AtomicU64,
    /// Writes run again after a lost race or connection.
    pub retries: AtomicU64,
    /// The longest that one closure ran in a write transaction, in nanoseconds. Everybody else waits meanwhile; a
    /// test may set it to zero.
    pub longest_closure: AtomicU64,
    /// The longest that one transaction held its writer, from its begin until its commit was on disk, in nanoseconds.
    pub longest_hold: AtomicU64,
    /// How many transactions held their writer for how long: up to each of [`HOLDS`], and for longer than the last.
    pub holds: [AtomicU64; HOLDS.len() + 1],
    /// How long all of them held their writer, in nanoseconds.
    pub held: AtomicU64,
    /// Reads that a standby answered, and those that went to the primary because it was behind or lost.
    pub standby_reads: AtomicU64,
    /// See [`Stats::standby_reads`].
    pub standby_missed: AtomicU64,
}

impl Stats {
    /// Statements run, the control words of transactions included.
    pub fn statements(&self) -> u64 {
        STATEMENTS.load(Ordering::Relaxed)
    }

    pub(crate) fn closure_ran(&self, time: Duration) {
        self.longest_closure.fetch_max(nanoseconds(time), Ordering::Relaxed);
    }

    pub(crate) fn transaction_held(&self, time: Duration) {
        let bucket = HOLDS.partition_point(|end| *end < time);
        self.holds[bucket].fetch_add(1, Ordering::Relaxed);
        self.held.fetch_add(nanoseconds(time), Ordering::Relaxed);
        self.longest_hold.fetch_max(nanoseconds(time), Ordering::Relaxed);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
