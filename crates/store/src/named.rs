//! Finds the tables that a statement names, among those that the cache and the pending rows need to know. Scanning the
//! text takes longer than executing some statements, so the result is cached per text.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A bit for each table.
pub(crate) type Tables = u128;

/// The maximum number of cached texts; a program has a few hundred.
const MAX_TEXTS: usize = 4096;

/// The registered tables, and the tables that each statement names.
#[derive(Default)]
pub(crate) struct Named {
    tables: Vec<&'static str>,
    texts: HashMap<Box<str>, Tables, BuildHasherDefault<TextHasher>>,
}

impl Named {
    /// Returns the bit of a table, and registers the table at its first use.
    pub(crate) fn bit(&mut self, table: &'static str) -> Tables {
        let place = self.tables.iter().position(|own| *own == table).unwrap_or_else(|| {
            self.tables.push(table);
            // The cached results do not cover this table.
            self.texts.clear();
            self.tables.len() - 1
        });
        at(place)
    }

    /// Returns the registered tables that a statement names. Any word equal to the name of a table counts: a false positive
    /// costs time, a false negative would be an error.
    pub(crate) fn by(&mut self, sql: &str) -> Tables {
        if let Some(tables) = self.texts.get(sql) {
            return *tables;
        }
        let mut named = 0;
        for word in sql.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_') {
            if let Some(place) = self.tables.iter().position(|table| *table == word) {
                named |= at(place);
            }
        }
        if self.texts.len() >= MAX_TEXTS {
            self.texts.clear();
        }
        self.texts.insert(sql.into(), named);
        named
    }
}

/// Tables beyond the number of bits share the last one.
fn at(place: usize) -> Tables {
    1 << place.min(127)
}

/// Hashes eight bytes at a time: the texts are long, and not chosen by an attacker.
#[derive(Default)]
pub(crate) struct TextHasher(u64);

impl Hasher for TextHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        for chunk in chunks.iter().chain([&last]) {
            self.0 = (self.0.rotate_left(5) ^ u64::from_le_bytes(*chunk)).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_as_whole_words() {
        let mut named = Named::default();
        let (log, timers) = (named.bit("log"), named.bit("timers"));
        for _ in 0..2 {
            assert_eq!(named.by("SELECT seq FROM log WHERE account_id = $1"), log);
            assert_eq!(named.by("DELETE FROM \"timers\" WHERE (SELECT max(seq) FROM log) > 1"), log | timers);
            assert_eq!(named.by("SELECT logo_file_id FROM corporate_identities"), 0);
        }
        let clients = named.bit("clients");
        assert_eq!(named.by("SELECT 1 FROM clients,log"), clients | log);
        assert_eq!(named.by("SELECT logo_file_id FROM clients"), clients);
        assert_eq!(named.bit("log"), log);
    }
}
