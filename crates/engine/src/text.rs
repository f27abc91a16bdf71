//! Text folding: searches ignore case and accents. And suggestions for misspelled names, and names that are one line.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::error::{FieldCode, Violation, violation};

/// Returns the text in lower case, without accents and without characters that are special in `LIKE`.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    if text.is_ascii() {
        // Most names are: nothing to decompose.
        text.chars().for_each(|c| push_folded(&mut folded, c.to_ascii_lowercase()));
    } else {
        let letters = text.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase);
        letters.for_each(|c| push_folded(&mut folded, c));
    }
    folded
}

fn push_folded(folded: &mut String, c: char) {
    match c {
        // Letters without a decomposition.
        'ß' => folded.push_str("ss"),
        'æ' => folded.push_str("ae"),
        'œ' => folded.push_str("oe"),
        'ø' => folded.push('o'),
        'ł' => folded.push('l'),
        'đ' | 'ð' => folded.push('d'),
        'ı' => folded.push('i'),
        'þ' => folded.push_str("th"),
        // Special characters of `LIKE` become private-use characters.
        '%' => folded.push('\u{e000}'),
        '_' => folded.push('\u{e001}'),
        '\\' => folded.push('\u{e002}'),
        c if c.is_control() => folded.push(' '),
        c => folded.push(c),
    }
}

/// Returns a suggestion for a misspelled name, to append to an error; empty if none is similar.
pub fn did_you_mean<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    // Only for short names, not for texts of a megabyte.
    if name.len() > 64 {
        return String::new();
    }
    let name = name.to_lowercase();
    let (mut near, mut related) = (None, None);
    for known in known {
        let distance = strsim::damerau_levenshtein(name.as_str(), &known.to_lowercase());
        if distance <= 1 + known.len() / 4 && near.is_none_or(|(least, _)| distance < least) {
            near = Some((distance, known));
        }
        if related.is_none() && is_part(&name, known) {
            related = Some(known);
        }
    }
    let meant = near.map(|(_, known)| known).or(related);
    meant.map(|known| format!("; did you mean '{known}'?")).unwrap_or_default()
}

/// Whether one name consists of words of the other: `price` of `unit_price`, or `unit_price_excl` of `unit_price`.
fn is_part(name: &str, known: &str) -> bool {
    let all_in =
        |few: &str, many: &str| few.len() > 2 && few.split('_').all(|word| many.split('_').any(|own| own == word));
    all_in(name, known) || known.contains('_') && all_in(known, name)
}

/// Returns the error about a value outside an enumeration, with a suggestion.
pub fn not_allowed(text: &str, allowed: &[&str]) -> Violation {
    let hint = did_you_mean(text, allowed.iter().copied());
    violation(FieldCode::InvalidChoice, format!("must be one of: {}{hint}", allowed.join(", ")))
}

/// Returns the error about one of several values that is not in a set, with a suggestion.
pub fn unknown_value<'n>(value: &str, known: impl Iterator<Item = &'n str> + Clone) -> Violation {
    let shown: String = value.chars().take(100).collect();
    let all: Vec<&str> = known.clone().collect();
    let message =
        format!("has the unknown value '{shown}', which is none of {}{}", all.join(", "), did_you_mean(value, known));
    violation(FieldCode::InvalidChoice, message)
}

/// The control characters that no text has, as in a class of a regular expression: all but tabs and line breaks.
pub const CONTROL: &str = "\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f";
/// Those and line breaks.
pub const CONTROL_AND_BREAKS: &str = "\\u0000-\\u0008\\u000a-\\u001f\\u007f-\\u009f";
/// The characters that [`check_line`] rejects.
pub const NOT_IN_LINES: &str = "\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029";
/// The characters that [`check_name`] rejects, except for the tags: not every language can write them in a regular expression.
pub const NOT_IN_NAMES: &str = "\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u115f\\u1160\\u180e\\u200b\\u2028-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb";

/// Returns the pattern of text without these characters.
pub fn pattern(refused: &str) -> String {
    format!("^[^{refused}]*$")
}

/// Returns the pattern of text without these characters that is not blank.
pub fn filled_pattern(refused: &str) -> String {
    format!("^[^{refused}]*[^\\s{refused}][^{refused}]*$")
}

