//! What an invoice still has to get, and how it stands because of that.

use store::Tx;

use super::{Document, DocumentKind, PaymentStatus, Which};
use crate::clock::Moment;
use crate::context::Ctx;
use crate::days::{Slice, TOGETHER};
use crate::error::{Error, Result};
use crate::marks;
use crate::record::{Record, When, stored_date};
use crate::records;
use crate::resources::client::Client;
use crate::timers;

impl<K: DocumentKind> Document<K> {
    /// How it stands after a payment or a credit: by what was paid of what is due.
    pub fn settle_payments(&mut self, ctx: &Ctx) {
        let due = self.total_incl_vat.scaled() - self.credited_amount.scaled();
        let paid = self.paid_amount.scaled();
        let late = self.due_date.0.is_some_and(|date| date < ctx.now.date(&ctx.zone));
        let all_credited = !self.rows.0.is_empty() && self.rows.0.iter().all(|row| row.credited);
        let status = match paid {
            0 if all_credited || (due == 0 && self.credited_amount.scaled() != 0) => PaymentStatus::Credited,
            0 if due == 0 && !self.is_credit => PaymentStatus::Paid,
            0 if late => PaymentStatus::Overdue,
            0 => PaymentStatus::Open,
            // A credit is paid back: its amounts are below zero.
            _ if (due >= 0 && paid < due) || (due < 0 && paid > due) => PaymentStatus::Partial,
            _ => PaymentStatus::Paid,
        };
        self.paid_at = When(if status == PaymentStatus::Paid { self.paid_at.0.or(Some(ctx.now)) } else { None });
        self.payment_status = status;
    }

    /// What was paid beyond what is due, in cents.
    pub fn overpaid(&self) -> i64 {
        (-self.open_amount().scaled()).max(0)
    }
}

/// The first invoice that a client pays is told once. Who owed nothing, or was paid himself, has paid nothing.
fn first_paid<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, invoice: &Document<K>) -> Result<()> {
    let client = &invoice.client_id.0;
    let is_money = invoice.total_incl_vat.scaled() > 0;
    if client.is_empty() || !is_money || !marks::once(tx, ctx, "first_invoice_paid", client)? {
        return Ok(());
    }
    let client: Client = records::find(tx, ctx, client)?;
    records::happened(tx, ctx, &client, "first_invoice_paid")
}

/// Invoices that are late and quotes that are no longer valid, as of today in the account: those
/// that were open and are so no more. As many as fit in the slice; answers whether there may be more.
pub fn expire<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, status: &PaymentStatus, slice: &Slice) -> Result<bool> {
    // Their ids alone: a document may have a thousand rows, and the slice may be over before its turn.
    let sql = format!(
        "SELECT id FROM {} WHERE account_id = $1 AND payment_status = 'open' AND due_date < $2 AND due_date <> ''
         ORDER BY due_date, id LIMIT {TOGETHER}",
        Document::<K>::shape().table
    );
    let today = ctx.now.date(&ctx.zone).to_string();
    let found = tx.all(&sql, &[ctx.account.into(), today.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    for id in &found {
        if slice.is_over() {
            return Ok(true);
        }
        let before: Document<K> = records::find(tx, ctx, id)?;
        let mut document = before.clone();
        // Where nothing is left to pay nobody is late.
        match K::WHICH {
            Which::Invoice if document.open_amount().scaled() == 0 => document.settle_payments(ctx),
            _ => document.payment_status = status.clone(),
        }
        records::change(tx, ctx, &before, &mut document, "updated")?;
        slice.did_one();
    }
    Ok(found.len() == TOGETHER)
}

/// When the next of them becomes late or invalid, after now.
pub fn next_moment<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx) -> Result<Option<Moment>> {
    let sql = format!(
        "SELECT due_date, id FROM {} WHERE account_id = $1 AND payment_status = 'open' AND due_date >= $2
         ORDER BY due_date LIMIT 1",
        Document::<K>::shape().table
    );
    let today = ctx.now.date(&ctx.zone).to_string();
    let found = tx.first(&sql, &[ctx.account.into(), today.into()], |row| {
        let id = row.text(1)?;
        stored_date(row.text(0)?).map_err(|error| error.at(Document::<K>::shape().table, id, "due_date"))
    })?;
    let day_after = found.and_then(|date| date.tomorrow().ok());
    Ok(day_after.map(|date| Moment::start_of(date, &ctx.zone)))
}

/// What follows when an invoice has come to stand otherwise, or to be due on another day: it is paid or late,
/// or its rest is awaited.
pub fn follow<K: DocumentKind>(
    tx: &mut Tx,
    ctx: &Ctx,
    before: Option<&Document<K>>,
    invoice: &Document<K>,
) -> Result<()> {
    let stands = |invoice: &Document<K>| (invoice.is_final(), invoice.payment_status.clone(), invoice.due_date.clone());
    if invoice.comes_to(&PaymentStatus::Paid, before) {
        first_paid(tx, ctx, invoice)?;
    }
    // Nobody is late with a credit, whose amounts are below zero, nor with nothing, nor with a draft.
    let owes = invoice.is_final() && invoice.total_incl_vat.scaled() > 0;
    if !owes || before.map(stands) == Some(stands(invoice)) {
        return Ok(());
    }
    let was_late = match before {
        Some(before) => before.is_final() && is_late(tx, ctx, before)?,
        None => false,
    };
    match invoice.payment_status {
        PaymentStatus::Overdue => say_late(tx, ctx, invoice).map(drop)?,
        PaymentStatus::Partial => timers::await_the_rest(tx, ctx, invoice)?,
        _ => {}
    }
    if !was_late && is_late(tx, ctx, invoice)? { say_overdue(tx, ctx, invoice) } else { Ok(()) }
}

/// The day after it was due an invoice that is partly paid is late, too.
pub fn late_in_part<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, invoice: &Document<K>) -> Result<()> {
    let past = invoice.due_date.0.is_some_and(|due| due < ctx.now.date(&ctx.zone));
    if invoice.payment_status == PaymentStatus::Partial && past && say_late(tx, ctx, invoice)? {
        say_overdue(tx, ctx, invoice)?;
    }
    Ok(())
}

