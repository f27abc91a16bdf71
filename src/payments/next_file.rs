//! What the next bank file contains: the collections that no file has yet, without those that no file can have.

use std::collections::{BTreeSet, HashMap};

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::record::Record;
use engine::records::{self, Work};
use engine::resource::Part;
use money::Amount;
use serde::Serialize;
use serde_json::{Value, json};
use store::Tx;

use super::handing_over;
use super::mandate::Mandate;
use super::payment::{self, ASKED, Payment, PaymentType, Status};
use crate::documents::Invoice;
use crate::relations::client::Client;
use crate::settings::ProviderName;

/// Maximum number of collections in a file: about five megabytes, written in one transaction.
const MAX_PAYMENTS: usize = 5000;
/// Maximum number of collections in the response.
const MAX_SHOWN: usize = 100;
/// How many collections are looked up with the same statements.
const AT_ONCE: usize = 256;

/// The members of the response.
pub(super) const PARTS: &[Part] = &[
    Part("count", "integer", "The number of collections that the file would have."),
    Part("amount", "number", "Their total amount."),
    Part("has_more", "boolean", "Whether more collections wait than one file has: 5,000."),
    Part(
        "collections",
        "array",
        "The first 100 of them: `payment_id`, `invoice_id`, `number`, `client_id`, `client_name` and `amount`, which is less than that of the payment if a part was settled in another way.",
    ),
    Part(
        "left_out",
        "array",
        "The first 100 pending collections that the file would leave out: `payment_id`, `invoice_id`, `number` and `reason`.",
    ),
];

/// `GET /v1/direct-debit/batches/waiting`
pub(super) fn get(_: Call) -> Result<Work> {
    Ok(Box::new(|tx, ctx| {
        let next = NextFile::of(tx, ctx)?;
        let collections = next.waiting.iter().take(MAX_SHOWN).map(|one| {
            json!({
                "payment_id": one.payment.base.id, "invoice_id": one.invoice_id, "number": one.number,
                "client_id": one.client.base.id, "client_name": one.client.name(), "amount": shown(one.payment.amount),
            })
        });
        let collections: Vec<Value> = collections.collect();
        let left_out: Vec<&LeftOut> = next.left_out.iter().take(MAX_SHOWN).collect();
        Ok(Answer::json(&json!({
            "count": next.waiting.len(), "amount": shown(next.amount()), "has_more": next.has_more,
            "collections": collections, "left_out": left_out,
        })))
    }))
}

/// Returns an amount as a number.
fn shown(amount: Amount) -> Value {
    serde_json::from_str(&amount.to_string()).unwrap_or_default()
}

/// The collections of the next file.
pub(super) struct NextFile {
    /// Those that the file has.
    pub waiting: Vec<Waiting>,
    /// Those that it leaves out.
    pub left_out: Vec<LeftOut>,
    /// What the file leaves out, or collects for less.
    pub warnings: Vec<String>,
    /// Whether there are more than one file has.
    pub has_more: bool,
}

/// A pending payment with the details that the bank requires.
pub(super) struct Waiting {
    /// The payment, for what is still open.
    pub payment: Payment,
    /// Whether its amount was more than what is still open.
    pub is_reduced: bool,
    /// The invoice.
    pub invoice_id: String,
    /// The number of the invoice.
    pub number: String,
    /// The title of the invoice.
    pub title: String,
    /// Who pays.
    pub client: Client,
    /// By which mandate.
    pub mandate: Mandate,
}

/// Why a collection is left out whose invoice was paid or credited in another way.
const SETTLED: &str = "nothing of it is open";
/// Why a collection is left out if others of the same invoice take everything.
const COVERED: &str = "other collections have all that is open";

/// A pending collection that the file does not have.
#[derive(Clone, Serialize)]
pub(super) struct LeftOut {
    /// The payment.
    pub payment_id: String,
    /// Its invoice.
    pub invoice_id: String,
    /// The number of the invoice.
    pub number: String,
    /// Why the file does not have it.
    pub reason: String,
}

