//! The context of a request: its caller, its account and the time there.

use std::sync::Arc;

use jiff::tz::TimeZone;
use store::Tx;

use crate::accounts::Account;
use crate::clock::{Clock, Ids, Moment};
use crate::error::{Code, Error, Result};
use crate::quotas::Quotas;
use crate::site::Site;
use crate::wakeup::Wakeup;

/// What a verb may know of its surroundings.
pub struct Ctx {
    /// The account's number in every table.
    pub account: i64,
    /// The account's time zone.
    pub zone: TimeZone,
    /// The account's time.
    pub now: Moment,
    /// The id of the key that asks, or the name of a job.
    pub actor: Arc<str>,
    /// Leads to the log line.
    pub request_id: Arc<str>,
    /// Versions that the caller will accept (`If-Match`).
    pub if_match: Option<IfMatch>,
    /// The machine's time, for what does not happen in the account: mail, jobs.
    pub machine_now: Moment,
    /// Whether the account's clock stands still until it is moved.
    pub has_test_clock: bool,
    /// Where ids come from.
    pub ids: Ids,
    /// Where this server can be reached.
    pub site: Arc<Site>,
    /// How many automatic actions in a row led to this: 0 for what people and programs ask.
    pub depth: i64,
    /// The run from which all of them follow, or empty.
    pub chain: Arc<str>,
    /// Notified when the account has something to do.
    pub wakeup: Arc<Wakeup>,
    /// How much the account may keep and send.
    pub quotas: Quotas,
}

/// Which versions of the record in the path a change may start from.
#[derive(Clone, Debug)]
pub enum IfMatch {
    /// Any, as long as there is one.
    Any,
    /// One of these.
    Versions(Vec<i64>),
}

/// A caller whose context is made anew for each transaction.
#[derive(Clone)]
pub struct Actor {
    /// The account that is asked.
    pub account: Arc<Account>,
    /// The id of the key that asks, or the name of a job.
    pub actor: Arc<str>,
    /// Leads to the log line.
    pub request_id: Arc<str>,
    /// Versions that the caller will accept.
    pub if_match: Option<IfMatch>,
    /// Where "now" comes from.
    pub clock: Clock,
    /// Where ids come from.
    pub ids: Ids,
    /// Where this server can be reached.
    pub site: Arc<Site>,
    /// Notified when the account has something to do.
    pub wakeup: Arc<Wakeup>,
    /// How much the account may keep and send.
    pub quotas: Quotas,
}

impl Actor {
    /// The context for reading.
    pub fn reading(&self, tx: &mut Tx) -> Result<Ctx> {
        Ok(Ctx {
            account: self.account.number,
            zone: self.account.zone.clone(),
            now: self.account.now(tx, &self.clock)?,
            actor: self.actor.clone(),
            request_id: self.request_id.clone(),
            if_match: self.if_match.clone(),
            machine_now: self.clock.now(),
            has_test_clock: self.account.has_test_clock,
            ids: self.ids,
            site: self.site.clone(),
            depth: 0,
            chain: Arc::default(),
            wakeup: self.wakeup.clone(),
            quotas: self.quotas,
        })
    }

    /// The context for writing. Writes of one account follow each other, on every node: the
    /// change feed has no gaps and the audit chain no forks because of this line.
    pub fn writing(&self, tx: &mut Tx) -> Result<Ctx> {
        tx.hold("accounts", self.account.number)?;
        self.reading(tx)
    }
}

impl Ctx {
    /// The context of an automatic action at this depth, which follows from the run called `chain`.
    pub fn acting_as(&self, actor: &str, request_id: &str, depth: i64, chain: &str) -> Ctx {
        Ctx {
            account: self.account,
            zone: self.zone.clone(),
            now: self.now,
            actor: actor.into(),
            request_id: request_id.into(),
            if_match: None,
            machine_now: self.machine_now,
            has_test_clock: self.has_test_clock,
            ids: self.ids,
            site: self.site.clone(),
            depth,
            chain: chain.into(),
            wakeup: self.wakeup.clone(),
            quotas: self.quotas,
        }
    }

    /// This context at another time.
    pub fn at(&self, now: Moment) -> Ctx {
        Ctx { now, ..self.acting_as(&self.actor, &self.request_id, self.depth, &self.chain) }
    }

    /// The whole address of a path, which opens it for a day without a key.
    pub fn signed(&self, path: &str) -> String {
        self.site.signed(self.account, self.machine_now, path)
    }

    /// A new id.
    pub fn new_id(&self) -> String {
        self.ids.next()
    }

    /// Refuses when the caller expects another version than `version`.
    pub fn expects(&self, version: i64) -> Result<()> {
        match &self.if_match {
            Some(IfMatch::Versions(versions)) if !versions.contains(&version) => Err(Error::new(
                Code::PreconditionFailed,
                format!(
                    "The record has changed and is now at version {version}. Retrieve it again before you change it."
                ),
            )),
            _ => Ok(()),
        }
    }
}
