//! Strings with a specific format: addresses, account numbers, countries. Empty means no value.

use std::collections::HashSet;

use serde_json::{Value as Schema, json};
use store::{Row, Value};

use super::kinds::{Kind, clean_text, wrong_type};
use super::rules::Rules;
use crate::error::{FieldCode, Violation, violation};
use crate::json::{Json, write_text};
use crate::text::pattern;

/// Declares a type of string: its description, its JSON schema format, and its parser.
macro_rules! checked_text {
    ($(#[doc = $doc:literal])+ $name:ident, $kind:literal, $format:literal, $read:path) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name(pub String);

        impl Kind for $name {
            const NAME: &'static str = $kind;

            fn to_db(&self) -> Value<'_> {
                (&self.0).into()
            }

            fn from_db(row: &Row, column: usize) -> store::Result<Self> {
                Ok($name(row.text(column)?.to_string()))
            }

            fn from_json(json: &Json, rules: &Rules) -> Result<Self, Violation> {
                match clean_text(json, rules.max_length)?.trim() {
                    "" => Ok($name::default()),
                    text => $read(text).map($name),
                }
            }

            fn to_json(&self, rules: &Rules, out: &mut Vec<u8>) {
                if self.0.is_empty() && rules.nullable {
                    out.extend_from_slice(b"null");
                } else {
                    write_text(out, &self.0);
                }
            }

            fn schema(rules: &Rules) -> Schema {
                let kind = if rules.nullable { json!(["string", "null"]) } else { json!("string") };
                let mut schema = json!({"type": kind, "maxLength": rules.max_length});
                if rules.create || rules.patch {
                    schema["pattern"] = json!(pattern(rules.refused));
                }
                if !$format.is_empty() {
                    schema["x-form"] = json!($format);
                }
                schema
            }

            fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }
    };
}

checked_text!(
    /// An e-mail address.
    Email, "email", "e-mail address", email);
checked_text!(
    /// E-mail addresses, separated by commas.
    Emails, "emails", "e-mail addresses, comma-separated", emails);
checked_text!(
    /// A domain name, in lower case.
    Domain, "text", "domain name", domain);
checked_text!(
    /// An identifier: lower-case letters, digits and underscores.
    Slug, "slug", "small letters, digits and underscores", slug);
checked_text!(
    /// An IBAN, stored without spaces.
    Iban, "iban", "IBAN", iban);
checked_text!(
    /// A BIC of 8 or 11 characters.
    Bic, "bic", "BIC", bic);
checked_text!(
    /// A VAT number; those of the European Union are validated.
    VatNumber, "vat_number", "VAT number", vat_number);
checked_text!(
    /// A country, stored as its ISO 3166 code of two letters.
    Country, "country", "ISO 3166-1 alpha-2", country);
checked_text!(
    /// A URL of a website.
    Website, "website", "web address", website);
checked_text!(
    /// A URL that can be called; the client checks whether it is allowed.
    Callable, "website", "https address", callable);
checked_text!(
    /// A colour such as `#1a2b3c`.
    Color, "color", "#rrggbb", color);

/// A list of e-mail addresses, as a JSON array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmailList(pub Vec<String>);

impl Kind for EmailList {
    const NAME: &'static str = "emails";

