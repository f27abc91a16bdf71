//! The outgoing calls of flows, as they are stored.

use engine::leases::Confirmed;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::settings::NOT_SENT;

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

/// Length of the body that the result of a recorded call shows, in characters.
const RECORDED_BODY: usize = 4096;

impl Outgoing {
    /// Returns the result of a call that is recorded instead of made.
    pub fn recorded(&self) -> Value {
        let headers: Map<String, Value> = self
            .headers
            .iter()
            .map(|(name, value)| {
                let hidden =
                    ["auth", "token", "key", "secret", "cookie"].iter().any(|part| name.to_lowercase().contains(part));
                (name.clone(), if hidden { "(hidden)".into() } else { value.as_str().into() })
            })
            .collect();
        let body: String = self.body.chars().take(RECORDED_BODY).collect();
        json!({
            "recorded": true, "reason": NOT_SENT, "status": 0, "body": null,
            "request": {"method": self.method, "url": self.url, "headers": headers, "body": body},
        })
    }
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
    /// When its lease was last confirmed.
    pub confirmed: Confirmed,
}
