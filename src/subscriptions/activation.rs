//! Activating a subscription while retrieving the mandate of its client.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Result};
use engine::records::{self, Work};
use store::Tx;

use super::{Subscription, make_active};
use crate::payments::mandate::{self, Mandate};

/// `GET /v1/clients/{id}/direct-debit/mandate?subscription_id=`
pub fn by_mandate(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let id = call.query.get("subscription_id").unwrap_or_default();
        let standing =
            mandate::standing(tx, ctx, call.id(), |tx, mandate| activation(tx, ctx, call.id(), mandate, id))?;
        Ok(Answer::json(&standing))
    }))
}

/// Activates the subscription in the request if the mandate allows it; returns the outcome.
fn activation(tx: &mut Tx, ctx: &Ctx, client: &str, mandate: &Mandate, id: &str) -> Result<&'static str> {
    if id.is_empty() {
        return Ok("skipped");
    }
    let subscription = match records::find::<Subscription>(tx, ctx, id) {
        Ok(subscription) => subscription,
        Err(error) if error.code == Code::NotFound => return Ok("not_found"),
        Err(error) => return Err(error),
    };
    if subscription.client_id.0 != client {
        return Ok("not_found");
    }
    if !mandate.is_ready() {
        return Ok("not_authorized");
    }
    match make_active(tx, ctx, subscription) {
        Ok(_) => Ok("activated"),
        Err(error) if error.code == Code::InvalidTransition => Ok("update_failed"),
        Err(error) => Err(error),
    }
}
