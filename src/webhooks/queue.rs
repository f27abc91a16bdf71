//! The delivery queue in the database: creates deliveries from the log and records their attempts.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::accounts::Account;
use engine::ahead::RetryTable;
use engine::app::App;
use engine::authors::Authority;
use engine::backoff::Backoff;
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::leases::{self, Comeback, Confirmed, Lease, LeaseTable};
use engine::log;
use engine::record::Record;
use engine::shown::Viewer;
use serde_json::json;
use store::Tx;

use super::breaker::{self, Breaker};
use crate::automation::needs;
use crate::settings::{NOT_SENT, Settings};
use crate::webhooks::delivery::{self, DeliveryStatus, WebhookDelivery};
use crate::webhooks::endpoint::WebhookEndpoint;

/// Number of log lines that become deliveries in one transaction.
const BATCH: i64 = 200;
/// Maximum number of deliveries waiting for their first attempt; beyond that, the log itself is the queue.
const QUEUED: i64 = 1000;
/// How long deliveries are kept.
const KEPT_SECONDS: i64 = 30 * DAY;
const DAY: i64 = 24 * 3600;
/// How long an endpoint can fail before it is disabled.
const PATIENCE_SECONDS: i64 = 5 * DAY;
/// Ten attempts over about three days, with up to 20% jitter.
const RETRY: Backoff = Backoff { delays: &[5, 60, 300, 1800, 7200, 18_000, 36_000, 72_000, 108_000], spread: 5 };
/// Maximum number of attempts of a delivery.
pub const TRIES: i64 = RETRY.delays.len() as i64 + 1;

/// The leases of deliveries in progress.
pub const LEASES: LeaseTable = LeaseTable {
    table: "webhook_deliveries",
    until: "due_at",
    held: "due_at > 0 AND status = 'sending'",
    ended: 1,
    // Disabling an endpoint ends its deliveries in progress, unless their worker still reports an outcome.
    ends_while_held: false,
};

/// Deliveries that wait for their first attempt or for another.
pub const RETRIES: RetryTable = RetryTable {
    table: "webhook_deliveries",
    index: "webhook_deliveries_tried",
    waits: "status IN ('queued', 'retrying')",
    and: "",
};

/// Matches endpoints with unprocessed log lines or due deliveries whose breaker allows sending; $1 is the time.
fn is_behind(tx: &Tx) -> String {
    format!(
        "(next_probe_at <= $1 OR next_probe_at > $1 + {})
         AND (sent_seq < (SELECT max(seq) FROM log{} WHERE log.account_id = webhook_cursors.account_id)
         OR EXISTS (SELECT 1 FROM webhook_deliveries due{} WHERE due.account_id = webhook_cursors.account_id
                    AND due.endpoint_id = webhook_cursors.endpoint_id AND due.due_at > 0 AND due.due_at <= $1))",
        breaker::FURTHEST,
        log::by_seq(tx),
        tx.dialect().indexed_by("webhook_deliveries_due")
    )
}

/// Returns the endpoints of all accounts that have work. Disabled endpoints have no cursor.
pub fn waiting(tx: &mut Tx, now: Moment) -> Result<Vec<(i64, String)>> {
    let sql = format!("SELECT account_id, endpoint_id FROM webhook_cursors WHERE {}", is_behind(tx));
    tx.all(&sql, &[now.0.into()], |row| Ok((row.int(0)?, row.text(1)?.to_string())))
}

/// Returns the endpoints of these accounts that have work.
pub fn waiting_in(tx: &mut Tx, now: Moment, accounts: &BTreeSet<i64>) -> Result<Vec<(i64, String)>> {
    let sql = format!("SELECT endpoint_id FROM webhook_cursors WHERE {} AND account_id = $2", is_behind(tx));
    let mut found = Vec::new();
    for account in accounts {
        found.extend(tx.all(&sql, &[now.0.into(), (*account).into()], |row| {
            Ok::<_, Error>((*account, row.text(0)?.to_string()))
        })?);
    }
    Ok(found)
}

