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

/// Maximum number of placeholders that one error names.
const MAX_NAMED: usize = 20;

/// The number, in texts about a document that has none yet.
pub const NUMBER: &str = "{number}";

/// What is still to be paid, and by when.
pub const AMOUNT: &str = "{amount}";
/// The total of a document, whatever was paid.
pub const TOTAL: &str = "{total}";
/// The due date, or the last day that a quote is valid.
pub const DUE_DATE: &str = "{due_date}";
/// The sentence that asks for a transfer, or says that none is needed.
pub const PAYMENT: &str = "{payment}";

/// Whether a text asks for money, as far as a program can tell: it names what is still to be paid or until when, or the total
/// without `{payment}`, the sentence that fits every status.
pub fn asks(subject: &str, message: &str) -> bool {
    let has = |placeholder: &str| subject.contains(placeholder) || message.contains(placeholder);
    has(AMOUNT) || has(DUE_DATE) || (has(TOTAL) && !has(PAYMENT))
}

/// Rejects a text with placeholders that do not exist, or that are written in another way than `{number}`; names all of them.
pub fn check_placeholders(text: &str) -> Result<(), Violation> {
    let (miswritten, unknown) = (miswritten(text), unknown(text));
    let mut wrong = Vec::new();
    match miswritten.as_slice() {
        [] => {}
        [one] => wrong.push(format!("has a placeholder that is not filled; write it as {one}")),
        several => {
            wrong.push(format!("has placeholders that are not filled; write them as {}", several.join(", ")));
        }
    }
    let of_flows = of_flows(text);
    if !of_flows.is_empty() {
        let named = of_flows.join(", ");
        wrong.push(format!("has {named}, as flows write placeholders; here they are written like {NUMBER}"));
    }
    let all = PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(", ");
    match unknown.as_slice() {
        [] => {}
        [one] => {
            let guess = did_you_mean(one, PLACEHOLDERS.into_iter());
            wrong.push(format!("has the unknown placeholder {{{one}}}, which is none of {all}{guess}"));
        }
        several => {
            let guess = |name: &str| did_you_mean(name, PLACEHOLDERS.into_iter()).replacen("; ", "", 1);
            let named = several.iter().map(|name| match guess(name).as_str() {
                "" => format!("{{{name}}}"),
                guess => format!("{{{name}}} ({guess})"),
            });
            let named: Vec<String> = named.collect();
            wrong.push(format!("has the unknown placeholders {}, which are none of {all}", named.join(", ")));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(violation(FieldCode::InvalidFormat, wrong.join("; it "))) }
}

/// Returns the placeholders that are written in another way, as they should be written.
fn miswritten(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices('{') {
        let inside = text[start + 1..].split(['}', '\n']).next().unwrap_or_default();
        let is_closed = text[start + 1 + inside.len()..].starts_with('}');
        let written = inside.trim_matches(|c: char| c == '{' || c.is_whitespace());
        let written = if is_closed { written } else { written.split(' ').next().unwrap_or_default() };
        let Some(meant) = meant(written) else { continue };
        let is_doubled = text[..start].ends_with('{');
        let right = format!("{{{meant}}}");
        let is_wrong = inside != meant || !is_closed || is_doubled;
        if is_wrong && !found.contains(&right) && found.len() < MAX_NAMED {
            found.push(right);
        }
    }
    found
}

/// Returns the placeholder that a name in braces means, also one of a flow: `dueDate`, `due-date`, `data.number | upper`.
fn meant(written: &str) -> Option<&'static str> {
    let path = path_of(written);
    let (before, name) = path.rsplit_once('.').unwrap_or(("", path));
    let is_path = before.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte));
    if !is_path || (!before.is_empty() && name.contains(' ')) {
        return None;
    }
    let plain = |name: &str| name.replace(['_', '-', ' '], "").to_lowercase();
    let name = plain(name);
    PLACEHOLDERS.into_iter().find(|own| plain(own) == name)
}

/// Returns the first placeholder of a text, however it is written.
pub fn first_placeholder(text: &str) -> Option<&str> {
    text.match_indices('{').find_map(|(start, _)| {
        let inside = text[start + 1..].split_once('}')?.0;
        meant(inside).map(|_| &text[start..start + inside.len() + 2])
    })
}

/// Returns an expression of a flow without its filters.
fn path_of(expression: &str) -> &str {
    expression.split('|').next().unwrap_or_default().trim()
}

/// Returns the placeholders of flows that are none here: `{{ data.client_email }}`.
fn of_flows(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices("{{") {
        let Some((inside, _)) = text[start + 2..].split_once("}}") else { continue };
        let path = path_of(inside);
        let is_path = path.starts_with(|c: char| c.is_ascii_alphabetic())
            && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte));
        let whole = &text[start..start + inside.len() + 4];
        // A name alone is unknown, and one that is known is only written in another way.
        let is_new = is_path && meant(path).is_none() && !is_name(inside) && !found.contains(&whole);
        if is_new && found.len() < MAX_NAMED {
            found.push(whole);
        }
    }
    found
}

/// Returns the names of placeholders that do not exist.
fn unknown(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (_, name) in placeholders(text) {
        if !PLACEHOLDERS.contains(&name) && !found.contains(&name) && found.len() < MAX_NAMED {
            found.push(name);
        }
    }
    found
}

