//! The process that reads a file: it receives a task and the content, answers, and ends. It opens no file and no connection.

use std::io::{self, BufWriter, Read, Write};
use std::ops::ControlFlow;

use confined::{Input, Output, put, take, take_into};
use serde_json::{Value, json};
use sheets::archive::Archive;
use sheets::{Encoding, Format, Found, MAX_BYTES, MAX_UNPACKED, Part, Problem};

/// Size of a message with lines, in bytes; a message has at least one line.
const MESSAGE: usize = 128 * 1024;

/// The kinds of messages about a table, each with the first byte of its message.
pub const COLUMNS: u8 = b'C';
pub const LINES: u8 = b'L';
pub const END: u8 = b'E';
pub const PROBLEM: u8 = b'P';

/// Does one task.
pub fn work(mut from: Input, to: Output) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    let task: Value = serde_json::from_slice(&take(&mut from)?)?;
    let size = task["size"].as_u64().and_then(|size| usize::try_from(size).ok()).unwrap_or_default();
    let mut content = Vec::with_capacity(size.min(MAX_BYTES));
    while take_into(&mut from, &mut content)? > 0 {}
    match task["task"].as_str().unwrap_or_default() {
        "table" => table(&task, &content, &mut to)?,
        "archive" => archive(content, &mut from, &mut to)?,
        _ => picture(&content, &mut to)?,
    }
    to.flush()
}

fn say(to: &mut impl Write, kind: u8, body: &Value) -> io::Result<()> {
    put(to, &[&[kind], body.to_string().as_bytes()].concat())
}

fn tell(to: &mut impl Write, problem: &Problem) -> io::Result<()> {
    let kind = match problem {
        Problem::TooLarge(_) => "too_large",
        Problem::Malformed(_) | Problem::Io(_) => "malformed",
    };
    say(to, PROBLEM, &json!([kind, problem.to_string()]))
}

/// Reads a table: its columns first, then its lines.
fn table(task: &Value, content: &[u8], to: &mut impl Write) -> io::Result<()> {
    let mut found = match sheets::detect(content) {
        Ok(found) => found,
        Err(problem) => return tell(to, &problem),
    };
    let chosen = task["encoding"].as_str().and_then(Encoding::named).filter(|_| found.format != Format::Xlsx);
    if let Some(encoding) = chosen {
        if encoding != found.encoding && !sheets::is_readable(content, encoding) {
            let (chosen, seems) = (encoding.name(), found.encoding.name());
            let message = format!(
                "is {chosen}, but some characters of the file are not valid in it; the file seems to be {seems}"
            );
            return say(to, PROBLEM, &json!(["encoding", message]));
        }
        found.encoding = encoding;
    }
    found.separator = task["separator"].as_str().and_then(|text| text.chars().next()).unwrap_or(found.separator);
    let (mut batch, mut sent) = (vec![LINES], Ok(()));
    let read = sheets::scan(content, &found, &mut |part| {
        sent = match part {
            Part::Columns(names) => begin(to, &found, &names),
            Part::Line(line) => {
                line.write(&mut batch);
                if batch.len() < MESSAGE {
                    return ControlFlow::Continue(());
                }
                let sent = put(to, &batch).and_then(|()| to.flush());
                batch.truncate(1);
                sent
            }
        };
        if sent.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    sent?;
    if batch.len() > 1 {
        put(to, &batch)?;
    }
    match read {
        Ok(_) => put(to, &[END]),
        Err(problem) => tell(to, &problem),
    }
}

fn begin(to: &mut impl Write, found: &Found, names: &[String]) -> io::Result<()> {
    let Found { format, encoding, separator } = found;
    let head = json!({
        "format": format.name(), "encoding": encoding.name(), "separator": separator.to_string(), "columns": names,
    });
    say(to, COLUMNS, &head)
}

/// Opens an archive, then answers which of its files is wanted.
fn archive(content: Vec<u8>, from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut archive = match Archive::open(content, MAX_UNPACKED) {
        Ok(archive) => archive,
        Err(problem) => return tell(to, &problem),
    };
    put(to, &[END])?;
    to.flush()?;
    loop {
        let wanted = match take(from) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            wanted => serde_json::from_slice::<Value>(&wanted?)?,
        };
        let name = match (wanted["name"].as_str(), wanted["number"].as_str()) {
            (Some(name), _) => Some(name).filter(|name| archive.has(name)),
            (None, number) => archive.named_after(number.unwrap_or_default()),
        };
        let name = name.map(str::to_string);
        let limit = wanted["limit"].as_u64().unwrap_or_default();
        let found = name.as_deref().map_or(Ok(None), |name| archive.file(name, limit));
        let (problem, mut content) = match found {
            Ok(content) => (None, content.unwrap_or_default()),
            Err(problem) => (Some(problem.to_string()), Vec::new()),
        };
        if wanted["start"] == true {
            content.truncate(START);
        }
        put(to, json!({"name": name, "problem": problem}).to_string().as_bytes())?;
        put(to, &content)?;
        to.flush()?;
    }
}

/// The number of bytes that tell what a file is.
const START: usize = 8;

/// Re-encodes an image.
fn picture(content: &[u8], to: &mut impl Write) -> io::Result<()> {
    let (kind, drawn) = match pdf::redraw(content) {
        Ok(drawn) => ("", drawn),
        Err(pdf::Refusal::Colours) => ("colours", Vec::new()),
        Err(pdf::Refusal::Unreadable) => ("unreadable", Vec::new()),
    };
    put(to, kind.as_bytes())?;
    put(to, &drawn)
}
