//! Restrictions on templates. The engine counts its instructions, not the size of the data that they handle: a template
//! of three lines could exhaust memory. So no construct can produce large output from small input: loops iterate over
//! existing data, only numbers can be multiplied, and the number of tokens in an expression is limited.

use std::collections::HashSet;

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::filters;

/// The allowed tags. None of them assigns a value, so a text cannot grow in a loop.
const TAGS: &[&str] = &["if", "elif", "else", "endif", "for", "endfor"];
/// Maximum number of tokens in a placeholder or a tag.
const MAX_NODES: usize = 200;
/// Maximum number of tags in a template. The engine parses them recursively.
const MAX_TAGS: usize = 200;

/// How the error of a filter that does not exist begins.
pub const UNKNOWN_FILTER: &str = "uses the unknown filter";
/// The most errors that are reported of one template.
const MAX_ERRORS: usize = 10;

/// Checks the placeholders and tags of a template; returns what is wrong with it. Leaves syntax errors for minijinja to report.
pub fn errors(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if let Err(last) = check_all(text, &mut wrong) {
        wrong.push(last);
    }
    let mut seen = HashSet::new();
    wrong.retain(|error| seen.insert(error.clone()));
    wrong
}

/// Adds the errors of placeholders and tags, and returns the one after which nothing else is checked.
fn check_all(text: &str, wrong: &mut Vec<String>) -> Result<(), String> {
    let mut hole: Vec<Token> = Vec::new();
    let mut tags = 0;
    for token in tokenize(text, false, SyntaxConfig::default()) {
        let Ok((token, _)) = token else { return Ok(()) };
        if wrong.len() == MAX_ERRORS {
            return Err("has more errors".to_string());
        }
        tags += usize::from(matches!(token, Token::BlockStart));
        match token {
            _ if tags > MAX_TAGS => return Err(format!("has more than {MAX_TAGS} tags")),
            Token::VariableStart | Token::BlockStart => hole.clear(),
            Token::VariableEnd | Token::BlockEnd | Token::TemplateData(_) => {}
            _ if hole.len() > MAX_NODES => return Err(format!("has a placeholder with more than {MAX_NODES} tokens")),
            _ => {}
        }
        hole.push(token);
        match hole.as_slice() {
            [Token::BlockStart, Token::Ident(tag)] if !TAGS.contains(tag) => {
                wrong.push(format!("uses the tag '{tag}'; supported tags are: {}", TAGS.join(", ")));
            }
            [.., Token::Pipe, Token::Ident(filter)] if !filters::is_known(filter) => {
                wrong.push(format!("{UNKNOWN_FILTER} '{filter}'{}", filters::guess(filter)));
            }
            [Token::BlockStart, Token::Ident("for"), .., Token::BlockEnd] => {
                wrong.extend(check_loop(&hole).err());
            }
            _ => {}
        }
    }
    Ok(())
}

/// How much of an unclosed placeholder is quoted.
const QUOTED: usize = 30;

/// Returns what is wrong with the first placeholder or tag that is not closed. The parser would complain about the text after it.
pub fn unclosed(text: &str) -> Option<String> {
    let mut open = None;
    let mut is_readable = true;
    for token in tokenize(text, false, SyntaxConfig::default()) {
        match token {
            Ok((Token::VariableStart, span)) => open = Some((span.start_offset, "}}")),
            Ok((Token::BlockStart, span)) => open = Some((span.start_offset, "%}")),
            Ok((Token::VariableEnd | Token::BlockEnd, _)) => open = None,
            Ok(_) => {}
            // The tokenizer would return the same error forever.
            Err(_) => {
                is_readable = false;
                break;
            }
        }
    }
    let (start, end) = open?;
    let rest = text.get(usize::try_from(start).ok()?..)?;
    // Quotation marks that are not closed may contain the end.
    if !is_readable && rest.contains(end) {
        return None;
    }
    let line = rest.lines().next().unwrap_or_default().trim_end();
    let quoted: String = line.chars().take(QUOTED).collect();
    let more = if quoted.len() < line.len() { "…" } else { "" };
    Some(format!("'{quoted}{more}' is not closed with '{end}'"))
}

/// A loop variable does keep a value: it must not be larger than the data that the loop iterates over.
fn check_loop(tag: &[Token]) -> Result<(), String> {
    let refuse = || Err("has a loop over something other than names, filters and plain lists".to_string());
    // For each open bracket: whether it starts a list.
    let mut open: Vec<bool> = Vec::new();
    for pair in tag.windows(2) {
        let follows_value = match pair[0] {
            Token::Ident(word) => !["in", "if", "else", "and", "or", "not", "is"].contains(&word),
            Token::BracketClose | Token::ParenClose => true,
            _ => false,
        };
        match pair[1] {
            Token::Tilde | Token::Plus | Token::BraceOpen | Token::Ident("recursive") => return refuse(),
            Token::BracketOpen | Token::ParenOpen => {
                let makes_list = !follows_value;
                if makes_list && open.contains(&true) {
                    return refuse();
                }
                open.push(makes_list);
            }
            Token::BracketClose | Token::ParenClose => {
                open.pop();
            }
            _ => {}
        }
    }
    Ok(())
}
