//! Backs up everything to a folder while the server runs: first a consistent snapshot of the database, then the
//! contents of its files, then the checks of `kantoor verify` on the copy.
//!
//! No content may be deleted between the two copies. So a hold is written before the database is copied, and while a
//! hold exists no content is deleted (`contents::holds`). It expires, in case the backup is killed.

use std::cell::RefCell;
use std::fs::{DirBuilder, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use blobs::Blobs;
use engine::clock::{Clock, Ids, Moment};
use engine::contents::hex;
use engine::error::{Error, Result};
use engine::jobs::SHARED;
use engine::migrations;
use engine::secrets::vault::Vault;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::json;
use sha2::{Digest, Sha256};
use store::{Database, Options, Store};
use tokio::runtime::Runtime;

use crate::upkeep::integrity::files::{Kept, all_faults};
use crate::upkeep::integrity::{Checked, Inspection, Problem, Witness};

/// Lifetime of a hold that is not renewed.
const HOLD_SECONDS: i64 = 600;
/// How often a hold is renewed.
const RENEWED: Duration = Duration::from_secs(60);
/// Number of contents to copy concurrently.
const AT_ONCE: usize = 4;
/// The list of contents with their hashes, in the format of `sha256sum --check`.
const LIST: &str = "files.sha256";
/// The description of the backup.
const MANIFEST: &str = "backup.json";
/// Locked while a backup is in progress.
const LOCK: &str = "backup.lock";

/// The outcome of a backup.
pub enum BackupOutcome {
    /// Completed and verified.
    Made(Checked),
    /// The copy failed verification.
    Unsound {
        /// What was checked.
        checked: Checked,
        /// Where the copy was left.
        left: PathBuf,
    },
}

/// The keys for the secrets of the database.
#[derive(Clone, Copy)]
pub struct BackupKeys<'k> {
    /// The keys; none if nothing is encrypted yet.
    pub vault: Option<&'k Vault>,
    /// Whether the backup includes them.
    pub included: bool,
}

/// Creates a backup in `folder`, which is renamed to its final name only when it is complete, verified and synced.
pub fn make(
    store: &Store,
    blobs: &Blobs,
    runtime: &Runtime,
    folder: &Path,
    keys: BackupKeys,
    witness: &mut dyn Witness,
) -> std::result::Result<BackupOutcome, String> {
    let unfinished = begin(folder)?;
    let _alone = lock(&unfinished.join(LOCK))?;
    let _hold = Hold::take(store).map_err(|error| error.to_string())?;
    let started = Clock::System.now();
    let (database, contents) = copy_database(store, &unfinished, witness).map_err(|error| error.to_string())?;
    let missing = runtime.block_on(copy_contents(blobs, &unfinished, &contents, witness))?;
    let checked = check(store, runtime, &unfinished, &contents, keys, witness);
    let mut checked = checked.map_err(|error| error.to_string())?;
    checked.problems += missing;
    if let Some(vault) = keys.vault.filter(|_| keys.included) {
        vault.source().copy_into(&unfinished).map_err(|error| error.to_string())?;
    }
    if checked.problems > 0 {
        return Ok(BackupOutcome::Unsound { checked, left: unfinished });
    }
    finish(store, &unfinished, folder, &database, started, keys, &checked)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(BackupOutcome::Made(checked))
}

/// Creates the temporary folder of the backup, and removes one that a killed backup left.
fn begin(folder: &Path) -> std::result::Result<PathBuf, String> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    let name = folder.file_name().ok_or_else(|| format!("{} is not a valid folder name", folder.display()))?;
    if folder.exists() && std::fs::read_dir(folder).map_err(told)?.next().is_some() {
        return Err(format!("{} already exists and is not empty; choose a new folder", folder.display()));
    }
    let mut own = name.to_os_string();
    own.push(".unfinished");
    let unfinished = folder.with_file_name(own);
    if unfinished.exists() {
        drop(lock(&unfinished.join(LOCK))?);
        std::fs::remove_dir_all(&unfinished).map_err(told)?;
    }
    if let Some(parent) = unfinished.parent() {
        std::fs::create_dir_all(parent).map_err(told)?;
    }
    // It contains everything, keys and secrets included.
    DirBuilder::new().mode(0o700).create(&unfinished).map_err(told)?;
    Ok(unfinished)
}

fn lock(path: &Path) -> std::result::Result<File, String> {
    let file = File::options().create(true).truncate(false).write(true).open(path);
    let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
    file.try_lock().map_err(|_| format!("another backup is in progress in {}", path.display()))?;
    Ok(file)
}

/// Copies the database and lists its file contents; returns the paths of both.
fn copy_database(store: &Store, unfinished: &Path, witness: &mut dyn Witness) -> Result<(PathBuf, PathBuf)> {
    let contents = unfinished.join("contents");
    let list = File::create(&contents).map_err(|error| Error::internal(format!("{}: {error}", contents.display())))?;
    let list = RefCell::new(BufWriter::new(list));
    let mut progress = |done: u64, of: u64| witness.copies(&format!("the database ({of} pages)"), done);
    let (database, ()) = store.copy_into(unfinished, &mut progress, |tx| {
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
        list.borrow_mut().flush().map_err(|error| Error::internal(error.to_string()))
    })?;
    Ok((database, contents))
}

