//! The outbox: mail is written in the transaction of its cause, and a job per recipient delivers it. Each attempt is
//! recorded before it starts, so that a mail that may have arrived twice is known.

mod attempt;
mod delivery;
pub(crate) mod from;
pub(crate) mod hours;
pub(crate) mod link;
pub(crate) mod listed;
pub(crate) mod outcome;
mod readdressing;
mod standing;
mod transport;
mod trial;
pub(crate) mod waiting;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use engine::app::App;
use engine::call::Content;
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::faults;
use engine::jobs::{self, Claimed, Ending, Job, Lane, NewJob};
use engine::leases::Confirmed;
use engine::perform;
use engine::record::Record;
use engine::registry::registry;
use mail::{Attachment, Failure, Mail, NamedAddress, Sender};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{Migration, Tx};

use crate::files::usage;
use crate::settings::corporate_identity::CorporateIdentity;
use crate::settings::{NOT_SENT, Settings};
use from::MailFrom;
use hours::Timing;
use link::{Kept, Link};
pub use standing::Standing;
pub(crate) use transport::{open, sender};

/// The type of actor of an import. What it creates is mailed to nobody and starts no flow: nobody wants to welcome ten
/// thousand old clients.
pub(crate) const IMPORT: &str = "import";

/// The tables of the outbox.
pub(crate) const MIGRATION: Migration = Migration {
    number: 34,
    name: "outbox",
    sql: "
CREATE TABLE mails (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    about TEXT NOT NULL,
    about_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    from_name TEXT NOT NULL,
    from_email TEXT NOT NULL,
    reply_to TEXT NOT NULL,
    recipients TEXT NOT NULL,
    copies TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    html TEXT NOT NULL,
    attach_pdf BIGINT NOT NULL,
    leaves_at BIGINT NOT NULL DEFAULT 0,
    source TEXT NOT NULL DEFAULT '',
    to_client BIGINT NOT NULL DEFAULT 0,
    flow_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX mails_waiting ON mails (account_id, leaves_at) WHERE leaves_at > created_at;
CREATE TABLE deliveries (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    mail_id TEXT NOT NULL,
    about_id TEXT NOT NULL,
    recipient TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    reason TEXT NOT NULL,
    maybe_twice BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    next_attempt_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX deliveries_about ON deliveries (account_id, about_id, id);
CREATE INDEX deliveries_status ON deliveries (account_id, status, id);
CREATE INDEX deliveries_failed ON deliveries (account_id, changed_at) WHERE status = 'failed';
",
};

/// A mail to send.
#[derive(Clone, Debug, Default)]
pub struct Letter {
    /// The kind of record that it is about, such as `invoice`.
    pub about: &'static str,
    /// The id of that record.
    pub about_id: String,
    /// The send type.
    pub kind: String,
    /// The recipients.
    pub to: Vec<String>,
    /// The recipients of a copy.
    pub cc: Vec<String>,
    /// The subject.
    pub subject: String,
    /// The body as plain text.
    pub body: String,
    /// The body as HTML, or empty.
    pub html: String,
    /// What the text was written from, with which its record writes a mail that waited again; empty if it stays as it is.
    pub source: String,
    /// Whether to attach the PDF of the document.
    pub attach_pdf: bool,
    /// The name of the identity or the channel that it is from; see `from.rs`.
    pub from_name: String,
    /// The address of that.
    pub reply_to: String,
    /// Whether `to` are the addresses of the client, so that a further try goes to those that the client has then.
    pub to_client: bool,
    /// When it may leave.
    pub timing: Timing,
    /// The link in its text that works once.
    pub link: Link,
}

/// Size in bytes above which a document takes seconds to typeset.
const LARGE: usize = 32_000;

/// Writes a mail to the outbox and enqueues a delivery for each recipient; returns whether it still has to leave or to be
/// accepted by a mail server. One that is only recorded or stored cannot be refused.
pub(crate) fn put(tx: &mut Tx, ctx: &Ctx, letter: &Letter) -> Result<bool> {
    let id = ctx.new_id();
    let leaves_at = hours::leaves_at(tx, ctx, letter.timing)?;
    let waits = leaves_at > ctx.now;
    let (to, cc) = distinct(&letter.to, &letter.cc);
    let from = MailFrom::of(tx, ctx, &letter.from_name, &letter.reply_to)?;
    tx.execute(
        "INSERT INTO mails (account_id, id, created_at, about, about_id, kind, from_name, from_email, reply_to,
                            recipients, copies, subject, body, html, attach_pdf, leaves_at, source, to_client, flow_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)",
        &[
            ctx.account.into(),
            (&id).into(),
            ctx.now.0.into(),
            letter.about.into(),
            (&letter.about_id).into(),
            (&letter.kind).into(),
            (&from.name).into(),
            (&from.email).into(),
            (&from.reply_to).into(),
            to.join(", ").into(),
            cc.join(", ").into(),
            (&letter.subject).into(),
            letter.link.mask(&letter.body).into(),
            letter.link.mask(&letter.html).into(),
            letter.attach_pdf.into(),
            leaves_at.0.into(),
            if waits { (&letter.source).into() } else { "".into() },
            letter.to_client.into(),
            ctx.actor.id.strip_prefix("flow ").unwrap_or_default().into(),
        ],
    )?;
    letter.link.keep(tx, &ctx.site.vault, ctx.account, &id)?;
    // Anybody can request links for new passwords. They are limited by person, and must not use up the mail of the account.
    if letter.kind != link::RESET {
        usage::count_mails(tx, ctx, to.len() + cc.len())?;
    }
    let (status, reason) = match !waits && Settings::is_sealed(tx, ctx)? {
        true => (Standing::Recorded, NOT_SENT),
        false => (Standing::Queued, ""),
    };
    for recipient in to.iter().chain(&cc) {
        let delivery = write_delivery(tx, ctx, (&id, &letter.about_id), recipient, (status, reason))?;
        // What waits on a test clock is delivered when that is advanced.
        if status == Standing::Queued && !(waits && ctx.has_test_clock) {
            let mut job = NewJob::of(ctx, &Deliver { delivery })?;
            if !ctx.has_test_clock {
                job.run_at = hours::next_look(leaves_at, ctx.machine_now);
            }
            jobs::enqueue(tx, ctx, &job)?;
        }
    }
    Ok(waits || (status == Standing::Queued && ctx.quotas.provided.mail))
}

/// Writes a delivery of a mail about a record to one recipient; returns its id.
fn write_delivery(
    tx: &mut Tx,
    ctx: &Ctx,
    (mail, about_id): (&str, &str),
    recipient: &str,
    (status, reason): (Standing, &str),
) -> Result<String> {
    let delivery = ctx.new_id();
    tx.execute(
        "INSERT INTO deliveries (account_id, id, mail_id, about_id, recipient, status, attempts, reason,
                                 maybe_twice, changed_at)
         VALUES ($1, $2, $3, $4, $5, $6, 0, $7, 0, $8)",
        &[
            ctx.account.into(),
            (&delivery).into(),
            mail.into(),
            about_id.into(),
            recipient.into(),
            status.wire().into(),
            reason.into(),
            ctx.now.0.into(),
        ],
    )?;
    Ok(delivery)
}

