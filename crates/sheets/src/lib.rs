//! Tables in CSV, Excel and JSON Lines: recognizing them, reading them line by line, and writing them row by row in constant
//! memory.

pub mod archive;
mod found;
mod objects;
mod read;
mod separated;
mod values;
mod wire;
mod workbook;
mod write;

use std::fmt;

pub use found::{Encoding, Format, Found, detect, is_readable};
pub use read::{Line, Part, header, read, scan};
pub use values::{
    Dates, Decimal, date, defuse, foreign_currency, guess_dates, guess_decimal, number, tells_day, tells_decimal,
    undefuse,
};
pub use write::Writer;

/// Maximum size of a file, in bytes.
pub const MAX_BYTES: usize = 256 * 1024 * 1024;
/// Maximum size of an Excel file or archive when it is unpacked, and of all values of a file, in bytes.
pub const MAX_UNPACKED: u64 = 512 * 1024 * 1024;
/// Maximum number of lines, without the header.
pub const MAX_LINES: usize = 1_000_000;
/// Maximum number of values, with empty ones.
pub const MAX_CELLS: usize = 50_000_000;
/// Maximum number of columns.
pub const MAX_COLUMNS: usize = 500;
/// Maximum size of the values of one line, in bytes.
pub const MAX_LINE: usize = 4 * 1024 * 1024;

/// A value in a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing.
    Empty,
    /// A text, as it is written in the file.
    Text(String),
    /// The digits of a number.
    Number(String),
    /// The digits of a percentage as a spreadsheet shows it: 21 for 0.21 in a cell with the format `0%`.
    Percent(String),
    /// An error that a spreadsheet shows instead of a value, such as `#N/A`.
    Error(String),
    /// True or false.
    Bool(bool),
    /// A date (YYYY-MM-DD), or a time (RFC 3339).
    Date(String),
    /// An array or an object, as JSON.
    Json(String),
}

impl Cell {
    /// Returns the value as a text.
    pub fn text(&self) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Text(text) | Cell::Number(text) | Cell::Date(text) | Cell::Json(text) | Cell::Error(text) => {
                text.clone()
            }
            Cell::Percent(digits) => format!("{digits}%"),
            Cell::Bool(value) => value.to_string(),
        }
    }

    /// Returns the value as it is kept: a percentage without its sign, and nothing for true and false.
    fn written(&self) -> &str {
        match self {
            Cell::Empty | Cell::Bool(_) => "",
            Cell::Text(text)
            | Cell::Number(text)
            | Cell::Percent(text)
            | Cell::Date(text)
            | Cell::Json(text)
            | Cell::Error(text) => text,
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        match self {
            Cell::Empty => true,
            Cell::Text(text) => text.trim().is_empty(),
            _ => false,
        }
    }
}

/// Why a table cannot be read or written.
#[derive(Debug)]
pub enum Problem {
    /// The file is larger than allowed; the sentence names the limit.
    TooLarge(String),
    /// The file is malformed, or of another format; a sentence.
    Malformed(String),
    /// The file cannot be written: a full disk, or a closed connection.
    Io(std::io::Error),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::TooLarge(sentence) | Problem::Malformed(sentence) => f.write_str(sentence),
            Problem::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Problem {}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Problem {
        Problem::Io(error)
    }
}

/// A result with this error.
pub type Result<T, E = Problem> = std::result::Result<T, E>;

fn malformed(sentence: impl Into<String>) -> Problem {
    Problem::Malformed(sentence.into())
}

fn too_large(sentence: impl Into<String>) -> Problem {
    Problem::TooLarge(sentence.into())
}

/// Receives the number of a row, its values, and what is wrong with it.
pub(crate) type Take<'t> = &'t mut dyn FnMut(usize, Vec<Cell>, Option<String>) -> Result<std::ops::ControlFlow<()>>;

/// Says that a file has too many lines.
fn too_many_lines() -> Problem {
    too_large(format!("The file has more than {MAX_LINES} lines."))
}

/// Says that a file has too many values.
fn too_many_cells() -> Problem {
    too_large(format!("The file has more than {} million values.", MAX_CELLS / 1_000_000))
}