/// Whether this endpoint has work.
pub fn is_waiting(tx: &mut Tx, now: Moment, account: i64, endpoint: &str) -> Result<bool> {
    let sql = format!("SELECT 1 FROM webhook_cursors WHERE {} AND account_id = $2 AND endpoint_id = $3", is_behind(tx));
    let found = tx.first(&sql, &[now.0.into(), account.into(), endpoint.into()], |_| Ok::<_, Error>(()))?;
    Ok(found.is_some())
}

/// Returns the moment since which something has been waiting to be sent: a due delivery or an unprocessed log line.
/// The entries of accounts with a test clock are not considered, and nothing of closed accounts.
pub fn oldest_due(tx: &mut Tx, now: Moment) -> Result<Option<Moment>> {
    let sql = "SELECT coalesce(min(due), 0) FROM (
            SELECT (SELECT min(due_at) FROM webhook_deliveries AS due WHERE due.account_id = place.account_id
                    AND due.endpoint_id = place.endpoint_id AND due_at > 0) AS due
            FROM webhook_cursors AS place
            JOIN accounts ON accounts.id = place.account_id AND closed_at = 0
            UNION ALL
            SELECT at FROM webhook_cursors AS place
            JOIN accounts ON accounts.id = place.account_id AND test_clock = 0 AND closed_at = 0
            JOIN log ON log.account_id = place.account_id AND seq = sent_seq + 1) AS oldest";
    let oldest = Moment(tx.int(sql, &[])?);
    Ok(Some(oldest).filter(|oldest| oldest.0 > 0 && *oldest <= now))
}

/// The result of advancing an endpoint.
#[derive(Default)]
pub struct Progress {
    /// Whether its cursor advanced.
    pub moved: bool,
    /// Deliveries to send now.
    pub claimed: Vec<Claimed>,
}

/// Creates deliveries from new log lines, and claims up to `room` due ones.
pub fn advance(
    tx: &mut Tx,
    app: &App,
    account: i64,
    endpoint: &str,
    now: Moment,
    lease: Moment,
    room: usize,
) -> Result<Progress> {
    let account = Account::numbered(tx, account)?;
    if account.is_closed() {
        return Ok(Progress::default());
    }
    let ctx = app.acting(account, "webhooks").writing(tx)?;
    let Some(breaker) = Breaker::of(tx, &ctx, endpoint)?.filter(|breaker| breaker.lets_through(now)) else {
        return Ok(Progress::default());
    };
    let own = [ctx.account.into(), endpoint.into()];
    let Some(record) = tx.first(&WebhookEndpoint::sql().get, &own, WebhookEndpoint::from_row)? else {
        return Ok(Progress::default());
    };
    let authority = record.authority(tx, &ctx)?;
    if let Some(reason) = record.unfit(&authority) {
        record.disable(tx, &ctx, &reason)?;
        return Ok(Progress::default());
    }
    let moved = fan_out(tx, &ctx, &record, &authority, breaker.sent_seq)?;
    breaker.release(tx, &ctx, endpoint, now)?;
    let index = tx.dialect().indexed_by("webhook_deliveries_status");
    let sending = format!(
        "SELECT count(*) FROM webhook_deliveries{index}
         WHERE account_id = $1 AND endpoint_id = $2 AND status = '{}' AND due_at > $3",
        DeliveryStatus::Sending.wire()
    );
    let sending = tx.int(&sending, &[ctx.account.into(), endpoint.into(), now.0.into()])?;
    let room = (breaker.in_flight() - sending).min(room as i64);
    let claimed = match room {
        _ if Settings::is_sealed(tx, &ctx)? => record_due(tx, &ctx, endpoint, now)?,
        1.. => claim(tx, &ctx, endpoint, &authority, &app.node, now, lease, room)?,
        _ => Vec::new(),
    };
    if !moved {
        breaker.drained(tx, &ctx, endpoint, now)?;
    }
    Ok(Progress { moved, claimed })
}

