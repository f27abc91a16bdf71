use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::verify::{Printer, summary};
use super::{runtime, say};
use crate::app::open_as_it_is;
use crate::backup::{self, Outcome};
use crate::config::Config;

#[derive(Args)]
pub struct Backup {
    /// The folder to make; it must not exist, or be empty
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

impl Backup {
    pub fn run(&self, config: &Config) -> Result<ExitCode, String> {
        let (store, blobs) = open_as_it_is(config).map_err(|error| error.to_string())?;
        let mut printer = Printer::new();
        printer.chains = false;
        let made = backup::make(&store, &blobs, &runtime()?, &self.folder, &mut printer)?;
        printer.progress.clear();
        match made {
            Outcome::Made(checked) => {
                say(&summary(&checked))?;
                say(&format!("The backup is in {}.", self.folder.display()))?;
                Ok(ExitCode::SUCCESS)
            }
            Outcome::Unsound { checked, left } => {
                say(&summary(&checked))?;
                Err(format!(
                    "the copy did not pass its check and was left in {}; see with `kantoor verify` whether the \
                     original has the same problems",
                    left.display()
                ))
            }
        }
    }
}
