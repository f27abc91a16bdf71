//! Mail that waits for office hours: it follows changes of them, and says what is true when it leaves.

use engine::app::App;
use engine::clock::Moment;
use engine::context::Ctx;
use engine::due::DueWork;
use engine::error::{Error, Result};
use engine::jobs::{self, Job, NewJob};
use engine::log::Event;
use store::Tx;

use super::hours::{next_in, next_look};
use super::outcome::{Followers, Outcome, Rewritten, Told, Words};
use super::readdressing::{readdress, set};
use super::{Deliver, Standing};
use crate::settings::{NOT_SENT, Settings};

/// Why a mail was canceled.
const REVOKED: &str = "Not sent: the author of its flow has lost access since, or the scope to send it.";
const NOWHERE: &str = "Not sent: the client had no e-mail address when it was about to leave.";

/// The send type of the free text of a flow.
pub(crate) const FLOW: &str = "flow";
/// The send type of a reply to a ticket.
pub(crate) const TICKET: &str = "ticket";

/// How many deliveries of an account with a test clock are recorded in one transaction.
const TOGETHER: i64 = 200;

/// Lets mail that waits follow the office hours when they change.
pub(crate) fn follow_hours(tx: &mut Tx, ctx: &Ctx, event: &Event, followers: &Followers) -> Result<()> {
    if event.name != "settings.updated" {
        return Ok(());
    }
    let is_live = ctx.has_test_clock && !Settings::is_sealed(tx, ctx)?;
    let leaves = if is_live { ctx.now } else { next_in(&Settings::of(tx, ctx)?.office_hours(), ctx) };
    let moved = tx.execute(
        "UPDATE mails SET leaves_at = $1
         WHERE account_id = $2 AND leaves_at > created_at AND leaves_at > $3 AND leaves_at <> $1
         AND EXISTS (SELECT 1 FROM deliveries WHERE deliveries.account_id = $2 AND deliveries.about_id = mails.about_id
                     AND deliveries.mail_id = mails.id AND deliveries.status = $4)",
        &[leaves.0.into(), ctx.account.into(), ctx.now.0.into(), Standing::Queued.wire().into()],
    )?;
    match moved {
        0 => Ok(()),
        _ if is_live => hand_over(tx, ctx),
        _ if ctx.has_test_clock => {
            while !record_due(tx, ctx, followers)?.is_empty() {}
            Ok(())
        }
        _ => jobs::hasten(tx, ctx.account, Deliver::LANE, Deliver::KIND, next_look(leaves, ctx.machine_now)),
    }
}

/// Gives mail that waited on a test clock its job, once the account sends.
fn hand_over(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    for delivery in due(tx, ctx, i64::MAX)? {
        let job = NewJob::of(ctx, &Deliver { delivery: delivery.clone() })?.keyed(format!("deliver {delivery}"));
        jobs::enqueue(tx, ctx, &job)?;
    }
    Ok(())
}

/// Mail that an account with a test clock records as the clock is advanced. That of other accounts has a job.
pub(crate) const DUE: DueWork = DueWork {
    next_moment: |tx, ctx| {
        if !ctx.has_test_clock {
            return Ok(None);
        }
        let sql = "SELECT leaves_at FROM mails WHERE account_id = $1 AND leaves_at > $2 AND leaves_at > created_at
                   ORDER BY leaves_at LIMIT 1";
        tx.first(sql, &[ctx.account.into(), ctx.now.0.into()], |row| Ok::<_, Error>(Moment(row.int(0)?)))
    },
    follow: |app, caller| {
        let (own, followers) = (caller.clone(), *app.services.get::<Followers>());
        let left = app.store.write_now(caller.account.number, move |tx| {
            let ctx = own.writing(tx)?;
            if ctx.has_test_clock && Settings::is_sealed(tx, &ctx)? {
                record_due(tx, &ctx, &followers)
            } else {
                Ok(Vec::new())
            }
        })?;
        for told in left.iter().flatten() {
            Outcome::Canceled.report(app, &caller.account.uid, told);
        }
        Ok(!left.is_empty())
    },
    ..DueWork::NOTHING
};

