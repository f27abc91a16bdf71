//! Compares the logs with their signed heads, and with heads that were kept elsewhere.

use std::collections::HashSet;

use engine::accounts::{Account, SHARED};
use engine::heads::{self, Head, State};
use store::Tx;

use super::{Inspection, unreadable};

/// The heads of a database, as they were before its logs were read.
pub(super) struct Heads {
    state: State,
}

impl Inspection<'_> {
    /// Reads the heads. Logs that are read later continue them.
    pub(super) fn read_heads(&mut self) -> Option<Heads> {
        match self.store.read_now(State::read) {
            Ok(state) => Some(Heads { state }),
            Err(error) => {
                self.problem("", "log_heads", "", unreadable(&error));
                None
            }
        }
    }

    /// Compares the log of an account with its heads; `is_intact` says whether its chain is.
    pub(super) fn head(&mut self, heads: &Heads, account: &Account, is_intact: bool) {
        let (vault, own) = (self.vault, heads.state.heads.get(&account.number));
        let is_listed = heads.state.accounts.iter().any(|own| own.number == account.number);
        // An account that was created in the meantime has one that was not read.
        if own.is_none() && is_listed && heads.state.is_unlisted(account) {
            let what = self.look(account, "log", |tx| heads::unlisted(tx, vault, account));
            what.into_iter().for_each(|what| self.problem(&account.uid, "accounts", "", what));
        } else if own.is_some() || is_listed {
            let found = self.look(account, "log", |tx| heads::check(tx, vault, account, own, is_intact));
            self.findings(account, found);
        }
        let kept = self.against.get(&account.uid).cloned().unwrap_or_default();
        for head in &kept {
            let compare = |tx: &mut Tx| heads::compare(tx, vault, account, head, is_intact, "the kept head");
            let found = self.look(account, "log", compare);
            self.findings(account, found);
        }
    }

    fn findings(&mut self, account: &Account, found: Option<Vec<(&'static str, String)>>) {
        for (table, what) in found.unwrap_or_default() {
            self.problem(&account.uid, table, "", what);
        }
    }

    /// Checks the signature of the list of accounts.
    fn proof(&mut self, list: &Head) {
        let Some(vault) = self.vault else { return };
        match heads::unproven(vault, list, "the list of accounts") {
            Ok(None) => {}
            Ok(Some(what)) => self.problem("", "log_heads", "", what),
            Err(error) => self.problem("", "log_heads", "", unreadable(&error)),
        }
    }

    /// Checks that no account is missing.
    pub(super) fn accounts(&mut self, heads: &Heads) {
        let uids: HashSet<&str> = heads.state.accounts.iter().map(|account| account.uid.as_str()).collect();
        let saved = heads.state.heads.iter().filter(|(number, _)| **number != SHARED).map(|(_, head)| &head.uid);
        let mut gone: Vec<String> = saved.chain(self.against.keys()).cloned().collect();
        gone.retain(|uid| !uids.contains(uid.as_str()));
        // A damaged head may name an account that never existed.
        let proven = |head: &&Head| self.vault.is_none_or(|vault| matches!(heads::unproven(vault, head, ""), Ok(None)));
        let is_kept = |uid: &str| self.against.get(uid).is_none_or(|kept| kept.iter().any(|head| proven(&head)));
        let (deleted, damaged): (Vec<String>, Vec<String>) = gone.into_iter().partition(|uid| is_kept(uid));
        for uid in &damaged {
            self.problem(uid, "log_heads", "", "The signature of the kept head is not valid");
        }
        let mut gone = deleted;
        gone.sort_unstable();
        gone.dedup();
        for uid in &gone {
            self.problem(
                uid,
                "accounts",
                "",
                "The account was deleted: the database has its signed head, or you kept one",
            );
        }
        let Some(list) = heads.state.heads.get(&SHARED) else {
            if !heads.state.accounts.is_empty() {
                self.problem("", "log_heads", "", "The signed list of accounts was deleted");
            }
            return;
        };
        self.proof(list);
        if !heads.state.begins_with(list) {
            let what = format!(
                "Accounts were deleted or replaced: the signed list has {}, and there are {}",
                list.seq,
                heads.state.accounts.len()
            );
            self.problem("", "accounts", "", what);
        }
    }

    /// Finds the records that the log has and that are gone.
    pub(super) fn deleted(&mut self, account: &Account, lines: &engine::inspect::lines::Lines) {
        let number = account.number;
        for some in lines.unseen().chunks(100) {
            let found = self.look(account, "log", |tx| engine::inspect::lines::gone(tx, number, some));
            for (table, id) in found.unwrap_or_default() {
                self.problem(&account.uid, table, &id, "Deleted outside the log, which has no line about its deletion");
            }
        }
    }
}
