//! The calls of flows to the outside, as they are written down.

use serde::{Deserialize, Serialize};

/// How long a call to the outside may be silent before another worker makes it, in seconds. A node that dies is noticed
/// sooner, by its heartbeat.
pub const LEASE_SECONDS: i64 = 90;

/// What is to be called, with its holes filled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outgoing {
    /// `POST` and the like.
    pub method: String,
    /// Where.
    pub url: String,
    /// Headers of the flow.
    pub headers: Vec<(String, String)>,
    /// The body, or empty.
    pub body: String,
    /// How long it may take.
    pub seconds: u64,
}

/// A call that was announced.
#[derive(Clone, Debug)]
pub struct PendingCall {
    /// The account.
    pub account: i64,
    /// The run.
    pub run_id: String,
    /// The claim that announced it.
    pub claim: i64,
    /// The same for every try of this step: run and step.
    pub key: String,
    /// What is called.
    pub call: Outgoing,
}
