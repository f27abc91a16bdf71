//! The circuit breaker of an endpoint. When the first tries of several deliveries in a row fail, its receiver is taken to
//! be down: nothing is sent but a probe now and then, which is the oldest delivery that is due. A delivery that is kept
//! back uses up none of its tries. Once a probe is taken, all that waits is due at once and goes out in the order in which
//! it happened, one at a time until nothing is left.
//!
//! The further tries of one delivery do not count: an event that its receiver cannot digest does not hold up the others.

use engine::backoff::Backoff;
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::Result;
use store::{Tx, Value};

use super::queue::IN_FLIGHT;
use crate::webhooks::delivery::WebhookDelivery;

/// Deliveries in a row whose first try fails before the breaker opens.
const FAILURES: i64 = 5;
/// Between probes; the last delay goes on until the endpoint is switched off.
const PROBES: Backoff = Backoff { delays: &[10, 30, 60, 180, 420, 900], spread: 5 };
/// No probe is further ahead than this, in milliseconds; one that is was scheduled by a wrong clock and is due.
pub const FURTHEST: i64 = PROBES.longest() * 1000;
/// How many deliveries become due at once in one transaction.
const RELEASED: i64 = 500;

/// How an endpoint stands.
pub struct Breaker {
    /// How far it has come in the log.
    pub sent_seq: i64,
    /// When a delivery was last taken; 0 for never.
    pub succeeded_at: i64,
    /// Since when none was; 0 when the last one was.
    pub failing_since: i64,
    failures: i64,
    /// When the next probe is sent; 0 while the breaker is closed.
    next_probe_at: i64,
    /// When it closed, until all that waited was sent; else 0.
    healed_at: i64,
}

impl Breaker {
    /// That of an endpoint that is on.
    pub fn of(tx: &mut Tx, ctx: &Ctx, endpoint: &str) -> Result<Option<Breaker>> {
        let sql =
            "SELECT sent_seq, succeeded_at, failing_since, failures, next_probe_at, healed_at FROM webhook_cursors
                   WHERE account_id = $1 AND endpoint_id = $2";
        tx.first(sql, &[ctx.account.into(), endpoint.into()], |row| {
            Ok(Breaker {
                sent_seq: row.int(0)?,
                succeeded_at: row.int(1)?,
                failing_since: row.int(2)?,
                failures: row.int(3)?,
                next_probe_at: row.int(4)?,
                healed_at: row.int(5)?,
            })
        })
    }

    /// Whether something may be sent now.
    pub fn lets_through(&self, now: Moment) -> bool {
        self.next_probe_at <= now.0 || self.next_probe_at > now.0 + FURTHEST
    }

    /// How many calls may be under way: one while it probes, and one while it catches up, so that all come in order.
    pub fn in_flight(&self) -> i64 {
        if self.next_probe_at > 0 || self.healed_at > 0 { 1 } else { IN_FLIGHT as i64 }
    }

    /// Puts deliveries back into the places that they had before they failed: all of them when the receiver is well
    /// again, and for a probe the oldest that is due.
    pub fn release(&self, tx: &mut Tx, ctx: &Ctx, endpoint: &str, now: Moment) -> Result<()> {
        let (column, until, most) = match (self.healed_at, self.next_probe_at) {
            (0, 0) => return Ok(()),
            (0, _) => ("due_at", now.0, 1),
            (healed_at, _) => ("updated_at", healed_at, RELEASED),
        };
        let sql = format!(
            "UPDATE webhook_deliveries SET due_at = created_at, next_attempt_at = created_at
             WHERE account_id = $1 AND id IN (SELECT id FROM webhook_deliveries
                 WHERE account_id = $1 AND endpoint_id = $2 AND status = 'retrying' AND due_at > created_at
                 AND {column} <= $3 ORDER BY created_at, id LIMIT $4)"
        );
        tx.execute(&sql, &[ctx.account.into(), endpoint.into(), until.into(), most.into()])?;
        Ok(())
    }

