//! Subscriptions: recurring invoices. Each period has one invoice, on a date that follows from the schedule and not
//! from the previous invoice, so that no invoice is duplicated and dates do not drift.

pub(crate) mod activation;
pub(crate) mod deleted_products;
pub(crate) mod deleted_rates;
pub mod generate;
mod lines;
mod new;
mod periods;
mod plan;

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Error, FieldCode, Result, violation};
use engine::input::Input;
use engine::record::{
    ALL, Body, COMPUTED, DETAIL, Day, INPUT, Link, Model, NOWHERE, Record, Transitions, UPDATED, check_transition,
};
use engine::records::{self, Work};
use engine::resource::{Method, Part, RequestBody, Resource, Returns, Verb};
use engine::slice::Slice;
use engine::tables::{Logged, Relink};
use engine::{choice, input, list, once, record};
use jiff::civil::Date;
use money::{Amount, Percent};
use store::{Migration, Tx, Value};

use crate::documents::Invoice;
use crate::relations::client::Client;
pub use lines::Lines;
pub use plan::{Plan, Term};

choice! {
    /// The status of a subscription.
    pub enum Status {
        /// Not invoiced yet.
        Draft = "draft",
        /// Each period is invoiced when it begins.
        #[default]
        Active = "active",
        /// No new periods begin.
        Ended = "ended",
    }
}

/// The transitions of an activation. A subscription that reached its end date is continued by setting a later one; see
/// `new`.
pub const ACTIVATE: Transitions<Status> = &[(Status::Draft, &[Status::Active]), (Status::Active, &[Status::Active])];

record! {
    /// A recurring invoice for a client.
    pub struct Subscription = "subscription" in "subscriptions", created_at: ALL;

    /// Number without gaps, assigned on creation.
    number: String = COMPUTED.search().filter().sort();
    /// The client.
    client_id: Link = INPUT.create_only().refers("clients").filter();
    /// The client, by your own `external_id`.
    client_external_id: String = INPUT.create_only().sent_only().example("\"\"");
    /// Title; defaults to the title of the first line.
    title: String = INPUT.names().kept().search().sort().example("\"Hosting\"");
    /// Frequency of the invoices.
    frequency: Term = INPUT.sent_only().default("\"monthly\"").example("\"monthly\"");
    /// Start date; defaults to today.
    subscription_start: Day = INPUT.kept().sent_only().example("\"2026-06-01\"");
    /// End date: periods that begin before it are invoiced.
    subscription_end: Day = INPUT.nullable().sent_only().example("\"2027-06-01\"");
    /// The date of the first invoice, instead of the start date. Time before it is not invoiced. The second invoice
    /// follows one term later, on the selected day, else on the day of this date.
    first_generate_date: Day = INPUT.create_only().sent_only().example("\"\"");
    /// Day of the month, from 1 to 31; in shorter months, the last day. Not for `weekly` and `four_weeks`.
    day_of_month: i64 = INPUT.between(1, 31).nullable().sent_only().example("1");
    /// Day of the week, from Monday (1) to Sunday (7); only for `weekly` and `four_weeks`.
    day_of_week: i64 = INPUT.between(1, 7).nullable().sent_only();
    /// `draft`, `active` or `ended`. Send `draft` to start later; defaults to `active`, unless the client's mandate is still
    /// pending.
    status: Status = INPUT.create_only().filter().sort().example("\"active\"");
    /// Frequency of the invoices.
    term: Term = COMPUTED.filter_also("frequency").sent_as("frequency");
    /// Start date.
    start_date: Day = COMPUTED.sent_as("subscription_start").sort().range("start_from", "start_to");
    /// End date: periods that begin before it are invoiced.
    end_date: Day = COMPUTED.sent_as("subscription_end").nullable().sort();
    /// The date of the last invoice.
    last_generated: Day = COMPUTED.nullable();
    /// The date of the next invoice.
    next_generate: Day = COMPUTED.nullable().sort();
    /// The days of invoices: `schedule_type` (`start_date` or `day_of_month`), `day_of_month` and `day_of_week`.
    schedule: Plan = COMPUTED.sent_as("day_of_month");
    /// Sum of the lines.
    subtotal: Amount = COMPUTED;
    /// VAT percentage; with several rates, the effective percentage.
    vat_rate: Percent = COMPUTED.percent();
    /// VAT amount per period.
    vat_amount: Amount = COMPUTED;
    /// Total per period excluding VAT.
    total_excl_vat: Amount = COMPUTED;
    /// Total per period including VAT.
    total_incl_vat: Amount = COMPUTED.sort();
    /// Lines of each invoice: `title`, `quantity`, `unit`, `unit_price` and `vat_code`. A change replaces all lines. Included when
    /// one subscription is retrieved, and in events.
    lines: Lines = INPUT.shown(DETAIL).example("[{\"title\": \"Hosting\", \"quantity\": 1, \"unit_price\": 25, \"vat_code\": \"NL21\"}]");
    /// Why the next invoice could not be created, or empty.
    problem: String = COMPUTED.filter_filled("has_problem").in_meta();
    /// The names of the client, for search.
    client_names: String = COMPUTED.search().shown(NOWHERE);
    /// The day on which the next invoice could not be created.
    stuck_on: Day = COMPUTED.shown(NOWHERE);
    /// The end date, until `subscription.expiring` has been emitted. The number of days before it is a setting that is
    /// subtracted in the query, so that changing the setting rewrites no subscriptions.
    untold_end: Day = COMPUTED.shown(NOWHERE);

