//! Integrity checks: used by `kantoor verify`, and by `kantoor backup` on its copy.
//!
//! Records are read in small batches, each in its own transaction. So the checks need little memory, block nothing, and
//! can run next to a server.

pub(crate) mod files;
pub mod heads;
mod numbers;
mod records;
mod revenue;
pub mod schema;
mod secrets;

use std::collections::HashMap;

use blobs::Blobs;
use engine::accounts::Account;
use engine::error::{Error, Result};
use engine::heads::Head;
use engine::inspect::lines::Lines;
use engine::log::{self, Verdict, Walked};
use engine::registry::registry;
use engine::resource::Resource;
use engine::secrets::vault::Vault;
use store::{Store, Tx};
use tokio::runtime::Handle;

use crate::settings::account;

/// A problem that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The id of the account; empty when it concerns the whole database.
    pub account: String,
    /// The table.
    pub table: String,
    /// The record.
    pub id: String,
    /// A sentence that describes it.
    pub what: String,
}

/// Receives the findings of the checks.
pub trait Witness {
    /// Reports the current check and its count so far.
    fn sees(&mut self, what: &str, count: u64);
    /// Reports what is being copied, and the progress.
    fn copies(&mut self, what: &str, done: u64);
    /// Reports a problem.
    fn hears(&mut self, problem: &Problem);
    /// Reports the audit chain of an account.
    fn walked(&mut self, account: &Account, verdict: &Verdict);
    /// Reports something about an account that may be correct, as a sentence.
    fn notes(&mut self, account: &Account, what: &str);
    /// Reports something about the database that may be correct, as a sentence.
    fn remarks(&mut self, what: &str);
    /// Reports something that could not be checked, as a sentence.
    fn misses(&mut self, what: &str);
}

/// The totals of the checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Accounts.
    pub accounts: u64,
    /// Records.
    pub records: u64,
    /// Lines of audit chains.
    pub lines: u64,
    /// Files.
    pub files: u64,
    /// Bytes of their contents.
    pub bytes: u64,
    /// Problems found.
    pub problems: u64,
}

/// A check of a database and its files.
pub struct Inspection<'i> {
    /// The database.
    pub store: &'i Store,
    /// The contents of files.
    pub blobs: &'i Blobs,
    /// The runtime that reads contents; the database is queried outside of it.
    pub runtime: &'i Handle,
    /// The keys for secrets; without them, secrets are not checked.
    pub vault: Option<&'i Vault>,
    /// Heads that were kept elsewhere, by account.
    pub against: HashMap<String, Vec<Head>>,
    /// Receives the findings.
    pub witness: &'i mut dyn Witness,
    /// The totals so far.
    pub checked: Checked,
}

