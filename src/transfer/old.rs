//! Documents of an earlier program: they keep their number, totals, dates and status, belong to a client that is found or
//! created, and keep their original PDF.

use std::collections::BTreeMap;

use engine::call::Call;
use engine::contents::MAX_SIZE;
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, Result, Violation, violation};
use engine::json::Json;
use engine::log::{self, Line};
use engine::perform::completed;
use engine::record::Record as _;
use engine::records;
use engine::resource::Resource;
use store::{Tx, Value};

use super::built::Built;
use super::lines::{Outcome, version_of};
use super::{lines, subject};
use crate::mail::IMPORT;
use crate::payments::payment::{Payment, Status};
use crate::reading::archive::{Archive, Wanted};

/// Whether the records of a resource are documents.
pub fn is_document(resource: &Resource) -> bool {
    matches!(resource.shape.table, "invoices" | "quotes" | "workorders")
}

type Body = Vec<(String, Json)>;

fn find<'b>(body: &'b Body, name: &str) -> Option<&'b Json> {
    body.iter().find(|(own, _)| own == name).map(|(_, value)| value)
}

/// The status of a document that counts for nothing: it is left out.
const VOID: &str = "void";

/// The fields that say what an invoice comes to, and what is still open.
const AMOUNTS: &[&str] =
    &["open_amount", "paid_amount", "total_incl_vat", "total_excl_vat", "subtotal", "vat_amount", "vat_rate"];

/// The names of the currency of all documents.
const EURO: &[&str] = &["EUR", "EURO", "EUROS", "€"];

