//! The periods of a subscription: invoiced, due and upcoming.

use engine::call::{Answer, Call};
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::Result;
use engine::records::{self, Work};
use engine::resource::Part;
use serde_json::{Value, json};
use store::Tx;

use super::{Status, Subscription};

/// More than weekly periods of forty years.
const MAX_PERIODS: usize = 2100;

/// Fields of the response of `GET …/periods`.
pub const PARTS: &[Part] = &[
    Part("period_start", "date", "First day of the period, which is the invoice date."),
    Part("period_end", "date", "End date."),
    Part("status", "string", "`made`, `owed` if its invoice has yet to be created, or `upcoming`."),
    Part("invoice_id", "string or null", "The invoice; null if there is none, or no longer any."),
    Part("invoice_number", "string or null", "The number of the invoice."),
    Part("made_at", "date-time or null", "When the invoice was created."),
];

/// `GET /v1/subscriptions/{id}/periods`
pub fn periods(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let subscription: Subscription = records::find(tx, ctx, call.id())?;
        let mut found = made(tx, ctx, &subscription.base.id)?;
        found.extend(to_come(ctx, &subscription));
        let total = found.len();
        let mut answer = Answer::json(&Value::from(found));
        answer.meta.push(format!("\"total\":{total}"));
        Ok(answer)
    }))
}

fn made(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Vec<Value>> {
    let sql = "SELECT period_start, period_end, invoice_id, made_at FROM subscription_periods
               WHERE account_id = $1 AND subscription_id = $2 ORDER BY period_start LIMIT $3";
    let values = [ctx.account.into(), id.into(), i64::try_from(MAX_PERIODS).unwrap_or(i64::MAX).into()];
    let rows = tx.all(sql, &values, |row| {
        let texts = (row.text(0)?.to_string(), row.text(1)?.to_string(), row.text(2)?.to_string());
        Ok::<_, store::Error>((texts, Moment(row.int(3)?)))
    })?;
    let mut periods = Vec::with_capacity(rows.len());
    for ((start, end, invoice), at) in rows {
        let number = "SELECT number FROM invoices WHERE account_id = $1 AND id = $2";
        let number = tx.first(number, &[ctx.account.into(), (&invoice).into()], |row| {
            Ok::<_, store::Error>(row.text(0)?.to_string())
        })?;
        let invoice = number.as_ref().map(|_| invoice);
        periods.push(json!({
            "period_start": start, "period_end": end, "status": "made", "invoice_id": invoice,
            "invoice_number": number, "made_at": at.to_string(),
        }));
    }
    Ok(periods)
}

/// Returns the periods that are due and the next one.
fn to_come(ctx: &Ctx, subscription: &Subscription) -> Vec<Value> {
    let today = ctx.now.date(&ctx.zone);
    let mut periods = Vec::new();
    let mut next = subscription.next_generate.0;
    while let Some(date) = next.filter(|_| periods.len() < MAX_PERIODS) {
        let owed = date <= today && subscription.status != Status::Draft;
        periods.push(json!({
            "period_start": date.to_string(), "period_end": subscription.period_end(date).to_string(),
            "status": if owed { "owed" } else { "upcoming" }, "invoice_id": null, "invoice_number": null, "made_at": null,
        }));
        next = date.tomorrow().ok().filter(|_| date <= today).and_then(|day| subscription.period_from(day));
    }
    periods
}
