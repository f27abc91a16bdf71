//! The deliveries of events to endpoints. They are read-only records; their attempts have no lines in the log of the
//! account, since an entry that creates deliveries that create entries would never end.

use engine::call::{Answer, Call};
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::Result;
use engine::record::{ALL, Base, COMPUTED, CREATED, Link, NOWHERE, When};
use engine::records::{self, Work};
use engine::resource::{Method, Part, Resource, Returns};
use engine::tables::Logged;
use engine::{input, list, record};
use serde_json::json;
use store::{Migration, Tx};

use crate::automation::events::canonical;
use crate::settings::{NOT_SENT, Settings};
use crate::webhooks::breaker;
use crate::webhooks::endpoint::WebhookEndpoint;
pub use crate::webhooks::status::DeliveryStatus;

record! {
    /// The delivery of an event to an endpoint. Its timestamps are from the machine's clock.
    pub struct WebhookDelivery = "webhook_delivery" in "webhook_deliveries", parent: "endpoint_id", created_at: ALL, meta: NOWHERE;

    /// The endpoint.
    endpoint_id: Link = COMPUTED.refers("webhook_endpoints");
    /// The type of event.
    event: String = COMPUTED.filter();
    /// Sequence number of the event; 0 for `webhook.test`.
    seq: i64 = COMPUTED;
    /// Status.
    status: DeliveryStatus = COMPUTED.filter();
    /// Number of attempts, at most ten. While the receiver is down, the delivery waits without using attempts.
    attempts: i64 = COMPUTED;
    /// Status of the last response; 0 if there was none.
    response_status: i64 = COMPUTED;
    /// First 1,024 bytes of the last response.
    response_body: String = COMPUTED.at_most(1024);
    /// Why the last attempt failed.
    reason: String = COMPUTED;
    /// Duration of the last attempt, in milliseconds.
    duration_ms: i64 = COMPUTED;
    /// When the next attempt is made.
    next_attempt_at: When = COMPUTED.nullable();
    /// The delivery that this one repeats.
    resend_of: Link = COMPUTED.nullable();
    /// When the event happened, on the account's clock.
    happened_at: When = COMPUTED.shown(NOWHERE);
}

/// The resource of deliveries.
pub fn resource() -> Resource {
    Resource::of::<WebhookDelivery>("Webhook deliveries", "webhooks", MIGRATIONS)
        .at("/v1/webhook-endpoints/{id}/deliveries")
        .fleeting()
        .logged(Logged::No)
        .list::<WebhookDelivery>()
        .with(|route| route.handler = listed)
        .extension()
        .route(Method::Post, "/{webhook_delivery_id}/resend", "Resend an event as a new delivery", resend)
        .returns(Returns::Made(CREATED))
        .extension()
}

/// `GET /v1/webhook-endpoints/{id}/deliveries`
fn listed(mut call: Call) -> Result<Work> {
    call.query.replace("event", |name| canonical(name).into_owned());
    list::list::<WebhookDelivery>(call)
}

/// `POST /v1/webhook-endpoints/{id}/deliveries/{webhook_delivery_id}/resend`
fn resend(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let first: WebhookDelivery = records::find_in_path(tx, ctx, &call)?;
        let endpoint: WebhookEndpoint = records::find(tx, ctx, &first.endpoint_id.0)?;
        endpoint.must_be_active()?;
        let happened = first.happened_at.0.unwrap_or_default();
        let again = queue(tx, ctx, &endpoint.base.id, &first.event, first.seq, happened, &first.base.id)?;
        breaker::probe_now(tx, ctx, &endpoint.base.id)?;
        Ok(Answer::created(ctx, &again, CREATED).with_texts("warnings", &warnings))
    }))
}

/// Endpoints can be tested.
pub fn testable(endpoints: Resource) -> Resource {
    endpoints
        .route(Method::Post, "/{id}/test", "Send the event webhook.test", test)
        .returns(Returns::Parts(TESTED))
        .extension()
}

const TESTED: &[Part] = &[
    Part("delivery_id", "string", "The delivery; see the list of deliveries for its status."),
    Part("event", "string", "`webhook.test`"),
    Part("status", "string", "`queued`, or `recorded` in a test account that does not send."),
];

