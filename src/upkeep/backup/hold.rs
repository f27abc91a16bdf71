//! Keeps contents of files from being deleted while they are copied.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use engine::clock::{Clock, Ids};
use engine::error::Result;
use engine::jobs::SHARED;
use store::Store;

/// Lifetime of a hold that is not renewed.
const HOLD_SECONDS: i64 = 600;
/// How often a hold is renewed.
const RENEWED: Duration = Duration::from_secs(60);

/// Prevents the deletion of contents until it is dropped.
pub(super) struct Hold {
    store: Store,
    id: String,
    stop: Option<mpsc::Sender<()>>,
    renewing: Option<std::thread::JoinHandle<()>>,
}

impl Hold {
    pub(super) fn take(store: &Store, clock: &Clock) -> Result<Hold> {
        let id = Ids::SYSTEM.next();
        renew(store, clock, &id)?;
        let (stop, stopped) = mpsc::channel();
        let (own, clock, name) = (store.clone(), clock.clone(), id.clone());
        let renewing = std::thread::spawn(move || {
            while stopped.recv_timeout(RENEWED) == Err(RecvTimeoutError::Timeout) {
                // A failed renewal is covered by the next: a hold outlives several.
                let _ = renew(&own, &clock, &name);
            }
        });
        Ok(Hold { store: store.clone(), id, stop: Some(stop), renewing: Some(renewing) })
    }
}

fn renew(store: &Store, clock: &Clock, id: &str) -> Result<()> {
    let (id, now) = (id.to_string(), clock.now());
    store.write_now(SHARED, move |tx| {
        tx.execute("DELETE FROM holds WHERE account_id = 0 AND until <= $1", &[now.0.into()])?;
        tx.execute(
            "INSERT INTO holds (account_id, id, until) VALUES (0, $1, $2)
             ON CONFLICT (account_id, id) DO UPDATE SET until = excluded.until",
            &[(&id).into(), now.plus_seconds(HOLD_SECONDS).0.into()],
        )?;
        Ok(())
    })
}

impl Drop for Hold {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(renewing) = self.renewing.take() {
            let _ = renewing.join();
        }
        let id = self.id.clone();
        let ended: Result<()> = self.store.write_now(SHARED, move |tx| {
            tx.execute("DELETE FROM holds WHERE account_id = 0 AND id = $1", &[(&id).into()])?;
            Ok(())
        });
        // The hold expires.
        drop(ended);
    }
}
