//! Names beside ids in an export, for people: the client of a deal, the project of an entry of hours.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use engine::error::{Error, Result};
use engine::record::FieldInfo;
use engine::registry::registry;
use engine::resource::Resource;
use store::{Tx, Value};

/// Returns the column with the names of the records whose ids a field has: `client_name` beside `client_id`. None if the field
/// refers to nothing that has a name, or if the resource has a field that is called so.
pub fn beside(resource: &'static Resource, field: &FieldInfo) -> Option<(String, &'static Resource)> {
    let name = format!("{}_name", field.name.strip_suffix("_id")?);
    let other = registry().of_table(field.rules.refers).filter(|other| known_by(other).next().is_some())?;
    (!resource.fields.iter().any(|own| own.name == name)).then_some((name, other))
}

/// Whether an export has such names in a column, beside the ids in another column of the same file.
pub fn are_in(resource: &'static Resource, header: &[String], column: &str) -> bool {
    let has_ids = |field: &&FieldInfo| header.iter().any(|other| other == field.name);
    resource.fields.iter().filter(has_ids).any(|field| beside(resource, field).is_some_and(|(name, _)| name == column))
}

/// The fields by which people know a record.
fn known_by(resource: &'static Resource) -> impl Iterator<Item = &'static FieldInfo> {
    resource.fields.iter().filter(|field| field.rules.names)
}

/// Records to name: their ids, by table.
pub type Wanted = BTreeMap<&'static str, BTreeSet<String>>;

/// Number of names that are kept from one batch to the next: an export takes constant memory.
const MAX_KEPT: usize = 20_000;

/// The names that an export has read so far, by table and id.
#[derive(Default)]
pub struct Names(HashMap<&'static str, HashMap<String, String>>);

impl Names {
    /// Returns the name of a record; empty if it has none, or is gone.
    pub fn of(&self, table: &str, id: &str) -> &str {
        self.0.get(table).and_then(|names| names.get(id)).map_or("", String::as_str)
    }

    /// Leaves out what is known already. When too much is, it is forgotten, and nothing is left out.
    pub fn still(&mut self, mut wanted: Wanted) -> Wanted {
        if self.0.values().map(HashMap::len).sum::<usize>() > MAX_KEPT {
            self.0.clear();
        }
        for (table, ids) in &mut wanted {
            let known = self.0.get(table);
            ids.retain(|id| !known.is_some_and(|known| known.contains_key(id)));
        }
        wanted.retain(|_, ids| !ids.is_empty());
        wanted
    }

    /// Adds the names that were found; whatever was not found has none.
    pub fn learn(&mut self, wanted: Wanted, found: Vec<(&'static str, String, String)>) {
        for (table, ids) in wanted {
            self.0.entry(table).or_default().extend(ids.into_iter().map(|id| (id, String::new())));
        }
        for (table, id, name) in found {
            self.0.entry(table).or_default().insert(id, name);
        }
    }
}

/// Reads names, in a statement for each table.
pub fn read(tx: &mut Tx, account: i64, wanted: &Wanted) -> Result<Vec<(&'static str, String, String)>> {
    let mut names = Vec::new();
    for (table, ids) in wanted {
        let (Some(resource), Some(last)) = (registry().of_table(table), ids.last()) else { continue };
        let columns: Vec<String> = known_by(resource).map(|field| format!("\"{}\"", field.name)).collect();
        // A few lengths, padded with the last id, need only a few prepared statements.
        let length = ids.len().next_power_of_two();
        let places: Vec<String> = (0..length).map(|place| format!("${}", place + 2)).collect();
        let mut values: Vec<Value> = vec![account.into()];
        values.extend(ids.iter().chain(std::iter::repeat(last)).take(length).map(Value::from));
        let sql = format!(
            "SELECT id, {} FROM {table} WHERE account_id = $1 AND id IN ({})",
            columns.join(", "),
            places.join(", ")
        );
        names.extend(tx.all(&sql, &values, |row| {
            let parts = (1..=columns.len()).map(|place| row.text(place).map(str::to_string));
            let parts = parts.collect::<store::Result<Vec<_>>>()?;
            Ok::<_, Error>((*table, row.text(0)?.to_string(), joined(resource, &parts)))
        })?);
    }
    Ok(names)
}

/// Returns the name of a record as lists show it: a company has its own, whoever works there.
fn joined(resource: &'static Resource, parts: &[String]) -> String {
    let mut named = known_by(resource).map(|field| field.name).zip(parts);
    match named.find(|(field, part)| *field == "company_name" && !part.is_empty()) {
        Some((_, company)) => company.clone(),
        None => parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(" "),
    }
}
