//! A tax rate that is changed while it is the default of the account.

use engine::call::Call;
use engine::error::{Code, Error, Result};
use engine::records::{self, Work};

use super::Settings;
use super::tax_rate::{TaxContext, TaxRate};

/// `PATCH /v1/tax-rates/{id}`: the default of the account follows a rate that gets another code. Rows that name no rate have
/// the default, which must therefore be a rate for sales.
pub fn patch(call: Call) -> Result<Work> {
    let patched = records::patch::<TaxRate>(call.clone())?;
    Ok(Box::new(move |tx, ctx| {
        let before: TaxRate = records::find(tx, ctx, call.id())?;
        let answer = patched(tx, ctx)?;
        if Settings::of(tx, ctx)?.default_vat_code != before.code {
            return Ok(answer);
        }
        let rate: TaxRate = records::find(tx, ctx, call.id())?;
        if rate.context != TaxContext::Sales {
            let message = "This tax rate is the default of the account (default_vat_code), so it must be for sales. Choose another default first.";
            return Err(Error::new(Code::InUse, message));
        }
        Settings::rename_vat_code(tx, ctx, &before.code, &rate.code)?;
        Ok(answer)
    }))
}
