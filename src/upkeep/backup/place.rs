//! Where a backup is: a folder, a file, or an object in an S3-compatible store.

use std::fmt;
use std::path::{Path, PathBuf};

use blobs::Blobs;
use engine::config::{Config, is_foreign_url, is_url};
use engine::open;

/// What the names of archives end with. Any other name is that of a folder.
const ARCHIVES: [&str; 4] = [".kantoor", ".tar.zst", ".tzst", ".age"];
/// What the names of other archives and of databases end with: nobody means a folder by them.
const FOREIGN: [&str; 15] = [
    ".zip", ".tar", ".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz", ".7z", ".rar", ".zst", ".gpg", ".db", ".dump",
    ".sql",
];

/// Where a backup is.
#[derive(Clone)]
pub enum Place {
    /// A folder with all parts.
    Folder(PathBuf),
    /// An archive.
    File(PathBuf),
    /// An archive in an S3-compatible store.
    Object {
        /// The store.
        blobs: Blobs,
        /// The key of the archive.
        key: String,
        /// Its URL.
        url: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Folder(path) | Place::File(path) => write!(f, "{}", path.display()),
            Place::Object { url, .. } => f.write_str(url),
        }
    }
}

impl Place {
    /// Parses the place of a new backup.
    pub fn of_new(text: &str, config: &Config) -> Result<Place, String> {
        let name = text.to_lowercase();
        let ends_in = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
        let is_object = text.starts_with("s3://");
        match ends_in(&ARCHIVES) {
            _ if !is_object && is_url(text) => Err(foreign(text)),
            false if ends_in(&FOREIGN) => {
                let or_folder = if is_object { "" } else { ", or a folder" };
                Err(format!(
                    "{text}: a backup is a file whose name ends in .kantoor, .tar.zst, .tzst or .age{or_folder}; choose another name"
                ))
            }
            // A store has no folders: whatever the name, it is an archive.
            _ if is_object => Place::object(text, config),
            true => Ok(Place::File(PathBuf::from(text))),
            false => Ok(Place::Folder(PathBuf::from(text))),
        }
    }

    /// Parses the place of an existing backup.
    pub fn of_existing(text: &str, config: &Config) -> Result<Place, String> {
        let path = Path::new(text);
        match text.starts_with("s3://") {
            true => Place::object(text, config),
            false if is_url(text) => Err(foreign(text)),
            false if path.is_dir() => Ok(Place::Folder(path.to_path_buf())),
            false if path.exists() => Ok(Place::File(path.to_path_buf())),
            false => Err(format!("{text} does not exist; check its name, and that its disk is mounted")),
        }
    }

    fn object(url: &str, config: &Config) -> Result<Place, String> {
        let wrong = || format!("{url}: expected s3://bucket/name");
        let (folder, key) = url.rsplit_once('/').ok_or_else(wrong)?;
        if key.is_empty() || is_foreign_url(folder) || folder.len() <= "s3://".len() {
            return Err(wrong());
        }
        let blobs = open::open_blobs_at(config, folder).map_err(|error| error.internal.unwrap_or(error.message))?;
        Ok(Place::Object { blobs, key: key.to_string(), url: url.to_string() })
    }
}

/// Says that a place is none for backups. The rest of it may contain a password.
fn foreign(url: &str) -> String {
    let scheme = url.split("://").next().unwrap_or_default();
    format!(
        "{scheme}:// cannot be used: a backup is a file, a folder or s3://bucket/name; to have it elsewhere, copy the file there"
    )
}

/// Says that a store does not answer, and what to look at; a phrase.
pub fn unreachable(error: &blobs::Error) -> String {
    match error {
        blobs::Error::Unavailable(why) => {
            // The first line says what failed.
            let why = why.lines().next().unwrap_or(why).trim_end();
            format!(
                "the store cannot be used; check its address, the bucket and the keys (s3_endpoint, s3_access_key): {why}"
            )
        }
        error => error.to_string(),
    }
}
