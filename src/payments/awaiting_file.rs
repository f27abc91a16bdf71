//! Collections that wait for a bank file follow their client: they are from the account that the client has, and end when the
//! client has no account or no signed mandate any more.

use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::log::Event;
use engine::records;
use serde_json::json;
use store::Tx;

use super::handing_over;
use super::mandate::{self, Mandate};
use super::payment::{self, Payment, Status};
use crate::documents::Invoice;
use crate::relations::client::Client;
use crate::settings::ProviderName;

/// Keeps the promises of invoices: what no file can collect is canceled, so the invoice asks for a transfer, and an invoice
/// names the account that the file will have.
pub(crate) fn follow_client(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<()> {
    let client = match event.name {
        "customer.updated" | "customer.merged" => event.entity_id.to_string(),
        "mandate.updated" => records::find::<Mandate>(tx, ctx, event.entity_id)?.client_id.0,
        _ => return Ok(()),
    };
    let is_signed = mandate::of(tx, ctx, &client)?.is_some_and(|mandate| mandate.is_signed());
    match event.name {
        // Without a mandate nothing waits, since the change that ended it canceled everything.
        "customer.updated" if !is_signed => return Ok(()),
        // A mandate that moves to another client by a merge may come before the IBAN.
        "mandate.updated" if is_signed => return Ok(()),
        _ => {}
    }
    let client: Client = records::find(tx, ctx, &client)?;
    let reason = match () {
        () if !is_signed => Some("The client no longer has a signed mandate."),
        () if client.iban.0.is_empty() => Some("The client no longer has an IBAN."),
        () => None,
    };
    for payment in waiting(tx, ctx, &client.base.id)? {
        match reason {
            Some(reason) => {
                let why = json!({"reason": reason});
                payment::apply_provider_status(tx, ctx, &payment, Status::Canceled, Some(&why))?;
            }
            None => name_account(tx, ctx, &payment, &client)?,
        }
    }
    Ok(())
}

/// Returns the collections of a client that no bank file has yet.
fn waiting(tx: &mut Tx, ctx: &Ctx, client: &str) -> Result<Vec<Payment>> {
    let sql = format!(
        "SELECT payments.id FROM payments{} JOIN invoices
             ON invoices.account_id = payments.account_id AND invoices.id = payments.invoice_id
         WHERE payments.account_id = $1 AND payments.provider = '{}' AND payments.status = '{}' AND invoices.client_id = $2
         ORDER BY payments.created_at, payments.id",
        tx.dialect().indexed_by("payments_awaited"),
        ProviderName::Manual.wire(),
        Status::Created.wire()
    );
    let ids = tx.all(&sql, &[ctx.account.into(), client.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    let mut waiting = Vec::with_capacity(ids.len());
    for id in ids {
        // A large file marks its collections in slices.
        handing_over::mark_one(tx, ctx, &id)?;
        let payment: Payment = records::find(tx, ctx, &id)?;
        if payment.status == Status::Created {
            waiting.push(payment);
        }
    }
    Ok(waiting)
}

/// Names the account of the client in an invoice that is collected.
fn name_account(tx: &mut Tx, ctx: &Ctx, payment: &Payment, client: &Client) -> Result<()> {
    let before: Invoice = records::find(tx, ctx, &payment.invoice_id.0)?;
    let mut invoice = before.clone();
    if let Some(day) = before.collection_date.0 {
        invoice.begin_collection(day, &client.iban.0);
    }
    records::change(tx, ctx, &before, &mut invoice, "updated")
}
