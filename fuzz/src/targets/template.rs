//! Templates: rendering always ends soon, with limited output.

use kantoor::automation::template::{self, Names};
use serde_json::{Value, json};

pub const WORDS: &[&str] = &[
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "{%-",
    "-%}",
    "{{-",
    "data.",
    "data.rows",
    "data.name",
    "data.total",
    "for x in ",
    "endfor",
    "if ",
    "else",
    "endif",
    "range(",
    "range(99999)",
    "| upper",
    "| default('x')",
    "| join(",
    "| replace(",
    "| length",
    "| round",
    "| tojson",
    "| batch(",
    "| sort",
    "| items",
    " is divisibleby(0)",
    " ~ ",
    " * ",
    " // 0",
    " % 0",
    " ** 99",
    "loop.index",
    "[::0]",
    "[-1]",
    "(",
    ")",
    "not ",
    " in ",
    "set x = 1",
    "macro a()",
    "include 'x'",
    "raw",
    "endraw",
    "9223372036854775807",
    "1e308",
    "\\u0000",
    "steps[0].id",
    "é",
    "😀",
];

pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let data = json!({
        "name": "De Ster", "total": 121.5, "count": 3, "none": null, "text": "x".repeat(5_000),
        "rows": [{"name": "a", "n": 1}, {"name": "b", "n": -2}], "many": (0..300).collect::<Vec<_>>(),
    });
    let names = Names::new(vec![("event", template::of(&json!("a.b"))), ("data", template::of(&data))]);
    let checked = template::check(text);
    template::names_in(&Value::from(text));
    let rendered = template::render(text, &names);
    if let Ok(made) = &rendered {
        assert!(made.len() <= template::LONGEST.max(text.len()), "{} bytes", made.len());
        assert_eq!(checked, Ok(()), "what is refused is not rendered");
    }
    let _ = template::evaluate(text, &names);
    let _ = template::fill(&json!({"a": [text, {"b": text}], "c": 1}), &names);
}
