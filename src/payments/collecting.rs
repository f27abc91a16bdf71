//! Collecting payments through a provider, by a mandate or paid by the client. The payment is written first; a job
//! requests it from the provider with the payment's id as idempotency key, and records the response.

use engine::accounts::Account;
use engine::app::App;
use engine::call::{Call, Outcome};
use engine::context::{Actor, Ctx};
use engine::due::DueWork;
use engine::error::{Code, Error, Result};
use engine::jobs::{self, Claimed, Ending, Job, Lane, NewJob};
use engine::leases::Confirmed;
use engine::record::{Data, Day, Link, Record};
use engine::records::{self, Work};
use engine::resource::{self, Resource, Returns};
use engine::site::Site;
use engine::{input, tables};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::Tx;

use crate::documents::complete::warned;
use crate::documents::{Invoice, PaymentStatus, make_final, with_finalized};
use crate::payments::batch::working_days_after;
use crate::payments::mandate::{self, Mandate, MandateStatus};
use crate::payments::payment::{self, Method, Payment, PaymentType, Status, UNDER_WAY};
use crate::payments::providers::sandbox;
use crate::payments::providers::{self, PaymentRequest, Provider, ProviderError, ProviderStatus, Purpose, Started};
use crate::payments::verification::{self, Verification};
use crate::relations::client::Client;
use crate::settings::{ProviderName, Settings};

/// Collects the open amount of an invoice if its client has a mandate; returns the payment.
pub(crate) fn begin(tx: &mut Tx, ctx: &Ctx, before: &Invoice) -> Result<Option<Payment>> {
    let mut invoice = before.clone();
    let Some(mandate) = plan(tx, ctx, &mut invoice)? else { return Ok(None) };
    // One that was overdue is not late while it is collected.
    if invoice.payment_status == PaymentStatus::Overdue {
        invoice.update_payment_status(ctx);
    }
    records::change(tx, ctx, before, &mut invoice, "updated")?;
    start(tx, ctx, &invoice, &mandate).map(Some)
}

/// Working days from the request of a collection until the money is debited.
const DAYS_TO_COLLECT: usize = 2;

/// Records in an invoice that it will be collected, and when, if its client has a mandate; returns the mandate. A bank file
/// with a date of its own corrects the day. Without an IBAN no bank file can have it, so the client is asked to pay.
pub(crate) fn plan(tx: &mut Tx, ctx: &Ctx, invoice: &mut Invoice) -> Result<Option<Mandate>> {
    let mandate = match invoice.client_id.0.as_str() {
        "" => None,
        client => mandate::of(tx, ctx, client)?,
    };
    let mandate = mandate.filter(|mandate| mandate.is_ready() && invoice.unpaid_amount().scaled() > 0);
    let Some(mandate) = mandate else { return Ok(None) };
    let client = records::known::<Client>(tx, ctx, &invoice.client_id.0)?;
    if mandate.lacks_iban(&client) {
        return Ok(None);
    }
    let day = working_days_after(ctx.now.date(&ctx.zone), DAYS_TO_COLLECT);
    // A provider collects from the account of its own mandate, which need not be the one that is known here.
    let account = if mandate.is_signed() { &*client.iban.0 } else { "" };
    invoice.begin_collection(day, account);
    Ok(Some(mandate))
}

/// Writes the payment of an invoice that is collected, and enqueues its request to the provider. The bank gets a file.
pub(crate) fn start(tx: &mut Tx, ctx: &Ctx, invoice: &Invoice, mandate: &Mandate) -> Result<Payment> {
    let payment = write(tx, ctx, invoice, mandate.provider, Method::Banktransfer)?;
    if mandate.provider != ProviderName::Manual {
        let id = &payment.base.id;
        let job = NewJob::of(ctx, &Collect { id: id.clone() })?.keyed(format!("collect {id}"));
        jobs::enqueue(tx, ctx, &job)?;
    }
    Ok(payment)
}

