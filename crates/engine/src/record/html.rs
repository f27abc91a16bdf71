//! HTML in requests. It is sanitized where it is parsed, before any transaction: sanitizing builds a tree of elements,
//! which must be neither too deep nor much larger than its text.

use std::collections::HashMap;

use serde_json::Value as Schema;
use store::{Row, Value};

use super::kinds::Kind;
use super::rules::Rules;
use crate::error::{FieldCode, Violation, violation};
use crate::json::Json;

/// Sanitized HTML.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Html(pub String);

impl Html {
    /// Returns its text, without the tags.
    pub fn words(&self) -> String {
        let mut words = String::with_capacity(self.0.len());
        let mut rest = self.0.as_str();
        while let Some((text, tag)) = rest.split_once('<') {
            words.push_str(text);
            if ["br>", "/p>", "/li>", "/div>"].iter().any(|end| tag.starts_with(end)) {
                words.push('\n');
            }
            rest = behind_tag(tag);
        }
        words.push_str(rest);
        let plain = words.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", " ").replace("&amp;", "&");
        plain.trim().to_string()
    }
}

/// Returns what follows a tag in sanitized HTML, in which attribute values are quoted.
fn behind_tag(tag: &str) -> &str {
    let mut quoted = false;
    let end = tag.bytes().position(|byte| {
        quoted ^= byte == b'"';
        byte == b'>' && !quoted
    });
    end.map_or("", |end| &tag[end + 1..])
}

impl Kind for Html {
    const NAME: &'static str = "text";

    fn to_db(&self) -> Value<'_> {
        (&self.0).into()
    }

    fn from_db(row: &Row, column: usize) -> store::Result<Self> {
        Ok(Html(row.text(column)?.to_string()))
    }

    fn from_json(json: &Json, rules: &Rules) -> Result<Self, Violation> {
        let text = String::from_json(json, rules)?;
        check(&text)?;
        let clean = ammonia::clean(&text);
        // Text grows when it is escaped, but is never repeated. Formatting that is not closed is repeated in each block.
        if length_of_tags(&clean) > 4 * rules.max_length {
            return Err(violation(FieldCode::TooLong, "has too many tags that are never closed"));
        }
        Ok(Html(clean))
    }

    fn to_json(&self, rules: &Rules, out: &mut Vec<u8>) {
        self.0.to_json(rules, out);
    }

    fn schema(rules: &Rules) -> Schema {
        String::schema(rules)
    }

    fn is_empty(&self) -> bool {
        Kind::is_empty(&self.0)
    }
}

/// Returns the number of bytes of sanitized HTML that are tags.
fn length_of_tags(html: &str) -> usize {
    html.split('<').skip(1).map(|tag| tag.len() - behind_tag(tag).len()).sum()
}

/// Maximum nesting depth of tags.
const DEEPEST: usize = 500;
/// Maximum number of elements. Each takes about 450 bytes while the text is sanitized; a text of 64 KB without unclosed
/// formatting has at most 22,000.
const MAX_ELEMENTS: usize = 100_000;

/// Elements without an end tag.
const VOID: &[&str] =
    &["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"];
/// Elements that the parser reopens in each following block until they are closed.
const FORMATTING: &[&str] =
    &["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];
/// Table elements, whose end tags close everything that is open within the table.
const TABLE: &[&str] = &["caption", "table", "tbody", "td", "tfoot", "th", "thead", "tr"];
/// Elements that the end tags of other elements do not cross.
const SCOPES: &[&str] =
    &["applet", "caption", "marquee", "math", "object", "select", "svg", "table", "td", "template", "th"];
/// Elements whose end tag closes everything that is open in them. Other end tags close nothing if one of these is in
/// between.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "button",
    "center",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "li",
    "listing",
    "main",
    "menu",
    "nav",
    "ol",
    "p",
    "pre",
    "search",
    "section",
    "summary",
    "ul",
];

/// Whether the end tag of `name` closes nothing if it reaches `other` before its own element.
fn stops(name: &str, other: &str) -> bool {
    match name {
        _ if TABLE.contains(&name) => matches!(other, "table" | "template"),
        "li" if matches!(other, "ol" | "ul") => true,
        "p" if other == "button" => true,
        _ => SCOPES.contains(&other) || BLOCKS.contains(&other) && !BLOCKS.contains(&name),
    }
}

