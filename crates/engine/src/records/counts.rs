//! The number of records of each kind.

use store::{Gathered, Merge, Tx};

use crate::context::Ctx;
use crate::error::Result;
use crate::record::Record;

/// The total of an unfiltered list is stored, since counting a million rows is expensive.
pub fn count<R: Record>(tx: &mut Tx, ctx: &Ctx, change: i64) -> Result<()> {
    count_kind(R::shape().name, tx, ctx, change)
}

pub(super) fn count_kind(kind: &'static str, tx: &mut Tx, ctx: &Ctx, change: i64) -> Result<()> {
    Ok(tx.gather(&COUNTS, &[ctx.account.into(), kind.into(), change.into()])?)
}

static COUNTS: Gathered = Gathered {
    table: "record_counts",
    columns: &["account_id", "kind", "total"],
    key: 2,
    merge: Merge::Sum,
    conflict: "ON CONFLICT (account_id, kind) DO UPDATE SET total = record_counts.total + excluded.total",
};
