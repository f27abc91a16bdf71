//! The API of the outbox: outgoing mail, and another attempt for mail that failed. Links that work once are masked in the text
//! of a mail, except in an account that only records its mail.

use std::sync::LazyLock;

use engine::call::{Answer, Call};
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, violation};
use engine::input;
use engine::jobs::{self, NewJob};
use engine::log::{self, Event};
use engine::record::{Shape, parse_date};
use engine::records::Work;
use engine::registry::registry;
use engine::resource::{Handler, Method, Part, RequestBody, Resource, Returns};
use engine::text::unknown_value;
use serde_json::{Value, json};
use store::{Row, Tx};

use super::link::{self, Kept};
use super::outcome::{Followers, next_attempt};
use super::trial::{self, Trial};
use super::{Deliver, Standing, readdressing};
use crate::files::usage;
use crate::settings::Settings;

static SHAPE: Shape = Shape::new("mail", "outgoing_mails", &["A mail to one recipient."]);

const LIMIT: i64 = 50;
const MAX_LIMIT: i64 = 100;
/// How many mails are looked at for one page, if the caller may not read all of them.
const MAX_SEEN: usize = 10_000;
/// How many of them at a time.
const TOGETHER: i64 = 500;

const QUERY: &[Part] = &[
    Part("status", "string", "Only mail with this status, or with one of several, separated by commas."),
    Part("about_id", "string", "Only mail about this record."),
    Part("updated_from", "date", "Only mail whose status last changed on this date or later (YYYY-MM-DD)."),
    Part(
        "before",
        "string",
        "Only mail before the one with this id: `meta.last_id` of the page before. A page may be empty although `meta.has_more` is true, if the caller may not read the latest 10,000.",
    ),
    Part("limit", "integer 1 100", "Maximum number: 50 by default, 100 at most."),
];

const MEMBERS: &[Part] = &[
    Part("id", "string", "The id."),
    Part("about", "string", "The type of the record that the mail is about."),
    Part("about_id", "string", "The id of that record."),
    Part("send_type", "string", "Type of mail."),
    Part("subject", "string", "Subject."),
    Part("recipient", "string", "Recipient."),
    Part(
        "status",
        "string",
        "Status: queued, sending, retrying, sent, failed; stored on a server without mail settings, recorded in an account that sends no mail, or canceled if it waited for office hours and nothing was left to ask for.",
    ),
    Part("attempts", "integer", "Number of attempts."),
    Part("reason", "string", "The last reply of the mail server."),
    Part(
        "maybe_twice",
        "boolean",
        "Whether an attempt was interrupted after the mail was handed over, so that it may have arrived twice.",
    ),
    Part("created_at", "date-time", "When the mail was queued."),
    Part("updated_at", "date-time", "When the status last changed."),
    Part("leaves_at", "date-time", "When the mail leaves: after `created_at` if it waits for office hours."),
    Part("next_attempt_at", "date-time or null", "When the next attempt is made, after one that failed."),
];

const TEXT: &[Part] = &[
    Part(
        "text",
        "string",
        "The text of the mail. A link that works once is masked, unless the mail was only recorded and you may do what the link allows.",
    ),
    Part("html", "string", "The text as HTML; empty if there is none."),
];

/// The members of a mail with its text.
static WHOLE: LazyLock<Vec<Part>> = LazyLock::new(|| [MEMBERS, TEXT].concat());

/// The routes of outgoing mail.
pub(crate) fn resource(retry: Handler) -> Resource {
    Resource::without_records(&SHAPE, "Mail", "invoices", &[])
        .at("/v1/mails")
        .route(Method::Get, "", "List outgoing mail, newest first", list)
        .returns(Returns::Found(MEMBERS, QUERY))
        // Those that the caller may not read are passed over.
        .with(|route| route.visits_many = true)
        .extension()
        .route(Method::Get, "/{id}", "Retrieve a mail with its text", get)
        .returns(Returns::Parts(&WHOLE))
        .extension()
        .route(Method::Post, "/test", "Send a test mail", trial::send)
        .body::<Trial>(RequestBody::Body)
        .returns(Returns::Parts(&[Part("to", "string", "The recipient.")]))
        .with(|route| route.scope = "settings.write".to_string())
        .extension()
        .route(Method::Post, "/{id}/retry", "Send a mail that failed again", retry)
        .returns(Returns::Parts(MEMBERS))
        .extension()
}

