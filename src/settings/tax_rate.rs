//! Tax rates: the VAT of rows, with the corresponding category of EN 16931.

use std::sync::Arc;

use engine::context::Ctx;
use engine::error::{FieldCode, FieldErrors, Result, violation};
use engine::record::{INPUT, Model, NOWHERE, REQUIRED, Record};
use engine::resource::{Handler, Resource, Verb};
use engine::{choice, record, records};
use money::Decimal;
use store::{Migration, Tx};

choice! {
    /// Type of rate.
    pub enum TaxType {
        /// The standard rate.
        #[default]
        Standard = "standard",
        /// A reduced rate.
        Reduced = "reduced",
        /// The zero rate.
        Zero = "zero",
        /// Exempt from VAT.
        Exempt = "exempt",
        /// Reverse charge, domestic.
        ReverseCharge = "reverse_charge",
        /// Reverse charge, elsewhere in the European Union.
        IntraCommunity = "intra_community",
        /// Export outside the European Union.
        Export = "export",
    }
}

impl TaxType {
    /// Returns the category of EN 16931 (UNTDID 5305).
    pub const fn category(self) -> &'static str {
        match self {
            TaxType::Standard | TaxType::Reduced => "S",
            TaxType::Zero => "Z",
            TaxType::Exempt => "E",
            TaxType::ReverseCharge => "AE",
            TaxType::IntraCommunity => "K",
            TaxType::Export => "G",
        }
    }

    /// Whether the rate can have a percentage above zero.
    const fn has_amount(self) -> bool {
        matches!(self, TaxType::Standard | TaxType::Reduced)
    }
}

choice! {
    /// Whether a rate applies to sales or purchases.
    pub enum TaxContext {
        /// Sales.
        #[default]
        Sales = "sales",
        /// Purchases.
        Purchase = "purchase",
    }
}

choice! {
    /// Region of the other party.
    pub enum TaxProfile {
        /// Domestic.
        #[default]
        Domestic = "domestic",
        /// Elsewhere in the European Union.
        Eu = "eu",
        /// Outside the European Union.
        World = "world",
    }
}

record! {
    /// A VAT rate. Its `type` corresponds to a category of EN 16931: S (`standard`, `reduced`), Z (`zero`), E
    /// (`exempt`), AE (`reverse_charge`), K (`intra_community`), G (`export`).
    pub struct TaxRate = "tax_rate" in "tax_rates", meta: NOWHERE;

    /// Unique code, which rows refer to with `vat_code`.
    code: String = REQUIRED.at_most(32).unique(&[]).example("\"LU17\"").not_in_changes();
    /// Description.
    label: String = INPUT.names().example("\"Luxembourg 17%\"").changed_to("\"Standard rate\"");
    /// Type of rate.
    r#type: TaxType = INPUT.filter().example("\"standard\"").not_in_changes();
    /// `sales` or `purchase`.
    context: TaxContext = INPUT.filter().example("\"sales\"").not_in_changes();
    /// Region of the other party.
    profile: TaxProfile = INPUT.example("\"eu\"").not_in_changes();
    /// The percentage.
    amount: Decimal<2> = INPUT.between(0, 100).example("17").not_in_changes();
}

impl Model for TaxRate {
    const MOST: i64 = 1000;

    fn check(&self, faults: &mut FieldErrors) {
        if self.amount.scaled() > 10_000 {
            faults.add("amount", violation(FieldCode::OutOfRange, "must be from 0 to 100"));
        }
        if !faults.has("type") && !self.r#type.has_amount() && self.amount.scaled() != 0 {
            faults
                .add("amount", violation(FieldCode::OutOfRange, format!("must be 0 for type {}", self.r#type.wire())));
        }
    }
}

/// The resource of tax rates; in the contract they are read-only. `patch` and `delete` check whether a rate is in use.
pub fn resource(patch: Handler, delete: Handler) -> Resource {
    Resource::of::<TaxRate>("Tax rates", "settings", MIGRATIONS)
        .all::<TaxRate>()
        .create::<TaxRate>()
        .extension()
        .get::<TaxRate>()
        .extension()
        .verb(Verb::Patch, patch)
        .extension()
        .verb(Verb::Delete, delete)
        .extension()
        .or_with("finance.write")
}

/// Creates the Dutch rates.
pub fn defaults(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    use TaxProfile::{Domestic, Eu, World};
    let rates = [
        ("NL21", "21% btw", TaxType::Standard, Domestic, 21),
        ("NL9", "9% btw", TaxType::Reduced, Domestic, 9),
        ("NL0", "0% btw", TaxType::Zero, Domestic, 0),
        ("NLV", "Btw verlegd", TaxType::ReverseCharge, Domestic, 0),
        ("EU", "Intracommunautair", TaxType::IntraCommunity, Eu, 0),
        ("EX", "Export buiten de EU", TaxType::Export, World, 0),
    ];
    for context in [TaxContext::Sales, TaxContext::Purchase] {
        for (code, label, r#type, profile, percent) in rates {
            let code = if context == TaxContext::Sales { code.to_string() } else { format!("{code}-P") };
            let amount = Decimal::from_scaled(percent * 100);
            let base = TaxRate::default();
            let mut rate = TaxRate { code, label: label.into(), r#type, context, profile, amount, ..base };
            records::add(tx, ctx, &mut rate)?;
        }
    }
    Ok(())
}

/// Returns all rates, oldest first.
pub fn all(tx: &mut Tx, ctx: &Ctx) -> Result<Arc<[TaxRate]>> {
    records::remembered(tx, ctx, "tax_rates", |tx| {
        let sql = format!("{} WHERE account_id = $1 ORDER BY created_at, id", TaxRate::sql().select);
        Ok(tx.all(&sql, &[ctx.account.into()], TaxRate::from_row)?.into())
    })
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 17,
    name: "tax rates",
    sql: "
CREATE TABLE tax_rates (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    code TEXT NOT NULL,
    label TEXT NOT NULL,
    type TEXT NOT NULL,
    context TEXT NOT NULL,
    profile TEXT NOT NULL,
    amount BIGINT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX tax_rates_created ON tax_rates (account_id, created_at, id);
CREATE INDEX tax_rates_context ON tax_rates (account_id, context, created_at, id);
CREATE UNIQUE INDEX tax_rates_code ON tax_rates (account_id, code);
CREATE INDEX tax_rates_type ON tax_rates (account_id, type, created_at, id);
",
}];
