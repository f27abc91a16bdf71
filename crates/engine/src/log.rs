//! The log: one row per event, which serves as event, entry of the change feed and entry of the audit chain. It is
//! written in the transaction of the change, its numbers have no gaps within an account, and each row's hash covers the
//! previous row.

mod chain;
pub mod erasing;
mod line;
mod salt;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use store::{Gathered, Merge, Migration, Tx};

use crate::context::Ctx;
use crate::error::{Error, Result};
use chain::{Parts, SALTED_VERSION, chain, digest};
pub use chain::{Verdict, Walked, verify, verify_on};
pub use line::{Line, payload};

/// The table behind the log.
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

/// The data of a row in a statement on `log`: its own, or that of the row whose number is in `data_of`. Data of its own
/// count then too, so that the hash tells if somebody adds some.
pub const DATA: &str =
    "CASE WHEN log.data_of = 0 THEN log.data ELSE log.data || coalesce((SELECT shown.data FROM log shown
     WHERE shown.account_id = log.account_id AND shown.seq = log.data_of), '') END";

/// Something that happened to a record.
pub struct Event<'e> {
    /// `product.created`
    pub name: &'e str,
    /// `product`
    pub entity_type: &'e str,
    /// The record's id.
    pub entity_id: &'e str,
    /// The record as the API shows it.
    pub data: &'e str,
    /// The record as the log stores it; empty if that is the same.
    pub logged: &'e str,
}

/// Starts work on events. Most events start none, so the statement that reads the end of the log also counts the listeners.
pub struct Listener {
    /// The table of those who listen.
    pub table: &'static str,
    /// A scalar subquery: the keys of all events that are listened to in the account `$1`, in one text.
    pub keys: &'static str,
    /// The key under which an event is listened to.
    pub key: fn(&str) -> &str,
    /// The name of events that callers fire: their data show no record.
    pub fired: &'static str,
    /// Starts the work; the number is that of the event in the log.
    pub start: fn(&mut Tx, &Ctx, &Event, i64) -> Result<()>,
}

static LISTENER: OnceLock<&'static Listener> = OnceLock::new();

/// Says who starts work when something happens.
pub fn install(listener: &'static Listener) {
    let _ = LISTENER.set(listener);
}

