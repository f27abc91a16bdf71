//! The attempts to deliver a mail: each is recorded before it starts, and its outcome when it ends.

use engine::app::App;
use engine::context::{Actor, Ctx};
use engine::error::{Error, Result};
use engine::jobs::Claimed;
use store::Tx;

use super::delivery::Delivery;
use super::{Queued, Standing, link, outcome};

/// Records that an attempt starts, if the job is still ours. An earlier attempt without an outcome may have been delivered. The
/// account is locked, so that two nodes do not both find a mail that nobody is sending.
pub(super) fn start_try(app: &App, caller: &Actor, claimed: &Claimed, id: &str) -> Result<Option<(Delivery, Queued)>> {
    let (id, caller, account) = (id.to_string(), caller.clone(), caller.account.number);
    let claimed = claimed.clone();
    app.store.write_now(account, move |tx| {
        let ctx = caller.writing(tx)?;
        let now = ctx.now;
        if !claimed.renew(tx, ctx.machine_now)? {
            return Ok(None);
        }
        let found = Delivery::find(tx, account, &id)?;
        let Some(delivery) = found.filter(|found| !Standing::OVER.contains(&found.status)) else {
            return Ok(None);
        };
        let cut_off = i64::from(delivery.status == Standing::Sending);
        tx.execute(
            "UPDATE deliveries SET status = $1, attempts = $2, changed_at = $3,
                    maybe_twice = CASE WHEN $4 = 1 THEN 1 ELSE maybe_twice END
             WHERE account_id = $5 AND id = $6",
            &[
                Standing::Sending.wire().into(),
                (delivery.attempts + 1).into(),
                now.0.into(),
                cut_off.into(),
                account.into(),
                (&id).into(),
            ],
        )?;
        let queued = Queued::find(tx, account, &delivery.mail_id)?;
        Ok::<_, Error>(queued.map(|queued| (delivery, queued)))
    })
}

/// Records the outcome of an attempt, and tells the record that the mail is about. If this process was paused, another may have
/// begun a further attempt, whose outcome counts; but a mail that was handed over is not sent again.
pub(super) fn end_try(
    app: &App,
    caller: &Actor,
    outcome: outcome::Outcome,
    twice: bool,
    told: &outcome::Told,
    tells: bool,
) -> Result<()> {
    let followers = *app.services.get::<outcome::Followers>();
    let (caller, told) = (caller.clone(), told.clone());
    app.store.write_now(caller.account.number, move |tx| {
        let ctx = caller.writing(tx)?;
        let Some(current) = Delivery::find(tx, ctx.account, &told.delivery)? else { return Ok(()) };
        let is_accepted = matches!(outcome, outcome::Outcome::Sent | outcome::Outcome::Stored);
        let has_failed = current.status == Standing::Failed;
        let is_over = Standing::OVER.contains(&current.status) && !(is_accepted && has_failed);
        if is_over || (current.attempts != told.attempts && !is_accepted) {
            return match is_accepted || twice {
                true => mark(tx, &ctx, &told.delivery),
                false => Ok(()),
            };
        }
        if tells {
            outcome.tell(tx, &ctx, &followers, &told)?;
        }
        let sql = "UPDATE deliveries SET status = $1, reason = $2,
                          maybe_twice = CASE WHEN $3 = 1 THEN 1 ELSE maybe_twice END, changed_at = $4, next_attempt_at = $5
                   WHERE account_id = $6 AND id = $7";
        let values = [
            outcome.status().wire().into(),
            (&told.reason).into(),
            i64::from(twice).into(),
            ctx.now.0.into(),
            told.next_attempt.0.into(),
            ctx.account.into(),
            (&told.delivery).into(),
        ];
        tx.execute(sql, &values)?;
        // A mail that failed can be sent again.
        if told.has_link && is_accepted {
            link::forget(tx, ctx.account, &told.mail)?;
        }
        Ok::<_, Error>(())
    })
}

/// Records that a mail may have arrived twice.
fn mark(tx: &mut Tx, ctx: &Ctx, delivery: &str) -> Result<()> {
    let sql = "UPDATE deliveries SET maybe_twice = 1 WHERE account_id = $1 AND id = $2";
    tx.execute(sql, &[ctx.account.into(), delivery.into()])?;
    Ok(())
}
