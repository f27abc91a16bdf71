//! Checks that every secret can be decrypted.

use engine::accounts::{Account, SHARED};
use engine::error::Result;
use engine::registry::registry;
use engine::secrets::check_signing_key;
use engine::secrets::columns::{self, Undecryptable};
use engine::secrets::vault::Vault;

use store::Tx;

use super::Inspection;

impl Inspection<'_> {
    /// Checks the secrets of an account.
    pub(super) fn secrets(&mut self, account: &Account, vault: &Vault) {
        let number = account.number;
        let found = self.look(account, "secrets", |tx| check(tx, vault, number));
        for (table, id, what) in found.unwrap_or_default() {
            self.problem(&account.uid, table, &id, what);
        }
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

/// Checks the secrets of an account; a database of an earlier version does not have all of their tables.
fn check(tx: &mut Tx, vault: &Vault, account: i64) -> Result<Vec<Undecryptable>> {
    let tables = tx.tables()?;
    let present = registry().secrets.iter().copied().filter(|one| tables.iter().any(|table| table == one.table));
    columns::check(tx, &present.collect::<Vec<_>>(), vault, account)
}
