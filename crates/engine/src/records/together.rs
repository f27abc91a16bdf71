//! Records that are removed together: undoing an import removes a hundred thousand of them. A few statements read a hundred,
//! and nothing waits for those that write.
//!
//! Each record is looked up by its key. Right after an import PostgreSQL has the statistics of a smaller table; for a list of
//! ids in one condition it would then read all records of the account.

use std::collections::HashMap;

use store::{Tx, Value, placed};

use super::counts::count_kind;
use super::image::Image;
use super::outside::note_outside;
use crate::context::Ctx;
use crate::error::{Code, Error, Result};
use crate::record::{AnyRecord, Record};
use crate::{search, tables};

/// Removes records that nothing refers to, with their events: ids and versions. The caller has looked at their [`standing`].
pub type RemoveTogether = fn(&mut Tx, &Ctx, &[(&str, i64)]) -> Result<()>;

/// A field of other records that can refer to a record.
#[derive(Clone, Copy)]
pub struct Reference {
    /// The other records.
    pub by: &'static tables::Table,
    /// Their field.
    pub field: &'static str,
}

/// Returns the fields of all records that can refer to a record of a table.
pub fn references(table: &str) -> Vec<Reference> {
    let stored = tables::all().iter().filter(|by| by.stored);
    stored
        .flat_map(|by| by.fields.iter().map(move |field| (by, field)))
        .filter(|(_, field)| field.rules.refers == table && !field.rules.sent_only)
        .map(|(by, field)| Reference { by, field: field.name })
        .collect()
}

/// What others may have done with a record.
pub struct Standing {
    /// Its version.
    pub version: i64,
    /// The place of the first of the [`references`] that is to it.
    pub referred: Option<usize>,
}

/// Returns the standing of these records of a table, by id; those that do not exist are left out.
pub fn standing(tx: &mut Tx, ctx: &Ctx, table: &str, ids: &[&str]) -> Result<HashMap<String, Standing>> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let named = |(place, Reference { by, field }): (usize, &Reference)| {
        format!(
            "WHEN (SELECT 1 FROM {} WHERE account_id = $1 AND \"{field}\" = own.column1 AND \"{field}\" <> '' LIMIT 1) = 1
             THEN {place} ",
            by.shape.table
        )
    };
    let cases: String = references(table).iter().enumerate().map(named).collect();
    let first = if cases.is_empty() { "-1".to_string() } else { format!("CASE {cases}ELSE -1 END") };
    let mut values: Vec<Value> = vec![ctx.account.into()];
    let places = placed(&mut values, ids.iter().map(|id| Value::from(*id)));
    let sql = format!(
        "SELECT column1, coalesce((SELECT version FROM {table} WHERE account_id = $1 AND id = own.column1), 0),
           CAST({first} AS BIGINT) FROM (VALUES ({})) AS own",
        places.join("), (")
    );
    let found = tx.all(&sql, &values, |row| {
        let standing = Standing { version: row.int(1)?, referred: usize::try_from(row.int(2)?).ok() };
        Ok::<_, Error>((row.text(0)?.to_string(), standing))
    })?;
    Ok(found.into_iter().filter(|(_, own)| own.version > 0).collect())
}

/// Removes these records, with their events, in this order. One that is not there, or has another version, is an error.
pub fn remove_together<R: Record>(tx: &mut Tx, ctx: &Ctx, expected: &[(&str, i64)]) -> Result<()> {
    let ids: Vec<&str> = expected.iter().map(|(id, _)| *id).collect();
    let found: Vec<R> = find_each(tx, ctx, &ids)?;
    let by_id: HashMap<&str, &dyn AnyRecord> =
        found.iter().map(|record| (record.base().id.as_str(), record as &dyn AnyRecord)).collect();
    let in_order = expected.iter().map(|(id, version)| {
        let own = by_id.get(id).copied().filter(|record| record.common().version == *version);
        own.ok_or_else(|| Error::new(Code::InUse, "A record was changed meanwhile. Retry."))
    });
    let records: Vec<&dyn AnyRecord> = in_order.collect::<Result<_>>()?;
    remove_all(tx, ctx, &records)
}

/// How many records a statement reads.
const AT_ONCE: usize = 32;

/// Reads the records with these ids.
fn find_each<R: Record>(tx: &mut Tx, ctx: &Ctx, ids: &[&str]) -> Result<Vec<R>> {
    let mut found = Vec::with_capacity(ids.len());
    for some in ids.chunks(AT_ONCE) {
        let mut values: Vec<Value> = vec![ctx.account.into()];
        let places = placed(&mut values, some.iter().map(|id| Value::from(*id)));
        let one = |place: &String| format!("{} WHERE account_id = $1 AND id = {place}", R::sql().select);
        let sql = places.iter().map(one).collect::<Vec<_>>().join(" UNION ALL ");
        found.extend(tx.all(&sql, &values, R::from_row)?);
    }
    Ok(found)
}

fn remove_all(tx: &mut Tx, ctx: &Ctx, records: &[&dyn AnyRecord]) -> Result<()> {
    for record in records {
        let (layout, id) = (record.layout(), &record.common().id);
        tables::guard(tx, ctx, layout.shape.table, id)?;
        tx.send(&layout.sql.delete, &[ctx.account.into(), id.into()])?;
        count_kind(layout.shape.name, tx, ctx, -1)?;
        search::remove(&layout, tx, ctx, id)?;
        note_outside(tx, ctx, *record)?;
        Image::new(ctx, *record)?.tell(tx, ctx, *record, &format!("{}.deleted", layout.shape.events))?;
    }
    Ok(())
}
