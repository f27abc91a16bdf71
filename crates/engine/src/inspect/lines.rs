//! Checks that a record matches the last log entry about it. Verifying the audit chain collects the number of that
//! entry for every record; each record is then compared with it.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value as Shown;
use store::{Tx, Value};

use crate::error::{Error, Result};
use crate::log;
use crate::record::{DETAIL, Record};

/// The last entry about each record of an account.
#[derive(Debug, Default)]
pub struct Lines {
    /// By the hash of kind and id: an account may have millions of records.
    last: HashMap<(u64, u64), i64>,
    /// The last entry of the log.
    end: i64,
}

impl Lines {
    /// Records an entry, in the order of the log.
    pub fn note(&mut self, key: (u64, u64), seq: i64) {
        self.last.insert(key, seq);
        self.end = seq;
    }
}

/// Adds a problem for each record that differs from its entry.
pub fn compare<R: Record>(
    tx: &mut Tx,
    account: i64,
    records: &[R],
    lines: &Lines,
    silent: &[&str],
    problems: &mut Vec<(String, String)>,
) -> Result<()> {
    let kind = R::shape().name;
    let noted = |record: &R| lines.last.get(&log::key(kind, &record.base().id)).copied();
    let shown = entries(tx, account, records.iter().filter_map(noted).collect())?;
    for record in records {
        let mut wrong = differs(record, noted(record).and_then(|seq| shown.get(&seq)), silent);
        if wrong.is_some() {
            // The record may have changed since the log was read.
            let sql = format!(
                "SELECT {} FROM log WHERE account_id = $1 AND seq > $2 AND entity_type = $3 AND entity_id = $4
                 AND type <> $5 ORDER BY seq DESC LIMIT 1",
                log::DATA
            );
            let values =
                [account.into(), lines.end.into(), kind.into(), (&record.base().id).into(), log::fired().into()];
            let newer = tx.first(&sql, &values, |row| Ok::<_, Error>(parsed(row.text(0)?)))?;
            if newer.is_some() {
                wrong = differs(record, newer.as_ref(), silent);
            }
        }
        if let Some(what) = wrong {
            problems.push((record.base().id.clone(), what));
        }
    }
    Ok(())
}

/// Returns the data of the entries with these numbers.
fn entries(tx: &mut Tx, account: i64, numbers: Vec<i64>) -> Result<BTreeMap<i64, Shown>> {
    if numbers.is_empty() {
        return Ok(BTreeMap::new());
    }
    let places: Vec<String> = (2..2 + numbers.len()).map(|place| format!("${place}")).collect();
    let sql = format!("SELECT seq, {} FROM log WHERE account_id = $1 AND seq IN ({})", log::DATA, places.join(", "));
    let values: Vec<Value> = [account].into_iter().chain(numbers).map(Value::from).collect();
    let rows = tx.all(&sql, &values, |row| Ok::<_, Error>((row.int(0)?, parsed(row.text(1)?))))?;
    Ok(rows.into_iter().collect())
}

fn parsed(data: &str) -> Shown {
    serde_json::from_str(data).unwrap_or_default()
}

/// Describes the first difference between a record and its entry. A field that the entry lacks was added by a later
/// version.
fn differs<R: Record>(record: &R, entry: Option<&Shown>, silent: &[&str]) -> Option<String> {
    let Some(entry) = entry else { return Some("The log has no entry about it".to_string()) };
    let (shape, base) = (R::shape(), record.base());
    let mut pairs = Vec::new();
    for field in R::fields().iter().filter(|field| !silent.contains(&field.info.name)) {
        let rules = &field.info.rules;
        let top = entry.get(field.info.name).filter(|_| rules.views.includes(DETAIL));
        let meta = entry["meta"].get(field.info.name).filter(|_| rules.in_meta && shape.meta.includes(DETAIL));
        for logged in top.into_iter().chain(meta) {
            let mut own = Vec::new();
            (field.to_json)(record, rules, &mut own);
            pairs.push((field.info.name, serde_json::from_slice(&own).unwrap_or_default(), logged));
        }
    }
    let mut hidden = vec![b'{'];
    record.write_hidden(&mut hidden);
    hidden.push(b'}');
    let hidden: Shown = serde_json::from_slice(&hidden).unwrap_or_default();
    for (name, own) in hidden.as_object().into_iter().flatten().filter(|(name, _)| !silent.contains(&name.as_str())) {
        pairs.extend(entry["hidden"].get(name).map(|logged| (name.as_str(), own.clone(), logged)));
    }
    let updated = entry.get("updated_at").map(|logged| ("updated_at", base.updated_at.to_string().into(), logged));
    let version = entry["meta"].get("version").map(|logged| ("version", base.version.into(), logged));
    let mut pairs = pairs.into_iter().chain(updated).chain(version);
    let (name, own, logged) = pairs.find(|(_, own, logged)| own != *logged)?;
    Some(format!("{name} is {}, but the last entry of the log says {}", shortened(&own), shortened(logged)))
}

fn shortened(value: &Shown) -> String {
    let text = value.to_string();
    if text.chars().count() <= 100 { text } else { text.chars().take(100).chain("…".chars()).collect() }
}
