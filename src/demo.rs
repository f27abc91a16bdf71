//! Demo data: half a year of a realistic small installation company. It is created through API requests, so all of it
//! passed the same rules and emitted the same events as real data. It is identical every time, relative to the
//! account's current date.

mod business;
mod contracts;
mod documents;
mod maintenance;
mod relations;
mod sales;
mod support;
mod work;

use std::cmp::Reverse;
use std::collections::HashMap;

use engine::accounts::Account;
use engine::clock::Moment;
use engine::context::{Actor, Ctx};
use engine::error::{Error, Result};
use engine::perform::perform;
use engine::record::Email;
use engine::records;
use engine::registry::registry;
use jiff::civil::{Date, Weekday};
use serde_json::Value;
use store::Tx;

use crate::automation::runner::{self, Runner};
use crate::calendar::days;
use crate::documents::page::{final_one, note_view};
use crate::documents::{InvoiceKind, Quote, QuoteKind, mail as letters, quote};
use crate::files::usage;
use crate::mail::outcome::{self, Follower};
use crate::mail::waiting;
use crate::people::role::Role;
use crate::people::status::{Language, Status};
use crate::people::user::User;

/// Name of the business.
pub const NAME: &str = "Van Dijk Installatietechniek";

/// E-mail address and name of its owner, who can sign in.
pub const OWNER: (&str, &str) = ("anna@vandijk.example", "Anna van Dijk");
/// The colleague: e-mail address and name.
const COLLEAGUE: (&str, &str) = ("esra@vandijk.example", "Esra Yilmaz");

/// How many working days ago the business started: half a year.
const BEGINNING: i64 = 130;
/// The working day starts at eight; the first step is at half past.
const MORNING_SECONDS: i64 = 8 * 3600;
const FIRST_SECONDS: i64 = 30 * 60;
/// Time between two steps of the same day.
const BETWEEN_SECONDS: i64 = 11 * 60;

/// More turns than the runs of a day can take.
const MAX_TURNS: usize = 100;

/// All steps. Each module returns its own; they are sorted by time afterwards.
fn story() -> Vec<DemoStep> {
    let mut steps = business::steps();
    steps.extend(relations::steps());
    steps.extend(sales::steps());
    steps.extend(work::steps());
    steps.extend(support::steps());
    steps.extend(documents::steps());
    steps.extend(maintenance::steps());
    steps.extend(contracts::steps());
    steps.sort_by_key(|step| Reverse(step.ago));
    steps
}

/// When the account's own settings were created.
pub fn beginning(ctx: &Ctx) -> Moment {
    let first = workday(ctx.now.date(&ctx.zone), -BEGINNING);
    Moment::start_of(first, &ctx.zone).plus_seconds(MORNING_SECONDS)
}

/// Fills a new account, which has only its defaults.
pub fn fill(tx: &mut Tx, caller: &Actor) -> Result<()> {
    let mut ctx = caller.writing(tx)?;
    let mut names = Names::of_defaults(tx, &ctx)?;
    let now = ctx.now;
    names.ids.insert("owner".to_string(), user(tx, &ctx, OWNER, Role::Owner)?);
    names.ids.insert("colleague".to_string(), user(tx, &ctx, COLLEAGUE, Role::Member)?);
    let mut today = workday(names.today, -BEGINNING);
    let nights = Nights { account: &caller.account, runner: Runner::on("demo"), end: now };
    // The number of steps so far on the same day; -1 before the first day.
    let mut before = -1;
    for step in story() {
        let day = workday(names.today, -step.ago);
        before = if day == today { before + 1 } else { 0 };
        nights.sleep(tx, &mut ctx, &mut today, day)?;
        let morning = Moment::start_of(day, &ctx.zone).plus_seconds(MORNING_SECONDS);
        ctx.now = morning.plus_seconds(FIRST_SECONDS + before * BETWEEN_SECONDS);
        let path = names.in_path(&step.path)?;
        let body = step.body.as_ref().map(|body| names.in_body(body)).transpose()?;
        let answer = take(tx, &ctx, step.method, &path, body).map_err(|error| with_step(error, &step, &path))?;
        if !step.name.is_empty() {
            names.ids.insert(step.name, id_of(&answer)?);
        }
    }
    nights.sleep(tx, &mut ctx, &mut today, names.today)?;
    // The last steps may be later today.
    ctx.now = ctx.now.max(now);
    let_mail_leave(tx, &ctx, Moment(i64::MAX))?;
    settle_mail(tx, &ctx)
}

/// Creates somebody who wrote hours; returns the id. The password of the owner follows when the demo is shown to somebody.
fn user(tx: &mut Tx, ctx: &Ctx, (email, name): (&str, &str), role: Role) -> Result<String> {
    let ctx = ctx.at(beginning(ctx));
    let mut user = User {
        email: Email(email.to_string()),
        name: name.to_string(),
        role,
        status: Status::Active,
        language: Language::of_account(tx, &ctx)?,
        ..User::default()
    };
    records::add(tx, &ctx, &mut user)?;
    Ok(user.base.id)
}

