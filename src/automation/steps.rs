//! The actions of the steps, in the transaction of the run.

use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Code, Error};
use engine::json::Json;
use engine::perform::{perform, perform_warned};
use engine::record::{Emails, FieldInfo, INPUT, Kind, parse_date};
use engine::registry::registry;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};
use store::Tx;

use super::calls::Outgoing;
use super::conditions::{self, PathPart};
use super::definition::{Action, LONGEST_CALL, Step, parse_duration, patch_fields};
use super::matching::{self, Fired, Sent};
use super::template::{self, Names};
use super::{events, needs};
use crate::automation::run::Run;
use crate::mail::hours::Timing;
use crate::mail::{self, Letter};
use crate::people::user;
use crate::settings::Settings;

/// The outcome of a step.
pub enum Done {
    /// Completed, with this result.
    Result(Value),
    /// Completed, and the run ends here.
    Enough(Value),
    /// Continues at this moment.
    Wait(Moment),
    /// Requires approval, with this message.
    Approval(String),
    /// Requires an outgoing call.
    Call(Outgoing),
}

/// Why a step failed, for people.
#[derive(Clone, Debug)]
pub struct StepError {
    /// The text.
    pub words: String,
    /// Whether a retry would fail in the same way.
    pub for_good: bool,
    /// Seconds until another try can succeed, if that is known: a quota that opens again tomorrow.
    pub opens_after: Option<u32>,
}

impl StepError {
    /// An error that a retry can resolve.
    pub fn later(words: impl Into<String>) -> StepError {
        StepError { words: words.into(), for_good: false, opens_after: None }
    }

    /// A permanent error.
    pub fn never(words: impl Into<String>) -> StepError {
        StepError { words: words.into(), for_good: true, opens_after: None }
    }
}

impl From<Error> for StepError {
    fn from(error: Error) -> StepError {
        let faults: Vec<String> =
            error.faults.iter().map(|fault| format!("'{}' {}", fault.field, fault.wrong.message)).collect();
        let words = if faults.is_empty() { error.message.clone() } else { format!("{}.", faults.join("; ")) };
        let opens_after = error.retry_after.filter(|_| error.code == Code::QuotaExceeded);
        StepError { words, for_good: !error.code.may_pass(), opens_after }
    }
}

impl From<store::Error> for StepError {
    fn from(error: store::Error) -> StepError {
        Error::from(error).into()
    }
}

/// Maximum size of a stored result, in bytes.
const MAX_RESULT_BYTES: usize = 16 * 1024;

/// Executes a step, or returns what has to happen first. `data` is the data of the event, as JSON.
pub fn take(tx: &mut Tx, ctx: &Ctx, run: &Run, data: &str, step: &Step, names: &Names) -> Result<Done, StepError> {
    match step.action {
        Action::Wait => wait(ctx, run, step, names),
        Action::Approval => Ok(Done::Approval(text(step, "message", names)?)),
        Action::Condition => condition(step, names),
        Action::Http => {
            let call = call(run, data, step, names)?;
            Ok(if Settings::is_sealed(tx, ctx)? { Done::Result(call.recorded()) } else { Done::Call(call) })
        }
        Action::Trigger => trigger(tx, ctx, step, names),
        Action::SendEmail => send_email(tx, ctx, run, step, names),
        _ => {
            let (method, path, body) = request(tx, ctx, run, step, names)?;
            let (answer, warnings) = perform_warned(tx, ctx, method, &path, Some(&body))?;
            let mut result = small(answer);
            if let (Value::Object(members), false) = (&mut result, warnings.is_null()) {
                members.insert("warnings".to_string(), warnings);
            }
            Ok(Done::Result(result))
        }
    }
}

/// Returns what a step would do: its fields with their placeholders filled.
pub fn preview(ctx: &Ctx, step: &Step, names: &Names) -> Result<Value, String> {
    match step.action {
        Action::Condition => Ok(json!({"holds": holds(step, names)?})),
        _ => {
            let filled = template::fill(&Value::Object(step.fields.clone()), names)?;
            let Value::Object(mut members) = filled else { return Ok(filled) };
            fit(ctx.now.date(&ctx.zone), step.route_fields(), &mut members);
            Ok(Value::Object(members))
        }
    }
}

/// Renders every template of a step outside the transaction.
pub fn work_out(step: &Step, names: &Names) {
    template::work_out(&Value::Object(step.fields.clone()), names);
    for condition in &step.conditions {
        template::work_out(&Value::String(expression(&condition.field)), names);
        template::work_out(&condition.value, names);
    }
}

