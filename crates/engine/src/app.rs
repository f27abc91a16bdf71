//! The running program: settings, database, clock, metrics and everything else that its parts share.

use std::sync::Arc;
use std::time::Instant;

use blobs::Blobs;
use store::Store;

use crate::accounts::Account;
use crate::clock::{Clock, Ids};
use crate::config::Config;
use crate::context::Actor;
use crate::error::Result;
use crate::http::bodies::Bodies;
use crate::http::keys::KeyRing;
use crate::http::metrics::counts::Metrics;
use crate::http::visitors::Visitors;
use crate::jobs::claims::Claimant;
use crate::listeners::Listeners;
use crate::loops::state::Loops;
use crate::quotas::Quotas;
use crate::services::Services;
use crate::site::Site;
use crate::wakeup::Wakeup;

/// The last answer of `/ready`: when, whether all is well, and its body.
pub type Readiness = tokio::sync::Mutex<Option<(Instant, bool, String)>>;

/// What every part of the program shares.
pub struct App {
    /// The settings in force.
    pub config: Config,
    /// The database.
    pub store: Store,
    /// Where "now" comes from.
    pub clock: Clock,
    /// Where ids come from.
    pub ids: Ids,
    /// Keys seen lately.
    pub keys: KeyRing,
    /// Who came without a key lately.
    pub visitors: Visitors,
    /// The bodies of requests under way.
    pub bodies: Arc<Bodies>,
    /// Counters.
    pub metrics: Metrics,
    /// Where this server can be reached.
    pub site: Arc<Site>,
    /// The contents of files.
    pub blobs: Blobs,
    /// Calls others over HTTP.
    pub web: web::Client,
    /// Who waits for something to happen.
    pub listeners: Arc<Listeners>,
    /// The last answer of `/ready`.
    pub readiness: Readiness,
    /// Rung when an account has something to do.
    pub wakeup: Arc<Wakeup>,
    /// What the business shares.
    pub services: Services,
    /// What this process is called among the nodes of its database.
    pub node: String,
    /// Who claims jobs here.
    pub claimant: Arc<Claimant>,
    /// The loops in the background.
    pub loops: Loops,
    /// When it started.
    pub started: Instant,
}

impl App {
    /// Somebody who acts in an account on the program's own behalf.
    pub fn acting(&self, account: Account, actor: &str) -> Actor {
        Actor {
            account: Arc::new(account),
            actor: actor.into(),
            request_id: actor.into(),
            if_match: None,
            clock: self.clock,
            ids: self.ids,
            site: self.site.clone(),
            wakeup: self.wakeup.clone(),
            quotas: Quotas::of(&self.config),
        }
    }

    /// Somebody who acts on the program's own behalf in the account with this number.
    pub fn acting_in(&self, number: i64, actor: &str) -> Result<Actor> {
        let account = self.store.read_now(move |tx| Account::numbered(tx, number))?;
        Ok(self.acting(account, actor))
    }

    /// Microseconds since the start, which no change of the clock disturbs.
    pub fn microseconds(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}
