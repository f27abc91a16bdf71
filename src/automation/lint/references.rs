//! Warnings for ids and codes in steps that no record of the account has.

use engine::context::Ctx;
use engine::error::Result;
use engine::input::did_you_mean;
use engine::record::FieldInfo;
use engine::{records, tables};
use serde_json::{Map, Value};
use store::Tx;

use crate::automation::definition::{create_fields, patch_fields, path_of_create};
use crate::automation::events;
use crate::automation::template::is_template;
use crate::settings::tax_rate;

/// The most references that are looked up.
const MOST: usize = 100;

/// A reference in a step: its path, the table and the id; the table is empty for the code of a tax rate.
struct Reference<'s> {
    at: String,
    table: &'static str,
    text: &'s str,
}

/// Returns warnings for what the steps refer to and the account does not have. `about` is the type of the event's record.
pub fn of(tx: &mut Tx, ctx: &Ctx, about: &str, steps: &Value) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for (place, step) in steps.as_array().into_iter().flatten().enumerate() {
        collect(about, step, &format!("steps[{place}]"), &mut all);
    }
    all.truncate(MOST);
    let mut warnings = Vec::new();
    for Reference { at, table, text } in all {
        if table.is_empty() {
            let rates = tax_rate::all(tx, ctx)?;
            if !rates.iter().any(|rate| rate.code.eq_ignore_ascii_case(text)) {
                let hint = did_you_mean(text, rates.iter().map(|rate| rate.code.as_str()));
                warnings.push(format!("{at}: '{text}' is not the code of any tax rate{hint}"));
            }
        } else if tables::named(table).is_some() && !records::exists(tx, ctx, table, text)? {
            warnings.push(format!("{at}: '{text}' does not match a record in {}", table.replace('_', " ")));
        }
    }
    Ok(warnings)
}

fn collect<'s>(about: &str, step: &'s Value, at: &str, all: &mut Vec<Reference<'s>>) {
    let kind = step["type"].as_str().unwrap_or_default();
    match kind {
        "update" => {
            let named = step["entity_type"].as_str().unwrap_or(about);
            let fields = patch_fields(events::entity(named));
            if let Some(sent) = step["fields"].as_object() {
                of_fields(fields, sent, &format!("{at}.fields"), all);
            }
        }
        _ => {
            if let (Some(path), Some(sent)) = (path_of_create(kind), step.as_object()) {
                of_fields(create_fields(path), sent, at, all);
            }
        }
    }
}

fn of_fields<'s>(fields: &[FieldInfo], sent: &'s Map<String, Value>, at: &str, all: &mut Vec<Reference<'s>>) {
    for (name, value) in sent {
        let Some(field) = fields.iter().find(|field| field.name == name) else { continue };
        if let Some(text) = literal(value).filter(|_| !field.rules.refers.is_empty()) {
            all.push(Reference { at: format!("{at}.{name}"), table: field.rules.refers, text });
        }
        for (place, row) in value.as_array().into_iter().flatten().enumerate() {
            for (member, table) in [("vat_code", ""), ("product_id", "products")] {
                if let Some(text) = literal(&row[member]) {
                    all.push(Reference { at: format!("{at}.{name}[{place}].{member}"), table, text });
                }
            }
        }
    }
}

/// Returns a text without placeholders.
fn literal(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty() && !is_template(text))
}
