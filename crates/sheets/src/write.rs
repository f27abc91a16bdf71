//! Writing a table row by row, in constant memory.

use std::io::{self, Write};

use rust_xlsxwriter::{ExcelDateTime, Format as Style, Workbook, XlsxError};

use crate::{Cell, Decimal, Format, Problem, Result, defuse, too_large};

/// The number of rows of an Excel sheet, with the header.
const EXCEL_ROWS: u32 = 1_048_576;
/// The number of characters of an Excel cell.
const EXCEL_CELL: usize = 32_767;

/// Writes a table. JSON Lines are written as they are: see [`Writer::object`].
pub enum Writer<W: Write> {
    /// Separated values, with the decimal sign of numbers.
    Csv(Box<csv::Writer<W>>, Decimal),
    /// A workbook, of which rows go to a temporary file.
    Xlsx(Box<Sheet<W>>),
    /// A JSON object per line.
    Jsonl(W),
}

/// A workbook in the making.
pub struct Sheet<W> {
    book: Workbook,
    row: u32,
    out: W,
    day: Style,
    moment: Style,
}

impl<W: Write> Writer<W> {
    /// Starts a table with these columns.
    pub fn new(format: Format, out: W, columns: &[String]) -> Result<Writer<W>> {
        Ok(match format {
            Format::Jsonl => Writer::Jsonl(out),
            Format::Csv => {
                let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(out);
                writer.write_record(columns).map_err(csv_failed)?;
                Writer::Csv(Box::new(writer), Decimal::Point)
            }
            Format::Xlsx => {
                let mut book = Workbook::new();
                let sheet = book.add_worksheet_with_constant_memory().map_err(excel_failed)?;
                let bold = Style::new().set_bold();
                for (place, name) in (0_u16..).zip(columns) {
                    sheet.write_string_with_format(0, place, name, &bold).map_err(excel_failed)?;
                }
                sheet.set_freeze_panes(1, 0).map_err(excel_failed)?;
                let shown_as = |code: &str| Style::new().set_num_format(code);
                let (day, moment) = (shown_as("yyyy-mm-dd"), shown_as("yyyy-mm-dd hh:mm:ss"));
                Writer::Xlsx(Box::new(Sheet { book, row: 1, out, day, moment }))
            }
        })
    }

    /// Starts a table of CSV as a spreadsheet expects it where the comma is the decimal sign: with semicolons, decimal commas
    /// and a byte order mark.
    pub fn with_semicolons(mut out: W, columns: &[String]) -> Result<Writer<W>> {
        out.write_all("\u{feff}".as_bytes())?;
        let mut writer = csv::WriterBuilder::new().delimiter(b';').terminator(csv::Terminator::CRLF).from_writer(out);
        writer.write_record(columns).map_err(csv_failed)?;
        Ok(Writer::Csv(Box::new(writer), Decimal::Comma))
    }

    /// Writes a row of CSV or Excel. A text that a spreadsheet would run as a formula gets an apostrophe in CSV, and is a text
    /// in Excel. A date is one in Excel, and a time is in UTC.
    pub fn row(&mut self, cells: &[Cell]) -> Result<()> {
        match self {
            Writer::Jsonl(_) => Ok(()),
            Writer::Csv(writer, decimal) => {
                for cell in cells {
                    let text = cell.text();
                    let text = match (cell, *decimal) {
                        (Cell::Text(_), _) => defuse(&text).into_owned(),
                        (Cell::Number(_), Decimal::Comma) => text.replace('.', ","),
                        _ => text,
                    };
                    writer.write_field(text).map_err(csv_failed)?;
                }
                writer.write_record(None::<&[u8]>).map_err(csv_failed)
            }
            Writer::Xlsx(sheet) => sheet.row(cells),
        }
    }

