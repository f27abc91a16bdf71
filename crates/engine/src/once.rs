//! Marks for events that must happen once per record and cause.

use std::collections::HashSet;

use store::{Migration, Tx};

use crate::context::Ctx;
use crate::error::Result;

/// The table of marks.
pub const MIGRATION: Migration = Migration {
    number: 10,
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

/// Sets a mark; returns whether it is the first time. Marks are never removed, so one that is known to be set needs no
/// statement.
pub fn first_time(tx: &mut Tx, ctx: &Ctx, cause: &str, record_id: &str) -> Result<bool> {
    let mark = format!("{cause} {record_id}");
    // The statement discards what is cached of its table, which remains true.
    let mut known = std::mem::take(tx.memory::<Known>("marks", ctx.account));
    let mut first = false;
    if !known.0.contains(&mark) {
        let sql = "INSERT INTO marks (account_id, cause, record_id, at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
        first = tx.execute(sql, &[ctx.account.into(), cause.into(), record_id.into(), ctx.now.0.into()])? == 1;
        known.0.insert(mark);
    }
    *tx.memory("marks", ctx.account) = known;
    Ok(first)
}

/// Whether the mark is set.
pub fn has(tx: &mut Tx, ctx: &Ctx, cause: &str, record_id: &str) -> Result<bool> {
    let sql = "SELECT count(*) FROM marks WHERE account_id = $1 AND cause = $2 AND record_id = $3";
    Ok(tx.int(sql, &[ctx.account.into(), cause.into(), record_id.into()])? > 0)
}

/// The marks that are known to be set, as cause and record.
#[derive(Default)]
struct Known(HashSet<String>);
