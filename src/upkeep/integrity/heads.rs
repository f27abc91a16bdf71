//! Compares the logs with their signed heads, and with heads that were kept elsewhere. A chain that is intact may still lack
//! its end, or be a new one.

use std::collections::HashSet;

use engine::accounts::{Account, SHARED};
use engine::heads::{self, Head, State};
use engine::log;
use engine::secrets::signing::Proof;

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
        let place = heads.state.accounts.iter().position(|own| own.number == account.number);
        match heads.state.heads.get(&account.number) {
            Some(head) if head.uid != account.uid => {
                self.problem(&account.uid, "log_heads", "", "Its signed head belongs to another log");
            }
            Some(head) => {
                self.compare(account, head, is_intact, "its signed head");
                self.unsigned(account, head, is_intact);
            }
            // An account that was created in the meantime has one that was not read.
            None if place.is_none() => {}
            None => self.problem(&account.uid, "log_heads", "", "Its signed head was deleted"),
        }
        let kept = self.against.get(&account.uid).cloned().unwrap_or_default();
        kept.iter().for_each(|head| self.compare(account, head, is_intact, "the kept head"));
    }

    fn compare(&mut self, account: &Account, head: &Head, is_intact: bool, name: &str) {
        self.proof(&account.uid, head, name);
        let (number, seq) = (account.number, head.seq);
        let found = self.look(account, "log", move |tx| Ok((log::last(tx, number)?, heads::hash_at(tx, number, seq)?)));
        let Some((last, hash)) = found else { return };
        let what = match last {
            0 if seq > 0 => format!("The log was emptied: {name} has {seq} lines"),
            last if last < seq => {
                format!("The end of the log was cut off: it has {last} lines, and {name} has {seq}")
            }
            _ if is_intact && hash != head.hash => match self.is_own_line(account, seq) {
                true => format!(
                    "The end of the log was cut off, and the server continued it: line {seq} is not the one of {name}"
                ),
                false => format!("The chain was hashed again: line {seq} is not the one of {name}"),
            },
            _ => return,
        };
        self.problem(&account.uid, "log", "", what);
    }

    /// Whether the program wrote this line. Whoever hashes a chain again cannot give its lines the marks of the key.
    fn is_own_line(&mut self, account: &Account, seq: i64) -> bool {
        let Some(vault) = self.vault else { return false };
        let number = account.number;
        let line = self.look(account, "log", move |tx| match log::line(tx, number, seq)? {
            Some(line) => line.is_ours(vault),
            None => Ok(false),
        });
        line.unwrap_or(false)
    }

    /// Checks that the program wrote the lines that are not signed yet.
    fn unsigned(&mut self, account: &Account, head: &Head, is_intact: bool) {
        let Some(vault) = self.vault.filter(|_| is_intact) else { return };
        let (number, seq) = (account.number, head.seq);
        let found = self.look(account, "log", move |tx| log::foreign(tx, vault, number, seq));
        if let Some(seq) = found.flatten() {
            self.problem(
                &account.uid,
                "log",
                "",
                format!("Line {seq} was appended outside the program: its mark is not valid"),
            );
        }
    }

    /// Checks the signature of a head.
    fn proof(&mut self, uid: &str, head: &Head, name: &str) {
        let Some(vault) = self.vault else { return };
        match head.proof(vault) {
            Ok(Proof::Signed) => {}
            Ok(Proof::Forged) => self.problem(uid, "log_heads", "", format!("The signature of {name} is not valid")),
            Ok(Proof::UnknownKey(key)) => {
                let what = format!("{name} is signed with the key {key}, which is not among the configured keys");
                self.problem(uid, "log_heads", "", what[..1].to_uppercase() + &what[1..]);
            }
            Err(error) => self.problem(uid, "log_heads", "", unreadable(&error)),
        }
    }

    /// Checks that no account is missing.
    pub(super) fn accounts(&mut self, heads: &Heads) {
        let uids: HashSet<&str> = heads.state.accounts.iter().map(|account| account.uid.as_str()).collect();
        let saved = heads.state.heads.iter().filter(|(number, _)| **number != SHARED).map(|(_, head)| &head.uid);
        let mut gone: Vec<String> = saved.chain(self.against.keys()).cloned().collect();
        gone.retain(|uid| !uids.contains(uid.as_str()));
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
        self.proof("", list, "the list of accounts");
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
