//! One request from start to end: authentication, routing, reading the body, running the handler, the response.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody};
use axum::http::header::{ACCEPT, CONTENT_LENGTH, IF_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use futures_util::FutureExt;
use tracing::{Instrument as _, Span};

use super::authentication::{in_session, known, limit, signed};
use super::bodies::Room;
use super::decoding::{self, Decoded};
use super::keys::{self, Left, Reported};
use super::reads;
use super::reply::{self, Reply};
use super::responses::Unsent;
use super::upload::{self, Received};
use super::{receiving, session, span, stream};
use crate::app::App;
use crate::call::{After, Answer, Call, Query};
use crate::context::{Actor, IfMatch};
use crate::error::{Code, Error, FieldErrors, Result};
use crate::idempotency::{self, Claim};
use crate::limits;
use crate::presence::Presence;
use crate::quotas::Quotas;
use crate::records::Work;
use crate::registry::{Methods, routes};
use crate::resource::{RequestBody, Returns, Route};
use crate::site::SIGNED;

/// The properties of a request for its log entry and metrics.
struct Seen {
    request_id: Arc<str>,
    route: &'static str,
    left: Option<Reported>,
}

/// Handles a request under `/v1`, or under `/v1` of the sessions.
pub async fn answer(app: Arc<App>, request: Request<Body>) -> Response<Body> {
    let started = Instant::now();
    let mut seen = Seen { request_id: request_id(&app, request.headers()), route: "", left: None };
    let problem = accepts_problem(request.headers());
    let strict = prefers(request.headers(), "strict");
    let method = request.method().clone();
    let (head, body) = request.into_parts();
    let span = span::of(&method, &head.headers);
    let mut body = Some(body);
    // In a box, since each layer around a future moves it.
    let walk = Box::pin(walk(&app, head, &mut body, &mut seen));
    let done = guarded(walk).instrument(span.clone()).await;
    receiving::discard(body).await;
    let mut response = done.unwrap_or_else(|refusal| {
        log_failure(&refusal.error, &seen);
        let response = reply::error_response(&refusal.error, &seen.request_id, problem);
        match refusal.allows {
            Some(methods) => reply::with_allow(response, &allowed(methods)),
            None => response,
        }
    });
    reply::finish(&mut response, &seen.request_id);
    if strict && !seen.route.is_empty() {
        response.headers_mut().insert("preference-applied", HeaderValue::from_static("handling=strict"));
    }
    if let Some(Reported { name, limit, left }) = seen.left {
        let headers = response.headers_mut();
        reply::insert(headers, HeaderName::from_static("ratelimit-policy"), &format!("\"{name}\";q={limit};w=60"));
        let state = format!("\"{name}\";r={};t={}", left.remaining, left.reset);
        reply::insert(headers, HeaderName::from_static("ratelimit"), &state);
    }
    if method == Method::HEAD {
        response = without_body(response);
    }
    span::end(&span, &method, seen.route, &response);
    account_for(&app, &method, seen.route, &response, started);
    response
}

/// Converts a panic into an error with its message for the log.
async fn guarded<T>(work: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<&str>().map(ToString::to_string);
        let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Error::internal(format!("a panic: {words}")).into())
    })
}

/// An error, and the supported methods.
struct Refusal {
    error: Error,
    allows: Option<&'static Methods>,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal { error, allows: None }
    }
}

