//! Zip archives: an Excel workbook is one, and the PDFs of old documents come in one.

use std::collections::HashMap;
use std::io::{Cursor, Read as _, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::{Problem, Result, malformed, too_large};

/// Maximum number of files in an archive.
const MAX_ENTRIES: usize = 200_000;

fn open(bytes: &[u8]) -> Result<ZipArchive<Cursor<&[u8]>>> {
    let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| malformed("The file is not a readable archive."))?;
    if archive.len() > MAX_ENTRIES {
        return Err(too_large(format!("The archive has more than {MAX_ENTRIES} files.")));
    }
    Ok(archive)
}

/// Checks that an archive can be unpacked, to no more than `limit` bytes; returns how many these are. What it says about its sizes is
/// not trusted.
pub fn check(bytes: &[u8], limit: u64) -> Result<u64> {
    let mut archive = open(bytes)?;
    let mut rest = limit;
    for place in 0..archive.len() {
        let entry = archive.by_index(place).map_err(|_| malformed("The archive is damaged."))?;
        let read = std::io::copy(&mut entry.take(rest + 1), &mut std::io::sink());
        let read = read.map_err(|_| malformed("The archive is damaged."))?;
        rest = rest
            .checked_sub(read)
            .ok_or_else(|| too_large(format!("The archive unpacks to more than {} MiB.", limit / (1024 * 1024))))?;
    }
    Ok(limit - rest)
}

fn base(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Returns a name with a dash for everything between its letters and digits, since the name of a file cannot have the slash
/// of a number such as `2024 / 17`.
fn dashed(name: &str) -> String {
    let parts: Vec<&str> = name.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).collect();
    parts.join("-").to_lowercase()
}

/// An archive whose files are read by name.
pub struct Archive {
    zip: ZipArchive<Cursor<Vec<u8>>>,
    places: HashMap<String, usize>,
    numbered: HashMap<String, String>,
}

impl Archive {
    /// Opens an archive, which must not unpack to more than `limit` bytes.
    pub fn open(bytes: Vec<u8>, limit: u64) -> Result<Archive> {
        check(&bytes, limit)?;
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(|_| malformed("The file is not a readable archive."))?;
        let names = zip.file_names().enumerate().filter_map(|(place, name)| Some((place, name.ok()?)));
        let places: HashMap<String, usize> = names.map(|(place, name)| (base(&name).to_lowercase(), place)).collect();
        let stems = places.keys().filter_map(|name| Some((dashed(name.strip_suffix(".pdf")?), name.clone())));
        let numbered = stems.collect();
        Ok(Archive { zip, places, numbered })
    }

    /// Whether there is a file with this name, in any folder.
    pub fn has(&self, name: &str) -> bool {
        self.places.contains_key(&base(name).to_lowercase())
    }

    /// Returns the name of the PDF that is named after a number.
    pub fn named_after(&self, number: &str) -> Option<&str> {
        let exact = format!("{number}.pdf").to_lowercase();
        match self.places.get_key_value(&exact) {
            Some((name, _)) => Some(name),
            None => self.numbered.get(&dashed(number)).map(String::as_str),
        }
    }

    /// Returns the file with this name, in any folder, if it has at most `limit` bytes.
    pub fn file(&mut self, name: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        let Some(place) = self.places.get(&base(name).to_lowercase()) else { return Ok(None) };
        let entry = self.zip.by_index(*place).map_err(|_| malformed("The archive is damaged."))?;
        let mut content = Vec::new();
        let read = entry.take(limit + 1).read_to_end(&mut content);
        read.map_err(|_| malformed(format!("{name} in the archive is damaged.")))?;
        if content.len() as u64 > limit {
            return Err(too_large(format!("{name} in the archive has more than {} MiB.", limit / (1024 * 1024))));
        }
        Ok(Some(content))
    }
}

/// Writes files to an archive, without compressing them.
pub fn pack(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let failed = |error: zip::result::ZipError| Problem::Io(std::io::Error::other(error));
    for (name, content) in files {
        archive.start_file(name, options).map_err(failed)?;
        archive.write_all(&content)?;
    }
    Ok(archive.finish().map_err(failed)?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_measured_before_they_are_read() {
        let files = [("pdfs/2024-1.pdf".to_string(), b"%PDF".to_vec()), ("b.pdf".to_string(), vec![0; 5000])];
        let packed = pack(files).unwrap();
        let mut archive = Archive::open(packed.clone(), 10_000).unwrap();
        assert_eq!(archive.file("2024-1.PDF", 100).unwrap().as_deref(), Some(&b"%PDF"[..]));
        assert_eq!(archive.file("c.pdf", 100).unwrap(), None);
        assert_eq!(archive.named_after("2024 / 1"), Some("2024-1.pdf"));
        assert_eq!(archive.named_after("20241"), None);
        assert!(matches!(archive.file("b.pdf", 100), Err(Problem::TooLarge(_))));
        assert!(matches!(check(&packed, 5000), Err(Problem::TooLarge(_))));
        check(&packed, 5004).unwrap();
        assert!(check(&packed[..60], 5004).is_err());
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        archive.start_file("xl/worksheets/sheet1.xml", SimpleFileOptions::default()).unwrap();
        for _ in 0..64 {
            archive.write_all(&vec![b' '; 1024 * 1024]).unwrap();
        }
        let packed = archive.finish().unwrap().into_inner();
        assert!(packed.len() < 1024 * 1024);
        assert!(matches!(check(&packed, 1024 * 1024), Err(Problem::TooLarge(_))));
    }
}
