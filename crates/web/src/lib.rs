//! Outgoing HTTP calls: to a payment provider, from a step of a flow, for a webhook.
//!
//! Users often determine the URL of a call, so [`Client`] does not call private networks, this machine or cloud
//! metadata services unless the settings allow it; it checks the actual address that it connects to. A failed call was
//! not sent, possibly sent, or rejected ([`Failure`]), so that a caller knows when a retry may duplicate something.

mod client;
mod failure;
mod network;
mod resolver;
#[cfg(feature = "scripted")]
pub mod scripted;

pub use client::{Answer, Client, OutgoingRequest, Settings};
pub use failure::{Failure, Refused};
pub use network::Network;
pub use reqwest::Method;

/// Returns the host of a URL: `127.1`, `0x7f.1` and `[::ffff:127.0.0.1]` are all `127.0.0.1`.
pub fn host(url: &str) -> Option<String> {
    let url = reqwest::Url::parse(url).ok()?;
    let host = url.host_str()?.trim_end_matches('.');
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    Some(address.map_or_else(|_| host.to_lowercase(), |address| address.to_canonical().to_string()))
}

/// Returns the origin of a URL as browsers write it: the host in lower case, without the usual port of the scheme.
pub fn origin(url: &str) -> Option<String> {
    let origin = reqwest::Url::parse(url).ok()?.origin();
    origin.is_tuple().then(|| origin.ascii_serialization())
}
