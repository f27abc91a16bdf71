//! Logos. Before a file becomes a logo, its image is decoded within limits and re-encoded, in the process that
//! reads files; the result replaces the content of the file. So the stored and printed image can always be decoded, and
//! has no profiles or other metadata.

use bytes::Bytes;
use engine::app::App;
use engine::call::{Answer, Call};
use engine::contents::picture::Header;
use engine::contents::{Upload, hex};
use engine::context::{Actor, Ctx};
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, violation};
use engine::records::{self, Work};
use engine::resource::Handler;
use sha2::{Digest, Sha256};
use store::Tx;

use crate::files::{self, File, usage};
use crate::reading::{Source, picture};

/// Maximum number of pixels of a logo. All of them are in memory while it is decoded.
const MAX_PIXELS: i64 = 25_000_000;

/// The file that a body names as the logo.
pub struct Named {
    /// Its id, or an empty string.
    pub id: String,
    /// Whether the fields of the body are valid by themselves; otherwise nothing is re-encoded.
    pub is_valid: bool,
}

/// Re-encodes the image of the file that a body names, then does the work of `handler`. Both writes are in one transaction, and
/// nothing is decoded inside it. `wanted` returns whether the file is to become a logo at all.
pub fn redraw_first(
    handler: Handler,
    call: Call,
    named: Named,
    wanted: impl Fn(&mut Tx, &Ctx, &Call) -> Result<bool> + Send + Sync + 'static,
) -> Result<Work> {
    let work = handler(call.clone())?;
    let Named { id, is_valid } = named;
    if id.is_empty() {
        return Ok(work);
    }
    Ok(Box::new(move |tx, ctx| {
        if !wanted(tx, ctx, &call)? {
            return work(tx, ctx);
        }
        let file: File = match records::find(tx, ctx, &id) {
            // The handler reports it, together with other errors.
            Err(error) if error.code == Code::NotFound => return work(tx, ctx),
            found => found?,
        };
        if let Err(refused) = check(&file) {
            return Err(with_others(refused, work(tx, ctx)));
        }
        if file.redrawn || !is_valid {
            return work(tx, ctx);
        }
        let call = call.clone();
        Ok(Answer::after(move |app, caller| {
            let upload = redraw(app, caller, &file)?;
            let (work, id) = (handler(call.clone())?, file.base.id.clone());
            Ok(Box::new(move |tx, ctx| {
                replace(tx, ctx, &id, &upload)?;
                work(tx, ctx)
            }))
        }))
    }))
}

/// Adds to the error about a logo whatever else is wrong with the body.
fn with_others(refused: Error, done: Result<Answer>) -> Error {
    let mut faults = FieldErrors(refused.faults.clone());
    match faults.join(done) {
        Ok(_) => Error::invalid(faults),
        Err(_) => refused,
    }
}

/// Checks whether a file can be a logo, without decoding it.
fn check(file: &File) -> Result<()> {
    match file.pixels {
        _ if !matches!(file.content_type.as_str(), "image/png" | "image/jpeg") => {
            Err(refused(FieldCode::InvalidChoice, "must be a PNG or JPEG image"))
        }
        0 => Err(refused(FieldCode::InvalidChoice, "must be an image with valid dimensions; upload another one")),
        pixels if pixels > MAX_PIXELS => Err(refused(FieldCode::OutOfRange, "may have at most 25 million pixels")),
        _ => Ok(()),
    }
}

/// Checks that the new logo was re-encoded. Only a change without a request can set another file.
pub fn must_be_redrawn(file: &File) -> Result<()> {
    check(file)?;
    if file.redrawn {
        return Ok(());
    }
    Err(refused(FieldCode::InvalidChoice, "must be set with a request, which decodes the image first"))
}

fn refused(code: FieldCode, message: &str) -> Error {
    Error::field("logo_file_id", violation(code, message))
}

/// Stores the re-encoded image of a file as a content that waits for its record.
fn redraw(app: &App, caller: &Actor, file: &File) -> Result<Upload> {
    let drawn = picture::redraw(app, caller, &Source::of(file))?;
    let drawn = drawn.map_err(|refusal| match refusal {
        pdf::Refusal::Unreadable => refused(
            FieldCode::InvalidFormat,
            "is an image that cannot be decoded: it is damaged, incomplete or too large for the available memory",
        ),
        pdf::Refusal::Colours => refused(
            FieldCode::InvalidFormat,
            "is a CMYK JPEG that does not specify how its colours are stored; save it as RGB",
        ),
    })?;
    let mut header = Header::default();
    header.see(&drawn);
    let upload = Upload {
        content: format!("{}/{}", caller.account.uid, app.ids.next()),
        name: file.name.clone(),
        content_type: file.content_type.clone(),
        size: i64::try_from(drawn.len()).unwrap_or(i64::MAX),
        sha256: hex(&Sha256::digest(&drawn)),
        pixels: header.pixels(),
    };
    let (own, key) = (caller.clone(), upload.content.clone());
    // Enqueued before the first byte is written, so that a crash leaves nothing behind.
    app.store.write_now(caller.account.number, move |tx| {
        let ctx = own.reading(tx)?;
        files::drop_later(tx, ctx.account, &ctx, &key, files::PATIENCE_SECONDS)
    })?;
    let pieces = futures_util::stream::iter([Ok::<_, blobs::Error>(Bytes::from(drawn))]);
    let kept = tokio::runtime::Handle::current().block_on(app.blobs.keep(&upload.content, pieces));
    kept.map_err(|error| Error::internal(format!("a logo cannot be kept: {error}")))?;
    Ok(upload)
}

/// Replaces the content of a file with the re-encoded image.
fn replace(tx: &mut Tx, ctx: &Ctx, id: &str, upload: &Upload) -> Result<()> {
    let before: File = match records::find(tx, ctx, id) {
        Err(error) if error.code == Code::NotFound => return files::drop_now(tx, ctx, &upload.content),
        found => found?,
    };
    if before.redrawn {
        // Another request was faster.
        return files::drop_now(tx, ctx, &upload.content);
    }
    let grows = upload.size - before.size;
    if grows > 0 {
        usage::room_for_bytes(tx, ctx, grows)?;
    }
    files::claim(tx, upload)?;
    let mut file = before.clone();
    (file.content, file.sha256) = (upload.content.clone(), upload.sha256.clone());
    (file.size, file.pixels, file.redrawn) = (upload.size, upload.pixels, true);
    records::change(tx, ctx, &before, &mut file, "updated")?;
    usage::count_file(tx, ctx, grows)?;
    // Not immediately: a PDF that is being created may use the old content.
    files::drop_later(tx, ctx.account, ctx, &before.content, files::PATIENCE_SECONDS)
}
