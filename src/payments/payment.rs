//! Payments of invoices: recorded manually, or collected through a provider.

use engine::call::{Answer, Call, Outcome};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, violation};
use engine::input::{self, Input};
use engine::record::{COMPUTED, DETAIL, Data, Day, INPUT, Link, Model, NOWHERE, Record, Transitions, check_transition};
use engine::records::{self, Work};
use engine::resource::{Handler, Part, Resource, Returns, Verb};
use engine::{choice, record, tables};
use money::Amount;
use serde_json::Value;
use store::{Migration, Tx};

use crate::documents::complete::warned;
use crate::documents::{Invoice, PaymentStatus, change_to_final, with_finalized};

choice! {
    /// The status of a payment.
    pub enum Status {
        /// Requested, awaiting the client.
        Open = "open",
        /// In progress.
        Pending = "pending",
        /// Paid.
        #[default]
        Paid = "paid",
        /// Failed.
        Failed = "failed",
        /// Canceled by the client.
        Canceled = "canceled",
        /// Expired before the client paid.
        Expired = "expired",
        /// Authorized by the bank.
        Authorized = "authorized",
        /// Created, not yet requested.
        Created = "created",
        /// Charged back by the bank.
        Chargeback = "chargeback",
        /// Refunded.
        Refunded = "refunded",
    }
}

choice! {
    /// Who processes a payment.
    pub enum PaymentType {
        /// Recorded by a person.
        #[default]
        Manual = "manual",
        /// A provider.
        Online = "online",
    }
}

choice! {
    /// The payment method.
    pub enum Method {
        /// iDEAL.
        Ideal = "ideal",
        /// PayPal.
        Paypal = "paypal",
        /// Klarna.
        Klarna = "klarna",
        /// Bancontact.
        Bancontact = "bancontact",
        /// in3.
        In3 = "in3",
        /// Credit card.
        Creditcard = "creditcard",
        /// Bank transfer.
        #[default]
        Banktransfer = "banktransfer",
    }
}

/// How a payment stands that a provider has taken on and that may still be paid.
pub(crate) const ASKED: &[Status] = &[Status::Open, Status::Pending, Status::Authorized];
/// How a payment stands that may still be paid.
pub(crate) const UNDER_WAY: &[Status] = &[Status::Created, Status::Open, Status::Pending, Status::Authorized];

/// The transitions of an online payment; those of a manual one are unrestricted.
pub const TRANSITIONS: Transitions<Status> = {
    use Status::{Authorized, Canceled, Chargeback, Created, Expired, Failed, Open, Paid, Pending, Refunded};
    &[
        (Created, &[Open]),
        (Open, &[Pending, Authorized, Paid, Failed, Canceled, Expired]),
        (Pending, &[Paid, Failed, Canceled, Expired]),
        (Authorized, &[Paid, Failed, Canceled, Expired]),
        (Paid, &[Refunded, Chargeback]),
        (Chargeback, &[Paid]),
    ]
};

record! {
    /// A payment of an invoice; a negative amount is a refund.
    pub struct Payment = "payment" in "payments", parent: "invoice_id";

    /// Amount; defaults to the open amount.
    amount: Amount = INPUT.example("100.5");
    /// Payment date; defaults to today.
    date: Day = INPUT.kept().example("\"2026-05-04\"");
    /// Status; defaults to `paid` for a manual payment, `open` for an online one.
    status: Status = INPUT.filter().example("\"paid\"");
    /// `manual` or `online`.
    r#type: PaymentType = INPUT.create_only().filter().example("\"manual\"");
    /// Payment method.
    method: Method = INPUT.example("\"banktransfer\"");
    /// Your own reference or the provider's; unique per invoice.
    external_id: String = INPUT.filter().unique(&["invoice_id"]).example("\"\"");
    /// The provider.
    provider: String = INPUT.example("\"\"");
    /// Your own data about the payment.
    payment_data: Data = INPUT.in_meta().example("{\"bank\": \"statement 12\"}");
    /// The provider's response.
    feedback_data: Data = INPUT.create_only().in_meta().example("{}");
    /// Whether no money moves: the sandbox or a Mollie test key handles it, or a test account only recorded it.
    test: bool = COMPUTED.in_meta();
    /// The URL where the client pays, as the provider gave it.
    checkout_url: String = COMPUTED.shown(NOWHERE);
    /// The invoice.
    invoice_id: Link = COMPUTED.refers("invoices").in_meta();
}

