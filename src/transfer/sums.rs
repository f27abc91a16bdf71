//! The sums of a file and of what became of it.

use std::collections::BTreeMap;

use engine::json::Json;
use engine::record::Data;
use serde_json::{Value, json};

use super::built::Built;
use super::old;

/// The fields whose sums are compared.
pub const SUMMED: &[&str] = &["total_excl_vat", "vat_amount", "total_incl_vat"];

/// Sums by field, in cents.
pub type Sums = BTreeMap<&'static str, i128>;

/// Adds the amounts of a line to the sums.
pub fn add_up(sums: &mut Sums, built: &Built) {
    for (name, sum) in sums {
        if let Some((_, Json::Number(digits))) = built.body.iter().find(|(own, _)| own == name) {
            *sum += old::cents(digits).unwrap_or_default();
        }
    }
}

/// Returns the sums of the file, of what was imported and of the lines that were left out.
pub fn report(source: &Sums, imported: Option<&Sums>, left_out: &Sums) -> Data {
    let shown = |sums: &Sums| -> Value {
        sums.iter().map(|(name, cents)| ((*name).to_string(), Value::from(old::amount(*cents)))).collect()
    };
    if source.is_empty() {
        return Data::default();
    }
    let mut report = json!({"source": shown(source)});
    if !left_out.is_empty() {
        report["left_out"] = shown(left_out);
    }
    if let Some(imported) = imported {
        let of = |sums: &Sums, name: &str| sums.get(name).copied().unwrap_or_default();
        let difference: Sums =
            source.iter().map(|(name, cents)| (*name, of(imported, name) + of(left_out, name) - cents)).collect();
        report["imported"] = shown(imported);
        report["difference"] = shown(&difference);
    }
    Data::from(report)
}

/// Returns the sums of a part of a report.
pub fn sums(report: &Data, part: &str) -> Sums {
    let report = report.json();
    let sum = |name: &'static str| Some((name, old::cents(report[part][name].as_str()?)?));
    SUMMED.iter().filter_map(|name| sum(name)).collect()
}
