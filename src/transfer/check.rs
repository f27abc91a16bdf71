//! Checks the file of an import: recognizes how it is written, and tries every line without creating anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::app::App;
use engine::context::Actor;
use engine::error::{Error, FieldCode, Result, violation};
use engine::input::Input;
use engine::text::not_allowed;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use sheets::{Cell, Dates, Decimal, Encoding, Format, Found, Line};

use super::checking::{Checking, MAX_PROBLEMS};
use super::import::{DateOrder, DecimalSign, FileEncoding, Import, Objects, Separator};
use super::mapping::{BesideKind, ID, Plan, Target};
use super::{convert, sources, subject, sums};
use crate::files::File;
use crate::reading::archive::{self, Archive};
use crate::reading::table::{self, Table, Wishes};
use crate::reading::{Reader, Source, Trouble};

/// Number of lines from which the decimal sign and the order of dates are recognized; notes say it.
const SAMPLED: usize = 2000;
/// Maximum memory of these lines, in bytes; fewer are recognized if they are long.
const SAMPLED_BYTES: usize = 16 * 1024 * 1024;

/// What the caller of a check chose, so that it needs no note.
#[derive(Clone, Copy)]
pub struct Chosen {
    /// The decimal sign.
    pub decimal_sign: bool,
    /// The order of dates.
    pub date_order: bool,
}

impl Chosen {
    /// Everything that is not recognized: the choices of a new import.
    pub fn of(import: &Import) -> Chosen {
        Chosen {
            decimal_sign: import.decimal_sign != DecimalSign::Auto,
            date_order: import.date_order != DateOrder::Auto,
        }
    }

    /// The choices of a change, which sent some of the fields: what is stored may have been recognized earlier.
    pub fn by(import: &Import, input: &Input<Import>) -> Chosen {
        let all = Chosen::of(import);
        Chosen {
            decimal_sign: all.decimal_sign && input.has("decimal_sign"),
            date_order: all.date_order && input.has("date_order"),
        }
    }
}

/// The files of an import.
pub struct Files {
    /// The file with the lines.
    pub file: Source,
    /// Its hash.
    pub sha256: String,
    /// The zip file with the original PDFs.
    pub pdfs: Option<Source>,
}

impl Files {
    /// Describes stored files.
    pub fn of(file: &File, pdfs: Option<&File>) -> Files {
        Files { file: Source::of(file), sha256: file.sha256.clone(), pdfs: pdfs.map(Source::of) }
    }
}

/// Converts an error of the reader about the file with the lines.
pub fn unreadable(trouble: Trouble) -> Error {
    trouble.in_field("file_id")
}

/// Starts to read the file of an import: as recognized, or as the caller chose.
pub fn open(app: &App, caller: &Actor, import: &Import, file: &Source) -> Result<Table> {
    let separator = match import.separator {
        Separator::Auto => None,
        Separator::Comma => Some(','),
        Separator::Semicolon => Some(';'),
        Separator::Tab => Some('\t'),
        Separator::Bar => Some('|'),
    };
    let wishes = Wishes { encoding: Encoding::named(import.encoding.wire()), separator };
    table::open(app, caller, file, &wishes).map_err(unreadable)
}

/// Number of years ahead that a document can be dated.
const YEARS_AHEAD: i16 = 10;

/// Returns the plan of an import whose decimal sign and order of dates are known.
pub fn plan(app: &App, import: &Import, header: &[String]) -> Result<Plan> {
    let resource = subject::to_import(&import.resource)?;
    let mut plan = Plan::new(resource, sources::named(&import.source)?, header, &import.mapping.json())?;
    plan.last_year = app.clock.now().date(&TimeZone::UTC).year().saturating_add(YEARS_AHEAD);
    plan.decimal = if import.decimal_sign == DecimalSign::Comma { Decimal::Comma } else { Decimal::Point };
    plan.dates = match import.date_order {
        DateOrder::DayFirst => Dates::DayFirst,
        DateOrder::MonthFirst => Dates::MonthFirst,
        DateOrder::YearFirst | DateOrder::Auto => Dates::YearFirst,
    };
    if !import.match_by.is_empty() {
        let names: Vec<&str> = subject::identifying(resource).map(|field| field.name).collect();
        if !names.contains(&import.match_by.as_str()) {
            let message = match names.is_empty() {
                true => format!("cannot be used: no field identifies {}", resource.shape.table.replace('_', " ")),
                false => not_allowed(&import.match_by, &names).message,
            };
            return Err(Error::field("match_by", violation(FieldCode::InvalidChoice, message)));
        }
    }
    Ok(plan)
}

