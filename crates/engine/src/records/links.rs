//! The records that refer to a record that goes away. Their links are cleared, or point to the record that replaces it.

use std::sync::Arc;

use store::Tx;

use crate::call::{Answer, Call, Work};
use crate::context::Ctx;
use crate::error::{Code, Error, FieldCode, FieldError, Result, violation};
use crate::log;
use crate::record::{Record, Shape};
use crate::slice::{Slice, TOGETHER};
use crate::tables::{self, Ahead, Holder, Relink, Table};

/// How many of the records that need a record are counted.
const MAX_COUNTED: i64 = 1000;

/// Clears some of the links to a record that is to be deleted, for a few milliseconds; if any are left, returns the answer that runs
/// the call again for them. A hundred thousand records may refer to it, and other writers wait. If this is interrupted, the record
/// still exists and the caller can delete it again.
pub fn loosen<R: Record>(
    tx: &mut Tx,
    ctx: &Ctx,
    record: &R,
    handler: fn(Call) -> Result<Work>,
    call: &Call,
) -> Result<Option<Answer>> {
    // Before the first link is cleared: the deletion may be rejected.
    let (shape, id) = (R::shape(), &record.base().id);
    check_free(shape, tx, ctx, id)?;
    let links = Relinked { from: id, to: "", ahead: call.ahead.as_deref() };
    let done = relink_all(shape, tx, ctx, &links, &Slice::start())?;
    Ok((!done).then(|| rest(shape, handler, call, id)))
}

/// Runs the call again in another transaction, for the links that are left. Which records have them is looked up before: what the
/// slices before it moved may take long to pass over, as PostgreSQL keeps it for every transaction that is still open.
fn rest(shape: &'static Shape, handler: fn(Call) -> Result<Work>, call: &Call, id: &str) -> Answer {
    let (call, id) = (call.clone(), id.to_string());
    Answer::after(move |app, caller| {
        let account = caller.account.number;
        let ahead = app.store.read_now(|tx| look_ahead(shape, tx, account, &id))?;
        handler(Call { ahead: ahead.map(Arc::new), ..call.clone() })
    })
}

/// Returns the records with the first links that a slice changes; `None` if that is for the transaction to find out.
fn look_ahead(shape: &Shape, tx: &mut Tx, account: i64, id: &str) -> Result<Option<Ahead>> {
    for Linking { place, table, field } in linking(shape).into_iter().filter(|linking| linking.table.stored) {
        if table.relinks_last {
            return Ok(None);
        }
        let ids = naming(table.shape.table, tx, account, field, id)?;
        if !ids.is_empty() {
            return Ok(Some(Ahead { place, field, ids }));
        }
    }
    Ok(None)
}

/// Returns the ids of some records with this link.
pub(super) fn naming(table: &str, tx: &mut Tx, account: i64, field: &str, id: &str) -> Result<Vec<String>> {
    let order = in_order_of(field);
    let sql = format!("SELECT id FROM {table} WHERE account_id = $1 AND {order} LIMIT {TOGETHER}");
    tx.all(&sql, &[account.into(), id.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))
}

/// Rejects the deletion of a record that others need, and says which.
pub(super) fn check_free(shape: &Shape, tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<()> {
    let (table, name) = (shape.table, shape.name);
    tables::guard(tx, ctx, table, id)?;
    let mut needed = Vec::new();
    for holder in tables::holders(table) {
        match count(tx, ctx, holder, id)? {
            0 => {}
            count => needed.push((holder, count)),
        }
    }
    if needed.is_empty() {
        return Ok(());
    }
    let words: Vec<String> = needed.iter().map(|(holder, count)| counted(holder, *count)).collect();
    let message = format!("This {name} is in use: {}.", words.join(", "));
    let faults = needed.iter().zip(words).map(|((holder, count), words)| {
        let wrong = violation(FieldCode::InUse, words).counted(*count);
        FieldError { field: holder.by.to_string(), wrong }
    });
    Err(Error { faults: faults.collect(), ..Error::new(Code::InUse, message) })
}

fn count(tx: &mut Tx, ctx: &Ctx, holder: &Holder, id: &str) -> Result<i64> {
    let Holder { by, field, index, when, .. } = holder;
    // Few records refer to one: the index of the link finds them.
    let (index, when) = (tx.dialect().indexed_by(index), when());
    let when = if when.is_empty() { when } else { format!(" AND {when}") };
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 FROM {by}{index} WHERE account_id = $1 AND \"{field}\" = $2 AND \"{field}\" <> ''{when}
         LIMIT {MAX_COUNTED}) needed"
    );
    Ok(tx.int(&sql, &[ctx.account.into(), id.into()])?)
}

/// The end of a statement for the records whose link is $2, which reads the index of the link. If most records of an account refer
/// to one, PostgreSQL would read the table until it has found enough of them. Each slice would then pass over all records of the
/// slices before it, and everybody waits meanwhile. No other index has this order, which counts for a range only.
fn in_order_of(field: &str) -> String {
    // The last condition allows the use of indexes that omit empty references.
    format!("\"{field}\" >= $2 AND \"{field}\" <= $2 AND \"{field}\" <> '' ORDER BY \"{field}\"")
}

/// `2 open orders`
fn counted(holder: &Holder, count: i64) -> String {
    match count {
        1 => format!("1 {}", holder.what.0),
        MAX_COUNTED.. => format!("at least {count} {}", holder.what.1),
        _ => format!("{count} {}", holder.what.1),
    }
}

