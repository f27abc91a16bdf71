//! Placeholders in the texts of mail: `{number}`.

use engine::error::{FieldCode, Result, Violation, violation};
use engine::input::did_you_mean;

/// The names of the placeholders.
pub const PLACEHOLDERS: [&str; 12] = [
    "salutation",
    "number",
    "title",
    "amount",
    "total",
    "date",
    "due_date",
    "reference",
    "client",
    "sender",
    "payment",
    "link",
];

/// The number, in texts about a document that has none yet.
pub const NUMBER: &str = "{number}";

/// Rejects a text with a placeholder that does not exist, or that is written in another way than `{number}`.
pub fn check_placeholders(text: &str) -> Result<(), Violation> {
    for (start, _) in text.match_indices('{') {
        let inside = text[start + 1..].split(['}', '\n']).next().unwrap_or_default();
        let is_closed = text[start + 1 + inside.len()..].starts_with('}');
        let meant = inside.trim_matches(|c: char| c == '{' || c.is_whitespace()).to_lowercase();
        let meant = if is_closed { &*meant } else { meant.split(' ').next().unwrap_or_default() };
        let is_doubled = text[..start].ends_with('{');
        if PLACEHOLDERS.contains(&meant) && (inside != meant || !is_closed || is_doubled) {
            let message = format!("has a placeholder that is not filled; write it as {{{meant}}}");
            return Err(violation(FieldCode::InvalidFormat, message));
        }
    }
    for (_, name) in placeholders(text) {
        if !PLACEHOLDERS.contains(&name) {
            let guess = did_you_mean(name, PLACEHOLDERS.into_iter());
            let all = PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(", ");
            let message = format!("has the unknown placeholder {{{name}}}, which is none of {all}{guess}");
            return Err(violation(FieldCode::InvalidFormat, message));
        }
    }
    Ok(())
}

/// Returns the names in braces and where they start. Braces around anything but a name are text.
fn placeholders(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('{').filter_map(|(start, _)| {
        let name = text[start + 1..].split_once('}')?.0;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        is_name.then_some((start, name))
    })
}

/// Fills the placeholders in one pass, so that braces in a value are left alone.
pub fn fill<'v>(text: &str, value_of: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut end = 0;
    for (start, name) in placeholders(text) {
        if start < end {
            continue;
        }
        let Some(value) = value_of(name) else { continue };
        out.push_str(&text[end..start]);
        out.push_str(value);
        end = start + name.len() + 2;
    }
    out.push_str(&text[end..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_once() {
        let value = |name: &str| match name {
            "title" => Some("{number} {"),
            "number" => Some("12"),
            _ => None,
        };
        let text = "{title} is {number}, { title } and {} stay; {unknown";
        assert_eq!(fill(text, value), "{number} { is 12, { title } and {} stay; {unknown");
        assert!(check_placeholders("{nummer}").is_err() && check_placeholders("{ x }").is_ok());
        for wrong in ["{Number}", "{{number}}", "{number }", "{ number}", "Nog {amount te gaan", "{amount"] {
            assert!(check_placeholders(wrong).is_err(), "{wrong}");
        }
        assert!(check_placeholders("{number} {amount}\n{} { {x y}").is_ok());
    }
}
