//! Work that goes on for as long as the process lives: workers, senders, heartbeats. Each loop has a name and says when it
//! turns. One that panics or ends is started again, and `/ready` names those that stand still.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::app::App;

/// How long a loop may take for a turn. Most take less than a second; a long job turns its loop as it renews its lease.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// How long to wait before a loop is started again: twice as long each time, until it has held for a while.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The loops of this process.
#[derive(Default)]
pub struct Loops(Mutex<BTreeMap<String, Arc<State>>>);

struct State {
    patience: Duration,
    turned: Mutex<Instant>,
    restarts: AtomicU64,
}

impl State {
    fn new(patience: Duration) -> State {
        State { patience, turned: Mutex::new(Instant::now()), restarts: AtomicU64::new(0) }
    }
}

/// How a loop stands.
pub struct Standing {
    /// Its name.
    pub name: String,
    /// How long ago it turned.
    pub age: Duration,
    /// How often it was started again.
    pub restarts: u64,
    /// Whether that is too long ago.
    pub is_stuck: bool,
}

impl Loops {
    /// How each stands, by name.
    pub fn standings(&self) -> Vec<Standing> {
        let standing = |(name, state): (&String, &Arc<State>)| {
            let age = held(&state.turned).elapsed();
            let restarts = state.restarts.load(Ordering::Relaxed);
            Standing { name: name.clone(), age, restarts, is_stuck: age > state.patience }
        };
        held(&self.0).iter().map(standing).collect()
    }

    /// Nothing, or the names of those that stand still.
    pub fn check(&self) -> Result<(), String> {
        let stuck: Vec<String> = self.standings().into_iter().filter(|one| one.is_stuck).map(|one| one.name).collect();
        if stuck.is_empty() { Ok(()) } else { Err(stuck.join(", ")) }
    }

    fn add(&self, name: &str, patience: Duration) -> Arc<State> {
        let state = Arc::new(State::new(patience));
        held(&self.0).insert(name.to_string(), state.clone());
        state
    }
}

/// With this a loop says that it turns.
#[derive(Clone)]
pub struct Pulse(Arc<State>);

impl Pulse {
    /// That of no loop.
    pub fn idle() -> Pulse {
        Pulse(Arc::new(State::new(PATIENCE)))
    }

    /// Says so.
    pub fn turn(&self) {
        *held(&self.0.turned) = Instant::now();
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a loop, and again whenever it panics or ends. It turns at least as often as `patience` says.
pub fn keep<F>(
    app: &Arc<App>,
    name: impl Into<String>,
    patience: Duration,
    work: impl Fn(Arc<App>, Pulse) -> F + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let (app, name) = (app.clone(), name.into());
    let state = app.loops.add(&name, patience);
    tokio::spawn(async move {
        let mut pause = FIRST_PAUSE;
        loop {
            let started = Instant::now();
            let ended = tokio::spawn(work(app.clone(), Pulse(state.clone()))).await;
            if app.listeners.is_stopping() {
                return;
            }
            if started.elapsed() > LONGEST_PAUSE {
                pause = FIRST_PAUSE;
            }
            let cause = ended.err().map_or_else(|| "it ended".to_string(), |panic| panic.to_string());
            tracing::error!(name, cause, "A background loop stopped and is being restarted.");
            state.restarts.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    });
}