async fn walk(
    app: &Arc<App>,
    head: Parts,
    body: &mut Option<Body>,
    seen: &mut Seen,
) -> Result<Response<Body>, Refusal> {
    // Authentication comes first: without a key nothing is revealed, not even which paths exist.
    let caller = authenticate(app, &head, seen).await?;
    Span::current().record("kantoor.account", caller.account.uid.as_str());
    let found = routes().at(head.uri.path());
    let found = found.map_err(|_| Error::new(Code::NotFound, "This path does not exist."))?;
    let methods = found.value;
    let path: Vec<String> = found.params.iter().map(|(_, text)| decode(text)).collect();
    if head.method == Method::OPTIONS {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(reply::with_allow(response, &allowed(methods)));
    }
    let route = route_for(methods, &head.method)?;
    seen.route = &route.path;
    check_scopes(route, &caller)?;
    let query = query_for(route, &caller, &head)?;
    // Lists report their unknown parameters themselves.
    let ignored: Vec<String> =
        query.names().filter(|name| !route.lists() && !route.takes(name)).map(str::to_string).collect();
    let strict = prefers(&head.headers, "strict");
    if let Returns::Stream(_) = route.returns {
        unknown_parameters(route, &Call { strict, ..Call::default() }, &ignored).into_result()?;
        return Ok(Box::pin(stream::open(app, &caller, &route.scope, &head, &query)).await?);
    }

    let ctx = context(app, &caller, &head, seen)?;
    if route.scarce && app.config.trigger_limit_per_minute > 0 {
        ration(app, &ctx, seen).await?;
    }
    let mut unsent = app.responses.admit(caller.account.number).await?;
    let reads = route.reads_for(&query);
    if !reads && session::is_caller(&head) {
        session::check_origin(&head, &app.site)?;
    }
    // Until the response is complete.
    let mut room = Room::new(&app.bodies, &app.config, caller.account.number);
    let (bytes, received) = if reads {
        (Vec::new(), Received::default())
    } else {
        receive(app, &ctx, route, &head, body, &mut room).await?
    };
    let call = Call {
        path,
        query: query.clone(),
        upload: received.upload,
        warnings: received.warnings,
        lenient: prefers(&head.headers, "lenient"),
        strict,
        ..Call::default()
    };
    let unknown = unknown_parameters(route, &call, &ignored);
    let (method, uri, key) = (head.method.clone(), head.uri.clone(), idempotency_key(&head).cloned());
    let undecoded = decoding::Undecoded { route, method, uri, key, bytes, call };
    let Decoded { claim, work } = decoding::decode(app, caller.account.number, undecoded).await?;
    let work = with_unknown(work, unknown);
    let work = match (work, &claim) {
        // A reused key takes precedence over other errors.
        (Err(error), Some(claim)) => return Err(taken(app, ctx, claim.clone()).await.unwrap_or(error).into()),
        (work, _) => work?,
    };
    let ignored = if route.has_meta { ignored } else { Vec::new() };
    if reads {
        let path = head.uri.path().to_string();
        let asked = reads::Asked { path, query, ignored, visits_many: route.visits_many };
        let done = reads::read(app, &mut unsent, ctx, asked, work).await?;
        return Ok(reply::unless_known(&head.headers, respond(app, done, unsent).await?));
    }
    let done = write(app, ctx, &unsent, claim, ignored, work).await?;
    // A replayed request already has its file.
    if let Some(unclaimed) = received.unclaimed.filter(|_| done.stored.status == 201 && !done.replayed) {
        unclaimed.claimed();
    }
    Ok(respond(app, done, unsent).await?)
}

/// Returns the errors about parameters that the route does not have, if the caller wants them.
fn unknown_parameters(route: &Route, call: &Call, ignored: &[String]) -> FieldErrors {
    let mut faults = FieldErrors::default();
    // The parameters of a signed URL.
    let signed = |name: &String| route.returns == Returns::Content && SIGNED.contains(&name.as_str());
    let unknown: Vec<String> = ignored.iter().filter(|name| !signed(name)).cloned().collect();
    call.refuse_unknown(&unknown, &route.parameters().collect::<Vec<_>>(), &mut faults);
    faults
}

/// Adds errors about parameters to those of the body.
fn with_unknown(work: Result<Work>, mut faults: FieldErrors) -> Result<Work> {
    if faults.0.is_empty() {
        return work;
    }
    faults.join(work)?;
    Err(Error::invalid(faults))
}

