//! Imports: a file whose lines become records. It is checked first, and runs when somebody says so.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::input;
use engine::input::Input;
use engine::input::pending::Pending;
use engine::jobs::{self, NewJob};
use engine::record::{ACTED, Body, CREATED, INPUT, Record, UPDATED, When};
use engine::records::{self, Work};
use engine::registry::check_confirmed;
use engine::resource::{Method, RequestBody, Resource, Returns, Verb};
use engine::tables::Logged;
use store::Tx;

use super::check::{Chosen, Files};
use super::import::{Import, ImportStatus, MIGRATIONS, PROGRESS};
use super::run::RunImport;
use super::undo::UndoImport;
use super::{again, check, lines, sources, subject};
use crate::files::{self, File};
use crate::settings::corporate_identity::CorporateIdentity;

/// The resource of imports.
pub fn resource() -> Resource {
    Resource::of::<Import>("Imports", "files", MIGRATIONS)
        .list::<Import>()
        .extension()
        .verb(Verb::Create, create)
        .extension()
        .get::<Import>()
        .extension()
        .verb(Verb::Patch, patch)
        .extension()
        .verb(Verb::Delete, delete)
        .extension()
        .route(Method::Post, "/{id}/run", "Run an import", run)
        .body::<Start>(RequestBody::Maybe)
        .returns(Returns::Item(ACTED))
        .extension()
        .route(Method::Post, "/{id}/undo", "Remove what an import created", undo)
        .returns(Returns::Item(ACTED))
        .extension()
        .logged(Logged::Except(PROGRESS))
}

fn create(call: Call) -> Result<Work> {
    let pending: Pending<Import> = Pending::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let input = pending.checked(tx, ctx)?;
        let mut import = input.record();
        let resource = subject::to_import(&import.resource)?;
        import.resource = resource.shape.table.to_string();
        sources::named(&import.source)?;
        import.signed(ctx);
        let (files, warnings) = (files_of(tx, ctx, &import)?, input.warnings.clone());
        Ok(Answer::after(move |app, caller| {
            let checked = check::check(app, caller, &import, Chosen::of(&import), &files)?;
            let mut warnings = warnings.clone();
            warnings.extend(checked.notes());
            Ok(Box::new(move |tx, ctx| {
                let mut import = checked.clone();
                let image = records::add_as(tx, ctx, &mut import, "created")?;
                Ok(image.created(ctx, &import, CREATED).with_texts("warnings", &warnings))
            }))
        }))
    }))
}

/// Returns the file of an import, whose caller must be allowed to create the records.
fn file_of(tx: &mut Tx, ctx: &Ctx, import: &Import) -> Result<File> {
    subject::check_imports(ctx, subject::to_import(&import.resource)?)?;
    if import.file_id.0.is_empty() {
        return Err(Error::new(Code::InvalidTransition, "The file of the import was deleted."));
    }
    readable(tx, ctx, &import.file_id.0)
}

