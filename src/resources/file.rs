//! Files: what was uploaded. The content lies in the blob store under a key that nobody chooses;
//! a job that would drop it is enqueued before it is written, and taken away in the transaction
//! that makes the record. So no crash leaves a content without a record for long, or a record
//! without its content.

pub mod picture;

use serde::{Deserialize, Serialize};
use store::{Migration, Tx};

use super::Resource;
use crate::app::App;
use crate::backup;
use crate::call::{Answer, Call, Content};
use crate::context::Ctx;
use crate::error::{Code, Error, Faults, FieldCode, Result, wrong};
use crate::jobs::{self, Claimed, Ending, Job, NewJob};
use crate::record::{ALL, Address, COMPUTED, CREATED, Checks, NOWHERE};
use crate::records::{self, Work};
use crate::{input, quotas, record};

/// The largest file.
pub const MAX_SIZE: usize = 25 * 1024 * 1024;

const ADDRESSES: &[Address] = &[Address {
    name: "url",
    path: "/v1/files/{id}/content",
    signed: true,
    views: ALL,
    doc: "Where the content is: with your key, or in a browser for a day.",
}];

record! {
    /// A file that was uploaded, or that Kantoor made.
    pub struct File = "file" in "files", created_at: ALL, addresses: ADDRESSES;

    /// Its name.
    name: String = COMPUTED;
    /// The end of its name, in small letters, without the dot.
    extension: String = COMPUTED;
    /// What it is, told from its content.
    content_type: String = COMPUTED.in_meta();
    /// Its length in bytes.
    size: i64 = COMPUTED.in_meta();
    /// The SHA-256 of its content, in hexadecimal.
    sha256: String = COMPUTED.in_meta();
    /// Where its content is kept.
    content: String = COMPUTED.shown(NOWHERE);
    /// How many pixels a PNG or JPEG says it has; else 0.
    pixels: i64 = COMPUTED.shown(NOWHERE);
}

impl Checks for File {}

/// A content that was received and kept, and waits for its record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upload {
    /// The key of the content.
    pub content: String,
    /// The name that the caller gave it.
    pub name: String,
    /// What it is.
    pub content_type: String,
    /// Its length.
    pub size: i64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
    /// How many pixels a PNG or JPEG says it has; else 0.
    pub pixels: i64,
}

/// Files and their routes.
pub fn resource() -> Resource {
    Resource::of::<File>("Files", "files", MIGRATIONS)
        .list_or_all::<File>()
        .upload(create)
        .extension()
        .get::<File>()
        .delete_with(delete)
        .content("content", "Download the content", content)
        .extension()
}

fn create(call: Call) -> Result<Work> {
    let Some(upload) = call.upload else {
        let mut faults = Faults::default();
        faults.add("file", wrong(FieldCode::Required, "must be sent, as multipart/form-data"));
        return Err(Error::invalid(faults));
    };
    Ok(Box::new(move |tx, ctx| {
        quotas::room_for_file(tx, ctx, upload.size)?;
        let file = add(tx, ctx, &upload)?;
        Ok(Answer::created(ctx, &file, CREATED).with_texts("warnings", &call.warnings))
    }))
}

/// The record of a content that was kept.
pub fn add(tx: &mut Tx, ctx: &Ctx, upload: &Upload) -> Result<File> {
    if !jobs::call_off(tx, &drop_key(&upload.content))? {
        return Err(Error::new(Code::RequestTimeout, "The file took too long to arrive; send it again."));
    }
    let mut file = File {
        name: upload.name.clone(),
        extension: extension(&upload.name),
        content_type: upload.content_type.clone(),
        size: upload.size,
        sha256: upload.sha256.clone(),
        content: upload.content.clone(),
        pixels: upload.pixels,
        ..File::default()
    };
    records::add(tx, ctx, &mut file)?;
    quotas::count_file(tx, ctx, file.size)?;
    Ok(file)
}

fn content(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let file: File = records::find_in_path(tx, ctx, &call)?;
        Ok(Answer::content(Content::kept(&file)))
    }))
}

