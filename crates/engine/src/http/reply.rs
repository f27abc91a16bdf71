//! Converts a response or an error into an HTTP response.

use axum::body::Body;
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH, LINK, LOCATION,
    RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, Response, StatusCode};
use serde_json::json;

use super::responses::Unsent;
use crate::call::{After, Answer, Content, Outcome};
use crate::error::{Class, Code, Error, FieldError};
use crate::idempotency::Stored;

/// Returns the status of an error.
pub fn status(code: Code) -> StatusCode {
    match code.class() {
        Class::BadRequest => StatusCode::BAD_REQUEST,
        Class::Unauthorized => StatusCode::UNAUTHORIZED,
        Class::Forbidden => StatusCode::FORBIDDEN,
        Class::NotFound => StatusCode::NOT_FOUND,
        Class::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Class::Timeout => StatusCode::REQUEST_TIMEOUT,
        Class::Conflict => StatusCode::CONFLICT,
        Class::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        Class::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Class::UnsupportedMedia => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Class::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        Class::TooMany => StatusCode::TOO_MANY_REQUESTS,
        Class::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Class::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A response before serialization.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The part that is stored for replays.
    pub stored: Stored,
    /// A content to send instead.
    pub content: Option<Content>,
    /// Work to do outside the transaction before responding.
    pub after: Option<After>,
    /// A counter and its label value to increment.
    pub counts: Option<(&'static str, &'static str)>,
    /// The `Link` header, or empty.
    pub link: String,
    /// Whether it is a replay.
    pub replayed: bool,
}

/// Maximum size of the `Link` header, which repeats the query for each page. Proxies reserve 4 KB for all headers of a response and
/// reject one with more.
const MAX_LINK: usize = 3000;

impl Reply {
    /// Creates the reply for a response; `link` returns the URL of a page.
    pub fn of(answer: Answer, link: impl Fn(i64) -> String) -> Reply {
        let status = match answer.outcome {
            Outcome::Done => 200,
            Outcome::Created => 201,
            Outcome::Started => 202,
            Outcome::Empty => 204,
        };
        let mut body = Vec::new();
        if answer.outcome != Outcome::Empty {
            let (start, end) = (b"{\"data\":", format!(",\"meta\":{{{}}}}}", answer.meta.join(",")));
            // In place: a copy of a large response would take its memory twice.
            body = answer.data;
            body.reserve_exact(start.len() + end.len());
            body.splice(0..0, start.iter().copied());
            body.extend_from_slice(end.as_bytes());
        }
        let links: Vec<String> =
            answer.pages.iter().map(|(relation, page)| format!("<{}>; rel=\"{relation}\"", link(*page))).collect();
        Reply {
            stored: Stored {
                status,
                location: answer.location.unwrap_or_default(),
                etag: answer.version.map(|version| format!("\"{version}\"")).unwrap_or_default(),
                body: String::from_utf8(body).unwrap_or_default(),
                headers: answer.headers.iter().map(|(name, text)| format!("{name}: {text}\n")).collect(),
            },
            content: answer.content,
            after: answer.after,
            counts: answer.counts,
            link: Some(links.join(", ")).filter(|link| link.len() <= MAX_LINK).unwrap_or_default(),
            replayed: false,
        }
    }

    /// Creates the reply for a stored response.
    pub fn again(stored: Stored) -> Reply {
        Reply { stored, content: None, after: None, counts: None, link: String::new(), replayed: true }
    }

    /// Converts the reply into an HTTP response, which is counted until it is sent.
    pub fn into_response(self, unsent: Unsent) -> Response<Body> {
        let Stored { status, location, etag, body, headers: own } = self.stored;
        let mut response = Response::new(unsent.body(body));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
        let headers = response.headers_mut();
        if status != 204 {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, text) in [(LOCATION, location), (ETAG, etag), (LINK, self.link)] {
            if !text.is_empty() {
                insert(headers, name, &text);
            }
        }
        for (name, text) in own.lines().filter_map(|line| line.split_once(": ")) {
            if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
                insert(headers, name, text);
            }
        }
        if self.replayed {
            headers.insert("x-idempotent-replay", HeaderValue::from_static("true"));
        }
        response
    }
}

/// Returns the body of an error in the envelope.
pub fn error_body(error: &Error, request_id: &str) -> String {
    let body = json!({
        "error": {"code": error.code.wire(), "message": error.message, "details": details(error)},
        "data": {},
        "meta": {"request_id": request_id},
    });
    body.to_string()
}

/// Converts an error into an HTTP response; `problem` selects the format of RFC 9457.
pub fn error_response(error: &Error, request_id: &str, problem: bool) -> Response<Body> {
    let status = status(error.code);
    let (kind, body) = if problem {
        let body = json!({
            "type": format!("urn:kantoor:error:{}", error.code.wire()),
            "title": error.code.meaning(),
            "status": status.as_u16(),
            "detail": error.message,
            "code": error.code.wire(),
            "errors": details(error),
            "request_id": request_id,
        });
        ("application/problem+json", body.to_string())
    } else {
        ("application/json", error_body(error, request_id))
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Some(seconds) = error.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(path) = &error.location {
        insert(headers, LOCATION, path);
    }
    if error.code == Code::Unauthorized {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"kantoor\""));
    }
    response
}

fn details(error: &Error) -> Vec<serde_json::Value> {
    let detail = |fault: &FieldError| {
        let FieldError { field, wrong } = fault;
        let mut detail = json!({"field": field, "code": wrong.code.wire(), "message": wrong.message});
        if let Some(count) = wrong.count {
            detail["count"] = json!(count);
        }
        detail
    };
    error.faults.iter().map(detail).collect()
}

/// Adds the `Allow` header to a response.
pub fn with_allow(mut response: Response<Body>, allow: &str) -> Response<Body> {
    insert(response.headers_mut(), ALLOW, allow);
    response
}

/// Adds the headers that every response of the API has.
pub fn finish(response: &mut Response<Body>, request_id: &str) {
    let headers = response.headers_mut();
    insert(headers, HeaderName::from_static("x-request-id"), request_id);
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    }
}

/// Inserts a header, unless its text is not a valid header value.
pub fn insert(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

/// Returns 304 if the client already has this version.
pub fn unless_known(headers: &HeaderMap, mut response: Response<Body>) -> Response<Body> {
    let (Some(known), Some(tag)) = (headers.get(IF_NONE_MATCH), response.headers().get(ETAG)) else {
        return response;
    };
    let (known, tag) = (known.to_str().unwrap_or_default(), tag.to_str().unwrap_or_default());
    let same = known.split(',').map(|tag| tag.trim().trim_start_matches("W/")).any(|one| one == tag || one == "*");
    if same && response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(CONTENT_TYPE);
        response.headers_mut().remove(CONTENT_ENCODING);
    }
    response
}
