//! Reports about money: the revenue of each month, and what is still to be paid by age.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Error, FieldCode, FieldErrors, Result, Violation, violation};
use engine::record::Shape;
use engine::records::Work;
use engine::resource::{Method, Part, Resource, Returns};
use jiff::ToSpan;
use jiff::civil::{Date, date};
use serde_json::{Value, json};
use store::Tx;

use super::{balances, in_euros};
use crate::documents::revenue::{self, Sums};

static SHAPE: Shape = Shape::new("report", "reports", &["Sums over invoices."]);

/// Maximum number of months in a report.
const MAX_MONTHS: i32 = 120;
/// How many months there are if none are named.
const MONTHS: i64 = 12;

const QUERY: &[Part] = &[
    Part("from", "string", "The first month (YYYY-MM, or a date in it); 11 months before the last one by default."),
    Part("to", "string", "The last month; the current one by default. A report has 120 months at most."),
];

const REVENUE: &[Part] = &[
    Part(
        "months",
        "array",
        "Every month of the range: `month`, `count`, `total_excl_vat`, `vat_amount` and `total_incl_vat` of the final invoices and credit invoices with a date in it.",
    ),
    Part("count", "integer", "The number of invoices, credit invoices included."),
    Part("total_excl_vat", "number", "The total of all months, excluding VAT."),
    Part("vat_amount", "number", "The VAT of all months."),
    Part("total_incl_vat", "number", "The total of all months, including VAT."),
];

const OPEN: &[Part] = &[
    Part("date", "date", "The day of the report: today."),
    Part(
        "ages",
        "array",
        "The `count` and the open `amount` of the invoices of each `age`, by the days since their due date: `not_due`, `1-30`, `31-60`, `61-90` and `over_90`. What is being collected is `not_due`. Refunds that are still to be paid are negative.",
    ),
    Part("count", "integer", "The number of invoices."),
    Part("amount", "number", "The total that is still to be paid."),
    Part("capped", "boolean", "Whether there are more invoices than were added up: 100,000, those due first."),
];

/// The routes of reports.
pub(crate) fn resource() -> Resource {
    let reports = Resource::without_records(&SHAPE, "Reports", "invoices", &[])
        .route(Method::Get, "/revenue", "Report the revenue of each month", revenue)
        .returns(Returns::Report(REVENUE, QUERY))
        .extension()
        .route(Method::Get, "/open", "Report what is still to be paid, by age", open)
        .returns(Returns::Parts(OPEN))
        .with(|route| route.visits_many = true)
        .extension();
    balances::routes(reports)
}

/// `GET /v1/reports/revenue`
fn revenue(call: Call) -> Result<Work> {
    let mut faults = FieldErrors::default();
    let mut asked = |name: &str| faults.take(name, call.query.get(name).map(month).transpose()).flatten();
    let (from, to) = (asked("from"), asked("to"));
    faults.into_result()?;
    Ok(Box::new(move |tx, ctx| {
        let last = to.unwrap_or_else(|| ctx.now.date(&ctx.zone).first_of_month());
        let first = from.unwrap_or_else(|| last.checked_sub((MONTHS - 1).months()).unwrap_or(last));
        let months = months(first, last)?;
        report(tx, ctx, &months)
    }))
}

/// Parses `2026-05`, or a date in that month; returns its first day.
fn month(text: &str) -> Result<Date, Violation> {
    let of_month = || format!("{text}-01").parse::<Date>().ok().filter(|_| text.len() == 7);
    let of_day = || text.parse::<Date>().ok().filter(|_| text.len() == 10);
    let found = of_month().or_else(of_day).filter(|date| date.year() > 0);
    let wrong = || violation(FieldCode::InvalidFormat, "must be a month (YYYY-MM) or a date (YYYY-MM-DD)");
    found.map(Date::first_of_month).ok_or_else(wrong)
}