/// Appends an event and starts the work of its listeners; returns its number. The caller's transaction locks the
/// account.
pub fn append(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<i64> {
    let (end, listens) = end(tx, ctx, event)?;
    let seq = end.seq + 1;
    // The row before, or the one that this refers to, shows the same. Another node may be of a version that would not look
    // there, so this is for databases with a single one.
    let record = if event.logged.is_empty() { event.data } else { event.logged };
    let is_shared = !tx.dialect().is_shared() && !record.is_empty() && *end.data == *record;
    let (data, data_of) = if is_shared { ("", end.data_of) } else { (record, 0) };
    let kind = ctx.actor.kind.wire();
    let salt = salt::next()?;
    let parts = Parts {
        account: ctx.account,
        seq,
        at: ctx.now.0,
        texts: [event.name, event.entity_type, event.entity_id, &ctx.actor.id, kind, &ctx.request_id],
    };
    let hash = chain(&end.hash, &parts, &digest(&salt, &ctx.actor.name, record));
    tx.gather(
        &LINES,
        &[
            ctx.account.into(),
            seq.into(),
            ctx.now.0.into(),
            event.name.into(),
            event.entity_type.into(),
            event.entity_id.into(),
            (&*ctx.actor.id).into(),
            kind.into(),
            (&*ctx.actor.name).into(),
            (&*ctx.request_id).into(),
            data.into(),
            data_of.into(),
            hash.as_slice().into(),
            SALTED_VERSION.into(),
            salt.as_slice().into(),
        ],
    )?;
    let (data, data_of) = match is_shared {
        true => (end.data, end.data_of),
        false if record.len() <= MAX_SHARED => (record.into(), seq),
        false => (Arc::default(), 0),
    };
    *tx.memory("log", ctx.account) = Some(End { seq, hash, data, data_of });
    if let Some(listener) = LISTENER.get().filter(|_| listens) {
        (listener.start)(tx, ctx, event, seq)?;
    }
    Ok(seq)
}

/// Gathered, since before the commit only the work that a line starts reads it.
static LINES: Gathered = Gathered {
    table: "log",
    columns: &[
        "account_id",
        "seq",
        "at",
        "type",
        "entity_type",
        "entity_id",
        "actor",
        "actor_type",
        "actor_name",
        "request_id",
        "data",
        "data_of",
        "hash",
        "version",
        "salt",
    ],
    key: 0,
    merge: Merge::Last,
    conflict: "",
};

/// The last row of an account.
#[derive(Clone, Default)]
struct End {
    seq: i64,
    hash: Vec<u8>,
    /// Its data, if this transaction wrote it, and the row that has them.
    data: Arc<str>,
    data_of: i64,
}

/// The most bytes of data that are remembered for the next row.
const MAX_SHARED: usize = 1024 * 1024;

/// The keys of the events that are listened to in an account, in one text.
struct Listened(String);

/// Returns the end of the chain, and whether the event may have listeners. One statement reads both, once per transaction.
/// The first event of an account precedes its listeners.
fn end(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<(End, bool)> {
    let Some(listener) = LISTENER.get() else {
        return Ok((read_end(tx, ctx, "''")?.0, false));
    };
    // What starts work looks again whether it has to, so that a key which is a part of another one does no harm.
    let key = (listener.key)(event.name);
    let listened = tx.memory::<Option<Listened>>(listener.table, ctx.account);
    if let Some(listens) = listened.as_ref().map(|Listened(keys)| keys.contains(key))
        && let Some(end) = tx.memory::<Option<End>>("log", ctx.account).clone()
    {
        return Ok((end, listens));
    }
    let (end, keys) = read_end(tx, ctx, listener.keys)?;
    let listens = keys.contains(key);
    // Without a first row nothing was said about the listeners.
    if end.seq > 0 {
        *tx.memory(listener.table, ctx.account) = Some(Listened(keys));
    }
    Ok((end, listens))
}

/// The last row of the account, and what `keys` selects.
fn read_end(tx: &mut Tx, ctx: &Ctx, keys: &str) -> Result<(End, String)> {
    let sql =
        format!("SELECT seq, hash, ({keys}) FROM log{} WHERE account_id = $1 ORDER BY seq DESC LIMIT 1", by_seq(tx));
    let found = tx.first(&sql, &[ctx.account.into()], |row| {
        let end = End { seq: row.int(0)?, hash: row.bytes(1)?.to_vec(), ..End::default() };
        Ok::<_, Error>((end, row.text(2)?.to_string()))
    })?;
    Ok(found.unwrap_or_default())
}

/// Returns up to `limit` rows after `seq`, in order; fewer if they exceed about `bytes` bytes, but at least one.
/// Numbers are assigned while the account is locked, so a reader that sees a row can see all earlier ones.
pub fn after(tx: &mut Tx, account: i64, seq: i64, limit: i64, bytes: i64) -> Result<Vec<Line>> {
    // Their lengths first, for which neither database reads the data: a row may have megabytes.
    let index = by_seq(tx);
    let lengths = tx.all(
        &format!(
            "SELECT CAST(CASE WHEN data_of = 0 THEN octet_length(data) ELSE coalesce((SELECT octet_length(shown.data)
                 FROM log shown WHERE shown.account_id = log.account_id AND shown.seq = log.data_of), 0) END AS BIGINT)
             FROM log{index} WHERE account_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"
        ),
        &[account.into(), seq.into(), limit.into()],
        |row| row.int(0),
    )?;
    let mut room = bytes;
    let mut fits = 0_i64;
    for length in lengths {
        if fits > 0 && room < length {
            break;
        }
        room -= length;
        fits += 1;
    }
    if fits == 0 {
        return Ok(Vec::new());
    }
    tx.all(
        &format!(
            "SELECT {} FROM log{index}
             WHERE account_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
            Line::columns()
        ),
        &[account.into(), seq.into(), fits.into()],
        Line::from_row,
    )
}

/// The row with this number.
pub fn line(tx: &mut Tx, account: i64, seq: i64) -> Result<Option<Line>> {
    tx.first(
        &format!("SELECT {} FROM log WHERE account_id = $1 AND seq = $2", Line::columns()),
        &[account.into(), seq.into()],
        Line::from_row,
    )
}

/// Returns the number, the kind and the id of the record of up to `limit` rows after `seq`. Every change of a record
/// has a row, so a reader that has read all records as of `seq` only needs to read these.
pub fn touched(tx: &mut Tx, account: i64, seq: i64, limit: usize) -> Result<Vec<(i64, String, String)>> {
    let index = by_seq(tx);
    let sql = format!(
        "SELECT seq, entity_type, entity_id FROM log{index} WHERE account_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    tx.all(&sql, &[account.into(), seq.into(), limit.into()], |row| {
        Ok((row.int(0)?, row.text(1)?.to_string(), row.text(2)?.to_string()))
    })
}

/// The number of the last row; 0 when there is none.
pub fn last(tx: &mut Tx, account: i64) -> Result<i64> {
    let sql = format!("SELECT coalesce(max(seq), 0) FROM log{} WHERE account_id = $1", by_seq(tx));
    Ok(tx.int(&sql, &[account.into()])?)
}

/// Behind the name of the table: rows are read in order of their numbers. From the statistics of a time at which the log was
/// short SQLite may conclude that any index will do.
pub fn by_seq(tx: &Tx) -> String {
    tx.dialect().indexed_by("log_seq")
}

/// The name of events that callers fire: their data show no record.
pub fn fired() -> &'static str {
    LISTENER.get().map_or("", |listener| listener.fired)
}

/// Under which key an entry is noted; `None` for one that does not show a record.
fn key_of(line: &Line) -> Option<(u64, u64)> {
    line.shows_record().then(|| key(&line.entity_type, &line.entity_id))
}

/// A record as two hashes, since an account may have millions.
pub fn key(kind: &str, id: &str) -> (u64, u64) {
    let hash = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, kind, id).hash(&mut hasher);
        hasher.finish()
    };
    (hash(0), hash(1))
}