/// Returns the names in braces and where they start. Braces around anything but a name are text.
fn placeholders(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('{').filter_map(|(start, _)| {
        let name = text[start + 1..].split_once('}')?.0;
        is_name(name).then_some((start, name))
    })
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
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

/// A part of a template: as it is written, and as it is filled.
#[derive(Clone, Copy)]
struct Part<'t> {
    written: &'t str,
    filled: &'t str,
}

impl Part<'_> {
    fn is_literal(&self) -> bool {
        std::ptr::eq(self.written, self.filled)
    }
}

/// Returns a text with the placeholders of the template that it was filled from, before the first and after the last place
/// where somebody changed it. What is between stays as it was written.
pub fn restore<'v>(template: &'v str, text: &str, value_of: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut parts = split(template, value_of);
    let (mut start, mut before) = (0, String::new());
    while let Some(part) = parts.first().copied() {
        let rest = &text[start..];
        let same = [part.filled, part.written].into_iter().find(|one| rest.starts_with(one));
        let Some(same) = same else {
            if part.is_literal() {
                let alike = part.filled.chars().zip(rest.chars()).take_while(|(one, other)| one == other);
                let length = alike.map(|(letter, _)| letter.len_utf8()).sum();
                let (taken, left) = part.filled.split_at(length);
                (start, before) = (start + length, before + taken);
                parts[0] = Part { written: left, filled: left };
            }
            break;
        };
        (start, before) = (start + same.len(), before + part.written);
        parts.remove(0);
    }
    let (mut end, mut after) = (text.len(), String::new());
    while let Some(part) = parts.pop() {
        let rest = &text[start..end];
        let same = [part.filled, part.written].into_iter().find(|one| rest.ends_with(one));
        let Some(same) = same else {
            if part.is_literal() {
                let alike = part.filled.chars().rev().zip(rest.chars().rev()).take_while(|(one, other)| one == other);
                let length: usize = alike.map(|(letter, _)| letter.len_utf8()).sum();
                (end, after) = (end - length, part.filled[part.filled.len() - length..].to_string() + &after);
            }
            break;
        };
        (end, after) = (end - same.len(), part.written.to_string() + &after);
    }
    before + &text[start..end] + &after
}

fn split<'v>(template: &'v str, value_of: impl Fn(&str) -> Option<&'v str>) -> Vec<Part<'v>> {
    let (mut parts, mut end) = (Vec::new(), 0);
    let literal = |text: &'v str| (!text.is_empty()).then_some(Part { written: text, filled: text });
    for (start, name) in placeholders(template) {
        let Some(value) = value_of(name).filter(|_| start >= end) else { continue };
        parts.extend(literal(&template[end..start]));
        end = start + name.len() + 2;
        parts.push(Part { written: &template[start..end], filled: value });
    }
    parts.extend(literal(&template[end..]));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_restored_around_a_change() {
        let value = |name: &str| match name {
            "salutation" => Some("Beste Anna"),
            "amount" => Some("€ 121,00"),
            "payment" => Some(""),
            "sender" => Some("Jansen"),
            _ => None,
        };
        let template = "{salutation},\n\nU moet {amount} betalen. {payment}Snel.\n\n{sender}";
        for (text, restored) in [
            ("Beste Anna,\n\nU moet € 121,00 betalen. Snel.\n\nJansen", template),
            (
                "Beste Anna,\n\nU kunt € 121,00 betalen. Snel.\n\nJansen",
                "{salutation},\n\nU kunt {amount} betalen. {payment}Snel.\n\n{sender}",
            ),
            (
                "Beste Anna,\n\nU moet € 99,00 betalen. Snel.\n\nPiet",
                "{salutation},\n\nU moet € 99,00 betalen. Snel.\n\nPiet",
            ),
            (
                "Hoi,\n\nU moet {amount} betalen. Snel.\n\nJansen\nGroet",
                "Hoi,\n\nU moet {amount} betalen. Snel.\n\nJansen\nGroet",
            ),
            ("Hoi", "Hoi"),
            ("", ""),
            ("é", "é"),
        ] {
            assert_eq!(restore(template, text, value), restored);
            assert_eq!(fill(restored, value), fill(text, value), "it says the same");
        }
        assert_eq!(restore("aa", "a", value), "a");
        assert_eq!(restore("a{amount}a{amount}", "a€ 121,00", value), "a{amount}");
    }

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
        for (wrong, right) in [
            ("{dueDate}", "write it as {due_date}"),
            ("{due-date}", "write it as {due_date}"),
            ("{{ data.number }}", "write it as {number}"),
            ("{{ data.title | upper }}", "write it as {title}"),
            ("{data.number}", "write it as {number}"),
            ("{{ data.client_email }}", "has {{ data.client_email }}, as flows write placeholders"),
            ("{{ nummer }}", "here they are written like {number}"),
        ] {
            let why = check_placeholders(wrong).unwrap_err().message;
            assert!(why.contains(right), "{wrong}: {why}");
        }
        assert!(check_placeholders("{see p. 2} {{}} {{ x y }} {a.b} {i.e. number}").is_ok());
        assert!(check_placeholders("{number} {amount}\n{} { {x y}").is_ok());
        let wrong = check_placeholders("{nummer} {zzz} {nummer} {Amount} { total }").unwrap_err().message;
        assert!(
            wrong.starts_with("has placeholders that are not filled; write them as {amount}, {total}; it has"),
            "{wrong}"
        );
        assert!(
            wrong.contains("the unknown placeholders {nummer} (did you mean 'number'?), {zzz}, which are"),
            "{wrong}"
        );
    }
}
