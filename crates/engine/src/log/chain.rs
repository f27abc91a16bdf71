//! The audit chain: the hash of each row covers the previous row.

use ring::digest::{Context, SHA256};
use store::Tx;

use super::emptied::Erased;
use super::line::Line;
use super::reading::{after, key_of};
use super::salt;
use crate::clock::Moment;
use crate::contents::hex;
use crate::error::Result;
use crate::secrets::vault::Vault;

/// The version of a row: how its hash is made, and that its salt is followed by a mark of the hash, which only a program with the
/// key can make.
pub(super) const VERSION: i64 = 1;

/// The values that a hash covers, besides the digest of the data.
pub(super) struct Parts<'p> {
    pub(super) account: i64,
    pub(super) seq: i64,
    pub(super) at: i64,
    pub(super) texts: [&'p str; 6],
}

/// Returns the hash of a row, which covers the one before. Of the data it covers the digest alone, so that they can be
/// erased.
pub(super) fn chain(before: &[u8], parts: &Parts, digest: &[u8]) -> Vec<u8> {
    let mut hasher = Context::new(&SHA256);
    hasher.update(before);
    hasher.update(&[u8::try_from(VERSION).unwrap_or_default()]);
    for number in [parts.account, parts.seq, parts.at] {
        hasher.update(&number.to_be_bytes());
    }
    parts.texts.iter().for_each(|text| update_text(&mut hasher, text));
    hasher.update(digest);
    hasher.finish().as_ref().to_vec()
}

/// Returns the digest of what may be personal data. The salt keeps others from guessing data that were erased.
///
/// With `ring`, which is faster than `sha2` on processors without instructions for SHA-256: docs/performance.md.
pub(super) fn digest(salt: &[u8], actor_name: &str, data: &str) -> [u8; 32] {
    let mut hasher = Context::new(&SHA256);
    hasher.update(salt);
    update_text(&mut hasher, actor_name);
    hasher.update(data.as_bytes());
    let mut digest = [0; 32];
    digest.copy_from_slice(hasher.finish().as_ref());
    digest
}

/// With its length, so that no two rows run into the same bytes.
fn update_text(hasher: &mut Context, text: &str) {
    hasher.update(&(text.len() as u64).to_be_bytes());
    hasher.update(text.as_bytes());
}

impl Line {
    /// Returns the hash that the row must have after this one; `None` if it was not erased as the program does it.
    fn expected(&self, account: i64, before: &[u8]) -> Option<Vec<u8>> {
        if self.version != VERSION {
            return None;
        }
        let (name, kind, id) = (&*self.name, &*self.entity_type, &*self.entity_id);
        let texts = [name, kind, id, &self.actor, &self.actor_type, &self.request_id];
        let parts = Parts { account, seq: self.seq, at: self.at, texts };
        if !self.is_erased() {
            let digest = digest(self.salt(), &self.actor_name, &self.data);
            return Some(chain(before, &parts, &digest));
        }
        let is_empty = self.data.is_empty() && self.salt.is_empty() && self.actor_name.is_empty();
        is_empty.then(|| chain(before, &parts, &self.digest))
    }

    /// Returns the salt, without the mark behind it.
    pub(super) fn salt(&self) -> &[u8] {
        self.split_salt().0
    }

    fn split_salt(&self) -> (&[u8], &[u8]) {
        self.salt.split_at_checked(salt::LENGTH).unwrap_or_default()
    }

    /// Whether the program wrote the row: it has a mark. An emptied row shows nothing, and breaks the chain if no other row explains
    /// it, which has a mark.
    pub fn is_ours(&self, vault: &Vault) -> Result<bool> {
        Ok(self.version == VERSION && (self.is_erased() || vault.is_mark(&self.hash, self.split_salt().1)?))
    }
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
    /// The lines that the last step read, for lines with a record.
    pub seen: Vec<Noted>,
    erased: Erased,
}

/// The key of a line about a record, and its number.
pub type Noted = ((u64, u64), i64);

impl Walked {
    /// How many rows.
    pub fn rows(&self) -> i64 {
        self.rows
    }

