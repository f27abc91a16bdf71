use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use engine::accounts::Account;
use engine::clock::Clock;
use engine::config::Config;
use engine::heads::{self, Head};
use engine::log::Verdict;
use engine::open::open_to_read;
use engine::secrets;
use engine::secrets::key_file::{KeySource, unhex};
use engine::secrets::vault::Vault;

use super::{Progress, error_line, grouped, say};
use crate::upkeep::integrity::{Checked, Inspection, Problem, Witness};

#[derive(Args)]
pub struct Verify {
    /// Verify only this account: its records, its audit chain and its files
    #[arg(long)]
    account: Option<String>,
    /// Also compare the logs with the heads in this file, from --write-heads or audit_anchor
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Write the signed heads of all logs to this file, if there are no problems; keep it elsewhere
    #[arg(long, value_name = "FILE", conflicts_with = "account")]
    write_heads: Option<PathBuf>,
}

impl Verify {
    /// Reads the heads that were kept.
    fn kept(&self) -> Result<Vec<Head>, String> {
        let Some(path) = &self.against else { return Ok(Vec::new()) };
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let heads = heads::read(&text);
        let heads = heads.map_err(|line| format!("{}: this is not a head of a log: {line}", path.display()))?;
        match heads.is_empty() {
            true => Err(format!("{}: the file contains no heads", path.display())),
            false => Ok(heads),
        }
    }

    pub fn run(&self, config: &Config) -> Result<ExitCode, String> {
        let mut printer = Printer::new();
        let kept = self.kept()?;
        let torn = config.database_url.is_empty() && lacks_wal(&config.data.join(store::SQLITE_COPY));
        if torn {
            printer.hears(&Problem {
                account: String::new(),
                table: String::new(),
                id: store::SQLITE_COPY.to_string(),
                what: "Its WAL is missing: the file was copied while a server was running, and lacks the last writes"
                    .to_string(),
            });
        }
        let (store, blobs) = open_to_read(config).map_err(error_line)?;
        let runtime = super::runtime()?;
        let vault = secrets::for_database(&store, config);
        if let Err(error) = &vault {
            let (account, table, id) = (String::new(), "secrets".to_string(), String::new());
            let what = error.internal.as_ref().unwrap_or(&error.message).clone();
            printer.hears(&Problem { account, table, id, what });
        }
        let has_accounts = !store.read_now(Account::all_to_check).map_err(error_line)?.is_empty();
        let has_none = matches!(vault, Ok(None)) && has_accounts;
        if has_none {
            let (account, table, id) = (String::new(), "secrets".to_string(), String::new());
            let what = format!("{} does not exist, so signatures and secrets cannot be checked", KeySource::of(config));
            printer.hears(&Problem { account, table, id, what: what[..1].to_uppercase() + &what[1..] });
        }
        let (vault, lacks_key) = (vault.as_ref().ok().and_then(Option::as_ref), vault.is_err() || has_none);
        let inspection = Inspection::new(&store, &blobs, runtime.handle(), &mut printer).with_keys(vault).against(kept);
        let checked = inspection.run(self.account.as_deref()).map_err(error_line)?;
        let checked = Checked { problems: checked.problems + u64::from(torn) + u64::from(lacks_key), ..checked };
        printer.progress.clear();
        say(&summary(&checked))?;
        if let Some(path) = self.write_heads.as_ref().filter(|_| checked.problems == 0) {
            write_heads(path, &printer.heads, vault)?;
        }
        Ok(if checked.problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn write_heads(path: &Path, heads: &[(String, i64, Vec<u8>)], vault: Option<&Vault>) -> Result<(), String> {
    let vault = vault.ok_or("the heads cannot be signed without the key of the database")?;
    let signed = heads.iter().map(|(uid, seq, hash)| Head::sign(vault, uid, *seq, hash.clone()));
    let signed = signed.collect::<engine::error::Result<Vec<Head>>>().map_err(error_line)?;
    let written = std::fs::write(path, heads::written(&signed, Clock::System.now()));
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    say(&format!("Wrote the heads of the logs ({}) to {}.", grouped(signed.len() as u64), path.display()))
}

/// An open SQLite database has two more files next to it, and both are removed when it is closed: one without the other
/// is the result of an incomplete copy.
fn lacks_wal(database: &Path) -> bool {
    let beside = |end: &str| database.with_file_name(format!("{}{end}", store::SQLITE_COPY)).exists();
    beside("-shm") && !beside("-wal")
}

/// Returns the summary of a verification.
pub fn summary(checked: &Checked) -> String {
    let count = |number: u64, one: &str, many: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{} {many}", grouped(number)),
    };
    let problems = match checked.problems {
        0 => "no problems".to_string(),
        _ => count(checked.problems, "problem", "problems"),
    };
    format!(
        "Checked {}, {}, {} and {} ({} bytes): {problems}.",
        count(checked.accounts, "account", "accounts"),
        count(checked.records, "record", "records"),
        count(checked.lines, "log line", "log lines"),
        count(checked.files, "file", "files"),
        grouped(checked.bytes),
    )
}

/// Prints the findings of a verification.
pub struct Printer {
    pub progress: Progress,
    /// Whether to print intact audit chains too.
    pub chains: bool,
    /// The ends of intact chains: account, number of lines, hash.
    heads: Vec<(String, i64, Vec<u8>)>,
}

impl Printer {
    pub fn new() -> Printer {
        Printer { progress: Progress::new(), chains: true, heads: Vec::new() }
    }

    /// A closed pipe is not an error.
    fn print(&mut self, line: &str) {
        self.progress.clear();
        let _ = say(line);
    }
}

impl Witness for Printer {
    fn sees(&mut self, what: &str, count: u64) {
        let count = if count == 0 { String::new() } else { format!(": {}", grouped(count)) };
        self.progress.at(&format!("Checking {what}{count}"));
    }

    fn copies(&mut self, what: &str, done: u64) {
        self.progress.at(&format!("Copying {what}: {}", grouped(done)));
    }

    fn hears(&mut self, problem: &Problem) {
        let parts = [problem.account.as_str(), &problem.table, &problem.id];
        let place: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let place = if place.is_empty() { "database".to_string() } else { place.join("  ") };
        self.print(&format!("{place}  PROBLEM: {}", problem.what));
    }

    fn walked(&mut self, account: &Account, verdict: &Verdict) {
        if let Verdict::Whole { rows, head } = verdict {
            self.heads.push((account.uid.clone(), *rows, unhex(head).unwrap_or_default()));
        }
        match verdict {
            Verdict::Whole { rows, head } if self.chains => {
                let lines = if *rows == 1 { "line" } else { "lines" };
                self.print(&format!("{}  intact: {rows} {lines}, ending in {head}", account.uid));
            }
            Verdict::Whole { .. } => {}
            Verdict::Broken { seq, at, why } => {
                self.print(&format!("{}  BROKEN at line {seq} ({at}): {why}", account.uid));
            }
        }
    }

    fn notes(&mut self, account: &Account, what: &str) {
        self.print(&format!("{}  NOTE: {what}", account.uid));
    }

    fn remarks(&mut self, what: &str) {
        self.print(&format!("database  NOTE: {what}"));
    }

    fn misses(&mut self, what: &str) {
        self.print(what);
    }
}
