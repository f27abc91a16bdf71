//! The command line: one file per command.

mod account;
mod arguments;
mod backup;
mod copy;
mod demo;
mod doctor;
mod domain;
mod erase;
mod export;
mod import;
mod installed;
mod jobs;
mod key;
mod logging;
mod notify;
mod progress;
mod read_worker;
mod restore;
mod secrets;
mod serve;
mod settings;
mod typeset_worker;
mod user;
mod verify;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use engine::app::App;
use engine::config::{Config, PREFIX};
use engine::error::Error;
use engine::http::openapi;
use engine::open::{self, open_store};
use engine::precaution::Migrated;
use engine::{heads, precaution, private};

use crate::{opening, registry};
use progress::Progress;

/// Self-hosted server for the records of a small business: invoices, clients, deals, tickets,
/// projects and more, with an HTTP JSON API. Stores its data in SQLite or PostgreSQL.
#[derive(Parser)]
#[command(name = "kantoor", version, arg_required_else_help = true, after_help = AFTER)]
struct Cli {
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    command: Command,
}

const AFTER: &str = "Start with:  kantoor serve
The first start creates an account and prints its key once, with an example request
and a link with which its owner signs in.";

/// Settings that every command accepts.
#[derive(Args)]
struct Settings {
    /// Configuration file; `kantoor config --default` prints all settings
    #[arg(long, global = true, env = "KANTOOR_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data folder [default: ./kantoor-data]
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<String>,
    /// Use PostgreSQL instead of the embedded database
    #[arg(long, global = true, value_name = "postgres://…", hide_env_values = true)]
    database_url: Option<String>,
    /// Any other setting, by name; may be repeated
    #[arg(long = "set", global = true, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server
    Serve(serve::Serve),
    /// Create, list, rename, close and reopen accounts
    #[command(subcommand)]
    Account(account::Account),
    /// Create, list and revoke API keys
    #[command(subcommand)]
    Key(key::Key),
    /// List e-mail domains, verify them and revoke verifications
    #[command(subcommand)]
    Domain(domain::Domain),
    /// Invite and list users, reset passwords and end sessions
    #[command(subcommand)]
    User(user::User),
    /// List failed jobs and retry them
    #[command(subcommand)]
    Jobs(jobs::Jobs),
    /// Create an account with demo data
    Demo(demo::Demo),
    /// Check a file with records, and import it with --run
    Import(Box<import::Import>),
    /// Export the records of an account to a file
    Export(export::Export),
    /// Migrate the database (serve does this automatically)
    Migrate,
    /// Back up the database and all files while the server runs, and verify the copy
    Backup(backup::Backup),
    /// Restore a backup to an empty data folder or database, or check that it can be restored
    Restore(restore::Restore),
    /// Copy a stopped database to an empty one, from SQLite to PostgreSQL or back; run it again to resume
    Copy(copy::Copy),
    /// Look at settings, disk, clock, database, mail and payments, and say what to do
    Doctor(doctor::Doctor),
    /// Verify the database, the records, the audit chains and the content of all files
    Verify(verify::Verify),
    /// Manage the key that encrypts secrets in the database
    #[command(subcommand)]
    Secrets(secrets::Secrets),
    /// Print the OpenAPI document
    Openapi,
    /// Print the effective settings, with secrets hidden
    Config {
        /// Print all settings with their defaults and descriptions
        #[arg(long)]
        default: bool,
    },
    /// Erase the personal data of a deleted record from the log
    Erase(erase::Erase),
    /// Typeset documents for a server
    #[command(hide = true)]
    TypesetWorker(typeset_worker::TypesetWorker),
    /// Read a file for a server
    #[command(hide = true)]
    ReadWorker(read_worker::ReadWorker),
    /// Print completions for your shell: source <(kantoor completions bash)
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
}