impl<'i> Inspection<'i> {
    /// Creates a check that has not started.
    pub fn new(
        store: &'i Store,
        blobs: &'i Blobs,
        runtime: &'i Handle,
        witness: &'i mut dyn Witness,
    ) -> Inspection<'i> {
        Inspection { store, blobs, runtime, vault: None, against: HashMap::new(), witness, checked: Checked::default() }
    }

    /// Adds the keys for secrets.
    pub fn with_keys(mut self, vault: Option<&'i Vault>) -> Inspection<'i> {
        self.vault = vault;
        self
    }

    /// Adds heads that were kept elsewhere.
    pub fn against(mut self, kept: Vec<Head>) -> Inspection<'i> {
        for head in kept {
            self.against.entry(head.uid.clone()).or_default().push(head);
        }
        self
    }

    /// Checks everything, or only one account with its files.
    pub fn run(self, only: Option<&str>) -> Result<Checked> {
        self.look_through(only, true)
    }

    /// Checks everything except the contents of files.
    pub fn run_on_database(self) -> Result<Checked> {
        self.look_through(None, false)
    }

    fn look_through(mut self, only: Option<&str>, with_files: bool) -> Result<Checked> {
        if only.is_none() {
            self.database();
            self.vault.into_iter().for_each(|vault| self.own_secrets(vault));
            self.vault.into_iter().for_each(|vault| self.people(vault));
            self.vault.into_iter().for_each(|vault| self.entrances(vault));
            self.vault.into_iter().for_each(|vault| self.jobs(vault));
        }
        let heads = self.read_heads();
        let accounts = match only {
            Some(uid) => vec![self.one_account(uid)?],
            None => self.all_accounts()?,
        };
        let tables = self.store.read_now(|tx| Ok::<_, Error>(tx.tables()?))?;
        for account in &accounts {
            self.checked.accounts += 1;
            let (lines, intact) = self.chain(account);
            let known = self.checked.problems;
            heads.iter().for_each(|heads| self.head(heads, account, intact.is_some()));
            // A log whose end was cut off is not intact, although what is left is.
            if let Some(verdict) = intact.as_ref().filter(|_| self.checked.problems == known) {
                self.witness.walked(account, verdict);
            }
            for resource in registry()
                .resources
                .iter()
                .filter(|one| one.is_kept() && tables.iter().any(|table| table == one.shape.table))
            {
                self.resource(account, resource, lines.as_ref());
            }
            lines.iter().for_each(|lines| self.deleted(account, lines));
            lines.iter().for_each(|_| self.changed_outside(account));
            self.relations(account);
            self.flows(account);
            self.numbers(account);
            self.revenue(account);
            self.vault.into_iter().for_each(|vault| self.secrets(account, vault));
            self.vault.into_iter().for_each(|vault| self.old_secrets(account, vault));
            self.vault.into_iter().for_each(|_| self.persons(account));
            if with_files {
                self.files(account);
            }
        }
        if only.is_none() {
            heads.iter().for_each(|heads| self.accounts(heads));
        }
        if only.is_none() && with_files {
            self.contents(&accounts);
        }
        Ok(self.checked)
    }

    fn one_account(&mut self, uid: &str) -> Result<Account> {
        let (account, wrong) = self.store.read_now(|tx| Account::find_to_check(tx, uid))?;
        self.own_row(&account, wrong);
        Ok(account)
    }

    /// Returns all accounts. One whose time zone is not known is checked all the same.
    fn all_accounts(&mut self) -> Result<Vec<Account>> {
        let mut accounts = Vec::new();
        for (account, wrong) in self.store.read_now(Account::all_to_check)? {
            self.own_row(&account, wrong);
            accounts.push(account);
        }
        Ok(accounts)
    }

    fn problem(&mut self, account: &str, table: &str, id: &str, what: impl Into<String>) {
        self.checked.problems += 1;
        let (account, table, id) = (account.to_string(), table.to_string(), id.to_string());
        self.witness.hears(&Problem { account, table, id, what: what.into() });
    }

    /// Returns the result of a query; an error is reported as a problem.
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
        self.schema();
    }

    /// Verifies the audit chain; returns the last line about each record, and the verdict if the chain is intact. A broken line
    /// must not hide what was changed besides: the records are compared with the other lines, too.
    fn chain(&mut self, account: &Account) -> (Option<Lines>, Option<Verdict>) {
        let (number, mut walked, mut lines) = (account.number, Walked::default(), Lines::default());
        loop {
            let so_far = walked.clone();
            match self.look(account, "log", move |tx| log::verify_on(tx, number, so_far.clone())) {
                None => return (None, None),
                Some(Ok(mut further)) => {
                    further.seen.drain(..).for_each(|(key, seq)| lines.note(key, seq));
                    walked = further;
                    self.witness.sees("log", walked.rows().unsigned_abs());
                }
                Some(Err(verdict)) => {
                    if let Verdict::Whole { rows, .. } = &verdict {
                        self.checked.lines += rows.unsigned_abs();
                        return (Some(lines), Some(verdict));
                    }
                    self.checked.problems += 1;
                    self.witness.walked(account, &verdict);
                    return (self.rest(account, walked.rows(), lines), None);
                }
            }
        }
    }

    /// Adds the lines after the last one that was verified.
    fn rest(&mut self, account: &Account, mut seq: i64, mut lines: Lines) -> Option<Lines> {
        while let Some((last, seen)) = self.look(account, "log", |tx| log::seen_after(tx, account.number, seq))? {
            seen.into_iter().for_each(|(key, seq)| lines.note(key, seq));
            seq = last;
        }
        Some(lines)
    }

    /// Compares the row of an account with the log, and reports what is wrong with its time zone.
    fn own_row(&mut self, account: &Account, wrong: Option<String>) {
        let knows_zone = wrong.is_none();
        wrong.into_iter().for_each(|wrong| self.problem(&account.uid, "accounts", "", wrong));
        let found = self.look(account, "log", |tx| account::differences(tx, account, knows_zone)).unwrap_or_default();
        for what in found.fields.into_iter().chain(found.closing) {
            self.problem(&account.uid, "accounts", "", what);
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

/// Returns a sentence for a database error.
fn unreadable(error: &Error) -> String {
    format!("It cannot be read: {}", error.internal.as_deref().unwrap_or(&error.message))
}