/// Opens the zip file with the original PDFs.
pub fn open_pdfs(app: &App, caller: &Actor, pdfs: Option<&Source>) -> Result<Option<Archive>> {
    let opened = pdfs.map(|pdfs| archive::open(app, caller, pdfs)).transpose();
    opened.map_err(|trouble| match trouble {
        Trouble::TooLarge(sentence) | Trouble::Malformed(sentence) | Trouble::Encoding(sentence) => {
            let message = format!("must be a zip file with the original PDFs. {sentence}");
            Error::field("pdfs_file_id", violation(FieldCode::InvalidFormat, message))
        }
        Trouble::Ours(error) => error,
    })
}

/// Notes how the file is written; a workbook has neither an encoding nor a separator, and JSON Lines no separator.
fn note_format(import: &mut Import, found: &Found) {
    import.format = found.format.name().to_string();
    if found.format != Format::Xlsx {
        import.encoding = FileEncoding::from_wire(found.encoding.name()).unwrap_or_default();
    }
    if found.format == Format::Csv {
        import.separator = match found.separator {
            ';' => Separator::Semicolon,
            '\t' => Separator::Tab,
            '|' => Separator::Bar,
            _ => Separator::Comma,
        };
    }
}

/// Checks all lines of a file, when it is the account's turn; returns the import with what was found. Nothing is stored. The
/// file is read once, and in the memory of this process are only the first lines and those that are being tried.
pub fn check(app: &App, caller: &Actor, import: &Import, chosen: Chosen, files: &Files) -> Result<Import> {
    let turn = app.services.get::<Reader>().turn(caller)?;
    let mut import = import.clone();
    let mut table = open(app, caller, &import, &files.file)?;
    let mut pdfs = open_pdfs(app, caller, files.pdfs.as_ref())?;
    note_format(&mut import, &table.found);
    let first = plan(app, &import, &table.columns)?;
    let stored = Chosen::of(&import);
    let (sample, next) = first_lines(&mut table)?;
    let mut sampled = recognize(&mut import, &first, &sample, &table.found);
    settle(&mut sampled, &first, chosen, stored, &import.columns);
    let plan = Arc::new(plan(app, &import, &table.columns)?);
    import.columns = shown_columns(&plan, &sampled, next.as_ref().map(|_| sample.len()));
    let own = import.clone();
    let mut checking = Checking::blank(app, caller, plan, &own, pdfs.as_mut());
    let mut lines = 0;
    for line in sample.into_iter().chain(next) {
        lines += 1;
        checking.take(line)?;
    }
    while let Some(line) = table.next_line().map_err(unreadable)? {
        lines += 1;
        checking.take(line)?;
    }
    drop(table);
    checking.ask()?;
    let Checking { mut problems, mut problem_count, bad, preview, sums, mut warnings, mut warning_count, .. } =
        checking;
    problems.sort_by_key(|problem| problem["line"].as_i64());
    warnings.sort_by_key(|warning| warning["line"].as_i64());
    if let Some(message) = nothing(&import, lines) {
        problems.insert(0, json!({"line": 1, "column": "", "field": "", "code": "", "message": message}));
        problem_count += 1;
    }
    if let Some(warning) = again(app, caller, &import, &files.sha256)? {
        warnings.insert(0, warning);
        warning_count += 1;
    }
    problems.truncate(MAX_PROBLEMS);
    warnings.truncate(MAX_PROBLEMS);
    import.lines = i64::try_from(lines).unwrap_or(i64::MAX);
    import.valid_lines = import.lines - i64::try_from(bad.len()).unwrap_or(i64::MAX);
    import.problem_count = problem_count;
    import.problems = Objects::from(problems);
    import.warning_count = warning_count;
    import.warnings = Objects::from(warnings);
    import.preview = Objects::from(preview);
    import.report = sums::report(&sums, None, &BTreeMap::new());
    drop(turn);
    Ok(import)
}