fn write(tx: &mut Tx, ctx: &Ctx, invoice: &Invoice, provider: ProviderName, method: Method) -> Result<Payment> {
    let settings = Settings { provider, ..Settings::of(tx, ctx)? };
    let mut payment = Payment {
        amount: invoice.unpaid_amount(),
        date: Day(Some(ctx.now.date(&ctx.zone))),
        status: Status::Created,
        r#type: PaymentType::Online,
        method,
        provider: provider.wire().to_string(),
        test: settings.is_testing_payments(ctx),
        invoice_id: Link(invoice.base.id.clone()),
        ..Payment::default()
    };
    records::add(tx, ctx, &mut payment)?;
    Ok(payment)
}

/// Invoices can be collected.
pub(crate) fn collectable(invoices: Resource) -> Resource {
    invoices
        .route(resource::Method::Post, "/{id}/collect", "Collect an invoice by direct debit", collect)
        .returns(Returns::CreatedParts(payment::BOTH))
        .extension()
}

/// `POST /v1/invoices/{id}/collect`
fn collect(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let mut invoice: Invoice = records::find_to_change(tx, ctx, &call)?;
        let (finalized, _) = make_final(tx, ctx, &mut invoice)?;
        let payment = again(tx, ctx, &invoice)?;
        let mut answer = payment::both(ctx, &invoice, &payment, Outcome::Created);
        answer.location = Some(tables::location(&payment));
        let warnings = warned(&invoice, finalized, &warnings);
        Ok(with_finalized(answer.with_texts("warnings", &warnings), finalized))
    }))
}

/// Collects an invoice at the request of a caller, for the first time or again.
pub(crate) fn again(tx: &mut Tx, ctx: &Ctx, invoice: &Invoice) -> Result<Payment> {
    let refuse = |why: &str| Err(Error::new(Code::InvalidTransition, format!("{} {why}.", invoice.number)));
    // One that was marked paid has none either.
    if invoice.open_amount.scaled() <= 0 {
        return refuse("has no open amount");
    }
    if under_way(tx, ctx, &invoice.base.id, None)?.is_some() {
        return refuse("has a payment in progress; wait until it is completed");
    }
    if let Some(payment) = begin(tx, ctx, invoice)? {
        return Ok(payment);
    }
    let mandate = match invoice.client_id.0.as_str() {
        "" => None,
        client => mandate::of(tx, ctx, client)?.filter(Mandate::is_ready),
    };
    match mandate {
        None => refuse("cannot be collected: its client has no valid mandate"),
        Some(_) => {
            let client = records::known::<Client>(tx, ctx, &invoice.client_id.0)?;
            refuse(&format!(
                "cannot be collected: {} has no IBAN, which the bank file needs. Set iban of the client and collect it again",
                client.name()
            ))
        }
    }
}

/// Returns the online payment of an invoice that is in progress, with this method or any.
fn under_way(tx: &mut Tx, ctx: &Ctx, invoice: &str, method: Option<Method>) -> Result<Option<Payment>> {
    let (select, under_way) = (&Payment::sql().select, Status::sql_list(UNDER_WAY));
    let sql = format!(
        "{select} WHERE account_id = $1 AND invoice_id = $2 AND type = '{}'
         AND status IN ({under_way}) ORDER BY created_at DESC, id DESC",
        PaymentType::Online.wire()
    );
    let found = tx.all(&sql, &[ctx.account.into(), invoice.into()], Payment::from_row)?;
    // One of the sandbox can no longer be paid when the account has switched to another provider.
    let uses_sandbox = Settings::of(tx, ctx)?.provider == ProviderName::Sandbox;
    let is_over = |payment: &Payment| !uses_sandbox && payment.test && payment.provider == ProviderName::Sandbox.wire();
    let mut open = found.into_iter().filter(|payment| !is_over(payment));
    Ok(open.find(|payment| method.is_none_or(|method| payment.method == method)))
}

/// Returns the payment by which a client pays an invoice on its page: the open one, or a new one.
pub(crate) fn pay_online(tx: &mut Tx, ctx: &Ctx, invoice: &Invoice) -> Result<Payment> {
    let provider = Settings::of(tx, ctx)?.provider;
    // One that is being collected would be paid twice.
    if !can_pay_online(tx, ctx)? || invoice.unpaid_amount().scaled() <= 0 || invoice.is_collected() {
        let message = "This invoice cannot be paid online.";
        return Err(Error::new(Code::InvalidTransition, message));
    }
    // One that a caller recorded has no page.
    let leads_on = |payment: &Payment| payment.status == Status::Created || !payment.payment_url().is_empty();
    let fits = |payment: &Payment| payment.amount == invoice.unpaid_amount() && payment.provider == provider.wire();
    match under_way(tx, ctx, &invoice.base.id, Some(Method::Ideal))? {
        Some(payment) if fits(&payment) && leads_on(&payment) => Ok(payment),
        _ => write(tx, ctx, invoice, provider, Method::Ideal),
    }
}