    fn to_db(&self) -> Value<'_> {
        self.0.join(",").into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        match row.text(column)? {
            "" => Ok(EmailList::default()),
            text if text.split(',').all(|one| !one.is_empty()) => {
                Ok(EmailList(text.split(',').map(str::to_string).collect()))
            }
            _ => Err(store::Error::unreadable("it has an empty address")),
        }
    }

    fn from_json(json: &Json, rules: &Rules) -> Result<Self, Violation> {
        let Json::List(items) = json else { return Err(wrong_type("an array of e-mail addresses", json)) };
        if items.len() > 50 {
            return Err(violation(FieldCode::TooLong, "may have at most 50 addresses"));
        }
        let read = |item: &Json| email(clean_text(item, rules.max_length)?.trim());
        Ok(EmailList(items.iter().map(read).collect::<Result<_, Violation>>()?))
    }

    fn to_json(&self, _: &Rules, out: &mut Vec<u8>) {
        out.push(b'[');
        for (place, one) in self.0.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            write_text(out, one);
        }
        out.push(b']');
    }

    fn schema(rules: &Rules) -> Schema {
        let item = json!({"type": "string", "maxLength": rules.max_length, "pattern": pattern(rules.refused)});
        json!({"type": "array", "items": item, "maxItems": 50})
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn malformed(message: &str) -> Violation {
    violation(FieldCode::InvalidFormat, message)
}

fn email(text: &str) -> Result<String, Violation> {
    let plain = !text.contains(['<', '>', ',', ';', '"', '\n', '\r']) && !text.contains(char::is_whitespace);
    let domain = text.rsplit_once('@').map_or("", |(_, domain)| domain);
    let good = plain && domain.contains('.') && email_address::EmailAddress::is_valid(text);
    if good { Ok(text.to_string()) } else { Err(malformed("must be an e-mail address such as name@example.com")) }
}

fn emails(text: &str) -> Result<String, Violation> {
    let each: Vec<String> = text.split(',').map(|one| email(one.trim())).collect::<Result<_, Violation>>()?;
    Ok(distinct(each, &mut HashSet::new()).join(", "))
}

/// Returns the addresses that are not in `seen`, ignoring case and without duplicates.
fn distinct(addresses: Vec<String>, seen: &mut HashSet<String>) -> Vec<String> {
    addresses.into_iter().filter(|address| seen.insert(address.to_lowercase())).collect()
}

impl Emails {
    /// Removes the addresses that are in `others`.
    pub fn without(&self, others: &Emails) -> Emails {
        let split = |emails: &Emails| emails.0.split(", ").map(str::to_string).collect::<Vec<_>>();
        let mut seen = split(others).iter().map(|address| address.to_lowercase()).collect();
        Emails(distinct(split(self), &mut seen).join(", "))
    }
}

fn domain(text: &str) -> Result<String, Violation> {
    let lower = text.trim_end_matches('.').to_lowercase();
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // The last part of an IPv4 address is a number; that of a domain is not.
    let is_named = lower.rsplit('.').next().is_some_and(|last| !last.bytes().all(|byte| byte.is_ascii_digit()));
    if lower.contains('.') && lower.len() <= 253 && lower.split('.').all(label) && is_named {
        return Ok(lower);
    }
    Err(malformed(match lower.is_ascii() {
        true => "must be a domain such as example.com",
        false => {
            "must be a domain such as example.com; write one with other letters in its ASCII form, such as xn--bcher-kva.example"
        }
    }))
}

fn slug(text: &str) -> Result<String, Violation> {
    let good = text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if good {
        Ok(text.to_string())
    } else {
        Err(malformed("must consist of lower-case letters, digits and underscores"))
    }
}

fn iban(text: &str) -> Result<String, Violation> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_uppercase();
    let parsed: Result<sepa::Iban, _> = compact.parse();
    parsed.map(|_| compact).map_err(|_| malformed("must be an IBAN with valid check digits"))
}

fn bic(text: &str) -> Result<String, Violation> {
    let compact = text.replace(' ', "").to_uppercase();
    let parsed: Result<sepa::Bic, _> = compact.parse();
    parsed.map(|_| compact).map_err(|_| malformed("must be a BIC of 8 or 11 characters"))
}

fn vat_number(text: &str) -> Result<String, Violation> {
    let compact: String = text.chars().filter(|c| !matches!(c, ' ' | '.' | '-')).collect::<String>().to_uppercase();
    let european = compact.get(..2).and_then(eu_vat::Country::from_code).is_some();
    let is_plain = || (4..=20).contains(&compact.len()) && compact.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let why = match eu_vat::validate(&compact) {
        Ok(()) if european => None,
        Err(eu_vat::Error::BadChecksum) if european => {
            Some("has check digits that do not match the rest of the number; check it for a typing error")
        }
        _ if !european && is_plain() => None,
        _ => Some("must be a VAT number such as NL123456782B01"),
    };
    why.map_or(Ok(compact), |why| Err(malformed(why)))
}

/// The native names of nearby countries, in addition to the English names of the standard.
const NAMES: &[(&str, &str)] = &[
    ("nederland", "NL"),
    ("holland", "NL"),
    ("the netherlands", "NL"),
    ("netherlands", "NL"),
    ("belgië", "BE"),
    ("belgie", "BE"),
    ("belgique", "BE"),
    ("duitsland", "DE"),
    ("deutschland", "DE"),
    ("frankrijk", "FR"),
    ("luxemburg", "LU"),
    ("verenigd koninkrijk", "GB"),
    ("united kingdom", "GB"),
    ("engeland", "GB"),
    ("spanje", "ES"),
    ("españa", "ES"),
    ("italië", "IT"),
    ("italia", "IT"),
    ("oostenrijk", "AT"),
    ("österreich", "AT"),
    ("zwitserland", "CH"),
    ("ierland", "IE"),
    ("denemarken", "DK"),
    ("zweden", "SE"),
    ("noorwegen", "NO"),
    ("polen", "PL"),
    ("portugal", "PT"),
    ("verenigde staten", "US"),
    ("united states", "US"),
    ("usa", "US"),
    ("tsjechië", "CZ"),
    ("griekenland", "GR"),
];

