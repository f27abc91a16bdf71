//! Verifications: a client makes a small payment through the provider and thereby gives a direct debit mandate. The
//! provider is called between two transactions; a job completes a verification that was interrupted there.

use engine::app::App;
use engine::call::{Answer, Call, Outcome};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, Violation, violation};
use engine::input::Input;
use engine::jobs::{self, Claimed, Ending, Job, Lane, NewJob};
use engine::json::Json;
use engine::record::{Body, COMPUTED, Day, INPUT, Kind, Link, Model, NOWHERE, Record, Rules};
use engine::records::{self, Work};
use engine::resource::{Part, RequestBody, Resource, Returns, Verb};
use engine::{input, record, tables};
use money::Amount;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{Migration, Row, Tx};

use super::mandate::{self, MandateStatus};
use super::payment::{Status, UNDER_WAY};
use crate::payments::providers::{self, PaymentRequest, ProviderError, Purpose, Started};
use crate::relations::client::Client;
use crate::settings::{ProviderName, Settings};

record! {
    /// A small payment that establishes a client's direct debit mandate.
    pub struct Verification = "verification" in "verifications", parent: "client_id";

    /// Status of the payment.
    status: Status = COMPUTED;
    /// Amount that the client pays.
    amount: Amount = COMPUTED;
    /// The provider.
    provider: ProviderName = COMPUTED;
    /// The provider's id of the payment.
    external_id: String = COMPUTED;
    /// URL where the client pays.
    payment_url: String = COMPUTED;
    /// The provider's id of the client.
    customer_id: String = COMPUTED;
    /// Whether it replaced an earlier, unpaid verification.
    canceled_previous: bool = COMPUTED;
    /// Whether no money moves: the sandbox or a Mollie test key handles it, or a test account only recorded it.
    test: bool = COMPUTED.in_meta();
    /// The client.
    client_id: Link = COMPUTED.refers("clients").owned().in_meta();
    /// The idempotency key of the request that created it, to resume it.
    claim: String = COMPUTED.shown(NOWHERE);
}

impl Model for Verification {}

/// `{"amount": "0.01"}`, if sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nested(Option<Amount>);

impl Kind for Nested {
    const NAME: &'static str = "data";

    fn to_db(&self) -> store::Value<'_> {
        "".into()
    }

    fn from_db(_: &Row, _: usize) -> store::Result<Self> {
        Ok(Nested::default())
    }

    fn from_json(json: &Json, rules: &Rules) -> Result<Self, Violation> {
        let Json::Object(members) = json else {
            return Err(violation(FieldCode::WrongType, format!("must be an object, not {}", json.kind())));
        };
        let mut faults = FieldErrors::default();
        let mut amount = None;
        for (key, json) in members {
            match key.as_str() {
                "amount" if *json == Json::Null => {}
                "amount" => amount = faults.take(".amount", Amount::from_json(json, rules)),
                _ => {
                    let shown: String = key.chars().take(100).collect();
                    faults.add(format!(".{shown}"), violation(FieldCode::UnknownField, "is not a known field here"));
                }
            }
        }
        faults.inside()?;
        Ok(Nested(amount))
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{}");
    }

    fn schema(_: &Rules) -> Value {
        let amount = json!({
            "type": ["number", "string", "null"], "minimum": 0, "maximum": 1000, "pattern": "^[0-9]{1,4}(\\.[0-9]{1,2})?$",
        });
        json!({"type": "object", "additionalProperties": false, "properties": {"amount": amount}})
    }
}

input! {
    /// What is sent to make a verification.
    pub struct NewVerification;

    /// Amount that the client pays; defaults to the setting.
    amount: Amount = INPUT.between(0, 1000).example("\"0.01\"");
    /// The same fields, nested.
    verification: Nested = INPUT.between(0, 1000).example("{\"amount\": \"0.01\"}");
}

impl Body for NewVerification {}

impl NewVerification {
    /// Returns the amount to pay, and validates the field that sets it.
    fn wanted(&self, input: &Input<NewVerification>, usual: Amount) -> Result<Amount> {
        let (field, amount) = match self.verification.0 {
            _ if input.has("amount") => ("amount", self.amount),
            Some(amount) => ("verification.amount", amount),
            None => return Ok(usual),
        };
        if amount.scaled() <= 0 {
            return Err(Error::field(field, violation(FieldCode::OutOfRange, "must be more than 0")));
        }
        Ok(amount)
    }
}

/// Fields of the response to a create.
const PARTS: &[Part] = &[
    Part("status", "string", "`created`."),
    Part("payment_url", "string", "URL where the client pays."),
    Part("external_id", "string", "The provider's id of the payment."),
    Part("amount", "string", "Amount that the client pays."),
    Part("provider", "string", "The provider."),
    Part("canceled_previous", "boolean", "Whether it replaced an earlier, unpaid verification."),
    Part("meta", "object", "Details; `test` is true if no money moves."),
];

