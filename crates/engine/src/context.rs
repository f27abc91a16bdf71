//! The context of a request: its caller, its account and the time there.

use std::sync::Arc;

use jiff::tz::TimeZone;
use store::Tx;

use crate::accounts::{Account, Key};
use crate::clock::{Clock, Ids, Moment};
use crate::error::{Code, Error, Result};
use crate::presence::Presence;
use crate::quotas::Quotas;
use crate::site::Site;
use crate::wakeup::Wakeup;
use crate::who::Who;

/// The context of a handler's work.
pub struct Ctx {
    /// The account's number in every table.
    pub account: i64,
    /// The account's time zone.
    pub zone: TimeZone,
    /// The account's time.
    pub now: Moment,
    /// Who causes the changes.
    pub actor: Who,
    /// The key of the caller; none for work of the program itself, which may do everything.
    pub key: Option<Arc<Key>>,
    /// The request id, for the log.
    pub request_id: Arc<str>,
    /// The accepted versions (`If-Match`).
    pub if_match: Option<IfMatch>,
    /// The machine's time, for work outside the account's time: mail, jobs.
    pub machine_now: Moment,
    /// Whether the account has a test clock.
    pub has_test_clock: bool,
    /// The source of ids.
    pub ids: Ids,
    /// The public address of this server.
    pub site: Arc<Site>,
    /// The number of automatic actions that led to this one: 0 for a request.
    pub depth: i64,
    /// The run that started this chain of actions, or empty.
    pub chain: Arc<str>,
    /// Notified when the account has something to do.
    pub wakeup: Arc<Wakeup>,
    /// The quotas of the account.
    pub quotas: Quotas,
    /// Maximum size of the response, in bytes; see [`Ctx::fits`].
    pub max_response: usize,
}

/// The accepted versions of the record in the path.
#[derive(Clone, Debug)]
pub enum IfMatch {
    /// Any version, if the record exists.
    Any,
    /// One of these.
    Versions(Vec<i64>),
}

/// A caller, from which a context is created for each transaction.
#[derive(Clone)]
pub struct Actor {
    /// The account.
    pub account: Arc<Account>,
    /// Who causes the changes.
    pub actor: Who,
    /// The key of the caller; none for work of the program itself.
    pub key: Option<Arc<Key>>,
    /// The request id, for the log.
    pub request_id: Arc<str>,
    /// The accepted versions.
    pub if_match: Option<IfMatch>,
    /// The source of the current time.
    pub clock: Clock,
    /// The source of ids.
    pub ids: Ids,
    /// The public address of this server.
    pub site: Arc<Site>,
    /// Notified when the account has something to do.
    pub wakeup: Arc<Wakeup>,
    /// The quotas of the account.
    pub quotas: Quotas,
    /// Whether the caller still waits.
    pub presence: Presence,
}

impl Actor {
    /// Returns the context of a read.
    pub fn reading(&self, tx: &mut Tx) -> Result<Ctx> {
        Ok(Ctx {
            account: self.account.number,
            zone: self.account.zone.clone(),
            now: self.account.now(tx, &self.clock)?,
            actor: self.actor.clone(),
            key: self.key.clone(),
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
            max_response: usize::MAX,
        })
    }

    /// Returns the context of a write, and locks the account. Writes of one account are serialized on all nodes, so
    /// that the change feed has no gaps and the audit chain no forks.
    pub fn writing(&self, tx: &mut Tx) -> Result<Ctx> {
        tx.hold("accounts", self.account.number)?;
        self.reading(tx)
    }
}

impl Ctx {
    /// Returns the context of an automatic action at this depth, in the chain started by the run `chain`.
    pub fn acting_as(&self, actor: impl Into<Who>, request_id: &str, depth: i64, chain: &str) -> Ctx {
        Ctx {
            account: self.account,
            zone: self.zone.clone(),
            now: self.now,
            actor: actor.into(),
            key: self.key.clone(),
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
            max_response: self.max_response,
        }
    }

    /// Returns this context at another time.
    pub fn at(&self, now: Moment) -> Ctx {
        Ctx { now, ..self.acting_as(&self.actor, &self.request_id, self.depth, &self.chain) }
    }

    /// Returns the absolute URL of a path, signed for a day of access without a key.
    pub fn signed(&self, path: &str) -> String {
        self.site.signed(self.account, self.machine_now, path)
    }

    /// Rejects a response that has this many bytes already, if that is too many.
    pub fn fits(&self, bytes: usize) -> Result<()> {
        if bytes <= self.max_response {
            return Ok(());
        }
        let message = format!(
            "The response has more than {} MiB (limit responses_mib). Request fewer records.",
            self.max_response / (1024 * 1024)
        );
        Err(Error::new(Code::ResponseTooLarge, message))
    }

    /// Whether the caller has this scope.
    pub fn may(&self, scope: &str) -> bool {
        self.key.as_ref().is_none_or(|key| key.may(scope))
    }

    /// Returns a new id.
    pub fn new_id(&self) -> String {
        self.ids.next()
    }

    /// Rejects the request if the caller expects a version other than `version`.
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
