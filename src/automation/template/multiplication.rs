//! Multiplication in templates. The engine also repeats strings and lists, a billion times if asked; our own filter
//! accepts only numbers. So `a * b` is rewritten to `(a)|times(b)` before minijinja parses it.

use std::borrow::Cow;

use minijinja::machinery::{Span, Token, tokenize};
use minijinja::syntax::SyntaxConfig;

/// Returns the template with each multiplication replaced by the filter.
pub fn replace(text: &str) -> Result<Cow<'_, str>, String> {
    if !text.contains('*') {
        return Ok(text.into());
    }
    // Leaves a syntax error for minijinja to report.
    let Ok(tokens) = tokenize(text, false, SyntaxConfig::default()).collect::<Result<Vec<_>, _>>() else {
        return Ok(text.into());
    };
    // Position, number of bytes to remove, and replacement.
    let mut edits: Vec<(usize, usize, &str)> = Vec::new();
    for (place, (token, span)) in tokens.iter().enumerate() {
        if !matches!(token, Token::Mul) {
            continue;
        }
        let before = &tokens[before(&tokens[..place])..place];
        let after = &tokens[place + 1..][..after(&tokens[place + 1..])];
        let (Some((_, first)), Some((_, last))) = (before.first(), after.last()) else {
            return Err("has a '*' without something on both sides".to_string());
        };
        edits.push((first.start_offset as usize, 0, "("));
        edits.push((span.start_offset as usize, 1, ")|times("));
        edits.push((last.end_offset as usize, 0, ")"));
    }
    edits.sort_by_key(|(at, gone, _)| (*at, *gone));
    let (mut out, mut done) = (String::with_capacity(text.len() + 16 * edits.len()), 0);
    for (at, gone, new) in edits {
        out.push_str(text.get(done..at).unwrap_or_default());
        out.push_str(new);
        done = at + gone;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Ok(out.into())
}

/// Returns where the left operand starts in the tokens before the operator. It includes divisions and other
/// multiplications.
fn before(tokens: &[(Token, Span)]) -> usize {
    let mut depth = 0_usize;
    for (place, (token, _)) in tokens.iter().enumerate().rev() {
        match token {
            Token::ParenClose | Token::BracketClose | Token::BraceClose => depth += 1,
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen if depth == 0 => return place + 1,
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth -= 1,
            _ if depth > 0 => {}
            // A unary minus, unless a value precedes it.
            Token::Minus if !tokens[..place].last().is_some_and(|(token, _)| is_value(token)) => {}
            token if is_weaker(token) => return place + 1,
            _ => {}
        }
    }
    0
}

/// Returns the number of tokens of the right operand: up to the next operator that does not bind more tightly.
fn after(tokens: &[(Token, Span)]) -> usize {
    let mut depth = 0_usize;
    for (place, (token, _)) in tokens.iter().enumerate() {
        match token {
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose if depth == 0 => return place,
            Token::ParenClose | Token::BracketClose | Token::BraceClose => depth -= 1,
            _ if depth > 0 => {}
            Token::Minus if !tokens[..place].last().is_some_and(|(token, _)| is_value(token)) => {}
            Token::Mul | Token::Div | Token::FloorDiv | Token::Mod => return place,
            token if is_weaker(token) => return place,
            _ => {}
        }
    }
    tokens.len()
}

/// Whether the token ends a value, so that a minus after it is binary.
fn is_value(token: &Token) -> bool {
    match token {
        Token::Ident(word) => !WORDS.contains(word),
        Token::Str(_) | Token::String(_) | Token::Int(_) | Token::Int128(_) | Token::Float(_) => true,
        Token::ParenClose | Token::BracketClose | Token::BraceClose => true,
        _ => false,
    }
}

/// Keywords between values.
const WORDS: &[&str] = &["and", "or", "not", "in", "if", "elif", "else", "for"];

/// Whether the token binds less tightly than a multiplication, or ends it.
fn is_weaker(token: &Token) -> bool {
    match token {
        Token::Ident(word) => WORDS.contains(word),
        Token::Plus | Token::Minus | Token::Tilde | Token::Comma | Token::Colon | Token::Assign => true,
        Token::Eq | Token::Ne | Token::Gt | Token::Gte | Token::Lt | Token::Lte => true,
        Token::VariableStart | Token::VariableEnd | Token::BlockStart | Token::BlockEnd | Token::TemplateData(_) => {
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Names, evaluate, of};
    use serde_json::json;

    #[test]
    fn multiplication_matches_the_usual_rules() {
        let names = Names::new(vec![("data", of(&json!({"a": 6, "b": 7, "text": "x", "list": [1, 2]})))]);
        let value = |text: &str| evaluate(text, &names);
        for (text, wanted) in [
            ("{{ 7 * 7 }}", json!(49)),
            ("{{7*7}}", json!(49)),
            ("{{ data.a * data.b * 2 }}", json!(84)),
            ("{{ 1 + data.a * data.b - 3 }}", json!(40)),
            ("{{ (1 + 2) * (3 + data.list[1 * 1]) }}", json!(15)),
            ("{{ 84 / 2 * 3 }}", json!(126.0)),
            ("{{ 2 * 9 // 4 }}", json!(4)),
            ("{{ -2 * 3 }}", json!(-6)),
            ("{{ 2 * -3 }}", json!(-6)),
            ("{{ 10 - 2 * -data.a }}", json!(22)),
            ("{{ 2 * 3 ** 2 }}", json!(18)),
            ("{{ 2 * data.a == 12 and 3 * 3 > 8 }}", json!(true)),
            ("{{ [2 * 3, data.list | length * 2] }}", json!([6, 4])),
            ("{{ {'a': 2 * 3}.a * 2 }}", json!(12)),
            ("{{ (data.a * 1.5) | round(1) }}", json!(9.0)),
            ("a * b = {{ data.a * data.b }} * 1", json!("a * b = 42 * 1")),
            ("{% if data.a * 2 > 11 %}{{ data.b*2 }}{% else %}{{ 2*2 }}{% endif %}", json!("14")),
            ("{{ 'a*b' ~ 2 * 2 }}", json!("a*b4")),
        ] {
            assert_eq!(value(text).unwrap(), wanted, "{text}");
        }
        for bad in
            ["{{ data.text * 1000000000 }}", "{{ 1000000000 * 'x' }}", "{{ data.list * 3 }}", "{{ 2 * }}", "{{ * 2 }}"]
        {
            assert!(value(bad).is_err(), "{bad}");
        }
    }
}