/// `POST /v1/clients/{id}/direct-debit/verification`
fn create(call: Call) -> Result<Work> {
    let input: Input<NewVerification> = input::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let client: Client = records::find(tx, ctx, call.id())?;
        let settings = Settings::of(tx, ctx)?;
        if settings.provider == ProviderName::Manual {
            let message = "The account collects through its bank. Record the signed mandate of the client instead.";
            return Err(Error::new(Code::InvalidTransition, message));
        }
        let amount = input.record().wanted(&input, settings.verification_amount)?;
        let verification = begin(tx, ctx, &client, settings.provider, amount, &call.claim)?;
        let (id, warnings) = (verification.base.id, input.warnings.clone());
        Ok(Answer::after(move |app, caller| {
            let number = caller.account.number;
            let started = ask(app, number, &id, false).map_err(|trouble| refused(app, number, &id, trouble))?;
            let (id, warnings) = (id.clone(), warnings.clone());
            Ok(Box::new(move |tx, ctx| {
                let Some(verification) = finish(tx, ctx, &id, &started)? else {
                    // Returned after the commit, so that the provider's response is kept.
                    return Ok(Answer::after(|_, _| Err(replaced())));
                };
                let mut answer = Answer::json(&shown(&verification)).with_texts("warnings", &warnings);
                answer.outcome = Outcome::Created;
                answer.location = Some(tables::location(&verification));
                answer.version = Some(verification.base.version);
                Ok(answer)
            }))
        }))
    }))
}

fn shown(verification: &Verification) -> Value {
    let cents = verification.amount.scaled();
    json!({
        "status": "created", "payment_url": verification.payment_url, "external_id": verification.external_id,
        "amount": format!("{}.{:02}", cents / 100, cents % 100), "provider": verification.provider.wire(),
        "canceled_previous": verification.canceled_previous,
        "meta": {"id": verification.base.id, "created_at": verification.base.created_at.to_string(),
                 "client_id": verification.client_id.0, "customer_id": verification.customer_id,
                 "test": verification.test},
    })
}

fn replaced() -> Error {
    let message = "Another verification of this client replaced this one while it was being created. Use that one.";
    Error::new(Code::InvalidTransition, message)
}

/// The first transaction: cancels a pending verification, unless the caller resumes it.
fn begin(
    tx: &mut Tx,
    ctx: &Ctx,
    client: &Client,
    provider: ProviderName,
    amount: Amount,
    claim: &str,
) -> Result<Verification> {
    // A key that cannot be decrypted is named before anything happens.
    if provider == ProviderName::Mollie {
        Settings::with_key(tx, ctx)?;
    }
    let mut canceled_previous = false;
    if let Some(before) = awaited(tx, ctx, &client.base.id)? {
        if before.status == Status::Created && before.claim == claim && !claim.is_empty() {
            return Ok(before);
        }
        let mut previous = before.clone();
        previous.status = Status::Canceled;
        records::update(tx, ctx, &before, &mut previous, "updated")?;
        break_off(tx, ctx, &previous)?;
        canceled_previous = true;
    }
    let customer_id = mandate::of(tx, ctx, &client.base.id)?.filter(|mandate| mandate.provider == provider);
    let mut verification = Verification {
        status: Status::Created,
        amount,
        provider,
        customer_id: customer_id.map(|mandate| mandate.customer_id).unwrap_or_default(),
        canceled_previous,
        client_id: Link(client.base.id.clone()),
        claim: claim.to_string(),
        ..Verification::default()
    };
    records::insert(tx, ctx, &mut verification)?;
    mandate::change(tx, ctx, &client.base.id, |mandate| {
        // A usable mandate is kept until a new one replaces it.
        if !mandate.is_ready() {
            mandate.provider = provider;
            mandate.status = MandateStatus::Pending;
        }
    })?;
    let id = &verification.base.id;
    let net = NewJob::of(ctx, &FinishVerification { id: id.to_string() })?.keyed(finish_key(id)).after(60);
    jobs::enqueue(tx, ctx, &net)?;
    Ok(verification)
}

/// Returns the verification of a client that can still be paid.
fn awaited(tx: &mut Tx, ctx: &Ctx, client: &str) -> Result<Option<Verification>> {
    let (select, under_way) = (&Verification::sql().select, Status::sql_list(UNDER_WAY));
    let sql = format!(
        "{select} WHERE account_id = $1 AND client_id = $2 AND status IN ({under_way})
         ORDER BY created_at DESC, id DESC LIMIT 1"
    );
    Ok(tx.first(&sql, &[ctx.account.into(), client.into()], Verification::from_row)?)
}

