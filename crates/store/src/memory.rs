//! What a transaction knows of the database without asking again, also across the closures that share it.
//!
//! Nobody else can change what it knows: SQLite has one writer, and on PostgreSQL the transaction holds the account. What
//! it changes itself it forgets, since every statement that writes forgets what is known of the tables that it names.
//! When a part of the transaction is undone everything is forgotten.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::named::{Tables, TextHasher};

/// Things that are known, by the table that they come from, their type and the account.
#[derive(Default)]
pub(crate) struct Memory {
    known: HashMap<(Tables, TypeId, i64), Box<dyn Any + Send>, BuildHasherDefault<TextHasher>>,
    /// The tables of which something is known.
    tables: Tables,
}

impl Memory {
    /// What is known of a table, in a form of the caller's own.
    pub(crate) fn of<M: Default + Any + Send>(&mut self, table: Tables, account: i64) -> &mut M {
        self.tables |= table;
        let known = self.known.entry((table, TypeId::of::<M>(), account)).or_insert_with(|| Box::<M>::default());
        match known.downcast_mut() {
            Some(known) => known,
            None => unreachable!("it was found by its type"),
        }
    }

    /// Whether something is known of one of these tables.
    pub(crate) fn has(&self, tables: Tables) -> bool {
        self.tables & tables != 0
    }

    /// These tables have changed.
    pub(crate) fn forget(&mut self, tables: Tables) {
        if self.has(tables) {
            self.known.retain(|(own, _, _), _| own & tables == 0);
            self.tables &= !tables;
        }
    }

    /// Nothing is known any more.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.tables = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_forgets_its_tables() {
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
