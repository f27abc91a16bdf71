//! File uploads (multipart/form-data, streamed into the blob store) and downloads.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderValue,
};
use axum::http::{HeaderMap, Response};
use bytes::Bytes;
use futures_util::stream::{poll_fn, unfold};
use futures_util::{Stream, StreamExt as _, TryStreamExt};
use sha2::{Digest, Sha256};

use super::pouring::{encoded, pour};
use super::responses::Unsent;
use super::{bodies, reply};
use crate::app::App;
use crate::call::Content;
use crate::config::LEAST_BODIES_MIB;
use crate::contents::picture::Header;
use crate::contents::{self, MAX_SIZE, Upload, hex};
use crate::context::Actor;
use crate::error::{Code, Error, FieldCode, FieldErrors, Result, violation};
use crate::registry::registry;

/// Allowance for the multipart framing around the file.
const AROUND: u64 = 64 * 1024;

/// Checks the headers of an upload before its body is read.
pub fn check_head(headers: &HeaderMap) -> Result<()> {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > MAX_SIZE as u64 + AROUND) {
        return Err(too_large());
    }
    boundary(headers).map(drop)
}

fn boundary(headers: &HeaderMap) -> Result<String> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    multer::parse_boundary(kind).map_err(|_| {
        Error::new(Code::UnsupportedMediaType, "Send the file as multipart/form-data, in a part called 'file'.")
    })
}

fn too_large() -> Error {
    Error::new(Code::BodyTooLarge, format!("A file may have at most {MAX_SIZE} bytes."))
}

/// The received body: the file, and warnings about ignored parts.
#[derive(Default)]
pub struct Received {
    /// The stored file.
    pub upload: Option<Upload>,
    /// Warnings about ignored parts.
    pub warnings: Vec<String>,
    /// Deletes the file, unless it is claimed.
    pub unclaimed: Option<Unclaimed>,
}

/// Memory that an upload uses: the buffer of a part for the store.
pub const MEMORY: usize = LEAST_BODIES_MIB as usize * 1024 * 1024;

/// A content without a record. It is deleted immediately if the request creates no record for it.
pub struct Unclaimed {
    app: Arc<App>,
    caller: Actor,
    content: String,
}

impl Unclaimed {
    /// Keeps the content, since a record has it.
    pub fn claimed(mut self) {
        self.content.clear();
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if self.content.is_empty() {
            return;
        }
        // Outside the runtime it cannot be deleted now; the job of the content deletes it in an hour.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (app, caller, content) = (self.app.clone(), self.caller.clone(), std::mem::take(&mut self.content));
        runtime.spawn(async move {
            let number = caller.account.number;
            let dropped = app.store.write(number, move |tx| {
                let ctx = caller.reading(tx)?;
                (registry().contents()?.refuse)(tx, &ctx, &content)
            });
            if let Err(error) = dropped.await {
                tracing::warn!(%error, "Cannot delete the content of a rejected upload; it is deleted within an hour.");
            }
        });
    }
}

/// Receives the file of a body and stores its content. The caller creates a record for it; otherwise a job deletes the
/// content.
pub async fn receive(
    app: &Arc<App>,
    caller: &Actor,
    headers: &HeaderMap,
    body: &mut Option<Body>,
    lenient: bool,
) -> Result<Received> {
    let boundary = boundary(headers)?;
    let patience = Duration::from_secs(app.config.upload_timeout_seconds);
    let shared = Arc::new(Mutex::new(body.take().unwrap_or_default().into_data_stream()));
    let pieces = shared.clone();
    let pieces = poll_fn(move |cx| pieces.lock().unwrap_or_else(PoisonError::into_inner).poll_next_unpin(cx));
    let parts = read_parts(app, caller, boundary, pieces, lenient);
    let received = bodies::in_time(&app.bodies, caller.account.number, patience, parts).await;
    // What was not read, because the file could not be stored, is left to the caller.
    *body =
        Arc::into_inner(shared).map(|unread| Body::new(unread.into_inner().unwrap_or_else(PoisonError::into_inner)));
    received
}