/// Enqueues the cancellation of a verification's payment. A payment whose id is not known yet is cancelled when it is.
fn break_off(tx: &mut Tx, ctx: &Ctx, verification: &Verification) -> Result<()> {
    if verification.external_id.is_empty() {
        return Ok(());
    }
    let provider = verification.provider.wire().to_string();
    let cancel = CancelAtProvider { provider, external_id: verification.external_id.clone() };
    let job = NewJob::of(ctx, &cancel)?.keyed(format!("provider_cancel {}", verification.base.id));
    jobs::enqueue(tx, ctx, &job)
}

/// The unique key of the job that completes a verification.
fn finish_key(id: &str) -> String {
    format!("verification {id}")
}

/// Requests the payment from the provider, outside any transaction.
fn ask(app: &App, account: i64, id: &str, again: bool) -> Result<Started, ProviderError> {
    let later = |error: Error| ProviderError::Later(error.to_string());
    let caller = app.acting_in(account, "provider").map_err(later)?;
    let (own, uid) = (id.to_string(), caller.account.uid.clone());
    let read = app.store.read_now(move |tx| {
        let ctx = caller.reading(tx)?;
        let verification: Verification = records::find(tx, &ctx, &own)?;
        let client: Client = records::find(tx, &ctx, &verification.client_id.0)?;
        Ok::<_, Error>((verification, client, Settings::with_key(tx, &ctx)?))
    });
    let (verification, client, settings) = read.map_err(later)?;
    let provider = providers::named(app, verification.provider, &settings)?;
    provider.start(&PaymentRequest {
        wish: Purpose::Mandate,
        key: id.to_string(),
        again,
        amount: verification.amount,
        description: "Machtiging / Direct debit mandate".to_string(),
        customer_id: verification.customer_id.clone(),
        client_id: client.base.id.clone(),
        name: client.name(),
        email: client.email.0.clone(),
        mandate_id: String::new(),
        back: app.site.address("/thanks"),
        news: app.site.address(&format!("/hooks/mollie/{uid}/verification/{id}")),
    })
}

/// Returns the error for the caller when the provider did not accept the request. A permanent rejection ends the
/// verification; otherwise the job retries.
fn refused(app: &App, account: i64, id: &str, trouble: ProviderError) -> Error {
    match trouble {
        ProviderError::Later(why) => {
            let mut error = Error::new(Code::Unavailable, "The payment provider is unavailable; retry shortly.");
            error.retry_after = Some(5);
            error.internal = Some(why);
            error
        }
        ProviderError::Never(why) => {
            if let Err(error) = over(app, account, id, Status::Failed) {
                return error;
            }
            Error::new(providers::PROVIDER_REFUSED, format!("The payment provider rejected the request: {why}"))
        }
    }
}

fn over(app: &App, account: i64, id: &str, status: Status) -> Result<()> {
    let (caller, id) = (app.acting_in(account, "provider")?, id.to_string());
    app.store.write_now(caller.account.number, move |tx| {
        let ctx = caller.writing(tx)?;
        let verification: Verification = records::find(tx, &ctx, &id)?;
        jobs::call_off(tx, &finish_key(&id))?;
        apply_provider_status(tx, &ctx, &verification, status, None)
    })
}

/// The second transaction: records the provider's response. `None` if the verification has ended in the meantime.
fn finish(tx: &mut Tx, ctx: &Ctx, id: &str, started: &Started) -> Result<Option<Verification>> {
    let before: Verification = records::find(tx, ctx, id)?;
    if !before.external_id.is_empty() {
        // The job or a retry of the same request was faster; the provider still has one payment.
        return Ok(Some(before).filter(|own| !is_over(own.status)));
    }
    let mut verification = before.clone();
    let is_over = is_over(before.status);
    if !is_over {
        verification.status = started.status;
    }
    verification.external_id.clone_from(&started.external_id);
    verification.payment_url.clone_from(&started.payment_url);
    verification.customer_id.clone_from(&started.customer_id);
    verification.test = started.test;
    records::update(tx, ctx, &before, &mut verification, "updated")?;
    jobs::call_off(tx, &finish_key(id))?;
    if is_over {
        break_off(tx, ctx, &verification)?;
        return Ok(None);
    }
    mandate::change(tx, ctx, &verification.client_id.0, |mandate| {
        if !mandate.is_ready() {
            mandate.customer_id.clone_from(&started.customer_id);
        }
    })?;
    Ok(Some(verification))
}

/// Whether the verification can no longer be paid.
fn is_over(status: Status) -> bool {
    matches!(status, Status::Failed | Status::Canceled | Status::Expired)
}

/// The job that completes a verification that was interrupted between its two transactions.
#[derive(Serialize, Deserialize)]
pub struct FinishVerification {
    id: String,
}

