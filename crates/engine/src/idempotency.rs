//! Idempotency: a repeated POST gets its first response again. The effect and the stored response are in one
//! transaction, so a crash leaves both or neither.

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use store::{Migration, Row, Tx};

use crate::clock::Moment;
use crate::context::Ctx;
use crate::error::{Code, Error, Result};
use crate::json::Json;
use crate::secrets::vault::{Place, is_sealed};

/// The start of each member with which a response shows a new secret: of a key or an endpoint, and of an invitation. A
/// response with one of them is encrypted.
const SHOWN_SECRETS: &[&str] = &["\"secret\":\"", "\"invite_url\":\""];

/// How long a response is kept.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// The table of stored responses.
pub const MIGRATION: Migration = Migration {
    number: 5,
    name: "stored answers",
    sql: "
CREATE TABLE stored_answers (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    created_at BIGINT NOT NULL,
    status BIGINT NOT NULL,
    location TEXT NOT NULL,
    etag TEXT NOT NULL,
    body TEXT NOT NULL,
    headers TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, key)
) STRICT;
CREATE INDEX stored_answers_age ON stored_answers (account_id, created_at);
",
};

/// The idempotency key of a request with its fingerprint.
#[derive(Clone, Debug)]
pub struct Claim {
    key: String,
    /// Hash of the request with its JSON in canonical form, so that whitespace, the order of members and the notation
    /// of numbers and strings do not matter.
    fingerprint: Vec<u8>,
}

impl Claim {
    /// Returns the caller's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Creates a claim on `key` for this request; `parsed` is its body, if it is JSON.
    pub fn new(key: &str, method: &str, path: &str, body: &[u8], parsed: Option<&Json>) -> Result<Claim> {
        let visible = key.bytes().all(|byte| byte.is_ascii_graphic());
        if key.is_empty() || key.len() > 255 || !visible {
            return Err(Error::new(
                Code::InvalidIdempotencyKey,
                "An Idempotency-Key must have 1 to 255 visible ASCII characters.",
            ));
        }
        let fingerprint = |body: &[u8]| {
            let mut hasher = Sha256::new();
            for part in [method.as_bytes(), path.as_bytes(), body] {
                hasher.update((part.len() as u64).to_be_bytes());
                hasher.update(part);
            }
            hasher.finalize().to_vec()
        };
        // A request without a body equals one with an empty object. A body that is not JSON has one form.
        let canonical = match parsed {
            Some(json) => json.canonical(),
            None => body.is_empty().then(|| b"{}".to_vec()),
        };
        Ok(Claim { key: key.to_string(), fingerprint: fingerprint(canonical.as_deref().unwrap_or(body)) })
    }
}

/// A response that can be stored and replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The HTTP status.
    pub status: u16,
    /// The `Location` header, or empty.
    pub location: String,
    /// The `ETag` header, or empty.
    pub etag: String,
    /// The body.
    pub body: String,
    /// Additional headers of this response, one per line.
    pub headers: String,
}

/// Returns the first response to this claim, if any. The caller's transaction locks the account, so the same key cannot
/// be in use elsewhere.
pub fn find(tx: &mut Tx, ctx: &Ctx, claim: &Claim) -> Result<Option<Stored>> {
    let sql = "SELECT fingerprint, status, location, etag, body, headers FROM stored_answers
               WHERE account_id = $1 AND key = $2 AND created_at > $3";
    let values = [ctx.account.into(), (&claim.key).into(), oldest(ctx.now).into()];
    tx.first(sql, &values, |row: &Row| {
        if *row.bytes(0)? != claim.fingerprint {
            return Err(Error::new(
                Code::IdempotencyKeyReused,
                "This Idempotency-Key was used for a different request. Use a new key for each request.",
            ));
        }
        Ok(Stored {
            status: u16::try_from(row.int(1)?).map_err(|_| {
                store::Error::unreadable("it is not an HTTP status").at("stored_answers", &claim.key, "status")
            })?,
            location: row.text(2)?.to_string(),
            etag: row.text(3)?.to_string(),
            body: match row.text(4)? {
                sealed if is_sealed(sealed) => own(ctx, &ctx.site.vault.open_text(&place(ctx, claim), sealed)?)?,
                body => body.to_string(),
            },
            headers: row.text(5)?.to_string(),
        })
    })
}

/// Stores the response to this claim.
pub fn keep(tx: &mut Tx, ctx: &Ctx, claim: &Claim, stored: &Stored) -> Result<()> {
    let body = match SHOWN_SECRETS.iter().any(|shown| stored.body.contains(shown)) {
        true => {
            Cow::Owned(ctx.site.vault.seal_text(&place(ctx, claim), &format!("{}\n{}", ctx.actor.id, stored.body))?)
        }
        false => Cow::Borrowed(stored.body.as_str()),
    };
    tx.send(
        "INSERT INTO stored_answers (account_id, key, fingerprint, created_at, status, location, etag, body, headers)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (account_id, key) DO UPDATE SET fingerprint = excluded.fingerprint,
            created_at = excluded.created_at, status = excluded.status, location = excluded.location,
            etag = excluded.etag, body = excluded.body, headers = excluded.headers",
        &[
            ctx.account.into(),
            (&claim.key).into(),
            claim.fingerprint.as_slice().into(),
            ctx.now.0.into(),
            i64::from(stored.status).into(),
            (&stored.location).into(),
            (&stored.etag).into(),
            body.as_ref().into(),
            (&stored.headers).into(),
        ],
    )?;
    Ok(())
}

/// Returns a response that was stored with its caller: only the same one sees the secret again.
fn own(ctx: &Ctx, stored: &str) -> Result<String> {
    match stored.split_once('\n') {
        Some((actor, body)) if *actor == *ctx.actor.id => Ok(body.to_string()),
        _ => Err(Error::new(
            Code::IdempotencyKeyReused,
            "Another caller used this Idempotency-Key and was shown a secret. Use a new key for each request.",
        )),
    }
}

fn place<'p>(ctx: &Ctx, claim: &'p Claim) -> Place<'p> {
    Place { account: ctx.account, table: "stored_answers", column: "body", id: &claim.key }
}

/// Deletes up to two hundred expired responses; returns how many. Each may be a megabyte.
pub fn purge(tx: &mut Tx, ctx: &Ctx) -> Result<u64> {
    let index = |name: &str| tx.dialect().indexed_by(name);
    let (by_key, by_age) = (index("sqlite_autoindex_stored_answers_1"), index("stored_answers_age"));
    let sql = format!(
        "DELETE FROM stored_answers{by_key} WHERE account_id = $1 AND key IN
         (SELECT key FROM stored_answers{by_age} WHERE account_id = $1 AND created_at <= $2
          ORDER BY created_at LIMIT 200)"
    );
    Ok(tx.execute(&sql, &[ctx.account.into(), oldest(ctx.now).into()])?)
}

fn oldest(now: Moment) -> i64 {
    now.0.saturating_sub(KEPT_MS)
}
