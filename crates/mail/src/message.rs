//! Builds the bytes of a message (RFC 5322).

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Attachment as Attached, Body, Mailbox, Message, MultiPart, SinglePart};

use crate::address;

/// A name, which may be empty, and an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedAddress {
    /// The display name; empty for none.
    pub name: String,
    /// `user@domain`.
    pub email: String,
}

/// An attached file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// The file name.
    pub name: String,
    /// The content type, such as `application/pdf`.
    pub content_type: String,
    /// The content.
    pub bytes: Vec<u8>,
}

/// A message. The same fields always give the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mail {
    /// The sender; its domain is also that of the message id.
    pub from: NamedAddress,
    /// The reply address, if it is not `from`.
    pub reply_to: Option<NamedAddress>,
    /// The addresses in the `To` header.
    pub to: Vec<String>,
    /// The addresses in the `Cc` header.
    pub cc: Vec<String>,
    /// The subject, on one line.
    pub subject: String,
    /// The plain text.
    pub text: String,
    /// The text as HTML; empty for a mail with only plain text.
    pub html: String,
    /// The attachments.
    pub attachments: Vec<Attachment>,
    /// The part of the message id before the @: letters, digits, `.`, `_`, `-`, `+`, `=`. Keep it the same for all
    /// attempts, so that receivers can drop duplicates.
    pub message_id: String,
    /// The date: milliseconds since 1970, UTC.
    pub date_ms: i64,
    /// Further headers, such as `In-Reply-To`, `References` and `Auto-Submitted`; printable ASCII.
    pub headers: Vec<(String, String)>,
}

/// A field that is not valid in a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The field of [`Mail`].
    pub field: &'static str,
    /// Why it is invalid, for people.
    pub reason: String,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}

impl std::error::Error for Invalid {}

/// The last second of the year 9999: the year has four digits.
const LAST_DATE_MS: i64 = 253_402_300_799_999;
/// The maximum line length of RFC 5322, without the line end.
const LONGEST_LINE: usize = 998;
/// `=_` occurs in neither quoted-printable nor Base64 text, and all parts are encoded in one of these: a boundary
/// cannot occur in a part.
const MIXED: &str = "=_mixed";
const ALTERNATIVE: &str = "=_alternative";

