//! Backs up everything while the server runs: first a consistent snapshot of the database, then the contents of its files.
//! The copy is verified like a database by `kantoor verify`, and gets its name when it is complete and synced. It is a
//! folder, or an archive in a file or an S3-compatible store.
//!
//! No content may be deleted between the two copies. So a hold is written before the database is copied, and while a
//! hold exists no content is deleted (`contents::holds`). It expires, in case the backup is killed.

mod contents;
mod hold;
pub mod manifest;
mod packing;
pub mod place;

use std::cell::RefCell;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use archive::Recipients;
use blobs::Blobs;
use engine::clock::{Clock, Moment};
use engine::contents::hex;
use engine::error::{Code, Error, Result};
use engine::private;
use engine::registry::registry;
use futures_util::{StreamExt, TryStreamExt, stream};
use sha2::{Digest, Sha256};
use store::{Database, Options, Store, Tx};
use tokio::runtime::Handle;

use crate::upkeep::integrity::files::{Kept, all_faults};
use crate::upkeep::integrity::{Checked, Inspection, Witness};
use contents::{about, listed};
use hold::Hold;
pub use manifest::BackupKeys;
use manifest::{FILES, LIST, Manifest, sha256_of};
use packing::{Packing, Uploading};
use place::Place;

/// Number of contents to copy concurrently.
const AT_ONCE: usize = 4;
/// Locked while a backup is in progress.
const LOCK: &str = "backup.lock";
/// Why nothing more can be written.
pub(super) const FULL: &str = "the disk is full";
/// What the name of a folder ends with in which a backup is being made or restored.
pub const UNFINISHED: &str = ".unfinished";

/// The outcome of a backup.
pub enum BackupOutcome {
    /// Completed and verified.
    Made {
        /// What was checked.
        checked: Checked,
        /// The size of the backup.
        bytes: u64,
    },
    /// The copy failed verification.
    Unsound {
        /// What was checked.
        checked: Checked,
        /// Where the copy was left; an archive is not.
        left: Option<PathBuf>,
    },
}

/// What is backed up, and how.
pub struct Making<'m> {
    /// The database.
    pub store: &'m Store,
    /// The contents of its files.
    pub blobs: &'m Blobs,
    /// The runtime that reads contents.
    pub runtime: &'m Handle,
    /// The keys for its secrets.
    pub keys: BackupKeys<'m>,
    /// Who can decrypt an archive; none if it is not encrypted.
    pub recipients: &'m Recipients,
    /// Where an archive for an S3 store is prepared.
    pub workplace: &'m Path,
    /// Receives the progress and the problems.
    pub witness: &'m mut dyn Witness,
}

/// What the snapshot of a shared database contains: others write to the original while it is verified.
#[derive(Clone, Copy, Default)]
struct Counted {
    accounts: u64,
    records: u64,
    lines: u64,
}

impl Counted {
    fn count(tx: &mut Tx) -> Result<Counted> {
        let count = |tx: &mut Tx, table: &str| -> Result<u64> {
            Ok(tx.int(&format!("SELECT count(*) FROM {table}"), &[])?.unsigned_abs())
        };
        let tables = tx.tables()?;
        let mut counted = Counted { accounts: count(tx, "accounts")?, records: 0, lines: count(tx, "log")? };
        for resource in registry().resources.iter().filter(|one| tables.iter().any(|own| own == one.shape.table)) {
            counted.records += count(tx, resource.shape.table)?;
        }
        Ok(counted)
    }
}

/// Says what is wrong with the database or the store, for the operator.
fn told(error: Error) -> String {
    error.internal.unwrap_or(error.message)
}

fn full(target: &Path) -> String {
    format!("{}: the disk is full; make room there, or choose another target", target.display())
}

/// The copy of the database in its temporary folder.
struct Staged {
    unfinished: PathBuf,
    database: PathBuf,
    contents: PathBuf,
    counted: Option<Counted>,
    started: Moment,
    _hold: Hold,
    _alone: File,
}

impl Staged {
    /// Returns what was checked, with the counts of the copy.
    fn corrected(&self, mut checked: Checked) -> Checked {
        if let Some(counted) = self.counted {
            (checked.accounts, checked.records, checked.lines) = (counted.accounts, counted.records, counted.lines);
        }
        checked
    }
}

