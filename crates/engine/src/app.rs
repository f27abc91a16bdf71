//! The running program: settings, database, clock, metrics and everything else that its parts share.

use std::sync::Arc;
use std::time::Instant;

use blobs::Blobs;
use store::{Places, Store};

use crate::accounts::{Account, SHARED};
use crate::clock::shared::Comparison;
use crate::clock::{Clock, Ids};
use crate::config::Config;
use crate::context::Actor;
use crate::error::Result;
use crate::http::bodies::Bodies;
use crate::http::keys::KeyRing;
use crate::http::metrics::counts::Metrics;
use crate::http::responses::Responses;
use crate::http::visitors::Visitors;
use crate::jobs::claims::Claimant;
use crate::jobs::queue::Lane;
use crate::listeners::Listeners;
use crate::loops::state::Loops;
use crate::presence::Presence;
use crate::quotas::Quotas;
use crate::services::Services;
use crate::site::Site;
use crate::wakeup::Wakeup;
use crate::who::Who;

/// The last response of `/ready`: its time, whether all checks passed, and its body.
pub type Readiness = tokio::sync::Mutex<Option<(Instant, bool, String)>>;

/// The state that all parts of the program share.
pub struct App {
    /// The effective settings.
    pub config: Config,
    /// The database.
    pub store: Store,
    /// The source of the current time.
    pub clock: Clock,
    /// The source of ids.
    pub ids: Ids,
    /// Recently used keys.
    pub keys: KeyRing,
    /// Recently used sessions.
    pub sessions: KeyRing,
    /// Recent visitors without a key.
    pub visitors: Visitors,
    /// The request bodies in progress.
    pub bodies: Arc<Bodies>,
    /// The responses that are not yet sent.
    pub responses: Arc<Responses>,
    /// Metrics.
    pub metrics: Metrics,
    /// The public address of this server.
    pub site: Arc<Site>,
    /// The contents of files.
    pub blobs: Blobs,
    /// The client for outgoing HTTP calls.
    pub web: web::Client,
    /// The background loops and streams that wait for events.
    pub listeners: Arc<Listeners>,
    /// The last response of `/ready`.
    pub readiness: Readiness,
    /// Notified when an account has something to do.
    pub wakeup: Arc<Wakeup>,
    /// Services of the business code.
    pub services: Services,
    /// The name of this process among the nodes of its database.
    pub node: String,
    /// Claims jobs for this node.
    pub claimant: Arc<Claimant>,
    /// The background loops.
    pub loops: Loops,
    /// The turns of accounts to have a large body decoded.
    pub decoding: Arc<Places>,
    /// The workers of each lane of jobs.
    pub workers: [Arc<Places>; Lane::ALL.len()],
    /// When the process started.
    pub started: Instant,
}

impl App {
    /// Returns a caller for actions of the program itself in an account.
    pub fn acting(&self, account: Account, actor: impl Into<Who>) -> Actor {
        let actor = actor.into();
        Actor {
            account: Arc::new(account),
            request_id: actor.id.clone(),
            actor,
            key: None,
            if_match: None,
            clock: self.clock.clone(),
            ids: self.ids,
            site: self.site.clone(),
            wakeup: self.wakeup.clone(),
            quotas: Quotas::of(&self.config),
            presence: Presence::default(),
        }
    }

    /// Returns a caller for actions of the program itself in the account with this number.
    pub fn acting_in(&self, number: i64, actor: impl Into<Who>) -> Result<Actor> {
        let account = self.store.read_now(move |tx| Account::numbered(tx, number))?;
        Ok(self.acting(account, actor))
    }

    /// Compares the clock with that of the database again, if something may have happened to it since: before this process
    /// claims work.
    pub async fn compare_clocks(&self) -> Result<()> {
        if !self.clock.shared().is_some_and(|time| time.is_doubtful()) {
            return Ok(());
        }
        let compared = self.store.write_urgently(SHARED, Comparison::make).await?;
        self.correct_clock(compared);
        Ok(())
    }

    /// Corrects the clock after a comparison with that of the database.
    pub fn correct_clock(&self, compared: Option<Comparison>) {
        if let (Some(time), Some(compared)) = (self.clock.shared(), compared) {
            time.correct(compared);
        }
    }

    /// Returns the microseconds since the start, unaffected by clock changes.
    pub fn microseconds(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}
