//! Values as people write them: numbers with a decimal comma, dates in several orders, and texts that a spreadsheet would run
//! as a formula.

use std::borrow::Cow;

use jiff::civil::Date;

/// The decimal sign of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decimal {
    /// `1,234.56`
    Point,
    /// `1.234,56`
    Comma,
}

impl Decimal {
    fn signs(self) -> (char, char) {
        match self {
            Decimal::Point => ('.', ','),
            Decimal::Comma => (',', '.'),
        }
    }
}

/// The order of dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dates {
    /// `2026-05-04`
    YearFirst,
    /// `04-05-2026`
    DayFirst,
    /// `05/04/2026`
    MonthFirst,
}

/// Guesses the decimal sign from numbers as they are written.
pub fn guess_decimal<'t>(samples: impl IntoIterator<Item = &'t str>) -> Decimal {
    let (mut point, mut comma) = (0, 0);
    for sample in samples.into_iter().filter_map(figures) {
        match (sample.rfind('.'), sample.rfind(',')) {
            (Some(dot), Some(at)) if dot > at => point += 2,
            (Some(_), Some(_)) => comma += 2,
            // A number has one decimal sign: what it has more of separates thousands.
            (Some(_), None) if sample.matches('.').count() > 1 => comma += 1,
            (None, Some(_)) if sample.matches(',').count() > 1 => point += 1,
            // Three digits after a single sign may be thousands.
            (Some(dot), None) if sample.len() - dot != 4 => point += 1,
            (None, Some(at)) if sample.len() - at != 4 => comma += 1,
            _ => {}
        }
    }
    if comma > point { Decimal::Comma } else { Decimal::Point }
}

/// Whether a number tells which its decimal sign is: `None` if it has no sign at all, false if its sign may also separate
/// thousands, as that of `1.500`.
pub fn tells_decimal(text: &str) -> Option<bool> {
    let text = figures(text)?;
    let at = text.rfind(['.', ','])?;
    let before = &text[..at];
    let is_group = text.len() - at == 4 && (1..=3).contains(&before.len()) && !before.starts_with('0');
    Some(!(is_group && text.bytes().filter(u8::is_ascii_digit).count() == before.len() + 3))
}

/// Returns the figures of a number, without a minus sign. A text that is no number with either decimal sign, such as
/// `ca. 500`, says nothing about the others.
fn figures(text: &str) -> Option<&str> {
    let is_number = [Decimal::Point, Decimal::Comma].iter().any(|decimal| number(text, *decimal).is_some());
    is_number.then(|| bare(text).1)
}

/// Returns the sign or the code of a currency other than the euro in an amount, such as the `$` of `$121.00`.
pub fn foreign_currency(text: &str) -> Option<&str> {
    let text = text.trim();
    if let Some((at, sign)) =
        text.char_indices().find(|(_, letter)| matches!(letter, '$' | '£' | '¥' | '₹' | '₽' | '₺'))
    {
        return Some(&text[at..at + sign.len_utf8()]);
    }
    text.split(|letter: char| !letter.is_alphabetic()).find(|word| FOREIGN.contains(word))
}

/// The codes of currencies that amounts are often written with.
const FOREIGN: &[&str] =
    &["USD", "GBP", "CHF", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "RON", "TRY", "JPY", "CNY", "CAD", "AUD"];

/// Reads a number; returns its digits with a decimal point, or `None` if it is not a number.
pub fn number(text: &str, decimal: Decimal) -> Option<String> {
    let (minus, digits) = bare(text);
    let (sign, group) = decimal.signs();
    let (whole, part) = digits.split_once(sign).unwrap_or((digits, ""));
    let groups: Vec<&str> = whole.split([group, ' ', '\u{a0}', '\'']).collect();
    let grouped =
        groups.len() == 1 || groups[1..].iter().all(|group| group.len() == 3) && (1..=3).contains(&groups[0].len());
    let whole = groups.concat();
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !grouped || whole.is_empty() && part.is_empty() || !is_digits(&whole) || !is_digits(part) {
        return None;
    }
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    Some(if part.is_empty() { format!("{minus}{whole}") } else { format!("{minus}{whole}.{part}") })
}

