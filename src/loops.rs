//! Work that goes on for as long as the process lives: workers, senders, heartbeats. Each loop has a name and says when it
//! turns. One that panics or ends is started again, and `/ready` names those that stand still.

pub mod state;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub use state::{Loops, PATIENCE, Pulse, Standing};

use crate::app::App;

/// How long to wait before a loop is started again: twice as long each time, until it has held for a while.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

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
