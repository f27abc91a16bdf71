//! Quotes: accepted, rejected, made into an invoice or a project.

use money::Amount;
use store::Tx;

use super::{Document, DocumentKind, Invoice, Quote, change_to_final, make_final, new, pdf, with_finalized};
use crate::call::{Answer, Call};
use crate::context::Ctx;
use crate::error::{Code, Error, Result};
use crate::input;
use crate::record::{CREATED, DETAIL, Link, Record, When};
use crate::records::{self, Work};
use crate::resources::deal::Deal;
use crate::resources::project::Project;

/// `POST /v1/quotes/{id}/accept`
pub fn accept(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let quote: Quote = records::find_to_change(tx, ctx, &call)?;
        let finalized = !quote.is_final();
        let quote = accept_by(tx, ctx, quote, "")?;
        Ok(with_finalized(Answer::record(ctx, &quote, DETAIL).with_texts("warnings", &warnings), finalized))
    }))
}

/// Accepts a quote in somebody's name, and makes it final in the same change; again: no change.
pub fn accept_by(tx: &mut Tx, ctx: &Ctx, mut before: Quote, name: &str) -> Result<Quote> {
    if matches!(before.payment_status.as_str(), "accepted" | "invoiced") {
        make_final(tx, ctx, &mut before)?;
        return Ok(before);
    }
    check_open(ctx, &before)?;
    let mut quote = before.clone();
    quote.payment_status = "accepted".to_string();
    quote.accepted_at = When(Some(ctx.now));
    quote.accepted_by = name.to_string();
    change_to_final(tx, ctx, &before, &mut quote)?;
    Ok(quote)
}

/// A deal whose quote was accepted says so.
pub fn tell_deal(tx: &mut Tx, ctx: &Ctx, deal: &str) -> Result<()> {
    if deal.is_empty() {
        return Ok(());
    }
    let deal: Deal = records::find(tx, ctx, deal)?;
    records::happened(tx, ctx, &deal, "quote_accepted")
}

/// `POST /v1/quotes/{id}/reject`
pub fn reject(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let quote: Quote = records::find_to_change(tx, ctx, &call)?;
        let finalized = !quote.is_final();
        let quote = reject_now(tx, ctx, quote)?;
        Ok(with_finalized(Answer::record(ctx, &quote, DETAIL).with_texts("warnings", &warnings), finalized))
    }))
}

/// Rejects a quote, and makes it final in the same change; again: no change.
pub fn reject_now(tx: &mut Tx, ctx: &Ctx, mut before: Quote) -> Result<Quote> {
    if before.payment_status == "rejected" {
        make_final(tx, ctx, &mut before)?;
        return Ok(before);
    }
    check_open(ctx, &before)?;
    let mut quote = before.clone();
    quote.payment_status = "rejected".to_string();
    quote.rejected_at = When(Some(ctx.now));
    change_to_final(tx, ctx, &before, &mut quote)?;
    Ok(quote)
}

/// Whether a client can still answer.
pub fn check_open<K: DocumentKind>(ctx: &Ctx, quote: &Document<K>) -> Result<()> {
    let refuse = |why: &str| Err(Error::new(Code::InvalidTransition, format!("{} {why}.", quote.number)));
    match quote.payment_status.as_str() {
        "accepted" | "invoiced" => refuse("was accepted already"),
        "rejected" => refuse("was rejected"),
        "expired" => refuse("is no longer valid"),
        _ if quote.due_date.0.is_some_and(|until| until < ctx.now.date(&ctx.zone)) => refuse("is no longer valid"),
        _ => Ok(()),
    }
}

/// `POST /v1/quotes/{id}/invoice`
pub fn invoice(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let quote: Quote = records::find_to_change(tx, ctx, &call)?;
        let finalized = !quote.is_final();
        check_alive(&quote, "invoiced")?;
        let invoice = invoice_of(tx, ctx, quote)?;
        Ok(with_finalized(Answer::created(ctx, &invoice, CREATED).with_texts("warnings", &warnings), finalized))
    }))
}

/// What nobody wants is not carried out.
fn check_alive(quote: &Quote, what: &str) -> Result<()> {
    if matches!(quote.payment_status.as_str(), "rejected" | "expired") {
        let message = format!("{} is {}; it cannot be {what}.", quote.number, quote.payment_status);
        return Err(Error::new(Code::InvalidTransition, message));
    }
    Ok(())
}

/// `POST /v1/quotes/{id}/project`
pub fn project(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let mut quote: Quote = records::find_to_change(tx, ctx, &call)?;
        let finalized = make_final(tx, ctx, &mut quote)?;
        check_alive(&quote, "made into a project")?;
        let project = project_of(tx, ctx, &quote)?;
        Ok(with_finalized(Answer::created(ctx, &project, CREATED).with_texts("warnings", &warnings), finalized))
    }))
}

/// Makes a project of what was offered, once: its price is the budget.
fn project_of(tx: &mut Tx, ctx: &Ctx, before: &Quote) -> Result<Project> {
    if !before.project_id.0.is_empty() {
        let message = format!("{} has its project already: {}.", before.number, before.project_id.0);
        return Err(Error::new(Code::InvalidTransition, message));
    }
    let named = !before.title.trim().is_empty();
    let mut project = Project {
        name: if named { before.title.clone() } else { before.number.clone() },
        client_id: before.client_id.clone(),
        budget: before.total_excl_vat.max(Amount::ZERO),
        ..Project::default()
    };
    records::add(tx, ctx, &mut project)?;
    let mut quote = before.clone();
    quote.project_id = Link(project.base.id.clone());
    records::change(tx, ctx, before, &mut quote, "updated")?;
    pdf::enqueue(tx, ctx, &quote)?;
    records::happened(tx, ctx, &quote, "converted_to_project")?;
    Ok(project)
}

/// Makes the draft of an invoice, once; what it is made of is final from then on.
pub fn invoice_of<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, before: Document<K>) -> Result<Invoice> {
    if !before.invoice_id.0.is_empty() {
        let message = format!("{} has its invoice already: {}.", before.number, before.invoice_id.0);
        return Err(Error::new(Code::InvalidTransition, message));
    }
    let mut invoice: Invoice = before.copied().into_other();
    if K::WHICH == super::Which::Quote {
        invoice.quote_id = Link(before.base.id.clone());
    }
    let totals = invoice.rows.totals()?;
    invoice.take_totals(&totals);
    invoice.start(tx, ctx)?;
    new::save(tx, ctx, &mut invoice)?;
    let mut source = before.clone();
    source.invoice_id = Link(invoice.base.id.clone());
    source.payment_status = "invoiced".to_string();
    change_to_final(tx, ctx, &before, &mut source)?;
    Ok(invoice)
}
