//! Signatures according to Standard Webhooks 1.0.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::error::Violation;
use engine::json::Json;
use engine::record::{Kind, Rules};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value as Schema;
use sha2::Sha256;
use store::{Row, Value};

/// A signing secret: `whsec_` and Base64. Empty means none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secret(pub String);

impl Kind for Secret {
    fn to_db(&self) -> Value<'_> {
        (&self.0).into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        let text = row.text(column)?;
        match key(text) {
            // Nothing may be signed with a key that the receiver does not have.
            None => Err(store::Error::unreadable("it is not a secret in base64")),
            Some(_) => Ok(Secret(text.to_string())),
        }
    }

    fn from_json(json: &Json, rules: &Rules) -> Result<Self, Violation> {
        String::from_json(json, rules).map(Secret)
    }

    fn to_json(&self, rules: &Rules, out: &mut Vec<u8>) {
        self.0.to_json(rules, out);
    }

    fn schema(rules: &Rules) -> Schema {
        String::schema(rules)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn key(secret: &str) -> Option<Vec<u8>> {
    STANDARD.decode(secret.trim_start_matches("whsec_")).ok()
}

/// Returns `v1,` and the HMAC-SHA256 of `id.timestamp.body` under the decoded secret, in Base64.
pub fn sign(secret: &str, id: &str, seconds: i64, body: &[u8]) -> String {
    // An undecodable value never becomes a `Secret`.
    let key = key(secret).unwrap_or_default();
    let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(&key) else {
        unreachable!("HMAC takes keys of any length")
    };
    mac.update(format!("{id}.{seconds}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's own libraries.
    #[test]
    fn matches_the_reference_signature() {
        let signed = sign(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