/// Returns a minus sign, before or after a number, and the number without it and without the spaces, the currency, the percent
/// sign and the plus sign around it.
fn bare(text: &str) -> (&'static str, &str) {
    let is_sign = |c: char| matches!(c, '€' | '$' | '£') || c.is_whitespace();
    let text = text.trim().trim_end_matches('%').trim();
    let text = text.strip_prefix("EUR").or_else(|| text.strip_suffix("EUR")).unwrap_or(text).trim_matches(is_sign);
    // The dashes of `1.500,-` are cents, not a minus sign.
    let whole = text.trim_end_matches('-');
    let text = if whole.ends_with(['.', ',']) { whole } else { text };
    let (minus, rest) = match text.strip_prefix('-').or_else(|| text.strip_suffix('-')) {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    (minus, rest.trim_matches(is_sign))
}

/// Guesses the order of dates as they are written.
pub fn guess_dates<'t>(samples: impl IntoIterator<Item = &'t str>) -> Dates {
    let (mut year, mut day, mut month, mut any) = (0, 0, 0, false);
    for sample in samples {
        let Some((parts, separator)) = parts(sample) else { continue };
        any = true;
        match parts {
            [first, ..] if first > 31 => year += 1,
            [first, second, _] if first > 12 && second <= 12 => day += 2,
            [first, second, _] if second > 12 && first <= 12 => month += 2,
            // Slashes alone do not tell: Belgium and France write the day first.
            _ if separator != '/' => day += 1,
            _ => {}
        }
    }
    match () {
        () if year >= day && year >= month && year > 0 => Dates::YearFirst,
        () if month > day => Dates::MonthFirst,
        () if any => Dates::DayFirst,
        () => Dates::YearFirst,
    }
}

/// Whether a date tells its day from its month: `None` if it starts with its year or both are the same, false if it may be
/// read in either order.
pub fn tells_day(text: &str) -> Option<bool> {
    let ([first, second, _], _) = parts(text)?;
    (first <= 31 && first != second).then_some(first > 12 || second > 12)
}

/// Reads a date; returns it as YYYY-MM-DD. A date that starts with its year is read in any order.
pub fn date(text: &str, order: Dates) -> Option<String> {
    let ([one, two, three], _) = parts(text)?;
    let (year, month, day) = match order {
        _ if one > 31 => (one, two, three),
        Dates::YearFirst | Dates::DayFirst => (three, two, one),
        Dates::MonthFirst => (three, one, two),
    };
    let year = if year < 100 { year + 2000 } else { year };
    let date = Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    Some(date.to_string())
}

/// Returns the three numbers of a date and what separates them. A time after it is ignored. A year is written with two digits or
/// is at least 100: programs write the first day of the year 1 where they have no date.
fn parts(text: &str) -> Option<([u32; 3], char)> {
    let day = text.trim().split([' ', 'T']).next()?;
    let separator = day.chars().find(|c| !c.is_ascii_digit())?;
    if !matches!(separator, '-' | '/' | '.') {
        return None;
    }
    let number = |part: &str| part.parse().ok().filter(|number| *number > 99 || part.len() < 3);
    let numbers: Option<Vec<u32>> = day.split(separator).map(number).collect();
    let [one, two, three] = numbers?[..] else { return None };
    Some(([one, two, three], separator))
}

/// Whether a spreadsheet would run this text as a formula, apart from apostrophes before it.
fn is_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])
}

/// Whether a text is what a spreadsheet in English or Dutch writes to CSV for an error.
pub fn is_error(text: &str) -> bool {
    const ERRORS: &[&str] = &[
        "#N/A", "#REF!", "#VALUE!", "#NAME?", "#DIV/0!", "#NUM!", "#NULL!", "#N/B", "#VERW!", "#WAARDE!", "#NAAM?",
        "#DEEL/0!", "#GETAL!", "#LEEG!",
    ];
    ERRORS.contains(&text)
}

/// Puts an apostrophe before a text that a spreadsheet would run as a formula.
pub fn defuse(text: &str) -> Cow<'_, str> {
    if is_formula(text) { format!("'{text}").into() } else { text.into() }
}

