//! The rows of a document: totals, storage and output.

mod input;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use engine::context::Ctx;
use engine::error::{FieldCode, FieldErrors, Result, Violation, violation};
use engine::input::did_you_mean;
use engine::json::{Json, write_name, write_text, written_bytes};
use engine::record::{Kind, Rules};
use engine::records;
use money::{Amount, Line, Percent, Price, Totals, percent_of, totals};
use serde::Deserialize;
use serde_json::Value as Schema;
use store::{Row as DbRow, Tx, Value};

use crate::documents::row_schema;
use crate::sales::product::Product;
use crate::settings::Settings;
use crate::settings::tax_rate::{self, TaxRate};

/// Maximum number of rows of a document.
pub const MAX_ROWS: usize = 1000;
/// Maximum size of the texts of all rows together, as JSON. A document is written at least three times in one transaction
/// (the record, its log lines, the response, the print job), while other writes wait. So the size as written counts: a
/// quotation mark or a line break takes two bytes.
pub const MAX_TEXT_BYTES: usize = 512 * 1024;

/// Number of products to look up in one statement.
const TOGETHER: usize = 100;

/// A row. Empty fields are not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Row {
    /// Name of the product or service.
    pub name: String,
    /// Details.
    pub description: String,
    /// Quantity, in millionths.
    pub quantity: i64,
    /// Unit: hour, piece.
    pub unit: String,
    /// Unit price excluding VAT, in millionths.
    pub unit_price: i64,
    /// VAT percentage, in hundredths.
    pub vat_rate: i64,
    /// The code of the tax rate, or empty.
    pub vat_code: String,
    /// The VAT category of EN 16931.
    pub category: String,
    /// The product that the row was created from.
    pub product_id: String,
    /// Total excluding VAT, in cents.
    pub net: i64,
    /// Total including VAT, in cents.
    pub gross: i64,
    /// Whether the row has been credited.
    pub credited: bool,
    /// Whether nobody said which VAT rate applies, so that it became 0.
    pub unstated: bool,
    /// The input of the caller, until the row is resolved.
    #[serde(skip)]
    pub sent: Sent,
}

/// The input for a row that is not stored with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    rate: bool,
    price: bool,
    net: Option<Amount>,
    gross: Option<Amount>,
}

/// The names of rows and of their fields in the API.
pub struct Names {
    /// The list.
    pub list: &'static str,
    /// The name of a row.
    pub name: &'static str,
    /// Its alternative name.
    pub other: &'static str,
    /// What one of them is called at the start of a sentence.
    pub one: &'static str,
}

/// The names in documents.
pub const ROWS: Names = Names { list: "rows", name: "name", other: "title", one: "Row" };

/// The rows of a document, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows(pub Vec<Row>);

impl Row {
    fn line(&self) -> Line<String> {
        Line {
            quantity: Price::from_scaled(self.quantity),
            unit_price: Price::from_scaled(self.unit_price),
            rate: Percent::from_scaled(self.vat_rate),
            key: self.category.clone(),
        }
    }

    /// The percentage as text.
    pub fn rate(&self) -> String {
        Percent::from_scaled(self.vat_rate).to_string()
    }

    /// Returns the size of its texts as JSON, in bytes.
    fn text_bytes(&self) -> usize {
        let texts = [&self.name, &self.description, &self.unit, &self.vat_code, &self.category, &self.product_id];
        texts.iter().map(|text| written_bytes(text)).sum()
    }

    /// Writes the row as stored in the database.
    fn write_kept(&self, out: &mut Vec<u8>) {
        let text = |out: &mut Vec<u8>, key: &str, text: &str| {
            if !text.is_empty() {
                write_name(out, key);
                write_text(out, text);
            }
        };
        let number = |out: &mut Vec<u8>, key: &str, number: i64| {
            if number != 0 {
                write_name(out, key);
                out.extend_from_slice(number.to_string().as_bytes());
            }
        };
        out.push(b'{');
        text(out, "name", &self.name);
        text(out, "description", &self.description);
        number(out, "quantity", self.quantity);
        text(out, "unit", &self.unit);
        number(out, "unit_price", self.unit_price);
        number(out, "vat_rate", self.vat_rate);
        text(out, "vat_code", &self.vat_code);
        text(out, "category", &self.category);
        text(out, "product_id", &self.product_id);
        number(out, "net", self.net);
        number(out, "gross", self.gross);
        for (key, _) in [("credited", self.credited), ("unstated", self.unstated)].iter().filter(|(_, yes)| *yes) {
            write_name(out, key);
            out.extend_from_slice(b"true");
        }
        out.push(b'}');
    }
}

