use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use engine::accounts::Account;
use engine::app::App;
use serde_json::Value;

use super::export::named;
use super::{Progress, error_line, grouped, say};
use crate::transfer::import::{Existing, Import as Record};
use crate::transfer::operator::{self, OwnFile};
use crate::transfer::{sources, subject};

#[derive(Args)]
pub struct Import {
    /// Id of the account
    #[arg(long)]
    account: String,
    /// What the lines become, by the name of its list: clients, suppliers, products, invoices …
    resource: String,
    /// File with the lines: CSV, Excel (.xlsx) or JSON Lines
    file: PathBuf,
    /// Program that the file comes from: moneybird, teamleader, invoice_ninja, stripe or e_boekhouden
    #[arg(long, default_value = "")]
    source: String,
    /// Field of a column, as COLUMN=FIELD; without a field, the column is ignored; may be repeated
    #[arg(long = "map", value_name = "COLUMN=FIELD")]
    map: Vec<String>,
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
        let resource = subject::to_import(&self.resource).map_err(named)?;
        sources::named(&self.source).map_err(|error| format!("--{}", named(error)))?;
        let file = OwnFile { name: file_name(&self.file), bytes: read(&self.file)? };
        let pdfs = self.pdfs.as_deref().map(pack).transpose()?;
        let uid = self.account.clone();
        let account = app.store.read_now(move |tx| Account::find(tx, &uid)).map_err(error_line)?;
        let import = Record {
            resource: resource.shape.table.to_string(),
            source: self.source.clone(),
            mapping: self.mapping()?.into(),
            match_by: self.match_by.clone(),
            existing: if matches!(self.existing, Choice::Update) { Existing::Update } else { Existing::Skip },
            ..Record::default()
        };
        let checked = operator::check(app, account.clone(), &import, &file.bytes);
        let checked = checked.map_err(|error| match error.faults.first() {
            Some(fault) if fault.field == "file_id" => format!("{}: {}", self.file.display(), fault.wrong.message),
            _ => named(error),
        })?;
        say(&shown(&checked))?;
        if !self.run {
            return say("Nothing was imported. Run the command again with --run to import the lines.");
        }
        let mut progress = Progress::new();
        let total = checked.lines.unsigned_abs();
        let runtime = super::runtime()?;
        let _entered = runtime.enter();
        let done = operator::import(app, account, &checked, file, pdfs, &mut |lines| {
            progress.at(&format!("{} of {} lines", grouped(lines.unsigned_abs()), grouped(total)));
        });
        progress.clear();
        say(&result(&done.map_err(error_line)?))
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
        return Ok(OwnFile { name: file_name(path), bytes: read(path)? });
    }
    let mut pdfs = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?.path();
        if entry.extension().is_some_and(|end| end.eq_ignore_ascii_case("pdf")) {
            pdfs.push((file_name(&entry), read(&entry)?));
        }
    }
    let bytes = sheets::archive::pack(pdfs).map_err(|problem| problem.to_string())?;
    Ok(OwnFile { name: "pdfs.zip".to_string(), bytes })
}

/// Describes what the check found.
fn shown(import: &Record) -> String {
    let list = |text: &str| serde_json::from_str::<Vec<Value>>(text).unwrap_or_default();
    let mut lines = vec![format!(
        "The file is {} in {}, with the separator {}, the decimal {} and dates {}.",
        import.format,
        import.encoding.wire(),
        import.separator.wire(),
        import.decimal_sign.wire(),
        import.date_order.wire().replace('_', " "),
    )];
    for column in list(&import.columns.0) {
        let text = |name: &str| column[name].as_str().unwrap_or_default().to_string();
        let field = if text("field").is_empty() { "(ignored)".to_string() } else { text("field") };
        lines.push(format!("  {} → {field}   {}", text("column"), text("sample")));
    }
    for problem in list(&import.problems.0) {
        let text = |name: &str| problem[name].as_str().unwrap_or_default().to_string();
        lines.push(format!("  line {}, {}: {}", problem["line"], text("column"), text("message")));
    }
    lines.push(format!(
        "{}, of which {} can be imported; {}.",
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
        "Import {}: {} created, {} updated, {} skipped, {} failed.",
        import.base.id,
        number(import.created),
        number(import.updated),
        number(import.skipped),
        number(import.failed)
    )];
    for error in serde_json::from_str::<Vec<Value>>(&import.errors.0).unwrap_or_default() {
        lines.push(format!("  line {}: {}", error["line"], error["message"].as_str().unwrap_or_default()));
    }
    let report = import.report.json();
    for (name, sum) in report["source"].as_object().into_iter().flatten() {
        let of = |part: &str| report[part][name].as_str().unwrap_or_default().to_string();
        lines.push(format!(
            "  {name}: {} in the file, {} imported, difference {}",
            sum.as_str().unwrap_or_default(),
            of("imported"),
            of("difference")
        ));
    }
    if !import.failure.is_empty() {
        lines.push(import.failure.clone());
    }
    lines.join("\n")
}
