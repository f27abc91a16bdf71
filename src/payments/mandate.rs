//! Direct debit mandates of clients, by a verification payment through the provider or by a signed form.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::input::{self, Input};
use engine::record::{COMPUTED, CREATED, Day, INPUT, Link, Model, REQUIRED, Record};
use engine::records::{self, Work};
use engine::resource::{Handler, Method, Part, Resource, Returns, Verb};
use engine::slice::Slice;
use engine::tables::Relink;
use engine::{choice, record};
use serde_json::{Value, json};
use store::{Migration, Tx};

use crate::relations::client::Client;
use crate::settings::{ProviderName, Settings};

choice! {
    /// The status of a mandate.
    pub enum MandateStatus {
        /// There is no mandate.
        #[default]
        None = "none",
        /// The client has not paid the verification yet.
        Pending = "pending",
        /// The client has paid it, and the provider is processing the mandate.
        Verified = "verified",
        /// Can be used.
        Authorized = "authorized",
        /// Has been used.
        Active = "active",
    }
}

record! {
    /// A client's authorization for direct debit.
    pub struct Mandate = "mandate" in "mandates", parent: "client_id";

    /// Status.
    status: MandateStatus = COMPUTED;
    /// The provider.
    provider: ProviderName = COMPUTED;
    /// The provider's id of the client.
    customer_id: String = COMPUTED;
    /// The provider's id of the mandate, or the reference on the signed form.
    mandate_id: String = REQUIRED.at_most(35).example("\"M-2026-001\"");
    /// Date of signing; defaults to today.
    signed_on: Day = INPUT.example("\"2026-05-01\"");
    /// The client.
    client_id: Link = COMPUTED.refers("clients").owned().in_meta();
}

impl Model for Mandate {}

impl Mandate {
    /// Whether the mandate can be used.
    pub fn is_ready(&self) -> bool {
        matches!(self.status, MandateStatus::Authorized | MandateStatus::Active)
    }

    /// Whether the bank can collect by it.
    pub fn is_signed(&self) -> bool {
        self.is_ready() && self.provider == ProviderName::Manual
    }

    /// Whether nothing can be collected, since the bank file needs an IBAN that the client does not have. A provider knows the
    /// account itself.
    pub fn lacks_iban(&self, client: &Client) -> bool {
        self.provider == ProviderName::Manual && client.iban.0.is_empty()
    }
}

/// Returns the mandate of a client. One of the sandbox counts only while the account uses the sandbox.
pub fn of(tx: &mut Tx, ctx: &Ctx, client: &str) -> Result<Option<Mandate>> {
    let mandate = stored(tx, ctx, client)?;
    let is_void = match &mandate {
        Some(mandate) if mandate.provider == ProviderName::Sandbox => {
            Settings::of(tx, ctx)?.provider != ProviderName::Sandbox
        }
        _ => false,
    };
    Ok(mandate.filter(|_| !is_void))
}

fn stored(tx: &mut Tx, ctx: &Ctx, client: &str) -> Result<Option<Mandate>> {
    let sql = format!("{} WHERE account_id = $1 AND client_id = $2", Mandate::sql().select);
    Ok(tx.first(&sql, &[ctx.account.into(), client.into()], Mandate::from_row)?)
}

/// Whether the client's verification is still pending.
pub fn is_pending(tx: &mut Tx, ctx: &Ctx, client: &str) -> Result<bool> {
    Ok(of(tx, ctx, client)?.is_some_and(|mandate| mandate.status == MandateStatus::Pending))
}

/// Changes the mandate of a client, and creates it if there is none.
pub fn change(tx: &mut Tx, ctx: &Ctx, client: &str, change: impl FnOnce(&mut Mandate)) -> Result<()> {
    let before = stored(tx, ctx, client)?;
    let mut mandate = before.clone().unwrap_or_default();
    mandate.client_id = Link(client.to_string());
    change(&mut mandate);
    match before {
        Some(before) => records::change(tx, ctx, &before, &mut mandate, "updated"),
        None => records::add(tx, ctx, &mut mandate),
    }
}

/// Fields of the response of `GET …/mandate`.
const PARTS: &[Part] = &[
    Part("client_found", "boolean", "Whether the client exists."),
    Part("provider", "string", "The provider."),
    Part("mandate_present", "boolean", "Whether a mandate exists."),
    Part("mandate_authorized", "boolean", "Whether it can be used."),
    Part("direct_debit_enabled", "integer", "The same as 1 or 0."),
    Part("mandate_status", "string", "`none`, `pending`, `verified`, `authorized` or `active`."),
    Part("customer_id", "string", "The provider's id of the client."),
    Part("mandate_id", "string", "The provider's id of the mandate."),
    Part("can_activate_subscription", "boolean", "Whether a subscription can be activated."),
    Part(
        "subscription_activation",
        "object",
        "`status`: `skipped`, `not_found`, `activated`, `update_failed` or `not_authorized`.",
    ),
    Part("meta", "object", "Details."),
];