/// Whether clients can pay on the pages of invoices.
pub(crate) fn can_pay_online(tx: &mut Tx, ctx: &Ctx) -> Result<bool> {
    let settings = Settings::of(tx, ctx)?;
    Ok(settings.online_payments && settings.can_take_online_payments(ctx))
}

/// Whether no money moves in the payments on the page of an invoice or in its collection, or moved in those that were made.
pub(crate) fn is_test(tx: &mut Tx, ctx: &Ctx, invoice: &str) -> Result<bool> {
    let settings = Settings::of(tx, ctx)?;
    if settings.online_payments && settings.is_testing_payments(ctx) {
        return Ok(true);
    }
    if under_way(tx, ctx, invoice, None)?.is_some_and(|payment| payment.test) {
        return Ok(true);
    }
    let sql = "SELECT count(*) FROM payments WHERE account_id = $1 AND invoice_id = $2 AND status = $3 AND test = 1";
    Ok(tx.int(sql, &[ctx.account.into(), invoice.into(), Status::Paid.wire().into()])? > 0)
}

/// The data of a payment request.
struct Collection {
    payment: Payment,
    invoice: Invoice,
    client: Client,
    customer_id: String,
    mandate_id: String,
    settings: Settings,
}

fn case(app: &App, caller: &Actor, id: &str) -> Result<Collection> {
    let (own, id) = (caller.clone(), id.to_string());
    app.store.read_now(move |tx| {
        let ctx = own.reading(tx)?;
        let payment: Payment = records::find(tx, &ctx, &id)?;
        let invoice: Invoice = records::find(tx, &ctx, &payment.invoice_id.0)?;
        let client: Client = match invoice.client_id.0.as_str() {
            "" => Client::default(),
            client => records::find(tx, &ctx, client)?,
        };
        let mandate = mandate::of(tx, &ctx, &client.base.id)?.unwrap_or_default();
        let (customer_id, mandate_id) = (mandate.customer_id, mandate.mandate_id);
        Ok(Collection { payment, invoice, client, customer_id, mandate_id, settings: Settings::with_key(tx, &ctx)? })
    })
}

fn provider_of(app: &App, case: &Collection) -> Result<Box<dyn Provider>, ProviderError> {
    let Some(name) = ProviderName::from_wire(&case.payment.provider) else {
        return Err(ProviderError::Never(format!("No provider is called '{}'.", case.payment.provider)));
    };
    providers::named(app, name, &case.settings)
}

/// Requests a payment from the provider and records the response; returns the payment. Runs outside any transaction and
/// is idempotent: the provider sees one payment.
pub(crate) fn ask(app: &App, caller: &Actor, id: &str, again: bool) -> Result<Result<Payment, ProviderError>> {
    let read = Confirmed::now();
    let case = case(app, caller, id)?;
    if case.payment.status != Status::Created {
        return Ok(Ok(case.payment));
    }
    if !read.is_certain() {
        // This process was paused: another may have requested it, so long ago that the provider has forgotten the key.
        return ask(app, caller, id, true);
    }
    let wish = if case.payment.method == Method::Ideal { Purpose::Once } else { Purpose::Collection };
    let asked = provider_of(app, &case).and_then(|provider| {
        provider.start(&PaymentRequest {
            wish,
            key: id.to_string(),
            again,
            amount: case.payment.amount,
            description: format!("{} {}", case.invoice.number, case.invoice.title),
            customer_id: if wish == Purpose::Collection { case.customer_id.clone() } else { String::new() },
            client_id: case.client.base.id.clone(),
            name: case.client.name(),
            email: case.client.email.0.clone(),
            mandate_id: if wish == Purpose::Collection { case.mandate_id.clone() } else { String::new() },
            back: app.site.address(&format!("/d/{}", case.invoice.token)),
            news: app.site.address(&format!("/hooks/mollie/{}/payment/{id}", caller.account.uid)),
        })
    });
    match asked {
        Ok(started) => {
            let (own, id) = (caller.clone(), id.to_string());
            let written = app.store.write_now(caller.account.number, move |tx| {
                let ctx = own.writing(tx)?;
                accepted(tx, &ctx, &id, &started, wish)
            });
            Ok(Ok(written?))
        }
        Err(trouble) => Ok(Err(trouble)),
    }
}