impl Payment {
    /// Returns the URL where the client pays, or empty. It is not read from `feedback_data`, which callers can write.
    pub fn payment_url(&self) -> &str {
        &self.checkout_url
    }
}

impl Model for Payment {
    fn before_save(&mut self, _: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        if self.date.0.is_none() {
            self.date = Day(Some(ctx.now.date(&ctx.zone)));
        }
        let Some(before) = before else { return Ok(()) };
        if self.r#type == PaymentType::Online && self.status != before.status {
            check_transition(TRANSITIONS, &before.status, &self.status, || {
                let (from, to) = (before.status.wire(), self.status.wire());
                format!("An online payment cannot move from {from} to {to}.")
            })?;
        }
        Ok(())
    }

    fn events(&self, before: Option<&Self>) -> Vec<&'static str> {
        let Some(before) = before.filter(|before| before.status != self.status) else { return Vec::new() };
        match (before.status, self.status) {
            (_, Status::Paid) => vec!["paid"],
            (_, Status::Failed | Status::Canceled | Status::Expired) => vec!["failed"],
            (_, Status::Chargeback) => vec!["charged_back"],
            _ => Vec::new(),
        }
    }
}

/// The resource of payments; `patch` and `delete` mark a payment in a bank file first.
pub(crate) fn resource(patch: Handler, delete: Handler) -> Resource {
    Resource::of::<Payment>("Payments", "invoices", MIGRATIONS)
        .at("/v1/invoices/{id}/payments")
        .all::<Payment>()
        .verb(Verb::Create, create)
        .returns(Returns::Parts(BOTH))
        .get::<Payment>()
        .extension()
        .verb(Verb::Patch, patch)
        .returns(Returns::Parts(BOTH))
        .verb(Verb::Delete, delete)
}

/// Fields of the response to a create or update of a payment.
pub(crate) const BOTH: &[Part] = &[
    Part("invoice", "object", "The invoice: `id`, `paid_amount` and `price`."),
    Part("payment", "object", "The payment."),
];

fn create(call: Call) -> Result<Work> {
    let input: Input<Payment> = input::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let (draft, paid): (Invoice, i64) = records::find_beside(tx, ctx, call.id(), &paid_in_all())?;
        let mut invoice = draft.clone();
        let mut payment = input.record();
        payment.invoice_id = Link(invoice.base.id.clone());
        if !input.has("status") && payment.r#type == PaymentType::Online {
            payment.status = Status::Open;
        }
        if !input.has("method") && payment.r#type == PaymentType::Online {
            payment.method = Method::Ideal;
        }
        // The payment determines the status of the invoice, not the status that the caller gave the draft: a draft
        // marked paid would otherwise emit that it is paid after a partial payment.
        if payment.status == Status::Paid && !draft.is_final() {
            invoice.payment_status = PaymentStatus::Draft;
        }
        let finalized = !draft.is_final() && change_to_final(tx, ctx, &draft, &mut invoice)?.0;
        if !input.has("amount") {
            payment.amount = all_that_is_open(&invoice)?;
        }
        check_amount(&payment)?;
        records::add(tx, ctx, &mut payment)?;
        let added = if payment.status == Status::Paid { payment.amount.scaled() } else { 0 };
        let invoice = set_paid(tx, ctx, &invoice, paid.saturating_add(added))?;
        let mut answer = both(ctx, &invoice, &payment, Outcome::Created);
        answer.location = Some(tables::location(&payment));
        let warnings = warned(&invoice, finalized, &input.warnings);
        Ok(with_finalized(answer.with_texts("warnings", &warnings), finalized))
    }))
}

