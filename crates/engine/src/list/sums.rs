//! `sums=`: what the records of a list add up to, all pages together.

use store::{Tx, Value};

use crate::error::{Error, FieldCode, Result, Violation, violation};
use crate::record::{Field, NOWHERE, Record};

/// Maximum number of records that are added up.
const MAX_RECORDS: i64 = 100_000;

/// Returns the fields of `R` that can be added up: those with amounts that a response shows.
pub fn names<R: Record>() -> Vec<&'static str> {
    fields::<R>().map(|field| field.info.name).collect()
}

fn fields<R: Record>() -> impl Iterator<Item = &'static Field<R>> {
    R::columns().filter(|field| {
        let rules = &field.info.rules;
        let is_amount = (field.info.schema)(rules)["type"] == "number" && !field.info.name.ends_with("_rate");
        is_amount && (rules.views != NOWHERE || rules.in_meta)
    })
}

/// Parses the names of fields, separated by commas.
pub fn read<R: Record>(text: &str) -> Result<Vec<&'static str>, Violation> {
    let known = names::<R>();
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
pub fn member<R: Record>(
    tx: &mut Tx,
    names: &[&'static str],
    from: &str,
    conditions: &str,
    values: &[Value],
) -> Result<String> {
    let table = R::shape().table;
    let chosen: Vec<&Field<R>> = fields::<R>().filter(|field| names.contains(&field.info.name)).collect();
    let name = |field: &&Field<R>| field.info.name;
    let columns: Vec<String> = chosen.iter().map(|field| format!("{table}.\"{}\"", name(field))).collect();
    let sums = chosen.iter().map(|field| format!(", CAST(coalesce(sum(\"{}\"), 0) AS BIGINT)", name(field)));
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
            let mut record = R::default();
            field.from_db(&mut record, row, place + 1)?;
            out.extend_from_slice(if place == 0 { b"\"" } else { b",\"" });
            out.extend_from_slice(name(field).as_bytes());
            out.extend_from_slice(b"\":");
            field.to_json(&record, &field.info.rules, &mut out);
        }
        Ok::<_, Error>(Some(String::from_utf8(out).unwrap_or_default()))
    })?;
    Ok(match found.flatten() {
        Some(sums) => format!("\"sums\":{{{sums}}}"),
        None => format!("\"sums\":null,\"sums_limit\":{MAX_RECORDS}"),
    })
}