/// Records that the provider accepted a payment.
fn accepted(tx: &mut Tx, ctx: &Ctx, id: &str, started: &Started, wish: Purpose) -> Result<Payment> {
    let before: Payment = records::find(tx, ctx, id)?;
    if before.status != Status::Created {
        return Ok(before);
    }
    let mut payment = before.clone();
    payment.status = Status::Open;
    payment.external_id.clone_from(&started.external_id);
    payment.test = started.test;
    payment.feedback_data = Data::from(json!({"payment_url": started.payment_url}));
    payment.checkout_url.clone_from(&started.payment_url);
    records::change(tx, ctx, &before, &mut payment, "updated")?;
    let payment = payment::apply_provider_status(tx, ctx, &payment, started.status, None)?;
    if wish == Purpose::Collection {
        let invoice: Invoice = records::find(tx, ctx, &payment.invoice_id.0)?;
        mandate::change(tx, ctx, &invoice.client_id.0, |mandate| {
            if mandate.status == MandateStatus::Authorized {
                mandate.status = MandateStatus::Active;
            }
        })?;
    }
    Ok(payment)
}

/// The job that requests a collection. If the provider rejects it, the payment has failed.
#[derive(Serialize, Deserialize)]
pub struct Collect {
    /// The payment.
    id: String,
}

impl Job for Collect {
    const KIND: &'static str = "collect";
    const LANE: Lane = Lane::Outside;
    const AWAITED: bool = true;

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        let caller = app.acting_in(claimed.account, "provider")?;
        match ask(app, &caller, &self.id, claimed.attempts > 1)? {
            Ok(_) => Ok(Ending::Done),
            Err(ProviderError::Later(why)) if claimed.has_tries_left() => Ok(Ending::Failed(why)),
            Err(trouble) => {
                let id = self.id.clone();
                app.store.write_now(claimed.account, move |tx| {
                    let ctx = caller.writing(tx)?;
                    let payment: Payment = records::find(tx, &ctx, &id)?;
                    let why = json!({"reason": trouble.words()});
                    payment::apply_provider_status(tx, &ctx, &payment, Status::Failed, Some(&why)).map(drop)
                })?;
                Ok(Ending::Done)
            }
        }
    }
}

/// The kind of record that a provider knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A payment.
    Payment,
    /// The verification of a bank account.
    Verification,
}

impl Subject {
    /// Returns the subject with this name in the URL of a provider's webhook.
    pub fn named(name: &str) -> Option<Subject> {
        match name {
            "payment" => Some(Subject::Payment),
            "verification" => Some(Subject::Verification),
            _ => None,
        }
    }

    /// Returns its table.
    pub fn table(self) -> &'static str {
        match self {
            Subject::Payment => "payments",
            Subject::Verification => "verifications",
        }
    }
}

/// Enqueues a status request for a payment or a verification. If one is running, enqueues another: the status may have
/// changed after its request.
pub(crate) fn look_soon(tx: &mut Tx, ctx: &Ctx, kind: Subject, id: &str) -> Result<()> {
    let first = format!("news {id}");
    let key = if jobs::is_under_way(tx, &first)? { format!("{first} again") } else { first };
    let job = NewJob::of(ctx, &ProviderNews { id: id.to_string(), kind })?.keyed(key);
    jobs::enqueue(tx, ctx, &job)
}

/// The job that requests a status from the provider and applies it here. The order of notifications does not matter:
/// the provider's current status counts.
#[derive(Serialize, Deserialize)]
pub struct ProviderNews {
    id: String,
    kind: Subject,
}

