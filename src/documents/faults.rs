//! Everything that is wrong with the body of a document, in one response: the first error must not hide the others.

use engine::call::Call;
use engine::context::Ctx;
use engine::error::{Code, Error, FieldErrors, Result};
use engine::input::pending::Pending;
use engine::record::Fields;
use store::Tx;

use super::rows::{Names, ROWS, Rows};
use super::{Document, DocumentKind};
use crate::relations::client;
use crate::settings::custom_field;

/// Returns the error about the body of a document, with whatever else is wrong with it. `unread` are its rows if some of its
/// fields are invalid, and `before` the document if it is changed.
pub fn complete<K: DocumentKind>(
    tx: &mut Tx,
    ctx: &Ctx,
    pending: &Pending<Document<K>>,
    unread: Option<&Rows>,
    before: Option<&Document<K>>,
    error: Error,
) -> Error {
    let new = pending.values();
    let rows = unread.unwrap_or(&new.rows).clone();
    joined(error, |error| {
        let mut faults = pending.faults(tx, ctx, error)?;
        if !faults.has("client_id") {
            faults.join(client::named(tx, ctx, &new.client_id.0, &new.client_external_id))?;
        }
        let has_client = before.is_some_and(|before| before.is_final() || !before.client_id.0.is_empty());
        if !has_client && !faults.has("client_id") {
            faults.join(new.check_client(tx, ctx))?;
        }
        faults.join(rows.check_named(tx, ctx, &ROWS))?;
        let mut custom = new.custom_fields.clone();
        let kept = before.map(|before| &before.custom_fields);
        faults.join(custom_field::resolve(tx, ctx, K::WHICH.entity(), &mut custom, kept))?;
        Ok(faults)
    })
}

/// Completes an error about a body with the others that `collect` finds.
pub fn joined(error: Error, collect: impl FnOnce(Error) -> Result<FieldErrors>) -> Error {
    if error.code != Code::ValidationFailed {
        return error;
    }
    collect(error).map_or_else(|failed| failed, Error::invalid)
}

/// Returns what can be read of the rows in a body, if some of its fields are invalid.
pub fn unread<R: Fields>(call: &Call, pending: &Pending<R>, names: &Names) -> Option<Rows> {
    (!pending.is_valid()).then(|| Rows::readable(call.body.as_ref(), names))
}