impl Mail {
    /// Returns the message as it is sent: ASCII (except for non-ASCII addresses), with CRLF line ends.
    ///
    /// A line break in a field that becomes a header is rejected, not folded.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Invalid> {
        let from = mailbox("from", &self.from)?;
        let id = format!("<{}@{}>", self.id()?, from.email.domain());
        let mut builder = Message::builder().date(self.date()?).message_id(Some(id)).from(from);
        if let Some(reply_to) = &self.reply_to {
            builder = builder.reply_to(mailbox("reply_to", reply_to)?);
        }
        let to = self.to.iter().map(|to| parse("to", to)).collect::<Result<Vec<_>, _>>()?;
        let cc = self.cc.iter().map(|cc| parse("cc", cc)).collect::<Result<Vec<_>, _>>()?;
        builder = to.iter().fold(builder, |builder, to| builder.to(to.clone().into()));
        builder = cc.iter().fold(builder, |builder, cc| builder.cc(cc.clone().into()));
        if self.to.is_empty() && self.cc.is_empty() {
            return Err(invalid("to", "a mail needs at least one recipient"));
        }
        let built = match (self.body(), self.attachments.is_empty()) {
            (Content::Single(part), true) => builder.singlepart(part),
            (Content::Multi(part), true) => builder.multipart(part),
            (content, false) => {
                let mixed = MultiPart::mixed().boundary(MIXED);
                let mut mixed = match content {
                    Content::Single(part) => mixed.singlepart(part),
                    Content::Multi(part) => mixed.multipart(part),
                };
                for attachment in &self.attachments {
                    mixed = mixed.singlepart(attached(attachment)?);
                }
                builder.multipart(mixed)
            }
        };
        let mut message = built.map_err(|e| invalid("from", e.to_string()))?;
        message.headers_mut().insert_raw(self.subject()?);
        for (name, addresses) in [("To", to), ("Cc", cc)] {
            if !addresses.is_empty() {
                message.headers_mut().insert_raw(list(HeaderName::new_from_ascii_str(name), &addresses));
            }
        }
        for (i, (name, value)) in self.headers.iter().enumerate() {
            if self.headers[..i].iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                return Err(invalid("headers", format!("{name} occurs twice")));
            }
            message.headers_mut().insert_raw(extra(name, value)?);
        }
        let bytes = message.formatted();
        check_lines(&bytes).map_err(|reason| invalid("headers", reason))?;
        Ok(bytes)
    }

    fn id(&self) -> Result<&str, Invalid> {
        let id = self.message_id.as_str();
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+' | b'=');
        if id.is_empty() || id.len() > 128 || !id.bytes().all(fits) || id.split('.').any(str::is_empty) {
            return Err(invalid("message_id", "1 to 128 letters, digits, or . _ - + = (no dot at an end or twice)"));
        }
        Ok(id)
    }

    fn date(&self) -> Result<std::time::SystemTime, Invalid> {
        u64::try_from(self.date_ms)
            .ok()
            .filter(|_| self.date_ms <= LAST_DATE_MS)
            .and_then(|ms| UNIX_EPOCH.checked_add(Duration::from_millis(ms)))
            .ok_or_else(|| invalid("date_ms", "the date of a mail must be between 1970 and 9999"))
    }

    fn subject(&self) -> Result<HeaderValue, Invalid> {
        let name = HeaderName::new_from_ascii_str("Subject");
        let subject = one_line("subject", &self.subject)?;
        // The library passes some subjects on unchanged. A subject that looks like an encoded word, that folding would
        // change, or with a word too long for a line is encoded as a whole.
        let plain = subject.bytes().all(|b| matches!(b, 0x20..=0x7e))
            && !subject.contains("=?")
            && !subject.contains("  ")
            && subject.trim() == subject
            && subject.split(' ').all(|word| word.len() <= 60);
        Ok(if plain {
            HeaderValue::new(name, subject.to_owned())
        } else {
            HeaderValue::dangerous_new_pre_encoded(name, subject.to_owned(), encoded_words(subject))
        })
    }

    fn body(&self) -> Content {
        if self.html.is_empty() {
            return Content::Single(text_part(ContentType::TEXT_PLAIN, &self.text));
        }
        let html = text_part(ContentType::TEXT_HTML, &self.html);
        if self.text.is_empty() {
            return Content::Single(html);
        }
        let text = text_part(ContentType::TEXT_PLAIN, &self.text);
        Content::Multi(MultiPart::alternative().boundary(ALTERNATIVE).singlepart(text).singlepart(html))
    }
}

enum Content {
    Single(SinglePart),
    Multi(MultiPart),
}

fn text_part(content_type: ContentType, text: &str) -> SinglePart {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let quoted = encoded(text, ContentTransferEncoding::QuotedPrintable);
    SinglePart::builder().header(content_type).body(quoted)
}

fn attached(attachment: &Attachment) -> Result<SinglePart, Invalid> {
    let name = one_line("attachments", &attachment.name)?;
    if name.is_empty() || name.len() > 255 {
        return Err(invalid("attachments", "a file name must have 1 to 255 bytes"));
    }
    let bad =
        || invalid("attachments", format!("'{}' is not a valid content type", attachment.content_type.escape_debug()));
    let content_type = one_line("attachments", &attachment.content_type)?;
    if content_type.len() > 127 || !content_type.is_ascii() {
        return Err(bad());
    }
    // Parts of these types must not be Base64 and could contain our boundaries: they are sent as plain files.
    let lower = content_type.to_ascii_lowercase();
    let content_type = match lower.starts_with("message/") || lower.starts_with("multipart/") {
        true => "application/octet-stream",
        false => content_type,
    };
    let content_type = ContentType::parse(content_type).map_err(|_| bad())?;
    let body = encoded(attachment.bytes.clone(), ContentTransferEncoding::Base64);
    Ok(Attached::new(name.to_owned()).body(body, content_type))
}

