//! How many writes share a commit. With too few, the commits take most of the time. With too many, all callers wait for the
//! same commit, and after it the writer waits until their next requests have been read.

use std::time::Duration;

/// The limit never falls below this, so that a few idle moments do not make a burst slow.
const LEAST: usize = 8;
/// Enough to share a sync well, and few enough that the first of them does not wait long.
const MOST: usize = 256;

/// How many writes a transaction may have: as many as the load allows without idle time.
pub(crate) struct Pace {
    limit: usize,
    /// How many writes the last transaction had, and how long it took.
    writes: usize,
    took: Duration,
}

impl Pace {
    pub(crate) fn new() -> Pace {
        Pace { limit: MOST, writes: 0, took: Duration::ZERO }
    }

    /// Returns how many writes the next transaction may have; the writer waited for its first one for this long.
    pub(crate) fn next(&mut self, waited: Duration) -> usize {
        if self.writes > LEAST && waited > self.took / 16 {
            // Responding to some of them earlier would have brought their callers' next requests by now.
            let writes = self.writes.min(self.limit);
            self.limit = LEAST.max(writes - writes.div_ceil(8));
        } else if self.writes >= self.limit {
            self.limit = MOST.min(self.limit + 1 + self.limit / 16);
        }
        self.limit
    }

    /// Records how many writes a transaction had, and how long it took.
    pub(crate) fn record(&mut self, writes: usize, took: Duration) {
        (self.writes, self.took) = (writes, took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOK: Duration = Duration::from_millis(16);
    const IDLE: Duration = Duration::from_millis(4);

    /// Returns the limit after transactions with as many writes as are queued and allowed.
    fn after(pace: &mut Pace, transactions: usize, queued: usize, waited: Duration) -> usize {
        for _ in 0..transactions {
            let limit = pace.next(waited);
            pace.record(queued.min(limit), TOOK);
        }
        pace.next(Duration::ZERO)
    }

    #[test]
    fn fewer_share_a_commit_while_the_writer_waits_after_it() {
        let mut pace = Pace::new();
        assert_eq!(pace.next(IDLE), MOST, "nothing has been written");
        assert!(after(&mut pace, 2, 32, IDLE) < 32);
        assert_eq!(after(&mut pace, 50, 32, IDLE), LEAST + 1);
    }

    #[test]
    fn more_share_a_commit_while_writes_are_queued() {
        let mut pace = Pace::new();
        after(&mut pace, 50, 32, IDLE);
        assert_eq!(after(&mut pace, 100, 1000, Duration::ZERO), MOST);
    }

    #[test]
    fn single_writes_say_nothing_about_the_limit() {
        let mut pace = Pace::new();
        assert_eq!(after(&mut pace, 100, 1, IDLE), MOST);
    }
}
