//! Writes a backup as one archive. Contents of files go straight from their store into it and are checked on the way.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use archive::{Recipients, Writer};
use blobs::Blobs;
use bytes::Bytes;
use engine::contents::hex;
use engine::secrets::vault::Vault;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::contents::{about, listed};
use super::manifest::{FILES, LIST, MANIFEST, Manifest, SIGNATURE};
use crate::upkeep::integrity::Witness;
use crate::upkeep::integrity::files::Kept;

/// How many bytes are handed to an upload at a time.
const PIECE: usize = 1024 * 1024;
/// How many of them may wait for it.
const WAITING: usize = 4;

/// What goes into an archive.
pub(super) struct Packing<'p> {
    pub blobs: &'p Blobs,
    pub runtime: &'p Handle,
    /// The folder with the copy of the database and the list of contents.
    pub staged: &'p Path,
    pub contents: &'p Path,
    pub manifest: &'p Manifest,
    /// The keys that sign the backup.
    pub vault: Option<&'p Vault>,
    /// When the backup was started, in seconds.
    pub seconds: u64,
    pub recipients: &'p Recipients,
}

impl Packing<'_> {
    /// Writes the archive; returns the number of contents that are missing or wrong. Then it must not be used.
    pub fn write<W: Write>(&self, output: W, witness: &mut dyn Witness) -> io::Result<(W, u64)> {
        let mut writer = Writer::new(output, self.recipients)?;
        let text = self.manifest.text();
        writer.add(MANIFEST, text.len() as u64, self.seconds, text.as_bytes())?;
        self.add_file(&mut writer, &self.manifest.database.file)?;
        let key = engine::secrets::key_file::NAME;
        if self.staged.join(key).exists() {
            self.add_file(&mut writer, key)?;
        }
        let (mut problems, mut done) = (0, 0);
        let mut list = io::BufWriter::new(File::create(self.staged.join(LIST))?);
        for file in listed(self.contents)? {
            done += 1;
            witness.copies("files", done);
            match self.add_content(&mut writer, &file)? {
                Ok(sha256) => writeln!(list, "{sha256}  {FILES}/{}", file.content)?,
                Err(what) => {
                    problems += 1;
                    witness.hears(&about(file, what));
                }
            }
        }
        list.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        self.add_file(&mut writer, LIST)?;
        self.manifest.sign(self.staged, self.vault)?;
        if self.staged.join(SIGNATURE).exists() {
            self.add_file(&mut writer, SIGNATURE)?;
        }
        Ok((writer.finish()?, problems))
    }

    fn add_file<W: Write>(&self, writer: &mut Writer<W>, name: &str) -> io::Result<()> {
        let file = File::open(self.staged.join(name))?;
        writer.add(name, file.metadata()?.len(), self.seconds, file)
    }

    /// Adds a content; returns its SHA-256, or what is wrong with it. An error of the archive itself ends the backup.
    fn add_content<W: Write>(&self, writer: &mut Writer<W>, file: &Kept) -> io::Result<Result<String, String>> {
        let content = match self.runtime.block_on(self.blobs.open(&file.content)) {
            Ok(content) => content,
            Err(blobs::Error::Missing) => return Ok(Err(format!("Its content {} is missing", file.content))),
            Err(error) => return Ok(Err(format!("Its content {} cannot be read: {error}", file.content))),
        };
        if i64::try_from(content.size) != Ok(file.size) {
            let what = format!("Its content {} has {} bytes instead of {}", file.content, content.size, file.size);
            return Ok(Err(what));
        }
        let failed = RefCell::new(None);
        let mut reading = Reading {
            runtime: self.runtime,
            pieces: content.bytes,
            piece: Bytes::new(),
            left: content.size,
            hash: Sha256::new(),
            failed: &failed,
        };
        writer.add(&format!("{FILES}/{}", file.content), content.size, self.seconds, &mut reading)?;
        let sha256 = hex(&reading.hash.finalize());
        if let Some(why) = failed.take() {
            return Ok(Err(format!("Its content {} cannot be read: {why}", file.content)));
        }
        match file.sha256.is_empty() || file.sha256 == sha256 {
            true => Ok(Ok(sha256)),
            false => Ok(Err(format!("Its content {} was altered: its SHA-256 differs", file.content))),
        }
    }
}

/// Reads a content. If it fails, zeros take the place of the rest, so that the other contents can still be checked.
struct Reading<'r> {
    runtime: &'r Handle,
    pieces: BoxStream<'static, blobs::Result<Bytes>>,
    piece: Bytes,
    left: u64,
    hash: Sha256,
    failed: &'r RefCell<Option<String>>,
}

impl Read for Reading<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() && self.failed.borrow().is_none() && self.left > 0 {
            match self.runtime.block_on(self.pieces.next()) {
                Some(Ok(piece)) => self.piece = piece,
                Some(Err(error)) => *self.failed.borrow_mut() = Some(error.to_string()),
                None => *self.failed.borrow_mut() = Some("it ends too early".to_string()),
            }
        }
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let length = if self.piece.is_empty() {
            buffer[..most].fill(0);
            most
        } else {
            let length = most.min(self.piece.len());
            buffer[..length].copy_from_slice(&self.piece.split_to(length));
            length
        };
        self.hash.update(&buffer[..length]);
        self.left -= length as u64;
        Ok(length)
    }
}

/// Hands what is written to an upload on another thread.
pub(super) struct Uploading {
    pieces: mpsc::Sender<blobs::Result<Bytes>>,
    piece: Vec<u8>,
}

impl Uploading {
    /// Uploads what `write` writes, as one object; returns its result. Nothing is stored if it fails.
    pub fn run<T>(
        (blobs, runtime): (&Blobs, &Handle),
        key: &str,
        write: impl FnOnce(Uploading) -> io::Result<(Uploading, T)>,
        is_good: impl FnOnce(&T) -> bool,
    ) -> Result<T, String> {
        let (pieces, mut received) = mpsc::channel(WAITING);
        std::thread::scope(|scope| {
            let upload = scope.spawn(move || {
                let stream = futures_util::stream::poll_fn(move |cx| received.poll_recv(cx));
                runtime.block_on(blobs.keep_large(key, stream)).map_err(|error| error.to_string())
            });
            let ends = pieces.clone();
            let written =
                write(Uploading { pieces, piece: Vec::with_capacity(PIECE) }).and_then(|(mut upload, done)| {
                    upload.flush()?;
                    Ok(done)
                });
            let is_complete = written.as_ref().is_ok_and(is_good);
            if !is_complete {
                // The upload is called off; it may have failed already.
                let _ = ends.blocking_send(Err(blobs::Error::Broken("the backup failed".to_string())));
            }
            drop(ends);
            let uploaded = upload.join().map_err(|_| "the upload failed".to_string()).and_then(|done| done);
            match (written, uploaded) {
                (Ok(done), Ok(())) => Ok(done),
                (Ok(done), Err(_)) if !is_complete => Ok(done),
                // Writing fails when the upload has: its reason is the better one.
                (Err(error), Err(_)) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
                (_, Err(why)) => Err(why),
                (Err(error), Ok(())) => Err(error.to_string()),
            }
        })
    }
}

impl Write for Uploading {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE)));
        self.pieces.blocking_send(Ok(piece)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
