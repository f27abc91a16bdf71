//! Imports: a file whose lines become records. It is checked first, and runs when somebody says so.

use engine::app::App;
use engine::authors::{Author, AuthorType, Authority};
use engine::call::{Answer, Call};
use engine::context::{Actor, Ctx};
use engine::error::{Code, Error, FieldCode, Result, violation};
use engine::input::pending::Pending;
use engine::input::{self, Input};
use engine::jobs::{self, NewJob};
use engine::json::Json;
use engine::record::{
    ACTED, COMPUTED, CREATED, Data, INPUT, Kind, Link, Model, NOWHERE, REQUIRED, Rules, UPDATED, When,
};
use engine::records::{self, Work};
use engine::resource::{Method, Resource, Returns, Verb};
use engine::tables::Logged;
use engine::{choice, record};
use serde_json::{Value as Schema, json};
use store::{Migration, Row, Tx, Value};

use super::run::RunImport;
use super::undo::UndoImport;
use super::{check, lines, sources, subject};
use crate::files::File;

choice! {
    /// The encoding of a file.
    pub enum FileEncoding {
        /// Recognized from the content.
        #[default]
        Auto = "auto",
        /// UTF-8.
        Utf8 = "utf-8",
        /// UTF-16.
        Utf16 = "utf-16",
        /// Windows-1252.
        Windows1252 = "windows-1252",
    }
}

choice! {
    /// The separator of a file.
    pub enum Separator {
        /// Recognized from the content.
        #[default]
        Auto = "auto",
        /// A comma.
        Comma = "comma",
        /// A semicolon.
        Semicolon = "semicolon",
        /// A tab.
        Tab = "tab",
        /// A vertical bar.
        Bar = "bar",
    }
}

choice! {
    /// The decimal sign of numbers.
    pub enum DecimalSign {
        /// Recognized from the content.
        #[default]
        Auto = "auto",
        /// `1,234.56`
        Point = "point",
        /// `1.234,56`
        Comma = "comma",
    }
}

choice! {
    /// The order of dates.
    pub enum DateOrder {
        /// Recognized from the content.
        #[default]
        Auto = "auto",
        /// `2026-05-04`
        YearFirst = "year_first",
        /// `04-05-2026`
        DayFirst = "day_first",
        /// `05/04/2026`
        MonthFirst = "month_first",
    }
}

choice! {
    /// What happens to a line whose record exists.
    pub enum Existing {
        /// The line is left out.
        #[default]
        Skip = "skip",
        /// The record is changed.
        Update = "update",
    }
}

choice! {
    /// The status of an import.
    pub enum ImportStatus {
        /// Checked; it runs when somebody says so.
        #[default]
        Checked = "checked",
        /// Running.
        Running = "running",
        /// Completed.
        Done = "done",
        /// What it made is being removed.
        Undoing = "undoing",
        /// What it made was removed, except for what was used since.
        Undone = "undone",
        /// It stopped; `failure` says why.
        Failed = "failed",
    }
}

/// A list of JSON objects that only the server writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects(pub String);

impl From<Vec<Schema>> for Objects {
    fn from(list: Vec<Schema>) -> Objects {
        Objects(Schema::from(list).to_string())
    }
}

impl Kind for Objects {
    const NAME: &'static str = "data";

