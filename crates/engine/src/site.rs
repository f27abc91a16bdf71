//! Where this server can be reached, and addresses that open one thing for a while without a key.

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
/// How long a signed address works, and up to an hour more: it changes once an hour, so that
/// browsers can keep what they have fetched.
const VALID_MS: i64 = 24 * HOUR_MS;

/// Where this server can be reached.
pub struct Site {
    base: OnceLock<String>,
    key: Vec<u8>,
}

impl Site {
    /// The server at `public_url`; when that is empty, at the address that it turns out to serve on.
    /// The key for signatures is made once, and the same on all nodes.
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
        Ok(Site { base, key })
    }

    /// Says where it serves, for when the settings do not.
    pub fn serves_at(&self, address: &str) {
        let _ = self.base.set(format!("http://{address}"));
    }

    /// The whole address of a path.
    pub fn address(&self, path: &str) -> String {
        format!("{}{path}", self.base.get().map_or("", String::as_str))
    }

    /// The whole address of a path, which opens it for a day without a key.
    pub fn signed(&self, account: i64, now: Moment, path: &str) -> String {
        let until = (now.0 / HOUR_MS + 1) * HOUR_MS + VALID_MS;
        let signature = hex(&self.signature(path, account, until).finalize().into_bytes());
        self.address(&format!("{path}?account={account}&until={}&signature={signature}", until / 1000))
    }

    /// The secret that signs the outgoing calls of an account.
    pub fn signing_secret(&self, account: i64) -> Vec<u8> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.key).unwrap_or_else(|_| unreachable_key());
        mac.update(format!("calls of account {account}").as_bytes());
        mac.finalize().into_bytes().to_vec()
    }

    /// The signature of a call of that account.
    pub fn sign_for(&self, account: i64, text: &str) -> Vec<u8> {
        let secret = self.signing_secret(account);
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&secret).unwrap_or_else(|_| unreachable_key());
        mac.update(text.as_bytes());
        mac.finalize().into_bytes().to_vec()
    }

    /// The account whose `path` a signed query opens at `now`.
    pub fn opens(&self, path: &str, query: &Query, now: Moment) -> Option<i64> {
        let account: i64 = query.get("account")?.parse().ok()?;
        let until: i64 = query.get("until")?.parse().ok()?;
        let signature = unhex(query.get("signature")?)?;
        let until = until.checked_mul(1000)?;
        let right = self.signature(path, account, until).verify_slice(&signature).is_ok();
        (right && now.0 < until).then_some(account)
    }

    /// Letters and digits that nobody can guess, always the same for the same id.
    pub fn token_of(&self, id: &str) -> String {
        hex(&self.signature(id, 0, 0).finalize().into_bytes()[..16])
    }

    fn signature(&self, path: &str, account: i64, until: i64) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.key).unwrap_or_else(|_| unreachable_key());
        mac.update(format!("{account}\n{until}\n{path}").as_bytes());
        mac
    }
}

/// HMAC takes keys of any length.
fn unreachable_key() -> Hmac<Sha256> {
    unreachable!("HMAC takes keys of any length")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
