//! What a template may say. The engine counts its steps, not the size of what they handle: a text of three lines
//! could fill all memory. So there is no way to make much of little: loops go through what is there, nothing is
//! multiplied but numbers, and no hole has more than a few parts.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::filters;

/// What may stand between `{%` and `%}`: nothing that keeps a value, so that texts cannot grow in circles.
const TAGS: &[&str] = &["if", "elif", "else", "endif", "for", "endfor"];
/// The most parts of a hole or a tag: names, signs, texts.
const MAX_NODES: usize = 200;
/// The most tags in a text. The engine reads each inside the one before.
const MAX_TAGS: usize = 200;

/// What is wrong with the holes and tags of a text, if anything is. What is no template at all is for minijinja
/// to say.
pub fn check(text: &str) -> Result<(), String> {
    let mut hole: Vec<Token> = Vec::new();
    let mut tags = 0;
    for token in tokenize(text, false, SyntaxConfig::default()) {
        let Ok((token, _)) = token else { return Ok(()) };
        tags += usize::from(matches!(token, Token::BlockStart));
        match token {
            _ if tags > MAX_TAGS => return Err(format!("has more than {MAX_TAGS} tags")),
            Token::VariableStart | Token::BlockStart => hole.clear(),
            Token::VariableEnd | Token::BlockEnd | Token::TemplateData(_) => {}
            _ if hole.len() > MAX_NODES => return Err(format!("has a hole of more than {MAX_NODES} parts")),
            _ => {}
        }
        hole.push(token);
        match hole.as_slice() {
            [Token::BlockStart, Token::Ident(tag)] if !TAGS.contains(tag) => {
                return Err(format!("has the tag '{tag}'; the tags that work are: {}", TAGS.join(", ")));
            }
            [.., Token::Pipe, Token::Ident(filter)] if !filters::is_known(filter) => {
                return Err(format!("has the filter '{filter}', which is not there"));
            }
            [Token::BlockStart, Token::Ident("for"), .., Token::BlockEnd] => check_loop(&hole)?,
            _ => {}
        }
    }
    Ok(())
}

/// The name of a loop keeps a value after all: it must not be larger than what is gone through.
fn check_loop(tag: &[Token]) -> Result<(), String> {
    let refuse = || Err("has a loop over more than names, filters and a plain list".to_string());
    // For each bracket that is open: whether it makes a list.
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
