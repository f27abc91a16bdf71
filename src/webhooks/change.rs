//! The change feed and the event stream: the log, for clients that follow it.

use engine::call::{Answer, Call, Outcome};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, Violation, violation};
use engine::log::{self, Filter, Found};
use engine::record::{COMPUTED, FieldInfo, Kind, Shape, When};
use engine::records::Work;
use engine::resource::{Method, Part, Resource, Returns};
use engine::shown::Viewer;
use store::Tx;

use crate::automation::events::canonical;

static SHAPE: Shape = Shape::new("change", "changes", &["An event in the log of the account."]);
const TIMESTAMP: FieldInfo = FieldInfo {
    name: "timestamp",
    doc: &["When it happened, on the account's clock."],
    rules: COMPUTED,
    kind: When::NAME,
    choices: When::CHOICES,
    schema: When::schema,
};

/// The members of an event.
pub(crate) const MEMBERS: &[Part] = &[
    Part("type", "string", "The type of event, such as `invoice.paid`."),
    Part("timestamp", "string", "When it happened, on the account's clock."),
    Part("data", "object", "The record at that moment."),
    Part("seq", "integer", "The sequence number: per account, starting at 1, without gaps."),
    Part("entity_type", "string", "The type of the record."),
    Part("entity_id", "string", "The id of the record."),
    Part(
        "actor",
        "string",
        "The id of the key or the user that made the change, `flow` and the id of the flow, `operator`, or the name of a job.",
    ),
    Part("actor_type", "string", "`user`, `key`, `flow`, `job`, `visitor` or `operator`."),
    Part("actor_name", "string", "The name of the actor at that moment; empty for events of earlier versions."),
];

const AFTER: Part = Part("after", "integer", "Only events with a higher sequence number.");
const WITH_DATA: Part = Part(
    "data",
    "string",
    "`0` for events without their records (`data` is empty), and only about records that the caller may read.",
);
const QUERY: &[Part] = &[
    AFTER,
    Part("before", "integer", "Only events with a lower sequence number."),
    Part("order", "string", "`asc`, the default, or `desc`: the newest first."),
    Part("limit", "integer", "Maximum number of events: 100 by default, 1000 at most; fewer if they are large."),
    Part("entity_type", "string", "Only events of this type of record."),
    Part("entity_id", "string", "Only events of this record."),
    Part("actor", "string", "Only events of this actor."),
    Part("type", "string", "Only events of this type; see the types of events."),
];
const LIMIT: i64 = 100;
const MAX_LIMIT: i64 = 1000;
/// Approximate maximum size of a response, in bytes; the rest follows with the next request.
const BYTES: i64 = 8 * 1024 * 1024;

/// The resource of changes.
pub fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Changes", "audit", vec![TIMESTAMP])
        .at("/v1")
        .route(Method::Get, "/changes", "List events in order", feed)
        .returns(Returns::Feed(MEMBERS, QUERY))
        .extension()
        .route(Method::Get, "/events/stream", "Stream events as server-sent events", stream)
        .returns(Returns::Stream(&[AFTER, WITH_DATA]))
        .extension()
}

/// `GET /v1/changes`
fn feed(call: Call) -> Result<Work> {
    let mut faults = FieldErrors::default();
    let after = faults.take("after", call.query.whole("after", 0, i64::MAX)).flatten();
    let before = faults.take("before", call.query.whole("before", 1, i64::MAX)).flatten();
    let limit = faults.take("limit", call.query.whole("limit", 1, MAX_LIMIT)).flatten();
    let newest_first = faults.take("order", order(&call)).unwrap_or_default();
    let ignored: Vec<String> = call.query.names().filter(|name| !known(name)).map(str::to_string).collect();
    let names: Vec<&str> = QUERY.iter().map(|Part(name, ..)| *name).collect();
    call.refuse_unknown(&ignored, &names, &mut faults);
    faults.into_result()?;
    let text = |name: &str| call.query.get(name).unwrap_or_default().to_string();
    let filter = Filter {
        entity_type: text("entity_type"),
        entity_id: text("entity_id"),
        actor: text("actor"),
        name: canonical(&text("type")).into_owned(),
        after: after.unwrap_or(0),
        before: before.unwrap_or(i64::MAX),
        newest_first,
    };
    let limit = limit.unwrap_or(LIMIT);
    Ok(Box::new(move |tx, ctx| Ok(read(tx, ctx, &filter, limit)?.with_texts("ignored_params", &ignored))))
}

fn order(call: &Call) -> Result<bool, Violation> {
    match call.query.get("order") {
        None | Some("asc") => Ok(false),
        Some("desc") => Ok(true),
        Some(_) => Err(violation(FieldCode::InvalidChoice, "must be one of: asc, desc")),
    }
}

fn known(name: &str) -> bool {
    QUERY.iter().any(|Part(own, ..)| *own == name)
}

fn read(tx: &mut Tx, ctx: &Ctx, filter: &Filter, limit: i64) -> Result<Answer> {
    let found = match is_plain(filter) {
        true => following(tx, ctx, filter.after, limit)?,
        false => log::filtered(tx, ctx.account, filter, usize::try_from(limit).unwrap_or(usize::MAX), BYTES)?,
    };
    let (viewer, mut data) = (Viewer::of(ctx), vec![b'[']);
    for line in &found.lines {
        if data.len() > 1 {
            data.push(b',');
        }
        viewer.write_change(line, &mut data);
    }
    data.push(b']');
    let meta = vec![format!("\"last_seq\":{},\"has_more\":{}", found.last, found.more)];
    Ok(Answer { meta, ..Answer::data(Outcome::Done, data) })
}

/// Whether everything after a number is wanted.
fn is_plain(filter: &Filter) -> bool {
    let texts = [&filter.entity_type, &filter.entity_id, &filter.actor, &filter.name];
    texts.iter().all(|text| text.is_empty()) && filter.before == i64::MAX && !filter.newest_first
}

fn following(tx: &mut Tx, ctx: &Ctx, after: i64, limit: i64) -> Result<Found> {
    let lines = log::after(tx, ctx.account, after, limit, BYTES)?;
    let last = lines.last().map_or(after, |line| line.seq);
    let more = log::last(tx, ctx.account)? > last;
    Ok(Found { lines, last, more })
}

/// `GET /v1/events/stream` is answered in `http/stream.rs`: it has no end.
fn stream(_: Call) -> Result<Work> {
    Err(Error::new(Code::NotFound, "Event streams are available over HTTP only."))
}