/// Changes a payment.
pub(crate) fn patch(call: Call) -> Result<Work> {
    let input: Input<Payment> = input::patch(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let before: Payment = records::find_to_change(tx, ctx, &call)?;
        let mut payment = before.clone();
        input.merge_into(&mut payment);
        check_amount(&payment)?;
        records::change(tx, ctx, &before, &mut payment, "updated")?;
        let invoice: Invoice = records::find(tx, ctx, call.id())?;
        let invoice = update_invoice(tx, ctx, &invoice)?;
        Ok(both(ctx, &invoice, &payment, Outcome::Done).with_texts("warnings", &input.warnings))
    }))
}

/// Deletes a payment.
pub(crate) fn delete(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let payment: Payment = records::find_to_change(tx, ctx, &call)?;
        records::remove(tx, ctx, &payment)?;
        let invoice: Invoice = records::find(tx, ctx, call.id())?;
        update_invoice(tx, ctx, &invoice)?;
        Ok(Answer::empty())
    }))
}

/// Applies the provider's status through the transitions that lead to it; an impossible status is ignored.
pub(crate) fn apply_provider_status(
    tx: &mut Tx,
    ctx: &Ctx,
    payment: &Payment,
    to: Status,
    said: Option<&Value>,
) -> Result<Payment> {
    let Some(steps) = steps(payment.status, to) else {
        let (from, to) = (payment.status.wire(), to.wire());
        tracing::warn!(payment = %payment.base.id, from, to, "A provider reported a status that is not possible.");
        return Ok(payment.clone());
    };
    let mut now = payment.clone();
    for (place, status) in steps.iter().enumerate() {
        let before = now.clone();
        now.status = *status;
        if let (Some(said), true) = (said, place + 1 == steps.len()) {
            now.feedback_data = now.feedback_data.with(said);
        }
        records::change(tx, ctx, &before, &mut now, "updated")?;
    }
    // Only these changes affect the paid amount of the invoice, or end its collection.
    let is_over = UNDER_WAY.contains(&payment.status) && !UNDER_WAY.contains(&now.status);
    if payment.status != now.status && (is_over || [payment.status, now.status].contains(&Status::Paid)) {
        let invoice: Invoice = records::find(tx, ctx, &payment.invoice_id.0)?;
        update_invoice(tx, ctx, &invoice)?;
    }
    Ok(now)
}

/// Returns the transitions from one status to another: none if they are equal.
fn steps(from: Status, to: Status) -> Option<Vec<Status>> {
    let mut ways = std::collections::VecDeque::from([vec![from]]);
    let mut seen = vec![from];
    while let Some(way) = ways.pop_front() {
        let last = *way.last()?;
        if last == to {
            return Some(way[1..].to_vec());
        }
        for next in TRANSITIONS.iter().filter(|(at, _)| *at == last).flat_map(|(_, next)| *next) {
            if !seen.contains(next) {
                seen.push(*next);
                ways.push_back([way.clone(), vec![*next]].concat());
            }
        }
    }
    None
}

/// Returns the default amount of a payment: the open amount of the invoice, never a refund.
fn all_that_is_open(invoice: &Invoice) -> Result<Amount> {
    let open = invoice.unpaid_amount();
    let is_owed = if invoice.total_incl_vat.scaled() < 0 { open.scaled() < 0 } else { open.scaled() > 0 };
    if is_owed {
        return Ok(open);
    }
    let message = "The invoice has no open amount. Send an amount; a negative amount is a refund.";
    Err(Error::new(Code::InvalidTransition, message))
}

fn check_amount(payment: &Payment) -> Result<()> {
    let mut faults = FieldErrors::default();
    if payment.amount.scaled() == 0 {
        faults.add("amount", violation(FieldCode::OutOfRange, "cannot be 0"));
    }
    faults.into_result()
}

