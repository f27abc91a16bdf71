//! What an invoice still has to get, and how it stands because of that.

use jiff::civil::Date;
use store::Tx;

use super::{Document, DocumentKind, Invoice};
use crate::clock::Moment;
use crate::context::Ctx;
use crate::error::{Error, Result};
use crate::marks;
use crate::record::{Record, When};
use crate::records;
use crate::resources::client::Client;

impl Invoice {
    /// How it stands after a payment or a credit: by what was paid of what is due.
    pub fn settle_payments(&mut self, ctx: &Ctx) {
        let due = self.total_incl_vat.scaled() - self.credited_amount.scaled();
        let paid = self.paid_amount.scaled();
        let late = self.due_date.0.is_some_and(|date| date < ctx.now.date(&ctx.zone));
        let all_credited = !self.rows.0.is_empty() && self.rows.0.iter().all(|row| row.credited);
        let status = match paid {
            0 if all_credited => "credited",
            0 if late => "overdue",
            0 => "open",
            // A credit is paid back: its amounts are below zero.
            _ if (due >= 0 && paid < due) || (due < 0 && paid > due) => "partial",
            _ => "paid",
        };
        self.payment_status = status.to_string();
        self.paid_at = When(if status == "paid" { self.paid_at.0.or(Some(ctx.now)) } else { None });
    }

    /// What was paid beyond what is due, in cents.
    pub fn overpaid(&self) -> i64 {
        (-self.open_amount().scaled()).max(0)
    }
}

/// The first invoice that a client pays is told once.
pub fn first_paid<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, invoice: &Document<K>) -> Result<()> {
    let client = &invoice.client_id.0;
    if client.is_empty() || !marks::once(tx, ctx, "first_invoice_paid", client)? {
        return Ok(());
    }
    let client: Client = records::find(tx, ctx, client)?;
    records::happened(tx, ctx, &client, "first_invoice_paid")
}

/// Invoices that are late and quotes that are no longer valid, as of today in the account: those
/// that were open and are so no more. A hundred at a time; answers whether there may be more.
pub fn expire<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, status: &str) -> Result<bool> {
    let sql = format!(
        "{} WHERE account_id = $1 AND payment_status = 'open' AND due_date < $2 AND due_date <> ''
         ORDER BY due_date, id LIMIT 100",
        Document::<K>::sql().select
    );
    let today = ctx.now.date(&ctx.zone).to_string();
    let found = tx.all(&sql, &[ctx.account.into(), today.into()], Document::<K>::from_row)?;
    for before in &found {
        let mut document = before.clone();
        document.payment_status = status.to_string();
        let first = status == "overdue" && owes_nothing(tx, ctx, &before.client_id.0)?;
        records::change(tx, ctx, before, &mut document, "updated")?;
        if first {
            let client: Client = records::find(tx, ctx, &before.client_id.0)?;
            records::happened(tx, ctx, &client, "payment_overdue")?;
        }
    }
    Ok(found.len() == 100)
}

/// When the next of them becomes late or invalid, after now.
pub fn next_moment<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx) -> Result<Option<Moment>> {
    let sql = format!(
        "SELECT due_date FROM {} WHERE account_id = $1 AND payment_status = 'open' AND due_date >= $2
         ORDER BY due_date LIMIT 1",
        Document::<K>::shape().table
    );
    let today = ctx.now.date(&ctx.zone).to_string();
    let found = tx.first(&sql, &[ctx.account.into(), today.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    let day_after = found.and_then(|date| date.parse::<Date>().ok()).and_then(|date| date.tomorrow().ok());
    Ok(day_after.map(|date| Moment::start_of(date, &ctx.zone)))
}

/// Whether a client has no invoice that is late.
fn owes_nothing(tx: &mut Tx, ctx: &Ctx, client: &str) -> Result<bool> {
    let sql = "SELECT count(*) FROM invoices WHERE account_id = $1 AND client_id = $2 AND payment_status = 'overdue'";
    Ok(!client.is_empty() && tx.int(sql, &[ctx.account.into(), client.into()])? == 0)
}
