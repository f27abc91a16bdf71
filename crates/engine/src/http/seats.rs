//! Limits on connections. Connections are always accepted. When the limit is reached, or an address has reached its
//! own, an idle connection is closed to make room. If none is idle, a few spare connections remain, which only serve
//! `/health` and `/ready`.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::busy::InFlightRequests;

/// Number of spare connections, for health checks.
const SPARE: usize = 32;
/// Maximum number of spare connections per address.
const SPARE_EACH: usize = 4;
/// A connection whose client reads nothing for this long can be closed to make room.
const STALLED: Duration = Duration::from_secs(5);

/// The connections.
pub struct Seats {
    most: usize,
    most_each: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    next: u64,
    /// Oldest first.
    seats: BTreeMap<u64, Holder>,
    spare: BTreeMap<u64, IpAddr>,
    /// The number of connections of each address.
    each: HashMap<IpAddr, usize>,
}

struct Holder {
    address: IpAddr,
    place: Arc<ConnectionState>,
}

/// The state of a connection.
#[derive(Default)]
pub struct ConnectionState {
    /// Its requests in progress.
    pub busy: InFlightRequests,
    stalled_since: Mutex<Option<Instant>>,
    gave_up: AtomicBool,
    leave: Notify,
}

/// The slot of a connection, released when it is dropped.
pub struct ConnectionPermit {
    seats: Arc<Seats>,
    number: u64,
    /// Whether it only serves health checks.
    pub spare: bool,
    /// Whether its address has reached its limit.
    pub over: bool,
    /// The state of the connection.
    pub place: Arc<ConnectionState>,
}

/// The outcome for a new connection.
pub enum Admission {
    /// It has a slot.
    Seated(ConnectionPermit),
    /// It is refused, because its address has reached its limit (`true`) or because all slots are taken.
    Refused(bool),
}

impl Seats {
    /// Creates the limits in total and per address; 0 for no limit per address.
    pub fn new(most: usize, most_each: usize) -> Arc<Seats> {
        Arc::new(Seats { most, most_each, taken: Mutex::default() })
    }

    /// Takes a slot for a new connection. An `exempt` address has no limit of its own.
    pub fn take(self: &Arc<Seats>, address: IpAddr, exempt: bool) -> Admission {
        let mut taken = held(&self.taken);
        let has = taken.each.get(&address).copied().unwrap_or_default();
        let over = !exempt && self.most_each > 0 && has >= self.most_each;
        let full = taken.seats.len() >= self.most;
        if (over && !taken.make_room(Some(address))) || (full && !over && !taken.make_room(None)) {
            let own = taken.spare.values().filter(|other| **other == address).count();
            if taken.spare.len() >= SPARE || own >= SPARE_EACH {
                return Admission::Refused(over);
            }
            let number = taken.number();
            taken.spare.insert(number, address);
            return Admission::Seated(ConnectionPermit {
                seats: self.clone(),
                number,
                spare: true,
                over,
                place: Arc::default(),
            });
        }
        let (number, place) = (taken.number(), Arc::<ConnectionState>::default());
        taken.seats.insert(number, Holder { address, place: place.clone() });
        *taken.each.entry(address).or_default() += 1;
        Admission::Seated(ConnectionPermit { seats: self.clone(), number, spare: false, over: false, place })
    }

    /// Closes an idle connection.
    pub fn make_room(&self) {
        held(&self.taken).make_room(None);
    }
}

impl Taken {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Frees the slot of an idle connection: of this address, or else of the address with the most connections.
    fn make_room(&mut self, address: Option<IpAddr>) -> bool {
        let mut chosen: Option<(usize, u64)> = None;
        for (number, holder) in &self.seats {
            let has = self.each.get(&holder.address).copied().unwrap_or_default();
            let better = chosen.is_none_or(|(most, _)| has > most);
            if better && address.is_none_or(|address| address == holder.address) && holder.place.can_leave() {
                chosen = Some((has, *number));
            }
        }
        let Some((_, number)) = chosen else { return false };
        if let Some(holder) = self.remove(number) {
            holder.place.leave.notify_one();
        }
        true
    }