    /// Continues behind a row whose number and hash the caller has kept.
    pub(super) fn behind(rows: i64, before: Vec<u8>) -> Walked {
        Walked { rows, before, ..Walked::default() }
    }

    /// Returns the hash of the last row.
    pub(super) fn into_hash(self) -> Vec<u8> {
        self.before
    }

    /// Whether rows of the last step were emptied, and no later row of that step says why.
    pub(super) fn has_unexplained(&self) -> bool {
        self.erased.unexplained().is_some()
    }
}

/// What is wrong with a row that was emptied in another way than the program does it.
pub(super) const UNEXPLAINED: &str = "the line was emptied, and no line says that its record was erased";

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

/// Whether the rows after number `rows`, whose hash is `before`, continue it up to the last one, and are the program's own.
pub fn continues(tx: &mut Tx, vault: &Vault, account: i64, mut rows: i64, before: &[u8]) -> Result<bool> {
    let mut before = before.to_vec();
    loop {
        let lines = after(tx, account, rows, 1000, 8 * 1024 * 1024)?;
        if lines.is_empty() {
            return Ok(true);
        }
        for line in lines {
            let fits = line.seq == rows + 1 && line.expected(account, &before).as_ref() == Some(&line.hash);
            if !fits || !line.is_ours(vault)? {
                return Ok(false);
            }
            (rows, before) = (line.seq, line.hash);
        }
    }
}

/// Returns the number of the first row after number `seq` that the program did not write.
pub fn foreign(tx: &mut Tx, vault: &Vault, account: i64, mut seq: i64) -> Result<Option<i64>> {
    loop {
        let lines = after(tx, account, seq, 1000, 8 * 1024 * 1024)?;
        for line in &lines {
            if !line.is_ours(vault)? {
                return Ok(Some(line.seq));
            }
            seq = line.seq;
        }
        if lines.is_empty() {
            return Ok(None);
        }
    }
}

/// Checks up to a thousand rows more; the verdict comes at the end, or at the first row that is not right.
pub fn verify_on(tx: &mut Tx, account: i64, walked: Walked) -> Result<Result<Walked, Verdict>> {
    verify_seeing(tx, account, walked, &mut |_| Ok(()))
}

/// As [`verify_on`]; `see` is shown each row that is right.
pub(super) fn verify_seeing(
    tx: &mut Tx,
    account: i64,
    walked: Walked,
    see: &mut dyn FnMut(&Line) -> Result<()>,
) -> Result<Result<Walked, Verdict>> {
    let Walked { mut rows, mut before, mut erased, .. } = walked;
    let mut seen = Vec::new();
    let lines = after(tx, account, rows, 1000, 8 * 1024 * 1024)?;
    if lines.is_empty() {
        return Ok(Err(match erased.unexplained() {
            Some((seq, at)) => Verdict::Broken { seq, at, why: UNEXPLAINED },
            None => Verdict::Whole { rows, head: hex(&before) },
        }));
    }
    for line in lines {
        let broken = |why| Ok(Err(Verdict::Broken { seq: line.seq, at: Moment(line.at), why }));
        if line.seq != rows + 1 {
            return broken("the previous line is missing");
        }
        if line.expected(account, &before).as_ref() != Some(&line.hash) {
            return broken("the line or the previous one was altered");
        }
        see(&line)?;
        rows = line.seq;
        seen.extend(key_of(&line).map(|key| (key, rows)));
        erased.note(&line);
        before = line.hash;
    }
    Ok(Ok(Walked { rows, before, seen, erased }))
}

/// Returns the keys of the lines after `seq`, with their numbers, and the last number; nothing after the last line. It does not
/// verify them: after a broken line, this tells which record each of the others is about.
pub fn seen_after(tx: &mut Tx, account: i64, seq: i64) -> Result<Option<(i64, Vec<Noted>)>> {
    let lines = after(tx, account, seq, 1000, 8 * 1024 * 1024)?;
    let Some(last) = lines.last().map(|line| line.seq) else { return Ok(None) };
    Ok(Some((last, lines.iter().filter_map(|line| Some((key_of(line)?, line.seq))).collect())))
}
