//! What is to be sent, in the database: from the log to deliveries, and from one try to the next.

use std::collections::BTreeSet;

use engine::accounts::Account;
use engine::ahead::RetryTable;
use engine::app::App;
use engine::backoff::Backoff;
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::leases::{self, Comeback, Lease, LeaseTable};
use engine::log;
use engine::record::Record;
use serde_json::json;
use store::Tx;

use super::breaker::{self, Breaker};
use crate::webhooks::delivery::{self, WebhookDelivery};
use crate::webhooks::endpoint::WebhookEndpoint;

/// Calls to one endpoint under way at once, on all nodes together.
pub const IN_FLIGHT: usize = 2;
/// Lines of the log that become deliveries at once.
const BATCH: i64 = 200;
/// Deliveries that wait for their first try; with more the log itself is the queue.
const QUEUED: i64 = 1000;
/// How long deliveries can be looked at.
const KEPT_SECONDS: i64 = 30 * DAY;
const DAY: i64 = 24 * 3600;
/// How long an endpoint may fail before it is switched off.
const PATIENCE_SECONDS: i64 = 5 * DAY;
/// Ten tries over about three days, with up to a fifth more between them.
const RETRY: Backoff = Backoff { delays: &[5, 60, 300, 1800, 7200, 18_000, 36_000, 72_000, 108_000], spread: 5 };
/// How often a delivery is tried.
pub const TRIES: i64 = RETRY.delays.len() as i64 + 1;

/// Deliveries under way.
pub const LEASES: LeaseTable = LeaseTable {
    table: "webhook_deliveries",
    until: "due_at",
    held: "due_at > 0 AND status = 'sending'",
    ended: 1,
    // An endpoint that is switched off ends what is under way, unless whoever has it knows better.
    ends_while_held: false,
};

/// Deliveries that wait for their first attempt or for another.
pub const RETRIES: RetryTable = RetryTable {
    table: "webhook_deliveries",
    index: "webhook_deliveries_tried",
    waits: "status IN ('queued', 'retrying')",
    and: "",
};

/// Something behind an endpoint's place in the log, or a delivery that is due, and no breaker that keeps it back: $1 is
/// the time.
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

/// The endpoints that have something to be done, of all accounts. Those that are off have no place
/// in the log.
pub fn waiting(tx: &mut Tx, now: Moment) -> Result<Vec<(i64, String)>> {
    let sql = format!("SELECT account_id, endpoint_id FROM webhook_cursors WHERE {}", is_behind(tx));
    tx.all(&sql, &[now.0.into()], |row| Ok((row.int(0)?, row.text(1)?.to_string())))
}

/// Those of some accounts.
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

/// Whether this one has.
pub fn is_waiting(tx: &mut Tx, now: Moment, account: i64, endpoint: &str) -> Result<bool> {
    let sql = format!("SELECT 1 FROM webhook_cursors WHERE {} AND account_id = $2 AND endpoint_id = $3", is_behind(tx));
    let found = tx.first(&sql, &[now.0.into(), account.into(), endpoint.into()], |_| Ok::<_, Error>(()))?;
    Ok(found.is_some())
}

/// The moment since which something waits that could be sent: a delivery that is due, or a line of the log
/// that was not looked at. Of the lines of accounts with a clock of their own nothing is known.
pub fn oldest_due(tx: &mut Tx, now: Moment) -> Result<Option<Moment>> {
    let sql = "SELECT coalesce(min(due), 0) FROM (
            SELECT (SELECT min(due_at) FROM webhook_deliveries AS due WHERE due.account_id = place.account_id
                    AND due.endpoint_id = place.endpoint_id AND due_at > 0) AS due
            FROM webhook_cursors AS place
            UNION ALL
            SELECT at FROM webhook_cursors AS place
            JOIN accounts ON accounts.id = place.account_id AND test_clock = 0
            JOIN log ON log.account_id = place.account_id AND seq = sent_seq + 1) AS oldest";
    let oldest = Moment(tx.int(sql, &[])?);
    Ok(Some(oldest).filter(|oldest| oldest.0 > 0 && *oldest <= now))
}

/// What one look at an endpoint has brought.
#[derive(Default)]
pub struct Step {
    /// Whether its place in the log has moved on.
    pub moved: bool,
    /// Deliveries to be made now.
    pub claimed: Vec<Claimed>,
}

