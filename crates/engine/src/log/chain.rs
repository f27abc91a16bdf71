//! The audit chain: the hash of each row covers the previous row.

use sha2::{Digest, Sha256};
use store::Tx;

use super::{after, key_of};
use crate::clock::Moment;
use crate::error::Result;

/// The values that a hash covers.
pub(super) struct Parts<'p> {
    pub(super) account: i64,
    pub(super) seq: i64,
    pub(super) at: i64,
    pub(super) texts: [&'p str; 6],
}

/// Returns the hash of a row, which covers the one before.
pub(super) fn chain(before: &[u8], parts: &Parts) -> Vec<u8> {
    let mut hasher = Sha256::new();
    hasher.update(before);
    for number in [parts.account, parts.seq, parts.at] {
        hasher.update(number.to_be_bytes());
    }
    for text in parts.texts {
        // With its length, so that no two rows run into the same bytes.
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text);
    }
    hasher.finalize().to_vec()
}

/// What checking a chain found.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every row is as it was written: how many, and the last hash in hexadecimal.
    Whole {
        /// Rows seen.
        rows: i64,
        /// The end of the chain: write it down elsewhere to prove later that nothing was cut off.
        head: String,
    },
    /// The first row that is not as it was written.
    Broken {
        /// Its number.
        seq: i64,
        /// When it says it was written.
        at: Moment,
        /// What is wrong.
        why: &'static str,
    },
}

/// How far the check of a chain has come.
#[derive(Clone, Debug, Default)]
pub struct Walked {
    rows: i64,
    before: Vec<u8>,
    /// The entries that the last step read, for entries with a record: their key and sequence number.
    pub seen: Vec<((u64, u64), i64)>,
}

impl Walked {
    /// How many rows.
    pub fn rows(&self) -> i64 {
        self.rows
    }
}

/// Checks the chain of an account from its first row on.
pub fn verify(tx: &mut Tx, account: i64) -> Result<Verdict> {
    let mut walked = Walked::default();
    loop {
        match verify_on(tx, account, walked)? {
            Ok(further) => walked = further,
            Err(verdict) => return Ok(verdict),
        }
    }
}

/// Checks up to a thousand rows more; the verdict comes at the end, or at the first row that is not right.
pub fn verify_on(tx: &mut Tx, account: i64, walked: Walked) -> Result<Result<Walked, Verdict>> {
    let Walked { mut rows, mut before, .. } = walked;
    let mut seen = Vec::new();
    let lines = after(tx, account, rows, 1000, 8 * 1024 * 1024)?;
    if lines.is_empty() {
        let head = before.iter().map(|byte| format!("{byte:02x}")).collect();
        return Ok(Err(Verdict::Whole { rows, head }));
    }
    for line in lines {
        let broken = |why| Ok(Err(Verdict::Broken { seq: line.seq, at: Moment(line.at), why }));
        if line.seq != rows + 1 {
            return broken("the previous entry is missing");
        }
        if chain(&before, &line.parts(account)) != line.hash {
            return broken("the entry or the previous one was altered");
        }
        rows = line.seq;
        seen.extend(key_of(&line).map(|key| (key, rows)));
        before = line.hash;
    }
    Ok(Ok(Walked { rows, before, seen }))
}
