//! Fair turns for work that uses a processor for milliseconds or longer. It runs on half of the processors at most, and the
//! accounts that wait take turns, so that an account with many requests delays another one by a single piece of work.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::error::{Code, Error, Result};

/// How long a request waits for its turn, at most.
const PATIENCE: Duration = Duration::from_secs(30);

/// The turns for one type of work.
pub struct Turns {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    taken: usize,
    given: u64,
    /// The waiting accounts, in the order of their turns.
    order: VecDeque<i64>,
    waiting: HashMap<i64, VecDeque<oneshot::Sender<Turn>>>,
}

/// A turn, which ends when it is dropped.
pub struct Turn {
    turns: Arc<Turns>,
}

impl Turns {
    /// Creates turns for half of the processors, and at least one.
    pub fn new() -> Arc<Turns> {
        Turns::of(std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2)))
    }

    /// Creates so many concurrent turns.
    pub fn of(most: usize) -> Arc<Turns> {
        Arc::new(Turns { most, state: Mutex::default() })
    }

    /// Returns the maximum number of concurrent turns.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Returns the number of turns since the start.
    pub fn given(&self) -> u64 {
        self.state().given
    }

    /// Waits for the next turn of an account.
    pub async fn take(self: &Arc<Turns>, account: i64) -> Result<Turn> {
        let called = {
            let mut state = self.state();
            if state.taken < self.most {
                state.taken += 1;
                state.given += 1;
                return Ok(Turn { turns: self.clone() });
            }
            let (call, called) = oneshot::channel();
            let line = state.waiting.entry(account).or_default();
            line.push_back(call);
            if line.len() == 1 {
                state.order.push_back(account);
            }
            called
        };
        match tokio::time::timeout(PATIENCE, called).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => {
                let message = "The server is busy with other requests; retry shortly.";
                Err(Error { retry_after: Some(1), ..Error::new(Code::Overloaded, message) })
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the next waiting request that was not canceled.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        loop {
            let account = self.order.pop_front()?;
            let Some(line) = self.waiting.get_mut(&account) else { continue };
            while line.front().is_some_and(oneshot::Sender::is_closed) {
                line.pop_front();
            }
            let next = line.pop_front();
            if line.is_empty() {
                self.waiting.remove(&account);
            } else {
                self.order.push_back(account);
            }
            if next.is_some() {
                return next;
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = {
            let mut state = self.turns.state();
            let next = state.next();
            match next {
                Some(_) => state.given += 1,
                None => state.taken -= 1,
            }
            next
        };
        // If it is canceled at this moment, the turn is dropped, and the next one gets it.
        if let Some(next) = next {
            let _ = next.send(Turn { turns: self.turns.clone() });
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn accounts_take_turns_and_nothing_is_left_behind() {
        let turns = Turns::new();
        let mut running = Vec::new();
        for _ in 0..turns.most() {
            running.push(turns.take(1).await.unwrap());
        }
        let mut many: Vec<_> = (0..3).map(|_| Box::pin(turns.take(1))).collect();
        many.iter_mut().for_each(|wait| assert!(wait.now_or_never().is_none()));
        let mut other = Box::pin(turns.take(2));
        assert!((&mut other).now_or_never().is_none());
        drop(many.remove(0));
        running.pop();
        let second = (&mut many[0]).now_or_never().unwrap().unwrap();
        assert!((&mut other).now_or_never().is_none());
        drop(second);
        let third = other.now_or_never().unwrap().unwrap();
        assert!((&mut many[1]).now_or_never().is_none(), "the other account came first");
        drop((many, third, running));
        let state = turns.state();
        assert_eq!((state.taken, state.order.len(), state.waiting.len()), (0, 0, 0));
    }
}
