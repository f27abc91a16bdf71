//! Checks that a record matches the last log line about it. Verifying the audit chain collects the number of that
//! line for every record; each record is then compared with it.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value as Shown;
use store::{Tx, Value};

use crate::error::{Error, Result};
use crate::log;
use crate::record::{AnyRecord, DETAIL, Layout, write_hidden};
use crate::tables::{self, Logged};

/// The last line about each record of an account.
#[derive(Debug, Default)]
pub struct Lines {
    /// By the hash of kind and id: an account may have millions of records.
    last: HashMap<(u64, u64), (i64, AtomicBool)>,
    /// The last line of the log.
    end: i64,
}

impl Lines {
    /// Records a line, in the order of the log.
    pub fn note(&mut self, key: (u64, u64), seq: i64) {
        self.last.insert(key, (seq, AtomicBool::new(false)));
        self.end = seq;
    }

    /// Notes that a record exists.
    pub fn saw(&self, kind: &str, id: &str) {
        if let Some((_, seen)) = self.last.get(&log::key(kind, id)) {
            seen.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the last lines about the records that do not exist.
    pub fn unseen(&self) -> Vec<i64> {
        let unseen = self.last.values().filter(|(_, seen)| !seen.load(Ordering::Relaxed));
        unseen.map(|(seq, _)| *seq).collect()
    }
}

/// Adds a problem for each record that differs from its line.
pub fn compare(
    tx: &mut Tx,
    account: i64,
    records: &[&dyn AnyRecord],
    lines: &Lines,
    silent: &[&str],
    problems: &mut Vec<(String, String)>,
) -> Result<()> {
    let noted = |record: &&dyn AnyRecord| {
        let key = log::key(record.layout().shape.name, &record.common().id);
        lines.last.get(&key).map(|(seq, _)| *seq)
    };
    let shown = last_lines(tx, account, records.iter().filter_map(noted).collect())?;
    for record in records {
        let mut wrong = differs(*record, noted(record).and_then(|seq| shown.get(&seq)), silent);
        if wrong.is_some() {
            // The record may have changed since the log was read.
            let newer = newest(tx, account, lines.end, *record)?;
            if newer.is_some() {
                wrong = differs(*record, newer.as_ref(), silent);
            }
        }
        if let Some(wrong) = wrong {
            problems.push((record.common().id.clone(), wrong.sentence(true)));
        }
    }
    Ok(())
}

/// Returns how a record that is about to get a new line differs from its last one, as a sentence without what the API does
/// not show; `None` for records that are not guarded.
pub fn changed_outside(tx: &mut Tx, account: i64, record: &dyn AnyRecord) -> Result<Option<String>> {
    let Some(table) = tables::named(record.layout().shape.table).filter(|table| table.guarded) else { return Ok(None) };
    let Logged::Except(silent) = table.logged else { return Ok(None) };
    let line = newest(tx, account, 0, record)?;
    Ok(differs(record, line.as_ref(), silent).map(|wrong| wrong.sentence(false)))
}

/// Returns the last line about a record after `seq`.
fn newest(tx: &mut Tx, account: i64, seq: i64, record: &dyn AnyRecord) -> Result<Option<LastLine>> {
    let sql = format!(
        "SELECT {}, type FROM log{} WHERE account_id = $1 AND seq > $2 AND entity_type = $3 AND entity_id = $4
         AND type <> $5 ORDER BY seq DESC LIMIT 1",
        log::DATA,
        tx.dialect().indexed_by("log_records")
    );
    let (kind, id) = (record.layout().shape.name, &record.common().id);
    let values = [account.into(), seq.into(), kind.into(), id.into(), log::fired().into()];
    tx.first(&sql, &values, |row| Ok::<_, Error>(LastLine::new(row.text(0)?, row.text(1)?)))
}

/// Returns the data of the lines with these numbers.
fn last_lines(tx: &mut Tx, account: i64, numbers: Vec<i64>) -> Result<BTreeMap<i64, LastLine>> {
    if numbers.is_empty() {
        return Ok(BTreeMap::new());
    }
    let places: Vec<String> = (2..2 + numbers.len()).map(|place| format!("${place}")).collect();
    let sql =
        format!("SELECT seq, {}, type FROM log WHERE account_id = $1 AND seq IN ({})", log::DATA, places.join(", "));
    let values: Vec<Value> = [account].into_iter().chain(numbers).map(Value::from).collect();
    let rows = tx.all(&sql, &values, |row| Ok::<_, Error>((row.int(0)?, LastLine::new(row.text(1)?, row.text(2)?))))?;
    Ok(rows.into_iter().collect())
}

/// A line about a record.
struct LastLine {
    shown: Shown,
    /// Whether the record was deleted or erased.
    ends: bool,
}

impl LastLine {
    fn new(data: &str, name: &str) -> LastLine {
        let shown: Shown = serde_json::from_str(data).unwrap_or_default();
        LastLine { ends: ends(name, &shown), shown }
    }
}

/// The event of a record that was changed outside the program.
pub const CHANGED_OUTSIDE: &str = "changed_outside";
/// The member of a line with the columns that the API does not show.
pub(crate) const HIDDEN: &str = "hidden";
/// The member of a line about a record that was changed outside the program and does not exist any more.
pub(crate) const DELETED: &str = "deleted";

fn ends(name: &str, shown: &Shown) -> bool {
    let is_outside = || name.ends_with(CHANGED_OUTSIDE) && shown[DELETED] == true;
    name.ends_with(".deleted") || name.ends_with(".erased") || is_outside()
}

/// How a record differs from its last line.
enum Difference {
    /// There is no line.
    Unknown,
    /// The line says that it was deleted.
    Deleted,
    /// Fields have other values.
    Fields(Vec<Field>),
}

/// A field that has another value than its line says.
struct Field {
    name: String,
    own: Shown,
    logged: Shown,
    /// Whether the API does not show it.
    hidden: bool,
}

impl Difference {
    /// Describes it, with or without values that the API does not show.
    fn sentence(&self, with_hidden: bool) -> String {
        let fields = match self {
            Difference::Unknown => return "Created outside the log, which has no line about it".to_string(),
            Difference::Deleted => {
                return "Created outside the log, whose last line about it says that it was deleted".to_string();
            }
            Difference::Fields(fields) => fields,
        };
        let words: Vec<String> = fields.iter().map(|field| field.sentence(with_hidden)).collect();
        words.join("; ")
    }
}

impl Field {
    fn sentence(&self, with_hidden: bool) -> String {
        let Field { name, own, logged, hidden } = self;
        if name == DIGEST {
            return "Its secret was replaced outside the log".to_string();
        }
        if *hidden && !with_hidden {
            return format!("Changed outside the log: {name} is not what the last line of the log says");
        }
        let how = if is_wider(name, own, logged) { "Its scopes were widened" } else { "Changed" };
        let (own, logged) = (shortened(own), shortened(logged));
        format!("{how} outside the log: {name} is {own}, but the last line of the log says {logged}")
    }
}

/// Returns the differences between a record and its line. A field that the line lacks was added by a later version.
fn differs(record: &dyn AnyRecord, line: Option<&LastLine>, silent: &[&str]) -> Option<Difference> {
    let Some(LastLine { shown: line, ends }) = line else { return Some(Difference::Unknown) };
    if *ends {
        return Some(Difference::Deleted);
    }
    let (Layout { shape, fields, .. }, base) = (record.layout(), record.common());
    let mut pairs = Vec::new();
    for (place, field) in fields.iter().enumerate().filter(|(_, field)| !silent.contains(&field.name)) {
        let rules = &field.rules;
        let top = line.get(field.name).filter(|_| rules.views.includes(DETAIL));
        let meta = line["meta"].get(field.name).filter(|_| rules.in_meta && shape.meta.includes(DETAIL));
        for logged in top.into_iter().chain(meta) {
            let mut own = Vec::new();
            record.at(place).write_json(rules, &mut own);
            pairs.push((field.name, serde_json::from_slice(&own).unwrap_or_default(), logged));
        }
    }
    let mut hidden = vec![b'{'];
    write_hidden(record, &mut hidden);
    hidden.push(b'}');
    let hidden: Shown = serde_json::from_slice(&hidden).unwrap_or_default();
    for (name, own) in hidden.as_object().into_iter().flatten().filter(|(name, _)| !silent.contains(&name.as_str())) {
        let logged = line[HIDDEN].get(name);
        pairs.extend(logged.map(|logged| (name.as_str(), own.clone(), logged)));
    }
    for (name, own) in [("updated_at", base.updated_at), ("created_at", base.created_at)] {
        let logged = [line.get(name), line["meta"].get(name)].into_iter().flatten();
        pairs.extend(logged.map(|logged| (name, own.to_string().into(), logged)));
    }
    let version = line["meta"].get("version").map(|logged| ("version", base.version.into(), logged));
    let differing = pairs.into_iter().chain(version).filter(|(_, own, logged)| own != *logged);
    let mut fields: Vec<Field> = Vec::new();
    for (name, own, logged) in differing.take(MOST_NAMED) {
        if fields.iter().all(|field| field.name != name) {
            let is_hidden = hidden.get(name).is_some();
            fields.push(Field { name: name.to_string(), own, logged: logged.clone(), hidden: is_hidden });
        }
    }
    (!fields.is_empty()).then_some(Difference::Fields(fields))
}

/// How many differing fields of a record are named.
const MOST_NAMED: usize = 10;

/// The column of a key whose digest the log has.
const DIGEST: &str = "hash";

/// Whether a key has scopes that it was not given.
fn is_wider(name: &str, own: &Shown, logged: &Shown) -> bool {
    let has = |scope: &Shown| logged.as_array().is_some_and(|scopes| scopes.contains(scope));
    name == "scopes" && own.as_array().is_some_and(|scopes| scopes.iter().any(|scope| !has(scope)))
}

/// Returns the table and id of the records of these lines that were not deleted by a later one.
pub fn gone(tx: &mut Tx, account: i64, numbers: &[i64]) -> Result<Vec<(&'static str, String)>> {
    let mut gone = Vec::new();
    for line in log::numbered(tx, account, numbers)? {
        let (kind, id) = (line.entity_type(), line.entity_id());
        let Some(table) = tables::of_kind(kind).filter(|table| matches!(table.logged, Logged::Except(_))) else {
            continue;
        };
        // It may have been deleted since the log was read.
        let (newest, _) = log::of_record(tx, account, kind, id, 0, 1)?;
        let newest = log::numbered(tx, account, &newest)?;
        let ended = newest.iter().any(|line| LastLine::new(line.data(), &line.name).ends);
        if !ended && !table.fleeting {
            gone.push((table.shape.table, id.to_string()));
        }
    }
    Ok(gone)
}

fn shortened(value: &Shown) -> String {
    let text = value.to_string();
    if text.chars().count() <= 100 { text } else { text.chars().take(100).chain("…".chars()).collect() }
}