impl Job for FinishVerification {
    const KIND: &'static str = "verification";
    const LANE: Lane = Lane::Outside;

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        finish_later(app, claimed, self.id.clone())
    }
}

fn finish_later(app: &App, claimed: &Claimed, id: String) -> Result<Ending> {
    let caller = app.acting_in(claimed.account, "provider")?;
    let (reading, own) = (caller.clone(), id.clone());
    let status = app.store.read_now(move |tx| {
        let ctx = reading.reading(tx)?;
        Ok::<_, Error>(records::find::<Verification>(tx, &ctx, &own)?.status)
    })?;
    if status != Status::Created {
        return Ok(Ending::Done);
    }
    match ask(app, claimed.account, &id, true) {
        Ok(started) => {
            app.store.write_now(claimed.account, move |tx| {
                let ctx = caller.writing(tx)?;
                finish(tx, &ctx, &id, &started).map(drop)
            })?;
            Ok(Ending::Done)
        }
        Err(ProviderError::Later(why)) if claimed.has_tries_left() => Ok(Ending::Failed(why)),
        Err(_) => {
            over(app, claimed.account, &id, Status::Failed)?;
            Ok(Ending::Done)
        }
    }
}

/// The job that cancels a replaced verification at the provider, unless it has been paid in the meantime.
#[derive(Serialize, Deserialize)]
pub struct CancelAtProvider {
    provider: String,
    external_id: String,
}

impl Job for CancelAtProvider {
    const KIND: &'static str = "provider_cancel";
    const LANE: Lane = Lane::Outside;

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        let Some(name) = ProviderName::from_wire(&self.provider) else {
            return Ok(Ending::Failed(format!("there is no provider '{}'", self.provider)));
        };
        let caller = app.acting_in(claimed.account, "provider")?;
        let settings = app.store.read_now(move |tx| {
            let ctx = caller.reading(tx)?;
            Settings::with_key(tx, &ctx)
        })?;
        match providers::named(app, name, &settings).and_then(|provider| provider.cancel(&self.external_id)) {
            Ok(()) | Err(ProviderError::Never(_)) => Ok(Ending::Done),
            Err(ProviderError::Later(why)) => Ok(Ending::Failed(why)),
        }
    }
}

/// Applies the provider's status of a verification and the resulting mandate.
pub fn apply_provider_status(
    tx: &mut Tx,
    ctx: &Ctx,
    before: &Verification,
    status: Status,
    mandate: Option<(String, bool)>,
) -> Result<()> {
    let mut verification = before.clone();
    verification.status = status;
    records::update(tx, ctx, before, &mut verification, "updated")?;
    let newest = awaited(tx, ctx, &before.client_id.0)?;
    let is_over = is_over(status);
    mandate::change(tx, ctx, &before.client_id.0, |own| match (status, mandate) {
        (Status::Paid, Some((id, is_valid))) => {
            own.provider = before.provider;
            own.customer_id.clone_from(&before.customer_id);
            own.mandate_id = id;
            own.signed_on = Day(Some(ctx.now.date(&ctx.zone)));
            own.status = if is_valid { MandateStatus::Authorized } else { MandateStatus::Verified };
        }
        (Status::Paid, None) if !own.is_ready() => own.status = MandateStatus::Verified,
        // A newer verification is still pending.
        _ if is_over && newest.is_none() && own.status == MandateStatus::Pending => own.status = MandateStatus::None,
        _ => {}
    })
}

/// The resource of verifications.
pub fn resource() -> Resource {
    Resource::of::<Verification>("Direct debit verifications", "relations", MIGRATIONS)
        .at("/v1/clients/{id}/direct-debit/verification")
        .verb(Verb::Create, create)
        .body::<NewVerification>(RequestBody::Create)
        .returns(Returns::Parts(PARTS))
        .get::<Verification>()
        .extension()
        .or_with("finance.write")
}

/// The condition for verifications that can still be paid.
pub(crate) fn when_under_way() -> String {
    format!("status IN ({})", Status::sql_list(UNDER_WAY))
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 53,
    name: "verifications",
    sql: "
CREATE TABLE verifications (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    status TEXT NOT NULL,
    amount BIGINT NOT NULL,
    provider TEXT NOT NULL,
    external_id TEXT NOT NULL,
    payment_url TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    canceled_previous BIGINT NOT NULL,
    client_id TEXT NOT NULL,
    claim TEXT NOT NULL,
    test BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX verifications_client ON verifications (account_id, client_id, created_at, id);
CREATE INDEX verifications_external ON verifications (external_id) WHERE external_id <> '';
CREATE INDEX verifications_waiting ON verifications (account_id, provider, updated_at)
    WHERE status IN ('open', 'pending', 'authorized');
",
}];
