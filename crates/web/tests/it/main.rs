//! Calls over real sockets: what is allowed, what is rejected, and the error messages.
#![expect(clippy::unwrap_used, reason = "tests")]

mod addresses;
mod calls;

use web::scripted::Scripted;
use web::{Answer, Client, Failure, Method, OutgoingRequest, Settings};

/// A client that may call loopback.
fn client() -> Client {
    Client::new(Scripted::settings()).unwrap()
}

/// A client with the default settings.
fn strict() -> Client {
    Client::new(Settings::default()).unwrap()
}

async fn get(client: &Client, url: &str) -> Result<Answer, Failure> {
    client.send(OutgoingRequest { method: Method::GET, url: url.into(), headers: Vec::new(), body: Vec::new() }).await
}