impl LeftOut {
    /// Returns why it is canceled; `None` if a later file may have it.
    pub fn why_canceled(&self) -> Option<&'static str> {
        match self.reason.as_str() {
            SETTLED => Some("The invoice was settled in another way."),
            COVERED => Some("Other collections have all that is open of the invoice."),
            _ => None,
        }
    }

    /// Cancels its payment, unless a later file may have it.
    pub fn cancel(&self, tx: &mut Tx, ctx: &Ctx, payment: &Payment) -> Result<()> {
        let Some(why) = self.why_canceled() else { return Ok(()) };
        let why = json!({"reason": why});
        payment::apply_provider_status(tx, ctx, payment, Status::Canceled, Some(&why)).map(drop)
    }

    /// Cancels it, unless something has changed since it was left out.
    pub fn cancel_if_unchanged(&self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        // Another file may have it by now.
        handing_over::mark_one(tx, ctx, &self.payment_id)?;
        let found = records::find_some::<Payment>(tx, ctx, &[&self.payment_id])?.pop();
        let Some(payment) = found.filter(|payment| payment.status == Status::Created) else { return Ok(()) };
        let invoice: Invoice = records::find(tx, ctx, &self.invoice_id)?;
        let in_files = in_files(tx, ctx, &[invoice.base.id.as_str()])?;
        if uncollected(&invoice, &in_files) > 0 { Ok(()) } else { self.cancel(tx, ctx, &payment) }
    }
}

impl NextFile {
    /// Returns what a file that is created now contains.
    pub fn of(tx: &mut Tx, ctx: &Ctx) -> Result<NextFile> {
        let mut next = NextFile { waiting: Vec::new(), left_out: Vec::new(), warnings: Vec::new(), has_more: false };
        let mut payments = pending(tx, ctx)?;
        if payments.len() > MAX_PAYMENTS {
            payments.truncate(MAX_PAYMENTS);
            next.has_more = true;
            let message =
                format!("The file has the first {MAX_PAYMENTS} collections; create another one for the rest.");
            next.warnings.push(message);
        }
        // Several collections of an invoice share what is open of it.
        let mut left: HashMap<String, i64> = HashMap::new();
        while !payments.is_empty() {
            let later = payments.split_off(payments.len().min(AT_ONCE));
            let around = Around::of(tx, ctx, &payments)?;
            for payment in payments {
                next.add(payment, &around, &mut left)?;
            }
            payments = later;
        }
        Ok(next)
    }

    /// Returns the total amount of the collections.
    pub fn amount(&self) -> Amount {
        Amount::from_scaled(self.waiting.iter().map(|one| one.payment.amount.scaled()).sum())
    }

    /// Adds a collection, or leaves it out. `left` has what is open of the invoices so far, in cents.
    fn add(&mut self, mut payment: Payment, around: &Around, left: &mut HashMap<String, i64>) -> Result<()> {
        let invoice = around.invoice_of(&payment)?;
        let number = invoice.number.clone();
        let open = left.get(&invoice.base.id).copied().unwrap_or_else(|| uncollected(invoice, &around.in_files));
        if open <= 0 {
            let reason = if invoice.open_amount.scaled() <= 0 { SETTLED } else { COVERED };
            self.leave_out(payment, invoice, reason.to_string());
            return Ok(());
        }
        let Some(client) = around.clients.get(&invoice.client_id.0) else {
            self.leave_out(payment, invoice, "it has no client".to_string());
            return Ok(());
        };
        let is_reduced = payment.amount.scaled() > open;
        if is_reduced {
            let (less, whole) = (Amount::from_scaled(open), payment.amount);
            let rest = if less == invoice.open_amount { "was paid or credited" } else { "is in other collections" };
            self.warnings.push(format!("{number} is collected for {less} instead of {whole}: the rest {rest}."));
            payment.amount = less;
        }
        let lacks = match around.mandates.get(&client.base.id) {
            Some(mandate) if !client.iban.0.is_empty() => {
                left.insert(invoice.base.id.clone(), open - payment.amount.scaled());
                self.waiting.push(Waiting {
                    payment,
                    is_reduced,
                    invoice_id: invoice.base.id.clone(),
                    number,
                    title: invoice.title.clone(),
                    client: client.clone(),
                    mandate: mandate.clone(),
                });
                return Ok(());
            }
            Some(_) => "IBAN",
            None => "mandate",
        };
        self.leave_out(payment, invoice, format!("{} has no {lacks}", client.name()));
        Ok(())
    }

    fn leave_out(&mut self, payment: Payment, invoice: &Invoice, reason: String) {
        let number = invoice.number.clone();
        self.warnings.push(format!("{number} was left out: {reason}."));
        let invoice_id = invoice.base.id.clone();
        self.left_out.push(LeftOut { payment_id: payment.base.id, invoice_id, number, reason });
    }
}

