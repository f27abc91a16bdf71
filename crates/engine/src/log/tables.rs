//! The table of the log.

use store::Migration;

/// The table of the log. A row has a salt, followed by a mark, and the version of its hash; a row whose data are erased has their
/// digest. Several events often show the same record (a draft is created, and is a draft): only the first of them stores it. Each
/// row is in all indexes, so there are few.
///
/// In a table without row ids, SQLite keeps about a thousand bytes of a row in the tree, and the rest in an overflow page, most of
/// which stays empty. Log lines are longer than that, so there they are in an ordinary table.
pub const MIGRATION: Migration = Migration {
    number: 3,
    name: "log",
    sql: "
CREATE TABLE log (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    type TEXT NOT NULL,
    entity_type TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    actor TEXT NOT NULL,
    request_id TEXT NOT NULL,
    data TEXT NOT NULL,
    hash BLOB NOT NULL,
    data_of BIGINT NOT NULL DEFAULT 0,
    actor_type TEXT NOT NULL DEFAULT '',
    actor_name TEXT NOT NULL DEFAULT '',
    version BIGINT NOT NULL DEFAULT 1,
    salt BLOB NOT NULL DEFAULT x'',
    digest BLOB NOT NULL DEFAULT x''
) STRICT;
-- sqlite
CREATE UNIQUE INDEX log_seq ON log (account_id, seq);
-- postgres
ALTER TABLE log ADD PRIMARY KEY (account_id, seq);
-- both
CREATE INDEX log_types ON log (account_id, type, seq);
CREATE INDEX log_records ON log (account_id, entity_id, seq);
CREATE INDEX log_actors ON log (account_id, actor, seq);
CREATE INDEX log_kinds ON log (account_id, entity_type, seq);
",
};
