//! The API of the outbox: outgoing mail, and another attempt for mail that failed. It shows no text of a mail, since some
//! contain links that work once.

use engine::call::{Answer, Call};
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, violation};
use engine::input;
use engine::jobs::{self, NewJob};
use engine::record::Shape;
use engine::records::Work;
use engine::registry::registry;
use engine::resource::{Method, Part, Resource, Returns};
use serde_json::{Value, json};
use store::{Row, Tx};

use super::{Deliver, Standing};

static SHAPE: Shape = Shape::new("mail", "outgoing_mails", &["A mail to one recipient."]);

const LIMIT: i64 = 50;
const MAX_LIMIT: i64 = 100;

const QUERY: &[Part] = &[
    Part("status", "string", "Only mail with this status."),
    Part("about_id", "string", "Only mail about this record."),
    Part("before", "string", "Only mail before the one with this id: `meta.last_id` of the page before."),
    Part("limit", "integer", "Maximum number: 50 by default, 100 at most."),
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
    Part("created_at", "string", "When the mail was queued."),
    Part("updated_at", "string", "When the status last changed."),
    Part("leaves_at", "string", "When the mail leaves: after `created_at` if it waits for office hours."),
];

/// The routes of outgoing mail.
pub(crate) fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Mail", "invoices", Vec::new())
        .at("/v1/mails")
        .route(Method::Get, "", "List outgoing mail, newest first", list)
        .returns(Returns::Found(MEMBERS, QUERY))
        // Those that the caller may not read are passed over.
        .with(|route| route.visits_many = true)
        .extension()
        .route(Method::Post, "/{id}/retry", "Send a mail that failed again", retry)
        .returns(Returns::Parts(MEMBERS))
        .extension()
}

/// Returns a condition on `mails`, after another: only mail about records that the caller may read.
pub(crate) fn readable(ctx: &Ctx) -> String {
    let hidden = registry().resources.iter().filter(|one| one.is_kept() && !ctx.may(&format!("{}.read", one.area)));
    let hidden: Vec<String> = hidden.map(|one| format!("'{}'", one.shape.name)).collect();
    if hidden.is_empty() { String::new() } else { format!(" AND mails.about NOT IN ({})", hidden.join(", ")) }
}

/// `GET /v1/mails`
fn list(call: Call) -> Result<Work> {
    let mut faults = FieldErrors::default();
    let status = call.query.get("status").map(|text| {
        let wrong = || violation(FieldCode::InvalidChoice, format!("must be one of: {}", Standing::WIRE.join(", ")));
        Standing::from_wire(text).ok_or_else(wrong)
    });
    let status = faults.take("status", status.transpose()).flatten();
    let limit = faults.take("limit", call.query.whole("limit", 1, MAX_LIMIT)).flatten().unwrap_or(LIMIT);
    faults.into_result()?;
    Ok(Box::new(move |tx, ctx| {
        let text = |name: &str| call.query.get(name).unwrap_or_default();
        let mut found = page(tx, ctx, status, text("about_id"), text("before"), limit + 1)?;
        let more = found.len() > usize::try_from(limit).unwrap_or(usize::MAX);
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let last = found.last().map_or_else(|| json!(""), |mail| mail["id"].clone());
        let mut answer = Answer::json(&Value::from(found));
        answer.meta.push(format!("\"has_more\":{more},\"last_id\":{last}"));
        Ok(answer)
    }))
}

const COLUMNS: &str =
    "deliveries.id, mails.about, mails.about_id, mails.kind, mails.subject, deliveries.recipient, deliveries.status,
    deliveries.attempts, deliveries.reason, deliveries.maybe_twice, mails.created_at, deliveries.changed_at, mails.leaves_at";

fn page(tx: &mut Tx, ctx: &Ctx, status: Option<Standing>, about: &str, before: &str, limit: i64) -> Result<Vec<Value>> {
    let mut values: Vec<store::Value> = vec![ctx.account.into()];
    let mut conditions = String::new();
    let mut add = |condition: &str, value: &str| {
        if !value.is_empty() {
            values.push(value.to_string().into());
            conditions.push_str(&format!(" AND deliveries.{condition} ${}", values.len()));
        }
    };
    add("about_id =", about);
    add("status =", status.map_or("", Standing::wire));
    add("id <", before);
    values.push(limit.into());
    // Ids increase with time, so each index has its rows in order.
    let index = match (about, status) {
        ("", None) => String::new(),
        ("", Some(_)) => tx.dialect().indexed_by("deliveries_status"),
        _ => tx.dialect().indexed_by("deliveries_about"),
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM deliveries{index} CROSS JOIN mails WHERE deliveries.account_id = $1{conditions}
         AND mails.account_id = deliveries.account_id AND mails.id = deliveries.mail_id{} ORDER BY deliveries.id DESC LIMIT ${}",
        readable(ctx),
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
    }))
}

/// `POST /v1/mails/{id}/retry`
fn retry(call: Call) -> Result<Work> {
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
        let delivery = call.id().to_string();
        tx.execute(
            "UPDATE deliveries SET status = $1, changed_at = $2 WHERE account_id = $3 AND id = $4",
            &[Standing::Queued.wire().into(), ctx.machine_now.0.into(), ctx.account.into(), (&delivery).into()],
        )?;
        jobs::enqueue(tx, &ctx.ids, &NewJob::of(ctx, &Deliver { delivery })?, ctx.machine_now)?;
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

/// Rejects a caller who may not change the record that a mail is about.
fn check_sender(ctx: &Ctx, about: &str) -> Result<()> {
    let scope = registry().named(about).map(|resource| format!("{}.write", resource.area));
    match scope.filter(|scope| !ctx.may(scope)) {
        None => Ok(()),
        Some(scope) => Err(Error::new(Code::Forbidden, format!("Mail about a {about} requires the scope '{scope}'."))),
    }
}
