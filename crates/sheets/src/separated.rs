//! Texts with separators: CSV and its like.

use crate::found::decode;
use crate::values::is_error;
use crate::{
    Cell, Found, MAX_COLUMNS, MAX_LINE, MAX_LINES, Result, Take, malformed, too_large, too_many_lines, undefuse,
};

/// Reads the rows of a text with separators.
pub fn rows(bytes: &[u8], found: &Found, take: Take) -> Result<()> {
    let text = decode(bytes, found.encoding);
    // Excel starts a file with this line to name the separator.
    let start = text.lines().next().filter(|line| line.starts_with("sep=") && line.len() <= 6);
    let (skipped, body) = start.map_or((0, &*text), |line| (1, text[line.len()..].trim_start_matches(['\r', '\n'])));
    let separator = u8::try_from(found.separator).map_err(|_| malformed("The separator is not a single character."))?;
    check_lines(body, separator)?;
    let mut reader =
        csv::ReaderBuilder::new().delimiter(separator).has_headers(false).flexible(true).from_reader(body.as_bytes());
    let mut record = csv::StringRecord::new();
    let (mut at, mut number) = (0, skipped + 1);
    loop {
        let more = reader.read_record(&mut record);
        if !more.map_err(|error| malformed(format!("The file cannot be read as CSV: {error}.")))? {
            return Ok(());
        }
        // The reader counts a line when it reads the first of the next one, which comes too late for our purpose.
        let begins = record.position().map_or(at, |place| place.byte() as usize).min(body.len());
        let blank = body[begins..].len() - body[begins..].trim_start_matches(['\r', '\n']).len();
        number += body[at..begins + blank].bytes().filter(|byte| *byte == b'\n').count();
        at = begins + blank;
        if record.len() > MAX_COLUMNS {
            return Err(too_large(format!("Line {number} has more than {MAX_COLUMNS} columns.")));
        }
        if record.as_slice().len() > MAX_LINE {
            return Err(too_large(format!(
                "Line {number} has more than {} MiB: is a quote missing?",
                MAX_LINE / (1024 * 1024)
            )));
        }
        let cell = |text: &str| match text {
            "" => Cell::Empty,
            text if is_error(text) => Cell::Error(text.to_string()),
            text => Cell::Text(undefuse(text).to_string()),
        };
        let written = &body[at..(reader.position().byte() as usize).clamp(at, body.len())];
        let problem = misquoted(written, found.separator).then(|| MISQUOTED.to_string());
        if take(number, record.iter().map(cell).collect(), problem)?.is_break() {
            return Ok(());
        }
    }
}

/// Rejects a text with too many lines before the first of them is read: whoever takes them would have worked on a million first.
fn check_lines(body: &str, separator: u8) -> Result<()> {
    // Few texts have as many line breaks, and without them there are no lines.
    if body.bytes().filter(|byte| matches!(byte, b'\n' | b'\r')).count() <= MAX_LINES {
        return Ok(());
    }
    let mut reader =
        csv::ReaderBuilder::new().delimiter(separator).has_headers(false).flexible(true).from_reader(body.as_bytes());
    let (mut record, mut lines) = (csv::StringRecord::new(), 0);
    // What cannot be read is reported when it is read.
    while let Ok(true) = reader.read_record(&mut record) {
        lines += usize::from(record.iter().any(|value| !value.trim().is_empty()));
        // The first is the header.
        if lines > MAX_LINES + 1 {
            return Err(too_many_lines());
        }
    }
    Ok(())
}

const MISQUOTED: &str = "A quote on this line is not closed: lines below it became part of the same value. Close it, or \
                         double a quote that belongs to the text.";

/// Whether a quoted value of a line does not end, or ends before the next separator.
fn misquoted(line: &str, separator: char) -> bool {
    let mut letters = line.chars().peekable();
    let (mut starts, mut quoted, mut ended) = (true, false, false);
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => drop(letters.next()),
            '"' if quoted => (quoted, ended) = (false, true),
            _ if quoted => {}
            '"' if starts => (starts, quoted) = (false, true),
            letter if letter == separator || letter == '\n' || letter == '\r' => (starts, ended) = (true, false),
            letter if ended && !letter.is_whitespace() => return true,
            _ => starts = false,
        }
    }
    quoted
}
