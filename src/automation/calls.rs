//! The outgoing calls of flows, as they are stored.

use serde::{Deserialize, Serialize};

/// The lease of an outgoing call, in seconds: then another worker makes the call. A dead node is noticed earlier, by its
/// heartbeat.
pub const LEASE_SECONDS: i64 = 90;

/// A call to make, with its placeholders filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outgoing {
    /// The method, such as `POST`.
    pub method: String,
    /// The URL.
    pub url: String,
    /// The headers that the flow sets.
    pub headers: Vec<(String, String)>,
    /// The body, or empty.
    pub body: String,
    /// The timeout.
    pub seconds: u64,
}

/// A call that is recorded in its run and is about to be made.
#[derive(Clone, Debug)]
pub struct PendingCall {
    /// The account.
    pub account: i64,
    /// The run.
    pub run_id: String,
    /// The claim number under which it was recorded.
    pub claim: i64,
    /// The idempotency key, identical for every attempt of this step: run and step.
    pub key: String,
    /// The call.
    pub call: Outgoing,
}
