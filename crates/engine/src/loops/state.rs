//! The state of the background loops.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time within which a loop must make progress. Most take less than a second; a long job reports progress as it renews
/// its lease.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(180);

/// The loops of this process.
#[derive(Default)]
pub struct Loops(Mutex<BTreeMap<String, Arc<State>>>);

pub(super) struct State {
    patience: Duration,
    turned: Mutex<Instant>,
    pub(super) restarts: AtomicU64,
}

impl State {
    fn new(patience: Duration) -> State {
        State { patience, turned: Mutex::new(Instant::now()), restarts: AtomicU64::new(0) }
    }
}

/// The state of a loop.
pub struct Standing {
    /// Name.
    pub name: String,
    /// Time since its last progress.
    pub age: Duration,
    /// The number of restarts.
    pub restarts: u64,
    /// Whether it has made no progress for too long.
    pub is_stuck: bool,
}

impl Loops {
    /// Returns the state of each loop, by name.
    pub fn standings(&self) -> Vec<Standing> {
        let standing = |(name, state): (&String, &Arc<State>)| {
            let age = held(&state.turned).elapsed();
            let restarts = state.restarts.load(Ordering::Relaxed);
            Standing { name: name.clone(), age, restarts, is_stuck: age > state.patience }
        };
        held(&self.0).iter().map(standing).collect()
    }

    /// Returns an error with the names of the loops that make no progress, if any.
    pub fn check(&self) -> Result<(), String> {
        let stuck: Vec<String> = self.standings().into_iter().filter(|one| one.is_stuck).map(|one| one.name).collect();
        if stuck.is_empty() { Ok(()) } else { Err(stuck.join(", ")) }
    }

    pub(super) fn add(&self, name: &str, patience: Duration) -> Arc<State> {
        let state = Arc::new(State::new(patience));
        held(&self.0).insert(name.to_string(), state.clone());
        state
    }
}

/// Reports the progress of a loop.
#[derive(Clone)]
pub struct Pulse(pub(super) Arc<State>);

impl Pulse {
    /// Creates a pulse without a loop.
    pub fn idle() -> Pulse {
        Pulse(Arc::new(State::new(STALL_TIMEOUT)))
    }

    /// Reports progress.
    pub fn turn(&self) {
        *held(&self.0.turned) = Instant::now();
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
