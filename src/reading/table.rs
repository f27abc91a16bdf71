//! The lines of a table.

use engine::app::App;
use engine::context::Actor;
use engine::error::Error;
use serde_json::{Value, json};
use sheets::{Encoding, Format, Found, Line};

use super::worker::{COLUMNS, END, LINES, PROBLEM};
use super::{Reader, Reading, Source, Trouble};

/// A table that another process is reading.
pub struct Table {
    /// How it is written: as recognized, or as the caller chose.
    pub found: Found,
    /// The names of its columns.
    pub columns: Vec<String>,
    reading: Reading,
    lines: std::vec::IntoIter<Line>,
    has_ended: bool,
}

/// What the caller chose.
#[derive(Default)]
pub struct Wishes {
    /// The encoding; none to recognize it.
    pub encoding: Option<Encoding>,
    /// The separator; none to recognize it.
    pub separator: Option<char>,
}

/// Starts to read a table: recognizes how it is written, and reads its columns.
pub fn open(app: &App, caller: &Actor, source: &Source, wishes: &Wishes) -> Result<Table, Trouble> {
    let task = json!({
        "task": "table",
        "encoding": wishes.encoding.map(Encoding::name),
        "separator": wishes.separator.map(String::from),
    });
    let mut reading = app.services.get::<Reader>().start(app, caller, task, source)?;
    let first = reading.message()?;
    let (COLUMNS, body) = first.split_first().map_or((0, &[][..]), |(kind, body)| (*kind, body)) else {
        return Err(problem(&first).unwrap_or_else(damaged));
    };
    let head: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| head[name].as_str().unwrap_or_default().to_string();
    let (format, encoding) = (Format::named(&text("format")), Encoding::named(&text("encoding")));
    let (Some(format), Some(encoding), Some(separator)) = (format, encoding, text("separator").chars().next()) else {
        return Err(damaged());
    };
    let names = head["columns"].as_array().into_iter().flatten();
    let columns = names.map(|name| name.as_str().unwrap_or_default().to_string()).collect();
    let found = Found { format, encoding, separator };
    Ok(Table { found, columns, reading, lines: Vec::new().into_iter(), has_ended: false })
}

impl Table {
    /// Returns the next line.
    pub fn next_line(&mut self) -> Result<Option<Line>, Trouble> {
        loop {
            if let Some(line) = self.lines.next() {
                return Ok(Some(line));
            }
            if self.has_ended {
                return Ok(None);
            }
            let message = self.reading.message()?;
            match message.split_first() {
                Some((&LINES, lines)) => self.lines = Line::read_all(lines).ok_or_else(damaged)?.into_iter(),
                Some((&END, _)) => self.has_ended = true,
                _ => return Err(problem(&message).unwrap_or_else(damaged)),
            }
        }
    }
}

/// Returns what a message says is wrong with the file.
pub fn problem(message: &[u8]) -> Option<Trouble> {
    let (&PROBLEM, body) = message.split_first()? else { return None };
    let told: Value = serde_json::from_slice(body).unwrap_or_default();
    let sentence = told[1].as_str().unwrap_or_default().to_string();
    Some(match told[0].as_str() {
        Some("too_large") => Trouble::TooLarge(sentence),
        Some("encoding") => Trouble::Encoding(sentence),
        _ => Trouble::Malformed(sentence),
    })
}

fn damaged() -> Trouble {
    Trouble::Ours(Error::internal("the reading process sent an unknown message"))
}
