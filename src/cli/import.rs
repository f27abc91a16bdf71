use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use engine::accounts::Account;
use engine::app::App;
use serde_json::Value;

use super::export::named;
use super::{Progress, error_line, grouped, say};
use crate::transfer::import::{DateOrder, DecimalSign, Existing, FileEncoding, Import as Record, Separator};
use crate::transfer::operator::{self, OwnFile};
use crate::transfer::{mapping, sources, subject};

#[derive(Args)]
pub struct Import {
    /// Id of the account
    #[arg(long, required_unless_present = "fields")]
    account: Option<String>,
    /// What the lines become, by the name of its list: clients, suppliers, products, invoices …
    #[arg(required_unless_present_any = ["undo", "resume", "fields"])]
    resource: Option<String>,
    /// File with the lines: CSV, Excel (.xlsx) or JSON Lines
    #[arg(required_unless_present_any = ["undo", "resume", "fields"])]
    file: Option<PathBuf>,
    /// Program that the file comes from: moneybird, teamleader, invoice_ninja, stripe or e_boekhouden
    #[arg(long, default_value = "")]
    source: String,
    /// Field of a column, as COLUMN=FIELD; without a field, the column is ignored; may be repeated
    #[arg(long = "map", value_name = "COLUMN=FIELD")]
    map: Vec<String>,
    /// Encoding of the file
    #[arg(long, default_value = "auto", value_parser = ["auto", "utf-8", "utf-16", "windows-1252"])]
    encoding: String,
    /// Separator of the values
    #[arg(long, default_value = "auto", value_parser = ["auto", "comma", "semicolon", "tab", "bar"])]
    separator: String,
    /// Decimal sign of numbers
    #[arg(long, default_value = "auto", value_parser = ["auto", "point", "comma"])]
    decimal_sign: String,
    /// Order of dates
    #[arg(long, default_value = "auto", value_parser = ["auto", "year_first", "day_first", "month_first"])]
    date_order: String,
    /// Field by which existing records are found, such as email or external_id
    #[arg(long, value_name = "FIELD", default_value = "")]
    match_by: String,
    /// What happens to a line whose record exists
    #[arg(long, value_enum, default_value = "skip")]
    existing: Choice,
    /// Folder or zip file with the original PDFs of documents
    #[arg(long, value_name = "PATH")]
    pdfs: Option<PathBuf>,
    /// Import the lines; without this, the file is only checked
    #[arg(long)]
    run: bool,
    /// Import a file that was imported before, so that its records are created once more
    #[arg(long, requires = "run")]
    again: bool,
    /// Continue an import that was interrupted
    #[arg(long = "continue", value_name = "ID", conflicts_with_all = ["undo", "fields", "resource", "file", "run"])]
    resume: Option<String>,
    /// Remove the records that an import created, as long as nobody changed them and nothing refers to them
    #[arg(long, value_name = "ID", conflicts_with_all = ["fields", "resource", "file", "run"])]
    undo: Option<String>,
    /// List the fields that a column can become
    #[arg(long, value_name = "RESOURCE", conflicts_with_all = ["account", "resource", "file", "run"])]
    pub fields: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Choice {
    /// It is left out
    Skip,
    /// The record is changed
    Update,
}

impl Import {
    pub fn run(&self, app: &App) -> Result<(), String> {
        let uid = self.account.clone().unwrap_or_default();
        let account = app.store.read_now(move |tx| Account::find(tx, &uid)).map_err(error_line)?;
        let runtime = super::runtime()?;
        let _entered = runtime.enter();
        match (&self.undo, &self.resume, &self.resource, &self.file) {
            (Some(id), ..) => undo(app, account, id),
            (None, Some(id), ..) => finish(app, account, id),
            (None, None, Some(resource), Some(file)) => self.import(app, account, resource, file),
            _ => Err("a resource and a file are required".to_string()),
        }
    }

