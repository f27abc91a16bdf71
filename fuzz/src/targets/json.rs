//! Bodies: a parsed value has a canonical form, which parses to the same value.

use engine::json::Json;

pub const WORDS: &[&str] = &[
    "{", "}", "[", "]", ",", ":", "\"", "\\u0000", "\\ud83d", "\\ude00", "true", "false", "null", "-0", "1e5", "0.10",
    "\"a\":", "{\"a\":", "[[[[[[[[", "]]]]]]]]", "\u{feff}", "E+",
];

pub fn run(input: &[u8]) {
    let Ok(value) = Json::parse(input) else { return };
    let Some(form) = value.canonical() else { return };
    let again = Json::parse(&form).expect("a canonical form is JSON");
    assert_eq!(again.canonical(), Some(form), "a canonical form is its own");
    assert_eq!(value.kind(), again.kind());
}