/// Returns a condition on `mails`, after another: only mail about records that the caller may read.
pub(crate) fn readable(ctx: &Ctx) -> String {
    let hidden: Vec<String> = hidden(ctx).iter().map(|kind| format!("'{kind}'")).collect();
    if hidden.is_empty() { String::new() } else { format!(" AND mails.about NOT IN ({})", hidden.join(", ")) }
}

/// Returns the types of record that the caller may not read.
fn hidden(ctx: &Ctx) -> Vec<&'static str> {
    let hidden = registry().resources.iter().filter(|one| one.is_kept() && !ctx.may(&format!("{}.read", one.area)));
    hidden.map(|one| one.shape.name).collect()
}

/// `GET /v1/mails`
fn list(call: Call) -> Result<Work> {
    let mut faults = FieldErrors::default();
    let statuses = call.query.get("status").into_iter().flat_map(|texts| texts.split(',')).map(|text| {
        let wrong = || unknown_value(text.trim(), Standing::WIRE.iter().copied());
        Standing::from_wire(text.trim()).ok_or_else(wrong)
    });
    let statuses: Vec<Standing> = statuses.filter_map(|status| faults.take("status", status)).collect();
    let limit = faults.take("limit", call.query.whole("limit", 1, MAX_LIMIT)).flatten().unwrap_or(LIMIT);
    let day = call.query.get("updated_from").map(parse_date).transpose();
    let day = faults.take("updated_from", day).flatten();
    if call.query.get("before").is_some_and(|id| !is_id(id)) {
        faults.add(
            "before",
            violation(FieldCode::InvalidFormat, "must be the id of a mail, such as meta.last_id of a page"),
        );
    }
    faults.into_result()?;
    Ok(Box::new(move |tx, ctx| {
        let text = |name: &str| call.query.get(name).unwrap_or_default().to_string();
        let since = day.map(|day| Moment::start_of(day, &ctx.zone));
        let filter = Filter { statuses: statuses.clone(), about: text("about_id"), before: text("before"), since };
        let Found { mails, last, more } = page(tx, ctx, filter, limit)?;
        let mut answer = Answer::json(&Value::from(mails));
        answer.meta.push(format!("\"has_more\":{more},\"last_id\":{}", json!(last)));
        Ok(answer)
    }))
}

