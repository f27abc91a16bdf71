//! A tax rate stays while subscriptions have it.

use engine::call::{Answer, Call};
use engine::error::{Code, Error, Result};
use engine::log;
use engine::records::{self, Work};
use engine::slice::TOGETHER;

use super::{needs_rate, one_needs_rate};
use crate::settings::tax_rate::TaxRate;

/// Documents keep the rate that they have; subscriptions need it for the invoices to come. Those are looked through before
/// the transaction, in which only what was written since is looked at again.
pub fn delete(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        records::find_to_change::<TaxRate>(tx, ctx, &call)?;
        let call = call.clone();
        Ok(Answer::after(move |app, caller| {
            let (own, id) = (caller.clone(), call.id().to_string());
            let (seq, needed) = app.store.read_now(move |tx| {
                let ctx = own.reading(tx)?;
                let seq = log::last(tx, ctx.account)?;
                let rate: TaxRate = records::find(tx, &ctx, &id)?;
                Ok::<_, Error>((seq, needs_rate(tx, &ctx, &rate.code)?))
            })?;
            if needed { Err(in_use()) } else { Ok(remove(call.clone(), seq)) }
        }))
    }))
}

/// Removes a rate that no subscription needed when the log ended with `seq`.
fn remove(call: Call, seq: i64) -> Work {
    Box::new(move |tx, ctx| {
        let rate: TaxRate = records::find_to_change(tx, ctx, &call)?;
        let touched = log::touched(tx, ctx.account, seq, TOGETHER)?;
        if touched.len() == TOGETHER {
            return Ok(records::once_more(delete, &call));
        }
        for (_, kind, id) in touched {
            // Its code may be another by now.
            if kind == "tax_rate" && id == rate.base.id {
                return Ok(records::once_more(delete, &call));
            }
            if kind == "subscription" && one_needs_rate(tx, ctx, &id, &rate.code)? {
                return Err(in_use());
            }
        }
        records::remove(tx, ctx, &rate)?;
        Ok(Answer::empty())
    })
}

fn in_use() -> Error {
    Error::new(Code::InUse, "This tax rate is used by subscriptions. Change them first.")
}
