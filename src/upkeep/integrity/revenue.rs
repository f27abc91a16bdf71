//! Checks that the revenue of each month is the sum of its invoices.

use std::collections::BTreeMap;

use engine::accounts::Account;
use engine::error::Error;
use money::Amount;

use super::Inspection;
use crate::documents::revenue::{self, Sums};

impl Inspection<'_> {
    /// Compares the sums that are kept per month with the invoices.
    pub(super) fn revenue(&mut self, account: &Account) {
        let number = account.number;
        // In one transaction: a server may finalize an invoice meanwhile.
        let both = self.look(account, "revenue_months", |tx| {
            let kept = revenue::between(tx, number, "", "9999-99")?;
            Ok::<_, Error>((kept, revenue::added_up(tx, number)?))
        });
        let Some((kept, right)) = both else { return };
        let mut months: BTreeMap<String, (Sums, Sums)> = BTreeMap::new();
        for (month, sums) in kept {
            months.entry(month).or_default().0 = sums;
        }
        for (month, sums) in right {
            months.entry(month).or_default().1 = sums;
        }
        for (month, (kept, right)) in months.into_iter().filter(|(_, (kept, right))| kept != right) {
            let shown = |sums: Sums| {
                let amount = |cents| Amount::from_scaled(cents);
                format!("{} invoices of {} and {} VAT", sums.invoices, amount(sums.excl_vat), amount(sums.vat))
            };
            let what = format!("It has {}, but the invoices add up to {}", shown(kept), shown(right));
            self.problem(&account.uid, "revenue_months", &month, what);
        }
    }
}