/// What is said once per invoice and due date.
fn lateness<K: DocumentKind>(invoice: &Document<K>) -> String {
    format!("invoice.late {}", invoice.due_date.0.map(|due| due.to_string()).unwrap_or_default())
}

/// Says that an invoice is late, once per due date; answers whether this was the first time.
fn say_late<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, invoice: &Document<K>) -> Result<bool> {
    let first = marks::once(tx, ctx, &lateness(invoice), &invoice.base.id)?;
    if first {
        records::happened(tx, ctx, invoice, "late")?;
    }
    Ok(first)
}

/// Whether an invoice counts as late. One that is partly paid does when that was said: two that become late
/// on one day would else each take the other for the first.
fn is_late<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, invoice: &Document<K>) -> Result<bool> {
    match invoice.payment_status {
        PaymentStatus::Overdue => Ok(true),
        PaymentStatus::Partial => marks::has(tx, ctx, &lateness(invoice), &invoice.base.id),
        _ => Ok(false),
    }
}

/// Says of a client that it owes something late, when this invoice is the only one that is.
fn say_overdue<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, invoice: &Document<K>) -> Result<()> {
    let client = &invoice.client_id.0;
    if client.is_empty() || owes_another(tx, ctx, client, &invoice.base.id)? {
        return Ok(());
    }
    let client: Client = records::find(tx, ctx, client)?;
    records::happened(tx, ctx, &client, "payment_overdue")
}

/// Whether another invoice of the client is late. The plus keeps SQLite from taking the index of totals, in which it
/// would look through every invoice of the account: it thinks a range finds less than two columns that must be equal.
fn owes_another(tx: &mut Tx, ctx: &Ctx, client: &str, id: &str) -> Result<bool> {
    let overdue = "SELECT 1 FROM invoices WHERE account_id = $1 AND client_id = $2 AND payment_status = 'overdue'
                   AND id <> $3 AND +total_incl_vat >= 0 LIMIT 1";
    let own = [ctx.account.into(), client.into(), id.into()];
    if tx.first(overdue, &own, |_| Ok::<_, Error>(()))?.is_some() {
        return Ok(true);
    }
    // What is partly paid is late once that was said, which was after it was due.
    let in_part = "SELECT 1 FROM invoices WHERE account_id = $1 AND client_id = $2 AND payment_status = 'partial'
                   AND due_date < $3 AND id <> $4 AND +total_incl_vat >= 0 AND EXISTS (SELECT 1 FROM marks
                   WHERE marks.account_id = $1 AND cause = 'invoice.late ' || due_date AND record_id = invoices.id)
                   LIMIT 1";
    let today = ctx.now.date(&ctx.zone).to_string();
    let values = [ctx.account.into(), client.into(), today.into(), id.into()];
    Ok(tx.first(in_part, &values, |_| Ok::<_, Error>(()))?.is_some())
}
