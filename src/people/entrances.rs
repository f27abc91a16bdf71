//! Marks of what lets people in without a password: sessions, and links that work once. No log line contains them, so this is how
//! one that somebody added or changed in the database is recognized: it opens nothing, and `kantoor verify` names it.

use std::sync::Arc;

use engine::accounts::SHARED;
use engine::app::App;
use engine::contents::hex;
use engine::error::{Error, Result};
use engine::secrets::vault::Vault;
use store::{Row, Tx};

/// How many rows are read at a time.
const BATCH: i64 = 200;
/// The mark of a row that opens nothing any more.
pub const NONE: &[u8] = b"";

/// One of the two tables.
#[derive(Clone, Copy, Debug)]
pub struct Entrance {
    /// Its name.
    pub table: &'static str,
    /// The columns that are marked: all but the hash and those that the program changes without further ado.
    columns: &'static str,
    /// Which rows open something.
    open: &'static str,
    /// The column that tells a person which row it is.
    shown: &'static str,
}

/// Sessions. When one was last seen is not marked.
pub const SESSIONS: Entrance = Entrance {
    table: "sessions",
    columns: "id, account_id, user_id, person_id, created_at, via, confirmed_at",
    open: "TRUE",
    shown: "id",
};

/// Links. One that was used or withdrawn has no mark any more, so it cannot be set back.
pub const LINKS: Entrance = Entrance {
    table: "one_time_tokens",
    columns: "purpose, account_id, user_id, created_at, expires_at, new_password, shown",
    open: "used_at = 0",
    shown: "user_id",
};

/// A row.
struct Found {
    hash: Vec<u8>,
    mark: Vec<u8>,
    shown: String,
    text: String,
    is_open: bool,
}

impl Entrance {
    /// Marks a row that the program has just written.
    pub fn mark(&self, tx: &mut Tx, vault: &Vault, hash: &[u8]) -> Result<()> {
        self.find(tx, hash)?.into_iter().try_for_each(|found| self.save(tx, vault, &found))
    }

    /// Changes a row and marks it again, if it was marked. One that somebody else wrote stays without a mark.
    pub fn change(
        &self,
        tx: &mut Tx,
        vault: &Vault,
        hash: &[u8],
        work: impl FnOnce(&mut Tx) -> Result<()>,
    ) -> Result<()> {
        let was_marked = match self.find(tx, hash)? {
            Some(found) => vault.is_mark(found.text.as_bytes(), &found.mark)?,
            None => false,
        };
        work(tx)?;
        if was_marked { self.mark(tx, vault, hash) } else { Ok(()) }
    }

    /// Checks the next rows after a hash; returns the last hash, or nothing at the end, and those that the program did not write.
    pub fn check_some(&self, tx: &mut Tx, vault: &Vault, after: &[u8]) -> Result<(Vec<u8>, Vec<String>)> {
        let (found, mut wrong) = (self.after(tx, after)?, Vec::new());
        for one in found.iter().filter(|one| one.is_open) {
            if !vault.is_mark(one.text.as_bytes(), &one.mark)? {
                wrong.push(one.shown.clone());
            }
        }
        Ok((found.into_iter().last().map(|last| last.hash).unwrap_or_default(), wrong))
    }

    fn sign_some(&self, tx: &mut Tx, vault: &Vault, after: &[u8], trusts_all: bool) -> Result<Vec<u8>> {
        let found = self.after(tx, after)?;
        for one in found.iter().filter(|one| one.is_open) {
            if trusts_all || vault.is_mark(one.text.as_bytes(), &one.mark)? {
                self.save(tx, vault, one)?;
            }
        }
        Ok(found.into_iter().last().map(|last| last.hash).unwrap_or_default())
    }

    fn save(&self, tx: &mut Tx, vault: &Vault, found: &Found) -> Result<()> {
        let (sql, mark) =
            (format!("UPDATE {} SET mark = $1 WHERE hash = $2", self.table), vault.mark(found.text.as_bytes())?);
        tx.execute(&sql, &[mark.as_slice().into(), found.hash.as_slice().into()])?;
        Ok(())
    }

    fn find(&self, tx: &mut Tx, hash: &[u8]) -> Result<Option<Found>> {
        let sql = format!("{} WHERE hash = $1", self.select());
        tx.first(&sql, &[hash.into()], |row| self.read(row))
    }

    fn after(&self, tx: &mut Tx, hash: &[u8]) -> Result<Vec<Found>> {
        let sql = format!("{} WHERE hash > $1 ORDER BY hash LIMIT $2", self.select());
        tx.all(&sql, &[hash.into(), BATCH.into()], |row| self.read(row))
    }

    fn select(&self) -> String {
        let Entrance { table, open, shown, .. } = self;
        let text = self.text();
        format!("SELECT hash, mark, {shown}, {text}, CASE WHEN {open} THEN 1 ELSE 0 END FROM {table}")
    }

    /// Returns what a statement selects to check a row with [`Entrance::is_ours`]: the mark, and what it is of.
    pub fn marked(&self) -> String {
        format!("{}.mark, {}", self.table, self.text())
    }

    /// Whether the program wrote the row with this hash, whose mark and marked text a statement selected as these columns. One
    /// that it did not write is logged once.
    pub fn is_ours(&self, vault: &Vault, hash: &[u8], row: &Row, column: usize) -> Result<bool> {
        let (mark, text) = (row.bytes(column)?, self.with_hash(hash, row.text(column + 1)?));
        let is_ours = vault.is_mark(text.as_bytes(), mark)?;
        if !is_ours && vault.is_news(hash) {
            tracing::warn!(
                table = self.table,
                "A session or a link was added or changed outside the program, so it opens nothing. Verify the database."
            );
        }
        Ok(is_ours)
    }

    /// The columns as one text. None of them can contain the end of a line.
    fn text(&self) -> String {
        self.columns
            .split(", ")
            .map(|column| format!("CAST({}.{column} AS TEXT)", self.table))
            .collect::<Vec<_>>()
            .join(" || '\n' || ")
    }

    fn with_hash(&self, hash: &[u8], text: &str) -> String {
        format!("{} of Kantoor\n{}\n{text}\n", self.table, hex(hash))
    }

    fn read(&self, row: &Row) -> Result<Found> {
        let (hash, mark) = (row.bytes(0)?.to_vec(), row.bytes(1)?.to_vec());
        let text = self.with_hash(&hash, row.text(3)?);
        Ok::<_, Error>(Found { hash, mark, shown: row.text(2)?.to_string(), text, is_open: row.int(4)? != 0 })
    }
}

/// Marks all rows again with the current key: those that one of the keys marked, or all if `trusts_all`.
pub fn sign_all(app: &App, vault: &Arc<Vault>, trusts_all: bool) -> Result<()> {
    for entrance in [SESSIONS, LINKS] {
        let mut after = Vec::new();
        loop {
            let (own, from) = (vault.clone(), after);
            after = app.store.write_now(SHARED, move |tx| entrance.sign_some(tx, &own, &from, trusts_all))?;
            if after.is_empty() {
                break;
            }
        }
    }
    Ok(())
}
