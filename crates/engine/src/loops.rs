//! Background loops that run as long as the process: workers, senders, heartbeats. Each has a name and reports its
//! progress. A loop that panics or ends is restarted, and `/ready` names those that make no progress.

pub mod state;

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::app::App;
use crate::error::Result;
use crate::wakeup::Wakeup;
pub use state::{Loops, Pulse, STALL_TIMEOUT, Standing};

/// Delay before a loop is restarted: doubled each time, until it has run for a while.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Maximum delay of a loop after consecutive errors, unless it sets another.
const LONGEST_BACKOFF: Duration = Duration::from_secs(5);

/// Starts a loop, and restarts it whenever it panics or ends. It must make progress within `patience`.
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

/// How a loop waits for work: for a wakeup in this process, or for its next poll. After errors, as when the database is
/// unreachable, it waits longer each time.
pub struct Poll<'b> {
    every: Duration,
    longest: Duration,
    wakeup: Option<(&'b Wakeup, Duration)>,
    looked: Option<Instant>,
    more: bool,
    failures: u32,
}

/// Why a loop runs.
pub struct Woken {
    /// The accounts that it was woken for.
    pub accounts: BTreeSet<i64>,
    /// Whether it is time to poll all of them.
    pub all: bool,
}

impl<'b> Poll<'b> {
    /// Runs immediately, and then at this interval.
    pub fn every(every: Duration) -> Poll<'b> {
        Poll { every, longest: LONGEST_BACKOFF.max(every), wakeup: None, looked: None, more: true, failures: 0 }
    }

    /// Also runs on this wakeup. Notifications within `gather` of the first are handled together.
    #[must_use]
    pub fn woken_by(self, wakeup: &'b Wakeup, gather: Duration) -> Poll<'b> {
        Poll { wakeup: Some((wakeup, gather)), ..self }
    }

    /// Does not wait longer after errors.
    #[must_use]
    pub fn steady(self) -> Poll<'b> {
        Poll { longest: self.every, ..self }
    }

    /// Also waits before the first run.
    #[must_use]
    pub fn later(self) -> Poll<'b> {
        Poll { more: false, ..self }
    }

    /// Waits for the next run.
    pub async fn wait(&mut self, pulse: &Pulse) -> Woken {
        pulse.turn();
        if self.failures > 0 {
            // The first error may be the only one.
            let longer = self.every.saturating_mul(1 << (self.failures - 1).min(16));
            tokio::time::sleep(longer.min(self.longest)).await;
        } else if !self.more {
            self.rest().await;
        }
        pulse.turn();
        let all = self.looked.is_none_or(|looked| looked.elapsed() >= self.every);
        if all {
            self.looked = Some(Instant::now());
        }
        Woken { accounts: self.wakeup.map(|(wakeup, _)| wakeup.take()).unwrap_or_default(), all }
    }

    async fn rest(&self) {
        match self.wakeup {
            Some((wakeup, gather)) => {
                if tokio::time::timeout(self.every, wakeup.wait()).await.is_ok() {
                    tokio::time::sleep(gather).await;
                }
            }
            None => tokio::time::sleep(self.every).await,
        }
    }

    /// Reports the result of a run: whether there may be more to do immediately, or an error. `words` is the log
    /// message of an error.
    pub fn turned(&mut self, result: Result<bool>, words: &str) {
        self.more = matches!(result, Ok(true));
        self.failures = match result {
            Ok(_) => 0,
            Err(error) => {
                tracing::warn!(cause = %error, "{words}");
                self.failures.saturating_add(1)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    const EVERY: Duration = Duration::from_millis(40);

    #[tokio::test]
    async fn a_loop_turns_at_once_then_when_woken_or_in_time() {
        let (wakeup, pulse) = (Wakeup::default(), Pulse::idle());
        let mut poll = Poll::every(EVERY).woken_by(&wakeup, Duration::ZERO);
        assert!(poll.wait(&pulse).await.all, "the first run polls everything");
        poll.turned(Ok(false), "");
        wakeup.notify(7);
        assert_eq!(poll.wait(&pulse).await.accounts, BTreeSet::from([7]));
        poll.turned(Ok(false), "");
        let started = Instant::now();
        assert!(poll.wait(&pulse).await.accounts.is_empty());
        assert!(started.elapsed() >= EVERY);
        poll.turned(Ok(true), "");
        let started = Instant::now();
        poll.wait(&pulse).await;
        assert!(started.elapsed() < EVERY, "there is more to do");
    }

    #[tokio::test]
    async fn a_loop_waits_longer_after_each_error() {
        for (mut poll, shortest, longest) in
            [(Poll::every(EVERY), EVERY * 8, EVERY * 100), (Poll::every(EVERY).steady(), EVERY, EVERY * 8)]
        {
            (0..4).for_each(|_| poll.turned(Err(Error::internal("away")), "It is away."));
            let started = Instant::now();
            poll.wait(&Pulse::idle()).await;
            assert!((shortest..longest).contains(&started.elapsed()));
        }
    }
}