fn wait(ctx: &Ctx, run: &Run, step: &Step, names: &Names) -> Result<Done, StepError> {
    // The end of a wait is computed once.
    let begun = run.report().and_then(|report| Moment::parse(report.result["until"].as_str()?));
    if let Some(until) = begun {
        return Ok(Done::Wait(until));
    }
    end_of_wait(ctx, step, names).map(Done::Wait)
}

/// Returns the moment at which a wait that begins now ends.
pub fn end_of_wait(ctx: &Ctx, step: &Step, names: &Names) -> Result<Moment, StepError> {
    if step.text("for").is_some() {
        let words = text(step, "for", names)?;
        let span =
            parse_duration(&words).map_err(|why| StepError::never(format!("'for' is '{words}', which {why}.")))?;
        return later(ctx.now, &ctx.zone, span).ok_or_else(|| StepError::never("The wait is too long."));
    }
    let words = text(step, "until", names)?;
    let day = || parse_date(&words).ok().map(|date| Moment::start_of(date, &ctx.zone));
    let until = Moment::parse(&words).or_else(day);
    until.ok_or_else(|| StepError::never(format!("'until' is '{words}', which is not a timestamp.")))
}

/// Days are calendar days: three days from nine o'clock is nine o'clock.
fn later(now: Moment, zone: &TimeZone, span: jiff::Span) -> Option<Moment> {
    let moment = jiff::Timestamp::from_millisecond(now.0).ok()?.to_zoned(zone.clone());
    Some(Moment(moment.checked_add(span).ok()?.timestamp().as_millisecond()))
}

fn condition(step: &Step, names: &Names) -> Result<Done, StepError> {
    let holds = holds(step, names).map_err(unclear)?;
    Ok(if holds { Done::Result(json!({"holds": true})) } else { Done::Enough(json!({"holds": false})) })
}

