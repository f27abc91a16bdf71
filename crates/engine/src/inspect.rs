//! Integrity checks that apply to every record, driven by the fields in the registry.

pub mod lines;

use std::collections::{BTreeMap, BTreeSet};

use store::{Tx, Value};

use crate::error::{Error, Result};
use crate::record::{AnyRecord, FieldInfo, Layout, Record, search_text};
use crate::tables::{self, Logged};
use lines::Lines;

/// Number of records per transaction: one can have a megabyte.
const BATCH: usize = 100;

/// The findings in a batch of records.
#[derive(Debug, Default)]
pub struct Inspected {
    /// The last id, or empty if there are no more.
    pub last: String,
    /// The number of records.
    pub seen: u64,
    /// An id and a sentence for each problem.
    pub problems: Vec<(String, String)>,
}

/// Checks the records of an account after the id `after`: that they are readable, that the records they refer to exist,
/// that they have their search text, and that they match the log; and `own`, the checks of this kind of record.
pub fn inspect<R: Record>(
    tx: &mut Tx,
    account: i64,
    after: &str,
    lines: Option<&Lines>,
    own: impl Fn(&mut Tx, i64, &R) -> Result<Vec<String>>,
) -> Result<Inspected> {
    let (last, records, problems) = read_some::<R>(tx, account, after, BATCH)?;
    let mut found = Inspected { last, seen: (records.len() + problems.len()) as u64, problems };
    let readable: Vec<&dyn AnyRecord> = records.iter().map(|record| record as &dyn AnyRecord).collect();
    check(&R::layout(), tx, account, &readable, lines, &mut found.problems)?;
    for record in &records {
        let faults = own(tx, account, record)?;
        found.problems.extend(faults.into_iter().map(|what| (record.base().id.clone(), what)));
    }
    Ok(found)
}

/// An id and a sentence for each record with a problem.
pub type Problems = Vec<(String, String)>;

/// Reads records of an account after an id; returns the last id, if there may be more, and a sentence for each record that
/// cannot be read.
pub fn read_some<R: Record>(tx: &mut Tx, account: i64, after: &str, most: usize) -> Result<(String, Vec<R>, Problems)> {
    let sql = format!("{} WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT {most}", R::sql().select);
    let rows = tx.all(&sql, &[account.into(), after.into()], |row| {
        Ok::<_, Error>((row.text(0)?.to_string(), R::from_row(row)))
    })?;
    let last = rows.last().filter(|_| rows.len() == most).map(|(id, _)| id.clone()).unwrap_or_default();
    let (mut records, mut problems) = (Vec::with_capacity(rows.len()), Vec::new());
    for (id, record) in rows {
        match record {
            Ok(record) => records.push(record),
            Err(error) => problems.push((id, unreadable(&error))),
        }
    }
    Ok((last, records, problems))
}

fn unreadable(error: &store::Error) -> String {
    match error {
        store::Error::Unreadable { column, why, .. } => format!("Column {column} cannot be read: {why}"),
        _ => format!("It cannot be read: {error}"),
    }
}

/// Checks records that can be read; `problems` has those that cannot.
fn check(
    layout: &Layout,
    tx: &mut Tx,
    account: i64,
    records: &[&dyn AnyRecord],
    lines: Option<&Lines>,
    problems: &mut Problems,
) -> Result<()> {
    let ids = records.iter().map(|record| &record.common().id).chain(problems.iter().map(|(id, _)| id));
    lines.into_iter().for_each(|lines| ids.clone().for_each(|id| lines.saw(layout.shape.name, id)));
    references(layout, tx, account, records, problems)?;
    texts(layout, tx, account, records, problems)?;
    let logged = tables::named(layout.shape.table).map_or(Logged::No, |table| table.logged);
    if let (Some(lines), Logged::Except(silent)) = (lines, logged) {
        lines::compare(tx, account, records, lines, silent, problems)?;
    }
    Ok(())
}

fn references(
    layout: &Layout,
    tx: &mut Tx,
    account: i64,
    records: &[&dyn AnyRecord],
    problems: &mut Problems,
) -> Result<()> {
    let is_fleeting = tables::named(layout.shape.table).is_some_and(|own| own.fleeting);
    let refers = |field: &FieldInfo| tables::named(field.rules.refers).is_some() && !is_fleeting;
    for (place, field) in layout.columns().filter(|(_, field)| refers(field)) {
        let (name, table) = (field.name, field.rules.refers);
        let named = |record: &&dyn AnyRecord| match record.at(place).value_to_db() {
            Value::Text(id) if !id.is_empty() => Some(id.into_owned()),
            _ => None,
        };
        let ids: BTreeSet<String> = records.iter().filter_map(named).collect();
        let there: BTreeSet<String> = by_ids(tx, "id", table, account, "", &ids)?.into_keys().collect();
        for record in records {
            if let Some(id) = named(record).filter(|id| !there.contains(id)) {
                let what = format!("{name} refers to {id} of {table}, which does not exist");
                problems.push((record.common().id.clone(), what));
            }
        }
    }
    Ok(())
}

fn texts(
    layout: &Layout,
    tx: &mut Tx,
    account: i64,
    records: &[&dyn AnyRecord],
    problems: &mut Problems,
) -> Result<()> {
    for (id, is_there) in unsearched(layout, tx, account, records)? {
        let what = match is_there {
            true => "Its search text does not match its fields",
            false => "It has no search text, so searches do not find it",
        };
        problems.push((id, what.to_string()));
    }
    Ok(())
}

/// Returns the ids of the records whose search text is missing or differs from their fields, and whether there is one.
pub(crate) fn unsearched(
    layout: &Layout,
    tx: &mut Tx,
    account: i64,
    records: &[&dyn AnyRecord],
) -> Result<Vec<(String, bool)>> {
    if !layout.is_searched() {
        return Ok(Vec::new());
    }
    let ids = records.iter().map(|record| record.common().id.clone()).collect();
    let kept = by_ids(tx, "folded", "search_texts", account, layout.shape.name, &ids)?;
    let differing = records.iter().filter(|record| kept.get(&record.common().id) != Some(&search_text(**record)));
    Ok(differing.map(|record| &record.common().id).map(|id| (id.clone(), kept.contains_key(id))).collect())
}

/// Returns a column of the rows of `table` with these ids; of one `kind`, in the table of search texts.
fn by_ids(
    tx: &mut Tx,
    column: &str,
    table: &str,
    account: i64,
    kind: &str,
    ids: &BTreeSet<String>,
) -> Result<BTreeMap<String, String>> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (id, own) = if kind.is_empty() { ("id", "") } else { ("record_id", " AND kind = $2") };
    let mut values: Vec<Value> = vec![account.into()];
    values.extend((!kind.is_empty()).then(|| Value::from(kind)));
    let first = values.len() + 1;
    let places: Vec<String> = (first..first + ids.len()).map(|place| format!("${place}")).collect();
    values.extend(ids.iter().map(Value::from));
    let sql =
        format!("SELECT {id}, {column} FROM {table} WHERE account_id = $1{own} AND {id} IN ({})", places.join(", "));
    let rows = tx.all(&sql, &values, |row| Ok::<_, Error>((row.text(0)?.to_string(), row.text(1)?.to_string())))?;
    Ok(rows.into_iter().collect())
}