fn fan_out(tx: &mut Tx, ctx: &Ctx, endpoint: &WebhookEndpoint, authority: &Authority, sent: i64) -> Result<bool> {
    let id = endpoint.base.id.as_str();
    let own = [ctx.account.into(), id.into()];
    let index = tx.dialect().indexed_by("webhook_deliveries_status");
    let queued = format!(
        "SELECT count(*) FROM (SELECT 1 FROM webhook_deliveries{index}
         WHERE account_id = $1 AND endpoint_id = $2 AND status = '{}' LIMIT 1000) AS queued",
        DeliveryStatus::Queued.wire()
    );
    if tx.int(&queued, &own)? >= QUEUED {
        return Ok(false);
    }
    let lines = tx.all(
        &format!(
            "SELECT seq, type, at, entity_type FROM log{} WHERE account_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
            log::by_seq(tx)
        ),
        &[ctx.account.into(), sent.into(), BATCH.into()],
        |row| {
            let (name, kind) = (row.text(1)?.to_string(), row.text(3)?.to_string());
            Ok::<_, Error>((row.int(0)?, name, Moment(row.int(2)?), kind))
        },
    )?;
    let Some((last, ..)) = lines.last() else { return Ok(false) };
    let sent = |name: &str, kind: &str| endpoint.wants(name) && may_receive(authority, name, kind);
    for (seq, name, at, _) in lines.iter().filter(|(_, name, _, kind)| sent(name, kind)) {
        delivery::queue(tx, ctx, id, name, *seq, *at, "")?;
    }
    tx.execute(
        "UPDATE webhook_cursors SET sent_seq = $1 WHERE account_id = $2 AND endpoint_id = $3",
        &[(*last).into(), ctx.account.into(), id.into()],
    )?;
    Ok(true)
}

/// Whether the author of an endpoint may read an event about this type of record.
fn may_receive(authority: &Authority, event: &str, entity_type: &str) -> bool {
    authority.may("*") || needs::to_receive(event, entity_type).iter().all(|scope| authority.may(scope))
}

/// Records deliveries that were queued before the account stopped sending; there is nothing to send.
fn record_due(tx: &mut Tx, ctx: &Ctx, endpoint: &str, now: Moment) -> Result<Vec<Claimed>> {
    let sql =
        "UPDATE webhook_deliveries SET status = $1, reason = $2, due_at = 0, next_attempt_at = 0, updated_at = $3,
                      version = version + 1, claim = claim + 1
               WHERE account_id = $4 AND id IN (SELECT id FROM webhook_deliveries
                                                WHERE account_id = $4 AND endpoint_id = $5 AND due_at > 0 AND due_at <= $3
                                                ORDER BY due_at LIMIT 500)";
    let recorded = DeliveryStatus::Recorded.wire();
    tx.execute(sql, &[recorded.into(), NOT_SENT.into(), now.0.into(), ctx.account.into(), endpoint.into()])?;
    Ok(Vec::new())
}

/// A delivery under a lease.
pub struct Claimed {
    /// The account.
    pub account: i64,
    /// Its id, which is also sent to the receiver.
    pub id: String,
    /// When the lease expires.
    pub lease: Moment,
    /// When the lease was last confirmed.
    pub confirmed: Confirmed,
    claim: i64,
}