/// `POST /v1/webhook-endpoints/{id}/test`
fn test(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let endpoint: WebhookEndpoint = records::find_to_change(tx, ctx, &call)?;
        endpoint.must_be_active()?;
        let delivery = queue(tx, ctx, &endpoint.base.id, "webhook.test", 0, ctx.now, "")?;
        breaker::probe_now(tx, ctx, &endpoint.base.id)?;
        let shown = json!({"delivery_id": delivery.base.id, "event": delivery.event, "status": delivery.status.wire()});
        Ok(Answer::json(&shown).with_texts("warnings", &warnings))
    }))
}

/// Queues an event for an endpoint, due immediately; or records it, if the account does not send.
pub fn queue(
    tx: &mut Tx,
    ctx: &Ctx,
    endpoint_id: &str,
    event: &str,
    seq: i64,
    happened_at: Moment,
    resend_of: &str,
) -> Result<WebhookDelivery> {
    let now = ctx.machine_now;
    let (status, reason, due) = match Settings::is_sealed(tx, ctx)? {
        true => (DeliveryStatus::Recorded, NOT_SENT, None),
        false => (DeliveryStatus::Queued, "", Some(now)),
    };
    let delivery = WebhookDelivery {
        base: Base { id: ctx.new_id(), created_at: now, updated_at: now, version: 1 },
        endpoint_id: Link(endpoint_id.to_string()),
        event: event.to_string(),
        seq,
        status,
        reason: reason.to_string(),
        next_attempt_at: When(due),
        resend_of: Link(resend_of.to_string()),
        happened_at: When(Some(happened_at)),
        ..WebhookDelivery::default()
    };
    tx.execute(
        "INSERT INTO webhook_deliveries (account_id, id, created_at, updated_at, version, endpoint_id, event, seq, status,
                attempts, response_status, response_body, reason, duration_ms, next_attempt_at, resend_of, happened_at,
                due_at, claim)
         VALUES ($1, $2, $3, $3, 1, $4, $5, $6, $7, 0, 0, '', $8, 0, $9, $10, $11, $9, 0)",
        &[
            ctx.account.into(),
            (&delivery.base.id).into(),
            now.0.into(),
            endpoint_id.into(),
            event.into(),
            seq.into(),
            delivery.status.wire().into(),
            reason.into(),
            due.map_or(0, |due| due.0).into(),
            resend_of.into(),
            happened_at.0.into(),
        ],
    )?;
    Ok(delivery)
}

/// `due_at` is when the delivery needs attention: the next attempt, or the end of the lease of the current one; 0 when
/// it has ended.
const MIGRATIONS: &[Migration] = &[Migration {
    number: 60,
    name: "webhook deliveries",
    sql: "
CREATE TABLE webhook_deliveries (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    endpoint_id TEXT NOT NULL,
    event TEXT NOT NULL,
    seq BIGINT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('queued', 'sending', 'retrying', 'delivered', 'failed', 'recorded')),
    attempts BIGINT NOT NULL,
    response_status BIGINT NOT NULL,
    response_body TEXT NOT NULL,
    reason TEXT NOT NULL,
    duration_ms BIGINT NOT NULL,
    next_attempt_at BIGINT NOT NULL,
    resend_of TEXT NOT NULL,
    happened_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    claim BIGINT NOT NULL,
    node TEXT NOT NULL DEFAULT '',
    lost BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX webhook_deliveries_created ON webhook_deliveries (account_id, endpoint_id, created_at, id);
CREATE INDEX webhook_deliveries_status ON webhook_deliveries (account_id, endpoint_id, status, created_at, id);
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (account_id, endpoint_id, event, created_at, id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (account_id, endpoint_id, due_at, id) WHERE due_at > 0;
CREATE INDEX webhook_deliveries_old ON webhook_deliveries (account_id, created_at);
CREATE INDEX webhook_deliveries_node ON webhook_deliveries (node) WHERE status = 'sending';
CREATE INDEX webhook_deliveries_tried ON webhook_deliveries (updated_at) WHERE status IN ('queued', 'retrying');
",
}];