impl Rows {
    /// Fills in names, prices and rates from products and tax rates, and computes the totals. `assumed` is the rate of
    /// a row without one; if there is none, the default rate of the account applies.
    pub fn resolve(&mut self, tx: &mut Tx, ctx: &Ctx, assumed: Option<Percent>) -> Result<Totals<String>> {
        self.resolve_as(tx, ctx, assumed, &ROWS)
    }

    /// Resolves rows that have other names in the API.
    pub fn resolve_as(
        &mut self,
        tx: &mut Tx,
        ctx: &Ctx,
        assumed: Option<Percent>,
        names: &Names,
    ) -> Result<Totals<String>> {
        self.resolve_named(tx, ctx, assumed, names)?;
        let totals = self.add_up(names)?;
        let mut faults = FieldErrors::default();
        for (place, row) in self.0.iter_mut().enumerate() {
            let sent = std::mem::take(&mut row.sent);
            for (name, sent, own) in [("total_excl_vat", sent.net, row.net), ("total_incl_vat", sent.gross, row.gross)]
            {
                if sent.is_some() {
                    check_total(&format!("{}[{place}].{name}", names.list), sent, own, &mut faults);
                }
            }
        }
        faults.into_result()?;
        Ok(totals)
    }

    /// Fills in names, prices and rates from products and tax rates.
    fn resolve_named(&mut self, tx: &mut Tx, ctx: &Ctx, assumed: Option<Percent>, names: &Names) -> Result<()> {
        let mut faults = FieldErrors::default();
        let rates = if self.0.is_empty() { Arc::default() } else { tax_rate::all(tx, ctx)? };
        let usual = match assumed {
            None if self.0.iter().any(Row::lacks_rate) => default_rate(tx, ctx)?,
            _ => None,
        };
        let otherwise = Otherwise { assumed, usual: usual.as_ref() };
        let products = self.products(tx, ctx)?;
        for (place, row) in self.0.iter_mut().enumerate() {
            let at = || format!("{}[{place}]", names.list);
            row.resolve_names(&products, at, names, &mut faults);
            row.resolve_rate(&rates, &otherwise, at, &mut faults);
        }
        // Texts from products count too.
        faults.take(names.list, self.check_size());
        faults.into_result()
    }

    /// Returns the products of the rows, by id.
    fn products(&self, tx: &mut Tx, ctx: &Ctx) -> Result<HashMap<String, Product>> {
        let named: BTreeSet<&str> = self.0.iter().map(|row| row.product_id.as_str()).collect();
        let named: Vec<&str> = named.into_iter().filter(|id| !id.is_empty() && !id.contains('\0')).collect();
        let mut products = HashMap::with_capacity(named.len());
        for ids in named.chunks(TOGETHER) {
            for product in records::find_some::<Product>(tx, ctx, ids)? {
                products.insert(product.base.id.clone(), product);
            }
        }
        Ok(products)
    }

    /// Clears the link to a product but keeps the values that came from it.
    pub fn forget_product(&mut self, product: &str) {
        self.0.iter_mut().filter(|row| row.product_id == product).for_each(|row| row.product_id.clear());
    }

    /// Checks the total size of the texts.
    fn check_size(&self) -> Result<(), Violation> {
        let bytes: usize = self.0.iter().map(Row::text_bytes).sum();
        if bytes <= MAX_TEXT_BYTES {
            return Ok(());
        }
        let message = format!(
            "may have at most {MAX_TEXT_BYTES} bytes of text in all rows together, but has {bytes}; JSON escapes count as written"
        );
        Err(violation(FieldCode::TooLong, message))
    }

    /// Applies the current tax rates; a row whose rate was deleted keeps its percentage.
    pub fn at_todays_rates(mut self, tx: &mut Tx, ctx: &Ctx) -> Result<(Rows, Totals<String>)> {
        let rates = tax_rate::all(tx, ctx)?;
        for row in self.0.iter_mut().filter(|row| !row.vat_code.is_empty()) {
            if let Some(rate) = rates.iter().find(|rate| rate.code == row.vat_code) {
                row.vat_rate = rate.amount.scaled();
                row.category = rate.r#type.category().to_string();
            }
        }
        let totals = self.add_up(&ROWS)?;
        Ok((self, totals))
    }

    /// Computes the totals of each row.
    fn add_up(&mut self, names: &Names) -> Result<Totals<String>> {
        let totals = self.totals_as(names)?;
        for (row, net) in self.0.iter_mut().zip(&totals.lines) {
            row.net = net.scaled();
            let tax = percent_of(Percent::from_scaled(row.vat_rate), *net);
            row.gross = tax.and_then(|tax| net.plus(tax)).unwrap_or(*net).scaled();
        }
        Ok(totals)
    }