    /// When nothing is due any more all that waited was sent, and it goes on two at a time.
    pub fn drained(&self, tx: &mut Tx, ctx: &Ctx, endpoint: &str, now: Moment) -> Result<()> {
        if self.healed_at > 0 {
            let sql = "UPDATE webhook_cursors SET healed_at = 0 WHERE account_id = $1 AND endpoint_id = $2
                       AND NOT EXISTS (SELECT 1 FROM webhook_deliveries AS due WHERE due.account_id = $1
                                       AND due.endpoint_id = $2 AND due.due_at > 0 AND due.due_at <= $3)";
            tx.execute(sql, &[ctx.account.into(), endpoint.into(), now.0.into()])?;
        }
        Ok(())
    }

    /// A try failed: the first of its delivery, or a probe, brings the breaker nearer to opening or the next probe
    /// further away.
    pub fn failed(&self, tx: &mut Tx, ctx: &Ctx, delivery: &WebhookDelivery, now: Moment) -> Result<()> {
        // One that was under way when the breaker opened is no probe.
        if !self.lets_through(now) {
            return Ok(());
        }
        let counts = delivery.attempts == 1 || self.next_probe_at > 0;
        let failures = self.failures + i64::from(counts);
        let next_probe_at = match failures - FAILURES {
            ..0 => 0,
            probes => now.plus_seconds(PROBES.seconds(&delivery.endpoint_id.0, probes + 1)).0,
        };
        let since = if self.failing_since == 0 { now.0 } else { self.failing_since };
        let healed_at = if next_probe_at > 0 { 0 } else { self.healed_at };
        let sql = "UPDATE webhook_cursors SET failing_since = $1, failures = $2, next_probe_at = $3, healed_at = $4
                   WHERE account_id = $5 AND endpoint_id = $6";
        let own: [Value; 2] = [ctx.account.into(), (&delivery.endpoint_id.0).into()];
        let [account, endpoint] = own.clone();
        let values = [since.into(), failures.into(), next_probe_at.into(), healed_at.into(), account, endpoint];
        tx.execute(sql, &values)?;
        if self.failing_since == 0 || next_probe_at > 0 {
            show(tx, own, since, next_probe_at)?;
        }
        Ok(())
    }
}

/// A try was taken. If the breaker was open it closes, and all that waits goes out.
pub fn succeeded(tx: &mut Tx, ctx: &Ctx, endpoint: &str, now: Moment) -> Result<()> {
    let Some(breaker) = Breaker::of(tx, ctx, endpoint)? else { return Ok(()) };
    let sql = "UPDATE webhook_cursors SET succeeded_at = $1, failing_since = 0, failures = 0,
                      healed_at = CASE WHEN next_probe_at > 0 THEN $1 ELSE healed_at END, next_probe_at = 0
               WHERE account_id = $2 AND endpoint_id = $3";
    tx.execute(sql, &[now.0.into(), ctx.account.into(), endpoint.into()])?;
    if breaker.failing_since > 0 {
        show(tx, [ctx.account.into(), endpoint.into()], 0, 0)?;
    }
    Ok(())
}

/// Somebody wants to know whether the receiver is well again: the next probe is now.
pub fn probe_now(tx: &mut Tx, ctx: &Ctx, endpoint: &str) -> Result<()> {
    let sql = "UPDATE webhook_cursors SET next_probe_at = $1
               WHERE account_id = $2 AND endpoint_id = $3 AND next_probe_at > $1";
    tx.execute(sql, &[ctx.machine_now.0.into(), ctx.account.into(), endpoint.into()])?;
    Ok(())
}

/// The endpoint shows how it stands. That is no change of it that people make: neither version nor event.
fn show(tx: &mut Tx, [account, endpoint]: [Value; 2], failing_since: i64, next_probe_at: i64) -> Result<()> {
    let sql = "UPDATE webhook_endpoints SET failing_since = $1, next_probe_at = $2 WHERE account_id = $3 AND id = $4";
    tx.execute(sql, &[failing_since.into(), next_probe_at.into(), account, endpoint])?;
    Ok(())
}

/// How many endpoints have a receiver that is down.
pub fn open(tx: &mut Tx) -> Result<i64> {
    Ok(tx.int("SELECT count(*) FROM webhook_cursors WHERE next_probe_at > 0", &[])?)
}
