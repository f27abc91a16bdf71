//! Contents that are written while they are sent: a thread writes, as fast as the client reads.

use std::io::{self, Write};
use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::unfold;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::reply;
use crate::app::App;
use crate::call::Pour;
use crate::error::{Error, Result};

/// Number of pieces that wait for the client.
const AHEAD: usize = 4;
/// Size of a piece, in bytes.
const PIECE: usize = 64 * 1024;

/// Sends a content while it is written.
pub async fn pour(app: &Arc<App>, poured: Arc<dyn Pour>) -> Result<Response<Body>> {
    let (sender, mut receiver) = channel(AHEAD);
    let (app, own) = (app.clone(), poured.clone());
    tokio::task::spawn_blocking(move || {
        let mut out = io::BufWriter::with_capacity(PIECE, Pieces(sender.clone()));
        let written =
            own.pour(&app, &mut out).and_then(|()| out.flush().map_err(|error| Error::internal(error.to_string())));
        if let Err(error) = written {
            // What is left in the buffer belongs to a content that is not complete.
            drop(out.into_parts());
            let _ = sender.blocking_send(Err(error));
        }
    });
    // An error before the first byte is a response of its own.
    let first = receiver.recv().await.transpose()?;
    let body = Body::from_stream(unfold((first, receiver), rest).fuse());
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let kind = poured.content_type();
    let kind = if kind.starts_with("text/") { format!("{kind}; charset=utf-8") } else { kind.to_string() };
    reply::insert(headers, CONTENT_TYPE, &kind);
    let name = encoded(poured.name());
    reply::insert(headers, CONTENT_DISPOSITION, &format!("attachment; filename*=UTF-8''{name}"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    Ok(response)
}

type State = (Option<Bytes>, Receiver<Result<Bytes>>);

async fn rest((first, mut receiver): State) -> Option<(io::Result<Bytes>, State)> {
    let piece = match first {
        Some(piece) => Ok(piece),
        None => receiver.recv().await?.map_err(|error| {
            tracing::warn!(cause = error.internal.as_deref().unwrap_or(&error.message), "A download was cut off.");
            io::Error::other(error.message)
        }),
    };
    Some((piece, (None, receiver)))
}

/// Passes what is written to the response. A client that is gone is an error.
struct Pieces(Sender<Result<Bytes>>);

impl Write for Pieces {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(piece)));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Encodes a name according to RFC 8187.
pub(super) fn encoded(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
