//! The table of the log.

use store::Migration;

/// The table of the log.
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
    PRIMARY KEY (account_id, seq)
) STRICT, WITHOUT ROWID;
",
};

/// In a table without row ids, SQLite keeps about a thousand bytes of a row in the tree, and the rest in an overflow page,
/// most of which stays empty. Log lines are longer than that, so they are in an ordinary table.
pub const ORDINARY: Migration = Migration {
    number: 74,
    name: "log in an ordinary table",
    sql: "
-- sqlite
ALTER TABLE log RENAME TO log_before;
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
    hash BLOB NOT NULL
) STRICT;
INSERT INTO log (account_id, seq, at, type, entity_type, entity_id, actor, request_id, data, hash)
SELECT account_id, seq, at, type, entity_type, entity_id, actor, request_id, data, hash FROM log_before
ORDER BY account_id, seq;
DROP TABLE log_before;
CREATE UNIQUE INDEX log_seq ON log (account_id, seq);
CREATE INDEX log_types ON log (account_id, type, seq);
",
};

/// Several events often show the same record: a draft is created, and is a draft. Only the first of them stores it.
pub const SHARED_DATA: Migration = Migration {
    number: 76,
    name: "log entries share their data",
    sql: "ALTER TABLE log ADD COLUMN data_of BIGINT NOT NULL DEFAULT 0;",
};

/// Who an actor is. Rows from before tell it by the id alone.
pub const ACTORS: Migration = Migration {
    number: 85,
    name: "actors of the log",
    sql: "
ALTER TABLE log ADD COLUMN actor_type TEXT NOT NULL DEFAULT '';
ALTER TABLE log ADD COLUMN actor_name TEXT NOT NULL DEFAULT '';
",
};

/// A row has a salt and the version of its hash. Rows from before keep theirs, and nodes of an older version may add more of
/// them. A row whose data are erased has their digest.
pub const SALTED: Migration = Migration {
    number: 86,
    name: "salted log",
    sql: "
ALTER TABLE log ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
-- sqlite
ALTER TABLE log ADD COLUMN salt BLOB NOT NULL DEFAULT x'';
ALTER TABLE log ADD COLUMN digest BLOB NOT NULL DEFAULT x'';
-- postgres
ALTER TABLE log ADD COLUMN salt BLOB NOT NULL DEFAULT ''::BLOB;
ALTER TABLE log ADD COLUMN digest BLOB NOT NULL DEFAULT ''::BLOB;
",
};

/// From here on, the salt of a row is followed by a mark. The tables stay the same; the number tells which starts may accept
/// rows without one.
pub const MARKED: Migration = Migration {
    number: 103,
    name: "marked log lines",
    sql: "
UPDATE log_heads SET seq = seq WHERE account_id = 0;
",
};

/// The index behind the filter by type of record.
pub const KINDS: Migration = Migration {
    number: 101,
    name: "log by type of record",
    sql: "
CREATE INDEX log_kinds ON log (account_id, entity_type, seq);
",
};

/// The indexes behind the filters. Each row of the log is in all of them, so there are few.
pub const INDEXES: Migration = Migration {
    number: 87,
    name: "log by record and actor",
    sql: "
CREATE INDEX log_records ON log (account_id, entity_id, seq);
CREATE INDEX log_actors ON log (account_id, actor, seq);
",
};
