//! The programs that records come from: which of their columns is which of our fields. Each is a data file.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use engine::error::{Error, FieldCode, Result, Violation, violation};
use engine::text::did_you_mean;
use serde::Deserialize;
use serde_json::Value;

/// A program that exports tables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its name in the API.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// What is known of its tables, by the resource that they become.
    pub resources: BTreeMap<String, SourceTable>,
}

/// A table of a program.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct SourceTable {
    /// The field of each column, by the name of the column in any of its languages. Case and punctuation are ignored.
    pub columns: BTreeMap<String, String>,
    /// Values of the program and what they become, by field; case is ignored.
    #[serde(default)]
    pub values: BTreeMap<String, BTreeMap<String, String>>,
    /// Values that every record gets, unless a column has one.
    #[serde(default)]
    pub fixed: BTreeMap<String, Value>,
    /// For a field that is empty: the fields whose value it gets, the first that has one.
    #[serde(default)]
    pub otherwise: BTreeMap<String, Vec<String>>,
}

const FILES: &[&str] = &[
    include_str!("sources/general.json"),
    include_str!("sources/moneybird.json"),
    include_str!("sources/teamleader.json"),
    include_str!("sources/invoice_ninja.json"),
    include_str!("sources/stripe.json"),
    include_str!("sources/e_boekhouden.json"),
];

static SOURCES: LazyLock<Vec<Source>> =
    LazyLock::new(|| FILES.iter().filter_map(|text| serde_json::from_str(text).ok()).collect());

/// The source of a file whose program is not known: common names of columns in Dutch and English.
pub const GENERAL: &str = "general";

/// Returns all sources.
pub fn all() -> &'static [Source] {
    &SOURCES
}

/// Finds a source by name; an empty name is the general one.
pub fn named(name: &str) -> Result<&'static Source> {
    known(name).map_err(|wrong| Error::field("source", wrong))
}

/// Finds a source by name, or says what is wrong with the name.
pub fn known(name: &str) -> Result<&'static Source, Violation> {
    let wanted = if name.is_empty() { GENERAL } else { name };
    let found = all().iter().find(|source| source.name == wanted);
    found.ok_or_else(|| {
        let names: Vec<&str> = all().iter().map(|source| source.name.as_str()).collect();
        let hint = did_you_mean(name, names.iter().copied());
        violation(FieldCode::InvalidChoice, format!("must be one of: {}{hint}", names.join(", ")))
    })
}

/// Returns a name without case, spaces and punctuation; `Btw %` is another column than `Btw`.
pub fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric() || *c == '%').flat_map(char::to_lowercase).collect()
}

impl SourceTable {
    /// Returns the target of a column.
    pub fn target(&self, column: &str) -> Option<&str> {
        let wanted = folded(column);
        self.columns.iter().find(|(name, _)| folded(name) == wanted).map(|(_, target)| target.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::mapping::Target;
    use crate::transfer::subject;

    #[test]
    fn every_source_names_existing_fields() {
        crate::registry::install();
        assert_eq!(all().len(), FILES.len(), "a file cannot be read");
        for source in all() {
            for (name, table) in &source.resources {
                let resource = subject::to_import(name).unwrap();
                let targets = table.columns.values().chain(table.values.keys()).chain(table.otherwise.keys());
                for target in targets.chain(table.otherwise.values().flatten()).chain(table.fixed.keys()) {
                    assert!(Target::named(resource, target).is_some(), "{} {name}: {target}", source.name);
                }
            }
        }
    }
}