/// Rejects a text of several lines, and control characters: names go into the headers and the first lines of mail.
pub fn check_line(text: &str) -> Result<(), Violation> {
    match text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        true => Err(violation(FieldCode::InvalidCharacters, "must be one line, without control characters")),
        false => Ok(()),
    }
}

/// Rejects what [`check_line`] does and characters that make a name look like another one: people recognize keys, users and
/// accounts by their names, also in the log.
pub fn check_name(name: &str) -> Result<(), Violation> {
    check_line(name)?;
    match name.chars().find(|c| is_invisible(*c)) {
        Some(c) => Err(violation(
            FieldCode::InvalidCharacters,
            format!("must not contain the invisible character U+{:04X}", u32::from(c)),
        )),
        None => Ok(()),
    }
}

/// Whether a character shows nothing but makes a name look like another one: it reverses what follows, has no width or is a tag.
/// Those that join letters and emoji, and the marks of a direction, are part of names.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
        || matches!(
            c,
            '\u{ad}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        )
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_no_invisible_characters() {
        for name in [
            "Jan\u{202e}sen",
            "\u{2066}x\u{2069}",
            "a\u{200b}b",
            "\u{feff}a",
            "a\u{ad}b",
            "a\u{e0041}",
            "a\nb",
            "\u{2028}",
        ] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        // A Persian name with a joiner, an Arabic one with a mark, and a family.
        for name in ["Jansen & Zn", "علی\u{200c}رضا", "א\u{200f}!", "👩\u{200d}👩\u{200d}👧", ""] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
        assert_eq!(check_name("a\u{202e}").unwrap_err().message, "must not contain the invisible character U+202E");
    }

    /// Whether a class of a regular expression has this character.
    fn has(class: &str, c: char) -> bool {
        let mut start = None;
        class.split("\\u").skip(1).any(|part| {
            let last = u32::from_str_radix(&part[..4], 16).unwrap();
            let first = start.take().unwrap_or(last);
            if part.ends_with('-') {
                start = Some(last);
            }
            (first..=last).contains(&u32::from(c))
        })
    }

    #[test]
    fn the_patterns_are_what_is_checked() {
        for c in '\u{0}'..='\u{ffff}' {
            let text = c.to_string();
            assert_eq!(has(NOT_IN_LINES, c), check_line(&text).is_err(), "{c:?}");
            assert_eq!(has(NOT_IN_NAMES, c), check_name(&text).is_err(), "{c:?}");
            assert_eq!(has(CONTROL, c), c.is_control() && !matches!(c, '\n' | '\r' | '\t'), "{c:?}");
            assert_eq!(has(CONTROL_AND_BREAKS, c), c.is_control() && c != '\t', "{c:?}");
        }
        assert_eq!(filled_pattern("\\u0000"), "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$");
    }

    #[test]
    fn folds_case_accents_and_wildcards() {
        assert_eq!(fold("Crème BRÛLÉE"), "creme brulee");
        assert_eq!(fold("Łódź Straße Ærø"), "lodz strasse aero");
        assert_eq!(fold("50%_off\\"), "50\u{e000}\u{e001}off\u{e002}");
        assert_eq!(fold("ﬁnance ①"), "finance 1");
        for byte in 0..128_u8 {
            // Behind a letter that is not ASCII, the same character takes the other way.
            let text = char::from(byte).to_string();
            assert_eq!(format!("o{}", fold(&text)), fold(&format!("ø{text}")));
        }
    }

    #[test]
    fn suggests_names_that_are_near_or_have_the_same_words() {
        let known = ["name", "unit_price", "vat_rate", "vat_code", "Closed"];
        let hint = |name: &str| did_you_mean(name, known.into_iter());
        for (name, meant) in [
            ("nmae", "name"),
            ("unit_pirce", "unit_price"),
            ("price", "unit_price"),
            ("Unit_Price", "unit_price"),
            ("unit_price_excl", "unit_price"),
            ("vat", "vat_rate"),
            ("closed", "Closed"),
        ] {
            assert_eq!(hint(name), format!("; did you mean '{meant}'?"), "{name}");
        }
        for name in ["", "x", "un", "colour", "price_list_of_products", &"x".repeat(65)] {
            assert_eq!(hint(name), "", "{name}");
        }
    }
}
