//! `sums=`: what the records of a list add up to, all pages together.

use store::{Tx, Value};

use crate::error::{Error, FieldCode, Result, Violation, violation};
use crate::record::{FieldInfo, Layout, NOWHERE};

/// Maximum number of records that are added up.
pub const MAX_RECORDS: i64 = 100_000;

/// Returns the fields that can be added up: those with amounts that a response shows.
pub fn names(layout: &Layout) -> Vec<&'static str> {
    fields(layout).map(|field| field.name).collect()
}

fn fields(layout: &Layout) -> impl Iterator<Item = &'static FieldInfo> {
    let stored = layout.columns().map(|(_, field)| field);
    stored.filter(|field| {
        let rules = &field.rules;
        let is_amount = (field.schema)(rules)["type"] == "number" && !field.name.ends_with("_rate");
        is_amount && (rules.views != NOWHERE || rules.in_meta)
    })
}

/// Parses the names of fields, separated by commas.
pub fn read(layout: &Layout, text: &str) -> Result<Vec<&'static str>, Violation> {
    let known = names(layout);
    let mut wanted: Vec<&'static str> = Vec::new();
    for name in text.split(',').map(str::trim) {
        let found = known.iter().find(|known| **known == name).copied();
        let wrong = || violation(FieldCode::InvalidChoice, format!("must be some of: {}", known.join(", ")));
        wanted.push(found.ok_or_else(wrong)?);
    }
    wanted.sort_unstable();
    wanted.dedup();
    Ok(wanted)
}

/// Returns the member of `meta` with the sums of these fields, over the rows of `from` for which `conditions` hold.
pub fn member(
    layout: &Layout,
    tx: &mut Tx,
    names: &[&'static str],
    from: &str,
    conditions: &str,
    values: &[Value],
) -> Result<String> {
    let table = layout.shape.table;
    let chosen: Vec<&FieldInfo> = fields(layout).filter(|field| names.contains(&field.name)).collect();
    let columns: Vec<String> = chosen.iter().map(|field| format!("{table}.\"{}\"", field.name)).collect();
    let sums = chosen.iter().map(|field| format!(", CAST(coalesce(sum(\"{}\"), 0) AS BIGINT)", field.name));
    let sql = format!(
        "SELECT count(*){} FROM (SELECT {} FROM {from} WHERE {conditions} LIMIT {}) AS summed",
        sums.collect::<String>(),
        columns.join(", "),
        MAX_RECORDS + 1
    );
    let found = tx.first(&sql, values, |row| {
        if row.int(0)? > MAX_RECORDS {
            return Ok(None);
        }
        let mut out = Vec::new();
        for (place, field) in chosen.iter().enumerate() {
            let mut sum = (field.blank)();
            sum.read_column(row, place + 1)?;
            out.extend_from_slice(if place == 0 { b"\"" } else { b",\"" });
            out.extend_from_slice(field.name.as_bytes());
            out.extend_from_slice(b"\":");
            sum.write_json(&field.rules, &mut out);
        }
        Ok::<_, Error>(Some(String::from_utf8(out).unwrap_or_default()))
    })?;
    Ok(match found.flatten() {
        Some(sums) => format!("\"sums\":{{{sums}}}"),
        None => too_many(MAX_RECORDS),
    })
}

/// Returns the member for a list of more records than are added up.
pub fn too_many(limit: i64) -> String {
    format!("\"sums\":null,\"sums_limit\":{limit}")
}