    // For the tests in `declared.rs`.
    /// A text.
    #[cfg(test)] test_text: String = INPUT.filter().example("\"red\"");
    /// An amount.
    #[cfg(test)] test_amount: Amount = INPUT.filter().example("12.5");
}

impl Model for Subscription {
    fn before_save(&mut self, tx: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        // A draft emits nothing about its end, so this starts when it becomes active.
        let activated = |before: &Self| before.status == Status::Draft && self.status != Status::Draft;
        if before.is_none_or(|before| before.end_date != self.end_date || activated(before)) {
            self.untold_end = self.end_date.clone();
        }
        if self.was_ended(tx, ctx)? {
            self.untold_end = Day(None);
        }
        Ok(())
    }

    fn events(&self, before: Option<&Self>) -> Vec<&'static str> {
        match (before.map(|before| before.status), self.status) {
            (Some(Status::Draft), Status::Active) => vec!["activated"],
            (was, Status::Ended) if was != Some(Status::Ended) => vec!["ended"],
            _ => Vec::new(),
        }
    }
}

impl Subscription {
    /// Returns the first day of the period that begins on or after `day`, if it begins before the end.
    fn period_from(&self, day: Date) -> Option<Date> {
        self.schedule.from(self.term, day).filter(|date| self.is_invoiced(*date))
    }

    /// Whether a period that begins on `date` is invoiced: it begins before the end. A subscription that ends on its
    /// start date never runs, so it has no periods, even if `first_generate_date` lies before the start.
    fn is_invoiced(&self, date: Date) -> bool {
        self.end_date.0.is_none_or(|end| date < end && self.start_date.0 != Some(end))
    }

    /// Returns the last day of the period that begins on `date`.
    fn period_end(&self, date: Date) -> Date {
        let next = date.tomorrow().ok().and_then(|day| self.schedule.from(self.term, day));
        next.and_then(|next| next.yesterday().ok()).unwrap_or(Date::MAX)
    }

    /// Whether it was ended by a caller, rather than by reaching its end date.
    fn was_ended(&self, tx: &mut Tx, ctx: &Ctx) -> Result<bool> {
        Ok(self.status == Status::Ended && once::has(tx, ctx, ENDED_BY_HAND, &self.base.id)?)
    }

    fn names_rate(&self, code: &str) -> bool {
        self.status != Status::Ended && self.lines.0.0.iter().any(|row| row.vat_code == code)
    }

    /// Sets the totals of the lines.
    fn take_totals(&mut self, totals: &money::Totals<String>) {
        let mut sums = Invoice::default();
        sums.take_totals(totals);
        self.subtotal = sums.subtotal;
        self.vat_rate = sums.vat_rate;
        self.vat_amount = sums.vat_amount;
        self.total_excl_vat = sums.total_excl_vat;
        self.total_incl_vat = sums.total_incl_vat;
    }