/// Returns the deliveries of an account with a test clock that waited and leave.
fn due(tx: &mut Tx, ctx: &Ctx, limit: i64) -> Result<Vec<String>> {
    let index = tx.dialect().indexed_by("deliveries_status");
    let sql = format!(
        "SELECT deliveries.id FROM deliveries{index} CROSS JOIN mails
         WHERE deliveries.account_id = $1 AND deliveries.status = $2 AND mails.account_id = deliveries.account_id
         AND mails.id = deliveries.mail_id AND mails.leaves_at <= $3 ORDER BY deliveries.id LIMIT $4"
    );
    let values = [ctx.account.into(), Standing::Queued.wire().into(), ctx.now.0.into(), limit.into()];
    tx.all(&sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))
}

/// Records mail that leaves; returns for each what its record learned, if it was canceled.
fn record_due(tx: &mut Tx, ctx: &Ctx, followers: &Followers) -> Result<Vec<Option<Told>>> {
    let mut left = Vec::new();
    for id in due(tx, ctx, TOGETHER)? {
        let Some(mail) = Waited::find(tx, ctx.account, &id)? else { continue };
        let canceled = mail.prepare(tx, ctx, followers)?;
        if canceled.is_none() {
            set(tx, ctx, &id, Standing::Recorded, NOT_SENT)?;
            if let Some(follower) = followers.of(&mail.told.about) {
                (follower.accepted)(tx, ctx, &mail.told.about_id, &mail.told.kind)?;
            }
        }
        left.push(canceled);
    }
    Ok(left)
}

/// A delivery before its first attempt.
#[derive(Clone)]
struct Waited {
    told: Told,
    source: String,
    words: Words,
    /// The flow that sent it, or empty.
    flow: String,
}

impl Waited {
    fn find(tx: &mut Tx, account: i64, delivery: &str) -> Result<Option<Waited>> {
        let sql = "SELECT mails.about, mails.about_id, mails.kind, mails.subject, deliveries.recipient, mails.id, mails.source,
                          mails.body, mails.html, mails.flow_id
                   FROM deliveries JOIN mails ON mails.account_id = deliveries.account_id AND mails.id = deliveries.mail_id
                   WHERE deliveries.account_id = $1 AND deliveries.id = $2 AND deliveries.attempts = 0 AND deliveries.status = $3";
        tx.first(sql, &[account.into(), delivery.into(), Standing::Queued.wire().into()], |row| {
            let text = |column: usize| row.text(column).map(str::to_string);
            let told = Told {
                about: text(0)?,
                about_id: text(1)?,
                kind: text(2)?,
                subject: text(3)?,
                delivery: delivery.to_string(),
                recipient: text(4)?,
                attempts: 0,
                reason: String::new(),
                mail: text(5)?,
                next_attempt: Moment(0),
                has_link: false,
            };
            let words = Words { subject: text(3)?, body: text(7)?, html: text(8)? };
            Ok::<_, Error>(Waited { told, source: text(6)?, words, flow: text(9)? })
        })
    }

