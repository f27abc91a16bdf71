//! Creating the invoices of subscriptions: one write each, one invoice per period, in order of date. Missed
//! invoices are created later, and a subscription that cannot be invoiced does not block the others.

use engine::app::App;
use engine::clock::Moment;
use engine::context::{Actor, Ctx};
use engine::due::DueWork;
use engine::error::{Code, Error, Result};
use engine::jobs::{self, Claimed, Ending, Job, NewJob};
use engine::record::{Day, Link, stored_date};
use engine::slice::{self, Slice};
use engine::{once, records};
use futures_util::future::join_all;
use jiff::ToSpan;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use store::{Row, Tx};

use super::{Status, Subscription};
use crate::documents::{self, Invoice, Language, new};
use crate::payments::collecting;
use crate::relations::client::Client;
use crate::settings::{Generation, Settings};

/// Maximum number of invoices per commit, which limits how long other writers wait.
const TOGETHER: i64 = 32;

/// Enqueues the invoices of a subscription if they are due. An account with a test clock waits until it is advanced.
pub(crate) fn soon(tx: &mut Tx, ctx: &Ctx, subscription: &Subscription) -> Result<()> {
    let due = subscription.next_generate.0.is_some_and(|date| date <= ctx.now.date(&ctx.zone));
    if !due || subscription.status == Status::Draft || ctx.has_test_clock {
        return Ok(());
    }
    enqueue(tx, ctx, &subscription.base.id)
}

/// Enqueues the job for the account; `cause` distinguishes it from other pending jobs.
pub(crate) fn enqueue(tx: &mut Tx, ctx: &Ctx, cause: &str) -> Result<()> {
    let job = NewJob::of(ctx, &MakeInvoices {})?.keyed(format!("subscriptions {} {cause}", ctx.account));
    jobs::enqueue(tx, ctx, &job)
}

/// The job that creates all due invoices of an account.
#[derive(Serialize, Deserialize)]
pub struct MakeInvoices {}

impl Job for MakeInvoices {
    const KIND: &'static str = "subscriptions";

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        let caller = app.acting_in(claimed.account, Self::KIND)?;
        if !caller.account.has_test_clock {
            bring_up_to_date(app, &caller)?;
        }
        Ok(Ending::Done)
    }
}

/// Due invoices and approaching ends.
pub const DUE: DueWork =
    DueWork { bring_up_to_date, catch_up, process_batch: announce, next_moment, ..DueWork::NOTHING };

/// Creates all due invoices of the account.
fn bring_up_to_date(app: &App, caller: &Actor) -> Result<()> {
    loop {
        let own = caller.clone();
        let due = app.store.read_now(move |tx| {
            let ctx = own.reading(tx)?;
            due(tx, &ctx)
        })?;
        if due.is_empty() {
            return Ok(());
        }
        let made = join_all(due.iter().map(|id| {
            let (own, id) = (caller.clone(), id.clone());
            app.store.write(caller.account.number, move |tx| {
                let ctx = own.writing(tx)?;
                make_next(tx, &ctx, &id)
            })
        }));
        let made = tokio::runtime::Handle::current().block_on(made);
        for (id, made) in due.into_iter().zip(made) {
            match made {
                Ok(()) => {}
                Err(error) if matches!(error.code, Code::Overloaded | Code::DiskFull | Code::Unavailable) => {
                    return Err(error);
                }
                Err(error) => note_problem(app, caller, id, error)?,
            }
        }
    }
}

/// Creates all due invoices in the transaction and at the time of the caller.
fn catch_up(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    loop {
        let due = due(tx, ctx)?;
        if due.is_empty() {
            return Ok(());
        }
        for id in due {
            make_next(tx, ctx, &id)?;
        }
    }
}

/// Returns the subscriptions whose next invoice has the earliest due date.
fn due(tx: &mut Tx, ctx: &Ctx) -> Result<Vec<String>> {
    let Some(date) = earliest(tx, ctx)? else { return Ok(Vec::new()) };
    let today = ctx.now.date(&ctx.zone).to_string();
    let draft = Status::Draft.wire();
    let sql = format!(
        "SELECT id FROM subscriptions WHERE account_id = $1 AND next_generate = $2 AND status <> '{draft}'
         AND stuck_on <> $3 ORDER BY id LIMIT $4"
    );
    let values = [ctx.account.into(), date.to_string().into(), today.into(), TOGETHER.into()];
    tx.all(&sql, &values, |row| Ok(row.text(0)?.to_string()))
}

