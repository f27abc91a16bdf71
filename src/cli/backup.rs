use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use archive::Recipients;
use clap::Args;
use engine::config::Config;
use engine::open::open_as_it_is;
use engine::secrets;
use engine::secrets::key_file::KeySource;
use engine::secrets::vault::Vault;
use store::Store;

use super::verify::{Printer, summary};
use super::{error_line, grouped, runtime, say};
use crate::upkeep::backup::place::Place;
use crate::upkeep::backup::{BackupKeys, BackupOutcome, Making};
use crate::upkeep::scheduled::schedule::{self, Schedule};
use crate::upkeep::scheduled::{self, Source};

#[derive(Args)]
pub struct Backup {
    /// A file (its name ends in .kantoor, .tar.zst or .age), s3://bucket/name, or a folder; it must not exist yet. Without it, the
    /// backup is made as the server makes them, in the place of the setting backup_to
    #[arg(value_name = "FILE|FOLDER|s3://…")]
    target: Option<String>,
    /// Include the key that encrypts the secrets; without it, keep a copy of the key elsewhere
    #[arg(long, requires = "target")]
    with_key: bool,
    /// Encrypt the backup to this age recipient; may be repeated [default: backup_recipient]
    #[arg(long, value_name = "age1…", requires = "target")]
    to: Vec<String>,
    /// Do not encrypt the backup, although backup_recipient is set
    #[arg(long, conflicts_with = "to", requires = "target")]
    unencrypted: bool,
}

/// The exit code of a wrong command line.
const USAGE: u8 = 2;

impl Backup {
    pub fn run(&self, config: &Config) -> Result<ExitCode, String> {
        let Some(target) = &self.target else { return make_scheduled(config) };
        let recipients = self.recipients(config)?;
        if target.to_lowercase().ends_with(".age") && recipients.is_empty() {
            let why = "a name that ends in .age is for an encrypted backup: name a recipient with --to age1…, or choose another name";
            let _ = writeln!(std::io::stderr(), "kantoor: {target}: {why}");
            return Ok(ExitCode::from(USAGE));
        }
        let place = Place::of_new(target, config)?;
        if let (Place::Folder(_), true, false) = (&place, self.to.is_empty(), recipients.is_empty()) {
            return Err(format!(
                "{place}: backup_recipient is set, and an encrypted backup is one file: choose a name that ends in .kantoor, or use --unencrypted"
            ));
        }
        if let Place::Folder(path) | Place::File(path) = &place {
            stays_out_of(path, &config.files_folder())?;
        }
        let (store, blobs) = open_as_it_is(config).map_err(error_line)?;
        let mut printer = Printer::new();
        printer.chains = false;
        let vault = load_keys(&store, config)?;
        if let (true, Some(KeySource::Setting(_))) = (self.with_key, vault.as_ref().map(Vault::source)) {
            return Err("--with-key: the key is a setting and not a file; keep a copy of the setting".to_string());
        }
        let keys = BackupKeys { vault: vault.as_ref(), included: self.with_key && vault.is_some() };
        let runtime = runtime()?;
        let mut making = Making {
            store: &store,
            blobs: &blobs,
            runtime: runtime.handle(),
            keys,
            recipients: &recipients,
            workplace: &config.data,
            witness: &mut printer,
        };
        let made = making.run(&place)?;
        printer.progress.clear();
        match made {
            BackupOutcome::Made { checked, bytes } => {
                say(&summary(&checked))?;
                match &place {
                    Place::Folder(_) => say(&format!("The backup is in {place}."))?,
                    _ => say(&format!("The backup is {place} ({} bytes).", grouped(bytes)))?,
                }
                if self.to.is_empty() && !recipients.is_empty() {
                    say("It is encrypted to the recipients in the setting backup_recipient.")?;
                }
                vault.as_ref().map_or(Ok(()), |vault| name_key(vault, self.with_key, &recipients))?;
                Ok(ExitCode::SUCCESS)
            }
            BackupOutcome::Unsound { checked, left } => {
                say(&summary(&checked))?;
                let left = left.map(|left| format!(" and was left in {}", left.display())).unwrap_or_default();
                Err(format!(
                    "the copy failed verification{left}; run `kantoor verify` to see whether the original has the same problems"
                ))
            }
        }
    }

    /// Returns who can decrypt the backup: those of the command, or else those of scheduled backups.
    fn recipients(&self, config: &Config) -> Result<Recipients, String> {
        match self.to.is_empty() {
            _ if self.unencrypted => Ok(Recipients::default()),
            true => schedule::recipients(config),
            false => Recipients::parse(self.to.iter().map(String::as_str)).map_err(|why| format!("--to: {why}")),
        }
    }
}

/// Makes a backup as the server does when one is due.
fn make_scheduled(config: &Config) -> Result<ExitCode, String> {
    let schedule = Schedule::of(config)?;
    let schedule = schedule.ok_or(
        "name a target, such as `kantoor backup monday.kantoor`; without one, the setting backup_to must say where backups are stored",
    )?;
    let (store, blobs) = open_as_it_is(config).map_err(error_line)?;
    let vault = load_keys(&store, config)?;
    let (runtime, mut printer) = (runtime()?, Printer::new());
    printer.chains = false;
    let source = Source { store: &store, blobs: &blobs, config, runtime: runtime.handle(), vault: vault.as_ref() };
    let made = scheduled::make_now(&source, &schedule, &mut printer);
    printer.progress.clear();
    let made = made?;
    say(&summary(&made.checked))?;
    say(&format!("The backup is {} ({} bytes).", made.place, grouped(made.bytes)))?;
    vault.as_ref().map_or(Ok(()), |vault| name_key(vault, schedule.with_key, &schedule.recipients))?;
    match made.undeleted {
        Some(why) => Err(format!("the backup was made, but old ones could not be deleted: {why}")),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn load_keys(store: &Store, config: &Config) -> Result<Option<Vault>, String> {
    secrets::for_database(store, config).map_err(error_line)
}

/// Says whether the backup includes the key that its secrets need.
fn name_key(vault: &Vault, with_key: bool, recipients: &Recipients) -> Result<(), String> {
    let (source, id) = (vault.source(), vault.ids().first().map(ToString::to_string).unwrap_or_default());
    if with_key {
        let who = if recipients.is_empty() { "has" } else { "can decrypt" };
        return say(&format!("It includes the key of its secrets ({id}): whoever {who} the backup can read them."));
    }
    say(&format!(
        "It does not include the key of its secrets ({id}): keep a copy of {source} elsewhere, or use --with-key. A restore needs it."
    ))
}

/// Rejects a target inside the file store: the backup would look like unknown file contents there.
fn stays_out_of(target: &Path, files: &Path) -> Result<(), String> {
    let whole = |path: &Path| {
        // Resolves symbolic links in the part of the path that exists.
        let there = path.ancestors().find_map(|part| Some((part, part.canonicalize().ok()?)));
        match there {
            Some((part, real)) => real.join(path.strip_prefix(part).unwrap_or(path)),
            None => path.to_path_buf(),
        }
    };
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()));
    if whole(&absolute(target)?).starts_with(whole(&absolute(files)?)) {
        return Err(format!(
            "{} is inside {}, where files are stored; choose a folder elsewhere",
            target.display(),
            files.display()
        ));
    }
    Ok(())
}
