//! Passkeys as second factors.

use std::net::IpAddr;

use engine::clock::Moment;
use engine::error::{Code, Error, FieldCode, Result, violation};
use engine::site::Site;
use passkeys::{Assertion, decode, encode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::Tx;

use crate::people::factor::{self, Factor, Method};

/// How long the browser waits for the person, in milliseconds.
pub(crate) const PATIENCE_MS: u32 = 300_000;

/// A registered passkey, as it is stored.
#[derive(Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) id: String,
    pub(crate) key: String,
}

/// A passkey that was used to sign in.
pub struct Used {
    credential: String,
    assertion: Assertion,
}

/// Returns what a browser needs to use one of these factors, if there is a passkey among them. The challenge follows from
/// the token of the second step, which is random and works once.
pub fn request(site: &Site, token: &str, factors: &[Factor]) -> Option<Value> {
    let own = own_site(site).ok()?;
    let ids = credentials(factors);
    let options = json!({
        "challenge": encode(&challenge_of(token)), "rpId": own.id, "allowCredentials": ids,
        "userVerification": "preferred", "timeout": PATIENCE_MS,
    });
    (!ids.is_empty()).then_some(options)
}

/// Returns the challenge of a second step.
pub fn challenge_of(token: &str) -> [u8; 32] {
    Sha256::new().chain_update(b"passkey of sign-in ").chain_update(token).finalize().into()
}

/// Returns the ids of the passkeys among these factors, as a browser expects them.
pub(crate) fn credentials(factors: &[Factor]) -> Vec<Value> {
    let stored = factors.iter().filter(|factor| factor.method == Method::Passkey).filter_map(stored);
    stored.map(|stored| json!({"type": "public-key", "id": stored.id})).collect()
}

fn stored(factor: &Factor) -> Option<Stored> {
    serde_json::from_str(&factor.credential).ok()
}

/// Whether people can use passkeys here: browsers bind them to a domain name.
pub fn is_possible(site: &Site) -> bool {
    own_site(site).is_ok()
}

/// Returns this server as the site of passkeys.
pub(crate) fn own_site(site: &Site) -> Result<passkeys::Site> {
    let address = site.address("/");
    let host = web::host(&address).filter(|host| host.parse::<IpAddr>().is_err());
    let origin = web::origin(&address).unwrap_or_default();
    let is_trusted = |host: &String| origin.starts_with("https://") || host == "localhost";
    let id = host.filter(is_trusted).ok_or_else(|| {
        let message = "Browsers allow passkeys only on a domain name with HTTPS. Set public_url, or add an authenticator app instead.";
        Error::new(Code::InvalidTransition, message)
    })?;
    Ok(passkeys::Site { id, origin })
}

impl Used {
    /// Reads what a browser returned: bytes in base64url.
    pub fn read(credential: &str, client_data: &str, authenticator_data: &str, signature: &str) -> Result<Used> {
        let assertion = Assertion {
            client_data: bytes("client_data", client_data)?,
            authenticator_data: bytes("authenticator_data", authenticator_data)?,
            signature: bytes("signature", signature)?,
        };
        Ok(Used { credential: credential.trim_end_matches('=').to_string(), assertion })
    }

    /// Checks that a passkey of the person signed this challenge; an error if not.
    pub fn prove(&self, tx: &mut Tx, site: &Site, person: &str, challenge: &[u8], now: Moment) -> Result<()> {
        let wrong = |why: &str| Error::new(Code::Unauthorized, format!("The passkey was rejected: {why}."));
        let own = own_site(site)?;
        let mut all = factor::of_person(tx, person)?.into_iter().filter_map(|factor| Some((stored(&factor)?, factor)));
        let (stored, factor) =
            all.find(|(stored, _)| stored.id == self.credential).ok_or_else(|| wrong("it is not one of yours"))?;
        let passkey = passkeys::Passkey {
            id: Vec::new(),
            key: decode(&stored.key).unwrap_or_default(),
            counter: u32::try_from(factor.counter).unwrap_or_default(),
        };
        let counter = passkeys::verify(&own, challenge, &passkey, &self.assertion).map_err(|why| wrong(why.0))?;
        match factor::use_passkey(tx, &factor, counter.into(), now)? {
            true => Ok(()),
            false => Err(wrong("it was used in the meantime")),
        }
    }
}

/// Reads a field in base64url.
pub(crate) fn bytes(field: &'static str, text: &str) -> Result<Vec<u8>> {
    let wrong = || Error::field(field, violation(FieldCode::InvalidFormat, "is not base64url without padding"));
    decode(text.trim_end_matches('=')).ok_or_else(wrong)
}