async fn read_parts(
    app: &Arc<App>,
    caller: &Actor,
    boundary: String,
    body: impl Stream<Item = Result<Bytes, axum::Error>> + Send + 'static,
    lenient: bool,
) -> Result<Received> {
    let limits = multer::SizeLimit::new().whole_stream(MAX_SIZE as u64 + AROUND).for_field("name", 4096);
    let limits = multer::Constraints::new().size_limit(limits);
    let mut parts = multer::Multipart::with_constraints(body, boundary, limits);
    let mut received = Received::default();
    let mut name = None;
    let mut faults = FieldErrors::default();
    while let Some(part) = parts.next_field().await.map_err(malformed)? {
        let part_name = part.name().unwrap_or_default().to_string();
        match part_name.as_str() {
            "file" if received.upload.is_some() => {
                faults.add("file", violation(FieldCode::GivenTwice, "is given more than once"));
                break;
            }
            "file" => {
                let sent = part.file_name().unwrap_or_default().to_string();
                received.upload = Some(keep(app, caller, part, &sent, &mut received.unclaimed).await?);
            }
            "name" => name = Some(part.text().await.map_err(malformed)?),
            other if lenient => {
                received.warnings.push(format!("'{}' is not a known field and was ignored", shortened(other)));
            }
            other => faults.add(
                shortened(other),
                violation(FieldCode::UnknownField, "is not a known field; send 'file' and optionally 'name'"),
            ),
        }
    }
    faults.into_result()?;
    if let (Some(upload), Some(name)) = (&mut received.upload, name) {
        upload.name = contents::clean_name(&name);
    }
    Ok(received)
}

fn shortened(name: &str) -> String {
    name.chars().take(100).collect()
}

fn malformed(error: multer::Error) -> Error {
    match error {
        multer::Error::StreamSizeExceeded { .. } | multer::Error::FieldSizeExceeded { .. } => too_large(),
        _ => Error::new(Code::MalformedJson, "The multipart body is incomplete or malformed."),
    }
}

/// Number of bytes from which the content type is detected.
const START: usize = 4096;

async fn keep(
    app: &Arc<App>,
    caller: &Actor,
    part: multer::Field<'static>,
    sent: &str,
    unclaimed: &mut Option<Unclaimed>,
) -> Result<Upload> {
    let content = format!("{}/{}", caller.account.uid, app.ids.next());
    let (own, key) = (caller.clone(), content.clone());
    // Before the first byte, so that a crash leaves nothing behind.
    app.store
        .write(caller.account.number, move |tx| {
            let ctx = own.reading(tx)?;
            (registry().contents()?.announce)(tx, &ctx, &key)
        })
        .await?;
    *unclaimed = Some(Unclaimed { app: app.clone(), caller: caller.clone(), content: content.clone() });
    let mut seen = Seen { hash: Sha256::new(), size: 0, start: Vec::new(), header: Header::default() };
    let pieces = unfold((part, &mut seen), |(mut part, seen)| async move {
        let piece = match part.chunk().await {
            Ok(None) => return None,
            Ok(Some(piece)) => piece,
            Err(error) => return Some((Err(Stopped(malformed(error))), (part, seen))),
        };
        if seen.size + piece.len() > MAX_SIZE {
            return Some((Err(Stopped(too_large())), (part, seen)));
        }
        seen.see(&piece);
        Some((Ok(piece), (part, seen)))
    });
    keep_pieces(app, &content, pieces).await?;
    let name = contents::clean_name(sent);
    Ok(Upload {
        content_type: contents::content_type(&seen.start, &name).to_string(),
        size: i64::try_from(seen.size).unwrap_or(i64::MAX),
        sha256: hex(&seen.hash.finalize()),
        pixels: seen.header.pixels(),
        content,
        name,
    })
}