/// Rejects HTML that would take long to sanitize, by scanning its tags. For malformed HTML it may count too many, never
/// too few: an ambiguous end tag closes nothing here.
fn check(html: &str) -> Result<(), Violation> {
    let mut open: Vec<(String, &str)> = Vec::new();
    // Formatting elements that were not closed with their block, with a count: the parser keeps three of the same.
    let mut carried: HashMap<&str, usize> = HashMap::new();
    let mut again = 0;
    let mut elements = 0;
    for tag in html.split('<').skip(1) {
        let (closes, rest) = tag.strip_prefix('/').map_or((false, tag), |rest| (true, rest));
        if !rest.starts_with(|first: char| first.is_ascii_alphabetic()) {
            continue;
        }
        let length = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/')).unwrap_or(rest.len());
        let name = rest[..length].to_ascii_lowercase();
        let is = |names: &[&str]| names.contains(&name.as_str());
        elements += 1 + again;
        if elements > MAX_ELEMENTS {
            return Err(violation(FieldCode::TooLong, "has too many tags that are never closed"));
        }
        if closes {
            let found = open.iter().rposition(|(other, _)| *other == name || stops(&name, other));
            if let Some(place) = found.filter(|place| open[*place].0 == name) {
                for (_, text) in open.drain(place..).skip(1).filter(|(other, _)| FORMATTING.contains(&other.as_str())) {
                    let same = carried.entry(text).or_default();
                    if *same < 3 {
                        *same += 1;
                        again += 1;
                    }
                }
            }
            continue;
        }
        if is(VOID) {
            continue;
        }
        // An unclosed paragraph or row ends where the next one starts.
        let ended = |last: Option<&(String, &str)>| match last.map(|(last, _)| last.as_str()) {
            Some("p") => is(BLOCKS) || is(&["td", "th", "tr"]),
            Some("li") => is(&["li"]),
            Some("dd" | "dt") => is(&["dd", "dt"]),
            Some("td" | "th") => is(&["td", "th", "tr"]),
            Some("tr") => is(&["tr"]),
            _ => false,
        };
        while ended(open.last()) {
            open.pop();
        }
        open.push((name, rest));
        if open.len() > DEEPEST {
            return Err(violation(FieldCode::TooLong, format!("has tags nested more than {DEEPEST} deep")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_ordinary_html() {
        let table = format!("<table>{}</table>", "<tr><td>a<td><p>b<p>c".repeat(2000));
        let list = format!("<ul>{}</ul>", "<li><b>a</b> <a href=\"https://example.com/\">b</a><br>".repeat(800));
        let mail = "<div><font size=2><p>One</font></p><blockquote>Two</blockquote></div>".repeat(80);
        let sloppy = "<p><b>One <i>two</p>".repeat(3000);
        for html in [table, list, mail, sloppy, "1 < 2 & 3 > 2".to_string(), "<3".to_string(), "<".repeat(9000)] {
            assert_eq!(check(&html), Ok(()), "{}", &html[..60.min(html.len())]);
        }
    }

    #[test]
    fn rejects_html_that_is_slow_to_sanitize() {
        let formatting: String = (0..90).map(|n| format!("<b id={n}>")).collect();
        let again = format!("<div>{formatting}</div>{}", "<p>x</p>".repeat(7000));
        for html in [
            "<b>".repeat(21_000),
            "<div>".repeat(13_000),
            "<DIV\n>".repeat(10_000),
            "<span><div></span>".repeat(3_000),
            "<b><div></b>".repeat(5_000),
            "<li><dd>".repeat(8_000),
            "<div><table><tr><td></div>".repeat(2_500),
            "<svg><p>".repeat(8_000),
            again,
        ] {
            assert!(check(&html).is_err(), "{}", &html[..60]);
        }
    }

    #[test]
    fn text_that_grows_when_it_is_escaped_is_accepted() {
        let rules = super::super::rules::INPUT.long();
        let read = |text: String| Html::from_json(&Json::Text(text), &rules);
        let most = rules.max_length;
        assert_eq!(read("&".repeat(most)).map(|html| html.0), Ok("&amp;".repeat(most)));
        let formatting: String = (0..30).map(|n| format!("<b id={n} title={}>", "x".repeat(100))).collect();
        let again = format!("<div>{formatting}</div>{}", "<p>x</p>".repeat(150));
        assert_eq!(read(again).unwrap_err().message, "has too many tags that are never closed");
    }

    #[test]
    fn the_words_of_html() {
        let words = |html: &str| Html(ammonia::clean(html)).words();
        assert_eq!(words("<p>One &amp; <b>two</b></p><p>a<br>b &lt; c</p>"), "One & two\na\nb < c");
        assert_eq!(words("<a href=\"https://example.com/?a>b\" title='x \" y'>here</a><ul><li>x</li></ul>"), "herex");
        assert_eq!(words("plain"), "plain");
    }
}
