//! The list of contents that belong to a copy of the database.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crate::upkeep::integrity::Problem;
use crate::upkeep::integrity::files::Kept;

/// Reads the list of contents, one line at a time.
pub(super) fn listed(contents: &Path) -> io::Result<impl Iterator<Item = Kept> + use<>> {
    let lines = BufReader::new(File::open(contents)?).lines().map_while(io::Result::ok);
    Ok(lines.filter_map(|line| {
        let mut parts = line.split('\t').map(str::to_string);
        let (id, content) = (parts.next()?, parts.next()?);
        Some(Kept { id, content, size: parts.next()?.parse().ok()?, sha256: parts.next()? })
    }))
}

/// Describes a problem of a content.
pub(super) fn about(file: Kept, what: String) -> Problem {
    let account = file.content.split('/').next().unwrap_or_default().to_string();
    Problem { account, table: "files".to_string(), id: file.id, what }
}