    /// Returns the rows with newly computed totals.
    pub fn worked_out(&self) -> Result<(Rows, Totals<String>)> {
        let mut fresh = self.clone();
        let totals = fresh.add_up(&ROWS)?;
        Ok((fresh, totals))
    }

    /// Computes the totals of the rows.
    pub fn totals(&self) -> Result<Totals<String>> {
        self.totals_as(&ROWS)
    }

    fn totals_as(&self, names: &Names) -> Result<Totals<String>> {
        let lines: Vec<_> = self.0.iter().map(Row::line).collect();
        totals(&lines).map_err(|place| {
            let field = format!("{}[{place}].quantity", names.list);
            engine::error::Error::field(
                &field,
                violation(FieldCode::OutOfRange, "results in an amount that is too large"),
            )
        })
    }

    /// Returns these rows with the opposite sign, for a credit invoice.
    pub fn opposite(&self, places: &[usize]) -> Rows {
        let turned = places.iter().filter_map(|place| self.0.get(*place)).map(|row| Row {
            quantity: -row.quantity,
            net: -row.net,
            gross: -row.gross,
            ..row.clone()
        });
        Rows(turned.collect())
    }
}

/// What a row without a rate gets: the rate of the document, else that of the account.
struct Otherwise<'r> {
    assumed: Option<Percent>,
    usual: Option<&'r TaxRate>,
}

/// Returns the rate that the account uses where no rate is named.
pub fn default_rate(tx: &mut Tx, ctx: &Ctx) -> Result<Option<TaxRate>> {
    let code = Settings::of(tx, ctx)?.default_vat_code;
    Ok(tax_rate::all(tx, ctx)?.iter().find(|rate| !code.is_empty() && rate.code == code).cloned())
}

/// Checks that a total that was sent matches the computed one, within a cent.
pub fn check_total(field: &str, sent: Option<Amount>, own: i64, faults: &mut FieldErrors) {
    if let Some(sent) = sent.filter(|sent| (sent.scaled() - own).abs() > 1) {
        let own = Amount::from_scaled(own);
        faults.add(field, violation(FieldCode::TotalsMismatch, format!("is {sent}, but the rows add up to {own}")));
    }
}

impl Row {
    fn resolve_names(
        &mut self,
        products: &HashMap<String, Product>,
        at: impl Fn() -> String,
        names: &Names,
        faults: &mut FieldErrors,
    ) {
        match products.get(&self.product_id) {
            Some(product) => self.take_from(product),
            None if self.product_id.is_empty() => {}
            None => {
                let message = "does not match a record in products";
                faults.add(format!("{}.product_id", at()), violation(FieldCode::ReferenceNotFound, message));
            }
        }
        if self.name.trim().is_empty() {
            let message = format!("or {} is required", names.other);
            faults.add(format!("{}.{}", at(), names.name), violation(FieldCode::Required, message));
        }
    }

    fn take_from(&mut self, product: &Product) {
        if self.name.trim().is_empty() {
            self.name.clone_from(&product.name);
        }
        if self.unit.is_empty() {
            self.unit.clone_from(&product.unit);
        }
        if !self.sent.price {
            self.unit_price = product.price.scaled();
        }
        if !self.sent.rate && self.vat_code.is_empty() && !product.vat_rate.0.is_empty() {
            self.vat_rate = product.vat_rate.0.parse::<Percent>().map_or(0, Percent::scaled);
            self.sent.rate = true;
        }
    }

    /// Whether nobody has said which rate applies, until the row is resolved.
    fn lacks_rate(&self) -> bool {
        self.category.is_empty() && !self.sent.rate && self.vat_code.is_empty()
    }

    /// Marks the rate of the row as one that the caller sent.
    pub fn stated(self) -> Row {
        Row { sent: Sent { rate: true, ..self.sent }, ..self }
    }

