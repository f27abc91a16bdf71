//! The timers of documents.

use engine::context::Ctx;
use engine::error::Result;
use engine::record::Record;
use engine::timers::{self, Of, Since, Timer};
use engine::{once, records};
use store::Tx;

use super::{Document, DocumentKind, InvoiceKind, PaymentStatus, Quote, QuoteKind, WorkorderKind};
use crate::settings::Settings;

/// A sent quote had no response for a number of days.
pub static QUOTE_SILENT: Timer<Settings> = Timer {
    cause: "quote.silent",
    about: &["quote"],
    armed_by: &[("sales.document_sent", Of::Itself)],
    since: timers::NOW,
    days: Some(|settings| settings.quote_silent_days),
    run_out: |tx, ctx, id| {
        let quote: Quote = records::find(tx, ctx, id)?;
        // Each mail arms the timer, reminders included: without the mark it would be emitted again after each reminder.
        let holds = quote.payment_status == PaymentStatus::Open && once::first_time(tx, ctx, QUOTE_SILENT.cause, id)?;
        if holds { records::emit(tx, ctx, &quote, QUOTE_SILENT.cause) } else { Ok(()) }
    },
};

/// A document has been a draft for a number of days.
pub static STILL_DRAFT: Timer<Settings> = Timer {
    cause: "document.draft",
    about: &["invoice", "quote", "workorder"],
    armed_by: &[("invoice.created", Of::Itself), ("quote.created", Of::Itself), ("workorder.created", Of::Itself)],
    since: |_, data| match data.text("meta.generation_mode").as_deref() {
        Some("final") => Since::AsBefore,
        _ => Since::Now,
    },
    days: Some(|settings| settings.document_draft_days),
    run_out: |tx, ctx, id| {
        let told = still_draft::<InvoiceKind>(tx, ctx, id)? || still_draft::<QuoteKind>(tx, ctx, id)?;
        if told { Ok(()) } else { still_draft::<WorkorderKind>(tx, ctx, id).map(drop) }
    },
};

/// Emits that a document is still a draft; returns whether there is such a document.
fn still_draft<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<bool> {
    let found = tx.first(&K::sql().get, &[ctx.account.into(), id.into()], Document::<K>::from_row)?;
    if let Some(document) = found.as_ref().filter(|document| !document.is_final()) {
        records::emit(tx, ctx, document, STILL_DRAFT.cause)?;
    }
    Ok(found.is_some())
}
