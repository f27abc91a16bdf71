//! Compares the log of an account with a signed head. A chain that is intact may still lack its end, or be a new one.

use store::Tx;

use super::head::Head;
use crate::accounts::Account;
use crate::error::Result;
use crate::log;
use crate::secrets::signing::Proof;
use crate::secrets::vault::Vault;

/// A problem: its table, and a sentence.
pub type Finding = (&'static str, String);

/// Compares a log with the saved head of its account, which must have been read before the log; `is_intact` says whether the
/// chain is. Without a vault, signatures are not checked.
pub fn check(
    tx: &mut Tx,
    vault: Option<&Vault>,
    account: &Account,
    head: Option<&Head>,
    is_intact: bool,
) -> Result<Vec<Finding>> {
    check_seen(tx, vault, account, head, is_intact, None)
}

/// What a verification has seen of the marks of the log: the first row after row `after` that the program did not write; 0 for
/// none.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    /// The rows up to this one were not looked at.
    pub after: i64,
    /// The first row without a valid mark.
    pub foreign: i64,
}

impl Marks {
    /// Returns the first row behind the signed ones that the program did not write; `None` if that is not known.
    fn foreign_behind(self, signed: i64) -> Option<Option<i64>> {
        match self.foreign {
            _ if signed < self.after => None,
            0 => Some(None),
            // Heads are only signed if the marks are valid, unless somebody trusts the log as it is.
            seq => (seq > signed).then_some(Some(seq)),
        }
    }
}

/// As [`check`], for a caller that has seen the marks of all rows.
pub fn check_seen(
    tx: &mut Tx,
    vault: Option<&Vault>,
    account: &Account,
    head: Option<&Head>,
    is_intact: bool,
    marks: Option<Marks>,
) -> Result<Vec<Finding>> {
    let Some(head) = head else {
        let mut found = vec![("log_heads", "Its signed head was deleted".to_string())];
        // The first line of a log is about the account itself.
        if log::last(tx, account.number)? == 0 {
            found.push(("log", "The log was emptied".to_string()));
        }
        return Ok(found);
    };
    if head.uid != account.uid {
        return Ok(vec![("log_heads", "Its signed head belongs to another log".to_string())]);
    }
    let mut found = compare(tx, vault, account, head, is_intact, "its signed head")?;
    // The program must have written the lines that are not signed yet.
    let Some(vault) = vault.filter(|_| is_intact) else { return Ok(found) };
    let foreign = match marks.and_then(|marks| marks.foreign_behind(head.seq)) {
        Some(seen) => seen,
        None => log::foreign(tx, vault, account.number, head.seq)?,
    };
    if let Some(seq) = foreign {
        found.push(("log", format!("Line {seq} was appended outside the program: its mark is not valid")));
    }
    Ok(found)
}

/// Describes an account without a signed head that is not in the signed list of accounts either.
pub fn unlisted(tx: &mut Tx, vault: Option<&Vault>, account: &Account) -> Result<String> {
    Ok(match is_own_line(tx, vault, account.number, 1)? {
        // The list did not hold when it was created, because of another account.
        true => "The account is not in the signed list of accounts, and its log is not signed".to_string(),
        false => {
            "The account was added outside the program: its log does not begin with a line of the program".to_string()
        }
    })
}

/// Compares a log with a head, which problems call `name`.
pub fn compare(
    tx: &mut Tx,
    vault: Option<&Vault>,
    account: &Account,
    head: &Head,
    is_intact: bool,
    name: &str,
) -> Result<Vec<Finding>> {
    if let Some(what) = vault.map(|vault| unproven(vault, head, name)).transpose()?.flatten() {
        // It says nothing about the log.
        return Ok(vec![("log_heads", what)]);
    }
    let (number, seq) = (account.number, head.seq);
    let what = match log::last(tx, number)? {
        0 if seq > 0 => format!("The log was emptied: {name} has {}", lines(seq)),
        last if last < seq => {
            format!("The end of the log was cut off: it has {}, and {name} has {seq}", lines(last))
        }
        _ if is_intact && log::hash_at(tx, number, seq)? != head.hash => match is_own_line(tx, vault, number, seq)? {
            true => format!(
                "The end of the log was cut off, and the server continued it: line {seq} is not the one of {name}"
            ),
            false => format!("The chain was hashed again: line {seq} is not the one of {name}"),
        },
        _ => return Ok(Vec::new()),
    };
    Ok(vec![("log", what)])
}

fn lines(count: i64) -> String {
    if count == 1 { "1 line".to_string() } else { format!("{count} lines") }
}

/// Returns what is wrong with the signature of a head.
pub fn unproven(vault: &Vault, head: &Head, name: &str) -> Result<Option<String>> {
    Ok(match head.proof(vault)? {
        Proof::Signed => None,
        Proof::Forged => Some(format!("The signature of {name} is not valid")),
        Proof::UnknownKey(key) => {
            let what = format!("{name} is signed with the key {key}, which is not among the configured keys");
            Some(what[..1].to_uppercase() + &what[1..])
        }
    })
}

/// Whether the program wrote this line. Whoever hashes a chain again cannot give its lines the marks of the key.
fn is_own_line(tx: &mut Tx, vault: Option<&Vault>, account: i64, seq: i64) -> Result<bool> {
    match (vault, log::line(tx, account, seq)?) {
        (Some(vault), Some(line)) => line.is_ours(vault),
        _ => Ok(false),
    }
}
