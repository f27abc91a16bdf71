//! Recurring invoices: maintenance contracts, one of them cancelled.

use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::perform::perform;
use jiff::ToSpan;
use serde_json::{Value, json};
use store::Tx;

use super::{DemoStep, change, make};

pub(super) fn steps() -> Vec<DemoStep> {
    vec![
        contract(118, "contract havenzicht", "havenzicht", "Onderhoud collectieve installatie", "monthly", "185"),
        contract(104, "contract anker", "anker", "Onderhoud boilers en luchtbehandeling", "quarterly", "640"),
        contract(96, "contract linde", "linde", "Serviceabonnement compleet", "half_yearly", "149.50"),
        contract(60, "contract ster", "ster", "Onderhoud combiketel", "yearly", "129"),
        contract(88, "contract draak", "draak", "Ontstoppingsservice", "four_weeks", "45"),
        // Cancelled because of the price.
        change(40, "/v1/subscriptions/@contract draak", json!({"subscription_end": "@-22"})),
        change(
            30,
            "/v1/subscriptions/@contract havenzicht",
            json!({"lines": [line("Onderhoud collectieve installatie", "195")]}),
        ),
    ]
}

fn contract(ago: i64, name: &str, client: &str, title: &str, frequency: &str, price: &str) -> DemoStep {
    let start = format!("@-{}", ago - 2);
    let body = json!({
        "client_id": format!("@{client}"), "title": title, "frequency": frequency, "subscription_start": start,
        "lines": [line(title, price)],
    });
    make(ago, name, "/v1/subscriptions", body)
}

fn line(title: &str, price: &str) -> Value {
    json!({"title": title, "quantity": 1, "unit": "keer", "unit_price": price, "vat_code": "NL21"})
}

/// Pays each contract invoice nine days later, as by standing order.
pub(super) fn pay(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    let day = ctx.now.date(&ctx.zone).checked_sub(9.days()).map(|day| day.to_string()).unwrap_or_default();
    let sql = "SELECT id FROM invoices WHERE account_id = $1 AND subscription_id <> '' AND payment_status = 'open'
               AND invoice_date <= $2 ORDER BY number";
    let due = tx.all(sql, &[ctx.account.into(), day.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    for id in due {
        let body = json!({"payment_data": {"bank": "periodieke overboeking"}});
        perform(tx, ctx, "POST", &format!("/v1/invoices/{id}/payments"), Some(&body))?;
    }
    Ok(())
}
