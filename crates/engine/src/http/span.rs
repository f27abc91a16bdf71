//! The span of a request, for traces.

use axum::body::Body;
use axum::http::{HeaderMap, Method, Response};
use tracing::Span;
use tracing::field::Empty;

/// Starts the span of a request, as part of the caller's trace if there is one.
pub fn of(method: &Method, headers: &HeaderMap) -> Span {
    let span = tracing::info_span!(
        target: "kantoor::trace", "request", otel.kind = "server", otel.status_code = Empty,
        http.request.method = method.as_str(), http.route = Empty, http.response.status_code = Empty,
        kantoor.account = Empty, kantoor.request_id = Empty,
    );
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(parent) = text("traceparent").filter(|_| !span.is_disabled()) {
        traces::continue_from(&span, parent, text("tracestate"));
    }
    span
}

/// Completes the span with what became of the request.
pub fn end(span: &Span, method: &Method, route: &str, response: &Response<Body>) {
    if span.is_disabled() {
        return;
    }
    // Without a route, a path is anything that a caller made up.
    if route.is_empty() {
        traces::rename(span, method.to_string());
    } else {
        traces::rename(span, format!("{method} {route}"));
        span.record("http.route", route);
    }
    span.record("http.response.status_code", response.status().as_u16());
    if let Some(id) = response.headers().get("x-request-id").and_then(|id| id.to_str().ok()) {
        span.record("kantoor.request_id", id);
    }
    if response.status().is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
}
