use clap::Subcommand;
use engine::accounts;
use engine::app::App;
use engine::clock::Moment;
use engine::context::Ctx;
use serde_json::json;
use store::Tx;

use super::{error_line, say};
use crate::opening;
use crate::settings::{Language, account};

#[derive(Subcommand)]
pub enum Account {
    /// Create an account and a key with full access
    Create {
        /// Name of the account
        name: String,
        /// Use a test clock that stands still at this time (RFC 3339, such as 2026-01-01T09:00:00Z) until it is advanced
        #[arg(long, value_name = "TIMESTAMP")]
        test_clock: Option<String>,
        /// Send mail, webhooks, HTTP calls and payment requests of an account with a test clock, instead of recording them
        #[arg(long, requires = "test_clock")]
        live: bool,
        /// Time zone of the account, such as Europe/Amsterdam
        #[arg(long, value_name = "ZONE", default_value = accounts::DEFAULT_ZONE)]
        time_zone: String,
        /// Language of its ready-made flows: en or nl
        #[arg(long, value_name = "LANGUAGE", default_value = "en")]
        language: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Give an account another name
    Rename {
        /// Id of the account
        id: String,
        /// The new name
        name: String,
    },
    /// Close an account: its keys and users are refused, and nothing is sent, invoiced or deleted until it is reopened
    Close {
        /// Id of the account
        id: String,
    },
    /// Reopen a closed account; what was waiting continues
    Reopen {
        /// Id of the account
        id: String,
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
            Account::Create { name, test_clock, live, time_zone, language, json } => {
                let language =
                    Language::from_wire(language).ok_or_else(|| format!("--language {language}: expected en or nl"))?;
                create(app, name, test_clock.as_deref(), *live, (time_zone.as_str(), language), *json)
            }
            Account::List { json } => list(app, *json),
            Account::Rename { id, name } => rename(app, id, name.trim()),
            Account::Close { id } => close(app, id),
            Account::Reopen { id } => reopen(app, id),
        }
    }
}

fn create(
    app: &App,
    name: &str,
    test_clock: Option<&str>,
    live: bool,
    place: (&str, Language),
    json: bool,
) -> Result<(), String> {
    let clock = test_clock.map(|text| {
        let moment = Moment::parse(text).filter(|moment| moment.0 > 0);
        moment.ok_or_else(|| format!("--test-clock {text}: expected a time such as 2026-01-01T09:00:00Z"))
    });
    let (account, key) = opening::create_account_in(app, name, place, clock.transpose()?, live).map_err(error_line)?;
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
                "closed_at": account.is_closed().then(|| account.closed_at.to_string()),
            })
        });
        return say(&json!(rows.collect::<Vec<_>>()).to_string());
    }
    for account in accounts {
        let clock = if account.has_test_clock { "  (test clock)" } else { "" };
        let closed = if account.is_closed() { format!("  (closed {})", account.closed_at) } else { String::new() };
        say(&format!("{}  {}  {}{clock}{closed}", account.uid, account.created_at, account.name))?;
    }
    Ok(())
}

fn rename(app: &App, id: &str, name: &str) -> Result<(), String> {
    accounts::check_name(name).map_err(error_line)?;
    let own = name.to_string();
    change(app, id, move |tx, ctx| account::rename(tx, ctx, &own))?;
    say(&format!("The account {id} is now called {name}."))
}

fn close(app: &App, id: &str) -> Result<(), String> {
    match change(app, id, account::close)? {
        true => say(&format!(
            "Closed account {id}. Its keys, users and pages are refused within a second, and nothing was deleted; `kantoor account reopen {id}` reopens it."
        )),
        false => say(&format!("Account {id} is closed already.")),
    }
}

fn reopen(app: &App, id: &str) -> Result<(), String> {
    match change(app, id, account::reopen)? {
        true => say(&format!("Reopened account {id}.")),
        false => say(&format!("Account {id} is open.")),
    }
}

/// Changes an account as the operator.
fn change<T: Send + 'static>(
    app: &App,
    id: &str,
    work: impl Fn(&mut Tx, &Ctx) -> engine::error::Result<T> + Send + Sync + 'static,
) -> Result<T, String> {
    let id = id.to_string();
    let found = app.store.read_now(move |tx| accounts::Account::find(tx, &id)).map_err(error_line)?;
    let (number, caller) = (found.number, app.acting(found, "operator"));
    let changed = app.store.write_now(number, move |tx| {
        let ctx = caller.writing(tx)?;
        work(tx, &ctx)
    });
    changed.map_err(error_line)
}