    /// Writes a line of JSON Lines.
    pub fn object(&mut self, json: &[u8]) -> Result<()> {
        if let Writer::Jsonl(out) = self {
            out.write_all(json)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Writes the rest.
    pub fn finish(self) -> Result<W> {
        match self {
            Writer::Csv(writer, _) => {
                let inner = writer.into_inner().map_err(|error| Problem::Io(io::Error::other(error.to_string())));
                let mut out = inner?;
                out.flush()?;
                Ok(out)
            }
            Writer::Jsonl(mut out) => {
                out.flush()?;
                Ok(out)
            }
            Writer::Xlsx(mut sheet) => {
                // The directory of an archive is written last, so it goes through a file that can be read again.
                let mut file = tempfile::tempfile()?;
                sheet.book.save_to_writer(&mut file).map_err(excel_failed)?;
                io::Seek::rewind(&mut file)?;
                io::copy(&mut file, &mut sheet.out)?;
                sheet.out.flush()?;
                Ok(sheet.out)
            }
        }
    }
}

impl<W> Sheet<W> {
    fn row(&mut self, cells: &[Cell]) -> Result<()> {
        if self.row >= EXCEL_ROWS {
            return Err(too_large(format!(
                "An Excel sheet has at most {EXCEL_ROWS} rows. Export as CSV or JSON Lines."
            )));
        }
        let sheet = self.book.worksheet_from_index(0).map_err(excel_failed)?;
        for (place, cell) in (0_u16..).zip(cells) {
            match cell {
                Cell::Empty => continue,
                Cell::Bool(value) => sheet.write_boolean(self.row, place, *value),
                Cell::Percent(_) | Cell::Error(_) => sheet.write_string(self.row, place, cell.text()),
                Cell::Number(digits) => match digits.parse::<f64>() {
                    Ok(number) if number.to_string() == *digits => sheet.write_number(self.row, place, number),
                    // Excel would round it.
                    _ => sheet.write_string(self.row, place, digits),
                },
                Cell::Date(text) => match ExcelDateTime::parse_from_str(text) {
                    Ok(date) => {
                        let style = if text.len() > "2026-05-04".len() { &self.moment } else { &self.day };
                        sheet.write_datetime_with_format(self.row, place, &date, style)
                    }
                    // Excel has no dates before 1900.
                    Err(_) => sheet.write_string(self.row, place, text),
                },
                Cell::Text(text) | Cell::Json(text) if text.chars().count() > EXCEL_CELL => {
                    return Err(too_large(format!(
                        "Row {} has a text of more than {EXCEL_CELL} characters, which Excel does not allow. Export as CSV or JSON Lines.",
                        self.row + 1
                    )));
                }
                Cell::Text(text) | Cell::Json(text) => sheet.write_string(self.row, place, text),
            }
            .map_err(excel_failed)?;
        }
        self.row += 1;
        Ok(())
    }
}

fn csv_failed(error: csv::Error) -> Problem {
    Problem::Io(io::Error::other(error))
}

fn excel_failed(error: XlsxError) -> Problem {
    Problem::Io(io::Error::other(error))
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::{detect, header, read};

    fn written(format: Format) -> Vec<u8> {
        let columns = ["name".to_string(), "price".to_string(), "active".to_string(), "rows".to_string()];
        let mut writer = Writer::new(format, Vec::new(), &columns).unwrap();
        for name in ["=cmd()", "De \"Ster\", Delft"] {
            let cells = [
                Cell::Text(name.to_string()),
                Cell::Number("-12.5".to_string()),
                Cell::Bool(true),
                Cell::Json("[1,2]".to_string()),
            ];
            writer.row(&cells).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn dates_are_dates_in_excel_and_come_back() {
        let columns = ["day".to_string(), "moment".to_string(), "early".to_string()];
        let mut writer = Writer::new(Format::Xlsx, Vec::new(), &columns).unwrap();
        let written = ["2026-05-04", "2026-05-20T06:41:07.000Z", "1815-06-18"].map(|text| Cell::Date(text.to_string()));
        writer.row(&written).unwrap();
        let bytes = writer.finish().unwrap();
        let found = detect(&bytes).unwrap();
        let mut cells = Vec::new();
        read(&bytes, &found, &mut |line| {
            cells = line.cells;
            ControlFlow::Continue(())
        })
        .unwrap();
        let date = |text: &str| Cell::Date(text.to_string());
        let early = Cell::Text("1815-06-18".to_string());
        assert_eq!(cells, [date("2026-05-04"), date("2026-05-20T06:41:07Z"), early]);
    }

    #[test]
    fn semicolons_come_with_decimal_commas_and_a_mark() {
        let columns = ["name".to_string(), "price".to_string()];
        let mut writer = Writer::with_semicolons(Vec::new(), &columns).unwrap();
        writer.row(&[Cell::Text("a;b".to_string()), Cell::Number("-12.5".to_string())]).unwrap();
        let bytes = writer.finish().unwrap();
        assert_eq!(String::from_utf8(bytes.clone()).unwrap(), "\u{feff}name;price\r\n\"a;b\";-12,5\r\n");
        let found = detect(&bytes).unwrap();
        assert_eq!((found.separator, header(&bytes, &found).unwrap()), (';', columns.to_vec()));
    }

    #[test]
    fn what_is_written_can_be_read() {
        for format in [Format::Csv, Format::Xlsx] {
            let bytes = written(format);
            let found = detect(&bytes).unwrap();
            assert_eq!(found.format, format);
            assert_eq!(header(&bytes, &found).unwrap(), ["name", "price", "active", "rows"]);
            let mut names = Vec::new();
            let count = read(&bytes, &found, &mut |line| {
                assert_eq!(line.cells[1].text(), "-12.5");
                assert_eq!(line.cells[3].text(), "[1,2]");
                names.push((line.number, line.cells[0].text()));
                ControlFlow::Continue(())
            });
            assert_eq!(count.unwrap(), 2);
            assert_eq!(names, [(2, "=cmd()".to_string()), (3, "De \"Ster\", Delft".to_string())]);
        }
        let csv = String::from_utf8(written(Format::Csv)).unwrap();
        assert!(csv.contains("'=cmd(),-12.5,true,\"[1,2]\"\r\n"), "{csv}");
    }
}
