//! Static pages and files. All requests share the same bytes, compressed or not, so a client that never reads its response costs
//! no memory.

use std::io::Write as _;

use axum::body::{Body, Bytes};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, VARY,
};
use axum::http::{Request, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::reply;
use crate::contents::hex;

/// A static page or file.
pub struct Fixed {
    kind: &'static str,
    plain: Bytes,
    packed: Bytes,
    tag: String,
    cache: &'static str,
}

impl Fixed {
    /// Prepares a page of this media type. Browsers ask each time whether it has changed.
    pub fn new(kind: &'static str, text: &'static str) -> Fixed {
        Fixed::of(kind, Bytes::from_static(text.as_bytes()), "no-cache")
    }

    /// Prepares a page that was rendered. Browsers ask each time whether it has changed.
    pub fn page(kind: &'static str, content: Bytes) -> Fixed {
        Fixed::of(kind, content, "no-cache")
    }

    /// Prepares a file of this media type whose path changes with its content, so that browsers keep it.
    pub fn immutable(kind: &'static str, content: Bytes) -> Fixed {
        Fixed::of(kind, content, "public, max-age=31536000, immutable")
    }

    fn of(kind: &'static str, plain: Bytes, cache: &'static str) -> Fixed {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        // Writing to memory does not fail; if it did, everyone would get the uncompressed form.
        let packed = packer.write_all(&plain).and_then(|()| packer.finish()).unwrap_or_default();
        // Pictures do not become smaller.
        let packed = if packed.len() < plain.len() { packed } else { Vec::new() };
        let tag = hex(&Sha256::digest(&plain)[..16]);
        Fixed { kind, plain, packed: packed.into(), tag, cache }
    }

    /// Returns the page in an encoding that the client accepts; 304 if the client has it.
    pub fn answer(&self, request: &Request<Body>) -> Response<Body> {
        let packed = !self.packed.is_empty() && takes_gzip(request.headers());
        let body = if packed { &self.packed } else { &self.plain };
        let mut response = Response::new(Body::from(body.clone()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(self.cache));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        // The two encodings have different bytes, so they have different tags.
        let end = if packed { "-gzip" } else { "" };
        reply::insert(headers, ETAG, &format!("\"{}{end}\"", self.tag));
        if packed {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        reply::unless_known(request.headers(), response)
    }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        let refused = matches!(weight.trim().to_lowercase().as_str(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn everybody_shares_the_same_bytes() {
        let page = Fixed::new("text/plain", "words words words words words words");
        for encoding in ["identity", "gzip"] {
            let mut places = Vec::new();
            for _ in 0..2 {
                let request = Request::builder().header(ACCEPT_ENCODING, encoding).body(Body::empty()).unwrap();
                let body = page.answer(&request).into_body().collect().await.unwrap().to_bytes();
                places.push(body.as_ptr());
            }
            assert_eq!(places[0], places[1], "{encoding}");
        }
    }

    #[test]
    fn sends_gzip_to_clients_that_accept_it() {
        for (says, takes) in [("", false), ("br", false), ("gzip", true), ("br, GZIP;q=0.5", true), ("gzip;q=0", false)]
        {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, says.parse().unwrap());
            assert_eq!(takes_gzip(&headers), takes, "{says}");
        }
    }
}
