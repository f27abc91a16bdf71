//! Rows that are gathered while closures run and are written together, at the end of the transaction or before a statement
//! that names their table: a hundred requests that share a commit write their log lines in a few statements.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::Value;
use crate::named::Tables;

/// The maximum number of rows per statement. Statements insert a power of two of rows, so there are few texts, and each is
/// prepared once.
const MAX_ROWS: usize = 64;

/// Above this size, rows are written immediately, in the time of the closure that gathered them.
const MAX_BYTES: usize = 256 * 1024;

/// A table whose rows are gathered instead of being written immediately.
#[derive(Debug)]
pub struct Gathered {
    /// The table.
    pub table: &'static str,
    /// The columns to write; those of the key come first.
    pub columns: &'static [&'static str],
    /// The number of columns in the key; 0 if no two rows have the same key.
    pub key: usize,
    /// How two rows with the same key are merged.
    pub merge: Merge,
    /// The end of the statement: `ON CONFLICT …`.
    pub conflict: &'static str,
}

/// How two rows with the same key are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The second replaces the first.
    Last,
    /// The second is dropped.
    First,
    /// The numbers after the key are added up.
    Sum,
}

/// All gathered rows.
#[derive(Default)]
pub(crate) struct Pending {
    tables: Vec<Table>,
    /// The tables with gathered rows.
    filled: Tables,
    bytes: usize,
}

struct Table {
    gathered: &'static Gathered,
    bit: Tables,
    values: Vec<Value<'static>>,
    /// The index of each row by the hash of its key.
    places: HashMap<u64, usize>,
    /// The statements, by the binary logarithm of their number of rows.
    texts: Vec<Arc<str>>,
}

/// A statement and its values.
pub(crate) struct Batch {
    pub(crate) sql: Arc<str>,
    pub(crate) values: Vec<Value<'static>>,
}

impl Pending {
    /// Adds a row. Returns false if the gathered rows of the table must be written first.
    pub(crate) fn add(&mut self, gathered: &'static Gathered, bit: Tables, row: &[Value]) -> bool {
        debug_assert_eq!(row.len(), gathered.columns.len(), "{}", gathered.table);
        // Rows of one table are written in the order in which they were added.
        let mut others = self.tables.iter().filter(|own| !std::ptr::eq(own.gathered, gathered));
        if self.has(bit) && others.any(|own| own.bit == bit && !own.values.is_empty()) {
            return false;
        }
        let table = match self.tables.iter().position(|own| std::ptr::eq(own.gathered, gathered)) {
            Some(place) => &mut self.tables[place],
            None => {
                self.tables.push(Table::new(gathered, bit));
                let last = self.tables.len() - 1;
                &mut self.tables[last]
            }
        };
        let width = gathered.columns.len();
        if gathered.key > 0 {
            let key = &row[..gathered.key];
            let mut hasher = DefaultHasher::new();
            key.hash(&mut hasher);
            let next = table.values.len() / width;
            let place = *table.places.entry(hasher.finish()).or_insert(next);
            if place < next {
                let own = &mut table.values[place * width..(place + 1) * width];
                return own[..gathered.key] == *key && merge(gathered, own, row);
            }
        }
        self.filled |= bit;
        self.bytes += row.iter().map(length).sum::<usize>();
        table.values.extend(row.iter().map(Value::owned));
        true
    }

    /// Returns whether any of these tables has gathered rows.
    pub(crate) fn has(&self, tables: Tables) -> bool {
        self.filled & tables != 0
    }

    /// Returns whether the rows exceed the size limit and should be written now.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > MAX_BYTES
    }

    /// Removes the rows of these tables and returns them as statements, in the order in which the tables were first used.
    pub(crate) fn take(&mut self, tables: Tables) -> Vec<Batch> {
        let mut batches = Vec::new();
        for table in self.tables.iter_mut().filter(|table| table.bit & tables != 0 && !table.values.is_empty()) {
            self.bytes -= table.values.iter().map(length).sum::<usize>().min(self.bytes);
            self.filled &= !table.bit;
            table.take(&mut batches);
        }
        batches
    }

    /// Discards all rows.
    pub(crate) fn clear(&mut self) {
        for table in &mut self.tables {
            table.values.clear();
            table.places.clear();
        }
        (self.filled, self.bytes) = (0, 0);
    }
}

impl Table {
    fn new(gathered: &'static Gathered, bit: Tables) -> Table {
        Table { gathered, bit, values: Vec::new(), places: HashMap::new(), texts: Vec::new() }
    }

