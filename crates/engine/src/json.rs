//! JSON as it was sent: numbers keep their digits, members keep their order, and a duplicate key is an error.
//! (`serde_json::Value` would round numbers and drop the first of two keys.)

use std::fmt;

use serde::de::{Deserialize, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{Code, Error, Result};

/// Maximum nesting depth of arrays and objects.
pub const MAX_DEPTH: usize = 64;

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// The digits as sent.
    Number(String),
    /// A string.
    Text(String),
    /// A string with an unpaired surrogate, which is not valid Unicode.
    BrokenText,
    /// `[…]`
    List(Vec<Json>),
    /// `{…}`, in the order sent, each key once.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses a body.
    pub fn parse(bytes: &[u8]) -> Result<Json> {
        let text =
            std::str::from_utf8(bytes).map_err(|_| Error::new(Code::MalformedJson, "The body is not valid UTF-8."))?;
        let raw: &RawValue = serde_json::from_str(text).map_err(malformed)?;
        build(raw.get(), 1)
    }

    /// Returns the canonical form of this value: without whitespace, with sorted members and normalized numbers. `None`
    /// if a string is invalid.
    pub fn canonical(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.write_canonical(&mut out)?;
        Some(out)
    }

    fn write_canonical(&self, out: &mut Vec<u8>) -> Option<()> {
        match self {
            Json::Null => out.extend_from_slice(b"null"),
            Json::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Json::Number(digits) => out.extend_from_slice(canonical_number(digits).as_bytes()),
            Json::Text(text) => write_text(out, text),
            Json::BrokenText => return None,
            Json::List(items) => {
                out.push(b'[');
                for (place, item) in items.iter().enumerate() {
                    if place > 0 {
                        out.push(b',');
                    }
                    item.write_canonical(out)?;
                }
                out.push(b']');
            }
            Json::Object(members) => {
                let mut members: Vec<&(String, Json)> = members.iter().collect();
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
                out.push(b'{');
                for (key, value) in members {
                    write_key(out, key);
                    value.write_canonical(out)?;
                }
                out.push(b'}');
            }
        }
        Some(())
    }

    /// Returns the type of the value, with an article.
    pub fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Number(_) => "a number",
            Json::Text(_) | Json::BrokenText => "a string",
            Json::List(_) => "an array",
            Json::Object(_) => "an object",
        }
    }
}

fn build(text: &str, depth: usize) -> Result<Json> {
    if depth > MAX_DEPTH {
        let message = format!("The JSON is nested more than {MAX_DEPTH} levels deep.");
        return Err(Error::new(Code::MalformedJson, message));
    }
    Ok(match text.as_bytes().first() {
        Some(b'{') => {
            let Members(members) = serde_json::from_str(text).map_err(malformed)?;
            let mut object: Vec<(String, Json)> = Vec::with_capacity(members.len());
            let mut keys = std::collections::HashSet::with_capacity(members.len());
            for (key, value) in members {
                if !keys.insert(key.clone()) {
                    let message = format!("The key '{key}' occurs twice in one object.");
                    return Err(Error::new(Code::DuplicateKey, message));
                }
                object.push((key, build(value.get(), depth + 1)?));
            }
            Json::Object(object)
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(malformed)?;
            let items = items.into_iter().map(|item| build(item.get(), depth + 1));
            Json::List(items.collect::<Result<_>>()?)
        }
        // The raw scan has checked the quotes and escapes, so only an unpaired surrogate fails here.
        Some(b'"') => serde_json::from_str(text).map_or(Json::BrokenText, Json::Text),
        Some(b't') => Json::Bool(true),
        Some(b'f') => Json::Bool(false),
        Some(b'n') => Json::Null,
        _ => Json::Number(text.to_string()),
    })
}