/// Returns every month from `first` to `last`.
fn months(first: Date, last: Date) -> Result<Vec<String>> {
    let apart = i32::from(last.year() - first.year()) * 12 + i32::from(last.month() - first.month());
    if apart < 0 {
        return Err(Error::field("to", violation(FieldCode::OutOfRange, "cannot be before from")));
    }
    if apart >= MAX_MONTHS {
        let message = format!("may be at most {MAX_MONTHS} months before to");
        return Err(Error::field("from", violation(FieldCode::OutOfRange, message)));
    }
    let each = (0..=apart).map(|number| {
        let place = i32::from(first.month()) - 1 + number;
        let (year, month) = (i32::from(first.year()) + place / 12, place % 12 + 1);
        format!("{year:04}-{month:02}")
    });
    Ok(each.collect())
}

fn report(tx: &mut Tx, ctx: &Ctx, months: &[String]) -> Result<Answer> {
    let (first, last) = (months.first().map_or("", String::as_str), months.last().map_or("", String::as_str));
    let found = revenue::between(tx, ctx.account, first, last)?;
    let mut total = Sums::default();
    let each = months.iter().map(|month| {
        let sums = found.iter().find(|(own, _)| own == month).map(|(_, sums)| *sums).unwrap_or_default();
        total = total.plus(sums, 1);
        let mut shown = summed(sums);
        shown["month"] = month.as_str().into();
        shown
    });
    let each: Vec<Value> = each.collect();
    let mut data = summed(total);
    data["months"] = each.into();
    Ok(Answer::json(&data))
}

fn summed(sums: Sums) -> Value {
    json!({
        "count": sums.invoices, "total_excl_vat": in_euros(sums.excl_vat), "vat_amount": in_euros(sums.vat),
        "total_incl_vat": in_euros(sums.incl_vat),
    })
}

/// The ages of open invoices, by the days since their due date.
const AGES: [&str; 5] = ["not_due", "1-30", "31-60", "61-90", "over_90"];
/// The most days since the due date of each age but the last.
const DAYS: [i64; 4] = [0, 30, 60, 90];
/// Maximum number of invoices that are added up.
const MAX_INVOICES: i64 = 100_000;

/// `GET /v1/reports/open`
fn open(_: Call) -> Result<Work> {
    Ok(Box::new(|tx, ctx| {
        let today = ctx.now.date(&ctx.zone);
        let before = |days: i64| today.checked_sub(days.days()).unwrap_or(date(1, 1, 1)).to_string();
        // The index has those alone that are open, with their amounts.
        let sql = format!(
            "SELECT CAST(age AS BIGINT), count(*), CAST(sum(open_amount) AS BIGINT) FROM (
                 SELECT CASE WHEN due_date >= $1 OR collection_date <> '' THEN 0 WHEN due_date >= $2 THEN 1 WHEN due_date >= $3 THEN 2
                             WHEN due_date >= $4 THEN 3 ELSE 4 END AS age, open_amount
                 FROM invoices{} WHERE account_id = $5 AND open_amount <> 0 ORDER BY due_date LIMIT {}) AS unpaid
             GROUP BY age",
            tx.dialect().indexed_by("invoices_unpaid"),
            MAX_INVOICES + 1
        );
        let values = DAYS.map(|days| before(days).into()).into_iter().chain([ctx.account.into()]);
        let found = tx.all(&sql, &values.collect::<Vec<store::Value>>(), |row| {
            Ok::<_, Error>((row.int(0)?, row.int(1)?, row.int(2)?))
        })?;
        let of = |place: usize| {
            let one = found.iter().find(|(age, ..)| usize::try_from(*age) == Ok(place));
            one.map_or((0, 0), |(_, count, amount)| (*count, *amount))
        };
        let ages = AGES.iter().enumerate().map(|(place, age)| {
            let (count, amount) = of(place);
            json!({"age": age, "count": count, "amount": in_euros(amount)})
        });
        let ages: Vec<Value> = ages.collect();
        let count: i64 = found.iter().map(|(_, count, _)| count).sum();
        let amount = found.iter().map(|(.., amount)| amount).sum();
        Ok(Answer::json(&json!({
            "date": today.to_string(), "ages": ages, "count": count, "amount": in_euros(amount),
            "capped": count > MAX_INVOICES,
        })))
    }))
}