/// The properties of a content, collected while it is received.
struct Seen {
    hash: Sha256,
    size: usize,
    start: Vec<u8>,
    header: Header,
}

impl Seen {
    fn see(&mut self, piece: &[u8]) {
        self.hash.update(piece);
        self.header.see(piece);
        self.size += piece.len();
        self.start.extend_from_slice(&piece[..piece.len().min(START - self.start.len())]);
    }
}

/// One of our own errors, passed through the blob store.
struct Stopped(Error);

impl From<Stopped> for blobs::Error {
    fn from(stopped: Stopped) -> blobs::Error {
        let code = stopped.0.code;
        blobs::Error::Broken(if code == Code::BodyTooLarge { String::new() } else { stopped.0.message })
    }
}

async fn keep_pieces(app: &App, content: &str, pieces: impl Stream<Item = Result<Bytes, Stopped>>) -> Result<()> {
    app.blobs.keep(content, pieces).await.map_err(|error| match error {
        blobs::Error::Broken(why) if why.is_empty() => too_large(),
        blobs::Error::Broken(why) => Error::new(Code::MalformedJson, why),
        other => stored_elsewhere(other),
    })
}

/// Converts an error of the blob store.
fn stored_elsewhere(error: blobs::Error) -> Error {
    match error {
        blobs::Error::Full => {
            let mut full = Error::new(Code::DiskFull, "The server's disk is full; nothing was stored.");
            full.retry_after = Some(60);
            full
        }
        blobs::Error::Missing => Error::internal("a record has no content"),
        other => {
            let mut later = Error::new(Code::Unavailable, "File storage is unavailable; nothing was changed.");
            later.retry_after = Some(1);
            later.internal = Some(other.to_string());
            later
        }
    }
}

/// Content types that a browser may display: none of them can run scripts.
const SHOWN: &[&str] =
    &["application/pdf", "image/png", "image/jpeg", "image/gif", "image/webp", "text/plain", "text/csv"];

/// The policy of pages to look at: the console shows them in a frame, in which nothing runs.
const INERT: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; \
                     form-action 'none'; frame-ancestors 'self'; sandbox allow-same-origin";

/// Sends a content as a response. Content that could run a script in a browser is sent as a download.
pub async fn send(app: &Arc<App>, content: &Content, unsent: Unsent) -> Result<Response<Body>> {
    let (body, size, name, content_type, etag) = match content {
        Content::Page(html) => {
            let mut response = Response::new(unsent.body(html.clone()));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(INERT));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
            return Ok(response);
        }
        Content::Poured(poured) => return pour(app, poured.clone()).await,
        Content::Kept { key, name, content_type, etag } => {
            let found = app.blobs.open(key).await.map_err(stored_elsewhere)?;
            let body = Body::from_stream(found.bytes.map_err(std::io::Error::other));
            (body, found.size, name.as_str(), content_type.as_str(), etag.clone())
        }
        Content::Written { name, content_type, text } => {
            let etag = hex(&Sha256::digest(text.as_bytes()));
            (unsent.body(text.clone()), text.len() as u64, name.as_str(), content_type.as_str(), etag)
        }
        Content::Made(made) => {
            let bytes = made.make(app.clone()).await?;
            let etag = hex(&Sha256::digest(&bytes));
            let size = bytes.len() as u64;
            (unsent.body(bytes), size, made.name(), made.content_type(), etag)
        }
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let shown = SHOWN.contains(&content_type);
    let kind = if content_type.starts_with("text/") {
        format!("{content_type}; charset=utf-8")
    } else {
        content_type.to_string()
    };
    reply::insert(headers, CONTENT_TYPE, &kind);
    reply::insert(headers, ETAG, &format!("\"{etag}\""));
    let how = if shown { "inline" } else { "attachment" };
    reply::insert(headers, CONTENT_DISPOSITION, &format!("{how}; filename*=UTF-8''{}", encoded(name)));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=3600"));
    Ok(response)
}