/// Returns the recipients without duplicates, ignoring case; an address in both is only in `to`.
pub(crate) fn distinct(to: &[String], cc: &[String]) -> (Vec<String>, Vec<String>) {
    let mut seen = HashSet::new();
    let mut new = |addresses: &[String]| -> Vec<String> {
        addresses.iter().filter(|address| seen.insert(address.to_lowercase())).cloned().collect()
    };
    let to = new(to);
    (to, new(cc))
}

/// The job that delivers a mail to one recipient.
#[derive(Serialize, Deserialize)]
pub struct Deliver {
    delivery: String,
}

impl Job for Deliver {
    const KIND: &'static str = "deliver";
    const LANE: Lane = Lane::Outside;
    /// Over about a day.
    const TRIES: i64 = 12;

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        deliver(app, claimed, self.delivery.clone())
    }
}

fn deliver(app: &App, claimed: &Claimed, id: String) -> Result<Ending> {
    let (account, now) = (claimed.account, app.clock.now());
    if is_recorded(app, account, &id)? {
        return Ok(Ending::Done);
    }
    let own = id.clone();
    if let Some(until) = app.store.read_now(move |tx| hours::held_until(tx, account, &own, now))? {
        return Ok(Ending::Wait(until));
    }
    if waiting::is_canceled(app, account, &id)? {
        return Ok(Ending::Done);
    }
    let own = id.clone();
    if app.store.read_now(move |tx| awaits_print(tx, account, &own, now))? {
        return Ok(Ending::Wait(now.plus_seconds(2)));
    }
    let caller = app.acting_in(account, "outbox")?;
    let confirmed = Confirmed::now();
    let Some((delivery, mail)) = attempt::start_try(app, &caller, claimed, &id)? else { return Ok(Ending::Done) };
    let sent = match build(app, account, &mail) {
        Ok((from, bytes)) => {
            let started = Instant::now();
            let permit = || {
                faults::pause_before("mail");
                claimed.is_certain(app, confirmed)
            };
            let sent = app.services.get::<Sender>().deliver_if(&from, &delivery.recipient, &bytes, &permit);
            let took = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
            app.metrics.took(outcome::SECONDS.name, took);
            sent
        }
        Err(error) => Err(Failure::Later(error.to_string())),
    };
    let (outcome, reason, twice, ending) = match sent {
        Ok(receipt) if app.config.smtp_host.is_empty() => {
            (outcome::Outcome::Stored, receipt.response, false, Ending::Done)
        }
        Ok(receipt) => (outcome::Outcome::Sent, receipt.response, false, Ending::Done),
        Err(Failure::Never(why)) => (outcome::Outcome::Bounced, why, false, Ending::Done),
        Err(failure) if !claimed.has_tries_left() => {
            (outcome::Outcome::Failed, failure.words().to_string(), false, Ending::Done)
        }
        Err(failure) => {
            let twice = matches!(failure, Failure::Unknown(_));
            let why = failure.words().to_string();
            (outcome::Outcome::Retried, why.clone(), twice, Ending::Failed(why))
        }
    };
    let mut told = outcome::Told::of(&delivery, &mail, &reason);
    told.next_attempt = claimed.retry_at(app.clock.now());
    outcome.report(app, &caller.account.uid, &told);
    match attempt::end_try(app, &caller, outcome, twice, &told, true) {
        // A mail that was handed over is not sent again because its record cannot be told.
        Err(error) if !error.code.may_pass() => {
            tracing::error!(delivery = %id, %error, cause = error.internal.as_deref().unwrap_or(""), "Cannot record a mail in its document.");
            attempt::end_try(app, &caller, outcome, twice, &told, false)?;
        }
        ended => ended?,
    }
    Ok(ending)
}

