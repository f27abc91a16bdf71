//! The circuit breaker of an endpoint. When the first attempts of several consecutive deliveries fail, the receiver is
//! considered down: nothing is sent except an occasional probe, which is the oldest due delivery. A delivery that is
//! held back uses no attempts. When a probe succeeds, all held deliveries become due and are sent in their original
//! order, one at a time until none is left.
//!
//! Further attempts of a delivery do not count: an event that a receiver cannot process does not block the others.

use engine::backoff::Backoff;
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::Result;
use store::{Tx, Value};

use super::status::DeliveryStatus;

/// Calls to one endpoint under way at once, on all nodes together.
pub const IN_FLIGHT: usize = 2;
/// Number of consecutive deliveries whose first attempt fails before the breaker opens.
const FAILURES: i64 = 5;
/// Delays between probes; the last one repeats until the endpoint is disabled.
const PROBES: Backoff = Backoff { delays: &[10, 30, 60, 180, 420, 900], spread: 5 };
/// No probe is further ahead than this, in milliseconds; one that is was scheduled by a wrong clock and is due.
pub const FURTHEST: i64 = PROBES.longest() * 1000;
/// Number of deliveries to release in one transaction.
const RELEASED: i64 = 500;

/// The state of an endpoint.
pub struct Breaker {
    /// Its position in the log.
    pub sent_seq: i64,
    /// When a delivery last succeeded; 0 for never.
    pub succeeded_at: i64,
    /// Since when deliveries have been failing; 0 if the last one succeeded.
    pub failing_since: i64,
    failures: i64,
    /// When the next probe is sent; 0 while the breaker is closed.
    next_probe_at: i64,
    /// When the breaker closed, until all held deliveries are sent; otherwise 0.
    healed_at: i64,
}

impl Breaker {
    /// Returns the state of an enabled endpoint.
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

    /// Whether a delivery can be sent now.
    pub fn lets_through(&self, now: Moment) -> bool {
        self.next_probe_at <= now.0 || self.next_probe_at > now.0 + FURTHEST
    }

    /// Maximum number of concurrent calls: one while probing and while catching up, so that deliveries arrive in order.
    pub fn in_flight(&self) -> i64 {
        if self.next_probe_at > 0 || self.healed_at > 0 { 1 } else { IN_FLIGHT as i64 }
    }

    /// Makes held deliveries due at their original time: all of them when the receiver has recovered, or the oldest due
    /// one for a probe.
    pub fn release(&self, tx: &mut Tx, ctx: &Ctx, endpoint: &str, now: Moment) -> Result<()> {
        let (column, until, most) = match (self.healed_at, self.next_probe_at) {
            (0, 0) => return Ok(()),
            (0, _) => ("due_at", now.0, 1),
            (healed_at, _) => ("updated_at", healed_at, RELEASED),
        };
        let retrying = DeliveryStatus::Retrying.wire();
        let sql = format!(
            "UPDATE webhook_deliveries SET due_at = created_at, next_attempt_at = created_at
             WHERE account_id = $1 AND id IN (SELECT id FROM webhook_deliveries
                 WHERE account_id = $1 AND endpoint_id = $2 AND status = '{retrying}' AND due_at > created_at
                 AND {column} <= $3 ORDER BY created_at, id LIMIT $4)"
        );
        tx.execute(&sql, &[ctx.account.into(), endpoint.into(), until.into(), most.into()])?;
        Ok(())
    }

    /// Ends the catch-up when nothing is due: then two calls can be in progress again.
    pub fn drained(&self, tx: &mut Tx, ctx: &Ctx, endpoint: &str, now: Moment) -> Result<()> {
        if self.healed_at > 0 {
            let sql = "UPDATE webhook_cursors SET healed_at = 0 WHERE account_id = $1 AND endpoint_id = $2
                       AND NOT EXISTS (SELECT 1 FROM webhook_deliveries AS due WHERE due.account_id = $1
                                       AND due.endpoint_id = $2 AND due.due_at > 0 AND due.due_at <= $3)";
            tx.execute(sql, &[ctx.account.into(), endpoint.into(), now.0.into()])?;
        }
        Ok(())
    }

    /// Records a failure: the first attempt of a delivery counts towards opening the breaker, and a probe postpones the
    /// next one.
    pub fn failed(&self, tx: &mut Tx, ctx: &Ctx, endpoint: &str, attempts: i64, now: Moment) -> Result<()> {
        // A delivery that was in progress when the breaker opened is not a probe.
        if !self.lets_through(now) {
            return Ok(());
        }
        let counts = attempts == 1 || self.next_probe_at > 0;
        let failures = self.failures + i64::from(counts);
        let next_probe_at = match failures - FAILURES {
            ..0 => 0,
            probes => now.plus_seconds(PROBES.seconds(endpoint, probes + 1)).0,
        };
        let since = if self.failing_since == 0 { now.0 } else { self.failing_since };
        let healed_at = if next_probe_at > 0 { 0 } else { self.healed_at };
        let sql = "UPDATE webhook_cursors SET failing_since = $1, failures = $2, next_probe_at = $3, healed_at = $4
                   WHERE account_id = $5 AND endpoint_id = $6";
        let own: [Value; 2] = [ctx.account.into(), endpoint.into()];
        let [account, id] = own.clone();
        let values = [since.into(), failures.into(), next_probe_at.into(), healed_at.into(), account, id];
        tx.execute(sql, &values)?;
        if self.failing_since == 0 || next_probe_at > 0 {
            show(tx, own, since, next_probe_at)?;
        }
        Ok(())
    }
}

/// Records a success. An open breaker closes, and the held deliveries are sent.
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

/// Makes the next probe due now, at the request of a caller.
pub fn probe_now(tx: &mut Tx, ctx: &Ctx, endpoint: &str) -> Result<()> {
    let sql = "UPDATE webhook_cursors SET next_probe_at = $1
               WHERE account_id = $2 AND endpoint_id = $3 AND next_probe_at > $1";
    tx.execute(sql, &[ctx.machine_now.0.into(), ctx.account.into(), endpoint.into()])?;
    Ok(())
}

/// Copies the state to the endpoint record. This is not a change by a caller: it has no new version and no event.
fn show(tx: &mut Tx, [account, endpoint]: [Value; 2], failing_since: i64, next_probe_at: i64) -> Result<()> {
    let sql = "UPDATE webhook_endpoints SET failing_since = $1, next_probe_at = $2 WHERE account_id = $3 AND id = $4";
    tx.execute(sql, &[failing_since.into(), next_probe_at.into(), account, endpoint])?;
    Ok(())
}

/// Returns the number of endpoints whose receiver is down.
pub fn open(tx: &mut Tx) -> Result<i64> {
    Ok(tx.int("SELECT count(*) FROM webhook_cursors WHERE next_probe_at > 0", &[])?)
}
