//! Imports and exports by the operator of the server, on the command line.

use engine::accounts::Account;
use engine::app::App;
use engine::context::Actor;
use engine::error::{Error, Result};
use engine::record::{Link, Record as _};
use engine::records;

use super::import::Import;
use super::routes::{start, start_undo};
use super::{check, run, undo};
use crate::files::{self, File};

/// A file of the operator.
pub struct OwnFile {
    /// Its name.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
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
    let mut pdfs = pdfs.map(|pdfs| check::open_pdfs(pdfs.bytes.clone())).transpose()?;
    check::check(app, &caller, import, &file.bytes, pdfs.as_mut())
}

/// Undoes an import; `seen` is told the number of removed records.
pub fn undo(app: &App, account: Account, id: &str, seen: &mut dyn FnMut(i64)) -> Result<Import> {
    let (number, caller) = (account.number, app.acting(account, "operator"));
    let (own, import) = (caller.clone(), id.to_string());
    app.store.write_now(number, move |tx| {
        let ctx = own.writing(tx)?;
        let before: Import = records::find(tx, &ctx, &import)?;
        start_undo(tx, &ctx, &before).map(drop)
    })?;
    undo::undo(app, number, id, seen)?;
    let import = id.to_string();
    app.store.read_now(move |tx| {
        let ctx = caller.reading(tx)?;
        records::find(tx, &ctx, &import)
    })
}

/// Stores the file and an import that was checked, and runs it; `seen` is told the number of processed lines.
pub fn import(
    app: &App,
    account: Account,
    checked: &Import,
    file: OwnFile,
    pdfs: Option<OwnFile>,
    seen: &mut dyn FnMut(i64),
) -> Result<Import> {
    let (number, caller) = (account.number, app.acting(account, "operator"));
    let file = keep(app, &caller, file)?;
    let pdfs = pdfs.map(|pdfs| keep(app, &caller, pdfs)).transpose()?;
    let mut import = checked.clone();
    import.file_id = Link(file.base().id.clone());
    import.pdfs_file_id = Link(pdfs.map(|pdfs| pdfs.base().id.clone()).unwrap_or_default());
    let own = caller.clone();
    let id = app.store.write_now(number, move |tx| {
        let ctx = own.writing(tx)?;
        let mut import = import.clone();
        records::add(tx, &ctx, &mut import)?;
        start(tx, &ctx, &import).map(|import| import.base.id)
    })?;
    // A server that runs meanwhile may take a part of the work.
    while !run::run(app, number, &id, seen)? {
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    app.store.read_now(move |tx| {
        let ctx = caller.reading(tx)?;
        let import: Import = records::find(tx, &ctx, &id)?;
        Ok::<_, Error>(import)
    })
}
