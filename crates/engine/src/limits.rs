//! Rate limits that apply to a key across all nodes: a maximum number of requests in any minute, by the machine's
//! clock.

use store::{Migration, Tx};

use crate::context::Ctx;
use crate::error::{Code, Error, Result};
use crate::http::keys::Left;

/// The table of recent requests per key.
pub const MIGRATION: Migration = Migration {
    number: 12,
    name: "limits of keys",
    sql: "
CREATE TABLE key_limits (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    key_id TEXT NOT NULL,
    asked TEXT NOT NULL,
    PRIMARY KEY (account_id, key_id)
) STRICT, WITHOUT ROWID;
",
};

const MINUTE_MS: i64 = 60_000;

/// Counts a request of the caller's key against `per_minute`. The account is locked, so the count is exact.
pub fn take(tx: &mut Tx, ctx: &Ctx, per_minute: u32) -> Result<Left> {
    let now = ctx.machine_now.0;
    let sql = "SELECT asked FROM key_limits WHERE account_id = $1 AND key_id = $2";
    let values = [ctx.account.into(), (&*ctx.actor.id).into()];
    let asked = tx.first(sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))?.unwrap_or_default();
    // A node whose clock is behind may find future times.
    let asked: Vec<i64> = asked.split_whitespace().map(str::parse).collect::<Result<_, _>>().map_err(|_| {
        store::Error::unreadable("it is not a list of moments").at("key_limits", &ctx.actor.id, "asked")
    })?;
    let mut asked: Vec<i64> = asked.into_iter().map(|at| at.min(now)).filter(|at| *at > now - MINUTE_MS).collect();
    let most = usize::try_from(per_minute).unwrap_or(usize::MAX);
    let reset = |at: Option<&i64>| at.map_or(0, |at| (at + MINUTE_MS - now + 999) / 1000);
    if asked.len() >= most {
        let seconds = reset(asked.get(asked.len() - most)).max(1);
        let message = format!("Your key may make {per_minute} of these requests per minute; retry in {seconds} s.");
        let retry_after = u32::try_from(seconds).ok();
        return Err(Error { retry_after, ..Error::new(Code::TooManyRequests, message) });
    }
    asked.push(now);
    let text: Vec<String> = asked.iter().map(ToString::to_string).collect();
    tx.execute(
        "INSERT INTO key_limits (account_id, key_id, asked) VALUES ($1, $2, $3)
         ON CONFLICT (account_id, key_id) DO UPDATE SET asked = excluded.asked",
        &[ctx.account.into(), (&*ctx.actor.id).into(), text.join(" ").into()],
    )?;
    let remaining = i64::try_from(most - asked.len()).unwrap_or(i64::MAX);
    Ok(Left { remaining, reset: reset(asked.last()) })
}