/// Returns the response of `GET …/mandate`; `activation` is the outcome for the subscription in the request.
pub fn standing(
    tx: &mut Tx,
    ctx: &Ctx,
    client: &str,
    activation: impl FnOnce(&mut Tx, &Mandate) -> Result<&'static str>,
) -> Result<Value> {
    let found = match records::find::<Client>(tx, ctx, client) {
        Ok(client) => Some(client),
        Err(error) if error.code == Code::NotFound => None,
        Err(error) => return Err(error),
    };
    let mandate = match &found {
        Some(client) => of(tx, ctx, &client.base.id)?,
        None => None,
    };
    let provider = match &mandate {
        Some(mandate) if mandate.status != MandateStatus::None => mandate.provider,
        _ => Settings::of(tx, ctx)?.provider,
    };
    let mandate = mandate.unwrap_or_default();
    let activation = activation(tx, &mandate)?;
    Ok(shown(found.is_some(), provider, &mandate, activation))
}

fn shown(client_found: bool, provider: ProviderName, mandate: &Mandate, activation: &str) -> Value {
    let is_ready = mandate.is_ready();
    json!({
        "client_found": client_found, "provider": provider.wire(), "mandate_present": !mandate.mandate_id.is_empty(),
        "mandate_authorized": is_ready, "direct_debit_enabled": i64::from(is_ready),
        "mandate_status": mandate.status.wire(), "customer_id": mandate.customer_id, "mandate_id": mandate.mandate_id,
        "can_activate_subscription": is_ready, "subscription_activation": {"status": activation},
        "meta": {"signed_on": mandate.signed_on.0.map(|day| day.to_string())},
    })
}

/// `POST …/mandate`: records a mandate that the client signed on paper.
fn record_signed(call: Call) -> Result<Work> {
    let input: Input<Mandate> = input::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let client: Client = records::find(tx, ctx, call.id())?;
        let signed = input.record();
        change(tx, ctx, &client.base.id, |mandate| {
            mandate.provider = ProviderName::Manual;
            mandate.status = MandateStatus::Authorized;
            mandate.customer_id.clear();
            mandate.mandate_id = signed.mandate_id.trim().to_string();
            mandate.signed_on = Day(signed.signed_on.0.or(Some(ctx.now.date(&ctx.zone))));
        })?;
        let mandate = of(tx, ctx, &client.base.id)?.ok_or_else(|| Error::not_found("mandate"))?;
        let mut warnings = input.warnings.clone();
        if mandate.lacks_iban(&client) {
            warnings.push(format!(
                "{} has no IBAN: nothing can be collected until iban of the client is set.",
                client.name()
            ));
        }
        let mut answer = Answer::created(ctx, &mandate, CREATED).with_texts("warnings", &warnings);
        answer.location = Some(format!("/v1/clients/{}/direct-debit/mandate", client.base.id));
        Ok(answer)
    }))
}

/// `DELETE …/mandate`: revokes the mandate. Collections that no bank file has yet are canceled (`awaiting_file.rs`).
fn revoke(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let client: Client = records::find(tx, ctx, call.id())?;
        change(tx, ctx, &client.base.id, |mandate| {
            mandate.status = MandateStatus::None;
            mandate.mandate_id.clear();
        })?;
        Ok(Answer::empty())
    }))
}

/// Moves the mandate of a client that is merged into another. The better of two mandates stays: the one that can be used, or
/// else the one that is further on its way.
fn relink(tx: &mut Tx, ctx: &Ctx, link: &Relink, slice: &Slice) -> Result<bool> {
    let rank = |mandate: &Mandate| MandateStatus::ALL.iter().position(|status| *status == mandate.status);
    records::relink_with::<Mandate>(tx, ctx, link, slice, |tx, ctx, before, mandate| {
        match stored(tx, ctx, link.to)? {
            Some(own) if rank(&own) >= rank(before) => return records::remove(tx, ctx, before),
            Some(own) => records::remove(tx, ctx, &own)?,
            None => {}
        }
        records::update(tx, ctx, before, mandate, "updated")
    })
}

/// The resource of mandates; `get` returns one and can activate a subscription.
pub fn resource(get: Handler) -> Resource {
    Resource::of::<Mandate>("Direct debit mandates", "relations", MIGRATIONS)
        .at("/v1/clients/{id}/direct-debit/mandate")
        .guarded()
        .route(Method::Get, "", "Retrieve the mandate of a client", get)
        .returns(Returns::Parts(PARTS))
        .with(|route| route.acts_with = Some(("subscription_id", "relations.write")))
        .verb(Verb::Create, record_signed)
        .extension()
        .route(Method::Delete, "", "Revoke a mandate", revoke)
        .returns(Returns::Nothing)
        .extension()
        .or_with("finance.write")
        .relinked(relink)
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 54,
    name: "mandates",
    sql: "
CREATE TABLE mandates (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    status TEXT NOT NULL,
    provider TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    mandate_id TEXT NOT NULL,
    signed_on TEXT NOT NULL,
    client_id TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE UNIQUE INDEX mandates_client ON mandates (account_id, client_id);
",
}];
