//! Reading the body of a request.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use http_body_util::BodyExt;

use super::bodies::{self, Room};
use crate::app::App;
use crate::context::Actor;
use crate::error::{Code, Error, Result};

/// Maximum size of a body, in bytes.
pub const MAX_BODY: usize = 2 * 1024 * 1024;

/// Reads the body of a request, which is JSON if there is one.
pub async fn read(app: &App, ctx: &Actor, room: &mut Room, headers: &HeaderMap, body: Body) -> Result<Vec<u8>> {
    let patience = Duration::from_secs(app.config.body_timeout_seconds);
    let body = bodies::in_time(&app.bodies, ctx.account.number, patience, collect(room, body)).await?;
    if !body.is_empty() && !is_json(headers) {
        return Err(Error::new(Code::UnsupportedMediaType, "Send JSON with 'Content-Type: application/json'."));
    }
    Ok(body)
}

/// How much of an unusable body is read, so that a client that is still writing sees the response.
const READ_ON: usize = 8 * MAX_BODY;

/// Reads and discards a body that was left unread, which would close the connection under the client's next request.
pub async fn discard(body: Option<Body>) {
    if let Some(unread) = body.filter(|body| !body.is_end_stream()) {
        let _ = tokio::time::timeout(Duration::from_secs(1), drain(unread)).await;
    }
}

/// Reads and discards an unusable body.
async fn drain(mut body: Body) {
    let mut length = 0;
    while let Some(Ok(frame)) = body.frame().await {
        length += frame.data_ref().map_or(0, bytes::Bytes::len);
        if length > READ_ON {
            return;
        }
    }
}

/// Reads a whole body. One that is too large is read for a while longer: a client that is still writing would not see
/// the response.
async fn collect(room: &mut Room, mut body: Body) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Error::new(Code::MalformedJson, "The body is incomplete."))?;
        let Some(data) = frame.data_ref() else { continue };
        length += data.len();
        if length <= MAX_BODY {
            if let Err(full) = room.take(data.len()) {
                drop(bytes);
                let _ = tokio::time::timeout(Duration::from_secs(1), drain(body)).await;
                return Err(full);
            }
            bytes.extend_from_slice(data);
        } else if length > READ_ON {
            break;
        }
    }
    if length > MAX_BODY {
        return Err(Error::new(Code::BodyTooLarge, format!("The body may have at most {MAX_BODY} bytes.")));
    }
    Ok(bytes)
}

fn is_json(headers: &HeaderMap) -> bool {
    let encoded = headers.get("content-encoding").is_some_and(|encoding| encoding != "identity");
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    !encoded && kind.eq_ignore_ascii_case("application/json")
}
