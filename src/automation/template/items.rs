//! What templates use of the items of lists, found in their text: the parser only tells which names are undefined.

use std::collections::BTreeSet;

use serde_json::Value;

/// Returns the members of list items that the templates of a value use: `rows` and `name` of `data.rows[0].name`, and of
/// `row.name` in a loop over `data.rows`.
pub fn items_in(value: &Value) -> BTreeSet<(String, String)> {
    match value {
        Value::String(text) if tags(text).next().is_some() => {
            text.match_indices('[').filter_map(|(at, _)| item_at(text, at)).chain(items_of_loops(text)).collect()
        }
        Value::Array(items) => items.iter().flat_map(items_in).collect(),
        Value::Object(members) => members.values().flat_map(items_in).collect(),
        _ => BTreeSet::new(),
    }
}

/// Returns the places of steps whose results the templates of a value use: 0 of `steps[0].id`.
pub fn places_in(value: &Value) -> BTreeSet<usize> {
    match value {
        Value::String(text) => tags(text).flat_map(|(_, tag)| places_of(tag)).collect(),
        Value::Array(items) => items.iter().flat_map(places_in).collect(),
        Value::Object(members) => members.values().flat_map(places_in).collect(),
        _ => BTreeSet::new(),
    }
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the list and the member around a bracket.
fn item_at(text: &str, bracket: usize) -> Option<(String, String)> {
    let before = &text[..bracket];
    let path = &before[before.rfind(|c: char| !is_part(c) && c != '.').map_or(0, |at| at + 1)..];
    let list = path.strip_prefix("data.").or_else(|| path.strip_prefix("record."))?;
    let (place, after) = text[bracket + 1..].split_once(']')?;
    let after = after.strip_prefix('.').filter(|_| place.parse::<usize>().is_ok())?;
    let member = leading_name(after);
    (!list.is_empty() && !list.contains('.') && !member.is_empty()).then(|| (list.to_string(), member.to_string()))
}

fn leading_name(text: &str) -> &str {
    &text[..text.find(|c: char| !is_part(c)).unwrap_or(text.len())]
}

/// Returns the insides of placeholders and tags, each with whether it is a tag.
fn tags(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.match_indices('{').map(|(at, _)| at).find(|at| rest[at + 1..].starts_with(['{', '%', '#']))?;
        let (kind, inside) = (rest.as_bytes()[start + 1], &rest[start + 2..]);
        let close = match kind {
            b'{' => "}}",
            b'%' => "%}",
            _ => "#}",
        };
        let (inside, after) = inside.split_once(close).unwrap_or((inside, ""));
        rest = after;
        // Comments are not rendered.
        Some((kind == b'%', if kind == b'#' { "" } else { inside }))
    })
}

/// Returns the lists that loops go through, and the members of their items. A name belongs to the innermost loop that has it.
fn items_of_loops(text: &str) -> Vec<(String, String)> {
    let mut loops: Vec<(&str, Option<&str>)> = Vec::new();
    let mut found = Vec::new();
    for (is_tag, inside) in tags(text) {
        let inside = inside.trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace());
        if is_tag && inside.starts_with("endfor") {
            loops.pop();
            continue;
        }
        for (at, name) in names(inside) {
            let own = loops.iter().rev().find(|(own, _)| *own == name);
            let (Some((_, Some(list))), Some(after)) = (own, inside[at + name.len()..].strip_prefix('.')) else {
                continue;
            };
            let member = leading_name(after);
            // A call is a method and not a member.
            if !member.is_empty() && !after[member.len()..].starts_with('(') {
                found.push(((*list).to_string(), member.to_string()));
            }
        }
        if let Some(header) = inside.strip_prefix("for ").filter(|_| is_tag) {
            loops.push(loop_of(header));
        }
    }
    found
}

/// Returns the name in a loop and the list of the record that it goes through, if it is one.
fn loop_of(header: &str) -> (&str, Option<&str>) {
    let Some((name, source)) = header.split_once(" in ") else { return ("", None) };
    let source = source.trim_start();
    let path = &source[..source.find(|c: char| !is_part(c) && c != '.').unwrap_or(source.len())];
    let list = path.strip_prefix("data.").or_else(|| path.strip_prefix("record."));
    // What a filter or a call returns may have other items.
    let is_plain = matches!(source[path.len()..].trim_start(), rest if rest.is_empty() || rest.starts_with("if "));
    (name.trim(), list.filter(|list| is_plain && !list.is_empty() && !list.contains('.')))
}

/// Returns the names in an expression that are no members of something else, outside of strings.
fn names(expression: &str) -> Vec<(usize, &str)> {
    let (mut found, mut quote, mut at) = (Vec::new(), None, 0);
    while let Some(letter) = expression[at..].chars().next() {
        let name = leading_name(&expression[at..]);
        match quote {
            Some(open) if open == letter => quote = None,
            None if matches!(letter, '"' | '\'') => quote = Some(letter),
            None if !name.is_empty() => {
                if !expression[..at].ends_with('.') {
                    found.push((at, name));
                }
                at += name.len();
                continue;
            }
            _ => {}
        }
        at += letter.len_utf8();
    }
    found
}

/// Returns the places of steps in an expression: `steps[0]` and `steps.0`.
fn places_of(expression: &str) -> Vec<usize> {
    let steps = names(expression).into_iter().filter(|(_, name)| *name == "steps");
    let place = |(at, name): (usize, &str)| {
        let after = &expression[at + name.len()..];
        let inside = after.strip_prefix('[').and_then(|after| after.split_once(']')).map(|(inside, _)| inside.trim());
        inside.or_else(|| after.strip_prefix('.').map(leading_name))?.parse().ok()
    };
    steps.filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_of_items_are_found() {
        let found = |text: &str| -> Vec<String> {
            items_in(&json!(text)).into_iter().map(|(list, member)| format!("{list}.{member}")).collect()
        };
        assert_eq!(found("{{ data.rows[0].nam }}"), ["rows.nam"]);
        assert_eq!(found("{% for r in data.rows %}{{ r.nam }} r.x {{ 'r.y' }}{% endfor %}{{ r.z }}"), ["rows.nam"]);
        assert_eq!(
            found("{%- for r in record.rows if r.a -%}{% if r.b %}{{ x.r.c }}{% endif %}{% endfor %}"),
            ["rows.b"]
        );
        assert_eq!(found("{% for a, b in data.rows %}{{ a.x }}{% endfor %}"), Vec::<String>::new());
        assert_eq!(found("{% for r in data.rows|sort %}{{ r.x }}{% endfor %}"), Vec::<String>::new());
        assert_eq!(
            found("{% for r in data.rows %}{% for r in r.tags %}{{ r.x }}{% endfor %}{{ r.y.upper() }}{% endfor %}"),
            ["rows.tags", "rows.y"]
        );
        assert_eq!(found("{% for r in data.rows %}{# {{ r.x }} #}{{ r.keys() }}"), Vec::<String>::new());
        assert_eq!(found("{{ \u{e9} {% for"), Vec::<String>::new());
    }

    #[test]
    fn places_of_steps_are_found() {
        let found = |text: &str| places_in(&json!([text])).into_iter().collect::<Vec<_>>();
        assert_eq!(found("{{ steps[5].id }} {{ steps.1.id }} steps[7] {{ x.steps[8] }} {{ steps.call.id }}"), [1, 5]);
    }
}
