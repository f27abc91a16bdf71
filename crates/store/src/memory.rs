//! A cache of what a transaction has read, shared by its closures.
//!
//! No one else can change these rows meanwhile: SQLite has one writer, and on PostgreSQL the transaction holds the lock of
//! the account. Every statement that writes discards the entries of the tables that it names. Rolling back to a savepoint
//! discards all entries.

use std::any::{Any, TypeId};
use std::collections::HashMap;

use crate::named::Tables;

/// Cached values by table, type and account.
#[derive(Default)]
pub(crate) struct Memory {
    known: HashMap<(Tables, TypeId, i64), Box<dyn Any + Send>>,
    /// The tables with cached values.
    tables: Tables,
}

impl Memory {
    /// Returns the cached value of type `M` for a table, or its default.
    pub(crate) fn of<M: Default + Any + Send>(&mut self, table: Tables, account: i64) -> &mut M {
        self.tables |= table;
        let known = self.known.entry((table, TypeId::of::<M>(), account)).or_insert_with(|| Box::<M>::default());
        match known.downcast_mut() {
            Some(known) => known,
            None => unreachable!("the type is part of the key"),
        }
    }

    /// Returns whether any of these tables has cached values.
    pub(crate) fn has(&self, tables: Tables) -> bool {
        self.tables & tables != 0
    }

    /// Discards the values of these tables, which have changed.
    pub(crate) fn forget(&mut self, tables: Tables) {
        if self.has(tables) {
            self.known.retain(|(own, _, _), _| own & tables == 0);
            self.tables &= !tables;
        }
    }

    /// Discards all values.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.tables = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_discards_the_values_of_its_tables() {
        let mut memory = Memory::default();
        *memory.of::<i64>(1, 5) = 7;
        *memory.of::<String>(1, 5) = "seven".into();
        *memory.of::<i64>(2, 5) = 8;
        assert_eq!((*memory.of::<i64>(1, 5), *memory.of::<i64>(2, 5), *memory.of::<i64>(1, 6)), (7, 8, 0));
        memory.forget(1);
        assert_eq!((*memory.of::<i64>(1, 5), memory.of::<String>(1, 5).as_str()), (0, ""));
        assert_eq!(*memory.of::<i64>(2, 5), 8);
        memory.clear();
        assert_eq!(*memory.of::<i64>(2, 5), 0);
    }
}
