//! What is sold.

use money::Price;
use store::Migration;

use super::Resource;
use crate::record;
use crate::record::{Checks, INPUT, REQUIRED, VatRate};

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
        .delete::<Product>()
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
