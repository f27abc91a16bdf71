//! Everything that SQLite and PostgreSQL say differently. Nothing outside this crate may ask.

use crate::{Result, Tx, Value};

/// Which of the two databases is behind a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The embedded one.
    Sqlite,
    /// The one for several nodes.
    Postgres,
}

impl Dialect {
    /// The text of a migration in this dialect. Migrations are written with `BIGINT`, `TEXT` and
    /// `BLOB` columns and `STRICT` tables; a line `-- sqlite` or `-- postgres` starts a part for
    /// one database, `-- both` ends it.
    pub(crate) fn schema(self, sql: &str) -> String {
        let mut text = String::with_capacity(sql.len());
        let mut mine = true;
        for line in sql.lines() {
            match line.trim() {
                "-- sqlite" => mine = self == Dialect::Sqlite,
                "-- postgres" => mine = self == Dialect::Postgres,
                "-- both" => mine = true,
                _ if mine => {
                    text.push_str(line);
                    text.push('\n');
                }
                _ => {}
            }
        }
        let words: &[(&str, &str)] = match self {
            Dialect::Sqlite => &[("BIGINT", "INTEGER")],
            // Text is compared by code point, as SQLite does, whatever the database's locale.
            Dialect::Postgres => &[
                ("TEXT", "TEXT COLLATE \"C\""),
                ("BLOB", "BYTEA"),
                (") STRICT, WITHOUT ROWID", ")"),
                (") STRICT", ")"),
            ],
        };
        words.iter().fold(text, |text, (from, to)| text.replace(from, to))
    }

    /// Ends a `SELECT` of rows that this transaction is going to change: rows that another node
    /// holds are passed over. SQLite has one writer, nobody else can hold them.
    pub fn skip_locked(self) -> &'static str {
        match self {
            Dialect::Sqlite => "",
            Dialect::Postgres => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// A `SELECT` of the `record_id` of texts that contain a pattern: $1 the account, $2 the kind,
    /// $3 `%…%` with three letters or more.
    ///
    /// SQLite keeps its index in one piece with each commit, which is dear for one text at a time;
    /// new texts wait in `pending` until some can be added together, and are looked through
    /// meanwhile. PostgreSQL does the same by itself. CROSS JOIN and INDEXED BY make SQLite ask
    /// the two indexes; left to itself it walks all texts of the account.
    pub fn search(self) -> &'static str {
        match self {
            Dialect::Sqlite => {
                "SELECT record_id FROM search_index CROSS JOIN search_texts ON search_texts.number = search_index.rowid
                 WHERE account_id = $1 AND kind = $2 AND search_index.folded LIKE $3 AND pending = 0
                 UNION ALL
                 SELECT record_id FROM search_texts INDEXED BY search_texts_pending
                 WHERE pending = 1 AND account_id = $1 AND kind = $2 AND folded LIKE $3"
            }
            Dialect::Postgres => {
                "SELECT record_id FROM search_texts WHERE account_id = $1 AND kind = $2 AND folded LIKE $3"
            }
        }
    }

    /// How the database would run `sql`, a line a step. For tests of the indexes.
    pub fn explain(self, tx: &mut Tx, sql: &str, values: &[Value]) -> Result<Vec<String>> {
        match self {
            Dialect::Sqlite => tx.all(&format!("EXPLAIN QUERY PLAN {sql}"), values, |row| Ok(row.text(3)?.to_string())),
            Dialect::Postgres => {
                // On the small tables of a test the planner would rightly scan.
                tx.script("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")?;
                tx.all(&format!("EXPLAIN {sql}"), values, |row| Ok(row.text(0)?.to_string()))
            }
        }
    }
}

impl Tx<'_> {
    /// Holds the row `id` of `table` until the end of the transaction, so that whoever changes
    /// the same account waits. SQLite has one writer and needs no lock.
    pub fn hold(&mut self, table: &str, id: i64) -> Result<()> {
        if self.dialect() == Dialect::Postgres {
            self.int(&format!("SELECT 1::BIGINT FROM {table} WHERE id = $1 FOR UPDATE"), &[id.into()])?;
        }
        Ok(())
    }

    /// Waits for, then keeps out, other nodes that call this, until the end of the transaction.
    /// For what concerns the whole database; on SQLite the write transaction itself does it.
    pub fn hold_all(&mut self) -> Result<()> {
        match self.dialect() {
            Dialect::Sqlite => Ok(()),
            Dialect::Postgres => self.script(
                "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0;
                 SELECT pg_advisory_xact_lock(7120561)",
            ),
        }
    }
}
