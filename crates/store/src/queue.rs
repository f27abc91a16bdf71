//! The fair write queue. Accounts take turns by the time that their writes take, so that an account with expensive or
//! many writes delays the others by one write and not by all of them.
//!
//! Each account has a clock that advances while its writes run, and the account whose clock is furthest behind is next
//! (start-time fair queueing). Writes of one account stay in order.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

/// Number of idle accounts to remember, for the usual duration of their writes.
const REMEMBERED: usize = 1024;

/// The queued writes, by key: the number of an account.
pub(crate) struct Queue<T> {
    lanes: HashMap<i64, Lane<T>>,
    /// The lanes with queued writes and no running one: their clock, arrival number and key.
    turns: BTreeSet<(Duration, u64, i64)>,
    /// The clock of the lane that had the last turn. A new lane starts here, so that idle time earns no priority.
    now: Duration,
    /// The furthest clock.
    furthest: Duration,
    came: u64,
    waiting: usize,
    held: usize,
    limit: usize,
}

struct Lane<T> {
    waiting: VecDeque<T>,
    clock: Duration,
    came: u64,
    /// The recent duration of its writes.
    usual: Duration,
    /// Whether a write of the lane is running.
    held: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new(limit: usize) -> Queue<T> {
        Queue {
            lanes: HashMap::new(),
            turns: BTreeSet::new(),
            now: Duration::ZERO,
            furthest: Duration::ZERO,
            came: 0,
            waiting: 0,
            held: 0,
            limit,
        }
    }

    /// Returns the number of queued writes.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Adds a write. If the queue is full, returns the last one of the longest lane, which may be this one.
    pub(crate) fn push(&mut self, key: i64, item: T) -> Option<T> {
        let mut refused = None;
        if self.waiting >= self.limit {
            let own = self.lanes.get(&key).map_or(0, |lane| lane.waiting.len());
            let longest = self.lanes.iter().map(|(key, lane)| (lane.waiting.len(), *key)).max();
            match longest {
                Some((length, other)) if length > own + 1 => refused = self.pop_last(other),
                _ => return Some(item),
            }
        }
        if self.waiting == 0 && self.held == 0 {
            // Nothing had to wait for past work, so it does not count.
            self.now = self.furthest;
            self.forget();
        }
        let now = self.now;
        let lane = self.lanes.entry(key).or_insert_with(|| Lane {
            waiting: VecDeque::new(),
            clock: now,
            came: 0,
            usual: Duration::ZERO,
            held: false,
        });
        lane.waiting.push_back(item);
        self.waiting += 1;
        if lane.waiting.len() == 1 && !lane.held {
            lane.clock = lane.clock.max(now);
            self.line_up(key);
        }
        refused
    }

    /// Takes the next write, and holds its lane until [`Queue::release`]. With `room`: only if it usually takes no
    /// longer.
    pub(crate) fn take(&mut self, room: Option<Duration>) -> Option<(i64, T)> {
        let &(clock, came, key) = self.turns.first()?;
        let lane = self.lanes.get_mut(&key)?;
        if room.is_some_and(|room| lane.usual > room) {
            return None;
        }
        let item = lane.waiting.pop_front()?;
        lane.held = true;
        self.turns.remove(&(clock, came, key));
        self.now = self.now.max(clock);
        self.waiting -= 1;
        self.held += 1;
        Some((key, item))
    }

    /// Takes the next write of the lanes `keys`, which are held, if it usually takes no longer than `room`.
    pub(crate) fn more(&mut self, keys: &[i64], room: Duration) -> Option<(i64, T)> {
        let key = self.first_of(keys)?.1;
        let lane = self.lanes.get_mut(&key).filter(|lane| lane.usual <= room)?;
        let item = lane.waiting.pop_front()?;
        self.waiting -= 1;
        Some((key, item))
    }

    /// Whether a lane that is not held comes before the lanes `keys`.
    pub(crate) fn is_turn_of_others(&self, keys: &[i64]) -> bool {
        match (self.turns.first(), self.first_of(keys)) {
            (Some((clock, ..)), Some((own, _))) => *clock < own,
            (first, own) => first.is_some() && own.is_none(),
        }
    }

