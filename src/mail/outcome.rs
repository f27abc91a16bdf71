//! What follows from the outcome of a delivery: the record that the mail is about learns of it, and so does the operator.

use engine::app::App;
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::http::metrics::{CounterInfo, HistogramInfo, Metric};
use engine::jobs::{self, Job};
use serde_json::{Value, json};
use store::Tx;

use super::delivery::Delivery;
use super::{Deliver, Queued, Standing};

/// The counter of deliveries.
pub const MAILS: CounterInfo = CounterInfo {
    name: "mails",
    help: "Attempts to deliver mail, by outcome",
    label: "outcome",
    values: &["sent", "stored", "retried", "bounced", "failed", "canceled"],
};

/// How long the mail server takes for a mail.
pub const SECONDS: HistogramInfo = HistogramInfo {
    name: "mail_seconds",
    help: "Duration of attempts to deliver mail",
    bounds: &[0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0],
};

/// The number of mails that wait for an attempt.
pub fn waiting(tx: &mut Tx, _: Moment) -> Result<Metric> {
    let waiting = jobs::queued(tx, Deliver::LANE, Deliver::KIND)?.unsigned_abs();
    Ok(("mails_waiting", "gauge", "Mail that waits for an attempt, by recipient", waiting))
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The mail server accepted the mail.
    Sent,
    /// Written to the folder of a server without mail settings.
    Stored,
    /// It failed, and another attempt follows.
    Retried,
    /// The mail server refused the mail for good.
    Bounced,
    /// The last attempt failed.
    Failed,
    /// It waited, and nothing was left to ask for when it was about to leave.
    Canceled,
}

impl Outcome {
    /// Returns the status of the delivery.
    pub fn status(self) -> Standing {
        match self {
            Outcome::Sent => Standing::Sent,
            Outcome::Stored => Standing::Stored,
            Outcome::Retried => Standing::Retrying,
            Outcome::Bounced | Outcome::Failed => Standing::Failed,
            Outcome::Canceled => Standing::Canceled,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Outcome::Sent => "sent",
            Outcome::Stored => "stored",
            Outcome::Retried => "retried",
            Outcome::Bounced => "bounced",
            Outcome::Failed => "failed",
            Outcome::Canceled => "canceled",
        }
    }

    /// Returns the event of a delivery that was given up or canceled.
    fn event(self) -> Option<&'static str> {
        match self {
            Outcome::Bounced => Some("mail.bounced"),
            Outcome::Failed => Some("mail.failed"),
            Outcome::Canceled => Some("mail.canceled"),
            _ => None,
        }
    }

    /// Counts the outcome, and logs a mail that was given up or canceled.
    pub fn report(self, app: &App, account: &str, told: &Told) {
        app.metrics.add(MAILS.name, self.name());
        let Told { about, about_id, kind, delivery, attempts, reason, .. } = told;
        match self {
            Outcome::Bounced | Outcome::Failed => tracing::warn!(
                account, %about, %about_id, send_type = %kind, %delivery, attempts, reason, "A mail was not delivered."
            ),
            Outcome::Canceled => tracing::info!(
                account, %about, %about_id, send_type = %kind, %delivery, reason, "A mail was canceled."
            ),
            _ => {}
        }
    }

    /// Tells the record that the mail is about.
    pub fn tell(self, tx: &mut Tx, ctx: &Ctx, followers: &Followers, told: &Told) -> Result<()> {
        followers.of(&told.about).map_or(Ok(()), |follower| self.tell_to(tx, ctx, follower, told))
    }

    fn tell_to(self, tx: &mut Tx, ctx: &Ctx, follower: &Follower, told: &Told) -> Result<()> {
        match self.event() {
            Some(event) => {
                let mail = json!({
                    "id": told.delivery, "send_type": told.kind, "subject": told.subject,
                    "recipient": told.recipient, "attempts": told.attempts, "reason": told.reason,
                });
                (follower.given_up)(tx, ctx, &told.about_id, event, &format!("\"mail\":{mail}"))
            }
            None if self == Outcome::Retried => Ok(()),
            None => (follower.accepted)(tx, ctx, &told.about_id, &told.kind),
        }
    }
}

