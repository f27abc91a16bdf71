//! Signed URLs: an input is a path and a query, with placeholders for values that only a server knows. Only the correct
//! URL gives access.

use axum::body::Body;
use axum::http::{Request, StatusCode, Uri};
use serde_json::Value;

use super::Run;
use super::server::Server;

pub const WORDS: &[&str] = &[
    "PATH",
    "ACCOUNT",
    "UNTIL",
    "SIGNATURE",
    "?account=",
    "&until=",
    "&signature=",
    "account=ACCOUNT",
    "until=UNTIL",
    "signature=SIGNATURE",
    "&",
    "=",
    "%00",
    "%2F",
    "/../",
    "//",
    "+",
    "-",
    "9223372036854775807",
    "/v1/files/",
    "/content",
];

const CONTENT: &[u8] = b"These are the contents.";

pub fn open() -> Run {
    let server = Server::open();
    let body = [
        b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n",
        CONTENT,
        b"\r\n--b--\r\n",
    ]
    .concat();
    let upload = Request::post("/v1/files")
        .header("authorization", format!("Bearer {}", server.key))
        .header("content-type", "multipart/form-data; boundary=b");
    let (status, made) = server.answer(upload.body(body.into()).unwrap());
    let made: Value = serde_json::from_slice(&made).unwrap();
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let url: Uri = made["data"]["url"].as_str().unwrap_or_else(|| panic!("no url: {made}")).parse().unwrap();
    let path = url.path().to_string();
    let query = url.query().unwrap_or_default().to_string();
    Box::new(move |input| check(&server, &path, &query, input))
}

fn check(server: &Server, path: &str, query: &str, input: &[u8]) {
    let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)).unwrap();
    let Ok(text) = std::str::from_utf8(input) else { return };
    let text = text
        .trim_end_matches('\n')
        .replace("PATH", path)
        .replace("ACCOUNT", value("account="))
        .replace("UNTIL", value("until="))
        .replace("SIGNATURE", value("signature="));
    let Ok(uri) = text.parse::<Uri>() else { return };
    // The server takes a path from its connections, never a host.
    if !text.starts_with('/') {
        return;
    }
    let own = uri.path() == path;
    let (status, body) = server.answer(Request::get(uri).body(Body::empty()).unwrap());
    if text == format!("{path}?{query}") {
        assert_eq!((status, &body[..]), (StatusCode::OK, CONTENT), "the right address opens");
    }
    if text.starts_with("/v1/") && text.contains("signature") && status.is_success() {
        let signed = ["account=", "until=", "signature="].iter().all(|name| text.contains(value(name)));
        assert!(own && signed && body == CONTENT, "{status} at {text}: {}", body.escape_ascii());
    }
}