/// Invoices that were mailed at night, and waited for office hours, are sent.
fn let_mail_leave(tx: &mut Tx, ctx: &Ctx, until: Moment) -> Result<()> {
    const INVOICES: Follower = letters::follower::<InvoiceKind>();
    for (id, kind) in waiting::leaving(tx, ctx, INVOICES.about, until)? {
        (INVOICES.accepted)(tx, ctx, &id, &kind)?;
    }
    Ok(())
}

/// What happens between two days.
struct Nights<'a> {
    account: &'a Account,
    runner: Runner,
    /// Mail leaves in the mornings until this moment.
    end: Moment,
}

impl Nights<'_> {
    /// Processes the nights until `day`, in which invoices become overdue and quotes expire, and the runs of flows in the
    /// mornings.
    fn sleep(&self, tx: &mut Tx, ctx: &mut Ctx, today: &mut Date, day: Date) -> Result<()> {
        while *today < day {
            *today = today.tomorrow().unwrap_or(day);
            ctx.now = Moment::start_of(*today, &ctx.zone);
            days::catch_up(tx, ctx, registry().due_work)?;
            contracts::pay(tx, ctx)?;
            let morning = ctx.now.plus_seconds(MORNING_SECONDS);
            if morning <= self.end {
                ctx.now = morning;
                let_mail_leave(tx, ctx, morning)?;
                self.advance_runs(tx, ctx)?;
            }
        }
        Ok(())
    }

    /// Advances all runs that are due. On a busy machine a turn leaves some of it to the next, which nobody shall see.
    fn advance_runs(&self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        for _ in 0..MAX_TURNS {
            let turn = runner::turn(tx, ctx, self.account, &self.runner, 0)?;
            if turn.ran == 0 && !turn.more {
                break;
            }
        }
        Ok(())
    }
}

/// Executes a step: a request, a visit to the page of a quote, or the refusal of a mail about one.
fn take(tx: &mut Tx, ctx: &Ctx, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
    if let Some(page) = path.strip_prefix("/d/") {
        return visit(tx, ctx, page, &body.unwrap_or_default()).map(|()| Value::Null);
    }
    if let Some(quote) = path.strip_prefix("/refused/") {
        return refuse(tx, ctx, quote).map(|()| Value::Null);
    }
    let body = match body {
        Some(body) if path.ends_with("/send") => Some(with_words(tx, ctx, path, body)?),
        body => body,
    };
    perform(tx, ctx, method, path, body.as_ref())
}

/// Executes a client's visit to the page of a quote. The step has the id; the page needs the token.
fn visit(tx: &mut Tx, ctx: &Ctx, page: &str, form: &Value) -> Result<()> {
    let (id, answer) = page.split_once('/').unwrap_or((page, ""));
    let quote: Quote = final_one(tx, ctx, id)?;
    match answer {
        "accept" => quote::accept_by(tx, ctx, quote, form["name"].as_str().unwrap_or_default()).map(drop),
        "reject" => quote::reject_now(tx, ctx, quote).map(drop),
        _ => note_view::<QuoteKind>(tx, ctx, id),
    }
}

/// Fills the texts of a mail from its preview: the document number is not known in advance.
fn with_words(tx: &mut Tx, ctx: &Ctx, path: &str, mut body: Value) -> Result<Value> {
    let kind = body["send_type"].as_str().unwrap_or_default();
    let words = perform(tx, ctx, "GET", &format!("{path}-preview?send_type={kind}"), None)?;
    for field in ["to", "subject", "message"] {
        body[field] = words[field].clone();
    }
    Ok(body)
}

/// The mail about a quote does not arrive: the mailbox of the client is full.
fn refuse(tx: &mut Tx, ctx: &Ctx, quote: &str) -> Result<()> {
    outcome::refuse(tx, ctx, &letters::follower::<QuoteKind>(), quote, "552 5.2.2 The mailbox is full.")
}

/// Shows all mail as sent, but for what was refused. None of it left: it is dated months ago, and its recipients do not exist.
fn settle_mail(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    tx.execute("DELETE FROM jobs WHERE account_id = $1 AND kind = 'deliver'", &[ctx.account.into()])?;
    usage::forget_mails(tx, ctx)?;
    let sent = "UPDATE deliveries SET status = 'sent', attempts = 1, reason = 'Part of the demo: nothing was sent.'
                WHERE account_id = $1 AND status <> 'failed'";
    tx.execute(sent, &[ctx.account.into()])?;
    Ok(())
}

/// Adds the step to an error: the demo data violates a rule.
fn with_step(error: Error, step: &DemoStep, path: &str) -> Error {
    let faults: Vec<String> =
        error.faults.iter().map(|fault| format!("'{}' {}", fault.field, fault.wrong.message)).collect();
    let why = error.internal.clone().unwrap_or_default();
    let internal = format!("demo: {} {path}: {} {why}", step.method, faults.join(", "));
    Error { internal: Some(internal.trim_end().to_string()), ..error }
}