pub(super) fn unlink_all(shape: &Shape, tx: &mut Tx, ctx: &Ctx, id: &str, slice: &Slice) -> Result<bool> {
    relink_all(shape, tx, ctx, &Relinked { from: id, to: "", ahead: None }, slice)
}

/// Points the links to a record of `R` at another one, for a few milliseconds; if any are left, returns the answer that runs the call
/// again for them.
pub fn move_links<R: Record>(
    tx: &mut Tx,
    ctx: &Ctx,
    (from, to): (&str, &str),
    handler: fn(Call) -> Result<Work>,
    call: &Call,
) -> Result<Option<Answer>> {
    let links = Relinked { from, to, ahead: call.ahead.as_deref() };
    let done = relink_all(R::shape(), tx, ctx, &links, &Slice::start())?;
    Ok((!done).then(|| rest(R::shape(), handler, call, from)))
}

/// The record that links refer to, and the one that replaces it, or an empty text.
struct Relinked<'r> {
    from: &'r str,
    to: &'r str,
    /// The records to change, if they were looked up.
    ahead: Option<&'r Ahead>,
}

/// A field that can refer to a record, and the place of its table.
struct Linking {
    place: usize,
    table: &'static Table,
    field: &'static str,
}

fn relink_all(shape: &Shape, tx: &mut Tx, ctx: &Ctx, links: &Relinked, slice: &Slice) -> Result<bool> {
    let Relinked { from, to, ahead } = *links;
    if let Some((table, ahead)) = ahead.and_then(|ahead| Some((tables::all().get(ahead.place)?, ahead))) {
        (table.relink)(tx, ctx, &Relink { field: ahead.field, from, to, ids: Some(&ahead.ids) }, slice)?;
        // There may be more.
        return Ok(false);
    }
    for Linking { table, field, .. } in linking(shape) {
        if !(table.relink)(tx, ctx, &Relink { field, from, to, ids: None }, slice)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the fields that can refer to a record, in the order in which their links change.
fn linking(shape: &Shape) -> Vec<Linking> {
    // Between two slices the record is still there, and some links must be too.
    let (last, first): (Vec<_>, Vec<_>) = tables::all().iter().enumerate().partition(|(_, table)| table.relinks_last);
    let mut all = Vec::new();
    for (place, table) in first.into_iter().chain(last) {
        let naming = table.fields.iter().filter(|field| field.rules.refers == shape.table && !field.rules.sent_only);
        // Records under a parent that others need go with it; the parent of any others cannot be deleted.
        let naming = naming.filter(|field| field.name != table.shape.parent || field.rules.owned);
        all.extend(naming.map(|field| Linking { place, table, field: field.name }));
    }
    all
}

/// Whether any record refers to the record with this id.
pub fn is_named<R: Record>(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<bool> {
    names(R::shape(), tx, ctx, id)
}

fn names(shape: &Shape, tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<bool> {
    for table in tables::all() {
        for field in table.fields.iter().filter(|field| field.rules.refers == shape.table && !field.rules.sent_only) {
            let (by, field) = (table.shape.table, field.name);
            let sql = format!(
                "SELECT count(*) FROM (SELECT 1 FROM {by} WHERE account_id = $1 AND \"{field}\" = $2 AND \"{field}\" <> ''
                 LIMIT 1) naming"
            );
            if tx.int(&sql, &[ctx.account.into(), id.into()])? > 0 {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Returns the record that a deleted one was merged into, if it was.
pub fn merged_into<R: Record>(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Option<String>> {
    merged(R::shape().name, tx, ctx, id)
}

fn merged(kind: &str, tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Option<String>> {
    let mut merged = None;
    let mut next = id.to_string();
    // The record may have been merged in turn.
    for _ in 0..MAX_MERGES {
        if next.contains('\0') {
            break;
        }
        let (newest, _) = log::of_record(tx, ctx.account, kind, &next, 0, 1)?;
        let lines = log::numbered(tx, ctx.account, &newest)?;
        let into = lines.first().filter(|line| line.name.ends_with(".deleted")).and_then(|line| {
            let data: serde_json::Value = serde_json::from_str(line.data()).ok()?;
            Some(data.get(MERGED_INTO)?.as_str()?.to_string())
        });
        let Some(into) = into else { break };
        merged = Some(into.clone());
        next = into;
    }
    Ok(merged)
}

/// The member of a deletion in the log that names the record that replaces the deleted one.
pub const MERGED_INTO: &str = "merged_into";

/// How many merges are followed from one record to the next.
const MAX_MERGES: usize = 20;

/// Returns the error about a record that is not there: it may have been merged into another.
pub(super) fn missing(shape: &Shape, tx: &mut Tx, ctx: &Ctx, id: &str, error: Error) -> Error {
    if error.code != Code::NotFound {
        return error;
    }
    match merged(shape.name, tx, ctx, id) {
        Ok(Some(into)) => {
            let name = shape.name;
            let path = tables::named(shape.table).map_or("", |own| own.path.as_str());
            let message = format!("This {name} was merged into {into}.");
            Error { location: Some(format!("{path}/{into}").into()), ..Error::new(Code::Merged, message) }
        }
        Ok(None) => error,
        Err(failed) => failed,
    }
}
