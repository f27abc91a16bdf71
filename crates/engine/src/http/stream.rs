//! The event stream: log lines as server-sent events, from where the client left off. Lines are read as the client
//! consumes them, so a slow client costs no memory.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, COOKIE, HeaderMap, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, Response};

use super::authentication::authenticate;
use super::keys;
use crate::app::App;
use crate::call::{Query, whole_number};
use crate::error::{Code, Error, FieldCode, Result, violation};
use crate::listeners::StreamPermit;
use crate::log;
use crate::registry::LineReader;
use crate::shown::Viewer;

/// How often the log is polled for lines of other nodes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Number of entries to read at a time, and their approximate size: the memory of a stream.
const BATCH: i64 = 25;
const BYTES: i64 = 256 * 1024;
/// The start of a stream: a comment, and the delay after which clients reconnect.
const HELLO: &str = ": Kantoor\nretry: 2000\n\n";

/// Responds with the events of the caller's account as they happen.
pub async fn open(
    app: &Arc<App>,
    caller: &keys::AuthenticatedKey,
    scope: &'static str,
    head: &Parts,
    query: &Query,
) -> Result<Response<Body>> {
    let headers = &head.headers;
    let account = caller.account.number;
    let (brief, unnamed) = (is_without(query, "data")?, is_without(query, "named")?);
    let after = match start(headers, query)? {
        Some(seq) => seq,
        None => app.store.read(move |tx| log::last(tx, account)).await?,
    };
    let body = if head.method == Method::HEAD {
        Body::empty()
    } else {
        let mut key = HeaderMap::new();
        let credential = if caller.key.session.is_empty() { AUTHORIZATION } else { COOKIE };
        for value in headers.get_all(&credential) {
            key.append(credential.clone(), value.clone());
        }
        let seat = StreamPermit::take(&app.listeners, &app.config, &caller.key.id, account)?;
        let address = app.visitors.client(&head.extensions, headers);
        let follower = Follower {
            app: app.clone(),
            seat,
            key,
            address,
            scope,
            account,
            brief,
            unnamed,
            after,
            said: Instant::now(),
            greeted: false,
        };
        Body::from_stream(futures_util::stream::unfold(follower, Follower::next))
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies that buffer complete responses would buffer this one forever.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Returns the sequence number to start after: that of an interrupted stream, or the parameter.
fn start(headers: &HeaderMap, query: &Query) -> Result<Option<i64>> {
    let asked = query.whole("after", 0, i64::MAX).map_err(|wrong| Error::field("after", wrong))?;
    let Some(last) = headers.get("last-event-id") else { return Ok(asked) };
    let last = last.to_str().ok().and_then(whole_number);
    let wrong = || Error::new(Code::InvalidHeader, "Last-Event-ID must be the id of an event in this stream.");
    last.map(Some).ok_or_else(wrong)
}

/// Whether the client does without the records (`data=0`), or without the names of events (`named=0`).
fn is_without(query: &Query, part: &'static str) -> Result<bool> {
    match query.get(part) {
        None | Some("1") => Ok(false),
        Some("0") => Ok(true),
        Some(_) => Err(Error::field(part, violation(FieldCode::InvalidChoice, "must be one of: 0, 1"))),
    }
}

/// A client that follows the log.
struct Follower {
    app: Arc<App>,
    seat: StreamPermit,
    key: HeaderMap,
    address: Option<IpAddr>,
    scope: &'static str,
    account: i64,
    /// Without the records: for screens that reload what changed.
    brief: bool,
    /// Without the line `event`: a browser then has one handler for all of them.
    unnamed: bool,
    after: i64,
    said: Instant,
    greeted: bool,
}

impl Follower {
    /// Returns the next data to send; `None` when the process stops or the key is revoked.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Follower)> {
        if !std::mem::replace(&mut self.greeted, true) {
            return Some((Ok(Bytes::from_static(HELLO.as_bytes())), self));
        }
        loop {
            // A revoked key gets no more events; the key cache checks the database once a second.
            let caller = authenticate(&self.app, &self.key, self.address).await.ok()?;
            if *self.seat.stopping.borrow() || !caller.key.may(self.scope) {
                return None;
            }
            // Before the query, so that entries written after it are not missed.
            self.seat.wrote.mark_unchanged();
            let (account, after) = (self.account, self.after);
            let mut lines = self.app.store.read(move |tx| log::after(tx, account, after, BATCH, BYTES)).await.ok()?;
            if let Some(last) = lines.last() {
                self.after = last.seq;
                let mut reader = LineReader::new(|scope: &str| caller.key.may(scope));
                lines.retain(|line| reader.may_read(&line.name, line.entity_type()));
                if lines.is_empty() {
                    continue;
                }
                self.said = Instant::now();
                self.app.metrics.streamed.inc_by(lines.len() as u64);
                let (now, site, key) = (self.app.clock.now(), self.app.site.clone(), caller.key.clone());
                let viewer = Viewer { account, now, site, may: Arc::new(move |scope: &str| key.may(scope)) };
                return Some((Ok(written(&lines, &viewer, self.brief, self.unnamed)), self));
            }
            // A heartbeat keeps the connection open.
            if self.said.elapsed() >= Duration::from_secs(self.app.config.stream_heartbeat_seconds.max(1)) {
                self.said = Instant::now();
                return Some((Ok(Bytes::from_static(b":\n\n")), self));
            }
            let StreamPermit { wrote, stopping, .. } = &mut self.seat;
            tokio::select! {
                _ = wrote.changed() => {}
                _ = stopping.wait_for(|stopping| *stopping) => return None,
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
    }
}

fn written(lines: &[log::Line], viewer: &Viewer, brief: bool, unnamed: bool) -> Bytes {
    let mut text = Vec::with_capacity(1024 * lines.len());
    for line in lines {
        let name = if unnamed { String::new() } else { format!("event: {}\n", line.name) };
        text.extend_from_slice(format!("id: {}\n{name}data: ", line.seq).as_bytes());
        // JSON as the API writes it has no line breaks.
        if brief {
            line.write_change("", &mut text)
        } else {
            viewer.write_change(line, &mut text)
        }
        text.extend_from_slice(b"\n\n");
    }
    text.into()
}
