//! What must hold of every record, as the registry knows its fields; and of the rows beside them.

use std::collections::{BTreeMap, BTreeSet};

use store::{Tx, Value};

use super::Inspection;
use crate::accounts::Account;
use crate::error::{Error, Result};
use crate::record::Record;
use crate::resources::{self, Resource};

/// Records looked at in one transaction: one may have a megabyte.
const BATCH: usize = 100;

/// What was found in some records.
#[derive(Debug, Default)]
pub struct Inspected {
    /// The last id, or empty when there are no more.
    pub last: String,
    /// How many.
    pub seen: u64,
    /// An id and a sentence for each problem.
    pub problems: Vec<(String, String)>,
}

/// Checks the records of an account behind the id `after`: they can be read, what they name is there, they have their
/// search text; and `own`, for what only this kind of record has.
pub fn inspect<R: Record>(
    tx: &mut Tx,
    account: i64,
    after: &str,
    own: impl Fn(&mut Tx, i64, &R) -> Result<Vec<String>>,
) -> Result<Inspected> {
    let sql = format!("{} WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT {BATCH}", R::sql().select);
    let rows = tx.all(&sql, &[account.into(), after.into()], |row| {
        Ok::<_, Error>((row.text(0)?.to_string(), R::from_row(row)))
    })?;
    let mut found = Inspected { seen: rows.len() as u64, ..Inspected::default() };
    if rows.len() == BATCH {
        found.last = rows.last().map(|(id, _)| id.clone()).unwrap_or_default();
    }
    let mut records = Vec::with_capacity(rows.len());
    for (id, record) in rows {
        match record {
            Ok(record) => records.push(record),
            Err(error) => found.problems.push((id, format!("It cannot be read: {error}"))),
        }
    }
    references(tx, account, &records, &mut found.problems)?;
    if R::is_searched() {
        texts(tx, account, &records, &mut found.problems)?;
    }
    for record in &records {
        let faults = own(tx, account, record)?;
        found.problems.extend(faults.into_iter().map(|what| (record.base().id.clone(), what)));
    }
    Ok(found)
}

type Problems = Vec<(String, String)>;

fn references<R: Record>(tx: &mut Tx, account: i64, records: &[R], problems: &mut Problems) -> Result<()> {
    let is_fleeting = resources::ALL.iter().any(|one| one.shape.table == R::shape().table && one.fleeting);
    for field in R::columns().filter(|field| resources::has_table(field.info.rules.refers) && !is_fleeting) {
        let (name, table) = (field.info.name, field.info.rules.refers);
        let named = |record: &R| match (field.to_db)(record) {
            Value::Text(id) if !id.is_empty() => Some(id.into_owned()),
            _ => None,
        };
        let ids: BTreeSet<String> = records.iter().filter_map(named).collect();
        let there: BTreeSet<String> = by_ids(tx, "id", table, account, "", &ids)?.into_keys().collect();
        for record in records {
            if let Some(id) = named(record).filter(|id| !there.contains(id)) {
                problems.push((record.base().id.clone(), format!("{name} names {id} of {table}, which is not there")));
            }
        }
    }
    Ok(())
}

fn texts<R: Record>(tx: &mut Tx, account: i64, records: &[R], problems: &mut Problems) -> Result<()> {
    let ids = records.iter().map(|record| record.base().id.clone()).collect();
    let kept = by_ids(tx, "folded", "search_texts", account, R::shape().name, &ids)?;
    for record in records {
        let what = match kept.get(&record.base().id) {
            Some(text) if *text == record.search_text() => continue,
            Some(_) => "Its search text is not of its words",
            None => "It has no search text, so searches do not find it",
        };
        problems.push((record.base().id.clone(), what.to_string()));
    }
    Ok(())
}

/// A column of the rows of `table` with these ids; of one `kind`, in the table that has the texts of all.
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

