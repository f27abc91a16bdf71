//! Whether everything that is kept is as it must be: what `kantoor verify` checks, and `kantoor backup` of its copy.
//!
//! It reads some records at a time, each time in a transaction of its own. So it needs little memory, holds up nobody,
//! and a server may go on beside it.

pub(crate) mod files;
mod numbers;
mod records;

use blobs::Blobs;
use engine::accounts::Account;
use engine::error::{Error, Result};
use engine::inspect::lines::Lines;
use engine::log::{self, Verdict, Walked};
use engine::registry::registry;
use engine::resource::Resource;
use store::{Store, Tx};
use tokio::runtime::Runtime;

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The id of the account; empty when it concerns the whole database.
    pub account: String,
    /// The table.
    pub table: String,
    /// The record.
    pub id: String,
    /// A sentence.
    pub what: String,
}

/// Hears what an inspection finds.
pub trait Witness {
    /// What is being looked at, and how many of these so far.
    fn sees(&mut self, what: &str, count: u64);
    /// What is being copied, and how much of it is done.
    fn copies(&mut self, what: &str, done: u64);
    /// Something that is wrong.
    fn hears(&mut self, problem: &Problem);
    /// The audit chain of an account was walked.
    fn walked(&mut self, account: &Account, verdict: &Verdict);
    /// Something about an account that may be right, as a sentence.
    fn notes(&mut self, account: &Account, what: &str);
    /// Something that could not be checked, as a sentence.
    fn misses(&mut self, what: &str);
}

/// How much was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Accounts.
    pub accounts: u64,
    /// Records.
    pub records: u64,
    /// Entries of audit chains.
    pub entries: u64,
    /// Files.
    pub files: u64,
    /// Bytes of their contents.
    pub bytes: u64,
    /// Problems found.
    pub problems: u64,
}

/// A look through a database and its files.
pub struct Inspection<'i> {
    /// The database.
    pub store: &'i Store,
    /// The contents of files.
    pub blobs: &'i Blobs,
    /// Reads the contents: the database is asked outside of it.
    pub runtime: &'i Runtime,
    /// Who hears of it.
    pub witness: &'i mut dyn Witness,
    /// How much was checked so far.
    pub checked: Checked,
}

impl<'i> Inspection<'i> {
    /// One that has not begun.
    pub fn new(
        store: &'i Store,
        blobs: &'i Blobs,
        runtime: &'i Runtime,
        witness: &'i mut dyn Witness,
    ) -> Inspection<'i> {
        Inspection { store, blobs, runtime, witness, checked: Checked::default() }
    }

    /// Checks everything; or one account alone, with its files.
    pub fn run(self, only: Option<&str>) -> Result<Checked> {
        self.look_through(only, true)
    }

    /// Checks everything but the contents of files.
    pub fn run_on_database(self) -> Result<Checked> {
        self.look_through(None, false)
    }

    fn look_through(mut self, only: Option<&str>, with_files: bool) -> Result<Checked> {
        if only.is_none() {
            self.database();
        }
        let accounts = match only {
            Some(uid) => vec![self.store.read_now(|tx| Account::find(tx, uid))?],
            None => self.store.read_now(Account::all)?,
        };
        let tables = self.store.read_now(|tx| Ok::<_, Error>(tx.tables()?))?;
        for account in &accounts {
            self.checked.accounts += 1;
            let lines = self.chain(account);
            for resource in
                registry().resources.iter().filter(|one| tables.iter().any(|table| table == one.shape.table))
            {
                self.resource(account, resource, lines.as_ref());
            }
            self.relations(account);
            self.numbers(account);
            self.payments(account);
            if with_files {
                self.files(account);
            }
        }
        if only.is_none() && with_files {
            self.contents(&accounts);
        }
        Ok(self.checked)
    }

    fn problem(&mut self, account: &str, table: &str, id: &str, what: impl Into<String>) {
        self.checked.problems += 1;
        let (account, table, id) = (account.to_string(), table.to_string(), id.to_string());
        self.witness.hears(&Problem { account, table, id, what: what.into() });
    }

    /// The answer of a look at a table; when there is none, that is a problem.
    fn look<T>(&mut self, account: &Account, table: &str, work: impl Fn(&mut Tx) -> Result<T>) -> Option<T> {
        match self.store.read_now(work) {
            Ok(found) => Some(found),
            Err(error) => {
                self.problem(&account.uid, table, "", unreadable(&error));
                None
            }
        }
    }

    fn database(&mut self) {
        let mut found = Vec::new();
        let witness = &mut *self.witness;
        let missed = self.store.check(&mut |what| witness.sees(what, 0), &mut |unsound| found.push(unsound));
        for unsound in found {
            self.problem("", &unsound.table, "", unsound.what);
        }
        missed.iter().for_each(|what| self.witness.misses(what));
    }

    /// Walks along the audit chain; answers the last entry about each record, unless the chain is broken.
    fn chain(&mut self, account: &Account) -> Option<Lines> {
        let (number, mut walked, mut lines) = (account.number, Walked::default(), Lines::default());
        loop {
            let so_far = walked.clone();
            let step = self.look(account, "log", move |tx| log::verify_on(tx, number, so_far.clone()))?;
            match step {
                Ok(mut further) => {
                    further.seen.drain(..).for_each(|(key, seq)| lines.note(key, seq));
                    walked = further;
                    self.witness.sees("log", walked.rows().unsigned_abs());
                }
                Err(verdict) => {
                    let is_whole = matches!(verdict, Verdict::Whole { .. });
                    match &verdict {
                        Verdict::Whole { rows, .. } => self.checked.entries += rows.unsigned_abs(),
                        Verdict::Broken { .. } => self.checked.problems += 1,
                    }
                    self.witness.walked(account, &verdict);
                    return is_whole.then_some(lines);
                }
            }
        }
    }

    fn resource(&mut self, account: &Account, resource: &Resource, lines: Option<&Lines>) {
        let (number, table) = (account.number, resource.shape.table);
        let (mut after, mut seen) = (String::new(), 0);
        loop {
            let from = after.clone();
            let Some(batch) = self.look(account, table, |tx| (resource.inspect)(tx, number, &from, lines)) else {
                return;
            };
            for (id, what) in batch.problems {
                self.problem(&account.uid, table, &id, what);
            }
            self.checked.records += batch.seen;
            seen += batch.seen;
            self.witness.sees(table, seen);
            if batch.last.is_empty() {
                break;
            }
            after = batch.last;
        }
        if !resource.fleeting {
            self.counts(account, resource);
        }
        self.texts(account, resource);
    }
}

/// A sentence about what the database said instead of an answer.
fn unreadable(error: &Error) -> String {
    format!("It cannot be read: {}", error.internal.as_deref().unwrap_or(&error.message))
}
