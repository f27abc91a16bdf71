use std::path::PathBuf;
use std::process::ExitCode;

use archive::Identities;
use clap::Args;
use engine::config::Config;

use super::verify::{Printer, summary};
use super::{runtime, say};
use crate::upkeep::backup::place::Place;
use crate::upkeep::restore::Restoring;

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
}

impl Restore {
    pub fn run(&self, config: &Config) -> Result<ExitCode, String> {
        let place = Place::of_existing(&self.source, config)?;
        let identities = self.identity.as_deref().map(Identities::read).transpose();
        let identities = identities.map_err(|why| format!("--identity: {why}"))?;
        let mut printer = Printer::new();
        printer.chains = false;
        let runtime = runtime()?;
        let mut restoring =
            Restoring { config, runtime: runtime.handle(), identities: identities.as_ref(), witness: &mut printer };
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
        Ok(ExitCode::SUCCESS)
    }
}
