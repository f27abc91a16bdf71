//! All records that satisfy the filters of a list, batch by batch in the order of their ids: for exports.

use store::{Row, Tx, Value};

use super::{Form, ListQuery, doubts};
use crate::call::Call;
use crate::context::Ctx;
use crate::error::Result;
use crate::record::{AnyRecord, DETAIL, Layout, Record, write_json};
use crate::search::{self, Sought, Way};

/// Number of records in a batch.
const BATCH: usize = 500;
/// A batch ends after this many bytes: a document may have a megabyte.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Some records, as a detail view shows them, without their URLs.
#[derive(Debug, Default)]
pub struct Batch {
    /// A JSON object for each record.
    pub records: Vec<Vec<u8>>,
    /// The last id; empty if there are no more records.
    pub last: String,
}

/// Returns the records after an id. The query has filters only.
pub type ReadBatch = fn(&mut Tx, &Ctx, &Call, &str) -> Result<Batch>;

/// Checks the filters of an export; returns warnings about values that no record has.
pub fn check<R: Record>(tx: &mut Tx, ctx: &Ctx, call: &Call) -> Result<Vec<String>> {
    let query = ListQuery::parse(&R::layout(), call, Form::Batch)?;
    doubts::warnings(R::shape().table, tx, ctx, &query.doubts, false)
}

/// Returns the records after an id.
pub fn read<R: Record>(tx: &mut Tx, ctx: &Ctx, call: &Call, after: &str) -> Result<Batch> {
    read_as(&R::layout(), tx, ctx, call, after, write_row::<R>)
}

/// Writes a row without its URLs, but with the parent that the API does not show; returns also its id.
type WriteRow = fn(&Row, &Ctx, Option<usize>) -> store::Result<(Vec<u8>, String)>;

fn write_row<R: Record>(row: &Row, ctx: &Ctx, parent: Option<usize>) -> store::Result<(Vec<u8>, String)> {
    let record = R::from_row(row)?;
    Ok((written(&record, ctx, parent), record.base().id.clone()))
}

fn written(record: &dyn AnyRecord, ctx: &Ctx, parent: Option<usize>) -> Vec<u8> {
    let mut json = Vec::with_capacity(512);
    let urls = write_json(record, DETAIL, ctx, &mut json);
    json.drain(urls);
    if let Some(place) = parent {
        let field = &record.described()[place];
        json.pop();
        crate::json::write_name(&mut json, field.name);
        record.at(place).write_json(&field.rules, &mut json);
        json.push(b'}');
    }
    json
}

fn read_as(layout: &Layout, tx: &mut Tx, ctx: &Ctx, call: &Call, after: &str, write: WriteRow) -> Result<Batch> {
    let query = ListQuery::parse(layout, call, Form::Batch)?;
    let (sql, values) = query.batch_statement(layout, tx, ctx, after)?;
    let (mut batch, mut bytes, mut cut) = (Batch::default(), 0, false);
    let mut last = String::new();
    let parent = layout.parent().filter(|(_, parent)| layout.shape.hides(parent)).map(|(place, _)| place);
    tx.each(&sql, &values, |row| {
        if bytes > MAX_BYTES {
            cut = true;
            return Ok(());
        }
        let (json, id) = write(row, ctx, parent)?;
        bytes += json.len();
        last = id;
        batch.records.push(json);
        Ok::<_, crate::error::Error>(())
    })?;
    if cut || batch.records.len() == BATCH {
        batch.last = last;
    }
    Ok(batch)
}

impl ListQuery {
    /// Returns the statement of a batch. It walks along the primary key, so that all batches together read the table once; a
    /// filter that chose its own index would sort its matches for each batch.
    fn batch_statement(
        &self,
        layout: &Layout,
        tx: &mut Tx,
        ctx: &Ctx,
        after: &str,
    ) -> Result<(String, Vec<Value<'static>>)> {
        let table = layout.shape.table;
        let mut values: Vec<Value<'static>> = vec![ctx.account.into()];
        let mut conditions = format!("{table}.account_id = $1");
        if let Some(words) = &self.search {
            values.push(layout.shape.name.into());
            let (only, wanted) = match Sought::of(tx, ctx.account, layout.shape.name, words)?.all(tx) {
                Way::Index(found, wanted) => (format!("{table}.id IN (SELECT record_id FROM ({found}) found)"), wanted),
                Way::Texts(patterns) => (search::has_words(tx, table, patterns.len()), patterns),
            };
            values.extend(wanted);
            conditions.push_str(&format!(" AND {only}"));
        }
        let aside = tx.dialect().by_no_index(table);
        for condition in &self.conditions {
            conditions.push_str(" AND ");
            conditions.push_str(&condition.sql(&aside, ctx, &mut values));
        }
        values.push(after.to_string().into());
        let select = &layout.sql.select;
        let place = values.len();
        Ok((format!("{select} WHERE {conditions} AND {table}.id > ${place} ORDER BY {table}.id LIMIT {BATCH}"), values))
    }
}
