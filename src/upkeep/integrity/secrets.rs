//! Checks that every secret can be decrypted.

use engine::accounts::Account;
use engine::registry::registry;
use engine::secrets::vault::Vault;
use engine::secrets::{check_signing_key, columns};

use super::Inspection;

impl Inspection<'_> {
    /// Checks the secrets of an account.
    pub(super) fn secrets(&mut self, account: &Account, vault: &Vault) {
        let number = account.number;
        let found = self.look(account, "secrets", |tx| columns::check(tx, registry().secrets, vault, number));
        for (table, id, what) in found.unwrap_or_default() {
            self.problem(&account.uid, table, &id, what);
        }
    }

    /// Checks the key that signs URLs.
    pub(super) fn signing_key(&mut self, vault: &Vault) {
        match self.store.read_now(|tx| check_signing_key(tx, vault)) {
            Ok(None) => {}
            Ok(Some(what)) => self.problem("", "secrets", "addresses", what),
            Err(error) => self.problem("", "secrets", "", super::unreadable(&error)),
        }
    }
}
