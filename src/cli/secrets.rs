use clap::Subcommand;
use engine::app::App;
use engine::registry::registry;
use engine::secrets::key_file::KeySource;
use engine::secrets::vault::Vault;

use super::{grouped, say, told};

#[derive(Subcommand)]
pub enum Secrets {
    /// Create a new key and encrypt all secrets with it
    Rotate,
}

impl Secrets {
    pub fn run(&self, app: &App) -> Result<(), String> {
        match self {
            Secrets::Rotate => rotate(app),
        }
    }
}

/// The file has both keys before the database changes, so nothing is lost if this is interrupted.
fn rotate(app: &App) -> Result<(), String> {
    let source = app.site.vault.source();
    if let KeySource::File(_) = source {
        source.rotate().map_err(told)?;
    }
    let vault = Vault::load(&app.config).map_err(told)?.ok_or("the key is missing")?;
    let vault = std::sync::Arc::new(vault);
    let count = engine::secrets::encrypt_again(&app.store, &vault, registry().secrets).map_err(told)?;
    let current = vault.ids().first().map(ToString::to_string).unwrap_or_default();
    say(&format!(
        "Encrypted {} secrets with the key {current}. Backups from before need the previous keys, which {source} still has.",
        grouped(count)
    ))
}
