//! Marks for events that must happen once per record and cause.

use store::{Migration, Tx};

use crate::context::Ctx;
use crate::error::Result;

/// The table of marks.
pub const MIGRATION: Migration = Migration {
    number: 35,
    name: "marks",
    sql: "
CREATE TABLE marks (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    cause TEXT NOT NULL,
    record_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (account_id, cause, record_id)
) STRICT, WITHOUT ROWID;
",
};

/// Sets a mark; returns whether it is the first time.
pub fn first_time(tx: &mut Tx, ctx: &Ctx, cause: &str, record_id: &str) -> Result<bool> {
    let sql = "INSERT INTO marks (account_id, cause, record_id, at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
    Ok(tx.execute(sql, &[ctx.account.into(), cause.into(), record_id.into(), ctx.now.0.into()])? == 1)
}

/// Whether the mark is set.
pub fn has(tx: &mut Tx, ctx: &Ctx, cause: &str, record_id: &str) -> Result<bool> {
    let sql = "SELECT count(*) FROM marks WHERE account_id = $1 AND cause = $2 AND record_id = $3";
    Ok(tx.int(sql, &[ctx.account.into(), cause.into(), record_id.into()])? > 0)
}
