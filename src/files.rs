//! Uploaded files. The content is in the blob store under a random key. A job that deletes the content is enqueued
//! before the content is written, and cancelled in the transaction that creates the record. So a crash leaves neither a
//! content without a record for long, nor a record without its content.

pub mod usage;

use engine::app::App;
use engine::call::{Answer, Call, Content};
use engine::contents::{Upload, extension, holds};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, violation};
use engine::jobs::{self, Claimed, Ending, Job, NewJob};
use engine::record::{ALL, COMPUTED, CREATED, INPUT, Link, Model, NOWHERE, Needs, ShownUrl};
use engine::records::{self, Work};
use engine::resource::{Method, RequestBody, Resource, Returns, Verb};
use engine::{choice, input, list, record};
use serde::{Deserialize, Serialize};
use store::{Migration, Tx};

const ADDRESSES: &[ShownUrl] = &[ShownUrl {
    name: "url",
    path: "/v1/files/{id}/content",
    signed: true,
    views: ALL,
    needs: Some(Needs { column: "origin", value: "document", scope: TO_READ_DOCUMENTS }),
    doc: "URL of the content, valid for a day without a key. Empty for the PDF of a document without the scope `invoices.read`.",
}];

/// The scope that opens documents, which their PDFs require as well.
const TO_READ_DOCUMENTS: &str = "invoices.read";

choice! {
    /// Where a file comes from.
    pub enum Origin {
        /// Somebody uploaded it.
        #[default]
        Uploaded = "uploaded",
        /// The PDF of a document.
        Document = "document",
    }
}

record! {
    /// A file that was uploaded or created by Kantoor.
    pub struct File = "file" in "files", created_at: ALL, addresses: ADDRESSES;

    /// Name.
    name: String = COMPUTED.names();
    /// File extension in lower case, without the dot.
    extension: String = COMPUTED;
    /// Content type, detected from the content.
    content_type: String = COMPUTED.in_meta();
    /// Size in bytes.
    size: i64 = COMPUTED.in_meta();
    /// The client it belongs to; cleared if the client is deleted.
    client_id: Link = INPUT.refers("clients").filter().in_meta().changed_to("\"\"");
    /// `uploaded`, or `document` for the PDF of a document.
    origin: Origin = COMPUTED.filter().in_meta();
    /// SHA-256 of the content, in hexadecimal.
    sha256: String = COMPUTED.in_meta();
    /// The key of its content.
    content: String = COMPUTED.shown(NOWHERE);
    /// The number of pixels in the header of a PNG or JPEG; otherwise 0.
    pixels: i64 = COMPUTED.shown(NOWHERE);
    /// Whether the image was decoded and re-encoded, as for a logo.
    redrawn: bool = COMPUTED.shown(NOWHERE);
}

impl Model for File {}

/// The resource of files.
pub fn resource() -> Resource {
    Resource::of::<File>("Files", "files", MIGRATIONS)
        .list::<File>()
        .with(|route| {
            route.handler = list::either::<File>;
            route.returns = Returns::Either;
        })
        .route(Method::Post, "", "Upload a file", create)
        .with(|route| route.body = RequestBody::File)
        .returns(Returns::Item(CREATED))
        .extension()
        .get::<File>()
        .patch::<File>()
        .extension()
        .verb(Verb::Delete, delete)
        .route(Method::Get, "/{id}/content", "Download the content", content)
        .returns(Returns::Content)
        .extension()
}

fn create(call: Call) -> Result<Work> {
    let Some(upload) = call.upload else {
        let mut faults = FieldErrors::default();
        faults.add("file", violation(FieldCode::Required, "is required, as multipart/form-data"));
        return Err(Error::invalid(faults));
    };
    Ok(Box::new(move |tx, ctx| {
        usage::room_for_file(tx, ctx, upload.size)?;
        let file = add(tx, ctx, &upload)?;
        Ok(Answer::created(ctx, &file, CREATED).with_texts("warnings", &call.warnings))
    }))
}

/// Creates the record of a stored content that was uploaded.
pub fn add(tx: &mut Tx, ctx: &Ctx, upload: &Upload) -> Result<File> {
    add_as(tx, ctx, upload, Origin::Uploaded)
}

