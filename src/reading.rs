//! Reading files that others made: tables, archives and images. They are read in a process of its own (`worker.rs`), which has
//! limits on memory and time, so that no file can take the server down.

pub mod archive;
pub mod picture;
pub mod table;
pub mod worker;

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use confined::{Ended, Program, Worker, put};
use engine::app::App;
use engine::config::Config;
use engine::context::Actor;
use engine::error::{Code, Error, FieldCode, Result, violation};
use engine::presence::Presence;
use engine::services::Services;
use engine::turns;
use futures_util::StreamExt as _;
use serde_json::Value;
use store::{Place, Places};
use tokio::runtime::Handle;

use crate::files::File;

/// Number of files that are checked at a time, and of images that are re-encoded; of an account one each.
const TOGETHER: usize = 2;

/// How files are read.
pub struct Reader {
    /// The program that reads; none reads on threads of this process, without limits.
    program: Option<Program>,
    limits: Limits,
    checks: Arc<Places>,
    pictures: Arc<Places>,
}

/// What a process may use.
#[derive(Clone, Copy)]
struct Limits {
    memory_mib: u64,
    seconds: u64,
}

impl Limits {
    /// How long an answer may take: on a busy machine, a process gets only a part of a processor.
    fn patience(self) -> Duration {
        Duration::from_secs(self.seconds.saturating_mul(2))
    }
}

/// Opens the reader.
pub fn open(config: &Config, _: &str, services: &mut Services) -> Result<()> {
    let limits = Limits { memory_mib: config.read_memory_mib, seconds: config.read_timeout_seconds.max(1) };
    let arguments = ["read-worker".to_string(), limits.memory_mib.to_string(), limits.seconds.to_string()];
    let checks = Places::capped("checks of files", TOGETHER, 1);
    let pictures = Places::capped("pictures", TOGETHER, 1);
    services.pool(checks.clone());
    services.pool(pictures.clone());
    services.add(Reader {
        program: config.read_apart.then(|| Program::own(arguments, limits.patience())),
        limits,
        checks,
        pictures,
    });
    Ok(())
}

/// Where the content of a file is.
pub enum Source {
    /// In the store, under this key, with this size.
    Kept(String, u64),
    /// In memory.
    Here(Bytes),
}

impl Source {
    /// Returns the content of a stored file.
    pub fn of(file: &File) -> Source {
        Source::Kept(file.content.clone(), file.size.try_into().unwrap_or_default())
    }

    fn size(&self) -> u64 {
        match self {
            Source::Kept(_, size) => *size,
            Source::Here(bytes) => bytes.len() as u64,
        }
    }
}

/// Why a file is not read.
pub enum Trouble {
    /// It is larger than allowed; a sentence.
    TooLarge(String),
    /// It is malformed, of another format, or exceeds the limits of the process; a sentence.
    Malformed(String),
    /// Its text is not in the encoding that the caller chose.
    Encoding(String),
    /// It is not because of the file.
    Ours(Error),
}

impl Trouble {
    /// Returns the error of a request that names the file in this field.
    pub fn in_field(self, field: &str) -> Error {
        match self {
            Trouble::TooLarge(sentence) => {
                let error = Error::field(field, violation(FieldCode::TooLong, sentence.clone()));
                Error { code: Code::BodyTooLarge, message: sentence, ..error }
            }
            Trouble::Malformed(sentence) => {
                let error = Error::field(field, violation(FieldCode::InvalidFormat, sentence.clone()));
                Error { message: sentence, ..error }
            }
            Trouble::Encoding(message) => Error::field("encoding", violation(FieldCode::InvalidChoice, message)),
            Trouble::Ours(error) => error,
        }
    }
}

impl Reader {
    /// Waits until the account may check a file. Others wait for its end, so it must be held for one check only.
    pub fn turn(&self, caller: &Actor) -> Result<Place> {
        take(&self.checks, caller)
    }

