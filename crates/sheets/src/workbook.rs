//! Excel workbooks.

use std::io::Cursor;

use calamine::{DataRef, Reader as _, Style, Xlsx};

use crate::{
    Cell, MAX_CELLS, MAX_COLUMNS, MAX_LINE, MAX_LINES, MAX_UNPACKED, Problem, Result, Take, archive, malformed,
    too_large, too_many_cells, too_many_lines,
};

/// Reads the rows of the first sheet. A workbook says how many texts it has and how large they are: what it says is not trusted,
/// but the library that reads it reserves memory for it, so only a process with a limit can read one.
pub fn rows(bytes: &[u8], take: Take) -> Result<()> {
    let broken = |_| malformed("The file is not a readable Excel workbook (.xlsx).");
    let unpacked = archive::check(bytes, MAX_UNPACKED)?;
    let mut book: Xlsx<_> = Xlsx::new(Cursor::new(bytes)).map_err(broken)?;
    let sheet = book.sheet_names().first().cloned();
    let sheet = sheet.ok_or_else(|| malformed("The workbook has no sheet."))?;
    if unpacked > MAX_LINES as u64 * SHORTEST_ROW {
        check_lines(&mut book, &sheet, MAX_LINES)?;
    }
    let mut cells = book.worksheet_cells_reader(&sheet).map_err(broken)?;
    let percent: Vec<bool> = cells.styles().iter().map(is_percent).collect();
    let (mut at, mut row): (u32, Vec<Cell>) = (0, Vec::new());
    let (mut seen, mut length) = (0, 0);
    while let Some((cell, style)) = cells.next_cell_with_style_id().map_err(broken)? {
        let (line, column) = cell.get_position();
        seen += 1;
        if seen > MAX_CELLS {
            return Err(too_many_cells());
        }
        if column as usize >= MAX_COLUMNS {
            let is_blank = matches!(cell.get_value(), DataRef::Empty);
            if is_blank {
                continue;
            }
            return Err(too_large(format!("Line {} has more than {MAX_COLUMNS} columns.", line + 1)));
        }
        if line != at {
            length = 0;
            if !row.is_empty() && take(at as usize + 1, std::mem::take(&mut row), None)?.is_break() {
                return Ok(());
            }
        }
        at = line;
        // Before it is copied: a hundred thousand cells may share one text.
        length += text_of(cell.get_value()).len();
        if length > MAX_LINE {
            return Err(too_large(format!("Line {} has more than {} MiB.", line + 1, MAX_LINE / (1024 * 1024))));
        }
        row.resize(row.len().max(column as usize + 1), Cell::Empty);
        row[column as usize] = match excel_cell(cell.get_value()) {
            Cell::Number(digits) if percent.get(style) == Some(&true) => Cell::Percent(hundredfold(&digits)),
            cell => cell,
        };
    }
    if !row.is_empty() {
        let _ = take(at as usize + 1, row, None)?;
    }
    Ok(())
}

/// The number of bytes of the shortest row with a value: `<row><c><v>1</v></c></row>`.
const SHORTEST_ROW: u64 = 27;

/// Rejects a sheet with more than `most` lines below its header before the first of them is read: whoever takes them would have
/// worked on a million first. What a sheet says about its size is not trusted.
fn check_lines(book: &mut Xlsx<Cursor<&[u8]>>, sheet: &str, most: usize) -> Result<()> {
    let (mut lines, mut at) = (0, None);
    let mut cells = book.worksheet_cells_reader(sheet)?;
    while let Some(cell) = cells.next_cell()? {
        let line = cell.get_position().0;
        if at != Some(line) && !excel_cell(cell.get_value()).is_empty() {
            at = Some(line);
            lines += 1;
        }
        if lines > most + 1 {
            return Err(too_many_lines());
        }
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

fn text_of<'c>(value: &'c DataRef) -> &'c str {
    match value {
        DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => text,
        DataRef::SharedString(text) => text,
        _ => "",
    }
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

impl From<calamine::XlsxError> for Problem {
    fn from(_: calamine::XlsxError) -> Problem {
        malformed("The file is not a readable Excel workbook (.xlsx).")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_as_they_are_read() {
        let row = |cell: &str| format!("<row>{cell}</row>");
        let one = row("<c><v>1</v></c><c><v>2</v></c>");
        let blank = row("<c></c><c t=\"str\"><v> </v></c>");
        for (rows, lines) in
            [(one.repeat(4), 3), (blank.repeat(9) + &one + &blank, 0), ([&*one, &blank].concat().repeat(3), 2)]
        {
            let bytes = book(&rows);
            let mut book: Xlsx<_> = Xlsx::new(Cursor::new(&*bytes)).unwrap();
            assert!(check_lines(&mut book, "A", lines).is_ok(), "{rows}");
            assert!(lines == 0 || check_lines(&mut book, "A", lines - 1).is_err(), "{rows}");
        }
    }

    /// A workbook with these rows.
    fn book(rows: &str) -> Vec<u8> {
        let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
        let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
        let package = "http://schemas.openxmlformats.org/package/2006/relationships";
        let link = |kind: &str, target: &str| {
            format!(
                r#"<Relationships xmlns="{package}"><Relationship Id="r" Type="{office}/{kind}" Target="{target}"/></Relationships>"#
            )
        };
        let files = [
            ("_rels/.rels", link("officeDocument", "xl/workbook.xml")),
            (
                "xl/workbook.xml",
                format!(
                    r#"<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="A" sheetId="1" r:id="r"/></sheets></workbook>"#
                ),
            ),
            ("xl/_rels/workbook.xml.rels", link("worksheet", "worksheets/sheet1.xml")),
            (
                "xl/worksheets/sheet1.xml",
                format!(r#"<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>"#),
            ),
        ];
        archive::pack(files.map(|(name, text)| (name.to_string(), text.into_bytes()))).unwrap()
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
}
