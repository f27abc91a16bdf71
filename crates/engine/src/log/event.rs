//! An event, and who listens to events.

use std::borrow::Cow;
use std::sync::OnceLock;

use store::Tx;

use crate::context::Ctx;
use crate::error::Result;

/// Something that happened to a record.
pub struct Event<'e> {
    /// `product.created`
    pub name: &'e str,
    /// `product`
    pub entity_type: &'e str,
    /// The record's id.
    pub entity_id: &'e str,
    /// The record as the API shows it.
    pub data: &'e str,
}

/// Starts work on events. Most events start none, so the statement that reads the end of the log also counts the listeners.
pub struct Listener {
    /// The table of those who listen.
    pub table: &'static str,
    /// A scalar subquery: the keys of all events that are listened to in the account `$1`, in one text.
    pub keys: &'static str,
    /// The key under which an event is listened to, or a part of it.
    pub key: fn(&str) -> Cow<'_, str>,
    /// The name of events that callers fire: their data show no record.
    pub fired: &'static str,
    /// Starts the work; the number is that of the event in the log.
    pub start: fn(&mut Tx, &Ctx, &Event, i64) -> Result<()>,
}

static LISTENER: OnceLock<&'static Listener> = OnceLock::new();

/// Says who starts work when something happens.
pub fn install(listener: &'static Listener) {
    let _ = LISTENER.set(listener);
}

/// Returns the listener, if there is one.
pub(super) fn listener() -> Option<&'static Listener> {
    LISTENER.get().copied()
}

/// The name of events that callers fire: their data show no record.
pub fn fired() -> &'static str {
    LISTENER.get().map_or("", |listener| listener.fired)
}