    fn take_names(&mut self, client: Option<&Client>) {
        self.client_names = client.map_or(String::new(), |client| {
            let names =
                [&client.company_name, &client.firstname, &client.lastname, &client.email.0, &client.external_id];
            names.into_iter().filter(|name| !name.is_empty()).cloned().collect::<Vec<_>>().join("\n")
        });
    }
}

input! {
    /// When a subscription ends.
    pub struct Deactivation;

    /// The day from which nothing more is invoiced. Defaults to today, or to the start date of a subscription that
    /// has not started.
    subscription_end: Day = INPUT.example("\"2027-01-01\"");
}

impl Body for Deactivation {}

/// Fields of the response to a deactivation.
const ENDED: &[Part] = &[
    Part("id", "string", "The subscription."),
    Part("status", "string", "`ended`."),
    Part("end_date", "date", "End date; periods that begin before it are still invoiced, unless it is the start date."),
];

/// The mark of subscriptions that a caller ended.
const ENDED_BY_HAND: &str = "subscription.deactivated";

/// `POST /v1/subscriptions/{id}/deactivate`
fn deactivate(call: Call) -> Result<Work> {
    let input: Input<Deactivation> = input::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let before: Subscription = records::find_to_change(tx, ctx, &call)?;
        let mut subscription = before.clone();
        if before.status != Status::Ended {
            let (sent, today) = (input.record().subscription_end.0, ctx.now.date(&ctx.zone));
            let start = before.start_date.0.unwrap_or(Date::MIN);
            if sent.is_some_and(|end| end < start) {
                let message = "cannot be before the subscription starts";
                return Err(Error::field("subscription_end", violation(FieldCode::OutOfRange, message)));
            }
            // A subscription cannot end before it starts.
            subscription.end_date = Day(Some(sent.unwrap_or(today).max(start)));
            let is_due = |date: &Date| before.status == Status::Active && subscription.is_invoiced(*date);
            subscription.next_generate = Day(before.next_generate.0.filter(is_due));
            subscription.status = Status::Ended;
        }
        once::first_time(tx, ctx, ENDED_BY_HAND, &before.base.id)?;
        records::change(tx, ctx, &before, &mut subscription, "updated")?;
        generate::soon(tx, ctx, &subscription)?;
        let end = subscription.end_date.0.map(|end| end.to_string());
        let data = serde_json::json!({"id": subscription.base.id, "status": "ended", "end_date": end});
        Ok(Answer::json(&data).with_texts("warnings", &input.warnings))
    }))
}

/// `POST /v1/subscriptions/{id}/activate`
fn activate(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let subscription: Subscription = records::find_to_change(tx, ctx, &call)?;
        let subscription = make_active(tx, ctx, subscription)?;
        Ok(Answer::record(ctx, &subscription, UPDATED).with_texts("warnings", &warnings))
    }))
}

/// Activates a draft; no change if it is already active.
pub(crate) fn make_active(tx: &mut Tx, ctx: &Ctx, before: Subscription) -> Result<Subscription> {
    check_transition(ACTIVATE, &before.status, &Status::Active, || {
        format!("{} has ended. Create a new subscription.", before.number)
    })?;
    let mut subscription = before.clone();
    subscription.status = Status::Active;
    records::change(tx, ctx, &before, &mut subscription, "updated")?;
    generate::soon(tx, ctx, &subscription)?;
    Ok(subscription)
}

/// `GET /v1/subscriptions/{id}/invoices`
fn invoices(call: Call) -> Result<Work> {
    list::belonging::<Subscription, Invoice>(call, "subscription_id")
}

/// How a subscription stands that has not ended.
const LIVE: &[Status] = &[Status::Active, Status::Draft];

/// The condition for subscriptions that have not ended.
pub(crate) fn when_live() -> String {
    format!("status IN ({})", Status::sql_list(LIVE))
}

