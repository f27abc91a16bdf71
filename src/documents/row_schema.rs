//! The JSON schema of rows: in responses, all members are there; in bodies, decimals may be strings, and `null` means that a
//! member is not sent.

use engine::record::{INPUT, Kind, Rules, VatRate, decimal_pattern};
use serde_json::{Map, Value, json};

/// The schema of rows whose members have these names, and their totals; `sent` are further names in bodies.
pub fn of(names: &str, sent: &str, most: usize, rules: &Rules) -> Value {
    let names = format!("{names}{}", if is_sent(rules) { sent } else { "" });
    let names: Vec<&str> = names.split(' ').chain(["total_excl_vat", "total_incl_vat"]).collect();
    let shown = |name: &&str| match is_sent(rules) {
        true => (name.to_string(), member(name, true)),
        false => (name.to_string(), with_example(name, member(name, false))),
    };
    let members: Map<String, Value> = names.iter().map(shown).collect();
    let mut row = json!({"type": "object", "properties": members});
    if is_sent(rules) {
        row["additionalProperties"] = json!(false);
    } else {
        row["required"] = json!(names);
    }
    json!({"type": "array", "maxItems": most, "items": row})
}

fn member(name: &str, is_sent: bool) -> Value {
    match name {
        "quantity" => decimal(6, "How many or how much.", is_sent),
        "unit_price" => decimal(6, "Price of one unit, excluding VAT.", is_sent),
        "total_excl_vat" | "subtotal" => {
            let about = "Total excluding VAT; if it is sent without a price, the price follows from it.";
            decimal(2, about, is_sent)
        }
        "total_incl_vat" => {
            let about = "Total including VAT; if it is sent without a price, the price follows from it.";
            decimal(2, about, is_sent)
        }
        "vat_amount" => decimal(2, "The VAT, which is computed.", is_sent),
        "vat_rate" if is_sent => described(VatRate::schema(&INPUT), "VAT percentage."),
        "vat_rate" => json!({"type": "string", "description": "VAT percentage."}),
        "vat_code" => text(&INPUT, "The code of a tax rate.", is_sent),
        "product_id" => text(&INPUT, "The product that the row is for.", is_sent),
        "unit" => text(&INPUT, "Unit, such as `hour`.", is_sent),
        "description" => text(&INPUT.long(), "Details.", is_sent),
        _ => text(&INPUT, "Name of the product or service.", is_sent),
    }
}

/// Adds the value of a member in the example of a row, whose amounts belong together.
fn with_example(name: &str, mut schema: Value) -> Value {
    let example = match name {
        "name" | "title" => json!("Maintenance"),
        "quantity" => json!(2),
        "unit" => json!("hour"),
        "unit_price" => json!(68.5),
        "total_excl_vat" | "subtotal" => json!(137),
        "vat_rate" => json!("21"),
        "vat_amount" => json!(28.77),
        "total_incl_vat" => json!(165.77),
        _ => return schema,
    };
    schema["examples"] = json!([example]);
    schema
}

fn decimal(places: u32, about: &str, is_sent: bool) -> Value {
    let about = format!("{about} A decimal number with up to {places} decimals.");
    if !is_sent {
        return json!({"type": "number", "description": about});
    }
    let pattern = decimal_pattern(places);
    let schema = json!({"type": ["number", "string"], "minimum": INPUT.min, "maximum": INPUT.max, "pattern": pattern});
    described(schema, &about)
}

fn text(rules: &Rules, about: &str, is_sent: bool) -> Value {
    if is_sent { described(String::schema(rules), about) } else { json!({"type": "string", "description": about}) }
}

/// Adds the description of a member in bodies, which can be null.
fn described(mut schema: Value, about: &str) -> Value {
    let kinds = match schema["type"].take() {
        Value::Array(kinds) => kinds,
        kind => vec![kind],
    };
    schema["type"] = kinds.into_iter().chain([json!("null")]).collect();
    schema["description"] = json!(about);
    schema
}

fn is_sent(rules: &Rules) -> bool {
    rules.create || rules.patch
}
