//! The files of an archive.

use std::io::{self, Read};

use confined::take;
use engine::app::App;
use engine::context::Actor;
use serde_json::{Value, json};

use super::{Reader, Reading, Source, Trouble, table};

/// An archive that another process has opened.
pub struct Archive(Reading);

/// Which file is wanted.
#[derive(Clone, Copy)]
pub enum Wanted<'w> {
    /// The one with this name, in any folder.
    Named(&'w str),
    /// The PDF that is named after a number.
    Numbered(&'w str),
}

/// A file of an archive.
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its content, or what is wrong with it; a sentence.
    pub content: Result<Vec<u8>, String>,
}

/// Opens an archive.
pub fn open(app: &App, caller: &Actor, source: &Source) -> Result<Archive, Trouble> {
    let reader = app.services.get::<Reader>();
    let mut reading = reader.start(app, caller, json!({"task": "archive"}), source)?;
    let opened = reading.message()?;
    match table::problem(&opened) {
        Some(trouble) => Err(trouble),
        None => Ok(Archive(reading)),
    }
}

impl Archive {
    /// Returns a file that has at most `limit` bytes; with only its first bytes if these are enough.
    pub fn file(&mut self, wanted: Wanted<'_>, limit: usize, only_start: bool) -> Result<Option<Entry>, Trouble> {
        let mut question = json!({"limit": limit, "start": only_start});
        match wanted {
            Wanted::Named(name) => question["name"] = name.into(),
            Wanted::Numbered(number) => question["number"] = number.into(),
        }
        self.0.ask(Some(&question), entry)
    }
}

fn entry(from: &mut dyn Read) -> io::Result<Option<Entry>> {
    let head: Value = serde_json::from_slice(&take(from)?)?;
    let content = take(from)?;
    let problem = head["problem"].as_str().map(str::to_string);
    let content = problem.map_or(Ok(content), Err);
    Ok(head["name"].as_str().map(|name| Entry { name: name.to_string(), content }))
}
