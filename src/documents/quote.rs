//! Quotes: accepting, rejecting, and creating an invoice or a project from them.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::input;
use engine::record::{CREATED, DETAIL, Link, Record, When};
use engine::records::{self, Image, Work};
use money::Amount;
use store::Tx;

use super::complete::warned;
use super::status::{Effect, Verb};
use super::{Document, DocumentKind, Invoice, PaymentStatus, Quote, change_to_final, make_final, new, with_finalized};
use crate::sales::deal::Deal;
use crate::work::project::Project;

/// `POST /v1/quotes/{id}/accept`
pub fn accept(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let quote: Quote = records::find_to_change(tx, ctx, &call)?;
        let finalized = !quote.is_final();
        let (quote, image) = accept_by(tx, ctx, quote, "")?;
        let warnings = warned(&quote, finalized, &warnings);
        Ok(with_finalized(Image::answer(image, ctx, &quote, DETAIL).with_texts("warnings", &warnings), finalized))
    }))
}

/// Accepts a quote in the name of a person and finalizes it in the same change; no change if it was already accepted.
pub fn accept_by(tx: &mut Tx, ctx: &Ctx, mut before: Quote, name: &str) -> Result<(Quote, Option<Image>)> {
    if !before.may(Verb::Accept)? {
        let (_, image) = make_final(tx, ctx, &mut before)?;
        return Ok((before, image));
    }
    check_valid(ctx, &before)?;
    let mut quote = before.clone();
    quote.payment_status = PaymentStatus::Accepted;
    quote.accepted_at = When(Some(ctx.now));
    quote.accepted_by = name.to_string();
    let (_, image) = change_to_final(tx, ctx, &before, &mut quote)?;
    Ok((quote, image))
}

/// Emits the event of a deal whose quote was accepted.
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
        let (quote, image) = reject_now(tx, ctx, quote)?;
        let warnings = warned(&quote, finalized, &warnings);
        Ok(with_finalized(Image::answer(image, ctx, &quote, DETAIL).with_texts("warnings", &warnings), finalized))
    }))
}

/// Rejects a quote and finalizes it in the same change; no change if it was already rejected.
pub fn reject_now(tx: &mut Tx, ctx: &Ctx, mut before: Quote) -> Result<(Quote, Option<Image>)> {
    if !before.may(Verb::Reject)? {
        let (_, image) = make_final(tx, ctx, &mut before)?;
        return Ok((before, image));
    }
    check_valid(ctx, &before)?;
    let mut quote = before.clone();
    quote.payment_status = PaymentStatus::Rejected;
    quote.rejected_at = When(Some(ctx.now));
    let (_, image) = change_to_final(tx, ctx, &before, &mut quote)?;
    Ok((quote, image))
}

/// Whether the client can still accept or reject the quote.
pub fn is_open<K: DocumentKind>(ctx: &Ctx, quote: &Document<K>) -> bool {
    let open = |verb: Verb| verb.effect(&quote.payment_status) == Effect::Allowed;
    open(Verb::Accept) && open(Verb::Reject) && check_valid(ctx, quote).is_ok()
}

/// Rejects a response after the last valid day, also when the quote is not marked as expired yet.
fn check_valid<K: DocumentKind>(ctx: &Ctx, quote: &Document<K>) -> Result<()> {
    if quote.due_date.0.is_some_and(|until| until < ctx.now.date(&ctx.zone)) {
        return Err(Error::new(Code::InvalidTransition, format!("{} is no longer valid.", quote.number)));
    }
    Ok(())
}

/// `POST /v1/quotes/{id}/invoice`
pub fn invoice(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let quote: Quote = records::find_to_change(tx, ctx, &call)?;
        let finalized = !quote.is_final();
        quote.may(Verb::Invoice)?;
        let warnings = warned(&quote, finalized, &warnings);
        let (invoice, image) = invoice_of(tx, ctx, quote)?;
        Ok(with_finalized(image.created(ctx, &invoice, CREATED).with_texts("warnings", &warnings), finalized))
    }))
}

/// `POST /v1/quotes/{id}/project`
pub fn project(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let mut quote: Quote = records::find_to_change(tx, ctx, &call)?;
        let (finalized, _) = make_final(tx, ctx, &mut quote)?;
        quote.may(Verb::MakeProject)?;
        let project = project_of(tx, ctx, &quote)?;
        let warnings = warned(&quote, finalized, &warnings);
        Ok(with_finalized(Answer::created(ctx, &project, CREATED).with_texts("warnings", &warnings), finalized))
    }))
}

/// Creates a project from a quote, once; the total of the quote is the budget.
fn project_of(tx: &mut Tx, ctx: &Ctx, before: &Quote) -> Result<Project> {
    if !before.project_id.0.is_empty() {
        let message = format!("{} already has a project: {}.", before.number, before.project_id.0);
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
    records::happened(tx, ctx, &quote, "converted_to_project")?;
    Ok(project)
}

/// Creates a draft invoice from a document, once, and finalizes that document.
pub fn invoice_of<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, before: Document<K>) -> Result<(Invoice, Image)> {
    if !before.invoice_id.0.is_empty() {
        let message = format!("{} already has an invoice: {}.", before.number, before.invoice_id.0);
        return Err(Error::new(Code::InvalidTransition, message));
    }
    let mut invoice: Invoice = before.copied().into_other();
    if K::WHICH == super::Which::Quote {
        invoice.quote_id = Link(before.base.id.clone());
    }
    let totals = invoice.rows.totals()?;
    invoice.take_totals(&totals);
    invoice.start(tx, ctx)?;
    let image = new::save(tx, ctx, &mut invoice)?;
    let mut source = before.clone();
    source.invoice_id = Link(invoice.base.id.clone());
    source.payment_status = PaymentStatus::Invoiced;
    change_to_final(tx, ctx, &before, &mut source)?;
    Ok((invoice, image))
}
