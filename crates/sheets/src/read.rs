//! Reading a table line by line.

use std::io::Cursor;
use std::ops::ControlFlow;

use calamine::{DataRef, Reader as _, Style, Xlsx};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::found::{decode, is_array};
use crate::values::is_error;
use crate::{
    Cell, Format, Found, MAX_COLUMNS, MAX_LINE, MAX_LINES, MAX_UNPACKED, Problem, Result, archive, malformed,
    too_large, undefuse,
};

/// A line of a table.
pub struct Line {
    /// Its number as a text editor or spreadsheet shows it, from 1 on; the header is usually line 1.
    pub number: usize,
    /// Its values, in the order of the header. A value that the line has beyond the header is left out.
    pub cells: Vec<Cell>,
    /// What is wrong with the line as a whole, such as a quote that is not closed; a sentence.
    pub problem: Option<String>,
}

/// Returns the names of the columns.
pub fn header(bytes: &[u8], found: &Found) -> Result<Vec<String>> {
    let mut names = Vec::new();
    match found.format {
        Format::Jsonl => json_names(bytes, found, &mut names)?,
        _ => {
            let mut take = |_: usize, cells: Vec<Cell>, _: Option<String>| {
                if cells.iter().all(Cell::is_empty) {
                    return ControlFlow::Continue(());
                }
                names = cells.iter().map(|cell| cell.text().trim().to_string()).collect();
                ControlFlow::Break(())
            };
            rows(bytes, found, &mut take)?;
        }
    }
    while names.last().is_some_and(String::is_empty) {
        names.pop();
    }
    if names.is_empty() && found.format == Format::Jsonl {
        return Err(malformed("No line of the file is a JSON object with members."));
    }
    if names.is_empty() {
        return Err(malformed("The file has no header: its first line must name the columns."));
    }
    if names.len() > MAX_COLUMNS {
        return Err(too_large(format!("The file has more than {MAX_COLUMNS} columns.")));
    }
    Ok(names)
}

/// Calls `take` for every line below the header that is not empty, until it breaks; returns the number of lines.
pub fn read(bytes: &[u8], found: &Found, take: &mut dyn FnMut(Line) -> ControlFlow<()>) -> Result<usize> {
    let names = header(bytes, found)?;
    let (mut seen, mut is_header, mut excess) = (0, found.format != Format::Jsonl, false);
    let mut each = |number: usize, mut cells: Vec<Cell>, problem: Option<String>| {
        let is_unreadable = problem.is_some() && found.format == Format::Jsonl;
        if cells.iter().all(Cell::is_empty) && !is_unreadable {
            return ControlFlow::Continue(());
        }
        if std::mem::take(&mut is_header) {
            return ControlFlow::Continue(());
        }
        seen += 1;
        if seen > MAX_LINES {
            excess = true;
            return ControlFlow::Break(());
        }
        let values = cells.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
        let problem = problem.or_else(|| (values > names.len()).then(|| surplus(values, names.len())));
        cells.resize(names.len(), Cell::Empty);
        take(Line { number, cells, problem })
    };
    match found.format {
        Format::Jsonl => json_rows(bytes, found, &names, &mut each)?,
        _ => rows(bytes, found, &mut each)?,
    }
    if excess {
        return Err(too_large(format!("The file has more than {MAX_LINES} lines.")));
    }
    Ok(seen)
}

fn surplus(values: usize, columns: usize) -> String {
    format!(
        "The line has {values} values, but the header names {columns} columns. Put quotes around a value that contains the separator."
    )
}

type Take<'t> = &'t mut dyn FnMut(usize, Vec<Cell>, Option<String>) -> ControlFlow<()>;

fn rows(bytes: &[u8], found: &Found, take: Take) -> Result<()> {
    if found.format == Format::Xlsx { excel_rows(bytes, take) } else { csv_rows(bytes, found, take) }
}

fn csv_rows(bytes: &[u8], found: &Found, take: Take) -> Result<()> {
    let text = decode(bytes, found.encoding);
    // Excel starts a file with this line to name the separator.
    let start = text.lines().next().filter(|line| line.starts_with("sep=") && line.len() <= 6);
    let (skipped, body) = start.map_or((0, &*text), |line| (1, text[line.len()..].trim_start_matches(['\r', '\n'])));
    let separator = u8::try_from(found.separator).map_err(|_| malformed("The separator is not a single character."))?;
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
        if take(number, record.iter().map(cell).collect(), problem).is_break() {
            return Ok(());
        }
    }
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

