//! Direct debit through the bank: a SEPA file (pain.008) with all pending collections by signed mandates.

use std::collections::HashSet;

use engine::call::{Answer, Call, Content};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, Result, violation};
use engine::input::Input;
use engine::input::pending::Pending;
use engine::record::{ALL, COMPUTED, CREATED, Day, INPUT, Model, NOWHERE, ShownUrl};
use engine::records::{self, Work};
use engine::resource::{Method, RequestBody, Resource, Returns, Verb};
use engine::slice::TOGETHER;
use engine::{choice, log, record};
use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use money::Amount;
use store::{Migration, Tx};

use super::awaiting_file;
use super::handing_over::{self, HandOver};
use super::mandate::MandateStatus;
use super::next_file::{self, LeftOut, NextFile, Waiting};
use super::payment::Payment;
use crate::settings::{Settings, corporate_identity};

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
const ADDRESSES: &[ShownUrl] = &[ShownUrl {
    name: "file_url",
    path: "/v1/direct-debit/batches/{id}/content",
    signed: true,
    views: ALL,
    needs: None,
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

/// Maximum number of times that a file is built for one request.
const MAX_ATTEMPTS: usize = 10;

/// Maximum number of changes to check since the file was built; beyond that, it is built again.
const MAX_CHANGES: usize = 1000;

/// A file that was built before the transaction which keeps it.
struct Built {
    /// The end of the log at that time.
    seq: i64,
    batch: Batch,
    waiting: Vec<Waiting>,
    warnings: Vec<String>,
    left_out: Vec<LeftOut>,
}

/// `POST /v1/direct-debit/batches`: the file is built before the transaction that stores it, which only checks for changes
/// since.
fn create(call: Call) -> Result<Work> {
    attempt(call, 1)
}

fn attempt(call: Call, number: usize) -> Result<Work> {
    let pending: Pending<Batch> = Pending::create_with(&call, |_, _| {}, true)?;
    Ok(Box::new(move |tx, ctx| {
        let mut faults = pending.missing(tx, ctx)?;
        faults.join(collection_date(ctx, pending.values()))?;
        faults.into_result()?;
        creditor(tx, ctx)?;
        let (call, input) = (call.clone(), pending.valid()?.clone());
        Ok(Answer::after(move |app, caller| {
            handing_over::finish(app, caller)?;
            awaiting_file::finish(app, caller)?;
            let (own, input) = (caller.clone(), input.clone());
            let built = app.store.read_now(move |tx| {
                let ctx = own.reading(tx)?;
                build(tx, &ctx, &input)
            });
            Ok(match built {
                Ok(built) if built.waiting.is_empty() => {
                    let refused = Error::new(Code::InvalidTransition, nothing_to_collect(&built.left_out));
                    refuse(built.left_out.into_iter().filter(|one| one.why_canceled().is_some()).collect(), refused)
                }
                Ok(built) => keep(call.clone(), built, number),
                Err(refused) => Box::new(move |_, _| Err(refused.clone())),
            })
        }))
    }))
}

fn build(tx: &mut Tx, ctx: &Ctx, input: &Input<Batch>) -> Result<Built> {
    let seq = log::last(tx, ctx.account)?;
    let mut batch = input.record();
    let date = collection_date(ctx, &batch)?;
    let creditor = creditor(tx, ctx)?;
    batch.collection_date = Day(Some(date));
    let next = NextFile::of(tx, ctx)?;
    batch.amount = next.amount();
    let NextFile { waiting, left_out, warnings, .. } = next;
    let warnings = input.warnings.iter().cloned().chain(warnings).collect();
    if waiting.is_empty() {
        return Ok(Built { seq, batch, waiting, warnings, left_out });
    }
    batch.base.id = ctx.new_id();
    // At most 35 characters, and unique per file.
    batch.message_id = format!("KT{}", batch.base.id.replace('-', ""));
    batch.count = i64::try_from(waiting.len()).unwrap_or(i64::MAX);
    batch.content = file(ctx, &batch, creditor, date, &waiting)?;
    Ok(Built { seq, batch, waiting, warnings, left_out })
}

/// Maximum number of collections that the message about a file without collections names.
const MAX_NAMED: usize = 10;

/// Says why there is nothing to put into a file.
fn nothing_to_collect(left_out: &[LeftOut]) -> String {
    if left_out.is_empty() {
        return "No collections are pending for signed mandates.".to_string();
    }
    let named = left_out.iter().take(MAX_NAMED).map(|one| format!("{} ({})", one.number, one.reason));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match left_out.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("None of the pending collections can be put into a file: {named}{more}.")
}

/// Refuses to create a file without collections, after those were canceled that no file will have: their invoices promise a
/// collection.
fn refuse(ended: Vec<LeftOut>, refused: Error) -> Work {
    Box::new(move |tx, ctx| {
        if ended.is_empty() {
            return Err(refused.clone());
        }
        let (now, later) = ended.split_at(ended.len().min(TOGETHER));
        for one in now {
            one.cancel_if_unchanged(tx, ctx)?;
        }
        let (later, refused) = (later.to_vec(), refused.clone());
        Ok(Answer::after(move |_, _| Ok(refuse(later.clone(), refused.clone()))))
    })
}

/// Saves a file and marks its collections, unless one of its records has changed since it was built: then the file is
/// built again, so that it has no collection that was settled or canceled in the meantime.
fn keep(call: Call, built: Built, number: usize) -> Work {
    Box::new(move |tx, ctx| {
        if built.is_outdated(tx, ctx)? {
            if number == MAX_ATTEMPTS {
                let message = "The collections keep changing while the file is being created; retry shortly.";
                return Err(Error { retry_after: Some(1), ..Error::new(Code::Overloaded, message) });
            }
            let call = call.clone();
            return Ok(Answer::after(move |_, _| attempt(call.clone(), number + 1)));
        }
        let mut batch = built.batch.clone();
        records::insert(tx, ctx, &mut batch)?;
        built.correct(tx, ctx)?;
        let collections = built.waiting.iter().map(|one| (one.payment.base.id.clone(), one.client.base.id.clone()));
        HandOver {
            batch: batch.base.id.clone(),
            message_id: batch.message_id.clone(),
            date: batch.collection_date.text(),
            collections: collections.collect(),
        }
        .begin(tx, ctx)?;
        let mut answer = Answer::created(ctx, &batch, CREATED).with_texts("warnings", &built.warnings);
        if !built.left_out.is_empty() {
            let left_out =
                serde_json::to_string(&built.left_out).map_err(|error| Error::internal(error.to_string()))?;
            answer.meta.push(format!("\"left_out\":{left_out}"));
        }
        Ok(answer)
    })
}

impl Built {
    /// Corrects what was to be collected of invoices that were paid or credited meanwhile.
    fn correct(&self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        for one in self.waiting.iter().filter(|one| one.is_reduced) {
            let before: Payment = records::find(tx, ctx, &one.payment.base.id)?;
            records::change(tx, ctx, &before, &mut one.payment.clone(), "updated")?;
        }
        for one in self.left_out.iter().filter(|one| one.why_canceled().is_some()) {
            let payment: Payment = records::find(tx, ctx, &one.payment_id)?;
            one.cancel(tx, ctx, &payment)?;
        }
        Ok(())
    }

    fn is_outdated(&self, tx: &mut Tx, ctx: &Ctx) -> Result<bool> {
        let touched = log::touched(tx, ctx.account, self.seq, MAX_CHANGES)?;
        if touched.len() == MAX_CHANGES {
            return Ok(true);
        }
        if touched.is_empty() {
            return Ok(false);
        }
        let ids = |one: &'_ Waiting| -> [String; 4] {
            [&one.payment.base.id, &one.invoice_id, &one.client.base.id, &one.mandate.base.id].map(String::clone)
        };
        let left_out = self.left_out.iter().flat_map(|one| [&one.payment_id, &one.invoice_id].map(String::clone));
        let own: HashSet<String> = self.waiting.iter().flat_map(ids).chain(left_out).collect();
        // Another file has the same collections; settings and identities describe the creditor.
        let is_shared = |kind: &str| ["batch", "settings", "corporate_identity"].contains(&kind);
        Ok(touched.iter().any(|(_, kind, id)| is_shared(kind) || own.contains(id)))
    }
}

/// Returns the collection date, which must leave the bank time to process the file.
fn collection_date(ctx: &Ctx, batch: &Batch) -> Result<Date> {
    let today = ctx.now.date(&ctx.zone);
    let date = batch.collection_date.0.unwrap_or_else(|| working_days_after(today, 2));
    if date <= today {
        let message = "must be after today: the bank needs at least one day";
        return Err(Error::field("collection_date", violation(FieldCode::OutOfRange, message)));
    }
    Ok(date)
}

pub(super) fn working_days_after(day: Date, count: usize) -> Date {
    let days = (1..).map_while(|n: i64| day.checked_add(n.days()).ok());
    let mut working = days.filter(|day| !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday));
    working.nth(count.saturating_sub(1)).unwrap_or(day)
}

