//! The time of a database that several machines share. Machines disagree about the time; what one of them schedules,
//! claims or lets expire is a decision for all. So a process counts time itself, from the start of its machine, and adds
//! what the database's clock showed at that moment. Counting continues while the process or the machine stands still, and
//! the machine's own clock may be set to anything.

use std::sync::atomic::{AtomicI64, Ordering};

use store::{Store, Tx};

use super::machine;

/// A comparison that is older than this is repeated before work is claimed, in milliseconds. The heartbeat makes one every two
/// seconds.
const STALE: i64 = 10_000;
/// If the machine's clock was moved by more than this since the last comparison, something may have stopped the whole machine:
/// what counts the time may have stood still as well. In milliseconds.
const MOVED: i64 = 1_000;
/// The first comparison is repeated until it took at most this many milliseconds, a few times.
const PROMPT: i64 = 200;
const COMPARISONS: usize = 5;
/// Comparisons belong to no account.
const SHARED: i64 = 0;

/// The clocks of this machine, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Machine {
    /// Since the machine was started, also while it slept.
    running: i64,
    /// Since 1970, as set by people and programs.
    wall: i64,
}

impl Machine {
    fn now() -> Machine {
        Machine { running: machine::running(), wall: machine::wall() }
    }
}

/// What the database's clock showed at a moment between two others.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    asked: i64,
    shown: i64,
    answered: i64,
}

impl Comparison {
    /// Asks the database for its time; none if it has no other clock than this machine.
    pub fn make(tx: &mut Tx) -> store::Result<Option<Comparison>> {
        let asked = machine::running();
        let shown = tx.database_time()?;
        Ok(shown.map(|shown| Comparison { asked, shown, answered: machine::running() }))
    }

    /// The smallest and the largest difference that it allows. The database rounds to milliseconds, and so do we.
    fn bounds(&self) -> (i64, i64) {
        (self.shown - self.answered - 1, self.shown - self.asked + 1)
    }
}

/// The database's time, as this process counts it.
#[derive(Debug)]
pub struct SharedTime {
    /// What is added to the time since the start of the machine.
    offset: AtomicI64,
    /// When the last comparison was made, by both clocks of the machine.
    running: AtomicI64,
    wall: AtomicI64,
}

impl SharedTime {
    /// Compares the clocks for the first time; none if the database has no other clock than this machine.
    pub fn of(store: &Store) -> store::Result<Option<SharedTime>> {
        if !store.is_shared() {
            return Ok(None);
        }
        // Reads may go to a standby, whose clock is another one.
        let compare = || store.write_now(SHARED, Comparison::make);
        let Some(first) = compare()? else { return Ok(None) };
        let (low, high) = first.bounds();
        let time =
            SharedTime { offset: (low + (high - low) / 2).into(), running: AtomicI64::new(0), wall: AtomicI64::new(0) };
        time.correct(first);
        let mut took = first.answered - first.asked;
        for _ in 1..COMPARISONS {
            if took <= PROMPT {
                break;
            }
            let Some(next) = compare()? else { break };
            took = next.answered - next.asked;
            time.correct(next);
        }
        Ok(Some(time))
    }

    /// Returns the time.
    pub fn now(&self) -> i64 {
        machine::running() + self.offset.load(Ordering::Relaxed)
    }

    /// Changes the time by as little as a comparison requires. One that took long allows much and changes nothing.
    pub fn correct(&self, comparison: Comparison) {
        let (low, high) = comparison.bounds();
        let offset = self.offset.load(Ordering::Relaxed);
        self.offset.store(offset.clamp(low, high), Ordering::Relaxed);
        let now = Machine::now();
        self.running.store(now.running, Ordering::Relaxed);
        self.wall.store(now.wall, Ordering::Relaxed);
    }

    /// Whether the clocks should be compared again before this time decides who does what.
    pub fn is_doubtful(&self) -> bool {
        let (then, now) = (
            Machine { running: self.running.load(Ordering::Relaxed), wall: self.wall.load(Ordering::Relaxed) },
            Machine::now(),
        );
        let counted = now.running - then.running;
        counted > STALE || (now.wall - then.wall - counted).abs() > MOVED
    }

    /// By how many seconds the machine's clock is ahead of the database's; negative if it is behind.
    pub fn seconds_ahead(&self) -> i64 {
        (machine::wall() - self.now()) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(offset: i64) -> SharedTime {
        SharedTime { offset: offset.into(), running: AtomicI64::new(0), wall: AtomicI64::new(0) }
    }

    #[test]
    fn a_comparison_changes_the_time_by_as_little_as_it_must() {
        let time = time(500);
        let compare = |asked, shown, answered| {
            time.correct(Comparison { asked, shown, answered });
            time.offset.load(Ordering::Relaxed)
        };
        assert_eq!(compare(1000, 1500, 1001), 500);
        assert_eq!(compare(1000, 2500, 61_000), 500, "it took a minute, and the time that it showed was within it");
        assert_eq!(compare(1000, 601_000, 1010), 599_989, "the database is ten minutes ahead");
        assert_eq!(compare(2000, 1000, 2000), -999, "it was set back");
    }

    #[test]
    fn a_comparison_is_doubtful_when_it_is_old_or_the_clock_was_moved() {
        let time = time(0);
        assert!(time.is_doubtful(), "none was made yet");
        let now = machine::running();
        time.correct(Comparison { asked: now, shown: 7, answered: now });
        assert!(!time.is_doubtful());
        time.wall.fetch_add(2 * MOVED, Ordering::Relaxed);
        assert!(time.is_doubtful(), "the machine's clock was set");
        time.correct(Comparison { asked: now, shown: 7, answered: now });
        time.running.fetch_sub(2 * STALE, Ordering::Relaxed);
        time.wall.fetch_sub(2 * STALE, Ordering::Relaxed);
        assert!(time.is_doubtful(), "the process was paused");
    }
}
