//! The revenue of each month: sums of final invoices and credits, kept in the transaction that changes one of them, since
//! adding up the invoices of a year takes too long.

use engine::context::Ctx;
use engine::error::{Error, Result};
use store::{Gathered, Merge, Tx};

use super::{Document, DocumentKind, Mode};

/// What invoices add up to, in cents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// The number of invoices, credits included.
    pub invoices: i64,
    /// The total excluding VAT.
    pub excl_vat: i64,
    /// The VAT.
    pub vat: i64,
    /// The total including VAT.
    pub incl_vat: i64,
}

impl Sums {
    /// Returns these and `other` together, the latter `times`.
    pub fn plus(self, other: Sums, times: i64) -> Sums {
        Sums {
            invoices: self.invoices + times * other.invoices,
            excl_vat: self.excl_vat + times * other.excl_vat,
            vat: self.vat + times * other.vat,
            incl_vat: self.incl_vat + times * other.incl_vat,
        }
    }
}

/// Updates the sums after a change of an invoice. Its totals are locked, but its date can be moved to another month.
pub(super) fn follow<K: DocumentKind>(
    tx: &mut Tx,
    ctx: &Ctx,
    before: Option<&Document<K>>,
    invoice: &Document<K>,
) -> Result<()> {
    let (was, is) = (before.and_then(counted), counted(invoice));
    if was == is {
        return Ok(());
    }
    for ((month, sums), times) in was.into_iter().map(|was| (was, -1)).chain(is.map(|is| (is, 1))) {
        let sums = Sums::default().plus(sums, times);
        tx.gather(
            &MONTHS,
            &[
                ctx.account.into(),
                month.into(),
                sums.invoices.into(),
                sums.excl_vat.into(),
                sums.vat.into(),
                sums.incl_vat.into(),
            ],
        )?;
    }
    Ok(())
}

/// Returns the month in which an invoice counts, and its sums; none for a draft.
fn counted<K: DocumentKind>(invoice: &Document<K>) -> Option<(String, Sums)> {
    let date = invoice.invoice_date.0.filter(|_| invoice.is_final())?;
    let sums = Sums {
        invoices: 1,
        excl_vat: invoice.total_excl_vat.scaled(),
        vat: invoice.vat_amount.scaled(),
        incl_vat: invoice.total_incl_vat.scaled(),
    };
    Some((month_of(date), sums))
}

/// Returns the month of a date: `2026-05`.
fn month_of(date: jiff::civil::Date) -> String {
    date.to_string().chars().take(7).collect()
}

static MONTHS: Gathered = Gathered {
    table: "revenue_months",
    columns: &["account_id", "month", "invoices", "excl_vat", "vat", "incl_vat"],
    key: 2,
    merge: Merge::Sum,
    conflict: "ON CONFLICT (account_id, month) DO UPDATE SET invoices = revenue_months.invoices + excluded.invoices,
               excl_vat = revenue_months.excl_vat + excluded.excl_vat, vat = revenue_months.vat + excluded.vat,
               incl_vat = revenue_months.incl_vat + excluded.incl_vat",
};

/// Returns the sums of the months from `first` to `last`, without those that have none.
pub(crate) fn between(tx: &mut Tx, account: i64, first: &str, last: &str) -> Result<Vec<(String, Sums)>> {
    let sql = "SELECT month, invoices, excl_vat, vat, incl_vat FROM revenue_months
               WHERE account_id = $1 AND month >= $2 AND month <= $3 ORDER BY month";
    tx.all(sql, &[account.into(), first.into(), last.into()], from_row)
}

/// Adds up the invoices of every month, for `kantoor verify`.
pub(crate) fn added_up(tx: &mut Tx, account: i64) -> Result<Vec<(String, Sums)>> {
    let sql = format!(
        "SELECT substr(invoice_date, 1, 7), count(*), CAST(sum(total_excl_vat) AS BIGINT), CAST(sum(vat_amount) AS BIGINT),
                CAST(sum(total_incl_vat) AS BIGINT)
         FROM invoices WHERE account_id = $1 AND generation_mode = '{}' GROUP BY substr(invoice_date, 1, 7)",
        Mode::Final.wire()
    );
    tx.all(&sql, &[account.into()], from_row)
}

fn from_row(row: &store::Row) -> Result<(String, Sums)> {
    let sums = Sums { invoices: row.int(1)?, excl_vat: row.int(2)?, vat: row.int(3)?, incl_vat: row.int(4)? };
    Ok::<_, Error>((row.text(0)?.to_string(), sums))
}