    fn first_of(&self, keys: &[i64]) -> Option<(Duration, i64)> {
        let waiting = keys.iter().filter_map(|key| Some((*key, self.lanes.get(key)?)));
        waiting.filter(|(_, lane)| !lane.waiting.is_empty()).map(|(key, lane)| (lane.clock, key)).min()
    }

    /// Puts back a write that was taken and has not run, as the next of its lane, and releases the lane.
    pub(crate) fn put_back(&mut self, key: i64, item: T) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        lane.waiting.push_front(item);
        self.waiting += 1;
        self.release(key);
    }

    /// Records that a write of this lane ran for `time`.
    pub(crate) fn ran(&mut self, key: i64, time: Duration) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        lane.clock += time;
        // An expensive write counts immediately, and is forgotten after a few cheap ones.
        lane.usual = if time > lane.usual { time } else { (lane.usual + time) / 2 };
        self.furthest = self.furthest.max(lane.clock);
    }

    /// Releases this lane.
    pub(crate) fn release(&mut self, key: i64) {
        let Some(lane) = self.lanes.get_mut(&key).filter(|lane| lane.held) else { return };
        lane.held = false;
        self.held -= 1;
        if !lane.waiting.is_empty() {
            self.line_up(key);
        }
    }

    /// Removes all writes.
    pub(crate) fn clear(&mut self) {
        self.lanes.clear();
        self.turns.clear();
        (self.waiting, self.held) = (0, 0);
    }

    fn line_up(&mut self, key: i64) {
        self.came += 1;
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.came = self.came;
            self.turns.insert((lane.clock, lane.came, key));
        }
    }

    fn pop_last(&mut self, key: i64) -> Option<T> {
        let last = self.lanes.get_mut(&key)?.waiting.pop_back();
        self.waiting -= usize::from(last.is_some());
        last
    }

    /// Called while nothing is queued or running.
    fn forget(&mut self) {
        if self.lanes.len() > REMEMBERED {
            self.lanes.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEAR: Duration = Duration::from_millis(100);
    const CHEAP: Duration = Duration::from_millis(1);

    fn cost(key: i64) -> Duration {
        if key == 1 { DEAR } else { CHEAP }
    }

    /// Returns the keys in the order of their turns; 1 has expensive writes, the others cheap ones.
    fn turns<T>(queue: &mut Queue<T>, count: usize) -> Vec<i64> {
        (0..count)
            .filter_map(|_| {
                let (key, _) = queue.take(None)?;
                queue.ran(key, cost(key));
                queue.release(key);
                Some(key)
            })
            .collect()
    }

    #[test]
    fn an_expensive_account_delays_others_by_one_write() {
        let mut queue = Queue::new(1000);
        for _ in 0..50 {
            assert!(queue.push(1, ()).is_none());
        }
        assert_eq!(turns(&mut queue, 3), [1, 1, 1]);
        // It is running when the other one arrives.
        let (key, ()) = queue.take(None).unwrap();
        for _ in 0..20 {
            assert!(queue.push(2, ()).is_none());
        }
        queue.ran(key, DEAR);
        queue.release(key);
        let order = turns(&mut queue, 30);
        assert!(order[..20].iter().all(|key| *key == 2), "{order:?}");
        assert!(order[20..].iter().all(|key| *key == 1), "{order:?}");
    }

    #[test]
    fn two_busy_accounts_get_the_same_time() {
        let mut queue = Queue::new(10_000);
        for _ in 0..1000 {
            assert!(queue.push(1, ()).is_none());
            assert!(queue.push(2, ()).is_none());
        }
        let order = turns(&mut queue, 808);
        let of = |key: i64| order.iter().filter(|own| **own == key).count();
        // 100 writes of 1 ms for each of 100 ms.
        assert!((7..=9).contains(&of(1)) && of(2) >= 799, "{} and {}", of(1), of(2));
    }

    #[test]
    fn many_accounts_have_one_turn_each() {
        let mut queue = Queue::new(1000);
        for _ in 0..3 {
            for key in 2..12 {
                assert!(queue.push(key, ()).is_none());
            }
        }
        for round in 0..3 {
            assert_eq!(turns(&mut queue, 10), (2..12).collect::<Vec<_>>(), "round {round}");
        }
        assert!(queue.take(None).is_none());
    }

    #[test]
    fn writes_of_one_account_stay_in_order_and_have_one_writer() {
        let mut queue = Queue::new(1000);
        for number in 0..4 {
            assert!(queue.push(1, number).is_none());
        }
        assert!(queue.push(2, 100).is_none());
        assert_eq!(queue.take(None), Some((1, 0)));
        assert_eq!(queue.more(&[1], CHEAP), Some((1, 1)));
        assert_eq!(queue.take(None), Some((2, 100)), "another writer");
        assert_eq!(queue.take(None), None, "the rest is in a held lane");
        queue.ran(1, DEAR);
        assert_eq!(queue.more(&[1], CHEAP), None, "it would take too long for this transaction");
        assert_eq!(queue.waiting(), 2);
        queue.release(1);
        assert_eq!((queue.take(None), queue.more(&[1], DEAR)), (Some((1, 2)), Some((1, 3))));
        assert_eq!(queue.waiting(), 0);
    }

    #[test]
    fn a_writer_with_several_accounts_serves_them_and_others_in_turn() {
        let mut queue = Queue::new(1000);
        for (key, item) in [(2, 20), (2, 21), (3, 30), (3, 31), (4, 40)] {
            assert!(queue.push(key, item).is_none());
        }
        assert_eq!(queue.take(None), Some((2, 20)));
        queue.ran(2, CHEAP);
        assert!(queue.is_turn_of_others(&[2]));
        assert_eq!(queue.take(None), Some((3, 30)));
        queue.ran(3, CHEAP * 2);
        assert_eq!(queue.take(None), Some((4, 40)));
        queue.put_back(4, 40);
        assert!(queue.is_turn_of_others(&[2, 3]), "it keeps its turn");
        assert_eq!(queue.take(None), Some((4, 40)));
        assert!(!queue.is_turn_of_others(&[2, 3]));
        assert_eq!(queue.more(&[2, 3], DEAR), Some((2, 21)), "the one that is furthest behind");
        assert_eq!(queue.more(&[2, 3], DEAR), Some((3, 31)));
        assert_eq!((queue.more(&[2, 3], DEAR), queue.waiting()), (None, 0));
    }

    #[test]
    fn an_expensive_write_does_not_join_others() {
        let mut queue = Queue::new(1000);
        queue.push(1, ());
        assert_eq!(turns(&mut queue, 1), [1]);
        queue.push(1, ());
        assert_eq!(queue.take(Some(CHEAP)), None);
        assert_eq!(queue.take(Some(DEAR)), Some((1, ())));
    }

    #[test]
    fn work_on_an_idle_queue_is_not_charged() {
        let mut queue = Queue::new(1000);
        for _ in 0..100 {
            queue.push(1, ());
            assert_eq!(turns(&mut queue, 1), [1]);
        }
        queue.push(1, ());
        queue.push(2, ());
        assert_eq!(turns(&mut queue, 2), [1, 2]);
    }

    #[test]
    fn one_account_cannot_fill_the_queue() {
        let mut queue = Queue::new(4);
        for number in 0..4 {
            assert_eq!(queue.push(1, number), None);
        }
        assert_eq!(queue.push(1, 4), Some(4), "its own last write is rejected");
        assert_eq!(queue.push(2, 10), Some(3), "the last one of the longest lane makes room");
        assert_eq!(queue.push(2, 11), Some(2));
        assert_eq!(queue.push(2, 12), Some(12), "both lanes are equally long");
        assert_eq!(queue.push(3, 20), Some(11), "a new lane has room");
        assert_eq!(queue.waiting(), 4);
        let mut left: Vec<i32> = std::iter::from_fn(|| queue.take(None)).map(|(_, item)| item).collect();
        assert_eq!(left.len(), 3, "one of each lane at a time");
        queue.release(1);
        left.extend(queue.take(None).map(|(_, item)| item));
        assert_eq!(left, [0, 10, 20, 1]);
    }
}
