//! The JSON schema of rows: in responses, all members are there; in bodies, decimals may be strings.

use engine::record::Rules;
use serde_json::{Map, Value, json};

/// The schema of rows whose members have these names, and their totals; `sent` are further names in bodies.
pub fn of(names: &str, sent: &str, most: usize, rules: &Rules) -> Value {
    let names = format!("{names}{}", if is_sent(rules) { sent } else { "" });
    let decimal = |places: u32, about: &str| {
        let about = format!("{about} A decimal number with up to {places} decimals.");
        match is_sent(rules) {
            true => {
                json!({"type": ["number", "string"], "pattern": format!("^-?\\d+(\\.\\d{{1,{places}}})?$"), "description": about})
            }
            false => json!({"type": "number", "description": about}),
        }
    };
    let member = |name: &str| match name {
        "quantity" => decimal(6, "How many or how much."),
        "unit_price" => decimal(6, "Price of one unit, excluding VAT."),
        "total_excl_vat" => {
            decimal(2, "Total excluding VAT; if it is sent without a price, the price follows from it.")
        }
        "total_incl_vat" => {
            decimal(2, "Total including VAT; if it is sent without a price, the price follows from it.")
        }
        "vat_rate" if is_sent(rules) => json!({"type": ["string", "number"], "description": "VAT percentage."}),
        "vat_rate" => json!({"type": "string", "description": "VAT percentage."}),
        "vat_code" => json!({"type": "string", "description": "The code of a tax rate."}),
        "product_id" => json!({"type": "string", "description": "The product that the row is for."}),
        "unit" => json!({"type": "string", "description": "Unit, such as `hour`."}),
        "description" => json!({"type": "string", "description": "Details."}),
        _ => json!({"type": "string", "description": "Name of the product or service."}),
    };
    let names: Vec<&str> = names.split(' ').chain(["total_excl_vat", "total_incl_vat"]).collect();
    let members: Map<String, Value> = names.iter().map(|name| (name.to_string(), member(name))).collect();
    let mut row = json!({"type": "object", "properties": members});
    if !is_sent(rules) {
        row["required"] = json!(names);
    }
    json!({"type": "array", "maxItems": most, "items": row})
}

fn is_sent(rules: &Rules) -> bool {
    rules.create || rules.patch
}
