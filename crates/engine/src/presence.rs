//! Whether the caller of a request still waits for its response: work that nobody waits for can end.

use std::future::pending;

use tokio::sync::watch;

/// Tells whether somebody waits for the outcome of some work. Jobs and commands always do.
#[derive(Clone, Default)]
pub struct Presence(Option<watch::Receiver<()>>);

impl Presence {
    /// Creates the presence of a caller, who is there until the first value is dropped.
    pub fn of_caller() -> (impl Send + Sync, Presence) {
        let (here, seen) = watch::channel(());
        (here, Presence(Some(seen)))
    }

    /// Whether the caller has left.
    pub fn has_left(&self) -> bool {
        self.0.as_ref().is_some_and(|seen| seen.has_changed().is_err())
    }

    /// Waits until the caller has left.
    pub async fn left(&self) {
        let Some(mut seen) = self.0.clone() else { return pending().await };
        while seen.changed().await.is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_caller_is_there_until_it_is_dropped() {
        let (here, presence) = Presence::of_caller();
        assert!(!presence.has_left() && presence.left().now_or_never().is_none());
        drop(here);
        assert!(presence.has_left() && presence.left().now_or_never().is_some());
        assert!(!Presence::default().has_left() && Presence::default().left().now_or_never().is_none());
    }
}
