//! Deleting a product clears the links to it.

use std::collections::HashSet;
use std::sync::Arc;

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::Result;
use engine::log;
use engine::records::{self, Work};
use engine::slice::{Slice, TOGETHER};
use store::Tx;

use super::{forget_product, lines_of_live, naming_product};
use crate::documents::leaving as drafts;
use crate::documents::{InvoiceKind, QuoteKind, WorkorderKind};
use crate::sales::product::Product;

/// Deletes a product. Rows of drafts and lines of subscriptions lose the link and keep the values; final documents do
/// not change. The records are found before the transaction, since that scans all drafts of the account.
pub fn delete(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        records::find_to_change::<Product>(tx, ctx, &call)?;
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
        add("invoice", drafts::naming_product::<InvoiceKind>(tx, ctx, product)?);
        add("quote", drafts::naming_product::<QuoteKind>(tx, ctx, product)?);
        add("workorder", drafts::naming_product::<WorkorderKind>(tx, ctx, product)?);
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
        "invoice" => drafts::forget_product::<InvoiceKind>(tx, ctx, id, product),
        "quote" => drafts::forget_product::<QuoteKind>(tx, ctx, id, product),
        "workorder" => drafts::forget_product::<WorkorderKind>(tx, ctx, id, product),
        "subscription" => forget_product(tx, ctx, id, product),
        _ => Ok(()),
    }
}

/// The products that drafts and subscriptions name. One pass over all of them serves many products.
#[derive(Clone, Default)]
pub struct NamedProducts {
    /// The last log line that is taken into account.
    seq: i64,
    ids: HashSet<String>,
}

impl NamedProducts {
    /// Reads all drafts and subscriptions of the account.
    pub fn look(tx: &mut Tx, ctx: &Ctx) -> Result<NamedProducts> {
        // First, so that records written in the meantime are read again.
        let mut named = NamedProducts { seq: log::last(tx, ctx.account)?, ids: HashSet::new() };
        for kind in KINDS {
            named.read(tx, ctx, kind, None)?;
        }
        Ok(named)
    }

    /// Reads the records that were written since.
    pub fn catch_up(&mut self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        loop {
            let touched = log::touched(tx, ctx.account, self.seq, TOGETHER)?;
            let Some((seq, ..)) = touched.last() else { return Ok(()) };
            self.seq = *seq;
            for (_, kind, id) in touched.iter().filter(|(_, kind, _)| KINDS.contains(&kind.as_str())) {
                self.read(tx, ctx, kind, Some(id))?;
            }
        }
    }

    /// Whether a draft or a subscription names the product.
    pub fn contains(&self, product: &str) -> bool {
        self.ids.contains(product)
    }

    fn read(&mut self, tx: &mut Tx, ctx: &Ctx, kind: &str, id: Option<&str>) -> Result<()> {
        let mut found = Vec::new();
        let take = &mut |rows: &str| found.extend(quoted_ids(rows));
        match kind {
            "invoice" => drafts::rows_of_drafts::<InvoiceKind>(tx, ctx, id, take)?,
            "quote" => drafts::rows_of_drafts::<QuoteKind>(tx, ctx, id, take)?,
            "workorder" => drafts::rows_of_drafts::<WorkorderKind>(tx, ctx, id, take)?,
            _ => lines_of_live(tx, ctx, id, take)?,
        }
        self.ids.extend(found);
        Ok(())
    }
}

/// The kinds of records that name products.
const KINDS: &[&str] = &["invoice", "quote", "workorder", "subscription"];
/// The length of an id.
const ID: usize = 36;

/// Returns everything in a list of rows that may be the id of a product.
fn quoted_ids(rows: &str) -> impl Iterator<Item = String> {
    rows.split('"').filter(|part| part.len() == ID).map(str::to_string)
}