fn text_of(body: &Body, name: &str) -> Option<String> {
    match find(body, name) {
        Some(Json::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

/// Fills in what an old document lacks: a title, that it is final, its status and when it was paid. Totals without rows get
/// rows. Notes what is wrong with the line.
pub fn complete(resource: &'static Resource, built: &mut Built) {
    let number = text_of(&built.body, "number").unwrap_or_default();
    if find(&built.body, "title").is_none() {
        let title = if number.is_empty() { text_of(&built.body, "external_id") } else { Some(number.clone()) };
        if title.is_none() && !built.faults.has("number") {
            let message = "is required, or a title for a draft";
            built.missing.add("number", violation(FieldCode::Required, message));
        }
        built.body.extend(title.map(|title| ("title".to_string(), Json::Text(title))));
    }
    built.pdf = built.beside.remove("pdf").unwrap_or_default();
    built.paid_on = built.beside.remove("paid_at").unwrap_or_default();
    built.sent_on = built.beside.remove("sent_at").unwrap_or_default();
    let currency = built.beside.remove("currency").unwrap_or_default().to_uppercase();
    if !currency.is_empty() && !EURO.contains(&currency.as_str()) {
        let message =
            format!("is {currency}, but all documents are in EUR: leave the line out, or convert its amounts");
        built.faults.add("currency", violation(FieldCode::InvalidChoice, message));
    }
    if text_of(&built.body, "payment_status").as_deref() == Some(VOID) {
        built.left_out = Some("It is void, so it is left out.".to_string());
        return;
    }
    let is_draft = text_of(&built.body, "payment_status").as_deref() == Some("draft");
    if find(&built.body, "generation_mode").is_none() && !number.is_empty() && !is_draft {
        built.body.push(("generation_mode".to_string(), Json::Text("final".to_string())));
    }
    // What the source calls its own draft has no number of the series.
    if number.starts_with("DRAFT-") {
        built.body.retain(|(name, _)| name != "number");
    }
    if find(&built.body, "rows").is_none()
        && let Some(rows) = mixed_rows(&built.body)
    {
        built.body.push(("rows".to_string(), rows));
    }
    let is_final = text_of(&built.body, "generation_mode").as_deref() == Some("final")
        || find(&built.body, "generate") == Some(&Json::Bool(true));
    if is_final && find(&built.body, "invoice_date").is_none() && !built.faults.has("invoice_date") {
        built.missing.add("invoice_date", violation(FieldCode::Required, "is required for a final document"));
    }
    let dates = (text_of(&built.body, "invoice_date"), text_of(&built.body, "due_date"));
    if is_final
        && let (Some(date), Some(due)) = dates
        && due < date
    {
        built.doubts.add("due_date", violation(FieldCode::OutOfRange, "is before invoice_date; it is kept as it is"));
    }
    if is_final && resource.shape.table != "workorders" {
        require_totals(built);
    }
    if is_final && resource.shape.table == "invoices" {
        settle(built);
    }
}

/// Notes that a final document has no total, or one that does not say how much of it is VAT.
fn require_totals(built: &mut Built) {
    let has = |name: &str| find(&built.body, name).is_some() || built.faults.has(name);
    let has_rows = match find(&built.body, "rows") {
        Some(Json::List(rows)) => !rows.is_empty(),
        other => other.is_some(),
    };
    if has_rows || has("total_excl_vat") || has("subtotal") {
        return;
    }
    let (field, message) = match has("total_incl_vat") {
        false => ("total_excl_vat", "is required, or total_incl_vat with vat_amount: a final document needs its total"),
        true if has("vat_amount") || has("vat_rate") => return,
        true => (
            "vat_amount",
            "is required, or total_excl_vat or vat_rate: the total alone does not say how much of it is VAT",
        ),
    };
    built.missing.add(field, violation(FieldCode::Required, message));
}

/// Works out the status of an invoice from what is open or paid, and when it was paid: on the day that the file says, or on the
/// date of the invoice.
fn settle(built: &mut Built) {
    let sent = |name: &str| built.beside.get(name).and_then(|digits| cents(digits));
    let line = Amounts { total: total(&built.body), open: sent("open_amount"), paid: sent("paid_amount") };
    let status = date_payment(built, &line);
    match status.as_str() {
        "paid" => check_nothing_open(built, &line),
        "" | "open" | "partial" | "overdue" => match line.known() {
            Some((total, paid)) => settle_amounts(built, &line, &status, total, paid),
            None => note_unknown_amounts(built, &line, &status),
        },
        _ => {}
    }
}

/// The amounts of an invoice that its line says, in cents.
struct Amounts {
    total: Option<i128>,
    open: Option<i128>,
    paid: Option<i128>,
}

impl Amounts {
    /// What was paid, as the line says it or as the rest of what is open.
    fn paid(&self) -> Option<i128> {
        self.paid.or_else(|| Some(self.total? - self.open?))
    }

    /// The total, and what was paid of it.
    fn known(&self) -> Option<(i128, i128)> {
        Some((self.total?, self.paid()?))
    }
}

/// Sets the day of the payment; returns the status. Who notes that day without a status or an amount was paid.
fn date_payment(built: &mut Built, line: &Amounts) -> String {
    let status = text_of(&built.body, "payment_status").unwrap_or_default();
    if built.paid_on.is_empty() {
        built.paid_on = text_of(&built.body, "invoice_date").unwrap_or_default();
        return status;
    }
    let has_fault = ["open_amount", "paid_amount"].iter().any(|name| built.faults.has(name));
    if !status.is_empty() || line.open.is_some() || line.paid.is_some() || has_fault {
        return status;
    }
    set_status(built, "paid");
    "paid".to_string()
}

fn set_status(built: &mut Built, status: &str) {
    built.body.retain(|(name, _)| name != "payment_status");
    built.body.push(("payment_status".to_string(), Json::Text(status.to_string())));
}

fn does_not_fit(message: impl Into<String>) -> Violation {
    violation(FieldCode::OutOfRange, message.into())
}

/// Notes that an invoice which is paid has an open amount.
fn check_nothing_open(built: &mut Built, line: &Amounts) {
    if let Some(open) = line.open.filter(|open| *open != 0) {
        let message = format!("is {}, but the status says that the invoice is paid", amount(open));
        built.faults.add("open_amount", does_not_fit(message));
    }
}

/// Notes which amount is missing, if the line says that something was paid or is open.
fn note_unknown_amounts(built: &mut Built, line: &Amounts, status: &str) {
    // Without an amount that has a problem of its own, nothing can be said about the others.
    if AMOUNTS.iter().any(|name| built.faults.has(name)) {
        return;
    }
    let without_total = "cannot be used without the total: map the column with total_incl_vat";
    let (field, message) = match (line.open, line.paid()) {
        (Some(_), _) => ("open_amount", without_total),
        (_, Some(paid)) if paid != 0 => ("paid_amount", without_total),
        _ if status == "partial" => {
            ("payment_status", "is partly paid: map the column with the open amount or the paid amount")
        }
        _ => return,
    };
    built.faults.add(field, does_not_fit(message));
}

/// Sets the status that follows from the amounts, and what was paid if that is a part of the total.
fn settle_amounts(built: &mut Built, line: &Amounts, status: &str, total: i128, paid: i128) {
    let is_within = paid.signum() * total.signum() >= 0 && paid.abs() <= total.abs();
    if !is_within {
        let (field, shown) = line.open.map_or(("paid_amount", paid), |open| ("open_amount", open));
        let message = format!("is {}, which does not fit the total of {}", amount(shown), amount(total));
        return built.faults.add(field, does_not_fit(message));
    }
    let becomes = match status {
        _ if total != 0 && paid == total => "paid",
        "" | "partial" => "open",
        status => status,
    };
    built.paid_part = Some(paid).filter(|paid| *paid != 0 && *paid != total);
    set_status(built, becomes);
}

/// Returns the total including VAT, in cents, as far as the amounts of the line say it.
fn total(body: &Body) -> Option<i128> {
    let sent = |name: &str| match find(body, name) {
        Some(Json::Number(digits)) => cents(digits),
        _ => None,
    };
    let at_rate = |net: i128| match find(body, "vat_rate") {
        Some(Json::Text(digits) | Json::Number(digits)) => Some(rounded(net * cents(digits)?, 10_000)),
        _ => None,
    };
    sent("total_incl_vat").or_else(|| {
        let net = sent("total_excl_vat").or_else(|| sent("subtotal"))?;
        Some(net + sent("vat_amount").or_else(|| at_rate(net))?)
    })
}

/// The name of an original PDF, and its content.
type Original = Option<(String, Vec<u8>)>;

/// Returns the original PDF of a document with its name, if the archive has one, or what is wrong with it; with only its first
/// bytes if these are enough.
pub fn original(archive: &mut Archive, built: &Built, only_start: bool) -> Result<Result<Original, Violation>> {
    let wrong = |message: String| Ok(Err(violation(FieldCode::InvalidFormat, message)));
    let number = text_of(&built.body, "number");
    let wanted = match (built.pdf.as_str(), &number) {
        ("", Some(number)) => Wanted::Numbered(number),
        ("", None) => return Ok(Ok(None)),
        (name, _) => Wanted::Named(name),
    };
    let found = archive.file(wanted, MAX_SIZE, only_start).map_err(|trouble| trouble.in_field("pdfs_file_id"))?;
    let Some(entry) = found else {
        return match wanted {
            Wanted::Named(name) => wrong(format!("names {name}, which is not in the zip file")),
            Wanted::Numbered(_) => Ok(Ok(None)),
        };
    };
    match entry.content {
        Err(problem) => wrong(format!("cannot be used: {problem}")),
        Ok(bytes) if !bytes.starts_with(b"%PDF-") => {
            wrong(format!("cannot be used: {} in the zip file is not a PDF", entry.name))
        }
        Ok(bytes) => Ok(Ok(Some((entry.name, bytes)))),
    }
}

/// Records what was paid of an old invoice, all or a part of it, so that its payments add up; returns the payment. `made` is
/// the invoice.
pub fn pay(tx: &mut Tx, ctx: &Ctx, made: &serde_json::Value, built: &Built) -> Result<Option<String>> {
    let is_paid =
        made["payment_status"] == "paid" && made["total_incl_vat"].as_f64().is_some_and(|sum| sum.abs() > 0.0);
    let Some(invoice) = made["id"].as_str().filter(|_| is_paid || built.paid_part.is_some()) else { return Ok(None) };
    // Without an amount, it is all that is open.
    let paid = built.paid_part.map(|paid| ("amount".to_string(), Json::Number(amount(paid))));
    let mut body: Body = paid.into_iter().collect();
    if !built.paid_on.is_empty() {
        body.push(("date".to_string(), Json::Text(built.paid_on.clone())));
    }
    record_payment(tx, ctx, invoice, body)
}

/// Creates a payment of an invoice by its route; returns its id.
fn record_payment(tx: &mut Tx, ctx: &Ctx, invoice: &str, body: Body) -> Result<Option<String>> {
    let payments = subject::to_import("payments")?;
    let route = subject::create_route(payments).ok_or_else(|| Error::internal("payments cannot be created"))?;
    let call = Call { path: vec![invoice.to_string()], body: Some(Json::Object(body)), early: true, ..Call::default() };
    let answer = completed((route.handler)(call)?(tx, ctx)?)?;
    let made: serde_json::Value = serde_json::from_slice(&answer.data).unwrap_or_default();
    Ok(made["payment"]["id"].as_str().map(str::to_string))
}

/// Removes the payment that follows from the line of an old invoice, now that its payments themselves are imported: the
/// invoice would be paid twice. One that somebody changed stays.
pub fn drop_assumed_payment(tx: &mut Tx, ctx: &Ctx, built: &Built) -> Result<()> {
    let status = text_of(&built.body, "status").unwrap_or_else(|| "paid".to_string());
    if status != "paid" {
        return Ok(());
    }
    let Some(assumed) = lines::assumed_payment(tx, ctx, &built.parent, Outcome::Created)? else { return Ok(()) };
    let Some(version) = version_of(tx, ctx, "payments", &assumed.id)? else { return Ok(()) };
    if version == assumed.version {
        let payment: Payment = records::find(tx, ctx, &assumed.id)?;
        records::remove(tx, ctx, &payment)?;
        lines::set_assumed(tx, ctx, &assumed, Outcome::Removed)?;
    }
    Ok(())
}

/// Makes the payment again that follows from the line of an old invoice, if the imported payments that took its place are gone.
pub fn restore_assumed_payment(tx: &mut Tx, ctx: &Ctx, invoice: &str) -> Result<()> {
    let Some(mut assumed) = lines::assumed_payment(tx, ctx, invoice, Outcome::Removed)? else { return Ok(()) };
    let Some(removal) = line_about(tx, ctx, &assumed.id, Told::Last)?.filter(is_of_import) else { return Ok(()) };
    let sql = "SELECT id FROM payments WHERE account_id = $1 AND invoice_id = $2 AND status = $3";
    let values = [ctx.account.into(), invoice.into(), Status::Paid.wire().into()];
    for payment in tx.all(sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))? {
        if line_about(tx, ctx, &payment, Told::First)?.is_some_and(|line| is_of_import(&line)) {
            return Ok(());
        }
    }
    let was: serde_json::Value = serde_json::from_str(removal.data()).unwrap_or_default();
    let (Some(date), true) = (was["date"].as_str(), was["amount"].is_number()) else {
        let message = "It stays: the payment that it replaced was erased from the log.";
        return Err(Error::new(Code::InUse, message));
    };
    let body = vec![
        ("amount".to_string(), Json::Number(was["amount"].to_string())),
        ("date".to_string(), Json::Text(date.to_string())),
    ];
    assumed.id = record_payment(tx, ctx, invoice, body)?.unwrap_or_default();
    assumed.version = 1;
    lines::set_assumed(tx, ctx, &assumed, Outcome::Created)
}

/// Which line of the log about a record is meant.
#[derive(Clone, Copy)]
enum Told {
    First,
    Last,
}

/// Returns a line of the log about a payment.
fn line_about(tx: &mut Tx, ctx: &Ctx, payment: &str, told: Told) -> Result<Option<Line>> {
    let kind = Payment::shape().name;
    let (mut numbers, total) = log::of_record(tx, ctx.account, kind, payment, 0, 1)?;
    if matches!(told, Told::First) && total > 1 {
        numbers = log::of_record(tx, ctx.account, kind, payment, total - 1, 1)?.0;
    }
    Ok(log::numbered(tx, ctx.account, &numbers)?.into_iter().next())
}

/// Whether an import caused a line of the log.
fn is_of_import(line: &Line) -> bool {
    line.actor().split_once(' ').is_some_and(|(kind, _)| kind == IMPORT)
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

/// Number of clients with the same address among which one is found by its name.
const MOST_ALIKE: usize = 50;

/// Returns the client of a document: one with the same id elsewhere, address or name; otherwise a new one. Also returns
/// whether it is new. More than one such client is a problem, unless the name tells those with the same address apart.
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
        let sql =
            format!("SELECT id, company_name FROM clients WHERE account_id = $1 AND {condition} LIMIT {MOST_ALIKE}");
        let values: [Value; 2] = [ctx.account.into(), value(name).into()];
        let mut found =
            tx.all(&sql, &values, |row| Ok::<_, Error>((row.text(0)?.to_string(), row.text(1)?.to_string())))?;
        if found.is_empty() {
            continue;
        }
        if found.len() > 1 && name == "email" && !value("company_name").is_empty() {
            found.retain(|(_, company)| company == value("company_name"));
        }
        return match (found.pop(), found.is_empty()) {
            (Some((id, _)), true) => Ok(Some((id, false))),
            _ => {
                let message = match value("external_id") {
                    "" => {
                        "is that of more than one client: tell them apart by a column for client.external_id, or merge these clients"
                    }
                    _ => {
                        "is that of more than one client, and none has this client.external_id: give it to one of them, or merge these clients"
                    }
                };
                Err(Error::field(&format!("client.{name}"), violation(FieldCode::InvalidChoice, message)))
            }
        };
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
    let call = Call { body: Some(Json::Object(body)), early: true, ..Call::default() };
    let answer = completed((route.handler)(call)?(tx, ctx)?)?;
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
