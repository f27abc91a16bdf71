//! What a file is: its format, its encoding and its separator, recognized from its content.

use std::borrow::Cow;

use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::{MAX_BYTES, Result, malformed, too_large};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Values with a separator.
    Csv,
    /// An Excel workbook.
    Xlsx,
    /// A JSON object per line.
    Jsonl,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 3] = [Format::Csv, Format::Xlsx, Format::Jsonl];

    /// Returns its name, which is also the file extension.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Xlsx => "xlsx",
            Format::Jsonl => "jsonl",
        }
    }

    /// Returns the format with this name.
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Returns its content type.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Csv => "text/csv",
            Format::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            Format::Jsonl => "application/jsonl",
        }
    }
}

/// The encoding of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-16, in either byte order.
    Utf16,
    /// Windows-1252, which includes ISO 8859-1.
    Windows1252,
}

impl Encoding {
    /// All encodings.
    pub const ALL: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Windows1252];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "utf-8",
            Encoding::Utf16 => "utf-16",
            Encoding::Windows1252 => "windows-1252",
        }
    }

    /// Returns the encoding with this name.
    pub fn named(name: &str) -> Option<Encoding> {
        Encoding::ALL.into_iter().find(|encoding| encoding.name() == name)
    }
}

/// How a file is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The format.
    pub format: Format,
    /// The encoding of the text.
    pub encoding: Encoding,
    /// The separator of the values: `,`, `;`, a tab or `|`.
    pub separator: char,
}

/// The separators that are recognized.
pub const SEPARATORS: [char; 4] = [',', ';', '\t', '|'];

/// Number of bytes from which a text is recognized.
const START: usize = 256 * 1024;

/// Recognizes a file from its content.
pub fn detect(bytes: &[u8]) -> Result<Found> {
    if bytes.len() > MAX_BYTES {
        return Err(too_large(format!("The file has more than {} MiB.", MAX_BYTES / (1024 * 1024))));
    }
    if bytes.starts_with(b"PK\x03\x04") {
        return Ok(Found { format: Format::Xlsx, encoding: Encoding::Utf8, separator: ',' });
    }
    if bytes.starts_with(&[0xd0, 0xcf, 0x11, 0xe0]) {
        return Err(malformed("The file is in the format of Excel 97. Save it as .xlsx or as CSV."));
    }
    if bytes.starts_with(b"%PDF") {
        return Err(malformed("The file is a PDF, not a table. Export it as CSV, Excel (.xlsx) or JSON Lines."));
    }
    let encoding = encoding(bytes);
    let text = decode(&bytes[..bytes.len().min(START)], encoding);
    if text.trim().is_empty() {
        return Err(malformed("The file is empty."));
    }
    if text.chars().take(4096).any(|c| c == '\0') {
        return Err(malformed("The file is not a text. Export it as CSV, Excel (.xlsx) or JSON Lines."));
    }
    let is_json = text.trim_start().starts_with('{') || is_array(&text);
    let format = if is_json { Format::Jsonl } else { Format::Csv };
    Ok(Found { format, encoding, separator: separator(&text) })
}

fn encoding(bytes: &[u8]) -> Encoding {
    let start = &bytes[..bytes.len().min(START)];
    let zeros = start.iter().take(1024).filter(|byte| **byte == 0).count();
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) || zeros * 3 > start.len().min(1024) {
        return Encoding::Utf16;
    }
    // The whole file: its first name with an accent may be on the last line.
    if std::str::from_utf8(bytes).is_ok() { Encoding::Utf8 } else { Encoding::Windows1252 }
}

/// Whether a text is a JSON array of objects.
pub fn is_array(text: &str) -> bool {
    text.trim_start().strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with('{'))
}

/// Whether every character of a text can be read in this encoding.
pub fn is_readable(bytes: &[u8], encoding: Encoding) -> bool {
    !decoder(bytes, encoding).decode_with_bom_removal(bytes).1
}