/// Returns a number as its digits without leading and trailing zeros, and the exponent of the last: `1.50` and `15e-1`
/// are both `15e-1`.
fn canonical_number(text: &str) -> String {
    let (number, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let Ok(power) = power.parse::<i64>() else { return text.to_string() };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let sign = if whole.starts_with('-') { "-" } else { "" };
    let digits = format!("{}{part}", whole.trim_start_matches('-'));
    let kept = digits.trim_end_matches('0');
    let dropped = digits.len() - kept.len();
    let places = i64::try_from(dropped).unwrap_or(0) - i64::try_from(part.len()).unwrap_or(0);
    match (kept.trim_start_matches('0'), power.checked_add(places)) {
        ("", _) => "0".to_string(),
        (kept, Some(power)) => format!("{sign}{kept}e{power}"),
        (_, None) => text.to_string(),
    }
}

fn malformed(error: serde_json::Error) -> Error {
    Error::new(Code::MalformedJson, format!("The body is not valid JSON: {error}."))
}

struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    members.push(pair);
                    if members.len() > 100_000 {
                        return Err(A::Error::custom("too many keys in one object"));
                    }
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// Writes a string with quotes. A document can have a megabyte of text, which is written for the database, the log and
/// the response while other writers wait, so blocks without characters to escape are copied unchanged.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    for block in text.as_bytes().chunks(64) {
        // Without a branch per byte, the compiler vectorizes the comparison.
        if block.iter().fold(false, |found, byte| found | needs_escape(*byte)) {
            block.iter().for_each(|byte| write_byte(out, *byte));
        } else {
            out.extend_from_slice(block);
        }
    }
    out.push(b'"');
}

fn needs_escape(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

fn write_byte(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        byte if !needs_escape(byte) => return out.push(byte),
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        byte => return out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Returns the number of bytes that [`write_text`] writes for a text, without the quotes.
pub fn written_bytes(text: &str) -> usize {
    // Without branches, the compiler vectorizes the sum.
    let is_short = |byte: u8| (byte == b'\n') | (byte == b'\r') | (byte == b'\t') | (byte == 0x08) | (byte == 0x0c);
    let more = |byte: u8| usize::from(needs_escape(byte)) + 4 * usize::from((byte < 0x20) & !is_short(byte));
    text.len() + text.bytes().map(more).sum::<usize>()
}

/// Writes `"key":`, after a comma unless it is the first.
pub fn write_key(out: &mut Vec<u8>, key: &str) {
    if !matches!(out.last(), Some(b'{' | b'[') | None) {
        out.push(b',');
    }
    write_text(out, key);
    out.push(b':');
}

/// Writes `"name":` as [`write_key`] does, for a name that needs no escapes, such as that of a field.
pub fn write_name(out: &mut Vec<u8>, name: &str) {
    debug_assert!(!name.bytes().any(needs_escape), "{name}");
    if !matches!(out.last(), Some(b'{' | b'[') | None) {
        out.push(b',');
    }
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// The text of a member of an object that was written by `write_key` and `write_text`. It walks over what comes before,
/// which takes a tenth of the time of parsing it.
pub fn member<'j>(json: &'j str, name: &str) -> Option<&'j str> {
    let bytes = json.as_bytes();
    let mut at = 1;
    if bytes.first() != Some(&b'{') {
        return None;
    }
    loop {
        let key = at;
        at = end_of_value(bytes, key)?;
        let is_it = bytes.get(key + 1..at - 1)? == name.as_bytes();
        if bytes.get(at) != Some(&b':') {
            return None;
        }
        let value = at + 1;
        at = end_of_value(bytes, value)?;
        if is_it {
            return json.get(value..at);
        }
        if bytes.get(at) != Some(&b',') {
            return None;
        }
        at += 1;
    }
}

/// Where the value that starts at `start` ends.
fn end_of_value(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0);
    loop {
        match *bytes.get(at)? {
            b'"' => at = end_of_text(bytes, at + 1)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' | b':' if depth == 0 => return (at > start).then_some(at),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 && matches!(bytes[at - 1], b'"' | b'}' | b']') {
            return Some(at);
        }
    }
}