/// Returns the earliest date of a due invoice.
fn earliest(tx: &mut Tx, ctx: &Ctx) -> Result<Option<Date>> {
    let today = ctx.now.date(&ctx.zone).to_string();
    let draft = Status::Draft.wire();
    // Greater than nothing, rather than not equal to it: the index then passes over those that have no next date.
    let sql = format!(
        "SELECT next_generate, id FROM subscriptions WHERE account_id = $1 AND next_generate > ''
         AND next_generate <= $2 AND status <> '{draft}' AND stuck_on <> $2 ORDER BY next_generate LIMIT 1"
    );
    tx.first(&sql, &[ctx.account.into(), today.into()], |row| day_of(row, "next_generate"))
}

/// Reads a date of a subscription from a row whose next column is the id.
fn day_of(row: &Row, column: &str) -> Result<Date> {
    let id = row.text(1)?;
    Ok(stored_date(row.text(0)?).map_err(|error| error.at("subscriptions", id, column))?)
}

/// Returns the next moment after now at which subscriptions of the account have work to do.
fn next_moment(tx: &mut Tx, ctx: &Ctx) -> Result<Option<Moment>> {
    let today = ctx.now.date(&ctx.zone);
    let generated = next_date(tx, ctx, "next_generate", today)?;
    let announced = match announced_before(tx, ctx)? {
        0 => None,
        days => {
            let seen = today.checked_add(days.days()).unwrap_or(today);
            next_date(tx, ctx, "untold_end", seen)?.and_then(|end| end.checked_sub(days.days()).ok())
        }
    };
    Ok([generated, announced].into_iter().flatten().min().map(|date| Moment::start_of(date, &ctx.zone)))
}

/// Returns the first date in a column after `date`.
fn next_date(tx: &mut Tx, ctx: &Ctx, column: &str, date: Date) -> Result<Option<Date>> {
    let draft = Status::Draft.wire();
    let sql = format!(
        "SELECT {column}, id FROM subscriptions WHERE account_id = $1 AND {column} <> '' AND {column} > $2
         AND status <> '{draft}' ORDER BY {column} LIMIT 1"
    );
    let values = [ctx.account.into(), date.to_string().into()];
    tx.first(&sql, &values, |row| day_of(row, column))
}

/// Returns how many days before its end `subscription.expiring` is emitted; 0 for never.
fn announced_before(tx: &mut Tx, ctx: &Ctx) -> Result<i64> {
    Ok(Settings::of(tx, ctx)?.subscription_expiring_days)
}

