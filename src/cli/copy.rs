use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use engine::accounts::Account;
use engine::config::Config;
use engine::contents::hex;
use engine::error::Error;
use engine::open::unusable;
use engine::takeover::{self, Alone, LOCK};
use engine::{log, migrations, nodes};
use sha2::{Digest, Sha256};
use store::{Database, Options, Store, Transfer, TransferStep};

use super::{Progress, error_line, grouped, say};

#[derive(Args)]
pub struct Copy {
    /// The database to copy: postgres://…, or a data folder
    #[arg(long, value_name = "URL|DIR", env = "KANTOOR_COPY_FROM", hide_env = true)]
    from: String,
    /// The database to copy to, which must be empty: postgres://…, or a data folder
    #[arg(long, value_name = "URL|DIR", env = "KANTOOR_COPY_TO", hide_env = true)]
    to: String,
}

/// One of the two databases.
struct Side {
    flag: &'static str,
    database: Database,
    /// The settings with which it would be opened.
    config: Config,
}

impl Copy {
    /// The data folders that are named.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        let named = [&self.to, &self.from].into_iter().filter(|side| !side.contains("://"));
        named.map(|side| Path::new(folder(side)))
    }

    pub fn run(&self, config: &Config) -> Result<ExitCode, String> {
        let (from, to) = (Side::parse("--from", &self.from, config)?, Side::parse("--to", &self.to, config)?);
        if same(&from.database, &to.database) {
            return Err("--from and --to are the same database".to_string());
        }
        must_exist(&from)?;
        let new = to.new_paths();
        let done = self.transfer(&from, &to);
        if done.is_err() {
            to.remove_new(&new);
        }
        done
    }

    fn transfer(&self, from: &Side, to: &Side) -> Result<ExitCode, String> {
        // Held until the end.
        let _alone = (from.claim()?, to.claim()?);
        let source = fingerprint(&from.database).map_err(|why| format!("--from: {why}"))?;
        let all = migrations::all();
        let transfer = Transfer { from: &from.database, to: &to.database, migrations: &all, source: &source };
        let mut progress = Progress::new();
        let copied = transfer.run(&mut |step| match step {
            TransferStep::Copying(table, rows) => progress.at(&format!("Copying {table}: {}", grouped(rows))),
            TransferStep::Comparing(table, rows) => progress.at(&format!("Comparing {table}: {}", grouped(rows))),
        });
        progress.clear();
        let copied = copied.map_err(|error| error_line(error.into()))?;
        for table in copied.iter().filter(|table| table.rows > 0) {
            say(&format!("{:<28}{:>14} rows  {}", table.table, grouped(table.rows), &hex(&table.sha256)[..16]))?;
        }
        let rows = copied.iter().map(|table| table.rows).sum();
        say(&format!("Copied {} rows of {} tables; both databases have the same rows.", grouped(rows), copied.len()))?;
        say(
            "Files and the key of the secrets were not copied: keep the settings files and secret_key_file, or copy the folder files and secret.key.",
        )?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the data folder that a side names.
fn folder(text: &str) -> &str {
    text.strip_prefix("sqlite:").unwrap_or(text)
}

impl Side {
    fn parse(flag: &'static str, text: &str, config: &Config) -> Result<Side, String> {
        let mut config = config.clone();
        let database = if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            config.database_url = text.to_string();
            Database::Postgres(text.to_string())
        } else if text.contains("://") {
            return Err(format!("{flag}: expected postgres://… or a data folder"));
        } else {
            (config.data, config.database_url) = (PathBuf::from(folder(text)), String::new());
            Database::Sqlite(config.data.join(store::SQLITE_COPY))
        };
        Ok(Side { flag, database, config })
    }

    /// Returns what claiming a data folder creates, in the order in which it can be removed again.
    fn new_paths(&self) -> Vec<PathBuf> {
        if !self.config.database_url.is_empty() {
            return Vec::new();
        }
        let lock = self.config.data.join(LOCK);
        let is_new = |part: &&Path| !part.as_os_str().is_empty() && !part.exists();
        lock.ancestors().take_while(is_new).map(Path::to_path_buf).collect()
    }

    /// Removes what a copy that was refused has created, unless there is a part of a copy, which can be resumed.
    fn remove_new(&self, new: &[PathBuf]) {
        if self.config.data.join(store::SQLITE_COPY).exists() {
            return;
        }
        for path in new {
            let _ = if path.is_dir() { std::fs::remove_dir(path) } else { std::fs::remove_file(path) };
        }
    }

    /// Makes sure that no server uses the database, and keeps servers away from a data folder.
    fn claim(&self) -> Result<Option<Alone>, String> {
        let told = |why: String| format!("{}: {why}", self.flag);
        match &self.database {
            Database::Sqlite(_) => match unusable(&self.config) {
                Some(why) => Err(told(why)),
                None => {
                    let claimed = takeover::try_claim(&self.config).map_err(|error| told(error_line(error)))?;
                    let place = self.config.data.display();
                    let used_by = |server: String| format!("a {server} is using the folder {place}; stop it first");
                    claimed.map(Some).map_err(|server| told(used_by(server)))
                }
            },
            Database::Postgres(url) => must_be_unused(url).map(|()| None).map_err(told),
        }
    }
}

fn must_exist(from: &Side) -> Result<(), String> {
    engine::open::must_have_data(&from.config).map_err(|error| {
        let message = error_line(error);
        // What to do about it is different here.
        format!("--from: {}", message.split(". ").next().unwrap_or_default())
    })
}

/// A node writes a heartbeat every other second.
fn must_be_unused(url: &str) -> Result<(), String> {
    let store = reading(&Database::Postgres(url.to_string())).map_err(|error| error.to_string())?;
    match nodes::any_alive(&store) {
        Ok(false) => Ok(()),
        Ok(true) => Err("a server is running on this database; stop it first".to_string()),
        Err(error) => Err(error_line(error)),
    }
}

fn reading(database: &Database) -> Result<Store, store::Error> {
    let mut options = Options::new(database.clone());
    options.readers = 1;
    Store::open_to_read(&options)
}

/// Identifies the content of a database: every change has a log line.
fn fingerprint(database: &Database) -> Result<String, String> {
    let read = || {
        let store = reading(database)?;
        store.read_now(|tx| {
            let mut hash = Sha256::new();
            for account in Account::all(tx)? {
                hash.update(account.uid.as_bytes());
                hash.update(log::last(tx, account.number)?.to_be_bytes());
            }
            Ok::<_, Error>(hex(&hash.finalize()))
        })
    };
    read().map_err(error_line)
}

fn same(from: &Database, to: &Database) -> bool {
    match (from, to) {
        (Database::Sqlite(from), Database::Sqlite(to)) => {
            let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
            whole(from) == whole(to)
        }
        (Database::Postgres(from), Database::Postgres(to)) => from == to,
        _ => false,
    }
}
