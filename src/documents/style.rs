//! How the languages of documents write numbers, amounts, dates and countries.

use std::sync::LazyLock;

use engine::clock::Moment;
use engine::context::Ctx;
use jiff::civil::Date;
use money::Amount;
use serde_json::Value;

use super::request::Request;
use super::{Document, DocumentKind, Language, Which};
use crate::typesetting;

/// The minus sign, which is as wide as a plus; a hyphen is shorter and can end a line.
const MINUS: &str = "\u{2212}";

/// The short names of countries, by language and code.
fn countries() -> &'static Value {
    static NAMES: LazyLock<Value> =
        LazyLock::new(|| serde_json::from_str(include_str!("../../templates/countries.json")).unwrap_or_default());
    &NAMES
}

/// How a language formats numbers and dates.
pub struct Style(pub Language);

impl Style {
    /// Formats a decimal number with at least this number of decimals.
    pub fn number(&self, digits: &str, decimals: usize) -> String {
        let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| (MINUS, rest));
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let (thousands, point) = if self.0 == Language::Dutch { ('.', ',') } else { (',', '.') };
        let mut grouped = String::new();
        for (place, digit) in whole.chars().enumerate() {
            if place > 0 && (whole.len() - place).is_multiple_of(3) {
                grouped.push(thousands);
            }
            grouped.push(digit);
        }
        let part = format!("{part:0<decimals$}");
        if part.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}{point}{part}") }
    }

    /// Formats cents, without a currency.
    pub fn amount(&self, cents: i64) -> String {
        self.number(&Amount::from_scaled(cents).to_string(), 2)
    }

    /// Formats an amount with its currency.
    pub fn money(&self, amount: Amount) -> String {
        let digits = self.amount(amount.scaled());
        match (self.0, digits.strip_prefix(MINUS)) {
            (Language::Dutch, _) => format!("€\u{a0}{digits}"),
            (Language::English, None) => format!("€{digits}"),
            (Language::English, Some(digits)) => format!("{MINUS}€{digits}"),
        }
    }

    /// Formats a date in words: 4 mei 2026.
    pub fn date(&self, date: Date) -> String {
        let month =
            &typesetting::labels()[self.0.wire()]["common"]["months"][usize::from(date.month().unsigned_abs()) - 1];
        format!("{} {} {}", date.day(), month.as_str().unwrap_or_default(), date.year())
    }

    /// Returns the sentence about the payment of an invoice that asks for no transfer, or an empty one.
    pub fn terms<K: DocumentKind>(&self, ctx: &Ctx, document: &Document<K>) -> String {
        self.terms_on(ctx.now.date(&ctx.zone), ctx, document)
    }

    /// Returns this sentence as it is printed: a PDF keeps the day that was planned when it was made.
    pub fn printed_terms<K: DocumentKind>(&self, ctx: &Ctx, document: &Document<K>) -> String {
        self.terms_on(Date::MIN, ctx, document)
    }

    fn terms_on<K: DocumentKind>(&self, today: Date, ctx: &Ctx, document: &Document<K>) -> String {
        let label = |key: &str| typesetting::labels()[self.0.wire()]["invoice"][key].as_str().unwrap_or_default();
        let owes_nothing = K::WHICH == Which::Invoice && !document.is_credit && document.is_final();
        match document.request() {
            Request::Collection(day, account) => {
                let sentence = label(match (day < today, account.is_empty()) {
                    (false, true) => "collected",
                    (false, false) => "collected_from",
                    // No day is promised that has passed.
                    (true, true) => "collecting",
                    (true, false) => "collecting_from",
                });
                // An account number is never broken.
                let account = account.replace(' ', "\u{a0}");
                let sentence = sentence.replace("{collection_date}", &self.date(day)).replace("{account}", &account);
                sentence.replace("{amount}", &self.money(document.unpaid_amount()))
            }
            Request::Paid => {
                let day = document.paid_at.0.map(|moment| self.date(moment.date(&ctx.zone)));
                label("paid_on").replace("{paid_date}", &day.unwrap_or_default())
            }
            Request::Credited => label("credited").to_string(),
            Request::Nothing if owes_nothing => label("nothing").to_string(),
            _ => String::new(),
        }
    }

    /// Returns the sentence about the answer that a quote got, or that it is no longer valid; none while it asks for an answer.
    pub fn answered<K: DocumentKind>(&self, ctx: &Ctx, document: &Document<K>) -> Option<String> {
        let label = |key: &str| typesetting::labels()[self.0.wire()]["quote"][key].as_str().unwrap_or_default();
        let day = |moment: Option<Moment>| moment.map(|moment| self.date(moment.date(&ctx.zone))).unwrap_or_default();
        let until = document.due_date.0.map(|date| self.date(date)).unwrap_or_default();
        Some(match document.request() {
            Request::Accepted(None, _) => label("accepted").to_string(),
            Request::Accepted(moment, name) if name.is_empty() => label("accepted_on").replace("{date}", &day(moment)),
            // The name comes last: braces in it are text.
            Request::Accepted(moment, name) => {
                label("accepted_by").replace("{date}", &day(moment)).replace("{name}", &name)
            }
            Request::Rejected(None) => label("rejected").to_string(),
            Request::Rejected(moment) => label("rejected_on").replace("{date}", &day(moment)),
            Request::Invoiced => label("invoiced").to_string(),
            Request::Expired => label("expired").replace("{date}", &until),
            _ => return None,
        })
    }

    /// Returns a text about a category of VAT, such as the sentence that the law requires for it; empty if there is none.
    pub fn vat(&self, key: &str, category: &str) -> &'static str {
        typesetting::labels()[self.0.wire()]["vat_categories"][category][key].as_str().unwrap_or_default()
    }

    /// Returns the rate of a row: in words, where 0% alone does not say why.
    pub fn rate(&self, rate: &str, category: &str) -> String {
        match self.vat("rate", category) {
            "" => format!("{}%", self.number(rate, 0)),
            words => words.to_string(),
        }
    }

    /// Returns the country for the address, when it differs from the sender's own.
    pub fn country(&self, code: &str, own: &str) -> String {
        if code.is_empty() || code == own || (own.is_empty() && code == "NL") {
            return String::new();
        }
        countries()[self.0.wire()][code].as_str().unwrap_or(code).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_language_does() {
        let (nl, en) = (Style(Language::Dutch), Style(Language::English));
        assert_eq!((nl.amount(123_456_789), en.amount(123_456_789)), ("1.234.567,89".into(), "1,234,567.89".into()));
        assert_eq!(
            (nl.amount(-5), nl.amount(0), en.amount(100_000)),
            ("\u{2212}0,05".into(), "0,00".into(), "1,000.00".into())
        );
        let amounts = [123_450, -500].map(Amount::from_scaled);
        assert_eq!(amounts.map(|amount| nl.money(amount)), ["€\u{a0}1.234,50", "€\u{a0}\u{2212}5,00"]);
        assert_eq!(amounts.map(|amount| en.money(amount)), ["€1,234.50", "\u{2212}€5.00"]);
        assert_eq!(
            (nl.number("1.5", 0), nl.number("2", 0), nl.number("0.123456", 2)),
            ("1,5".into(), "2".into(), "0,123456".into())
        );
    }

    #[test]
    fn every_country_has_a_short_name() {
        for (code, ..) in engine::record::countries() {
            for language in Language::ALL {
                let name = countries()[language.wire()][code].as_str().unwrap_or_default();
                assert!(!name.is_empty() && !name.contains('('), "{language:?} {code}: {name}");
            }
        }
        assert_eq!(Style(Language::Dutch).country("GB", "NL"), "Verenigd Koninkrijk");
        assert_eq!(Style(Language::English).country("NL", "NL"), "");
    }
}