/// Says why a file has nothing to import, if that is so.
fn nothing(import: &Import, lines: usize) -> Option<String> {
    let columns: Vec<Value> = serde_json::from_str(&import.columns.0).unwrap_or_default();
    match () {
        () if lines == 0 => Some("There is nothing to import: the file has no lines below its header.".to_string()),
        () if columns.iter().all(|column| column["field"] == "" || column["field"] == ID) => {
            let names: Vec<&str> = columns.iter().filter_map(|column| column["column"].as_str()).take(5).collect();
            let names = names.join(", ");
            Some(format!(
                "There is nothing to import: no column is recognized ({names}). Choose the field of a column with `mapping`."
            ))
        }
        () => None,
    }
}

/// Returns a warning if the same file was imported before.
fn again(app: &App, caller: &Actor, import: &Import, sha256: &str) -> Result<Option<Value>> {
    if !import.doubles() {
        return Ok(None);
    }
    let (own, resource, sha256) = (caller.clone(), import.resource.clone(), sha256.to_string());
    app.store.read_now(move |tx| {
        let ctx = own.reading(tx)?;
        let earlier = super::again::earlier(tx, &ctx, &resource, &sha256)?;
        Ok::<_, Error>(earlier.map(|earlier| super::again::warning(&ctx, &earlier)))
    })
}

