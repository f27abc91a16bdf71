//! A POST that is sent again gets its first answer again: the effect and the stored answer are
//! one transaction, so a crash leaves both or neither.

use sha2::{Digest, Sha256};
use store::{Migration, Row, Tx};

use crate::clock::Moment;
use crate::context::Ctx;
use crate::error::{Code, Error, Result};
use crate::json::Json;

/// How long an answer is kept.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// The table of stored answers.
pub const MIGRATION: Migration = Migration {
    number: 4,
    name: "idempotency",
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
    PRIMARY KEY (account_id, key)
) STRICT;
CREATE INDEX stored_answers_age ON stored_answers (account_id, created_at);
",
};

/// The caller's key, and what it was sent with.
#[derive(Clone, Debug)]
pub struct Claim {
    key: String,
    /// Of the request with its JSON in one form, so that spaces, the order of members and the way a number or a
    /// text is written do not matter.
    fingerprint: Vec<u8>,
    /// Of the request as it was sent: what an earlier version of the program kept.
    as_sent: Vec<u8>,
}

impl Claim {
    /// The caller's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// A claim on `key` for this request, whose body was `parsed` if it is JSON.
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
        let as_sent = fingerprint(body);
        // A request without a body says the same as one with an empty object. What is no JSON has one form.
        let canonical = match parsed {
            Some(json) => json.canonical(),
            None => body.is_empty().then(|| b"{}".to_vec()),
        };
        let of_json = canonical.map(|text| fingerprint(&text));
        Ok(Claim { key: key.to_string(), fingerprint: of_json.unwrap_or_else(|| as_sent.clone()), as_sent })
    }

    fn matches(&self, fingerprint: &[u8]) -> bool {
        fingerprint == self.fingerprint || fingerprint == self.as_sent
    }
}

/// An answer that can be kept and sent again.
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
    /// Headers that only this answer has, a line each.
    pub headers: String,
}

/// The first answer to this claim, if there was one. The caller's transaction holds the account,
/// so nobody else can be working on the same key.
pub fn find(tx: &mut Tx, ctx: &Ctx, claim: &Claim) -> Result<Option<Stored>> {
    let sql = "SELECT fingerprint, status, location, etag, body, headers FROM stored_answers
               WHERE account_id = $1 AND key = $2 AND created_at > $3";
    let values = [ctx.account.into(), (&claim.key).into(), oldest(ctx.now).into()];
    tx.first(sql, &values, |row: &Row| {
        if !claim.matches(row.bytes(0)?) {
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
            body: row.text(4)?.to_string(),
            headers: row.text(5)?.to_string(),
        })
    })
}

/// Keeps the answer to this claim.
pub fn keep(tx: &mut Tx, ctx: &Ctx, claim: &Claim, stored: &Stored) -> Result<()> {
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
            (&stored.body).into(),
            (&stored.headers).into(),
        ],
    )?;
    Ok(())
}

/// Drops answers that are too old to be asked for, up to a thousand; answers how many.
pub fn purge(tx: &mut Tx, ctx: &Ctx) -> Result<u64> {
    let sql = "DELETE FROM stored_answers WHERE account_id = $1 AND key IN
               (SELECT key FROM stored_answers WHERE account_id = $1 AND created_at <= $2 LIMIT 1000)";
    Ok(tx.execute(sql, &[ctx.account.into(), oldest(ctx.now).into()])?)
}

fn oldest(now: Moment) -> i64 {
    now.0.saturating_sub(KEPT_MS)
}
