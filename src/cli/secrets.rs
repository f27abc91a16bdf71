use clap::Subcommand;
use engine::accounts::{self, Account};
use engine::app::App;
use engine::config::Config;
use engine::heads;
use engine::log::{self, Event};
use engine::open::open_as_it_is;
use engine::registry::registry;
use engine::secrets::key_file::KeySource;
use engine::secrets::vault::Vault;
use serde_json::json;

use super::{error_line, grouped, open, say};
use crate::automation::versions;
use crate::keys::old;
use crate::opening;
use crate::people::operator;
use crate::settings::account;
use crate::webhooks::endpoint;

#[derive(Subcommand)]
pub enum Secrets {
    /// Create a new key and encrypt all secrets with it
    Rotate,
    /// Accept accounts, users, keys, settings, identities, mandates, e-mail domains, webhook endpoints and flows that were changed with
    /// SQL: encrypt secrets, log the changes and sign the logs
    Trust,
    /// Start over after the key was lost: links stop working, Mollie keys, webhook secrets and authenticator apps must be set again
    Reset,
}

impl Secrets {
    pub fn run(&self, config: Config) -> Result<(), String> {
        match self {
            Secrets::Rotate => rotate(&*open(config)?),
            Secrets::Trust => trust(config),
            Secrets::Reset => reset(config),
        }
    }
}

/// The file has both keys before the database changes, so nothing is lost if this is interrupted.
fn rotate(app: &App) -> Result<(), String> {
    let source = app.site.vault.source();
    if let KeySource::File(_) = source {
        source.rotate().map_err(error_line)?;
    }
    let vault = Vault::load(&app.config).map_err(error_line)?.ok_or("the key is missing")?;
    let vault = std::sync::Arc::new(vault);
    let count = engine::secrets::encrypt_again(&app.store, &vault, registry().secrets).map_err(error_line)?;
    heads::sign_again(&app.store, &vault, false).map_err(error_line)?;
    opening::sign_rows(app, &vault, false).map_err(error_line)?;
    tell(app, "account.secrets_rotated")?;
    heads::sign_some(&app.store, &vault, &app.wakeup.take_logged()).map_err(error_line)?;
    let current = vault.ids().first().map(ToString::to_string).unwrap_or_default();
    say(&format!(
        "Encrypted {} secrets with the key {current}. Backups from before need the previous keys, which {source} still has.",
        grouped(count)
    ))
}

fn trust(config: Config) -> Result<(), String> {
    let app = open(config)?;
    let vault = &app.site.vault;
    engine::secrets::encrypt_plain(&app.store, vault, registry().secrets).map_err(error_line)?;
    opening::sign_rows(&app, vault, true).map_err(error_line)?;
    let unreadable = log_changes(&app)?;
    tell(&app, accounts::TRUSTED)?;
    heads::sign_again(&app.store, vault, true).map_err(error_line)?;
    say(
        "Accounts, users, keys, settings, identities, mandates, e-mail domains, webhook endpoints and flows are accepted as they are and logged, secrets are encrypted and logs are signed. `kantoor verify` names what else does not match.",
    )?;
    match unreadable.as_slice() {
        [] => Ok(()),
        some => Err(format!(
            "These records cannot be read, so they were left as they are. Restore them from a backup, then run this again:\n{}",
            some.join("\n")
        )),
    }
}

/// Logs users, keys, settings and the like that were changed outside the program, so that the logs show them as they are. Returns
/// a line about each record that cannot be read.
fn log_changes(app: &App) -> Result<Vec<String>, String> {
    let mut unreadable = Vec::new();
    for account in app.store.read_now(Account::all).map_err(error_line)? {
        for resource in registry().resources.iter().filter(|resource| resource.guarded) {
            let mut after = String::new();
            loop {
                let (caller, from) = (app.acting(account.clone(), "operator"), after);
                let noted = app.store.write_now(account.number, move |tx| {
                    let ctx = caller.writing(tx)?;
                    (resource.accept)(tx, &ctx, &from)
                });
                let accepted = noted.map_err(error_line)?;
                let table = resource.shape.table;
                unreadable.extend(accepted.unreadable.iter().map(|(id, what)| format!("{table}  {id}  {what}")));
                after = accepted.last;
                if after.is_empty() {
                    break;
                }
            }
        }
        let (number, mut after) = (account.number, Some((String::new(), 0)));
        while let Some(from) = after {
            let restored = app.store.write_now(number, move |tx| versions::restore_some(tx, number, &from));
            after = restored.map_err(error_line)?;
        }
        let caller = app.acting(account, "operator");
        let accepted = app.store.write_now(number, move |tx| {
            let ctx = caller.writing(tx)?;
            endpoint::restore_places(tx, number)?;
            old::accept_missing(tx, &ctx)?;
            operator::accept_missing(tx, &ctx)?;
            account::accept(tx, &ctx)
        });
        accepted.map_err(error_line)?;
    }
    Ok(unreadable)
}

/// Writes to all logs what the operator did.
fn tell(app: &App, name: &'static str) -> Result<(), String> {
    for account in app.store.read_now(Account::all).map_err(error_line)? {
        let (number, uid) = (account.number, account.uid.clone());
        let caller = app.acting(account, "operator");
        let written = app.store.write_now(number, move |tx| {
            let ctx = caller.writing(tx)?;
            let data = json!({"id": uid}).to_string();
            log::append(tx, &ctx, &Event { name, entity_type: "account", entity_id: &uid, data: &data })
        });
        written.map_err(error_line)?;
    }
    Ok(())
}

fn reset(config: Config) -> Result<(), String> {
    let (store, _) = open_as_it_is(&config).map_err(error_line)?;
    if engine::secrets::for_database(&store, &config).is_ok() {
        return Err("the key of the secrets is there; nothing is reset".to_string());
    }
    engine::secrets::forget_signing_key(&store).map_err(error_line)?;
    drop(store);
    let app = open(config)?;
    opening::sign_rows(&app, &app.site.vault, true).map_err(error_line)?;
    tell(&app, "account.secrets_reset")?;
    // Nobody can check the signatures any more, so the logs are trusted as they are.
    heads::sign_again(&app.store, &app.site.vault, true).map_err(error_line)?;
    say(
        "Links have a new key. Set the Mollie keys again, rotate the webhook secrets and remove the second factors (`kantoor user remove-two-factor`) that `kantoor verify` lists.",
    )
}