    fn take(&mut self, batches: &mut Vec<Batch>) {
        let width = self.gathered.columns.len();
        let mut values = std::mem::take(&mut self.values);
        self.places.clear();
        while !values.is_empty() {
            let rows = (values.len() / width).min(MAX_ROWS);
            let power = rows.ilog2() as usize;
            let rest = values.split_off(width << power);
            batches.push(Batch { sql: self.text(power), values });
            values = rest;
        }
    }

    /// Returns the statement for 2 to the power of `power` rows.
    fn text(&mut self, power: usize) -> Arc<str> {
        while self.texts.len() <= power {
            let text = self.gathered.insert(1 << self.texts.len());
            self.texts.push(text.into());
        }
        self.texts[power].clone()
    }
}

impl Gathered {
    /// Returns the statement that inserts this number of rows.
    pub(crate) fn insert(&self, rows: usize) -> String {
        let width = self.columns.len();
        let row = |row: usize| {
            let places: Vec<String> = (1..=width).map(|column| format!("${}", row * width + column)).collect();
            format!("({})", places.join(", "))
        };
        let rows: Vec<String> = (0..rows).map(row).collect();
        let (table, columns, conflict) = (self.table, self.columns.join(", "), self.conflict);
        format!("INSERT INTO {table} ({columns}) VALUES {} {conflict}", rows.join(", ")).trim_end().to_string()
    }
}

/// Merges a row into one with the same key; returns whether that was possible.
fn merge(gathered: &Gathered, own: &mut [Value<'static>], row: &[Value]) -> bool {
    for (own, new) in own.iter_mut().zip(row).skip(gathered.key) {
        match (gathered.merge, &mut *own, new) {
            (Merge::First, ..) => {}
            (Merge::Last, own, new) => *own = new.owned(),
            (Merge::Sum, Value::Int(own), Value::Int(new)) => *own += new,
            (Merge::Sum, ..) => return false,
        }
    }
    true
}

fn length(value: &Value) -> usize {
    match value {
        Value::Int(_) => 8,
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static LINES: Gathered =
        Gathered { table: "lines", columns: &["seq", "data"], key: 0, merge: Merge::Last, conflict: "" };
    static COUNTS: Gathered = Gathered {
        table: "counts",
        columns: &["kind", "total"],
        key: 1,
        merge: Merge::Sum,
        conflict: "ON CONFLICT (kind) DO UPDATE SET total = counts.total + excluded.total",
    };

    #[test]
    fn statements_have_a_power_of_two_of_rows() {
        let mut pending = Pending::default();
        for seq in 0..100 {
            assert!(pending.add(&LINES, 1, &[Value::Int(seq), Value::from("x")]));
        }
        assert!(pending.has(1) && !pending.has(2));
        let batches = pending.take(1);
        let lengths: Vec<usize> = batches.iter().map(|batch| batch.values.len() / 2).collect();
        assert_eq!(lengths, [64, 32, 4]);
        assert_eq!(&*batches[2].sql, "INSERT INTO lines (seq, data) VALUES ($1, $2), ($3, $4), ($5, $6), ($7, $8)");
        assert_eq!(batches[2].values[0], Value::Int(96));
        assert!(!pending.has(1) && pending.bytes == 0);
        assert!(pending.take(1).is_empty());
    }

    #[test]
    fn rows_with_the_same_key_are_merged() {
        let mut pending = Pending::default();
        for (kind, total) in [("client", 1), ("invoice", 1), ("client", 3), ("invoice", -1)] {
            assert!(pending.add(&COUNTS, 2, &[Value::from(kind), Value::Int(total)]));
        }
        let batches = pending.take(3);
        assert_eq!(batches.len(), 1);
        assert_eq!(batches[0].values, [Value::from("client"), Value::Int(4), Value::from("invoice"), Value::Int(0)]);
        // The index by key is emptied with the rows.
        assert!(pending.add(&COUNTS, 2, &[Value::from("invoice"), Value::Int(5)]));
        pending.clear();
        assert!(pending.add(&COUNTS, 2, &[Value::from("invoice"), Value::Int(6)]));
        assert_eq!(pending.take(2)[0].values, [Value::from("invoice"), Value::Int(6)]);
    }

    #[test]
    fn is_full_above_the_size_limit() {
        let mut pending = Pending::default();
        let long = "x".repeat(MAX_BYTES);
        assert!(pending.add(&LINES, 1, &[Value::Int(1), Value::from(long.as_str())]));
        assert!(pending.is_full());
        pending.take(1);
        assert!(!pending.is_full());
    }
}
