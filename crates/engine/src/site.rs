//! The public URL of this server, and signed URLs that give access to one content for a limited time.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use ring::hmac::{self, HMAC_SHA256};
use store::Migration;

use crate::clock::Moment;
use crate::contents::hex;
use crate::query::Query;
use crate::secrets::key_file::unhex;
use crate::secrets::vault::Vault;

/// The table of the server's own secrets.
pub const MIGRATION: Migration = Migration {
    number: 9,
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

/// The parameters of a signed URL.
pub const SIGNED: [&str; 3] = ["account", "until", "signature"];

/// The public URL of this server.
pub struct Site {
    base: OnceLock<String>,
    /// Keyed once: a list of files has a signature for each.
    mac: hmac::Key,
    /// The keys for secrets in the database.
    pub vault: Arc<Vault>,
}

impl Site {
    /// Opens the site at `public_url`, or if that is empty, at the address that the server listens on. `key` signs
    /// URLs.
    pub fn open(key: &[u8], vault: Arc<Vault>, public_url: &str) -> Site {
        let base = OnceLock::new();
        if !public_url.is_empty() {
            let _ = base.set(public_url.trim_end_matches('/').to_string());
        }
        let mac = hmac::Key::new(HMAC_SHA256, key);
        Site { base, mac, vault }
    }

    /// Sets the address that the server listens on, in case the settings have no URL.
    pub fn serves_at(&self, address: &str) {
        let _ = self.base.set(format!("http://{}", to_open(address)));
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
        let signature = hex(hmac::sign(&self.mac, signed_text(path, account, until).as_bytes()).as_ref());
        self.address(&format!("{path}?account={account}&until={}&signature={signature}", until / 1000))
    }

    /// Returns the secret that signs the outgoing calls of an account.
    pub fn signing_secret(&self, account: i64) -> Vec<u8> {
        hmac::sign(&self.mac, format!("calls of account {account}").as_bytes()).as_ref().to_vec()
    }

    /// Signs a call of an account.
    pub fn sign_for(&self, account: i64, text: &str) -> Vec<u8> {
        let secret = self.signing_secret(account);
        hmac::sign(&hmac::Key::new(HMAC_SHA256, &secret), text.as_bytes()).as_ref().to_vec()
    }

    /// Returns the account of a signed URL, if it is valid for `path` at `now`.
    pub fn opens(&self, path: &str, query: &Query, now: Moment) -> Option<i64> {
        let account: i64 = query.get("account")?.parse().ok()?;
        let until: i64 = query.get("until")?.parse().ok()?;
        let signature = unhex(query.get("signature")?)?;
        let until = until.checked_mul(1000)?;
        let right = hmac::verify(&self.mac, signed_text(path, account, until).as_bytes(), &signature).is_ok();
        (right && now.0 < until).then_some(account)
    }

    /// Returns unguessable letters and digits, always the same for the same id.
    pub fn token_of(&self, id: &str) -> String {
        hex(&hmac::sign(&self.mac, signed_text(id, 0, 0).as_bytes()).as_ref()[..16])
    }
}

/// Returns the address that a browser opens for one that the server listens on: no browser opens `0.0.0.0` or `[::]`, which stand for
/// all addresses of the machine.
pub fn to_open(listen: &str) -> String {
    match listen.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_unspecified() => format!("localhost:{}", address.port()),
        _ => listen.to_string(),
    }
}

fn signed_text(path: &str, account: i64, until: i64) -> String {
    format!("{account}\n{until}\n{path}")
}
