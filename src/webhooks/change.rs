//! The change feed and the event stream: the log, for clients that follow it.

use engine::call::{Answer, Call, Outcome};
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, Violation, violation};
use engine::input::did_you_mean;
use engine::log::{self, Filter, Found};
use engine::record::{COMPUTED, FieldInfo, Shape, When};
use engine::records::Work;
use engine::registry::{LineReader, registry};
use engine::resource::{Method, Part, Resource, Returns};
use engine::shown::Viewer;
use engine::text::{not_allowed, unknown_value};
use jiff::civil::Date;
use store::Tx;

use crate::automation::events::{canonical, hint, matches};

static SHAPE: Shape = Shape::new("change", "changes", &["An event in the log of the account."]);
const TIMESTAMP: FieldInfo = engine::info!(["When it happened, on the account's clock."] timestamp: When = COMPUTED);

/// The members of an event.
pub(crate) const MEMBERS: &[Part] = &[
    Part("type", "string", "The type of event, such as `invoice.paid`."),
    Part("timestamp", "date-time", "When it happened, on the account's clock."),
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
    Part("actor_name", "string", "The name of the actor at that moment; empty if the record was erased."),
];

const AFTER: Part = Part("after", "integer 0 9223372036854775807", "Only events with a higher sequence number.");
const WITH_DATA: Part = Part("data", "string", "`0` for events without their records: `data` is empty.");
const NAMED: Part =
    Part("named", "string", "`0` for messages without an `event` line: an EventSource gets all of them as `message`.");
const QUERY: &[Part] = &[
    AFTER,
    Part("before", "integer 1 9223372036854775807", "Only events with a lower sequence number."),
    Part("day", "string", "Only events of this day (YYYY-MM-DD), in the time zone of the account."),
    Part("order", "string", "`asc`, the default, or `desc`: the newest first."),
    Part("limit", "integer 1 1000", "Maximum number of events: 100 by default, 1000 at most; fewer if they are large."),
    Part("entity_type", "string", "Only events of this type of record, or of one of several, separated by commas."),
    Part("entity_id", "string", "Only events of this record, or of one of several, separated by commas."),
    Part("actor", "string", "Only events of this actor, or of one of several, separated by commas."),
    Part(
        "actor_type",
        "string",
        "Only events of this type of actor, or of one of several, separated by commas: `user`, `key`, `flow`, `job`, `visitor` or `operator`.",
    ),
    Part(
        "type",
        "string",
        "Only events of this type, or of one of several, separated by commas; `invoice.*` stands for all of invoices. See the types of events.",
    ),
];
/// The types of actor.
const ACTOR_TYPES: [&str; 6] = ["user", "key", "flow", "job", "visitor", "operator"];
/// Maximum number of values of a filter: each is a query.
const MAX_VALUES: usize = 20;
/// Maximum number of types of events that the values stand for.
const MAX_NAMES: usize = 60;
const LIMIT: i64 = 100;
const MAX_LIMIT: i64 = 1000;
/// Approximate maximum size of a response, in bytes; the rest follows with the next request.
const BYTES: i64 = 8 * 1024 * 1024;

/// The resource of changes.
pub fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Changes", "audit", &[TIMESTAMP])
        .at("/v1")
        .route(Method::Get, "/changes", "List events in order", feed)
        .returns(Returns::Feed(MEMBERS, QUERY))
        .extension()
        .route(Method::Get, "/events/stream", "Stream events as server-sent events", stream)
        .returns(Returns::Stream(&[AFTER, WITH_DATA, NAMED]))
        .extension()
}

/// `GET /v1/changes`
fn feed(call: Call) -> Result<Work> {
    let mut faults = FieldErrors::default();
    let after = faults.take("after", call.query.whole("after", 0, i64::MAX)).flatten();
    let before = faults.take("before", call.query.whole("before", 1, i64::MAX)).flatten();
    let limit = faults.take("limit", call.query.whole("limit", 1, MAX_LIMIT)).flatten();
    let newest_first = faults.take("order", order(&call)).unwrap_or_default();
    let day = faults.take("day", day(&call)).flatten();
    let ignored: Vec<String> = call.query.names().filter(|name| !known(name)).map(str::to_string).collect();
    let names: Vec<&str> = QUERY.iter().map(|Part(name, ..)| *name).collect();
    call.refuse_unknown(&ignored, &names, &mut faults);
    let mut warnings = Vec::new();
    let mut values = |name: &'static str| {
        let values = faults.take(name, several(&call, name)).unwrap_or_default();
        match call.query.get(name) {
            Some(_) if !values.is_empty() || faults.has(name) => {}
            Some(_) if call.strict => faults.add(name, violation(FieldCode::Required, "must have a value")),
            Some(_) => warnings.push(format!("{name} has no value and was ignored")),
            None => {}
        }
        values
    };
    let mut filter = Filter {
        entity_types: values("entity_type"),
        entity_ids: values("entity_id"),
        actors: values("actor"),
        actor_types: values("actor_type"),
        names: Vec::new(),
        after: after.unwrap_or(0),
        before: before.unwrap_or(i64::MAX),
        newest_first,
    };
    let types = values("type");
    filter.names = types.iter().flat_map(|name| expanded(name)).collect();
    for odd in filter.actor_types.iter().filter(|value| !ACTOR_TYPES.contains(&value.as_str())) {
        faults.add("actor_type", unknown_value(odd, ACTOR_TYPES.into_iter()));
    }
    if filter.names.len() > MAX_NAMES {
        faults.add("type", violation(FieldCode::TooLong, format!("may stand for at most {MAX_NAMES} types")));
    }
    for odd in types.iter().filter(|value| !is_event(value)) {
        let message = format!("has no event '{}'{}", shortened(odd), hint(odd));
        faults.add("type", violation(FieldCode::InvalidChoice, message));
    }
    faults.into_result()?;
    let limit = limit.unwrap_or(LIMIT);
    Ok(Box::new(move |tx, ctx| {
        let (mut warnings, mut faults) = (warnings.clone(), FieldErrors::default());
        for kind in &filter.entity_types {
            match doubt(tx, ctx, kind)? {
                Some(doubt) if call.strict => faults.add("entity_type", violation(FieldCode::InvalidChoice, doubt)),
                Some(doubt) => warnings.push(format!("entity_type {doubt}")),
                None => {}
            }
        }
        faults.into_result()?;
        let filter = match day {
            Some(day) => within(tx, ctx, &filter, day)?,
            None => filter.clone(),
        };
        let answer = read(tx, ctx, &filter, limit)?;
        Ok(answer.with_texts("ignored_params", &ignored).with_texts("warnings", &warnings))
    }))
}