/// Records a mail that was queued before its account stopped sending; returns whether it did.
fn is_recorded(app: &App, account: i64, id: &str) -> Result<bool> {
    let caller = app.acting_in(account, "outbox")?;
    if !caller.account.has_test_clock {
        return Ok(false);
    }
    let id = id.to_string();
    app.store.write_now(account, move |tx| {
        let ctx = caller.writing(tx)?;
        if !Settings::is_sealed(tx, &ctx)? {
            return Ok(false);
        }
        // A job that runs again keeps the outcome of an earlier attempt.
        let over = Standing::sql_list(Standing::OVER);
        tx.execute(
            &format!(
                "UPDATE deliveries SET status = $1, reason = $2, changed_at = $3
                 WHERE account_id = $4 AND id = $5 AND status NOT IN ({over})"
            ),
            &[Standing::Recorded.wire().into(), NOT_SENT.into(), ctx.now.0.into(), account.into(), (&id).into()],
        )?;
        Ok::<_, Error>(true)
    })
}

/// Whether the mail attaches a large document whose PDF job is about to run. A small PDF is created here if necessary;
/// a large one would delay other mail.
fn awaits_print(tx: &mut Tx, account: i64, delivery: &str, now: Moment) -> Result<bool> {
    let about = "SELECT mails.about_id FROM deliveries JOIN mails ON mails.account_id = deliveries.account_id AND mails.id = mail_id
                 WHERE deliveries.account_id = $1 AND deliveries.id = $2 AND attach_pdf = 1";
    let about = tx.first(about, &[account.into(), delivery.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    let Some(about) = about else { return Ok(false) };
    // A PDF job that failed and awaits its retry is not waited for.
    let sql = "SELECT state, run_at, payload FROM jobs WHERE unique_key > $1 AND unique_key < $2 LIMIT 100";
    let (from, to) = (format!("document_pdf {about} "), format!("document_pdf {about}!"));
    let about_to_print = tx.all(sql, &[from.into(), to.into()], |row| {
        let is_due = ["ready", "running"].contains(&row.text(0)?) && row.int(1)? <= now.0;
        Ok::<_, Error>(is_due && printed(row.text(2)?) > LARGE)
    })?;
    Ok(about_to_print.contains(&true))
}

/// Returns roughly how many bytes a PDF job prints.
fn printed(payload: &str) -> usize {
    let size = serde_json::from_str::<Value>(payload).ok().and_then(|job| job["size"].as_u64());
    size.map_or(payload.len(), |size| usize::try_from(size).unwrap_or(usize::MAX))
}

/// A mail in the outbox.
pub(crate) struct Queued {
    created_at: i64,
    id: String,
    about: String,
    about_id: String,
    kind: String,
    from_name: String,
    from_email: String,
    reply_to: String,
    to: String,
    cc: String,
    subject: String,
    body: String,
    html: String,
    attach_pdf: bool,
    link: Kept,
}

impl Queued {
    fn find(tx: &mut Tx, account: i64, id: &str) -> Result<Option<Queued>> {
        let sql =
            "SELECT created_at, id, about, about_id, from_name, from_email, reply_to, recipients, copies, subject,
                          body, html, attach_pdf, kind
                   FROM mails WHERE account_id = $1 AND id = $2";
        let mut found = tx.first(sql, &[account.into(), id.into()], |row| {
            let text = |column: usize| row.text(column).map(str::to_string);
            Ok::<_, Error>(Queued {
                created_at: row.int(0)?,
                id: text(1)?,
                about: text(2)?,
                about_id: text(3)?,
                from_name: text(4)?,
                from_email: text(5)?,
                reply_to: text(6)?,
                to: text(7)?,
                cc: text(8)?,
                subject: text(9)?,
                body: text(10)?,
                html: text(11)?,
                attach_pdf: row.int(12)? != 0,
                kind: text(13)?,
                link: Kept::default(),
            })
        })?;
        if let Some(mail) = found.as_mut().filter(|mail| link::KINDS.contains(&mail.kind.as_str())) {
            mail.link = Kept::of(tx, account, id)?;
        }
        Ok(found)
    }
}

/// Returns the sender address and the bytes of the mail.
fn build(app: &App, account: i64, queued: &Queued) -> Result<(String, Vec<u8>)> {
    let split = |text: &str| text.split(", ").filter(|one| !one.is_empty()).map(str::to_string).collect();
    let from = match queued.from_email.as_str() {
        "" => app.config.mail_from.clone(),
        own => own.to_string(),
    };
    let mut attachments = Vec::new();
    if queued.attach_pdf {
        let (name, bytes) = pdf_of(app, account, &queued.about, &queued.about_id)?;
        attachments.push(Attachment { name, content_type: "application/pdf".to_string(), bytes });
    }
    let reply_to = (!queued.reply_to.is_empty() && queued.reply_to != from)
        .then(|| NamedAddress { name: queued.from_name.clone(), email: queued.reply_to.clone() });
    let unmasked = |text: &str| queued.link.unmask(&app.site.vault, account, &queued.id, text);
    let mail = Mail {
        from: NamedAddress { name: queued.from_name.clone(), email: from.clone() },
        reply_to,
        to: split(&queued.to),
        cc: split(&queued.cc),
        subject: queued.subject.clone(),
        text: unmasked(&queued.body)?,
        html: unmasked(&queued.html)?,
        attachments,
        message_id: queued.id.clone(),
        date_ms: queued.created_at,
        headers: Vec::new(),
    };
    let bytes = mail.to_bytes().map_err(|invalid| Error::internal(format!("{}: {}", invalid.field, invalid.reason)))?;
    Ok((from, bytes))
}

/// Returns the PDF of a record from its own route, which creates it if necessary.
fn pdf_of(app: &App, account: i64, about: &str, id: &str) -> Result<(String, Vec<u8>)> {
    let resource =
        registry().named(about).ok_or_else(|| Error::internal(format!("there are no records called {about}")))?;
    let work = perform::prepare("GET", &format!("{}/{id}/pdf/content", resource.path), None)?;
    let caller = app.acting_in(account, "outbox")?;
    let answer = app.store.read_now(move |tx| {
        let ctx = caller.reading(tx)?;
        work(tx, &ctx)
    })?;
    match answer.content {
        Some(Content::Made(made)) => Ok((made.name().to_string(), made.make_now(app)?)),
        Some(Content::Kept { key, name, .. }) => {
            let read = tokio::runtime::Handle::current().block_on(app.blobs.read(&key));
            let bytes = read.map_err(|error| Error::internal(format!("the PDF {name}: {error}")))?;
            Ok((name, bytes.to_vec()))
        }
        Some(Content::Written { name, text, .. }) => Ok((name, text.into_bytes())),
        Some(Content::Page(_) | Content::Poured(_)) | None => {
            Err(Error::internal(format!("the {about} {id} has no PDF")))
        }
    }
}

/// Returns the deliveries about a record, oldest first, as JSON.
pub(crate) fn deliveries(tx: &mut Tx, ctx: &Ctx, about_id: &str) -> Result<Vec<Value>> {
    let sql =
        "SELECT deliveries.id, mails.kind, mails.subject, deliveries.recipient, deliveries.status, deliveries.attempts,
                      deliveries.reason, deliveries.maybe_twice, mails.created_at, deliveries.changed_at, mails.leaves_at,
                      deliveries.next_attempt_at
               FROM deliveries JOIN mails ON mails.account_id = deliveries.account_id AND mails.id = deliveries.mail_id
               WHERE deliveries.account_id = $1 AND deliveries.about_id = $2 ORDER BY deliveries.id LIMIT 1000";
    tx.all(sql, &[ctx.account.into(), about_id.into()], |row| {
        Ok(json!({
            "id": row.text(0)?, "send_type": row.text(1)?, "subject": row.text(2)?, "recipient": row.text(3)?,
            "status": row.text(4)?, "attempts": row.int(5)?, "reason": row.text(6)?, "maybe_twice": row.int(7)? != 0,
            "created_at": Moment(row.int(8)?).to_string(), "updated_at": Moment(row.int(9)?).to_string(),
            "leaves_at": Moment(row.int(10)?).to_string(),
            "next_attempt_at": outcome::next_attempt(row.text(4)?, row.int(11)?),
        }))
    })
}

/// Returns the sender name and address of a corporate identity.
pub(crate) fn identity_of(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<(String, String)> {
    let named = match id {
        "" => None,
        id => tx.first(&CorporateIdentity::sql().get, &[ctx.account.into(), id.into()], CorporateIdentity::from_row)?,
    };
    let identity = match named {
        Some(identity) => Arc::new(identity),
        None => crate::settings::corporate_identity::default_one(tx, ctx)?,
    };
    Ok((identity.name.clone(), identity.email.0.clone()))
}