#[expect(clippy::too_many_arguments, reason = "an endpoint, who may read for it, and the terms of the lease")]
fn claim(
    tx: &mut Tx,
    ctx: &Ctx,
    id: &str,
    authority: &Authority,
    node: &str,
    now: Moment,
    lease: Moment,
    room: i64,
) -> Result<Vec<Claimed>> {
    // In the order in which they became due; ids increase with time.
    let due = "SELECT id, claim, attempts, status, lost, event, seq FROM webhook_deliveries
               WHERE account_id = $1 AND endpoint_id = $2 AND due_at > 0 AND due_at <= $3 ORDER BY due_at, id LIMIT $4";
    let due = tx.all(due, &[ctx.account.into(), id.into(), now.0.into(), room.into()], |row| {
        let (id, claim) = (row.text(0)?.to_string(), row.int(1)? + 1);
        let claimed = Claimed { account: ctx.account, id, lease, confirmed: Confirmed::now(), claim };
        let was_lost = row.text(3)? == DeliveryStatus::Sending.wire();
        let about = (row.text(5)?.to_string(), row.int(6)?);
        Ok::<_, Error>((claimed, row.int(2)?, was_lost, row.int(4)? + i64::from(was_lost), about))
    })?;
    let mut claimed = Vec::new();
    for (one, attempts, was_lost, lost, (event, seq)) in due {
        // Workers were lost so often that the delivery itself must be the cause.
        if attempts >= TRIES {
            let sql = "UPDATE webhook_deliveries SET status = $1, due_at = 0, updated_at = $2, version = version + 1,
                              claim = claim + 1, reason = 'It was tried ten times, and no attempt completed.'
                       WHERE account_id = $3 AND id = $4";
            let failed = DeliveryStatus::Failed.wire();
            tx.execute(sql, &[failed.into(), now.0.into(), ctx.account.into(), (&one.id).into()])?;
            continue;
        }
        // The author may have lost a scope since the delivery was created.
        if !may_still_receive(tx, ctx, authority, &event, seq)? {
            one.refuse(tx, ctx)?;
            continue;
        }
        let comeback = if was_lost { leases::after_deaths(&one.id, lost) } else { Comeback::AtOnce };
        let kept_back = match comeback {
            Comeback::AtOnce => None,
            Comeback::After(seconds) => {
                Some((DeliveryStatus::Retrying, now.plus_seconds(seconds).0, "The last attempts did not complete."))
            }
            Comeback::Never => {
                Some((DeliveryStatus::Failed, 0, "It was started five times in a row, and no attempt completed."))
            }
        };
        if let Some((status, next, reason)) = kept_back {
            tx.execute(
                "UPDATE webhook_deliveries SET status = $1, due_at = $2, next_attempt_at = $2, reason = $3, lost = $4,
                        updated_at = $5, version = version + 1, claim = claim + 1
                 WHERE account_id = $6 AND id = $7",
                &[
                    status.wire().into(),
                    next.into(),
                    reason.into(),
                    lost.into(),
                    now.0.into(),
                    ctx.account.into(),
                    (&one.id).into(),
                ],
            )?;
            continue;
        }
        let sql = format!(
            "UPDATE webhook_deliveries SET status = '{}', attempts = attempts + 1, next_attempt_at = 0, {},
                    updated_at = $3, version = version + 1, lost = $4
             WHERE account_id = $5 AND id = $6",
            DeliveryStatus::Sending.wire(),
            LEASES.claimed(1)
        );
        let values = [lease.0.into(), node.into(), now.0.into(), lost.into(), ctx.account.into(), (&one.id).into()];
        tx.execute(&sql, &values)?;
        claimed.push(one);
    }
    Ok(claimed)
}

