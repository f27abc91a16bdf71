//! While there is a hold, no content is dropped: a backup copies the database first and the contents after it.

use store::{Migration, Tx};

use crate::clock::Moment;
use crate::error::Result;

/// The table of holds: while there is one that has not ended, no content is dropped.
pub const MIGRATION: Migration = Migration {
    number: 65,
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

/// Whether contents are to stay where they are for now.
pub fn is_held(tx: &mut Tx, now: Moment) -> Result<bool> {
    Ok(tx.int("SELECT count(*) FROM holds WHERE account_id = 0 AND until > $1", &[now.0.into()])? > 0)
}
