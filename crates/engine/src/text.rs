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
    let near = known
        .filter(|_| name.len() <= 64)
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .filter(|(distance, known)| *distance <= 1 + known.len() / 4)
        .min_by_key(|(distance, _)| *distance);
    near.map(|(_, known)| format!("; did you mean '{known}'?")).unwrap_or_default()
}

/// Rejects a text of several lines, and control characters, also those that hide text or turn its direction: names go into the
/// headers and the first lines of mail.
pub fn check_line(text: &str) -> Result<(), Violation> {
    let turns = |c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let hides = |c| matches!(c, '\u{200b}' | '\u{feff}' | '\u{2028}' | '\u{2029}');
    match text.chars().any(|c| c.is_control() || turns(c) || hides(c)) {
        true => Err(violation(FieldCode::InvalidCharacters, "must be one line, without control characters")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