/// Changes a link of subscriptions whose record is deleted or merged.
fn relink(tx: &mut Tx, ctx: &Ctx, link: &Relink, slice: &Slice) -> Result<bool> {
    records::relink_with::<Subscription>(tx, ctx, link, slice, |tx, ctx, before, subscription| {
        let client = match subscription.client_id.0.as_str() {
            "" => None,
            id => Some(records::known::<Client>(tx, ctx, id)?),
        };
        subscription.take_names(client.as_deref());
        records::update(tx, ctx, before, subscription, "updated")
    })
}

/// Returns the ids of the subscriptions with a line for this product. Scans all that have not ended.
pub(crate) fn naming_product(tx: &mut Tx, ctx: &Ctx, product: &str) -> Result<Vec<String>> {
    let live = Status::sql_list(LIVE);
    let sql = format!("SELECT id FROM subscriptions WHERE account_id = $1 AND status IN ({live}) AND lines LIKE $2");
    tx.all(&sql, &[ctx.account.into(), format!("%\"{product}\"%").into()], |row| Ok(row.text(0)?.to_string()))
}

/// Shows `take` the lines of all subscriptions that have not ended, or of one of them.
pub(crate) fn lines_of_live(tx: &mut Tx, ctx: &Ctx, id: Option<&str>, take: &mut dyn FnMut(&str)) -> Result<()> {
    let live = Status::sql_list(LIVE);
    let one = if id.is_some() { " AND id = $2" } else { "" };
    let sql = format!("SELECT lines FROM subscriptions WHERE account_id = $1 AND status IN ({live}){one}");
    let values: Vec<Value> = [Some(ctx.account.into()), id.map(Into::into)].into_iter().flatten().collect();
    let shown = tx.all(&sql, &values, |row| {
        take(row.text(0)?);
        Ok::<_, Error>(())
    });
    shown.map(drop)
}

/// Clears a deleted product from the lines of a subscription.
pub(crate) fn forget_product(tx: &mut Tx, ctx: &Ctx, id: &str, product: &str) -> Result<()> {
    let found = tx.first(&Subscription::sql().get, &[ctx.account.into(), id.into()], Subscription::from_row)?;
    let Some(before) = found.filter(|subscription| subscription.status != Status::Ended) else { return Ok(()) };
    let mut subscription = before.clone();
    subscription.lines.0.forget_product(product);
    records::update(tx, ctx, &before, &mut subscription, "updated")
}

/// Whether a subscription that has not ended uses this tax rate. Scans all of them.
pub(crate) fn needs_rate(tx: &mut Tx, ctx: &Ctx, code: &str) -> Result<bool> {
    // The pattern may match too much; the lines decide.
    let plain = code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let pattern = if plain { format!("%\"{code}\"%") } else { "%".to_string() };
    let (select, live) = (&Subscription::sql().select, Status::sql_list(LIVE));
    let sql = format!("{select} WHERE account_id = $1 AND status IN ({live}) AND lines LIKE $2");
    let mut needed = false;
    tx.each(&sql, &[ctx.account.into(), pattern.into()], |row| {
        needed = needed || Subscription::from_row(row)?.names_rate(code);
        Ok::<_, Error>(())
    })?;
    Ok(needed)
}

/// Whether this subscription has not ended and uses the tax rate.
pub(crate) fn one_needs_rate(tx: &mut Tx, ctx: &Ctx, id: &str, code: &str) -> Result<bool> {
    let found = tx.first(&Subscription::sql().get, &[ctx.account.into(), id.into()], Subscription::from_row)?;
    Ok(found.is_some_and(|subscription| subscription.names_rate(code)))
}

/// Returns the problems of a stored subscription.
fn faults(tx: &mut Tx, account: i64, subscription: &Subscription) -> Result<Vec<String>> {
    let mut fresh = subscription.clone();
    let (lines, totals) = subscription.lines.0.worked_out()?;
    fresh.take_totals(&totals);
    let sums =
        |one: &Subscription| [one.subtotal, one.vat_amount, one.total_excl_vat, one.total_incl_vat].map(Amount::scaled);
    let mut faults = Vec::new();
    if sums(&fresh) != sums(subscription) || fresh.vat_rate != subscription.vat_rate || lines != subscription.lines.0 {
        let (own, right) = (subscription.total_incl_vat, fresh.total_incl_vat);
        faults.push(format!("Its totals (total_incl_vat {own}) do not match its lines ({right})"));
    }
    if let Some(last) = subscription.last_generated.0 {
        let made = "SELECT count(*) FROM subscription_periods
                    WHERE account_id = $1 AND subscription_id = $2 AND period_start = $3";
        let values = [account.into(), (&subscription.base.id).into(), last.to_string().into()];
        if tx.int(made, &values)? == 0 {
            faults.push(format!("It was last invoiced for {last}, but that period does not exist"));
        }
    }
    Ok(faults)
}

