//! Uploads: an input is the content type on a line of its own, then the body.

use axum::http::{HeaderValue, Request, StatusCode};
use serde_json::Value;

use super::Run;
use super::server::Server;

pub const WORDS: &[&str] = &[
    "\r\n",
    "\r\n\r\n",
    "--",
    "--b",
    "--b--",
    "\r\n--b\r\n",
    "Content-Disposition: form-data; ",
    "name=\"file\"",
    "name=\"name\"",
    "; filename=\"",
    "filename*=UTF-8''",
    "%00",
    "Content-Type: ",
    "image/png",
    "text/html; charset=utf-16",
    "multipart/form-data; boundary=",
    "boundary=\"",
    "\u{89}PNG\r\n",
    "../",
    "\0",
    "é",
];

pub fn open() -> Run {
    let server = Server::open();
    Box::new(move |input| check(&server, input))
}

fn check(server: &Server, input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (kind, body) = input.split_at(end);
    let body = body.get(1..).unwrap_or_default().to_vec();
    let Ok(kind) = HeaderValue::from_bytes(kind) else { return };
    let upload = Request::post("/v1/files")
        .header("authorization", format!("Bearer {}", server.key))
        .header("content-type", kind);
    let (status, made) = server.answer(upload.body(body.into()).unwrap());
    if status != StatusCode::CREATED {
        return;
    }
    // An accepted file can be downloaded, and its name never leads elsewhere.
    let made: Value = serde_json::from_slice(&made).unwrap();
    let (id, name) = (made["data"]["id"].as_str().unwrap(), made["data"]["name"].as_str().unwrap());
    assert!(!name.contains(['/', '\\', '\0', '\n', '\r']), "{name:?}");
    let fetch = Request::get(format!("/v1/files/{id}/content"))
        .header("authorization", format!("Bearer {}", server.key))
        .body(Default::default())
        .unwrap();
    let (status, content) = server.answer(fetch);
    assert_eq!(
        (status, content.len() as u64),
        (StatusCode::OK, made["data"]["meta"]["size"].as_u64().unwrap()),
        "{made}"
    );
}
