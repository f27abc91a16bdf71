//! Records when API keys and sessions were last used.

use std::sync::Arc;
use std::time::Duration;

use crate::accounts::Key;
use crate::app::App;
use crate::jobs::SHARED;
use crate::loops::{self, Poll};
use crate::registry::registry;

/// How often the use of keys and sessions is recorded.
const NOTED: Duration = Duration::from_secs(30);

/// Starts recording the use of keys, until the process ends.
pub fn start(app: &Arc<App>) {
    loops::keep(app, "use of keys", loops::STALL_TIMEOUT, |app, pulse| async move {
        let mut poll = Poll::every(NOTED).later();
        loop {
            poll.wait(&pulse).await;
            let (keys, sessions) = (app.keys.take_used(), app.sessions.take_used());
            let noted = match keys.is_empty() && sessions.is_empty() {
                true => Ok(()),
                false => {
                    let written = app.store.write(SHARED, move |tx| {
                        Key::used(tx, &keys)?;
                        registry().sessions.map_or(Ok(()), |own| (own.used)(tx, &sessions))
                    });
                    written.await
                }
            };
            poll.turned(noted.map(|_| false), "Cannot record when keys were last used.");
        }
    });
}
