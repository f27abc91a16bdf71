//! Creates accounts with their defaults.

use std::sync::Arc;

use engine::accounts::{self, Account};
use engine::app::App;
use engine::clock::{Clock, Ids, Moment};
use engine::config::Config;
use engine::context::{Actor, Ctx};
use engine::error::Result;
use engine::heads;
use engine::jobs::{self, SHARED};
use engine::log::{self, Event};
use engine::open;
use engine::presence::Presence;
use engine::quotas::Quotas;
use engine::registry::registry;
use engine::secrets::vault::Vault;
use engine::site::Site;
use engine::wakeup::Wakeup;
use store::Tx;

use crate::keys::{old, operator};
use crate::people::{entrances, sealing};
use crate::settings::{Language, Settings, account};
use crate::{demo, registry};

/// Installs the registry and opens the program that `config` describes.
pub fn open(config: Config) -> Result<Arc<App>> {
    registry::install();
    open::open(config)
}

/// Signs the rows again that are no records with log lines: those with a valid signature, or all if `trusts_all`.
pub(crate) fn sign_rows(app: &App, vault: &Arc<Vault>, trusts_all: bool) -> Result<()> {
    sealing::sign_all(app, vault, trusts_all)?;
    entrances::sign_all(app, vault, trusts_all)?;
    jobs::marks::sign_all(&app.store, vault, trusts_all)?;
    old::sign_all(app, vault, trusts_all)
}

/// Creates an account with a full-access key; returns the key too.
pub fn create_account(app: &App, name: &str, test_clock: Option<Moment>) -> Result<(Account, String)> {
    create_account_in(app, name, (accounts::DEFAULT_ZONE, Language::default()), test_clock, false)
}

/// Creates an account in a time zone and a language, with a full-access key; returns the key too. An account with a test clock sends
/// nothing, unless it is `live`.
pub(crate) fn create_account_in(
    app: &App,
    name: &str,
    (zone, language): (&str, Language),
    test_clock: Option<Moment>,
    live: bool,
) -> Result<(Account, String)> {
    let opening = opening(app, name, test_clock, false)?;
    open_account(app, Opening { zone: zone.to_string(), language, live, ..opening })
}

/// Creates an account with demo data, in a single transaction.
pub fn create_demo_account(app: &App, test_clock: Option<Moment>) -> Result<(Account, String)> {
    open_account(app, opening(app, demo::NAME, test_clock, true)?)
}

/// Creates the first account if there is none, optionally with demo data. If several nodes start together, one of them
/// does.
pub(crate) fn create_first_account(app: &App, with_demo: bool) -> Result<Option<(Account, String)>> {
    let opening = opening(app, if with_demo { demo::NAME } else { account::UNNAMED }, None, with_demo)?;
    let key = opening.secret.clone();
    let account = app.store.write_now(SHARED, move |tx| {
        tx.hold_all()?;
        if tx.int("SELECT count(*) FROM accounts", &[])? > 0 {
            return Ok(None);
        }
        opening.open(tx).map(Some)
    })?;
    Ok(account.map(|account| (account, key)))
}

fn open_account(app: &App, opening: Opening) -> Result<(Account, String)> {
    let key = opening.secret.clone();
    let account = app.store.write_now(SHARED, move |tx| opening.open(tx))?;
    Ok((account, key))
}

fn opening(app: &App, name: &str, test_clock: Option<Moment>, with_demo: bool) -> Result<Opening> {
    Ok(Opening {
        name: name.to_string(),
        zone: accounts::DEFAULT_ZONE.to_string(),
        // The business of the demo is Dutch.
        language: if with_demo { Language::Dutch } else { Language::default() },
        test_clock,
        with_demo,
        live: false,
        secret: accounts::new_secret()?,
        now: app.clock.now(),
        ids: app.ids,
        site: app.site.clone(),
        wakeup: app.wakeup.clone(),
    })
}

/// An account to be created.
struct Opening {
    name: String,
    zone: String,
    language: Language,
    test_clock: Option<Moment>,
    with_demo: bool,
    live: bool,
    secret: String,
    now: Moment,
    ids: Ids,
    site: Arc<Site>,
    wakeup: Arc<Wakeup>,
}

impl Opening {
    /// Creates the account with its first key and its defaults.
    fn open(&self, tx: &mut Tx) -> Result<Account> {
        let account = Account::create(tx, &self.name, &self.zone, self.test_clock, self.now, &self.ids)?;
        let caller = Actor {
            account: Arc::new(account.clone()),
            actor: "kantoor".into(),
            key: None,
            request_id: "new account".into(),
            if_match: None,
            clock: Clock::Fixed(self.now),
            ids: self.ids,
            site: self.site.clone(),
            wakeup: self.wakeup.clone(),
            // Quotas do not apply to the defaults.
            quotas: Quotas::default(),
            presence: Presence::default(),
        };
        let mut ctx = caller.writing(tx)?;
        if self.with_demo {
            ctx.now = demo::beginning(&ctx);
        }
        let by_operator = ctx.acting_as("operator", &ctx.request_id, 0, "");
        log_creation(tx, &by_operator, &account)?;
        operator::create_first(tx, &by_operator, &self.secret)?;
        registry().fill(tx, &ctx, &account)?;
        if self.language != Language::default() {
            Settings::speak(tx, &ctx, self.language)?;
        }
        if self.live {
            Settings::go_live(tx, &ctx)?;
        }
        if self.with_demo {
            Settings::become_demo(tx, &ctx)?;
            demo::fill(tx, &caller)?;
        }
        heads::sign_new(tx, &self.site.vault, &account)?;
        Ok(account)
    }
}

/// Writes the first line of the account's log.
fn log_creation(tx: &mut Tx, ctx: &Ctx, account: &Account) -> Result<()> {
    let data = account.shown().to_string();
    let event = Event { name: accounts::CREATED, entity_type: "account", entity_id: &account.uid, data: &data };
    log::append(tx, ctx, &event).map(drop)
}