/// Reads the list of contents, one line at a time.
fn listed(contents: &Path) -> std::io::Result<impl Iterator<Item = Kept>> {
    let lines = BufReader::new(File::open(contents)?).lines().map_while(std::io::Result::ok);
    Ok(lines.filter_map(|line| {
        let mut parts = line.split('\t').map(str::to_string);
        let (id, content) = (parts.next()?, parts.next()?);
        Some(Kept { id, content, size: parts.next()?.parse().ok()?, sha256: parts.next()? })
    }))
}

/// Copies and syncs the contents; returns those that could not be copied.
async fn copy_contents(
    blobs: &Blobs,
    unfinished: &Path,
    contents: &Path,
    witness: &mut dyn Witness,
) -> std::result::Result<u64, String> {
    let target = Blobs::in_folder(&unfinished.join("files")).map_err(|error| error.to_string())?;
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
            Err(blobs::Error::Full) => return Err("the disk is full".to_string()),
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

/// Does the checks of `kantoor verify`. A PostgreSQL dump is not a database: there, the original database is checked,
/// and the contents by the list.
fn check(
    store: &Store,
    runtime: &Runtime,
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
    let inspection = Inspection::new(store, &blobs, runtime, witness).with_keys(keys.vault);
    let mut checked = inspection.run_on_database()?;
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

fn about(file: Kept, what: String) -> Problem {
    let account = file.content.split('/').next().unwrap_or_default().to_string();
    Problem { account, table: "files".to_string(), id: file.id, what }
}

/// Writes the description of the backup and renames the folder.
fn finish(
    store: &Store,
    unfinished: &Path,
    folder: &Path,
    database: &Path,
    started: Moment,
    keys: BackupKeys,
    checked: &Checked,
) -> std::io::Result<()> {
    for name in ["contents", LOCK, "kantoor.db-wal", "kantoor.db-shm"] {
        match std::fs::remove_file(unfinished.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let manifest = json!({
        "kantoor": env!("CARGO_PKG_VERSION"),
        "schema": migrations::all().last().map(|migration| migration.number),
        "started_at": started.to_string(),
        "finished_at": Clock::System.now().to_string(),
        "database": {
            "kind": if store.is_shared() { "postgresql" } else { "sqlite" },
            "file": database.file_name().and_then(|name| name.to_str()),
            "bytes": database.metadata()?.len(),
            "sha256": sha256_of(database)?,
        },
        "files": {"count": checked.files, "bytes": checked.bytes, "list": LIST},
        "secrets": keys.vault.map(|vault| json!({
            "key": vault.ids().first().map(ToString::to_string), "included": keys.included,
        })),
        "accounts": checked.accounts,
        "records": checked.records,
        "log_entries": checked.lines,
    });
    let mut file = File::create(unfinished.join(MANIFEST))?;
    writeln!(file, "{manifest:#}")?;
    file.sync_all()?;
    File::open(database)?.sync_all()?;
    File::open(unfinished)?.sync_all()?;
    std::fs::rename(unfinished, folder)?;
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

fn sha256_of(path: &Path) -> std::io::Result<String> {
    let (mut file, mut hash, mut piece) = (File::open(path)?, Sha256::new(), vec![0; 1024 * 1024]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(&hash.finalize())),
            length => hash.update(&piece[..length]),
        }
    }
}

/// Prevents the deletion of contents until it is dropped.
struct Hold {
    store: Store,
    id: String,
    stop: Option<mpsc::Sender<()>>,
    renewing: Option<std::thread::JoinHandle<()>>,
}

impl Hold {
    fn take(store: &Store) -> Result<Hold> {
        let id = Ids::SYSTEM.next();
        renew(store, &id)?;
        let (stop, stopped) = mpsc::channel();
        let (own, name) = (store.clone(), id.clone());
        let renewing = std::thread::spawn(move || {
            while stopped.recv_timeout(RENEWED) == Err(RecvTimeoutError::Timeout) {
                // A failed renewal is covered by the next: a hold outlives several.
                let _ = renew(&own, &name);
            }
        });
        Ok(Hold { store: store.clone(), id, stop: Some(stop), renewing: Some(renewing) })
    }
}

fn renew(store: &Store, id: &str) -> Result<()> {
    let (id, now) = (id.to_string(), Clock::System.now());
    store.write_now(SHARED, move |tx| {
        tx.execute("DELETE FROM holds WHERE account_id = 0 AND until <= $1", &[now.0.into()])?;
        tx.execute(
            "INSERT INTO holds (account_id, id, until) VALUES (0, $1, $2)
             ON CONFLICT (account_id, id) DO UPDATE SET until = excluded.until",
            &[(&id).into(), now.plus_seconds(HOLD_SECONDS).0.into()],
        )?;
        Ok(())
    })
}

impl Drop for Hold {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(renewing) = self.renewing.take() {
            let _ = renewing.join();
        }
        let id = self.id.clone();
        let ended: Result<()> = self.store.write_now(SHARED, move |tx| {
            tx.execute("DELETE FROM holds WHERE account_id = 0 AND id = $1", &[(&id).into()])?;
            Ok(())
        });
        // The hold expires.
        drop(ended);
    }
}
