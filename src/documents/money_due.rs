//! The amount due of an invoice, and the status that follows from it.

use engine::clock::Moment;
use engine::context::Ctx;
use engine::due::DueWork;
use engine::error::{Error, Result};
use engine::record::{Record, When, stored_date};
use engine::slice::{Slice, TOGETHER};
use engine::timers::{self, Timer};
use engine::{once, records};
use store::Tx;

use super::{Document, DocumentKind, Invoice, InvoiceKind, PaymentStatus, QuoteKind, Which};
use crate::relations::client::Client;
use crate::settings::Settings;

impl<K: DocumentKind> Document<K> {
    /// Sets the status after a payment or a credit, from the paid and due amounts.
    pub fn update_payment_status(&mut self, ctx: &Ctx) {
        let due = self.due_amount();
        let paid = self.paid_amount.scaled();
        let all_credited = !self.rows.0.is_empty() && self.rows.0.iter().all(|row| row.credited);
        let status = match paid {
            0 if all_credited || (due == 0 && (self.is_credit || self.credited_amount.scaled() != 0)) => {
                PaymentStatus::Credited
            }
            0 if due == 0 => PaymentStatus::Paid,
            0 if due > 0 && self.is_past_due(ctx) && !self.is_collected() => PaymentStatus::Overdue,
            0 => PaymentStatus::Open,
            // The amounts of a credit invoice are negative.
            _ if (due >= 0 && paid < due) || (due < 0 && paid > due) => PaymentStatus::Partial,
            _ => PaymentStatus::Paid,
        };
        self.paid_at = When(if status == PaymentStatus::Paid { self.paid_at.0.or(Some(ctx.now)) } else { None });
        self.payment_status = status;
    }

    /// The total amount to pay, in cents: the total less what was credited. A negative amount is to be refunded.
    pub fn due_amount(&self) -> i64 {
        self.total_incl_vat.scaled() - self.credited_amount.scaled()
    }

    /// Whether the due date has passed.
    pub(super) fn is_past_due(&self, ctx: &Ctx) -> bool {
        self.due_date.0.is_some_and(|due| due < ctx.now.date(&ctx.zone))
    }

    /// The amount paid in excess, in cents.
    pub fn overpaid(&self) -> i64 {
        (-self.unpaid_amount().scaled()).max(0)
    }
}

/// Emits the first payment of a client once. An invoice of zero and a refund do not count.
fn first_paid<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, invoice: &Document<K>) -> Result<()> {
    let client = &invoice.client_id.0;
    let is_money = invoice.total_incl_vat.scaled() > 0;
    if client.is_empty() || !is_money || !once::first_time(tx, ctx, FIRST_PAID, client)? {
        return Ok(());
    }
    let client: Client = records::find(tx, ctx, client)?;
    records::happened(tx, ctx, &client, FIRST_PAID)
}

/// A client who gets a paid invoice by a merge has had its first payment.
pub fn move_first_paid<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, invoice: &Document<K>) -> Result<()> {
    let is_paid = K::WHICH == Which::Invoice && invoice.is_final() && invoice.payment_status == PaymentStatus::Paid;
    if is_paid && invoice.total_incl_vat.scaled() > 0 && !invoice.client_id.0.is_empty() {
        once::first_time(tx, ctx, FIRST_PAID, &invoice.client_id.0)?;
    }
    Ok(())
}

/// The mark of clients who have paid an invoice.
const FIRST_PAID: &str = "first_invoice_paid";

/// Marks invoices as overdue.
pub const LATE_INVOICES: DueWork = DueWork {
    process_batch: |tx, ctx, slice| expire::<InvoiceKind>(tx, ctx, &PaymentStatus::Overdue, slice),
    next_moment: next_moment::<InvoiceKind>,
    ..DueWork::NOTHING
};

/// Marks quotes as expired.
pub const EXPIRED_QUOTES: DueWork = DueWork {
    process_batch: |tx, ctx, slice| expire::<QuoteKind>(tx, ctx, &PaymentStatus::Expired, slice),
    next_moment: next_moment::<QuoteKind>,
    ..DueWork::NOTHING
};

