//! The number of records of each kind.

use store::{Gathered, Merge, Tx};

use crate::context::Ctx;
use crate::error::Result;
use crate::record::Record;

/// The total of an unfiltered list is stored, since counting a million rows is expensive.
pub fn count<R: Record>(tx: &mut Tx, ctx: &Ctx, change: i64) -> Result<()> {
    Ok(tx.gather(&COUNTS, &[ctx.account.into(), R::shape().name.into(), change.into()])?)
}

static COUNTS: Gathered = Gathered {
    table: "record_counts",
    columns: &["account_id", "kind", "total"],
    key: 2,
    merge: Merge::Sum,
    conflict: "ON CONFLICT (account_id, kind) DO UPDATE SET total = record_counts.total + excluded.total",
};
