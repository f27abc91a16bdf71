//! What follows from the outcome of a delivery: the record that the mail is about learns of it, and so does the operator.

use engine::app::App;
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::http::metrics::{CounterInfo, HistogramInfo, Metric};
use engine::jobs::{self, Job};
use serde_json::json;
use store::Tx;

use super::{Deliver, Delivery, Queued, Standing};

/// The counter of deliveries.
pub const MAILS: CounterInfo = CounterInfo {
    name: "mails",
    help: "Attempts to deliver mail, by outcome",
    label: "outcome",
    values: &["sent", "stored", "retried", "bounced", "failed"],
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
}

impl Outcome {
    /// Returns the status of the delivery.
    pub fn status(self) -> Standing {
        match self {
            Outcome::Sent => Standing::Sent,
            Outcome::Stored => Standing::Stored,
            Outcome::Retried => Standing::Retrying,
            Outcome::Bounced | Outcome::Failed => Standing::Failed,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Outcome::Sent => "sent",
            Outcome::Stored => "stored",
            Outcome::Retried => "retried",
            Outcome::Bounced => "bounced",
            Outcome::Failed => "failed",
        }
    }

    /// Returns the event of a delivery that was given up.
    fn event(self) -> Option<&'static str> {
        match self {
            Outcome::Bounced => Some("mail.bounced"),
            Outcome::Failed => Some("mail.failed"),
            _ => None,
        }
    }

    /// Counts the outcome, and logs a mail that was given up.
    pub fn report(self, app: &App, account: &str, delivery: &Delivery, mail: &Queued, reason: &str) {
        app.metrics.add(MAILS.name, self.name());
        if self.event().is_some() {
            tracing::warn!(
                account, about = %mail.about, document = %mail.about_id, send_type = %mail.kind, delivery = %delivery.id,
                attempts = delivery.attempts + 1, reason, "A mail was not delivered."
            );
        }
    }

    /// Tells the record that the mail is about.
    pub fn tell(self, tx: &mut Tx, ctx: &Ctx, followers: &Followers, told: &Told) -> Result<()> {
        let Some(follower) = followers.0.iter().find(|one| one.about == told.about) else { return Ok(()) };
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

/// Cancels a mail that waited for office hours, if its record no longer wants it; returns whether it did. A reminder of an
/// invoice that was paid in the meantime would only annoy.
pub fn is_canceled(app: &App, account: i64, delivery: &str) -> Result<bool> {
    let (caller, followers) = (app.acting_in(account, "outbox")?, *app.services.get::<Followers>());
    let (id, now) = (delivery.to_string(), app.clock.now());
    let own = id.clone();
    let waited = app.store.read_now(move |tx| {
        // With the plus, the index of mail that waits is not used instead of the id.
        let sql = "SELECT about, about_id, kind FROM mails WHERE account_id = $1 AND +leaves_at > created_at
                   AND id = (SELECT mail_id FROM deliveries WHERE account_id = $1 AND id = $2 AND attempts = 0)";
        tx.first(sql, &[account.into(), (&own).into()], |row| {
            Ok::<_, Error>((row.text(0)?.to_string(), row.text(1)?.to_string(), row.text(2)?.to_string()))
        })
    })?;
    let Some((about, about_id, kind)) = waited else { return Ok(false) };
    let Some(follower) = followers.0.iter().find(|one| one.about == about) else { return Ok(false) };
    let is_wanted = follower.is_wanted;
    app.store.write_now(account, move |tx| {
        let ctx = caller.writing(tx)?;
        if is_wanted(tx, &ctx, &about_id, &kind)? {
            return Ok(false);
        }
        tx.execute(
            "UPDATE deliveries SET status = $1, reason = $2, changed_at = $3 WHERE account_id = $4 AND id = $5",
            &[Standing::Canceled.wire().into(), SETTLED.into(), now.0.into(), account.into(), (&id).into()],
        )?;
        Ok::<_, Error>(true)
    })
}

/// Why a mail was canceled.
const SETTLED: &str = "Not sent: nothing was left to ask for when it was about to leave.";

/// What a record learns about a delivery.
#[derive(Clone)]
pub struct Told {
    about: String,
    about_id: String,
    kind: String,
    subject: String,
    pub(super) delivery: String,
    recipient: String,
    attempts: i64,
    pub(super) reason: String,
    pub(super) mail: String,
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
            has_link: !mail.link.is_none(),
        }
    }
}

/// A kind of record that follows the mail about it.
pub struct Follower {
    /// The kind of record.
    pub about: &'static str,
    /// Whether a mail of this send type about the record with this id, which waited, is still wanted.
    pub is_wanted: fn(&mut Tx, &Ctx, &str, &str) -> Result<bool>,
    /// A mail of this send type about the record with this id was accepted.
    pub accepted: fn(&mut Tx, &Ctx, &str, &str) -> Result<()>,
    /// A mail about the record with this id was given up: emits the event, with one more member in its data.
    pub given_up: fn(&mut Tx, &Ctx, &str, &str, &str) -> Result<()>,
}

/// All of them.
#[derive(Clone, Copy)]
pub struct Followers(pub &'static [Follower]);
