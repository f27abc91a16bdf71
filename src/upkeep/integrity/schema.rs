//! Compares the schema of the database with what the migrations make.

use std::collections::BTreeMap;

use engine::migrations;
use store::{Store, Stranger, TableDigest, Unsound};

use super::Inspection;

/// The tables that the migrations make, and their indexes; one table per line. A test keeps both lists up to date.
const SQLITE: &str = include_str!("schema/sqlite.txt");
const POSTGRESQL: &str = include_str!("schema/postgresql.txt");

/// The list of what a database contains, in the form of these files.
pub fn listed(catalogue: &[TableDigest]) -> String {
    let lines = catalogue.iter().map(|table| {
        let indexes = table.indexes.iter().map(|(name, digest)| format!(" {name}:{digest}"));
        format!("{} {}{}\n", table.name, table.digest, indexes.collect::<String>())
    });
    lines.collect()
}

/// Returns what acts in the schema although no migration made it.
pub fn strangers(store: &Store) -> Vec<Unsound> {
    match store.strangers(&migrations::all()) {
        Ok(found) => found.into_iter().map(unsound).collect(),
        Err(error) => vec![Unsound { table: "schema".to_string(), what: format!("It cannot be read: {error}") }],
    }
}

fn unsound(Stranger { what, remedy }: Stranger) -> Unsound {
    let what = format!("Kantoor did not make {what}, which can change or copy what is stored; remove it ({remedy})");
    Unsound { table: "schema".to_string(), what }
}

impl Inspection<'_> {
    /// Checks the schema. Further tables and indexes, which an operator may add, are no problem.
    pub(super) fn schema(&mut self) {
        self.witness.sees("schema", 0);
        for found in strangers(self.store) {
            self.problem("", &found.table, "", found.what);
        }
        let there = match self.store.read_now(|tx| tx.catalogue()) {
            Ok(there) => there,
            Err(error) => return self.problem("", "schema", "", format!("It cannot be read: {error}")),
        };
        let there: BTreeMap<&str, &TableDigest> = there.iter().map(|table| (table.name.as_str(), table)).collect();
        let expected = if self.store.dialect().is_shared() { POSTGRESQL } else { SQLITE };
        for line in expected.lines() {
            let mut words = line.split(' ');
            let (Some(name), Some(digest)) = (words.next(), words.next()) else { continue };
            let Some(table) = there.get(name) else {
                self.problem("", name, "", "The table is missing");
                continue;
            };
            if table.digest != digest {
                self.problem("", name, "", "Its columns, defaults or constraints are not those that Kantoor made");
            }
            for (index, digest) in words.filter_map(|word| word.split_once(':')) {
                let found = table.indexes.iter().find(|(own, _)| own == index);
                if found.is_none() {
                    self.problem("", name, "", format!("The index {index} is missing"));
                } else if found.is_some_and(|(_, own)| own != digest) {
                    self.problem("", name, "", format!("The index {index} is not the one that Kantoor made"));
                }
            }
        }
    }
}
