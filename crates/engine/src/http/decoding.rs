//! Decodes request bodies: parses the JSON, hashes it for its idempotency key, validates the fields and sanitizes HTML,
//! which takes up to 70 ms for a text of 64 KB. A body that may take longer than a millisecond is decoded on a blocking
//! thread when it is the account's turn, so that the requests of others do not wait for it.

use axum::http::{HeaderValue, Method, Uri};

use crate::app::App;
use crate::call::Call;
use crate::error::{Error, Result};
use crate::idempotency::Claim;
use crate::json::Json;
use crate::records::Work;
use crate::resource::{RequestBody, Route};
use crate::turns;

/// Maximum cost of a body that is decoded on the thread of its request. A byte costs 1.
const MAX_INLINE_COST: usize = 16 * 1024;
/// The cost of a character that may start a tag, a character reference or an escape sequence. Sanitizing a tag takes
/// about a microsecond, which is as long as parsing this many bytes of JSON.
const MARKUP_COST: usize = 16;

/// A request whose body has been received.
pub struct Undecoded {
    /// Its route.
    pub route: &'static Route,
    /// Its method.
    pub method: Method,
    /// Its URI.
    pub uri: Uri,
    /// Its `Idempotency-Key`.
    pub key: Option<HeaderValue>,
    /// The body, or the identity of the uploaded file.
    pub bytes: Vec<u8>,
    /// The call, without the body and the key.
    pub call: Call,
}

/// A decoded request.
pub struct Decoded {
    /// The claim on its idempotency key.
    pub claim: Option<Claim>,
    /// What the handler returned.
    pub work: Result<Work>,
}

/// Decodes a request of an account.
pub async fn decode(app: &App, account: i64, request: Undecoded) -> Result<Decoded> {
    if cost(&request.bytes) <= MAX_INLINE_COST {
        return request.decode();
    }
    let turn = turns::take(&app.decoding, account).await?;
    let decoding = tokio::task::spawn_blocking(move || {
        let decoded = request.decode();
        // Not earlier: the work continues even if the client disconnects.
        drop(turn);
        decoded
    });
    decoding.await.unwrap_or_else(|panic| Err(Error::internal(format!("decoding a body: {panic}"))))
}

fn cost(body: &[u8]) -> usize {
    let markup = body.iter().filter(|byte| matches!(byte, b'&' | b'<' | b'\\')).count();
    body.len() + MARKUP_COST * markup
}

impl Undecoded {
    fn decode(self) -> Result<Decoded> {
        let parsed = parse(self.route, &self.bytes);
        let body = parsed.as_ref().ok().and_then(Option::as_ref);
        let claim = claim(&self.method, &self.uri, self.key.as_ref(), &self.bytes, body)?;
        let key = claim.as_ref().map(|claim| claim.key().to_string()).unwrap_or_default();
        let call = Call { body: parsed?, claim: key, ..self.call };
        Ok(Decoded { claim, work: (self.route.handler)(call) })
    }
}

fn parse(route: &Route, body: &[u8]) -> Result<Option<Json>> {
    match route.body {
        _ if route.reads() => Ok(None),
        RequestBody::File => Ok(None),
        RequestBody::Nothing | RequestBody::Maybe if body.is_empty() => Ok(None),
        // No body is the same as an empty object: the error names the required fields.
        _ if body.is_empty() => Ok(Some(Json::Object(Vec::new()))),
        _ => Json::parse(body).map(Some),
    }
}

/// Returns the claim on the idempotency key of a POST, if it has one.
pub fn claim(
    method: &Method,
    uri: &Uri,
    key: Option<&HeaderValue>,
    body: &[u8],
    parsed: Option<&Json>,
) -> Result<Option<Claim>> {
    let Some(key) = key.filter(|_| method == Method::POST) else { return Ok(None) };
    // A key that is not ASCII is invalid too; the claim reports it.
    let key = key.to_str().unwrap_or_default();
    Claim::new(key, method.as_str(), uri.path(), body, parsed).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cheap_bodies_are_decoded_inline() {
        let is_inline = |body: String| cost(body.as_bytes()) <= MAX_INLINE_COST;
        assert!(is_inline("x".repeat(16_000)) && is_inline("<p>x</p>".repeat(300)));
        for body in ["x".repeat(17_000), "&".repeat(1000), "<b>".repeat(1000), "\\u0026".repeat(1000)] {
            assert!(!is_inline(body));
        }
    }
}
