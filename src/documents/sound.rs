//! Integrity checks of stored documents, for `kantoor verify`.

use engine::error::Result;
use store::Tx;

use super::{Document, DocumentKind, PaymentStatus, Which};

/// Returns a sentence for each problem of a document.
pub fn faults<K: DocumentKind>(tx: &mut Tx, account: i64, document: &Document<K>) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    sums(document, &mut faults);
    if document.is_final() && (document.number.starts_with("DRAFT-") || document.finalized_at.0.is_none()) {
        faults.push("It is final, but has no number or no finalization time".to_string());
    }
    for (column, copy) in document.copies() {
        if copy.check().is_err() {
            faults.push(format!("Column {column} cannot be read: it is not a JSON object"));
        }
    }
    if K::WHICH == Which::Invoice {
        payments(tx, account, document, &mut faults)?;
        period(tx, account, document, &mut faults)?;
    }
    Ok(faults)
}

/// Checks that the totals of the document and its rows match the rows.
fn sums<K: DocumentKind>(document: &Document<K>, faults: &mut Vec<String>) {
    let Ok((rows, totals)) = document.rows.worked_out() else {
        faults.push("Its rows add up to an amount that is too large".to_string());
        return;
    };
    let mut fresh = Document::<K>::default();
    fresh.take_totals(&totals);
    for (place, (own, right)) in document.rows.0.iter().zip(&rows.0).enumerate() {
        if (own.net, own.gross) != (right.net, right.gross) {
            let (own, right) = (money::Amount::from_scaled(own.net), money::Amount::from_scaled(right.net));
            faults.push(format!("The total of row {place} is {own}, but should be {right}"));
        }
    }
    for (name, own, right) in [
        ("subtotal", document.subtotal, fresh.subtotal),
        ("vat_amount", document.vat_amount, fresh.vat_amount),
        ("total_excl_vat", document.total_excl_vat, fresh.total_excl_vat),
        ("total_incl_vat", document.total_incl_vat, fresh.total_incl_vat),
    ] {
        if own != right {
            faults.push(format!("{name} is {own}, but its rows add up to {right}"));
        }
    }
    if document.vat_rate != fresh.vat_rate {
        faults.push(format!("vat_rate is {}, but its rows have {}", document.vat_rate, fresh.vat_rate));
    }
}

/// Checks that the paid and credited amounts match the payments and credits. A `payment_status` can be a custom value,
/// so only its consistency with the payment time can be checked.
fn payments<K: DocumentKind>(
    tx: &mut Tx,
    account: i64,
    document: &Document<K>,
    faults: &mut Vec<String>,
) -> Result<()> {
    let id = &document.base.id;
    let paid = "SELECT CAST(coalesce(sum(amount), 0) AS BIGINT) FROM payments
                WHERE account_id = $1 AND invoice_id = $2 AND status = 'paid'";
    let credited = "SELECT CAST(coalesce(sum(total_incl_vat), 0) AS BIGINT) FROM invoices
                    WHERE account_id = $1 AND credited_invoice_id = $2 AND credited_invoice_id <> ''";
    let paid = tx.int(paid, &[account.into(), id.into()])?;
    let credited = -tx.int(credited, &[account.into(), id.into()])?;
    for (name, own, right, of) in [
        ("paid_amount", document.paid_amount, paid, "payments"),
        ("credited_amount", document.credited_amount, credited, "credits"),
    ] {
        if own.scaled() != right {
            let right = money::Amount::from_scaled(right);
            faults.push(format!("{name} is {own}, but its {of} add up to {right}"));
        }
    }
    let mut fresh = document.clone();
    fresh.take_open_amount();
    if document.open_amount != fresh.open_amount {
        faults.push(format!("open_amount is {}, but should be {}", document.open_amount, fresh.open_amount));
    }
    let is_paid = document.payment_status == PaymentStatus::Paid;
    // An invoice that was paid and then fully credited keeps its payment time.
    if document.paid_at.0.is_some() && !is_paid && document.payment_status != PaymentStatus::Credited {
        faults.push(format!("It has a payment time, but its payment_status is '{}'", document.payment_status));
    }
    if is_paid && paid != 0 && document.paid_at.0.is_none() {
        faults.push("It is paid, but has no payment time".to_string());
    }
    Ok(())
}

/// Checks that the invoice of a subscription is the invoice of its period.
fn period<K: DocumentKind>(tx: &mut Tx, account: i64, document: &Document<K>, faults: &mut Vec<String>) -> Result<()> {
    if document.subscription_id.0.is_empty() {
        return Ok(());
    }
    let start = document.period_start.0.map(|date| date.to_string()).unwrap_or_default();
    let sql = "SELECT count(*) FROM subscription_periods
               WHERE account_id = $1 AND subscription_id = $2 AND period_start = $3 AND invoice_id = $4";
    let values = [account.into(), (&document.subscription_id.0).into(), (&start).into(), (&document.base.id).into()];
    if tx.int(sql, &values)? == 0 {
        faults.push(format!(
            "It is for the period of {start}, but the subscription has another invoice or none for that period"
        ));
    }
    Ok(())
}
