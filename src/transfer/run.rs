//! Runs an import: a transaction per batch of lines, each of which creates the records and moves the import ahead. After a
//! crash it continues with the first line that was not committed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use engine::app::App;
use engine::authors::Authority;
use engine::contents::{Upload, content_type, hex};
use engine::context::{Actor, Ctx};
use engine::error::{Code, Error, Result};
use engine::jobs::{Claimed, Ending, Job, Lane};
use engine::record::{Kind as _, When};
use engine::records;
use engine::who::Who;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sheets::Line;
use store::Tx;

use super::built::Built;
use super::check;
use super::import::{Import, ImportStatus, Objects};
use super::lines::Outcome;
use super::make::{is_ours, make};
use super::mapping::Plan;
use super::sums::{self, SUMMED};
use super::{old, subject};
use crate::files::{self, File};
use crate::mail::IMPORT;
use crate::reading::Source;
use crate::reading::archive::Archive;
use crate::reading::table::Table;

/// Number of lines per transaction, and of their bytes: others wait for it.
const TOGETHER: usize = 100;
const TOGETHER_BYTES: usize = 1024 * 1024;
/// The tables that grow with most imports, beside that of the records.
const GROWING: &[&str] = &["clients", "import_lines", "log", "payments", "search_texts", "timers"];
/// Number of errors that are listed.
pub const MAX_ERRORS: usize = 100;

/// The job that runs an import.
#[derive(Serialize, Deserialize)]
pub struct RunImport {
    /// The import.
    pub import: String,
}

impl Job for RunImport {
    const KIND: &'static str = "import_run";
    const LANE: Lane = Lane::Reading;

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        let ended = run(app, claimed.account, &self.import, &mut |_| {})?;
        // The command line runs it at the same time; if it dies, this job continues.
        Ok(if ended { Ending::Done } else { Ending::Wait(app.clock.now().plus_seconds(5)) })
    }
}

/// Returns the caller that the records of an import name: the import itself.
pub fn acting(app: &App, account: i64, import: &Import) -> Result<Actor> {
    let name = format!("import of {}", import.resource.replace('_', " "));
    let mut caller = app.acting_in(account, Who::other(IMPORT, &import.base.id, &name))?;
    caller.request_id = import.base.id.as_str().into();
    Ok(caller)
}

/// Runs an import to its end, unless another process does; returns whether it has ended. `seen` is told the number of
/// processed lines.
pub fn run(app: &App, account: i64, id: &str, seen: &mut dyn FnMut(i64)) -> Result<bool> {
    let reader = app.acting_in(account, RunImport::KIND)?;
    let own = id.to_string();
    let (import, file, pdfs) = app.store.read_now(move |tx| {
        let ctx = reader.reading(tx)?;
        let import: Import = records::find(tx, &ctx, &own)?;
        let file = file(tx, &ctx, &import.file_id.0)?;
        let pdfs = file_or_none(tx, &ctx, &import.pdfs_file_id.0)?;
        Ok::<_, Error>((import, file, pdfs))
    })?;
    if import.status != ImportStatus::Running {
        return Ok(true);
    }
    let caller = acting(app, account, &import)?;
    let Some(file) = file else { return end(app, &caller, id, "The file of the import was deleted.") };
    let opened = match open(app, &caller, &import, &file, pdfs.as_ref()) {
        Err(error) if !is_ours(&error) => return end(app, &caller, id, &failure(&error)),
        opened => opened?,
    };
    let Opened { mut table, plan, pdfs } = opened;
    let mut running = Running { app, caller, plan, import, pdfs, batch: Vec::new(), stopped: None };
    running.take_all(&mut table, seen)?;
    match running.stopped {
        Some(Stop::Taken) => Ok(false),
        Some(Stop::Failure(why)) => end(app, &running.caller, id, &why),
        None => end(app, &running.caller, id, ""),
    }
}

/// The files of an import, and how they are read.
struct Opened {
    table: Table,
    plan: Arc<Plan>,
    pdfs: Option<Archive>,
}

