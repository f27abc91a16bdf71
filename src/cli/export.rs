use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::PathBuf;

use clap::Args;
use engine::accounts::Account;
use engine::app::App;
use engine::config::is_url;
use sheets::Format;

use super::{Progress, error_line, grouped, say};
use crate::transfer::export::Table;
use crate::transfer::subject;

#[derive(Args)]
pub struct Export {
    /// Id of the account
    #[arg(long)]
    account: String,
    /// What to export, by the name of its list: clients, products, invoices, project_hours …
    resource: String,
    /// File to write, which must not exist; its extension is the format: .csv, .xlsx or .jsonl
    file: PathBuf,
    /// Separate the values of CSV with semicolons, with decimal commas, as Excel expects in most of Europe
    #[arg(long)]
    semicolons: bool,
}

impl Export {
    pub fn run(&self, app: &App) -> Result<(), String> {
        let extension = self.file.extension().and_then(|end| end.to_str()).unwrap_or_default().to_lowercase();
        let format = Format::named(&extension);
        let format =
            format.ok_or_else(|| format!("{}: the name must end in .csv, .xlsx or .jsonl", self.file.display()))?;
        if self.semicolons && format != Format::Csv {
            return Err(format!("{}: only .csv has semicolons", self.file.display()));
        }
        let resource = subject::to_export(&self.resource).map_err(named)?;
        let uid = self.account.clone();
        let account = app.store.read_now(move |tx| Account::find(tx, &uid)).map_err(error_line)?;
        if is_url(&self.file.to_string_lossy()) {
            return Err("the records are exported to a file of this machine, not to a URL".to_string());
        }
        let failed = |error: std::io::Error| format!("{}: {}", self.file.display(), plain(&error));
        let file = File::create_new(&self.file).map_err(failed)?;
        let mut out = BufWriter::new(Noting { file, failure: None });
        let (table, mut progress) = (Table::whole(resource, account.number, format, self.semicolons), Progress::new());
        let caller = app.acting(account, "operator");
        let written = table.write(app, &caller, &mut out, &mut |count| {
            progress.at(&format!("{} records", grouped(count)));
        });
        progress.clear();
        let done = written.map_err(error_line).and_then(|count| {
            out.flush().map_err(failed)?;
            out.get_ref().file.sync_all().map_err(failed)?;
            Ok(count)
        });
        // The reason of the disk is better than what the export makes of it.
        let done = done.map_err(|why| match &out.get_ref().failure {
            Some(failure) => format!("{}: {failure}", self.file.display()),
            None => why,
        });
        let count = done.inspect_err(|_| {
            // A part of the records looks like all of them.
            let _ = std::fs::remove_file(&self.file);
        })?;
        say(&format!("Exported {} {} to {}.", grouped(count), self.resource, self.file.display()))
    }
}

/// A file that keeps the reason why it could not be written.
struct Noting {
    file: File,
    failure: Option<String>,
}

impl Write for Noting {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes).inspect_err(|error| self.failure = Some(plain(error)))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Says why a file cannot be written; a phrase.
fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::AlreadyExists => "the file exists already; choose another name".to_string(),
        ErrorKind::NotFound => "its folder does not exist".to_string(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "the disk is full; nothing was exported".to_string(),
        ErrorKind::PermissionDenied => "this user may not write there".to_string(),
        _ => error.to_string(),
    }
}

/// Names the argument that is wrong.
pub fn named(error: engine::error::Error) -> String {
    match error.faults.first() {
        Some(fault) => format!("{}: {}", fault.field, fault.wrong.message),
        None => error_line(error),
    }
}
