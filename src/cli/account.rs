use clap::Subcommand;
use engine::accounts;
use engine::app::App;
use engine::clock::Moment;
use serde_json::json;

use super::{error_line, say};
use crate::opening;

#[derive(Subcommand)]
pub enum Account {
    /// Create an account and a key with full access
    Create {
        /// Name of the account
        name: String,
        /// Use a test clock that stands still at this time (RFC 3339, such as 2026-01-01T09:00:00Z) until it is advanced
        #[arg(long, value_name = "TIMESTAMP")]
        test_clock: Option<String>,
        /// Time zone of the account, such as Europe/Amsterdam
        #[arg(long, value_name = "ZONE", default_value = accounts::DEFAULT_ZONE)]
        time_zone: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List all accounts
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl Account {
    pub fn run(&self, app: &App) -> Result<(), String> {
        match self {
            Account::Create { name, test_clock, time_zone, json } => {
                create(app, name, test_clock.as_deref(), time_zone, *json)
            }
            Account::List { json } => list(app, *json),
        }
    }
}

fn create(app: &App, name: &str, test_clock: Option<&str>, zone: &str, json: bool) -> Result<(), String> {
    let clock = test_clock.map(|text| {
        let moment = Moment::parse(text).filter(|moment| moment.0 > 0);
        moment.ok_or_else(|| format!("--test-clock {text}: expected a time such as 2026-01-01T09:00:00Z"))
    });
    let (account, key) = opening::create_account_in(app, name, zone, clock.transpose()?).map_err(error_line)?;
    if json {
        return say(&json!({"account": {"id": account.uid, "name": account.name}, "key": key}).to_string());
    }
    say(&format!("Created account {} ({}).\nIts API key, shown only once: {key}", account.uid, account.name))
}

fn list(app: &App, json: bool) -> Result<(), String> {
    let accounts = app.store.read_now(accounts::Account::all).map_err(error_line)?;
    if json {
        let rows = accounts.iter().map(|account| {
            json!({
                "id": account.uid, "name": account.name, "created_at": account.created_at.to_string(),
                "test_clock": account.has_test_clock,
            })
        });
        return say(&json!(rows.collect::<Vec<_>>()).to_string());
    }
    for account in accounts {
        let clock = if account.has_test_clock { "  (test clock)" } else { "" };
        say(&format!("{}  {}  {}{clock}", account.uid, account.created_at, account.name))?;
    }
    Ok(())
}