/// Marks open invoices as overdue, or open quotes as expired, by the account's current date. Handles as many as fit in
/// the slice, and returns whether there may be more.
fn expire<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, status: &PaymentStatus, slice: &Slice) -> Result<bool> {
    // An invoice with a negative amount is never overdue; it stays open until it is refunded.
    let (index, owed) = can_expire::<K>(tx);
    // Selects only the ids: a document can have a thousand rows, and the slice may end before it is processed.
    let sql = format!(
        "SELECT id FROM {}{index} WHERE account_id = $1 AND payment_status = '{}' AND due_date < $2
         AND due_date <> ''{owed} ORDER BY due_date, id LIMIT {TOGETHER}",
        Document::<K>::shape().table,
        PaymentStatus::Open
    );
    let today = ctx.now.date(&ctx.zone).to_string();
    let found = tx.all(&sql, &[ctx.account.into(), today.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    for id in &found {
        if slice.is_over() {
            return Ok(true);
        }
        let before: Document<K> = records::find(tx, ctx, id)?;
        let mut document = before.clone();
        // An invoice with nothing left to pay is not overdue.
        match K::WHICH {
            Which::Invoice if document.unpaid_amount().scaled() <= 0 => document.update_payment_status(ctx),
            _ => document.payment_status = status.clone(),
        }
        records::change(tx, ctx, &before, &mut document, "updated")?;
        slice.did_one();
    }
    Ok(found.len() == TOGETHER)
}

/// Behind the name of the table: the index of those that are open; and which of them can become late or invalid.
fn can_expire<K: DocumentKind>(tx: &Tx) -> (String, &'static str) {
    match K::WHICH {
        // One that is being collected is not late: the client has nothing to do.
        Which::Invoice => (
            tx.dialect().indexed_by("invoices_open"),
            " AND total_incl_vat - credited_amount >= 0 AND collection_date = ''",
        ),
        _ => (tx.dialect().indexed_by("quotes_open"), ""),
    }
}

/// Returns the next moment after now at which a document becomes overdue or expires.
fn next_moment<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx) -> Result<Option<Moment>> {
    let (index, owed) = can_expire::<K>(tx);
    let sql = format!(
        "SELECT due_date, id FROM {}{index} WHERE account_id = $1 AND payment_status = '{}' AND due_date >= $2{owed}
         ORDER BY due_date LIMIT 1",
        Document::<K>::shape().table,
        PaymentStatus::Open
    );
    let today = ctx.now.date(&ctx.zone).to_string();
    let found = tx.first(&sql, &[ctx.account.into(), today.into()], |row| {
        let id = row.text(1)?;
        stored_date(row.text(0)?).map_err(|error| error.at(Document::<K>::shape().table, id, "due_date"))
    })?;
    let day_after = found.and_then(|date| date.tomorrow().ok());
    Ok(day_after.map(|date| Moment::start_of(date, &ctx.zone)))
}

/// Does what follows from a new status or due date of an invoice: emits that it is paid or overdue, or schedules a
/// timer for the rest.
pub fn follow<K: DocumentKind>(
    tx: &mut Tx,
    ctx: &Ctx,
    before: Option<&Document<K>>,
    invoice: &Document<K>,
) -> Result<()> {
    let stands = |invoice: &Document<K>| {
        (invoice.is_final(), invoice.payment_status.clone(), invoice.due_date.clone(), invoice.is_collected())
    };
    if invoice.comes_to(&PaymentStatus::Paid, before) {
        first_paid(tx, ctx, invoice)?;
    }
    // A credit invoice, an invoice of zero and a draft are never overdue.
    let owes = invoice.is_final() && invoice.due_amount() > 0;
    if !owes || before.map(stands) == Some(stands(invoice)) {
        return Ok(());
    }
    let was_late = match before {
        Some(before) => before.is_final() && is_late(tx, ctx, before)?,
        None => false,
    };
    match invoice.payment_status {
        PaymentStatus::Overdue if invoice.is_past_due(ctx) => say_late(tx, ctx, invoice).map(drop)?,
        // A caller may set the status overdue before the due date.
        PaymentStatus::Overdue | PaymentStatus::Partial => await_the_rest(tx, ctx, invoice)?,
        _ => {}
    }
    if !was_late && is_late(tx, ctx, invoice)? { say_overdue(tx, ctx, invoice) } else { Ok(()) }
}

/// Schedules the overdue event for the day after the due date, for an invoice that is partly paid or that a caller
/// marked overdue. An open invoice becomes overdue then and emits it itself.
fn await_the_rest<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, invoice: &Document<K>) -> Result<()> {
    match invoice.due_date.0.and_then(|due| due.tomorrow().ok()) {
        Some(day) => INVOICE_LATE.arm(tx, ctx, &invoice.base.id, Moment::start_of(day, &ctx.zone)),
        None => Ok(()),
    }
}

