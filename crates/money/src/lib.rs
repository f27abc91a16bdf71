//! Decimal numbers as scaled integers: exact in memory, in the database and in JSON.
//!
//! [`Amount`] has two decimals (amounts of money), [`Price`] six (unit prices and quantities). Nothing here is a binary
//! floating-point number.

mod totals;

use std::fmt;
use std::str::FromStr;

pub use totals::{Group, Line, Percent, Totals, percent_of, percentage, totals};

/// Twelve digits before the decimal point: more than any small business invoices, and every product of two prices fits
/// in an `i128`.
const MAX_WHOLE: i64 = 999_999_999_999;

/// A decimal number with `SCALE` decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal<const SCALE: u32>(i64);

/// An amount of money: two decimals.
pub type Amount = Decimal<2>;
/// A unit price or a quantity: up to six decimals.
pub type Price = Decimal<6>;

/// Why a text is not a [`Decimal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalError {
    /// Not a decimal number with a decimal point.
    NotANumber,
    /// Too many decimals.
    TooPrecise,
    /// More than twelve digits before the decimal point.
    TooLarge,
}

impl<const SCALE: u32> Decimal<SCALE> {
    /// Zero.
    pub const ZERO: Self = Decimal(0);
    const ONE: i64 = 10_i64.pow(SCALE);

    /// From the number of units of the last decimal: cents for an [`Amount`].
    pub const fn from_scaled(scaled: i64) -> Self {
        Decimal(scaled)
    }

    /// Returns the number of units of the last decimal.
    pub const fn scaled(self) -> i64 {
        self.0
    }

    /// Adds; `None` if the sum is too large.
    pub fn plus(self, other: Self) -> Option<Self> {
        Self::checked(i128::from(self.0) + i128::from(other.0))
    }

    /// Returns the opposite.
    pub fn negated(self) -> Self {
        Decimal(-self.0)
    }

    /// Returns the product, rounded half up (away from zero) to `TO` decimals: `quantity.times(price)`.
    pub fn times<const OTHER: u32, const TO: u32>(self, other: Decimal<OTHER>) -> Option<Decimal<TO>> {
        let product = i128::from(self.0) * i128::from(other.0);
        Decimal::<TO>::checked(rescale(product, SCALE + OTHER, TO))
    }

    /// Returns the number with `TO` decimals, rounded half up (away from zero).
    pub fn rounded<const TO: u32>(self) -> Option<Decimal<TO>> {
        Decimal::<TO>::checked(rescale(i128::from(self.0), SCALE, TO))
    }

    fn checked(scaled: i128) -> Option<Self> {
        let limit = (i128::from(MAX_WHOLE) + 1) * i128::from(Self::ONE);
        (-limit < scaled && scaled < limit).then(|| i64::try_from(scaled).ok().map(Decimal)).flatten()
    }
}

fn rescale(value: i128, from: u32, to: u32) -> i128 {
    if from <= to {
        return value * 10_i128.pow(to - from);
    }
    let step = 10_i128.pow(from - to);
    let half = if value < 0 { -step / 2 } else { step / 2 };
    (value + half) / step
}

impl<const SCALE: u32> FromStr for Decimal<SCALE> {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        use rust_decimal::Decimal as Parsed;
        let digits = text.strip_prefix('-').unwrap_or(text);
        if !digits.starts_with(|c: char| c.is_ascii_digit()) || text.contains('_') {
            return Err(DecimalError::NotANumber);
        }
        // from_scientific rounds excess digits; parsing the base separately rejects them.
        let base = text.split(['e', 'E']).next().unwrap_or_default();
        let parsed = Parsed::from_str_exact(base).and_then(|value| match text.len() == base.len() {
            true => Ok(value),
            false => Parsed::from_scientific(text),
        });
        let parsed = parsed.map_err(|error| match error {
            rust_decimal::Error::Underflow => DecimalError::TooPrecise,
            rust_decimal::Error::ExceedsMaximumPossibleValue => DecimalError::TooLarge,
            _ => exponent_fault(text),
        })?;
        let parsed = parsed.normalize();
        if parsed.scale() > SCALE {
            return Err(DecimalError::TooPrecise);
        }
        // At most 28 digits, of which at most SCALE decimals: this cannot overflow.
        let scaled = rescale(parsed.mantissa(), parsed.scale(), SCALE);
        Self::checked(scaled).ok_or(DecimalError::TooLarge)
    }
}

/// Returns the error for a JSON number with an extreme exponent.
fn exponent_fault(text: &str) -> DecimalError {
    let numeric = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    match text.split_once(['e', 'E']) {
        Some((_, exponent)) if numeric && exponent.starts_with('-') => DecimalError::TooPrecise,
        Some((_, exponent)) if numeric && exponent.ends_with(|c: char| c.is_ascii_digit()) => DecimalError::TooLarge,
        _ => DecimalError::NotANumber,
    }
}

