//! Lines as bytes, to pass them from one process to another.

use crate::{Cell, Line};

impl Line {
    /// Appends the line to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        number(out, self.number);
        text(out, self.problem.as_deref().unwrap_or_default());
        number(out, self.cells.len());
        for cell in &self.cells {
            let kind = match cell {
                Cell::Empty => EMPTY,
                Cell::Text(_) => b't',
                Cell::Number(_) => b'n',
                Cell::Percent(_) => b'%',
                Cell::Error(_) => b'e',
                Cell::Bool(false) => b'0',
                Cell::Bool(true) => b'1',
                Cell::Date(_) => b'd',
                Cell::Json(_) => b'j',
            };
            out.push(kind);
            if !BARE.contains(&kind) {
                text(out, cell.written());
            }
        }
    }

    /// Reads lines from bytes; `None` if they are damaged.
    pub fn read_all(mut from: &[u8]) -> Option<Vec<Line>> {
        let mut lines = Vec::new();
        while !from.is_empty() {
            lines.push(line(&mut from)?);
        }
        Some(lines)
    }
}

const EMPTY: u8 = b'-';
/// The kinds of values without a text.
const BARE: [u8; 3] = [EMPTY, b'0', b'1'];

fn number(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
}

fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

fn line(from: &mut &[u8]) -> Option<Line> {
    let number = read_number(from)?;
    let problem = Some(read_text(from)?).filter(|problem| !problem.is_empty());
    let mut cells = Vec::new();
    for _ in 0..read_number(from)? {
        let (kind, rest) = from.split_first()?;
        *from = rest;
        let mut text = || read_text(from);
        cells.push(match kind {
            b'-' => Cell::Empty,
            b't' => Cell::Text(text()?),
            b'n' => Cell::Number(text()?),
            b'%' => Cell::Percent(text()?),
            b'e' => Cell::Error(text()?),
            b'0' => Cell::Bool(false),
            b'1' => Cell::Bool(true),
            b'd' => Cell::Date(text()?),
            b'j' => Cell::Json(text()?),
            _ => return None,
        });
    }
    Some(Line { number, cells, problem })
}

fn read_number(from: &mut &[u8]) -> Option<usize> {
    let (digits, rest) = from.split_first_chunk::<4>()?;
    *from = rest;
    usize::try_from(u32::from_be_bytes(*digits)).ok()
}

fn read_text(from: &mut &[u8]) -> Option<String> {
    let length = read_number(from)?;
    let (text, rest) = from.split_at_checked(length)?;
    *from = rest;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_the_same() {
        let of = |text: &str| text.to_string();
        let cells = vec![
            Cell::Empty,
            Cell::Text(of("é")),
            Cell::Number(of("1.50")),
            Cell::Percent(of("21")),
            Cell::Error(of("#N/A")),
            Cell::Bool(true),
            Cell::Bool(false),
            Cell::Date(of("2026-05-04")),
            Cell::Json(of("[1]")),
        ];
        let lines = vec![
            Line { number: 2, cells, problem: None },
            Line { number: 70_000, cells: Vec::new(), problem: Some(of("It is broken.")) },
        ];
        let mut bytes = Vec::new();
        lines.iter().for_each(|line| line.write(&mut bytes));
        assert_eq!(Line::read_all(&bytes), Some(lines));
        assert_eq!(Line::read_all(&bytes[..bytes.len() - 1]), None);
    }
}
