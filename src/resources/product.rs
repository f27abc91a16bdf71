//! What is sold.

use money::Price;
use store::Migration;

use super::document::{self, InvoiceKind, QuoteKind, WorkorderKind};
use super::{Resource, subscription};
use crate::call::{Answer, Call};
use crate::error::Result;
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

/// Rows of drafts forget it and keep what they took from it; final documents stay as they are.
fn delete(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let product: Product = records::find_to_change(tx, ctx, &call)?;
        document::forget_product::<InvoiceKind>(tx, ctx, &product.base.id)?;
        document::forget_product::<QuoteKind>(tx, ctx, &product.base.id)?;
        document::forget_product::<WorkorderKind>(tx, ctx, &product.base.id)?;
        subscription::forget_product(tx, ctx, &product.base.id)?;
        records::remove(tx, ctx, &product)?;
        Ok(Answer::empty())
    }))
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
