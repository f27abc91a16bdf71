//! The lines of an import and what they became: for errors by line, and for undoing it.

use engine::choice;
use engine::context::Ctx;
use engine::error::{Error, Result};
use store::{Migration, Tx};

choice! {
    /// What a line became.
    pub enum Outcome {
        /// A new record.
        #[default]
        Created = "created",
        /// A change of an existing record.
        Updated = "updated",
        /// Nothing, since the record exists.
        Skipped = "skipped",
        /// Nothing, since it is invalid.
        Failed = "failed",
        /// A new record that was removed again.
        Removed = "removed",
        /// A new record that was not removed again.
        Kept = "kept",
    }
}

/// A record that a line made or changed, or what is wrong with the line.
pub struct Entry {
    /// The number of the line.
    pub line: i64,
    /// 1 for the record itself, 0 for the client of a document, [`PAYMENT`] for a payment of an invoice: the last one is removed
    /// first.
    pub part: i64,
    /// The table of the record.
    pub table: String,
    /// The record.
    pub id: String,
    /// The id that the record has in the file, by which later imports refer to it; or empty. A payment that follows from the
    /// line of its invoice has the id of that invoice, by which the import of the payments themselves finds it.
    pub source_id: String,
    /// Its version at that time.
    pub version: i64,
    /// What the line became.
    pub outcome: Outcome,
    /// What is wrong, or why it stays.
    pub message: String,
}

/// The part of a line that is a payment of its invoice, which is removed together with the invoice.
pub const PAYMENT: i64 = -1;

/// Returns the payment that a line made, with its version.
pub fn payment(tx: &mut Tx, ctx: &Ctx, import: &str, line: i64) -> Result<Option<(String, i64)>> {
    let sql = "SELECT record_id, record_version FROM import_lines
               WHERE account_id = $1 AND import_id = $2 AND line = $3 AND part = $4";
    tx.first(sql, &[ctx.account.into(), import.into(), line.into(), PAYMENT.into()], |row| {
        Ok::<_, Error>((row.text(0)?.to_string(), row.int(1)?))
    })
}

/// Writes an entry.
pub fn add(tx: &mut Tx, ctx: &Ctx, import: &str, entry: &Entry) -> Result<()> {
    let sql =
        "INSERT INTO import_lines (account_id, import_id, line, part, record_table, record_id, record_version, outcome,
               message, source_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    tx.send(
        sql,
        &[
            ctx.account.into(),
            import.into(),
            entry.line.into(),
            entry.part.into(),
            (&entry.table).into(),
            (&entry.id).into(),
            entry.version.into(),
            entry.outcome.wire().into(),
            (&entry.message).into(),
            (&entry.source_id).into(),
        ],
    )?;
    Ok(())
}

/// Changes the outcome of an entry; `message` says why its record stays.
pub fn end(tx: &mut Tx, ctx: &Ctx, import: &str, entry: &Entry, outcome: Outcome, message: &str) -> Result<()> {
    // With the outcome so far, both indexes lead to this row alone. Right after an import PostgreSQL cannot tell that the one
    // that starts with the outcome would otherwise lead to all entries.
    let sql = "UPDATE import_lines SET outcome = $1, message = $2
               WHERE account_id = $3 AND import_id = $4 AND line = $5 AND part = $6 AND outcome = $7";
    tx.send(
        sql,
        &[
            outcome.wire().into(),
            message.into(),
            ctx.account.into(),
            import.into(),
            entry.line.into(),
            entry.part.into(),
            entry.outcome.wire().into(),
        ],
    )?;
    Ok(())
}

/// Returns up to `most` entries with this outcome up to a line, the last one first.
pub fn some(tx: &mut Tx, ctx: &Ctx, import: &str, outcome: Outcome, (last, most): (i64, usize)) -> Result<Vec<Entry>> {
    let sql = format!(
        "SELECT line, part, record_table, record_id, record_version, message, source_id FROM import_lines
         WHERE account_id = $1 AND import_id = $2 AND outcome = $3 AND line <= $4
         ORDER BY line DESC, part DESC LIMIT {most}"
    );
    tx.all(&sql, &[ctx.account.into(), import.into(), outcome.wire().into(), last.into()], |row| {
        Ok::<_, Error>(Entry {
            line: row.int(0)?,
            part: row.int(1)?,
            table: row.text(2)?.to_string(),
            id: row.text(3)?.to_string(),
            version: row.int(4)?,
            outcome,
            message: row.text(5)?.to_string(),
            source_id: row.text(6)?.to_string(),
        })
    })
}

/// A payment that follows from the line of an old invoice, and where it is listed.
pub struct Assumed {
    /// The payment.
    pub id: String,
    /// Its version at that time.
    pub version: i64,
    import: String,
    line: i64,
}

/// Returns the payment of an invoice that follows from its line: one that is there (`created`), or was `removed`.
pub fn assumed_payment(tx: &mut Tx, ctx: &Ctx, invoice: &str, outcome: Outcome) -> Result<Option<Assumed>> {
    let sql = "SELECT record_id, record_version, import_id, line FROM import_lines
               WHERE account_id = $1 AND record_table = $2 AND source_id = $3 AND source_id <> '' AND part = $4
                 AND outcome = $5 ORDER BY import_id DESC, line DESC LIMIT 1";
    let values = [ctx.account.into(), "payments".into(), invoice.into(), PAYMENT.into(), outcome.wire().into()];
    tx.first(sql, &values, |row| {
        let (id, import) = (row.text(0)?.to_string(), row.text(2)?.to_string());
        Ok::<_, Error>(Assumed { id, version: row.int(1)?, import, line: row.int(3)? })
    })
}

/// Notes what became of an assumed payment: it was removed, or made again as another record.
pub fn set_assumed(tx: &mut Tx, ctx: &Ctx, assumed: &Assumed, outcome: Outcome) -> Result<()> {
    let sql = "UPDATE import_lines SET outcome = $1, record_id = $2, record_version = $3
               WHERE account_id = $4 AND import_id = $5 AND line = $6 AND part = $7";
    let values = [
        outcome.wire().into(),
        (&assumed.id).into(),
        assumed.version.into(),
        ctx.account.into(),
        (&assumed.import).into(),
        assumed.line.into(),
        PAYMENT.into(),
    ];
    tx.send(sql, &values)?;
    Ok(())
}

/// Returns the version of a record.
pub fn version_of(tx: &mut Tx, ctx: &Ctx, table: &str, id: &str) -> Result<Option<i64>> {
    let sql = format!("SELECT version FROM {table} WHERE account_id = $1 AND id = $2");
    Ok(tx.first(&sql, &[ctx.account.into(), id.into()], |row| row.int(0))?)
}

/// Deletes the entries of an import.
pub fn forget(tx: &mut Tx, ctx: &Ctx, import: &str) -> Result<()> {
    tx.execute(
        "DELETE FROM import_lines WHERE account_id = $1 AND import_id = $2",
        &[ctx.account.into(), import.into()],
    )?;
    Ok(())
}

/// The table of lines.
pub const MIGRATION: Migration = Migration {
    number: 64,
    name: "lines of imports",
    sql: "
CREATE TABLE import_lines (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    import_id TEXT NOT NULL,
    line BIGINT NOT NULL,
    part BIGINT NOT NULL,
    record_table TEXT NOT NULL,
    record_id TEXT NOT NULL,
    record_version BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    message TEXT NOT NULL,
    source_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, import_id, line, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX import_lines_outcome ON import_lines (account_id, import_id, outcome, line, part);
CREATE INDEX import_lines_source ON import_lines (account_id, record_table, source_id) WHERE source_id <> '';
",
};
