//! The calls of flows to the outside, as they are written down.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::settings::NOT_SENT;

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