/// An invoice that is partly paid is late. One that is not paid at all becomes overdue and says so then.
pub static INVOICE_LATE: Timer<Settings> = Timer {
    cause: "invoice.late",
    about: &["invoice"],
    armed_by: &[],
    since: timers::NOW,
    days: None,
    run_out: |tx, ctx, id| {
        let invoice: Invoice = records::find(tx, ctx, id)?;
        late_after_all(tx, ctx, &invoice)
    },
};

/// Emits that a partly paid invoice, or one that a caller marked overdue early, is overdue.
fn late_after_all<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, invoice: &Document<K>) -> Result<()> {
    let unpaid = LATE.contains(&invoice.payment_status) && invoice.due_amount() > 0 && !invoice.is_collected();
    if unpaid && invoice.is_past_due(ctx) && say_late(tx, ctx, invoice)? {
        say_overdue(tx, ctx, invoice)?;
    }
    Ok(())
}

/// The key by which the overdue event is emitted once per invoice and due date.
fn lateness<K: DocumentKind>(invoice: &Document<K>) -> String {
    format!("invoice.late {}", invoice.due_date.0.map(|due| due.to_string()).unwrap_or_default())
}

/// Emits that an invoice is overdue, once per due date; returns whether this was the first time.
fn say_late<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, invoice: &Document<K>) -> Result<bool> {
    let first = once::first_time(tx, ctx, &lateness(invoice), &invoice.base.id)?;
    if first {
        records::happened(tx, ctx, invoice, "late")?;
    }
    Ok(first)
}

/// The statuses of an invoice that can be late.
const LATE: [PaymentStatus; 2] = [PaymentStatus::Overdue, PaymentStatus::Partial];

/// Whether an invoice counts as late: it is unpaid and the event was emitted. Otherwise two invoices that become late
/// on the same day would each consider the other to be the first.
fn is_late<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, invoice: &Document<K>) -> Result<bool> {
    let unpaid = LATE.contains(&invoice.payment_status) && !invoice.is_collected();
    Ok(unpaid && once::has(tx, ctx, &lateness(invoice), &invoice.base.id)?)
}

/// Emits that a client is overdue, when this is its only late invoice.
fn say_overdue<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, invoice: &Document<K>) -> Result<()> {
    let client = &invoice.client_id.0;
    if client.is_empty() || owes_another(tx, ctx, client, &invoice.base.id)? {
        return Ok(());
    }
    let client: Client = records::find(tx, ctx, client)?;
    records::happened(tx, ctx, &client, "payment_overdue")
}

/// Whether another invoice of the client is late. The index has those alone that can be ([`LATE`]).
/// The marks are counted: for an `EXISTS` SQLite would read all of them first, to be able to pass over some.
fn owes_another(tx: &mut Tx, ctx: &Ctx, client: &str, id: &str) -> Result<bool> {
    let index = tx.dialect().indexed_by("invoices_late");
    let [overdue, partial] = LATE;
    let sql = format!(
        "SELECT 1 FROM invoices{index} WHERE account_id = $1 AND client_id = $2 AND due_date < $3
         AND payment_status IN ('{overdue}', '{partial}') AND id <> $4 AND total_incl_vat >= 0 AND collection_date = '' AND (SELECT count(*) FROM marks
         WHERE marks.account_id = $1 AND cause = 'invoice.late ' || due_date AND record_id = invoices.id) > 0 LIMIT 1"
    );
    let today = ctx.now.date(&ctx.zone).to_string();
    let values = [ctx.account.into(), client.into(), today.into(), id.into()];
    Ok(tx.first(&sql, &values, |_| Ok::<_, Error>(()))?.is_some())
}
