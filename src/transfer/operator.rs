//! Imports and exports by the operator of the server, on the command line.

use bytes::Bytes;
use engine::accounts::Account;
use engine::app::App;
use engine::contents::hex;
use engine::context::Actor;
use engine::error::{Code, Error, Result};
use engine::record::{Link, Record as _};
use engine::records;
use sha2::{Digest, Sha256};

use super::check::{Chosen, Files};
use super::import::{Import, ImportStatus};
use super::routes::start_undo;
use super::{check, routes, run, undo};
use crate::files::{self, File};
use crate::reading::Source;

/// A file of the operator.
pub struct OwnFile {
    /// Its name.
    pub name: String,
    /// Its content.
    pub bytes: Bytes,
}

/// Stores a file, with its record.
fn keep(app: &App, caller: &Actor, file: OwnFile) -> Result<File> {
    let upload = run::upload(app, caller, &file.name, file.bytes)?;
    let own = caller.clone();
    app.store.write_now(caller.account.number, move |tx| {
        let ctx = own.writing(tx)?;
        files::add(tx, &ctx, &upload)
    })
}

/// Checks a file without storing anything.
pub fn check(app: &App, account: Account, import: &Import, file: &OwnFile, pdfs: Option<&OwnFile>) -> Result<Import> {
    let caller = app.acting(account, "operator");
    let source = |file: &OwnFile| Source::Here(file.bytes.clone());
    let sha256 = hex(&Sha256::digest(&file.bytes));
    let files = Files { file: source(file), sha256, pdfs: pdfs.map(source) };
    check::check(app, &caller, import, Chosen::of(import), &files)
}

/// Undoes an import, or continues to undo it; `seen` is told the number of removed records.
pub fn undo(app: &App, account: Account, id: &str, seen: &mut dyn FnMut(i64)) -> Result<Import> {
    let (number, caller) = (account.number, app.acting(account, "operator"));
    let (own, import) = (caller.clone(), id.to_string());
    app.store.write_now(number, move |tx| {
        let ctx = own.writing(tx)?;
        let before: Import = records::find(tx, &ctx, &import)?;
        match before.status {
            ImportStatus::Undoing => Ok(()),
            _ => start_undo(tx, &ctx, &before).map(drop),
        }
    })?;
    undo::undo(app, number, id, seen)?;
    let import = id.to_string();
    app.store.read_now(move |tx| {
        let ctx = caller.reading(tx)?;
        records::find(tx, &ctx, &import)
    })
}

/// Returns an import of the same content that is still running.
pub fn unended(app: &App, account: Account, resource: &str, file: &OwnFile) -> Result<Option<Import>> {
    let (caller, resource) = (app.acting(account, "operator"), resource.to_string());
    let sha256 = hex(&Sha256::digest(&file.bytes));
    app.store.read_now(move |tx| {
        let ctx = caller.reading(tx)?;
        routes::unended(tx, &ctx, &resource, &sha256)
    })
}

/// Stores the file and an import that was checked, and starts it; returns its id. If the same file was imported before, the
/// operator wants its records once more.
pub fn start(app: &App, account: Account, checked: &Import, file: OwnFile, pdfs: Option<OwnFile>) -> Result<String> {
    let (number, caller) = (account.number, app.acting(account, "operator"));
    let file = keep(app, &caller, file)?;
    let pdfs = pdfs.map(|pdfs| keep(app, &caller, pdfs)).transpose()?;
    let mut import = checked.clone();
    import.file_id = Link(file.base().id.clone());
    import.pdfs_file_id = Link(pdfs.map(|pdfs| pdfs.base().id.clone()).unwrap_or_default());
    app.store.write_now(number, move |tx| {
        let ctx = caller.writing(tx)?;
        let mut import = import.clone();
        records::add(tx, &ctx, &mut import)?;
        routes::start(tx, &ctx, &import, true).map(|import| import.base.id)
    })
}

/// Runs an import that was started to its end; `seen` is told the number of processed lines, and of all.
pub fn finish(app: &App, account: Account, id: &str, seen: &mut dyn FnMut(i64, i64)) -> Result<Import> {
    let (number, caller) = (account.number, app.acting(account, "operator"));
    let found = || {
        let (caller, id) = (caller.clone(), id.to_string());
        app.store.read_now(move |tx| {
            let ctx = caller.reading(tx)?;
            let import: Import = records::find(tx, &ctx, &id)?;
            Ok::<_, Error>(import)
        })
    };
    let before = found()?;
    if before.status == ImportStatus::Checked {
        return Err(Error::new(Code::InvalidTransition, "The import was not started."));
    }
    if before.status == ImportStatus::Undoing {
        let message = "The import is being undone. If that was interrupted, continue it with --undo.";
        return Err(Error::new(Code::InvalidTransition, message));
    }
    // A server that runs meanwhile may take a part of the work.
    while !run::run(app, number, id, &mut |lines| seen(lines, before.lines))? {
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    found()
}
