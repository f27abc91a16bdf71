//! Reads a backup file by file, wherever it is.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};

use archive::{Error, Identities, Reader};
use blobs::Blobs;
use bytes::Bytes;
use engine::secrets::key_file;
use futures_util::StreamExt;
use tokio::runtime::Handle;

use crate::upkeep::backup::manifest::{LIST, MANIFEST, Manifest, SIGNATURE};
use crate::upkeep::backup::place::{Place, unreachable};

/// How many pieces of a download may wait.
const WAITING: usize = 4;
/// The most bytes of a description, a signature or a key.
pub const MAX_TEXT: u64 = 1024 * 1024;
/// The most bytes of a line of the list of contents: a hash and a name.
const MAX_LINE: u64 = 4096;

/// Receives the name, the size and the content of a file.
pub type Take<'t> = dyn FnMut(&str, u64, &mut dyn Read) -> Result<(), Failure> + 't;

/// Why a backup cannot be read, or its content cannot be used; a phrase.
pub struct Failure(pub String);

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure(error.to_string())
    }
}

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure(why)
    }
}

/// Calls `take` for every file of a backup, the description first.
pub fn each(place: &Place, runtime: &Handle, identities: Option<&Identities>, take: &mut Take) -> Result<(), Failure> {
    match place {
        Place::Folder(folder) => of_folder(folder, take),
        Place::File(path) => {
            let file = File::open(path).map_err(Error::from)?;
            Reader::open(file, identities)?.each(|name, size, content| take(name, size, content))
        }
        Place::Object { blobs, key, .. } => std::thread::scope(|scope| {
            let (sender, pieces) = mpsc::sync_channel(WAITING);
            scope.spawn(move || runtime.block_on(download(blobs, key, &sender)));
            let reading = Downloading { pieces, piece: Bytes::new() };
            Reader::open(reading, identities)?.each(|name, size, content| take(name, size, content))
        }),
    }
}

fn of_folder(folder: &Path, take: &mut Take) -> Result<(), Failure> {
    let damaged = |name: &str, error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Failure(Error::Damaged(format!("{name} is missing")).to_string()),
        _ => Failure(format!("{name}: {error}")),
    };
    let open = |name: &str| {
        let opened = File::open(folder.join(name)).and_then(|file| Ok((file.metadata()?.len(), file)));
        opened.map_err(|error| damaged(name, error))
    };
    let mut text = String::new();
    let read = File::open(folder.join(MANIFEST)).and_then(|file| file.take(MAX_TEXT).read_to_string(&mut text));
    read.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::from(Error::Foreign),
        _ => damaged(MANIFEST, error),
    })?;
    take(MANIFEST, text.len() as u64, &mut text.as_bytes())?;
    // It was accepted, so it is one.
    let manifest: Manifest = serde_json::from_str(&text).map_err(|error| Failure(error.to_string()))?;
    let (size, mut database) = open(&manifest.database.file)?;
    take(&manifest.database.file, size, &mut database)?;
    if folder.join(key_file::NAME).exists() {
        let (size, mut key) = open(key_file::NAME)?;
        take(key_file::NAME, size, &mut key)?;
    }
    let mut list = BufReader::new(open(LIST)?.1);
    loop {
        let mut line = String::new();
        if list.by_ref().take(MAX_LINE).read_line(&mut line).map_err(|error| damaged(LIST, error))? == 0 {
            break;
        }
        // A line that is cut off at the limit names a file that is missing.
        let line = line.trim_end_matches('\n');
        let (_, name) = line.split_once("  ").ok_or(Error::Damaged(format!("{LIST} has a line without a name")))?;
        if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            let why = format!("{LIST} names {name:?}, which would be outside the backup");
            return Err(Error::Damaged(why).into());
        }
        let (size, mut content) = open(name)?;
        take(name, size, &mut content)?;
    }
    let (size, mut list) = open(LIST)?;
    take(LIST, size, &mut list)?;
    if folder.join(SIGNATURE).exists() {
        let (size, mut signature) = open(SIGNATURE)?;
        take(SIGNATURE, size, &mut signature)?;
    }
    Ok(())
}

/// Downloads an object. Waits for the reader, so it needs a thread of its own.
async fn download(blobs: &Blobs, key: &str, pieces: &mpsc::SyncSender<io::Result<Bytes>>) {
    let failed = |error: blobs::Error| match error {
        blobs::Error::Missing => io::Error::new(io::ErrorKind::NotFound, "there is no such object"),
        error => io::Error::new(io::ErrorKind::ConnectionAborted, unreachable(&error)),
    };
    let mut content = match blobs.open(key).await {
        Ok(content) => content.bytes,
        Err(error) => return drop(pieces.send(Err(failed(error)))),
    };
    while let Some(piece) = content.next().await {
        // Nobody reads on after an error.
        if pieces.send(piece.map_err(failed)).is_err() {
            return;
        }
    }
}

struct Downloading {
    pieces: Receiver<io::Result<Bytes>>,
    piece: Bytes,
}

impl Read for Downloading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.recv() {
                Ok(piece) => self.piece = piece?,
                Err(_) => return Ok(0),
            }
        }
        let length = buffer.len().min(self.piece.len());
        buffer[..length].copy_from_slice(&self.piece.split_to(length));
        Ok(length)
    }
}
