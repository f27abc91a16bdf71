//! The documents of a client that is deleted or merged into another, and the drafts that name a deleted product.

use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::record::Record;
use engine::records;
use engine::slice::Slice;
use engine::tables::Relink;
use store::{Tx, Value};

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
            document.take_names(tx, ctx)?;
        }
        if link.field == "client_id" {
            money_due::move_first_paid(tx, ctx, document)?;
        }
        records::update(tx, ctx, before, document, "updated")
    })
}

/// Returns the ids of the drafts with a row for this product. Scans all drafts of the account.
pub(crate) fn naming_product<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, product: &str) -> Result<Vec<String>> {
    let (table, draft) = (Document::<K>::shape().table, Mode::Draft.wire());
    let sql = format!("SELECT id FROM {table} WHERE account_id = $1 AND generation_mode = '{draft}' AND rows LIKE $2");
    tx.all(&sql, &[ctx.account.into(), format!("%\"{product}\"%").into()], |row| Ok(row.text(0)?.to_string()))
}

/// Shows `take` the rows of all drafts, or of one of them.
pub(crate) fn rows_of_drafts<K: DocumentKind>(
    tx: &mut Tx,
    ctx: &Ctx,
    id: Option<&str>,
    take: &mut dyn FnMut(&str),
) -> Result<()> {
    let (table, draft) = (Document::<K>::shape().table, Mode::Draft.wire());
    let one = if id.is_some() { " AND id = $2" } else { "" };
    let sql = format!("SELECT rows FROM {table} WHERE account_id = $1 AND generation_mode = '{draft}'{one}");
    let values: Vec<Value> = [Some(ctx.account.into()), id.map(Into::into)].into_iter().flatten().collect();
    let shown = tx.all(&sql, &values, |row| {
        take(row.text(0)?);
        Ok::<_, Error>(())
    });
    shown.map(drop)
}

/// Clears a deleted product from the rows of a draft.
pub(crate) fn forget_product<K: DocumentKind>(tx: &mut Tx, ctx: &Ctx, id: &str, product: &str) -> Result<()> {
    let found = tx.first(&K::sql().get, &[ctx.account.into(), id.into()], Document::<K>::from_row)?;
    let Some(before) = found.filter(|document| !document.is_final()) else { return Ok(()) };
    let mut document = before.clone();
    document.rows.forget_product(product);
    records::update(tx, ctx, &before, &mut document, "updated")
}