/// Whether a text has the form of an id.
fn is_id(text: &str) -> bool {
    let is_dash = |place: usize| matches!(place, 8 | 13 | 18 | 23);
    let fits = |(place, byte): (usize, u8)| if is_dash(place) { byte == b'-' } else { byte.is_ascii_hexdigit() };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

/// Which mail to list.
struct Filter {
    /// Of these statuses; of any, if there are none.
    statuses: Vec<Standing>,
    about: String,
    /// The id that the page starts before; empty for the latest mail.
    before: String,
    /// Whose status last changed then or later.
    since: Option<Moment>,
}

/// One page of mail.
struct Found {
    mails: Vec<Value>,
    /// The id to continue before.
    last: String,
    more: bool,
}

/// Returns up to `limit` mails that the caller may read, fewer if many were looked at in vain.
fn page(tx: &mut Tx, ctx: &Ctx, mut filter: Filter, limit: i64) -> Result<Found> {
    let (hidden, room) = (hidden(ctx), usize::try_from(limit).unwrap_or(usize::MAX));
    let (mut mails, mut looked) = (Vec::<Value>::new(), 0);
    loop {
        // One more than wanted tells whether there are more.
        let step = if hidden.is_empty() { limit + 1 } else { TOGETHER };
        let seen = look(tx, ctx, &filter, step)?;
        let is_last = seen.len() < usize::try_from(step).unwrap_or(usize::MAX);
        looked += seen.len();
        for mail in seen {
            let is_hidden = hidden.iter().any(|kind| mail["about"] == *kind);
            if !is_hidden && mails.len() == room {
                let last = mails.last().map(id_of).unwrap_or_default();
                return Ok(Found { mails, last, more: true });
            }
            filter.before = id_of(&mail);
            mails.extend((!is_hidden).then_some(mail));
        }
        if is_last {
            let last = mails.last().map(id_of).unwrap_or_default();
            return Ok(Found { mails, last, more: false });
        }
        if looked >= MAX_SEEN {
            return Ok(Found { mails, last: filter.before, more: true });
        }
    }
}

fn id_of(mail: &Value) -> String {
    mail["id"].as_str().unwrap_or_default().to_string()
}

const COLUMNS: &str =
    "deliveries.id, mails.about, mails.about_id, mails.kind, mails.subject, deliveries.recipient, deliveries.status,
    deliveries.attempts, deliveries.reason, deliveries.maybe_twice, mails.created_at, deliveries.changed_at, mails.leaves_at,
    deliveries.next_attempt_at";

/// Returns the next mails, whoever may read them. Each status has its own range of the index; the candidates are merged.
fn look(tx: &mut Tx, ctx: &Ctx, filter: &Filter, limit: i64) -> Result<Vec<Value>> {
    let mut found = match filter.statuses.as_slice() {
        [] => look_for(tx, ctx, filter, None, limit)?,
        several => {
            let mut found = Vec::new();
            for status in Standing::ALL.iter().filter(|status| several.contains(status)) {
                found.extend(look_for(tx, ctx, filter, Some(*status), limit)?);
            }
            found
        }
    };
    found.sort_by_key(|mail| std::cmp::Reverse(id_of(mail)));
    found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(found)
}

fn look_for(tx: &mut Tx, ctx: &Ctx, filter: &Filter, status: Option<Standing>, limit: i64) -> Result<Vec<Value>> {
    let mut values: Vec<store::Value> = vec![ctx.account.into()];
    let mut conditions = String::new();
    let mut add = |condition: &str, value: &str| {
        if !value.is_empty() {
            values.push(value.to_string().into());
            conditions.push_str(&format!(" AND deliveries.{condition} ${}", values.len()));
        }
    };
    add("about_id =", &filter.about);
    add("status =", status.map_or("", Standing::wire));
    add("id <", &filter.before);
    if let Some(since) = filter.since {
        values.push(since.0.into());
        conditions.push_str(&format!(" AND deliveries.changed_at >= ${}", values.len()));
    }
    values.push(limit.into());
    // Ids increase with time, so each index has its rows in order.
    let index = match (filter.about.as_str(), status) {
        ("", None) => String::new(),
        ("", Some(_)) => tx.dialect().indexed_by("deliveries_status"),
        _ => tx.dialect().indexed_by("deliveries_about"),
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM deliveries{index} CROSS JOIN mails WHERE deliveries.account_id = $1{conditions}
         AND mails.account_id = deliveries.account_id AND mails.id = deliveries.mail_id ORDER BY deliveries.id DESC LIMIT ${}",
        values.len()
    );
    tx.all(&sql, &values, shown)
}

fn shown(row: &Row) -> Result<Value> {
    Ok(json!({
        "id": row.text(0)?, "about": row.text(1)?, "about_id": row.text(2)?, "send_type": row.text(3)?,
        "subject": row.text(4)?, "recipient": row.text(5)?, "status": row.text(6)?, "attempts": row.int(7)?,
        "reason": row.text(8)?, "maybe_twice": row.int(9)? != 0, "created_at": Moment(row.int(10)?).to_string(),
        "updated_at": Moment(row.int(11)?).to_string(), "leaves_at": Moment(row.int(12)?).to_string(),
        "next_attempt_at": next_attempt(row.text(6)?, row.int(13)?),
    }))
}

/// `GET /v1/mails/{id}`
fn get(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let mut mail = find(tx, ctx, call.id())?;
        let sql = "SELECT mails.id, mails.body, mails.html FROM deliveries JOIN mails
                       ON mails.account_id = deliveries.account_id AND mails.id = deliveries.mail_id
                   WHERE deliveries.account_id = $1 AND deliveries.id = $2";
        let found = tx.first(sql, &[ctx.account.into(), call.id().into()], |row| {
            Ok::<_, Error>((row.text(0)?.to_string(), [row.text(1)?.to_string(), row.text(2)?.to_string()]))
        })?;
        let (id, mut texts) = found.ok_or_else(|| Error::not_found("mail"))?;
        let is_linked = link::KINDS.iter().any(|kind| mail["send_type"] == *kind);
        let may_write = check_sender(ctx, mail["about"].as_str().unwrap_or_default()).is_ok();
        if is_linked && may_write && mail["status"] == Standing::Recorded.wire() && Settings::is_sealed(tx, ctx)? {
            let link = Kept::of(tx, ctx.account, &id)?;
            if link.is_for(ctx) {
                for text in &mut texts {
                    *text = link.unmask(&ctx.site.vault, ctx.account, &id, text)?;
                }
            }
        }
        let [text, html] = texts;
        (mail["text"], mail["html"]) = (text.into(), html.into());
        Ok(Answer::json(&mail))
    }))
}

