//! Documents of an earlier program: they keep their number, totals, dates and status, belong to a client that is found or
//! created, and keep their original PDF.

use std::collections::BTreeMap;

use engine::call::Call;
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::json::Json;
use engine::resource::Resource;
use store::{Tx, Value};

use super::subject;

/// Whether the records of a resource are documents.
pub fn is_document(resource: &Resource) -> bool {
    matches!(resource.shape.table, "invoices" | "quotes" | "workorders")
}

type Body = Vec<(String, Json)>;

fn find<'b>(body: &'b Body, name: &str) -> Option<&'b Json> {
    body.iter().find(|(own, _)| own == name).map(|(_, value)| value)
}

/// Fills in what an old document lacks: a title, and that it is final. Totals without rows get rows.
pub fn complete(body: &mut Body) {
    let number = match find(body, "number") {
        Some(Json::Text(number)) => number.clone(),
        _ => String::new(),
    };
    if find(body, "title").is_none() && !number.is_empty() {
        body.push(("title".to_string(), Json::Text(number.clone())));
    }
    let is_draft = matches!(find(body, "payment_status"), Some(Json::Text(status)) if status == "draft");
    if find(body, "generation_mode").is_none() && !number.is_empty() && !is_draft {
        body.push(("generation_mode".to_string(), Json::Text("final".to_string())));
    }
    // What the source calls its own draft has no number of the series.
    if number.starts_with("DRAFT-") {
        body.retain(|(name, _)| name != "number");
    }
    if find(body, "rows").is_none()
        && let Some(rows) = mixed_rows(body)
    {
        body.push(("rows".to_string(), rows));
    }
}

/// Returns an amount in cents, if it has no smaller parts.
pub fn cents(digits: &str) -> Option<i128> {
    let (minus, rest) = digits.strip_prefix('-').map_or((1, digits), |rest| (-1, rest));
    let (whole, part) = rest.split_once('.').unwrap_or((rest, ""));
    let part = part.trim_end_matches('0');
    if part.len() > 2 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: i128 = format!("{part:0<2}").parse().ok()?;
    Some(minus * (whole * 100 + part))
}

/// Writes cents as an amount.
pub fn amount(cents: i128) -> String {
    let minus = if cents < 0 { "-" } else { "" };
    format!("{minus}{}.{:02}", cents.abs() / 100, cents.abs() % 100)
}

/// The rates that invoices with more than one rate usually have, in percent: the higher and the lower.
const PAIRS: &[(i128, i128)] = &[(21, 9), (21, 6), (21, 0), (9, 0), (6, 0)];

/// Returns two rows for totals that no single rate explains: the amounts at a higher and a lower rate that lead to exactly
/// these totals. The totals do not say which rates they were, so the first usual pair that fits is taken.
fn mixed_rows(body: &Body) -> Option<Json> {
    let sent = |name: &str| match find(body, name) {
        Some(Json::Number(digits)) => cents(digits),
        _ => None,
    };
    let (net, tax, gross) =
        (sent("total_excl_vat").or_else(|| sent("subtotal")), sent("vat_amount"), sent("total_incl_vat"));
    let net = net.or_else(|| Some(gross? - tax?))?;
    let tax = tax.or_else(|| Some(gross? - net))?;
    let at = |net: i128, rate: i128| rounded(net * rate, 100);
    let rates = [21, 9, 6, 0];
    if find(body, "vat_rate").is_some() || rates.iter().any(|rate| (at(net, *rate) - tax).abs() <= 1) {
        return None;
    }
    let title = match find(body, "title") {
        Some(Json::Text(title)) => title.clone(),
        _ => String::new(),
    };
    for (high, low) in PAIRS {
        let start = rounded(100 * tax - net * low, high - low);
        for first in [0, 1, -1, 2, -2, 3, -3].map(|step| start + step) {
            let second = net - first;
            let same_sign = first.signum() * net.signum() >= 0 && second.signum() * net.signum() >= 0;
            if same_sign && at(first, *high) + at(second, *low) == tax {
                return Some(Json::List(vec![row(&title, first, *high), row(&title, second, *low)]));
            }
        }
    }
    None
}

fn row(title: &str, net: i128, rate: i128) -> Json {
    Json::Object(vec![
        ("name".to_string(), Json::Text(title.to_string())),
        ("quantity".to_string(), Json::Number("1".to_string())),
        ("unit_price".to_string(), Json::Number(amount(net))),
        ("vat_rate".to_string(), Json::Text(rate.to_string())),
    ])
}

/// Divides, rounding half away from zero.
fn rounded(number: i128, by: i128) -> i128 {
    let half = if number < 0 { -by / 2 } else { by / 2 };
    (number + half) / by
}

/// Returns the client of a document: one with the same id elsewhere, address or name; otherwise a new one. Also returns
/// whether it is new.
pub fn client(tx: &mut Tx, ctx: &Ctx, known: &BTreeMap<&'static str, String>) -> Result<Option<(String, bool)>> {
    let value = |name: &str| known.get(name).map_or("", String::as_str);
    for (name, condition) in [
        ("external_id", "external_id = $2 AND external_id <> ''"),
        ("email", "lower(email) = lower($2) ORDER BY created_at, id"),
        ("company_name", "company_name = $2 ORDER BY company_name, id"),
    ] {
        if value(name).is_empty() || value(name).contains('\0') {
            continue;
        }
        let sql = format!("SELECT id FROM clients WHERE account_id = $1 AND {condition} LIMIT 1");
        let values: [Value; 2] = [ctx.account.into(), value(name).into()];
        if let Some(id) = tx.first(&sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))? {
            return Ok(Some((id, false)));
        }
    }
    if ["company_name", "firstname", "lastname", "email"].iter().all(|name| value(name).is_empty()) {
        return Ok(None);
    }
    let mut body: Body = known.iter().map(|(name, text)| ((*name).to_string(), Json::Text(text.clone()))).collect();
    if value("company_name").is_empty() {
        let is_person = !value("firstname").is_empty() || !value("lastname").is_empty();
        let (name, text) = if is_person { ("type", "private") } else { ("company_name", value("email")) };
        body.push((name.to_string(), Json::Text(text.to_string())));
    }
    let clients = subject::to_import("clients")?;
    let route = subject::create_route(clients).ok_or_else(|| Error::internal("clients cannot be created"))?;
    let answer = (route.handler)(Call { body: Some(Json::Object(body)), early: true, ..Call::default() })?(tx, ctx)?;
    let made: serde_json::Value = serde_json::from_slice(&answer.data).unwrap_or_default();
    Ok(made["id"].as_str().map(|id| (id.to_string(), true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(net: &str, tax: &str) -> Option<Json> {
        let number = |text: &str| Json::Number(text.to_string());
        mixed_rows(&vec![("total_excl_vat".to_string(), number(net)), ("vat_amount".to_string(), number(tax))])
    }

    #[test]
    fn totals_of_several_rates_get_rows() {
        assert_eq!(totals("100", "21"), None);
        assert_eq!(totals("100.10", "9.01"), None);
        for (net, tax) in [("200", "30"), ("150.55", "20.01"), ("-200", "-30"), ("1000", "5"), ("99.99", "13.37")] {
            let Some(Json::List(rows)) = totals(net, tax) else { panic!("{net} {tax}") };
            assert_eq!(rows.len(), 2);
        }
        assert_eq!(
            (cents("12.5"), cents("-0.05"), cents("1.005"), cents("7.000")),
            (Some(1250), Some(-5), None, Some(700))
        );
        assert_eq!((amount(-5), amount(1250)), ("-0.05".to_string(), "12.50".to_string()));
    }
}
