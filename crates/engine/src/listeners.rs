//! Notifies background loops and event streams of writes. A write on this node wakes them immediately; writes of other
//! nodes are found by polling.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use store::{Full, Place, Places};
use tokio::sync::watch;

use crate::config::Config;
use crate::error::{Code, Error, Result};
use crate::wakeup::Wakeup;

/// The listeners of this node.
pub struct Listeners {
    /// Accounts that were written to.
    pub written: Wakeup,
    stopping: watch::Sender<bool>,
    busy: watch::Sender<usize>,
    streams: Mutex<Streams>,
    places: Arc<Places>,
}

#[derive(Default)]
struct Streams {
    by_key: HashMap<String, usize>,
    wrote: HashMap<i64, watch::Sender<()>>,
}

impl Listeners {
    /// Creates the listeners of a node with this maximum of open streams.
    pub fn new(max_streams: usize) -> Listeners {
        Listeners {
            written: Wakeup::default(),
            stopping: watch::Sender::default(),
            busy: watch::Sender::default(),
            streams: Mutex::default(),
            places: Places::new("event streams", max_streams),
        }
    }

    /// Notifies the listeners of a write in an account.
    pub fn wrote(&self, account: i64) {
        self.written.notify(account);
        if let Some(wrote) = self.locked().wrote.get(&account) {
            wrote.send_replace(());
        }
    }

    /// Returns the places of event streams.
    pub fn streams(&self) -> &Arc<Places> {
        &self.places
    }

    /// Ends all streams, since the process stops.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Whether the process is stopping, so that no new calls are made.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Records an outgoing call in progress. The process waits for it before it exits: a call whose outcome is not
    /// recorded is repeated.
    pub fn begin(&self) -> InFlight {
        self.busy.send_modify(|count| *count += 1);
        InFlight(self.busy.clone())
    }

    /// Waits until no call is in progress.
    pub async fn idle(&self) {
        // The channel is not closed while it is borrowed.
        let _ = self.busy.subscribe().wait_for(|count| *count == 0).await;
    }

    fn locked(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An outgoing call in progress, until it is dropped.
pub struct InFlight(watch::Sender<usize>);

impl Clone for InFlight {
    fn clone(&self) -> InFlight {
        self.0.send_modify(|count| *count += 1);
        InFlight(self.0.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// The permit of a stream, released when it is dropped.
pub struct StreamPermit {
    listeners: Arc<Listeners>,
    key: String,
    account: i64,
    _place: Place,
    /// Changes when the account is written to.
    pub wrote: watch::Receiver<()>,
    /// Whether the process is stopping.
    pub stopping: watch::Receiver<bool>,
}

impl StreamPermit {
    /// Takes a permit for another stream of a key, unless the key, its account or the process has too many.
    pub fn take(listeners: &Arc<Listeners>, config: &Config, key: &str, account: i64) -> Result<StreamPermit> {
        let mut streams = listeners.locked();
        if streams.by_key.get(key).copied().unwrap_or(0) >= config.streams_per_key {
            let message =
                format!("Your key has the maximum of {} open streams. Close one first.", config.streams_per_key);
            return Err(Error { retry_after: Some(15), ..Error::new(Code::TooManyRequests, message) });
        }
        let place = listeners.places.try_take(account).map_err(|full| {
            let (code, message) = match full {
                Full::Own(own) => {
                    let message = format!(
                        "Your account has {own} open streams, which is its share of this server. Close one first."
                    );
                    (Code::TooManyRequests, message)
                }
                Full::All => (Code::Overloaded, "Too many streams are open on this server; retry shortly.".to_string()),
            };
            Error { retry_after: Some(15), ..Error::new(code, message) }
        })?;
        *streams.by_key.entry(key.to_string()).or_default() += 1;
        let wrote = streams.wrote.entry(account).or_default().subscribe();
        let stopping = listeners.stopping.subscribe();
        drop(streams);
        Ok(StreamPermit { listeners: listeners.clone(), key: key.to_string(), account, _place: place, wrote, stopping })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut streams = self.listeners.locked();
        if let Some(open) = streams.by_key.get_mut(&self.key) {
            *open -= 1;
        }
        streams.by_key.retain(|_, open| *open > 0);
        // The receiver of this permit still exists.
        if streams.wrote.get(&self.account).is_some_and(|wrote| wrote.receiver_count() <= 1) {
            streams.wrote.remove(&self.account);
        }
    }
}
