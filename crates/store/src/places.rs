//! Pools of places that accounts share: threads, calls, streams. An account gets another place as long as it holds fewer than are
//! free. So one account takes half of the places at most, the next one half of the others, and whoever comes then still finds one.
//! Whoever has to wait gets a place when it is the turn of their account.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

/// A pool of places.
pub struct Places {
    name: &'static str,
    most: usize,
    /// The maximum of an account, however many are free.
    most_of_account: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    taken: usize,
    given: u64,
    held: HashMap<i64, usize>,
    /// The waiting accounts, in the order of their turns.
    order: VecDeque<i64>,
    waiting: HashMap<i64, VecDeque<oneshot::Sender<Place>>>,
}

/// A place, which is free again when it is dropped.
pub struct Place {
    pool: Arc<Places>,
    account: i64,
}

/// Why there is no place for an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The account has its share: so many places.
    Own(usize),
    /// All places are taken.
    All,
}

impl Places {
    /// Creates a pool of `most` places.
    pub fn new(name: &'static str, most: usize) -> Arc<Places> {
        Places::capped(name, most, most)
    }

    /// Creates a pool of `most` places, of which an account has `most_of_account` at most, however many are free.
    pub fn capped(name: &'static str, most: usize, most_of_account: usize) -> Arc<Places> {
        Arc::new(Places { name, most, most_of_account, state: Mutex::default() })
    }

    /// Creates a pool in which an account that is alone has `share` places.
    pub fn with_share(name: &'static str, share: usize) -> Arc<Places> {
        Places::capped(name, (2 * share).saturating_sub(1).max(2), share)
    }

    /// Returns the key of somebody who is no account, such as an IP address.
    pub fn key_of(text: &str) -> i64 {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        i64::from_ne_bytes(hasher.finish().to_ne_bytes())
    }

    /// Returns the name of the pool.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the number of places.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Returns how many places an account has at most.
    pub fn share(&self) -> usize {
        self.most.div_ceil(2).min(self.most_of_account)
    }

    /// Returns how many places are taken.
    pub fn taken(&self) -> usize {
        self.state().taken
    }

    /// Returns how many places were given since the start.
    pub fn given(&self) -> u64 {
        self.state().given
    }

    /// Returns how many requests of an account wait.
    pub fn waiting(&self, account: i64) -> usize {
        let state = self.state();
        let line = state.waiting.get(&account);
        line.map_or(0, |line| line.iter().filter(|call| !call.is_closed()).count())
    }

    /// Takes a place, if there is one for the account.
    pub fn try_take(self: &Arc<Places>, account: i64) -> Result<Place, Full> {
        let mut state = self.state();
        if self.admits(&state, account) {
            state.hold(account);
            return Ok(Place { pool: self.clone(), account });
        }
        let own = state.held.get(&account).copied().unwrap_or_default();
        Err(if own == 0 || state.taken >= self.most { Full::All } else { Full::Own(own) })
    }

    /// Takes all places that there are for the account.
    pub fn take_all(self: &Arc<Places>, account: i64) -> Vec<Place> {
        std::iter::from_fn(|| self.try_take(account).ok()).collect()
    }

    /// Waits for the next place of an account.
    pub async fn take(self: &Arc<Places>, account: i64) -> Place {
        loop {
            let called = {
                let mut state = self.state();
                if self.admits(&state, account) {
                    state.hold(account);
                    return Place { pool: self.clone(), account };
                }
                state.line_up(account)
            };
            if let Ok(place) = called.await {
                return place;
            }
        }
    }

    /// Waits for the next place of an account, for some time.
    pub async fn take_within(self: &Arc<Places>, account: i64, patience: Duration) -> Option<Place> {
        tokio::time::timeout(patience, self.take(account)).await.ok()
    }

    fn admits(&self, state: &State, account: i64) -> bool {
        let own = state.held.get(&account).copied().unwrap_or_default();
        own < self.most_of_account && own < self.most.saturating_sub(state.taken)
    }