fn excel_rows(bytes: &[u8], take: Take) -> Result<()> {
    let broken = |_| malformed("The file is not a readable Excel workbook (.xlsx).");
    archive::check(bytes, MAX_UNPACKED)?;
    let mut book: Xlsx<_> = Xlsx::new(Cursor::new(bytes)).map_err(broken)?;
    let sheet = book.sheet_names().first().cloned();
    let sheet = sheet.ok_or_else(|| malformed("The workbook has no sheet."))?;
    let mut cells = book.worksheet_cells_reader(&sheet).map_err(broken)?;
    let percent: Vec<bool> = cells.styles().iter().map(is_percent).collect();
    let (mut at, mut row): (u32, Vec<Cell>) = (0, Vec::new());
    while let Some((cell, style)) = cells.next_cell_with_style_id().map_err(broken)? {
        let (line, column) = cell.get_position();
        if column as usize >= MAX_COLUMNS {
            let is_blank = matches!(cell.get_value(), DataRef::Empty);
            if is_blank {
                continue;
            }
            return Err(too_large(format!("Line {} has more than {MAX_COLUMNS} columns.", line + 1)));
        }
        if line != at && !row.is_empty() && take(at as usize + 1, std::mem::take(&mut row), None).is_break() {
            return Ok(());
        }
        at = line;
        row.resize(column as usize + 1, Cell::Empty);
        row[column as usize] = match excel_cell(cell.get_value()) {
            Cell::Number(digits) if percent.get(style) == Some(&true) => Cell::Percent(hundredfold(&digits)),
            cell => cell,
        };
    }
    if !row.is_empty() {
        let _ = take(at as usize + 1, row, None);
    }
    Ok(())
}

/// Whether a cell of this style shows a number as a percentage.
fn is_percent(style: &Style) -> bool {
    let Some(format) = &style.number_format else { return false };
    // A percent sign in quotes or after a backslash is only a text beside the number, `_%` is a space of its width, and `*%`
    // fills the cell with it. In quotes these have no meaning of their own.
    let (mut quoted, mut escaped) = (false, false);
    format.format_code.chars().any(|letter| {
        let is_sign = letter == '%' && !quoted && !escaped;
        quoted ^= letter == '"' && !escaped;
        escaped = !quoted && !escaped && matches!(letter, '\\' | '_' | '*');
        is_sign
    })
}

/// Multiplies by a hundred without rounding: 0.07 becomes 7, not 7.000000000000001.
fn hundredfold(digits: &str) -> String {
    let (minus, number) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let part = format!("{part:0<2}");
    let (moved, rest) = part.split_at(2);
    let whole = format!("{whole}{moved}");
    let whole = Some(whole.trim_start_matches('0')).filter(|digits| !digits.is_empty()).unwrap_or("0");
    let rest = rest.trim_end_matches('0');
    if rest.is_empty() { format!("{minus}{whole}") } else { format!("{minus}{whole}.{rest}") }
}

fn excel_cell(value: &DataRef) -> Cell {
    match value {
        DataRef::Int(number) => Cell::Number(number.to_string()),
        // The shortest digits that are the same number: 12.1, not 12.0999….
        DataRef::Float(number) => Cell::Number(number.to_string()),
        DataRef::String(text) => Cell::Text(text.clone()),
        DataRef::SharedString(text) => Cell::Text((*text).to_string()),
        DataRef::Bool(value) => Cell::Bool(*value),
        DataRef::DateTime(time) if time.is_datetime() => {
            let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
            let date = format!("{year:04}-{month:02}-{day:02}");
            let midnight = (hour, minute, second) == (0, 0, 0);
            Cell::Date(if midnight { date } else { format!("{date}T{hour:02}:{minute:02}:{second:02}Z") })
        }
        DataRef::DateTime(time) => Cell::Number(time.as_f64().to_string()),
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => Cell::Text(text.clone()),
        DataRef::Error(error) => Cell::Error(error.to_string()),
        DataRef::Empty => Cell::Empty,
    }
}