/// Makes deliveries of what happened, and claims up to `room` that are due.
pub fn advance(
    tx: &mut Tx,
    app: &App,
    account: i64,
    endpoint: &str,
    now: Moment,
    lease: Moment,
    room: usize,
) -> Result<Step> {
    let account = Account::numbered(tx, account)?;
    let ctx = app.acting(account, "webhooks").writing(tx)?;
    let Some(breaker) = Breaker::of(tx, &ctx, endpoint)?.filter(|breaker| breaker.lets_through(now)) else {
        return Ok(Step::default());
    };
    let moved = fan_out(tx, &ctx, endpoint, breaker.sent_seq)?;
    breaker.release(tx, &ctx, endpoint, now)?;
    let index = tx.dialect().indexed_by("webhook_deliveries_status");
    let sending = format!(
        "SELECT count(*) FROM webhook_deliveries{index}
         WHERE account_id = $1 AND endpoint_id = $2 AND status = 'sending' AND due_at > $3"
    );
    let sending = tx.int(&sending, &[ctx.account.into(), endpoint.into(), now.0.into()])?;
    let room = (breaker.in_flight() - sending).min(room as i64);
    let claimed = if room > 0 { claim(tx, &ctx, endpoint, &app.node, now, lease, room)? } else { Vec::new() };
    if !moved {
        breaker.drained(tx, &ctx, endpoint, now)?;
    }
    Ok(Step { moved, claimed })
}

fn fan_out(tx: &mut Tx, ctx: &Ctx, id: &str, sent: i64) -> Result<bool> {
    let own = [ctx.account.into(), id.into()];
    let Some(endpoint) = tx.first(&WebhookEndpoint::sql().get, &own, WebhookEndpoint::from_row)? else {
        return Ok(false);
    };
    let index = tx.dialect().indexed_by("webhook_deliveries_status");
    let queued = format!(
        "SELECT count(*) FROM (SELECT 1 FROM webhook_deliveries{index}
         WHERE account_id = $1 AND endpoint_id = $2 AND status = 'queued' LIMIT 1000) AS queued"
    );
    if tx.int(&queued, &own)? >= QUEUED {
        return Ok(false);
    }
    let lines = tx.all(
        &format!(
            "SELECT seq, type, at FROM log{} WHERE account_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
            log::by_seq(tx)
        ),
        &[ctx.account.into(), sent.into(), BATCH.into()],
        |row| Ok::<_, Error>((row.int(0)?, row.text(1)?.to_string(), Moment(row.int(2)?))),
    )?;
    let Some((last, ..)) = lines.last() else { return Ok(false) };
    for (seq, name, at) in lines.iter().filter(|(_, name, _)| endpoint.wants(name)) {
        delivery::queue(tx, ctx, id, name, *seq, *at, "")?;
    }
    tx.execute(
        "UPDATE webhook_cursors SET sent_seq = $1 WHERE account_id = $2 AND endpoint_id = $3",
        &[(*last).into(), ctx.account.into(), id.into()],
    )?;
    Ok(true)
}

/// A delivery under a lease.
pub struct Claimed {
    /// Whose it is.
    pub account: i64,
    /// Its id, which its receiver knows it by.
    pub id: String,
    /// Until when it is ours.
    pub lease: Moment,
    claim: i64,
}

