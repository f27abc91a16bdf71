//! Creating and changing subscriptions. A change applies from the next period on; existing invoices do not change.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::counters;
use engine::error::{Error, FieldCode, FieldErrors, Result, violation};
use engine::input::Input;
use engine::input::pending::Pending;
use engine::json::Json;
use engine::record::{CREATED, Day, Link, UPDATED};
use engine::records::{self, Work};
use jiff::ToSpan;
use jiff::civil::Date;
use store::Tx;

use super::lines::LINES;
use super::{Plan, Status, Subscription, Term, generate};
use crate::documents::complete::check_rates;
use crate::documents::faults;
use crate::documents::rows::Rows;
use crate::payments::mandate;
use crate::relations::client::{self, Client};

/// Validates a new subscription; a change is validated in `patch`.
fn check(input: &Input<Subscription>, faults: &mut FieldErrors) {
    let new = input.values();
    if new.status == Status::Ended {
        faults.add("status", violation(FieldCode::InvalidChoice, "must be draft or active"));
    }
    if !faults.has("frequency") {
        check_days(new.frequency, new.day_of_month, new.day_of_week, faults);
    }
}

/// Checks that a frequency in weeks has a day of the week, and another one a day of the month; 0 is none.
fn check_days(term: Term, day: i64, weekday: i64, faults: &mut FieldErrors) {
    let (field, sent, fitting) = match term.in_weeks() {
        true => ("day_of_month", day, "day_of_week"),
        false => ("day_of_week", weekday, "day_of_month"),
    };
    if sent != 0 {
        let message = format!("does not apply to the frequency {}; use {fitting}", term.wire());
        faults.add(field, violation(FieldCode::InvalidChoice, message));
    }
}

/// How far back the first invoice can be dated, in years: a mistake must not create a thousand invoices.
const BACK: i64 = 5;

/// `POST /v1/subscriptions`
pub fn create(call: Call) -> Result<Work> {
    let pending: Pending<Subscription> = Pending::create_with(&call, check, true)?;
    let unread = faults::unread(&call, &pending, &LINES);
    Ok(Box::new(move |tx, ctx| {
        let created = pending.checked(tx, ctx).and_then(|input| create_now(tx, ctx, input));
        created.map_err(|error| all_faults(tx, ctx, &pending, unread.as_ref(), error))
    }))
}

fn create_now(tx: &mut Tx, ctx: &Ctx, input: &Input<Subscription>) -> Result<Answer> {
    let new = input.values();
    let mut warnings = input.warnings.clone();
    let client = client::named(tx, ctx, &new.client_id.0, &new.client_external_id)?;
    if client.is_none() {
        warnings.push("The subscription has no client.".to_string());
    }
    if new.lines.0.0.is_empty() {
        warnings.push("The subscription has no lines; its invoices will be empty.".to_string());
    }
    let mut subscription = made_of(tx, ctx, new, client.as_deref())?;
    warnings.extend(check_rates(tx, ctx, &subscription.lines.0, &LINES)?);
    if subscription.status == Status::Ended {
        warnings.push("No period begins before subscription_end; nothing will be invoiced.".to_string());
    }
    records::add(tx, ctx, &mut subscription)?;
    generate::soon(tx, ctx, &subscription)?;
    Ok(Answer::created(ctx, &subscription, CREATED).with_texts("warnings", &warnings))
}

/// Returns the error about the body of a subscription, with whatever else is wrong with it. `unread` are its lines if some
/// of its fields are invalid.
fn all_faults(tx: &mut Tx, ctx: &Ctx, pending: &Pending<Subscription>, unread: Option<&Rows>, error: Error) -> Error {
    let new = pending.values();
    let lines = unread.unwrap_or(&new.lines.0).clone();
    faults::joined(error, |error| {
        let mut faults = pending.faults(tx, ctx, error)?;
        if !faults.has("client_id") {
            faults.join(client::named(tx, ctx, &new.client_id.0, &new.client_external_id))?;
        }
        faults.join(lines.check_named(tx, ctx, &LINES))?;
        Ok(faults)
    })
}

