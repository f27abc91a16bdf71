//! ID tokens.

use serde::Deserialize;
use serde_json::Value;

use crate::{Keys, Refused, decode, refused};

/// By how much the clocks of the issuer and of this machine may differ, in seconds.
const SKEW: i64 = 60;
/// How old a token may be, in seconds.
const MAX_AGE: i64 = 600;

/// What a token must say.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'e> {
    /// The issuer.
    pub issuer: &'e str,
    /// Our id at the issuer.
    pub client_id: &'e str,
    /// The nonce of the attempt.
    pub nonce: &'e str,
    /// The time, in seconds since 1970.
    pub now: i64,
}

/// What a token says about a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// The e-mail address, which the issuer has verified.
    pub email: String,
    /// When the person signed in there, in seconds since 1970, if the issuer says so.
    pub signed_in_at: Option<i64>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
    #[serde(default)]
    crit: Option<Value>,
}

#[derive(Deserialize)]
struct Body {
    iss: String,
    aud: Value,
    #[serde(default)]
    azp: Option<String>,
    exp: i64,
    iat: i64,
    #[serde(default)]
    nbf: i64,
    #[serde(default)]
    auth_time: Option<i64>,
    #[serde(default)]
    nonce: String,
    #[serde(default)]
    email: String,
    #[serde(default)]
    email_verified: Value,
}

impl Claims {
    /// Checks an ID token, and returns who it is about.
    pub fn of(token: &str, keys: &Keys, expected: &Expected) -> Result<Claims, Refused> {
        let shape = || refused("it is not a signed token");
        let (message, signature) = token.rsplit_once('.').ok_or_else(shape)?;
        let (header, body) = message.split_once('.').ok_or_else(shape)?;
        let header =
            decode(header).and_then(|bytes| serde_json::from_slice::<Header>(&bytes).ok()).ok_or_else(shape)?;
        let body = decode(body).ok_or_else(shape)?;
        let signature = decode(signature).ok_or_else(shape)?;
        if header.crit.is_some() {
            return Err(refused("it has a critical extension"));
        }
        keys.verify(&header.alg, &header.kid, message.as_bytes(), &signature)?;
        let body: Body =
            serde_json::from_slice(&body).map_err(|error| Refused(format!("a claim is wrong: {error}")))?;
        body.check(expected)?;
        if body.email.is_empty() || !body.has_verified_email() {
            return Err(refused("it has no verified e-mail address"));
        }
        Ok(Claims { email: body.email, signed_in_at: body.auth_time })
    }
}

impl Body {
    fn check(&self, expected: &Expected) -> Result<(), Refused> {
        if self.iss != expected.issuer {
            return Err(refused("it is from another issuer"));
        }
        let (is_ours, is_ours_alone) = match &self.aud {
            Value::String(one) => (one == expected.client_id, true),
            Value::Array(all) => (all.iter().any(|one| one == expected.client_id), all.len() == 1),
            _ => (false, false),
        };
        let is_party = self.azp.as_deref().map_or(is_ours_alone, |party| party == expected.client_id);
        if !is_ours || !is_party {
            return Err(refused("it is for another client"));
        }
        if self.nonce.is_empty() || self.nonce != expected.nonce {
            return Err(refused("it belongs to another attempt to sign in"));
        }
        let now = expected.now;
        if self.exp.saturating_add(SKEW) <= now || self.iat.saturating_add(MAX_AGE) <= now {
            return Err(refused("it has expired"));
        }
        if self.iat > now.saturating_add(SKEW) || self.nbf > now.saturating_add(SKEW) {
            return Err(refused("it is not valid yet"));
        }
        Ok(())
    }

    /// Some issuers write the truth value as text.
    fn has_verified_email(&self) -> bool {
        self.email_verified == true || self.email_verified == "true"
    }
}

#[cfg(test)]
mod tests;
