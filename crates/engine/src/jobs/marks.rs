//! Marks of jobs: an HMAC with a key outside the database over what makes a job act. No log line contains jobs, so this is how one
//! that somebody added or changed in the database is recognized: it is not run, and `kantoor verify` names it.

use store::{Store, Tx};

use crate::accounts::SHARED;
use crate::error::{Error, Result};
use crate::secrets::vault::Vault;

/// Why a job without a valid mark is parked.
pub const FORGED: &str = "it was added or changed outside the program";
/// How many rows are read at a time.
const BATCH: i64 = 200;

/// What makes a job act. Its times, attempts and claims change, and lead to nothing that it would not do anyway.
pub(super) struct Text<'t> {
    pub(super) id: &'t str,
    pub(super) account: i64,
    pub(super) kind: &'t str,
    pub(super) payload: &'t str,
}

impl Text<'_> {
    /// The parts as one text. Only the payload, which comes last, can contain the end of a line.
    fn bytes(&self) -> Vec<u8> {
        let Text { id, account, kind, payload } = self;
        format!("job of Kantoor\n{id}\n{account}\n{kind}\n{payload}").into_bytes()
    }

    /// Returns the mark.
    pub(super) fn mark(&self, vault: &Vault) -> Result<Vec<u8>> {
        Ok(vault.mark(&self.bytes())?.to_vec())
    }

    /// Whether this is its mark.
    pub(super) fn has(&self, vault: &Vault, mark: &[u8]) -> Result<bool> {
        vault.is_mark(&self.bytes(), mark)
    }
}

/// Parks a job that was just claimed. It does not keep its unique key, so that a job of the program can take its place.
pub(super) fn park(tx: &mut Tx, id: &str, account: i64, kind: &str) -> Result<()> {
    tracing::error!(
        job = id,
        account,
        kind,
        "A job was added or changed outside the program, so it is not run. Verify the database."
    );
    let sql = "UPDATE jobs SET state = 'parked', last_error = $1, unique_key = id, attempts = attempts - 1,
                      lease_until = 0 WHERE id = $2";
    tx.execute(sql, &[FORGED.into(), id.into()])?;
    Ok(())
}

/// A stored job.
struct Found {
    id: String,
    account: i64,
    kind: String,
    payload: String,
    mark: Vec<u8>,
    is_done: bool,
}

impl Found {
    fn text(&self) -> Text<'_> {
        Text { id: &self.id, account: self.account, kind: &self.kind, payload: &self.payload }
    }
}

/// Returns the next jobs after an id. Those that are done come along, since there may be many of them between two others.
fn after(tx: &mut Tx, id: &str) -> Result<Vec<Found>> {
    let sql = "SELECT id, account_id, kind, payload, mark, state FROM jobs WHERE id > $1 ORDER BY id LIMIT $2";
    tx.all(sql, &[id.into(), BATCH.into()], |row| {
        let text = |column: usize| row.text(column).map(str::to_string);
        let (id, account, mark) = (text(0)?, row.int(1)?, row.bytes(4)?.to_vec());
        let is_done = row.text(5)? == "done";
        Ok::<_, Error>(Found { id, account, kind: text(2)?, payload: text(3)?, mark, is_done })
    })
}

/// A job that the program did not write as it is.
pub struct Wrong {
    /// Its id.
    pub id: String,
    /// The number of its account; 0 for the whole server.
    pub account: i64,
    /// The kind of job.
    pub kind: String,
}

/// Checks the next jobs after an id; returns the last id, or empty at the end, and those that the program did not write.
pub fn check_some(tx: &mut Tx, vault: &Vault, id: &str) -> Result<(String, Vec<Wrong>)> {
    let (found, mut wrong) = (after(tx, id)?, Vec::new());
    let last = found.last().map(|last| last.id.clone()).unwrap_or_default();
    // One that is done has no payload any more.
    for one in found.into_iter().filter(|one| !one.is_done) {
        if !one.text().has(vault, &one.mark)? {
            wrong.push(Wrong { id: one.id, account: one.account, kind: one.kind });
        }
    }
    Ok((last, wrong))
}

/// Marks all jobs again with the current key: those that one of the keys marked, or all if `trusts_all`.
pub fn sign_all(store: &Store, vault: &std::sync::Arc<Vault>, trusts_all: bool) -> Result<()> {
    let mut last = String::new();
    loop {
        let (own, from) = (vault.clone(), last);
        last = store.write_now(SHARED, move |tx| sign_some(tx, &own, &from, trusts_all))?;
        if last.is_empty() {
            return Ok(());
        }
    }
}

fn sign_some(tx: &mut Tx, vault: &Vault, id: &str, trusts_all: bool) -> Result<String> {
    let found = after(tx, id)?;
    for one in found.iter().filter(|one| !one.is_done) {
        if trusts_all || one.text().has(vault, &one.mark)? {
            // A job that a worker changes meanwhile has got its mark there.
            let sql = "UPDATE jobs SET mark = $1 WHERE id = $2 AND payload = $3";
            let mark = one.text().mark(vault)?;
            tx.execute(sql, &[mark.as_slice().into(), (&one.id).into(), (&one.payload).into()])?;
        }
    }
    Ok(found.into_iter().last().map(|last| last.id).unwrap_or_default())
}
