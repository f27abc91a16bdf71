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
        let indexes = table.indexes.iter().map(|index| format!(" {}:{}", index.name, index.digest));
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

/// Returns how the tables differ from those that the migrations make. Further tables and indexes, which an operator may add, are no
/// difference, unless they refuse rows.
pub fn differences(store: &Store) -> Vec<Unsound> {
    let there = match store.read_now(|tx| tx.catalogue()) {
        Ok(there) => there,
        Err(error) => {
            return vec![Unsound { table: "schema".to_string(), what: format!("It cannot be read: {error}") }];
        }
    };
    let mut found = Vec::new();
    let mut differs = |table: &str, what: String| found.push(Unsound { table: table.to_string(), what });
    let mut there: BTreeMap<&str, &TableDigest> = there.iter().map(|table| (table.name.as_str(), table)).collect();
    let expected = if store.dialect().is_shared() { POSTGRESQL } else { SQLITE };
    for line in expected.lines() {
        let mut words = line.split(' ');
        let (Some(name), Some(digest)) = (words.next(), words.next()) else { continue };
        let Some(table) = there.remove(name) else {
            differs(name, "The table is missing".to_string());
            continue;
        };
        if table.digest != digest {
            differs(name, "Its columns, defaults or constraints are not those that Kantoor made".to_string());
        }
        let own: BTreeMap<&str, &str> = words.filter_map(|word| word.split_once(':')).collect();
        for (index, digest) in &own {
            match table.indexes.iter().find(|other| other.name == *index) {
                None => differs(name, format!("The index {index} is missing")),
                Some(other) if other.digest != *digest => {
                    differs(name, format!("The index {index} is not the one that Kantoor made"));
                }
                Some(_) => {}
            }
        }
        for index in table.indexes.iter().filter(|index| index.is_unique && !own.contains_key(index.name.as_str())) {
            let index = &index.name;
            differs(
                name,
                format!("Kantoor did not make the index {index}, which refuses rows; remove it (DROP INDEX {index})"),
            );
        }
    }
    let is_own = |name: &String| expected.lines().any(|line| line.split(' ').next() == Some(name));
    for (name, _) in there.iter().filter(|(_, table)| table.refers.iter().any(is_own)) {
        let why = "whose references to tables of Kantoor keep rows from being deleted; remove these references";
        differs(name, format!("Kantoor did not make this table, {why}"));
    }
    found
}

impl Inspection<'_> {
    /// Checks the schema.
    pub(super) fn schema(&mut self) {
        self.witness.sees("schema", 0);
        for found in strangers(self.store).into_iter().chain(differences(self.store)) {
            self.problem("", &found.table, "", found.what);
        }
        match self.store.beside() {
            Ok(found) => found.iter().for_each(|Stranger { what, remedy }| {
                self.witness.remarks(&format!("Kantoor did not make {what}; if it is not yours, remove it ({remedy})"));
            }),
            Err(error) => self.witness.misses(&format!("What acts beside the schema cannot be read: {error}")),
        }
    }
}