/// Returns the statement that adds up what has been paid of an invoice, in cents. Values: account, id. Sorted in the order of
/// the index on `invoice_id`, so that PostgreSQL uses it even if it knows nothing of the table yet.
fn paid_in_all() -> String {
    format!(
        "SELECT CAST(coalesce(sum(amount), 0) AS BIGINT)
         FROM (SELECT amount FROM payments WHERE account_id = $1 AND invoice_id = $2 AND status = '{}'
               ORDER BY created_at, id) AS paid",
        Status::Paid.wire()
    )
}

/// Adds up the payments and updates the status of the invoice.
pub(crate) fn update_invoice(tx: &mut Tx, ctx: &Ctx, before: &Invoice) -> Result<Invoice> {
    let paid = tx.int(&paid_in_all(), &[ctx.account.into(), (&before.base.id).into()])?;
    set_paid(tx, ctx, before, paid)
}

/// Sets the paid amount of an invoice, in cents, and updates its status.
fn set_paid(tx: &mut Tx, ctx: &Ctx, before: &Invoice, paid: i64) -> Result<Invoice> {
    if (paid < 0) != (before.total_incl_vat.scaled() < 0) && paid != 0 {
        let message = "cannot be more than the amount paid";
        return Err(Error::field("amount", violation(FieldCode::OutOfRange, message)));
    }
    let mut invoice = before.clone();
    let ends = before.is_collected() && !is_collecting(tx, ctx, &before.base.id)?;
    if ends {
        invoice.end_collection();
    }
    // A custom status is kept until the paid amount changes.
    if paid != before.paid_amount.scaled() || (ends && before.payment_status.is_unpaid()) {
        invoice.paid_amount = Amount::from_scaled(paid);
        invoice.update_payment_status(ctx);
    }
    records::change(tx, ctx, before, &mut invoice, "updated")?;
    Ok(invoice)
}

/// Whether a collection of the invoice is in progress.
fn is_collecting(tx: &mut Tx, ctx: &Ctx, invoice: &str) -> Result<bool> {
    let sql = format!(
        "SELECT count(*) FROM payments WHERE account_id = $1 AND invoice_id = $2 AND type = '{}' AND method = '{}'
         AND status IN ({})",
        PaymentType::Online.wire(),
        Method::Banktransfer.wire(),
        Status::sql_list(UNDER_WAY)
    );
    Ok(tx.int(&sql, &[ctx.account.into(), invoice.into()])? > 0)
}

/// Returns the invoice and the payment in one response.
pub(crate) fn both(ctx: &Ctx, invoice: &Invoice, payment: &Payment, outcome: Outcome) -> Answer {
    let mut data = format!(
        "{{\"invoice\":{{\"id\":\"{}\",\"paid_amount\":{},\"price\":{}}},\"payment\":",
        invoice.base.id, invoice.paid_amount, invoice.total_incl_vat
    )
    .into_bytes();
    payment.write_json(DETAIL, ctx, &mut data);
    data.push(b'}');
    let mut answer = Answer { version: Some(payment.base.version), ..Answer::data(outcome, data) };
    if invoice.overpaid() > 0 {
        answer.meta.push(format!("\"overpaid\":{}", Amount::from_scaled(invoice.overpaid())));
    }
    answer
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 52,
    name: "payments",
    sql: "
CREATE TABLE payments (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    amount BIGINT NOT NULL,
    date TEXT NOT NULL,
    status TEXT NOT NULL,
    type TEXT NOT NULL,
    method TEXT NOT NULL,
    external_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    payment_data TEXT NOT NULL,
    feedback_data TEXT NOT NULL,
    invoice_id TEXT NOT NULL,
    test BIGINT NOT NULL DEFAULT 0,
    checkout_url TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX payments_invoice ON payments (account_id, invoice_id, created_at, id);
CREATE UNIQUE INDEX payments_external ON payments (account_id, invoice_id, external_id) WHERE external_id <> '';
CREATE INDEX payments_external_id ON payments (external_id) WHERE external_id <> '';
CREATE INDEX payments_waiting ON payments (account_id, provider, status, created_at, id)
    WHERE status IN ('created', 'open', 'pending', 'authorized');
CREATE INDEX payments_awaited ON payments (account_id, provider, status, created_at, id);
",
}];
