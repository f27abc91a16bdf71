//! The change feed and the stream of events: the log, read by those who follow it.

use store::Tx;

use super::{Gives, Method, Part, Resource};
use crate::call::{Answer, Call, Outcome, Query};
use crate::context::Ctx;
use crate::error::{Code, Error, Faults, FieldCode, Result, Wrong, wrong};
use crate::log;
use crate::record::{COMPUTED, FieldInfo, Kind, Shape, When};
use crate::records::Work;

static SHAPE: Shape = Shape::new("change", "changes", &["Something that happened."]);
const TIMESTAMP: FieldInfo =
    FieldInfo { name: "timestamp", doc: &["When, on the account's clock."], rules: COMPUTED, schema: When::schema };

const PARTS: &[Part] = &[
    Part("type", "string", "What happened, such as `invoice.paid`."),
    Part("timestamp", "string", "When, on the account's clock."),
    Part("data", "object", "The record as it was then."),
    Part("seq", "integer", "Its number: from 1 on, without gaps, per account."),
    Part("entity_type", "string", "What kind of record it is about."),
    Part("entity_id", "string", "The id of that record."),
    Part("actor", "string", "The id of the key that did it, or the name of a job."),
];
const AFTER: Part = Part("after", "integer", "Only what has a higher number.");
const QUERY: &[Part] =
    &[AFTER, Part("limit", "integer", "How many: 100, at most 1000; fewer come when they are large.")];
const LIMIT: i64 = 100;
const MOST: i64 = 1000;
/// About how many bytes of them are answered at once; the rest is there for the next request.
const BYTES: i64 = 8 * 1024 * 1024;

/// Changes and their routes.
pub fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Changes", "audit", vec![TIMESTAMP])
        .at("/v1")
        .beside(Method::Get, "/changes", "Read what happened, in order", PARTS, feed)
        .gives(Gives::Feed(PARTS, QUERY))
        .extension()
        .beside(Method::Get, "/events/stream", "Follow what happens, as server-sent events", &[], stream)
        .gives(Gives::Stream(&[AFTER]))
        .extension()
}

/// `GET /v1/changes`
fn feed(call: Call) -> Result<Work> {
    let mut faults = Faults::default();
    let after = faults.take("after", whole(&call.query, "after", 0, i64::MAX)).flatten();
    let limit = faults.take("limit", whole(&call.query, "limit", 1, MOST)).flatten();
    faults.into_result()?;
    let ignored: Vec<String> = call.query.names().filter(|name| !known(name)).map(str::to_string).collect();
    let (after, limit) = (after.unwrap_or(0), limit.unwrap_or(LIMIT));
    Ok(Box::new(move |tx, ctx| Ok(read(tx, ctx, after, limit)?.with_texts("ignored_params", &ignored))))
}

fn known(name: &str) -> bool {
    QUERY.iter().any(|Part(own, ..)| *own == name)
}

fn read(tx: &mut Tx, ctx: &Ctx, after: i64, limit: i64) -> Result<Answer> {
    let lines = log::after(tx, ctx.account, after, limit, BYTES)?;
    let last = lines.last().map_or(after, |line| line.seq);
    let more = log::last(tx, ctx.account)? > last;
    let mut data = vec![b'['];
    for line in &lines {
        if data.len() > 1 {
            data.push(b',');
        }
        line.write_change(&mut data);
    }
    data.push(b']');
    let meta = vec![format!("\"last_seq\":{last},\"has_more\":{more}")];
    Ok(Answer { meta, ..Answer::data(Outcome::Done, data) })
}

/// `GET /v1/events/stream` is answered in `http/stream.rs`: it has no end.
fn stream(_: Call) -> Result<Work> {
    Err(Error::new(Code::NotFound, "Events can be followed over HTTP alone."))
}

/// The `after` of a query.
pub fn after(query: &Query) -> Result<Option<i64>> {
    whole(query, "after", 0, i64::MAX).map_err(|wrong| Error::field("after", wrong))
}

/// A number of the log.
pub fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number| *number >= 0 && text.bytes().all(|byte| byte.is_ascii_digit()))
}

fn whole(query: &Query, name: &str, least: i64, most: i64) -> Result<Option<i64>, Wrong> {
    let Some(text) = query.get(name) else { return Ok(None) };
    match number(text) {
        Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
        Some(_) => Err(wrong(FieldCode::OutOfRange, format!("must be from {least} to {most}"))),
        None => Err(wrong(FieldCode::WrongType, format!("must be a whole number from {least} on"))),
    }
}