fn delete(call: Call) -> Result<Work> {
    input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let file: File = records::find_to_change(tx, ctx, &call)?;
        let logos = "SELECT count(*) FROM corporate_identities WHERE account_id = $1 AND logo_file_id = $2";
        if tx.int(logos, &[ctx.account.into(), (&file.base.id).into()])? > 0 {
            return Err(Error::new(
                Code::InUse,
                "It is the logo of a corporate identity; give that another one first.",
            ));
        }
        let documents = "SELECT count(*) FROM document_pdfs WHERE account_id = $1 AND file_id = $2";
        if tx.int(documents, &[ctx.account.into(), (&file.base.id).into()])? > 0 {
            return Err(Error::new(Code::InUse, "It is the PDF of a final document, which keeps it."));
        }
        records::remove(tx, ctx, &file)?;
        quotas::count_file(tx, ctx, -file.size)?;
        drop_later(tx, ctx.account, ctx, &file.content, 0)?;
        Ok(Answer::empty())
    }))
}

/// How long a content may wait for its record.
pub const PATIENCE_SECONDS: i64 = 3600;

/// Has a content dropped after so many seconds, unless a record has it by then.
pub fn drop_later(tx: &mut Tx, account: i64, ctx: &Ctx, content: &str, seconds: i64) -> Result<()> {
    let job = NewJob::of(ctx, &DropContent { content: content.to_string() })?;
    let job = NewJob { account, ..job.keyed(drop_key(content)).after(seconds) };
    jobs::enqueue(tx, &ctx.ids, &job, ctx.machine_now)
}

/// Has a content dropped that was to wait for its record.
pub fn drop_now(tx: &mut Tx, ctx: &Ctx, content: &str) -> Result<()> {
    jobs::call_off(tx, &drop_key(content))?;
    drop_later(tx, ctx.account, ctx, content, 0)
}

/// The key of the job that is to drop a content.
pub fn drop_key(content: &str) -> String {
    format!("drop_content {content}")
}

/// The job: drops a content that no record has.
#[derive(Serialize, Deserialize)]
pub struct DropContent {
    content: String,
}

impl Job for DropContent {
    const KIND: &'static str = "drop_content";
    const TRIES: i64 = 1000;

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        let (account, key, now) = (claimed.account, self.content.clone(), app.clock.now());
        let (used, held) = app.store.read_now(move |tx| {
            let sql = "SELECT count(*) FROM files WHERE account_id = $1 AND content = $2";
            Ok::<_, Error>((tx.int(sql, &[account.into(), (&key).into()])?, backup::is_held(tx, now)?))
        })?;
        if used > 0 {
            return Ok(Ending::Done);
        }
        if held {
            return Ok(Ending::Again(now.plus_seconds(60)));
        }
        match tokio::runtime::Handle::current().block_on(app.blobs.drop(&self.content)) {
            Ok(()) => Ok(Ending::Done),
            Err(error) => Ok(Ending::Failed(error.to_string())),
        }
    }
}

/// A name without folders and odd characters, that every file system can carry.
pub fn clean_name(sent: &str) -> String {
    let last = sent.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last.chars().filter(|c| !c.is_control()).take(255).collect();
    match name.trim().trim_matches('.') {
        "" => "file".to_string(),
        _ => name.trim().to_string(),
    }
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn extension(name: &str) -> String {
    let end = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map_or("", |(_, end)| end);
    if end.len() <= 16 && end.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        end.to_lowercase()
    } else {
        String::new()
    }
}

/// What a content is, told from its first bytes; its name decides only between kinds of text.
pub fn content_type(start: &[u8], name: &str) -> &'static str {
    // Of what is text the look below knows more.
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

const MIGRATIONS: &[Migration] = &[
    Migration {
        number: 28,
        name: "files",
        sql: "
CREATE TABLE files (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    name TEXT NOT NULL,
    extension TEXT NOT NULL,
    content_type TEXT NOT NULL,
    size BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX files_created ON files (account_id, created_at, id);
CREATE UNIQUE INDEX files_content ON files (account_id, content);
",
    },
    Migration {
        number: 45,
        name: "pixels of files",
        sql: "ALTER TABLE files ADD COLUMN pixels BIGINT NOT NULL DEFAULT 0;",
    },
];

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