fn open(app: &App, caller: &Actor, import: &Import, file: &File, pdfs: Option<&File>) -> Result<Opened> {
    let table = check::open(app, caller, import, &Source::of(file))?;
    let pdfs = check::open_pdfs(app, caller, pdfs.map(Source::of).as_ref())?;
    Ok(Opened { plan: Arc::new(check::plan(app, import, &table.columns)?), table, pdfs })
}

/// Returns why an import cannot run, in one sentence.
fn failure(error: &Error) -> String {
    match error.faults.first() {
        Some(fault) if fault.wrong.message == error.message => error.message.clone(),
        Some(fault) => format!("The import cannot run: {} {}", fault.field, fault.wrong.message),
        None => error.message.clone(),
    }
}

/// Why an import does not continue.
enum Stop {
    /// Another process runs it.
    Taken,
    /// Its author may not do this any more, or its file cannot be read.
    Failure(String),
}

/// Returns a file, if it still exists.
fn file(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Option<File>> {
    match records::find::<File>(tx, ctx, id) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.code == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn file_or_none(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Option<File>> {
    if id.is_empty() { Ok(None) } else { file(tx, ctx, id) }
}

/// An import in progress.
struct Running<'r> {
    app: &'r App,
    caller: Actor,
    plan: Arc<Plan>,
    import: Import,
    pdfs: Option<Archive>,
    batch: Vec<Line>,
    /// Why it cannot continue.
    stopped: Option<Stop>,
}

/// What a batch did, beside its records.
struct Done {
    import: Import,
    stopped: Option<Stop>,
}

impl Running<'_> {
    /// Creates the records of all lines, in batches; `seen` is told the number of processed lines.
    fn take_all(&mut self, table: &mut Table, seen: &mut dyn FnMut(i64)) -> Result<()> {
        let (mut place, mut weight) = (0, 0);
        loop {
            let line = match table.next_line() {
                Err(trouble) => return self.stop(check::unreadable(trouble)),
                Ok(None) => break,
                Ok(Some(line)) => line,
            };
            place += 1;
            // An earlier attempt has committed these.
            if place <= self.import.processed {
                continue;
            }
            weight += line.weight();
            self.batch.push(line);
            if self.batch.len() < TOGETHER && weight < TOGETHER_BYTES {
                continue;
            }
            weight = 0;
            self.commit()?;
            self.update_statistics();
            seen(self.import.processed);
            if self.stopped.is_some() {
                return Ok(());
            }
        }
        if !self.batch.is_empty() {
            self.commit()?;
            seen(self.import.processed);
        }
        Ok(())
    }

    /// Stops because a file cannot be read; what is wrong with the server is an error, after which the job is retried.
    fn stop(&mut self, error: Error) -> Result<()> {
        if is_ours(&error) {
            return Err(error);
        }
        self.stopped = Some(Stop::Failure(failure(&error)));
        Ok(())
    }

    /// Creates the records of the collected lines, in one transaction with the progress of the import.
    fn commit(&mut self) -> Result<()> {
        let lines = std::mem::take(&mut self.batch);
        let mut built: Vec<(i64, Built)> =
            lines.iter().map(|line| (line.number as i64, self.plan.build_line(line))).collect();
        let pdfs = match self.store_pdfs(&mut built) {
            Err(error) if error.faults.iter().any(|fault| fault.field == "pdfs_file_id") => return self.stop(error),
            stored => stored?,
        };
        let (own, plan, before) = (self.caller.clone(), self.plan.clone(), self.import.clone());
        let done = self.app.store.write_now(self.caller.account.number, move |tx| {
            let ctx = own.writing(tx)?;
            commit(tx, ctx, &plan, &before, &built, &pdfs)
        })?;
        self.import = done.import;
        self.stopped = done.stopped;
        Ok(())
    }

    /// Tells the database how much larger its tables have become: after the first batch, and each time that there are ten times
    /// as many lines.
    fn update_statistics(&self) {
        let lines = self.import.processed;
        if ![1, 10, 100, 1000].contains(&(lines / TOGETHER as i64)) {
            return;
        }
        let tables: BTreeSet<&str> = GROWING.iter().copied().chain([self.plan.resource.shape.table]).collect();
        let tables: Vec<&str> = tables.into_iter().collect();
        // In turn with the writes of this account: no other waits for it.
        let account = self.caller.account.number;
        let done = self.app.store.write_now(account, move |tx| Ok::<_, Error>(tx.update_statistics(&tables, lines)?));
        if let Err(error) = done {
            tracing::warn!(
                cause = error.internal.unwrap_or(error.message),
                "The import may be slow: its tables cannot be analyzed."
            );
        }
    }

    /// Stores the original PDFs of a batch; a job deletes those that get no record.
    fn store_pdfs(&mut self, built: &mut [(i64, Built)]) -> Result<HashMap<i64, Upload>> {
        let mut uploads = HashMap::new();
        let Some(archive) = &mut self.pdfs else { return Ok(uploads) };
        for (line, built) in built.iter_mut().filter(|(_, built)| built.left_out.is_none()) {
            match old::original(archive, built, false)? {
                Ok(None) => {}
                Ok(Some((name, bytes))) => {
                    uploads.insert(*line, upload(self.app, &self.caller, &name, bytes.into())?);
                }
                Err(wrong) => built.faults.add("pdf", wrong),
            }
        }
        Ok(uploads)
    }
}

/// Stores a content that waits for its record.
pub fn upload(app: &App, caller: &Actor, name: &str, bytes: Bytes) -> Result<Upload> {
    let content = format!("{}/{}", caller.account.uid, app.ids.next());
    let name = engine::contents::clean_name(name);
    let upload = Upload {
        content_type: content_type(&bytes[..bytes.len().min(4096)], &name).to_string(),
        size: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
        sha256: hex(&Sha256::digest(&bytes)),
        pixels: 0,
        content: content.clone(),
        name,
    };
    let (own, key) = (caller.clone(), content.clone());
    app.store.write_now(caller.account.number, move |tx| {
        let ctx = own.writing(tx)?;
        files::announce(tx, &ctx, &key)
    })?;
    let pieces = futures_util::stream::iter([Ok::<_, blobs::Error>(bytes)]);
    let kept = tokio::runtime::Handle::current().block_on(app.blobs.keep(&content, pieces));
    kept.map_err(|error| Error::internal(format!("a file cannot be stored: {error}")))?;
    Ok(upload)
}

fn commit(
    tx: &mut Tx,
    mut ctx: Ctx,
    plan: &Plan,
    before: &Import,
    built: &[(i64, Built)],
    pdfs: &HashMap<i64, Upload>,
) -> Result<Done> {
    let mut import: Import = records::find(tx, &ctx, &before.base.id)?;
    if import.status != ImportStatus::Running || import.processed != before.processed {
        return Ok(Done { import, stopped: Some(Stop::Taken) });
    }
    ctx.key = match import.authority(tx, &ctx)? {
        Authority::Ended(why) => {
            return Ok(Done { import, stopped: Some(Stop::Failure(format!("The import stopped: {why}."))) });
        }
        authority => authority.key(),
    };
    if let Err(error) = subject::check_writes(&ctx, plan.resource) {
        return Ok(Done { import, stopped: Some(Stop::Failure(error.message)) });
    }
    let mut errors: Vec<Value> = serde_json::from_str(&import.errors.0).unwrap_or_default();
    let (source, mut left_out) = (sums::sums(&import.report, "source"), sums::sums(&import.report, "left_out"));
    for (line, built) in built {
        let made = tx.savepoint(|tx| make(tx, &ctx, plan, &import, *line, built, pdfs.get(line)));
        let (count, entry) = match &made {
            Ok(made) if made.outcome == Outcome::Created => (&mut import.created, None),
            Ok(made) if made.outcome == Outcome::Updated => (&mut import.updated, None),
            Ok(_) => (&mut import.skipped, built.left_out.clone()),
            Err(error) if is_ours(error) => return Err(error.clone()),
            Err(error) => (&mut import.failed, Some(sentence(plan, error))),
        };
        *count += 1;
        if let Some(message) = entry.filter(|_| errors.len() < MAX_ERRORS) {
            errors.push(json!({"line": line, "message": message}));
        }
        if !made.is_ok_and(|made| made.outcome == Outcome::Created) {
            for name in source.keys() {
                left_out.entry(name).or_default();
            }
            sums::add_up(&mut left_out, built);
        }
    }
    import.report = sums::report(&source, None, &left_out);
    import.errors = Objects::from(errors);
    import.processed += built.len() as i64;
    save_progress(tx, &ctx, &import)?;
    Ok(Done { import, stopped: None })
}

/// Returns what is wrong with a line in one sentence.
fn sentence(plan: &Plan, error: &Error) -> String {
    if error.faults.is_empty() {
        return error.message.clone();
    }
    let each = error.faults.iter().map(|fault| format!("{} {}", plan.column_of(&fault.field), fault.wrong.message));
    each.take(5).collect::<Vec<_>>().join("; ")
}

/// Writes the fields that change with every batch.
pub fn save_progress(tx: &mut Tx, ctx: &Ctx, import: &Import) -> Result<()> {
    let sql = "UPDATE imports SET processed = $1, created = $2, updated = $3, skipped = $4, failed = $5, removed = $6,
               errors = $7, report = $8 WHERE account_id = $9 AND id = $10";
    tx.execute(
        sql,
        &[
            import.processed.into(),
            import.created.into(),
            import.updated.into(),
            import.skipped.into(),
            import.failed.into(),
            import.removed.into(),
            (&import.errors.0).into(),
            import.report.to_db(),
            ctx.account.into(),
            (&import.base.id).into(),
        ],
    )?;
    Ok(())
}

/// Ends an import, with the sums of what it made.
fn end(app: &App, caller: &Actor, id: &str, failure: &str) -> Result<bool> {
    let (own, id, failure) = (caller.clone(), id.to_string(), failure.to_string());
    app.store.write_now(caller.account.number, move |tx| {
        let ctx = own.writing(tx)?;
        let before: Import = records::find(tx, &ctx, &id)?;
        if before.status != ImportStatus::Running {
            return Ok(true);
        }
        let mut import = before.clone();
        import.status = if failure.is_empty() { ImportStatus::Done } else { ImportStatus::Failed };
        import.failure.clone_from(&failure);
        import.ended_at = When(Some(ctx.now));
        import.report = compared(tx, &ctx, &before)?;
        records::change(tx, &ctx, &before, &mut import, "finished")?;
        Ok(true)
    })
}

/// Compares the sums of the file with those of the records that were made.
fn compared(tx: &mut Tx, ctx: &Ctx, import: &Import) -> Result<engine::record::Data> {
    let source = sums::sums(&import.report, "source");
    if source.is_empty() {
        return Ok(import.report.clone());
    }
    let sums: Vec<String> =
        SUMMED.iter().map(|name| format!("CAST(coalesce(sum(made.{name}), 0) AS BIGINT)")).collect();
    let sql = format!(
        "SELECT {} FROM import_lines lines CROSS JOIN {} made
         WHERE lines.account_id = $1 AND lines.import_id = $2 AND lines.outcome = $3 AND lines.part = 1
           AND made.account_id = $1 AND made.id = lines.record_id",
        sums.join(", "),
        import.resource
    );
    let values = [ctx.account.into(), (&import.base.id).into(), Outcome::Created.wire().into()];
    let found = tx.first(&sql, &values, |row| {
        SUMMED
            .iter()
            .enumerate()
            .map(|(place, name)| Ok((*name, i128::from(row.int(place)?))))
            .collect::<Result<BTreeMap<_, _>>>()
    })?;
    let mut imported = found.unwrap_or_default();
    imported.retain(|name, _| source.contains_key(name));
    Ok(sums::report(&source, Some(&imported), &sums::sums(&import.report, "left_out")))
}