impl Job for ProviderNews {
    const KIND: &'static str = "provider_news";
    const LANE: Lane = Lane::Outside;

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        let caller = app.acting_in(claimed.account, "provider")?;
        let looked = match self.kind {
            Subject::Verification => look_at_verification(app, &caller, &self.id),
            Subject::Payment => look_at_payment(app, &caller, &self.id),
        };
        match looked? {
            Ok(()) | Err(ProviderError::Never(_)) => Ok(Ending::Done),
            Err(ProviderError::Later(why)) => Ok(Ending::Failed(why)),
        }
    }
}

fn look(
    provider: Result<Box<dyn Provider>, ProviderError>,
    external_id: &str,
) -> Result<ProviderStatus, ProviderError> {
    if external_id.is_empty() {
        return Err(ProviderError::Later("its start has not been recorded yet".to_string()));
    }
    provider?.look(external_id)
}

fn look_at_payment(app: &App, caller: &Actor, id: &str) -> Result<Result<(), ProviderError>> {
    let case = case(app, caller, id)?;
    let news = match look(provider_of(app, &case), &case.payment.external_id) {
        Ok(news) => news,
        Err(trouble) => return Ok(Err(trouble)),
    };
    let (own, id) = (caller.clone(), id.to_string());
    app.store.write_now(caller.account.number, move |tx| {
        let ctx = own.writing(tx)?;
        let payment: Payment = records::find(tx, &ctx, &id)?;
        payment::apply_provider_status(tx, &ctx, &payment, news.status, Some(&news.details)).map(drop)
    })?;
    Ok(Ok(()))
}

fn look_at_verification(app: &App, caller: &Actor, id: &str) -> Result<Result<(), ProviderError>> {
    let (own, key) = (caller.clone(), id.to_string());
    let (verification, settings) = app.store.read_now(move |tx| {
        let ctx = own.reading(tx)?;
        Ok::<_, Error>((records::find::<Verification>(tx, &ctx, &key)?, Settings::with_key(tx, &ctx)?))
    })?;
    let news = match look(providers::named(app, verification.provider, &settings), &verification.external_id) {
        Ok(news) => news,
        Err(trouble) => return Ok(Err(trouble)),
    };
    let (own, id) = (caller.clone(), id.to_string());
    let waits = news.status == Status::Paid && !matches!(news.mandate, Some((_, true)));
    app.store.write_now(caller.account.number, move |tx| {
        let ctx = own.writing(tx)?;
        let verification: Verification = records::find(tx, &ctx, &id)?;
        verification::apply_provider_status(tx, &ctx, &verification, news.status, news.mandate.clone())
    })?;
    Ok(if waits { Err(ProviderError::Later("the mandate cannot be used yet".to_string())) } else { Ok(()) })
}

/// Finds the record that the sandbox created under this id, in any account; returns the account, the id, and whether it
/// is a verification.
pub(crate) fn in_sandbox(tx: &mut Tx, site: &Site, external_id: &str) -> Result<Option<(Account, String, bool)>> {
    for (table, is_verification) in [("verifications", true), ("payments", false)] {
        let sql = format!(
            "SELECT account_id, id FROM {table} WHERE external_id = $1 AND external_id <> '' AND provider = '{}'",
            ProviderName::Sandbox.wire()
        );
        let found =
            tx.all(&sql, &[external_id.into()], |row| Ok::<_, Error>((row.int(0)?, row.text(1)?.to_string())))?;
        // Callers choose the ids of their own payments.
        let made = found.into_iter().find(|(_, id)| sandbox::external_id(site, id) == external_id);
        if let Some((account, id)) = made {
            return Ok(Some((Account::numbered(tx, account)?, id, is_verification)));
        }
    }
    Ok(None)
}

/// Requests the status of payments in progress every hour.
pub const DUE: DueWork = DueWork { hourly: ask_after, ..DueWork::NOTHING };

/// Enqueues a status request for everything in progress at a provider, in case a notification was lost.
fn ask_after(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    for kind in [Subject::Payment, Subject::Verification] {
        let sql = format!(
            "SELECT id FROM {} WHERE account_id = $1 AND provider = '{}' AND status IN ({}) LIMIT 500",
            kind.table(),
            ProviderName::Mollie.wire(),
            Status::sql_list(payment::ASKED)
        );
        let ids = tx.all(&sql, &[ctx.account.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
        for id in ids {
            look_soon(tx, ctx, kind, &id)?;
        }
    }
    Ok(())
}