/// `POST /v1/mails/{id}/retry`
pub(crate) fn retry(call: Call, followers: &'static Followers) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let mail = find(tx, ctx, call.id())?;
        check_sender(ctx, mail["about"].as_str().unwrap_or_default())?;
        if mail["status"] != Standing::Failed.wire() {
            let message = format!(
                "The mail is {}; only a mail that failed can be sent again.",
                mail["status"].as_str().unwrap_or_default()
            );
            return Err(Error::new(Code::InvalidTransition, message));
        }
        check_link(tx, ctx, call.id(), &mail)?;
        let mut queued = readdressing::follow_client(tx, ctx, followers, call.id())?;
        tx.execute(
            "UPDATE deliveries SET status = $1, changed_at = $2 WHERE account_id = $3 AND id = $4",
            &[Standing::Queued.wire().into(), ctx.now.0.into(), ctx.account.into(), call.id().into()],
        )?;
        queued.push(call.id().to_string());
        usage::count_mails(tx, ctx, queued.len())?;
        for delivery in queued {
            jobs::enqueue(tx, ctx, &NewJob::of(ctx, &Deliver { delivery })?)?;
        }
        // Without the recipient and the subject: whoever reads this line may not read the record.
        let data = json!({"id": mail["id"], "about": mail["about"], "about_id": mail["about_id"]}).to_string();
        let event = Event { name: "mail.retried", entity_type: SHAPE.name, entity_id: call.id(), data: &data };
        log::append(tx, ctx, &event)?;
        Ok(Answer::json(&find(tx, ctx, call.id())?).with_texts("warnings", &warnings))
    }))
}

fn find(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Value> {
    let missing = || Error::not_found("mail");
    if id.contains('\0') {
        return Err(missing());
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM deliveries JOIN mails ON mails.account_id = deliveries.account_id AND mails.id = deliveries.mail_id
         WHERE deliveries.account_id = $1 AND deliveries.id = $2{}",
        readable(ctx)
    );
    tx.first(&sql, &[ctx.account.into(), id.into()], shown)?.ok_or_else(missing)
}

/// Rejects a mail whose link no longer works.
fn check_link(tx: &mut Tx, ctx: &Ctx, delivery: &str, mail: &Value) -> Result<()> {
    if !link::KINDS.iter().any(|kind| mail["send_type"] == *kind) {
        return Ok(());
    }
    let sql = "SELECT count(*) FROM deliveries JOIN mail_links
                   ON mail_links.account_id = deliveries.account_id AND mail_links.id = deliveries.mail_id
               WHERE deliveries.account_id = $1 AND deliveries.id = $2 AND mail_links.expires_at > $3";
    match tx.int(sql, &[ctx.account.into(), delivery.into(), ctx.machine_now.0.into()])? {
        0 => Err(Error::new(
            Code::InvalidTransition,
            "The link in this mail no longer works. Send the invitation again, or request a new link.",
        )),
        _ => Ok(()),
    }
}

/// Rejects a caller who may not change the record that a mail is about.
fn check_sender(ctx: &Ctx, about: &str) -> Result<()> {
    let scope = registry().named(about).map(|resource| format!("{}.write", resource.area));
    match scope.filter(|scope| !ctx.may(scope)) {
        None => Ok(()),
        Some(scope) => Err(Error::new(Code::Forbidden, format!("Mail about a {about} requires the scope '{scope}'."))),
    }
}