/// Decodes a text, without its byte order mark.
pub fn decode(bytes: &[u8], encoding: Encoding) -> Cow<'_, str> {
    decoder(bytes, encoding).decode_with_bom_removal(bytes).0
}

fn decoder(bytes: &[u8], encoding: Encoding) -> &'static encoding_rs::Encoding {
    match encoding {
        Encoding::Utf8 => UTF_8,
        Encoding::Windows1252 => WINDOWS_1252,
        Encoding::Utf16 if bytes.starts_with(&[0xfe, 0xff]) || bytes.first() == Some(&0) => UTF_16BE,
        Encoding::Utf16 => UTF_16LE,
    }
}

/// Returns the separator that divides the first lines into the most columns, and each of them into the same number.
fn separator(text: &str) -> char {
    let score = |separator: char| {
        let counts: Vec<usize> = text.lines().take(20).map(|line| outside_quotes(line, separator)).collect();
        let first = counts.first().copied().unwrap_or_default();
        let alike = counts.iter().filter(|count| **count == first).count();
        (if first == 0 { 0 } else { alike }, first)
    };
    let mut best = ',';
    for separator in SEPARATORS {
        if score(separator) > score(best) {
            best = separator;
        }
    }
    best
}

/// Counts the separators of a line that are not inside quotes.
fn outside_quotes(line: &str, separator: char) -> usize {
    let mut quoted = false;
    line.chars()
        .filter(|c| {
            quoted ^= *c == '"';
            *c == separator && !quoted
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(bytes: &[u8]) -> (Format, Encoding, char) {
        let found = detect(bytes).unwrap();
        (found.format, found.encoding, found.separator)
    }

    #[test]
    fn formats_encodings_and_separators_are_recognized() {
        let utf16: Vec<u8> =
            [0xff, 0xfe].into_iter().chain("a;b\n1;2\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
        let bare: Vec<u8> = "naam;plaats\nJosé;Delft\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        for (bytes, expected) in [
            (&b"a,b\n1,2\n"[..], (Format::Csv, Encoding::Utf8, ',')),
            (b"a;b\n\"1,5\";2\n", (Format::Csv, Encoding::Utf8, ';')),
            (b"name;price\nA;1,50\nB;2,50\n", (Format::Csv, Encoding::Utf8, ';')),
            (b"a\tb\n1\t2\n", (Format::Csv, Encoding::Utf8, '\t')),
            (b"name;city\nJos\xe9;Delft\n", (Format::Csv, Encoding::Windows1252, ';')),
            ("\u{feff}naam,plaats\nJosé,Delft\n".as_bytes(), (Format::Csv, Encoding::Utf8, ',')),
            (&utf16, (Format::Csv, Encoding::Utf16, ';')),
            (&bare, (Format::Csv, Encoding::Utf16, ';')),
            (b"{\"a\": 1}\n", (Format::Jsonl, Encoding::Utf8, ',')),
            (b"[\n {\"a\": 1}]\n", (Format::Jsonl, Encoding::Utf8, ',')),
            (b"[a],b\n1,2\n", (Format::Csv, Encoding::Utf8, ',')),
            (b"one\ntwo\n", (Format::Csv, Encoding::Utf8, ',')),
        ] {
            assert_eq!(found(bytes), expected, "{}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(decode(b"\xef\xbb\xbfa", Encoding::Utf8), "a");
        assert_eq!(decode(b"Jos\xe9 \x80", Encoding::Windows1252), "José €");
        assert!(is_readable(b"Jos\xe9", Encoding::Windows1252) && !is_readable(b"Jos\xe9", Encoding::Utf8));
    }

    #[test]
    fn other_files_are_rejected() {
        for bytes in [&b""[..], b"  \n", b"%PDF-1.7", b"\xd0\xcf\x11\xe0\xa1", b"abc\0def,ghijklmnopqrstuvwxyz"] {
            assert!(detect(bytes).is_err(), "{bytes:?}");
        }
    }
}
