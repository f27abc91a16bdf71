//! The public URL of this server, and signed URLs that give access to one content for a limited time.

use std::sync::OnceLock;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use store::{Migration, Store};

use crate::accounts::SHARED;
use crate::clock::Moment;
use crate::error::{Error, Result};
use crate::query::Query;

/// The table of the server's own secrets.
pub const MIGRATION: Migration = Migration {
    number: 23,
    name: "secrets",
    sql: "
CREATE TABLE secrets (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
",
};

const HOUR_MS: i64 = 3_600_000;
/// How long a signed URL is valid, plus up to an hour: it changes once an hour, so that browsers can cache its content.
const VALID_MS: i64 = 24 * HOUR_MS;

/// The public URL of this server.
pub struct Site {
    base: OnceLock<String>,
    key: Vec<u8>,
    /// Keyed once: a list of files has a signature for each.
    mac: Hmac<Sha256>,
}

impl Site {
    /// Opens the site at `public_url`, or if that is empty, at the address that the server listens on. The signing key
    /// is generated once, and is the same on all nodes.
    pub fn open(store: &Store, public_url: &str) -> Result<Site> {
        let mut new = [0u8; 32];
        getrandom::fill(&mut new)
            .map_err(|error| Error::internal(format!("cannot generate random numbers: {error}")))?;
        let key = store.write_now(SHARED, move |tx| {
            tx.execute(
                "INSERT INTO secrets (name, value) VALUES ('addresses', $1) ON CONFLICT (name) DO NOTHING",
                &[new.as_slice().into()],
            )?;
            let find = "SELECT value FROM secrets WHERE name = 'addresses'";
            let found = tx.first(find, &[], |row| Ok::<_, Error>(row.bytes(0)?.to_vec()))?;
            found.ok_or_else(|| Error::internal("the signing key for URLs is missing"))
        })?;
        let base = OnceLock::new();
        if !public_url.is_empty() {
            let _ = base.set(public_url.trim_end_matches('/').to_string());
        }
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&key).unwrap_or_else(|_| unreachable_key());
        Ok(Site { base, key, mac })
    }

    /// Sets the address that the server listens on, in case the settings have no URL.
    pub fn serves_at(&self, address: &str) {
        let _ = self.base.set(format!("http://{address}"));
    }

    /// Whether visitors use HTTPS.
    pub fn is_secure(&self) -> bool {
        self.base.get().is_some_and(|base| base.starts_with("https://"))
    }

    /// Returns the absolute URL of a path.
    pub fn address(&self, path: &str) -> String {
        format!("{}{path}", self.base.get().map_or("", String::as_str))
    }

    /// Returns the absolute URL of a path, signed for a day of access without a key.
    pub fn signed(&self, account: i64, now: Moment, path: &str) -> String {
        let until = (now.0 / HOUR_MS + 1) * HOUR_MS + VALID_MS;
        let signature = hex(&self.signature(path, account, until).finalize().into_bytes());
        self.address(&format!("{path}?account={account}&until={}&signature={signature}", until / 1000))
    }

    /// Returns the secret that signs the outgoing calls of an account.
    pub fn signing_secret(&self, account: i64) -> Vec<u8> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.key).unwrap_or_else(|_| unreachable_key());
        mac.update(format!("calls of account {account}").as_bytes());
        mac.finalize().into_bytes().to_vec()
    }

    /// Signs a call of an account.
    pub fn sign_for(&self, account: i64, text: &str) -> Vec<u8> {
        let secret = self.signing_secret(account);
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&secret).unwrap_or_else(|_| unreachable_key());
        mac.update(text.as_bytes());
        mac.finalize().into_bytes().to_vec()
    }

    /// Returns the account of a signed URL, if it is valid for `path` at `now`.
    pub fn opens(&self, path: &str, query: &Query, now: Moment) -> Option<i64> {
        let account: i64 = query.get("account")?.parse().ok()?;
        let until: i64 = query.get("until")?.parse().ok()?;
        let signature = unhex(query.get("signature")?)?;
        let until = until.checked_mul(1000)?;
        let right = self.signature(path, account, until).verify_slice(&signature).is_ok();
        (right && now.0 < until).then_some(account)
    }

    /// Returns unguessable letters and digits, always the same for the same id.
    pub fn token_of(&self, id: &str) -> String {
        hex(&self.signature(id, 0, 0).finalize().into_bytes()[..16])
    }

    fn signature(&self, path: &str, account: i64, until: i64) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        mac.update(format!("{account}\n{until}\n{path}").as_bytes());
        mac
    }
}

/// HMAC accepts keys of any length.
fn unreachable_key() -> Hmac<Sha256> {
    unreachable!("HMAC takes keys of any length")
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
