//! Routes that are not in the registry: health, readiness, the documentation, and the response to unknown paths.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, VARY};
use axum::http::{Method, Request, Response, StatusCode};
use serde_json::json;
use tracing::Instrument as _;

use super::fixed::Fixed;
use super::metrics::format::Format;
use super::{dispatch, docs, openapi, reply, session, span, visitors};
use crate::accounts;
use crate::app::App;
use crate::error::{Code, Error, Result};
use crate::migrations;
use crate::registry::{Page, registry};

static OPENAPI: LazyLock<Fixed> = LazyLock::new(|| Fixed::new("application/json", &openapi::TEXT));

/// Handles any request; `peer` is the other end of its connection.
pub async fn answer(app: Arc<App>, peer: SocketAddr, mut request: Request<Body>) -> Response<Body> {
    visitors::note_peer(request.extensions_mut(), peer);
    if session::enters(&mut request) {
        let mut response = dispatch::answer(app, request).await;
        // A browser keeps nothing of the business on its disk, for whoever uses it next.
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
        if let Some(version) = registry().pages_version {
            reply::insert(response.headers_mut(), HeaderName::from_static("x-kantoor-version"), version());
        }
        return response;
    }
    let path = request.uri().path();
    if path != "/v1/openapi.json" && (path.starts_with("/v1/") || path == "/v1") {
        return dispatch::answer(app, request).await;
    }
    let in_docs = path == "/docs" || path.starts_with("/docs/");
    let is_own = in_docs || matches!(path, "/v1/openapi.json" | "/health" | "/ready");
    if let Some(page) = registry().page(path).filter(|_| !is_own) {
        return answer_visitor(app, page, request).await;
    }
    let request_id = dispatch::request_id(&app, request.headers());
    let refuse = |code, message: &str| reply::error_response(&Error::new(code, message), &request_id, false);
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let mut response = if let Err(error) = limit(&app, &request) {
        reply::error_response(&error, &request_id, false)
    } else {
        match path {
            path if !reads && (is_own || path == "/") => {
                reply::with_allow(refuse(Code::MethodNotAllowed, "Only GET is supported here."), "GET, HEAD")
            }
            "/v1/openapi.json" => OPENAPI.answer(&request),
            "/health" => text("application/json", json!({"status": "ok"}).to_string()),
            "/ready" => ready(&app).await,
            _ if in_docs => docs::answer(&app, &request)
                .unwrap_or_else(|| refuse(Code::NotFound, "This page of the reference does not exist; see /docs.")),
            "/" => to_docs(),
            _ => refuse(Code::NotFound, "This path does not exist."),
        }
    };
    reply::finish(&mut response, &request_id);
    let headers = response.headers_mut();
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    headers.insert("x-frame-options", HeaderValue::from_static("DENY"));
    if request.method() == Method::HEAD { dispatch::without_body(response) } else { response }
}

/// Counts a request without a key. Health checks are not limited.
fn limit(app: &App, request: &Request<Body>) -> Result<()> {
    match request.uri().path() {
        "/health" | "/ready" => Ok(()),
        _ => app.visitors.limit(request.extensions(), request.headers()),
    }
}

/// Handles a request without a key to a page with a secret URL.
async fn answer_visitor(app: Arc<App>, page: &Page, request: Request<Body>) -> Response<Body> {
    let (started, method) = (Instant::now(), request.method().clone());
    let route = (page.route)(request.uri().path());
    let span = span::of(&method, request.headers());
    let response = (page.answer)(app.clone(), request).instrument(span.clone()).await;
    span::end(&span, &method, route, &response);
    dispatch::account_for(&app, &method, route, &response, started);
    response
}

/// Handles a request on the metrics listener.
pub async fn metrics(app: &App, path: &str, headers: &HeaderMap) -> Response<Body> {
    match path {
        "/metrics" => {
            let accept: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|one| one.to_str().ok()).collect();
            let format = Format::accepted(&accept.join(","));
            let mut response = text(format.content_type(), format.of(super::metrics::text(app).await));
            response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
            response
        }
        _ => reply::error_response(&Error::new(Code::NotFound, "Metrics are at /metrics."), "", false),
    }
}

fn text(kind: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn to_docs() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert("location", HeaderValue::from_static("/docs"));
    response
}

/// Checks whether the server can handle requests: the database accepts writes and has our schema, the disk has free
/// space, and every background loop makes progress. Each check is reported separately; the cause is in the log.
async fn ready(app: &Arc<App>) -> Response<Body> {
    let mut last = app.readiness.lock().await;
    let (all, body) = match &*last {
        Some((when, all, body)) if when.elapsed() < Duration::from_secs(1) => (*all, body.clone()),
        _ => {
            let (all, body) = look(app).await;
            *last = Some((Instant::now(), all, body.clone()));
            (all, body)
        }
    };
    let mut response = text("application/json", body);
    if !all {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

/// Time limit of a database check. The database's own timeouts are longer than a health check would wait.
const CHECK_TIMEOUT: Duration = Duration::from_secs(4);

async fn look(app: &Arc<App>) -> (bool, String) {
    let (written, migrated) = tokio::join!(in_time(writable(app)), in_time(migrated(app)));
    let checks = [("database", written), ("migrations", migrated), ("disk", disk(app)), ("loops", app.loops.check())];
    let all = checks.iter().all(|(_, check)| check.is_ok());
    let mut told = serde_json::Map::new();
    for (name, check) in checks {
        if let Err(cause) = &check {
            tracing::warn!(check = name, %cause, "Kantoor is not ready.");
        }
        let word = match check {
            Ok(()) => "ok".to_string(),
            Err(names) if name == "loops" => format!("failed: {names}"),
            Err(_) => "failed".to_string(),
        };
        told.insert(name.to_string(), json!(word));
    }
    (all, json!({"status": if all { "ready" } else { "not ready" }, "checks": told}).to_string())
}

async fn in_time(check: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let checked = tokio::time::timeout(CHECK_TIMEOUT, check).await;
    checked.unwrap_or_else(|_| Err("the database does not respond".to_string()))
}

async fn writable(app: &App) -> Result<(), String> {
    let done = app.store.write(accounts::SHARED, accounts::check_writable);
    done.await.map_err(|error| error.to_string())
}

async fn migrated(app: &Arc<App>) -> Result<(), String> {
    let (app, (tell, told)) = (app.clone(), tokio::sync::oneshot::channel());
    // On its own thread: requests may occupy all others.
    let started = std::thread::Builder::new().name("ready".into()).spawn(move || {
        let _ = tell.send(app.store.is_migrated(&migrations::all()));
    });
    started.map_err(|error| error.to_string())?;
    match told.await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err("the database schema is of another version".to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the database schema could not be checked".to_string()),
    }
}

fn disk(app: &App) -> Result<(), String> {
    let place = if app.config.data.exists() { app.config.data.as_path() } else { std::path::Path::new(".") };
    let state =
        rustix::fs::statvfs(place).map_err(|error| format!("the free disk space cannot be determined: {error}"))?;
    let free = state.f_bavail.saturating_mul(state.f_frsize) / (1024 * 1024);
    if free < app.config.min_free_disk_mib {
        return Err(format!("only {free} MiB free, {} required", app.config.min_free_disk_mib));
    }
    Ok(())
}
