//! Exports: records as a table to download. The table is made while it is downloaded, from the records at that time and in
//! constant memory.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use engine::app::App;
use engine::call::{Answer, Call, Content, Pour, Query};
use engine::config::Config;
use engine::context::{Actor, Ctx};
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, violation};
use engine::input::pending::Pending;
use engine::json::write_name;
use engine::record::{CREATED, Data, INPUT, Model, REQUIRED};
use engine::records::{self, Work};
use engine::resource::{Method, Part, Resource, Returns, Verb};
use engine::services::Services;
use engine::{choice, record};
use serde_json::value::RawValue;
use sheets::{Cell, Format, Problem, Writer};
use store::{Full, Migration, Places, Tx};

use super::names::{self, Names, Wanted};
use super::subject::{self, Column};

choice! {
    /// The format of an exported file.
    pub enum ExportFormat {
        /// Comma-separated values.
        #[default]
        Csv = "csv",
        /// Semicolons, decimal commas and a byte order mark, as Excel expects where the comma is the decimal sign.
        CsvSemicolon = "csv_semicolon",
        /// An Excel workbook.
        Xlsx = "xlsx",
        /// A JSON object per line.
        Jsonl = "jsonl",
    }
}

record! {
    /// Records of one resource as a table to download. The file is made while it is downloaded.
    pub struct Export = "export" in "exports";

    /// The resource, by the name of its list, such as `clients` or `project_hours`.
    resource: String = REQUIRED.create_only().names().at_most(64).example("\"clients\"");
    /// `csv`, `csv_semicolon`, `xlsx` or `jsonl`.
    format: ExportFormat = INPUT.create_only().example("\"csv\"");
    /// Which records: the filters of the list of the resource, by name.
    filters: Data = INPUT.create_only().members(&["string", "number", "boolean"]).example("{}");
}

impl Model for Export {
    fn check(&self, faults: &mut FieldErrors) {
        if !faults.has("resource") {
            faults.take("resource", subject::known_to_export(&self.resource));
        }
    }
}

/// The resource of exports.
pub fn resource() -> Resource {
    Resource::of::<Export>("Exports", "files", MIGRATIONS)
        .list::<Export>()
        .extension()
        .verb(Verb::Create, create)
        .extension()
        .get::<Export>()
        .extension()
        .delete::<Export>()
        .extension()
        .route(Method::Get, "/{id}/file", "Download the table", file)
        .with(|route| route.visits_many = true)
        .returns(Returns::Content)
        .with(|route| route.query = FILE_QUERY)
        .extension()
}

/// Parameters of `GET /v1/exports/{id}/file`.
const FILE_QUERY: &[Part] =
    &[Part("name", "string", "Name of the file, before the day; by default that of the resource.")];
/// Maximum number of characters of that name.
const MAX_NAME: usize = 100;

fn create(call: Call) -> Result<Work> {
    let pending: Pending<Export> = Pending::create_with(&call, |_, _| {}, true)?;
    Ok(Box::new(move |tx, ctx| {
        let doubts = all_checked(tx, ctx, &pending)?;
        let input = pending.valid()?;
        let mut export = input.record();
        export.resource = subject::to_export(&export.resource)?.shape.table.to_string();
        let image = records::add_as(tx, ctx, &mut export, "created")?;
        let doubts = doubts.into_iter().map(|doubt| format!("filters.{doubt}"));
        let warnings: Vec<String> = input.warnings.iter().cloned().chain(doubts).collect();
        Ok(image.created(ctx, &export, CREATED).with_texts("warnings", &warnings))
    }))
}

/// Checks the body and the filters; returns the doubts about the filters. What is wrong with either is answered together.
fn all_checked(tx: &mut Tx, ctx: &Ctx, pending: &Pending<Export>) -> Result<Vec<String>> {
    let (mut faults, sent) = (pending.missing(tx, ctx)?, pending.values());
    let Some(resource) = subject::known_to_export(&sent.resource).ok().filter(|_| !faults.has("resource")) else {
        faults.into_result()?;
        return Ok(Vec::new());
    };
    subject::check_reads(ctx, resource)?;
    let checked = match filters(sent) {
        Ok(query) => (resource.check_filters)(tx, ctx, &query).map_err(within_filters),
        Err(error) => Err(error),
    };
    match checked {
        Err(error) if faults.0.is_empty() || error.faults.is_empty() => return Err(error),
        Err(error) => faults.0.extend(error.faults),
        Ok(doubts) => {
            faults.into_result()?;
            return Ok(doubts);
        }
    }
    faults.into_result()?;
    Ok(Vec::new())
}

/// Names the filters that are wrong by their place in the body.
fn within_filters(mut error: Error) -> Error {
    for fault in &mut error.faults {
        fault.field = format!("filters.{}", fault.field);
    }
    error
}

