//! Ends the open deliveries of an endpoint that was disabled or deleted. Nothing is sent from the moment that the
//! endpoint has no cursor. There may be a hundred thousand deliveries, so they end in slices: some in the transaction
//! that disables the endpoint, the others by a job.

use engine::app::App;
use engine::context::{Actor, Ctx};
use engine::error::{Error, Result};
use engine::jobs::{self, Claimed, Ending, Job, NewJob};
use engine::slice::{Slice, TOGETHER};
use serde::{Deserialize, Serialize};
use store::{Tx, Value};

use super::status::DeliveryStatus;

/// A job that ends the remaining open deliveries of an endpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndDeliveries {
    /// The endpoint.
    pub endpoint: String,
}

impl Job for EndDeliveries {
    const KIND: &'static str = "end_webhook_deliveries";

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        finish(app, &app.acting_in(claimed.account, Self::KIND)?, &self.endpoint)?;
        Ok(Ending::Done)
    }
}

/// Stops sending to an endpoint that was disabled or deleted in this transaction, and ends its open deliveries: as many
/// as fit, and the others by a job.
pub fn begin(tx: &mut Tx, ctx: &Ctx, endpoint: &str) -> Result<()> {
    let own = [ctx.account.into(), endpoint.into()];
    tx.execute("DELETE FROM webhook_cursors WHERE account_id = $1 AND endpoint_id = $2", &own)?;
    if !some(tx, ctx, endpoint)? {
        // Without a unique key: one that is being completed would not see the deliveries since.
        let job = EndDeliveries { endpoint: endpoint.to_string() };
        jobs::enqueue(tx, ctx, &NewJob::of(ctx, &job)?)?;
    }
    Ok(())
}

/// Ends all open deliveries of an endpoint, one slice per transaction, unless it is enabled.
pub fn finish(app: &App, caller: &Actor, endpoint: &str) -> Result<()> {
    loop {
        let (own, id) = (caller.clone(), endpoint.to_string());
        let done = app.store.write_now(caller.account.number, move |tx| {
            let ctx = own.writing(tx)?;
            some(tx, &ctx, &id)
        })?;
        if done {
            return Ok(());
        }
    }
}

/// Whether an endpoint has open deliveries.
pub fn any_open(tx: &mut Tx, ctx: &Ctx, endpoint: &str) -> Result<bool> {
    let sql = format!("{} LIMIT 1", open(tx));
    Ok(tx.first(&sql, &[ctx.account.into(), endpoint.into()], |_| Ok::<_, Error>(()))?.is_some())
}

/// Ends some open deliveries of an endpoint, unless it is enabled; returns whether none is left. A delivery in progress
/// fails too, unless its worker reports another outcome: it keeps its claim. The deliveries of a deleted endpoint are
/// deleted; those that were sent are deleted when they expire.
fn some(tx: &mut Tx, ctx: &Ctx, endpoint: &str) -> Result<bool> {
    let own: [Value; 2] = [ctx.account.into(), endpoint.into()];
    let active = "SELECT active FROM webhook_endpoints WHERE account_id = $1 AND id = $2";
    let active = tx.first(active, &own, |row| Ok::<_, Error>(row.int(0)? == 1))?;
    let these = format!("account_id = $1 AND id IN ({} LIMIT {TOGETHER})", open(tx));
    let sql = match active {
        Some(true) => return Ok(true),
        Some(false) => format!(
            "UPDATE webhook_deliveries SET status = '{}', due_at = 0, next_attempt_at = 0, version = version + 1,
                    reason = 'The endpoint was switched off.'
             WHERE {these}",
            DeliveryStatus::Failed.wire()
        ),
        None => format!("DELETE FROM webhook_deliveries WHERE {these}"),
    };
    let slice = Slice::start();
    loop {
        if tx.execute(&sql, &own)? < TOGETHER as u64 {
            return Ok(true);
        }
        slice.did_one();
        if slice.is_over() {
            return Ok(false);
        }
    }
}

/// Selects the ids of the open deliveries of the endpoint $2: those that need attention at some time.
fn open(tx: &Tx) -> String {
    let index = tx.dialect().indexed_by("webhook_deliveries_due");
    format!(
        "SELECT id FROM webhook_deliveries{index} WHERE account_id = $1 AND endpoint_id = $2 AND due_at > 0 ORDER BY due_at"
    )
}
