//! Reading the rows of a body.

use engine::context::Ctx;
use engine::error::{FieldCode, FieldErrors, Result, Violation, violation};
use engine::input::did_you_mean;
use engine::json::Json;
use engine::record::{INPUT, Kind, VatRate};
use money::{Amount, Percent, Price};
use store::Tx;

use super::{MAX_ROWS, Names, Row, Rows};

/// The members of a row that callers can send.
const MEMBERS: [&str; 13] = [
    "name",
    "title",
    "description",
    "quantity",
    "unit",
    "unit_price",
    "vat_rate",
    "vat_code",
    "product_id",
    "total_excl_vat",
    "total_incl_vat",
    "subtotal",
    "vat_amount",
];

impl Row {
    /// Reads a row.
    pub(super) fn from_json(json: &Json, guesses: bool) -> Result<Row, Violation> {
        let (row, faults) = Row::read(json, guesses)?;
        faults.inside()?;
        Ok(row)
    }

    /// Reads a row, with what is wrong with its members. Guessing what a name stands for takes time, and a body can have a
    /// hundred thousand names.
    fn read(json: &Json, guesses: bool) -> Result<(Row, FieldErrors), Violation> {
        let Json::Object(members) = json else {
            return Err(violation(FieldCode::WrongType, format!("must be an object, not {}", json.kind())));
        };
        let mut row = Row { quantity: 1_000_000, ..Row::default() };
        let mut title = String::new();
        let mut faults = FieldErrors::default();
        let (text, long, price) = (INPUT, INPUT.long(), INPUT);
        for (key, json) in members {
            if *json == Json::Null {
                continue;
            }
            let place = format!(".{key}");
            let read = match key.as_str() {
                "name" => String::from_json(json, &text).map(|value| row.name = value),
                "title" => String::from_json(json, &text).map(|value| title = value),
                "description" => String::from_json(json, &long).map(|value| row.description = value),
                "unit" => String::from_json(json, &text).map(|value| row.unit = value),
                "vat_code" => String::from_json(json, &text).map(|value| row.vat_code = value.trim().to_string()),
                "product_id" => String::from_json(json, &text).map(|value| row.product_id = value),
                "quantity" => Price::from_json(json, &price).map(|value| row.quantity = value.scaled()),
                "unit_price" => Price::from_json(json, &price).map(|value| {
                    row.unit_price = value.scaled();
                    row.sent.price = true;
                }),
                "vat_rate" => VatRate::from_json(json, &text).map(|value| {
                    row.sent.rate = !value.0.is_empty();
                    row.vat_rate = value.0.parse::<Percent>().map_or(0, Percent::scaled);
                }),
                "total_excl_vat" | "subtotal" => {
                    Amount::from_json(json, &price).map(|value| row.sent.net = Some(value))
                }
                "total_incl_vat" => Amount::from_json(json, &price).map(|value| row.sent.gross = Some(value)),
                "vat_amount" => Amount::from_json(json, &price).map(drop),
                _ => {
                    faults.add(format!(".{}", shortened(key)), unknown(key, guesses && !faults.is_full()));
                    continue;
                }
            };
            faults.take(&place, read);
        }
        if row.name.trim().is_empty() {
            row.name = title;
        }
        Ok((row, faults))
    }
}

/// The error about a member that rows do not have.
fn unknown(name: &str, guesses: bool) -> Violation {
    let hint = if guesses { did_you_mean(name, MEMBERS.into_iter()) } else { String::new() };
    violation(FieldCode::UnknownField, format!("is not a known field of a row{hint}"))
}

fn shortened(name: &str) -> String {
    name.chars().take(100).collect()
}

impl Rows {
    /// Returns what can be read of the rows of a body, each in its place.
    pub fn readable(body: Option<&Json>, names: &Names) -> Rows {
        let Some(Json::Object(members)) = body else { return Rows::default() };
        let rows = members.iter().find(|(name, _)| name == names.list).map(|(_, rows)| rows);
        let Some(Json::List(items)) = rows.filter(|rows| matches!(rows, Json::List(items) if items.len() <= MAX_ROWS))
        else {
            return Rows::default();
        };
        // One that is no row has a name, so that nothing else is said about it.
        let unreadable = || Row { name: "-".to_string(), ..Row::default() };
        Rows(items.iter().map(|item| Row::read(item, false).map_or_else(|_| unreadable(), |(row, _)| row)).collect())
    }

    /// Checks that the rows have names, and that their products and tax rates exist.
    pub fn check_named(mut self, tx: &mut Tx, ctx: &Ctx, names: &Names) -> Result<()> {
        self.resolve_named(tx, ctx, None, names)
    }
}