/// Returns the query with the filters of an export.
fn filters(export: &Export) -> Result<Call> {
    let json = export.filters.json();
    let mut pairs = Vec::new();
    for (name, value) in json.as_object().into_iter().flatten() {
        let text = match value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Number(_) | serde_json::Value::Bool(_) => value.to_string(),
            _ => {
                let wrong = violation(FieldCode::WrongType, "must be a string, a number or a boolean");
                return Err(Error::field(&format!("filters.{}", name.chars().take(100).collect::<String>()), wrong));
            }
        };
        pairs.push((name.clone(), text));
    }
    let text: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    Ok(Call { query: Query::parse(&text)?, strict: true, ..Call::default() })
}

fn file(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let export: Export = records::find(tx, ctx, call.id())?;
        let resource = subject::to_export(&export.resource)?;
        subject::check_reads(ctx, resource)?;
        Ok(Answer::content(Content::Poured(Arc::new(Table::of(ctx, resource, &export, call.query.get("name"))?))))
    }))
}

/// Number of exports that a process writes at once: each reads all records of a resource, as fast as its client does.
const MAX_AT_ONCE: usize = 8;

/// The exports that are being written.
struct Downloads(Arc<Places>);

/// Opens the places of exports that are being written.
pub fn open(_: &Config, _: &str, services: &mut Services) -> Result<()> {
    let places = services.pool(Places::new("exports", MAX_AT_ONCE));
    services.add(Downloads(places));
    Ok(())
}

fn busy(full: Full) -> Error {
    let (code, message) = match full {
        Full::Own(own) => {
            (Code::TooManyRequests, format!("Your account is downloading {own} exports; wait until one is complete."))
        }
        Full::All => (Code::Overloaded, "Too many exports are being downloaded; retry in a moment.".to_string()),
    };
    Error { retry_after: Some(5), ..Error::new(code, message) }
}

/// A table of records.
pub struct Table {
    resource: &'static Resource,
    account: i64,
    filters: Call,
    format: Format,
    with_semicolons: bool,
    columns: Vec<Column>,
    name: String,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({})", self.name)
    }
}

impl Table {
    fn of(ctx: &Ctx, resource: &'static Resource, export: &Export, name: Option<&str>) -> Result<Table> {
        let format = Format::named(export.format.wire()).unwrap_or(Format::Csv);
        let title = name.map(plain).filter(|name| !name.is_empty()).unwrap_or_else(|| plain(resource.title));
        Ok(Table {
            resource,
            account: ctx.account,
            filters: filters(export)?,
            format,
            with_semicolons: export.format == ExportFormat::CsvSemicolon,
            columns: subject::columns(resource, |other| has_names(format) && ctx.may(&format!("{}.read", other.area))),
            name: format!("{title}-{}.{}", ctx.now.date(&ctx.zone), format.name()),
        })
    }

    /// Returns the table of all records of a resource.
    pub fn whole(resource: &'static Resource, account: i64, format: Format, with_semicolons: bool) -> Table {
        let name = resource.shape.table.to_string();
        let columns = subject::columns(resource, |_| has_names(format));
        Table { resource, account, filters: Call::default(), format, with_semicolons, columns, name }
    }

    /// Writes the table, batch by batch; `seen` is told the number of records so far. Returns that number.
    pub fn write(&self, app: &App, caller: &Actor, out: &mut dyn Write, seen: &mut dyn FnMut(u64)) -> Result<u64> {
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.clone()).collect();
        let writer = match self.with_semicolons {
            true => Writer::with_semicolons(out, &titles),
            false => Writer::new(self.format, out, &titles),
        };
        let mut writer = writer.map_err(unwritten)?;
        let (mut after, mut count, mut names) = (String::new(), 0, Names::default());
        loop {
            let (own, filters, from) = (caller.clone(), self.filters.clone(), after.clone());
            let read = self.resource.batch;
            let batch = app.store.read_now(move |tx| {
                let ctx = own.reading(tx)?;
                read(tx, &ctx, &filters, &from)
            })?;
            let lines: Vec<Members> = batch.records.iter().map(|json| Members::of(json)).collect::<Result<_>>()?;
            let (account, wanted) = (self.account, names.still(self.named_in(&lines)));
            let found = match wanted.is_empty() {
                true => Vec::new(),
                false => app.store.read_now(|tx| names::read(tx, account, &wanted))?,
            };
            names.learn(wanted, found);
            for line in &lines {
                write_record(&mut writer, &self.columns, line, &names, self.format)?;
            }
            count += batch.records.len() as u64;
            seen(count);
            after = batch.last;
            if after.is_empty() {
                break;
            }
        }
        writer.finish().map_err(unwritten)?;
        Ok(count)
    }

    /// Returns the records that some lines name.
    fn named_in(&self, lines: &[Members]) -> Wanted {
        let mut wanted = Wanted::new();
        for column in self.columns.iter().filter(|column| !column.names.is_empty()) {
            let ids = lines.iter().filter_map(|line| line.id(column));
            wanted.entry(column.names).or_default().extend(ids);
        }
        wanted
    }
}

