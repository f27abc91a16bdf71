//! Gapless counters per account, incremented in the transaction that uses the number.

use std::collections::HashMap;

use store::{Gathered, Merge, Migration, Tx};

use crate::context::Ctx;
use crate::error::Result;

/// The table of counters.
pub const MIGRATION: Migration = Migration {
    number: 8,
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
    let known = tx.memory::<Counted>("counters", ctx.account).0.get(name).copied();
    let last = match known {
        Some(last) => last,
        None => last(tx, ctx, name)?,
    };
    tx.gather(&VALUES, &[ctx.account.into(), name.into(), (last + 1).into()])?;
    tx.memory::<Counted>("counters", ctx.account).0.insert(name.to_string(), last + 1);
    Ok(last + 1)
}

/// Returns the last number of the counter that is stored; 0 if there is none.
pub fn last(tx: &mut Tx, ctx: &Ctx, name: &str) -> Result<i64> {
    let sql = "SELECT value FROM counters WHERE account_id = $1 AND name = $2";
    Ok(tx.int(sql, &[ctx.account.into(), name.into()])?)
}

/// The last number of each counter.
#[derive(Default)]
struct Counted(HashMap<String, i64>);

static VALUES: Gathered = Gathered {
    table: "counters",
    columns: &["account_id", "name", "value"],
    key: 2,
    merge: Merge::Last,
    conflict: "ON CONFLICT (account_id, name) DO UPDATE SET value = excluded.value",
};