/// Records that the last mail about a record was refused, although no mail server was asked, and tells the record: the demo has
/// one such mail.
pub fn refuse(tx: &mut Tx, ctx: &Ctx, follower: &Follower, about_id: &str, reason: &str) -> Result<()> {
    let last = "SELECT id FROM deliveries WHERE account_id = $1 AND about_id = $2 ORDER BY id DESC LIMIT 1";
    let last =
        tx.first(last, &[ctx.account.into(), about_id.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    let delivery = last.map(|id| Delivery::find(tx, ctx.account, &id)).transpose()?.flatten();
    let Some(delivery) = delivery else { return Ok(()) };
    let Some(mail) = Queued::find(tx, ctx.account, &delivery.mail_id)? else { return Ok(()) };
    let told = Told::of(&delivery, &mail, reason);
    tx.execute(
        "UPDATE deliveries SET status = $1, attempts = $2, reason = $3, changed_at = $4 WHERE account_id = $5 AND id = $6",
        &[
            Outcome::Bounced.status().wire().into(),
            told.attempts.into(),
            reason.into(),
            ctx.now.0.into(),
            ctx.account.into(),
            (&delivery.id).into(),
        ],
    )?;
    Outcome::Bounced.tell_to(tx, ctx, follower, &told)
}

/// What a record learns about a delivery.
#[derive(Clone)]
pub struct Told {
    pub(super) about: String,
    pub(super) about_id: String,
    pub(super) kind: String,
    pub(super) subject: String,
    pub(super) delivery: String,
    pub(super) recipient: String,
    pub(super) attempts: i64,
    pub(super) reason: String,
    pub(super) mail: String,
    /// When another attempt follows, if one does.
    pub(super) next_attempt: Moment,
    /// Whether the mail has a link that works once.
    pub(super) has_link: bool,
}

impl Told {
    /// Of an attempt that ended with `reason`.
    pub fn of(delivery: &Delivery, mail: &Queued, reason: &str) -> Told {
        Told {
            about: mail.about.clone(),
            about_id: mail.about_id.clone(),
            kind: mail.kind.clone(),
            subject: mail.subject.clone(),
            delivery: delivery.id.clone(),
            recipient: delivery.recipient.clone(),
            attempts: delivery.attempts + 1,
            reason: reason.to_string(),
            mail: mail.id.clone(),
            next_attempt: Moment(0),
            has_link: !mail.link.is_none(),
        }
    }
}

/// Returns when the next attempt of a delivery follows, as JSON: null if none does.
pub(crate) fn next_attempt(status: &str, at: i64) -> Value {
    if status == Standing::Retrying.wire() && at > 0 { Moment(at).to_string().into() } else { Value::Null }
}

/// A kind of record that follows the mail about it.
pub struct Follower {
    /// The kind of record.
    pub about: &'static str,
    /// Returns why a mail of this send type about the record with this id, which waited, is no longer wanted, if so.
    pub unwanted: fn(&mut Tx, &Ctx, &str, &str, &str) -> Result<Option<&'static str>>,
    /// A mail of this send type about the record with this id was accepted.
    pub accepted: fn(&mut Tx, &Ctx, &str, &str) -> Result<()>,
    /// A mail about the record with this id was given up or canceled: emits the event, with one more member in its data.
    pub given_up: fn(&mut Tx, &Ctx, &str, &str, &str) -> Result<()>,
    /// Writes a mail of this send type about the record with this id again, from the source that it was written from.
    pub rewrite: fn(&mut Tx, &Ctx, &str, &str, &str) -> Result<Rewritten>,
    /// Returns the addresses that the client has now for mail of this send type about the record with this id.
    pub addresses: fn(&mut Tx, &Ctx, &str, &str) -> Result<Vec<String>>,
}

/// A mail that is written again when it leaves.
#[derive(Default)]
pub struct Rewritten {
    /// The text.
    pub words: Words,
    /// The recipients, unless they stay: there may be none any more.
    pub to: Option<Vec<String>>,
}

/// The text of a mail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The subject.
    pub subject: String,
    /// The body as plain text.
    pub body: String,
    /// The body as HTML, or empty.
    pub html: String,
}

/// What is known elsewhere about mail.
#[derive(Clone, Copy)]
pub struct Followers {
    /// The records that follow their mail.
    pub records: &'static [Follower],
    /// Whether the author of the flow with this id still has this scope.
    pub author_may: fn(&mut Tx, &Ctx, &str, &str) -> Result<bool>,
}

impl Followers {
    /// Returns the one of this kind of record.
    pub fn of(&self, about: &str) -> Option<&'static Follower> {
        self.records.iter().find(|one| one.about == about)
    }
}
