//! From a document to the bytes of a PDF, and those to a file.

use std::sync::LazyLock;

use serde_json::Value;
use sha2::{Digest, Sha256};
use store::Tx;

use crate::accounts::Account;
use crate::app::App;
use crate::call::Print;
use crate::error::{Error, Result};
use crate::resources::file::{self, Upload};

/// The template that is compiled in.
pub const TEMPLATE: &str = include_str!("../templates/document.typ");

/// The words on documents, by language and kind.
pub fn labels() -> &'static Value {
    static LABELS: LazyLock<Value> =
        LazyLock::new(|| serde_json::from_str(include_str!("../templates/labels.json")).unwrap_or_default());
    &LABELS
}

/// Prints a document. It takes a while; not for a thread that others wait on.
pub fn print(app: &App, print: &Print) -> Result<Vec<u8>> {
    let mut images = Vec::new();
    if !print.logo.is_empty() {
        let logo = tokio::runtime::Handle::current().block_on(app.blobs.read(&print.logo));
        images.extend(logo.ok().map(|logo| ("logo", logo.to_vec())));
    }
    if !print.qr.is_empty() {
        images.extend(pdf::qr_svg(&print.qr).ok().map(|svg| ("qr", svg.into_bytes())));
    }
    let data = print.data.to_string();
    let input = pdf::Input { data: data.as_bytes(), images: &images, attachment: None, created: print.created };
    let done =
        app.typesetter.typeset(input).map_err(|error| Error::internal(format!("cannot create a PDF: {error}")))?;
    Ok(done.bytes)
}

/// Whether the PDF of a revision is there.
pub fn is_made(tx: &mut Tx, account: i64, document: &str, revision: i64) -> Result<bool> {
    let sql = "SELECT count(*) FROM document_pdfs WHERE account_id = $1 AND document_id = $2 AND revision = $3";
    Ok(tx.int(sql, &[account.into(), document.into(), revision.into()])? > 0)
}

/// Prints a document and keeps it as a file, unless that was done already; a draft is not kept.
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
        sha256: file::hex(&Sha256::digest(&bytes)),
        pixels: 0,
    };
    let (own, key) = (caller.clone(), upload.content.clone());
    app.store.write_now(caller.account.number, move |tx| {
        let ctx = own.reading(tx)?;
        file::drop_later(tx, ctx.account, &ctx, &key, file::PATIENCE_SECONDS)
    })?;
    let piece = bytes::Bytes::copy_from_slice(&bytes);
    let pieces = futures_util::stream::iter([Ok::<_, blobs::Error>(piece)]);
    let kept = tokio::runtime::Handle::current().block_on(app.blobs.keep(&upload.content, pieces));
    kept.map_err(|error| Error::internal(format!("cannot store a PDF: {error}")))?;
    let (document, revision) = (job.document.clone(), job.revision);
    app.store.write_now(caller.account.number, move |tx| {
        let ctx = caller.writing(tx)?;
        if is_made(tx, ctx.account, &document, revision)? {
            // Somebody was first.
            return file::drop_now(tx, &ctx, &upload.content);
        }
        let file = file::add(tx, &ctx, &upload)?;
        tx.execute(
            "INSERT INTO document_pdfs (account_id, document_id, revision, file_id) VALUES ($1, $2, $3, $4)",
            &[ctx.account.into(), (&document).into(), revision.into(), (&file.base.id).into()],
        )?;
        Ok(())
    })?;
    Ok(bytes)
}