impl<const SCALE: u32> fmt::Display for Decimal<SCALE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut rest, mut decimals) = (self.0.unsigned_abs(), SCALE);
        while decimals > 0 && rest.is_multiple_of(10) {
            (rest, decimals) = (rest / 10, decimals - 1);
        }
        // From the last digit on: twenty of them, a sign and a point.
        let mut text = [b'0'; 22];
        let (mut start, mut written) = (text.len(), 0);
        while written <= decimals || rest > 0 {
            if written == decimals && decimals > 0 {
                start -= 1;
                text[start] = b'.';
            }
            start -= 1;
            text[start] = b'0' + (rest % 10) as u8;
            (rest, written) = (rest / 10, written + 1);
        }
        if self.0 < 0 {
            start -= 1;
            text[start] = b'-';
        }
        f.write_str(std::str::from_utf8(&text[start..]).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn price(text: &str) -> Price {
        text.parse().unwrap()
    }

    proptest! {
        #[test]
        fn is_written_without_needless_zeros(scaled in any::<i64>(), small in -2_000_000_i64..2_000_000) {
            for scaled in [scaled, small, small * 10_000] {
                let exact = rust_decimal::Decimal::new(scaled, 6).normalize().to_string();
                prop_assert_eq!(Price::from_scaled(scaled).to_string(), exact);
            }
        }
    }

    #[test]
    fn reads_what_json_and_people_write() {
        assert_eq!(price("12.5").scaled(), 12_500_000);
        assert_eq!(price("-0.000001").scaled(), -1);
        assert_eq!(price("1e2").to_string(), "100");
        assert_eq!(price("1.5E-3").to_string(), "0.0015");
        assert_eq!("141.28".parse::<Amount>().unwrap().to_string(), "141.28");
        assert_eq!("999999999999.99".parse::<Amount>().unwrap().to_string(), "999999999999.99");
    }

    #[test]
    fn rejects_invalid_numbers_with_a_reason() {
        for text in ["", "-", "abc", "1,5", "1.2.3", "NaN", "Infinity", "0x10", " 1", "1_000", "+1", ".5", "--1"] {
            assert_eq!(text.parse::<Price>(), Err(DecimalError::NotANumber), "{text}");
        }
        assert_eq!("0.001".parse::<Amount>(), Err(DecimalError::TooPrecise));
        assert_eq!("0.0000001".parse::<Price>(), Err(DecimalError::TooPrecise));
        assert_eq!("1000000000000".parse::<Price>(), Err(DecimalError::TooLarge));
        assert_eq!("1e27".parse::<Price>(), Err(DecimalError::TooLarge));
        assert_eq!("1e99".parse::<Price>(), Err(DecimalError::TooLarge));
        assert_eq!("1e-99".parse::<Price>(), Err(DecimalError::TooPrecise));
        assert!("0.99999999999999999999999999999999e0".parse::<Price>().is_err());
        assert_eq!("1e".parse::<Price>(), Err(DecimalError::NotANumber));
        assert!("1e999999999".parse::<Price>().is_err());
        assert!("1".repeat(500).parse::<Price>().is_err());
    }

    #[test]
    fn halves_round_away_from_zero() {
        let half: Amount = price("0.005").rounded().unwrap();
        assert_eq!(half.to_string(), "0.01");
        let half: Amount = price("-0.005").rounded().unwrap();
        assert_eq!(half.to_string(), "-0.01");
        let line: Amount = price("3").times(price("33.335")).unwrap();
        assert_eq!(line.to_string(), "100.01");
    }

    proptest! {
        #[test]
        fn formatting_and_parsing_round_trip(scaled in -999_999_999_999_999_999_i64..=999_999_999_999_999_999) {
            let value = Price::from_scaled(scaled);
            prop_assert_eq!(value.to_string().parse::<Price>(), Ok(value));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = text.parse::<Price>();
        }

        #[test]
        fn a_credit_is_the_exact_opposite(quantity in -1_000_000_000_i64..1_000_000_000, unit in -1_000_000_000_i64..1_000_000_000) {
            let (quantity, unit) = (Price::from_scaled(quantity), Price::from_scaled(unit));
            let sold: Amount = quantity.times(unit).unwrap();
            let credited: Amount = quantity.negated().times(unit).unwrap();
            prop_assert_eq!(sold.plus(credited), Some(Amount::ZERO));
        }

        #[test]
        fn rounding_is_never_off_by_more_than_half_a_cent(scaled in -1_000_000_000_000_i64..1_000_000_000_000) {
            let rounded: Amount = Price::from_scaled(scaled).rounded().unwrap();
            let off = rounded.scaled() * 10_000 - scaled;
            prop_assert!(off.abs() <= 5_000);
        }

        #[test]
        fn the_order_of_a_sum_does_not_matter(mut cents in prop::collection::vec(-1_000_000_i64..1_000_000, 0..50)) {
            let sum = |cents: &[i64]| cents.iter().try_fold(Amount::ZERO, |sum, &c| sum.plus(Amount::from_scaled(c)));
            let forward = sum(&cents);
            cents.reverse();
            prop_assert_eq!(forward, sum(&cents));
        }
    }

    #[test]
    fn a_thousand_dimes_make_a_hundred() {
        let dime: Amount = "0.10".parse().unwrap();
        let sum = (0..1000).try_fold(Amount::ZERO, |sum, _| sum.plus(dime)).unwrap();
        assert_eq!(sum.to_string(), "100");
    }
}
