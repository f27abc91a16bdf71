//! Workorders: completing them and creating invoices from them.

use engine::call::Call;
use engine::error::Result;
use engine::input;
use engine::record::{CREATED, DETAIL};
use engine::records::{self, Image, Work};

use super::complete::warned;
use super::status::Verb;
use super::{PaymentStatus, Workorder, change_to_final, quote, with_finalized};

/// `POST /v1/workorders/{id}/complete`; no change if it was already completed.
pub fn complete(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let before: Workorder = records::find_to_change(tx, ctx, &call)?;
        let mut order = before.clone();
        if order.may(Verb::Complete)? {
            order.payment_status = PaymentStatus::Completed;
        }
        let (finalized, image) = change_to_final(tx, ctx, &before, &mut order)?;
        let warnings = warned(&order, finalized, &warnings);
        Ok(with_finalized(Image::answer(image, ctx, &order, DETAIL).with_texts("warnings", &warnings), finalized))
    }))
}

/// `POST /v1/workorders/{id}/invoice`
pub fn invoice(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let order: Workorder = records::find_to_change(tx, ctx, &call)?;
        let finalized = !order.is_final();
        let warnings = warned(&order, finalized, &warnings);
        let (invoice, image) = quote::invoice_of(tx, ctx, order)?;
        Ok(with_finalized(image.created(ctx, &invoice, CREATED).with_texts("warnings", &warnings), finalized))
    }))
}