/// The countries of ISO 3166: the codes of two and of three letters, and the English short name.
const COUNTRIES: &str = include_str!("countries.txt");

/// Returns the codes and the name of every country.
pub fn countries() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    COUNTRIES.lines().filter_map(|line| {
        let (short, rest) = line.split_once(' ')?;
        let (long, name) = rest.split_once(' ')?;
        Some((short, long, name))
    })
}

fn country(text: &str) -> Result<String, Violation> {
    let (upper, lower) = (text.to_uppercase(), text.to_lowercase());
    let by_code = countries().find(|(short, long, _)| *short == upper || *long == upper);
    let found = by_code.map(|(short, ..)| short).or_else(|| {
        let ours = NAMES.iter().find(|(name, _)| *name == lower).map(|(_, code)| *code);
        ours.or_else(|| countries().find(|(.., name)| name.to_lowercase() == lower).map(|(short, ..)| short))
    });
    found.map(str::to_string).ok_or_else(|| malformed("must be the name of a country or its ISO 3166 code, such as NL"))
}

fn website(text: &str) -> Result<String, Violation> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let rest = rest.unwrap_or(if text.contains("://") { "" } else { text });
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let good = host.contains('.')
        && !host.starts_with('.')
        && !text.contains(char::is_whitespace)
        && !text.contains(['<', '>', '"']);
    if good { Ok(text.to_string()) } else { Err(malformed("must be a URL such as https://example.com")) }
}

fn callable(text: &str) -> Result<String, Violation> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let good = rest.is_some_and(|rest| !rest.is_empty()) && !text.contains(char::is_whitespace);
    if good { Ok(text.to_string()) } else { Err(malformed("must be a URL such as https://example.com/hooks")) }
}

fn color(text: &str) -> Result<String, Violation> {
    let digits = text.strip_prefix('#').unwrap_or_default();
    let good = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if good { Ok(text.to_lowercase()) } else { Err(malformed("must be a colour such as #1a2b3c")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalizes_valid_values() {
        assert_eq!(iban("nl91 abna 0417 1643 00").unwrap(), "NL91ABNA0417164300");
        assert_eq!(bic("abnanl2a").unwrap(), "ABNANL2A");
        assert_eq!(vat_number("NL 8234.56.789.B01").is_ok(), eu_vat::validate("NL823456789B01").is_ok());
        assert_eq!(vat_number("be 0403.019.261").unwrap(), "BE0403019261");
        assert_eq!(vat_number("CHE-123.456.788").unwrap(), "CHE123456788");
        for name in ["NL", "nl", "NLD", "Nederland", "The Netherlands"] {
            assert_eq!(country(name).unwrap(), "NL", "{name}");
        }
        assert_eq!(country("Sweden").unwrap(), "SE");
        assert_eq!(emails("a@b.nl,c@d.nl").unwrap(), "a@b.nl, c@d.nl");
        assert_eq!(color("#1A2B3C").unwrap(), "#1a2b3c");
        assert!(website("example.com/x").is_ok() && website("https://example.com").is_ok());
    }

    #[test]
    fn rejects_invalid_values() {
        for text in ["NL91ABNA0417164301", "NL91", "XX00", "NL91ABNA04171643000"] {
            assert!(iban(text).is_err(), "{text}");
        }
        for text in ["a@b", "a b@c.nl", "a@b.nl\nBcc: x@y.nl", "<a@b.nl>", "@b.nl", "a@", "a@b.nl,c@d.nl"] {
            assert!(email(text).is_err(), "{text}");
        }
        assert!(bic("ABC").is_err() && vat_number("BE0403019262").is_err() && vat_number("x").is_err());
        assert!(country("Atlantis").is_err() && color("red").is_err() && website("javascript:alert(1)").is_err());
        assert!(website("ftp://example.com").is_err() && website("nodots").is_err());
    }
}
