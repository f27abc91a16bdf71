//! Calls to the outside: a payment provider, a step of a flow, a webhook.
//!
//! Where a call goes is often up to a user, so [`Client`] does not go into private networks, to this machine or to the
//! metadata of a cloud unless the settings allow it; it looks at the very address that it then connects to. A call that
//! failed was never sent, perhaps sent, or refused ([`Failure`]), so that a caller can tell when another try may double
//! something.

mod client;
mod failure;
mod network;
mod resolver;
#[cfg(feature = "scripted")]
pub mod scripted;

pub use client::{Answer, Client, Request, Settings};
pub use failure::{Failure, Refused};
pub use network::Network;
pub use reqwest::Method;
