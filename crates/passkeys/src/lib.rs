//! Passkeys: checks what a browser returns from `navigator.credentials.create()` and `.get()` (Web Authentication, level 2).
//!
//! No attestation is asked for: which brand of authenticator somebody uses does not matter. What matters is that the same
//! key signs our challenge again, on our own site.

mod data;
mod key;

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use data::AuthenticatorData;
pub use key::{ALGORITHMS, Key};

/// The site that passkeys belong to.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its host name.
    pub id: String,
    /// Its origin, such as `https://kantoor.example`.
    pub origin: String,
}

/// A registered passkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passkey {
    /// The id that its authenticator chose.
    pub id: Vec<u8>,
    /// Its public key, as a COSE key.
    pub key: Vec<u8>,
    /// How often it was used, if the authenticator counts; 0 otherwise.
    pub counter: u32,
}

/// What a browser returns for a new passkey.
#[derive(Clone, Debug)]
pub struct Registration {
    /// `response.clientDataJSON`.
    pub client_data: Vec<u8>,
    /// `response.getAuthenticatorData()`.
    pub authenticator_data: Vec<u8>,
}

/// What a browser returns when a passkey is used.
#[derive(Clone, Debug)]
pub struct Assertion {
    /// `response.clientDataJSON`.
    pub client_data: Vec<u8>,
    /// `response.authenticatorData`.
    pub authenticator_data: Vec<u8>,
    /// `response.signature`.
    pub signature: Vec<u8>,
}

/// Why a response of a browser is rejected, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub &'static str);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Refused {}

/// Checks a new passkey.
pub fn register(site: &Site, challenge: &[u8], registration: &Registration) -> Result<Passkey, Refused> {
    check_client(site, "webauthn.create", challenge, &registration.client_data)?;
    let data = AuthenticatorData::parse(&registration.authenticator_data)?;
    data.check(site)?;
    let (id, key) = data.credential.ok_or(Refused("there is no new key in it"))?;
    Key::parse(key)?.check()?;
    Ok(Passkey { id: id.to_vec(), key: key.to_vec(), counter: data.counter })
}

/// Checks the use of a passkey; returns its new counter.
pub fn verify(site: &Site, challenge: &[u8], passkey: &Passkey, assertion: &Assertion) -> Result<u32, Refused> {
    check_client(site, "webauthn.get", challenge, &assertion.client_data)?;
    let data = AuthenticatorData::parse(&assertion.authenticator_data)?;
    data.check(site)?;
    let mut signed = assertion.authenticator_data.clone();
    signed.extend_from_slice(&Sha256::digest(&assertion.client_data));
    Key::parse(&passkey.key)?.verify(&signed, &assertion.signature)?;
    // A counter that does not grow is that of a copy.
    if (passkey.counter > 0 || data.counter > 0) && data.counter <= passkey.counter {
        return Err(Refused("its counter did not grow: it may have been copied"));
    }
    Ok(data.counter)
}

/// What the browser signs about itself.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientData {
    r#type: String,
    challenge: String,
    origin: String,
    #[serde(default)]
    cross_origin: bool,
}

fn check_client(site: &Site, kind: &str, challenge: &[u8], client_data: &[u8]) -> Result<(), Refused> {
    let client: ClientData = serde_json::from_slice(client_data).map_err(|_| Refused("the client data is not JSON"))?;
    if client.r#type != kind {
        return Err(Refused("it is the response to another request"));
    }
    if client.challenge != encode(challenge) {
        return Err(Refused("it is the response to another challenge"));
    }
    if client.origin != site.origin || client.cross_origin {
        return Err(Refused("it was made on another site"));
    }
    Ok(())
}

/// Returns bytes in base64url without padding, as browsers exchange them.
pub fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads bytes in base64url without padding.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests;
