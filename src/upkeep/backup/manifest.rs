//! `backup.json`, the description of a backup.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use engine::clock::{Clock, Moment};
use engine::contents::hex;
use engine::migrations;
use engine::secrets::key_file;
use engine::secrets::vault::Vault;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::Store;

use crate::upkeep::integrity::Checked;

/// The name of the description.
pub const MANIFEST: &str = "backup.json";
/// The list of contents with their hashes, in the format of `sha256sum --check`.
pub const LIST: &str = "files.sha256";
/// The signature of the backup, in hexadecimal digits. It comes last: it covers the list of contents, which is complete then.
pub const SIGNATURE: &str = "backup.signature";
/// The folder of contents.
pub const FILES: &str = "files";

/// The keys for the secrets of the database.
#[derive(Clone, Copy)]
pub struct BackupKeys<'k> {
    /// The keys; none if nothing is encrypted yet.
    pub vault: Option<&'k Vault>,
    /// Whether the backup includes them.
    pub included: bool,
}

/// The description of a backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the program that made it.
    pub kantoor: String,
    /// The last migration of the database.
    pub schema: u32,
    /// When it was started.
    pub started_at: String,
    /// When it was complete.
    pub finished_at: String,
    /// The copy of the database.
    pub database: DatabaseCopy,
    /// The contents of files.
    pub files: Contents,
    /// The key of its secrets, if it has secrets.
    pub secrets: Option<Key>,
    /// Accounts.
    pub accounts: u64,
    /// Records.
    pub records: u64,
    /// Lines of audit chains.
    pub log_entries: u64,
}

/// The copy of the database.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DatabaseCopy {
    /// `sqlite` or `postgresql`.
    pub kind: String,
    /// Its name.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: String,
}

/// The contents of files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Contents {
    /// How many there are.
    pub count: u64,
    /// Their size.
    pub bytes: u64,
    /// The list with their hashes.
    pub list: String,
}

/// The key of the secrets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Key {
    /// Its id.
    pub key: Option<String>,
    /// Whether it is in the backup.
    pub included: bool,
}

/// What the signature of a backup covers: the description with the hash of the database, the list with the hashes of all
/// contents, and the key of the secrets if it is included. All are SHA-256, in hexadecimal digits.
#[derive(Clone, Debug, Default)]
pub struct Signed {
    /// Of the description.
    pub manifest: String,
    /// Of the list of contents.
    pub list: String,
    /// Of the key; empty if it is not included.
    pub key: String,
}

impl Signed {
    /// The text that is signed. No other text that is signed with the same keys starts like this.
    pub fn text(&self) -> String {
        format!("backup of Kantoor\n{}\n{}\n{}\n", self.manifest, self.list, self.key)
    }
}

impl Manifest {
    /// Describes a backup of `store` whose copy of the database is the file `database`.
    pub fn describe(
        store: &Store,
        database: &Path,
        started: Moment,
        keys: BackupKeys,
        checked: &Checked,
    ) -> std::io::Result<Manifest> {
        Ok(Manifest {
            kantoor: env!("CARGO_PKG_VERSION").to_string(),
            schema: newest_schema(),
            started_at: started.to_string(),
            finished_at: Clock::System.now().to_string(),
            database: DatabaseCopy {
                kind: kind(store).to_string(),
                file: database.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_string(),
                bytes: database.metadata()?.len(),
                sha256: sha256_of(database)?,
            },
            files: Contents { count: checked.files, bytes: checked.bytes, list: LIST.to_string() },
            secrets: keys
                .vault
                .map(|vault| Key { key: vault.ids().first().map(ToString::to_string), included: keys.included }),
            accounts: checked.accounts,
            records: checked.records,
            log_entries: checked.lines,
        })
    }

    /// Its text.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Signs the backup whose parts are in a folder. Without a key, which a database gets with its first account, it stays
    /// unsigned.
    pub fn sign(&self, folder: &Path, vault: Option<&Vault>) -> std::io::Result<()> {
        let Some(vault) = vault else { return Ok(()) };
        let key = folder.join(key_file::NAME);
        let signed = Signed {
            manifest: hex(&Sha256::digest(self.text())),
            list: sha256_of(&folder.join(LIST))?,
            key: if key.exists() { sha256_of(&key)? } else { String::new() },
        };
        let signature = vault.sign(signed.text().as_bytes()).map_err(|error| std::io::Error::other(error.message))?;
        let mut file = File::create(folder.join(SIGNATURE))?;
        writeln!(file, "{}", hex(&signature))?;
        file.sync_all()
    }

    /// Writes it to a folder.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        let mut file = File::create(folder.join(MANIFEST))?;
        file.write_all(self.text().as_bytes())?;
        file.sync_all()
    }
}

/// The last migration of this version.
pub fn newest_schema() -> u32 {
    migrations::all().last().map_or(0, |migration| migration.number)
}

/// Which database a backup of `store` can be restored to.
pub fn kind(store: &Store) -> &'static str {
    if store.is_shared() { "postgresql" } else { "sqlite" }
}

/// Returns the SHA-256 of a file.
pub fn sha256_of(path: &Path) -> std::io::Result<String> {
    let (mut file, mut hash, mut piece) = (File::open(path)?, Sha256::new(), vec![0; 1024 * 1024]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(&hash.finalize())),
            length => hash.update(&piece[..length]),
        }
    }
}
