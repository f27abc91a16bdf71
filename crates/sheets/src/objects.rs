//! JSON Lines: an object per line, or one array of objects.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::ControlFlow;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::found::{decode, is_array};
use crate::{Cell, Found, MAX_COLUMNS, MAX_LINE, MAX_LINES, Result, Take, malformed, too_large, too_many_lines};

/// An object whose values are not parsed: a value that nests a million arrays takes no stack.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Each)
    }
}

/// Calls `take` with the number and the text of each object, until it breaks.
fn each(text: &str, take: &mut dyn FnMut(usize, &str) -> Result<ControlFlow<()>>) -> Result<()> {
    let mut bounded = |number: usize, line: &str| {
        if line.len() > MAX_LINE {
            return Err(too_large(format!("Line {number} has more than {} MiB.", MAX_LINE / (1024 * 1024))));
        }
        take(number, line)
    };
    if is_array(text) {
        return each_of_array(text, &mut bounded);
    }
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        if bounded(number, line)?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// The objects of an array, one at a time.
struct Elements<'t, 'f> {
    text: &'t str,
    take: &'f mut dyn FnMut(usize, &str) -> Result<ControlFlow<()>>,
    /// How it ended, if not at the end of the array.
    ended: &'f mut Option<Result<()>>,
}

impl<'de> Visitor<'de> for Elements<'de, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut objects: A) -> Result<(), A::Error> {
        let (mut at, mut number) = (0, 1);
        while let Some(object) = objects.next_element::<&RawValue>()? {
            let begins = (object.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
            let begins = begins.clamp(at, self.text.len());
            number += self.text.as_bytes()[at..begins].iter().filter(|byte| **byte == b'\n').count();
            at = begins;
            match (self.take)(number, object.get()) {
                Ok(ControlFlow::Continue(())) => {}
                ended => {
                    *self.ended = Some(ended.map(drop));
                    return Err(A::Error::custom("enough"));
                }
            }
        }
        Ok(())
    }
}

fn each_of_array(text: &str, take: &mut dyn FnMut(usize, &str) -> Result<ControlFlow<()>>) -> Result<()> {
    let mut ended = None;
    let mut parser = serde_json::Deserializer::from_str(text);
    let parsed = parser.deserialize_seq(Elements { text, take, ended: &mut ended }).and_then(|()| parser.end());
    match ended {
        Some(ended) => ended,
        None => parsed.map_err(|error| malformed(format!("The file is not a JSON array: {error}."))),
    }
}

/// Says what is wrong with a line; the reader counts lines within it, of which there is one.
fn not_an_object(error: &serde_json::Error) -> String {
    let sentence = error.to_string();
    let what = sentence.split(" at line ").next().unwrap_or_default();
    format!("The line is not a JSON object: {what}, at character {}.", error.column())
}

/// Returns the names of all members, in the order in which they first occur. A file with too many lines is rejected here, before the
/// first of them is read.
pub fn names(bytes: &[u8], found: &Found) -> Result<Vec<String>> {
    let (mut names, mut known, mut length, mut lines) = (Vec::new(), HashSet::new(), 0, 0);
    each(&decode(bytes, found.encoding), &mut |_, line| {
        let members = serde_json::from_str::<Members>(line).map(|members| members.0);
        // A line that cannot be read has a problem, which is shown.
        let is_shown = |(_, value): &(String, &RawValue)| cell(value.get()).map_or(true, |cell| !cell.is_empty());
        lines += usize::from(members.as_ref().map_or(true, |members| members.iter().any(is_shown)));
        if lines > MAX_LINES {
            return Err(too_many_lines());
        }
        let members = members.unwrap_or_default();
        for (name, _) in members {
            if !known.contains(&name) {
                length += name.len();
                if names.len() >= MAX_COLUMNS || length > MAX_LINE {
                    return Err(too_large(format!("The file has more than {MAX_COLUMNS} columns.")));
                }
                known.insert(name.clone());
                names.push(name);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(names)
}

/// Reads the objects as rows. A line that is no object has no values, and a problem.
pub fn rows(bytes: &[u8], found: &Found, names: &[String], take: Take) -> Result<()> {
    let places: HashMap<&str, usize> = names.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
    each(&decode(bytes, found.encoding), &mut |number, line| {
        let (cells, problem) = match cells(line, &places) {
            Ok(cells) => (cells, None),
            Err(error) => (Vec::new(), Some(not_an_object(&error))),
        };
        take(number, cells, problem)
    })
}

fn cells(line: &str, places: &HashMap<&str, usize>) -> Result<Vec<Cell>, serde_json::Error> {
    let mut cells = vec![Cell::Empty; places.len()];
    for (name, value) in serde_json::from_str::<Members>(line)?.0 {
        if let Some(cell) = places.get(name.as_str()).and_then(|place| cells.get_mut(*place)) {
            *cell = self::cell(value.get())?;
        }
    }
    Ok(cells)
}

/// Converts a value. Numbers keep their digits as they are written.
fn cell(written: &str) -> Result<Cell, serde_json::Error> {
    Ok(match written.as_bytes().first() {
        None | Some(b'n') => Cell::Empty,
        Some(b'"') => Cell::Text(serde_json::from_str(written)?),
        Some(b't' | b'f') => Cell::Bool(written == "true"),
        Some(b'[' | b'{') => Cell::Json(written.to_string()),
        Some(_) => Cell::Number(written.to_string()),
    })
}
