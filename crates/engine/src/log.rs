//! The log: one line per event, which serves as event, in the change feed and in the audit chain. It is
//! written in the transaction of the change, its numbers have no gaps within an account, and each row's hash covers the
//! previous row.

mod chain;
mod emptied;
pub mod erasing;
mod event;
mod filtered;
mod line;
mod place;
mod reading;
mod salt;
mod tables;
mod types;

use std::sync::Arc;

use store::{Gathered, Merge, Tx};

use crate::context::Ctx;
use crate::error::{Error, Result};
use chain::{Parts, VERSION, chain, digest};
pub use chain::{Verdict, Walked, continues, foreign, seen_after, verify, verify_on};
pub use event::{Event, Listener, fired, install};
pub use filtered::{Filter, Found, filtered, numbered, of_record};
pub use line::{DATA, Line, payload};
pub use place::Place;
pub use reading::{after, by_seq, first_at, hash_at, key, last, latest, line, touched};
pub use tables::MIGRATION;
pub use types::{EventType, Origin, declare};

/// Appends an event and starts the work of its listeners; returns its number. The caller's transaction locks the
/// account.
pub fn append(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<i64> {
    append_as(tx, ctx, event, event.data)
}

/// Appends an event of a record that the log stores as `record`: with columns that the API does not show.
pub fn append_as(tx: &mut Tx, ctx: &Ctx, event: &Event, record: &str) -> Result<i64> {
    debug_assert!(types::is_declared(event.name), "the registry does not declare the event {}", event.name);
    let (end, listens) = end(tx, ctx, event)?;
    let seq = end.seq + 1;
    let same = end.data.filter(|data| !record.is_empty() && *data.text == *record);
    // The row before, or the one that this refers to, shows the same.
    let data_of = same.as_ref().map_or(0, |data| data.stored_in);
    let text = if data_of == 0 { record } else { "" };
    let data = match same {
        Some(data) if *data.actor_name == *ctx.actor.name => data,
        same => LineData::new(record, same.map_or(seq, |data| data.stored_in), &ctx.actor.name)?,
    };
    let kind = ctx.actor.kind.wire();
    let parts = Parts {
        account: ctx.account,
        seq,
        at: ctx.now.0,
        texts: [event.name, event.entity_type, event.entity_id, &ctx.actor.id, kind, &ctx.request_id],
    };
    let hash = chain(&end.hash, &parts, &data.digest);
    let marked = [data.salt, ctx.site.vault.mark(&hash)?];
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
            text.into(),
            data_of.into(),
            hash.as_slice().into(),
            VERSION.into(),
            marked.as_flattened().into(),
        ],
    )?;
    *tx.memory("log", ctx.account) = Some(End { seq, hash, data: (record.len() <= MAX_SHARED).then_some(data) });
    ctx.wakeup.logs(ctx.account);
    if let Some(listener) = event::listener().filter(|_| listens) {
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
    /// Its data, if this transaction wrote it.
    data: Option<LineData>,
}

/// The data of a row, for the next one if it has the same. The two then have one salt and one digest: whoever erases only one of
/// them has kept the data anyway.
#[derive(Clone)]
struct LineData {
    text: Arc<str>,
    /// The number of the row that stores them.
    stored_in: i64,
    actor_name: Arc<str>,
    salt: [u8; salt::LENGTH],
    digest: [u8; 32],
}

impl LineData {
    fn new(text: &str, stored_in: i64, actor_name: &Arc<str>) -> Result<LineData> {
        let salt = salt::next()?;
        let digest = digest(&salt, actor_name, text);
        Ok(LineData { text: text.into(), stored_in, actor_name: actor_name.clone(), salt, digest })
    }
}

/// The most bytes of data that are remembered for the next row.
const MAX_SHARED: usize = 1024 * 1024;

/// The keys of the events that are listened to in an account, in one text.
struct Listened(String);

/// Returns the end of the chain, and whether the event may have listeners. One statement reads both, once per transaction.
/// The first event of an account precedes its listeners.
fn end(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<(End, bool)> {
    let Some(listener) = event::listener() else {
        return Ok((read_end(tx, ctx, "''")?.0, false));
    };
    // What starts work looks again whether it has to, so that a key which is a part of another one does no harm.
    let key = (listener.key)(event.name);
    let key: &str = &key;
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
