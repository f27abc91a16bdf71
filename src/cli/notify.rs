//! Tells systemd about the state of the server (`Type=notify`): when it is ready, that it still works, and that it stops.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Sends a state; does nothing if systemd did not start the program. A lost message is no reason to stop.
pub fn notify(state: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty()) else { return };
    let name = path.as_encoded_bytes();
    let address = match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&path),
    };
    let sent = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(cause) = sent {
        tracing::warn!(%cause, "systemd could not be told about the state of the server.");
    }
}

/// Tells systemd regularly that the server still works, if its unit has a watchdog.
pub async fn watch() {
    let Some(micros) = std::env::var("WATCHDOG_USEC").ok().and_then(|text| text.parse().ok()) else { return };
    let mut turns = tokio::time::interval(Duration::from_micros(micros) / 2);
    loop {
        turns.tick().await;
        notify("WATCHDOG=1");
    }
}