/// Creates the invoice of the next period of a subscription, if it is due.
fn make_next(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<()> {
    let before: Subscription = records::find(tx, ctx, id)?;
    let today = ctx.now.date(&ctx.zone);
    let Some(date) = before.next_generate.0.filter(|date| *date <= today) else { return Ok(()) };
    if before.status == Status::Draft {
        return Ok(());
    }
    let end = before.period_end(date);
    let mut subscription = before.clone();
    if claim_period(tx, ctx, &before, date, end)? {
        let invoice = make_invoice(tx, ctx, &before, date, end)?;
        subscription.last_generated = Day(Some(date));
        let sql = "UPDATE subscription_periods SET invoice_id = $1
                   WHERE account_id = $2 AND subscription_id = $3 AND period_start = $4";
        let values = [(&invoice.base.id).into(), ctx.account.into(), id.into(), date.to_string().into()];
        tx.execute(sql, &values)?;
    }
    subscription.next_generate = Day(date.tomorrow().ok().and_then(|day| before.period_from(day)));
    if subscription.next_generate.0.is_none() {
        subscription.status = Status::Ended;
    }
    subscription.problem.clear();
    subscription.stuck_on = Day(None);
    records::change(tx, ctx, &before, &mut subscription, "updated")
}

/// Claims a period; returns whether it was unclaimed.
fn claim_period(tx: &mut Tx, ctx: &Ctx, subscription: &Subscription, start: Date, end: Date) -> Result<bool> {
    let sql =
        "INSERT INTO subscription_periods (account_id, subscription_id, period_start, period_end, invoice_id, made_at)
               VALUES ($1, $2, $3, $4, '', $5) ON CONFLICT DO NOTHING";
    let values = [
        ctx.account.into(),
        (&subscription.base.id).into(),
        start.to_string().into(),
        end.to_string().into(),
        ctx.now.0.into(),
    ];
    Ok(tx.execute(sql, &values)? == 1)
}

fn make_invoice(tx: &mut Tx, ctx: &Ctx, subscription: &Subscription, start: Date, end: Date) -> Result<Invoice> {
    let settings = Settings::of(tx, ctx)?;
    let client = match subscription.client_id.0.as_str() {
        "" => None,
        id => Some(records::find::<Client>(tx, ctx, id)?),
    };
    let language = new::language_of(client.as_ref());
    let (rows, totals) = subscription.lines.0.clone().at_todays_rates(tx, ctx)?;
    let mut invoice = Invoice {
        title: subscription.title.clone(),
        client_id: subscription.client_id.clone(),
        subscription_id: Link(subscription.base.id.clone()),
        period_start: Day(Some(start)),
        period_end: Day(Some(end)),
        invoice_date: Day(Some(start)),
        notes: period_in_words(language, start, end),
        rows,
        language,
        ..Invoice::default()
    };
    invoice.take_totals(&totals);
    invoice.start(tx, ctx)?;
    let mut mandate = None;
    if settings.subscription_generation != Generation::Draft {
        invoice.become_final(tx, ctx)?;
        // Before it is saved, so that its first PDF says that it is collected.
        mandate = collecting::plan(tx, ctx, &mut invoice)?;
    }
    new::save(tx, ctx, &mut invoice)?;
    if let Some(mandate) = mandate {
        collecting::start(tx, ctx, &invoice, &mandate)?;
    }
    if settings.subscription_generation == Generation::FinalAndSend {
        documents::mail::post_usual(tx, ctx, invoice.clone(), documents::mail::SendType::Subscription)?;
    }
    Ok(invoice)
}

fn period_in_words(language: Language, start: Date, end: Date) -> String {
    let style = documents::pdf::Style(language);
    let (start, end) = (style.date(start), style.date(end));
    match language {
        Language::Dutch => format!("Periode: {start} t/m {end}"),
        Language::English => format!("Period: {start} to {end}"),
    }
}

/// Records why an invoice could not be created; it is retried the next day, or when the subscription is changed.
fn note_problem(app: &App, caller: &Actor, id: String, error: Error) -> Result<()> {
    tracing::warn!(subscription = %id, %error, cause = error.internal.as_deref().unwrap_or(""), "Cannot create an invoice of a subscription.");
    let own = caller.clone();
    app.store.write_now(caller.account.number, move |tx| {
        let ctx = own.writing(tx)?;
        let before: Subscription = records::find(tx, &ctx, &id)?;
        let mut subscription = before.clone();
        subscription.problem = error.to_string();
        subscription.stuck_on = Day(Some(ctx.now.date(&ctx.zone)));
        records::update(tx, &ctx, &before, &mut subscription, "generation_failed")
    })
}

/// Emits `subscription.expiring`, once per end date, for as many subscriptions as fit in the slice; returns whether
/// there may be more. Only the end date matters: the last invoice may have been created long before.
fn announce(tx: &mut Tx, ctx: &Ctx, slice: &Slice) -> Result<bool> {
    let today = ctx.now.date(&ctx.zone);
    let seen = match announced_before(tx, ctx)? {
        0 => return Ok(false),
        days => today.checked_add(days.days()).unwrap_or(today),
    };
    let sql = format!(
        "SELECT id FROM subscriptions WHERE account_id = $1 AND untold_end <> '' AND untold_end <= $2
         ORDER BY untold_end, id LIMIT {}",
        slice::TOGETHER
    );
    let values = [ctx.account.into(), seen.to_string().into()];
    let found = tx.all(&sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    for id in &found {
        if slice.is_over() {
            return Ok(true);
        }
        let subscription: Subscription = records::find(tx, ctx, id)?;
        come_near(tx, ctx, &subscription, today)?;
        slice.did_one();
    }
    Ok(found.len() == slice::TOGETHER)
}

fn come_near(tx: &mut Tx, ctx: &Ctx, subscription: &Subscription, today: Date) -> Result<()> {
    let clear = "UPDATE subscriptions SET untold_end = '' WHERE account_id = $1 AND id = $2";
    tx.execute(clear, &[ctx.account.into(), (&subscription.base.id).into()])?;
    let Some(end) = subscription.end_date.0.filter(|end| *end > today) else { return Ok(()) };
    let cause = format!("subscription.expiring {end}");
    let silent = subscription.status == Status::Draft || subscription.was_ended(tx, ctx)?;
    if silent || !once::first_time(tx, ctx, &cause, &subscription.base.id)? {
        return Ok(());
    }
    records::happened(tx, ctx, subscription, "expiring")
}