/// Authenticates a request: by a signed URL, or by a key or a session, which have a rate limit.
async fn authenticate(app: &Arc<App>, head: &Parts, seen: &mut Seen) -> Result<Arc<keys::AuthenticatedKey>> {
    if session::is_caller(head) {
        let caller = in_session(app, head).await?;
        limit(app, &caller, &mut seen.left)?;
        session::check_user(head, &caller.key.id)?;
        return Ok(caller);
    }
    if let Some(caller) = signed(app, head).await? {
        return Ok(caller);
    }
    let caller = known(app, head).await?;
    limit(app, &caller, &mut seen.left)?;
    Ok(caller)
}

/// Returns the route of a method among those of a path. HEAD uses the route of GET.
fn route_for(methods: &'static Methods, method: &Method) -> Result<&'static Route, Refusal> {
    let wanted = if method == Method::HEAD { "GET" } else { method.as_str() };
    methods.iter().copied().find(|route| route.method.name() == wanted).ok_or_else(|| Refusal {
        error: Error::new(Code::MethodNotAllowed, format!("{wanted} is not supported here; see the Allow header.")),
        allows: Some(methods),
    })
}

/// Rejects a key without the required scopes of the route.
fn check_scopes(route: &Route, caller: &keys::AuthenticatedKey) -> Result<()> {
    match route.lacks(|scope| caller.key.may(scope)) {
        Some(scope) => Err(Error::new(Code::Forbidden, format!("This request requires the scope '{scope}'."))),
        None => Ok(()),
    }
}

/// Returns the query. A parameter that performs an action requires another scope.
fn query_for(route: &Route, caller: &keys::AuthenticatedKey, head: &Parts) -> Result<Query> {
    let query = Query::parse(head.uri.query().unwrap_or_default())?;
    let Some((parameter, scope)) = route.acts_with.filter(|(parameter, _)| query.get(parameter).is_some()) else {
        return Ok(query);
    };
    if !caller.key.may(scope) {
        let message = format!("The parameter {parameter} requires the scope '{scope}'.");
        return Err(Error::new(Code::Forbidden, message));
    }
    // HEAD returns what GET would find, and changes nothing.
    Ok(if head.method == Method::HEAD { query.without(parameter) } else { query })
}

/// Returns the context of the request.
fn context(app: &App, caller: &keys::AuthenticatedKey, head: &Parts, seen: &Seen) -> Result<Actor> {
    Ok(Actor {
        account: caller.account.clone(),
        actor: caller.actor.clone(),
        key: Some(caller.key.clone()),
        request_id: seen.request_id.clone(),
        if_match: if_match(&head.headers)?,
        clock: app.clock.clone(),
        ids: app.ids,
        site: app.site.clone(),
        wakeup: app.wakeup.clone(),
        quotas: Quotas::of(&app.config),
        presence: Presence::default(),
    })
}

/// Receives the body of a write: its bytes, or its file and the identity of that file.
async fn receive(
    app: &Arc<App>,
    ctx: &Actor,
    route: &Route,
    head: &Parts,
    body: &mut Option<Body>,
    room: &mut Room,
) -> Result<(Vec<u8>, Received)> {
    if route.body != RequestBody::File {
        let bytes = receiving::read(app, ctx, room, &head.headers, body.take().unwrap_or_default()).await?;
        return Ok((bytes, Received::default()));
    }
    decoding::claim(&head.method, &head.uri, idempotency_key(head), &[], None)?;
    upload::check_head(&head.headers)?;
    room.take(upload::MEMORY)?;
    // In a box: every request would have room for the state of an upload otherwise.
    let received = Box::pin(upload::receive(app, ctx, &head.headers, body, prefers(&head.headers, "lenient")));
    let received = received.await?;
    // Multipart boundaries differ between attempts; the name and the content do not.
    let identity = received.upload.as_ref().map(|file| format!("{}\n{}", file.name, file.sha256));
    Ok((identity.unwrap_or_default().into(), received))
}

/// Sends the response: a file, or the reply itself.
async fn respond(app: &Arc<App>, done: Reply, unsent: Unsent) -> Result<Response<Body>> {
    match &done.content {
        Some(content) => upload::send(app, content, unsent).await,
        None => Ok(done.into_response(unsent)),
    }
}

/// Counts a request to a route with the strict limit, whatever its outcome.
async fn ration(app: &App, caller: &Actor, seen: &mut Seen) -> Result<()> {
    let (own, limit) = (caller.clone(), app.config.trigger_limit_per_minute);
    let taken = app.store.write(caller.account.number, move |tx| {
        let ctx = own.writing(tx)?;
        limits::take(tx, &ctx, limit)
    });
    let taken = taken.await;
    let left = match &taken {
        Ok(left) => Some(*left),
        Err(error) => error.retry_after.map(|seconds| Left { remaining: 0, reset: seconds.into() }),
    };
    seen.left = left.map(|left| Reported { name: "key", limit, left }).or(seen.left);
    taken.map(drop)
}

/// Runs a write, with its work outside the transactions.
async fn write(
    app: &Arc<App>,
    caller: Actor,
    unsent: &Unsent,
    claim: Option<Claim>,
    ignored: Vec<String>,
    mut work: Work,
) -> Result<Reply> {
    // This future is dropped when the connection ends.
    let (_here, presence) = Presence::of_caller();
    let caller = Actor { presence, ..caller };
    let (claim, ignored) = (Arc::new(claim), Arc::new(ignored));
    loop {
        let (own, claim, unused) = (caller.clone(), claim.clone(), ignored.clone());
        let done = app.store.write(caller.account.number, move |tx| {
            let ctx = own.writing(tx)?;
            match &*claim {
                None => work(tx, &ctx).map(Done::Answer),
                Some(claim) => once(tx, &ctx, claim, |tx| Ok(reply_of(work(tx, &ctx)?, &unused))).map(Done::Reply),
            }
        });
        let done = match done.await? {
            Done::Answer(answer) => reply_of(answer, &ignored),
            Done::Reply(reply) => reply,
        };
        app.listeners.wrote(caller.account.number);
        if let Some((counter, value)) = done.counts {
            app.metrics.add(counter, value);
        }
        let Some(After(after)) = done.after else { return Ok(done) };
        let (app, caller) = (app.clone(), caller.clone());
        let turn = unsent.outside().await?;
        let span = Span::current();
        let outside = tokio::task::spawn_blocking(move || {
            let done = span.in_scope(|| after(&app, &caller));
            drop(turn);
            done
        });
        let outside = outside.await;
        work = outside.map_err(|panic| Error::internal(format!("outside a transaction: {panic}")))??;
    }
}

/// The result of a transaction. A reply is only built inside it if it is stored there.
enum Done {
    Answer(Answer),
    Reply(Reply),
}

fn reply_of(answer: Answer, ignored: &[String]) -> Reply {
    Reply::of(answer.with_texts("ignored_params", ignored), |_| String::new())
}

/// Returns the error of an idempotency key that was used for another request.
async fn taken(app: &App, caller: Actor, claim: Claim) -> Option<Error> {
    let found = app.store.read(move |tx| {
        let ctx = caller.reading(tx)?;
        idempotency::find(tx, &ctx, &claim)
    });
    found.await.err()
}

/// Runs `work` the first time, and returns the stored response every other time. Successes and conflicts are stored;
/// errors that the caller can correct are not.
fn once(
    tx: &mut store::Tx,
    ctx: &crate::context::Ctx,
    claim: &Claim,
    work: impl Fn(&mut store::Tx) -> Result<Reply>,
) -> Result<Reply> {
    if let Some(stored) = idempotency::find(tx, ctx, claim)? {
        return Ok(Reply::again(stored));
    }
    let reply = match tx.savepoint(work) {
        Err(error) if reply::status(error.code) == StatusCode::CONFLICT => {
            let body = reply::error_body(&error, &ctx.request_id);
            let status = reply::status(error.code).as_u16();
            let stored = idempotency::Stored { status, body, ..Default::default() };
            Reply { replayed: false, ..Reply::again(stored) }
        }
        done => done?,
    };
    if reply.after.is_none() {
        idempotency::keep(tx, ctx, claim, &reply.stored)?;
    }
    Ok(reply)
}

fn idempotency_key(head: &Parts) -> Option<&HeaderValue> {
    head.headers.get("idempotency-key")
}

/// Whether the caller prefers this `handling` (RFC 7240); the first preference counts.
fn prefers(headers: &HeaderMap, handling: &str) -> bool {
    let prefer = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let mut wishes = prefer.flat_map(|value| value.split([',', ';'])).filter_map(|wish| wish.split_once('='));
    let wish = wishes.find(|(name, _)| name.trim().eq_ignore_ascii_case("handling"));
    wish.is_some_and(|(_, value)| value.trim().trim_matches('"').eq_ignore_ascii_case(handling))
}

fn if_match(headers: &HeaderMap) -> Result<Option<IfMatch>> {
    let Some(value) = headers.get(IF_MATCH) else { return Ok(None) };
    let text = value.to_str().map_err(|_| Error::new(Code::InvalidHeader, "If-Match is not valid."))?;
    if text.trim() == "*" {
        return Ok(Some(IfMatch::Any));
    }
    // A foreign tag matches nothing; versions start at 1.
    let versions = text.split(',').map(|tag| tag.trim().trim_matches('"').parse().unwrap_or(0));
    Ok(Some(IfMatch::Versions(versions.collect())))
}

/// Returns the response to HEAD: the headers of the response to GET, without its body.
pub fn without_body(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, length.into());
    }
    Response::from_parts(head, Body::empty())
}