    fn remove(&mut self, number: u64) -> Option<Holder> {
        let holder = self.seats.remove(&number)?;
        if let Some(has) = self.each.get_mut(&holder.address) {
            *has -= 1;
            if *has == 0 {
                self.each.remove(&holder.address);
            }
        }
        Some(holder)
    }
}

impl ConnectionPermit {
    /// Waits until the slot is needed for another connection.
    pub async fn is_needed(&self) {
        self.place.leave.notified().await;
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut taken = held(&self.seats.taken);
        taken.spare.remove(&self.number);
        taken.remove(self.number);
    }
}

impl ConnectionState {
    /// Records that the other end accepts no data.
    pub fn stalls(&self) {
        *held(&self.stalled_since) = Some(Instant::now());
    }

    /// Records that the other end reads again.
    pub fn goes_on(&self) {
        *held(&self.stalled_since) = None;
    }

    /// Records that the other end accepted no data for too long.
    pub fn gave_up(&self) {
        self.gave_up.store(true, Ordering::Relaxed);
    }

    /// Whether the connection ended because the other end accepted no data.
    pub fn has_given_up(&self) -> bool {
        self.gave_up.load(Ordering::Relaxed)
    }

    /// Whether the connection can be closed to make room.
    fn can_leave(&self) -> bool {
        let stalled = || held(&self.stalled_since).is_some_and(|since| since.elapsed() >= STALLED);
        self.busy.is_idle() || stalled()
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(seats: &Arc<Seats>, address: [u8; 4]) -> ConnectionPermit {
        match seats.take(address.into(), false) {
            Admission::Seated(seat) => seat,
            Admission::Refused(over) => panic!("refused; over: {over}"),
        }
    }

    fn asked_to_leave(seat: &ConnectionPermit) -> bool {
        use futures_util::FutureExt;
        seat.is_needed().now_or_never().is_some()
    }

    #[test]
    fn closes_idle_connections_of_the_busiest_address() {
        let seats = Seats::new(3, 0);
        let other = seat(&seats, [1, 1, 1, 1]);
        let first = seat(&seats, [2, 2, 2, 2]);
        let second = seat(&seats, [2, 2, 2, 2]);
        let _under_way = first.place.busy.begin();
        let third = seat(&seats, [3, 3, 3, 3]);
        assert!(!third.spare);
        assert!(asked_to_leave(&second), "idle, and of the address with the most connections");
        assert!(!asked_to_leave(&first) && !asked_to_leave(&other));
    }

    #[test]
    fn uses_spare_connections_when_none_is_idle() {
        let seats = Seats::new(2, 0);
        let held: Vec<ConnectionPermit> = (0..2).map(|_| seat(&seats, [1, 1, 1, 1])).collect();
        let under_way: Vec<_> = held.iter().map(|seat| seat.place.busy.begin()).collect();
        let spare: Vec<ConnectionPermit> = (0..SPARE_EACH).map(|_| seat(&seats, [1, 1, 1, 1])).collect();
        assert!(spare.iter().all(|seat| seat.spare));
        assert!(matches!(seats.take([1, 1, 1, 1].into(), false), Admission::Refused(false)));
        assert!(seat(&seats, [2, 2, 2, 2]).spare, "other addresses have their own");
        drop(spare);
        drop(under_way);
        assert!(!seat(&seats, [1, 1, 1, 1]).spare);
        assert!(asked_to_leave(&held[0]));
    }

    #[test]
    fn limits_connections_per_address() {
        let seats = Seats::new(100, 2);
        let held: Vec<ConnectionPermit> = (0..2).map(|_| seat(&seats, [1, 1, 1, 1])).collect();
        let _under_way: Vec<_> = held.iter().map(|seat| seat.place.busy.begin()).collect();
        assert!(seat(&seats, [1, 1, 1, 1]).spare);
        assert!(!seat(&seats, [2, 2, 2, 2]).spare);
        let Admission::Seated(proxy) = seats.take([1, 1, 1, 1].into(), true) else { panic!("refused") };
        assert!(!proxy.spare);
        drop(proxy);
        drop(held);
        assert!(held_by_nobody(&seats));
    }

    fn held_by_nobody(seats: &Arc<Seats>) -> bool {
        let taken = held(&seats.taken);
        taken.seats.is_empty() && taken.spare.is_empty() && taken.each.is_empty()
    }
}