/// The values of a column among the first lines.
#[derive(Default)]
struct Sampled {
    /// The first value.
    first: Option<Cell>,
    /// What is written in it: a number or a date, if the form of these matters.
    written: Option<Written>,
    /// The numbers or dates that are texts.
    texts: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Written {
    Number,
    Date,
}

fn written(target: &Target) -> Option<Written> {
    match target {
        Target::Field(field) if convert::is_number(field) => Some(Written::Number),
        Target::Field(field) if field.is_date() => Some(Written::Date),
        Target::Beside(_, BesideKind::Amount) => Some(Written::Number),
        Target::Beside(_, BesideKind::Date) => Some(Written::Date),
        _ => None,
    }
}

/// Returns the first lines, and the next one if there are more.
fn first_lines(table: &mut Table) -> Result<(Vec<Line>, Option<Line>)> {
    let (mut lines, mut weight) = (Vec::new(), 0);
    while lines.len() < SAMPLED && weight < SAMPLED_BYTES {
        let Some(line) = table.next_line().map_err(unreadable)? else { return Ok((lines, None)) };
        weight += line.weight();
        lines.push(line);
    }
    Ok((lines, table.next_line().map_err(unreadable)?))
}

/// Recognizes the decimal sign and the order of dates from the first lines; returns these by column. A column keeps the texts that
/// can be read in two ways, if no other text of these lines decides.
fn recognize(import: &mut Import, plan: &Plan, sample: &[Line], found: &Found) -> Vec<Sampled> {
    let start = |(_, target): &(String, Target)| Sampled { written: written(target), ..Sampled::default() };
    let mut columns: Vec<Sampled> = plan.columns.iter().map(start).collect();
    for line in sample {
        for (column, cell) in columns.iter_mut().zip(&line.cells).filter(|(_, cell)| !cell.is_empty()) {
            if let (Some(_), Cell::Text(text)) = (column.written, cell) {
                column.texts.push(text.clone());
            }
            column.first.get_or_insert_with(|| cell.clone());
        }
    }
    let texts = |written: Written| {
        let own = columns.iter().filter(move |column| column.written == Some(written));
        own.flat_map(|column| &column.texts).map(String::as_str)
    };
    let decides = |told: Option<bool>| told == Some(true);
    let knows_decimal = texts(Written::Number).map(sheets::tells_decimal).any(decides);
    let knows_day = texts(Written::Date).map(sheets::tells_day).any(decides);
    if import.decimal_sign == DecimalSign::Auto {
        let is_vague = !knows_decimal && texts(Written::Number).any(|text| sheets::tells_decimal(text).is_some());
        import.decimal_sign = match sheets::guess_decimal(texts(Written::Number)) {
            // Spreadsheets separate with semicolons where the comma is the decimal sign.
            _ if is_vague && found.format == Format::Csv && found.separator == ';' => DecimalSign::Comma,
            Decimal::Comma => DecimalSign::Comma,
            Decimal::Point => DecimalSign::Point,
        };
    }
    if import.date_order == DateOrder::Auto {
        import.date_order = match sheets::guess_dates(texts(Written::Date)) {
            Dates::YearFirst => DateOrder::YearFirst,
            Dates::DayFirst => DateOrder::DayFirst,
            Dates::MonthFirst => DateOrder::MonthFirst,
        };
    }
    for column in &mut columns {
        column.texts.retain(|text| match column.written {
            Some(Written::Number) => !knows_decimal && sheets::tells_decimal(text) == Some(false),
            Some(Written::Date) => !knows_day && sheets::tells_day(text) == Some(false),
            None => false,
        });
    }
    columns
}

/// Forgets the texts that can be read in two ways if the caller chose how: now, or earlier. A choice that is stored may also have
/// been recognized, but then the earlier check left a note on the same column.
fn settle(sampled: &mut [Sampled], plan: &Plan, chosen: Chosen, stored: Chosen, earlier: &Objects) {
    let earlier: Vec<Value> = serde_json::from_str(&earlier.0).unwrap_or_default();
    for (place, (column, (_, target))) in sampled.iter_mut().zip(&plan.columns).enumerate() {
        let (is_chosen, is_stored) = match column.written {
            Some(Written::Number) => (chosen.decimal_sign, stored.decimal_sign),
            _ => (chosen.date_order, stored.date_order),
        };
        let had_no_note = earlier
            .get(place)
            .is_some_and(|own| own["field"].as_str() == Some(target.name().as_str()) && own["note"] == "");
        if is_chosen || is_stored && had_no_note {
            column.texts.clear();
        }
    }
}

/// Describes the columns; `beyond` is the number of lines that were looked at, if the file has more.
fn shown_columns(plan: &Plan, sampled: &[Sampled], beyond: Option<usize>) -> Objects {
    let short = |text: String| -> String { text.chars().take(100).collect() };
    let shown = plan.columns.iter().zip(sampled).map(|((name, target), column)| {
        let first = column.first.as_ref();
        let sample = short(first.map(Cell::text).unwrap_or_default());
        let read = short(first.map(|cell| plan.shown(target, cell)).unwrap_or_default());
        let name: String = name.chars().take(200).collect();
        let note = note(plan, target, column, beyond);
        json!({"column": name, "field": target.name(), "sample": sample, "read": read, "note": note})
    });
    Objects::from(shown.collect::<Vec<_>>())
}

/// Says how a value is read that could be read in another way; otherwise empty.
fn note(plan: &Plan, target: &Target, column: &Sampled, beyond: Option<usize>) -> String {
    let Some(value) = column.texts.first() else { return String::new() };
    let read = plan.shown(target, &Cell::Text(value.clone()));
    let looked_at = |lines: usize| if lines == SAMPLED { "2,000".to_string() } else { lines.to_string() };
    let why = match (column.written, beyond.map(looked_at)) {
        (Some(Written::Date), None) => "no date in the file tells which it is".to_string(),
        (Some(Written::Date), Some(lines)) => format!("none of the first {lines} lines tells which it is"),
        (_, None) => "no number in the file tells its decimal sign".to_string(),
        (_, Some(lines)) => format!("none of the first {lines} lines tells its decimal sign"),
    };
    match (column.written, plan.dates) {
        _ if read.is_empty() => String::new(),
        (Some(Written::Date), Dates::MonthFirst) => {
            format!("{value} is read as {read}, month first: {why}; see `date_order`")
        }
        (Some(Written::Date), _) => format!("{value} is read as {read}, day first: {why}; see `date_order`"),
        _ => format!("{value} is read as {read}: {why}; see `decimal_sign`"),
    }
}