/// Returns a name as part of the name of a file: letters and digits, with a hyphen for everything between them.
fn plain(name: &str) -> String {
    let words: Vec<String> = name
        .to_lowercase()
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_string)
        .collect();
    words.join("-").chars().take(MAX_NAME).collect()
}

/// Whether a table is for people, who know records by their names. Programs have the ids.
fn has_names(format: Format) -> bool {
    format != Format::Jsonl
}

impl Pour for Table {
    fn name(&self) -> &str {
        &self.name
    }

    fn content_type(&self) -> &'static str {
        self.format.content_type()
    }

    fn pour(&self, app: &App, out: &mut dyn Write) -> Result<()> {
        let _place = app.services.get::<Downloads>().0.try_take(self.account).map_err(busy)?;
        let caller = app.acting_in(self.account, "export")?;
        self.write(app, &caller, out, &mut |_| {}).map(drop)
    }
}

/// Converts an error of the writer. A client that is gone is not our error, but nobody sees this one.
fn unwritten(problem: Problem) -> Error {
    match problem {
        Problem::TooLarge(sentence) | Problem::Malformed(sentence) => Error::new(Code::ValidationFailed, sentence),
        Problem::Io(error) => Error::internal(format!("an export cannot be written: {error}")),
    }
}

/// The members of a record, with the digits of its numbers as they are.
struct Members<'j> {
    own: HashMap<String, &'j RawValue>,
    meta: HashMap<String, &'j RawValue>,
}

impl<'j> Members<'j> {
    fn of(json: &'j [u8]) -> Result<Members<'j>> {
        let unreadable = |error: serde_json::Error| Error::internal(format!("a record is not valid JSON: {error}"));
        let own: HashMap<String, &'j RawValue> = serde_json::from_slice(json).map_err(unreadable)?;
        let meta = match own.get("meta") {
            Some(raw) => serde_json::from_str(raw.get()).map_err(unreadable)?,
            None => HashMap::new(),
        };
        Ok(Members { own, meta })
    }

    fn value(&self, column: &Column) -> &'j str {
        let from = if column.in_meta { &self.meta } else { &self.own };
        from.get(column.name).map_or("null", |raw| raw.get())
    }

    /// Returns the id of the record that a column names, if there is one.
    fn id(&self, column: &Column) -> Option<String> {
        serde_json::from_str(self.value(column)).ok().filter(|id: &String| !id.is_empty())
    }
}

/// Writes a record: its columns in order.
fn write_record<W: Write>(
    writer: &mut Writer<W>,
    columns: &[Column],
    members: &Members,
    names: &Names,
    format: Format,
) -> Result<()> {
    if format == Format::Jsonl {
        let mut line = vec![b'{'];
        for column in columns {
            write_name(&mut line, column.name);
            line.extend_from_slice(members.value(column).as_bytes());
        }
        line.push(b'}');
        return writer.object(&line).map_err(unwritten);
    }
    let cells = columns.iter().map(|column| match cell(members.value(column)) {
        Cell::Text(id) if !column.names.is_empty() => match names.of(column.names, &id) {
            "" => Cell::Empty,
            name => Cell::Text(name.to_string()),
        },
        Cell::Text(text) if column.is_date => Cell::Date(text),
        cell => cell,
    });
    let cells: Vec<Cell> = cells.collect();
    writer.row(&cells).map_err(unwritten)
}

/// Returns a JSON value as a cell. Lists and objects, such as the rows of a document, are JSON in one cell.
fn cell(json: &str) -> Cell {
    match json.as_bytes().first() {
        Some(b'"') => match serde_json::from_str::<String>(json) {
            Ok(text) if text.is_empty() => Cell::Empty,
            Ok(text) => Cell::Text(text),
            Err(_) => Cell::Empty,
        },
        Some(b't') => Cell::Bool(true),
        Some(b'f') => Cell::Bool(false),
        Some(b'[' | b'{') if matches!(json, "[]" | "{}") => Cell::Empty,
        Some(b'[' | b'{') => Cell::Json(json.to_string()),
        Some(b'n') | None => Cell::Empty,
        Some(_) => Cell::Number(json.to_string()),
    }
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 62,
    name: "exports",
    sql: "
CREATE TABLE exports (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    resource TEXT NOT NULL,
    format TEXT NOT NULL,
    filters TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX exports_created ON exports (account_id, created_at, id);
",
}];
