//! Records when API keys and sessions were last used.

use std::sync::Arc;
use std::time::Duration;

use crate::accounts::Key;
use crate::app::App;
use crate::error::Result;
use crate::jobs::SHARED;
use crate::loops::{self, Poll};
use crate::registry::registry;
use crate::slice::TOGETHER;

/// How often the use of keys and sessions is recorded.
const NOTED: Duration = Duration::from_secs(60);

/// Starts recording the use of keys, until the process ends.
pub fn start(app: &Arc<App>) {
    loops::keep(app, "use of keys", loops::STALL_TIMEOUT, |app, pulse| async move {
        let mut poll = Poll::every(NOTED).later();
        loop {
            poll.wait(&pulse).await;
            poll.turned(record(&app).await.map(|()| false), "Cannot record when keys were last used.");
        }
    });
}

/// Records the use of keys and sessions since the last time.
pub async fn record(app: &App) -> Result<()> {
    let mut recorded = Ok(());
    for uses in app.keys.take_used().chunks(TOGETHER) {
        let uses = uses.to_vec();
        recorded = recorded.and(app.store.write(SHARED, move |tx| Key::used(tx, &uses)).await);
    }
    for uses in app.sessions.take_used().chunks(TOGETHER) {
        let Some(sessions) = registry().sessions else { break };
        let uses = uses.to_vec();
        recorded = recorded.and(app.store.write(SHARED, move |tx| (sessions.used)(tx, &uses)).await);
    }
    recorded
}
