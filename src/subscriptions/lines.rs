//! The lines of a subscription: the rows of its future invoices, under their API names.

use engine::context::Ctx;
use engine::error::{Result, Violation};
use engine::json::{Json, write_key, write_text};
use engine::record::{Kind, Rules};
use money::{Amount, Price, Totals};
use serde_json::Value as Schema;
use store::{Row, Tx, Value};

use crate::documents::row_schema;
use crate::documents::rows::{MAX_ROWS, Names, Rows};

/// The names in subscriptions.
pub const LINES: Names = Names { list: "lines", name: "title", other: "name", one: "Line" };

/// The lines, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines(pub Rows);

impl Lines {
    /// Fills in values from products and tax rates, and computes the totals.
    pub fn resolve(&mut self, tx: &mut Tx, ctx: &Ctx) -> Result<Totals<String>> {
        self.0.resolve_as(tx, ctx, None, &LINES)
    }
}

impl Kind for Lines {
    const NAME: &'static str = "lines";

    fn to_db(&self) -> Value<'_> {
        self.0.to_db()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        Rows::from_db(row, column).map(Lines)
    }

    fn from_json(json: &Json, rules: &Rules) -> Result<Self, Violation> {
        Rows::from_json(json, rules).map(Lines)
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        out.push(b'[');
        for (place, row) in self.0.0.iter().enumerate() {
            out.extend_from_slice(if place == 0 { b"{" } else { b",{" });
            let mut number = |key: &str, digits: String| {
                write_key(out, key);
                out.extend_from_slice(digits.as_bytes());
            };
            number("quantity", Price::from_scaled(row.quantity).to_string());
            number("unit_price", Price::from_scaled(row.unit_price).to_string());
            number("total_excl_vat", Amount::from_scaled(row.net).to_string());
            number("total_incl_vat", Amount::from_scaled(row.gross).to_string());
            let texts = [
                ("title", row.name.as_str()),
                ("unit", &row.unit),
                ("vat_code", &row.vat_code),
                ("vat_rate", &row.rate()),
                ("description", &row.description),
                ("product_id", &row.product_id),
            ];
            for (key, text) in texts {
                write_key(out, key);
                write_text(out, text);
            }
            out.push(b'}');
        }
        out.push(b']');
    }

    fn schema(rules: &Rules) -> Schema {
        let names = "title quantity unit_price unit vat_code vat_rate description product_id";
        row_schema::of(names, " name subtotal vat_amount", MAX_ROWS, rules)
    }

    fn is_empty(&self) -> bool {
        self.0.0.is_empty()
    }
}
