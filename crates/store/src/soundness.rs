//! The database's own integrity checks: pages, indexes and foreign keys.

use crate::{Dialect, Error, Result, Store, Tx};

/// A problem of the database itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsound {
    /// The table or index, where it is known.
    pub table: String,
    /// A sentence.
    pub what: String,
}

fn unsound(table: &str, what: impl Into<String>) -> Unsound {
    Unsound { table: table.to_string(), what: what.into() }
}

impl Store {
    /// Runs the checks, and calls `found` for each problem. `step` receives the progress. Returns sentences about what
    /// could not be checked.
    pub fn check(&self, step: &mut dyn FnMut(&str), found: &mut dyn FnMut(Unsound)) -> Vec<String> {
        match self.dialect() {
            Dialect::Sqlite => {
                self.check_sqlite(step, found);
                Vec::new()
            }
            Dialect::Postgres => self.check_postgres(step, found),
        }
    }

    fn check_sqlite(&self, step: &mut dyn FnMut(&str), found: &mut dyn FnMut(Unsound)) {
        step("database");
        let text = |row: &crate::Row| Ok::<_, Error>(row.text(0)?.to_string());
        match self.read_now(|tx| tx.all("PRAGMA integrity_check", &[], text)) {
            Ok(lines) => lines.into_iter().filter(|line| line != "ok").for_each(|line| found(unsound("", line))),
            Err(error) => found(unsound("", error.to_string())),
        }
        let sql = "SELECT \"table\", parent, count(*) FROM pragma_foreign_key_check GROUP BY 1, 2";
        let rows = self.read_now(|tx| {
            tx.all(sql, &[], |row| {
                let what =
                    format!("{} of its rows refer to a row of {} that does not exist", row.int(2)?, row.text(1)?);
                Ok::<_, Error>(unsound(row.text(0)?, what))
            })
        });
        match rows {
            Ok(rows) => rows.into_iter().for_each(found),
            Err(error) => found(unsound("", error.to_string())),
        }
    }

    /// PostgreSQL has no check that needs no special rights; reading everything detects unreadable pages, and with
    /// checksums (`data_checksums`) altered ones.
    fn check_postgres(&self, step: &mut dyn FnMut(&str), found: &mut dyn FnMut(Unsound)) -> Vec<String> {
        let tables = match self.read_now(|tx| tx.tables()) {
            Ok(tables) => tables,
            Err(error) => {
                found(unsound("", error.to_string()));
                return Vec::new();
            }
        };
        for table in &tables {
            step(table);
            let read = self.read_now(|tx| {
                tx.without_timeout()?;
                tx.int(&format!("SELECT coalesce(sum(octet_length(t::TEXT)), 0)::BIGINT FROM \"{table}\" t"), &[])
            });
            if let Err(error) = read {
                found(unsound(table, format!("It cannot be read: {error}")));
            }
        }
        self.check_owners(&tables, found);
        step("indexes");
        let invalid = "SELECT indexrelid::REGCLASS::TEXT FROM pg_index WHERE NOT indisvalid";
        match self.read_now(|tx| tx.all(invalid, &[], |row| Ok::<_, Error>(row.text(0)?.to_string()))) {
            Ok(indexes) => indexes.iter().for_each(|index| found(unsound(index, "The index is not valid; rebuild it"))),
            Err(error) => found(unsound("", error.to_string())),
        }
        self.check_indexes(step, found).into_iter().collect()
    }

    /// Checks for rows whose account does not exist.
    fn check_owners(&self, tables: &[String], found: &mut dyn FnMut(Unsound)) {
        let named = "SELECT conrelid::REGCLASS::TEXT FROM pg_constraint
                     WHERE contype = 'f' AND confrelid = 'accounts'::REGCLASS";
        let bound = self.read_now(|tx| tx.all(named, &[], |row| Ok::<_, Error>(row.text(0)?.to_string())));
        for table in bound.unwrap_or_default().iter().filter(|table| tables.contains(table)) {
            let sql = format!(
                "SELECT count(*) FROM \"{table}\" t WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE id = t.account_id)"
            );
            let lost = self.read_now(|tx| {
                tx.without_timeout()?;
                tx.int(&sql, &[])
            });
            match lost {
                Ok(0) => {}
                Ok(lost) => {
                    found(unsound(table, format!("{lost} of its rows refer to an account that does not exist")))
                }
                Err(error) => found(unsound(table, format!("It cannot be read: {error}"))),
            }
        }
    }

    /// Compares every index with its table if the extension amcheck is available; otherwise returns a sentence about
    /// it.
    fn check_indexes(&self, step: &mut dyn FnMut(&str), found: &mut dyn FnMut(Unsound)) -> Option<String> {
        let there = self.read_now(|tx| tx.int("SELECT count(*) FROM pg_extension WHERE extname = 'amcheck'", &[]));
        if there != Ok(1) {
            return Some("Indexes were not compared with their tables: the extension amcheck is not installed.".into());
        }
        let sql = "SELECT pg_class.oid::BIGINT, relname::TEXT FROM pg_class JOIN pg_am ON pg_am.oid = relam
                   WHERE relkind = 'i' AND amname = 'btree' AND relnamespace = current_schema()::REGNAMESPACE";
        let indexes =
            self.read_now(|tx| tx.all(sql, &[], |row| Ok::<_, Error>((row.int(0)?, row.text(1)?.to_string()))));
        for (oid, name) in indexes.unwrap_or_default() {
            step(&name);
            let checked = self.read_now(|tx| {
                tx.without_timeout()?;
                tx.all(&format!("SELECT bt_index_check({oid}::OID::REGCLASS, true)"), &[], |_| Ok::<_, Error>(()))
            });
            match checked {
                Ok(_) => {}
                Err(error) if error.to_string().contains("permission denied") => {
                    return Some(
                        "Indexes were not compared with their tables: this user is not allowed to run amcheck.".into(),
                    );
                }
                Err(error) => found(unsound(&name, error.to_string())),
            }
        }
        None
    }
}

impl Tx<'_> {
    /// Returns all tables.
    pub fn tables(&mut self) -> Result<Vec<String>> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name",
            Dialect::Postgres => {
                "SELECT tablename::TEXT FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename"
            }
        };
        self.all(sql, &[], |row| Ok(row.text(0)?.to_string()))
    }

    /// Removes the timeout of statements in this transaction.
    fn without_timeout(&mut self) -> Result<()> {
        self.script("SET LOCAL statement_timeout = 0")
    }
}
