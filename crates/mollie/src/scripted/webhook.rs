//! Calls webhooks as Mollie does.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Posts the id, and returns the status of the response. Supports only http, for test servers.
pub(super) fn call(url: &str, payment_id: &str) -> io::Result<u16> {
    let rest = url.strip_prefix("http://").ok_or_else(|| io::Error::other(format!("cannot call {url}")))?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.is_empty() { "/" } else { path };
    let body = format!("id={payment_id}");
    let mut stream = TcpStream::connect(if host.contains(':') { host.to_owned() } else { format!("{host}:80") })?;
    // The timeout of Mollie.
    stream.set_read_timeout(Some(Duration::from_secs(15)))?;
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nUser-Agent: Mollie HTTP client/1.0\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let status = String::from_utf8_lossy(&answer).split(' ').nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| io::Error::other("the webhook did not answer"))
}