/// A missing value is not an error here: conditions can test for it.
fn holds(step: &Step, names: &Names) -> Result<bool, String> {
    for condition in &step.conditions {
        let found = match template::evaluate(&expression(&condition.field), names) {
            Err(why) if why == template::LATE => return Err(why),
            found => found.ok(),
        };
        let wanted = template::fill(&condition.value, names)?;
        if !conditions::compare(condition.op, found.as_ref(), &wanted) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Converts the path of a condition to a template expression.
fn expression(path: &str) -> String {
    let mut out = String::from("{{ ");
    for (place, part) in conditions::steps_of(path).unwrap_or_default().iter().enumerate() {
        match part {
            PathPart::Name(name) if place == 0 => out.push_str(name),
            PathPart::Name(name) if name.bytes().all(|byte| byte.is_ascii_digit()) => {
                out.push_str(&format!("[{name}]"))
            }
            PathPart::Name(name) => out.push_str(&format!("[{}]", json!(name))),
            PathPart::Index(place) => out.push_str(&format!("[{place}]")),
        }
    }
    out + " }}"
}

fn trigger(tx: &mut Tx, ctx: &Ctx, step: &Step, names: &Names) -> Result<Done, StepError> {
    if let Some(why) = matching::too_much(tx, ctx)? {
        return Err(StepError::never(format!("The event was not fired: {why}.")));
    }
    let event = text(step, "event", names)?.trim().to_string();
    if event.is_empty() || event.chars().count() > 255 {
        return Err(StepError::never("The name of the event must have 1 to 255 characters."));
    }
    let data = match step.fields.get("data") {
        Some(data) => template::fill(data, names).map_err(unclear)?,
        None => json!({}),
    };
    if !data.is_object() {
        return Err(StepError::never("The data of the event must be an object."));
    }
    let started = matching::fire(tx, ctx, &Fired { event: &event, entity_type: "", data: &Sent::of(data) })?;
    let runs: Vec<&String> = started.iter().map(|one| &one.run_id).collect();
    Ok(Done::Result(json!({"event": event, "matched": runs.len(), "runs": runs})))
}

fn send_email(tx: &mut Tx, ctx: &Ctx, run: &Run, step: &Step, names: &Names) -> Result<Done, StepError> {
    let addresses = |name: &str| -> Result<Vec<String>, StepError> {
        let words = text(step, name, names)?;
        let read = Emails::read(&Json::Text(words.clone()), &INPUT.at_most(8192));
        let emails =
            read.map_err(|wrong| StepError::never(format!("'{name}' is '{words}', which {}.", wrong.message)))?;
        Ok(emails.0.split(", ").filter(|one| !one.is_empty()).map(str::to_string).collect())
    };
    let (to, cc) = (addresses("to")?, addresses("cc")?);
    if to.is_empty() {
        return Err(StepError::never("There is no e-mail address to send to."));
    }
    if to.len() + cc.len() > 50 {
        return Err(StepError::never("A mail can have at most 50 recipients."));
    }
    let attach_pdf = step.fields.get("attach_pdf") == Some(&Value::Bool(true));
    let about = registry().named(&run.entity_type).map(|resource| resource.shape.name);
    if attach_pdf && (!is_document(&run.entity_type) || run.entity_id.is_empty()) {
        return Err(StepError::never("There is no document to attach: the event does not concern a document."));
    }
    // Whoever fires an event chooses the id in its data.
    if attach_pdf && matching::shown(tx, ctx, &run.entity_type, &run.entity_id)?.is_none() {
        let (kind, id) = (&run.entity_type, &run.entity_id);
        return Err(StepError::never(format!("There is no document to attach: no {kind} has the id {id}.")));
    }
    let (from_name, reply_to) = mail::identity_of(tx, ctx, "")?;
    let subject = text(step, "subject", names)?.replace(['\n', '\r'], " ");
    // What a flow tells the owners does not disturb a client.
    let owners = user::owner_emails(tx, ctx)?;
    let is_own = |address: &String| owners.iter().any(|owner| owner.eq_ignore_ascii_case(address));
    let letter = Letter {
        timing: if to.iter().chain(&cc).all(is_own) { Timing::AtOnce } else { Timing::BySender },
        about: about.unwrap_or("run"),
        about_id: if about.is_some() { run.entity_id.clone() } else { run.base.id.clone() },
        kind: mail::waiting::FLOW.to_string(),
        subject: subject.chars().take(998).collect(),
        body: text(step, "body", names)?,
        attach_pdf,
        from_name,
        reply_to,
        to: to.clone(),
        cc: cc.clone(),
        ..Letter::default()
    };
    mail::put(tx, ctx, &letter)?;
    Ok(Done::Result(json!({"to": to, "cc": cc, "subject": letter.subject})))
}

fn is_document(kind: &str) -> bool {
    matches!(kind, "invoice" | "quote" | "workorder")
}

/// Builds the API request of a step.
fn request(
    tx: &mut Tx,
    ctx: &Ctx,
    run: &Run,
    step: &Step,
    names: &Names,
) -> Result<(&'static str, String, Value), StepError> {
    let mut filled = match template::fill(&Value::Object(step.fields.clone()), names).map_err(unclear)? {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    match step.action {
        Action::Create(path) => {
            fit(ctx.now.date(&ctx.zone), step.route_fields(), &mut filled);
            Ok(("POST", path.to_string(), Value::Object(filled)))
        }
        Action::AddTicketMessage => {
            let ticket = filled.remove("ticket_id").and_then(|id| id.as_str().map(str::to_string));
            let ticket = match (ticket, run.entity_type.as_str()) {
                (Some(id), _) => id,
                (None, "ticket") => run.entity_id.clone(),
                _ => return Err(StepError::never("There is no ticket: the event does not concern a ticket.")),
            };
            if let Some(kind) = filled.remove("message_type") {
                filled.insert("type".to_string(), kind);
            }
            Ok(("POST", format!("/v1/tickets/{}/messages", plain(&ticket)?), Value::Object(filled)))
        }
        Action::Update => {
            let word = |name: &str| filled.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            let named = word("entity_type");
            let kind = events::entity(named.unwrap_or(&run.entity_type));
            let id = word("id").unwrap_or(&run.entity_id);
            if kind.is_empty() || id.is_empty() {
                return Err(StepError::never("There is no record to change: the event does not concern a record."));
            }
            // Whoever fires an event chooses the type of its record. When the flow was saved, nobody was asked the password
            // for a type that the event never has.
            let kinds = events::kinds_of(&run.event);
            if named.is_none() && run.fired && !kinds.is_empty() && !kinds.contains(&kind) {
                let words = format!(
                    "The event '{}' is never about a record of the type '{kind}'. To change one, name its type in the step.",
                    run.event
                );
                return Err(StepError::never(words));
            }
            if let Some(scope) = needs::to_change(kind).into_iter().find(|scope| !ctx.may(scope)) {
                let words = format!("The author of the flow does not have the scope '{scope}'.");
                return Err(StepError::never(words));
            }
            let path = path_of(kind)
                .ok_or_else(|| StepError::never(format!("'{kind}' is not a type of record that can be changed.")))?;
            let mut fields = filled.get("fields").cloned().unwrap_or_default();
            if let Some(fields) = fields.as_object_mut() {
                fit(ctx.now.date(&ctx.zone), patch_fields(kind), fields);
            }
            Ok(("PATCH", format!("{path}/{}", plain(id)?), fields))
        }
        _ => {
            let path = path_of(&run.entity_type).filter(|_| is_document(&run.entity_type));
            let path = path.ok_or_else(|| {
                StepError::never("There is no document to send: the event does not concern a document.")
            })?;
            let path = format!("{path}/{}/send", plain(&run.entity_id)?);
            with_usual_words(tx, ctx, &path, &mut filled)?;
            Ok(("POST", path, Value::Object(filled)))
        }
    }
}

/// Checks an id that becomes part of a path. The data of a fired event comes from the caller: it must not lead to
/// another route.
fn plain(id: &str) -> Result<&str, StepError> {
    if id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
        return Ok(id);
    }
    let shown: String = id.chars().take(100).collect();
    Err(StepError::never(format!("'{shown}' is not an id.")))
}

/// Fills the mail texts that the flow does not set with those of the preview.
fn with_usual_words(tx: &mut Tx, ctx: &Ctx, path: &str, filled: &mut Map<String, Value>) -> Result<(), StepError> {
    let fields = ["to", "subject", "message"];
    if fields.iter().all(|field| filled.contains_key(*field)) {
        return Ok(());
    }
    let kind = filled.get("send_type").and_then(Value::as_str).unwrap_or_default();
    let query = if kind.is_empty() { String::new() } else { format!("?send_type={}", plain(kind)?) };
    let usual = perform(tx, ctx, "GET", &format!("{path}-preview{query}"), None)?;
    for field in fields {
        filled.entry(field).or_insert_with(|| usual[field].clone());
    }
    Ok(())
}

/// Returns the path of the resource for this kind of record.
pub fn path_of(kind: &str) -> Option<&'static str> {
    let found = registry().named(kind).filter(|resource| resource.is_kept());
    found.map(|resource| resource.path.as_str()).filter(|path| !path.contains('{'))
}

/// Converts values to the types of their fields: a number in a string field becomes its digits, and a duration in a
/// date field becomes a date.
pub fn fit(today: Date, fields: &[FieldInfo], members: &mut Map<String, Value>) {
    for (name, value) in members.iter_mut() {
        let Some(field) = fields.iter().find(|field| field.name == name) else { continue };
        match value {
            Value::Number(number) if field.is("string") => *value = Value::String(number.to_string()),
            Value::Bool(yes) if field.is("string") => *value = Value::String(yes.to_string()),
            Value::String(text) if text.starts_with('P') && field.is_date() => {
                if let Some(day) = parse_duration(text).ok().and_then(|span| today.checked_add(span).ok()) {
                    *value = Value::String(day.to_string());
                }
            }
            _ => {}
        }
    }
}

fn call(run: &Run, data: &str, step: &Step, names: &Names) -> Result<Outgoing, StepError> {
    if let Some(call) = run.report().and_then(|report| report.call.clone()) {
        return Ok(call);
    }
    let mut headers: Vec<(String, String)> = Vec::new();
    for (name, value) in step.fields.get("headers").and_then(Value::as_object).into_iter().flatten() {
        headers.push((name.clone(), template::render(value.as_str().unwrap_or_default(), names).map_err(unclear)?));
    }
    let has_type = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let method = step.text("method").unwrap_or("POST").to_string();
    let reads = matches!(method.as_str(), "GET" | "HEAD");
    let body = match step.fields.get("body") {
        Some(body) => match template::fill(body, names).map_err(unclear)? {
            Value::String(text) => text,
            // Also applies when the text is a single placeholder, which keeps its JSON type.
            json => json.to_string(),
        },
        None if reads => String::new(),
        None => {
            let data = if data.is_empty() { "{}" } else { data };
            format!("{{\"event\":{},\"entity_type\":{},\"data\":{data}}}", json!(run.event), json!(run.entity_type))
        }
    };
    if !has_type && !body.is_empty() {
        headers.push(("content-type".to_string(), "application/json".to_string()));
    }
    let seconds = step.fields.get("timeout_seconds").and_then(Value::as_i64).unwrap_or(LONGEST_CALL);
    Ok(Outgoing { method, url: text(step, "url", names)?, headers, body, seconds: seconds.unsigned_abs() })
}

/// Renders a field; empty if it is not set.
fn text(step: &Step, name: &str, names: &Names) -> Result<String, StepError> {
    let raw = step.text(name).unwrap_or_default();
    template::render(raw, names).map_err(|why| StepError::never(format!("The template of '{name}' failed: {why}.")))
}

fn unclear(why: String) -> StepError {
    StepError::never(format!("A template failed: {why}."))
}

/// Replaces a result that is too large to store by its id.
fn small(answer: Value) -> Value {
    if answer.to_string().len() <= MAX_RESULT_BYTES { answer } else { json!({"id": answer["id"]}) }
}