    /// Starts to read: sends the task and the content.
    fn start(&self, app: &App, caller: &Actor, mut task: Value, source: &Source) -> Result<Reading, Trouble> {
        let worker = match &self.program {
            Some(program) => Worker::start(program),
            None => Worker::on_thread(worker::work),
        };
        let worker = worker.map_err(|cause| {
            tracing::warn!(%cause, "The process that reads files cannot be started.");
            let message = "The file cannot be read at the moment; retry shortly.";
            Trouble::Ours(Error { retry_after: Some(1), ..Error::new(Code::Overloaded, message) })
        })?;
        let mut reading = Reading {
            worker,
            limits: self.limits,
            presence: caller.presence.clone(),
            account: caller.account.uid.clone(),
        };
        task["size"] = source.size().into();
        reading.send(task.to_string().as_bytes())?;
        match source {
            Source::Here(bytes) => {
                for piece in bytes.chunks(PIECE) {
                    reading.send(piece)?;
                }
            }
            Source::Kept(key, _) => reading.send_kept(app, key)?,
        }
        reading.send(&[])?;
        Ok(reading)
    }
}

/// Number of bytes that are passed on together.
const PIECE: usize = 256 * 1024;

fn take(places: &Arc<Places>, caller: &Actor) -> Result<Place> {
    Handle::current().block_on(async {
        tokio::select! {
            place = turns::take(places, caller.account.number) => place,
            () = caller.presence.left() => Err(left()),
        }
    })
}

/// The error of a request that nobody waits for.
fn left() -> Error {
    Error::new(Code::RequestTimeout, "The caller ended the request.")
}

fn message(from: &mut dyn Read) -> io::Result<Vec<u8>> {
    confined::take(from)
}

/// A file that is being read. Dropping it ends the process.
struct Reading {
    worker: Worker,
    limits: Limits,
    presence: Presence,
    account: String,
}

impl Reading {
    fn send(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        if self.presence.has_left() {
            return Err(Trouble::Ours(left()));
        }
        self.worker.send(bytes).map_err(|ended| self.trouble(&ended))
    }

    fn send_kept(&mut self, app: &App, key: &str) -> Result<(), Trouble> {
        let runtime = Handle::current();
        let failed = |error: blobs::Error| Trouble::Ours(Error::internal(format!("the content {key}: {error}")));
        let mut content = runtime.block_on(app.blobs.open(key)).map_err(failed)?.bytes;
        while let Some(piece) = runtime.block_on(content.next()) {
            // An empty message is the end of the content.
            for piece in piece.map_err(failed)?.chunks(PIECE) {
                self.send(piece)?;
            }
        }
        Ok(())
    }

    /// Waits for a message.
    fn message(&mut self) -> Result<Vec<u8>, Trouble> {
        self.hear(message)
    }

    /// Waits for an answer, which `hear` reads.
    fn hear<T>(&mut self, hear: impl FnOnce(&mut dyn Read) -> io::Result<T>) -> Result<T, Trouble> {
        self.ask(None, hear)
    }

    /// Sends a question and waits for its answer.
    fn ask<T>(
        &mut self,
        question: Option<&Value>,
        hear: impl FnOnce(&mut dyn Read) -> io::Result<T>,
    ) -> Result<T, Trouble> {
        if self.presence.has_left() {
            return Err(Trouble::Ours(left()));
        }
        let presence = self.presence.clone();
        let talk = |to: &mut dyn Write, from: &mut dyn Read| {
            if let Some(question) = question {
                put(to, question.to_string().as_bytes())?;
            }
            to.flush()?;
            hear(from)
        };
        self.worker.talk(self.limits.patience(), &|| !presence.has_left(), talk).map_err(|ended| self.trouble(&ended))
    }

    fn trouble(&self, ended: &Ended) -> Trouble {
        match ended {
            Ended::Unneeded => return Trouble::Ours(left()),
            Ended::Killed => {
                tracing::warn!(account = self.account, cause = %ended, "A file could not be read.");
                let message = "The server ran out of memory while it read the file; retry shortly.";
                return Trouble::Ours(Error { retry_after: Some(10), ..Error::new(Code::Overloaded, message) });
            }
            Ended::Late(_) | Ended::Gone(_) => {}
        }
        tracing::warn!(account = self.account, cause = %ended, "A file could not be read within the limits.");
        Trouble::Malformed(format!(
            "The file could not be read within {} MiB of memory and {} seconds. Save it again as CSV, or divide it.",
            self.limits.memory_mib, self.limits.seconds
        ))
    }
}