fn claim(tx: &mut Tx, ctx: &Ctx, id: &str, node: &str, now: Moment, lease: Moment, room: i64) -> Result<Vec<Claimed>> {
    // In the order in which they became due; ids grow with time.
    let due = "SELECT id, claim, attempts, status, lost FROM webhook_deliveries
               WHERE account_id = $1 AND endpoint_id = $2 AND due_at > 0 AND due_at <= $3 ORDER BY due_at, id LIMIT $4";
    let due = tx.all(due, &[ctx.account.into(), id.into(), now.0.into(), room.into()], |row| {
        let claimed = Claimed { account: ctx.account, id: row.text(0)?.to_string(), lease, claim: row.int(1)? + 1 };
        let was_lost = row.text(3)? == "sending";
        Ok::<_, Error>((claimed, row.int(2)?, was_lost, row.int(4)? + i64::from(was_lost)))
    })?;
    let mut claimed = Vec::new();
    for (one, attempts, was_lost, lost) in due {
        // Whoever had it never came back, so often that it must be what ends them.
        if attempts >= TRIES {
            let sql =
                "UPDATE webhook_deliveries SET status = 'failed', due_at = 0, updated_at = $1, version = version + 1,
                              claim = claim + 1, reason = 'It was tried ten times, and no attempt completed.'
                       WHERE account_id = $2 AND id = $3";
            tx.execute(sql, &[now.0.into(), ctx.account.into(), (&one.id).into()])?;
            continue;
        }
        let comeback = if was_lost { leases::after_deaths(&one.id, lost) } else { Comeback::AtOnce };
        let kept_back = match comeback {
            Comeback::AtOnce => None,
            Comeback::After(seconds) => {
                Some(("retrying", now.plus_seconds(seconds).0, "The last attempts did not complete."))
            }
            Comeback::Never => Some(("failed", 0, "It was started five times in a row, and no attempt completed.")),
        };
        if let Some((status, next, reason)) = kept_back {
            tx.execute(
                "UPDATE webhook_deliveries SET status = $1, due_at = $2, next_attempt_at = $2, reason = $3, lost = $4,
                        updated_at = $5, version = version + 1, claim = claim + 1
                 WHERE account_id = $6 AND id = $7",
                &[
                    status.into(),
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
            "UPDATE webhook_deliveries SET status = 'sending', attempts = attempts + 1, next_attempt_at = 0, {},
                    updated_at = $3, version = version + 1, lost = $4
             WHERE account_id = $5 AND id = $6",
            LEASES.claimed(1)
        );
        let values = [lease.0.into(), node.into(), now.0.into(), lost.into(), ctx.account.into(), (&one.id).into()];
        tx.execute(&sql, &values)?;
        claimed.push(one);
    }
    Ok(claimed)
}

/// All that a call needs.
pub struct Parcel {
    /// Whose it is.
    pub account: Account,
    /// Where it goes.
    pub endpoint: WebhookEndpoint,
    /// The same bytes with every try.
    pub body: Vec<u8>,
}

/// What became of a call.
pub struct Outcome {
    /// The status of the answer, or 0.
    pub status: u16,
    /// The start of the answer.
    pub body: String,
    /// How long it took.
    pub duration_ms: i64,
    /// Why it failed; empty when it did not.
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

    /// What is to be sent; nothing when the endpoint was deleted meanwhile.
    pub fn load(&self, tx: &mut Tx) -> Result<Option<Parcel>> {
        let Some(delivery) = self.delivery(tx)? else { return Ok(None) };
        let Some(endpoint) = self.endpoint(tx, &delivery)? else { return Ok(None) };
        let body = body(tx, self.account, &delivery)?;
        Ok(Some(Parcel { account: Account::numbered(tx, self.account)?, endpoint, body }))
    }

    /// Writes down what became of the try, unless the lease was lost to somebody else; answers it as it is
    /// counted.
    pub fn finish(&self, tx: &mut Tx, ctx: &Ctx, outcome: &Outcome, now: Moment) -> Result<&'static str> {
        let Some(delivery) = self.delivery(tx)? else { return Ok("lost") };
        let endpoint = self.endpoint(tx, &delivery)?;
        let is_active = endpoint.as_ref().is_some_and(|endpoint| endpoint.active);
        let (good, gone) = ((200..300).contains(&outcome.status), outcome.status == 410);
        let (status, next) = match good {
            true => ("delivered", 0),
            false if gone || !is_active || delivery.attempts >= TRIES => ("failed", 0),
            false => ("retrying", now.plus_seconds(RETRY.seconds(&self.id, delivery.attempts)).0),
        };
        let ours = LEASES.end(
            tx,
            Lease { account: self.account, id: &self.id, claim: self.claim },
            "status = $1, due_at = $2, next_attempt_at = $2, response_status = $3, response_body = $4, reason = $5,
             duration_ms = $6, updated_at = $7, version = version + 1, lost = 0",
            &[
                status.into(),
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
            "retrying" => "failed",
            "failed" => "given_up",
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

/// The body: `type`, `timestamp`, `data` and `seq`, in this order.
fn body(tx: &mut Tx, account: i64, delivery: &WebhookDelivery) -> Result<Vec<u8>> {
    if delivery.seq == 0 {
        let data = json!({"endpoint_id": delivery.endpoint_id.0}).to_string();
        let mut body = Vec::new();
        log::payload(&mut body, &delivery.event, delivery.happened_at.0.unwrap_or_default(), &data, 0);
        body.push(b'}');
        return Ok(body);
    }
    let line = log::line(tx, account, delivery.seq)?;
    line.map(|line| line.payload()).ok_or_else(|| Error::internal(format!("the log has no line {}", delivery.seq)))
}

/// Why an endpoint that just failed is to be switched off, if it is.
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
    breaker.failed(tx, ctx, delivery, now)?;
    let (succeeded, failing) = (breaker.succeeded_at, breaker.failing_since);
    // An event that its receiver cannot digest does not cost it the others.
    if delivery.attempts >= TRIES && succeeded <= delivery.base.created_at.0 {
        return Ok(Some("A delivery failed ten times over several days, and no other succeeded in that time."));
    }
    let too_long = failing != 0 && failing <= now.plus_seconds(-PATIENCE_SECONDS).0;
    Ok(too_long.then_some("No delivery has succeeded for five days."))
}

/// After an endpoint was switched on it starts at the end of the log; after it was switched off
/// nothing more is sent. What is under way then has failed too, unless whoever has it comes back and knows
/// better: it keeps its claim.
pub fn switch(tx: &mut Tx, ctx: &Ctx, endpoint: &WebhookEndpoint) -> Result<()> {
    let own = [ctx.account.into(), (&endpoint.base.id).into()];
    if endpoint.active {
        let last = log::last(tx, ctx.account)?;
        tx.execute(
            "INSERT INTO webhook_cursors (account_id, endpoint_id, sent_seq, succeeded_at, failing_since, failures,
                                          next_probe_at, healed_at)
             VALUES ($1, $2, $3, 0, 0, 0, 0, 0) ON CONFLICT (account_id, endpoint_id) DO NOTHING",
            &[ctx.account.into(), (&endpoint.base.id).into(), last.into()],
        )?;
        return Ok(());
    }
    tx.execute("DELETE FROM webhook_cursors WHERE account_id = $1 AND endpoint_id = $2", &own)?;
    tx.execute(
        "UPDATE webhook_deliveries SET status = 'failed', due_at = 0, next_attempt_at = 0, version = version + 1,
                reason = 'The endpoint was switched off.'
         WHERE account_id = $1 AND endpoint_id = $2 AND status IN ('queued', 'sending', 'retrying')",
        &own,
    )?;
    Ok(())
}

/// The endpoint is gone, and with it what was to be sent. What was sent goes with its age.
pub fn forget(tx: &mut Tx, ctx: &Ctx, endpoint: &str) -> Result<()> {
    let own = [ctx.account.into(), endpoint.into()];
    tx.execute("DELETE FROM webhook_cursors WHERE account_id = $1 AND endpoint_id = $2", &own)?;
    tx.execute(
        "DELETE FROM webhook_deliveries WHERE account_id = $1 AND endpoint_id = $2
         AND status IN ('queued', 'sending', 'retrying')",
        &own,
    )?;
    Ok(())
}

/// Drops deliveries of an account that are old, up to a thousand; answers how many.
pub fn purge(tx: &mut Tx, ctx: &Ctx) -> Result<u64> {
    let index = tx.dialect().indexed_by("webhook_deliveries_old");
    let sql = format!(
        "DELETE FROM webhook_deliveries WHERE account_id = $1 AND id IN
         (SELECT id FROM webhook_deliveries{index} WHERE account_id = $1 AND created_at < $2
          ORDER BY created_at LIMIT 1000)"
    );
    Ok(tx.execute(&sql, &[ctx.account.into(), ctx.machine_now.plus_seconds(-KEPT_SECONDS).0.into()])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_tries_take_about_three_days() {
        let pause = |id: &str, attempts| RETRY.seconds(id, attempts);
        let days = |id: &str| (1..TRIES).map(|attempts| pause(id, attempts)).sum::<i64>() / 3600;
        for id in ["0190d5a2-0000-7000-8000-000000000000", "0190d5a2-0000-7000-8000-ffffffffffff", "x"] {
            assert!((67..=82).contains(&days(id)), "{}", days(id));
            assert!((2..TRIES).all(|attempts| pause(id, attempts) > pause(id, attempts - 1)));
        }
    }
}