    /// Cancels a mail that its record no longer wants, and returns what the record learned; otherwise writes it again, since
    /// the amount may have changed.
    fn prepare(&self, tx: &mut Tx, ctx: &Ctx, followers: &Followers) -> Result<Option<Told>> {
        let Told { about, about_id, kind, mail, .. } = &self.told;
        if !self.flow.is_empty() && !(followers.author_may)(tx, ctx, &self.flow, scope_to_send(kind))? {
            let told = Told { reason: REVOKED.to_string(), ..self.told.clone() };
            set(tx, ctx, &told.delivery, Standing::Canceled, REVOKED)?;
            Outcome::Canceled.tell(tx, ctx, followers, &told)?;
            return Ok(Some(told));
        }
        let Some(follower) = followers.of(about) else { return Ok(None) };
        if let Some(reason) = (follower.unwanted)(tx, ctx, about_id, kind, &self.source)? {
            let told = Told { reason: reason.to_string(), ..self.told.clone() };
            set(tx, ctx, &told.delivery, Standing::Canceled, reason)?;
            Outcome::Canceled.tell(tx, ctx, followers, &told)?;
            return Ok(Some(told));
        }
        if !self.source.is_empty() {
            let Rewritten { words, to } = (follower.rewrite)(tx, ctx, about_id, kind, &self.source)?;
            if to.as_ref().is_some_and(Vec::is_empty) {
                let told = Told { reason: NOWHERE.to_string(), ..self.told.clone() };
                set(tx, ctx, &told.delivery, Standing::Canceled, NOWHERE)?;
                Outcome::Canceled.tell(tx, ctx, followers, &told)?;
                return Ok(Some(told));
            }
            if let Some(to) = to
                && let Some(canceled) = readdress(tx, ctx, &self.told, &to)?
            {
                return Ok(Some(canceled));
            }
            if words != self.words {
                let sql = "UPDATE mails SET subject = $1, body = $2, html = $3 WHERE account_id = $4 AND id = $5";
                let Words { subject, body, html } = &words;
                tx.execute(sql, &[subject.into(), body.into(), html.into(), ctx.account.into(), mail.into()])?;
            }
        }
        Ok(None)
    }
}

/// Returns the scope that a flow needs to send mail of this type: a free text or a reply, or a document.
fn scope_to_send(kind: &str) -> &'static str {
    if [FLOW, TICKET].contains(&kind) { "tickets.write" } else { "invoices.write" }
}

/// Cancels a mail that waited for office hours, if its record no longer wants it; returns whether it did. A reminder of an
/// invoice that was paid in the meantime would only annoy. Otherwise the mail is written again.
pub(super) fn is_canceled(app: &App, account: i64, delivery: &str) -> Result<bool> {
    let own = delivery.to_string();
    let waited = app.store.read_now(move |tx| {
        // With the plus, the index of mail that waits is not used instead of the id.
        let sql = "SELECT count(*) FROM mails WHERE account_id = $1 AND +leaves_at > created_at
                   AND id = (SELECT mail_id FROM deliveries WHERE account_id = $1 AND id = $2 AND attempts = 0)";
        let waited = tx.int(sql, &[account.into(), (&own).into()])? > 0;
        if waited { Waited::find(tx, account, &own) } else { Ok(None) }
    })?;
    let Some(mail) = waited else { return Ok(false) };
    let (caller, followers) = (app.acting_in(account, "outbox")?, *app.services.get::<Followers>());
    let uid = caller.account.uid.clone();
    let canceled = app.store.write_now(account, move |tx| {
        let ctx = caller.writing(tx)?;
        mail.prepare(tx, &ctx, &followers)
    })?;
    if let Some(told) = &canceled {
        Outcome::Canceled.report(app, &uid, told);
    }
    Ok(canceled.is_some())
}

/// Returns the records of this kind whose mail waited and leaves between yesterday and `until`, with the type of mail.
pub(crate) fn leaving(tx: &mut Tx, ctx: &Ctx, about: &str, until: Moment) -> Result<Vec<(String, String)>> {
    let sql = "SELECT about_id, kind FROM mails WHERE account_id = $1 AND leaves_at > created_at AND leaves_at > $2
               AND leaves_at <= $3 AND about = $4 ORDER BY id";
    let values = [ctx.account.into(), ctx.now.plus_seconds(-24 * 3600).0.into(), until.0.into(), about.into()];
    tx.all(sql, &values, |row| Ok::<_, Error>((row.text(0)?.to_string(), row.text(1)?.to_string())))
}