/// Rows that no record of the registry is: a table, a `SELECT` of the ids of those that are wrong, and what is wrong.
const RELATIONS: &[(&str, &str, &str)] = &[
    (
        "document_pdfs",
        "SELECT document_id FROM document_pdfs p WHERE account_id = $1 AND (
            NOT EXISTS (SELECT 1 FROM files WHERE account_id = $1 AND id = p.file_id)
            OR NOT EXISTS (SELECT 1 FROM invoices WHERE account_id = $1 AND id = p.document_id)
            AND NOT EXISTS (SELECT 1 FROM quotes WHERE account_id = $1 AND id = p.document_id)
            AND NOT EXISTS (SELECT 1 FROM workorders WHERE account_id = $1 AND id = p.document_id))",
        "The PDF of this document has no file, or the document is not there",
    ),
    (
        "deliveries",
        "SELECT id FROM deliveries d WHERE account_id = $1
            AND NOT EXISTS (SELECT 1 FROM mails WHERE account_id = $1 AND id = d.mail_id)",
        "The mail that it delivers is not there",
    ),
    (
        "webhook_cursors",
        "SELECT endpoint_id FROM webhook_cursors c WHERE account_id = $1 AND (
            NOT EXISTS (SELECT 1 FROM webhook_endpoints WHERE account_id = $1 AND id = c.endpoint_id)
            OR sent_seq > (SELECT coalesce(max(seq), 0) FROM log WHERE account_id = $1))",
        "The endpoint is not there, or was sent events that the log does not have",
    ),
    (
        "subscription_periods",
        "SELECT subscription_id || ' ' || period_start FROM subscription_periods p WHERE account_id = $1 AND (
            period_end < period_start
            OR NOT EXISTS (SELECT 1 FROM subscriptions WHERE account_id = $1 AND id = p.subscription_id)
            OR EXISTS (SELECT 1 FROM invoices i WHERE account_id = $1 AND id = p.invoice_id
                AND (i.subscription_id <> p.subscription_id OR i.period_start <> p.period_start)))",
        "The period ends before it begins, or its subscription is not there, or its invoice is for another",
    ),
];

impl Inspection<'_> {
    /// The kept count of a resource is what counting finds.
    pub(super) fn counts(&mut self, account: &Account, resource: &Resource) {
        let (number, shape) = (account.number, resource.shape);
        let sql = format!(
            "SELECT coalesce((SELECT total FROM record_counts WHERE account_id = $1 AND kind = $2), 0),
                    (SELECT count(*) FROM {} WHERE account_id = $1)",
            shape.table
        );
        let counts = self.look(account, "record_counts", |tx| {
            let counts =
                tx.first(&sql, &[number.into(), shape.name.into()], |row| Ok::<_, Error>((row.int(0)?, row.int(1)?)));
            Ok(counts?.unwrap_or_default())
        });
        if let Some((kept, counted)) = counts.filter(|(kept, counted)| kept != counted) {
            let what = format!("The kept count of {} is {kept}, but there are {counted}", shape.table);
            self.problem(&account.uid, "record_counts", shape.name, what);
        }
    }

    /// Every search text of a resource has its record.
    pub(super) fn texts(&mut self, account: &Account, resource: &Resource) {
        let (number, shape) = (account.number, resource.shape);
        let mut after = String::new();
        loop {
            let sql = format!(
                "SELECT record_id, (SELECT count(*) FROM {} WHERE account_id = $1 AND id = record_id) FROM search_texts
                 WHERE account_id = $1 AND kind = $2 AND record_id > $3 ORDER BY record_id LIMIT 1000",
                shape.table
            );
            let from = after.clone();
            let read = self.look(account, "search_texts", |tx| {
                let values = [number.into(), shape.name.into(), (&from).into()];
                tx.all(&sql, &values, |row| Ok::<_, Error>((row.text(0)?.to_string(), row.int(1)?)))
            });
            let Some(last) = read.as_ref().and_then(|rows| rows.last()).map(|(id, _)| id.clone()) else { return };
            for (id, there) in read.unwrap_or_default() {
                if there == 0 {
                    let what = format!("There is a search text, but no such record of {}", shape.table);
                    self.problem(&account.uid, "search_texts", &id, what);
                }
            }
            after = last;
        }
    }

    /// Rows beside the records name what is there.
    pub(super) fn relations(&mut self, account: &Account) {
        let number = account.number;
        for (table, sql, what) in RELATIONS {
            self.witness.sees(table, 0);
            let wrong = self.look(account, table, |tx| {
                tx.all(sql, &[number.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))
            });
            for id in wrong.unwrap_or_default() {
                self.problem(&account.uid, table, &id, *what);
            }
        }
    }
}
