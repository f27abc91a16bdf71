//! Checks that every file has its exact content, and that every content has a file or a pending deletion.

use std::collections::HashMap;

use blobs::Blobs;
use engine::accounts::Account;
use engine::contents::hex;
use engine::error::{Error, Result};
use futures_util::{StreamExt, TryStreamExt, stream};
use sha2::{Digest, Sha256};
use store::Row;

use super::Inspection;
use crate::files;

/// Number of files per transaction.
const BATCH: usize = 200;
/// Number of contents to read concurrently.
const AT_ONCE: usize = 4;

/// A file as described by its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The id of the row.
    pub(crate) id: String,
    /// The key of the content.
    pub(crate) content: String,
    /// Its length.
    pub(crate) size: i64,
    /// Its SHA-256 in hexadecimal, or empty.
    pub(crate) sha256: String,
}

impl Kept {
    fn from_row(row: &Row) -> Result<Kept> {
        let text = |column: usize| row.text(column).map(str::to_string);
        Ok(Kept { id: text(0)?, content: text(1)?, size: row.int(2)?, sha256: text(3)? })
    }
}

impl Inspection<'_> {
    /// Checks that every file of an account has its content.
    pub(super) fn files(&mut self, account: &Account) {
        self.usage(account);
        let (number, mut after, mut seen) = (account.number, String::new(), 0);
        loop {
            let from = after.clone();
            let read = self.look(account, "files", |tx| {
                let sql = format!(
                    "SELECT id, content, size, sha256 FROM files WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT {BATCH}"
                );
                tx.all(&sql, &[number.into(), (&from).into()], Kept::from_row)
            });
            let Some(last) = read.as_ref().and_then(|files| files.last()).map(|file| file.id.clone()) else { return };
            after = last;
            for (fault, file) in self.runtime.block_on(all_faults(self.blobs, read.unwrap_or_default())) {
                seen += 1;
                self.checked.files += 1;
                self.checked.bytes += file.size.unsigned_abs();
                self.witness.sees("contents of files", seen);
                if let Some(what) = fault.filter(|_| self.is_there(account, &file)) {
                    self.problem(&account.uid, "files", &file.id, what);
                }
            }
        }
    }

    /// Checks the stored total size of the files.
    fn usage(&mut self, account: &Account) {
        let number = account.number;
        let sql = "SELECT coalesce((SELECT value FROM quota_usage WHERE account_id = $1 AND name = 'file_bytes'), 0),
                          (SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM files WHERE account_id = $1)";
        let sums = self.look(account, "quota_usage", |tx| {
            let sums = tx.first(sql, &[number.into()], |row| Ok::<_, Error>((row.int(0)?, row.int(1)?)));
            Ok(sums?.unwrap_or_default())
        });
        if let Some((kept, counted)) = sums.filter(|(kept, counted)| kept != counted) {
            let what = format!("The stored total size of the files is {kept}, but the actual size is {counted}");
            self.problem(&account.uid, "quota_usage", "file_bytes", what);
        }
    }

    /// Whether a file still exists, since it may have been deleted during the check.
    fn is_there(&mut self, account: &Account, file: &Kept) -> bool {
        let number = account.number;
        let sql = "SELECT count(*) FROM files WHERE account_id = $1 AND id = $2 AND content = $3";
        let values = || [number.into(), file.id.clone().into(), file.content.clone().into()];
        self.look(account, "files", |tx| Ok(tx.int(sql, &values())?)) != Some(0)
    }

    /// Checks that no content is without a file. A job is enqueued before the first byte of a content is written, so an
    /// unknown content means that the database is older than the files: it was copied without its WAL, or at another
    /// time.
    pub(super) fn contents(&mut self, accounts: &[Account]) {
        let owners: HashMap<&str, &Account> = accounts.iter().map(|account| (account.uid.as_str(), account)).collect();
        let mut keys = self.blobs.list();
        let mut seen = 0;
        while let Some(key) = self.runtime.block_on(keys.next()) {
            let key = match key {
                Ok(key) => key,
                Err(error) => return self.problem("", "files", "", format!("The contents cannot be listed: {error}")),
            };
            seen += 1;
            self.witness.sees("contents of files", seen);
            let owner = key.split('/').next().and_then(|uid| owners.get(uid));
            let number = owner.map_or(0, |account| account.number);
            let content = key.clone();
            let known = self.store.read_now(move |tx| {
                let files = "SELECT count(*) FROM files WHERE account_id = $1 AND content = $2";
                let jobs = "SELECT count(*) FROM jobs WHERE unique_key = $1";
                let announced = tx.int(jobs, &[files::drop_key(&content).into()])?;
                Ok::<_, Error>(announced + tx.int(files, &[number.into(), (&content).into()])?)
            });
            // A content whose file was deleted in the meantime is gone, or has a pending deletion.
            if matches!(known, Ok(0)) && matches!(self.runtime.block_on(self.blobs.size(&key)), Ok(Some(_))) {
                let uid = owner.map(|account| account.uid.clone()).unwrap_or_default();
                let what = "No file has this content: the database is older than the stored contents, or was copied without its WAL";
                self.problem(&uid, "files", &key, what);
            }
        }
    }
}

/// Returns the problem of each file's content; reads several concurrently.
pub(crate) async fn all_faults(blobs: &Blobs, files: Vec<Kept>) -> Vec<(Option<String>, Kept)> {
    let looks = stream::iter(files).map(|file| async move { (faults(blobs, &file).await, file) });
    looks.buffer_unordered(AT_ONCE).collect().await
}

/// Returns the problem of a file's content.
async fn faults(blobs: &Blobs, file: &Kept) -> Option<String> {
    let content = match blobs.open(&file.content).await {
        Ok(content) => content,
        Err(blobs::Error::Missing) => return Some(format!("Its content {} is missing", file.content)),
        Err(error) => return Some(format!("Its content {} cannot be read: {error}", file.content)),
    };
    let size = i64::try_from(content.size).unwrap_or(i64::MAX);
    if size != file.size {
        return Some(format!("Its content {} has {size} bytes instead of {}", file.content, file.size));
    }
    let digest = |hash: Sha256, piece: bytes::Bytes| async move { Ok(hash.chain_update(&piece)) };
    match content.bytes.try_fold(Sha256::new(), digest).await {
        Err(error) => Some(format!("Its content {} cannot be read: {error}", file.content)),
        Ok(hash) => {
            let differs = !file.sha256.is_empty() && hex(&hash.finalize()) != file.sha256;
            differs.then(|| format!("Its content {} was altered: its SHA-256 differs", file.content))
        }
    }
}