/// Whether the author of an endpoint may read the event of a delivery. A test event, without a line of the log, contains
/// nothing.
fn may_still_receive(tx: &mut Tx, ctx: &Ctx, authority: &Authority, event: &str, seq: i64) -> Result<bool> {
    if authority.may("*") || seq == 0 {
        return Ok(true);
    }
    let sql = "SELECT entity_type FROM log WHERE account_id = $1 AND seq = $2";
    let kind = tx.first(sql, &[ctx.account.into(), seq.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    Ok(may_receive(authority, event, &kind.unwrap_or_default()))
}

/// Everything that a call needs.
pub struct Parcel {
    /// The account.
    pub account: Account,
    /// The endpoint.
    pub endpoint: WebhookEndpoint,
    /// The signing secrets, newest first.
    pub secrets: Vec<String>,
    /// The body, identical for every attempt.
    pub body: Vec<u8>,
}

/// What has become of a delivery since it was claimed.
pub enum Loaded {
    /// It can be sent.
    Ready(Box<Parcel>),
    /// The author of its endpoint, in this account, may not read its event.
    Refused(Account),
    /// The endpoint was disabled or deleted.
    Ended,
}

/// The outcome of a call.
pub struct CallOutcome {
    /// The status of the response, or 0.
    pub status: u16,
    /// The start of the response.
    pub body: String,
    /// The duration.
    pub duration_ms: i64,
    /// Why it failed; empty if it succeeded.
    pub reason: String,
}

impl Claimed {
    fn delivery(&self, tx: &mut Tx) -> Result<Option<WebhookDelivery>> {
        let own = [self.account.into(), (&self.id).into()];
        Ok(tx.first(&WebhookDelivery::sql().get, &own, WebhookDelivery::from_row)?)
    }

    fn endpoint(&self, tx: &mut Tx, delivery: &WebhookDelivery) -> Result<Option<WebhookEndpoint>> {
        let own = [self.account.into(), (&delivery.endpoint_id.0).into()];
        Ok(tx.first(&WebhookEndpoint::sql().get, &own, WebhookEndpoint::from_row)?)
    }

    fn lease(&self) -> Lease<'_> {
        Lease { account: self.account, id: &self.id, claim: self.claim }
    }

    /// Extends the lease; returns whether the claim is still valid.
    pub fn renew(&self, tx: &mut Tx, until: Moment) -> Result<bool> {
        LEASES.renew(tx, self.lease(), until)
    }

    /// Loads what is to be sent.
    pub fn load(&self, tx: &mut Tx, app: &App) -> Result<Loaded> {
        let delivery = self.delivery(tx)?.filter(|delivery| delivery.status == DeliveryStatus::Sending);
        let Some(delivery) = delivery else { return Ok(Loaded::Ended) };
        let endpoint = self.endpoint(tx, &delivery)?.filter(|endpoint| endpoint.active);
        let Some(endpoint) = endpoint else { return Ok(Loaded::Ended) };
        let account = Account::numbered(tx, self.account)?;
        let ctx = app.acting(account.clone(), "webhooks").reading(tx)?;
        // Somebody else may have become the author since it was claimed, with a URL of their own.
        let authority = endpoint.authority(tx, &ctx)?;
        if !may_still_receive(tx, &ctx, &authority, &delivery.event, delivery.seq)? {
            return Ok(Loaded::Refused(account));
        }
        // Signed URLs in the body are the same for every attempt.
        let may = Arc::new(move |scope: &str| authority.may(scope));
        let viewer = Viewer { account: self.account, now: delivery.base.created_at, site: app.site.clone(), may };
        let body = body(tx, &viewer, &delivery)?;
        let secrets = endpoint.secrets(self.account, &app.site.vault, ctx.machine_now)?;
        Ok(Loaded::Ready(Box::new(Parcel { account, endpoint, secrets, body })))
    }

    /// Ends a delivery whose event the author of its endpoint may not read, unless it has ended.
    pub fn refuse(&self, tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        let sql = "UPDATE webhook_deliveries SET status = $1, due_at = 0, next_attempt_at = 0, updated_at = $2,
                          version = version + 1, claim = claim + 1,
                          reason = 'The author of the endpoint may not read this event.'
                   WHERE account_id = $3 AND id = $4 AND due_at > 0";
        let failed = DeliveryStatus::Failed.wire();
        tx.execute(sql, &[failed.into(), ctx.machine_now.0.into(), ctx.account.into(), (&self.id).into()])?;
        Ok(())
    }

    /// Records the outcome of an attempt, unless the lease was lost; returns the outcome for the metrics.
    pub fn finish(&self, tx: &mut Tx, ctx: &Ctx, outcome: &CallOutcome, now: Moment) -> Result<&'static str> {
        let Some(delivery) = self.delivery(tx)? else { return Ok("lost") };
        let endpoint = self.endpoint(tx, &delivery)?;
        let is_active = endpoint.as_ref().is_some_and(|endpoint| endpoint.active);
        let (good, gone) = ((200..300).contains(&outcome.status), outcome.status == 410);
        let (status, next) = match good {
            true => (DeliveryStatus::Delivered, 0),
            false if gone || !is_active || delivery.attempts >= TRIES => (DeliveryStatus::Failed, 0),
            false => (DeliveryStatus::Retrying, now.plus_seconds(RETRY.seconds(&self.id, delivery.attempts)).0),
        };
        let ours = LEASES.end(
            tx,
            self.lease(),
            "status = $1, due_at = $2, next_attempt_at = $2, response_status = $3, response_body = $4, reason = $5,
             duration_ms = $6, updated_at = $7, version = version + 1, lost = 0",
            &[
                status.wire().into(),
                next.into(),
                i64::from(outcome.status).into(),
                (&outcome.body).into(),
                (&outcome.reason).into(),
                outcome.duration_ms.into(),
                now.0.into(),
            ],
        )?;
        let became = match status {
            _ if !ours => "lost",
            DeliveryStatus::Retrying => "failed",
            DeliveryStatus::Failed => "given_up",
            _ => "delivered",
        };
        let Some(endpoint) = endpoint.filter(|_| ours && is_active) else { return Ok(became) };
        if good {
            breaker::succeeded(tx, ctx, &endpoint.base.id, now)?;
        } else if let Some(reason) = verdict(tx, ctx, &delivery, gone, now)? {
            endpoint.disable(tx, ctx, &format!("{reason} {}", outcome.reason))?;
            return Ok("given_up");
        }
        Ok(became)
    }
}

