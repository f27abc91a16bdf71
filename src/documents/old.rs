//! Documents of an earlier program: their original PDF, and withdrawing them while nothing has happened to them.

use std::collections::BTreeSet;

use engine::call::Call;
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::jobs;
use engine::record::Link;
use engine::records::{self, Work};
use money::Amount;
use store::Tx;

use super::new;
pub use super::new::Past;
use super::{Document, DocumentKind, Invoice, InvoiceKind, Mode, QuoteKind, Which, WorkorderKind, revenue};
use crate::files::{self, File};

/// Returns the work that creates a document in this table, or `None` if the table has other records. It keeps its number as it
/// is, and its times.
pub fn create(table: &str, call: Call, past: Past) -> Result<Option<Work>> {
    match table {
        "invoices" => new::create_old::<InvoiceKind>(call, past).map(Some),
        "quotes" => new::create_old::<QuoteKind>(call, past).map(Some),
        "workorders" => new::create_old::<WorkorderKind>(call, past).map(Some),
        _ => Ok(None),
    }
}

/// Gives a final document that was just created its original PDF instead of one of ours; without a file, ours is typeset
/// when somebody asks for it. A payment in the same line may have led to a second revision.
pub fn keep_original(tx: &mut Tx, ctx: &Ctx, table: &str, document: &str, file: Option<&File>) -> Result<()> {
    let sql = format!("SELECT revision FROM {table} WHERE account_id = $1 AND id = $2");
    let revision = tx.int(&sql, &[ctx.account.into(), document.into()])?;
    for revision in 0..=revision {
        jobs::call_off(tx, &format!("document_pdf {document} {revision}"))?;
    }
    let Some(file) = file else { return Ok(()) };
    let sql = "INSERT INTO document_pdfs (account_id, document_id, revision, file_id) VALUES ($1, $2, $3, $4)";
    for revision in 1..=revision {
        tx.execute(sql, &[ctx.account.into(), document.into(), revision.into(), (&file.base.id).into()])?;
    }
    Ok(())
}

/// Links an old credit invoice to the invoice that it credits, as crediting that invoice does. Both keep their status.
pub fn link_credit(tx: &mut Tx, ctx: &Ctx, credit: &str, credited: &str) -> Result<()> {
    let (made, before): (Invoice, Invoice) = (records::find(tx, ctx, credit)?, records::find(tx, ctx, credited)?);
    if !made.is_credit || before.is_credit || !before.is_final() {
        return Ok(());
    }
    let mut linked = made.clone();
    linked.credited_invoice_id = Link(before.base.id.clone());
    records::update(tx, ctx, &made, &mut linked, "updated")?;
    let mut invoice = before.clone();
    invoice.credited_amount = Amount::from_scaled(before.credited_amount.scaled() - made.total_incl_vat.scaled());
    if invoice.due_amount() == 0 {
        invoice.rows.0.iter_mut().for_each(|row| row.credited = true);
    }
    invoice.take_open_amount();
    invoice.revise_request(&before);
    records::update(tx, ctx, &before, &mut invoice, "credited")?;
    records::follow(tx, ctx, Some(&before), &invoice)
}

/// Removes an imported document of this table, even if it is final; returns `None` if the table has other records.
pub fn withdraw(tx: &mut Tx, ctx: &Ctx, table: &str, id: &str) -> Result<Option<()>> {
    match table {
        "invoices" => withdraw_one::<InvoiceKind>(tx, ctx, id).map(Some),
        "quotes" => withdraw_one::<QuoteKind>(tx, ctx, id).map(Some),
        "workorders" => withdraw_one::<WorkorderKind>(tx, ctx, id).map(Some),
        _ => Ok(None),
    }
}

fn withdraw_one<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<()> {
    let document: Document<K> = records::find(tx, ctx, id)?;
    if !document.credited_invoice_id.0.is_empty() {
        return Err(Error::new(Code::InUse, "It stays: it credits another invoice."));
    }
    let pdfs = "SELECT file_id FROM document_pdfs WHERE account_id = $1 AND document_id = $2";
    let values = [ctx.account.into(), id.into()];
    let pdfs: BTreeSet<String> =
        tx.all(pdfs, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))?.into_iter().collect();
    tx.execute("DELETE FROM document_pdfs WHERE account_id = $1 AND document_id = $2", &values)?;
    for pdf in pdfs {
        let file: File = records::find(tx, ctx, &pdf)?;
        files::remove(tx, ctx, &file)?;
    }
    if K::WHICH == Which::Invoice {
        let mut draft = document.clone();
        draft.generation_mode = Mode::Draft;
        revenue::follow(tx, ctx, Some(&document), &draft)?;
    }
    records::remove(tx, ctx, &document)
}