/// Returns a file whose content the caller may read.
fn readable(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<File> {
    let file: File = records::find(tx, ctx, id)?;
    files::check_reader(ctx, &file)?;
    Ok(file)
}

/// Returns the file of an import, and that with its PDFs.
fn files_of(tx: &mut Tx, ctx: &Ctx, import: &Import) -> Result<Files> {
    let file = file_of(tx, ctx, import)?;
    let pdfs = import.pdfs_file_id.0.as_str();
    let pdfs: Option<File> = if pdfs.is_empty() { None } else { Some(readable(tx, ctx, pdfs)?) };
    Ok(Files::of(&file, pdfs.as_ref()))
}

fn patch(call: Call) -> Result<Work> {
    let pending: Pending<Import> = Pending::patch(&call, false)?;
    Ok(Box::new(move |tx, ctx| {
        let before: Import = records::find_to_change(tx, ctx, &call)?;
        before.must_be(&[ImportStatus::Checked], "changed")?;
        let input: Input<Import> = pending.checked(tx, ctx)?.clone();
        let mut import = before.clone();
        input.merge_into(&mut import);
        let (files, id) = (files_of(tx, ctx, &import)?, import.base.id.clone());
        Ok(Answer::after(move |app, caller| {
            let checked = check::check(app, caller, &import, Chosen::by(&import, &input), &files)?;
            let (id, version, mut warnings) = (id.clone(), before.base.version, input.warnings.clone());
            warnings.extend(checked.notes());
            Ok(Box::new(move |tx, ctx| {
                let before: Import = records::find(tx, ctx, &id)?;
                if before.base.version != version {
                    return Err(Error::new(Code::InvalidTransition, "The import was changed meanwhile. Retry."));
                }
                let mut import = checked.clone();
                records::change(tx, ctx, &before, &mut import, "updated")?;
                Ok(Answer::record(ctx, &import, UPDATED).with_texts("warnings", &warnings))
            }))
        }))
    }))
}

input! {
    /// How to run an import.
    pub struct Start;

    /// Whether to run it although the same file was imported before, so that its records are created once more.
    again: bool = INPUT.example("false");
}

impl Body for Start {}

fn run(call: Call) -> Result<Work> {
    let (mut wish, mut warnings) = (Start::default(), Vec::new());
    if call.body.is_some() {
        let input: Input<Start> = input::create(&call)?;
        wish = input.record();
        warnings.extend(input.warnings);
    }
    Ok(Box::new(move |tx, ctx| {
        let before: Import = records::find_to_change(tx, ctx, &call)?;
        let import = start(tx, ctx, &before, wish.again)?;
        Ok(Answer::record(ctx, &import, ACTED).with_texts("warnings", &warnings))
    }))
}

/// Starts an import that was checked; `again` if it may create once more what the same file created before.
pub fn start(tx: &mut Tx, ctx: &Ctx, before: &Import, again: bool) -> Result<Import> {
    before.must_be(&[ImportStatus::Checked], "run")?;
    // An identity may have an account number. The import has no session that could be asked.
    if before.resource == CorporateIdentity::shape().table {
        check_confirmed(tx, ctx)?;
    }
    let file = file_of(tx, ctx, before)?;
    if let Some(other) = unended(tx, ctx, &before.resource, &file.sha256)? {
        let message = format!(
            "The import {} of the same file is still running. Wait until it has ended; it can be undone then.",
            other.base.id
        );
        return Err(Error::new(Code::InvalidTransition, message));
    }
    if before.valid_lines == 0 {
        return Err(Error::new(Code::InvalidTransition, "No line of the file can be imported; see `problems`."));
    }
    again::check(tx, ctx, before, &file.sha256, again)?;
    let mut import = before.clone();
    import.signed(ctx);
    import.status = ImportStatus::Running;
    import.started_at = When(Some(ctx.now));
    records::change(tx, ctx, before, &mut import, "started")?;
    let job =
        NewJob::of(ctx, &RunImport { import: import.base.id.clone() })?.keyed(format!("import {}", import.base.id));
    jobs::enqueue(tx, ctx, &job)?;
    Ok(import)
}

/// Returns an import that is running and whose file has this content: running it twice would create everything twice.
pub fn unended(tx: &mut Tx, ctx: &Ctx, resource: &str, sha256: &str) -> Result<Option<Import>> {
    let sql = "SELECT unended.id FROM imports unended CROSS JOIN files content
               WHERE unended.account_id = $1 AND unended.status = $2 AND unended.resource = $3
                 AND content.account_id = $1 AND content.id = unended.file_id AND content.sha256 = $4
               ORDER BY unended.created_at, unended.id LIMIT 1";
    let values = [ctx.account.into(), ImportStatus::Running.wire().into(), resource.into(), sha256.into()];
    let id = tx.first(sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    id.map(|id| records::find(tx, ctx, &id)).transpose()
}

fn undo(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let before: Import = records::find_to_change(tx, ctx, &call)?;
        let import = start_undo(tx, ctx, &before)?;
        Ok(Answer::record(ctx, &import, ACTED).with_texts("warnings", &warnings))
    }))
}

/// Starts undoing an import.
pub fn start_undo(tx: &mut Tx, ctx: &Ctx, before: &Import) -> Result<Import> {
    before.must_be(&[ImportStatus::Done, ImportStatus::Failed, ImportStatus::Undone], "undone")?;
    subject::check_writes(ctx, subject::to_import(&before.resource)?)?;
    let mut import = before.clone();
    import.signed(ctx);
    import.status = ImportStatus::Undoing;
    records::change(tx, ctx, before, &mut import, "updated")?;
    let job = UndoImport { import: import.base.id.clone() };
    let job = NewJob::of(ctx, &job)?.keyed(format!("import {}", import.base.id));
    jobs::enqueue(tx, ctx, &job)?;
    Ok(import)
}

fn delete(call: Call) -> Result<Work> {
    input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let import: Import = records::find_to_change(tx, ctx, &call)?;
        let ended = [ImportStatus::Checked, ImportStatus::Done, ImportStatus::Undone, ImportStatus::Failed];
        import.must_be(&ended, "deleted")?;
        lines::forget(tx, ctx, &import.base.id)?;
        records::remove(tx, ctx, &import)?;
        Ok(Answer::empty())
    }))
}
