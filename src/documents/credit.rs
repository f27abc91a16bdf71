//! Credit invoices: reverse an invoice or some of its rows.

use engine::call::Call;
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, Result, Violation, violation};
use engine::input;
use engine::input::Input;
use engine::json::Json;
use engine::record::{Body, CREATED, Day, INPUT, Kind, Link, Record, Rules};
use engine::records::{self, Image, Work};
use money::Amount;
use serde_json::{Value as Schema, json};
use store::{Row, Tx, Value};

use super::complete::warned;
use super::{Document, Invoice, Mode, PaymentStatus, make_final, new, with_finalized};

/// Indexes of rows, starting at 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(pub Vec<usize>);

impl Kind for Places {
    const NAME: &'static str = "data";

    fn to_db(&self) -> Value<'_> {
        String::new().into()
    }

    fn from_db(_: &Row, _: usize) -> store::Result<Self> {
        Ok(Places::default())
    }

    fn from_json(json: &Json, _: &Rules) -> Result<Self, Violation> {
        let Json::List(items) = json else {
            return Err(violation(FieldCode::WrongType, format!("must be an array of integers, not {}", json.kind())));
        };
        let mut places = Vec::new();
        for item in items.iter().take(super::rows::MAX_ROWS + 1) {
            let place = i64::from_json(item, &INPUT).ok().and_then(|place| usize::try_from(place).ok());
            let place = place.ok_or_else(|| violation(FieldCode::WrongType, "must contain integers of 0 or more"))?;
            if places.contains(&place) {
                return Err(violation(FieldCode::GivenTwice, format!("contains {place} twice")));
            }
            places.push(place);
        }
        Ok(Places(places))
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        out.extend_from_slice(b"[]");
    }

    fn schema(_: &Rules) -> Schema {
        let place = json!({"type": "integer", "minimum": 0, "maximum": super::rows::MAX_ROWS - 1});
        json!({"type": "array", "items": place, "uniqueItems": true})
    }
}

input! {
    /// What to credit.
    pub struct Credit;

    /// Whether to credit all rows that have not been credited yet.
    credit_all: bool = INPUT.default("true").example("true");
    /// Indexes of the rows to credit, starting at 0, if not all are credited.
    row_indexes: Places = INPUT.example("[0]");
}

impl Body for Credit {}

/// `POST /v1/invoices/{id}/credit`
pub fn credit(call: Call) -> Result<Work> {
    let mut wish = Credit { credit_all: true, ..Credit::default() };
    let mut warnings = Vec::new();
    let mut named = false;
    if call.body.is_some() {
        let input: Input<Credit> = input::create(&call)?;
        wish = input.record();
        named = input.has("row_indexes");
        if wish.credit_all && named {
            warnings
                .push("'row_indexes' has no effect without 'credit_all': false; all rows were credited.".to_string());
        }
        warnings.extend(input.warnings);
    }
    Ok(Box::new(move |tx, ctx| {
        let mut source: Invoice = records::find_to_change(tx, ctx, &call)?;
        let (finalized, _) = make_final(tx, ctx, &mut source)?;
        let warnings = warned(&source, finalized, &warnings);
        if named || !wish.credit_all {
            check_places(&source, &wish.row_indexes)?;
        }
        let (credit, image) = credit_rows(tx, ctx, source, &wish)?;
        Ok(with_finalized(image.created(ctx, &credit, CREATED).with_texts("warnings", &warnings), finalized))
    }))
}

/// Checks that the rows exist whenever they are given, also when everything is credited.
fn check_places(source: &Invoice, places: &Places) -> Result<()> {
    let refuse = |code, message: String| Err(Error::field("row_indexes", violation(code, message)));
    let count = source.rows.0.len();
    if places.0.is_empty() {
        return refuse(FieldCode::Required, "must name at least one row".to_string());
    }
    match places.0.iter().find(|place| **place >= count) {
        Some(place) if count == 0 => refuse(FieldCode::OutOfRange, format!("has {place}, but the invoice has no rows")),
        Some(place) => refuse(FieldCode::OutOfRange, format!("has {place}, but the rows go from 0 to {}", count - 1)),
        None => Ok(()),
    }
}

fn credit_rows(tx: &mut Tx, ctx: &Ctx, before: Invoice, wish: &Credit) -> Result<(Invoice, Image)> {
    if before.is_credit {
        return Err(Error::new(Code::InvalidTransition, "A credit invoice cannot be credited."));
    }
    let places = chosen(&before, wish)?;
    let mut source = before.clone();
    for place in &places {
        source.rows.0[*place].credited = true;
    }
    let today = ctx.now.date(&ctx.zone);
    let mut credit: Invoice = Document {
        is_credit: true,
        rows: before.rows.opposite(&places),
        credited_invoice_id: Link(before.base.id.clone()),
        due_date: Day(Some(today)),
        ..before.copied()
    };
    let totals = credit.rows.totals()?;
    credit.take_totals(&totals);
    credit.start(tx, ctx)?;
    credit.become_final(tx, ctx)?;
    // The snapshots of the invoice, not the current names.
    credit.client.clone_from(&before.client);
    credit.sender.clone_from(&before.sender);
    credit.client_company_name.clone_from(&before.client_company_name);
    credit.client_firstname.clone_from(&before.client_firstname);
    credit.client_lastname.clone_from(&before.client_lastname);
    credit.client_email.clone_from(&before.client_email);
    debug_assert_eq!(credit.generation_mode, Mode::Final);
    let credited = source.credited_amount.scaled() - credit.total_incl_vat.scaled();
    source.credited_amount = Amount::from_scaled(credited);
    let all = source.rows.0.iter().all(|row| row.credited);
    // A paid amount has to be refunded; otherwise the two invoices settle each other.
    if source.paid_amount.scaled() == 0 || credit.total_incl_vat.scaled() == 0 {
        credit.payment_status = PaymentStatus::Credited;
    }
    if all {
        source.payment_status = PaymentStatus::Credited;
    } else {
        source.update_payment_status(ctx);
    }
    source.take_open_amount();
    source.revise_request(&before);
    let image = new::save_as(tx, ctx, &mut credit, "credit_created")?;
    records::update(tx, ctx, &before, &mut source, "credited")?;
    records::follow(tx, ctx, Some(&before), &source)?;
    Ok((credit, image))
}

/// Returns the indexes of the rows to credit.
fn chosen(source: &Invoice, wish: &Credit) -> Result<Vec<usize>> {
    let rows = &source.rows.0;
    let already = |message: String| Err(Error::new(super::ALREADY_CREDITED, message));
    if wish.credit_all {
        let left: Vec<usize> = (0..rows.len()).filter(|place| !rows[*place].credited).collect();
        if left.is_empty() && (!rows.is_empty() || source.payment_status == PaymentStatus::Credited) {
            return already(format!("All rows of {} have already been credited.", source.number));
        }
        return Ok(left);
    }
    match wish.row_indexes.0.iter().find(|place| rows[**place].credited) {
        Some(place) => {
            let (row, name) = (place + 1, &rows[*place].name);
            already(format!("Row {row} ('{name}') of {} has already been credited.", source.number))
        }
        None => Ok(wish.row_indexes.0.clone()),
    }
}
