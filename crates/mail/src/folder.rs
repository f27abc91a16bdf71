//! Mail as files, for machines without an SMTP server.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::Failure;

/// A folder of `.eml` files.
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(crate) fn new(path: PathBuf) -> Folder {
        Folder { path }
    }

    /// Writes the message under its id; returns the name of the file.
    pub(crate) fn write(&self, message: &[u8]) -> Result<String, Failure> {
        let id = id(message).ok_or_else(|| Failure::Never("the message has no Message-ID".into()))?;
        let name = file_name(&id);
        let write = || {
            create_private(&self.path)?;
            replace(&self.path, &name, message)
        };
        match write() {
            Ok(()) => Ok(name),
            Err(e) => Err(Failure::Later(format!("{} cannot be written: {e}", self.path.join(&name).display()))),
        }
    }

    /// Checks whether files can be written.
    pub(crate) fn check(&self) -> io::Result<()> {
        create_private(&self.path)?;
        let (path, file) = temporary(&self.path, "check")?;
        let written = file.sync_all();
        fs::remove_file(path)?;
        written
    }
}

/// Returns the part of the Message-ID before the @.
fn id(message: &[u8]) -> Option<String> {
    let end = message.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(message.len());
    let headers = String::from_utf8_lossy(&message[..end]).replace("\r\n ", " ");
    let line = headers.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("message-id").then(|| value.trim())
    })?;
    let id = line.strip_prefix('<')?.strip_suffix('>')?;
    let id = id.rsplit_once('@').map_or(id, |(local, _)| local);
    (!id.is_empty()).then(|| id.to_owned())
}

/// Different ids have different names, and no name leads out of the folder.
fn file_name(id: &str) -> String {
    let mut name = String::new();
    for (i, byte) in id.bytes().enumerate() {
        match byte {
            b'.' if i == 0 => name.push_str("%2E"),
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'.' | b'_' | b'-' | b'+' | b'=' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name.push_str(".eml");
    name
}

/// Replaces the file atomically: after this returns, its content is durable.
fn replace(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let (path, mut file) = temporary(folder, name)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    if let Err(e) = written.and_then(|()| fs::rename(&path, folder.join(name))) {
        // The first error is the one to report.
        let _ = fs::remove_file(&path);
        return Err(e);
    }
    sync_folder(folder)
}

fn temporary(folder: &Path, name: &str) -> io::Result<(PathBuf, File)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!(".{name}.{}.{count}.tmp", std::process::id()));
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path)?;
    Ok((path, file))
}

fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    // Other systems cannot open a folder, and do not need to.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::{file_name, id};

    #[test]
    fn a_name_stays_in_the_folder() {
        assert_eq!(file_name("../../etc/passwd"), "%2E.%2F..%2Fetc%2Fpasswd.eml");
        assert_eq!(file_name("a%2Fb"), "a%252Fb.eml");
        assert_eq!(file_name("018f-ab.c"), "018f-ab.c.eml");
    }

    #[test]
    fn the_id_is_that_of_the_headers() {
        assert_eq!(id(b"A: b\r\nmessage-ID: <x@y>\r\n\r\nbody").as_deref(), Some("x"));
        assert_eq!(id(b"Message-ID:\r\n <x@y>\r\n\r\n").as_deref(), Some("x"));
        assert_eq!(id(b"A: b\r\n\r\nMessage-ID: <x@y>\r\n"), None);
        assert_eq!(id(b"Message-ID: <@y>\r\n\r\n"), None);
    }
}
