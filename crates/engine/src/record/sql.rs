//! The SQL statements of a kind of record.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::field::FieldInfo;
use super::shape::Shape;

const BASE: &str = "id, created_at, updated_at, version";
/// How many columns every record has.
pub const BASE_COLUMNS: usize = 4;

/// The SQL statements of a record, generated from its fields.
pub struct Sql {
    /// `SELECT` of all columns, without a `WHERE`.
    pub select: String,
    /// The columns of `select`, qualified with the table.
    pub columns: String,
    /// Columns for a list, each with its table: those of every record, and the fields that lists show.
    pub list_columns: String,
    /// The places of those fields among all fields.
    pub listed: Vec<usize>,
    /// The places of the stored fields among all fields.
    pub stored: Vec<usize>,
    /// Selects one record. Values: account, id.
    pub get: String,
    /// Inserts a record. Values: account, the base, the fields.
    pub insert: String,
    /// Updates a record. Values: the base without the id, the fields, account, id.
    pub update: String,
    /// Updates of some fields, by their names.
    updates: Mutex<HashMap<Vec<&'static str>, Arc<str>>>,
    /// Deletes a record. Values: account, id.
    pub delete: String,
}

impl Sql {
    /// Creates the statements of a kind of record.
    pub fn of(shape: &Shape, infos: &[FieldInfo]) -> Sql {
        let table = shape.table;
        let stored: Vec<usize> = (0..infos.len()).filter(|place| !infos[*place].rules.sent_only).collect();
        let listed: Vec<usize> = stored.iter().copied().filter(|place| shape.lists(&infos[*place])).collect();
        let name = |place: &usize| infos[*place].name;
        let names: Vec<&str> = stored.iter().map(name).collect();
        let list_columns = qualified(table, listed.iter().map(name));
        let columns = qualified(table, names.iter().copied());
        let fields: String = names.iter().map(|name| format!(", \"{name}\"")).collect();
        let count = names.len();
        let places: String = (0..count).map(|n| format!(", ${}", n + 6)).collect();
        let changes: String = names.iter().enumerate().map(|(n, name)| format!(", \"{name}\" = ${}", n + 4)).collect();
        Sql {
            select: format!("SELECT {columns} FROM {table}"),
            get: format!("SELECT {columns} FROM {table} WHERE account_id = $1 AND id = $2"),
            insert: format!("INSERT INTO {table} (account_id, {BASE}{fields}) VALUES ($1, $2, $3, $4, $5{places})"),
            update: format!(
                "UPDATE {table} SET created_at = $1, updated_at = $2, version = $3{changes} WHERE account_id = ${} AND id = ${}",
                count + 4,
                count + 5
            ),
            delete: format!("DELETE FROM {table} WHERE account_id = $1 AND id = $2"),
            updates: Mutex::default(),
            columns,
            list_columns,
            listed,
            stored,
        }
    }

    /// Returns the number of columns in `columns`.
    pub fn width(&self) -> usize {
        BASE_COLUMNS + self.stored.len()
    }

    /// Returns the number of columns in `list_columns`.
    pub fn list_width(&self) -> usize {
        BASE_COLUMNS + self.listed.len()
    }

    /// Returns the statement that updates these fields of a record, so that the databases leave the indexes of others
    /// alone. Values: `updated_at`, `version`, the fields, account, id. `None` when there are enough such statements:
    /// connections keep each of them prepared.
    pub fn update_of(&self, table: &str, names: &[&'static str]) -> Option<Arc<str>> {
        let mut updates = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = updates.get(names) {
            return Some(known.clone());
        }
        if updates.len() >= MAX_UPDATES {
            return None;
        }
        let changes: String = names.iter().enumerate().map(|(n, name)| format!(", \"{name}\" = ${}", n + 3)).collect();
        let (account, id) = (names.len() + 3, names.len() + 4);
        let sql = format!(
            "UPDATE {table} SET updated_at = $1, version = $2{changes} WHERE account_id = ${account} AND id = ${id}"
        );
        let sql: Arc<str> = sql.into();
        updates.insert(names.to_vec(), sql.clone());
        Some(sql)
    }
}

/// How many statements update some fields of a record. What the program itself does changes the same fields each time.
const MAX_UPDATES: usize = 16;

fn qualified<'n>(table: &str, fields: impl Iterator<Item = &'n str>) -> String {
    let columns = BASE.split(", ").chain(fields).map(|name| format!("{table}.\"{name}\""));
    columns.collect::<Vec<_>>().join(", ")
}
