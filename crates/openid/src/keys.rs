//! The keys with which an issuer signs (RFC 7517), of the types that issuers use: RSA and P-256.

use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;

use crate::{Refused, decode, refused};

/// The keys of an issuer.
#[derive(Clone, Debug, Deserialize)]
pub struct Keys {
    keys: Vec<Key>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Key {
    kty: String,
    kid: String,
    r#use: String,
    crv: String,
    n: String,
    e: String,
    x: String,
    y: String,
}

impl Keys {
    /// Reads the keys that an issuer publishes.
    pub fn read(json: &[u8]) -> Result<Keys, Refused> {
        serde_json::from_slice(json).map_err(|error| Refused(format!("its keys are not usable: {error}")))
    }

    /// Checks a signature with the key of this id, or with any if there is none. The type of the key decides about the
    /// algorithm, so a token cannot choose a weaker one.
    pub(crate) fn verify(&self, algorithm: &str, id: &str, message: &[u8], signature: &[u8]) -> Result<(), Refused> {
        let fits = |key: &&Key| (id.is_empty() || key.kid == id) && matches!(key.r#use.as_str(), "" | "sig");
        let mut candidates = self.keys.iter().filter(fits).filter(|key| key.algorithm() == algorithm).peekable();
        if candidates.peek().is_none() {
            return Err(Refused(format!("it has no key '{id}' for {algorithm}")));
        }
        match candidates.any(|key| key.verify(message, signature).is_some()) {
            true => Ok(()),
            false => Err(refused("the signature is wrong")),
        }
    }
}

impl Key {
    fn algorithm(&self) -> &'static str {
        match (self.kty.as_str(), self.crv.as_str()) {
            ("RSA", _) => "RS256",
            ("EC", "P-256") => "ES256",
            _ => "an unknown algorithm",
        }
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Option<()> {
        if self.algorithm() == "RS256" {
            let (n, e) = (decode(&self.n)?, decode(&self.e)?);
            let key = RsaPublicKeyComponents { n: &n, e: &e };
            return key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).ok();
        }
        let point = [vec![4], decode(&self.x)?, decode(&self.y)?].concat();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).ok()
    }
}
