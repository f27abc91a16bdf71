//! Converts texts to those of the scheme: 73 characters, in fields of fixed lengths.

use sepa::Transliteration;
use sepa::validate::{MAX_ID_LEN, MAX_NAME_LEN, MAX_REMITTANCE_LEN};
use unicode_normalization::UnicodeNormalization;

/// A reference. It cannot start or end with a slash, or contain two in a row.
pub(crate) fn id(text: &str) -> Option<String> {
    let spelled = spelled(text);
    let parts: Vec<&str> = spelled.split('/').map(str::trim).filter(|part| !part.is_empty()).collect();
    let cut = cut(&parts.join("/"), MAX_ID_LEN);
    filled(cut.trim_end_matches(['/', ' ']))
}

/// The name of a person or business.
pub(crate) fn name(text: &str) -> Option<String> {
    filled(cut(&spelled(text), MAX_NAME_LEN).trim_end())
}

/// The remittance information of a payment.
pub(crate) fn remittance(text: &str) -> Option<String> {
    filled(cut(&spelled(text), MAX_REMITTANCE_LEN).trim_end())
}

/// Transliterates text by the table of the European Payments Council: accents are removed, Greek and Cyrillic become
/// Latin, and other characters become a dot. Its German variant would write "coördinatie" as "cooerdinatie". Line
/// breaks and repeated spaces become one space.
fn spelled(text: &str) -> String {
    let composed: String = text.nfc().collect();
    let spelled = sepa::transliterate(&composed, Transliteration::Epc);
    spelled.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cut(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

fn filled(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn transliterates_unsupported_characters() {
        assert_eq!(name("Café Müller & Zoë's coördinatie").as_deref(), Some("Cafe Muller + Zoe's coordinatie"));
        // A combining accent, as some file systems and keyboards write it.
        assert_eq!(name("Cafe\u{301}").as_deref(), Some("Cafe"));
        assert_eq!(name("Ελλάδα, Чайка").as_deref(), Some("Ellada, CHayka"));
        assert_eq!(remittance("Invoice 12\r\n\tthank  you!").as_deref(), Some("Invoice 12 thank you."));
        assert_eq!(remittance("100 € <b>\"soon\"</b>").as_deref(), Some("100 E (b)'soon'(/b)"));
    }

    #[test]
    fn references_keep_their_single_slashes() {
        assert_eq!(id("2026/0001").as_deref(), Some("2026/0001"));
        assert_eq!(id("/2026 // 0001/").as_deref(), Some("2026/0001"));
        assert_eq!(id(&format!("{}/1", "9".repeat(34))), Some("9".repeat(34)));
        assert_eq!(id("//"), None);
    }

    #[test]
    fn empty_texts_stay_empty() {
        assert_eq!((id(""), name(" \n"), remittance("\t")), (None, None, None));
    }

    proptest! {
        #[test]
        fn any_text_fits_its_field(text in any::<String>()) {
            for (made, most) in [(id(&text), 35), (name(&text), 70), (remittance(&text), 140)] {
                let made = made.unwrap_or("x".into());
                prop_assert!(sepa::is_sepa_text(&made) && made == made.trim());
                prop_assert!((1..=most).contains(&made.chars().count()));
                // The conversion is idempotent.
                prop_assert_eq!(remittance(&made), Some(made.clone()));
            }
            if let Some(id) = id(&text) {
                prop_assert!(!id.starts_with('/') && !id.ends_with('/') && !id.contains("//"));
            }
        }
    }
}