/// Runs the command given by the arguments.
pub fn main() -> ExitCode {
    arguments::hide_secrets();
    private::create_privately();
    registry::install();
    let cli = Cli::parse();
    match run(&cli) {
        Ok(code) => code,
        Err(message) => {
            for line in message.lines() {
                let _ = writeln!(std::io::stderr(), "kantoor: {line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<ExitCode, String> {
    let mut flags = cli.settings.flags()?;
    if let Command::Serve(serve) = &cli.command {
        flags.extend(serve.flags());
    }
    let environment = environment()?;
    let file = match &cli.settings.config {
        None if cli.command.means_the_installed() => installed::settings_file(&flags, &environment)?,
        named => named.clone(),
    };
    let (config, mut wrong) = Config::read(file.as_deref(), environment.into_iter(), &flags)?;
    let owner = match &cli.command {
        Command::Copy(copy) => {
            copy.folders().find_map(|folder| private::take_on_owner(folder).transpose()).transpose()?
        }
        command if command.uses_data() => private::take_on_owner(&config.data)?,
        _ => None,
    };
    if cli.command.runs_the_server() {
        settings::check(&config, &mut wrong);
    }
    if !wrong.is_empty() {
        return Err(wrong.join("\n"));
    }
    if !cli.command.creates() {
        open::must_have_data(&config).map_err(error_line)?;
    }
    let data = config.data.clone();
    perform(&cli.command, config).map_err(|why| match owner {
        Some(owner) if why.contains("ermission denied") || why.contains("may not write") => format!(
            "{why}\nas root, the command goes on as the user {}, to whom {} belongs: name a place that this user may use",
            owner.name,
            data.display()
        ),
        _ => why,
    })
}

fn perform(command: &Command, config: Config) -> Result<ExitCode, String> {
    match command {
        Command::Serve(serve) => serve.run(config).map(|()| ExitCode::SUCCESS),
        Command::Account(account) => act(config, |app| account.run(app)),
        Command::Key(key) => act(config, |app| key.run(app)),
        Command::Domain(domain) => act(config, |app| domain.run(app)),
        Command::User(user) => act(config, |app| user.run(app)),
        Command::Jobs(jobs) => act(config, |app| jobs.run(app)),
        Command::Demo(demo) => act(config, |app| demo.run(app)),
        Command::Erase(erase) => act(config, |app| erase.run(app)),
        Command::Import(import) => match &import.fields {
            Some(resource) => import::list_fields(resource).map(|()| ExitCode::SUCCESS),
            None => act(config, |app| import.run(app)),
        },
        Command::Export(export) => act(config, |app| export.run(app)),
        Command::Migrate => migrate(config).map(|()| ExitCode::SUCCESS),
        Command::Backup(backup) => backup.run(&config),
        Command::Restore(restore) => restore.run(&config),
        Command::Copy(copy) => copy.run(&config),
        Command::Doctor(doctor) => doctor.run(&config),
        Command::Verify(verify) => verify.run(&config),
        Command::Secrets(secrets) => secrets.run(config).map(|()| ExitCode::SUCCESS),
        Command::TypesetWorker(worker) => worker.run().map(|()| ExitCode::SUCCESS),
        Command::ReadWorker(worker) => worker.run().map(|()| ExitCode::SUCCESS),
        Command::Openapi => {
            let text = serde_json::to_string_pretty(&*openapi::DOCUMENT).map_err(|error| error.to_string())?;
            say(&text).map(|()| ExitCode::SUCCESS)
        }
        Command::Config { default } => {
            let text = if *default { engine::config::DEFAULTS.to_string() } else { config.shown() };
            say(text.trim_end()).map(|()| ExitCode::SUCCESS)
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "kantoor", &mut script);
            say(String::from_utf8_lossy(&script).trim_end()).map(|()| ExitCode::SUCCESS)
        }
    }
}

/// Returns the environment variables. Those of other programs need not be UTF-8.
fn environment() -> Result<Vec<(String, String)>, String> {
    let mut all = Vec::new();
    for (name, value) in std::env::vars_os() {
        let Ok(name) = name.into_string() else { continue };
        match value.into_string() {
            Ok(value) => all.push((name, value)),
            Err(_) if name.starts_with(PREFIX) => return Err(format!("{name}: the value is not valid UTF-8")),
            Err(_) => {}
        }
    }
    Ok(all)
}

impl Command {
    /// Whether the command uses the settings of the server, or tells whether they are right.
    fn runs_the_server(&self) -> bool {
        matches!(self, Command::Serve(_) | Command::Config { default: false })
    }

    /// Whether the command works on the installed server if nothing else is named. `serve` begins a new one instead: the unit of
    /// the package names its settings.
    fn means_the_installed(&self) -> bool {
        match self {
            Command::Serve(_) | Command::Copy(_) => false,
            Command::TypesetWorker(_) | Command::ReadWorker(_) => false,
            Command::Openapi | Command::Completions { .. } | Command::Config { default: true } => false,
            Command::Import(import) => import.fields.is_none(),
            _ => true,
        }
    }

    /// Whether the command creates the database if there is none, or needs none. All others report that there is none, such as
    /// after a typing error in `--data`.
    fn creates(&self) -> bool {
        match self {
            Command::Serve(_) | Command::Migrate | Command::Doctor(_) => true,
            Command::Restore(_) | Command::Copy(_) => true,
            Command::Openapi | Command::Config { .. } | Command::Completions { .. } => true,
            Command::TypesetWorker(_) | Command::ReadWorker(_) => true,
            Command::Import(import) => import.fields.is_some(),
            Command::Account(_)
            | Command::Key(_)
            | Command::Demo(_)
            | Command::Domain(_)
            | Command::User(_)
            | Command::Jobs(_)
            | Command::Export(_)
            | Command::Backup(_)
            | Command::Verify(_)
            | Command::Secrets(_)
            | Command::Erase(_) => false,
        }
    }
}

impl Command {
    /// Whether the command opens the data folder.
    fn uses_data(&self) -> bool {
        match self {
            Command::Openapi | Command::Config { .. } | Command::Completions { .. } => false,
            Command::TypesetWorker(_) | Command::ReadWorker(_) => false,
            Command::Import(import) => import.fields.is_none(),
            _ => true,
        }
    }
}

impl Settings {
    fn flags(&self) -> Result<Vec<(String, String)>, String> {
        let mut flags = Vec::new();
        for pair in &self.set {
            let (name, value) = pair.split_once('=').ok_or_else(|| format!("--set {pair}: expected NAME=VALUE"))?;
            flags.push((name.to_string(), value.to_string()));
        }
        let named = [("data", &self.data), ("database_url", &self.database_url)];
        flags.extend(named.into_iter().filter_map(|(name, value)| Some((name.to_string(), value.clone()?))));
        Ok(flags)
    }
}

/// Runs a command of the operator, and signs the logs that it wrote to: a running server does not know of them.
fn act(config: Config, work: impl FnOnce(&App) -> Result<(), String>) -> Result<ExitCode, String> {
    let app = open(config)?;
    let done = work(&app);
    heads::sign_some(&app.store, &app.site.vault, &app.wakeup.take_logged()).map_err(error_line)?;
    done.map(|()| ExitCode::SUCCESS)
}

fn open(config: Config) -> Result<std::sync::Arc<App>, String> {
    opening::open(config).map_err(error_line)
}

/// Formats an error of the engine like all errors of the command line: a phrase in lower case without a full stop. If the
/// internal cause is known, it replaces the message for callers of the API, who must not see it.
fn error_line(error: Error) -> String {
    let words = error.internal.unwrap_or(error.message);
    let words = words.strip_suffix('.').unwrap_or(&words);
    let mut letters = words.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            format!("{}{}", first.to_lowercase(), &words[first.len_utf8()..])
        }
        _ => words.to_string(),
    }
}

fn migrate(config: Config) -> Result<(), String> {
    let is_new = open::must_have_data(&config).is_err();
    let store = open_store(&config).map_err(error_line)?;
    let Migrated { applied, uncopied } = precaution::migrate(&store, &config).map_err(error_line)?;
    if let Some(why) = uncopied {
        let _ = writeln!(
            std::io::stderr(),
            "kantoor: warning: no backup was made before the migration, because {why}; make one yourself before an upgrade, or set backup_before_migration to \"require\""
        );
    }
    match applied.len() {
        _ if is_new => say("Created the database; `kantoor serve` or `kantoor account create` creates an account."),
        0 => say("The database is up to date."),
        1 => say("Applied 1 migration; the database is up to date."),
        many => say(&format!("Applied {many} migrations; the database is up to date.")),
    }
}

/// Prints a line; a closed pipe is not an error.
fn say(text: &str) -> Result<(), String> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// `1,234,567`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The runtime that reads and writes file contents for a command. It has a thread of its own: a connection to a store that
/// nobody attends to would be used again, and not answer.
fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    built.map_err(|error| format!("cannot start threads: {error}"))
}