/// Reads the lines of a file with a JSON object per line, or with one array of objects. A line that is no object has none of
/// its members, and a problem.
fn json_lines(
    bytes: &[u8],
    found: &Found,
    mut take: impl FnMut(usize, serde_json::Map<String, Value>, &str, Option<String>) -> ControlFlow<()>,
) -> Result<()> {
    let text = decode(bytes, found.encoding);
    let lines = if is_array(&text) { array_lines(&text)? } else { (1..).zip(text.lines()).collect() };
    for (number, line) in lines.into_iter().filter(|(_, line)| !line.trim().is_empty()) {
        if line.len() > MAX_LINE {
            return Err(too_large(format!("Line {number} has more than {} MiB.", MAX_LINE / (1024 * 1024))));
        }
        let (object, problem) = match serde_json::from_str(line) {
            Ok(object) => (object, None),
            Err(error) => (serde_json::Map::new(), Some(not_an_object(&error))),
        };
        if take(number, object, line, problem).is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// Says what is wrong with a line; the reader counts lines within it, of which there is one.
fn not_an_object(error: &serde_json::Error) -> String {
    let sentence = error.to_string();
    let what = sentence.split(" at line ").next().unwrap_or_default();
    format!("The line is not a JSON object: {what}, at character {}.", error.column())
}

/// Returns the objects of a JSON array, each with the line on which it begins.
fn array_lines(text: &str) -> Result<Vec<(usize, &str)>> {
    let objects: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|error| malformed(format!("The file is not a JSON array: {error}.")))?;
    let (mut at, mut number) = (0, 1);
    let numbered = objects.into_iter().map(|object| {
        let begins = (object.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize).clamp(at, text.len());
        number += text.as_bytes()[at..begins].iter().filter(|byte| **byte == b'\n').count();
        at = begins;
        (number, object.get())
    });
    Ok(numbered.collect())
}

fn json_names(bytes: &[u8], found: &Found, names: &mut Vec<String>) -> Result<()> {
    let mut known = std::collections::HashSet::new();
    json_lines(bytes, found, |_, object, _, _| {
        for name in object.keys().filter(|name| known.insert((*name).clone())).cloned().collect::<Vec<_>>() {
            names.push(name);
        }
        if names.len() > MAX_COLUMNS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

fn json_rows(bytes: &[u8], found: &Found, names: &[String], take: Take) -> Result<()> {
    json_lines(bytes, found, |number, object, line, problem| {
        // The digits of numbers as they are written.
        let raw: std::collections::HashMap<String, &RawValue> = serde_json::from_str(line).unwrap_or_default();
        let cell = |name: &String| match object.get(name) {
            None | Some(Value::Null) => Cell::Empty,
            Some(Value::String(text)) => Cell::Text(text.clone()),
            Some(Value::Bool(value)) => Cell::Bool(*value),
            Some(Value::Number(shown)) => {
                Cell::Number(raw.get(name).map_or_else(|| shown.to_string(), |raw| raw.get().to_string()))
            }
            Some(nested) => Cell::Json(raw.get(name).map_or_else(|| nested.to_string(), |raw| raw.get().to_string())),
        };
        take(number, names.iter().map(cell).collect(), problem)
    })
}

impl From<calamine::XlsxError> for Problem {
    fn from(_: calamine::XlsxError) -> Problem {
        malformed("The file is not a readable Excel workbook (.xlsx).")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect;

    fn all(bytes: &[u8]) -> Result<Vec<(usize, Vec<Cell>)>> {
        let found = detect(bytes)?;
        let mut lines = Vec::new();
        read(bytes, &found, &mut |line| {
            lines.push((line.number, line.cells));
            ControlFlow::Continue(())
        })?;
        Ok(lines)
    }

    fn text(text: &str) -> Cell {
        Cell::Text(text.to_string())
    }

    #[test]
    fn lines_keep_their_numbers() {
        let csv = b"sep=;\r\nname;city\r\n\"De\r\nSter\";Delft\r\n\r\nB\r\n'=x;y;z\r\n";
        let expected = vec![
            (3, vec![text("De\r\nSter"), text("Delft")]),
            (6, vec![text("B"), Cell::Empty]),
            (7, vec![text("=x"), text("y")]),
        ];
        assert_eq!(all(csv).unwrap(), expected);
    }

    #[test]
    fn lines_with_surplus_values_and_open_quotes_are_reported() {
        let problems = |bytes: &[u8]| {
            let found = detect(bytes).unwrap();
            let mut numbers = Vec::new();
            read(bytes, &found, &mut |line| {
                numbers.extend(line.problem.is_some().then_some(line.number));
                ControlFlow::Continue(())
            })
            .unwrap();
            numbers
        };
        assert_eq!(problems(b"a;b\n1;2;;\n1;2;3\n1\n"), [3]);
        assert_eq!(problems(b"a;b\n1;2\n\"open;2\n3;4\n"), [3]);
        assert_eq!(problems(b"a;b\n\"open;2\n\"closed\";4\n5;6\n"), [2]);
        assert_eq!(problems(b"a;b\n\"x \"\"y\"\"\";\"1\n2\" \n3\";\"\"\n"), [0usize; 0]);
        assert_eq!(problems(b"a;b\r\n\"x\";\"y\"\r\n\"x\";\"y"), [3]);
    }

    #[test]
    fn json_lines_keep_digits() {
        let lines = all(b"{\"a\": 1.50, \"b\": null}\n\n{\"c\": [1], \"a\": \"x\", \"d\": true}\n").unwrap();
        let expected = vec![
            (1, vec![Cell::Number("1.50".into()), Cell::Empty, Cell::Empty, Cell::Empty]),
            (3, vec![text("x"), Cell::Empty, Cell::Json("[1]".into()), Cell::Bool(true)]),
        ];
        assert_eq!(lines, expected);
        for second in ["{\"a\"", "[1]", "oops"] {
            let text = format!("{{\"a\": 1}}\n{second}\n{{\"a\": 3}}\n");
            let found = detect(text.as_bytes()).unwrap();
            let mut problems = Vec::new();
            let count = read(text.as_bytes(), &found, &mut |line| {
                problems.push((line.number, line.problem));
                ControlFlow::Continue(())
            });
            assert_eq!(count.unwrap(), 3);
            let [(1, None), (2, Some(problem)), (3, None)] = &problems[..] else { panic!("{problems:?}") };
            assert!(problem.contains("not a JSON object") && !problem.contains("line 1"), "{problem}");
        }
    }

    #[test]
    fn a_json_array_is_read_by_line() {
        let lines = all(b"[\n  {\"a\": 1},\n  {\n \"a\": 2.50}\n]\n").unwrap();
        assert_eq!(lines, vec![(2, vec![Cell::Number("1".into())]), (3, vec![Cell::Number("2.50".into())])]);
        assert_eq!(all(b"[{\"a\": 1}, 2]").unwrap().len(), 2);
        assert!(all(b"[{\"a\": 1}").is_err());
    }

    #[test]
    fn percentages_keep_their_digits() {
        for (digits, expected) in [
            ("0.21", "21"),
            ("0.07", "7"),
            ("0.125", "12.5"),
            ("-0.5", "-50"),
            ("1", "100"),
            ("0", "0"),
            ("0.001", "0.1"),
        ] {
            assert_eq!(hundredfold(digits), expected, "{digits}");
        }
    }

    #[test]
    fn workbooks_show_percentages_and_errors() {
        let mut book = rust_xlsxwriter::Workbook::new();
        let sheet = book.add_worksheet();
        let format = |code: &str| rust_xlsxwriter::Format::new().set_num_format(code);
        sheet.write_string(0, 0, "rate").unwrap();
        sheet.write_number_with_format(1, 0, 0.21, &format("0%")).unwrap();
        sheet.write_number_with_format(2, 0, 0.075, &format("0.00 %")).unwrap();
        sheet.write_number_with_format(3, 0, 21, &format("0\"%\"")).unwrap();
        sheet.write_number(4, 0, 0.21).unwrap();
        sheet.write_formula(5, 0, rust_xlsxwriter::Formula::new("=NA()").set_result("#N/A")).unwrap();
        sheet.write_number_with_format(6, 0, 21, &format("#,##0.00_%_);(#,##0.00)_%")).unwrap();
        sheet.write_number_with_format(7, 0, 21, &format("0*%")).unwrap();
        sheet.write_number_with_format(8, 0, 0.21, &format("0\"\\\"%")).unwrap();
        let lines = all(&book.save_to_buffer().unwrap()).unwrap();
        let cells: Vec<Cell> = lines.into_iter().map(|(_, mut cells)| cells.remove(0)).collect();
        let expected = [
            Cell::Percent("21".into()),
            Cell::Percent("7.5".into()),
            Cell::Number("21".into()),
            Cell::Number("0.21".into()),
            Cell::Error("#N/A".into()),
            Cell::Number("21".into()),
            Cell::Number("21".into()),
            Cell::Percent("21".into()),
        ];
        assert_eq!(cells, expected);
    }

    #[test]
    fn malformed_workbooks_are_rejected() {
        for bytes in [&b"PK\x03\x04"[..], b"PK\x03\x04 something that is no archive at all, and longer than a header"] {
            assert!(all(bytes).is_err());
        }
    }

    #[test]
    fn too_many_columns_are_rejected() {
        let wide = vec!["x"; MAX_COLUMNS + 1].join(",");
        assert!(matches!(all(wide.as_bytes()), Err(Problem::TooLarge(_))));
    }
}
