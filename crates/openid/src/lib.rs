//! Signing in at an OpenID Connect issuer: the authorization code flow with PKCE, and checks of the ID token that the issuer
//! returns (OpenID Connect Core 1.0, RFC 7636). The HTTP calls are those of the caller.

mod keys;
mod token;

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;
use sha2::{Digest, Sha256};

pub use keys::Keys;
pub use token::{Claims, Expected};

/// Why the issuer's response is rejected, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

fn refused(why: &str) -> Refused {
    Refused(why.to_string())
}

/// What an issuer says about itself.
#[derive(Clone, Debug, Deserialize)]
pub struct Discovery {
    issuer: String,
    authorization_endpoint: String,
    /// Where a code is exchanged for tokens.
    pub token_endpoint: String,
    /// Where the issuer's keys are.
    pub jwks_uri: String,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
}

impl Discovery {
    /// Returns where an issuer describes itself.
    pub fn address(issuer: &str) -> String {
        format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
    }

    /// Reads the description of this issuer.
    pub fn read(issuer: &str, json: &[u8]) -> Result<Discovery, Refused> {
        let found: Discovery =
            serde_json::from_slice(json).map_err(|error| Refused(format!("its description is not usable: {error}")))?;
        if found.issuer != issuer {
            return Err(Refused(format!("it calls itself {}", found.issuer)));
        }
        Ok(found)
    }

    /// Whether the client names its secret in the body of the request for tokens, instead of a header.
    pub fn wants_secret_in_body(&self) -> bool {
        let knows = |name: &str| self.token_endpoint_auth_methods_supported.iter().any(|own| own == name);
        knows("client_secret_post") && !knows("client_secret_basic")
    }
}

/// One attempt to sign in: everything that ties the response to it follows from one secret, which only the browser of the
/// person has.
#[derive(Clone)]
pub struct Attempt {
    secret: String,
}

impl Attempt {
    /// An attempt with this random secret.
    pub fn new(secret: &str) -> Attempt {
        Attempt { secret: secret.to_string() }
    }

    fn part(&self, name: &str) -> String {
        let digest = Sha256::new().chain_update(name).chain_update([0]).chain_update(&self.secret).finalize();
        BASE64_URL_SAFE_NO_PAD.encode(digest)
    }

    /// Returns the value that comes back with the code.
    pub fn state(&self) -> String {
        self.part("state")
    }

    /// Returns the value that comes back in the ID token.
    pub fn nonce(&self) -> String {
        self.part("nonce")
    }

    /// Returns the value that proves that the code was requested by us.
    pub fn verifier(&self) -> String {
        self.part("verifier")
    }

    /// Returns the address where the person signs in.
    pub fn address(&self, discovery: &Discovery, client_id: &str, redirect_uri: &str) -> String {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier()));
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("response_type", "code").append_pair("client_id", client_id);
        query.append_pair("redirect_uri", redirect_uri).append_pair("scope", "openid email profile");
        query.append_pair("state", &self.state()).append_pair("nonce", &self.nonce());
        query.append_pair("code_challenge", &challenge).append_pair("code_challenge_method", "S256");
        // Whoever signed in there longer ago proves it again: signing in also confirms dangerous actions.
        query.append_pair("max_age", MAX_AGE_SECONDS);
        let start = &discovery.authorization_endpoint;
        let separator = if start.contains('?') { '&' } else { '?' };
        format!("{start}{separator}{}", query.finish())
    }
}

/// How long ago the person may have signed in at the issuer: as long as a password confirms dangerous actions.
const MAX_AGE_SECONDS: &str = "900";

/// The response of the token endpoint.
#[derive(Deserialize)]
struct Tokens {
    id_token: String,
}

/// Returns the ID token in the response of the token endpoint.
pub fn id_token(json: &[u8]) -> Result<String, Refused> {
    let tokens: Tokens = serde_json::from_slice(json).map_err(|_| refused("its response has no ID token"))?;
    Ok(tokens.id_token)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()
}
