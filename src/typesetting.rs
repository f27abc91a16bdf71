//! Typesets documents as PDF files and stores them.

pub mod memory;
pub mod turns;

use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use confined::Program;
use engine::accounts::Account;
use engine::app::App;
use engine::config::Config;
use engine::contents::{Upload, hex};
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::http::metrics::Metric;
use serde_json::Value;
use sha2::{Digest, Sha256};
use store::Tx;

use crate::files::{self, Origin};
use memory::Memory;

/// The built-in template.
pub const TEMPLATE: &str = include_str!("../templates/document.typ");

/// The labels on documents, by language and kind.
pub fn labels() -> &'static Value {
    static LABELS: LazyLock<Value> =
        LazyLock::new(|| serde_json::from_str(include_str!("../templates/labels.json")).unwrap_or_default());
    &LABELS
}

/// Everything that is needed to create the PDF of a document.
#[derive(Clone, Debug)]
pub struct Print {
    /// The account.
    pub account: i64,
    /// The id of the document.
    pub document: String,
    /// The revision; 0 for a draft, whose PDF is not stored.
    pub revision: i64,
    /// The file name.
    pub name: String,
    /// The timestamp in the file, in seconds.
    pub created: i64,
    /// The content key of the logo, which was re-encoded before it was stored; or empty.
    pub logo: String,
    /// The text of the payment QR code, or empty.
    pub qr: String,
    /// What the template takes, without its labels.
    pub data: Value,
}

/// Creates the PDF of a document. This takes a while and must not block a shared thread.
pub fn print(app: &App, print: &Print) -> Result<Vec<u8>> {
    let mut images = Vec::new();
    if !print.logo.is_empty() {
        let logo = tokio::runtime::Handle::current().block_on(app.blobs.read(&print.logo));
        images.extend(logo.ok().map(|logo| ("logo", logo.to_vec())));
    }
    if !print.qr.is_empty() {
        images.extend(pdf::qr_svg(&print.qr).ok().map(|svg| ("qr", svg.into_bytes())));
    }
    let data = with_labels(&print.data).to_string();
    let input = pdf::Input { data: data.as_bytes(), images: &images, attachment: None, created: print.created };
    let done = app.services.get::<pdf::Typesetter>().typeset(input).map_err(|error| {
        Error::internal(format!("cannot create a PDF: {error}{}", hint(&error, &Memory::of(&app.config))))
    })?;
    Ok(done.bytes)
}

/// Says that memory may be the cause, if there is little: the job shows it.
fn hint(error: &pdf::Error, memory: &Memory) -> String {
    match (error, memory.trouble()) {
        (pdf::Error::Failed(_), Some((found, remedy))) => format!(". {found} {remedy}"),
        _ => String::new(),
    }
}

/// The data with the labels of its language.
fn with_labels(data: &Value) -> Value {
    let mut data = data.clone();
    let language = data["language"].as_str().unwrap_or_default();
    data["labels"] = labels()[language].clone();
    data
}

/// Whether the PDF of a revision exists.
pub fn is_made(tx: &mut Tx, account: i64, document: &str, revision: i64) -> Result<bool> {
    let sql = "SELECT count(*) FROM document_pdfs WHERE account_id = $1 AND document_id = $2 AND revision = $3";
    Ok(tx.int(sql, &[account.into(), document.into(), revision.into()])? > 0)
}

/// Creates and stores the PDF of a document, unless it exists; the PDF of a draft is not stored.
pub fn print_and_keep(app: &App, job: &Print) -> Result<Vec<u8>> {
    let bytes = print(app, job)?;
    if job.revision == 0 {
        return Ok(bytes);
    }
    let account = job.account;
    let account = app.store.read_now(move |tx| Account::numbered(tx, account))?;
    let caller = app.acting(account, "printing");
    let upload = Upload {
        content: format!("{}/{}", caller.account.uid, app.ids.next()),
        name: job.name.clone(),
        content_type: "application/pdf".to_string(),
        size: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
        sha256: hex(&Sha256::digest(&bytes)),
        pixels: 0,
    };
    let (own, key) = (caller.clone(), upload.content.clone());
    app.store.write_now(caller.account.number, move |tx| {
        let ctx = own.reading(tx)?;
        files::drop_later(tx, ctx.account, &ctx, &key, files::PATIENCE_SECONDS)
    })?;
    let piece = Bytes::copy_from_slice(&bytes);
    let pieces = futures_util::stream::iter([Ok::<_, blobs::Error>(piece)]);
    let kept = tokio::runtime::Handle::current().block_on(app.blobs.keep(&upload.content, pieces));
    kept.map_err(|error| Error::internal(format!("cannot store a PDF: {error}")))?;
    let (document, revision) = (job.document.clone(), job.revision);
    app.store.write_now(caller.account.number, move |tx| {
        let ctx = caller.writing(tx)?;
        if is_made(tx, ctx.account, &document, revision)? {
            // Another process was faster.
            return files::drop_now(tx, &ctx, &upload.content);
        }
        let file = files::add_as(tx, &ctx, &upload, Origin::Document)?;
        tx.execute(
            "INSERT INTO document_pdfs (account_id, document_id, revision, file_id) VALUES ($1, $2, $3, $4)",
            &[ctx.account.into(), (&document).into(), revision.into(), (&file.base.id).into()],
        )?;
        Ok(())
    })?;
    Ok(bytes)
}

/// Rejects the deletion of a file that is the PDF of a document.
pub fn guard_pdf(tx: &mut Tx, ctx: &Ctx, file: &str) -> Result<()> {
    let documents = "SELECT count(*) FROM document_pdfs WHERE account_id = $1 AND file_id = $2";
    if tx.int(documents, &[ctx.account.into(), file.into()])? == 0 {
        return Ok(());
    }
    Err(Error::new(Code::InUse, "The file is the PDF of a final document and cannot be deleted."))
}

/// The number of documents that this process has typeset.
pub fn typeset_count(app: &App) -> Metric {
    ("documents_typeset_total", "counter", "Documents typeset", app.services.get::<pdf::Typesetter>().made())
}

/// Opens the configured template, or the built-in one.
pub fn open_typesetter(config: &Config) -> Result<pdf::Typesetter> {
    let own = match config.template.as_str() {
        "" => TEMPLATE.to_string(),
        path => std::fs::read_to_string(path)
            .map_err(|error| Error::new(Code::Unavailable, format!("Cannot read the template {path}: {error}.")))?,
    };
    let memory = Memory::of(config);
    let opened = if config.typeset_apart {
        let arguments = ["typeset-worker".to_string(), memory.most.to_string()];
        let patience = Duration::from_secs(config.typeset_timeout_seconds.max(1));
        pdf::Typesetter::apart(&own, Program::own(arguments, patience))
            .and_then(|typesetter| typesetter.with_presses(memory.presses))
    } else {
        pdf::Typesetter::new(&own)
    };
    opened.map_err(|error| Error::new(Code::Unavailable, format!("The document template is invalid: {error}.")))
}
