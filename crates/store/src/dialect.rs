//! Everything that SQLite and PostgreSQL say differently. Nothing outside this crate may ask.

use crate::{Error, Result, Tx, Value};

/// Which of the two databases is behind a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The embedded one.
    Sqlite,
    /// The one for several nodes.
    Postgres,
}

/// More texts than a search that looks for few may find.
const MAX_VALUES: u64 = 5_000;

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
                ("x''", "''::BYTEA"),
                (") STRICT, WITHOUT ROWID", ")"),
                (") STRICT", ")"),
            ],
        };
        words.iter().fold(text, |text, (from, to)| text.replace(from, to))
    }

    /// Whether several processes may serve the same database, perhaps one of them of an older version of the program.
    pub fn is_shared(self) -> bool {
        self == Dialect::Postgres
    }

    /// Columns that describe the database itself and not its content, and their value in a copy: SQLite adds the texts of
    /// searches to its index later, PostgreSQL has done so when they are stored.
    pub(crate) fn own_columns(self) -> &'static [(&'static str, &'static str, i64)] {
        match self {
            Dialect::Sqlite => &[("search_texts", "pending", 1)],
            Dialect::Postgres => &[("search_texts", "pending", 0)],
        }
    }

    /// Counts the tables with the name $1: one or none.
    pub(crate) fn has_table(self) -> &'static str {
        match self {
            Dialect::Sqlite => "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = $1",
            Dialect::Postgres => {
                "SELECT count(*) FROM pg_catalog.pg_tables
                 WHERE schemaname = ANY (current_schemas(false)) AND CAST(tablename AS TEXT) = $1"
            }
        }
    }

    /// Ends a `SELECT` of rows that this transaction is going to change: skips rows that another node has locked.
    /// SQLite has a single writer, so none are.
    pub fn skip_locked(self) -> &'static str {
        match self {
            Dialect::Sqlite => "",
            Dialect::Postgres => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// Returns the name of `table` for a condition that must not choose the index, since another one is more selective.
    /// SQLite has no statistics and may choose either; PostgreSQL has.
    pub fn by_no_index(self, table: &str) -> String {
        match self {
            Dialect::Sqlite => format!("+{table}"),
            Dialect::Postgres => table.to_string(),
        }
    }

    /// Follows the name of a table: the index to use. SQLite relies on statistics from when the table was small;
    /// PostgreSQL updates them automatically.
    pub fn indexed_by(self, index: &str) -> String {
        match self {
            Dialect::Sqlite => format!(" INDEXED BY {index}"),
            Dialect::Postgres => String::new(),
        }
    }

    /// A `SELECT` of the `kind` and `record_id` of texts that contain some `parts`: $1 the account, then the kinds, then
    /// the pattern `%…%` of each part, the first with three letters or more. When there is a second text in the answer it
    /// follows: what to ask the index for. `pieces` are parts of the first pattern that have three letters each, with their
    /// places in it, in order; `found` is how many texts may have all of them.
    ///
    /// SQLite updates its index with each commit, which is expensive for one text at a time; new texts are `pending`
    /// until several can be added together, and are scanned meanwhile. PostgreSQL does the same by itself. Both would
    /// look up the whole pattern in their index if it were in a plain `LIKE` of the column.
    pub fn search(
        self,
        kinds: usize,
        parts: usize,
        pieces: &[(usize, String)],
        found: u64,
    ) -> (String, Option<String>) {
        let (pattern, asked) = (kinds + 2, kinds + 2 + parts);
        let all = like_all("folded", pattern, parts);
        let of_kind = match kinds {
            1 => "kind = $2".to_string(),
            _ => format!("kind IN ({})", (2..pattern).map(|place| format!("${place}")).collect::<Vec<_>>().join(", ")),
        };
        match self {
            // CROSS JOIN and INDEXED BY make it ask the two indexes; left to itself it walks all
            // texts of the account.
            Dialect::Sqlite => {
                let quoted = pieces.iter().map(|(_, letters)| format!("\"{}\"", letters.replace('"', "\"\"")));
                let sql = format!(
                    "SELECT kind, record_id FROM search_index
                 CROSS JOIN search_texts ON search_texts.number = search_index.rowid
                 WHERE account_id = $1 AND {of_kind} AND {}
                     AND search_index MATCH ${asked} AND pending = 0
                 UNION ALL
                 SELECT kind, record_id FROM search_texts INDEXED BY search_texts_pending
                 WHERE pending = 1 AND account_id = $1 AND {of_kind} AND {all}",
                    like_all("search_texts.folded", pattern, parts)
                );
                (sql, Some(quoted.collect::<Vec<_>>().join(" AND ")))
            }
            // When there are many it may be best to walk the list that is asked for; for that the
            // planner must see the pattern.
            Dialect::Postgres if found > MAX_VALUES => {
                let sql =
                    format!("SELECT kind, record_id FROM search_texts WHERE account_id = $1 AND {of_kind} AND {all}");
                (sql, None)
            }
            // It must not see how short the pieces are, or it may think them common and walk all
            // texts; and not take the few that are found for a reason to walk the list.
            Dialect::Postgres => {
                let sql = format!(
                    "SELECT kind, record_id FROM search_texts
                 WHERE account_id = $1 AND {of_kind} AND {} AND folded LIKE (SELECT ${asked}::TEXT)
                 OFFSET 0",
                    like_all("folded || ''", pattern, parts)
                );
                let (mut pattern, mut end) = ("%".to_string(), 0);
                for (start, letters) in pieces {
                    if *start >= end && end > 0 {
                        pattern.push('%');
                    }
                    pattern.extend(letters.chars().skip(end.saturating_sub(*start)));
                    end = start + 3;
                }
                (sql, Some(pattern + "%"))
            }
        }
    }

    /// Whether the index of searches has `piece` as it is. That of PostgreSQL is of words: it has
    /// letters and digits, and nothing of what is between them.
    pub fn indexes(self, piece: &str) -> bool {
        self == Dialect::Sqlite || piece.chars().all(char::is_alphanumeric)
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

/// The condition that `column` has each of some patterns, whose values start at `first`.
pub fn like_all(column: &str, first: usize, parts: usize) -> String {
    (first..first + parts).map(|place| format!("{column} LIKE ${place}")).collect::<Vec<_>>().join(" AND ")
}

/// Adds the values of some ids to a statement, and returns their placeholders. A few lengths, padded with the last id, need only
/// a few prepared statements.
pub fn placed<'v>(values: &mut Vec<Value<'v>>, ids: impl ExactSizeIterator<Item = Value<'v>>) -> Vec<String> {
    let (first, length) = (values.len() + 1, ids.len().next_power_of_two());
    values.extend(ids);
    while let Some(last) = values.last().filter(|_| values.len() + 1 < first + length) {
        values.push(last.clone());
    }
    (first..first + length).map(|place| format!("${place}")).collect()
}

impl Tx<'_> {
    /// Locks the row `id` of `table` until the end of the transaction, so that other writers of the same account wait.
    /// SQLite has one writer and needs no lock.
    pub fn hold(&mut self, table: &'static str, id: i64) -> Result<()> {
        if self.dialect() == Dialect::Postgres {
            if !self.has_held(table, id) {
                // Whatever is asked next waits for it on the server.
                self.send(&format!("SELECT 1::BIGINT FROM {table} WHERE id = $1 FOR UPDATE"), &[id.into()])?;
            }
            self.held(id);
        }
        Ok(())
    }

    /// Asks a database that several machines share for its time, in milliseconds since 1970. SQLite has the clock of this
    /// machine, and no other.
    pub fn database_time(&mut self) -> Result<Option<i64>> {
        match self.dialect() {
            Dialect::Sqlite => Ok(None),
            Dialect::Postgres => {
                self.int("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)", &[]).map(Some)
            }
        }
    }

    /// Updates the statistics of tables that have grown to this many rows, for the plans of PostgreSQL. It does so by itself, but
    /// only a minute or more later: meanwhile it may look up a record in a table that was empty with an index that leads to all of
    /// them. A table of which it knows that it is larger is left alone: it has good plans, and looking at it takes longer.
    pub fn update_statistics(&mut self, tables: &[&str], rows: i64) -> Result<()> {
        if self.dialect() == Dialect::Sqlite {
            return Ok(());
        }
        let mut values: Vec<Value> = vec![rows.into()];
        let places = placed(&mut values, tables.iter().map(|table| Value::from(*table)));
        let sql = format!(
            "SELECT CAST(relname AS TEXT) FROM pg_class
             WHERE pg_table_is_visible(oid) AND CAST(reltuples AS BIGINT) < $1 AND CAST(relname AS TEXT) IN ({})",
            places.join(", ")
        );
        let grown = self.all(&sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
        match grown.is_empty() {
            true => Ok(()),
            // A table that somebody else looks at is left to them.
            false => self.script(&format!("ANALYZE (SKIP_LOCKED) {}", grown.join(", "))),
        }
    }

    /// Merges a few pages of a full-text index of SQLite, of which each addition makes a part; returns whether there may be more to
    /// merge. PostgreSQL has no such parts.
    pub fn merge_index(&mut self, index: &str, pages: i64) -> Result<bool> {
        if self.dialect() == Dialect::Postgres {
            return Ok(false);
        }
        let changes = "SELECT total_changes()";
        let before = self.int(changes, &[])?;
        self.execute(&format!("INSERT INTO {index} ({index}, rank) VALUES ('merge', $1)"), &[pages.into()])?;
        // The statement counts as a change, also if there was nothing to merge.
        Ok(self.int(changes, &[])? > before + 1)
    }

    /// Waits for, then keeps out, other nodes that call this, until the end of the transaction.
    /// For what concerns the whole database; on SQLite the write transaction itself does it.
    pub fn hold_all(&mut self) -> Result<()> {
        match self.dialect() {
            Dialect::Sqlite => Ok(()),
            Dialect::Postgres => {
                self.take_time();
                self.script(
                    "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0;
                     SELECT pg_advisory_xact_lock(7120561)",
                )
            }
        }
    }
}