/// Where the quote is that ends the text around `at`. Eight bytes at a time: a document has up to a megabyte of text.
fn end_of_text(bytes: &[u8], mut at: usize) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    // The highest bit of each byte that is zero; of the bytes behind the first such byte too, perhaps.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
    loop {
        while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
            let word = u64::from_le_bytes(*word);
            let found = zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
            at += found.trailing_zeros() as usize / 8;
            if found != 0 {
                break;
            }
        }
        match *bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fails(text: &str) -> &'static str {
        Json::parse(text.as_bytes()).unwrap_err().code.wire()
    }

    #[test]
    fn numbers_keep_their_digits() {
        let parsed = Json::parse(b" {\"a\": 0.10, \"b\": [12345678901234567890.123456, -1e5]} ").unwrap();
        let Json::Object(members) = parsed else { panic!() };
        assert_eq!(members[0].1, Json::Number("0.10".into()));
        let list = vec![Json::Number("12345678901234567890.123456".into()), Json::Number("-1e5".into())];
        assert_eq!(members[1].1, Json::List(list));
    }

    #[test]
    fn equal_values_have_one_canonical_form() {
        let form = |text: &str| String::from_utf8(Json::parse(text.as_bytes()).unwrap().canonical().unwrap()).unwrap();
        let one = form(r#"{"a":[1.5,"é",null,{"x":true,"y":0}],"b":-1200}"#);
        for same in [
            r#" { "b" : -1.2e3, "a" : [ 15e-1 , "\u00e9", null, { "y": 0.00, "x": true } ] } "#,
            "{\"b\":-12e+2,\r\n\t\"a\":[1.50,\"é\",null,{\"y\":-0,\"x\":true}]}",
        ] {
            assert_eq!(form(same), one);
        }
        for other in ["1", "10", "0.1", "-1", "\"1\"", "[1]", "1e1000", "1e99999999999999999999", "true", "null"] {
            let same: Vec<&str> =
                ["1", "10", "0.1", "-1", "\"1\"", "[1]", "1e1000", "1e99999999999999999999", "true", "null"]
                    .into_iter()
                    .filter(|text| form(text) == form(other))
                    .collect();
            assert_eq!(same, [other]);
        }
        assert_ne!(form("[1,2]"), form("[2,1]"));
        assert_eq!(Json::parse(br#"["\ud800"]"#).unwrap().canonical(), None);
    }

    #[test]
    fn rejects_invalid_json() {
        for text in ["", "{", "{}x", "{'a':1}", "[1,]", "\"\\x\"", "01", "nul", "{\"a\":1,}", "\u{feff}{}"] {
            assert_eq!(fails(text), "malformed_json", "{text}");
        }
        assert_eq!(Json::parse(b"\"\xff\"").unwrap_err().code.wire(), "malformed_json");
        assert_eq!(fails("{\"a\":1,\"a\":2}"), "duplicate_key");
        assert_eq!(fails("[{\"x\":{\"a\":1,\"\\u0061\":2}}]"), "duplicate_key");
        assert_eq!(fails(&format!("{}{}", "[".repeat(65), "]".repeat(65))), "malformed_json");
        assert_eq!(fails(&"[".repeat(100_000)), "malformed_json");
    }

    #[test]
    fn members_are_found_without_parsing() {
        let json = r#"{"a":"x\"}","b":[1,{"a":2},"]"],"c":{"a":{"b":[]}},"d":-1.5e3,"e":"","f":null}"#;
        let found: Vec<Option<&str>> = ["a", "b", "c", "d", "e", "f", "g", ""].map(|name| member(json, name)).to_vec();
        let expected =
            [Some(r#""x\"}""#), Some(r#"[1,{"a":2},"]"]"#), Some(r#"{"a":{"b":[]}}"#), Some("-1.5e3"), Some("\"\"")];
        assert_eq!(found[..5], expected);
        assert_eq!(found[5..], [Some("null"), None, None]);
        for odd in
            ["", "{", "{}", "[]", "1", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":\"", "{\"b\":\"\\", "null", "{1:2}"]
        {
            assert_eq!(member(odd, "a"), None, "{odd}");
        }
    }

    #[test]
    fn detects_lone_surrogates() {
        assert_eq!(Json::parse(br#""\ud83d\ude00""#).unwrap(), Json::Text("😀".into()));
        assert_eq!(Json::parse(br#""\ud83d""#).unwrap(), Json::BrokenText);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Json::parse(&bytes);
            let _ = member(&String::from_utf8_lossy(&bytes), "a");
        }

        #[test]
        fn texts_survive(text in "(?s).{0,200}") {
            let mut out = Vec::new();
            write_text(&mut out, &text);
            prop_assert_eq!(&out, &serde_json::to_vec(&text).unwrap());
            prop_assert_eq!(out.len(), written_bytes(&text) + 2);
            prop_assert_eq!(end_of_text(&out, 1), Some(out.len() - 1));
            prop_assert_eq!(Json::parse(&out).unwrap(), Json::Text(text));
        }
    }
}
