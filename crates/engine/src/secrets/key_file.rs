//! Where the keys for secrets come from: a file or a setting. Each key is 64 hexadecimal digits; the first one encrypts,
//! the others are from before a rotation.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::contents::hex;
use crate::error::{Code, Error, Result};
use crate::random;

/// The name of the file in the data folder.
pub const NAME: &str = "secret.key";

const HEADER: &str = "# The key that encrypts the secrets in the database of Kantoor. Without it they cannot be read.
# Keep a copy, but not where the backups are.
";

/// Where the keys come from.
#[derive(Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A file.
    File(PathBuf),
    /// The setting `secret_key`.
    Setting(String),
}

/// Without the keys, which no log may contain.
impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeySource::File(path) => write!(f, "the file {}", path.display()),
            KeySource::Setting(_) => f.write_str("the setting secret_key"),
        }
    }
}

impl KeySource {
    /// Returns the configured source.
    pub fn of(config: &Config) -> KeySource {
        match (config.secret_key.as_str(), config.secret_key_file.as_str()) {
            ("", "") => KeySource::File(config.data.join(NAME)),
            ("", file) => KeySource::File(PathBuf::from(file)),
            (keys, _) => KeySource::Setting(keys.to_string()),
        }
    }

    /// Reads the keys; none if the file does not exist.
    pub(crate) fn read(&self) -> Result<Vec<[u8; 32]>> {
        let text = match self {
            KeySource::Setting(keys) => keys.clone(),
            KeySource::File(path) => match std::fs::read_to_string(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
                read => read.map_err(|error| failed(path, &error))?,
            },
        };
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let keys: Vec<&str> =
            lines.flat_map(|line| line.split([' ', ',', '\t'])).filter(|key| !key.is_empty()).collect();
        let parsed: Option<Vec<[u8; 32]>> = keys.iter().map(|key| unhex(key)?.try_into().ok()).collect();
        match parsed {
            Some(keys) if !keys.is_empty() => Ok(keys),
            _ => {
                // The text itself may be a key with a typing error, so it is not quoted.
                let message = format!("{self} does not contain a key: 64 hexadecimal digits per key.");
                Err(Error::new(Code::Unavailable, message[..1].to_uppercase() + &message[1..]))
            }
        }
    }

    /// Creates a key, unless another process has created one in the meantime.
    pub(super) fn create(&self) -> Result<()> {
        let KeySource::File(path) = self else { return Ok(()) };
        match write(path, &[new_key()?], |new| std::fs::hard_link(new, path)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            done => done.map_err(|error| failed(path, &error)),
        }
    }

    /// Adds a new key in front of the others, which remain for values and backups from before.
    pub fn rotate(&self) -> Result<()> {
        let KeySource::File(path) = self else {
            let message = "The key comes from the setting secret_key. Put the new key in front of the old one there.";
            return Err(Error::new(Code::Unavailable, message));
        };
        let mut keys = vec![new_key()?];
        keys.extend(self.read()?.iter().map(|key| hex(key)));
        write(path, &keys, |new| std::fs::rename(new, path)).map_err(|error| failed(path, &error))
    }

    /// Copies the file to a folder; returns whether there is one.
    pub fn copy_into(&self, folder: &Path) -> Result<bool> {
        let KeySource::File(_) = self else { return Ok(false) };
        let keys: Vec<String> = self.read()?.iter().map(|key| hex(key)).collect();
        let copy = folder.join(NAME);
        write(&copy, &keys, |new| std::fs::rename(new, &copy)).map_err(|error| failed(&copy, &error))?;
        Ok(true)
    }
}

/// Generates a key.
fn new_key() -> Result<String> {
    Ok(hex(&random::bytes::<32>()?))
}

/// Writes a complete file next to `path` and puts it in place with `place`, so that a crash never leaves half of one.
fn write(path: &Path, keys: &[String], place: impl Fn(&Path) -> std::io::Result<()>) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    let text = format!("{HEADER}{}\n", keys.join("\n"));
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| place(&new));
    let _ = std::fs::remove_file(&new);
    placed?;
    File::open(folder)?.sync_all()
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Code::Unavailable, format!("Cannot use the key file {}: {error}.", path.display()))
}

/// Parses hexadecimal digits.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
