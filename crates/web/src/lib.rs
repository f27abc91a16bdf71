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

/// The host that an address leads to: `127.1`, `0x7f.1` and `[::ffff:127.0.0.1]` are all `127.0.0.1`.
pub fn host(url: &str) -> Option<String> {
    let url = reqwest::Url::parse(url).ok()?;
    let host = url.host_str()?.trim_end_matches('.');
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    Some(address.map_or_else(|_| host.to_lowercase(), |address| address.to_canonical().to_string()))
}