/// Returns the types of events that a value of the filter stands for.
fn expanded(value: &str) -> Vec<String> {
    let named = registry().events.iter().filter(|event| value.ends_with(".*") && matches(value, &event.name));
    let mut names: Vec<String> = named.map(|event| event.name.clone()).collect();
    if names.is_empty() {
        names.push(canonical(value).into_owned());
    }
    names
}

/// Whether the log may have events of a type, however it is spelled.
fn is_event(value: &str) -> bool {
    expanded(value).iter().all(|name| registry().event(name).is_some())
}

/// Says that no record of this program has this type, and no event. Whoever fires events may use other types.
fn doubt(tx: &mut Tx, ctx: &Ctx, kind: &str) -> Result<Option<String>> {
    let shapes = || registry().resources.iter().map(|resource| resource.shape);
    if shapes().any(|shape| shape.name == kind) {
        return Ok(None);
    }
    let filter = Filter { entity_types: vec![kind.to_string()], before: i64::MAX, ..Filter::default() };
    let mut reader = LineReader::new(|scope: &str| ctx.may(scope));
    let mut may_read = |event: &str, kind: &str| reader.may_read(event, kind);
    if !log::filtered(tx, ctx.account, &filter, &mut may_read, 1, BYTES)?.lines.is_empty() {
        return Ok(None);
    }
    // The events of some records have another name than the records.
    let small = kind.to_lowercase();
    let other = shapes().find(|shape| [shape.events, shape.table].contains(&small.as_str()));
    let guess = match other {
        Some(shape) => did_you_mean(shape.name, std::iter::once(shape.name)),
        None => did_you_mean(kind, shapes().map(|shape| shape.name)),
    };
    Ok(Some(format!("has '{}', which is not a type of record of Kantoor{guess}", shortened(kind))))
}

/// Returns the values of a filter, without duplicates.
fn several(call: &Call, name: &str) -> Result<Vec<String>, Violation> {
    let mut values: Vec<String> = Vec::new();
    for value in call.query.get(name).unwrap_or_default().split(',').map(str::trim) {
        if !value.is_empty() && !values.iter().any(|own| own == value) {
            values.push(value.to_string());
        }
    }
    match values.len() > MAX_VALUES {
        true => Err(violation(FieldCode::TooLong, format!("may have at most {MAX_VALUES} values"))),
        false => Ok(values),
    }
}

fn shortened(value: &str) -> String {
    value.chars().take(100).collect()
}

fn order(call: &Call) -> Result<bool, Violation> {
    match call.query.get("order") {
        None | Some("asc") => Ok(false),
        Some("desc") => Ok(true),
        Some(other) => Err(not_allowed(other, &["asc", "desc"])),
    }
}

fn day(call: &Call) -> Result<Option<Date>, Violation> {
    let Some(text) = call.query.get("day") else { return Ok(None) };
    let day = text.parse::<Date>().ok().filter(|day| text.len() == 10 && day.year() > 0);
    day.map(Some).ok_or_else(|| violation(FieldCode::InvalidFormat, "must be a date (YYYY-MM-DD)"))
}

/// Narrows a filter to the events of a day.
fn within(tx: &mut Tx, ctx: &Ctx, filter: &Filter, day: Date) -> Result<Filter> {
    let first = log::first_at(tx, ctx.account, Moment::start_of(day, &ctx.zone))?;
    let next = match day.tomorrow() {
        Ok(tomorrow) => log::first_at(tx, ctx.account, Moment::start_of(tomorrow, &ctx.zone))?,
        Err(_) => i64::MAX,
    };
    Ok(Filter { after: filter.after.max(first - 1), before: filter.before.min(next), ..filter.clone() })
}

fn known(name: &str) -> bool {
    QUERY.iter().any(|Part(own, ..)| *own == name)
}

/// Lists the events of areas that the caller may read.
fn read(tx: &mut Tx, ctx: &Ctx, filter: &Filter, limit: i64) -> Result<Answer> {
    let mut reader = LineReader::new(|scope: &str| ctx.may(scope));
    let found = match filter.is_plain() && reader.reads_all() {
        true => following(tx, ctx, filter.after, limit)?,
        false => {
            let mut may_read = |event: &str, kind: &str| reader.may_read(event, kind);
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            log::filtered(tx, ctx.account, filter, &mut may_read, limit, BYTES)?
        }
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
