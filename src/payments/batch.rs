//! Direct debit through the bank: a SEPA file (pain.008) with all pending collections by signed mandates.

use engine::call::{Answer, Call, Content};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, Result, violation};
use engine::input::{self, Input};
use engine::record::{ALL, Address, COMPUTED, CREATED, Day, INPUT, Model, NOWHERE, Record};
use engine::records::{self, Work};
use engine::resource::{Method, RequestBody, Resource, Returns, Verb};
use engine::{choice, record};
use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use money::Amount;
use serde_json::json;
use store::{Migration, Tx};

use super::mandate::{self, Mandate, MandateStatus};
use super::payment::{self, Payment, Status};
use crate::documents::Invoice;
use crate::relations::client::Client;
use crate::settings::{ProviderName, Settings, corporate_identity};

choice! {
    /// The SEPA scheme.
    pub enum Scheme {
        /// The core scheme.
        #[default]
        Core = "core",
        /// The business-to-business scheme.
        B2b = "b2b",
    }
}

/// The URL of the file.
const ADDRESSES: &[Address] = &[Address {
    name: "file_url",
    path: "/v1/direct-debit/batches/{id}/content",
    signed: true,
    views: ALL,
    doc: "URL of the bank file, valid for a day without a key.",
}];

record! {
    /// A direct debit file for the bank.
    pub struct Batch = "batch" in "batches", created_at: ALL, addresses: ADDRESSES;

    /// Collection date; defaults to two working days from now.
    collection_date: Day = INPUT.create_only().example("\"\"");
    /// `core`, or `b2b` for businesses only.
    scheme: Scheme = INPUT.create_only().example("\"core\"");
    /// Message id of the file at the bank.
    message_id: String = COMPUTED;
    /// Number of debits.
    count: i64 = COMPUTED;
    /// Total amount.
    amount: Amount = COMPUTED;
    /// The file.
    content: String = COMPUTED.shown(NOWHERE);
}

impl Model for Batch {}

/// The most debits in a file.
const MAX_PAYMENTS: i64 = 10_000;

/// A pending payment with the details that the bank requires.
struct Waiting {
    payment: Payment,
    invoice: Invoice,
    client: Client,
    mandate: Mandate,
}

/// `POST /v1/direct-debit/batches`
fn create(call: Call) -> Result<Work> {
    let input: Input<Batch> = input::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let mut batch = input.record();
        let today = ctx.now.date(&ctx.zone);
        let date = batch.collection_date.0.unwrap_or_else(|| working_days_after(today, 2));
        if date <= today {
            let message = "must be after today: the bank needs at least one day";
            return Err(Error::field("collection_date", violation(FieldCode::OutOfRange, message)));
        }
        batch.collection_date = Day(Some(date));
        let mut warnings = input.warnings.clone();
        let waiting = waiting(tx, ctx, &mut warnings)?;
        if waiting.is_empty() {
            let message = "No collections are pending for signed mandates.";
            return Err(Error::new(Code::InvalidTransition, message));
        }
        batch.base.id = ctx.new_id();
        // At most 35 characters, and unique per file.
        batch.message_id = format!("KT{}", batch.base.id.replace('-', ""));
        batch.count = i64::try_from(waiting.len()).unwrap_or(i64::MAX);
        batch.amount = Amount::from_scaled(waiting.iter().map(|one| one.payment.amount.scaled()).sum());
        batch.content = file(tx, ctx, &batch, date, &waiting)?;
        records::insert(tx, ctx, &mut batch)?;
        for one in &waiting {
            hand_over(tx, ctx, one, &batch)?;
        }
        Ok(Answer::created(ctx, &batch, CREATED).with_texts("warnings", &warnings))
    }))
}

fn working_days_after(day: Date, count: usize) -> Date {
    let days = (1..).map_while(|n: i64| day.checked_add(n.days()).ok());
    let mut working = days.filter(|day| !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday));
    working.nth(count.saturating_sub(1)).unwrap_or(day)
}