/// The resource of subscriptions.
pub(crate) fn resource() -> Resource {
    Resource::of::<Subscription>("Subscriptions", "relations", MIGRATIONS)
        .inspected::<Subscription>(faults)
        .relinked(relink)
        .logged(Logged::Except(&["untold_end"]))
        .list::<Subscription>()
        .verb(Verb::Create, new::create)
        .get::<Subscription>()
        .verb(Verb::Patch, new::patch)
        .route(Method::Post, "/{id}/deactivate", "End a subscription", deactivate)
        .body::<Deactivation>(RequestBody::Maybe)
        .returns(Returns::Parts(ENDED))
        .route(Method::Get, "/{id}/invoices", "List the invoices of a subscription", invoices)
        .returns(Returns::PageOf("invoices"))
        .route(Method::Post, "/{id}/activate", "Activate a draft", activate)
        .returns(Returns::Item(UPDATED))
        .extension()
        .or_with("finance.write")
        .route(Method::Get, "/{id}/periods", "List the periods of a subscription with their invoices", periods::periods)
        .returns(Returns::ListOfParts(periods::PARTS))
        .extension()
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 56,
    name: "subscriptions",
    sql: "
CREATE TABLE subscriptions (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    number TEXT NOT NULL,
    title TEXT NOT NULL,
    client_id TEXT NOT NULL,
    status TEXT NOT NULL,
    term TEXT NOT NULL,
    start_date TEXT NOT NULL,
    end_date TEXT NOT NULL,
    last_generated TEXT NOT NULL,
    next_generate TEXT NOT NULL,
    schedule TEXT NOT NULL,
    subtotal BIGINT NOT NULL,
    vat_rate BIGINT NOT NULL,
    vat_amount BIGINT NOT NULL,
    total_excl_vat BIGINT NOT NULL,
    total_incl_vat BIGINT NOT NULL,
    lines TEXT NOT NULL,
    problem TEXT NOT NULL,
    client_names TEXT NOT NULL,
    stuck_on TEXT NOT NULL,
    untold_end TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX subscriptions_created ON subscriptions (account_id, created_at, id);
CREATE UNIQUE INDEX subscriptions_number ON subscriptions (account_id, number, id);
CREATE INDEX subscriptions_number_created ON subscriptions (account_id, number, created_at, id);
CREATE INDEX subscriptions_title ON subscriptions (account_id, title, id);
CREATE INDEX subscriptions_client ON subscriptions (account_id, client_id, created_at, id);
CREATE INDEX subscriptions_status ON subscriptions (account_id, status, created_at, id);
CREATE INDEX subscriptions_status_sort ON subscriptions (account_id, status, id);
CREATE INDEX subscriptions_start ON subscriptions (account_id, start_date, id);
CREATE INDEX subscriptions_end ON subscriptions (account_id, end_date, id);
CREATE INDEX subscriptions_next ON subscriptions (account_id, next_generate, id);
CREATE INDEX subscriptions_total ON subscriptions (account_id, total_incl_vat, id);
CREATE INDEX subscriptions_notify ON subscriptions (account_id, untold_end) WHERE untold_end <> '';
CREATE INDEX subscriptions_problem ON subscriptions (account_id, id) WHERE problem <> '';
CREATE INDEX subscriptions_term ON subscriptions (account_id, term, created_at, id);
CREATE TABLE subscription_periods (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    subscription_id TEXT NOT NULL,
    period_start TEXT NOT NULL,
    period_end TEXT NOT NULL,
    invoice_id TEXT NOT NULL,
    made_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, subscription_id, period_start)
) STRICT, WITHOUT ROWID;
",
}];
