//! Workorders: done, and made into an invoice.

use super::{Workorder, make_final, quote, with_finalized};
use crate::call::{Answer, Call};
use crate::error::{Code, Error, Result};
use crate::input;
use crate::record::{CREATED, DETAIL};
use crate::records::{self, Work};

/// `POST /v1/workorders/{id}/complete`; again: no change.
pub fn complete(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let mut before: Workorder = records::find_to_change(tx, ctx, &call)?;
        let finalized = make_final(tx, ctx, &mut before)?;
        let mut order = before.clone();
        match order.payment_status.as_str() {
            "completed" => {}
            "invoiced" => {
                let message = format!("{} has its invoice already.", order.number);
                return Err(Error::new(Code::InvalidTransition, message));
            }
            _ => order.payment_status = "completed".to_string(),
        }
        records::change(tx, ctx, &before, &mut order, "updated")?;
        Ok(with_finalized(Answer::record(ctx, &order, DETAIL).with_texts("warnings", &warnings), finalized))
    }))
}

/// `POST /v1/workorders/{id}/invoice`
pub fn invoice(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let mut order: Workorder = records::find_to_change(tx, ctx, &call)?;
        let finalized = make_final(tx, ctx, &mut order)?;
        let invoice = quote::invoice_of(tx, ctx, order)?;
        Ok(with_finalized(Answer::created(ctx, &invoice, CREATED).with_texts("warnings", &warnings), finalized))
    }))
}
