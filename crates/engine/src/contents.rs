//! Uploaded contents: name, size, type and hash.

pub mod holds;
pub mod picture;

/// Maximum size of a file, in bytes.
pub const MAX_SIZE: usize = 25 * 1024 * 1024;

/// A content that was received and stored, and waits for its record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upload {
    /// The key of the content.
    pub content: String,
    /// The name that the caller sent.
    pub name: String,
    /// Its content type.
    pub content_type: String,
    /// Its size, in bytes.
    pub size: i64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
    /// The number of pixels in the header of a PNG or JPEG; otherwise 0.
    pub pixels: i64,
}

/// Returns a name without folders and special characters, valid on every file system.
pub fn clean_name(sent: &str) -> String {
    let last = sent.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last.chars().filter(|c| !c.is_control()).take(255).collect();
    match name.trim().trim_matches('.') {
        "" => "file".to_string(),
        _ => name.trim().to_string(),
    }
}

/// Returns bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    let mut text = String::with_capacity(2 * bytes.len());
    bytes.iter().for_each(|byte| text.extend([digit(byte >> 4), digit(byte & 15)]));
    text
}

/// Returns the file extension in lower case, without the dot; empty if there is none.
pub fn extension(name: &str) -> String {
    let end = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map_or("", |(_, end)| end);
    if end.len() <= 16 && end.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        end.to_lowercase()
    } else {
        String::new()
    }
}

/// Detects the content type from the first bytes; the name only distinguishes types of text.
pub fn content_type(start: &[u8], name: &str) -> &'static str {
    // Text types are detected more precisely below.
    if let Some(kind) = infer::get(start).filter(|kind| !kind.mime_type().starts_with("text/")) {
        return kind.mime_type();
    }
    let readable = match std::str::from_utf8(start) {
        Ok(text) => text,
        // The start may end in the middle of a character.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return "application/octet-stream",
    };
    if readable.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{c}')) {
        return "application/octet-stream";
    }
    let head = readable.trim_start_matches('\u{feff}').trim_start().to_lowercase();
    match extension(name).as_str() {
        _ if head.contains("<svg") => "image/svg+xml",
        _ if head.starts_with("<!doctype html") || head.contains("<html") || head.contains("<script") => "text/html",
        _ if head.starts_with("<?xml") => "text/xml",
        "csv" => "text/csv",
        "json" => "application/json",
        "md" => "text/markdown",
        "ics" => "text/calendar",
        "html" | "htm" | "xhtml" => "text/html",
        "svg" => "image/svg+xml",
        "xml" => "text/xml",
        _ => "text/plain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_folders() {
        for (sent, kept) in [
            ("a.pdf", "a.pdf"),
            ("../../etc/passwd", "passwd"),
            ("C:\\x\\y.txt", "y.txt"),
            ("..", "file"),
            ("", "file"),
            ("a\u{0}b\r\n.txt", "ab.txt"),
            (".bashrc", ".bashrc"),
            ("  naam met spaties.doc ", "naam met spaties.doc"),
        ] {
            assert_eq!(clean_name(sent), kept, "{sent:?}");
        }
        assert_eq!(
            (extension("A.PDF").as_str(), extension("no").as_str(), extension(".env").as_str()),
            ("pdf", "", "")
        );
    }

    #[test]
    fn types_come_from_the_content() {
        for (start, name, kind) in [
            (&b"%PDF-1.7 ..."[..], "x.txt", "application/pdf"),
            (b"\x89PNG\r\n\x1a\n....", "x.html", "image/png"),
            (b"<!DOCTYPE html><p>", "x.txt", "text/html"),
            (b"<svg onload=alert(1)>", "x.png", "image/svg+xml"),
            (b"<?xml version=\"1.0\"?>\n<svg>", "x", "image/svg+xml"),
            (b"hi <script>alert(1)</script>", "x.txt", "text/html"),
            (b"a;b\n1;2", "x.csv", "text/csv"),
            (b"hello", "x.pdf", "text/plain"),
            (b"\x00\x01\x02", "x.txt", "application/octet-stream"),
            (b"\xff\xfe\xfd", "x.txt", "application/octet-stream"),
            ("één €".as_bytes().split_last().unwrap().1, "x.txt", "text/plain"),
            (b"", "empty.txt", "text/plain"),
        ] {
            assert_eq!(content_type(start, name), kind, "{name} {start:?}");
        }
    }
}