    fn to_db(&self) -> Value<'_> {
        (&self.0).into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        let text = row.text(column)?;
        let is_list = || text.starts_with('[') && serde_json::from_str::<Vec<Schema>>(text).is_ok();
        if text.is_empty() || is_list() {
            return Ok(Objects(text.to_string()));
        }
        Err(store::Error::unreadable("it is not a list of JSON objects"))
    }

    fn from_json(_: &Json, _: &Rules) -> Result<Self, engine::error::Violation> {
        Err(violation(FieldCode::ReadOnly, "cannot be set here"))
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.0.is_empty() { b"[]" } else { self.0.as_bytes() });
    }

    fn schema(_: &Rules) -> Schema {
        json!({"type": "array", "items": {"type": "object", "additionalProperties": true}})
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

record! {
    /// A file whose lines become records. It is checked first, and runs when you call `run`.
    pub struct Import = "import" in "imports";

    /// The resource, by the name of its list, such as `clients`.
    resource: String = REQUIRED.create_only().names().at_most(64).example("\"clients\"");
    /// The file with the lines: CSV, Excel (.xlsx) or JSON Lines.
    file_id: Link = REQUIRED.create_only().refers("files");
    /// The program that the file comes from: `moneybird`, `teamleader`, `invoice_ninja`, `stripe`, `e_boekhouden`; empty if it
    /// is another one.
    source: String = INPUT.create_only().at_most(64).example("\"\"");
    /// A zip file with the original PDFs of documents, named after their numbers or in the column `pdf`.
    pdfs_file_id: Link = INPUT.create_only().refers("files");
    /// The format of the file.
    format: String = COMPUTED;
    /// The encoding of the file; `auto` recognizes it.
    encoding: FileEncoding = INPUT.kept().example("\"auto\"");
    /// The separator of the values; `auto` recognizes it.
    separator: Separator = INPUT.kept().example("\"auto\"");
    /// The decimal sign of numbers; `auto` recognizes it.
    decimal_sign: DecimalSign = INPUT.kept().example("\"auto\"");
    /// The order of dates; `auto` recognizes it.
    date_order: DateOrder = INPUT.kept().example("\"auto\"");
    /// The fields that you chose, by the name of a column; an empty field ignores the column. Other columns are recognized.
    mapping: Data = INPUT.example("{}");
    /// The field by which existing records are found, such as `email`, `number` or `external_id`; empty to create every line.
    match_by: String = INPUT.at_most(64).example("\"\"");
    /// What happens to a line whose record exists: `skip` or `update`.
    existing: Existing = INPUT.kept().example("\"skip\"");
    /// The status.
    status: ImportStatus = COMPUTED.filter();
    /// Why it stopped, if it failed.
    failure: String = COMPUTED;
    /// The columns of the file, each with the `field` that it becomes and a `sample`.
    columns: Objects = COMPUTED;
    /// The number of lines, without the header.
    lines: i64 = COMPUTED;
    /// The number of lines that can be imported.
    valid_lines: i64 = COMPUTED;
    /// The number of problems.
    problem_count: i64 = COMPUTED;
    /// The first hundred problems, each with its `line`, `column`, `field` and `message`. Lines with a problem are left out.
    problems: Objects = COMPUTED;
    /// The first records as they will be sent.
    preview: Objects = COMPUTED;
    /// The number of lines that have been processed.
    processed: i64 = COMPUTED;
    /// The number of records that were created.
    created: i64 = COMPUTED;
    /// The number of records that were changed.
    updated: i64 = COMPUTED;
    /// The number of lines that were left out because their record exists.
    skipped: i64 = COMPUTED;
    /// The number of lines that failed.
    failed: i64 = COMPUTED;
    /// The first hundred lines that failed, each with its `line` and `message`; after undoing it, also the records that stay.
    errors: Objects = COMPUTED;
    /// The number of records that were removed by undoing it.
    removed: i64 = COMPUTED;
    /// The sums of the file and of the records that were made: `source`, `imported` and `difference`, by field.
    report: Data = COMPUTED;
    /// When it was started.
    started_at: When = COMPUTED.nullable();
    /// When it ended.
    ended_at: When = COMPUTED.nullable();
    /// Type of the author, with whose scopes it runs: `key`, `user` or `operator`.
    author_type: AuthorType = COMPUTED.shown(NOWHERE);
    /// The key or the user.
    author_id: String = COMPUTED.shown(NOWHERE);
}

impl Model for Import {}

/// The fields that a running import changes without a log line for each batch.
pub const PROGRESS: &[&str] = &["processed", "created", "updated", "skipped", "failed", "removed", "errors"];

impl Import {
    /// Makes the caller the author.
    pub fn signed(&mut self, ctx: &Ctx) {
        let author = Author::calling(ctx);
        (self.author_type, self.author_id) = (author.kind, author.id);
    }

    /// Returns what the author may do now.
    pub fn authority(&self, tx: &mut Tx, ctx: &Ctx) -> Result<Authority> {
        Author { kind: self.author_type, id: self.author_id.clone() }.authority(tx, ctx)
    }

    /// Rejects what cannot be done in this status.
    fn must_be(&self, allowed: &[ImportStatus], what: &str) -> Result<()> {
        if allowed.contains(&self.status) {
            return Ok(());
        }
        let message = format!("An import with the status '{}' cannot be {what}.", self.status.wire());
        Err(Error::new(Code::InvalidTransition, message))
    }
}

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
        let (file, warnings) = (file_of(tx, ctx, &import)?, input.warnings.clone());
        Ok(Answer::after(move |app, caller| {
            let checked = checked(app, caller, &import, &file)?;
            let warnings = warnings.clone();
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
    subject::check_writes(ctx, subject::to_import(&import.resource)?)?;
    if !ctx.may("files.read") {
        return Err(Error::new(Code::Forbidden, "The key does not have the scope 'files.read'."));
    }
    if import.file_id.0.is_empty() {
        return Err(Error::new(Code::InvalidTransition, "The file of the import was deleted."));
    }
    records::find(tx, ctx, &import.file_id.0)
}

/// Reads the file and checks all of its lines.
fn checked(app: &App, caller: &Actor, import: &Import, file: &File) -> Result<Import> {
    let bytes = check::content(app, file)?;
    check::check(app, caller, import, &bytes)
}

fn patch(call: Call) -> Result<Work> {
    let pending: Pending<Import> = Pending::patch(&call, false)?;
    Ok(Box::new(move |tx, ctx| {
        let before: Import = records::find_to_change(tx, ctx, &call)?;
        before.must_be(&[ImportStatus::Checked], "changed")?;
        let input: Input<Import> = pending.checked(tx, ctx)?.clone();
        let mut import = before.clone();
        input.merge_into(&mut import);
        let (file, id) = (file_of(tx, ctx, &import)?, import.base.id.clone());
        Ok(Answer::after(move |app, caller| {
            let checked = checked(app, caller, &import, &file)?;
            let (id, version, warnings) = (id.clone(), before.base.version, input.warnings.clone());
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

fn run(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let before: Import = records::find_to_change(tx, ctx, &call)?;
        let import = start(tx, ctx, &before)?;
        Ok(Answer::record(ctx, &import, ACTED).with_texts("warnings", &warnings))
    }))
}

/// Starts an import that was checked.
pub fn start(tx: &mut Tx, ctx: &Ctx, before: &Import) -> Result<Import> {
    before.must_be(&[ImportStatus::Checked], "run")?;
    file_of(tx, ctx, before)?;
    if before.valid_lines == 0 {
        return Err(Error::new(Code::ValidationFailed, "No line of the file can be imported; see `problems`."));
    }
    let mut import = before.clone();
    import.signed(ctx);
    import.status = ImportStatus::Running;
    import.started_at = When(Some(ctx.now));
    records::change(tx, ctx, before, &mut import, "started")?;
    let job =
        NewJob::of(ctx, &RunImport { import: import.base.id.clone() })?.keyed(format!("import {}", import.base.id));
    jobs::enqueue(tx, &ctx.ids, &job, ctx.machine_now)?;
    Ok(import)
}

fn undo(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let before: Import = records::find_to_change(tx, ctx, &call)?;
        before.must_be(&[ImportStatus::Done, ImportStatus::Failed, ImportStatus::Undone], "undone")?;
        subject::check_writes(ctx, subject::to_import(&before.resource)?)?;
        let mut import = before.clone();
        import.signed(ctx);
        import.status = ImportStatus::Undoing;
        records::change(tx, ctx, &before, &mut import, "updated")?;
        let job = UndoImport { import: import.base.id.clone() };
        let job = NewJob::of(ctx, &job)?.keyed(format!("import {}", import.base.id));
        jobs::enqueue(tx, &ctx.ids, &job, ctx.machine_now)?;
        Ok(Answer::record(ctx, &import, ACTED).with_texts("warnings", &warnings))
    }))
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

const MIGRATIONS: &[Migration] = &[Migration {
    number: 114,
    name: "imports",
    sql: "
CREATE TABLE imports (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    resource TEXT NOT NULL,
    file_id TEXT NOT NULL,
    source TEXT NOT NULL,
    pdfs_file_id TEXT NOT NULL,
    format TEXT NOT NULL,
    encoding TEXT NOT NULL,
    separator TEXT NOT NULL,
    decimal_sign TEXT NOT NULL,
    date_order TEXT NOT NULL,
    mapping TEXT NOT NULL,
    match_by TEXT NOT NULL,
    existing TEXT NOT NULL,
    status TEXT NOT NULL,
    failure TEXT NOT NULL,
    columns TEXT NOT NULL,
    lines BIGINT NOT NULL,
    valid_lines BIGINT NOT NULL,
    problem_count BIGINT NOT NULL,
    problems TEXT NOT NULL,
    preview TEXT NOT NULL,
    processed BIGINT NOT NULL,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    skipped BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    errors TEXT NOT NULL,
    removed BIGINT NOT NULL,
    report TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    author_type TEXT NOT NULL,
    author_id TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX imports_created ON imports (account_id, created_at, id);
CREATE INDEX imports_status ON imports (account_id, status, created_at, id);
CREATE INDEX imports_file ON imports (account_id, file_id) WHERE file_id <> '';
CREATE INDEX imports_pdfs ON imports (account_id, pdfs_file_id) WHERE pdfs_file_id <> '';
",
}];