fn allowed(methods: &Methods) -> String {
    let mut names: Vec<&str> = methods.iter().map(|route| route.method.name()).collect();
    if names.contains(&"GET") {
        names.push("HEAD");
    }
    names.push("OPTIONS");
    names.join(", ")
}

/// Decodes `%41` to `A`; invalid UTF-8 matches no record.
fn decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_string();
    }
    let escaped = text.replace('+', "%2B").replace('&', "%26");
    let pair = format!("v={escaped}");
    form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// Returns the id of a request: the client's own, if it is valid in a log line.
pub fn request_id(app: &App, headers: &HeaderMap) -> Arc<str> {
    let sent = headers.get("x-request-id").and_then(|id| id.to_str().ok());
    let usable = sent.filter(|id| (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()));
    usable.map_or_else(|| app.ids.next().into(), Into::into)
}

fn accepts_problem(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("application/problem+json"))
}

fn log_failure(error: &Error, seen: &Seen) {
    let status = reply::status(error.code).as_u16();
    // What somebody did to the database is no fault of the program, but the operator must know.
    if status >= 500 || error.code == Code::Unreadable {
        tracing::error!(
            request_id = %seen.request_id, route = seen.route, status, cause = error.internal.as_deref().unwrap_or(""),
            "A request failed: {}", error.message
        );
    }
}

/// Counts a completed request, and logs it if required.
#[expect(clippy::float_arithmetic, reason = "seconds of a metric, no money")]
pub fn account_for(app: &App, method: &Method, route: &str, response: &Response<Body>, started: Instant) {
    let status = response.status().as_u16();
    let took = started.elapsed();
    let method = match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PATCH" => "PATCH",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    };
    app.metrics.count(method, route, status, took.as_micros() as f64 / 1e6);
    if app.config.log_requests || took > Duration::from_secs(1) {
        let request_id = response.headers().get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
        tracing::info!(request_id, method, route, status, milliseconds = took.as_millis() as u64, "Handled a request");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_an_internal_error_with_its_words() {
        let caught = guarded::<()>(async { panic!("on purpose") }).await;
        let error = caught.err().unwrap().error;
        assert_eq!(reply::status(error.code), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(error.internal.as_deref(), Some("a panic: on purpose"));
        assert!(!error.message.contains("on purpose"));
    }

    #[test]
    fn paths_are_decoded_once() {
        assert_eq!((decode("a%41%2B+"), decode("%zz&x=1")), ("aA++".to_string(), "%zz&x=1".to_string()));
    }
}
