//! A tax rate that subscriptions use cannot be deleted.

use engine::call::{Answer, Call};
use engine::error::{Code, Error, Result};
use engine::log;
use engine::records::{self, Work};
use engine::slice::TOGETHER;

use super::{needs_rate, one_needs_rate};
use crate::settings::Settings;
use crate::settings::tax_rate::TaxRate;

/// Deletes a tax rate. Documents keep their rate; subscriptions need it for future invoices. They are scanned before
/// the transaction, which only checks those written since.
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

/// Deletes a rate that no subscription used at log line `seq`.
fn remove(call: Call, seq: i64) -> Work {
    Box::new(move |tx, ctx| {
        let rate: TaxRate = records::find_to_change(tx, ctx, &call)?;
        if Settings::of(tx, ctx)?.default_vat_code == rate.code {
            let message = "This tax rate is the default of the account (default_vat_code). Choose another first.";
            return Err(Error::new(Code::InUse, message));
        }
        let touched = log::touched(tx, ctx.account, seq, TOGETHER)?;
        if touched.len() == TOGETHER {
            return Ok(records::once_more(delete, &call));
        }
        for (_, kind, id) in touched {
            // Its code may have changed.
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