/// A step that happened a number of working days ago, at least one: a request, a visit to the page of a quote if its
/// path starts with `/d/`, or the refusal of a mail about a quote if it starts with `/refused/`. In its path and body, `@ster` is the id of the record created under that name, and `@+3` is
/// the date three working days from today.
struct DemoStep {
    ago: i64,
    name: String,
    method: &'static str,
    path: String,
    body: Option<Value>,
}

/// Creates a record, optionally under a name by which other steps refer to it.
fn make(ago: i64, name: &str, path: &str, body: Value) -> DemoStep {
    DemoStep { ago, name: name.to_string(), method: "POST", path: path.to_string(), body: Some(body) }
}

/// Changes a record.
fn change(ago: i64, path: &str, body: Value) -> DemoStep {
    DemoStep { ago, name: String::new(), method: "PATCH", path: path.to_string(), body: Some(body) }
}

/// Creates a record from another, without a body.
fn make_of(ago: i64, name: &str, path: &str) -> DemoStep {
    DemoStep { name: name.to_string(), ..act(ago, path) }
}

/// An action without a body.
fn act(ago: i64, path: &str) -> DemoStep {
    DemoStep { ago, name: String::new(), method: "POST", path: path.to_string(), body: None }
}

/// The values of the names in the steps.
struct Names {
    today: Date,
    ids: HashMap<String, String>,
}

impl Names {
    /// The names of a new account's defaults: `identity`, `channel`, phases such as `phase New`, and flows by the event that
    /// triggers them, such as `flow quote.silent`.
    fn of_defaults(tx: &mut Tx, ctx: &Ctx) -> Result<Names> {
        let mut ids = HashMap::new();
        for (name, path) in [("identity", "/v1/corporate-identities"), ("channel", "/v1/ticket-channels")] {
            ids.insert(name.to_string(), id_of(&perform(tx, ctx, "GET", path, None)?[0])?);
        }
        for phase in perform(tx, ctx, "GET", "/v1/phases", None)?.as_array().into_iter().flatten() {
            let name = phase["name"].as_str().unwrap_or_default();
            ids.insert(format!("phase {name}"), id_of(phase)?);
        }
        for flow in perform(tx, ctx, "GET", "/v1/automation/flows?per_page=100", None)?.as_array().into_iter().flatten()
        {
            let event = flow["trigger_key"].as_str().unwrap_or_default();
            ids.insert(format!("flow {event}"), id_of(flow)?);
        }
        Ok(Names { today: ctx.now.date(&ctx.zone), ids })
    }

    fn in_path(&self, path: &str) -> Result<String> {
        let parts: Result<Vec<String>> = path.split('/').map(|part| self.meaning(part)).collect();
        Ok(parts?.join("/"))
    }

    fn in_body(&self, value: &Value) -> Result<Value> {
        Ok(match value {
            Value::String(text) => Value::String(self.meaning(text)?),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.in_body(item)).collect::<Result<_>>()?),
            Value::Object(members) => {
                let members = members.iter().map(|(key, value)| Ok((key.clone(), self.in_body(value)?)));
                Value::Object(members.collect::<Result<_>>()?)
            }
            other => other.clone(),
        })
    }

    fn meaning(&self, text: &str) -> Result<String> {
        let Some(name) = text.strip_prefix('@') else { return Ok(text.to_string()) };
        if name.starts_with(['+', '-']) {
            let days = name.parse().map_err(|_| Error::internal(format!("demo: '{name}' is not a number of days")))?;
            return Ok(workday(self.today, days).to_string());
        }
        let id = self.ids.get(name).cloned();
        id.ok_or_else(|| Error::internal(format!("demo: '{name}' is used before it is created")))
    }
}

fn id_of(record: &Value) -> Result<String> {
    // The response to a payment also has its invoice.
    let id = record["id"].as_str().or(record["payment"]["id"].as_str()).map(str::to_string);
    id.ok_or_else(|| Error::internal("demo: a response has no id"))
}

/// Returns the day a number of working days after `today`, or before it if negative.
fn workday(today: Date, days: i64) -> Date {
    let (mut day, mut left) = (today, days.abs());
    while left > 0 {
        let next = if days < 0 { day.yesterday() } else { day.tomorrow() };
        day = next.unwrap_or(day);
        if !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday) {
            left -= 1;
        }
    }
    day
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_works_at_weekends() {
        let day = |text: &str| text.parse::<Date>().unwrap();
        let monday = day("2026-05-04");
        assert_eq!(workday(monday, -1), day("2026-05-01"));
        assert_eq!(workday(monday, 5), day("2026-05-11"));
        assert_eq!(workday(day("2026-05-03"), -1), day("2026-05-01"));
        assert_eq!(workday(day("2026-05-03"), 0), day("2026-05-03"));
    }

    #[test]
    fn the_story_fits_its_days() {
        let steps = story();
        for step in &steps {
            assert!((1..=BEGINNING).contains(&step.ago), "{} {}", step.path, step.ago);
            let same_day = steps.iter().filter(|other| other.ago == step.ago).count();
            assert!(same_day <= 48, "too many steps on one day: {same_day}");
        }
    }
}
