//! Reading a table in one pass: its columns, then line by line, within limits.

use std::ops::ControlFlow;

use crate::{
    Cell, Format, Found, MAX_CELLS, MAX_COLUMNS, MAX_LINES, MAX_UNPACKED, Problem, Result, malformed, objects,
    separated, too_large, too_many_cells, too_many_lines, workbook,
};

/// A line of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its number as a text editor or spreadsheet shows it, from 1 on; the header is usually line 1.
    pub number: usize,
    /// Its values, in the order of the header. A value that the line has beyond the header is left out.
    pub cells: Vec<Cell>,
    /// What is wrong with the line as a whole, such as a quote that is not closed; a sentence.
    pub problem: Option<String>,
}

impl Line {
    /// Returns about how much memory it takes, in bytes.
    pub fn weight(&self) -> usize {
        weight(&self.cells)
    }
}

fn weight(cells: &[Cell]) -> usize {
    size_of_val(cells) + text(cells)
}

/// Returns the number of bytes of the texts.
fn text(cells: &[Cell]) -> usize {
    cells.iter().map(|cell| cell.written().len()).sum()
}

/// A part of a table.
pub enum Part {
    /// The names of the columns, which come first.
    Columns(Vec<String>),
    /// A line below the header that is not empty.
    Line(Line),
}

/// Returns the names of the columns.
pub fn header(bytes: &[u8], found: &Found) -> Result<Vec<String>> {
    let mut names = Vec::new();
    scan(bytes, found, &mut |part| {
        if let Part::Columns(columns) = part {
            names = columns;
        }
        ControlFlow::Break(())
    })?;
    Ok(names)
}

/// Calls `take` for every line below the header that is not empty, until it breaks; returns the number of lines.
pub fn read(bytes: &[u8], found: &Found, take: &mut dyn FnMut(Line) -> ControlFlow<()>) -> Result<usize> {
    scan(bytes, found, &mut |part| match part {
        Part::Columns(_) => ControlFlow::Continue(()),
        Part::Line(line) => take(line),
    })
}

/// Calls `take` for the columns and for every line below them that is not empty, until it breaks; returns the number of lines.
pub fn scan(bytes: &[u8], found: &Found, take: &mut dyn FnMut(Part) -> ControlFlow<()>) -> Result<usize> {
    let mut scan = Scan { format: found.format, columns: None, lines: 0, cells: 0, text: 0, take };
    if found.format == Format::Jsonl {
        let names = objects::names(bytes, found)?;
        if scan.begin(names.clone())?.is_continue() {
            objects::rows(bytes, found, &names, &mut |number, cells, problem| scan.row(number, cells, problem))?;
        }
        return Ok(scan.lines);
    }
    let mut each = |number: usize, cells: Vec<Cell>, problem: Option<String>| scan.row(number, cells, problem);
    match found.format {
        Format::Xlsx => workbook::rows(bytes, &mut each)?,
        _ => separated::rows(bytes, found, &mut each)?,
    }
    match scan.columns {
        Some(_) => Ok(scan.lines),
        None => Err(no_header()),
    }
}

/// A table that is being read, and how much of it was.
struct Scan<'s> {
    format: Format,
    /// The number of columns, as soon as it is known.
    columns: Option<usize>,
    lines: usize,
    cells: usize,
    text: u64,
    take: &'s mut dyn FnMut(Part) -> ControlFlow<()>,
}

impl Scan<'_> {
    fn begin(&mut self, mut names: Vec<String>) -> Result<ControlFlow<()>> {
        while names.last().is_some_and(String::is_empty) {
            names.pop();
        }
        if names.is_empty() && self.format == Format::Jsonl {
            return Err(malformed("No line of the file is a JSON object with members."));
        }
        if names.is_empty() {
            return Err(no_header());
        }
        if names.len() > MAX_COLUMNS {
            return Err(too_large(format!("The file has more than {MAX_COLUMNS} columns.")));
        }
        self.columns = Some(names.len());
        Ok((self.take)(Part::Columns(names)))
    }

    fn row(&mut self, number: usize, mut cells: Vec<Cell>, problem: Option<String>) -> Result<ControlFlow<()>> {
        self.cells += cells.len();
        self.text += text(&cells) as u64;
        if self.cells > MAX_CELLS {
            return Err(too_many_cells());
        }
        if self.text > MAX_UNPACKED {
            return Err(too_large(format!("The values of the file have more than {} MiB.", MAX_UNPACKED / MIB)));
        }
        let is_unreadable = problem.is_some() && self.format == Format::Jsonl;
        if cells.iter().all(Cell::is_empty) && !is_unreadable {
            return Ok(ControlFlow::Continue(()));
        }
        let Some(columns) = self.columns else {
            return self.begin(cells.iter().map(|cell| cell.text().trim().to_string()).collect());
        };
        self.lines += 1;
        if self.lines > MAX_LINES {
            return Err(too_many_lines());
        }
        let values = cells.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
        let problem = problem.or_else(|| (values > columns).then(|| surplus(values, columns)));
        cells.resize(columns, Cell::Empty);
        Ok((self.take)(Part::Line(Line { number, cells, problem })))
    }
}

const MIB: u64 = 1024 * 1024;

fn no_header() -> Problem {
    malformed("The file has no header: its first line must name the columns.")
}

fn surplus(values: usize, columns: usize) -> String {
    format!(
        "The line has {values} values, but the header names {columns} columns. Put quotes around a value that contains the separator."
    )
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

    /// Whoever takes the lines would have worked on a million of them.
    #[test]
    fn too_many_lines_are_rejected_before_the_first_is_taken() {
        let rows = |row: &str, count: usize| row.repeat(count);
        for (name, file, too_many) in [
            ("csv", rows("a\n", MAX_LINES + 2), true),
            ("blank lines", rows("a\n\r\n;\n", MAX_LINES / 2), false),
            ("objects", rows("{\"a\":1}\n", MAX_LINES + 1), true),
            ("an array", format!("[{}{{}}]", rows("{\"a\":1},", MAX_LINES + 1)), true),
        ] {
            let (mut taken, found) = (0, detect(file.as_bytes()).unwrap());
            let read = scan(file.as_bytes(), &found, &mut |_| {
                taken += 1;
                ControlFlow::Break(())
            });
            assert_eq!((matches!(read, Err(Problem::TooLarge(_))), taken > 0), (too_many, !too_many), "{name}");
        }
    }

    #[test]
    fn too_many_columns_are_rejected() {
        let wide = vec!["x"; MAX_COLUMNS + 1].join(",");
        assert!(matches!(all(wide.as_bytes()), Err(Problem::TooLarge(_))));
    }
}
