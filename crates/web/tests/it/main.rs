//! Calls over real sockets: what gets through, what does not, and what is said about it.
#![expect(clippy::unwrap_used, reason = "tests")]

mod addresses;
mod calls;

use web::scripted::Scripted;
use web::{Answer, Client, Failure, Method, Request, Settings};

/// Gets through to loopback.
fn client() -> Client {
    Client::new(Scripted::settings()).unwrap()
}

/// As users get it.
fn strict() -> Client {
    Client::new(Settings::default()).unwrap()
}

async fn get(client: &Client, url: &str) -> Result<Answer, Failure> {
    client.send(Request { method: Method::GET, url: url.into(), headers: Vec::new(), body: Vec::new() }).await
}
