//! Holds: while one is active no content is deleted, since a backup copies the database first and the contents after
//! it.

use store::{Migration, Tx};

use crate::clock::Moment;
use crate::error::Result;

/// The table of holds.
pub const MIGRATION: Migration = Migration {
    number: 11,
    name: "holds",
    sql: "
CREATE TABLE holds (
    account_id BIGINT NOT NULL,
    id TEXT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;
",
};

/// Whether a hold is active.
pub fn is_held(tx: &mut Tx, now: Moment) -> Result<bool> {
    Ok(tx.int("SELECT count(*) FROM holds WHERE account_id = 0 AND until > $1", &[now.0.into()])? > 0)
}