/// Returns the pending collections; adds a warning for each one that cannot be collected.
fn waiting(tx: &mut Tx, ctx: &Ctx, warnings: &mut Vec<String>) -> Result<Vec<Waiting>> {
    let sql = format!(
        "{} WHERE account_id = $1 AND provider = '{}' AND status = '{}' ORDER BY created_at, id LIMIT $2",
        Payment::sql().select,
        ProviderName::Manual.wire(),
        Status::Created.wire()
    );
    let mut waiting = Vec::new();
    for payment in tx.all(&sql, &[ctx.account.into(), MAX_PAYMENTS.into()], Payment::from_row)? {
        let invoice: Invoice = records::find(tx, ctx, &payment.invoice_id.0)?;
        let client: Client = records::find(tx, ctx, &invoice.client_id.0)?;
        let mandate = mandate::of(tx, ctx, &client.base.id)?.filter(Mandate::is_ready);
        match mandate {
            Some(mandate) if !client.iban.0.is_empty() => waiting.push(Waiting { payment, invoice, client, mandate }),
            Some(_) => warnings.push(format!("{} was left out: {} has no IBAN.", invoice.number, client.name())),
            None => warnings.push(format!("{} was left out: {} has no mandate.", invoice.number, client.name())),
        }
    }
    Ok(waiting)
}

fn file(tx: &mut Tx, ctx: &Ctx, batch: &Batch, date: Date, waiting: &[Waiting]) -> Result<String> {
    let settings = Settings::of(tx, ctx)?;
    let identity = corporate_identity::default_one(tx, ctx)?;
    if settings.creditor_id.is_empty() || identity.iban.0.is_empty() {
        let message = "Direct debit requires your creditor identifier (creditor_id in /v1/settings) and the IBAN of your default corporate identity.";
        return Err(Error::new(Code::InvalidTransition, message));
    }
    let some = |text: &str| Some(text.to_string()).filter(|text| !text.is_empty());
    let debits = waiting.iter().map(|one| debits::Debit {
        end_to_end_id: one.invoice.number.clone(),
        amount: one.payment.amount,
        mandate_id: one.mandate.mandate_id.clone(),
        mandate_date: one.mandate.signed_on.0.unwrap_or(date),
        sequence: match one.mandate.status {
            MandateStatus::Active => debits::Sequence::Recurring,
            _ => debits::Sequence::First,
        },
        debtor_name: match one.client.bank_account_name.as_str() {
            "" => one.client.name(),
            name => name.to_string(),
        },
        debtor_iban: one.client.iban.0.clone(),
        debtor_bic: some(&one.client.bic.0),
        text: format!("{} {}", one.invoice.number, one.invoice.title),
    });
    let whole = debits::Batch {
        message_id: batch.message_id.clone(),
        created: ctx.now.datetime(&ctx.zone),
        collection_date: date,
        scheme: match batch.scheme {
            Scheme::Core => debits::Scheme::Core,
            Scheme::B2b => debits::Scheme::B2b,
        },
        creditor: debits::Creditor {
            name: identity.name.clone(),
            iban: identity.iban.0.clone(),
            bic: some(&identity.bic.0),
            creditor_id: settings.creditor_id,
        },
        debits: debits.collect(),
    };
    debits::write(&whole).map_err(|invalid| {
        let whose = invalid.debit.and_then(|place| waiting.get(place)).map(|one| format!("{}: ", one.invoice.number));
        Error::new(
            Code::InvalidTransition,
            format!("The file cannot be created: {}{invalid}.", whose.unwrap_or_default()),
        )
    })
}

/// Marks a payment as handed over to the bank.
fn hand_over(tx: &mut Tx, ctx: &Ctx, one: &Waiting, batch: &Batch) -> Result<()> {
    let said = json!({"batch_id": batch.base.id, "message_id": batch.message_id});
    payment::apply_provider_status(tx, ctx, &one.payment, Status::Pending, Some(&said))?;
    mandate::change(tx, ctx, &one.client.base.id, |mandate| {
        if mandate.status == MandateStatus::Authorized {
            mandate.status = MandateStatus::Active;
        }
    })
}

fn content(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let batch: Batch = records::find(tx, ctx, call.id())?;
        Ok(Answer::content(Content::Written {
            name: format!("{}.xml", batch.message_id),
            content_type: "application/xml".to_string(),
            text: batch.content,
        }))
    }))
}

/// The resource of direct debit batches.
pub fn resource() -> Resource {
    Resource::of::<Batch>("Direct debit batches", "relations", MIGRATIONS)
        .at("/v1/direct-debit/batches")
        .list::<Batch>()
        .extension()
        .verb(Verb::Create, create)
        .body::<Batch>(RequestBody::Body)
        .extension()
        .get::<Batch>()
        .extension()
        .route(Method::Get, "/{id}/content", "Download the bank file", content)
        .returns(Returns::Content)
        .extension()
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 43,
    name: "batches",
    sql: "
CREATE TABLE batches (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    collection_date TEXT NOT NULL,
    scheme TEXT NOT NULL,
    message_id TEXT NOT NULL,
    count BIGINT NOT NULL,
    amount BIGINT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX batches_created ON batches (account_id, created_at, id);
",
}];
