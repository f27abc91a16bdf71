//! What is sold.

use std::sync::Arc;

use money::Price;
use store::{Migration, Tx};

use super::document::{self, InvoiceKind, QuoteKind, WorkorderKind};
use super::{Resource, subscription};
use crate::call::{Answer, Call};
use crate::context::Ctx;
use crate::days::{self, Slice};
use crate::error::Result;
use crate::log;
use crate::record;
use crate::record::{Checks, INPUT, REQUIRED, VatRate};
use crate::records::{self, Work};

record! {
    /// A thing or a service that is sold.
    pub struct Product = "product" in "products";

    /// What it is called on quotes and invoices.
    name: String = REQUIRED.search().sort().example("\"Website hosting\"");
    /// Your own code for it.
    code: String = INPUT.search().filter().sort().example("\"HOST-12\"");
    /// Price of one unit, without VAT.
    price: Price = INPUT.sort().example("12.5");
    /// VAT percentage: `"21"`, also sent as `"21%"` or `21`.
    vat_rate: VatRate = INPUT.example("\"21\"");
    /// What one of it is: a piece, an hour, a month.
    unit: String = INPUT.example("\"month\"");
    /// Whether it is still sold.
    active: bool = INPUT.filter().default("true").example("true");
}

impl Checks for Product {}

/// Products and their routes.
pub fn resource() -> Resource {
    Resource::of::<Product>("Products", "products", MIGRATIONS)
        .list::<Product>()
        .create::<Product>()
        .get::<Product>()
        .patch::<Product>()
        .delete_with(delete)
}

/// Rows of drafts and lines of subscriptions forget it and keep what they took from it; final documents stay as they are.
/// Whoever names it is looked for before the transaction, since that takes as long as the account has drafts.
fn delete(call: Call) -> Result<Work> {
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

/// Records that may name a product.
#[derive(Clone)]
struct Naming {
    /// The log ended with this line when they were looked for.
    seq: i64,
    records: Arc<Vec<(String, String)>>,
    /// How many of them have forgotten it.
    done: usize,
}

impl Naming {
    fn look(tx: &mut Tx, ctx: &Ctx, product: &str) -> Result<Naming> {
        // First, so that what is written meanwhile is looked at again.
        let seq = log::last(tx, ctx.account)?;
        let mut records = Vec::new();
        let mut add = |kind: &str, ids: Vec<String>| records.extend(ids.into_iter().map(|id| (kind.to_string(), id)));
        add("invoice", document::naming_product::<InvoiceKind>(tx, ctx, product)?);
        add("quote", document::naming_product::<QuoteKind>(tx, ctx, product)?);
        add("workorder", document::naming_product::<WorkorderKind>(tx, ctx, product)?);
        add("subscription", subscription::naming_product(tx, ctx, product)?);
        Ok(Naming { seq, records: Arc::new(records), done: 0 })
    }

    /// What was written since.
    fn since(&self, tx: &mut Tx, ctx: &Ctx) -> Result<Option<Naming>> {
        let touched = log::touched(tx, ctx.account, self.seq, days::TOGETHER)?;
        let Some((seq, ..)) = touched.last() else { return Ok(None) };
        let seq = *seq;
        let records = touched.into_iter().map(|(_, kind, id)| (kind, id)).collect();
        Ok(Some(Naming { seq, records: Arc::new(records), done: 0 }))
    }
}

/// Has some records forget the product, a few milliseconds' worth; when none is left it goes.
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
        "invoice" => document::forget_product::<InvoiceKind>(tx, ctx, id, product),
        "quote" => document::forget_product::<QuoteKind>(tx, ctx, id, product),
        "workorder" => document::forget_product::<WorkorderKind>(tx, ctx, id, product),
        "subscription" => subscription::forget_product(tx, ctx, id, product),
        _ => Ok(()),
    }
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 6,
    name: "products",
    sql: "
CREATE TABLE products (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    name TEXT NOT NULL,
    code TEXT NOT NULL,
    price BIGINT NOT NULL,
    vat_rate TEXT NOT NULL,
    unit TEXT NOT NULL,
    active BIGINT NOT NULL CHECK (active IN (0, 1)),
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX products_created ON products (account_id, created_at, id);
CREATE INDEX products_name ON products (account_id, name, id);
CREATE INDEX products_code ON products (account_id, code, created_at, id);
CREATE INDEX products_code_sort ON products (account_id, code, id);
CREATE INDEX products_price ON products (account_id, price, id);
CREATE INDEX products_active ON products (account_id, active, created_at, id);
",
}];