/// The two encodings that we use accept any content; for others the library's error returns the content.
fn encoded(content: impl Into<lettre::message::MaybeString>, encoding: ContentTransferEncoding) -> Body {
    Body::new_with_encoding(content, encoding).unwrap_or_else(Body::new)
}

fn mailbox(field: &'static str, address: &NamedAddress) -> Result<Mailbox, Invalid> {
    let name = one_line(field, &address.name)?.trim();
    if name.chars().count() > 255 {
        return Err(invalid(field, "a name may have at most 255 characters"));
    }
    Ok(Mailbox::new((!name.is_empty()).then(|| name.to_owned()), parse(field, &address.email)?))
}

fn parse(field: &'static str, email: &str) -> Result<lettre::Address, Invalid> {
    address::parse(email).map_err(|reason| invalid(field, reason))
}

/// Writes one address per line: the library writes all on one line, which may be too long.
fn list(name: HeaderName, addresses: &[lettre::Address]) -> HeaderValue {
    let addresses: Vec<&str> = addresses.iter().map(AsRef::as_ref).collect();
    HeaderValue::dangerous_new_pre_encoded(name, addresses.join(", "), addresses.join(",\r\n "))
}

fn extra(name: &str, value: &str) -> Result<HeaderValue, Invalid> {
    const OURS: [&str; 12] = [
        "from",
        "sender",
        "reply-to",
        "to",
        "cc",
        "bcc",
        "subject",
        "date",
        "message-id",
        "mime-version",
        "return-path",
        "received",
    ];
    let lower = name.to_ascii_lowercase();
    let shown = name.escape_debug();
    if !name.bytes().all(|b| matches!(b, 0x21..=0x7e)) {
        return Err(invalid("headers", format!("'{shown}' is not a valid header name")));
    }
    if OURS.contains(&lower.as_str()) || lower.starts_with("content-") || lower.starts_with("resent-") {
        return Err(invalid("headers", format!("{shown} cannot be set as an additional header")));
    }
    let value = value.trim_matches(' ');
    if value.is_empty() || !value.bytes().all(|b| matches!(b, 0x20..=0x7e)) {
        return Err(invalid("headers", format!("the value of {shown} must be printable ASCII on one line")));
    }
    let bad = |_| invalid("headers", format!("'{shown}' is not a valid header name"));
    Ok(HeaderValue::new(HeaderName::new_from_ascii(name.to_owned()).map_err(bad)?, value.to_owned()))
}

fn one_line<'a>(field: &'static str, text: &'a str) -> Result<&'a str, Invalid> {
    match address::has_break(text) {
        true => Err(invalid(field, "must not contain line breaks or control characters")),
        false => Ok(text),
    }
}

/// RFC 2047 in Base64: words of at most 64 characters, split between letters, one per line.
fn encoded_words(text: &str) -> String {
    const BYTES: usize = 39;
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (word, after) = rest.split_at(rest.floor_char_boundary(BYTES));
        words.push(format!("=?utf-8?b?{}?=", STANDARD.encode(word)));
        rest = after;
    }
    words.join("\r\n ")
}

/// Rejects line ends other than CRLF (some servers take "\n.\n" for the end of the mail) and overlong lines.
pub(crate) fn check_lines(message: &[u8]) -> Result<(), String> {
    for line in message.split_inclusive(|&b| b == b'\n') {
        let line = match line.strip_suffix(b"\r\n") {
            Some(line) => line,
            None if line.ends_with(b"\n") => return Err("a line ends in a bare line feed".into()),
            None => line,
        };
        if line.contains(&b'\r') || line.contains(&0) {
            return Err("a line contains a bare carriage return or a NUL byte".into());
        }
        if line.len() > LONGEST_LINE {
            return Err(format!("a line is longer than {LONGEST_LINE} bytes"));
        }
    }
    Ok(())
}

fn invalid(field: &'static str, reason: impl Into<String>) -> Invalid {
    Invalid { field, reason: reason.into() }
}
