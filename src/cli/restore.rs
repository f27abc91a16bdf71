use std::path::PathBuf;
use std::process::ExitCode;

use archive::Identities;
use clap::Args;
use engine::config::Config;

use super::verify::{Printer, summary};
use super::{runtime, say};
use crate::upkeep::backup::place::Place;
use crate::upkeep::restore::{Restored, Restoring};
use crate::upkeep::scheduled::proof::Ledger;

#[derive(Args)]
pub struct Restore {
    /// The backup: a file, s3://bucket/name, or a folder
    #[arg(value_name = "FILE|FOLDER|s3://…")]
    source: String,
    /// File with the age identity that decrypts the backup
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Restore to a temporary place, verify everything, and delete it again
    #[arg(long)]
    check: bool,
    /// Accept a backup although nothing proves who made it: it is not signed, or the key that signed it is gone
    #[arg(long)]
    trust_unsigned: bool,
    /// Record that the last scheduled backup, with this name, was checked on another machine
    #[arg(long, conflicts_with_all = ["check", "identity", "trust_unsigned"])]
    checked_elsewhere: bool,
}

impl Restore {
    pub fn run(&self, config: &Config) -> Result<ExitCode, String> {
        if self.checked_elsewhere {
            return self.record_elsewhere(config);
        }
        let place = Place::of_existing(&self.source, config)?;
        let identities = self.identity.as_deref().map(Identities::read).transpose();
        let identities = identities.map_err(|why| format!("--identity: {why}"))?;
        let ledger = if self.check { Ledger::read(config) } else { None };
        let mut printer = Printer::new();
        printer.chains = false;
        let runtime = runtime()?;
        let mut restoring = Restoring {
            config,
            runtime: runtime.handle(),
            identities: identities.as_ref(),
            trusts_unsigned: self.trust_unsigned,
            witness: &mut printer,
        };
        let done = if self.check { restoring.check(&place) } else { restoring.restore(&place) };
        printer.progress.clear();
        let done = done?;
        say(&summary(&done.checked))?;
        done.notes.iter().try_for_each(|note| say(note))?;
        if done.checked.problems > 0 {
            return Err(format!("{place} failed verification"));
        }
        let made = &done.manifest.started_at;
        match (self.check, config.database_url.as_str()) {
            (true, _) => say(&format!("{place} of {made} can be restored.")),
            (false, "") => say(&format!("Restored {place} of {made} to {}.", config.data.display())),
            (false, _) => say(&format!("Restored {place} of {made} to the database.")),
        }?;
        if let Some(ledger) = ledger {
            self.record(config, &ledger, &done)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Records a check. The backup is good also if that is not possible.
    fn record(&self, config: &Config, ledger: &Ledger, done: &Restored) -> Result<(), String> {
        match ledger.record(config, done.id.as_ref(), &done.manifest, self.name()) {
            Ok(Some(sentence)) => say(&sentence),
            Ok(None) => Ok(()),
            Err(why) => say(&format!("The server does not know of this check: {why}.")),
        }
    }

    fn record_elsewhere(&self, config: &Config) -> Result<ExitCode, String> {
        let ledger = Ledger::read(config).ok_or(
            "the check can only be recorded with the settings of the server that made the backup: name them with --config, or with --data or --database-url",
        )?;
        let name = self.name();
        ledger.record_elsewhere(config, name)?;
        say(&format!("The server knows now that {name} can be restored."))?;
        Ok(ExitCode::SUCCESS)
    }

    /// The name of the backup without its folder.
    fn name(&self) -> &str {
        let source = self.source.trim_end_matches('/');
        source.rsplit('/').next().unwrap_or(source)
    }
}
