//! Gapless counters per account, incremented in the transaction that uses the number.

use store::{Migration, Tx};

use crate::context::Ctx;
use crate::error::Result;

/// The table of counters.
pub const MIGRATION: Migration = Migration {
    number: 9,
    name: "counters",
    sql: "
CREATE TABLE counters (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (account_id, name)
) STRICT, WITHOUT ROWID;
",
};

/// Returns the next number of the counter, starting at 1.
pub fn next(tx: &mut Tx, ctx: &Ctx, name: &str) -> Result<i64> {
    let sql = "INSERT INTO counters (account_id, name, value) VALUES ($1, $2, 1)
               ON CONFLICT (account_id, name) DO UPDATE SET value = counters.value + 1 RETURNING value";
    Ok(tx.int(sql, &[ctx.account.into(), name.into()])?)
}
