//! The tables of two databases, as their schemas describe them.

use std::collections::{BTreeMap, BTreeSet};

use crate::dialect::Dialect;
use crate::migrate::COPYING;
use crate::{Error, Result, Tx, Value};

/// Tables of the store itself, which belong to a database and not to its content.
const OWN: [&str; 2] = ["writer_marks", "schema_migrations"];

/// A table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub name: String,
    pub columns: Vec<String>,
    /// The columns of the primary key, or of a unique index, by their place among all columns.
    pub key: Vec<usize>,
    /// The columns that the target numbers by itself.
    pub counted: Vec<String>,
}

impl Table {
    pub fn listed(&self) -> String {
        quoted(self.columns.iter())
    }

    fn ordered(&self) -> String {
        quoted(self.key.iter().map(|at| &self.columns[*at]))
    }

    pub fn key_of(&self, row: &[Value<'static>]) -> Vec<Value<'static>> {
        self.key.iter().map(|at| row[*at].clone()).collect()
    }

    /// A `SELECT` of rows in the order of their keys; with `after`, from the key in its values on.
    pub fn select(&self, after: bool, most: usize) -> String {
        let places: Vec<String> = (1..=self.key.len()).map(|place| format!("${place}")).collect();
        let from = match after {
            true => format!(" WHERE ({}) > ({})", self.ordered(), places.join(", ")),
            false => String::new(),
        };
        format!("SELECT {} FROM \"{}\"{from} ORDER BY {} LIMIT {most}", self.listed(), self.name, self.ordered())
    }

    pub fn select_all(&self) -> String {
        format!("SELECT {} FROM \"{}\" ORDER BY {}", self.listed(), self.name, self.ordered())
    }

    pub fn insert(&self, dialect: Dialect, rows: usize) -> String {
        let count = self.columns.len();
        let row = |number: usize| {
            let places: Vec<String> = (1..=count).map(|place| format!("${}", number * count + place)).collect();
            format!("({})", places.join(", "))
        };
        let rows: Vec<String> = (0..rows).map(row).collect();
        let own = match dialect {
            Dialect::Postgres if !self.counted.is_empty() => " OVERRIDING SYSTEM VALUE",
            _ => "",
        };
        format!("INSERT INTO \"{}\" ({}){own} VALUES {}", self.name, self.listed(), rows.join(", "))
    }
}

fn quoted<'n>(names: impl Iterator<Item = &'n String>) -> String {
    names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// Returns the names of all tables, except those behind a full-text index.
pub(super) fn names(tx: &mut Tx) -> Result<Vec<String>> {
    let sql = match tx.dialect() {
        Dialect::Sqlite => {
            "SELECT name FROM pragma_table_list
             WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        }
        Dialect::Postgres => {
            "SELECT tablename::TEXT FROM pg_tables
             WHERE schemaname = current_schema() AND tablename <> 'writer_marks' ORDER BY tablename"
        }
    };
    tx.all(sql, &[], |row| Ok(row.text(0)?.to_string()))
}

/// Returns the tables that both databases have, in an order in which none refers to a later one. Their schemas must be the
/// same.
pub(super) fn shared(from: &mut Tx, to: &mut Tx) -> Result<Vec<Table>> {
    let (theirs, ours) = (described(from)?, described(to)?);
    let names = |tables: &BTreeMap<String, Table>| tables.keys().cloned().collect::<BTreeSet<_>>();
    if let Some(name) = names(&theirs).symmetric_difference(&names(&ours)).next() {
        return Err(differs(&format!("only one of them has the table {name}")));
    }
    let mut tables = Vec::new();
    for name in in_order(&names(&ours), &references(to)?) {
        let (Some(their), Some(our)) = (theirs.get(&name), ours.get(&name)) else { continue };
        let sorted = |table: &Table| table.columns.iter().cloned().collect::<BTreeSet<_>>();
        if sorted(their) != sorted(our) || key_names(their) != key_names(our) {
            return Err(differs(&format!("the columns of the table {name} are not the same")));
        }
        if our.key.is_empty() {
            return Err(differs(&format!("the table {name} has no unique key")));
        }
        tables.push(our.clone());
    }
    Ok(tables)
}

fn key_names(table: &Table) -> Vec<&String> {
    table.key.iter().map(|at| &table.columns[*at]).collect()
}

fn differs(why: &str) -> Error {
    Error::Copy(format!("the schemas of the databases differ: {why}"))
}

fn described(tx: &mut Tx) -> Result<BTreeMap<String, Table>> {
    let mut tables = BTreeMap::new();
    let kept = names(tx)?.into_iter().filter(|name| name != COPYING && !OWN.contains(&name.as_str()));
    for name in kept {
        // The place in the key from 1 on, or 0; whether the database numbers the column.
        let sql = match tx.dialect() {
            Dialect::Sqlite => "SELECT name, pk, 0 FROM pragma_table_info($1) ORDER BY name",
            Dialect::Postgres => {
                "SELECT a.attname::TEXT,
                        coalesce(array_position(i.indkey::SMALLINT[], a.attnum), -1)::BIGINT + 1,
                        CASE WHEN a.attidentity <> '' THEN 1 ELSE 0 END::BIGINT
                 FROM pg_attribute a LEFT JOIN LATERAL (
                     SELECT indkey FROM pg_index WHERE indrelid = a.attrelid AND indisunique AND indpred IS NULL
                         AND indexprs IS NULL ORDER BY indisprimary DESC, indexrelid LIMIT 1
                 ) i ON true
                 WHERE a.attrelid = to_regclass(quote_ident($1)) AND a.attnum > 0 AND NOT a.attisdropped
                 ORDER BY a.attname COLLATE \"C\""
            }
        };
        let columns =
            tx.all(sql, &[(&name).into()], |row| Ok::<_, Error>((row.text(0)?.to_string(), row.int(1)?, row.int(2)?)))?;
        let mut key: Vec<(i64, usize)> =
            columns.iter().enumerate().filter(|(_, column)| column.1 > 0).map(|(at, column)| (column.1, at)).collect();
        key.sort_unstable();
        let mut key: Vec<usize> = key.into_iter().map(|(_, at)| at).collect();
        if key.is_empty() {
            let unique = unique_index(tx, &name)?;
            key = unique.iter().filter_map(|own| columns.iter().position(|column| column.0 == *own)).collect();
        }
        let counted = columns.iter().filter(|column| column.2 > 0).map(|column| column.0.clone()).collect();
        let columns = columns.into_iter().map(|column| column.0).collect();
        tables.insert(name.clone(), Table { name, columns, key, counted });
    }
    Ok(tables)
}

/// Returns the columns of the first unique index of a SQLite table without a primary key.
fn unique_index(tx: &mut Tx, table: &str) -> Result<Vec<String>> {
    if tx.dialect() == Dialect::Postgres {
        return Ok(Vec::new());
    }
    let sql = "SELECT l.seq, i.name FROM pragma_index_list($1) l, pragma_index_info(l.name) i
               WHERE l.\"unique\" = 1 AND l.partial = 0 ORDER BY l.seq DESC, i.seqno";
    let columns = tx.all(sql, &[table.into()], |row| Ok::<_, Error>((row.int(0)?, row.text(1)?.to_string())))?;
    let first = columns.first().map(|column| column.0);
    Ok(columns.into_iter().filter(|column| Some(column.0) == first).map(|column| column.1).collect())
}

/// Returns which table refers to which.
fn references(tx: &mut Tx) -> Result<Vec<(String, String)>> {
    let sql = match tx.dialect() {
        Dialect::Sqlite => {
            "SELECT DISTINCT t.name, f.\"table\" FROM pragma_table_list t, pragma_foreign_key_list(t.name) f
             WHERE t.schema = 'main' AND t.type = 'table'"
        }
        Dialect::Postgres => {
            "SELECT DISTINCT a.relname::TEXT, b.relname::TEXT FROM pg_constraint c
             JOIN pg_class a ON a.oid = c.conrelid JOIN pg_class b ON b.oid = c.confrelid
             WHERE c.contype = 'f' AND a.relnamespace = current_schema()::REGNAMESPACE"
        }
    };
    tx.all(sql, &[], |row| Ok((row.text(0)?.to_string(), row.text(1)?.to_string())))
}

/// Sorts tables so that each comes after those it refers to.
fn in_order(names: &BTreeSet<String>, references: &[(String, String)]) -> Vec<String> {
    let mut sorted: Vec<String> = Vec::new();
    while sorted.len() < names.len() {
        let is_ready = |name: &&String| {
            !sorted.contains(name)
                && references.iter().filter(|(by, of)| by == *name && of != by).all(|(_, of)| sorted.contains(of))
        };
        let ready: Vec<String> = names.iter().filter(is_ready).cloned().collect();
        // A circle cannot be put in order.
        let next = if ready.is_empty() {
            names.iter().filter(|name| !sorted.contains(name)).cloned().collect()
        } else {
            ready
        };
        sorted.extend(next);
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_come_after_those_that_they_refer_to() {
        let names = ["a", "b", "c"].map(str::to_string).into();
        let refer = |by: &str, of: &str| (by.to_string(), of.to_string());
        assert_eq!(in_order(&names, &[refer("a", "c"), refer("c", "b"), refer("b", "b")]), ["b", "c", "a"]);
        assert_eq!(in_order(&names, &[refer("a", "b"), refer("b", "a")]), ["c", "a", "b"]);
    }
}
