//! Checks the file of an import: recognizes how it is written, and tries every line without creating anything.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use engine::app::App;
use engine::contents::hex;
use engine::context::Actor;
use engine::error::{Code, Error, FieldCode, Result, violation};
use engine::input::Input;
use engine::text::not_allowed;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sheets::archive::Archive;
use sheets::{Cell, Dates, Decimal, Encoding, Format, Found, MAX_UNPACKED, Problem};

use super::checking::{Checking, MAX_PROBLEMS};
use super::import::{DateOrder, DecimalSign, FileEncoding, Import, Objects, Separator};
use super::mapping::{BesideKind, ID, Plan, Target};
use super::{convert, sources, subject, sums};
use crate::files::File;

/// Number of lines from which the decimal sign and the order of dates are recognized; notes say it.
const SAMPLED: usize = 2000;

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

/// Reads the content of a file.
pub fn content(app: &App, file: &File) -> Result<Vec<u8>> {
    let read = tokio::runtime::Handle::current().block_on(app.blobs.read(&file.content));
    read.map(|bytes| bytes.to_vec()).map_err(|error| Error::internal(format!("the file {}: {error}", file.base.id)))
}

/// Converts an error of the reader.
pub fn unreadable(problem: Problem) -> Error {
    match problem {
        Problem::TooLarge(sentence) => Error::new(Code::BodyTooLarge, sentence),
        Problem::Malformed(sentence) => {
            let error = Error::field("file_id", violation(FieldCode::InvalidFormat, sentence.clone()));
            Error { message: sentence, ..error }
        }
        Problem::Io(error) => Error::internal(error.to_string()),
    }
}

/// Returns how the file of an import is read: as recognized, or as the caller chose.
pub fn found(import: &Import, bytes: &[u8]) -> Result<Found> {
    let mut found = sheets::detect(bytes).map_err(unreadable)?;
    if let Some(encoding) = Encoding::named(import.encoding.wire()).filter(|_| found.format != Format::Xlsx) {
        if encoding != found.encoding && !sheets::is_readable(bytes, encoding) {
            let (chosen, seems) = (encoding.name(), found.encoding.name());
            let message = format!(
                "is {chosen}, but some characters of the file are not valid in it; the file seems to be {seems}"
            );
            return Err(Error::field("encoding", violation(FieldCode::InvalidChoice, message)));
        }
        found.encoding = encoding;
    }
    found.separator = match import.separator {
        Separator::Auto => found.separator,
        Separator::Comma => ',',
        Separator::Semicolon => ';',
        Separator::Tab => '\t',
        Separator::Bar => '|',
    };
    Ok(found)
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
pub fn open_pdfs(bytes: Vec<u8>) -> Result<Archive> {
    Archive::open(bytes, MAX_UNPACKED).map_err(|problem| {
        let message = format!("must be a zip file with the original PDFs. {problem}");
        Error::field("pdfs_file_id", violation(FieldCode::InvalidFormat, message))
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

/// Checks all lines of a file; returns the import with what was found. Nothing is stored.
pub fn check(
    app: &App,
    caller: &Actor,
    import: &Import,
    chosen: Chosen,
    bytes: &[u8],
    pdfs: Option<&mut Archive>,
) -> Result<Import> {
    let mut import = import.clone();
    let found = found(&import, bytes)?;
    let header = sheets::header(bytes, &found).map_err(unreadable)?;
    note_format(&mut import, &found);
    let first = plan(app, &import, &header)?;
    let stored = Chosen::of(&import);
    let (mut sampled, is_longer) = recognize(&mut import, &first, bytes, &found)?;
    settle(&mut sampled, &first, chosen, stored, &import.columns);
    let plan = Arc::new(plan(app, &import, &header)?);
    import.columns = shown_columns(&plan, &sampled, is_longer);
    let own = import.clone();
    let mut checking = Checking::blank(app, caller, plan, &own, pdfs);
    let mut failed = None;
    let lines = sheets::read(bytes, &found, &mut |line| match checking.take(line) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    });
    let lines = lines.map_err(unreadable)?;
    if let Some(error) = failed {
        return Err(error);
    }
    checking.ask()?;
    let Checking { mut problems, mut problem_count, bad, preview, sums, mut warnings, mut warning_count, .. } =
        checking;
    problems.sort_by_key(|problem| problem["line"].as_i64());
    warnings.sort_by_key(|warning| warning["line"].as_i64());
    if let Some(message) = nothing(&import, lines) {
        problems.insert(0, json!({"line": 1, "column": "", "field": "", "code": "", "message": message}));
        problem_count += 1;
    }
    if let Some(warning) = again(app, caller, &import, bytes)? {
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
fn again(app: &App, caller: &Actor, import: &Import, bytes: &[u8]) -> Result<Option<Value>> {
    if !import.doubles() {
        return Ok(None);
    }
    let (own, resource, sha256) = (caller.clone(), import.resource.clone(), hex(&Sha256::digest(bytes)));
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

/// Recognizes the decimal sign and the order of dates from the first lines; returns these by column, and whether the file has
/// more. A column keeps the texts that can be read in two ways, if no other text of these lines decides.
fn recognize(import: &mut Import, plan: &Plan, bytes: &[u8], found: &Found) -> Result<(Vec<Sampled>, bool)> {
    let start = |(_, target): &(String, Target)| Sampled { written: written(target), ..Sampled::default() };
    let (mut columns, mut seen): (Vec<Sampled>, usize) = (plan.columns.iter().map(start).collect(), 0);
    let mut is_longer = false;
    sheets::read(bytes, found, &mut |line| {
        if seen == SAMPLED {
            is_longer = true;
            return ControlFlow::Break(());
        }
        for (column, cell) in columns.iter_mut().zip(line.cells).filter(|(_, cell)| !cell.is_empty()) {
            if let (Some(_), Cell::Text(text)) = (column.written, &cell) {
                column.texts.push(text.clone());
            }
            column.first.get_or_insert(cell);
        }
        seen += 1;
        ControlFlow::Continue(())
    })
    .map_err(unreadable)?;
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
    Ok((columns, is_longer))
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

fn shown_columns(plan: &Plan, sampled: &[Sampled], is_longer: bool) -> Objects {
    let short = |text: String| -> String { text.chars().take(100).collect() };
    let shown = plan.columns.iter().zip(sampled).map(|((name, target), column)| {
        let first = column.first.as_ref();
        let sample = short(first.map(Cell::text).unwrap_or_default());
        let read = short(first.map(|cell| plan.shown(target, cell)).unwrap_or_default());
        let name: String = name.chars().take(200).collect();
        let note = note(plan, target, column, is_longer);
        json!({"column": name, "field": target.name(), "sample": sample, "read": read, "note": note})
    });
    Objects::from(shown.collect::<Vec<_>>())
}

/// Says how a value is read that could be read in another way; otherwise empty.
fn note(plan: &Plan, target: &Target, column: &Sampled, is_longer: bool) -> String {
    let Some(value) = column.texts.first() else { return String::new() };
    let read = plan.shown(target, &Cell::Text(value.clone()));
    let why = match (column.written, is_longer) {
        (Some(Written::Date), false) => "no date in the file tells which it is",
        (Some(Written::Date), true) => "none of the first 2,000 lines tells which it is",
        (_, false) => "no number in the file tells its decimal sign",
        (_, true) => "none of the first 2,000 lines tells its decimal sign",
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
