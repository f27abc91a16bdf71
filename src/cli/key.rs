use clap::Subcommand;
use engine::accounts::{self, Account, NewKey};
use engine::app::App;
use engine::clock::Moment;
use engine::record::parse_date;
use serde_json::json;
use web::Network;

use super::user::chosen;
use super::{error_line, say};
use crate::keys::operator;

#[derive(Subcommand)]
pub enum Key {
    /// Create a key; it is shown only once
    Create {
        /// Id of the account that the key belongs to; not needed if there is only one
        #[arg(long)]
        account: Option<String>,
        /// Comma-separated scopes: invoices.read,products.write; or '*' for full access (quote it)
        #[arg(long, value_delimiter = ',', required = true)]
        scopes: Vec<String>,
        /// Name of the key
        #[arg(long, default_value = "")]
        name: String,
        /// When the key expires: a date (YYYY-MM-DD) or a time (2027-01-31T09:00:00Z)
        #[arg(long, value_name = "DATE")]
        expires: Option<String>,
        /// Comma-separated networks that the key can be used from: 203.0.113.7,10.0.0.0/8,2001:db8::/32
        #[arg(long, value_delimiter = ',', value_name = "CIDR")]
        networks: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the keys of an account, without their secrets
    List {
        /// Id of the account; not needed if there is only one
        #[arg(long)]
        account: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key; takes effect within a second on every node
    Revoke {
        /// Id of the key
        id: String,
    },
}

impl Key {
    pub fn run(&self, app: &App) -> Result<(), String> {
        let done = match self {
            Key::Create { account, scopes, name, expires, networks, json } => {
                let account = chosen(app, account.as_deref())?;
                let end = expires.as_deref().map(|text| end(text, &account, app.clock.now())).transpose()?;
                let new = NewKey { name: name.clone(), scopes: scopes.clone(), expires_at: end };
                create(app, account, &new, networks, *json)?
            }
            Key::List { account, json } => list(app, &chosen(app, account.as_deref())?, *json)?,
            Key::Revoke { id } => revoke(app, id)?,
        };
        say(&done)
    }
}

fn create(app: &App, account: Account, new: &NewKey, networks: &[String], json: bool) -> Result<String, String> {
    let networks: Result<Vec<Network>, String> = networks.iter().map(|text| text.parse()).collect();
    let networks = networks.map_err(|wrong| format!("--networks: {wrong}"))?;
    let secret = accounts::new_secret().map_err(error_line)?;
    let id = operator::create(app, account, &secret, new, &networks).map_err(error_line)?;
    if json {
        return Ok(json!({"id": id, "key": secret}).to_string());
    }
    Ok(format!("Created key {id}.\nThe API key, shown only once: {secret}"))
}

/// A date starts at midnight in the account's time zone.
fn end(text: &str, account: &Account, now: Moment) -> Result<Moment, String> {
    let day = parse_date(text).ok().map(|date| Moment::start_of(date, &account.zone));
    let end = day.or_else(|| Moment::parse(text));
    let end = end.ok_or_else(|| format!("--expires {text}: expected a date such as 2027-01-31"))?;
    if end <= now { Err(format!("--expires {text}: the date is in the past")) } else { Ok(end) }
}

fn list(app: &App, account: &Account, json: bool) -> Result<String, String> {
    let number = account.number;
    let keys = app.store.read_now(move |tx| accounts::Key::of_account(tx, number)).map_err(error_line)?;
    let moment = |moment: Moment| (moment.0 != 0).then(|| moment.to_string());
    if json {
        let rows = keys.iter().map(|key| {
            json!({
                "id": key.id, "name": key.name, "starts_with": key.hint, "scopes": key.scopes,
                "created_at": key.created_at.to_string(), "expires_at": moment(key.expires_at),
                "revoked_at": moment(key.revoked_at), "last_used_at": moment(key.last_used_at),
                "allowed_networks": key.networks.iter().map(ToString::to_string).collect::<Vec<_>>(),
            })
        });
        return Ok(json!(rows.collect::<Vec<_>>()).to_string());
    }
    let lines: Vec<String> = keys
        .iter()
        .map(|key| {
            let state = match (moment(key.revoked_at), moment(key.expires_at)) {
                (Some(when), _) => format!("revoked {when}"),
                (None, Some(when)) => format!("expires {when}"),
                (None, None) => "no expiry".to_string(),
            };
            let used = moment(key.last_used_at).map_or("never used".to_string(), |when| format!("used {when}"));
            let networks: Vec<String> = key.networks.iter().map(ToString::to_string).collect();
            let from = match networks.is_empty() {
                true => "from anywhere".to_string(),
                false => format!("from {}", networks.join(",")),
            };
            format!("{}  {}…  {}  {from}  {state}  {used}  {}", key.id, key.hint, key.scopes.join(","), key.name)
        })
        .collect();
    Ok(lines.join("\n"))
}

fn revoke(app: &App, id: &str) -> Result<String, String> {
    operator::revoke(app, id).map_err(error_line)?;
    Ok(format!("Revoked key {id}."))
}