    fn import(&self, app: &App, account: Account, resource: &str, path: &Path) -> Result<(), String> {
        let resource = subject::to_import(resource).map_err(named)?;
        sources::named(&self.source).map_err(|error| format!("--{}", named(error)))?;
        let file = OwnFile { name: file_name(path), bytes: read(path)?.into() };
        let pdfs = self.pdfs.as_deref().map(pack).transpose()?;
        let import = self.record(resource.shape.table)?;
        let checked = operator::check(app, account.clone(), &import, &file, pdfs.as_ref());
        let checked = checked.map_err(|error| match error.faults.first().map(|fault| fault.field.as_str()) {
            Some("file_id") => format!("{}: {}", path.display(), error.faults[0].wrong.message),
            Some("pdfs_file_id") => format!("--pdfs: {}", error.faults[0].wrong.message),
            Some("match_by") => format!("--match-by: {}", error.faults[0].wrong.message),
            _ => named(error),
        })?;
        say(&shown(&checked))?;
        let unended = operator::unended(app, account.clone(), resource.shape.table, &file).map_err(error_line)?;
        let unended = unended.map(|import| way_on(&account, &import));
        if !self.run {
            let next = unended.unwrap_or_else(|| "run the command again with --run to import the lines".to_string());
            say(&format!("Nothing was imported: {next}."))?;
            return match checked.problem_count {
                0 => Ok(()),
                count => Err(format!("the check found {}", counted(count, "problem"))),
            };
        }
        // First: whoever repeats a command that was interrupted does not want its records once more.
        if let Some(unended) = unended {
            return Err(unended);
        }
        if let Some(before) = checked.imported_before().filter(|_| !self.again) {
            return Err(format!("{before} Add --again to do that."));
        }
        let uid = account.uid.clone();
        let id = operator::start(app, account.clone(), &checked, file, pdfs).map_err(error_line)?;
        say(&format!("Started import {id}. If it is interrupted: kantoor import --account {uid} --continue {id}"))?;
        finish(app, account, &id)
    }

    /// Returns the import that the options describe.
    fn record(&self, table: &str) -> Result<Record, String> {
        Ok(Record {
            resource: table.to_string(),
            source: self.source.clone(),
            mapping: self.mapping()?.into(),
            encoding: FileEncoding::from_wire(&self.encoding).unwrap_or_default(),
            separator: Separator::from_wire(&self.separator).unwrap_or_default(),
            decimal_sign: DecimalSign::from_wire(&self.decimal_sign).unwrap_or_default(),
            date_order: DateOrder::from_wire(&self.date_order).unwrap_or_default(),
            match_by: self.match_by.clone(),
            existing: if matches!(self.existing, Choice::Update) { Existing::Update } else { Existing::Skip },
            ..Record::default()
        })
    }

    fn mapping(&self) -> Result<Value, String> {
        let mut all = serde_json::Map::new();
        for pair in &self.map {
            let (column, field) =
                pair.rsplit_once('=').ok_or_else(|| format!("--map {pair}: expected COLUMN=FIELD"))?;
            all.insert(column.to_string(), field.into());
        }
        Ok(Value::from(all))
    }
}

/// Says how to continue an import of the same file that has not ended.
fn way_on(account: &Account, import: &Record) -> String {
    let (uid, id) = (&account.uid, &import.base.id);
    format!(
        "import {id} of the same file was interrupted or is still running, with {} of {} processed; continue it with kantoor import --account {uid} --continue {id}, after which --undo {id} removes what it created",
        grouped(import.processed.unsigned_abs()),
        counted(import.lines, "line")
    )
}

/// Runs an import that was started to its end, and says what it did.
fn finish(app: &App, account: Account, id: &str) -> Result<(), String> {
    let mut progress = Progress::new();
    let done = operator::finish(app, account, id, &mut |lines, total| {
        progress.at(&format!("{} of {} lines", grouped(lines.unsigned_abs()), grouped(total.unsigned_abs())));
    });
    progress.clear();
    let done = done.map_err(error_line)?;
    say(&result(&done))?;
    match (done.failure.as_str(), done.failed) {
        ("", 0) => Ok(()),
        ("", failed) => Err(format!("{} failed; the others were imported", counted(failed, "line"))),
        (failure, _) => Err(failure.to_string()),
    }
}

/// Removes what an import created.
fn undo(app: &App, account: Account, id: &str) -> Result<(), String> {
    let mut progress = Progress::new();
    let undone = operator::undo(app, account, id, &mut |removed| progress.at(&counted(removed, "record")));
    progress.clear();
    let undone = undone.map_err(error_line)?;
    say(&format!("Import {id}: {} removed.", counted(undone.removed, "record")))?;
    let errors = list(&undone.errors.0);
    for error in errors.iter().filter(|error| error["id"].is_string()) {
        say(&format!("  line {}: {}", error["line"], error["message"].as_str().unwrap_or_default()))?;
    }
    if undone.failure.is_empty() { Ok(()) } else { Err(undone.failure) }
}

/// Prints what a column can become.
pub fn list_fields(resource: &str) -> Result<(), String> {
    let resource = subject::to_import(resource).map_err(named)?;
    let lines: Vec<String> =
        mapping::targets(resource).into_iter().map(|(name, meaning)| format!("{name:30} {meaning}")).collect();
    say(&lines.join("\n"))
}

fn list(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap_or_default()
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > sheets::MAX_BYTES as u64 {
        return Err(format!("{}: the file has more than {} MiB", path.display(), sheets::MAX_BYTES / (1024 * 1024)));
    }
    std::fs::read(path).map_err(failed)
}

/// Returns the PDFs of a folder as a zip file, or the zip file.
fn pack(path: &Path) -> Result<OwnFile, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if !path.is_dir() {
        return Ok(OwnFile { name: file_name(path), bytes: read(path)?.into() });
    }
    let mut pdfs = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?.path();
        if entry.extension().is_some_and(|end| end.eq_ignore_ascii_case("pdf")) {
            pdfs.push((file_name(&entry), read(&entry)?));
        }
    }
    let bytes = sheets::archive::pack(pdfs).map_err(|problem| problem.to_string())?;
    Ok(OwnFile { name: "pdfs.zip".to_string(), bytes: bytes.into() })
}

