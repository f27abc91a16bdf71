//! Products and services.

use engine::record;
use engine::record::{INPUT, Model, REQUIRED, VatRate};
use engine::resource::{Handler, Resource, Verb};
use money::Price;
use store::Migration;

record! {
    /// A product or service that you sell.
    pub struct Product = "product" in "products";

    /// Name on quotes and invoices.
    name: String = REQUIRED.names().search().sort().example("\"Website hosting\"");
    /// Your own product code.
    code: String = INPUT.search().filter().sort().example("\"HOST-12\"");
    /// Unit price excluding VAT.
    price: Price = INPUT.sort().example("12.5");
    /// VAT percentage, such as `"21"`; `"21%"` and `21` are accepted too.
    vat_rate: VatRate = INPUT.example("\"21\"");
    /// Unit: piece, hour, month.
    unit: String = INPUT.example("\"month\"");
    /// Whether the product is still sold.
    active: bool = INPUT.filter().default("true").example("true");
}

impl Model for Product {}

/// The resource of products; `delete` also clears the links to a product.
pub fn resource(delete: Handler) -> Resource {
    Resource::of::<Product>("Products", "products", MIGRATIONS)
        .list::<Product>()
        .create::<Product>()
        .get::<Product>()
        .patch::<Product>()
        .verb(Verb::Delete, delete)
        .removed_together::<Product>()
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 30,
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
