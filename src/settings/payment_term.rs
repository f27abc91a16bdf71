//! Payment terms.

use engine::context::Ctx;
use engine::error::Result;
use engine::record::{INPUT, Model, NOWHERE, REQUIRED};
use engine::resource::Resource;
use engine::{record, records};
use store::{Migration, Tx};

record! {
    /// The number of days that a client has to pay.
    pub struct PaymentTerm = "payment_term" in "payment_terms", order: "days", meta: NOWHERE;

    /// Unique code.
    code: String = REQUIRED.at_most(32).unique(&[]).example("\"45\"").not_in_changes();
    /// Number of days.
    days: i64 = INPUT.between(0, 3650).example("45").not_in_changes();
    /// Description.
    label: String = INPUT.names().example("\"45 days\"").changed_to("\"Within the agreed term\"");
}

impl Model for PaymentTerm {
    const MOST: i64 = 1000;
}

/// The resource of payment terms; in the contract they are read-only.
pub fn resource() -> Resource {
    Resource::of::<PaymentTerm>("Payment terms", "invoices", MIGRATIONS)
        .setting()
        .all::<PaymentTerm>()
        .managed::<PaymentTerm>()
        .delete::<PaymentTerm>()
        .extension()
        .or_with("finance.write")
}

/// Creates the default terms.
pub fn defaults(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    for days in [0, 7, 14, 30, 60] {
        let label = if days == 0 { "Due immediately".to_string() } else { format!("{days} days") };
        let mut term = PaymentTerm { code: days.to_string(), days, label, ..PaymentTerm::default() };
        records::add(tx, ctx, &mut term)?;
    }
    Ok(())
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 21,
    name: "payment terms",
    sql: "
CREATE TABLE payment_terms (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    code TEXT NOT NULL,
    days BIGINT NOT NULL,
    label TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX payment_terms_days ON payment_terms (account_id, days, id);
CREATE UNIQUE INDEX payment_terms_code ON payment_terms (account_id, code);
",
}];