/// Returns the creditor of the file.
fn creditor(tx: &mut Tx, ctx: &Ctx) -> Result<debits::Creditor> {
    let settings = Settings::of(tx, ctx)?;
    let identity = corporate_identity::default_one(tx, ctx)?;
    if settings.creditor_id.is_empty() || identity.iban.0.is_empty() {
        let message = "Direct debit requires your creditor identifier (creditor_id in /v1/settings) and the IBAN of your default corporate identity.";
        return Err(Error::new(Code::InvalidTransition, message));
    }
    Ok(debits::Creditor {
        name: identity.name.clone(),
        iban: identity.iban.0.clone(),
        bic: non_empty(&identity.bic.0),
        creditor_id: settings.creditor_id,
    })
}

fn non_empty(text: &str) -> Option<String> {
    Some(text.to_string()).filter(|text| !text.is_empty())
}

fn file(ctx: &Ctx, batch: &Batch, creditor: debits::Creditor, date: Date, waiting: &[Waiting]) -> Result<String> {
    let debits = waiting.iter().map(|one| debits::Debit {
        end_to_end_id: one.number.clone(),
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
        debtor_bic: non_empty(&one.client.bic.0),
        text: format!("{} {}", one.number, one.title),
    });
    let whole = debits::Batch {
        message_id: batch.message_id.clone(),
        created: ctx.now.datetime(&ctx.zone),
        collection_date: date,
        scheme: match batch.scheme {
            Scheme::Core => debits::Scheme::Core,
            Scheme::B2b => debits::Scheme::B2b,
        },
        creditor,
        debits: debits.collect(),
    };
    debits::write(&whole).map_err(|invalid| {
        let whose = invalid.debit.and_then(|place| waiting.get(place)).map(|one| format!("{}: ", one.number));
        Error::new(
            Code::InvalidTransition,
            format!("The file cannot be created: {}{}", whose.unwrap_or_default(), invalid.reason),
        )
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
        .returns(Returns::Made(CREATED))
        .extension()
        .get::<Batch>()
        .extension()
        .route(Method::Get, "/waiting", "Retrieve what the next bank file will contain", next_file::get)
        .returns(Returns::Parts(next_file::PARTS))
        .with(|route| route.visits_many = true)
        .extension()
        .route(Method::Get, "/{id}/content", "Download the bank file", content)
        .returns(Returns::Content)
        .extension()
        .or_with("finance.write")
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 55,
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