/// Removes the apostrophe that [`defuse`] put there.
pub fn undefuse(text: &str) -> &str {
    match text.strip_prefix('\'') {
        Some(rest) if is_formula(text) => rest,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_either_sign() {
        for (text, decimal, expected) in [
            ("1.234,56", Decimal::Comma, Some("1234.56")),
            ("1,234.56", Decimal::Point, Some("1234.56")),
            ("12,5", Decimal::Comma, Some("12.5")),
            ("-12,50", Decimal::Comma, Some("-12.50")),
            ("12,50-", Decimal::Comma, Some("-12.50")),
            ("€ 1.000", Decimal::Comma, Some("1000")),
            ("-€ 5,00", Decimal::Comma, Some("-5.00")),
            ("21%", Decimal::Point, Some("21")),
            ("1.000.000", Decimal::Comma, Some("1000000")),
            ("2.000-", Decimal::Comma, Some("-2000")),
            ("€ 2.000 -", Decimal::Comma, Some("-2000")),
            ("+1.500", Decimal::Comma, Some("1500")),
            ("€ 1.500,-", Decimal::Comma, Some("1500")),
            ("-1.500,--", Decimal::Comma, Some("-1500")),
            ("+-5", Decimal::Point, None),
            ("-5-", Decimal::Point, None),
            ("-", Decimal::Point, None),
            ("ca. 500", Decimal::Point, None),
            ("0012", Decimal::Point, Some("12")),
            ("12,5", Decimal::Point, None),
            ("1.2.3", Decimal::Point, None),
            ("abc", Decimal::Point, None),
            ("", Decimal::Point, None),
            ("1e5", Decimal::Point, None),
        ] {
            assert_eq!(number(text, decimal).as_deref(), expected, "{text} {decimal:?}");
        }
        assert_eq!(guess_decimal(["12,50", "1.000,00"]), Decimal::Comma);
        assert_eq!(guess_decimal(["12.50", "1,000"]), Decimal::Point);
        assert_eq!(guess_decimal(["1.000", "12,5"]), Decimal::Comma);
        assert_eq!(guess_decimal(["1.000.000"]), Decimal::Comma);
        assert_eq!(guess_decimal(["1,500", "2,000-", "+1,250", "ca. 500", "31,12,2024"]), Decimal::Point);
        assert_eq!(guess_decimal(["12,5", "ca. 500", "n.v.t.", "31.12.2024"]), Decimal::Comma);
        for (text, expected) in [
            ("1.500", Some(false)),
            ("€ 2,250", Some(false)),
            ("-12.500", Some(false)),
            ("12.50", Some(true)),
            ("0.125", Some(true)),
            ("1.234,50", Some(true)),
            ("1.000.000", Some(true)),
            ("2.000-", Some(false)),
            ("+1.500", Some(false)),
            ("1.500,-", Some(true)),
            ("ca. 500", None),
            ("31.12.2024", None),
            ("1500", None),
        ] {
            assert_eq!(tells_decimal(text), expected, "{text}");
        }
        for (text, expected) in [
            ("$121.00", Some("$")),
            ("£ 100,00", Some("£")),
            ("-100 USD", Some("USD")),
            ("CHF 5", Some("CHF")),
            ("€ 5", None),
            ("EUR 5", None),
            ("5", None),
            ("n.v.t.", None),
            ("5 per uur", None),
        ] {
            assert_eq!(foreign_currency(text), expected, "{text}");
        }
    }

    #[test]
    fn dates_are_read_in_each_order() {
        for (text, order, expected) in [
            ("2026-05-04", Dates::DayFirst, Some("2026-05-04")),
            ("04-05-2026", Dates::DayFirst, Some("2026-05-04")),
            ("4/5/26", Dates::DayFirst, Some("2026-05-04")),
            ("05/04/2026", Dates::MonthFirst, Some("2026-05-04")),
            ("2026-05-04 10:00", Dates::YearFirst, Some("2026-05-04")),
            ("2026-05-04T10:00:00Z", Dates::YearFirst, Some("2026-05-04")),
            ("31-02-2026", Dates::DayFirst, None),
            ("tomorrow", Dates::DayFirst, None),
            ("1-2", Dates::DayFirst, None),
            ("0001-01-01T00:00:00", Dates::DayFirst, None),
            ("01/01/0001", Dates::MonthFirst, None),
        ] {
            assert_eq!(date(text, order).as_deref(), expected, "{text}");
        }
        assert_eq!(guess_dates(["04-05-2026", "12-11-2026"]), Dates::DayFirst);
        assert_eq!(guess_dates(["05/13/2026"]), Dates::MonthFirst);
        assert_eq!(guess_dates(["13/05/2026", "01/02/2026"]), Dates::DayFirst);
        assert_eq!(guess_dates(["2026-05-04"]), Dates::YearFirst);
        assert_eq!(guess_dates(["01/02/2024", "03/04/2024"]), Dates::DayFirst);
        assert_eq!(guess_dates([]), Dates::YearFirst);
        assert_eq!(
            ["01/02/2024", "13/02/2024", "02/13/2024", "2024-01-02", "soon"].map(tells_day),
            [Some(false), Some(true), Some(true), None, None]
        );
    }

    #[test]
    fn formulas_are_defused_and_come_back() {
        for text in ["=1+1", "+31 6", "-x", "@a", "\tx", "\rx", "\n=1+1", "'=a", "''=a", "plain", "'quoted'", "", "a=b"]
        {
            let written = defuse(text);
            assert!(!written.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']), "{text:?}");
            assert_eq!(undefuse(&written), text);
        }
    }
}
