//! Products in templates. The engine also multiplies texts and lists, by a billion if it is told so; a filter of our
//! own takes numbers alone. So `a * b` becomes `(a)|times(b)` before minijinja sees it.

use std::borrow::Cow;

use minijinja::machinery::{Span, Token, tokenize};
use minijinja::syntax::SyntaxConfig;

/// The template with a filter for each product.
pub fn replace(text: &str) -> Result<Cow<'_, str>, String> {
    if !text.contains('*') {
        return Ok(text.into());
    }
    // What is no template is for minijinja to say.
    let Ok(tokens) = tokenize(text, false, SyntaxConfig::default()).collect::<Result<Vec<_>, _>>() else {
        return Ok(text.into());
    };
    // Where, how many bytes go, what comes.
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

/// Where the left side of a product begins, in the tokens before its star. Quotients and other products are part of it.
fn before(tokens: &[(Token, Span)]) -> usize {
    let mut depth = 0_usize;
    for (place, (token, _)) in tokens.iter().enumerate().rev() {
        match token {
            Token::ParenClose | Token::BracketClose | Token::BraceClose => depth += 1,
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen if depth == 0 => return place + 1,
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth -= 1,
            _ if depth > 0 => {}
            // A sign, unless there is something to take it from.
            Token::Minus if !tokens[..place].last().is_some_and(|(token, _)| is_value(token)) => {}
            token if is_weaker(token) => return place + 1,
            _ => {}
        }
    }
    0
}

/// How many tokens the right side has: up to whatever binds no stronger.
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

/// Whether something can be taken from it.
fn is_value(token: &Token) -> bool {
    match token {
        Token::Ident(word) => !WORDS.contains(word),
        Token::Str(_) | Token::String(_) | Token::Int(_) | Token::Int128(_) | Token::Float(_) => true,
        Token::ParenClose | Token::BracketClose | Token::BraceClose => true,
        _ => false,
    }
}

/// Words that stand between values.
const WORDS: &[&str] = &["and", "or", "not", "in", "if", "elif", "else", "for"];

/// Whether it binds less than a product does, or is outside of it.
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
    fn products_are_what_they_are_elsewhere() {
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
