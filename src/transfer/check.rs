//! Checks the file of an import: recognizes how it is written, and tries every line without creating anything.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use engine::app::App;
use engine::context::Actor;
use engine::error::{Code, Error, FieldCode, Result, violation};
use engine::text::not_allowed;
use serde_json::json;
use sheets::archive::Archive;
use sheets::{Cell, Dates, Decimal, Encoding, Format, Found, MAX_UNPACKED, Problem};

use super::checking::Checking;
use super::import::{DateOrder, DecimalSign, FileEncoding, Import, Objects, Separator};
use super::mapping::{BesideKind, Plan, Target};
use super::{convert, sources, subject, sums};
use crate::files::File;

/// Number of lines from which the decimal sign and the order of dates are recognized.
const SAMPLED: usize = 2000;

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
    if let Some(encoding) = Encoding::named(import.encoding.wire()) {
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

/// Returns the plan of an import whose decimal sign and order of dates are known.
pub fn plan(import: &Import, header: &[String]) -> Result<Plan> {
    let resource = subject::to_import(&import.resource)?;
    let mut plan = Plan::new(resource, sources::named(&import.source)?, header, &import.mapping.json())?;
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
pub fn check(app: &App, caller: &Actor, import: &Import, bytes: &[u8], pdfs: Option<&mut Archive>) -> Result<Import> {
    let mut import = import.clone();
    let found = found(&import, bytes)?;
    let header = sheets::header(bytes, &found).map_err(unreadable)?;
    note_format(&mut import, &found);
    let first = plan(&import, &header)?;
    let samples = recognize(&mut import, &first, bytes, &found)?;
    let plan = Arc::new(plan(&import, &header)?);
    import.columns = shown_columns(&plan, &samples);
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
    let Checking { mut problems, problem_count, bad, preview, sums, .. } = checking;
    problems.sort_by_key(|problem| problem["line"].as_i64());
    import.lines = i64::try_from(lines).unwrap_or(i64::MAX);
    import.valid_lines = import.lines - i64::try_from(bad.len()).unwrap_or(i64::MAX);
    import.problem_count = problem_count;
    import.problems = Objects::from(problems);
    import.preview = Objects::from(preview);
    import.report = sums::report(&sums, None, &BTreeMap::new());
    Ok(import)
}

/// Recognizes the decimal sign and the order of dates from the first lines; returns the first of them.
fn recognize(import: &mut Import, plan: &Plan, bytes: &[u8], found: &Found) -> Result<Vec<Cell>> {
    let (mut numbers, mut dates, mut first, mut seen) = (Vec::new(), Vec::new(), Vec::new(), 0);
    sheets::read(bytes, found, &mut |line| {
        for ((_, target), cell) in plan.columns.iter().zip(&line.cells) {
            match (target, cell) {
                (Target::Field(field), Cell::Text(text)) if convert::is_number(field) => numbers.push(text.clone()),
                (Target::Field(field), Cell::Text(text)) if field.is_date() => dates.push(text.clone()),
                (Target::Beside(_, BesideKind::Amount), Cell::Text(text)) => numbers.push(text.clone()),
                (Target::Beside(_, BesideKind::Date), Cell::Text(text)) => dates.push(text.clone()),
                _ => {}
            }
        }
        if seen == 0 {
            first = line.cells;
        }
        seen += 1;
        if seen < SAMPLED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .map_err(unreadable)?;
    if import.decimal_sign == DecimalSign::Auto {
        import.decimal_sign = match sheets::guess_decimal(numbers.iter().map(String::as_str)) {
            Decimal::Comma => DecimalSign::Comma,
            Decimal::Point => DecimalSign::Point,
        };
    }
    if import.date_order == DateOrder::Auto {
        import.date_order = match sheets::guess_dates(dates.iter().map(String::as_str)) {
            Dates::YearFirst => DateOrder::YearFirst,
            Dates::DayFirst => DateOrder::DayFirst,
            Dates::MonthFirst => DateOrder::MonthFirst,
        };
    }
    Ok(first)
}

fn shown_columns(plan: &Plan, samples: &[Cell]) -> Objects {
    let shown = plan.columns.iter().enumerate().map(|(place, (name, target))| {
        let sample: String = samples.get(place).map(Cell::text).unwrap_or_default().chars().take(100).collect();
        let name: String = name.chars().take(200).collect();
        json!({"column": name, "field": target.name(), "sample": sample})
    });
    Objects::from(shown.collect::<Vec<_>>())
}
