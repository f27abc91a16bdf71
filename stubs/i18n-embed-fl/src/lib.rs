//! Stands in for the macro that looks up a message: the message is its id.

use proc_macro::{TokenStream, TokenTree};

/// Returns the id of the message, the literal after the loader, as text.
#[proc_macro]
pub fn fl(input: TokenStream) -> TokenStream {
    let id = input.into_iter().find_map(literal).map_or_else(|| "\"\"".to_string(), |id| id.to_string());
    format!("::std::string::String::from({id})").parse().unwrap_or_default()
}

/// Returns a literal; a macro may have passed it in a group.
fn literal(token: TokenTree) -> Option<TokenTree> {
    match token {
        TokenTree::Literal(_) => Some(token),
        TokenTree::Group(group) => {
            let mut inside = group.stream().into_iter();
            inside.next().filter(|first| matches!(first, TokenTree::Literal(_)) && inside.next().is_none())
        }
        _ => None,
    }
}
