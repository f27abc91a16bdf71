//! Signatures according to Standard Webhooks 1.0.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Whether a secret can be used: nothing may be signed with a key that the receiver does not have.
pub fn is_secret(secret: &str) -> bool {
    !secret.is_empty() && key(secret).is_some()
}

fn key(secret: &str) -> Option<Vec<u8>> {
    STANDARD.decode(secret.trim_start_matches("whsec_")).ok()
}

/// Returns `v1,` and the HMAC-SHA256 of `id.timestamp.body` under the decoded secret, in Base64.
pub fn sign(secret: &str, id: &str, seconds: i64, body: &[u8]) -> String {
    // Secrets are checked when they are decrypted.
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
