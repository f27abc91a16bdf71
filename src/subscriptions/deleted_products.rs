//! Deleting a product clears the links to it.

use std::sync::Arc;

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::Result;
use engine::log;
use engine::records::{self, Work};
use engine::slice::{Slice, TOGETHER};
use store::Tx;

use super::{forget_product, naming_product};
use crate::documents::{self, InvoiceKind, QuoteKind, WorkorderKind};
use crate::sales::product::Product;

/// Deletes a product. Rows of drafts and lines of subscriptions lose the link and keep the values; final documents do
/// not change. The records are found before the transaction, since that scans all drafts of the account.
pub fn delete(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let product = records::find_to_change::<Product>(tx, ctx, &call)?;
        // Part of another change, such as undoing an import: a product that nothing names is deleted at once.
        if call.early && Naming::look(tx, ctx, call.id())?.records.is_empty() {
            records::remove(tx, ctx, &product)?;
            return Ok(Answer::empty());
        }
        let call = call.clone();
        Ok(Answer::after(move |app, caller| {
            let (own, product) = (caller.clone(), call.id().to_string());
            let naming = app.store.read_now(move |tx| {
                let ctx = own.reading(tx)?;
                Naming::look(tx, &ctx, &product)
            })?;
            Ok(forget(call.clone(), naming))
        }))
    }))
}

/// Records that may link to a product.
#[derive(Clone)]
struct Naming {
    /// The last log line when they were searched for.
    seq: i64,
    records: Arc<Vec<(String, String)>>,
    /// How many of them have been processed.
    done: usize,
}

impl Naming {
    fn look(tx: &mut Tx, ctx: &Ctx, product: &str) -> Result<Naming> {
        // First, so that records written in the meantime are checked again.
        let seq = log::last(tx, ctx.account)?;
        let mut records = Vec::new();
        let mut add = |kind: &str, ids: Vec<String>| records.extend(ids.into_iter().map(|id| (kind.to_string(), id)));
        add("invoice", documents::naming_product::<InvoiceKind>(tx, ctx, product)?);
        add("quote", documents::naming_product::<QuoteKind>(tx, ctx, product)?);
        add("workorder", documents::naming_product::<WorkorderKind>(tx, ctx, product)?);
        add("subscription", naming_product(tx, ctx, product)?);
        Ok(Naming { seq, records: Arc::new(records), done: 0 })
    }

    /// Returns the records written since.
    fn since(&self, tx: &mut Tx, ctx: &Ctx) -> Result<Option<Naming>> {
        let touched = log::touched(tx, ctx.account, self.seq, TOGETHER)?;
        let Some((seq, ..)) = touched.last() else { return Ok(None) };
        let seq = *seq;
        let records = touched.into_iter().map(|(_, kind, id)| (kind, id)).collect();
        Ok(Some(Naming { seq, records: Arc::new(records), done: 0 }))
    }
}

/// Clears the link in some records, for a few milliseconds; deletes the product when none is left.
fn forget(call: Call, naming: Naming) -> Work {
    Box::new(move |tx, ctx| {
        let product: Product = records::find_to_change(tx, ctx, &call)?;
        let (slice, mut naming) = (Slice::start(), naming.clone());
        loop {
            while let Some((kind, id)) = naming.records.get(naming.done) {
                if slice.is_over() {
                    let (call, naming) = (call.clone(), naming.clone());
                    return Ok(Answer::after(move |_, _| Ok(forget(call.clone(), naming.clone()))));
                }
                forget_in(tx, ctx, kind, id, &product.base.id)?;
                naming.done += 1;
                slice.did_one();
            }
            match naming.since(tx, ctx)? {
                Some(more) => naming = more,
                None => break,
            }
        }
        records::remove(tx, ctx, &product)?;
        Ok(Answer::empty())
    })
}

fn forget_in(tx: &mut Tx, ctx: &Ctx, kind: &str, id: &str, product: &str) -> Result<()> {
    match kind {
        "invoice" => documents::forget_product::<InvoiceKind>(tx, ctx, id, product),
        "quote" => documents::forget_product::<QuoteKind>(tx, ctx, id, product),
        "workorder" => documents::forget_product::<WorkorderKind>(tx, ctx, id, product),
        "subscription" => forget_product(tx, ctx, id, product),
        _ => Ok(()),
    }
}