/// Returns the body: `type`, `timestamp`, `data` and `seq`, in this order.
fn body(tx: &mut Tx, viewer: &Viewer, delivery: &WebhookDelivery) -> Result<Vec<u8>> {
    if delivery.seq == 0 {
        let data = json!({"endpoint_id": delivery.endpoint_id.0}).to_string();
        let mut body = Vec::new();
        log::payload(&mut body, &delivery.event, delivery.happened_at.0.unwrap_or_default(), &data, 0);
        body.push(b'}');
        return Ok(body);
    }
    let line = log::line(tx, viewer.account, delivery.seq)?;
    line.map(|line| viewer.payload(&line))
        .ok_or_else(|| Error::internal(format!("the log has no line {}", delivery.seq)))
}

/// Returns why an endpoint that just failed is to be disabled, if so.
fn verdict(
    tx: &mut Tx,
    ctx: &Ctx,
    delivery: &WebhookDelivery,
    gone: bool,
    now: Moment,
) -> Result<Option<&'static str>> {
    if gone {
        return Ok(Some("The receiver no longer exists."));
    }
    let Some(breaker) = Breaker::of(tx, ctx, &delivery.endpoint_id.0)? else { return Ok(None) };
    breaker.failed(tx, ctx, &delivery.endpoint_id.0, delivery.attempts, now)?;
    let (succeeded, failing) = (breaker.succeeded_at, breaker.failing_since);
    // An event that a receiver cannot process does not disable the endpoint.
    if delivery.attempts >= TRIES && succeeded <= delivery.base.created_at.0 {
        return Ok(Some("A delivery failed ten times over several days, and no other succeeded in that time."));
    }
    let too_long = failing != 0 && failing <= now.plus_seconds(-PATIENCE_SECONDS).0;
    Ok(too_long.then_some("No delivery has succeeded for five days."))
}

/// Deletes up to two hundred expired deliveries of an account; returns how many.
pub fn purge(tx: &mut Tx, ctx: &Ctx) -> Result<u64> {
    let index = tx.dialect().indexed_by("webhook_deliveries_old");
    let sql = format!(
        "DELETE FROM webhook_deliveries WHERE account_id = $1 AND id IN
         (SELECT id FROM webhook_deliveries{index} WHERE account_id = $1 AND created_at < $2
          ORDER BY created_at LIMIT 200)"
    );
    Ok(tx.execute(&sql, &[ctx.account.into(), ctx.machine_now.plus_seconds(-KEPT_SECONDS).0.into()])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_attempts_take_about_three_days() {
        let pause = |id: &str, attempts| RETRY.seconds(id, attempts);
        let days = |id: &str| (1..TRIES).map(|attempts| pause(id, attempts)).sum::<i64>() / 3600;
        for id in ["0190d5a2-0000-7000-8000-000000000000", "0190d5a2-0000-7000-8000-ffffffffffff", "x"] {
            assert!((67..=82).contains(&days(id)), "{}", days(id));
            assert!((2..TRIES).all(|attempts| pause(id, attempts) > pause(id, attempts - 1)));
        }
    }
}