/// Returns the collections that no file has, the oldest first: at most one more than a file has.
fn pending(tx: &mut Tx, ctx: &Ctx) -> Result<Vec<Payment>> {
    // The job of a large file has not reached all of them.
    let taken = handing_over::in_a_file(tx, ctx)?;
    let sql = format!(
        "{}{} WHERE account_id = $1 AND provider = '{}' AND status = '{}' ORDER BY created_at, id LIMIT $2",
        Payment::sql().select,
        tx.dialect().indexed_by("payments_awaited"),
        ProviderName::Manual.wire(),
        Status::Created.wire()
    );
    let limit = i64::try_from(MAX_PAYMENTS + 1 + taken.len()).unwrap_or(i64::MAX);
    let mut payments = tx.all(&sql, &[ctx.account.into(), limit.into()], Payment::from_row)?;
    payments.retain(|payment| !taken.contains(&payment.base.id));
    Ok(payments)
}

/// What belongs to some collections.
struct Around {
    invoices: HashMap<String, Invoice>,
    /// What earlier files have of an invoice, in cents.
    in_files: HashMap<String, i64>,
    clients: HashMap<String, Client>,
    /// Signed mandates, by client.
    mandates: HashMap<String, Mandate>,
}

impl Around {
    fn of(tx: &mut Tx, ctx: &Ctx, payments: &[Payment]) -> Result<Around> {
        let ids = distinct(payments.iter().map(|payment| payment.invoice_id.0.as_str()));
        let invoices: Vec<Invoice> = records::find_some(tx, ctx, &ids)?;
        let in_files = in_files(tx, ctx, &ids)?;
        let owners = distinct(invoices.iter().map(|invoice| invoice.client_id.0.as_str()));
        let clients: Vec<Client> = records::find_some(tx, ctx, &owners)?;
        let (places, values) = placed(ctx, &owners);
        let sql = format!("{} WHERE account_id = $1 AND client_id IN ({places})", Mandate::sql().select);
        let mandates = tx.all(&sql, &values, Mandate::from_row)?;
        let signed = mandates.into_iter().filter(Mandate::is_signed);
        Ok(Around {
            mandates: signed.map(|mandate| (mandate.client_id.0.clone(), mandate)).collect(),
            clients: clients.into_iter().map(|client| (client.base.id.clone(), client)).collect(),
            in_files,
            invoices: invoices.into_iter().map(|invoice| (invoice.base.id.clone(), invoice)).collect(),
        })
    }

    fn invoice_of(&self, payment: &Payment) -> Result<&Invoice> {
        let found = self.invoices.get(&payment.invoice_id.0);
        found.ok_or_else(|| Error::internal(format!("the invoice of the payment {} is missing", payment.base.id)))
    }
}

/// Returns what is open of an invoice and in no earlier bank file, in cents.
fn uncollected(invoice: &Invoice, in_files: &HashMap<String, i64>) -> i64 {
    invoice.open_amount.scaled() - in_files.get(&invoice.base.id).copied().unwrap_or_default()
}

/// Returns what earlier bank files have of these invoices, in cents.
fn in_files(tx: &mut Tx, ctx: &Ctx, invoices: &[&str]) -> Result<HashMap<String, i64>> {
    let (places, values) = placed(ctx, invoices);
    let sql = format!(
        "SELECT invoice_id, CAST(sum(amount) AS BIGINT) FROM payments{}
         WHERE account_id = $1 AND invoice_id IN ({places}) AND type = '{}' AND provider = '{}' AND status IN ({})
         GROUP BY invoice_id",
        tx.dialect().indexed_by("payments_invoice"),
        PaymentType::Online.wire(),
        ProviderName::Manual.wire(),
        Status::sql_list(ASKED)
    );
    let found = tx.all(&sql, &values, |row| Ok::<_, Error>((row.text(0)?.to_string(), row.int(1)?)))?;
    Ok(found.into_iter().collect())
}

fn distinct<'i>(ids: impl Iterator<Item = &'i str>) -> Vec<&'i str> {
    ids.collect::<BTreeSet<&str>>().into_iter().collect()
}

/// Returns the placeholders of ids after that of the account, and their values. A few lengths, padded with the last id, need
/// only a few prepared statements.
fn placed<'i>(ctx: &Ctx, ids: &[&'i str]) -> (String, Vec<store::Value<'i>>) {
    let length = ids.len().next_power_of_two();
    let last = ids.last().copied().unwrap_or_default();
    let places: Vec<String> = (0..length).map(|place| format!("${}", place + 2)).collect();
    let padded = ids.iter().copied().chain(std::iter::repeat(last)).take(length);
    let mut values: Vec<store::Value> = vec![ctx.account.into()];
    values.extend(padded.map(store::Value::from));
    (places.join(", "), values)
}
