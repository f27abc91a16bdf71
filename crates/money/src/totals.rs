//! Totals of lines with tax according to EN 16931: a line is rounded to cents, tax is computed per group of lines with
//! the same rate and never per line, and totals are sums.

use crate::{Amount, Decimal, Price};

/// A percentage.
pub type Percent = Decimal<2>;

/// A line: quantity, unit price and tax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<K> {
    /// The quantity.
    pub quantity: Price,
    /// The unit price excluding tax.
    pub unit_price: Price,
    /// The tax percentage.
    pub rate: Percent,
    /// Distinguishes groups with the same rate.
    pub key: K,
}

/// Lines of one rate and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<K> {
    /// The percentage.
    pub rate: Percent,
    /// Distinguishes it from groups with the same rate.
    pub key: K,
    /// The sum of the lines.
    pub net: Amount,
    /// The tax on that sum.
    pub tax: Amount,
}

/// The totals of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals<K> {
    /// The total of each line excluding tax, in order.
    pub lines: Vec<Amount>,
    /// The groups, highest rate first.
    pub groups: Vec<Group<K>>,
    /// The sum of the lines.
    pub net: Amount,
    /// The sum of the tax.
    pub tax: Amount,
    /// The sum of both.
    pub gross: Amount,
}

/// Computes the totals of `lines`; the error is the index of a line that is too large.
pub fn totals<K: Ord + Clone>(lines: &[Line<K>]) -> Result<Totals<K>, usize> {
    let mut nets = Vec::with_capacity(lines.len());
    let mut groups: Vec<Group<K>> = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let net: Amount = line.quantity.times(line.unit_price).ok_or(place)?;
        nets.push(net);
        match groups.iter_mut().find(|group| group.rate == line.rate && group.key == line.key) {
            Some(group) => group.net = group.net.plus(net).ok_or(place)?,
            None => groups.push(Group { rate: line.rate, key: line.key.clone(), net, tax: Amount::ZERO }),
        }
    }
    groups.sort_by(|a, b| b.rate.cmp(&a.rate).then_with(|| a.key.cmp(&b.key)));
    let last = lines.len().saturating_sub(1);
    let (mut net, mut tax) = (Amount::ZERO, Amount::ZERO);
    for group in &mut groups {
        group.tax = percent_of(group.rate, group.net).ok_or(last)?;
        net = net.plus(group.net).ok_or(last)?;
        tax = tax.plus(group.tax).ok_or(last)?;
    }
    let gross = net.plus(tax).ok_or(last)?;
    Ok(Totals { lines: nets, groups, net, tax, gross })
}

/// Returns a percentage of an amount, rounded half up (away from zero).
pub fn percent_of(rate: Percent, amount: Amount) -> Option<Amount> {
    // A percentage with two decimals is a factor with four.
    Decimal::<4>::from_scaled(rate.scaled()).times(amount)
}

/// Returns `part` as a percentage of `whole`, rounded half up; zero if `whole` is zero.
pub fn percentage(part: Amount, whole: Amount) -> Percent {
    if whole.scaled() == 0 {
        return Percent::ZERO;
    }
    let (part, whole) = (i128::from(part.scaled()) * 10_000, i128::from(whole.scaled()));
    let doubled = 2 * part.abs() + whole.abs();
    let rounded = doubled / (2 * whole.abs());
    let signed = if (part < 0) == (whole < 0) { rounded } else { -rounded };
    Percent::from_scaled(i64::try_from(signed).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(quantity: &str, unit_price: &str, rate: &str) -> Line<u8> {
        let (quantity, unit_price) = (quantity.parse().unwrap(), unit_price.parse().unwrap());
        Line { quantity, unit_price, rate: rate.parse().unwrap(), key: 0 }
    }

    fn shown(totals: &Totals<u8>) -> String {
        format!("{} + {} = {}", totals.net, totals.tax, totals.gross)
    }

    #[test]
    fn tax_is_per_rate_and_not_per_line() {
        // 21% of 0.02 per line would round to zero three times; of 0.06 it is a cent.
        let lines = vec![line("1", "0.02", "21"); 3];
        assert_eq!(shown(&totals(&lines).unwrap()), "0.06 + 0.01 = 0.07");
        let mixed = [line("2", "50.125", "21"), line("1", "10", "9"), line("1", "5", "0")];
        let mixed = totals(&mixed).unwrap();
        assert_eq!(shown(&mixed), "115.25 + 21.95 = 137.2");
        assert_eq!(mixed.groups.iter().map(|group| group.rate.to_string()).collect::<Vec<_>>(), ["21", "9", "0"]);
        assert_eq!(percentage(mixed.tax, mixed.net).to_string(), "19.05");
    }

    #[test]
    fn a_thousand_lines_of_a_dime_make_a_hundred() {
        let totals = totals(&vec![line("1", "0.10", "21"); 1000]).unwrap();
        assert_eq!(shown(&totals), "100 + 21 = 121");
    }

    #[test]
    fn reports_the_line_that_is_too_large() {
        let lines = [line("1", "1", "21"), line("999999999", "999999999", "21")];
        assert_eq!(totals(&lines), Err(1));
    }

    fn any_line() -> impl Strategy<Value = Line<u8>> {
        let rates = prop::sample::select(vec![0_i64, 900, 2100, 1250]);
        (-9_999_999_999_i64..9_999_999_999, -9_999_999_999_i64..9_999_999_999, rates, 0_u8..3).prop_map(
            |(quantity, unit_price, rate, key)| Line {
                quantity: Price::from_scaled(quantity),
                unit_price: Price::from_scaled(unit_price),
                rate: Percent::from_scaled(rate),
                key,
            },
        )
    }

    proptest! {
        #[test]
        fn totals_add_up(lines in prop::collection::vec(any_line(), 0..40)) {
            let totals = totals(&lines).unwrap();
            let sum = |amounts: Vec<Amount>| amounts.into_iter().try_fold(Amount::ZERO, Amount::plus).unwrap();
            prop_assert_eq!(sum(totals.lines.clone()), totals.net);
            prop_assert_eq!(sum(totals.groups.iter().map(|group| group.net).collect()), totals.net);
            prop_assert_eq!(sum(totals.groups.iter().map(|group| group.tax).collect()), totals.tax);
            prop_assert_eq!(totals.net.plus(totals.tax).unwrap(), totals.gross);
        }

        #[test]
        fn negated_lines_give_negated_totals(lines in prop::collection::vec(any_line(), 0..40)) {
            let opposite: Vec<_> =
                lines.iter().map(|line| Line { quantity: line.quantity.negated(), ..line.clone() }).collect();
            let (there, back) = (totals(&lines).unwrap(), totals(&opposite).unwrap());
            prop_assert_eq!((there.net.negated(), there.tax.negated(), there.gross.negated()), (back.net, back.tax, back.gross));
        }

        #[test]
        fn the_order_of_lines_does_not_matter(mut lines in prop::collection::vec(any_line(), 0..40)) {
            let there = totals(&lines).unwrap();
            lines.reverse();
            let back = totals(&lines).unwrap();
            prop_assert_eq!((there.net, there.tax, there.groups), (back.net, back.tax, back.groups));
        }
    }
}