/// Creates the record of a stored content.
pub fn add_as(tx: &mut Tx, ctx: &Ctx, upload: &Upload, origin: Origin) -> Result<File> {
    claim(tx, upload)?;
    let mut file = File {
        name: upload.name.clone(),
        extension: extension(&upload.name),
        content_type: upload.content_type.clone(),
        size: upload.size,
        sha256: upload.sha256.clone(),
        content: upload.content.clone(),
        pixels: upload.pixels,
        origin,
        ..File::default()
    };
    records::add(tx, ctx, &mut file)?;
    usage::count_file(tx, ctx, file.size)?;
    Ok(file)
}

/// Cancels the deletion of a content, now that it gets a record.
pub fn claim(tx: &mut Tx, upload: &Upload) -> Result<()> {
    if jobs::call_off(tx, &drop_key(&upload.content))? {
        return Ok(());
    }
    Err(Error::new(Code::RequestTimeout, "The upload took too long; send the file again."))
}

fn content(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let file: File = records::find_in_path(tx, ctx, &call)?;
        check_reader(ctx, &file)?;
        Ok(Answer::content(kept(&file)))
    }))
}

/// Rejects a caller who may read files, but not the content of this one: the PDF of a document is part of the document.
pub fn check_reader(ctx: &Ctx, file: &File) -> Result<()> {
    if file.origin != Origin::Document || ctx.may(TO_READ_DOCUMENTS) {
        return Ok(());
    }
    let message = format!("This file is the PDF of a document, which requires the scope '{TO_READ_DOCUMENTS}'.");
    Err(Error::new(Code::Forbidden, message))
}

fn delete(call: Call) -> Result<Work> {
    input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let file: File = records::find_to_change(tx, ctx, &call)?;
        remove(tx, ctx, &file)?;
        Ok(Answer::empty())
    }))
}

/// Deletes a file with its content.
pub fn remove(tx: &mut Tx, ctx: &Ctx, file: &File) -> Result<()> {
    records::remove(tx, ctx, file)?;
    usage::count_file(tx, ctx, -file.size)?;
    drop_later(tx, ctx.account, ctx, &file.content, 0)
}

/// The content of a file as a response.
pub fn kept(file: &File) -> Content {
    Content::Kept {
        key: file.content.clone(),
        name: file.name.clone(),
        content_type: file.content_type.clone(),
        etag: file.sha256.clone(),
    }
}

/// How long a content can exist without a record.
pub const PATIENCE_SECONDS: i64 = 3600;

/// Enqueues the deletion of a content after a number of seconds, unless a record has it by then.
pub fn drop_later(tx: &mut Tx, account: i64, ctx: &Ctx, content: &str, seconds: i64) -> Result<()> {
    let job = NewJob::of(ctx, &DropContent { content: content.to_string() })?;
    let job = NewJob { account, ..job.keyed(drop_key(content)).after(seconds) };
    jobs::enqueue(tx, ctx, &job)
}

/// Enqueues the deletion of a content that is about to be written, unless a record has it by then. Rejects the upload
/// if the account's quota is used up.
pub fn announce(tx: &mut Tx, ctx: &Ctx, content: &str) -> Result<()> {
    usage::room_for_file(tx, ctx, 0)?;
    drop_later(tx, ctx.account, ctx, content, PATIENCE_SECONDS)
}

/// Deletes a content that was waiting for its record.
pub fn drop_now(tx: &mut Tx, ctx: &Ctx, content: &str) -> Result<()> {
    jobs::call_off(tx, &drop_key(content))?;
    drop_later(tx, ctx.account, ctx, content, 0)
}

/// The unique key of the job that deletes a content.
pub fn drop_key(content: &str) -> String {
    format!("drop_content {content}")
}

/// The job that deletes a content without a record.
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
            Ok::<_, Error>((tx.int(sql, &[account.into(), (&key).into()])?, holds::is_held(tx, now)?))
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

const MIGRATIONS: &[Migration] = &[Migration {
    number: 14,
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
    pixels BIGINT NOT NULL DEFAULT 0,
    redrawn BIGINT NOT NULL DEFAULT 0 CHECK (redrawn IN (0, 1)),
    client_id TEXT NOT NULL DEFAULT '',
    origin TEXT NOT NULL DEFAULT 'uploaded',
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX files_created ON files (account_id, created_at, id);
CREATE UNIQUE INDEX files_content ON files (account_id, content);
CREATE INDEX files_client ON files (account_id, client_id, created_at, id);
CREATE INDEX files_origin ON files (account_id, origin, created_at, id);
",
}];
