//! The record of an import: how its file is read, what the check found, and how far it is.

use engine::authors::{Author, AuthorType, Authority};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, Violation, violation};
use engine::json::Json;
use engine::record::{COMPUTED, Data, INPUT, Kind, Link, Model, NOWHERE, REQUIRED, Rules, When};
use engine::{choice, record};
use serde_json::{Value as Schema, json};
use store::{Migration, Row, Tx, Value};

use super::mapping::ID;
use super::{sources, subject};

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

/// The code of the warning that the same file was imported before.
pub const IMPORTED_BEFORE: &str = "imported_before";

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

    fn from_json(_: &Json, _: &Rules) -> Result<Self, Violation> {
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
    /// The encoding of the file; `auto` recognizes it. A workbook has none.
    encoding: FileEncoding = INPUT.kept().example("\"auto\"");
    /// The separator of the values; `auto` recognizes it. Only CSV has one.
    separator: Separator = INPUT.kept().example("\"auto\"");
    /// The decimal sign of numbers; `auto` recognizes it.
    decimal_sign: DecimalSign = INPUT.kept().example("\"auto\"");
    /// The order of dates; `auto` recognizes it.
    date_order: DateOrder = INPUT.kept().example("\"auto\"");
    /// The fields that you chose, by the name of a column; an empty field ignores the column. Other columns are recognized.
    mapping: Data = INPUT.members(&["string", "null"]).example("{}");
    /// The field by which existing records are found, such as `email`, `number` or `external_id`; empty to create every line.
    match_by: String = INPUT.at_most(64).example("\"\"");
    /// What happens to a line whose record exists: `skip` or `update`.
    existing: Existing = INPUT.kept().example("\"skip\"");
    /// The status.
    status: ImportStatus = COMPUTED.filter();
    /// Why it stopped, if it failed.
    failure: String = COMPUTED;
    /// The columns of the file, each with the `field` that it becomes, a `sample`, that sample as it is `read`, and a `note` if a
    /// value can be read in two ways.
    columns: Objects = COMPUTED;
    /// The number of lines, without the header.
    lines: i64 = COMPUTED;
    /// The number of lines that can be imported.
    valid_lines: i64 = COMPUTED;
    /// The number of problems.
    problem_count: i64 = COMPUTED;
    /// The first hundred problems, each with its `line`, `column`, `field`, `code` (empty if it has none) and `message`. Lines with
    /// a problem are left out.
    problems: Objects = COMPUTED;
    /// The number of warnings.
    warning_count: i64 = COMPUTED;
    /// The first hundred warnings, each with its `line`, `column`, `field`, `code` and `message`. Lines with a warning are
    /// imported, without what the warning names. One about the file as a whole has the line 0.
    warnings: Objects = COMPUTED;
    /// The first records as they will be sent.
    preview: Objects = COMPUTED;
    /// The number of lines that have been processed.
    processed: i64 = COMPUTED;
    /// The number of records that were created.
    created: i64 = COMPUTED;
    /// The number of records that were changed.
    updated: i64 = COMPUTED;
    /// The number of lines that were left out because their record exists, or because they count for nothing, such as a void
    /// invoice.
    skipped: i64 = COMPUTED;
    /// The number of lines that failed.
    failed: i64 = COMPUTED;
    /// The first hundred lines that failed or count for nothing, each with its `line` and `message`; after undoing it, also the
    /// records that stay.
    errors: Objects = COMPUTED;
    /// The number of records that were removed by undoing it.
    removed: i64 = COMPUTED;
    /// The sums, by field: of the file (`source`), of the records that were made (`imported`), of the lines that were skipped,
    /// failed or changed an existing record (`left_out`), and what these do not explain (`difference`).
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

impl Model for Import {
    fn check(&self, faults: &mut FieldErrors) {
        if !faults.has("resource") {
            faults.take("resource", subject::known_to_import(&self.resource));
        }
        if !faults.has("source") {
            faults.take("source", sources::known(&self.source));
        }
    }
}

/// The fields that a running import changes without a log line for each batch.
pub const PROGRESS: &[&str] = &["processed", "created", "updated", "skipped", "failed", "removed", "errors", "report"];

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

    /// Whether running it a second time would create every record a second time: nothing tells which of them exist.
    pub fn doubles(&self) -> bool {
        let columns: Vec<Schema> = serde_json::from_str(&self.columns.0).unwrap_or_default();
        self.match_by.is_empty() && !columns.iter().any(|column| column["field"] == ID && column["read"] != "")
    }

    /// Returns the warning that the same file was imported before, if there is one.
    pub fn imported_before(&self) -> Option<String> {
        let warnings: Vec<Schema> = serde_json::from_str(&self.warnings.0).unwrap_or_default();
        let own = warnings.iter().find(|warning| warning["code"] == IMPORTED_BEFORE)?;
        own["message"].as_str().map(str::to_string)
    }

    /// Returns what the check noted about the file and its columns, each as a sentence.
    pub fn notes(&self) -> Vec<String> {
        let columns: Vec<Schema> = serde_json::from_str(&self.columns.0).unwrap_or_default();
        let text = |column: &Schema, name: &str| column[name].as_str().unwrap_or_default().to_string();
        let noted = columns.iter().filter(|column| !text(column, "note").is_empty());
        let columns = noted.map(|column| format!("{}: {}.", text(column, "column"), text(column, "note")));
        self.imported_before().into_iter().chain(columns).collect()
    }

    /// Rejects what cannot be done in this status.
    pub fn must_be(&self, allowed: &[ImportStatus], what: &str) -> Result<()> {
        if allowed.contains(&self.status) {
            return Ok(());
        }
        let message = format!("An import with the status '{}' cannot be {what}.", self.status.wire());
        Err(Error::new(Code::InvalidTransition, message))
    }
}

/// The table of imports.
pub const MIGRATIONS: &[Migration] = &[Migration {
    number: 63,
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
    warnings TEXT NOT NULL DEFAULT '',
    warning_count BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX imports_created ON imports (account_id, created_at, id);
CREATE INDEX imports_status ON imports (account_id, status, created_at, id);
CREATE INDEX imports_file ON imports (account_id, file_id) WHERE file_id <> '';
CREATE INDEX imports_pdfs ON imports (account_id, pdfs_file_id) WHERE pdfs_file_id <> '';
",
}];
