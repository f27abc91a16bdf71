//! A cache of what a transaction has read: records that others refer to, and values derived from a few of them. Closures
//! that share a commit share the cache. A statement that writes to a table discards its entries, see [`Tx::memory`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use store::Tx;

use crate::context::Ctx;
use crate::error::{Error, Result};
use crate::record::{DETAIL, Record, Snapshot};

/// The maximum number of cached records per table; each may contain texts of 64 KiB.
const MAX_REMEMBERED: usize = 256;

/// Reads the record with this id in the account.
pub(crate) fn find<R: Record>(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<R> {
    if id.contains('\0') {
        return Err(Error::not_found(R::shape().name));
    }
    let found = tx.first(&R::sql().get, &[ctx.account.into(), id.into()], R::from_row)?;
    found.ok_or_else(|| Error::not_found(R::shape().name))
}

/// Reads the record with this id, and a number in the same statement: that of a scalar subquery on the same two values.
pub fn find_beside<R: Record>(tx: &mut Tx, ctx: &Ctx, id: &str, number: &str) -> Result<(R, i64)> {
    if id.contains('\0') {
        return Err(Error::not_found(R::shape().name));
    }
    let (table, columns, width) = (R::shape().table, &R::sql().columns, R::sql().width());
    let sql = format!("SELECT {columns}, ({number}) FROM {table} WHERE account_id = $1 AND id = $2");
    let values = [ctx.account.into(), id.into()];
    let found = tx.first(&sql, &values, |row| Ok::<_, Error>((R::from_row(row)?, row.int(width)?)))?;
    found.ok_or_else(|| Error::not_found(R::shape().name))
}

/// Returns the record with this id in the account, read once per transaction.
pub fn known<R: Record>(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Arc<R>> {
    let table = R::shape().table;
    if let Some(known) = tx.memory::<ById<R>>(table, ctx.account).0.get(id) {
        return Ok(known.clone());
    }
    let record: Arc<R> = Arc::new(find(tx, ctx, id)?);
    remember(&mut tx.memory::<ById<R>>(table, ctx.account).0, id, record.clone());
    tx.memory::<Existing>(table, ctx.account).0.insert(id.to_string());
    Ok(record)
}

/// Returns the record as `GET` shows it, for another record that stores a copy.
pub fn known_snapshot<R: Record>(tx: &mut Tx, ctx: &Ctx, record: &R) -> Snapshot {
    // A signed URL expires, so it is not cached.
    let lasts = R::shape().addresses.is_empty();
    let id = &record.base().id;
    if let Some(known) = tx.memory::<Shown>(R::shape().table, ctx.account).0.get(id).filter(|_| lasts) {
        return known.clone();
    }
    let mut data = Vec::with_capacity(1024);
    record.write_json(DETAIL, ctx, &mut data);
    let snapshot = Snapshot::of(&data);
    remember(&mut tx.memory::<Shown>(R::shape().table, ctx.account).0, id, snapshot.clone());
    snapshot
}

/// Adds a value to the cache, and empties it first if it is full.
fn remember<T>(known: &mut HashMap<String, T>, id: &str, value: T) {
    if known.len() >= MAX_REMEMBERED {
        known.clear();
    }
    known.insert(id.to_string(), value);
}

/// Whether the account has a record with this id.
pub fn exists(tx: &mut Tx, ctx: &Ctx, table: &'static str, id: &str) -> Result<bool> {
    if tx.memory::<Existing>(table, ctx.account).0.contains(id) {
        return Ok(true);
    }
    let sql = format!("SELECT count(*) FROM {table} WHERE account_id = $1 AND id = $2");
    let exists = tx.int(&sql, &[ctx.account.into(), id.into()])? > 0;
    if exists {
        tx.memory::<Existing>(table, ctx.account).0.insert(id.to_string());
    }
    Ok(exists)
}

/// Returns the value that `read` derives from the records of one table, computed once per transaction.
pub fn remembered<T: Clone + Send + 'static>(
    tx: &mut Tx,
    ctx: &Ctx,
    table: &'static str,
    read: impl FnOnce(&mut Tx) -> Result<T>,
) -> Result<T> {
    if let Some(known) = tx.memory::<Option<T>>(table, ctx.account) {
        return Ok(known.clone());
    }
    let read = read(tx)?;
    *tx.memory(table, ctx.account) = Some(read.clone());
    Ok(read)
}

/// Cached records by id.
struct ById<R>(HashMap<String, Arc<R>>);

impl<R> Default for ById<R> {
    fn default() -> ById<R> {
        ById(HashMap::new())
    }
}

/// Cached snapshots by id.
#[derive(Default)]
struct Shown(HashMap<String, Snapshot>);

/// The ids of records that are known to exist.
#[derive(Default)]
struct Existing(HashSet<String>);