/// Describes what the check found.
fn shown(import: &Record) -> String {
    let encoding = match import.encoding {
        FileEncoding::Auto => String::new(),
        encoding => format!(" in {}", encoding.wire()),
    };
    let separator = match import.separator {
        Separator::Auto => String::new(),
        separator => format!(" the separator {},", separator.wire()),
    };
    let mut lines = vec![format!(
        "The file is {}{encoding}, with{separator} the decimal {} and dates {}.",
        import.format,
        import.decimal_sign.wire(),
        import.date_order.wire().replace('_', " "),
    )];
    for column in list(&import.columns.0) {
        let text = |name: &str| column[name].as_str().unwrap_or_default().to_string();
        let field = if text("field").is_empty() { "(ignored)".to_string() } else { text("field") };
        let read = match text("read") {
            read if read.is_empty() || read == text("sample") || text("field").is_empty() => String::new(),
            read => format!(", read as {read}"),
        };
        lines.push(format!("  {} → {field}   {}{read}", text("column"), text("sample")));
    }
    lines.extend(import.notes().into_iter().map(|note| format!("  Note: {note}")));
    for problem in list(&import.problems.0) {
        let text = |name: &str| problem[name].as_str().unwrap_or_default().to_string();
        let column = Some(text("column")).filter(|column| !column.is_empty()).map(|column| format!(", {column}"));
        lines.push(format!("  line {}{}: {}", problem["line"], column.unwrap_or_default(), text("message")));
    }
    for warning in list(&import.warnings.0).iter().filter(|warning| warning["line"] != 0) {
        let text = |name: &str| warning[name].as_str().unwrap_or_default();
        lines.push(format!("  Warning: line {}, {}: {}", warning["line"], text("column"), text("message")));
    }
    let warnings = match import.warning_count {
        0 => String::new(),
        count => format!(" and {}", counted(count, "warning")),
    };
    lines.push(format!(
        "{}, of which {} can be imported; {}{warnings}.",
        counted(import.lines, "line"),
        grouped(import.valid_lines.unsigned_abs()),
        counted(import.problem_count, "problem")
    ));
    lines.join("\n")
}

/// `1 line`, `1,200 lines`
fn counted(number: i64, what: &str) -> String {
    format!("{} {what}{}", grouped(number.unsigned_abs()), if number == 1 { "" } else { "s" })
}

/// Describes what the import did.
fn result(import: &Record) -> String {
    let number = |number: i64| grouped(number.unsigned_abs());
    let mut lines = vec![format!(
        "Import {}: {} created, {} updated, {} skipped (they exist already or count for nothing), {} failed.",
        import.base.id,
        number(import.created),
        number(import.updated),
        number(import.skipped),
        number(import.failed)
    )];
    for error in list(&import.errors.0) {
        lines.push(format!("  line {}: {}", error["line"], error["message"].as_str().unwrap_or_default()));
    }
    let report = import.report.json();
    for (name, sum) in report["source"].as_object().into_iter().flatten() {
        let of = |part: &str| report[part][name].as_str().unwrap_or_default().to_string();
        let left_out = match of("left_out").as_str() {
            "" | "0.00" => String::new(),
            sum => format!(", {sum} on lines that were left out"),
        };
        lines.push(format!(
            "  {name}: {} in the file, {} imported{left_out}, difference {}",
            sum.as_str().unwrap_or_default(),
            of("imported"),
            of("difference")
        ));
    }
    lines.join("\n")
}
