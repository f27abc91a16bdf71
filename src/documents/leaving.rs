//! The documents of a client that is deleted or merged into another.

use engine::context::Ctx;
use engine::error::Result;
use engine::records;
use engine::slice::Slice;
use engine::tables::Relink;
use store::Tx;

use super::{Document, DocumentKind, Mode, money_due};

/// The condition for final documents.
pub fn when_final() -> String {
    format!("generation_mode = '{}'", Mode::Final.wire())
}

/// Changes a link of documents whose record is deleted or merged. What was printed stays; a draft will be printed with the
/// client that it has then.
pub fn relink<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, link: &Relink, slice: &Slice) -> Result<bool> {
    records::relink_with::<Document<K>>(tx, ctx, link, slice, |tx, ctx, before, document| {
        if link.field == "client_id" && !document.is_final() {
            document.take_snapshots(tx, ctx)?;
        }
        if link.field == "client_id" {
            money_due::move_first_paid(tx, ctx, document)?;
        }
        records::update(tx, ctx, before, document, "updated")
    })
}
