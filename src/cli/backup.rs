use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use engine::config::Config;
use engine::heads;
use engine::open::open_as_it_is;
use engine::secrets;
use engine::secrets::key_file::KeySource;
use engine::secrets::vault::Vault;

use super::verify::{Printer, summary};
use super::{error_line, runtime, say};
use crate::upkeep::backup::{self, BackupKeys, BackupOutcome};

#[derive(Args)]
pub struct Backup {
    /// Folder to create; it must not exist or must be empty
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Include the key that encrypts the secrets; without it, keep a copy of the key elsewhere
    #[arg(long)]
    with_key: bool,
}

impl Backup {
    pub fn run(&self, config: &Config) -> Result<ExitCode, String> {
        self.stays_out_of(&config.files_folder())?;
        let (store, blobs) = open_as_it_is(config).map_err(error_line)?;
        let mut printer = Printer::new();
        printer.chains = false;
        let vault = secrets::for_database(&store, config).map_err(error_line)?;
        vault.iter().try_for_each(|vault| heads::accept_earlier(&store, vault)).map_err(error_line)?;
        if let (true, Some(KeySource::Setting(_))) = (self.with_key, vault.as_ref().map(Vault::source)) {
            return Err("--with-key: the key is a setting and not a file; keep a copy of the setting".to_string());
        }
        let keys = BackupKeys { vault: vault.as_ref(), included: self.with_key && vault.is_some() };
        let made = backup::make(&store, &blobs, &runtime()?, &self.folder, keys, &mut printer)?;
        printer.progress.clear();
        match made {
            BackupOutcome::Made(checked) => {
                say(&summary(&checked))?;
                say(&format!("The backup is in {}.", self.folder.display()))?;
                vault.as_ref().map_or(Ok(()), |vault| self.name_key(vault))?;
                Ok(ExitCode::SUCCESS)
            }
            BackupOutcome::Unsound { checked, left } => {
                say(&summary(&checked))?;
                Err(format!(
                    "the copy failed verification and was left in {}; run `kantoor verify` to see whether the original has the same problems",
                    left.display()
                ))
            }
        }
    }

    /// Says whether the backup includes the key that its secrets need.
    fn name_key(&self, vault: &Vault) -> Result<(), String> {
        let (source, id) = (vault.source(), vault.ids().first().map(ToString::to_string).unwrap_or_default());
        if self.with_key {
            return say(&format!("It includes the key of its secrets ({id}): whoever has the backup can read them."));
        }
        say(&format!(
            "It does not include the key of its secrets ({id}): keep a copy of {source} elsewhere, or use --with-key. A restore needs it."
        ))
    }

    /// Rejects a folder inside the file store: the backup would look like unknown file contents there.
    fn stays_out_of(&self, files: &Path) -> Result<(), String> {
        let whole = |path: &Path| {
            // Resolves symbolic links in the part of the path that exists.
            let there = path.ancestors().find_map(|part| Some((part, part.canonicalize().ok()?)));
            match there {
                Some((part, real)) => real.join(path.strip_prefix(part).unwrap_or(path)),
                None => path.to_path_buf(),
            }
        };
        let absolute = |path: &Path| std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()));
        if whole(&absolute(&self.folder)?).starts_with(whole(&absolute(files)?)) {
            return Err(format!(
                "{} is inside {}, where files are stored; choose a folder elsewhere",
                self.folder.display(),
                files.display()
            ));
        }
        Ok(())
    }
}