    /// Gives free places to those who wait.
    fn give(&self, state: &mut State) -> Vec<(i64, oneshot::Sender<Place>)> {
        let mut given = Vec::new();
        while let Some(turn) = state.order.iter().position(|account| self.admits(state, *account)) {
            let Some(account) = state.order.remove(turn) else { break };
            if let Some(call) = state.next_of(account) {
                state.hold(account);
                given.push((account, call));
            }
        }
        given
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn hold(&mut self, account: i64) {
        self.taken += 1;
        self.given += 1;
        *self.held.entry(account).or_default() += 1;
    }

    fn release(&mut self, account: i64) {
        self.taken -= 1;
        if let Some(own) = self.held.get_mut(&account) {
            *own -= 1;
            if *own == 0 {
                self.held.remove(&account);
            }
        }
    }

    fn line_up(&mut self, account: i64) -> oneshot::Receiver<Place> {
        let (call, called) = oneshot::channel();
        let line = self.waiting.entry(account).or_default();
        if line.is_empty() {
            self.order.push_back(account);
        }
        // Those who gave up came first.
        while line.front().is_some_and(oneshot::Sender::is_closed) {
            line.pop_front();
        }
        line.push_back(call);
        called
    }

    /// Returns the first of an account who waits and was not canceled; the account then has its next turn after the others.
    fn next_of(&mut self, account: i64) -> Option<oneshot::Sender<Place>> {
        let line = self.waiting.get_mut(&account)?;
        while line.front().is_some_and(oneshot::Sender::is_closed) {
            line.pop_front();
        }
        let next = line.pop_front();
        if line.is_empty() {
            self.waiting.remove(&account);
        } else {
            self.order.push_back(account);
        }
        next
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let given = {
            let mut state = self.pool.state();
            state.release(self.account);
            self.pool.give(&mut state)
        };
        for (account, call) in given {
            // If it is canceled at this moment, the place is dropped, and the next one gets it.
            let _ = call.send(Place { pool: self.pool.clone(), account });
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn an_account_leaves_as_many_places_as_it_has() {
        let pool = Places::new("calls", 64);
        let mut held: Vec<Vec<Place>> = (1..=6).map(|account| pool.take_all(account)).collect();
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [32, 16, 8, 4, 2, 1]);
        assert_eq!(pool.try_take(1).err(), Some(Full::Own(32)));
        assert_eq!(pool.try_take(2).err(), Some(Full::Own(16)));
        held.push(pool.take_all(7));
        assert_eq!((pool.taken(), pool.try_take(8).err()), (64, Some(Full::All)));
        held.clear();
        let state = pool.state();
        assert_eq!((state.taken, state.given, state.held.len()), (0, 64, 0));
    }

    #[test]
    fn a_pool_has_room_for_others_beside_the_share_of_one() {
        for share in 1..=9 {
            let pool = Places::with_share("threads", share);
            let own = pool.take_all(1);
            assert_eq!((own.len(), pool.share()), (share, share));
            assert!(pool.try_take(2).is_ok());
        }
        let pool = Places::capped("documents", 8, 1);
        assert_eq!((pool.take_all(1).len(), pool.share()), (1, 1));
    }

    #[tokio::test]
    async fn accounts_take_turns_and_nothing_is_left_behind() {
        let pool = Places::capped("large documents", 1, 1);
        let first = pool.take(1).await;
        let mut many: Vec<_> = (0..3).map(|_| Box::pin(pool.take(1))).collect();
        many.iter_mut().for_each(|wait| assert!(wait.now_or_never().is_none()));
        let mut other = Box::pin(pool.take(2));
        assert!((&mut other).now_or_never().is_none());
        drop(many.remove(0));
        assert_eq!((pool.waiting(1), pool.waiting(2)), (2, 1));
        drop(first);
        let second = (&mut many[0]).now_or_never().unwrap();
        assert!((&mut other).now_or_never().is_none());
        drop(second);
        let third = other.now_or_never().unwrap();
        assert!((&mut many[1]).now_or_never().is_none(), "the other account came first");
        drop((many, third));
        let state = pool.state();
        assert_eq!((state.taken, state.order.len(), state.waiting.len(), state.held.len()), (0, 0, 0, 0));
    }

    #[tokio::test]
    async fn a_request_of_an_account_with_its_share_waits_for_its_own() {
        let pool = Places::new("exports", 4);
        let mut own = pool.take_all(1);
        assert_eq!(own.len(), 2);
        let mut waits = Box::pin(pool.take(1));
        assert!((&mut waits).now_or_never().is_none());
        let other = pool.take(2).now_or_never();
        assert!(other.is_some(), "nobody waits for those who only wait for themselves");
        own.pop();
        let second = waits.now_or_never();
        assert!(second.is_some());
        assert!(pool.take_within(1, Duration::ZERO).await.is_none());
    }
}