fn made_of(tx: &mut Tx, ctx: &Ctx, new: &Subscription, client: Option<&Client>) -> Result<Subscription> {
    let today = ctx.now.date(&ctx.zone);
    let start = new.subscription_start.0.unwrap_or(today);
    let client_id = client.map(|client| client.base.id.clone()).unwrap_or_default();
    let awaits = !client_id.is_empty() && mandate::is_pending(tx, ctx, &client_id)?;
    let mut subscription = Subscription {
        client_id: Link(client_id),
        status: if awaits { Status::Draft } else { new.status },
        term: new.frequency,
        start_date: Day(Some(start)),
        end_date: new.subscription_end.clone(),
        schedule: Plan::new(start, new.first_generate_date.0, small(new.day_of_month), small(new.day_of_week)),
        ..new.clone()
    };
    subscription.take_names(client);
    check_end(&subscription)?;
    let begins = subscription.schedule.beginning(subscription.term);
    let oldest = today.checked_sub(BACK.years()).unwrap_or(today);
    if begins.is_some_and(|begins| begins < oldest) {
        let field = if new.first_generate_date.0.is_some() { "first_generate_date" } else { "subscription_start" };
        let message =
            format!("would create invoices dated more than {BACK} years ago; send a later first_generate_date");
        return Err(Error::field(field, violation(FieldCode::OutOfRange, message)));
    }
    subscription.work_out(tx, ctx)?;
    subscription.next_generate = Day(begins.and_then(|begins| subscription.period_from(begins)));
    if subscription.next_generate.0.is_none() {
        subscription.status = Status::Ended;
    }
    subscription.number =
        format!("S{}-{:04}", start.year(), counters::next(tx, ctx, &format!("subscription {}", start.year()))?);
    Ok(subscription)
}

/// The range is already checked.
fn small(number: i64) -> i8 {
    i8::try_from(number).unwrap_or_default()
}

fn check_end(subscription: &Subscription) -> Result<()> {
    if let (Some(start), Some(end)) = (subscription.start_date.0, subscription.end_date.0)
        && end < start
    {
        let message = "cannot be before subscription_start";
        return Err(Error::field("subscription_end", violation(FieldCode::OutOfRange, message)));
    }
    Ok(())
}

/// `PATCH /v1/subscriptions/{id}`
pub fn patch(call: Call) -> Result<Work> {
    let asks = matches!(&call.body, Some(Json::Object(members)) if members.iter().any(|(name, _)| name == LINES.list));
    let pending: Pending<Subscription> = Pending::patch(&call, asks)?;
    let unread = faults::unread(&call, &pending, &LINES);
    Ok(Box::new(move |tx, ctx| {
        let before: Subscription = records::find_to_change(tx, ctx, &call)?;
        let patched = pending.checked(tx, ctx).and_then(|input| patch_now(tx, ctx, &before, input));
        patched.map_err(|error| all_faults(tx, ctx, &pending, unread.as_ref(), error))
    }))
}

fn patch_now(tx: &mut Tx, ctx: &Ctx, before: &Subscription, input: &Input<Subscription>) -> Result<Answer> {
    let mut subscription = before.clone();
    input.merge_into(&mut subscription);
    change(tx, ctx, before, &mut subscription, input)?;
    let mut warnings = input.warnings.clone();
    if input.has(LINES.list) {
        warnings.extend(check_rates(tx, ctx, &subscription.lines.0, &LINES)?);
    }
    records::change(tx, ctx, before, &mut subscription, "updated")?;
    generate::soon(tx, ctx, &subscription)?;
    Ok(Answer::record(ctx, &subscription, UPDATED).with_texts("warnings", &warnings))
}