    fn resolve_rate(
        &mut self,
        rates: &[TaxRate],
        otherwise: &Otherwise,
        at: impl Fn() -> String,
        faults: &mut FieldErrors,
    ) {
        let is_new = self.lacks_rate();
        if let (true, Some(rate)) = (is_new, otherwise.usual) {
            self.vat_code.clone_from(&rate.code);
        }
        if !self.vat_code.is_empty() {
            match rates.iter().find(|rate| rate.code.eq_ignore_ascii_case(&self.vat_code)) {
                Some(rate) => {
                    self.vat_code.clone_from(&rate.code);
                    self.vat_rate = rate.amount.scaled();
                    self.category = rate.r#type.category().to_string();
                }
                None => {
                    let guess = did_you_mean(&self.vat_code, rates.iter().map(|rate| rate.code.as_str()));
                    let message = format!("is not the code of any tax rate{guess}");
                    faults.add(format!("{}.vat_code", at()), violation(FieldCode::ReferenceNotFound, message));
                }
            }
            return;
        }
        if is_new {
            self.vat_rate = otherwise.assumed.map_or(0, Percent::scaled);
            self.unstated = otherwise.assumed.is_none();
        }
        if self.category.is_empty() || self.sent.rate {
            self.category = if self.vat_rate == 0 { "Z" } else { "S" }.to_string();
        }
    }
}

impl Kind for Rows {
    const NAME: &'static str = "rows";

    fn to_db(&self) -> Value<'_> {
        let mut out = Vec::with_capacity(self.0.iter().map(|row| row.text_bytes() + 200).sum::<usize>() + 2);
        out.push(b'[');
        for row in &self.0 {
            if out.len() > 1 {
                out.push(b',');
            }
            row.write_kept(&mut out);
        }
        out.push(b']');
        String::from_utf8(out).unwrap_or_default().into()
    }

    fn from_db(row: &DbRow, column: usize) -> store::Result<Self> {
        match row.text(column)? {
            "" => Ok(Rows::default()),
            text => serde_json::from_str(text)
                .map(Rows)
                .map_err(|_| store::Error::unreadable("it is not a JSON array of rows")),
        }
    }

    fn from_json(json: &Json, _: &Rules) -> Result<Self, Violation> {
        let Json::List(items) = json else {
            return Err(violation(FieldCode::WrongType, format!("must be an array of rows, not {}", json.kind())));
        };
        if items.len() > MAX_ROWS {
            return Err(violation(FieldCode::TooLong, format!("may have at most {MAX_ROWS} rows")));
        }
        let mut faults = FieldErrors::default();
        let mut rows = Vec::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            let row = Row::from_json(item, !faults.is_full());
            rows.extend(faults.take(&format!("[{place}]"), row));
        }
        faults.inside()?;
        let rows = Rows(rows);
        rows.check_size()?;
        Ok(rows)
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        out.push(b'[');
        for row in &self.0 {
            if out.last() != Some(&b'[') {
                out.push(b',');
            }
            out.push(b'{');
            let number = |out: &mut Vec<u8>, key: &str, digits: String| {
                write_name(out, key);
                out.extend_from_slice(digits.as_bytes());
            };
            write_name(out, "name");
            write_text(out, &row.name);
            number(out, "quantity", Price::from_scaled(row.quantity).to_string());
            write_name(out, "unit");
            write_text(out, &row.unit);
            number(out, "unit_price", Price::from_scaled(row.unit_price).to_string());
            write_name(out, "vat_rate");
            write_text(out, &row.rate());
            number(out, "total_excl_vat", Amount::from_scaled(row.net).to_string());
            number(out, "total_incl_vat", Amount::from_scaled(row.gross).to_string());
            for (key, text) in
                [("description", &row.description), ("vat_code", &row.vat_code), ("product_id", &row.product_id)]
            {
                write_name(out, key);
                write_text(out, text);
            }
            out.push(b'}');
        }
        out.push(b']');
    }

    fn schema(rules: &Rules) -> Schema {
        let names = "name description quantity unit unit_price vat_rate vat_code product_id";
        row_schema::of(names, " title subtotal vat_amount", MAX_ROWS, rules)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_kept() {
        let plain = Row { name: "Boiler".into(), quantity: 1_500_000, net: -1250, ..Row::default() };
        let odd = Row {
            name: "\"Ä\" \\ 😀\u{7f}".into(),
            description: format!("{}\n\t\u{1}\u{8}", "x".repeat(200)),
            unit: "m²".into(),
            unit_price: i64::MAX,
            vat_rate: 2100,
            vat_code: "NL21".into(),
            category: "S".into(),
            product_id: "p1".into(),
            gross: i64::MIN,
            credited: true,
            ..Row::default()
        };
        for rows in [vec![], vec![plain.clone()], vec![plain, odd]] {
            let kept = Rows(rows.clone());
            let Value::Text(text) = kept.to_db() else { panic!("{rows:?}") };
            assert_eq!(serde_json::from_str::<Vec<Row>>(&text).unwrap(), rows);
            assert!(!text.contains("\"\"") && !text.contains(":0") && !text.contains("false"), "{text}");
        }
    }
}
