//! Checks that every secret can be decrypted.

use engine::accounts::{Account, SHARED};
use engine::error::{Error, Result};
use engine::jobs::marks::{self, Wrong};
use engine::registry::registry;
use engine::secrets::check_signing_key;
use engine::secrets::columns::{self, Undecryptable};
use engine::secrets::vault::Vault;

use store::Tx;

use super::Inspection;
use crate::keys::old;
use crate::people::{entrances, sealing};

impl Inspection<'_> {
    /// Checks the secrets of an account.
    pub(super) fn secrets(&mut self, account: &Account, vault: &Vault) {
        let number = account.number;
        let found = self.look(account, "secrets", |tx| check(tx, vault, number));
        for (table, id, what) in found.unwrap_or_default() {
            self.problem(&account.uid, table, &id, what);
        }
    }

    /// Checks what no log line contains: the replaced secrets of keys.
    pub(super) fn old_secrets(&mut self, account: &Account, vault: &Vault) {
        let number = account.number;
        let found = self.look(account, "old_key_secrets", |tx| old::check(tx, vault, number));
        for (id, what) in found.unwrap_or_default() {
            self.problem(&account.uid, "old_key_secrets", &id, what);
        }
    }

    /// Checks that the users of an account can be told who they are.
    pub(super) fn persons(&mut self, account: &Account) {
        let number = account.number;
        let found = self.look(account, "people", |tx| sealing::missing(tx, number));
        for (user, person) in found.unwrap_or_default() {
            let what = format!("Deleted outside the log: the user {user} has no password and no second factor left");
            self.problem(&account.uid, "people", &person, what);
        }
    }

    /// Checks what people sign in with.
    pub(super) fn people(&mut self, vault: &Vault) {
        let mut after = String::new();
        loop {
            let from = after.clone();
            let (last, problems) = match self.store.read_now(|tx| sealing::check_some(tx, vault, &from)) {
                Ok(found) => found,
                Err(error) => return self.problem("", "people", "", super::unreadable(&error)),
            };
            problems.into_iter().for_each(|(id, what)| self.problem("", "people", &id, what));
            if last.is_empty() {
                return;
            }
            after = last;
        }
    }

    /// Checks what lets people in without a password.
    pub(super) fn entrances(&mut self, vault: &Vault) {
        for entrance in [entrances::SESSIONS, entrances::LINKS] {
            let mut after = Vec::new();
            loop {
                let from = after.clone();
                let (last, wrong) = match self.store.read_now(|tx| entrance.check_some(tx, vault, &from)) {
                    Ok(found) => found,
                    Err(error) => {
                        self.problem("", entrance.table, "", super::unreadable(&error));
                        break;
                    }
                };
                for id in wrong {
                    self.problem("", entrance.table, &id, "It was added or changed outside the program");
                }
                if last.is_empty() {
                    break;
                }
                after = last;
            }
        }
    }

    /// Checks the jobs that are queued, or that the operator may retry.
    pub(super) fn jobs(&mut self, vault: &Vault) {
        let mut after = String::new();
        loop {
            let from = after.clone();
            let (last, wrong) = match self.store.read_now(|tx| marks::check_some(tx, vault, &from)) {
                Ok(found) => found,
                Err(error) => return self.problem("", "jobs", "", super::unreadable(&error)),
            };
            for Wrong { id, account, kind } in wrong {
                let account = self.uid_of(account);
                self.problem(&account, "jobs", &id, format!("It was added or changed outside the program ({kind})"));
            }
            if last.is_empty() {
                return;
            }
            after = last;
        }
    }

    /// Returns the id of an account as the API shows it; empty for the whole server.
    fn uid_of(&self, account: i64) -> String {
        let sql = "SELECT uid FROM accounts WHERE id = $1";
        let found =
            self.store.read_now(|tx| tx.first(sql, &[account.into()], |row| Ok::<_, Error>(row.text(0)?.to_string())));
        found.ok().flatten().unwrap_or_default()
    }

    /// Checks the secrets of the server: the key that signs URLs, and those of people, who have no account.
    pub(super) fn own_secrets(&mut self, vault: &Vault) {
        match self.store.read_now(|tx| check_signing_key(tx, vault)) {
            Ok(None) => {}
            Ok(Some(what)) => self.problem("", "secrets", "addresses", what),
            Err(error) => self.problem("", "secrets", "", super::unreadable(&error)),
        }
        match self.store.read_now(|tx| check(tx, vault, SHARED)) {
            Ok(found) => found.into_iter().for_each(|(table, id, what)| self.problem("", table, &id, what)),
            Err(error) => self.problem("", "secrets", "", super::unreadable(&error)),
        }
    }
}

/// Checks the secrets of an account.
fn check(tx: &mut Tx, vault: &Vault, account: i64) -> Result<Vec<Undecryptable>> {
    columns::check(tx, registry().secrets, vault, account)
}