fn change(
    tx: &mut Tx,
    ctx: &Ctx,
    before: &Subscription,
    subscription: &mut Subscription,
    input: &Input<Subscription>,
) -> Result<()> {
    let new = input.values();
    if input.has("lines") {
        subscription.work_out(tx, ctx)?;
    }
    if input.has("frequency") {
        subscription.term = new.frequency;
    }
    if input.has("subscription_start") {
        let start = new.subscription_start.0.unwrap_or_else(|| ctx.now.date(&ctx.zone));
        subscription.start_date = Day(Some(start));
    }
    if input.has("subscription_end") {
        subscription.end_date = new.subscription_end.clone();
    }
    check_end(subscription)?;
    let mut faults = FieldErrors::default();
    check_days(subscription.term, new.day_of_month, new.day_of_week, &mut faults);
    faults.into_result()?;
    // A day that does not apply to the new frequency is cleared.
    let (had, weeks) = (&before.schedule, subscription.term.in_weeks());
    let keeps = |fits: bool, had: i8| if fits || !input.has("frequency") { had } else { 0 };
    let chosen = |name: &str, sent: i64, had: i8| if input.has(name) { small(sent) } else { had };
    let day = chosen("day_of_month", new.day_of_month, keeps(!weeks, had.chosen_day));
    let weekday = chosen("day_of_week", new.day_of_week, keeps(weeks, had.chosen_weekday));
    subscription.schedule = replanned(before, subscription, day, weekday);
    let was_ended = before.was_ended(tx, ctx)?;
    subscription.renew_next(before, was_ended);
    if !subscription.problem.is_empty() {
        subscription.problem.clear();
        subscription.stuck_on = Day(None);
    }
    Ok(())
}

/// Returns the plan after a change: from the start if nothing was invoiced, otherwise from the next period on.
fn replanned(before: &Subscription, now: &Subscription, day: i8, weekday: i8) -> Plan {
    let had = &before.schedule;
    let same = before.term == now.term
        && before.start_date == now.start_date
        && (had.chosen_day, had.chosen_weekday) == (day, weekday);
    let (Some(start), false) = (now.start_date.0, same) else { return had.clone() };
    if before.last_generated.0.is_none() {
        let first = had.first.filter(|_| before.start_date == now.start_date);
        return Plan::new(start, first, day, weekday);
    }
    let anchor = match before.next_generate.0 {
        _ if before.start_date != now.start_date => start,
        Some(next) => next,
        None => return had.clone(),
    };
    let mut plan = Plan::new(anchor, None, day, weekday);
    // Keeps the 31st, although the anchor may be the last day of a shorter month.
    if day == 0 && !before.term.in_weeks() && before.start_date == now.start_date {
        plan.day = had.day;
    }
    if weekday == 0 && before.term.in_weeks() && before.start_date == now.start_date {
        plan.weekday = had.weekday;
    }
    plan
}

impl Subscription {
    /// Computes the totals of the lines, and copies the title of the first if there is none.
    fn work_out(&mut self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        let totals = self.lines.resolve(tx, ctx)?;
        self.take_totals(&totals);
        if self.title.trim().is_empty() {
            self.title = self.lines.0.0.first().map(|row| row.name.clone()).unwrap_or_default();
        }
        if self.title.trim().is_empty() {
            return Err(Error::field("title", violation(FieldCode::Required, "must have a value")));
        }
        Ok(())
    }

    /// Computes the next date after a change of the plan or the end: never one that was already invoiced, nor one
    /// before the next due date.
    fn renew_next(&mut self, before: &Subscription, was_ended: bool) {
        let from = match (before.last_generated.0, before.next_generate.0) {
            (Some(_), Some(next)) => Some(next),
            // It was invoiced to its end, which may be later now.
            (Some(last), None) => last.tomorrow().ok(),
            (None, _) => Some(Date::MIN),
        };
        // A subscription that a caller ended stays ended, except for periods that were still due.
        let open = !was_ended || before.next_generate.0.is_some();
        self.next_generate = Day(from.filter(|_| open).and_then(|from| self.period_from(from)));
        if self.next_generate.0.is_none() {
            self.status = Status::Ended;
        } else if !was_ended && before.status == Status::Ended {
            self.status = Status::Active;
        }
    }
}
