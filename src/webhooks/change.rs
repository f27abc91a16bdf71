//! The change feed and the event stream: the log, for clients that follow it.

use engine::call::{Answer, Call, Outcome};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldErrors, Result};
use engine::log;
use engine::record::{COMPUTED, FieldInfo, Kind, Shape, When};
use engine::records::Work;
use engine::resource::{Method, Part, Resource, Returns};
use engine::shown::Viewer;
use store::Tx;

static SHAPE: Shape = Shape::new("change", "changes", &["An event in the log of the account."]);
const TIMESTAMP: FieldInfo = FieldInfo {
    name: "timestamp",
    doc: &["When it happened, on the account's clock."],
    rules: COMPUTED,
    schema: When::schema,
};

const PARTS: &[Part] = &[
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
const QUERY: &[Part] = &[
    AFTER,
    Part("limit", "integer", "Maximum number of events: 100 by default, 1000 at most; fewer if they are large."),
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
        .returns(Returns::Feed(PARTS, QUERY))
        .extension()
        .route(Method::Get, "/events/stream", "Stream events as server-sent events", stream)
        .returns(Returns::Stream(&[AFTER]))
        .extension()
}

/// `GET /v1/changes`
fn feed(call: Call) -> Result<Work> {
    let mut faults = FieldErrors::default();
    let after = faults.take("after", call.query.whole("after", 0, i64::MAX)).flatten();
    let limit = faults.take("limit", call.query.whole("limit", 1, MAX_LIMIT)).flatten();
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
    let viewer = Viewer::of(ctx);
    for line in &lines {
        if data.len() > 1 {
            data.push(b',');
        }
        viewer.write_change(line, &mut data);
    }
    data.push(b']');
    let meta = vec![format!("\"last_seq\":{last},\"has_more\":{more}")];
    Ok(Answer { meta, ..Answer::data(Outcome::Done, data) })
}

/// `GET /v1/events/stream` is answered in `http/stream.rs`: it has no end.
fn stream(_: Call) -> Result<Work> {
    Err(Error::new(Code::NotFound, "Event streams are available over HTTP only."))
}