impl Making<'_> {
    /// Makes a backup at a place where none is yet.
    pub fn run(&mut self, place: &Place) -> std::result::Result<BackupOutcome, String> {
        match place {
            Place::Folder(_) if !self.recipients.is_empty() => {
                Err("an encrypted backup is one file; give it a name that ends in .kantoor".to_string())
            }
            Place::Folder(folder) => self.make_folder(folder),
            Place::File(file) => self.make_file(file),
            Place::Object { blobs, key, url } => self.make_object(blobs, key, url),
        }
    }

    fn make_folder(&mut self, folder: &Path) -> std::result::Result<BackupOutcome, String> {
        let told = |error: io::Error| plainly(folder, &error);
        if folder.exists() && std::fs::read_dir(folder).map_err(told)?.next().is_some() {
            return Err(format!("{} already exists and is not empty; choose a new folder", folder.display()));
        }
        let staged = self.stage(folder)?;
        let Staged { unfinished, database, contents, .. } = &staged;
        let missing = self.runtime.block_on(copy_contents(self.blobs, unfinished, contents, self.witness));
        let missing = missing.map_err(|why| {
            let _ = std::fs::remove_dir_all(unfinished);
            if why == FULL { full(folder) } else { why }
        })?;
        let checked = check(self.store, self.runtime, unfinished, contents, self.keys, self.witness);
        let mut checked = staged.corrected(checked.map_err(self::told)?);
        checked.problems += missing;
        self.add_key(unfinished)?;
        if checked.problems > 0 {
            return Ok(BackupOutcome::Unsound { checked, left: Some(unfinished.clone()) });
        }
        let bytes = self.finish_folder(&staged, folder, database, &checked).map_err(told)?;
        Ok(BackupOutcome::Made { checked, bytes })
    }

    /// Writes the description of the backup and renames the folder.
    fn finish_folder(&self, staged: &Staged, folder: &Path, database: &Path, checked: &Checked) -> io::Result<u64> {
        let unfinished = &staged.unfinished;
        for name in ["contents", LOCK, "kantoor.db-wal", "kantoor.db-shm"] {
            match std::fs::remove_file(unfinished.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        let manifest = Manifest::describe(self.store, database, staged.started, self.keys, checked)?;
        manifest.write(unfinished)?;
        manifest.sign(unfinished, self.keys.vault)?;
        File::open(database)?.sync_all()?;
        File::open(unfinished)?.sync_all()?;
        std::fs::rename(unfinished, folder)?;
        sync_parent(folder)?;
        Ok(manifest.database.bytes + manifest.files.bytes)
    }

    fn make_file(&mut self, file: &Path) -> std::result::Result<BackupOutcome, String> {
        let told = |error: io::Error| plainly(file, &error);
        if file.exists() {
            return Err(format!("{} already exists; choose a new name", file.display()));
        }
        let staged = self.stage(file)?;
        let new = staged.unfinished.join("archive");
        let packed = self.pack(&staged, |packing, witness| {
            let output = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).map_err(told)?;
            let (output, problems) = packing.write(Hashing::new(output), witness).map_err(told)?;
            output.output.sync_all().map_err(told)?;
            Ok((problems, output.bytes, hex(&output.hash.finalize())))
        });
        let kept = packed.and_then(|(checked, bytes, sha256)| {
            if checked.problems > 0 {
                return Ok(BackupOutcome::Unsound { checked, left: None });
            }
            // What is on disk is what was written.
            if sha256_of(&new).map_err(told)? != sha256 {
                return Err(format!("{}: the disk does not return what was written to it", file.display()));
            }
            // Fails if somebody else has created a file of this name meanwhile; a rename would replace it.
            std::fs::hard_link(&new, file).or_else(|_| rename_new(&new, file)).map_err(told)?;
            sync_parent(file).map_err(told)?;
            Ok(BackupOutcome::Made { checked, bytes })
        });
        let _ = std::fs::remove_dir_all(&staged.unfinished);
        kept
    }

    fn make_object(&mut self, blobs: &Blobs, key: &str, url: &str) -> std::result::Result<BackupOutcome, String> {
        let told = |error: blobs::Error| format!("{url}: {}", place::unreachable(&error));
        let size = |runtime: &Handle| runtime.block_on(blobs.size(key)).map_err(told);
        if size(self.runtime)?.is_some() {
            return Err(format!("{url} already exists; choose a new name"));
        }
        // With PostgreSQL and a file store elsewhere, nothing else may need it.
        private::create_folder(self.workplace).map_err(|error| plainly(self.workplace, &error))?;
        let staged = self.stage(&self.workplace.join(format!("backup-{key}")))?;
        let packed = self.pack(&staged, |packing, witness| {
            let (problems, bytes) = Uploading::run(
                (blobs, packing.runtime),
                key,
                |upload| {
                    let (output, problems) = packing.write(Hashing::new(upload), witness)?;
                    Ok((output.output, (problems, output.bytes)))
                },
                |(problems, _)| *problems == 0,
            )
            .map_err(|why| format!("{url}: {why}"))?;
            Ok((problems, bytes, String::new()))
        });
        let _ = std::fs::remove_dir_all(&staged.unfinished);
        let (checked, bytes, _) = packed?;
        if checked.problems > 0 {
            return Ok(BackupOutcome::Unsound { checked, left: None });
        }
        match size(self.runtime)? {
            Some(stored) if stored == bytes => Ok(BackupOutcome::Made { checked, bytes }),
            _ => Err(format!("{url}: the store does not have what was sent to it")),
        }
    }

    /// Copies the database to a temporary folder next to `target`.
    fn stage(&mut self, target: &Path) -> std::result::Result<Staged, String> {
        let unfinished = begin(target)?;
        let alone = lock(&unfinished.join(LOCK))?;
        let clock = Clock::of(self.store).map_err(|error| told(error.into()))?;
        let hold = Hold::take(self.store, &clock).map_err(told)?;
        let started = clock.now();
        let copied = copy_database(self.store, &unfinished, self.witness);
        let (database, contents, counted) = copied.map_err(|error| {
            // What is incomplete takes the room that is missing elsewhere.
            let _ = std::fs::remove_dir_all(&unfinished);
            match error.code {
                Code::DiskFull => full(target),
                _ => told(error),
            }
        })?;
        Ok(Staged { unfinished, database, contents, counted, started, _hold: hold, _alone: alone })
    }

    /// Verifies the copy of the database, then has `write` write the archive; returns what was checked, and the size and
    /// hash of the archive.
    fn pack(
        &mut self,
        staged: &Staged,
        write: impl FnOnce(&Packing, &mut dyn Witness) -> std::result::Result<(u64, u64, String), String>,
    ) -> std::result::Result<(Checked, u64, String), String> {
        let Staged { unfinished, database, contents, started, .. } = staged;
        let checked = check_database(self.store, self.blobs, self.runtime, unfinished, self.keys, self.witness);
        let mut checked = staged.corrected(checked.map_err(told)?);
        for file in listed(contents).map_err(|error| error.to_string())? {
            checked.files += 1;
            checked.bytes += file.size.unsigned_abs();
        }
        self.add_key(unfinished)?;
        let manifest = Manifest::describe(self.store, database, *started, self.keys, &checked);
        let packing = Packing {
            blobs: self.blobs,
            runtime: self.runtime,
            staged: unfinished,
            contents,
            manifest: &manifest.map_err(|error| error.to_string())?,
            vault: self.keys.vault,
            seconds: (started.0 / 1000).unsigned_abs(),
            recipients: self.recipients,
        };
        let (problems, bytes, sha256) = write(&packing, self.witness)?;
        checked.problems += problems;
        Ok((checked, bytes, sha256))
    }

    fn add_key(&self, unfinished: &Path) -> std::result::Result<(), String> {
        match self.keys.vault.filter(|_| self.keys.included) {
            Some(vault) => vault.source().copy_into(unfinished).map(drop).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }
}

/// Counts and hashes what is written.
struct Hashing<W> {
    output: W,
    hash: Sha256,
    bytes: u64,
}

impl<W> Hashing<W> {
    fn new(output: W) -> Hashing<W> {
        Hashing { output, hash: Sha256::new(), bytes: 0 }
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.output.write(bytes)?;
        self.hash.update(&bytes[..length]);
        self.bytes += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// A file system without hard links can only rename.
fn rename_new(new: &Path, file: &Path) -> io::Result<()> {
    match file.exists() {
        true => Err(io::ErrorKind::AlreadyExists.into()),
        false => std::fs::rename(new, file),
    }
}

pub(super) fn plainly(target: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => full(target),
        io::ErrorKind::ReadOnlyFilesystem => format!(
            "{}: this is read-only for the program; to let the service of systemd write there, name the folder in ReadWritePaths (`systemctl edit kantoor`)",
            target.display()
        ),
        _ => format!("{}: {error}", target.display()),
    }
}

pub(super) fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => FULL.to_string(),
        _ => error.to_string(),
    }
}

pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Creates the temporary folder of the backup, and removes one that a killed backup left.
fn begin(target: &Path) -> std::result::Result<PathBuf, String> {
    let told = |error: io::Error| plainly(target, &error);
    let name = target.file_name().ok_or_else(|| format!("{} is not a valid name", target.display()))?;
    let mut own = name.to_os_string();
    own.push(UNFINISHED);
    let unfinished = target.with_file_name(own);
    must_have_parent(target)?;
    if unfinished.exists() {
        drop(lock(&unfinished.join(LOCK))?);
        std::fs::remove_dir_all(&unfinished).map_err(told)?;
    }
    // It contains everything, keys and secrets included.
    DirBuilder::new().mode(0o700).create(&unfinished).map_err(told)?;
    Ok(unfinished)
}

/// Rejects a target in a folder that does not exist: it may be on a disk that is not mounted, and what is written there then fills
/// another one.
pub(super) fn must_have_parent(target: &Path) -> std::result::Result<(), String> {
    let Some(parent) = target.parent().filter(|parent| !parent.as_os_str().is_empty()) else { return Ok(()) };
    match parent.try_exists() {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!(
            "{}: the folder {} does not exist; create it, or mount its disk first",
            target.display(),
            parent.display()
        )),
        Err(error) => Err(plainly(target, &error)),
    }
}

/// Deletes what killed backups left in a folder.
pub fn remove_unfinished(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().filter_map(io::Result::ok) {
        let path = entry.path();
        let is_ours = entry.file_name().to_string_lossy().ends_with(UNFINISHED) && path.join(LOCK).exists();
        if is_ours && lock(&path.join(LOCK)).is_ok() {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

fn lock(path: &Path) -> std::result::Result<File, String> {
    let file = File::options().create(true).truncate(false).write(true).open(path);
    let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
    file.try_lock().map_err(|_| format!("another backup is in progress in {}", path.display()))?;
    Ok(file)
}

type Copied = (PathBuf, PathBuf, Option<Counted>);

/// Copies the database and lists its file contents; returns the paths of both, and what a shared database contained.
fn copy_database(store: &Store, unfinished: &Path, witness: &mut dyn Witness) -> Result<Copied> {
    let contents = unfinished.join("contents");
    let list = File::create(&contents).map_err(|error| Error::internal(format!("{}: {error}", contents.display())))?;
    let list = RefCell::new(BufWriter::new(list));
    let mut progress = |done: u64, of: u64| witness.copies(&format!("the database ({of} pages)"), done);
    let (database, counted) = store.copy_into(unfinished, &mut progress, |tx| {
        let mut after = (0, String::new());
        loop {
            // Row values are compared in the same way on both databases.
            let sql = "SELECT account_id, id, content, size, sha256 FROM files WHERE (account_id, id) > ($1, $2)
                       ORDER BY account_id, id LIMIT 1000";
            let rows = tx.all(sql, &[after.0.into(), (&after.1).into()], |row| {
                let text = |column: usize| row.text(column).map(str::to_string);
                let kept = Kept { id: text(1)?, content: text(2)?, size: row.int(3)?, sha256: text(4)? };
                Ok::<_, Error>((row.int(0)?, kept))
            })?;
            let Some((account, last)) = rows.last() else { break };
            after = (*account, last.id.clone());
            for (_, file) in &rows {
                let line = format!("{}\t{}\t{}\t{}\n", file.id, file.content, file.size, file.sha256);
                list.borrow_mut().write_all(line.as_bytes()).map_err(|error| Error::internal(error.to_string()))?;
            }
        }
        list.borrow_mut().flush().map_err(|error| Error::internal(error.to_string()))?;
        if store.is_shared() { Counted::count(tx).map(Some) } else { Ok(None) }
    })?;
    Ok((database, contents, counted))
}

/// Copies and syncs the contents; returns those that could not be copied.
async fn copy_contents(
    blobs: &Blobs,
    unfinished: &Path,
    contents: &Path,
    witness: &mut dyn Witness,
) -> std::result::Result<u64, String> {
    let target = Blobs::in_folder(&unfinished.join(FILES)).map_err(|error| error.to_string())?;
    let files = listed(contents).map_err(|error| error.to_string())?;
    let mut problems = 0;
    let copies = stream::iter(files).map(|file| {
        let (blobs, target) = (blobs.clone(), target.clone());
        async move { (copy(&blobs, &target, &file).await, file) }
    });
    let mut copies = copies.buffer_unordered(AT_ONCE);
    let list = File::create(unfinished.join(LIST)).map_err(|error| error.to_string())?;
    let (mut list, mut done) = (BufWriter::new(list), 0);
    while let Some((copied, file)) = copies.next().await {
        done += 1;
        witness.copies("files", done);
        match copied {
            Ok(sha256) => writeln!(list, "{sha256}  files/{}", file.content).map_err(|error| error.to_string())?,
            // The others would fail too.
            Err(blobs::Error::Full) => return Err(FULL.to_string()),
            Err(error) => {
                problems += 1;
                let what = format!("Its content {} cannot be copied: {error}", file.content);
                witness.hears(&about(file, what));
            }
        }
    }
    let list = list.into_inner().map_err(|error| error.to_string())?;
    list.sync_all().map_err(|error| error.to_string())?;
    Ok(problems)
}

/// Copies one content; returns its SHA-256.
async fn copy(blobs: &Blobs, target: &Blobs, file: &Kept) -> blobs::Result<String> {
    let source = blobs.open(&file.content).await?;
    let hash = RefCell::new(Sha256::new());
    target.keep(&file.content, source.bytes.inspect_ok(|piece| hash.borrow_mut().update(piece))).await?;
    Ok(hex(&hash.into_inner().finalize()))
}

/// Does the checks of `kantoor verify` on the copy, except for the contents of files. A PostgreSQL dump is not a database:
/// there, the original database is checked.
fn check_database(
    store: &Store,
    blobs: &Blobs,
    runtime: &Handle,
    unfinished: &Path,
    keys: BackupKeys,
    witness: &mut dyn Witness,
) -> Result<Checked> {
    if store.is_shared() {
        return Inspection::new(store, blobs, runtime, witness).with_keys(keys.vault).run_on_database();
    }
    let copy = Store::open_to_read(&Options::new(Database::Sqlite(unfinished.join(store::SQLITE_COPY))))?;
    Inspection::new(&copy, blobs, runtime, witness).with_keys(keys.vault).run_on_database()
}

/// Does the checks of `kantoor verify`. A PostgreSQL dump is not a database: there, the original database is checked,
/// and the contents by the list.
fn check(
    store: &Store,
    runtime: &Handle,
    unfinished: &Path,
    contents: &Path,
    keys: BackupKeys,
    witness: &mut dyn Witness,
) -> Result<Checked> {
    let blobs = Blobs::in_folder(&unfinished.join("files")).map_err(|error| Error::internal(error.to_string()))?;
    if !store.is_shared() {
        let copy = Store::open_to_read(&Options::new(Database::Sqlite(unfinished.join(store::SQLITE_COPY))))?;
        return Inspection::new(&copy, &blobs, runtime, witness).with_keys(keys.vault).run(None);
    }
    let mut checked = check_database(store, &blobs, runtime, unfinished, keys, witness)?;
    for file in listed(contents).map_err(|error| Error::internal(error.to_string()))? {
        checked.files += 1;
        checked.bytes += file.size.unsigned_abs();
        witness.sees("contents of files", checked.files);
        for (fault, file) in runtime.block_on(all_faults(&blobs, vec![file])) {
            checked.problems += u64::from(fault.is_some());
            fault.into_iter().for_each(|what| witness.hears(&about(file.clone(), what)));
        }
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_the_service_may_not_write_is_explained() {
        let words = plainly(Path::new("/mnt/backups"), &io::ErrorKind::ReadOnlyFilesystem.into());
        assert!(words.starts_with("/mnt/backups: ") && words.contains("ReadWritePaths"), "{words}");
    }
}
